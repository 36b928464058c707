//! What a signal does between two works of one call: there is a moment when the run of the one takes no signals any more
//! and that of the next takes none yet.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ralphloop_engine::signals;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit::Exit;

/// Watches over the signals of one call. While no run is in charge of them a signal ends the program at once, as it would
/// if nobody had ever caught it: nothing is at work then that would have to be ended first.
#[derive(Debug)]
pub(crate) struct Between {
    no_run: Arc<AtomicBool>,
    heard: Vec<(Exit, Arc<AtomicBool>)>,
}

impl Between {
    /// From now on signals are watched; no run is in charge of them yet.
    pub(crate) fn works() -> io::Result<Self> {
        let mut between = Self { no_run: Arc::new(AtomicBool::new(true)), heard: Vec::new() };
        let hup = (!signals::hup_is_ignored()).then_some((SIGHUP, Exit::HUP));
        for (signal, exit) in hup.into_iter().chain([(SIGINT, Exit::INT), (SIGTERM, Exit::TERM)]) {
            let heard = Arc::new(AtomicBool::new(false));
            flag::register_conditional_shutdown(signal, exit.code.into(), Arc::clone(&between.no_run))?;
            flag::register(signal, Arc::clone(&heard))?;
            between.heard.push((exit, heard));
        }
        Ok(between)
    }

    /// A run takes the signals now.
    pub(crate) fn run_begins(&self) {
        self.no_run.store(false, Ordering::SeqCst);
    }

    /// No run takes them any more. How the program is to end if one came while a run was there, or just after it: who sends
    /// one wants no further work begun, whatever the run made of it.
    pub(crate) fn run_is_over(&self) -> Option<Exit> {
        self.no_run.store(true, Ordering::SeqCst);
        self.heard.iter().find(|(_, heard)| heard.load(Ordering::SeqCst)).map(|(exit, _)| *exit)
    }
}
