//! The world outside the core: the repository with its lane, the spec, the provider, the processes. What stands here
//! outlives a crash, but for the processes. The engine's executors are here too, each refusing what must never be asked.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ralphloop_core::effect::Ground;
use ralphloop_core::event::{CheckRef, CheckStage, Fact, PlanChange};
use ralphloop_core::evidence::{AgentEnd, AgentReport, CheckResult, Claim, TreeReport};
use ralphloop_core::ids::{AttemptId, CallNumber, CommitId, StoryId, TreeId};
use ralphloop_core::plan::{Plan, Story, WorkState};
use ralphloop_core::units::Timestamp;

use super::agent::{Course, Dirt, Work};
use super::planted::Planted;
use super::rng::Rng;
use super::scenario::{Faults, Scenario, story};

/// What must never happen, in words.
pub(crate) type Breach = String;

pub(crate) struct Commit {
    pub(crate) attempt: AttemptId,
    pub(crate) id: CommitId,
    pub(crate) ground: Ground,
}

/// What runs in the lane.
pub(crate) enum Process {
    Agent { attempt: AttemptId, call: CallNumber, course: Box<Course> },
    Check { attempt: AttemptId, stage: CheckStage, check: CheckRef },
}

impl Process {
    pub(crate) fn attempt(&self) -> &AttemptId {
        match self {
            Self::Agent { attempt, .. } | Self::Check { attempt, .. } => attempt,
        }
    }
}

/// What came of starting something: it runs for so many seconds, or it is answered at once.
pub(crate) enum Started {
    Runs { seconds: u64, first: Option<Fact> },
    Answered(Fact),
    Ignored,
}

type CallKey = (AttemptId, CallNumber);

pub(crate) struct World {
    /// The spec, without what the attempt in the lane did to it.
    pub(crate) plan: Plan,
    /// The checks of each story when the run first saw it.
    pinned: BTreeMap<StoryId, usize>,
    gates: usize,
    taken_out: Vec<Story>,
    unreadable: bool,
    pub(crate) commits: Vec<Commit>,
    works: Vec<Work>,
    pub(crate) last_work: usize,
    base_work: usize,
    base_checks: BTreeMap<StoryId, [bool; 2]>,
    cannot_run: [bool; 2],
    pub(crate) dirt: Option<Dirt>,
    pub(crate) checkpoints: BTreeSet<AttemptId>,
    pub(crate) process: Option<Process>,
    cancelled: Option<AttemptId>,
    /// How the last landing was refused; asked again about the same work, it is refused again.
    refusal: Option<Fact>,
    started: BTreeSet<CallKey>,
    /// How each call really ended.
    ends: BTreeMap<CallKey, AgentReport>,
    /// What each check really said of what a call left, and of which tree.
    results: BTreeMap<(CallKey, CheckRef), (TreeId, CheckResult)>,
    baselines: BTreeMap<(StoryId, usize, CheckRef), CheckResult>,
    cache: BTreeMap<(TreeId, CheckRef, StoryId), CheckResult>,
    pub(crate) limited_until: Option<Timestamp>,
    pub(crate) overloaded: u64,
    broken: bool,
    pub(crate) planted: Option<Planted>,
}

impl World {
    pub(crate) fn new(scenario: &Scenario, rng: &mut Rng, planted: Option<Planted>) -> Self {
        let base = Work { gates: [rng.chance(850), rng.chance(850)], checks: [false; 2], breaks_gates: false };
        let plan = scenario.plan.clone();
        let base_checks = plan.stories.iter().map(|s| (s.id.clone(), [rng.chance(300), rng.chance(300)])).collect();
        let mut world = Self {
            plan,
            pinned: BTreeMap::new(),
            gates: scenario.policy.gates.len(),
            taken_out: Vec::new(),
            unreadable: false,
            commits: Vec::new(),
            works: vec![base],
            last_work: 0,
            base_work: 0,
            base_checks,
            cannot_run: [rng.chance(15), rng.chance(15)],
            dirt: None,
            checkpoints: BTreeSet::new(),
            process: None,
            cancelled: None,
            refusal: None,
            started: BTreeSet::new(),
            ends: BTreeMap::new(),
            results: BTreeMap::new(),
            baselines: BTreeMap::new(),
            cache: BTreeMap::new(),
            limited_until: None,
            overloaded: 0,
            broken: false,
            planted,
        };
        world.pin();
        world
    }

