//! Bugs that are put in on purpose, one at a time, to see whether the invariants find them. Each is expressed at the
//! border of the core (what it is told, what it asks for) or in the engine's part of the world, so that the core itself
//! carries none.

use std::collections::BTreeMap;

use ralphloop_core::effect::{Effect, Onto};
use ralphloop_core::event::{CheckRef, CheckStage, Fact, PlanChange, StopLevel};
use ralphloop_core::evidence::{AgentEnd, CheckResult, Claim, Merge};
use ralphloop_core::ids::{AttemptId, LaneId};
use ralphloop_core::outcome::Outcome;
use ralphloop_core::plan::Plan;
use ralphloop_core::policy::Policy;
use ralphloop_core::review::Opinion;
use ralphloop_core::run::{Phase, Run};
use ralphloop_core::units::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Planted {
    /// A late fact of a dead attempt is taken as one of the attempt under way.
    NoFence,
    /// A result of any check is taken as the result of the one that is awaited.
    NoPhaseCheck,
    /// A landing does not look for its own commit first.
    LandsTwice,
    /// After a crash nobody looks which stories have landed.
    ForgetsLandings,
    /// An agent that died with the process is taken to have finished.
    TrustsTheDead,
    /// Gates are taken to pass, and are not run.
    SkipsGates,
    /// Dependencies are not read.
    IgnoresDependencies,
    /// No checkpoint is taken before the agent starts.
    NoCheckpoint,
    /// What an interrupted attempt left in the tree is not put back.
    ForgetsTheRevert,
    /// A wait is never woken.
    LosesTheTimer,
    /// Effects are carried out before their cause is in the journal.
    ActsBeforeTheJournal,
    /// A failed attempt is not charged.
    ChargesNothing,
    /// The bound on iterations is not passed on.
    ForgetsTheBudget,
    /// A stop at once is only taken down.
    DeafToStop,
    /// The agent is started twice.
    TwoAgents,
    /// The user's sentences do not reach the prompt.
    DropsGuidance,
    /// A run that failed says that it is complete.
    SaysDone,
    /// A result of a check is reused although the tree has changed.
    StaleCache,
    /// A doubtful claim becomes a plain one: an agent that said nothing is taken to have said that it is done.
    BelievesSilence,
    /// What was proven before a merge is taken to hold after it.
    TrustsTheMerge,
    /// Conflict markers are not seen.
    IgnoresMarkers,
    /// The next story is merged while one is landing.
    LandsTwoAtOnce,
    /// A story is said to have landed before its commit is there.
    LandsInWords,
    /// All attempts get the same lane.
    SharesALane,
    /// What waits for its turn to land is not put back when the run stops.
    ForgetsTheQueue,
    /// What is put back is not kept.
    LosesTheWork,
    /// What somebody moved under the run is not seen.
    IgnoresTrespass,
    /// More stories are begun at once than was allowed.
    TooManyJobs,
    /// An agent whose provider has named a time is called again at once.
    ReturnsTooEarly,
    /// An agent whose limit has reset is not returned to for hours.
    ForgetsTheReset,
    /// A limit is charged to the story.
    ChargesLimits,
    /// Another agent of the chain is called, though nothing is wrong with the first.
    HopsForNothing,
    /// Work is sent back by reviewers more often than is allowed.
    SendsBackForEver,
    /// What a reviewer has done to the tree is not seen.
    IgnoresTheTouch,
    /// Whatever a reviewer says is taken for an objection.
    HearsObjections,
    /// What was prepared on a candidate that came to nothing lands as it is.
    KeepsLostGround,
    /// What was prepared on a candidate is taken to stand on the branch.
    LandsAhead,
    /// A wish to skip a story is only taken down.
    DeafToSkip,
    /// Whatever runs for a story that is skipped goes on.
    SkipsInWords,
    /// A wish to try a story again is only taken down.
    DeafToRetry,
    /// Roles of a relay are not told what those before them said.
    DropsTheBaton,
    /// A relay goes on for longer than was allowed.
    RunsOn,
    /// The work of a relay is judged before all roles had their turn.
    SkipsRoles,
    /// A worktree that was half made when a process died is taken for whole.
    TakesHalfForWhole,
    /// At the end only those worktrees are taken away that this process has needed.
    LeavesWhatItDidNotNeed,
    /// Places that dead runs had taken are never free again.
    NeverFreesPlaces,
    /// Worktrees are taken away whatever lies in them.
    RemovesByForce,
    /// Whether a place is somebody's is not looked at.
    TakesTakenPlaces,
    /// A worktree stays in the pool with the work that lies in it.
    KeepsUnseen,
    /// A lane that led to a place is taken to lead to the run's own worktree for ever.
    FollowsOldLinks,
    /// Worktrees are made whatever room there is.
    LooksForNoRoom,
    /// What stories say of the files that they touch is not heeded.
    ForgetsTheFiles,
    /// What fails on a full disk is taken for a failure of the work.
    BlamesTheWork,
}

