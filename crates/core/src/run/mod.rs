//! A run as a fold of its events. [`Run::step`] is the only mutation; it is total: every fact in every state has an
//! answer, and a fact about an attempt that is over has none.

mod ahead;
mod attempt;
mod brief;
mod chain;
mod failing;
mod landing;
mod limits;
mod mending;
mod recover;
mod relaying;
mod reviewing;
mod schedule;
mod steer;
mod story;

use std::collections::BTreeMap;
use std::time::Duration;

pub use attempt::{Attempt, Checking, Phase};
pub use chain::{Away, Until};
pub use limits::Allowance;
pub use reviewing::Reviewing;
pub use story::{StoryRecord, StoryState};

use serde::{Deserialize, Serialize};

use crate::effect::Effect;
use crate::event::{Event, Fact, PlanChange, StopCause, StopLevel};
use crate::evidence::{CheckResult, Usage};
use crate::ids::{AgentId, AttemptId, CommitId, LaneId, RunId, StoryId};
use crate::learning::Learnings;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::policy::Policy;
use crate::units::Timestamp;

use attempt::AfterRevert;
use chain::Standing;
use recover::Meanwhile;

/// What the run as a whole is doing. Attempts may be under way in all of these but the last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Activity {
    /// Looks at the spec, then chooses stories.
    CheckingPlan,
    /// Lets the attempts under way go on, and finishes what a crash left of landings.
    Working,
    /// Waits for a provider: whatever could begin waits for an agent that is not to be called before that is over.
    Waiting(Wait),
    /// Ends when the attempts under way have; none begins any more.
    Ending(Outcome),
    /// Has ended. [`Fact::Restarted`] takes it up again.
    Ended(Outcome),
}

/// A wait for the provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Until then.
    pub until: Timestamp,
    /// What for, in words.
    pub reason: String,
    /// How long it was to take, so that a clock that is set back makes it no longer.
    span: Duration,
}

/// What an attempt that is over has left somewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Left {
    id: AttemptId,
    lane: LaneId,
}

/// The results of checks on one base, reused until something lands on it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Baseline {
    /// How many landings the base has seen: results on another are not comparable.
    landings: u32,
    gates: BTreeMap<usize, CheckResult>,
    checks: BTreeMap<StoryId, BTreeMap<usize, CheckResult>>,
}

impl Baseline {
    /// That of the base that a landing makes: nothing is known yet.
    fn next(&self) -> Self {
        Self { landings: self.landings.saturating_add(1), ..Self::default() }
    }

    /// That of a base which no other attempt is sure to share.
    fn of_nobody_else() -> Self {
        Self { landings: u32::MAX, ..Self::default() }
    }
}

/// One execution of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    id: RunId,
    plan: Plan,
    policy: Policy,
    branch: String,
    base: CommitId,
    agent: String,
    /// Who may be called, the preferred first; never empty.
    chain: Vec<AgentId>,
    /// How the agents stand, of whom something is known.
    standings: BTreeMap<AgentId, Standing>,
    stories: BTreeMap<StoryId, StoryRecord>,
    activity: Activity,
    /// The attempts under way, at most one a story and one a lane.
    attempts: BTreeMap<StoryId, Attempt>,
    /// Landings that a crash left half done, by story.
    settling: BTreeMap<StoryId, Left>,
    stop: Option<(StopCause, StopLevel)>,
    pause: bool,
    /// Nothing more may land.
    halted: bool,
    /// Why the reviewer is not asked any more.
    review_off: Option<String>,
    guidance: Vec<String>,
    learnings: Learnings,
    usage: Usage,
    calls: u32,
    /// Calls that were cut off and of which nobody knows what they cost.
    uncounted: u32,
    /// Calls that ended, and of which neither their clients nor the price list say what they cost.
    unpriced: u32,
    started_at: Timestamp,
    last_at: Timestamp,
    ended_at: Option<Timestamp>,
    active_time: Duration,
    gate_times: BTreeMap<usize, Duration>,
    baseline: Baseline,
    /// Attempts whose work still lies in their lanes, because it could not be put back, by story.
    unclean: BTreeMap<StoryId, Left>,
    /// The run was taken up and has not read the spec since: commands that a person changed meanwhile hold.
    commands_may_change: bool,
}