    /// The commands that the run reads now, having been taken up, are the ones that hold.
    pub(crate) fn pin_anew(&mut self) {
        self.pinned.extend(self.plan.stories.iter().map(|s| (s.id.clone(), s.checks.len())));
    }

    fn pin(&mut self) {
        for story in &self.plan.stories {
            self.pinned.entry(story.id.clone()).or_insert(story.checks.len());
        }
    }

    pub(crate) fn new_work(&mut self, work: Work) -> usize {
        self.works.push(work);
        self.last_work = self.works.len() - 1;
        self.last_work
    }

    fn work(&self) -> usize {
        self.dirt.as_ref().map_or(0, |d| d.work)
    }

    fn tree(&self) -> TreeId {
        TreeId(format!("{}.{}", self.commits.len(), self.work()))
    }

    pub(crate) fn commit_of(&self, story: &StoryId) -> Option<&Commit> {
        self.commits.iter().find(|c| c.attempt.story == *story)
    }

    pub(crate) fn lane_is_dirty(&self) -> bool {
        self.dirt.as_ref().is_some_and(Dirt::any)
    }

    /// Whether a story counts as done, whatever the core thinks.
    pub(crate) fn is_done(&self, id: &StoryId) -> bool {
        let mut known = self.plan.stories.iter().chain(&self.taken_out);
        self.commit_of(id).is_some() || known.any(|s| s.id == *id && s.state == WorkState::Done)
    }

    /// The spec as somebody who reads it now sees it.
    pub(crate) fn read_spec(&self, known: &Plan) -> PlanChange {
        if self.unreadable {
            return PlanChange::Unreadable { message: "line 3: not a number".to_owned() };
        }
        let mut plan = self.plan.clone();
        if let Some(dirt) = &self.dirt {
            plan.stories.iter_mut().filter(|s| dirt.ticks.contains(&s.id)).for_each(|s| s.state = WorkState::Done);
            if dirt.no_checks {
                plan.stories.iter_mut().for_each(|s| s.checks.clear());
            }
            plan.stories.retain(|s| Some(&s.id) != dirt.removed.as_ref());
        }
        if plan == *known { PlanChange::Same } else { PlanChange::Changed { plan: Box::new(plan) } }
    }

    /// The commits that carry the run's trailers.
    pub(crate) fn landed(&self) -> Vec<(StoryId, CommitId)> {
        self.commits.iter().map(|c| (c.attempt.story.clone(), c.id.clone())).collect()
    }

    fn quiet(&self, what: &str) -> Result<(), Breach> {
        match &self.process {
            Some(process) => Err(format!("{what} while something runs for {}", process.attempt())),
            None => Ok(()),
        }
    }
}

/// Troubles that come from outside, and people.
impl World {
    /// The process of the tool is gone. Its agent works on for a moment before the supervisor ends it.
    pub(crate) fn crash(&mut self, rng: &mut Rng) {
        if let Some(Process::Agent { course, .. }) = self.process.take()
            && rng.chance(700)
        {
            self.dirt = Some(course.dirt);
        }
        self.cancelled = None;
    }

    /// A person mends what the run asked for, and perhaps edits the spec.
    pub(crate) fn person_acts(&mut self, rng: &mut Rng, faults: &Faults) {
        self.unreadable = false;
        self.broken = false;
        self.overloaded = 0;
        if rng.chance(500) {
            self.limited_until = None;
            self.cannot_run = [false; 2];
        }
        self.edit_spec(rng, faults);
    }

