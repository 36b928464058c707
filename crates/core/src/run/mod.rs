//! A run as a fold of its events. [`Run::step`] is the only mutation; it is total: every fact in every state has an
//! answer, and a fact about an attempt that is over has none.

mod attempt;
mod brief;
mod limits;
mod recover;
mod schedule;
mod story;

use std::collections::BTreeMap;
use std::time::Duration;

pub use attempt::{Attempt, Phase};
pub use story::{StoryRecord, StoryState};

use serde::{Deserialize, Serialize};

use crate::effect::Effect;
use crate::event::{Event, Fact, PlanChange, StopCause, StopLevel};
use crate::evidence::{CheckResult, Usage};
use crate::ids::{AttemptId, CommitId, RunId, StoryId};
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::policy::Policy;
use crate::units::Timestamp;

use limits::Trouble;

/// What the run is doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Activity {
    /// Looks at the spec, then chooses a story.
    CheckingPlan,
    /// Tries a story.
    Attempt(Box<Attempt>),
    /// Finishes what a crash left of a landing.
    Settling(AttemptId),
    /// Waits for the provider.
    Waiting(Wait),
    /// Is about to end.
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

/// The results of checks on one base, reused until something lands on it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Baseline {
    gates: BTreeMap<usize, CheckResult>,
    story: Option<StoryId>,
    checks: BTreeMap<usize, CheckResult>,
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
    stories: BTreeMap<StoryId, StoryRecord>,
    activity: Activity,
    stop: Option<(StopCause, StopLevel)>,
    pause: bool,
    guidance: Vec<String>,
    /// Guidance that prompts of the attempt under way have carried. It comes back if the attempt comes to nothing.
    carried: Vec<String>,
    learnings: Vec<String>,
    usage: Usage,
    calls: u32,
    /// Calls that were cut off and of which nobody knows what they cost.
    uncounted: u32,
    started_at: Timestamp,
    last_at: Timestamp,
    ended_at: Option<Timestamp>,
    active_time: Duration,
    gate_times: BTreeMap<usize, Duration>,
    baseline: Baseline,
    trouble: Trouble,
    /// The attempt whose work still lies in the lane, because it could not be put back.
    unclean: Option<AttemptId>,
    /// The run was taken up and has not read the spec since: commands that a person changed meanwhile hold.
    commands_may_change: bool,
}

/// Why events do not make a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotARun;

