//! One attempt, phase by phase: base checks, checkpoint, agent, inspection, checks, repair. What comes after proof is in
//! `landing`, what comes after failure in `failing`.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::ahead::Approach;
use super::brief::failure_of_checks;
use super::landing::{HALTED, moved};
use super::relaying::Relaying;
use super::reviewing::Reviewing;
use super::steer::STOPPED;
use super::{Baseline, Run};
use crate::effect::{Brief, Effect, Failure, Ground};
use crate::event::{CheckRef, CheckStage, Fact};
use crate::evidence::{AgentEnd, AgentReport, CheckResult, TreeReport};
use crate::fingerprint::Fingerprint;
use crate::ids::{AgentId, AttemptId, CallNumber, LaneId, StoryId, TreeId};
use crate::outcome::Outcome;
use crate::policy::FailureKind;
use crate::verdict::{
    AfterAgent, AttemptFailure, Cause, CheckEvidence, Verdict, after_agent, before_checks, cause_in_words, judge,
};

/// An attempt under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Which.
    pub id: AttemptId,
    /// Where.
    pub lane: LaneId,
    /// How far it is.
    pub phase: Phase,
    /// The agent that was called last.
    pub agent: Option<AgentId>,
    /// Guidance that its prompts have carried. It comes back if the attempt comes to nothing.
    pub(super) carried: Vec<String>,
    /// What is known of its base, which others may not share.
    pub(super) base: Baseline,
    /// Calls that repaired.
    pub(super) repairs: u32,
    /// How often its work was merged.
    pub(super) merges: u32,
    /// How often that was with what had landed meanwhile, and not with what was about to land.
    pub(super) brought: u32,
    /// Stories that have landed since it began.
    pub(super) landed_meanwhile: Vec<StoryId>,
    /// How often a reviewer was asked.
    pub(super) reviews: u32,
    /// How often it has sent the work back.
    pub(super) sent_back: u32,
    /// How far its relay is, if several roles work on it.
    pub(super) relaying: Option<Relaying>,
    /// The files in conflict that the agent is to resolve.
    pub(super) resolves: Vec<String>,
    /// Where it is on its way to the branch.
    pub(super) approach: Approach,
    /// The waits for a provider that had begun when its agent was called last.
    pub(super) waits: u32,
    /// Its story was skipped: it is put back as soon as what runs for it has ended, whatever that comes to.
    pub(super) dropped: bool,
}

/// How far an attempt is. What a phase needs lives inside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Phase {
    /// Chosen; its lane is being made ready.
    Beginning,
    /// Checks run on the base; the first of these is running.
    Baseline {
        /// The checks left.
        queue: VecDeque<CheckRef>,
    },
    /// The checkpoint is being taken.
    Checkpointing,
    /// The agent is to be called, once the provider need not be waited for any more.
    Held {
        /// Which call.
        call: CallNumber,
        /// What it will be told.
        brief: Box<Brief>,
    },
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
    /// Proven, and a reviewer looks at it.
    Reviewing(Box<Reviewing>),
    /// Proven, and waits for its turn to land.
    Queued(Box<Proof>),
    /// Its work is brought onto the branch, or onto what is about to land.
    Merging(Box<Proof>),
    /// The commit is being made.
    Landing(Box<Proof>),
    /// The lane is being put back.
    Reverting {
        /// What comes then.
        then: AfterRevert,
    },
}

/// Checks under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checking {
    pub(super) call: CallNumber,
    pub(super) stage: CheckStage,
    pub(super) report: Box<AgentReport>,
    pub(super) tree: TreeReport,
    pub(super) queue: VecDeque<CheckRef>,
    pub(super) done: Vec<CheckEvidence>,
    /// What was proven before it was merged.
    pub(super) merged: Option<Box<Proof>>,
}

impl Checking {
    /// The check that is running.
    pub fn current(&self) -> Option<CheckRef> {
        self.queue.front().copied()
    }
}

