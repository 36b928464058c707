//! One attempt, phase by phase: base checks, checkpoint, agent, inspection, checks, repair, landing or revert.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::brief::failure_of_checks;
use super::story::StoryState;
use super::{Activity, Run};
use crate::effect::{Effect, Failure, Ground};
use crate::event::{CheckRef, CheckStage, Fact};
use crate::evidence::{AgentEnd, AgentReport, CheckResult, TreeReport};
use crate::fingerprint::Fingerprint;
use crate::ids::{AttemptId, CallNumber, CommitId, TreeId};
use crate::outcome::Outcome;
use crate::policy::OnExhausted;
use crate::verdict::{
    AfterAgent, AttemptFailure, Cause, CheckEvidence, Tell, Verdict, after_agent, before_checks, judge,
};

/// The same failure this often in a row ends the story: nothing suggests that the next attempt would end otherwise.
const SAME_FAILURE: u32 = 3;
/// Attempts in a row without any output that show that the client is broken, not the story.
const SILENT_ATTEMPTS: u32 = 2;

/// An attempt under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Which.
    pub id: AttemptId,
    /// How far it is.
    pub phase: Phase,
}

/// How far an attempt is. What a phase needs lives inside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Phase {
    /// Chosen; its begin is being noted.
    Beginning,
    /// Checks run on the base; the first of these is running.
    Baseline {
        /// The checks left.
        queue: VecDeque<CheckRef>,
    },
    /// The checkpoint is being taken.
    Checkpointing,
    /// The agent works.
    Agent {
        /// Which call.
        call: CallNumber,
    },
    /// The tree is looked at.
    Inspecting {
        /// After which call.
        call: CallNumber,
        /// What the agent came to.
        report: Box<AgentReport>,
    },
    /// Checks run; the first of the queue is running.
    Checking(Box<Checking>),
    /// The commit is being made.
    Landing {
        /// After which call.
        call: CallNumber,
        /// How it was proven.
        ground: Ground,
        /// The tree that was proven.
        tree: TreeId,
    },
    /// The lane is being put back.
    Reverting {
        /// What comes then.
        then: AfterRevert,
    },
}

/// Checks under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checking {
    call: CallNumber,
    report: Box<AgentReport>,
    tree: TreeReport,
    queue: VecDeque<CheckRef>,
    done: Vec<CheckEvidence>,
}

/// What comes after a lane was put back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum AfterRevert {
    /// The attempt counts, and failed.
    Charge {
        /// Why.
        failure: AttemptFailure,
        /// For comparison with the next.
        fingerprint: Fingerprint,
        /// No further attempt makes sense.
        last: bool,
        /// The agent said nothing at all.
        silent: bool,
    },
    /// The story waits for a person.
    Block {
        /// For what.
        reason: String,
    },
    /// The provider is waited for, or a person is asked.
    Wait(Cause),
    /// The run ends.
    End(Outcome),
    /// The story is tried again; nothing is charged.
    Again,
}

impl Attempt {
    pub(super) fn new(id: AttemptId) -> Self {
        Self { id, phase: Phase::Beginning }
    }

    /// An attempt that is only to be put back.
    pub(super) fn reverting(id: AttemptId) -> Self {
        Self { id, phase: Phase::Reverting { then: AfterRevert::Again } }
    }

    /// Programs run that can be ended: checks, the agent, a commit's hooks and its signing.
    pub(super) fn stoppable(&self) -> bool {
        matches!(self.phase, Phase::Baseline { .. } | Phase::Agent { .. } | Phase::Checking(_) | Phase::Landing { .. })
    }

    /// What follows once the lane of an interrupted attempt is put back: a verdict that was reached before holds.
    pub(super) fn after_interruption(self) -> AfterRevert {
        match self.phase {
            Phase::Reverting { then: then @ (AfterRevert::Charge { .. } | AfterRevert::Block { .. }) } => then,
            _ => AfterRevert::Again,
        }
    }

