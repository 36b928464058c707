//! What a supervisor does for a light call: it holds the child's group and nobody else. The child is not waited for before
//! the last signal has been sent: until then its number, and that of its group, can't be given to anybody else.
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::supervisor::empty;
use super::wire::{self, Command, Status};

/// A child and its group.
pub(super) struct Group {
    pub(super) socket: UnixStream,
    pub(super) inbox: Vec<u8>,
    pub(super) child_ended: UnixStream,
    pub(super) child: Pid,
    /// The child's end has been told.
    pub(super) told: bool,
}

impl Group {
    /// Holds the group until the orchestrator lets it go.
    pub(super) fn hold(mut self, started: &Status) -> io::Result<()> {
        self.tell(started);
        loop {
            self.look()?;
            let mut fds = [PollFd::new(&self.child_ended, PollFlags::IN), PollFd::new(&self.socket, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            empty(&mut self.child_ended);
            let goes_on = self.listen();
            if !goes_on {
                if !self.told {
                    self.signal(Signal::KILL);
                }
                return Ok(());
            }
        }
    }

    /// Tells when the child has ended. Nobody else is known of: who holds the streams shows when they are drained.
    fn look(&mut self) -> io::Result<()> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        if !self.told
            && let Some(status) = waitid(WaitId::Pid(self.child), options)?
        {
            let raw = match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => (code & 0xff) << 8,
                (None, signal) => signal.unwrap_or_default(),
            };
            self.told = true;
            self.tell(&Status::Exited { raw });
            self.tell(&Status::Gone { ended: 0 });
        }
        Ok(())
    }

    /// Does what is asked; false once nobody is there to ask.
    fn listen(&mut self) -> bool {
        let mut there = true;
        let mut scrap = [0; 512];
        loop {
            match self.socket.read(&mut scrap) {
                Ok(count) if count > 0 => self.inbox.extend_from_slice(&scrap[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => {
                    there = false;
                    break;
                }
            }
        }
        while let Some(command) = wire::take_line::<Command>(&mut self.inbox) {
            match command {
                Ok(Command::End { .. }) => {
                    self.signal(Signal::TERM);
                    // A stopped process acts on TERM only when it goes on.
                    self.signal(Signal::CONT);
                }
                // A command that can't be read was meant to change something: the safe reading is the end.
                Ok(Command::Kill) | Err(_) => self.signal(Signal::KILL),
            }
        }
        there
    }

    fn signal(&self, signal: Signal) {
        // The one expected error is that nobody is left in the group.
        let _ = kill_process_group(self.child, signal);
    }

    /// Messages are small and few; one that can't be sent has no reader.
    fn tell(&mut self, status: &Status) {
        if let Ok(line) = wire::line(status) {
            drop(self.socket.write_all(&line));
        }
    }
}
