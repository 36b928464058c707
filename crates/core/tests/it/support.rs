//! A run played by a script: every effect has an honest answer unless the test says otherwise.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use ralphloop_core::effect::{Brief, Effect, Ground, Onto};
use ralphloop_core::event::{CheckRef, CheckStage, CutOff, Event, Fact, PlanChange, StopCause, StopLevel};
use ralphloop_core::evidence::{AgentEnd, AgentReport, CheckResult, Claim, Merge, TreeReport, Usage};
use ralphloop_core::ids::{AgentId, AttemptId, CallNumber, CommitId, RunId, StoryId, TaskId, TreeId};
use ralphloop_core::outcome::Outcome;
use ralphloop_core::plan::{Check, Plan, Story, Task, WorkState};
use ralphloop_core::policy::{Gate, OnExhausted, Policy};
use ralphloop_core::review::{Opinion, ReviewReport};
use ralphloop_core::run::{Activity, Run, StoryRecord, StoryState};
use ralphloop_core::units::Timestamp;

pub(crate) use crate::sim::scenario::{plan, story};

/// Where the clock of every played run begins.
pub(crate) const START: Timestamp = Timestamp(1_750_000_000_000);

/// One call of an agent and the tree that it leaves.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) report: AgentReport,
    pub(crate) tree: TreeReport,
}

pub(crate) fn call(end: AgentEnd, claim: Claim) -> Call {
    let report = AgentReport {
        end,
        claim,
        last_words: "Shall I go on?".to_owned(),
        handover: String::new(),
        usage: Usage::default(),
        took: Duration::from_secs(10),
        learnings: Vec::new(),
        model: None,
    };
    let tree = TreeReport {
        tree: TreeId::from("fresh"),
        files_changed: 1,
        shown: Vec::new(),
        had_open_boxes: false,
        all_boxes_ticked: false,
        notes: Vec::new(),
        unresolved: Vec::new(),
        strayed: Vec::new(),
    };
    Call { report, tree }
}

/// Finished, and claims to be complete.
pub(crate) fn complete() -> Call {
    call(AgentEnd::Finished, Claim::Complete)
}

pub(crate) fn claims_failure(reason: &str) -> Call {
    call(AgentEnd::Finished, Claim::Failed { reason: reason.to_owned() })
}

pub(crate) fn claims_blocked(reason: &str) -> Call {
    call(AgentEnd::Finished, Claim::Blocked { reason: reason.to_owned() })
}

/// Finished without a signal.
pub(crate) fn no_signal() -> Call {
    call(AgentEnd::Finished, Claim::None { near_miss: None })
}

/// Ended in another way than by finishing.
pub(crate) fn ended(end: AgentEnd) -> Call {
    call(end, Claim::None { near_miss: None })
}

pub(crate) fn crash() -> Call {
    ended(AgentEnd::Crashed { status: "signal 11".to_owned(), message: String::new() })
}

pub(crate) fn limit(resets_at: Option<Timestamp>) -> Call {
    ended(AgentEnd::Limit { resets_at, message: "usage limit".to_owned() })
}

pub(crate) fn overloaded() -> Call {
    ended(AgentEnd::Overloaded { message: "529".to_owned() })
}

impl Call {
    pub(crate) fn unchanged(mut self) -> Self {
        self.tree.files_changed = 0;
        self.tree.tree = TreeId::from("base");
        self
    }

    pub(crate) fn tree(mut self, tree: &str) -> Self {
        self.tree.tree = TreeId::from(tree);
        self
    }

    pub(crate) fn shows(mut self, file: &str) -> Self {
        self.tree.shown.push(file.to_owned());
        self
    }

    pub(crate) fn boxes(mut self, all_ticked: bool) -> Self {
        self.tree.had_open_boxes = true;
        self.tree.all_boxes_ticked = all_ticked;
        self
    }

    pub(crate) fn uses(mut self, usage: Usage) -> Self {
        self.report.usage = usage;
        self
    }

    pub(crate) fn learns(mut self, text: &str) -> Self {
        self.report.learnings.push(text.to_owned());
        self
    }
}

/// What a reviewer comes to that ended by itself.
pub(crate) fn reviewed(opinion: Opinion) -> ReviewReport {
    ReviewReport {
        end: AgentEnd::Finished,
        opinion,
        usage: Usage::default(),
        took: Duration::from_secs(5),
        model: None,
        touched: false,
    }
}