/// What is known of the moment at which an effect is asked for.
pub(crate) struct Moment<'a> {
    /// The run was taken up just now.
    pub(crate) restarted: bool,
    /// The attempt waited for its turn to land before.
    pub(crate) was_queued: bool,
    pub(crate) run: &'a Run,
}

impl Planted {
    pub(crate) const ALL: [Self; 53] = [
        Self::NoFence,
        Self::NoPhaseCheck,
        Self::LandsTwice,
        Self::ForgetsLandings,
        Self::TrustsTheDead,
        Self::SkipsGates,
        Self::IgnoresDependencies,
        Self::NoCheckpoint,
        Self::ForgetsTheRevert,
        Self::LosesTheTimer,
        Self::ActsBeforeTheJournal,
        Self::ChargesNothing,
        Self::ForgetsTheBudget,
        Self::DeafToStop,
        Self::TwoAgents,
        Self::DropsGuidance,
        Self::SaysDone,
        Self::StaleCache,
        Self::BelievesSilence,
        Self::TrustsTheMerge,
        Self::IgnoresMarkers,
        Self::LandsTwoAtOnce,
        Self::LandsInWords,
        Self::SharesALane,
        Self::ForgetsTheQueue,
        Self::LosesTheWork,
        Self::IgnoresTrespass,
        Self::TooManyJobs,
        Self::ReturnsTooEarly,
        Self::ForgetsTheReset,
        Self::ChargesLimits,
        Self::HopsForNothing,
        Self::SendsBackForEver,
        Self::IgnoresTheTouch,
        Self::HearsObjections,
        Self::KeepsLostGround,
        Self::LandsAhead,
        Self::DeafToSkip,
        Self::SkipsInWords,
        Self::DeafToRetry,
        Self::DropsTheBaton,
        Self::RunsOn,
        Self::SkipsRoles,
        Self::TakesHalfForWhole,
        Self::LeavesWhatItDidNotNeed,
        Self::NeverFreesPlaces,
        Self::RemovesByForce,
        Self::TakesTakenPlaces,
        Self::KeepsUnseen,
        Self::FollowsOldLinks,
        Self::LooksForNoRoom,
        Self::ForgetsTheFiles,
        Self::BlamesTheWork,
    ];

    /// What the broken program takes down instead of the fact; `run` is what it knows so far, `awaited` the checks that
    /// it asked for last.
    pub(crate) fn distort(self, fact: &mut Fact, run: Option<&Run>, awaited: &Awaited) {
        match self {
            Self::NoFence => no_fence(fact, run),
            Self::NoPhaseCheck => no_phase_check(fact, awaited),
            Self::ForgetsLandings => {
                if let Fact::Restarted { landed, .. } = fact {
                    landed.clear();
                }
            }
            Self::TrustsTheDead => trust_the_dead(fact, run),
            Self::IgnoresDependencies => with_plan(fact, |plan| plan.stories.iter_mut().for_each(|s| s.deps.clear())),
            Self::ForgetsTheFiles => {
                with_plan(fact, |plan| plan.stories.iter_mut().for_each(|s| s.description.clear()));
            }
            Self::ChargesNothing => {
                if let Fact::AgentEnded { report, .. } = fact
                    && matches!(report.claim, Claim::Failed { .. })
                {
                    report.end = AgentEnd::Stopped;
                }
            }
            Self::ForgetsTheBudget => with_policy(fact, |policy| policy.budget.iterations = None),
            Self::TooManyJobs => with_policy(fact, |policy| policy.jobs = policy.jobs.saturating_add(1)),
            Self::RunsOn => with_policy(fact, |policy| policy.relay.iter_mut().for_each(|relay| relay.rounds += 1)),
            Self::SkipsRoles => with_policy(fact, |policy| {
                policy.relay.iter_mut().for_each(|relay| relay.roles.truncate(1));
            }),
            Self::SendsBackForEver => with_policy(fact, |policy| policy.max_reviews += 1),
            Self::IgnoresTheTouch => {
                if let Fact::ReviewEnded { report, .. } = fact {
                    report.touched = false;
                }
            }
            Self::HearsObjections => {
                if let Fact::ReviewEnded { report, .. } = fact {
                    report.opinion = Opinion::Objects { findings: vec!["noise".to_owned()] };
                }
            }
            Self::TrustsTheMerge => {
                if let Fact::Merged { merge: merge @ Merge::Merged { .. }, .. } = fact {
                    *merge = Merge::Current;
                }
            }
            Self::LandsAhead => {
                if let Fact::Merged { number, .. } = fact {
                    *number = 0;
                }
            }
            Self::IgnoresMarkers => {
                if let Fact::TreeInspected { report, .. } = fact {
                    report.unresolved.clear();
                }
            }
            Self::ReturnsTooEarly | Self::ForgetsTheReset | Self::ChargesLimits => self.distort_limit(fact, run),
            Self::IgnoresTrespass => ignore_trespass(fact, run),
            Self::DeafToStop => {
                if matches!(fact, Fact::StopRequested { level: StopLevel::Now, .. }) {
                    *fact = Fact::LearningAdded { text: "stop".to_owned() };
                }
            }
            Self::DeafToSkip if matches!(fact, Fact::SkipRequested { .. }) => {
                *fact = Fact::LearningAdded { text: "skip".to_owned() };
            }
            Self::SkipsInWords => skip_in_words(fact, run),
            Self::DeafToRetry => match fact {
                Fact::RetryRequested { .. } => *fact = Fact::LearningAdded { text: "retry".to_owned() },
                Fact::Restarted { retry, .. } => retry.clear(),
                _ => {}
            },
            Self::BlamesTheWork => {
                if let Fact::CheckFinished { result, .. } = fact
                    && let CheckResult::NoRoom { why } = result
                {
                    *result = CheckResult::Failed { why: why.clone(), output: String::new() };
                }
            }
            Self::BelievesSilence => {
                if let Fact::AgentEnded { report, .. } = fact
                    && matches!(report.claim, Claim::None { .. })
                {
                    report.claim = Claim::Complete;
                }
            }
            _ => {}
        }
    }

