//! The small process from which every supervisor comes: our own binary, started once. A copy of it costs a fraction of what a
//! copy of this process would, or a start of the binary.
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::SupervisorProgram;
use super::wire::Ends;

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
    socket: UnixStream,
}

impl Cradle {
    pub(super) fn new(program: SupervisorProgram) -> Self {
        Self { program, process: Mutex::new(None) }
    }

    /// What is started.
    pub(super) fn program(&self) -> &SupervisorProgram {
        &self.program
    }

    /// Asks for a supervisor with these ends. A cradle that somebody has killed is replaced.
    pub(super) fn ask(&self, ends: &Ends) -> io::Result<()> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = &*process
            && ends.send(there.socket.as_fd()).is_ok()
        {
            return Ok(());
        }
        let new = Process::start(&self.program)?;
        ends.send(new.socket.as_fd())?;
        *process = Some(new);
        Ok(())
    }
}

impl Process {
    /// No hook runs between fork and exec, so that the system's quick way to start a program is taken.
    fn start(program: &SupervisorProgram) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let mut command = Command::new(&program.program);
        // In the root folder it keeps no working tree and no mount in use; in a group of its own Ctrl-C does not reach it.
        command.args(&program.args).current_dir("/").process_group(0);
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { child: command.spawn()?, socket })
    }
}

impl Drop for Process {
    /// Supervisors do not need it: they end with their own sockets.
    fn drop(&mut self) {
        // It is there until it is waited for, so that the number is its own.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