pub(crate) fn gate(name: &str) -> Gate {
    Gate { name: name.to_owned(), command: format!("make {name}") }
}

/// One gate, `test`; otherwise the defaults.
pub(crate) fn gated() -> Policy {
    Policy { gates: vec![gate("test")], ..Policy::default() }
}

pub(crate) fn retries(max_retries: u32, on_exhausted: OnExhausted) -> Policy {
    Policy { max_retries, on_exhausted, ..gated() }
}

pub(crate) fn red(why: &str) -> CheckResult {
    CheckResult::Failed { why: why.to_owned(), output: format!("output of {why}") }
}

pub(crate) fn cannot_run() -> CheckResult {
    CheckResult::CouldNotRun { why: "command not found".to_owned() }
}

pub(crate) fn no_room() -> CheckResult {
    CheckResult::NoRoom { why: "only 1 MiB were free on the disk where /tmp is".to_owned() }
}

pub(crate) fn after(mut story: Story, deps: &[&str]) -> Story {
    story.deps = deps.iter().map(|d| StoryId::from(*d)).collect();
    story
}

pub(crate) fn checked(mut story: Story, path: &str) -> Story {
    story.checks.push(Check::FileExists { name: None, path: path.to_owned(), glob: false });
    story
}

/// A story that a person has to sign.
pub(crate) fn signed(mut story: Story) -> Story {
    story.sign_off.push("it shines".to_owned());
    story
}

pub(crate) fn done(mut story: Story) -> Story {
    story.state = WorkState::Done;
    story
}

pub(crate) fn stop(level: StopLevel) -> Fact {
    Fact::StopRequested { cause: StopCause::Int, level }
}

pub(crate) fn guide(text: &str) -> Fact {
    Fact::GuidanceAdded { text: text.to_owned() }
}

pub(crate) fn attempt(story: &str, number: u32) -> AttemptId {
    AttemptId { story: StoryId::from(story), number }
}

/// A run that is being played.
pub(crate) struct Play {
    pub(crate) run: Run,
    pub(crate) events: Vec<Event>,
    pub(crate) now: Timestamp,
    /// What the run asked for last and has not been answered.
    pub(crate) open: VecDeque<Effect>,
    /// All that it asked for, a few words each.
    pub(crate) log: Vec<String>,
    /// What each agent was told.
    pub(crate) briefs: Vec<Brief>,
    /// Whom it called.
    pub(crate) callers: Vec<AgentId>,
    agents: VecDeque<Call>,
    /// What reviewers say, in turn; then they approve.
    pub(crate) reviews: VecDeque<ReviewReport>,
    /// What the agents that have ended left, until somebody looks.
    ended: BTreeMap<AttemptId, Call>,
    /// What comes of merges, by story in turn; then nothing has landed meanwhile.
    merges: BTreeMap<StoryId, VecDeque<Merge>>,
    /// Results of checks on the base that are not passed.
    pub(crate) base: BTreeMap<CheckRef, CheckResult>,
    /// Results of checks of what agents left, in turn; then they pass.
    results: BTreeMap<CheckRef, VecDeque<CheckResult>>,
    landings: u32,
    /// Told with the next restart.
    pub(crate) cut_off: Vec<CutOff>,
    /// What the next restart is to try again.
    pub(crate) retry: Vec<StoryId>,
}

impl Play {
    pub(crate) fn new(stories: Vec<Story>, policy: Policy) -> Self {
        Self::of(plan(stories), policy, &[])
    }

    /// With stories that landed before and are not signed.
    pub(crate) fn unsigned(stories: Vec<Story>, policy: Policy, unsigned: &[(&str, &str)]) -> Self {
        Self::of(plan(stories), policy, unsigned)
    }

