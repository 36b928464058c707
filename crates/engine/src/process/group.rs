//! Light calls, which the cradle holds: each a child with its group and nobody else. A child is not waited for before the
//! last signal has been sent: until then its number, and that of its group, can't be given to anybody else.
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::nursery::Unwaited;
use super::wire::{self, Command, Ends, Status};

/// All that are held.
#[derive(Debug, Default)]
pub(super) struct Groups {
    held: Vec<Group>,
    /// Those that were let go.
    let_go: Unwaited,
}

impl Groups {
    /// Starts what is asked for. Who is gone before they have said what it is hears nothing, and neither does who says
    /// something else.
    pub(super) fn start(&mut self, ends: Ends) {
        if let Ok(Some(group)) = Group::start(ends) {
            self.held.push(group);
        }
    }

    /// What can be read from once there is something to do.
    pub(super) fn sockets(&self) -> impl Iterator<Item = &UnixStream> {
        self.held.iter().map(|group| &group.socket)
    }

    /// Takes in what has happened and what was asked for.
    pub(super) fn look(&mut self) {
        for group in std::mem::take(&mut self.held) {
            match group.look() {
                Ok(group) => self.held.push(group),
                Err(child) => self.let_go.add(child),
            }
        }
        self.let_go.wait();
    }

    /// Ends all, since nobody is there any more who could ask for that.
    pub(super) fn end(&self) {
        self.held.iter().filter(|group| !group.told).for_each(|group| group.signal(Signal::KILL));
    }
}

/// A child and its group.
#[derive(Debug)]
struct Group {
    socket: UnixStream,
    inbox: Vec<u8>,
    child: Pid,
    /// The child's end has been told.
    told: bool,
}

impl Group {
    /// Nothing if it could not be started, which was told.
    fn start(ends: Ends) -> io::Result<Option<Self>> {
        let Ends { control, stdout, stderr, stdin, .. } = ends;
        let mut socket = UnixStream::from(control);
        // It comes at once: who asks has it ready.
        let Some(request) = wire::receive(&mut socket)? else { return Ok(None) };
        let mut command = request.command();
        command.stdin(stdin.map_or_else(Stdio::null, Stdio::from)).stdout(stdout).stderr(stderr);
        // Nothing else is done between the copy and the start, so that the system's quick way is taken.
        let started = command.process_group(0).spawn();
        // The streams are the child's alone from here on.
        drop(command);
        match started.map(|child| Pid::from_raw(child.id().cast_signed())) {
            Ok(Some(child)) => {
                socket.set_nonblocking(true)?;
                let mut group = Self { socket, inbox: Vec::new(), child, told: false };
                group.tell(&Status::started(child));
                Ok(Some(group))
            }
            Ok(None) => Err(io::Error::other("the child has no process id")),
            Err(error) => {
                socket.write_all(&wire::line(&Status::failed(&error))?)?;
                Ok(None)
            }
        }
    }

    /// Tells what has happened and does what is asked; the child, once it is not to be held any more.
    fn look(mut self) -> Result<Self, Pid> {
        // A child of ours that is not there to be waited for was waited for by nobody.
        let is_there = self.tell_of_the_end().is_ok();
        if is_there && self.listen() {
            return Ok(self);
        }
        if is_there && !self.told {
            self.signal(Signal::KILL);
        }
        Err(self.child)
    }

    /// Tells when the child has ended. Nobody else is known of: who holds the streams shows when they are drained.
    fn tell_of_the_end(&mut self) -> io::Result<()> {
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