/// Why events do not make a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotARun;

impl Run {
    /// The run that begins with this event, which must be [`Fact::RunStarted`], and what is to be done first.
    pub fn start(event: &Event) -> Result<(Self, Vec<Effect>), NotARun> {
        let Fact::RunStarted { run, plan, policy, branch, base, agent, unsigned } = &event.fact else {
            return Err(NotARun);
        };
        let mut started = Self {
            id: run.clone(),
            plan: (**plan).clone(),
            policy: (**policy).clone(),
            branch: branch.clone(),
            base: base.clone(),
            agent: agent.clone(),
            chain: Vec::new(),
            standings: BTreeMap::new(),
            stories: BTreeMap::new(),
            activity: Activity::CheckingPlan,
            attempts: BTreeMap::new(),
            settling: BTreeMap::new(),
            stop: None,
            pause: false,
            halted: false,
            review_off: None,
            guidance: Vec::new(),
            learnings: Learnings::default(),
            usage: Usage::default(),
            calls: 0,
            uncounted: 0,
            unpriced: 0,
            started_at: event.at,
            last_at: event.at,
            ended_at: None,
            active_time: Duration::ZERO,
            gate_times: BTreeMap::new(),
            baseline: Baseline::default(),
            unclean: BTreeMap::new(),
            commands_may_change: false,
        };
        started.learnings.merge(&policy.learnings);
        started.adopt_chain(&policy.agents, agent, false);
        started.enrol_stories();
        started.know_unsigned(unsigned);
        let effects = started.select();
        Ok((started, effects))
    }

