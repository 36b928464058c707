//! The decision loop: one task, one inbox. An event is received, made durable, taken in by the core, shown to the
//! views; then what the core wants is handed to the lane, which answers with facts only.

use std::path::PathBuf;
use std::time::Duration;

use ralphloop_core::effect::Effect;
use ralphloop_core::event::{Event, Fact};
use ralphloop_core::outcome::Outcome;
use ralphloop_core::run::Run;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::journal::{Journal, JournalError};
use crate::lane::Lanes;
use crate::notice::Notices;
use crate::outcomes::Outcomes;
use crate::scribe::Scribe;
use crate::timer::Timer;
use crate::{clock, fold};

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
    /// Where the run's state is kept, for those who look at it.
    kept: PathBuf,
    outcomes: Outcomes,
    lanes: Lanes,
    inbox: mpsc::UnboundedReceiver<Fact>,
    notices: Notices,
    /// Writes the run down for others, if somebody does.
    scribe: Option<Box<dyn Scribe>>,
    /// Cancelled when the user forces the end.
    forced: CancellationToken,
    tasks: JoinSet<()>,
    timer: Option<Timer>,
}

impl Driver {
    /// A run whose first events are in the journal.
    pub fn new(
        run: Run,
        journal: Journal,
        (kept, outcomes): (PathBuf, Outcomes),
        lanes: Lanes,
        inbox: mpsc::UnboundedReceiver<Fact>,
        notices: Notices,
        forced: CancellationToken,
    ) -> Self {
        Self {
            run,
            journal,
            kept,
            outcomes,
            lanes,
            inbox,
            notices,
            scribe: None,
            forced,
            tasks: JoinSet::new(),
            timer: None,
        }
    }

    /// The same, written down by `scribe`, which has begun.
    #[must_use]
    pub fn written_down_by(self, scribe: Option<Box<dyn Scribe>>) -> Self {
        Self { scribe, ..self }
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
                    Effect::Sleep { until } => self.timer = Some(Timer::new(until, clock::now(), Instant::now())),
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
        let undecided = Outcomes::before(&self.run, &event.fact);
        let effects = self.run.step(&event);
        if let Some(undecided) = undecided {
            // Experience is worth no run: where it cannot be noted, it is lost.
            drop(self.outcomes.note(&undecided, &self.run, event.at));
        }
        fold::keep_now_and_then(&self.kept, &self.run, self.journal.place());
        self.write_down(&event);
        self.notices.event(&event);
        Ok(effects)
    }

    /// Before anything is done about the event: whoever reads the files sees what is about to be done.
    fn write_down(&mut self, event: &Event) {
        match self.scribe.as_mut().map(|scribe| scribe.take_in(event)) {
            Some(Ok(said)) => said.into_iter().for_each(|text| self.notices.note(text)),
            Some(Err(why)) => {
                self.scribe = None;
                self.notices.note(why);
            }
            None => {}
        }
    }

    async fn next_fact(&mut self) -> Result<Fact, DriveError> {
        loop {
            let left = self.timer.map(|timer| timer.left(clock::now(), Instant::now()));
            if left == Some(None) {
                self.timer = None;
                return Ok(Fact::Woke);
            }
            tokio::select! {
                biased;
                () = self.forced.cancelled() => return Err(DriveError::Forced),
                Some(ended) = self.tasks.join_next() => {
                    if let Err(error) = ended {
                        return Err(DriveError::Bug { what: "an effect", message: error.to_string() });
                    }
                }
                Some(fact) = self.inbox.recv() => return Ok(fact),
                () = tokio::time::sleep(left.flatten().unwrap_or_default()), if left.is_some() => {}
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
