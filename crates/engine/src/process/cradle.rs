//! The small process from which every program comes: our own binary, started once. A copy of it costs a fraction of what a
//! copy of this process would, or a start of the binary. What it does is in [`nursery`](super::nursery).
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::SupervisorProgram;
use super::wire::Ends;

/// So long it may take to end the light calls that it holds.
const LAST_WORK: Duration = Duration::from_secs(1);

/// The cradle of a [`Spawner`](super::Spawner), started when it is first needed.
#[derive(Debug)]
pub(super) struct Cradle {
    program: SupervisorProgram,
    process: Mutex<Option<Process>>,
}

/// It ends when its socket does.
#[derive(Debug)]
struct Process {
    child: Child,
    socket: Option<UnixStream>,
}

impl Cradle {
    pub(super) fn new(program: SupervisorProgram) -> Self {
        Self { program, process: Mutex::new(None) }
    }

    /// What is started.
    pub(super) fn program(&self) -> &SupervisorProgram {
        &self.program
    }

    /// Asks for a child with these ends. A cradle that somebody has killed is replaced.
    pub(super) fn ask(&self, ends: &Ends) -> io::Result<()> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        if process.as_ref().is_some_and(|there| there.ask(ends).is_ok()) {
            return Ok(());
        }
        let new = Process::start(&self.program)?;
        new.ask(ends)?;
        *process = Some(new);
        Ok(())
    }
}

impl Process {
    /// No hook runs between fork and exec, so that the system's quick way to start a program is taken.
    fn start(program: &SupervisorProgram) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let mut command = Command::new(&program.program);
        // In the root folder it keeps no working tree and no mount in use. It makes itself a session.
        command.args(&program.args).current_dir("/");
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { child: command.spawn()?, socket: Some(socket) })
    }

    fn ask(&self, ends: &Ends) -> io::Result<()> {
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        ends.send(socket.as_fd())
    }

    /// Waits for its end, as long as it takes to end others.
    fn is_through(&self) -> io::Result<bool> {
        let pid = Pid::from_child(&self.child);
        let child = pidfd_open(pid, PidfdFlags::empty())?;
        let patience = Timespec { tv_sec: LAST_WORK.as_secs().cast_signed(), tv_nsec: 0 };
        let mut fds = [PollFd::new(&child, PollFlags::IN)];
        Ok(retry_on_intr(|| poll(&mut fds, Some(&patience)))? > 0)
    }
}

impl Drop for Process {
    /// Supervisors do not need it: they end with their own sockets. Light calls end with it.
    fn drop(&mut self) {
        self.socket = None;
        if !self.is_through().is_ok_and(|through| through) {
            // It is there until it is waited for, so that the number is its own.
            drop(self.child.kill());
        }
        drop(self.child.wait());
    }
}
