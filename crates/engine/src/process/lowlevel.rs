//! The only `unsafe` of this crate: two calls for which there is no safe interface.
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::Pid;

/// Does something in the child before it becomes the program. The child is a copy of a process that has to have one thread.
#[expect(unsafe_code, reason = "a hook between fork and exec has no safe interface")]
pub(super) fn before_start(
    command: &mut Command,
    step: impl FnMut() -> std::io::Result<()> + Send + Sync + 'static,
) -> std::io::Result<()> {
    if threads()? != 1 {
        return Err(std::io::Error::other("only a process of one thread prepares a program"));
    }
    // SAFETY: after a fork of a process with several threads only async-signal-safe code may run, since what other threads
    // held is held for ever. This process has one thread, as was just read, and no other can start one before the spawn, so
    // that the child is as whole as its parent: it may allocate, and open files.
    unsafe { command.pre_exec(step) };
    Ok(())
}

/// Which side of a [`fork`] this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The copy is this one's child.
    Parent(Pid),
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
        nix::unistd::ForkResult::Parent { child } => {
            let child = Pid::from_raw(child.as_raw()).ok_or_else(|| std::io::Error::other("the copy has no number"))?;
            Ok(Side::Parent(child))
        }
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
