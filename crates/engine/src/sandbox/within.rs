//! What is done in a sandbox that another program has made, before the program begins: signals are kept inside, the doors of
//! the network are opened, and the supervisor is told that all of it holds.
use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use super::doors;
use super::enter::keep_to_its_own;

/// The argument after which the ports of doors come.
pub(super) const FIRST: &str = "--within";
/// Between those and the program.
pub(super) const THEN: &str = "--";
/// The variable that names the descriptor over which doors are handed out.
pub(crate) const DOORS: &str = "RALPHLOOP_DOORS";
/// The variable that names the descriptor of the program's own standard error. Until it is told otherwise, the supervisor reads
/// there why the sandbox could not be made.
pub(crate) const STDERR: &str = "RALPHLOOP_STDERR";
/// The byte that ends this: from here on it is the program that speaks.
pub(crate) const PUT_IN: u8 = 0;
/// What a shell says of a program that cannot be started.
const NOT_STARTED: u8 = 126;

/// Where this program was started to do that: does it, becomes the program, and returns only if it cannot.
pub(crate) fn become_the_program(arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.skip_while(|argument| argument != OsStr::new(FIRST));
    arguments.next()?;
    let ports: Vec<u16> = arguments
        .by_ref()
        .take_while(|argument| argument != OsStr::new(THEN))
        .filter_map(|port| port.to_string_lossy().parse().ok())
        .collect();
    let prepared = keep_to_its_own().map_err(io::Error::other).and_then(|()| open(&ports)).and_then(|()| give_way());
    let why = match prepared.and_then(|()| arguments.next().ok_or(io::ErrorKind::InvalidInput.into())) {
        Ok(program) => Command::new(program).args(arguments).env_remove(DOORS).env_remove(STDERR).exec(),
        Err(error) => error,
    };
    // Before the program's turn the supervisor hears this, and later whoever hears the program.
    drop(writeln!(io::stderr(), "ralphloop: in the sandbox: {why}"));
    Some(ExitCode::from(NOT_STARTED))
}

/// Hands doors out by the descriptor that was inherited, of which the program keeps nothing.
fn open(ports: &[u16]) -> io::Result<()> {
    if ports.is_empty() {
        return Ok(());
    }
    doors::hand_out(ports, inherited(DOORS)?.as_fd())
}

/// Says that the program begins, and gives it its standard error.
fn give_way() -> io::Result<()> {
    let own = inherited(STDERR)?;
    io::stderr().write_all(&[PUT_IN])?;
    Ok(rustix::stdio::dup2_stderr(own)?)
}

/// The descriptor that a variable names.
fn inherited(name: &str) -> io::Result<OwnedFd> {
    let number = std::env::var(name).ok().and_then(|number| number.parse().ok());
    let number: i32 = number.ok_or_else(|| io::Error::other("no descriptor was named"))?;
    let this = pidfd_open(getpid(), PidfdFlags::empty())?;
    let found = pidfd_getfd(this, number, PidfdGetfdFlags::empty())?;
    nix::unistd::close(number)?;
    Ok(found)
}