    pub(super) fn has_checkpoint(&self) -> bool {
        !matches!(self.phase, Phase::Beginning | Phase::Baseline { .. })
    }
}

impl Run {
    /// Takes in a fact about an attempt. One that is not under way, or in another phase, has no answer.
    pub(super) fn attempt_step(&mut self, fact: &Fact) -> Vec<Effect> {
        let Activity::Attempt(attempt) = &self.activity else { return Vec::new() };
        if fact.attempt() != Some(&attempt.id) {
            return Vec::new();
        }
        match (attempt.phase.clone(), fact) {
            (Phase::Beginning, Fact::AttemptStarted { .. }) => self.begun(),
            (
                Phase::Baseline { queue },
                Fact::CheckFinished { stage: CheckStage::Baseline, check, result, took, .. },
            ) if queue.front() == Some(check) => {
                self.know_time(*check, *took);
                self.baseline_checked(queue, *check, result)
            }
            (Phase::Checkpointing, Fact::CheckpointTaken { .. }) => self.checkpointed(),
            (Phase::Checkpointing, Fact::CheckpointFailed { why, .. }) => {
                let why = why.clone();
                self.abandon();
                self.finish(Outcome::Environment { reason: format!("no checkpoint could be taken: {why}") })
            }
            (Phase::Agent { call }, Fact::AgentEnded { call: ended, report, .. }) if call == *ended => {
                self.agent_ended(call, report)
            }
            (Phase::Inspecting { call, report }, Fact::TreeInspected { call: seen, report: tree, .. })
                if call == *seen =>
            {
                self.inspected(call, report, tree)
            }
            (
                Phase::Inspecting { .. } | Phase::Landing { .. } | Phase::Reverting { .. },
                Fact::RepositoryBroken { why, .. },
            ) => {
                let why = why.clone();
                self.leave_unclean();
                self.finish(Outcome::Paused { reason: format!("the repository was changed under the run: {why}") })
            }
            (
                Phase::Checking(checking),
                Fact::CheckFinished { stage: CheckStage::Call(call), check, result, took, .. },
            ) if checking.call == *call && checking.queue.front() == Some(check) => {
                self.know_time(*check, *took);
                self.checked(*checking, result)
            }
            (Phase::Landing { ground, .. }, Fact::Landed { commit, notes, .. }) => self.landed(commit, ground, notes),
            (Phase::Landing { call, tree, .. }, Fact::LandingRefused { by, output, .. }) => {
                let reason = refused(by, output);
                let failure = Failure { reason, output: output.clone(), at_baseline: false };
                self.checks_failed(call, vec![failure], &tree)
            }
            (Phase::Landing { .. }, Fact::LandingFailed { .. }) if self.stopping_now() => {
                self.revert("the run was stopped", AfterRevert::Again)
            }
            (Phase::Landing { .. }, Fact::LandingFailed { why, .. }) => {
                let outcome = Outcome::Environment { reason: format!("the story could not be committed: {why}") };
                self.revert(&format!("the story could not be committed: {why}"), AfterRevert::End(outcome))
            }
            (Phase::Reverting { then }, Fact::Reverted { kept, notes, .. }) => {
                self.reverted(then, kept.as_ref(), notes)
            }
            (Phase::Reverting { .. }, Fact::RevertFailed { why, .. }) => {
                let why = why.clone();
                self.leave_unclean();
                self.finish(Outcome::Paused {
                    reason: format!("the tree could not be put back, so nothing more starts in it: {why}"),
                })
            }
            _ => Vec::new(),
        }
    }

    fn phase(&mut self, phase: Phase) {
        if let Activity::Attempt(attempt) = &mut self.activity {
            attempt.phase = phase;
        }
    }

    fn attempt_id(&self) -> Option<AttemptId> {
        self.attempt().map(|a| a.id.clone())
    }

    /// Leaves the attempt without a verdict; the story stays open.
    fn abandon(&mut self) {
        if let Some(id) = self.attempt_id() {
            self.set_pending(&id.story);
        }
    }