/// An attempt's work that was proven.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// After which call.
    pub call: CallNumber,
    /// How.
    pub ground: Ground,
    /// On which tree.
    pub tree: TreeId,
    /// On which trees besides: what it was merged with came to nothing, or stands on the branch now.
    pub(super) also: Vec<TreeId>,
    /// Its place in the queue.
    pub(super) turn: u32,
    pub(super) report: Box<AgentReport>,
}

/// What comes after a lane was put back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum AfterRevert {
    /// The attempt counts, and failed.
    Charge {
        /// Why.
        failure: AttemptFailure,
        /// Of which kind it is.
        kind: FailureKind,
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
    /// No task that mends another can be added.
    Unmended {
        /// Why.
        reason: String,
    },
    /// The work could not be merged with what landed meanwhile.
    Unmerged {
        /// Why.
        reason: String,
    },
    /// Its agent cannot go on, for a reason that is not the story's.
    Wait(Cause),
    /// The run ends.
    End(Outcome),
    /// The story is tried again; nothing is charged.
    Again,
}

impl Attempt {
    pub(super) fn new(id: AttemptId, lane: LaneId, base: Baseline) -> Self {
        Self {
            id,
            lane,
            phase: Phase::Beginning,
            agent: None,
            carried: Vec::new(),
            base,
            repairs: 0,
            merges: 0,
            reviews: 0,
            sent_back: 0,
            brought: 0,
            landed_meanwhile: Vec::new(),
            relaying: None,
            resolves: Vec::new(),
            approach: Approach::default(),
            waits: 0,
            dropped: false,
        }
    }

    /// An attempt that is only to be put back.
    pub(super) fn reverting(id: AttemptId, lane: LaneId) -> Self {
        Self { phase: Phase::Reverting { then: AfterRevert::Again }, ..Self::new(id, lane, Baseline::default()) }
    }

    /// Programs run that can be ended: checks, the agent, what makes files anew, a commit's hooks and its signing.
    pub(super) fn stoppable(&self) -> bool {
        matches!(
            self.phase,
            Phase::Baseline { .. }
                | Phase::Agent { .. }
                | Phase::Checking(_)
                | Phase::Reviewing(_)
                | Phase::Merging(_)
                | Phase::Landing(_)
        )
    }

    /// What follows once the lane of an interrupted attempt is put back: a verdict that was reached before holds.
    pub(super) fn after_interruption(&self) -> AfterRevert {
        match &self.phase {
            Phase::Reverting {
                then:
                    then @ (AfterRevert::Charge { .. }
                    | AfterRevert::Block { .. }
                    | AfterRevert::Unmerged { .. }
                    | AfterRevert::Unmended { .. }),
            } => then.clone(),
            _ => AfterRevert::Again,
        }
    }

    pub(super) fn has_checkpoint(&self) -> bool {
        !matches!(self.phase, Phase::Beginning | Phase::Baseline { .. })
    }

    /// An agent will be called for it, unless something ends it.
    pub(super) fn will_call(&self) -> bool {
        matches!(self.phase, Phase::Beginning | Phase::Baseline { .. } | Phase::Checkpointing | Phase::Held { .. })
    }

    /// Its agent is to be called once the provider need not be waited for, and a place is free.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.phase, Phase::Held { .. })
    }

    /// Nothing is done for it: it waits for the provider or a place, or for its turn to land.
    pub(super) fn rests(&self) -> bool {
        matches!(self.phase, Phase::Held { .. } | Phase::Queued(_))
    }
}

