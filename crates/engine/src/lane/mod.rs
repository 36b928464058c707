//! Working trees in which at most one attempt lives each, and everything that is done in them. Effects go in, facts come
//! out.

pub(crate) mod agent;
pub(crate) mod announced;
mod bring;
mod check;
mod generate;
mod mend;
mod merge;
pub(crate) mod message;
pub(crate) mod pool;
mod recorder;
mod review;
pub(crate) mod site;
mod target;
pub(crate) mod tree;
mod worktree;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::tz::TimeZone;
use ralphloop_agent::event::AgentEvent;
use ralphloop_agent::redact::Redactor;
use ralphloop_core::effect::Effect;
use ralphloop_core::event::Fact;
use ralphloop_core::ids::{AttemptId, CallNumber, CommitId, LaneId, TreeId};
use ralphloop_core::plan::Story;
use ralphloop_core::policy::Place;
use ralphloop_core::run::{Phase, Run};
use tokio::sync::{OnceCell, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use announced::Announced;
pub use generate::Generated;
pub use merge::Foreseen;
pub use target::Target;

use crate::driver::Inbox;
use crate::files;
use crate::gates::cache::Cache;
use crate::git::{Places, Repository, Walls};
use crate::inside::Inside;
use crate::notice::Notices;
use crate::process::{Call, Spawner};
use crate::runs::RunFolder;
use crate::sandbox::{Role, Sandbox};
use crate::settings::Settings;
use crate::work::WorkRef;

/// Who runs a gate on a tree just now, by tree and command.
pub type GateTurns = Mutex<HashMap<(TreeId, String), Arc<tokio::sync::Mutex<()>>>>;

/// What all lanes of a run work with.
#[derive(Debug)]
pub struct Shared {
    /// The repository, seen from the user's checkout.
    pub home: Repository,
    /// Starts programs.
    pub spawner: Spawner,
    /// Where the run keeps its own files.
    pub folder: RunFolder,
    /// Where the branch stood when the run began.
    pub base: CommitId,
    /// The branch, and what the run knows of where it stands.
    pub target: Target,
    /// The work, in the user's checkout.
    pub work: WorkRef,
    /// How.
    pub settings: Settings,
    /// The session that drives the run and is its agent; without one, agents are processes.
    pub inside: Option<Inside>,
    /// Takes secrets out of whatever is kept or shown.
    pub redactor: Redactor,
    /// What keeps agents and gates inside.
    pub sandbox: Option<Sandbox>,
    /// What gates said of trees before.
    pub cache: Mutex<Cache>,
    /// A gate runs once on a tree, however many lanes ask.
    pub running_gates: GateTurns,
    /// What is about to land.
    pub foreseen: Foreseen,
    /// What is being written into the spec in the user's checkout.
    pub announced: Announced,
    /// What the working trees of the repository share is written by one command at a time, and the spec in the user's checkout
    /// is read while none does.
    pub git_turn: tokio::sync::Mutex<()>,
    /// Worktrees that may be filled with files at once.
    pub filling: tokio::sync::Semaphore,
    /// The user's time zone.
    pub zone: TimeZone,
    /// Where facts go.
    pub inbox: Inbox,
    /// Where the agent's talk goes.
    pub notices: Notices,
    /// Cancelled when the user does not want to wait for a gentle end.
    pub hurry: CancellationToken,
}

impl Shared {
    fn redact_text(&self, text: &str) -> String {
        self.redactor.redact_text(text)
    }

    fn talk(&self, attempt: &AttemptId, call: CallNumber, event: AgentEvent) {
        self.notices.talk(attempt, call, event, |event| event.map_text(&|text| self.redact_text(text)));
    }

    fn say(&self, fact: Fact) {
        // If nobody listens, the run has ended, and what a dead attempt says changes nothing.
        drop(self.inbox.send(fact));
    }
}

/// Whose the spec's file is that an attempt is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpecFile {
    /// The lane's alone: what the attempt did to it is put right or put back with the lane.
    Own,
    /// Shared with other lanes and with people: only marks are set in it.
    Shared,
}

/// What one lane works with.
#[derive(Debug)]
pub(crate) struct Parts {
    shared: Arc<Shared>,
    /// The repository, seen from the lane's working tree.
    repository: Repository,
    /// The work as it lies in the lane; its spec may lie in the user's checkout alone.
    work: WorkRef,
    spec: SpecFile,
    place: Place,
    /// The tree as it was just inspected, until something runs in it.
    inspected: Mutex<Option<TreeId>>,
    unmerged: merge::Unmerged,
    /// It has got what git does not carry, in this run.
    furnished: AtomicBool,
    /// Where that is kept which was found in it instead of its commit, until it has been told.
    kept: Mutex<Option<String>>,
    /// Variables that agents and gates get in this lane.
    environment: Vec<(OsString, OsString)>,
    /// What confined programs of this lane have for temporary files.
    temporary: PathBuf,
}

