//! Signals, noted for the loop of the screen: what ends the program, and what stops and goes on with it.

use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ralphloop_core::event::StopCause;
use signal_hook::SigId;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::low_level::pipe;

/// What has come and was not looked at yet.
#[derive(Debug)]
pub struct Signals {
    flags: Vec<(i32, Arc<AtomicBool>)>,
    /// Written to with each, whichever thread the signal was given to.
    told: UnixStream,
    telling: UnixStream,
    registered: Vec<SigId>,
}

impl Signals {
    /// From now on these signals are noted, and do nothing else.
    ///
    /// # Errors
    /// The system does not let us.
    pub fn catch() -> io::Result<Self> {
        let (told, telling) = UnixStream::pair()?;
        told.set_nonblocking(true)?;
        let mut signals = Self { flags: Vec::new(), told, telling, registered: Vec::new() };
        for signal in [SIGHUP, SIGTERM, SIGINT, SIGTSTP, SIGCONT] {
            let flag = Arc::new(AtomicBool::new(false));
            // In this order, so that who is told of it finds it noted.
            signals.registered.push(signal_hook::flag::register(signal, Arc::clone(&flag))?);
            signals.flags.push((signal, flag));
            signals.tell_of(signal)?;
        }
        Ok(signals)
    }

    /// Another size of the terminal wakes the loop, too. To be called once the terminal's own library listens to that.
    pub(crate) fn tell_of_sizes(&mut self) -> io::Result<()> {
        self.tell_of(SIGWINCH)
    }

    fn tell_of(&mut self, signal: i32) -> io::Result<()> {
        self.registered.push(pipe::register(signal, self.telling.try_clone()?)?);
        Ok(())
    }

    /// What has come is about to be looked at: only what comes from now on is told of again.
    pub(crate) fn heard(&self) {
        let mut scrap = [0; 16];
        while matches!((&self.told).read(&mut scrap), Ok(count) if count > 0) {}
    }

    fn take(&self, wanted: i32) -> bool {
        self.flags.iter().any(|(signal, flag)| *signal == wanted && flag.swap(false, Ordering::SeqCst))
    }

    /// The signal that ends the program, if one came.
    pub(crate) fn ending(&self) -> Option<StopCause> {
        [(SIGHUP, StopCause::Hup), (SIGTERM, StopCause::Term), (SIGINT, StopCause::Int)]
            .into_iter()
            .find_map(|(signal, cause)| self.take(signal).then_some(cause))
    }

    /// The program is to stop until it is told to go on.
    pub(crate) fn suspended(&self) -> bool {
        self.take(SIGTSTP)
    }

    /// It was told to go on.
    pub(crate) fn continued(&self) -> bool {
        self.take(SIGCONT)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}

/// What can be read from once a signal has come.
impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.told.as_fd()
    }
}