    pub(crate) fn edit_spec(&mut self, rng: &mut Rng, faults: &Faults) {
        if !rng.chance(faults.edit) || self.plan.stories.is_empty() || self.lane_is_dirty() {
            return;
        }
        let any = rng.index(self.plan.stories.len());
        match rng.below(7) {
            0 => self.plan.stories[any].state = WorkState::Done,
            1 => match self.taken_out.pop() {
                Some(story) => self.plan.stories.push(story),
                None => self.taken_out.push(self.plan.stories.remove(any)),
            },
            2 | 3 => {
                let mut new = story(&format!("N{}", self.pinned.len()));
                if rng.chance(400) {
                    new.deps.push(self.plan.stories[any].id.clone());
                }
                self.base_checks.insert(new.id.clone(), [false; 2]);
                self.plan.stories.push(new);
            }
            4 => self.plan.stories[any].checks.clear(),
            5 => {
                let other = rng.index(self.plan.stories.len());
                let dep = self.plan.stories[other].id.clone();
                self.plan.stories[any].deps.push(dep);
            }
            _ => self.unreadable = true,
        }
        self.pin();
    }
}

/// The executors.
impl World {
    pub(crate) fn check_plan(&self, known: &Plan) -> Result<Fact, Breach> {
        self.quiet("the spec is looked at between stories")?;
        if self.lane_is_dirty() {
            return Err("the spec is looked at between stories, and the lane is dirty".to_owned());
        }
        Ok(Fact::PlanChecked { spec: self.read_spec(known) })
    }

    pub(crate) fn checkpoint(&mut self, rng: &mut Rng, faults: &Faults, attempt: AttemptId) -> Result<Fact, Breach> {
        self.quiet("a checkpoint is taken")?;
        if self.lane_is_dirty() {
            return Err(format!("{attempt}: the checkpoint is taken on a dirty lane"));
        }
        if !self.checkpoints.contains(&attempt) && rng.chance(faults.git) {
            return Ok(Fact::CheckpointFailed { attempt, why: "index.lock exists".to_owned() });
        }
        self.checkpoints.insert(attempt.clone());
        Ok(Fact::CheckpointTaken { attempt, notes: Vec::new() })
    }

    pub(crate) fn start_check(
        &mut self,
        rng: &mut Rng,
        attempt: AttemptId,
        stage: CheckStage,
        check: CheckRef,
        fresh: bool,
    ) -> Result<Started, Breach> {
        if let Some(Process::Check { attempt: a, stage: s, check: c }) = &self.process
            && (a, *s, *c) == (&attempt, stage, check)
        {
            return Ok(Started::Ignored);
        }
        self.quiet("a check is started")?;
        let took = Duration::from_secs(1);
        if self.cancelled.as_ref() == Some(&attempt) {
            let result = CheckResult::Stopped;
            return Ok(Started::Answered(Fact::CheckFinished { attempt, stage, check, result, cached: false, took }));
        }
        let key = (self.tree(), check, attempt.story.clone());
        let exact = self.cache.get(&key).cloned();
        let known = match self.planted {
            Some(Planted::StaleCache) => {
                self.cache.iter().find(|((_, c, s), _)| (*c, s) == (check, &attempt.story)).map(|(_, r)| r.clone())
            }
            _ => exact.clone(),
        };
        if let Some(result) = known.filter(|_| !fresh) {
            if let Some(exact) = exact {
                self.know_result(&attempt, stage, check, &exact);
            }
            return Ok(Started::Answered(Fact::CheckFinished { attempt, stage, check, result, cached: true, took }));
        }
        let first = Some(Fact::CheckStarted { attempt: attempt.clone(), stage, check });
        self.process = Some(Process::Check { attempt, stage, check });
        Ok(Started::Runs { seconds: 1 + rng.below(30), first })
    }

    fn know_result(&mut self, attempt: &AttemptId, stage: CheckStage, check: CheckRef, result: &CheckResult) {
        match stage {
            CheckStage::Call(call) => {
                self.results.insert(((attempt.clone(), call), check), (self.tree(), result.clone()));
            }
            CheckStage::Merged(_) => {}
            CheckStage::Baseline => {
                let key = (attempt.story.clone(), self.commits.len(), check);
                self.baselines.insert(key, result.clone());
            }
        }
    }

