//! The program `ralphloop`.
#![forbid(unsafe_code)]
fn main() {}
