//! The supervisor as a program of its own, for this crate's tests; the released binary contains it behind a hidden
//! argument.
use std::process::ExitCode;

fn main() -> ExitCode {
    ralphloop_engine::process::supervise_main()
}
