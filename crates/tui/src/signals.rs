//! Signals, noted for the loop of the screen: what ends the program, and what stops and goes on with it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ralphloop_core::event::StopCause;
use signal_hook::SigId;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP};

/// What has come and was not looked at yet.
#[derive(Debug)]
pub struct Signals {
    flags: Vec<(i32, Arc<AtomicBool>, SigId)>,
}

impl Signals {
    /// From now on these signals are noted, and do nothing else.
    ///
    /// # Errors
    /// The system does not let us.
    pub fn catch() -> io::Result<Self> {
        let mut signals = Self { flags: Vec::new() };
        for signal in [SIGHUP, SIGTERM, SIGINT, SIGTSTP, SIGCONT] {
            let flag = Arc::new(AtomicBool::new(false));
            let id = signal_hook::flag::register(signal, Arc::clone(&flag))?;
            signals.flags.push((signal, flag, id));
        }
        Ok(signals)
    }

    fn take(&self, wanted: i32) -> bool {
        self.flags.iter().any(|(signal, flag, _)| *signal == wanted && flag.swap(false, Ordering::SeqCst))
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
        for (_, _, id) in self.flags.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}
