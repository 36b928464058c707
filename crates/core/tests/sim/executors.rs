//! The engine's part of the world: what is done in a lane, each refusing what must never be asked.

use std::collections::BTreeSet;
use std::time::Duration;

use ralphloop_core::effect::Brief;
use ralphloop_core::event::{CheckRef, CheckStage, Fact};
use ralphloop_core::evidence::{AgentEnd, CheckResult, Claim, TreeReport};
use ralphloop_core::graph::touched_files;
use ralphloop_core::ids::{AgentId, AttemptId, CallNumber, StoryId};
use ralphloop_core::plan::{Plan, WorkState};
use ralphloop_core::run::{Run, StoryState};
use ralphloop_core::units::Timestamp;

use super::agent::{Course, Dirt, Work};
use super::lane::{Process, Slot};
use super::planted::Planted;
use super::rng::Rng;
use super::scenario::Faults;
use super::world::{Breach, CallKey, Seen, World};

/// What came of starting something: it runs for so many seconds, or it is answered at once.
pub(crate) enum Started {
    Runs { seconds: u64, first: Option<Fact> },
    Answered(Fact),
    Ignored,
}

/// Before the agent.
impl World {
    pub(crate) fn check_plan(&self, known: &Plan) -> Result<Fact, Breach> {
        self.quiet(0, "the spec is looked at between stories")?;
        if !self.checkout_is_clean() {
            return Err("the spec is looked at between stories, and the user's checkout is dirty".to_owned());
        }
        Ok(Fact::PlanChecked { spec: self.read_spec(known) })
    }

    /// Whether an attempt of that story may be begun; `known` is the spec as the run read it last.
    pub(crate) fn may_begin(&self, attempt: &AttemptId, known: &Plan) -> Result<(), Breach> {
        let id = &attempt.story;
        if self.is_done(id) {
            return Err(format!("{attempt}: the story is done already"));
        }
        if known.story(id).is_none_or(|s| s.state == WorkState::Done) {
            return Err(format!("{attempt}: the spec no longer asks for the story"));
        }
        let Some(story) = self.plan.story(id) else {
            return Err(format!("{attempt}: the story is no longer in the spec"));
        };
        if let Some(dep) = story.deps.iter().find(|dep| !self.is_done(dep)) {
            return Err(format!("{attempt}: it depends on {dep}, which is not done"));
        }
        Ok(())
    }

    /// A story that says that it touches files of those under way begins only if no other could. Where agents are away or
    /// stories rest, who could is not looked into.
    pub(crate) fn keeps_apart(&self, attempt: &AttemptId, run: &Run) -> Result<(), Breach> {
        let policy = run.policy();
        let is_plain = policy.retries.is_empty() && policy.orders.is_empty() && policy.budget.stories.is_none();
        if !is_plain || run.chain().len() > 1 || run.chain().iter().any(|agent| run.away(agent).is_some()) {
            return Ok(());
        }
        let files = |id: &StoryId| self.story(id).map(touched_files).unwrap_or_default();
        let others = run.attempts().filter(|other| other.id != *attempt).map(|other| &other.id.story);
        let busy: BTreeSet<&str> = others.flat_map(files).collect();
        if files(&attempt.story).is_disjoint(&busy) {
            return Ok(());
        }
        let passed = |dep: &StoryId| run.record(dep).is_none_or(|record| record.state.passed());
        let apart = run.records().find(|(story, record)| {
            let waits = record.selected && record.state == StoryState::Pending && story.deps.iter().all(passed);
            waits && files(&story.id).is_disjoint(&busy)
        });
        match apart {
            Some((story, _)) => Err(format!("{attempt} begins beside others in its files, and {} could", story.id)),
            None => Ok(()),
        }
    }

    pub(crate) fn begin(
        &mut self,
        rng: &mut Rng,
        faults: &Faults,
        attempt: AttemptId,
        slot: Slot,
    ) -> Result<Fact, Breach> {
        let lives = |a: &AttemptId| self.checkpoints.contains(a) && !self.commits.iter().any(|c| c.attempt == *a);
        for (other, lane) in self.lanes() {
            let Some(resident) = lane.resident.as_ref().filter(|a| **a != attempt && lives(a)) else { continue };
            if other == slot || resident.story == attempt.story {
                return Err(format!("{attempt} begins in lane {slot} while {resident} lives in lane {other}"));
            }
        }
        if self.lane(slot).resident.as_ref() == Some(&attempt) {
            return Ok(Fact::AttemptStarted { attempt, notes: Vec::new() });
        }
        self.quiet(slot, "an attempt begins")?;
        if self.lane(slot).is_dirty() {
            return Err(format!("{attempt} begins in lane {slot}, which is dirty"));
        }
        if slot != 0 && rng.chance(faults.lane) {
            return Ok(Fact::LaneFailed { attempt, why: "no space left on device".to_owned() });
        }
        let (head, under) = (self.head(), self.heads[self.head()]);
        let lane = self.lane(slot);
        lane.resident = Some(attempt.clone());
        lane.base = Some(head);
        lane.under = under;
        lane.own = None;
        lane.carries.clear();
        lane.dirt = None;
        lane.cancelled = None;
        lane.refusal = None;
        Ok(Fact::AttemptStarted { attempt, notes: Vec::new() })
    }

