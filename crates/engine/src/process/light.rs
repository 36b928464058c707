//! A child that we own directly, in a session of its own.
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use super::error::FailedStart;
use super::leftover::{self, Leftover};
use super::lowlevel::in_new_session;
use super::owner::{Happening, Pipes};
use super::tree;
use super::{Call, SpawnError, Stdin};

/// The child and, through it, its group. The child is not reaped before the last signal has been sent: until then its
/// number, and that of its group, can't be given to anybody else.
#[derive(Debug)]
pub(super) struct Light {
    child: Child,
    group: Pid,
    watch: exit::Watch,
    state: State,
}

/// What has been seen of the child.
#[derive(Debug)]
enum State {
    Runs,
    Exited,
    /// Its exit can't be waited for.
    GivenUp,
}

impl Light {
    pub(super) fn start(call: &Call) -> Result<(Self, Pipes), SpawnError> {
        let env = call.env.resolve();
        let failed = FailedStart {
            program: &call.program,
            args: &call.args,
            cwd: &call.cwd,
            path: env.get(std::ffi::OsStr::new("PATH")).map(std::ffi::OsString::as_os_str),
        };
        let mut command = std::process::Command::new(&call.program);
        command.args(&call.args).current_dir(&call.cwd).env_clear().envs(&env);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(match call.stdin {
            Stdin::Null => Stdio::null(),
            Stdin::Bytes(_) => Stdio::piped(),
        });
        in_new_session(&mut command);
        let mut child = Command::from(command).spawn().map_err(|source| failed.diagnose(source))?;
        let io = |source| SpawnError::Io { program: call.program.clone(), source };
        let group = child
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()))
            .ok_or_else(|| io(std::io::Error::other("the child has no process id")))?;
        let pipes = Pipes::of(&mut child).map_err(io)?;
        let watch = exit::Watch::new(group).map_err(|source| {
            signal_group(group, Signal::KILL);
            io(source)
        })?;
        Ok((Self { child, group, watch, state: State::Runs }, pipes))
    }

    pub(super) fn record(&self) -> Leftover {
        Leftover {
            pid: self.pid(),
            start_time: tree::look(self.group).map_or(0, |row| row.start_time),
            boot_id: leftover::boot_id(),
            mark: None,
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.group.as_raw_nonzero().get().cast_unsigned()
    }

    /// Waits for the child to exit, and leaves it unreaped. Can be dropped and called again.
    pub(super) async fn event(&mut self) -> std::io::Result<Happening> {
        match self.state {
            State::Runs => {
                let status = self.watch.exited(&mut self.child).await?;
                self.state = State::Exited;
                Ok(Happening::Exited(status))
            }
            // Nobody else is known of; who holds the pipes shows when they are drained.
            State::Exited => Ok(Happening::Gone { leaked: false }),
            State::GivenUp => Ok(Happening::Stuck { count: 1 }),
        }
    }

    /// Stops waiting for an exit that does not come.
    pub(super) fn give_up(&mut self) {
        self.kill();
        self.state = State::GivenUp;
    }

    /// Asks the whole group to end.
    pub(super) fn terminate(&self) {
        signal_group(self.group, Signal::TERM);
        // A stopped process acts on TERM only when it goes on.
        signal_group(self.group, Signal::CONT);
    }

    /// Ends the whole group.
    pub(super) fn kill(&self) {
        signal_group(self.group, Signal::KILL);
    }

    /// Reaps the child, after which nothing more can be sent to its group.
    pub(super) fn reap(&mut self) {
        // An error means that it is reaped, or can't be: the runtime keeps trying then.
        drop(self.child.try_wait());
    }
}

impl Drop for Light {
    fn drop(&mut self) {
        // `id` is gone once the child is reaped, and with it the right to send to the number.
        if self.child.id().is_some() {
            self.kill();
        }
    }
}

fn signal_group(group: Pid, signal: Signal) {
    // The one expected error is that nobody is left in the group.
    let _ = kill_process_group(group, signal);
}

#[cfg(target_os = "linux")]
mod exit {
    use std::io;
    use std::os::fd::{AsFd as _, OwnedFd};
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::super::lowlevel::readable;
    use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};
    use tokio::io::unix::AsyncFd;
    use tokio::process::Child;

    /// Tells of an exit without reaping.
    #[derive(Debug)]
    pub(super) struct Watch(AsyncFd<OwnedFd>);

    impl Watch {
        pub(super) fn new(pid: Pid) -> io::Result<Self> {
            Ok(Self(readable(pidfd_open(pid, PidfdFlags::empty())?)?))
        }

        pub(super) async fn exited(&self, _child: &mut Child) -> io::Result<ExitStatus> {
            loop {
                let mut ready = self.0.readable().await?;
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
                if let Some(status) = waitid(WaitId::PidFd(self.0.get_ref().as_fd()), options)? {
                    let raw = match (status.exit_status(), status.terminating_signal()) {
                        (Some(code), _) => (code & 0xff) << 8,
                        (None, signal) => signal.unwrap_or_default(),
                    };
                    return Ok(ExitStatus::from_raw(raw));
                }
                ready.clear_ready();
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod exit {
    use std::io;
    use std::process::ExitStatus;

    use rustix::process::Pid;
    use tokio::process::Child;

    /// Tells of an exit. Weaker than on Linux: the child is reaped at once, so that descendants it leaves in its group
    /// are no longer ended (their number could be another's).
    #[derive(Debug)]
    pub(super) struct Watch;

    impl Watch {
        #[expect(clippy::unnecessary_wraps, reason = "the other platform's signature")]
        pub(super) fn new(_pid: Pid) -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) async fn exited(&self, child: &mut Child) -> io::Result<ExitStatus> {
            child.wait().await
        }
    }
}