    /// The run that these events make. Effects are dropped: what was to be done is answered by later events or, after a
    /// crash, by [`Fact::Restarted`].
    pub fn replay<'a>(events: impl IntoIterator<Item = &'a Event>) -> Result<Self, NotARun> {
        let mut events = events.into_iter();
        let (mut run, _) = Self::start(events.next().ok_or(NotARun)?)?;
        for event in events {
            drop(run.step(event));
        }
        Ok(run)
    }

    /// Takes one fact in and answers with what is to be done.
    pub fn step(&mut self, event: &Event) -> Vec<Effect> {
        let at = event.at;
        if !matches!(event.fact, Fact::Restarted { .. }) && !matches!(self.activity, Activity::Ended(_)) {
            self.active_time += at.since(self.last_at);
        }
        self.last_at = at;
        match &event.fact {
            Fact::Restarted { policy, landed, spec, agent, cut_off, retry } => {
                self.count_cut_off(cut_off);
                self.restarted(policy, agent, Meanwhile { landed, spec, retry })
            }
            Fact::PlanChecked { spec } => self.plan_checked(spec),
            Fact::Woke => self.woke(),
            Fact::StopRequested { cause, level } => self.stop_requested(*cause, *level),
            Fact::PauseRequested => self.pause_requested(),
            Fact::SkipRequested { story } => self.skip_requested(story),
            Fact::RetryRequested { story } => self.retry_requested(story),
            Fact::GuidanceAdded { text } => {
                self.guidance.push(text.clone());
                Vec::new()
            }
            Fact::LearningAdded { text } => {
                self.learnings.add(text, None);
                Vec::new()
            }
            Fact::RunEnded { outcome } => {
                self.activity = Activity::Ended(outcome.clone());
                self.ended_at = Some(at);
                Vec::new()
            }
            Fact::Settled { attempt } if self.settling.get(&attempt.story).is_some_and(|left| left.id == *attempt) => {
                self.settling.remove(&attempt.story);
                self.go_on()
            }
            Fact::RevertFailed { attempt, why }
                if self.settling.get(&attempt.story).is_some_and(|left| left.id == *attempt) =>
            {
                self.settling_failed(&attempt.story, why)
            }
            Fact::RunStarted { .. } | Fact::Settled { .. } => Vec::new(),
            Fact::AttemptStarted { .. }
            | Fact::LaneFailed { .. }
            | Fact::Merged { .. }
            | Fact::MergeFailed { .. }
            | Fact::Trespassed { .. }
            | Fact::LandingBlocked { .. }
            | Fact::CheckStarted { .. }
            | Fact::CheckFinished { .. }
            | Fact::CheckpointTaken { .. }
            | Fact::CheckpointFailed { .. }
            | Fact::AgentStarted { .. }
            | Fact::AgentEnded { .. }
            | Fact::TreeInspected { .. }
            | Fact::ReviewStarted { .. }
            | Fact::ReviewEnded { .. }
            | Fact::RepositoryBroken { .. }
            | Fact::Landed { .. }
            | Fact::LandingRefused { .. }
            | Fact::LandingFailed { .. }
            | Fact::FixTaskAdded { .. }
            | Fact::NoFixTask { .. }
            | Fact::Reverted { .. }
            | Fact::RevertFailed { .. } => self.attempt_step(&event.fact),
        }
    }

    /// Something came to its end: looks at the spec before the next story is chosen, if there is room for one; ends the
    /// run, if it is to end and nothing is under way any more.
    fn go_on(&mut self) -> Vec<Effect> {
        match &self.activity {
            Activity::Ending(outcome) if self.is_idle() => return vec![Effect::Finish { outcome: outcome.clone() }],
            Activity::Ending(_) => return self.call_the_held(),
            Activity::Ended(_) => return Vec::new(),
            Activity::CheckingPlan | Activity::Working | Activity::Waiting(_) => {}
        }
        if let Some(outcome) = self.asked_to_end() {
            return self.end(outcome);
        }
        let mut effects = self.call_the_held();
        if self.activity == Activity::CheckingPlan || !self.settling.is_empty() || !self.has_place() {
            return effects;
        }
        self.heed_the_clock();
        if self.is_deserted() {
            effects.extend(self.hold(&self.chain.clone()));
            return effects;
        }
        self.activity = Activity::CheckingPlan;
        effects.push(Effect::CheckPlan);
        effects
    }

    /// Nothing is under way.
    fn is_idle(&self) -> bool {
        self.attempts.is_empty() && self.settling.is_empty()
    }

    fn plan_checked(&mut self, spec: &PlanChange) -> Vec<Effect> {
        if self.activity != Activity::CheckingPlan {
            return Vec::new();
        }
        if let Some(outcome) = self.asked_to_end() {
            return self.end(outcome);
        }
        match spec {
            PlanChange::Same => {}
            PlanChange::Changed { plan } if self.commands_may_change => self.adopt((**plan).clone()),
            PlanChange::Changed { plan } => self.adopt_edits(plan),
            PlanChange::Unreadable { message } => {
                return self.end(Outcome::Paused {
                    reason: format!("the spec can no longer be read: {message}; mend it, then resume"),
                });
            }
        }
        self.commands_may_change = false;
        self.select()
    }

    /// No further attempt begins, and the run ends as soon as those under way have ended. The first reason to end stays
    /// the run's.
    fn end(&mut self, outcome: Outcome) -> Vec<Effect> {
        if !matches!(self.activity, Activity::Ending(_) | Activity::Ended(_)) {
            self.activity = Activity::Ending(outcome);
        }
        let mut effects = self.put_back(Self::waits_for_agents, "the run ended while the provider was waited for");
        effects.extend(self.go_on());
        effects
    }

    /// Puts back those of the attempts under way that nothing is done for.
    fn put_back(&mut self, which: impl Fn(&Self, &Attempt) -> bool, reason: &str) -> Vec<Effect> {
        let ids: Vec<AttemptId> = self.attempts.values().filter(|a| which(self, a)).map(|a| a.id.clone()).collect();
        ids.iter().flat_map(|id| self.revert(id, reason, AfterRevert::Again)).collect()
    }

    /// Somebody has to look at the repository before anything else is done in it.
    fn is_alarmed(&self) -> bool {
        self.halted || !self.unclean.is_empty()
    }

    /// The same, for a reason that a person has to know of whatever else ends the run, unless there was one of the kind
    /// before.
    fn end_alarmed(&mut self, outcome: Outcome, known: bool) -> Vec<Effect> {
        if !known && matches!(self.activity, Activity::Ending(_)) {
            self.activity = Activity::Ending(outcome.clone());
        }
        self.end(outcome)
    }

    /// The same, and nothing more lands: what is under way comes to its end, and is kept and put back then.
    fn halt(&mut self, outcome: Outcome, known: bool) -> Vec<Effect> {
        self.halted = true;
        let mut effects = self.put_back(|_, attempt| attempt.rests(), landing::HALTED);
        effects.extend(self.end_alarmed(outcome, known));
        effects
    }
}