    pub(crate) fn checkpoint(
        &mut self,
        rng: &mut Rng,
        faults: &Faults,
        attempt: AttemptId,
        slot: Slot,
    ) -> Result<Fact, Breach> {
        self.quiet(slot, "a checkpoint is taken")?;
        self.at_home(&attempt, slot)?;
        if self.lane(slot).is_dirty() {
            return Err(format!("{attempt}: the checkpoint is taken on a dirty lane"));
        }
        if let Some(refusal) = self.lane(slot).refusal.clone() {
            return Ok(refusal);
        }
        if !self.checkpoints.contains(&attempt) && rng.chance(faults.git) {
            let refusal = Fact::CheckpointFailed { attempt, why: "index.lock exists".to_owned() };
            self.lane(slot).refusal = Some(refusal.clone());
            return Ok(refusal);
        }
        self.checkpoints.insert(attempt.clone());
        Ok(Fact::CheckpointTaken { attempt, notes: Vec::new() })
    }

    /// The lane must be the attempt's.
    pub(super) fn at_home(&mut self, attempt: &AttemptId, slot: Slot) -> Result<(), Breach> {
        match &self.lane(slot).resident {
            Some(resident) if resident == attempt => Ok(()),
            other => Err(format!("{attempt} is at work in lane {slot}, which is that of {other:?}")),
        }
    }
}

/// Checks.
impl World {
    pub(crate) fn start_check(
        &mut self,
        rng: &mut Rng,
        (attempt, slot): (AttemptId, Slot),
        stage: CheckStage,
        check: CheckRef,
        fresh: bool,
    ) -> Result<Started, Breach> {
        self.at_home(&attempt, slot)?;
        if let Some(Process::Check { attempt: a, stage: s, check: c }) = &self.lane(slot).process
            && (a, *s, *c) == (&attempt, stage, check)
        {
            return Ok(Started::Ignored);
        }
        self.quiet(slot, "a check is started")?;
        let took = Duration::from_secs(1);
        if self.lane(slot).cancelled.as_ref() == Some(&attempt) {
            let result = CheckResult::Stopped;
            return Ok(Started::Answered(Fact::CheckFinished { attempt, stage, check, result, cached: false, took }));
        }
        let key = (self.lane(slot).tree(), check, attempt.story.clone());
        let exact = self.cache.get(&key).cloned();
        let known = match self.planted {
            Some(Planted::StaleCache) => {
                self.cache.iter().find(|((_, c, s), _)| (*c, s) == (check, &attempt.story)).map(|(_, r)| r.clone())
            }
            _ => exact.clone(),
        };
        if let Some(result) = known.filter(|_| !fresh) {
            if let Some(exact) = exact {
                self.know_result(&attempt, slot, stage, check, &exact);
            }
            return Ok(Started::Answered(Fact::CheckFinished { attempt, stage, check, result, cached: true, took }));
        }
        let first = Some(Fact::CheckStarted { attempt: attempt.clone(), stage, check });
        self.lane(slot).process = Some(Process::Check { attempt, stage, check });
        Ok(Started::Runs { seconds: 1 + rng.below(30), first })
    }

    fn know_result(
        &mut self,
        attempt: &AttemptId,
        slot: Slot,
        stage: CheckStage,
        check: CheckRef,
        result: &CheckResult,
    ) {
        let (base, tree) = (self.lane(slot).base, self.lane(slot).tree());
        let call = match stage {
            CheckStage::Call(call) => Some((attempt.clone(), call)),
            CheckStage::Merged(_) => self.last_call(attempt),
            CheckStage::Baseline => {
                if let Some(base) = base {
                    self.baselines.insert((attempt.story.clone(), base, check), result.clone());
                }
                None
            }
        };
        if let Some(call) = call {
            self.results.insert((call, check, tree), result.clone());
        }
    }

    /// The last call of the attempt's agent that has ended.
    pub(super) fn last_call(&self, attempt: &AttemptId) -> Option<CallKey> {
        let calls = (attempt.clone(), CallNumber(0))..=(attempt.clone(), CallNumber(u32::MAX));
        self.ends.range(calls).next_back().map(|(key, _)| key.clone())
    }