    fn outcome_of_check(&self, rng: &mut Rng, faults: &Faults, story: &StoryId, check: CheckRef) -> CheckResult {
        let dirty = self.work() != 0;
        let work = self.works[if dirty { self.work() } else { self.base_work }];
        let holds = match check {
            CheckRef::Gate(gate) if self.cannot_run[gate] || (dirty && work.breaks_gates) => {
                return CheckResult::CouldNotRun { why: "command not found".to_owned() };
            }
            CheckRef::Gate(_) if rng.chance(faults.flap) => rng.chance(500),
            CheckRef::Gate(gate) => work.gates[gate],
            CheckRef::Story(own) if dirty => work.checks[own],
            CheckRef::Story(own) => self.base_checks.get(story).is_some_and(|holds| holds[own]),
        };
        if holds {
            CheckResult::Passed
        } else {
            CheckResult::Failed { why: "exit code 1".to_owned(), output: format!("output of tree {}", self.tree()) }
        }
    }

    /// Asks what runs for the attempt to end; true if something runs.
    pub(crate) fn stop_work(&mut self, attempt: &AttemptId) -> bool {
        self.cancelled = Some(attempt.clone());
        self.process.as_ref().is_some_and(|p| p.attempt() == attempt)
    }

    pub(crate) fn start_agent(
        &mut self,
        rng: &mut Rng,
        faults: &Faults,
        now: Timestamp,
        attempt: AttemptId,
        call: CallNumber,
    ) -> Result<Started, Breach> {
        if !self.started.insert((attempt.clone(), call)) {
            return Ok(Started::Ignored);
        }
        self.quiet("an agent is started")?;
        if self.cancelled.as_ref() == Some(&attempt) {
            let mut report = super::scenario::finished(Claim::None { near_miss: None });
            report.end = AgentEnd::Stopped;
            return Ok(Started::Answered(Fact::AgentEnded { attempt, call, report: Box::new(report) }));
        }
        if !self.checkpoints.contains(&attempt) {
            return Err(format!("{attempt}: the agent is started without a checkpoint"));
        }
        match &self.dirt {
            Some(dirt) if dirt.any() && (call.0 == 0 || dirt.owner != attempt) => {
                return Err(format!("{attempt}: the agent is started on the leavings of {}", dirt.owner));
            }
            _ => {}
        }
        if self.is_done(&attempt.story) {
            return Err(format!("{attempt}: the story is done already"));
        }
        let Some(story) = self.plan.story(&attempt.story) else {
            return Err(format!("{attempt}: the story is no longer in the spec"));
        };
        if let Some(dep) = story.deps.iter().find(|dep| !self.is_done(dep)) {
            return Err(format!("{attempt}: it depends on {dep}, which is not done"));
        }
        self.refusal = None;
        let course = Box::new(Course::new(self, rng, faults, &attempt, now));
        let seconds = course.takes;
        if rng.chance(500) {
            self.dirt = Some(Dirt { work: self.new_work(Work::default()), ..course.dirt.clone() });
        }
        let first = Some(Fact::AgentStarted { attempt: attempt.clone(), call });
        self.process = Some(Process::Agent { attempt, call, course });
        Ok(Started::Runs { seconds, first })
    }

    /// What runs comes to its end, by itself or because it was asked to.
    pub(crate) fn end_process(&mut self, rng: &mut Rng, faults: &Faults, stopped: bool) -> Option<Fact> {
        match self.process.take()? {
            Process::Agent { attempt, call, course } => {
                let Course { mut report, dirt, .. } = *course;
                self.dirt = Some(dirt);
                if stopped {
                    report.end = AgentEnd::Stopped;
                    report.claim = Claim::None { near_miss: None };
                }
                self.ends.insert((attempt.clone(), call), report.clone());
                Some(Fact::AgentEnded { attempt, call, report: Box::new(report) })
            }
            Process::Check { attempt, stage, check } => {
                let result = if stopped {
                    CheckResult::Stopped
                } else {
                    let result = self.outcome_of_check(rng, faults, &attempt.story, check);
                    self.know_result(&attempt, stage, check, &result);
                    self.cache.insert((self.tree(), check, attempt.story.clone()), result.clone());
                    result
                };
                let took = Duration::from_secs(1 + rng.below(30));
                Some(Fact::CheckFinished { attempt, stage, check, result, cached: false, took })
            }
        }
    }