    /// Leaves the attempt's work in the lane. Nothing starts there before it has been put back.
    fn leave_unclean(&mut self) {
        self.unclean = self.attempt_id();
        self.take_guidance_back();
        self.abandon();
    }

    fn know_time(&mut self, check: CheckRef, took: std::time::Duration) {
        if let CheckRef::Gate(gate) = check {
            self.gate_times.insert(gate, took);
        }
    }

    // Base checks and checkpoint.

    fn begun(&mut self) -> Vec<Effect> {
        let Some(id) = self.attempt_id() else { return Vec::new() };
        if self.stopping_now() {
            self.abandon();
            return self.go_on();
        }
        if self.baseline.story.as_ref() != Some(&id.story) {
            self.baseline.story = Some(id.story.clone());
            self.baseline.checks.clear();
        }
        let mut queue: VecDeque<CheckRef> =
            self.gates_fastest_first().filter(|g| !self.baseline.gates.contains_key(g)).map(CheckRef::Gate).collect();
        let checks = self.plan.story(&id.story).map_or(0, |s| s.checks.len());
        queue.extend((0..checks).filter(|c| !self.baseline.checks.contains_key(c)).map(CheckRef::Story));
        self.next_baseline_check(queue)
    }

    fn next_baseline_check(&mut self, queue: VecDeque<CheckRef>) -> Vec<Effect> {
        let Some(attempt) = self.attempt_id() else { return Vec::new() };
        if let Some(check) = queue.front().copied() {
            self.phase(Phase::Baseline { queue });
            vec![Effect::RunCheck { attempt, stage: CheckStage::Baseline, check, fresh: false }]
        } else {
            self.phase(Phase::Checkpointing);
            vec![Effect::Checkpoint { attempt }]
        }
    }

    fn baseline_checked(
        &mut self,
        mut queue: VecDeque<CheckRef>,
        check: CheckRef,
        result: &CheckResult,
    ) -> Vec<Effect> {
        if self.stopping_now() || *result == CheckResult::Stopped {
            self.abandon();
            return self.go_on();
        }
        match check {
            CheckRef::Gate(gate) => {
                if let CheckResult::CouldNotRun { why } = result {
                    let label = self.label(check);
                    let reason = format!(
                        "the gate `{label}` could not run: {why}; install what it needs, or name other gates with --gate"
                    );
                    self.abandon();
                    return self.finish(Outcome::Environment { reason });
                }
                self.baseline.gates.insert(gate, result.clone());
            }
            CheckRef::Story(own) => {
                self.baseline.checks.insert(own, result.clone());
            }
        }
        queue.pop_front();
        self.next_baseline_check(queue)
    }

    fn checkpointed(&mut self) -> Vec<Effect> {
        if self.stopping_now() {
            return self.revert("the run was stopped", AfterRevert::Again);
        }
        let Some(id) = self.attempt_id() else { return Vec::new() };
        let brief = self.first_brief(&id.story);
        self.start_agent(id, CallNumber(0), brief)
    }

    // Agent and inspection.

    fn start_agent(&mut self, attempt: AttemptId, call: CallNumber, brief: crate::effect::Brief) -> Vec<Effect> {
        self.calls += 1;
        self.phase(Phase::Agent { call });
        vec![Effect::StartAgent { attempt, call, brief: Box::new(brief) }]
    }

    fn agent_ended(&mut self, call: CallNumber, report: &AgentReport) -> Vec<Effect> {
        let Some(attempt) = self.attempt_id() else { return Vec::new() };
        self.usage = self.usage.plus(report.usage);
        if let Some(record) = self.stories.get_mut(&attempt.story) {
            record.usage = record.usage.plus(report.usage);
            record.agent_time += report.took;
        }
        for learning in &report.learnings {
            self.learn(learning);
        }
        self.phase(Phase::Inspecting { call, report: Box::new(report.clone()) });
        vec![Effect::Inspect { attempt, call }]
    }