    fn outcome_of_check(
        &mut self,
        rng: &mut Rng,
        faults: &Faults,
        slot: Slot,
        story: &StoryId,
        check: CheckRef,
    ) -> CheckResult {
        let tree = self.lane(slot).tree();
        let dirty = self.lane(slot).work() != 0;
        let version = self.lane(slot).version();
        let work = self.works[version];
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
        } else if rng.chance(faults.full_disk) {
            CheckResult::NoRoom { why: "only 1 MiB were free on the disk where /tmp is".to_owned() }
        } else {
            CheckResult::Failed { why: "exit code 1".to_owned(), output: format!("output of tree {tree}") }
        }
    }
}

/// The agent, and what runs.
impl World {
    /// Asks the check that runs for the attempt to end; true if one runs.
    pub(crate) fn stop_check(&mut self, attempt: &AttemptId, slot: Slot) -> bool {
        let runs = self.lane(slot).process.as_ref();
        runs.is_some_and(|p| matches!(p, Process::Check { attempt: a, .. } if a == attempt))
    }

    /// Asks what runs for the attempt to end; true if something runs.
    pub(crate) fn stop_work(&mut self, attempt: &AttemptId, slot: Slot) -> bool {
        let lane = self.lane(slot);
        lane.cancelled = Some(attempt.clone());
        lane.process.as_ref().is_some_and(|p| p.attempt() == attempt)
    }

    pub(crate) fn start_agent(
        &mut self,
        rng: &mut Rng,
        faults: &Faults,
        now: Timestamp,
        (attempt, call, slot): (AttemptId, CallNumber, Slot),
        agent: AgentId,
        brief: &Brief,
    ) -> Result<Started, Breach> {
        if !self.started.insert((attempt.clone(), call)) {
            return Ok(Started::Ignored);
        }
        self.quiet(slot, "an agent is started")?;
        self.at_home(&attempt, slot)?;
        if self.lane(slot).cancelled.as_ref() == Some(&attempt) {
            let mut report = super::scenario::finished(Claim::None { near_miss: None });
            report.end = AgentEnd::Stopped;
            return Ok(Started::Answered(Fact::AgentEnded {
                attempt,
                call,
                agent: Some(agent),
                report: Box::new(report),
            }));
        }
        if !self.checkpoints.contains(&attempt) {
            return Err(format!("{attempt}: the agent is started without a checkpoint"));
        }
        match &self.lane(slot).dirt {
            Some(dirt) if dirt.any() && (call.0 == 0 || dirt.owner != attempt) => {
                return Err(format!("{attempt}: the agent is started on the leavings of {}", dirt.owner));
            }
            _ => {}
        }
        if self.lane(slot).base.is_none() {
            return Err(format!("{attempt}: the agent is started on what has not landed"));
        }
        if self.commit_of(&attempt.story).is_some() {
            return Err(format!("{attempt}: the story has landed already"));
        }
        let before = self.lane(slot).dirt.clone().unwrap_or_else(|| Dirt::new(attempt.clone()));
        if before.markers != brief.conflicts {
            let (marked, told) = (&before.markers, &brief.conflicts);
            return Err(format!("{attempt}: conflicts are marked in {marked:?}, and the agent is told of {told:?}"));
        }
        self.told.insert((attempt.clone(), call), brief.conflicts.clone());
        self.lane(slot).refusal = None;
        let course = Box::new(Course::new(self, rng, faults, before, (&agent, now)));
        let seconds = course.takes;
        if rng.chance(500) {
            let work = self.new_work(Work::default());
            self.lane(slot).dirt = Some(Dirt { work, ..course.dirt.clone() });
        }
        let first = Some(Fact::AgentStarted { attempt: attempt.clone(), call, agent: Some(agent.clone()) });
        self.lane(slot).process = Some(Process::Agent { attempt, call, agent, course });
        Ok(Started::Runs { seconds, first })
    }