    fn of(work: Plan, policy: Policy, unsigned: &[(&str, &str)]) -> Self {
        let fact = Fact::RunStarted {
            run: RunId::from("r"),
            plan: Box::new(work),
            policy: Box::new(policy),
            branch: "refs/heads/main".to_owned(),
            base: CommitId::from("base"),
            agent: "scripted".to_owned(),
            unsigned: unsigned.iter().map(|(story, commit)| ((*story).into(), (*commit).into())).collect(),
        };
        let event = Event { at: START, fact };
        let (run, effects) = Run::start(&event).expect("it is a start");
        let mut play = Self {
            run,
            events: vec![event],
            now: START,
            open: VecDeque::new(),
            log: Vec::new(),
            briefs: Vec::new(),
            callers: Vec::new(),
            agents: VecDeque::new(),
            reviews: VecDeque::new(),
            ended: BTreeMap::new(),
            merges: BTreeMap::new(),
            base: BTreeMap::new(),
            results: BTreeMap::new(),
            landings: 0,
            cut_off: Vec::new(),
            retry: Vec::new(),
        };
        play.asked(effects);
        play
    }

    pub(crate) fn agents(mut self, calls: impl IntoIterator<Item = Call>) -> Self {
        self.agents.extend(calls);
        self
    }

    /// The next call goes so; what was planned comes after it.
    pub(crate) fn agents_first(&mut self, call: Call) {
        self.agents.push_front(call);
    }

    /// What the check says of the trees that agents leave, one after the other.
    pub(crate) fn check(mut self, check: CheckRef, results: impl IntoIterator<Item = CheckResult>) -> Self {
        self.results.entry(check).or_default().extend(results);
        self
    }

    /// What comes of merges of the story's attempts.
    pub(crate) fn merges(mut self, story: &str, merges: impl IntoIterator<Item = Merge>) -> Self {
        self.merges.entry(StoryId::from(story)).or_default().extend(merges);
        self
    }

    /// Answers what is asked for that story, or for none, until it is asked for something of which `here` is true. What is
    /// asked for other stories stays open, and the time of a wait does not come.
    pub(crate) fn until_of(&mut self, story: &str, here: impl Fn(&Effect) -> bool) -> Effect {
        loop {
            let ours = |e: &Effect| match e.attempt() {
                Some(attempt) => attempt.story.as_str() == story,
                None => !matches!(e, Effect::Sleep { .. }),
            };
            let at = self.open.iter().position(ours);
            let at = at.unwrap_or_else(|| panic!("nothing is asked for {story}: {:#?}", self.log));
            let effect = self.open.remove(at).expect("it was just found");
            self.open.push_front(effect.clone());
            if here(&effect) {
                return effect;
            }
            self.answer();
        }
    }

    pub(crate) fn at_base(mut self, check: CheckRef, result: CheckResult) -> Self {
        self.base.insert(check, result);
        self
    }