    fn inspected(&mut self, call: CallNumber, report: Box<AgentReport>, tree: &TreeReport) -> Vec<Effect> {
        if self.stopping_now() {
            return self.revert("the run was stopped", AfterRevert::Again);
        }
        if matches!(report.end, AgentEnd::TimedOut { .. })
            && self.time_left().is_some_and(|left| left.is_zero())
            && let Some(outcome) = self.bound_reached()
        {
            // The agent's time was cut to what the run had left, which says nothing of the story.
            return self.revert("the run's time is over", AfterRevert::End(outcome));
        }
        let verdict = after_agent(&report);
        if !matches!(verdict, AfterAgent::Inconclusive(_)) {
            self.trouble.provider_is_well();
        }
        match verdict {
            AfterAgent::Inconclusive(Cause::Stopped) => self.revert("the agent was stopped", AfterRevert::Again),
            AfterAgent::Inconclusive(cause) => self.revert(&reason_of(&cause), AfterRevert::Wait(cause)),
            AfterAgent::Blocked { reason } => self.revert(&format!("blocked: {reason}"), AfterRevert::Block { reason }),
            AfterAgent::Failed(failure) => self.fail(failure, &report.end, &tree.tree),
            AfterAgent::RunChecks => self.start_checks(call, report, tree),
        }
    }

    // Checks, repair, landing.

    fn start_checks(&mut self, call: CallNumber, report: Box<AgentReport>, tree: &TreeReport) -> Vec<Effect> {
        let Some(attempt) = self.attempt_id() else { return Vec::new() };
        let own = self.plan.story(&attempt.story).map_or(0, |s| s.checks.len());
        let mut queue: VecDeque<CheckRef> = self.gates_fastest_first().map(CheckRef::Gate).collect();
        queue.extend((0..own).map(CheckRef::Story));
        if let Some(failure) = before_checks(&report, tree, !queue.is_empty()) {
            return self.fail(failure, &report.end, &tree.tree);
        }
        self.next_check(Checking { call, report, tree: tree.clone(), queue, done: Vec::new() })
    }

    fn next_check(&mut self, checking: Checking) -> Vec<Effect> {
        let Some(attempt) = self.attempt_id() else { return Vec::new() };
        let Some(check) = checking.queue.front().copied() else { return self.judge(&checking) };
        // On an unchanged tree the known results are those of the base; a check may look further than the tree.
        let fresh = checking.tree.files_changed == 0;
        let stage = CheckStage::Call(checking.call);
        self.phase(Phase::Checking(Box::new(checking)));
        vec![Effect::RunCheck { attempt, stage, check, fresh }]
    }

    fn checked(&mut self, mut checking: Checking, result: &CheckResult) -> Vec<Effect> {
        if self.stopping_now() || *result == CheckResult::Stopped {
            return self.revert("the run was stopped", AfterRevert::Again);
        }
        let Some(check) = checking.queue.pop_front() else { return Vec::new() };
        let baseline = match check {
            CheckRef::Gate(gate) => self.baseline.gates.get(&gate),
            CheckRef::Story(own) => self.baseline.checks.get(&own),
        };
        let label = self.label(check);
        checking.done.push(CheckEvidence { check, label, result: result.clone(), baseline: baseline.cloned() });
        if matches!(check, CheckRef::Gate(_)) && !result.passed() {
            // The first red gate says enough; the story's own checks are run all the same, they say what is missing.
            checking.queue.retain(|left| matches!(left, CheckRef::Story(_)));
        }
        self.next_check(checking)
    }