    fn distort_limit(self, fact: &mut Fact, run: Option<&Run>) {
        let Fact::AgentEnded { report, .. } = fact else { return };
        let AgentEnd::Limit { resets_at, message } = &mut report.end else { return };
        match (self, run, resets_at) {
            (Self::ReturnsTooEarly, Some(run), Some(reset)) => *reset = Timestamp(run.last_at().0 + 1000),
            (Self::ForgetsTheReset, _, Some(reset)) => reset.0 += 36_000_000,
            (Self::ChargesLimits, ..) => report.end = AgentEnd::Error { message: message.clone() },
            _ => {}
        }
    }

    /// What the broken program does instead of the effect, and the facts that it makes up.
    pub(crate) fn twist(self, effect: Effect, moment: &Moment) -> (Vec<Effect>, Vec<Fact>) {
        match (self, effect) {
            (Self::SkipsGates, Effect::RunCheck { attempt, stage, check: check @ CheckRef::Gate(_), .. }) => {
                let took = std::time::Duration::ZERO;
                let fact =
                    Fact::CheckFinished { attempt, stage, check, result: CheckResult::Passed, cached: true, took };
                (Vec::new(), vec![fact])
            }
            (Self::NoCheckpoint, Effect::Checkpoint { attempt }) => {
                (Vec::new(), vec![Fact::CheckpointTaken { attempt, notes: Vec::new() }])
            }
            (Self::ForgetsTheRevert, Effect::Revert { attempt, .. }) if moment.restarted => {
                (Vec::new(), vec![Fact::Reverted { attempt, kept: None, notes: Vec::new() }])
            }
            (Self::ForgetsTheQueue, Effect::Revert { attempt, .. }) if moment.was_queued => {
                (Vec::new(), vec![Fact::Reverted { attempt, kept: None, notes: Vec::new() }])
            }
            (Self::SharesALane, Effect::Begin { attempt, .. }) => {
                (vec![Effect::Begin { attempt, lane: LaneId(0) }], Vec::new())
            }
            (Self::LandsTwoAtOnce, effect @ Effect::Land { .. }) => {
                let next = moment.run.attempts().find_map(|a| match &a.phase {
                    Phase::Queued(proof) => {
                        let (attempt, call) = (a.id.clone(), proof.call);
                        Some(Effect::Merge { attempt, call, number: 99, onto: Onto::Branch })
                    }
                    _ => None,
                });
                (std::iter::once(effect).chain(next).collect(), Vec::new())
            }
            (Self::LandsInWords, Effect::Land { attempt, call, ground }) => {
                let fact = Fact::Landed { attempt: attempt.clone(), commit: "early".into(), notes: Vec::new() };
                (vec![Effect::Land { attempt, call, ground }], vec![fact])
            }
            (Self::LosesTheTimer, Effect::Sleep { .. }) => (Vec::new(), Vec::new()),
            (Self::TwoAgents, Effect::StartAgent { attempt, call, agent, brief }) => {
                let mut second = call;
                second.0 += 1;
                let twin = Effect::StartAgent {
                    attempt: attempt.clone(),
                    call: second,
                    agent: agent.clone(),
                    brief: brief.clone(),
                };
                (vec![Effect::StartAgent { attempt, call, agent, brief }, twin], Vec::new())
            }
            (Self::DropsGuidance, Effect::StartAgent { attempt, call, agent, mut brief }) => {
                brief.guidance.clear();
                (vec![Effect::StartAgent { attempt, call, agent, brief }], Vec::new())
            }
            (Self::DropsTheBaton, Effect::StartAgent { attempt, call, agent, mut brief }) => {
                brief.leg.iter_mut().for_each(|leg| leg.baton.clear());
                (vec![Effect::StartAgent { attempt, call, agent, brief }], Vec::new())
            }
            (Self::HopsForNothing, Effect::StartAgent { attempt, call, agent, brief }) => {
                let agent = moment.run.chain().last().cloned().unwrap_or(agent);
                (vec![Effect::StartAgent { attempt, call, agent, brief }], Vec::new())
            }
            (Self::SaysDone, Effect::Finish { outcome: Outcome::Failed }) => {
                (vec![Effect::Finish { outcome: Outcome::Complete }], Vec::new())
            }
            (_, effect) => (vec![effect], Vec::new()),
        }
    }
}

