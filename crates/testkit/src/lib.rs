//! What the tests of ralphloop share.
#![forbid(unsafe_code)]