    fn judge(&mut self, checking: &Checking) -> Vec<Effect> {
        let Some(attempt) = self.attempt_id() else { return Vec::new() };
        let needs_no_change = self.plan.story(&attempt.story).is_some_and(|s| s.needs_no_change);
        let tree = checking.tree.tree.clone();
        match judge(&checking.report, &checking.tree, &checking.done, needs_no_change) {
            Verdict::Pass(ground) => {
                self.phase(Phase::Landing { call: checking.call, ground, tree });
                vec![Effect::Land { attempt, ground }]
            }
            Verdict::ChecksFail(failures) => self.checks_failed(checking.call, failures, &tree),
            Verdict::Fail(failure) => self.fail(failure, &checking.report.end, &tree),
            Verdict::SetUp { message } => {
                let outcome = Outcome::Environment { reason: message.clone() };
                self.revert(&message, AfterRevert::End(outcome))
            }
        }
    }

    fn checks_failed(&mut self, call: CallNumber, failures: Vec<Failure>, tree: &TreeId) -> Vec<Effect> {
        let Some(attempt) = self.attempt_id() else { return Vec::new() };
        if self.stopping_now() {
            return self.revert("the run was stopped", AfterRevert::Again);
        }
        if call.0 >= self.policy.max_repairs {
            return self.fail(failure_of_checks(failures), &AgentEnd::Finished, tree);
        }
        if let Some(outcome) = self.bound_reached() {
            let reason = format!("{}, and no repair may start", failure_of_checks(failures).reason);
            return self.revert(&reason, AfterRevert::End(outcome));
        }
        let brief = self.repair_brief(failures);
        self.start_agent(attempt, CallNumber(call.0 + 1), brief)
    }

    fn landed(&mut self, commit: &CommitId, ground: Ground, notes: &[String]) -> Vec<Effect> {
        let Some(attempt) = self.attempt_id() else { return Vec::new() };
        if let Some(record) = self.stories.get_mut(&attempt.story) {
            record.state = StoryState::Landed { commit: commit.clone(), ground };
            record.reason = None;
            record.notes = notes.to_vec();
        }
        self.carried.clear();
        self.trouble.no_output = 0;
        self.baseline = super::Baseline::default();
        self.go_on()
    }

    // Failing and going back.

    fn fail(&mut self, failure: AttemptFailure, end: &AgentEnd, tree: &TreeId) -> Vec<Effect> {
        let mut text = failure.reason.clone();
        if let Tell::Failures(failures) = &failure.tell {
            for f in failures {
                text.push('\n');
                text.push_str(&f.output);
            }
        }
        let told_before = self.attempt().and_then(|a| self.stories.get(&a.id.story)).map(|r| r.tell.clone());
        let last = matches!(end, AgentEnd::PermissionDenied { .. })
            || (failure.tell == Tell::Shorten && told_before == Some(Tell::Shorten));
        let fingerprint = Fingerprint::new(&text, Some(tree.clone()));
        let silent = matches!(end, AgentEnd::NoOutput);
        let reason = failure.reason.clone();
        self.revert(&reason, AfterRevert::Charge { failure, fingerprint, last, silent })
    }

    pub(super) fn revert(&mut self, reason: &str, then: AfterRevert) -> Vec<Effect> {
        let Some(attempt) = self.attempt_id() else { return Vec::new() };
        self.phase(Phase::Reverting { then });
        vec![Effect::Revert { attempt, reason: reason.to_owned() }]
    }

    fn reverted(&mut self, then: AfterRevert, kept: Option<&String>, notes: &[String]) -> Vec<Effect> {
        let Some(attempt) = self.attempt_id() else { return Vec::new() };
        self.unclean = None;
        self.set_pending(&attempt.story);
        if let Some(record) = self.stories.get_mut(&attempt.story) {
            record.notes = notes.to_vec();
            if let Some(kept) = kept {
                record.kept.push((attempt.number, kept.clone()));
            }
        }
        match then {
            AfterRevert::Charge { .. } | AfterRevert::Block { .. } => self.carried.clear(),
            AfterRevert::Again | AfterRevert::Wait(_) | AfterRevert::End(_) => self.take_guidance_back(),
        }
        match then {
            AfterRevert::Again => self.go_on(),
            AfterRevert::End(outcome) => self.finish(outcome),
            AfterRevert::Wait(cause) => {
                if let Some(record) = self.stories.get_mut(&attempt.story) {
                    record.reason = Some(reason_of(&cause));
                }
                self.wait_for(&cause)
            }
            AfterRevert::Block { reason } => {
                if let Some(record) = self.stories.get_mut(&attempt.story) {
                    record.state = StoryState::Blocked;
                    record.reason = Some(reason);
                }
                self.trouble.no_output = 0;
                self.go_on()
            }
            AfterRevert::Charge { failure, fingerprint, last, silent } => {
                self.charge(&attempt, failure, fingerprint, last, silent)
            }
        }
    }