    pub(crate) fn inspect(
        &mut self,
        rng: &mut Rng,
        faults: &Faults,
        attempt: AttemptId,
        call: CallNumber,
    ) -> Result<Fact, Breach> {
        self.quiet("the tree is looked at")?;
        if rng.chance(faults.git) {
            self.broken = true;
        }
        if self.broken {
            return Ok(Fact::RepositoryBroken { attempt, why: "the branch is gone".to_owned() });
        }
        // Boxes and stories that are not the attempt's are put right.
        if let Some(dirt) = &mut self.dirt {
            dirt.ticks.retain(|story| *story == attempt.story);
            dirt.removed = None;
            dirt.no_checks = false;
        }
        let report = TreeReport {
            tree: self.tree(),
            files_changed: u32::from(self.work() != 0),
            had_open_boxes: self.has_open_boxes(&attempt.story),
            all_boxes_ticked: self.ticked(&attempt.story),
            notes: Vec::new(),
            unresolved: Vec::new(),
            strayed: Vec::new(),
        };
        Ok(Fact::TreeInspected { attempt, call, report })
    }

    fn has_open_boxes(&self, story: &StoryId) -> bool {
        self.plan.story(story).is_some_and(|s| !s.tasks.is_empty())
    }

    fn ticked(&self, story: &StoryId) -> bool {
        self.dirt.as_ref().is_some_and(|d| d.ticks.contains(story))
    }

    pub(crate) fn land(
        &mut self,
        rng: &mut Rng,
        faults: &Faults,
        attempt: AttemptId,
        ground: Ground,
    ) -> Result<Fact, Breach> {
        self.quiet("a story lands")?;
        let there = self.commit_of(&attempt.story).map(|c| (c.attempt.clone(), c.id.clone()));
        if let Some((by, commit)) = there {
            if by == attempt && self.planted != Some(Planted::LandsTwice) {
                return Ok(Fact::Landed { attempt, commit, notes: Vec::new() });
            }
            return Err(format!("{attempt}: the story lands a second time; {by} landed it before"));
        }
        self.proven(&attempt, ground)?;
        if self.broken {
            return Ok(Fact::RepositoryBroken { attempt, why: "the branch is gone".to_owned() });
        }
        if let Some(refusal) = self.refusal.clone().filter(|r| r.attempt() == Some(&attempt)) {
            return Ok(refusal);
        }
        if rng.chance(faults.git) {
            let refusal = match rng.below(4) {
                0 => Fact::LandingFailed { attempt, why: "cannot sign".to_owned() },
                1 => {
                    self.broken = true;
                    Fact::RepositoryBroken { attempt, why: "HEAD has moved".to_owned() }
                }
                _ => Fact::LandingRefused { attempt, by: "pre-commit".to_owned(), output: "no".to_owned() },
            };
            self.refusal = Some(refusal.clone());
            return Ok(refusal);
        }
        if self.work() != 0 {
            self.base_work = self.work();
        }
        self.dirt = None;
        let commit = CommitId(format!("c{}", self.commits.len()));
        self.commits.push(Commit { attempt: attempt.clone(), id: commit.clone(), ground });
        if let Some(story) = self.plan.stories.iter_mut().find(|s| s.id == attempt.story) {
            story.state = WorkState::Done;
        }
        if rng.chance(500) {
            self.checkpoints.remove(&attempt);
        }
        Ok(Fact::Landed { attempt, commit, notes: Vec::new() })
    }

