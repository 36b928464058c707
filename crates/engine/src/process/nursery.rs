//! The other side of the [`Cradle`](super::cradle): our own binary, started once with a hidden argument.
//!
//! It has one thread and does no work, so that a copy of it is cheap: one for every supervised call, which becomes its
//! supervisor. Light calls it holds itself. It is in a session of its own, so that nothing below it has a terminal.
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, WaitOptions, waitpid};

use super::Ownership;
use super::group::Groups;
use super::lowlevel::{Side, fork};
use super::supervisor::supervise;
use super::wire::Ends;
use crate::sandbox;

/// The entry of the cradle, and of every supervisor; call it first thing in `main`, before any thread or runtime exists, and
/// exit with its result.
pub fn supervise_main() -> ExitCode {
    if let Some(failed) = sandbox::become_the_program(std::env::args_os()) {
        return failed;
    }
    match wait_for_calls() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Only somebody who starts it by hand reads its standard error.
            drop(writeln!(io::stderr(), "ralphloop: this command is for ralphloop itself: {error}"));
            ExitCode::from(2)
        }
    }
}

/// Takes calls, until nobody is there who could make one. Returns in the supervisors, too.
fn wait_for_calls() -> io::Result<()> {
    let stdin = rustix::stdio::stdin();
    rustix::net::sockopt::socket_type(stdin)?;
    ignore_requests_to_end()?;
    // Refused where it leads a session already.
    let _ = rustix::process::setsid();
    let (ended, woken) = UnixStream::pair()?;
    ended.set_nonblocking(true)?;
    let noticing = signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, woken)?;
    let asked = rustix::io::fcntl_dupfd_cloexec(stdin, 3)?;
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    let mut nursery = Nursery { asked, ended, supervisors: Unwaited::default(), groups: Groups::default() };
    match nursery.take_calls() {
        Ok(Some(ends)) => {
            signal_hook::low_level::unregister(noticing);
            // Who has asked for a light call must see its end when the cradle is gone.
            drop(nursery);
            supervise(ends)
        }
        over => {
            nursery.groups.end();
            over.map(drop)
        }
    }
}

struct Nursery {
    /// Where calls come from.
    asked: OwnedFd,
    /// Can be read from when a child has ended.
    ended: UnixStream,
    supervisors: Unwaited,
    groups: Groups,
}

impl Nursery {
    /// Takes calls until nobody is there who could make one; in a copy, returns what that is to supervise.
    fn take_calls(&mut self) -> io::Result<Option<Ends>> {
        loop {
            let is_asked = self.wait()?;
            empty(&mut self.ended);
            self.supervisors.wait();
            self.groups.look();
            if !is_asked {
                continue;
            }
            let Some(ends) = Ends::receive(self.asked.as_fd())? else { return Ok(None) };
            match ends.ownership {
                Ownership::Light => self.groups.start(ends),
                Ownership::Supervised => match fork()? {
                    Side::Parent(supervisor) => self.supervisors.add(supervisor),
                    Side::Child => return Ok(Some(ends)),
                },
            }
        }
    }

    /// Waits until something happens; whether somebody calls.
    fn wait(&self) -> io::Result<bool> {
        let mut fds = vec![PollFd::new(&self.asked, PollFlags::IN), PollFd::new(&self.ended, PollFlags::IN)];
        fds.extend(self.groups.sockets().map(|socket| PollFd::new(socket, PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) => Ok(!fds[0].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Children that nobody waits for any more, but for their numbers to be free.
#[derive(Debug, Default)]
pub(super) struct Unwaited(Vec<Pid>);

impl Unwaited {
    pub(super) fn add(&mut self, child: Pid) {
        self.0.push(child);
    }

    /// Waits for those that have ended.
    pub(super) fn wait(&mut self) {
        self.0.retain(|child| matches!(waitpid(Some(*child), WaitOptions::NOHANG), Ok(None)));
    }
}

/// Takes what has come out of a pipe that only wakes.
pub(super) fn empty(waker: &mut UnixStream) {
    let mut scrap = [0; 512];
    while matches!(waker.read(&mut scrap), Ok(count) if count > 0) {}
}

/// The orchestrator decides when we end, not a signal that was meant for it. Handlers, unlike ignored signals, are not
/// inherited by the child.
fn ignore_requests_to_end() -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}
