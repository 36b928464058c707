//! An agent that does what a script says. See [`ralphloop_testkit::claude`].
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    ralphloop_testkit::claude::main()
}