    /// What runs in the lane comes to its end, by itself or because it was asked to.
    pub(crate) fn end_process(&mut self, rng: &mut Rng, faults: &Faults, slot: Slot, stopped: bool) -> Option<Fact> {
        match self.lane(slot).process.take()? {
            Process::Agent { attempt, call, agent, course } => {
                let Course { mut report, dirt, .. } = *course;
                self.lane(slot).dirt = Some(dirt);
                if stopped {
                    report.end = AgentEnd::Stopped;
                    report.claim = Claim::None { near_miss: None };
                }
                self.ends.insert((attempt.clone(), call), report.clone());
                Some(Fact::AgentEnded { attempt, call, agent: Some(agent), report: Box::new(report) })
            }
            Process::Review { attempt, round, agent, report } => {
                Some(self.end_review(slot, (attempt, round, agent), report, stopped))
            }
            Process::Check { attempt, stage, check } => {
                let result = if stopped {
                    CheckResult::Stopped
                } else {
                    let result = self.outcome_of_check(rng, faults, slot, &attempt.story, check);
                    self.know_result(&attempt, slot, stage, check, &result);
                    let tree = self.lane(slot).tree();
                    self.cache.insert((tree, check, attempt.story.clone()), result.clone());
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
        (attempt, call, slot): (AttemptId, CallNumber, Slot),
        resolves: &[String],
    ) -> Result<Fact, Breach> {
        self.quiet(slot, "the tree is looked at")?;
        self.at_home(&attempt, slot)?;
        if self.told.get(&(attempt.clone(), call)).is_some_and(|told| told != resolves) {
            return Err(format!("{attempt}: the tree is looked at as if the call was to resolve {resolves:?}"));
        }
        if rng.chance(faults.git) {
            self.broken = true;
        }
        if self.broken {
            return Ok(Fact::RepositoryBroken { attempt, why: "the branch is gone".to_owned() });
        }
        if let Some(fact) = self.trespass(rng, faults, &attempt, slot) {
            return Ok(fact);
        }
        // Boxes and stories that are not the attempt's are put right.
        if let Some(dirt) = &mut self.lane(slot).dirt {
            dirt.ticks.retain(|story| *story == attempt.story);
            dirt.removed = None;
            dirt.no_checks = false;
        }
        let report = self.look(&attempt, slot);
        let Some(base) = self.lane(slot).base else {
            return Err(format!("{attempt}: its agent worked on what has not landed"));
        };
        let (changed, ticked) = (report.files_changed != 0, report.all_boxes_ticked);
        self.seen.insert((attempt.clone(), call), Seen { base, changed, ticked });
        Ok(Fact::TreeInspected { attempt, call, report })
    }

    /// The lane's tree against what it stands on.
    pub(super) fn look(&mut self, attempt: &AttemptId, slot: Slot) -> TreeReport {
        let had_open_boxes = self.has_open_boxes(&attempt.story);
        let lane = self.lane(slot);
        let of_spec = |f: fn(&Dirt) -> Vec<String>| lane.dirt.as_ref().map(f).unwrap_or_default();
        TreeReport {
            tree: lane.tree(),
            files_changed: u32::from(lane.work() != 0),
            shown: Vec::new(),
            had_open_boxes,
            all_boxes_ticked: lane.dirt.as_ref().is_some_and(|d| d.ticks.contains(&attempt.story)),
            notes: Vec::new(),
            unresolved: of_spec(|dirt| dirt.markers.clone()),
            strayed: of_spec(|dirt| if dirt.strayed { vec!["src/other.rs".to_owned()] } else { Vec::new() }),
        }
    }

    /// What somebody moved outside the lane, if a lane of ours sees it.
    pub(super) fn trespass(&mut self, rng: &mut Rng, faults: &Faults, attempt: &AttemptId, slot: Slot) -> Option<Fact> {
        self.moved |= slot != 0 && rng.chance(faults.trespass);
        let why = "the branch is at c9 and was at c1".to_owned();
        (self.moved && slot != 0).then(|| Fact::Trespassed { attempt: attempt.clone(), why })
    }

    pub(super) fn has_open_boxes(&self, story: &StoryId) -> bool {
        self.story(story).is_some_and(|s| !s.tasks.is_empty())
    }

    pub(crate) fn revert(
        &mut self,
        rng: &mut Rng,
        faults: &Faults,
        attempt: AttemptId,
        slot: Slot,
    ) -> Result<Fact, Breach> {
        self.quiet(slot, "the lane is put back")?;
        if self.commits.iter().any(|c| c.attempt == attempt) {
            return Err(format!("{attempt}: a landing is put back"));
        }
        if let Some(resident) = self.lane(slot).resident.as_ref().filter(|a| **a != attempt) {
            return Err(format!("{attempt}: lane {slot} is put back, which is that of {resident}"));
        }
        if self.broken {
            return Ok(Fact::RepositoryBroken { attempt, why: "the branch is still gone".to_owned() });
        }
        if rng.chance(faults.git / 2) {
            return Ok(Fact::RevertFailed { attempt, why: "permission denied".to_owned() });
        }
        if self.lane(slot).is_dirty() {
            if !self.checkpoints.contains(&attempt) {
                return Err(format!("{attempt}: the lane is dirty, and there is no checkpoint to go back to"));
            }
            self.put_back.insert(attempt.clone());
            if self.planted != Some(Planted::LosesTheWork) {
                self.kept.insert(attempt.clone());
            }
        }
        let lane = self.lane(slot);
        lane.dirt = None;
        lane.resident = None;
        self.checkpoints.remove(&attempt);
        let kept =
            self.kept.contains(&attempt).then(|| format!("refs/ralphloop/r/{}/{}", attempt.story, attempt.number));
        Ok(Fact::Reverted { attempt, kept, notes: Vec::new() })
    }
}