    fn asked(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.log.push(words(&effect, self.now));
            if let Effect::StartAgent { agent, brief, .. } = &effect {
                self.callers.push(agent.clone());
                self.briefs.push((**brief).clone());
            }
            self.open.push_back(effect);
        }
    }

    /// Tells the run a fact, a second after the last one.
    pub(crate) fn tell(&mut self, fact: Fact) {
        self.now = self.now.after(Duration::from_secs(1));
        self.tell_now(fact);
    }

    pub(crate) fn tell_now(&mut self, fact: Fact) {
        let event = Event { at: self.now, fact };
        let effects = self.run.step(&event);
        self.events.push(event);
        self.asked(effects);
    }

    /// Answers honestly until the run asks for something of which `here` is true, which stays unanswered.
    pub(crate) fn until(&mut self, here: impl Fn(&Effect) -> bool) -> Effect {
        loop {
            let effect = self.open.front().cloned().unwrap_or_else(|| panic!("nothing is asked: {:#?}", self.log));
            if here(&effect) {
                return effect;
            }
            self.answer();
        }
    }

    /// Until an agent is to be started; it stays unanswered.
    pub(crate) fn until_agent(&mut self) -> (AttemptId, CallNumber) {
        match self.until(|e| matches!(e, Effect::StartAgent { .. } | Effect::Finish { .. })) {
            Effect::StartAgent { attempt, call, .. } => (attempt, call),
            other => panic!("no agent is started, but {other:?}: {:#?}", self.log),
        }
    }

    /// Plays to the end of the run.
    pub(crate) fn end(&mut self) -> Outcome {
        self.until(|e| matches!(e, Effect::Finish { .. }));
        self.answer();
        match self.run.activity() {
            Activity::Ended(outcome) => outcome.clone(),
            other => panic!("the run has not ended: {other:?}"),
        }
    }

    /// Answers the oldest open effect honestly.
    pub(crate) fn answer(&mut self) {
        let Some(effect) = self.open.pop_front() else { panic!("nothing is asked: {:#?}", self.log) };
        let fact = match effect {
            Effect::CheckPlan => Fact::PlanChecked { spec: PlanChange::Same },
            Effect::Begin { attempt, .. } => Fact::AttemptStarted { attempt, notes: Vec::new() },
            Effect::RunCheck { attempt, stage, check, .. } => {
                let result = match stage {
                    CheckStage::Baseline => self.base.get(&check).cloned(),
                    CheckStage::Call(_) | CheckStage::Merged(_) => {
                        self.results.get_mut(&check).and_then(VecDeque::pop_front)
                    }
                };
                let result = result.unwrap_or(CheckResult::Passed);
                Fact::CheckFinished { attempt, stage, check, result, cached: false, took: Duration::from_secs(1) }
            }
            Effect::Checkpoint { attempt } => Fact::CheckpointTaken { attempt, notes: Vec::new() },
            Effect::StartAgent { attempt, call, agent, .. } => {
                let played = self.agents.pop_front().unwrap_or_else(|| panic!("no agent is left: {:#?}", self.log));
                let report = Box::new(played.report.clone());
                self.ended.insert(attempt.clone(), played);
                Fact::AgentEnded { attempt, call, agent: Some(agent), report }
            }
            Effect::Review { attempt, round, agent, .. } => {
                let report = self.reviews.pop_front().unwrap_or_else(|| reviewed(Opinion::Approves));
                Fact::ReviewEnded { attempt, round, agent, report: Box::new(report) }
            }
            Effect::Inspect { attempt, call, .. } => {
                let left = self.ended.remove(&attempt).or_else(|| self.agents.pop_front());
                let mut report = left.expect("an agent ended").tree;
                if report.tree == TreeId::from("fresh") {
                    report.tree = TreeId(format!("tree {}", self.log.len()));
                }
                Fact::TreeInspected { attempt, call, report }
            }
            Effect::Land { attempt, .. } => {
                self.landings += 1;
                Fact::Landed { attempt, commit: CommitId(format!("c{}", self.landings)), notes: Vec::new() }
            }
            Effect::AddFixTask { attempt, fix } => {
                let task = TaskId(format!("{}a", fix.of));
                let mut story = self.run.plan().story(&attempt.story).cloned().expect("it is in the plan");
                let failed = story.tasks.iter().find(|task| task.id == fix.of).cloned().expect("the task is there");
                story.tasks.push(Task { id: task.clone(), mends: Some(fix.of), ..failed });
                Fact::FixTaskAdded { attempt, task, story: Box::new(story), commit: Some(CommitId::from("fix")) }
            }
            Effect::Revert { attempt, .. } => {
                let kept = Some(format!("refs/ralphloop/r/{}/{}", attempt.story, attempt.number));
                Fact::Reverted { attempt, kept, notes: Vec::new() }
            }
            Effect::Merge { attempt, call, number, .. } => {
                let planned = self.merges.get_mut(&attempt.story).and_then(VecDeque::pop_front);
                Fact::Merged { attempt, call, number, merge: planned.unwrap_or(Merge::Current) }
            }
            Effect::Settle { attempt } => Fact::Settled { attempt },
            Effect::Sleep { until } => {
                self.now = until;
                return self.tell_now(Fact::Woke);
            }
            Effect::Finish { outcome } => Fact::RunEnded { outcome },
            Effect::StopWork { .. } | Effect::StopCheck { .. } | Effect::Prepare { .. } => return,
        };
        self.tell(fact);
    }

    /// Answers the oldest open effect with this instead.
    pub(crate) fn answer_with(&mut self, fact: Fact) {
        self.open.pop_front();
        self.tell(fact);
    }

    /// A new process takes the run up: what was asked for is forgotten, and the state is that of the journal.
    pub(crate) fn restart(&mut self) {
        self.restart_with(&[], PlanChange::Same, self.run.policy().clone());
    }

    pub(crate) fn restart_landed(&mut self, landed: &[(&str, &str)]) {
        self.restart_with(landed, PlanChange::Same, self.run.policy().clone());
    }

    pub(crate) fn restart_with(&mut self, landed: &[(&str, &str)], spec: PlanChange, policy: Policy) {
        self.open.clear();
        // Nobody looked at what they left.
        std::mem::take(&mut self.ended).into_values().rev().for_each(|call| self.agents.push_front(call));
        self.run = Run::replay(&self.events).expect("the journal makes a run");
        let cut_off = std::mem::take(&mut self.cut_off);
        let retry = std::mem::take(&mut self.retry);
        self.tell(Fact::Restarted {
            policy: Box::new(policy),
            landed: landed.iter().map(|(s, c)| (StoryId::from(*s), CommitId::from(*c))).collect(),
            spec,
            agent: "scripted".to_owned(),
            cut_off,
            retry,
        });
    }

    /// A person's edit is seen at the next look at the spec.
    pub(crate) fn edit(&mut self, stories: Vec<Story>) {
        self.until(|e| *e == Effect::CheckPlan);
        self.answer_with(Fact::PlanChecked { spec: PlanChange::Changed { plan: Box::new(plan(stories)) } });
    }

    pub(crate) fn record(&self, story: &str) -> &StoryRecord {
        self.run.record(&StoryId::from(story)).unwrap_or_else(|| panic!("{story} is not known"))
    }

    pub(crate) fn state(&self, story: &str) -> &StoryState {
        &self.record(story).state
    }

    pub(crate) fn ground(&self, story: &str) -> Option<Ground> {
        match self.state(story) {
            StoryState::Landed { ground, .. } => Some(*ground),
            _ => None,
        }
    }

    pub(crate) fn reason(&self, story: &str) -> &str {
        self.record(story).reason.as_deref().unwrap_or("")
    }

    /// How often something was asked for that begins with those words.
    pub(crate) fn count(&self, begins: &str) -> usize {
        self.log.iter().filter(|l| l.starts_with(begins)).count()
    }

    pub(crate) fn asked_for(&self, words: &str) -> bool {
        self.log.iter().any(|l| l == words)
    }
}