impl Parts {
    /// The call of an agent or a gate in this lane: within what it may use, and confined where the run has a sandbox. What
    /// works elsewhere, as a reviewer does, can write there and not in the lane.
    fn confined(&self, call: Call, role: Role<'_>) -> Call {
        let call = call.resources(self.shared.settings.resources);
        let Some(sandbox) = &self.shared.sandbox else { return call };
        let places = self.repository.places();
        if call.cwd.starts_with(&places.top) {
            return sandbox.around(call, role, places, self.repository.nested(), &self.temporary);
        }
        let elsewhere = Places { top: call.cwd.clone(), git_dir: places.common_dir.clone(), ..places.clone() };
        sandbox.around(call, role, &elsewhere, Vec::new(), &self.temporary)
    }

    /// Confines hooks as gates are, where the run has a sandbox.
    fn walls(&self) -> Option<Walls> {
        let sandbox = self.shared.sandbox.clone()?;
        let (places, nested) = (self.repository.places().clone(), self.repository.nested());
        let (temporary, resources) = (self.temporary.clone(), self.shared.settings.resources);
        Some(Walls::new(temporary.clone(), move |call| {
            sandbox.around(call.resources(resources), Role::Gate, &places, nested.clone(), &temporary)
        }))
    }

    /// Remembers the tree that was found, or that nobody knows it any more; returns what was known before.
    fn tree_is(&self, tree: Option<TreeId>) -> Option<TreeId> {
        std::mem::replace(&mut *self.inspected.lock().unwrap_or_else(PoisonError::into_inner), tree)
    }
}

/// A working tree, made ready when it is first needed.
#[derive(Debug, Default)]
struct Lane {
    parts: OnceCell<Parts>,
    /// Over once what was asked for last is done: what is asked for next waits for that, also if it has no answer.
    last: Mutex<Option<oneshot::Receiver<()>>>,
    /// Ends what runs for the attempt under way.
    work: Mutex<CancellationToken>,
    /// Ends the check that runs.
    check: Mutex<CancellationToken>,
}

impl Lane {
    fn token(&self) -> CancellationToken {
        self.work.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Made ready for `attempt`, if it is for one.
    async fn parts(
        &self,
        shared: &Arc<Shared>,
        place: Place,
        id: LaneId,
        attempt: Option<&AttemptId>,
    ) -> Result<&Parts, String> {
        self.parts
            .get_or_try_init(|| async {
                match place {
                    Place::Checkout => Ok(Parts {
                        temporary: temporary(shared)?,
                        shared: shared.clone(),
                        repository: shared.home.clone(),
                        work: shared.work.clone(),
                        spec: SpecFile::Own,
                        place,
                        inspected: Mutex::default(),
                        unmerged: Mutex::default(),
                        kept: Mutex::default(),
                        furnished: AtomicBool::new(true),
                        environment: Vec::new(),
                    }),
                    Place::Worktrees => worktree::open(shared, id, attempt).await,
                }
            })
            .await
    }
}

/// The folder for temporary files of what is confined in the checkout.
fn temporary(shared: &Shared) -> Result<PathBuf, String> {
    let folder = shared.folder.temporary();
    if shared.sandbox.is_some() {
        files::create_private_dir(&folder).map_err(|error| error.to_string())?;
    }
    Ok(folder)
}

/// The lanes of a run.
#[derive(Debug)]
pub struct Lanes {
    shared: Arc<Shared>,
    place: Place,
    lanes: BTreeMap<LaneId, Arc<Lane>>,
}

impl Lanes {
    /// Lanes that work with these.
    pub fn new(shared: Shared, place: Place) -> Self {
        Self { shared: Arc::new(shared), place, lanes: BTreeMap::new() }
    }

    fn lane(&mut self, id: LaneId) -> Arc<Lane> {
        // There is one user's checkout.
        let id = if self.place == Place::Checkout { LaneId(0) } else { id };
        self.lanes.entry(id).or_default().clone()
    }

