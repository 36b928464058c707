//! Signals become facts: the first ends the run gently, the second without further grace, the third at once.

use ralphloop_core::event::{Fact, StopCause, StopLevel};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::driver::Inbox;

/// The signals that end a run. From when this exists they no longer kill the process.
#[derive(Debug)]
pub struct Signals {
    hup: Signal,
    int: Signal,
    term: Signal,
}

impl Signals {
    /// Takes the signals over.
    pub fn catch() -> std::io::Result<Self> {
        Ok(Self {
            hup: signal(SignalKind::hangup())?,
            int: signal(SignalKind::interrupt())?,
            term: signal(SignalKind::terminate())?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> StopCause {
        tokio::select! {
            _ = self.hup.recv() => StopCause::Hup,
            _ = self.int.recv() => StopCause::Int,
            _ = self.term.recv() => StopCause::Term,
        }
    }

    /// Passes signals on until `done`: `hurry` is cancelled by the second, `forced` by the third.
    pub async fn pass_on(
        &mut self,
        inbox: Inbox,
        hurry: CancellationToken,
        forced: CancellationToken,
        done: CancellationToken,
    ) {
        for count in 1_u32.. {
            let cause = tokio::select! {
                cause = self.next() => cause,
                () = done.cancelled() => return,
            };
            match count {
                1 => drop(inbox.send(Fact::StopRequested { cause, level: StopLevel::Now })),
                2 => hurry.cancel(),
                _ => forced.cancel(),
            }
        }
    }
}