fn words(effect: &Effect, now: Timestamp) -> String {
    match effect {
        Effect::CheckPlan => "look at the spec".to_owned(),
        Effect::Begin { attempt, .. } => format!("begin {attempt}"),
        Effect::RunCheck { stage: CheckStage::Baseline, check, .. } => format!("base {check:?}"),
        Effect::RunCheck { check, fresh, .. } => format!("check {check:?}{}", if *fresh { " fresh" } else { "" }),
        Effect::Checkpoint { attempt } => format!("checkpoint {attempt}"),
        Effect::StartAgent { attempt, call, .. } => format!("agent {attempt} call {}", call.0),
        Effect::Review { attempt, round, agent, .. } => format!("review {attempt} round {round} by {agent}"),
        Effect::Inspect { attempt, .. } => format!("inspect {attempt}"),
        Effect::StopWork { attempt } => format!("stop {attempt}"),
        Effect::Land { attempt, ground, .. } => format!("land {attempt} {ground:?}"),
        Effect::AddFixTask { attempt, fix } => format!("mend {} in {attempt}", fix.of),
        Effect::Revert { attempt, .. } => format!("revert {attempt}"),
        Effect::Merge { attempt, onto: Onto::Branch, .. } => format!("merge {attempt}"),
        Effect::Merge { attempt, onto: Onto::Candidate(first), .. } => {
            format!("prepare {attempt} on {}", first.attempt)
        }
        Effect::StopCheck { attempt } => format!("stop the check of {attempt}"),
        Effect::Prepare { attempt, .. } => format!("make {attempt} ready to be merged"),
        Effect::Settle { attempt } => format!("settle {attempt}"),
        Effect::Sleep { until } => format!("sleep {} s", until.since(now).as_secs()),
        Effect::Finish { outcome } => format!("finish {outcome:?}"),
    }
}

/// The `reason` of an outcome that has one.
pub(crate) fn reason_of(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::NothingToDo { reason }
        | Outcome::Paused { reason }
        | Outcome::BoundReached { reason, .. }
        | Outcome::Environment { reason } => reason,
        Outcome::Complete | Outcome::Failed | Outcome::Stopped { .. } => "",
    }
}
