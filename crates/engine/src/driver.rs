//! The decision loop: one task, one inbox. An event is received, made durable, taken in by the core, shown to the
//! views; then what the core wants is handed to the lane, which answers with facts only.

use std::time::Duration;

use ralphloop_core::effect::Effect;
use ralphloop_core::event::{Event, Fact};
use ralphloop_core::outcome::Outcome;
use ralphloop_core::run::Run;
use ralphloop_core::units::Timestamp;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::journal::{Journal, JournalError};
use crate::lane::Lanes;
use crate::notice::Notices;

/// The wall clock is looked at this often while the run waits: a machine that slept wakes up late, not early.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// How long what still runs may take to end once the run itself cannot go on.
const DRAIN: Duration = Duration::from_secs(30);

/// Where facts come in: from the lane, from signals, from other terminals.
pub type Inbox = mpsc::UnboundedSender<Fact>;

/// Why a run broke off. Nothing is lost: `resume` goes on from the journal.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The journal cannot be written, so nothing more is started.
    #[error("the run stopped because its journal cannot be written: {0}")]
    Journal(#[from] JournalError),
    /// The user did not want to wait any longer.
    #[error("forced to quit: what ran was killed, and the tree was not put back; `ralphloop resume` does that")]
    Forced,
    /// A defect of ralphloop.
    #[error("internal error while carrying out {what}: {message}; the run can be resumed")]
    Bug {
        /// The effect.
        what: &'static str,
        /// What happened.
        message: String,
    },
}

/// A run that is driven.
pub struct Driver {
    run: Run,
    journal: Journal,
    lanes: Lanes,
    inbox: mpsc::UnboundedReceiver<Fact>,
    notices: Notices,
    /// Cancelled when the user forces the end.
    forced: CancellationToken,
    tasks: JoinSet<()>,
    wake_at: Option<Timestamp>,
}

impl Driver {
    /// A run whose first events are in the journal.
    pub fn new(
        run: Run,
        journal: Journal,
        lanes: Lanes,
        inbox: mpsc::UnboundedReceiver<Fact>,
        notices: Notices,
        forced: CancellationToken,
    ) -> Self {
        Self { run, journal, lanes, inbox, notices, forced, tasks: JoinSet::new(), wake_at: None }
    }

    /// Drives the run to its end. Returns it as it is then, with how it ended.
    pub async fn drive(mut self, first: Vec<Effect>) -> (Run, Result<Outcome, DriveError>) {
        let result = self.turn(first).await;
        match &result {
            Ok(_) => {
                for left in self.lanes.close().await {
                    self.notices.note(left);
                }
            }
            Err(error) => self.give_up(error).await,
        }
        (self.run, result)
    }

    async fn turn(&mut self, first: Vec<Effect>) -> Result<Outcome, DriveError> {
        let mut effects = first;
        loop {
            let mut finished = None;
            for effect in effects {
                match effect {
                    Effect::Finish { outcome } => finished = Some(outcome),
                    Effect::Sleep { until } => self.wake_at = Some(until),
                    other => self.lanes.carry_out(other, &self.run, &mut self.tasks),
                }
            }
            if let Some(outcome) = finished {
                self.take_in(Fact::RunEnded { outcome: outcome.clone() })?;
                while self.tasks.join_next().await.is_some() {}
                return Ok(outcome);
            }
            let fact = self.next_fact().await?;
            effects = self.take_in(fact)?;
        }
    }

    /// Makes the fact durable, lets the core decide, shows it.
    fn take_in(&mut self, fact: Fact) -> Result<Vec<Effect>, DriveError> {
        let event = Event { at: clock::now(), fact };
        self.journal.append(&event)?;
        let effects = self.run.step(&event);
        self.notices.event(&event);
        Ok(effects)
    }

    async fn next_fact(&mut self) -> Result<Fact, DriveError> {
        loop {
            let wake = self.wake_at.map(|at| at.since(clock::now()));
            tokio::select! {
                biased;
                () = self.forced.cancelled() => return Err(DriveError::Forced),
                Some(ended) = self.tasks.join_next() => {
                    if let Err(error) = ended {
                        return Err(DriveError::Bug { what: "an effect", message: error.to_string() });
                    }
                }
                Some(fact) = self.inbox.recv() => return Ok(fact),
                () = tokio::time::sleep(wake.unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN)), if wake.is_some() => {
                    if self.wake_at.is_some_and(|at| clock::now() >= at) {
                        self.wake_at = None;
                        return Ok(Fact::Woke);
                    }
                }
            }
        }
    }

    /// Ends what runs, without a further word to the journal.
    async fn give_up(&mut self, error: &DriveError) {
        self.lanes.end_all(matches!(error, DriveError::Forced));
        let drained = tokio::time::timeout(DRAIN, async { while self.tasks.join_next().await.is_some() {} }).await;
        if drained.is_err() {
            self.tasks.shutdown().await;
        }
    }
}
