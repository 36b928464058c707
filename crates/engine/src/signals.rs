//! Signals become facts: the first ends the run gently, the second without further grace, the third at once.

use ralphloop_core::event::{Fact, StopCause, StopLevel};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::driver::Inbox;

/// Whether the process was started so that HUP does nothing, as `nohup` does. Told by Linux alone (proc(5), `SigIgn`).
pub fn hup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    // Bit 0 is signal 1.
    ignored.is_some_and(|ignored| ignored & 1 << (rustix::process::Signal::HUP.as_raw() - 1) != 0)
}

/// The signals that end a run. From when this exists they no longer kill the process.
#[derive(Debug)]
pub struct Signals {
    /// `None` under `nohup`: who is to outlive the terminal does.
    hup: Option<Signal>,
    int: Signal,
    term: Signal,
}

impl Signals {
    /// Takes the signals over.
    pub fn catch() -> std::io::Result<Self> {
        Ok(Self {
            hup: (!hup_is_ignored()).then(|| signal(SignalKind::hangup())).transpose()?,
            int: signal(SignalKind::interrupt())?,
            term: signal(SignalKind::terminate())?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> StopCause {
        let hung_up = async {
            match &mut self.hup {
                Some(hup) => hup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = hung_up => StopCause::Hup,
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