impl Run {
    /// The run that begins with this event, which must be [`Fact::RunStarted`], and what is to be done first.
    pub fn start(event: &Event) -> Result<(Self, Vec<Effect>), NotARun> {
        let Fact::RunStarted { run, plan, policy, branch, base, agent } = &event.fact else { return Err(NotARun) };
        let mut started = Self {
            id: run.clone(),
            plan: (**plan).clone(),
            policy: (**policy).clone(),
            branch: branch.clone(),
            base: base.clone(),
            agent: agent.clone(),
            stories: BTreeMap::new(),
            activity: Activity::CheckingPlan,
            stop: None,
            pause: false,
            guidance: Vec::new(),
            carried: Vec::new(),
            learnings: Vec::new(),
            usage: Usage::default(),
            calls: 0,
            uncounted: 0,
            started_at: event.at,
            last_at: event.at,
            ended_at: None,
            active_time: Duration::ZERO,
            gate_times: BTreeMap::new(),
            baseline: Baseline::default(),
            trouble: Trouble::default(),
            unclean: None,
            commands_may_change: false,
        };
        started.enrol_stories();
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
            Fact::RunStarted { .. } => Vec::new(),
            Fact::Restarted { policy, landed, spec, agent, cut_off } => {
                self.count_cut_off(cut_off);
                self.restarted(policy, landed, spec, agent)
            }
            Fact::PlanChecked { spec } => self.plan_checked(spec),
            Fact::Woke => self.woke(),
            Fact::StopRequested { cause, level } => self.stop_requested(*cause, *level),
            Fact::PauseRequested => self.pause_requested(),
            Fact::GuidanceAdded { text } => {
                self.guidance.push(text.clone());
                Vec::new()
            }
            Fact::LearningAdded { text } => {
                self.learn(text);
                Vec::new()
            }
            Fact::RunEnded { outcome } => {
                self.activity = Activity::Ended(outcome.clone());
                self.ended_at = Some(at);
                Vec::new()
            }
            Fact::Settled { attempt } => match &self.activity {
                Activity::Settling(settling) if settling == attempt => self.go_on(),
                _ => Vec::new(),
            },
            Fact::AttemptStarted { .. }
            | Fact::CheckStarted { .. }
            | Fact::CheckFinished { .. }
            | Fact::CheckpointTaken { .. }
            | Fact::CheckpointFailed { .. }
            | Fact::AgentStarted { .. }
            | Fact::AgentEnded { .. }
            | Fact::TreeInspected { .. }
            | Fact::RepositoryBroken { .. }
            | Fact::Landed { .. }
            | Fact::LandingRefused { .. }
            | Fact::LandingFailed { .. }
            | Fact::Reverted { .. }
            | Fact::RevertFailed { .. } => self.attempt_step(&event.fact),
        }
    }

    /// Between stories: looks at the spec first, unless the run is to end.
    fn go_on(&mut self) -> Vec<Effect> {
        if let Some(outcome) = self.asked_to_end() {
            return self.finish(outcome);
        }
        self.activity = Activity::CheckingPlan;
        vec![Effect::CheckPlan]
    }

    fn plan_checked(&mut self, spec: &PlanChange) -> Vec<Effect> {
        if self.activity != Activity::CheckingPlan {
            return Vec::new();
        }
        if let Some(outcome) = self.asked_to_end() {
            return self.finish(outcome);
        }
        match spec {
            PlanChange::Same => {}
            PlanChange::Changed { plan } if self.commands_may_change => self.adopt((**plan).clone()),
            PlanChange::Changed { plan } => self.adopt_edits(plan),
            PlanChange::Unreadable { message } => {
                return self.finish(Outcome::Paused {
                    reason: format!("the spec can no longer be read: {message}; mend it, then resume"),
                });
            }
        }
        self.commands_may_change = false;
        self.select()
    }

    fn finish(&mut self, outcome: Outcome) -> Vec<Effect> {
        self.activity = Activity::Ending(outcome.clone());
        vec![Effect::Finish { outcome }]
    }

    fn stop_requested(&mut self, cause: StopCause, level: StopLevel) -> Vec<Effect> {
        let level = match self.stop {
            Some((_, earlier)) if earlier >= level => return Vec::new(),
            _ => level,
        };
        self.stop = Some((cause, level));
        match &mut self.activity {
            Activity::Waiting(_) => self.finish(Outcome::Stopped { cause }),
            Activity::Attempt(attempt) if level == StopLevel::Now && attempt.stoppable() => {
                vec![Effect::StopWork { attempt: attempt.id.clone() }]
            }
            Activity::Attempt(_)
            | Activity::CheckingPlan
            | Activity::Settling(_)
            | Activity::Ending(_)
            | Activity::Ended(_) => Vec::new(),
        }
    }

    fn pause_requested(&mut self) -> Vec<Effect> {
        self.pause = true;
        match self.activity {
            Activity::Waiting(_) => self.go_on(),
            _ => Vec::new(),
        }
    }

    fn stopping_now(&self) -> bool {
        matches!(self.stop, Some((_, StopLevel::Now)))
    }

    fn asked_to_end(&self) -> Option<Outcome> {
        match self.stop {
            Some((cause, _)) => Some(Outcome::Stopped { cause }),
            None if self.pause => Some(Outcome::Paused { reason: "asked to pause; resume goes on".to_owned() }),
            None => None,
        }
    }

    /// Keeps a learning, once.
    fn learn(&mut self, text: &str) {
        let text = text.trim();
        if !text.is_empty() && !self.learnings.iter().any(|known| known == text) {
            self.learnings.push(text.to_owned());
        }
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
    /// The agent and its model, as they are shown.
    pub fn agent(&self) -> &str {
        &self.agent
    }
    /// What it is doing.
    pub fn activity(&self) -> &Activity {
        &self.activity
    }
    /// The attempt under way.
    pub fn attempt(&self) -> Option<&Attempt> {
        match &self.activity {
            Activity::Attempt(attempt) => Some(attempt),
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
    /// An attempt's work still lies in the lane, because it could not be put back.
    pub fn is_unclean(&self) -> bool {
        self.unclean.is_some()
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
    /// Sentences for all later prompts.
    pub fn learnings(&self) -> &[String] {
        &self.learnings
    }
}