    /// Begins to carry out an effect as one of `tasks`. What it needs of the run is taken from it now.
    pub fn carry_out(&mut self, effect: Effect, run: &Run, tasks: &mut JoinSet<()>) {
        let shared = self.shared.clone();
        let Some(attempt) = effect.attempt().cloned() else {
            if effect == Effect::CheckPlan {
                let known = run.plan().clone();
                let landed = run.records().filter(|(_, r)| r.state.passed()).map(|(s, _)| s.id.clone()).collect();
                tasks.spawn_blocking(move || {
                    // While a landing moves the checkout on, its files are half there.
                    let turn = shared.git_turn.blocking_lock();
                    let ours = shared.announced.beside(&known, landed);
                    let spec = tree::look_at_plan(&shared.work, &known, &ours);
                    drop(turn);
                    shared.say(Fact::PlanChecked { spec });
                });
            }
            return;
        };
        let id = match &effect {
            Effect::Begin { lane, .. } => Some(*lane),
            _ => run.lane_of(&attempt),
        };
        let (Some(id), place) = (id, self.place) else { return };
        let lane = self.lane(id);
        if let Effect::StopWork { .. } = effect {
            return lane.token().cancel();
        }
        if let Effect::StopCheck { .. } = effect {
            return lane.check.lock().unwrap_or_else(PoisonError::into_inner).cancel();
        }
        if let Effect::Begin { .. } = effect {
            *lane.work.lock().unwrap_or_else(PoisonError::into_inner) = CancellationToken::new();
        }
        let order = Order::of(effect, run, &self.shared);
        let mut cancel = lane.token();
        if let Order::Check { .. } = order {
            cancel = cancel.child_token();
            *lane.check.lock().unwrap_or_else(PoisonError::into_inner) = cancel.clone();
        }
        let (done, next) = oneshot::channel();
        let before = lane.last.lock().unwrap_or_else(PoisonError::into_inner).replace(next);
        tasks.spawn(async move {
            if let Some(before) = before {
                // Its sender is gone when it is done, however it ended.
                drop(before.await);
            }
            let parts = match lane.parts(&shared, place, id, Some(&attempt)).await {
                Ok(parts) => parts,
                Err(why) => return order.without_lane(attempt, why).into_iter().for_each(|fact| shared.say(fact)),
            };
            // Whatever is done now may change the tree; a beginning says so itself where it does.
            let inspected = if matches!(order, Order::Begin) { None } else { parts.tree_is(None) };
            order.carry_out(parts, attempt, inspected, cancel).await;
            drop(done);
        });
    }

    /// Ends whatever runs, because the run cannot go on; without grace if `at_once`.
    pub fn end_all(&self, at_once: bool) {
        if at_once {
            self.shared.hurry.cancel();
        }
        for lane in self.lanes.values() {
            lane.token().cancel();
        }
    }

    /// Takes the worktrees away at the end of a run, and what its programs kept for a while. A worktree that holds anything
    /// that nothing else keeps stays, and is named.
    pub async fn close(self) -> Vec<String> {
        let shared = &self.shared;
        let mut left = Vec::new();
        // What cannot be removed goes with the run's folder.
        drop(std::fs::remove_dir_all(shared.folder.temporary()));
        // A process that was killed may have made more of them than this one has needed, or may have worked elsewhere.
        for (id, top) in site::left_by(&shared.folder) {
            let lane = self.lanes.get(&id).filter(|_| self.place == Place::Worktrees).cloned().unwrap_or_default();
            let closed = match lane.parts(shared, Place::Worktrees, id, None).await {
                Ok(parts) => worktree::close(parts, id).await,
                Err(why) => Err(format!("the worktree {} stays: {why}", top.display())),
            };
            left.extend(closed.err());
        }
        left.extend(site::tidy_at_the_end(&shared.folder, &shared.home, shared.settings.worktrees.keep).await);
        left
    }
}

/// What a landing says of its story in the spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marking {
    /// That it is done.
    Done,
    /// Nothing: that is for a person to say.
    LeftToAPerson,
}

impl Marking {
    fn of(run: &Run, attempt: &AttemptId) -> Self {
        let story = run.plan().story(&attempt.story);
        if story.is_some_and(Story::needs_sign_off) { Self::LeftToAPerson } else { Self::Done }
    }
}

