//! A working tree in which at most one attempt lives, and everything that is done in it. Effects go in, facts come out.

mod agent;
mod check;
pub(crate) mod message;
mod recorder;
pub(crate) mod tree;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::tz::TimeZone;
use ralphloop_agent::event::AgentEvent;
use ralphloop_agent::redact::Redactor;
use ralphloop_core::effect::Effect;
use ralphloop_core::event::Fact;
use ralphloop_core::ids::{AttemptId, CallNumber, CommitId, TreeId};
use ralphloop_core::run::{Phase, Run};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::driver::Inbox;
use crate::gates::cache::Cache;
use crate::git::Repository;
use crate::notice::Notices;
use crate::process::Spawner;
use crate::runs::RunFolder;
use crate::settings::Settings;
use crate::work::WorkRef;

/// What the lane works with.
#[derive(Debug)]
pub struct Parts {
    /// The repository, seen from the lane's working tree.
    pub repository: Repository,
    /// Starts programs.
    pub spawner: Spawner,
    /// Where the run keeps its own files.
    pub folder: RunFolder,
    /// Where the branch stood when the run began.
    pub base: CommitId,
    /// The work.
    pub work: WorkRef,
    /// How.
    pub settings: Settings,
    /// Takes secrets out of whatever is kept or shown.
    pub redactor: Redactor,
    /// What gates said of trees before.
    pub cache: Mutex<Cache>,
    /// The tree as it was just inspected, until something runs in it.
    pub inspected: Mutex<Option<TreeId>>,
    /// The user's time zone.
    pub zone: TimeZone,
    /// Where facts go.
    pub inbox: Inbox,
    /// Where the agent's talk goes.
    pub notices: Notices,
    /// Cancelled when the user does not want to wait for a gentle end.
    pub hurry: CancellationToken,
}

impl Parts {
    /// Remembers the tree that was found, or that nobody knows it any more; returns what was known before.
    fn tree_is(&self, tree: Option<TreeId>) -> Option<TreeId> {
        std::mem::replace(&mut *self.inspected.lock().unwrap_or_else(PoisonError::into_inner), tree)
    }

    fn redact<'t>(&self, bytes: &'t [u8]) -> Cow<'t, [u8]> {
        self.redactor.redact(bytes)
    }

    fn redact_text(&self, text: &str) -> String {
        self.redactor.redact_text(text)
    }

    fn talk(&self, attempt: &AttemptId, call: CallNumber, event: AgentEvent) {
        self.notices.talk(attempt, call, || event.map_text(&|text| self.redact_text(text)));
    }

    /// The spec's file relative to the top of the working tree, links followed; nothing if it is outside.
    fn spec_in_tree(&self) -> Option<PathBuf> {
        let real = std::fs::canonicalize(&self.work.main).unwrap_or_else(|_| self.work.main.clone());
        real.strip_prefix(&self.repository.places().top).ok().map(PathBuf::from)
    }

    fn say(&self, fact: Fact) {
        // If nobody listens, the run has ended, and what a dead attempt says changes nothing.
        drop(self.inbox.send(fact));
    }
}

/// The lane of a run.
#[derive(Debug)]
pub struct Lane {
    parts: Arc<Parts>,
    /// Ends what runs for the attempt under way.
    work: Mutex<CancellationToken>,
}

impl Lane {
    /// A lane that works with these.
    pub fn new(parts: Parts) -> Self {
        Self { parts: Arc::new(parts), work: Mutex::new(CancellationToken::new()) }
    }

    fn token(&self) -> CancellationToken {
        self.work.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins to carry out an effect as one of `tasks`. What it needs of the run is taken from it now.
    pub fn carry_out(&self, effect: Effect, run: &Run, tasks: &mut JoinSet<()>) {
        let parts = self.parts.clone();
        // Whatever is done now may change the tree, but for a look at the spec and a note.
        let inspected = match effect {
            Effect::CheckPlan | Effect::Begin { .. } => None,
            _ => parts.tree_is(None),
        };
        match effect {
            Effect::CheckPlan => {
                let known = run.plan().clone();
                let landed = run.records().filter(|(_, r)| r.state.passed()).map(|(s, _)| s.id.clone()).collect();
                tasks.spawn_blocking(move || {
                    let spec = tree::look_at_plan(&parts.work, &known, &landed);
                    parts.say(Fact::PlanChecked { spec });
                });
            }
            Effect::Begin { attempt } => {
                *self.work.lock().unwrap_or_else(PoisonError::into_inner) = CancellationToken::new();
                parts.say(Fact::AttemptStarted { attempt });
            }
            Effect::RunCheck { attempt, stage, check, fresh } => {
                let what = check::What::of(run, &attempt, check, inspected);
                let cancel = self.token();
                tasks.spawn(async move { check::run(&parts, attempt, stage, check, what, fresh, cancel).await });
            }
            Effect::Checkpoint { attempt } => {
                tasks.spawn(async move { tree::checkpoint(&parts, attempt).await });
            }
            Effect::StartAgent { attempt, call, brief } => {
                let prompt = agent::prompt(run, &attempt, &brief, &parts.settings);
                let cancel = self.token();
                let time =
                    run.time_left().map_or(parts.settings.times.agent, |left| left.min(parts.settings.times.agent));
                tasks.spawn(async move { agent::run(&parts, attempt, call, prompt, time, cancel).await });
            }
            Effect::Inspect { attempt, call } => {
                tasks.spawn(async move { tree::inspect(&parts, attempt, call).await });
            }
            Effect::StopWork { .. } => self.token().cancel(),
            Effect::Land { attempt, ground } => {
                let message = message::of(run, &attempt, ground, &|text| parts.redact_text(text));
                let proven = match run.attempt().map(|a| &a.phase) {
                    Some(Phase::Landing { tree, .. }) => Some(tree.clone()),
                    _ => None,
                };
                let cancel = self.token();
                tasks.spawn(async move { tree::land(&parts, attempt, message, proven, cancel).await });
            }
            Effect::Revert { attempt, reason } => {
                tasks.spawn(async move { tree::revert(&parts, attempt, &reason).await });
            }
            Effect::Settle { attempt } => {
                tasks.spawn(async move { tree::settle(&parts, attempt).await });
            }
            Effect::Sleep { .. } | Effect::Finish { .. } => {}
        }
    }

    /// Ends whatever runs, because the run cannot go on; without grace if `at_once`.
    pub fn end_all(&self, at_once: bool) {
        if at_once {
            self.parts.hurry.cancel();
        }
        self.token().cancel();
    }
}
