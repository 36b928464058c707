//! The only `unsafe` of this crate: two calls for which no safe interface is stable.
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Makes the child the leader of a new session and group: no controlling terminal, out of reach of Ctrl-C, and one
/// number, its process id, that names all who stay in its group.
#[expect(unsafe_code, reason = "a hook between fork and exec has no safe interface")]
pub(super) fn in_new_session(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec only async-signal-safe code may run. The closure captures nothing, allocates
    // nothing and takes no lock: `setsid` is one system call, and turning its `Errno` into an `io::Error` stores an
    // integer.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            Ok(())
        })
    }
}

/// Lets the runtime tell when `fd` is readable.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the safe constructor is deprecated for types that may lie about their descriptor")]
pub(super) fn readable(fd: std::os::fd::OwnedFd) -> std::io::Result<tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>> {
    // SAFETY: the descriptor must stay open and the same while it is registered. `OwnedFd` is the sole owner of an open
    // descriptor, always returns the same number, closes it only when dropped, and is moved into the `AsyncFd`.
    let registered = unsafe { tokio::io::unix::AsyncFd::register_with_interest(fd, tokio::io::Interest::READABLE) };
    registered.map_err(Into::into)
}