/// The checks that were asked for last, by attempt.
pub(crate) type Awaited = BTreeMap<AttemptId, (CheckStage, CheckRef)>;

fn no_fence(fact: &mut Fact, run: Option<&Run>) {
    let Some(now) = run.and_then(|run| run.attempts().next()).map(|a| a.id.clone()) else { return };
    match fact {
        Fact::AgentEnded { attempt, .. }
        | Fact::CheckFinished { attempt, .. }
        | Fact::TreeInspected { attempt, .. }
        | Fact::CheckpointTaken { attempt, .. }
        | Fact::Landed { attempt, .. }
        | Fact::Reverted { attempt, .. } => *attempt = now,
        _ => {}
    }
}

fn no_phase_check(fact: &mut Fact, awaited: &Awaited) {
    if let Fact::CheckFinished { attempt, stage, check, .. } = fact
        && let Some(awaited) = awaited.get(attempt)
    {
        (*stage, *check) = *awaited;
    }
}

fn ignore_trespass(fact: &mut Fact, run: Option<&Run>) {
    if let Fact::Trespassed { attempt, .. } = fact
        && let Some(Phase::Merging(proof)) = run.and_then(|run| run.attempt(attempt)).map(|a| &a.phase)
    {
        *fact = Fact::Merged { attempt: attempt.clone(), call: proof.call, number: 0, merge: Merge::Current };
    }
}

/// The story under way is not heard of; only those that wait are skipped.
fn skip_in_words(fact: &mut Fact, run: Option<&Run>) {
    if let Fact::SkipRequested { story } = fact
        && run.is_some_and(|run| run.attempts().any(|attempt| attempt.id.story == *story))
    {
        *fact = Fact::LearningAdded { text: "skip".to_owned() };
    }
}

fn trust_the_dead(fact: &mut Fact, run: Option<&Run>) {
    let Some(run) = run else { return };
    if !matches!(fact, Fact::Restarted { .. }) {
        return;
    }
    let mut agents = run.attempts().filter_map(|a| match a.phase {
        Phase::Agent { call } => Some((a, call)),
        _ => None,
    });
    if let Some((attempt, call)) = agents.next() {
        let report = Box::new(super::scenario::finished(Claim::Complete));
        *fact = Fact::AgentEnded { attempt: attempt.id.clone(), call, agent: attempt.agent.clone(), report };
    }
}

fn with_plan(fact: &mut Fact, change: impl Fn(&mut Plan)) {
    match fact {
        Fact::RunStarted { plan, .. }
        | Fact::PlanChecked { spec: PlanChange::Changed { plan } }
        | Fact::Restarted { spec: PlanChange::Changed { plan }, .. } => change(plan),
        _ => {}
    }
}

fn with_policy(fact: &mut Fact, change: impl Fn(&mut Policy)) {
    match fact {
        Fact::RunStarted { policy, .. } | Fact::Restarted { policy, .. } => change(policy),
        _ => {}
    }
}