    fn charge(
        &mut self,
        attempt: &AttemptId,
        failure: AttemptFailure,
        fingerprint: Fingerprint,
        last: bool,
        silent: bool,
    ) -> Vec<Effect> {
        self.trouble.no_output = if silent { self.trouble.no_output + 1 } else { 0 };
        let max_retries = self.policy.max_retries;
        let Some(record) = self.stories.get_mut(&attempt.story) else { return Vec::new() };
        record.charged += 1;
        let times = match &record.streak {
            Some((same, times)) if *same == fingerprint => times + 1,
            _ => 1,
        };
        record.streak = Some((fingerprint, times));
        record.tell = failure.tell;
        record.failure = Some(failure.reason.clone());
        let stuck = times >= SAME_FAILURE && record.charged <= max_retries;
        let exhausted = last || stuck || record.charged > max_retries;
        record.reason = Some(if stuck {
            format!(
                "{} (the same failure {times} times in a row: no progress, so it is not tried again)",
                failure.reason
            )
        } else {
            failure.reason
        });
        if exhausted {
            record.state = StoryState::Failed;
        }
        if self.trouble.no_output >= SILENT_ATTEMPTS {
            return self.finish(Outcome::Paused {
                reason: format!(
                    "the agent produced no output {SILENT_ATTEMPTS} times in a row: the client is broken, not the story; \
                     start it by hand to see why"
                ),
            });
        }
        match (exhausted, self.policy.on_exhausted) {
            (false, _) | (true, OnExhausted::Skip) => self.go_on(),
            (true, OnExhausted::Stop) => match self.asked_to_end() {
                Some(outcome) => self.finish(outcome),
                None => self.finish(Outcome::Failed),
            },
            (true, OnExhausted::Pause) => self.finish(Outcome::Paused {
                reason: format!("{} has used up its attempts; resume tries it afresh", attempt.story),
            }),
        }
    }

    // Gates.

    fn gates_fastest_first(&self) -> impl Iterator<Item = usize> + use<> {
        let mut gates: Vec<usize> = (0..self.policy.gates.len()).collect();
        // Those whose time is not known yet keep their place behind the known ones.
        gates.sort_by_key(|gate| self.gate_times.get(gate).copied().unwrap_or(std::time::Duration::MAX));
        gates.into_iter()
    }

    /// How a check of the attempt under way is called.
    pub fn label(&self, check: CheckRef) -> String {
        match check {
            CheckRef::Gate(gate) => self.policy.gates.get(gate).map(|g| g.name.clone()),
            CheckRef::Story(own) => self
                .attempt()
                .and_then(|a| self.plan.story(&a.id.story))
                .and_then(|s| s.checks.get(own))
                .map(|c| c.label().to_owned()),
        }
        .unwrap_or_default()
    }
}

/// Why there is no commit, with the last thing that was said about it.
fn refused(by: &str, output: &str) -> String {
    let last = output.lines().rev().map(str::trim).find(|line| !line.is_empty());
    last.map_or_else(|| by.to_owned(), |last| format!("{by}: {last}"))
}

fn reason_of(cause: &Cause) -> String {
    match cause {
        Cause::Limit { message, .. } => format!("the provider's limit was reached: {message}"),
        Cause::Provider { message } | Cause::Environment { message } => message.clone(),
        Cause::Stopped => "the run was stopped".to_owned(),
    }
}