impl Run {
    /// Takes in a fact about an attempt. One that is not under way, or in another phase, has no answer.
    pub(super) fn attempt_step(&mut self, fact: &Fact) -> Vec<Effect> {
        let Some(attempt) = fact.attempt().and_then(|id| self.attempt(id)) else { return Vec::new() };
        let id = attempt.id.clone();
        match (attempt.phase.clone(), fact) {
            (Phase::Beginning, Fact::AttemptStarted { .. }) => self.begun(&id),
            (Phase::Beginning, Fact::Trespassed { why, .. }) => {
                let known = self.is_alarmed();
                self.abandon(&id);
                self.halt(moved(why), known)
            }
            (Phase::Beginning, Fact::LaneFailed { why, .. }) => {
                self.abandon(&id);
                self.end(Outcome::Environment { reason: format!("there is no working tree for {id}: {why}") })
            }
            (
                Phase::Baseline { queue },
                Fact::CheckFinished { stage: CheckStage::Baseline, check, result, took, .. },
            ) if queue.front() == Some(check) => {
                self.know_time(*check, *took);
                self.baseline_checked(&id, queue, *check, result)
            }
            (Phase::Checkpointing, Fact::CheckpointTaken { .. }) => self.checkpointed(&id),
            (Phase::Checkpointing, Fact::CheckpointFailed { why, .. }) => {
                let why = why.clone();
                self.abandon(&id);
                self.end(Outcome::Environment { reason: format!("no checkpoint could be taken: {why}") })
            }
            (Phase::Agent { call }, Fact::AgentStarted { call: started, agent, .. }) if call == *started => {
                self.know_agent(&id, agent.as_ref());
                Vec::new()
            }
            // Versions before held no call.
            (Phase::Held { call, brief }, Fact::AgentStarted { call: started, agent, .. }) if call == *started => {
                let agent = agent.clone().or_else(|| self.chain().first().cloned());
                if let Some(agent) = agent {
                    // It is under way already.
                    drop(self.call_agent(&id, call, agent, brief));
                }
                Vec::new()
            }
            (Phase::Agent { call }, Fact::AgentEnded { call: ended, agent, report, .. }) if call == *ended => {
                self.know_agent(&id, agent.as_ref());
                self.agent_ended(&id, call, report)
            }
            (Phase::Inspecting { call, report }, Fact::TreeInspected { call: seen, report: tree, .. })
                if call == *seen =>
            {
                self.note_files(&id.story, &tree.shown);
                self.inspected(&id, call, report, tree)
            }
            (Phase::Inspecting { .. }, Fact::Trespassed { why, .. }) => self.trespassed(&id, why),
            (
                Phase::Inspecting { .. } | Phase::Merging(_) | Phase::Landing(_) | Phase::Reverting { .. },
                Fact::RepositoryBroken { why, .. },
            ) => {
                let known = self.is_alarmed();
                self.leave_unclean(&id);
                let reason = format!("the repository was changed under the run: {why}");
                self.halt(Outcome::Paused { reason }, known)
            }
            (Phase::Checking(checking), Fact::CheckFinished { stage, check, result, took, .. })
                if checking.stage == *stage && checking.queue.front() == Some(check) =>
            {
                self.know_time(*check, *took);
                self.checked(&id, *checking, result)
            }
            (Phase::Reviewing(reviewing), fact) => self.reviewing_step(&id, *reviewing, fact),
            (Phase::Merging(proof), fact) => self.merging_step(&id, *proof, fact),
            (Phase::Landing(proof), fact) => self.landing_step(&id, &proof, fact),
            (Phase::Reverting { then }, Fact::Reverted { kept, notes, .. }) => {
                self.reverted(&id, then, kept.as_ref(), notes)
            }
            (Phase::Reverting { .. }, Fact::RevertFailed { why, .. }) => {
                let known = self.is_alarmed();
                self.leave_unclean(&id);
                let reason = format!("the tree could not be put back, so nothing more starts in it: {why}");
                self.end_alarmed(Outcome::Paused { reason }, known)
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn phase(&mut self, id: &AttemptId, phase: Phase) {
        if let Some(attempt) = self.attempts.get_mut(&id.story) {
            attempt.phase = phase;
        }
    }

    /// Ends what runs for an attempt; one that nothing runs for, and that waits, is put back.
    pub(super) fn stop_attempt(&mut self, id: &AttemptId) -> Vec<Effect> {
        match self.attempt(id) {
            Some(attempt) if attempt.stoppable() => vec![Effect::StopWork { attempt: id.clone() }],
            Some(attempt) if attempt.rests() => {
                let why = self.cut_short(id).unwrap_or(STOPPED);
                self.revert(id, why, AfterRevert::Again)
            }
            _ => Vec::new(),
        }
    }

    fn know_time(&mut self, check: CheckRef, took: std::time::Duration) {
        if let CheckRef::Gate(gate) = check {
            self.gate_times.insert(gate, took);
        }
    }

    // Base checks and checkpoint.

    fn begun(&mut self, id: &AttemptId) -> Vec<Effect> {
        if self.begins_nothing() || self.cut_short(id).is_some() {
            self.abandon(id);
            return self.go_on();
        }
        if self.mends(id).is_some() {
            // Nothing is worked on, so that nothing is to be compared.
            return self.next_baseline_check(id, VecDeque::new());
        }
        let landings = self.baseline.landings;
        let lands = self.attempts.values().any(|attempt| matches!(attempt.phase, Phase::Landing(_)));
        let gates: Vec<usize> = self.gates_fastest_first().collect();
        let Some(attempt) = self.attempts.get_mut(&id.story) else { return Vec::new() };
        if attempt.base.landings != landings || lands {
            // Something landed while the lane was made ready, or may have, so nobody knows which base it has.
            attempt.base = Baseline::of_nobody_else();
        }
        let base = &attempt.base;
        let mut queue: VecDeque<CheckRef> =
            gates.into_iter().filter(|g| !base.gates.contains_key(g)).map(CheckRef::Gate).collect();
        let checks = self.plan.story(&id.story).map_or(0, |s| s.checks.len());
        let known = base.checks.get(&id.story);
        let is_known = |check: &usize| known.is_some_and(|known| known.contains_key(check));
        queue.extend((0..checks).filter(|check| !is_known(check)).map(CheckRef::Story));
        self.next_baseline_check(id, queue)
    }

    fn next_baseline_check(&mut self, id: &AttemptId, queue: VecDeque<CheckRef>) -> Vec<Effect> {
        let attempt = id.clone();
        if let Some(check) = queue.front().copied() {
            self.phase(id, Phase::Baseline { queue });
            vec![Effect::RunCheck { attempt, stage: CheckStage::Baseline, check, fresh: false }]
        } else {
            self.phase(id, Phase::Checkpointing);
            vec![Effect::Checkpoint { attempt }]
        }
    }

    fn baseline_checked(
        &mut self,
        id: &AttemptId,
        mut queue: VecDeque<CheckRef>,
        check: CheckRef,
        result: &CheckResult,
    ) -> Vec<Effect> {
        if self.begins_nothing() || self.cut_short(id).is_some() || *result == CheckResult::Stopped {
            self.abandon(id);
            return self.go_on();
        }
        if let CheckResult::NoRoom { why } = result {
            let reason = format!("`{}` failed for want of room: {why}", self.label(id, check));
            self.abandon(id);
            return self.end(Outcome::Environment { reason });
        }
        match check {
            CheckRef::Gate(gate) => {
                if let CheckResult::CouldNotRun { why } = result {
                    let label = self.label(id, check);
                    let reason = format!(
                        "the gate `{label}` could not run: {why}; install what it needs, or name other gates with --gate"
                    );
                    self.abandon(id);
                    return self.end(Outcome::Environment { reason });
                }
                self.know_base(id, |base| drop(base.gates.insert(gate, result.clone())));
            }
            CheckRef::Story(own) => {
                self.know_base(id, |base| {
                    base.checks.entry(id.story.clone()).or_default().insert(own, result.clone());
                });
            }
        }
        queue.pop_front();
        self.next_baseline_check(id, queue)
    }

    /// Keeps what was found on the attempt's base, for others too if they begin on the same one.
    fn know_base(&mut self, id: &AttemptId, know: impl Fn(&mut Baseline)) {
        let Some(attempt) = self.attempts.get_mut(&id.story) else { return };
        know(&mut attempt.base);
        if attempt.base.landings == self.baseline.landings {
            know(&mut self.baseline);
        }
    }

    fn checkpointed(&mut self, id: &AttemptId) -> Vec<Effect> {
        if let Some(why) = self.cut_short(id).or(self.halted.then_some(HALTED)) {
            return self.revert(id, why, AfterRevert::Again);
        }
        if self.mends(id).is_some() {
            return self.ready_to_mend(id);
        }
        let brief = self.first_brief(id);
        let brief = self.first_leg(id, brief);
        self.start_agent(id, CallNumber(0), brief)
    }

    // Agent and inspection.

    /// Calls an agent, or holds the call while none can be called.
    pub(super) fn start_agent(&mut self, id: &AttemptId, call: CallNumber, brief: Brief) -> Vec<Effect> {
        let mut effects = self.lose_candidate(id);
        // A clock that was set back makes no wait longer.
        self.heed_the_clock();
        self.phase(id, Phase::Held { call, brief: Box::new(brief) });
        effects.extend(self.call_the_held());
        if self.attempt(id).is_some_and(|attempt| self.waits_for_agents(attempt)) {
            effects.extend(self.hold_on());
        }
        effects
    }

    pub(super) fn call_agent(&mut self, id: &AttemptId, call: CallNumber, agent: AgentId, brief: Box<Brief>) -> Effect {
        self.calls += 1;
        let waits = self.waits_of(&agent);
        if let Some(attempt) = self.attempts.get_mut(&id.story) {
            attempt.resolves.clone_from(&brief.conflicts);
            attempt.waits = waits;
        }
        self.know_agent(id, Some(&agent));
        if let Some(record) = self.stories.get_mut(&id.story) {
            // Whatever was said of it, it is going to be other work.
            record.reviewed = None;
        }
        self.phase(id, Phase::Agent { call });
        Effect::StartAgent { attempt: id.clone(), call, agent, brief }
    }

    /// The agent that works on an attempt. What a fact says of that is so, whatever would be decided today.
    fn know_agent(&mut self, id: &AttemptId, agent: Option<&AgentId>) {
        let Some(agent) = agent else { return };
        if let Some(attempt) = self.attempts.get_mut(&id.story) {
            attempt.agent = Some(agent.clone());
        }
        if let Some(record) = self.stories.get_mut(&id.story)
            && record.agent.as_ref() != Some(agent)
        {
            record.agent = Some(agent.clone());
            record.model = None;
        }
    }

    /// Adds what a call has used to the sums.
    pub(super) fn count(&mut self, id: &AttemptId, report: &AgentReport) {
        self.usage = self.usage.plus(report.usage);
        // A call that came to nothing for its provider's sake costs nothing worth a word.
        let provider = matches!(after_agent(report), AfterAgent::Inconclusive(_)) && report.usage.tokens() == 0;
        self.unpriced += u32::from(report.usage.money().is_none() && !provider);
        if let Some(record) = self.stories.get_mut(&id.story) {
            record.usage = record.usage.plus(report.usage);
            record.agent_time += report.took;
        }
    }

    fn agent_ended(&mut self, id: &AttemptId, call: CallNumber, report: &AgentReport) -> Vec<Effect> {
        self.count(id, report);
        if let Some(record) = self.stories.get_mut(&id.story) {
            record.model.clone_from(&report.model);
        }
        for learning in &report.learnings {
            self.learnings.add(learning, Some(&id.story));
        }
        // Other attempts need not meet the same limit to heed it.
        if let Some(agent) = self.attempt(id).and_then(|attempt| attempt.agent.clone()) {
            let waits = self.attempt(id).map_or(0, |attempt| attempt.waits);
            self.note_end(&agent, report, waits);
        }
        self.phase(id, Phase::Inspecting { call, report: Box::new(report.clone()) });
        let resolves = self.attempt(id).map(|attempt| attempt.resolves.clone()).unwrap_or_default();
        vec![Effect::Inspect { attempt: id.clone(), call, resolves }]
    }

    fn inspected(
        &mut self,
        id: &AttemptId,
        call: CallNumber,
        report: Box<AgentReport>,
        tree: &TreeReport,
    ) -> Vec<Effect> {
        if let Some(why) = self.cut_short(id) {
            return self.revert(id, why, AfterRevert::Again);
        }
        if matches!(report.end, AgentEnd::TimedOut { .. })
            && self.time_left().is_some_and(|left| left.is_zero())
            && let Some(outcome) = self.bound_reached()
        {
            // The agent's time was cut to what the run had left, which says nothing of the story.
            return self.revert(id, "the run's time is over", AfterRevert::End(outcome));
        }
        let verdict = after_agent(&report);
        if let Some(why) = self.unresolved(id, &verdict, tree) {
            return self.give_up_merging(id, &why);
        }
        match verdict {
            AfterAgent::Inconclusive(Cause::Stopped) => self.revert(id, "the agent was stopped", AfterRevert::Again),
            AfterAgent::Inconclusive(Cause::Bound { bound, message }) => {
                let outcome = Outcome::BoundReached { bound, reason: message.clone(), resume_at: None };
                self.revert(id, &message, AfterRevert::End(outcome))
            }
            AfterAgent::Inconclusive(cause) => self.revert(id, &cause_in_words(&cause), AfterRevert::Wait(cause)),
            AfterAgent::Blocked { reason } => {
                self.revert(id, &format!("blocked: {reason}"), AfterRevert::Block { reason })
            }
            AfterAgent::Failed(failure) => self.fail(id, failure, &report.end, &tree.tree),
            AfterAgent::RunChecks => match self.hand_on(id, call, &report, tree) {
                Some(effects) => effects,
                None => self.start_checks(id, call, report, tree),
            },
        }
    }

    // Checks and repair.

    fn start_checks(
        &mut self,
        id: &AttemptId,
        call: CallNumber,
        report: Box<AgentReport>,
        tree: &TreeReport,
    ) -> Vec<Effect> {
        let queue = self.all_checks(id);
        if let Some(failure) = before_checks(&report, tree, !queue.is_empty()) {
            return self.fail(id, failure, &report.end, &tree.tree);
        }
        let stage = CheckStage::Call(call);
        self.next_check(id, Checking { call, stage, report, tree: tree.clone(), queue, done: Vec::new(), merged: None })
    }

    /// The gates, the fastest first, then the story's own checks.
    pub(super) fn all_checks(&self, id: &AttemptId) -> VecDeque<CheckRef> {
        let own = self.plan.story(&id.story).map_or(0, |s| s.checks.len());
        self.gates_fastest_first().map(CheckRef::Gate).chain((0..own).map(CheckRef::Story)).collect()
    }

    pub(super) fn next_check(&mut self, id: &AttemptId, checking: Checking) -> Vec<Effect> {
        let Some(check) = checking.queue.front().copied() else { return self.judge(id, checking) };
        // On an unchanged tree the known results are those of the base; a check may look further than the tree.
        let fresh = checking.tree.files_changed == 0;
        let (attempt, stage) = (id.clone(), checking.stage);
        self.phase(id, Phase::Checking(Box::new(checking)));
        vec![Effect::RunCheck { attempt, stage, check, fresh }]
    }

    fn checked(&mut self, id: &AttemptId, mut checking: Checking, result: &CheckResult) -> Vec<Effect> {
        if self.cut_short(id).is_none()
            && let Some(proof) = checking.merged.take_if(|_| self.is_lost(id))
        {
            return self.queue(id, *proof);
        }
        let stopped = (*result == CheckResult::Stopped).then_some(STOPPED);
        if let Some(why) = self.cut_short(id).or(stopped) {
            return self.revert(id, why, AfterRevert::Again);
        }
        let Some(check) = checking.queue.pop_front() else { return Vec::new() };
        let base = self.attempt(id).map(|attempt| &attempt.base);
        let baseline = base.and_then(|base| match check {
            CheckRef::Gate(gate) => base.gates.get(&gate),
            CheckRef::Story(own) => base.checks.get(&id.story).and_then(|known| known.get(&own)),
        });
        let label = self.label(id, check);
        checking.done.push(CheckEvidence { check, label, result: result.clone(), baseline: baseline.cloned() });
        if matches!(check, CheckRef::Gate(_)) && !result.passed() {
            // The first red gate says enough; the story's own checks are run all the same, they say what is missing.
            checking.queue.retain(|left| matches!(left, CheckRef::Story(_)));
        }
        self.next_check(id, checking)
    }

    fn judge(&mut self, id: &AttemptId, checking: Checking) -> Vec<Effect> {
        let Checking { call, report, tree, done, merged, .. } = checking;
        // What was proven before a merge needs no further ground than that it still holds.
        let needs_no_change = merged.is_some() || self.plan.story(&id.story).is_some_and(|s| s.needs_no_change);
        let verdict = judge(&report, &tree, &done, needs_no_change);
        if let Some(proof) = merged {
            match verdict {
                Verdict::Pass(_) => return self.proven_merged(id, *proof, tree.tree),
                // Whose fault that is shows once it is known what becomes of the other.
                _ if self.stands_ahead(id) => return self.set_aside(id, *proof),
                _ => {}
            }
        }
        match verdict {
            Verdict::Pass(ground) => {
                let turn = self.next_turn();
                self.review(id, Proof { call, ground, tree: tree.tree, also: Vec::new(), turn, report }, &done)
            }
            Verdict::ChecksFail(failures) => self.checks_failed(id, call, failures, &tree.tree),
            Verdict::Fail(failure) => self.fail(id, failure, &report.end, &tree.tree),
            Verdict::SetUp { message } => {
                let outcome = Outcome::Environment { reason: message.clone() };
                self.revert(id, &message, AfterRevert::End(outcome))
            }
        }
    }

    pub(super) fn checks_failed(
        &mut self,
        id: &AttemptId,
        call: CallNumber,
        failures: Vec<Failure>,
        tree: &TreeId,
    ) -> Vec<Effect> {
        if let Some(why) = self.cut_short(id) {
            return self.revert(id, why, AfterRevert::Again);
        }
        if self.halted {
            return self.revert(id, HALTED, AfterRevert::Again);
        }
        if self.attempt(id).is_none_or(|attempt| attempt.repairs >= self.policy.max_repairs) {
            return self.fail(id, failure_of_checks(failures), &AgentEnd::Finished, tree);
        }
        if let Some(outcome) = self.bound_reached() {
            let reason = format!("{}, and no repair may start", failure_of_checks(failures).reason);
            return self.revert(id, &reason, AfterRevert::End(outcome));
        }
        if let Some(attempt) = self.attempts.get_mut(&id.story) {
            attempt.repairs += 1;
        }
        let brief = self.repair_brief(id, failures);
        let mut effects = self.start_agent(id, CallNumber(call.0 + 1), brief);
        // A merged tree that is repaired gives its turn to the next.
        effects.extend(self.next_landing());
        effects
    }

    // Gates.

    fn gates_fastest_first(&self) -> impl Iterator<Item = usize> + use<> {
        let mut gates: Vec<usize> = (0..self.policy.gates.len()).collect();
        // Those whose time is not known yet keep their place behind the known ones.
        gates.sort_by_key(|gate| self.gate_times.get(gate).copied().unwrap_or(std::time::Duration::MAX));
        gates.into_iter()
    }

    /// How a check of an attempt is called.
    pub fn label(&self, id: &AttemptId, check: CheckRef) -> String {
        match check {
            CheckRef::Gate(gate) => self.policy.gates.get(gate).map(|g| g.name.clone()),
            CheckRef::Story(own) => {
                self.plan.story(&id.story).and_then(|s| s.checks.get(own)).map(|c| c.label().to_owned())
            }
        }
        .unwrap_or_default()
    }
}