/// What views may look at.
impl Run {
    /// Its id.
    pub fn id(&self) -> &RunId {
        &self.id
    }
    /// What is to be done, a person's edits included.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
    /// How.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }
    /// The full ref name of the branch on which stories land.
    pub fn branch(&self) -> &str {
        &self.branch
    }
    /// Where the branch stood when the run began.
    pub fn base(&self) -> &CommitId {
        &self.base
    }
    /// The agents that may be called and their models, as they are shown.
    pub fn agent(&self) -> &str {
        &self.agent
    }
    /// What it is doing.
    pub fn activity(&self) -> &Activity {
        &self.activity
    }
    /// The attempts under way, by story.
    pub fn attempts(&self) -> impl ExactSizeIterator<Item = &Attempt> {
        self.attempts.values()
    }
    /// The attempt of that id, if it is under way.
    pub fn attempt(&self, id: &AttemptId) -> Option<&Attempt> {
        self.attempts.get(&id.story).filter(|attempt| attempt.id == *id)
    }
    /// The lane of an attempt that is under way, or of which a landing is being settled.
    pub fn lane_of(&self, id: &AttemptId) -> Option<LaneId> {
        self.attempt(id)
            .map(|attempt| attempt.lane)
            .or_else(|| self.settling.get(&id.story).filter(|left| left.id == *id).map(|left| left.lane))
    }
    /// The wait for the provider that is on.
    pub fn wait(&self) -> Option<&Wait> {
        match &self.activity {
            Activity::Waiting(wait) => Some(wait),
            _ => None,
        }
    }
    /// What is known of a story.
    pub fn record(&self, story: &StoryId) -> Option<&StoryRecord> {
        self.stories.get(story)
    }
    /// The stories that this run is about or that were done before, with what is known of them, in file order.
    pub fn records(&self) -> impl Iterator<Item = (&crate::plan::Story, &StoryRecord)> {
        self.plan.stories.iter().filter_map(|s| self.stories.get(&s.id).map(|r| (s, r)))
    }
    /// The stories that a person took out of the spec before they were done.
    pub fn taken_out(&self) -> impl Iterator<Item = &StoryId> {
        self.stories.iter().filter(|(_, record)| record.taken_out).map(|(id, _)| id)
    }
    /// Whether it was asked to stop or pause and has not ended yet.
    pub fn stopping(&self) -> bool {
        (self.stop.is_some() || self.pause) && !matches!(self.activity, Activity::Ended(_))
    }
    /// What all calls of agents have used.
    pub fn usage(&self) -> Usage {
        self.usage
    }
    /// How many times an agent was started.
    pub fn calls(&self) -> u32 {
        self.calls
    }
    /// Calls that were cut off, so that what they cost is not in [`Run::usage`].
    pub fn uncounted_calls(&self) -> u32 {
        self.uncounted
    }
    /// Calls that ended and of which nobody knows what they cost, so that it is not in [`Run::usage`].
    pub fn unpriced_calls(&self) -> u32 {
        self.unpriced
    }
    /// When it began.
    pub fn started_at(&self) -> Timestamp {
        self.started_at
    }
    /// The time of the last event.
    pub fn last_at(&self) -> Timestamp {
        self.last_at
    }
    /// When it ended.
    pub fn ended_at(&self) -> Option<Timestamp> {
        self.ended_at
    }
    /// An attempt's work still lies in its lane, because it could not be put back.
    pub fn is_unclean(&self) -> bool {
        !self.unclean.is_empty()
    }
    /// How long it has been at work, time between an end and a resume left out.
    pub fn active_time(&self) -> Duration {
        self.active_time
    }
    /// What is left of the time that the run may take.
    pub fn time_left(&self) -> Option<Duration> {
        self.policy.budget.duration.map(|max| max.saturating_sub(self.active_time))
    }
    /// Sentences for the next prompt that no prompt of a concluded attempt has carried.
    pub fn guidance(&self) -> &[String] {
        &self.guidance
    }
    /// Sentences for all later prompts, those of earlier runs included.
    pub fn learnings(&self) -> &Learnings {
        &self.learnings
    }
}
