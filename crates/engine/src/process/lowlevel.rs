//! The only `unsafe` of this crate: two calls for which there is no safe interface.
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

/// Which side of a [`fork`] this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Parent,
    Child,
}

/// Makes a copy of this process. Refused where another thread runs: the copy would have that thread's locks and not the
/// thread.
#[expect(unsafe_code, reason = "a fork has no safe interface")]
pub(super) fn fork() -> std::io::Result<Side> {
    if threads()? != 1 {
        return Err(std::io::Error::other("only a process of one thread is copied"));
    }
    // SAFETY: after a fork of a process with several threads the child may call nothing but async-signal-safe functions,
    // since what other threads held is held for ever. This thread is the only one, as was just read, and no other can
    // start one, so that the child is as whole as its parent.
    match unsafe { nix::unistd::fork() }? {
        nix::unistd::ForkResult::Parent { .. } => Ok(Side::Parent),
        nix::unistd::ForkResult::Child => Ok(Side::Child),
    }
}

/// How many threads this process has.
#[cfg(target_os = "linux")]
fn threads() -> std::io::Result<u64> {
    // Links of a directory are its folders, one a thread, and two more (proc(5)).
    Ok(rustix::fs::stat("/proc/self/task")?.st_nlink.saturating_sub(2))
}

/// How many threads this process has: nobody tells, and a supervisor starts none.
#[cfg(not(target_os = "linux"))]
fn threads() -> std::io::Result<u64> {
    Ok(1)
}