/// What is to be done in a lane, with all that it needs of the run.
enum Order {
    Begin,
    Check {
        stage: ralphloop_core::event::CheckStage,
        check: ralphloop_core::event::CheckRef,
        what: check::What,
        fresh: bool,
    },
    Checkpoint,
    Agent(agent::Calling),
    Review(Box<review::Review>),
    Inspect {
        call: CallNumber,
        resolves: Vec<String>,
    },
    Prepare {
        call: CallNumber,
    },
    Merge(merge::Order),
    Land {
        call: CallNumber,
        message: message::Message,
        proven: Option<TreeId>,
        marking: Marking,
    },
    Mend(Box<mend::Order>),
    Revert {
        reason: String,
    },
    Settle {
        marking: Marking,
    },
}

impl Order {
    /// That of an effect which is about an attempt and for a lane.
    fn of(effect: Effect, run: &Run, shared: &Shared) -> Self {
        let settings = &shared.settings;
        match effect {
            Effect::RunCheck { attempt, stage, check, fresh } => {
                Self::Check { stage, check, what: check::What::of(run, &attempt, check), fresh }
            }
            Effect::Checkpoint { .. } => Self::Checkpoint,
            Effect::StartAgent { attempt, call, agent, brief } => {
                let prompt = agent::prompt(run, &attempt, &brief, settings);
                Self::Agent(agent::Calling::of(call, &agent, (prompt, brief.leg.is_some()), run, settings))
            }
            Effect::Review { attempt, round, earlier, passed, .. } => Self::Review(Box::new(review::Review::of(
                (&attempt, round),
                (earlier, passed),
                run,
                settings,
                &shared.work.project,
            ))),
            Effect::Inspect { call, resolves, .. } => Self::Inspect { call, resolves },
            Effect::Prepare { call, .. } => Self::Prepare { call },
            Effect::Merge { attempt, call, number, onto } => {
                let marking = Marking::of(run, &attempt);
                Self::Merge(merge::Order { call, number, onto, marking })
            }
            Effect::Land { attempt, call, ground } => {
                let message = message::of(run, &attempt, ground, &|text| shared.redact_text(text));
                let proven = match run.attempt(&attempt).map(|a| &a.phase) {
                    Some(Phase::Landing(proof)) => Some(proof.tree.clone()),
                    _ => None,
                };
                Self::Land { call, message, proven, marking: Marking::of(run, &attempt) }
            }
            Effect::AddFixTask { fix, .. } => Self::Mend(Box::new(mend::Order::of(run, *fix))),
            Effect::Revert { reason, .. } => Self::Revert { reason },
            Effect::Settle { attempt } => Self::Settle { marking: Marking::of(run, &attempt) },
            Effect::Begin { .. }
            | Effect::StopCheck { .. }
            | Effect::StopWork { .. }
            | Effect::CheckPlan
            | Effect::Sleep { .. }
            | Effect::Finish { .. } => Self::Begin,
        }
    }

    /// The fact if there is no working tree to do it in; none for what has no answer.
    fn without_lane(&self, attempt: AttemptId, why: String) -> Option<Fact> {
        Some(match self {
            Self::Prepare { .. } => return None,
            Self::Begin => Fact::LaneFailed { attempt, why },
            Self::Revert { .. } | Self::Settle { .. } => Fact::RevertFailed { attempt, why },
            _ => Fact::RepositoryBroken { attempt, why },
        })
    }

    async fn carry_out(self, parts: &Parts, attempt: AttemptId, inspected: Option<TreeId>, cancel: CancellationToken) {
        match self {
            Self::Begin => worktree::begin(parts, attempt, cancel).await,
            Self::Check { stage, check, what, fresh } => {
                check::run(parts, attempt, stage, check, what.on(inspected), fresh, cancel).await;
            }
            Self::Checkpoint => tree::checkpoint(parts, attempt, inspected.is_some()).await,
            Self::Agent(calling) => agent::run(parts, attempt, calling, cancel).await,
            Self::Review(review) => review::run(parts, attempt, *review, cancel).await,
            Self::Inspect { call, resolves } => tree::inspect(parts, attempt, call, &resolves).await,
            Self::Prepare { call } => merge::prepare(parts, &attempt, call).await,
            Self::Merge(order) => merge::merge(parts, attempt, order, inspected, cancel).await,
            Self::Land { call, message, proven, marking } => {
                let untouched = inspected.is_some();
                tree::land(
                    parts,
                    (attempt, call),
                    (message, marking),
                    tree::Proven { tree: proven, untouched },
                    cancel,
                )
                .await;
            }
            Self::Mend(order) => mend::add(parts, attempt, *order, cancel).await,
            Self::Revert { reason } => tree::revert(parts, attempt, &reason).await,
            Self::Settle { marking } => tree::settle(parts, attempt, marking).await,
        }
    }
}
