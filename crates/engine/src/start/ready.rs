//! A run that can be driven, and what goes on beside it.

use std::time::Duration;

use ralphloop_core::effect::Effect;
use ralphloop_core::event::Event;
use ralphloop_core::outcome::Outcome;
use ralphloop_core::run::Run;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::aftermath::BEAT;
use crate::control::{Control, Hands};
use crate::driver::{DriveError, Driver, Inbox};
use crate::git::{self, Repository};
use crate::lane::site;
use crate::learnings;
use crate::lock::RunLock;
use crate::notice::Watch;
use crate::notify::Notifier;
use crate::runs::{RunFolder, StateFolder};
use crate::signals::Signals;

/// How long notifications may still take once a signal says that nobody waits for them.
const LAST_WORD: Duration = Duration::from_secs(1);

/// A run that is ready to be driven.
pub struct Ready {
    /// The run as the view sees it first; the events on `watch` follow on it.
    pub run: Run,
    /// The events that made it in this process, for views.
    pub first: Event,
    /// What views are told.
    pub watch: Watch,
    /// Warnings that a person should see.
    pub warnings: Vec<String>,
    /// What keeps agents and gates inside, in words.
    pub sandbox: Option<String>,
    pub(super) driver: Driver,
    pub(super) effects: Vec<Effect>,
    pub(super) aside: Aside,
    pub(super) after: After,
    pub(super) notifier: Notifier,
    /// For the notifier.
    pub(super) events: mpsc::UnboundedReceiver<Event>,
    pub(super) locks: Vec<RunLock>,
}

impl std::fmt::Debug for Ready {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ready").field("run", self.run.id()).finish_non_exhaustive()
    }
}

/// What is done once the run has ended.
pub(super) struct After {
    pub(super) state: StateFolder,
    pub(super) repository: Repository,
    pub(super) folder: RunFolder,
    /// The run switched to its branch from another.
    pub(super) switched: Option<git::Switched>,
}

impl After {
    /// Gives back what checkpoints needed. If nothing has landed, the user finds the branch as it was.
    async fn take(self, run: &Run) {
        // What cannot be given back is listed as left over.
        if site::left_by(&self.folder).is_empty() {
            drop(self.repository.release().await);
        }
        let Some(switched) = self.switched else { return };
        let base = self.repository.head().ok().flatten().as_ref() == Some(run.base());
        if base && !run.is_unclean() && self.repository.current_branch().ok().flatten().as_deref() == Some(run.branch())
        {
            // If git refuses, the user stays on the run's branch, which the summary names.
            drop(self.repository.switch_back(run.branch(), &switched).await);
        }
    }
}

/// What runs beside the decision loop.
pub(super) struct Aside {
    pub(super) signals: Signals,
    pub(super) control: Option<Control>,
    pub(super) folder: RunFolder,
    pub(super) inbox: Inbox,
    pub(super) hurry: CancellationToken,
    pub(super) forced: CancellationToken,
}

impl Ready {
    /// Where the run is kept.
    pub fn folder(&self) -> &RunFolder {
        &self.aside.folder
    }

    /// Drives the run to its end; returns it as it is then, and how it ended.
    pub async fn drive(self) -> (Run, Result<Outcome, DriveError>) {
        let Self { run, driver, effects, aside, after, notifier, events, locks, .. } = self;
        let Aside { mut signals, control, folder, inbox, hurry, forced } = aside;
        let (done, told, leave) = (CancellationToken::new(), CancellationToken::new(), CancellationToken::new());
        let (end, ended) = oneshot::channel();
        let controlled = async {
            if let Some(control) = control {
                let hands = Hands { inbox: inbox.clone(), hurry: hurry.clone(), forced: forced.clone() };
                control.serve(hands, done.clone()).await;
            }
        };
        let signalled = async {
            signals.pass_on(inbox.clone(), hurry.clone(), forced.clone(), done.clone()).await;
            // The run is over; from now on a signal means that nobody wants to wait for notifications. It may be the last of
            // an impatient few that were meant for the run, so what is just being sent has a moment to get out.
            tokio::select! {
                _ = signals.next() => {}
                () = told.cancelled() => return,
            }
            tokio::select! {
                _ = signals.next() => {}
                () = tokio::time::sleep(LAST_WORD) => {}
                () = told.cancelled() => return,
            }
            leave.cancel();
        };
        let driven = async {
            let result = driver.drive(effects).await;
            // What cannot be kept stays in the journal.
            drop(learnings::keep(&after.state, result.0.learnings().iter()));
            if result.1.is_ok() {
                after.take(&result.0).await;
            }
            // Whoever is told of the end may start the next run.
            drop(locks);
            done.cancel();
            // A notifier without anybody to tell has ended already.
            drop(end.send(result.1.as_ref().err().map(ToString::to_string)));
            result
        };
        let notified = async {
            notifier.watch(run, events, ended, leave.clone()).await;
            told.cancel();
        };
        let beating = beat(&folder, &done);
        let (result, (), (), (), ()) = tokio::join!(driven, controlled, signalled, notified, beating);
        result
    }
}

/// Gives signs of life until `done`: they tell later when the run died.
async fn beat(folder: &RunFolder, done: &CancellationToken) {
    let mut beats = tokio::time::interval(BEAT);
    loop {
        tokio::select! {
            _ = beats.tick() => folder.beat(),
            () = done.cancelled() => return,
        }
    }
}