    /// Whether the attempt may land on that ground: its last agent finished, and every gate and every check of the
    /// story passed on this very tree, after that call.
    fn proven(&self, attempt: &AttemptId, ground: Ground) -> Result<(), Breach> {
        let not = |why: &str| Err(format!("{attempt} lands as {ground:?} without ground: {why}"));
        if self.dirt.as_ref().is_some_and(|d| d.any() && d.owner != *attempt) {
            return not("the lane holds another attempt's work");
        }
        let calls = (attempt.clone(), CallNumber(0))..=(attempt.clone(), CallNumber(u32::MAX));
        let Some((key, report)) = self.ends.range(calls).next_back() else { return not("no agent ended") };
        if report.end != AgentEnd::Finished {
            return not("its agent did not finish");
        }
        let silent = match report.claim {
            Claim::Complete => false,
            Claim::None { .. } => true,
            Claim::Failed { .. } | Claim::Blocked { .. } => return not("its agent does not claim so"),
        };
        let own = self.pinned.get(&attempt.story).copied().unwrap_or(0);
        let checks: Vec<CheckRef> = (0..self.gates).map(CheckRef::Gate).chain((0..own).map(CheckRef::Story)).collect();
        for check in &checks {
            match self.results.get(&(key.clone(), *check)) {
                Some((tree, CheckResult::Passed)) if *tree == self.tree() => {}
                Some((tree, CheckResult::Passed)) => return not(&format!("{check:?} passed on another tree, {tree}")),
                Some((_, result)) => return not(&format!("{check:?} came to {result:?}")),
                None => return not(&format!("{check:?} was not run")),
            }
        }
        let changed = self.work() != 0;
        let failed_before = || {
            let base = self.commits.len();
            checks.iter().any(|c| {
                self.baselines.get(&(attempt.story.clone(), base, *c)).is_some_and(|result| !result.passed())
                    || self.baselines.iter().any(|((_, at, check), result)| {
                        *at == base && check == c && matches!(c, CheckRef::Gate(_)) && !result.passed()
                    })
            })
        };
        let needs_no_change = || self.plan.story(&attempt.story).is_some_and(|s| s.needs_no_change);
        let right = match (changed, silent, checks.is_empty()) {
            (false, false, _) if failed_before() || needs_no_change() => Ground::NoChange,
            (true, true, false) if self.has_open_boxes(&attempt.story) && self.ticked(&attempt.story) => {
                Ground::NoSignal
            }
            (true, false, true) => Ground::Unverified,
            (true, false, false) => Ground::Verified,
            _ => return not("nothing changed, or nothing was claimed"),
        };
        if right == ground { Ok(()) } else { not(&format!("it is {right:?}")) }
    }

    pub(crate) fn revert(&mut self, rng: &mut Rng, faults: &Faults, attempt: AttemptId) -> Result<Fact, Breach> {
        self.quiet("the lane is put back")?;
        if self.commits.iter().any(|c| c.attempt == attempt) {
            return Err(format!("{attempt}: a landing is put back"));
        }
        if self.broken {
            return Ok(Fact::RepositoryBroken { attempt, why: "the branch is still gone".to_owned() });
        }
        if rng.chance(faults.git / 2) {
            return Ok(Fact::RevertFailed { attempt, why: "permission denied".to_owned() });
        }
        let dirty = self.lane_is_dirty();
        if dirty && !self.checkpoints.contains(&attempt) {
            return Err(format!("{attempt}: the lane is dirty, and there is no checkpoint to go back to"));
        }
        self.dirt = None;
        self.checkpoints.remove(&attempt);
        let kept = dirty.then(|| format!("refs/ralphloop/r/{}/{}", attempt.story, attempt.number));
        Ok(Fact::Reverted { attempt, kept, notes: Vec::new() })
    }

    pub(crate) fn settle(&mut self, attempt: AttemptId) -> Result<Fact, Breach> {
        self.quiet("a landing is settled")?;
        if !self.commits.iter().any(|c| c.attempt == attempt) {
            return Err(format!("{attempt}: there is no landing to settle"));
        }
        self.checkpoints.remove(&attempt);
        Ok(Fact::Settled { attempt })
    }
}
