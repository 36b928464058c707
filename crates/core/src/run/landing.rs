//! From proof to the branch: proven attempts land one at a time, each on where the branch stands then.

use super::attempt::{AfterRevert, Attempt, Checking, Phase, Proof};
use super::story::StoryState;
use super::{Baseline, Run};
use crate::effect::{Effect, Failure, Ground, Onto};
use crate::event::{CheckStage, Fact};
use crate::evidence::{Merge, TreeReport};
use crate::ids::{AttemptId, CallNumber, CommitId, TreeId};
use crate::outcome::Outcome;
use crate::policy::Place;
use crate::verdict::{AfterAgent, AttemptFailure, Tell};

/// Merges of one attempt with what landed meanwhile. Each is followed by checks, so that this only ends what others
/// overtake for ever.
const MERGES: u32 = 8;
/// Attempts of a story that may be lost to conflicts before a person has to look.
const CONFLICTS: u32 = 2;

/// Why an attempt of a halted run is put back.
pub(super) const HALTED: &str = "nothing more lands in this run";

impl Run {
    /// The attempt's work is proven: it lands, once those before it have.
    pub(super) fn proven(&mut self, id: &AttemptId, proof: Proof) -> Vec<Effect> {
        if self.policy.place == Place::Checkout {
            return self.land(id, proof);
        }
        self.queue(id, proof)
    }

    /// Waits for its turn.
    pub(super) fn queue(&mut self, id: &AttemptId, proof: Proof) -> Vec<Effect> {
        if let Some(put_back) = self.may_not_land(id) {
            return put_back;
        }
        let call = proof.call;
        self.phase(id, Phase::Queued(Box::new(proof)));
        let mut effects = self.next_landing();
        let waits = |attempt: &Attempt| matches!(attempt.phase, Phase::Queued(_)) && attempt.merges == 0;
        if self.mends(id).is_none() && self.attempt(id).is_some_and(waits) {
            effects.push(Effect::Prepare { attempt: id.clone(), call });
        }
        effects.extend(self.go_on());
        effects
    }

    /// The work stands on the newest commit.
    pub(super) fn land(&mut self, id: &AttemptId, proof: Proof) -> Vec<Effect> {
        if let Some(put_back) = self.may_not_land(id) {
            return put_back;
        }
        let (call, ground) = (proof.call, proof.ground);
        self.phase(id, Phase::Landing(Box::new(proof)));
        if let Some(fix) = self.mends(id) {
            return vec![Effect::AddFixTask { attempt: id.clone(), fix: Box::new(fix.clone()) }];
        }
        vec![Effect::Land { attempt: id.clone(), call, ground }]
    }

    /// Whether a merge of that number is what the attempt waits for.
    fn awaits_merge(&mut self, id: &AttemptId, number: u32) -> bool {
        self.attempts.get_mut(&id.story).is_some_and(|attempt| attempt.awaits_merge(number))
    }

    fn may_not_land(&mut self, id: &AttemptId) -> Option<Vec<Effect>> {
        let why = self.cut_short(id).or(self.halted.then_some(HALTED))?;
        Some(self.revert(id, why, AfterRevert::Again))
    }

    pub(super) fn next_turn(&self) -> u32 {
        self.attempts.values().filter_map(Attempt::turn).max().map_or(0, |last| last.saturating_add(1))
    }

    /// Lets the next proven attempt land, if none is landing; else prepares it on top of what lands before it.
    pub(super) fn next_landing(&mut self) -> Vec<Effect> {
        if self.begins_nothing() || self.one_is_lost() {
            return Vec::new();
        }
        if self.first_in_line().is_some() {
            return self.prepare_ahead();
        }
        let queued = self.attempts.values().filter(|a| matches!(a.phase, Phase::Queued(_)));
        let next = queued.filter_map(|a| Some((a.turn()?, a.id.clone()))).min();
        next.map_or_else(Vec::new, |(_, id)| self.ask_to_merge(&id, Onto::Branch))
    }

    pub(super) fn merging_step(&mut self, id: &AttemptId, proof: Proof, fact: &Fact) -> Vec<Effect> {
        match fact {
            Fact::Merged { call, number, .. } if *call != proof.call || !self.awaits_merge(id, *number) => Vec::new(),
            Fact::Merged { .. } | Fact::MergeFailed { .. } if let Some(why) = self.cut_short(id) => {
                self.revert(id, why, AfterRevert::Again)
            }
            Fact::Merged { .. } if self.halted => self.revert(id, HALTED, AfterRevert::Again),
            Fact::Merged { .. } if self.is_lost(id) => self.queue(id, proof),
            Fact::Merged { merge: Merge::Current | Merge::Conflicts { .. }, .. } if self.stands_ahead(id) => {
                self.set_aside(id, proof)
            }
            Fact::Merged { merge: Merge::Current, .. } => self.land(id, proof),
            Fact::Merged { merge: Merge::Merged { report }, .. } => self.check_merged(id, proof, (**report).clone()),
            Fact::Merged { merge: Merge::Conflicts { files, .. }, .. } => self.resolve(id, &proof, files),
            Fact::MergeFailed { why, .. } => {
                let reason = format!("the story could not be brought onto the branch: {why}");
                self.revert(id, &reason, AfterRevert::End(Outcome::Environment { reason: reason.clone() }))
            }
            Fact::Trespassed { why, .. } => self.trespass_found(id, why),
            _ => Vec::new(),
        }
    }

    /// What was proven on another base is proven again on the merged tree, unless that was foreseen.
    fn check_merged(&mut self, id: &AttemptId, proof: Proof, tree: TreeReport) -> Vec<Effect> {
        let ahead = self.stands_ahead(id);
        let Some(attempt) = self.attempts.get_mut(&id.story) else { return Vec::new() };
        attempt.stands_anew(ahead);
        let merges = attempt.merges;
        if attempt.brought > MERGES {
            let why = format!("others landed before it {MERGES} times");
            return self.give_up_merging(id, &why);
        }
        if self.mends(id).is_some() {
            // The tree is the branch's own.
            return self.proven_merged(id, proof, tree.tree);
        }
        let mut effects = self.offer(id, &tree.tree);
        if proof.covers(&tree.tree) {
            effects.extend(self.proven_merged(id, proof, tree.tree));
            return effects;
        }
        let (call, report) = (proof.call, proof.report.clone());
        let (stage, queue) = (CheckStage::Merged(merges), self.all_checks(id));
        let checking = Checking { call, stage, report, tree, queue, done: Vec::new(), merged: Some(Box::new(proof)) };
        effects.extend(self.next_check(id, checking));
        effects.extend(self.next_landing());
        effects
    }

    /// Asks the agent to resolve the conflicts in the tree.
    fn resolve(&mut self, id: &AttemptId, proof: &Proof, files: &[String]) -> Vec<Effect> {
        let Some(attempt) = self.attempts.get_mut(&id.story) else { return Vec::new() };
        attempt.stands_anew(false);
        if attempt.brought > MERGES {
            return self.give_up_merging(id, &format!("conflicts in {}", files.join(", ")));
        }
        if let Some(outcome) = self.bound_reached() {
            let reason = format!("conflicts in {}, and no agent may be called to resolve them", files.join(", "));
            return self.revert(id, &reason, AfterRevert::End(outcome));
        }
        let brief = self.resolve_brief(id, files.to_vec());
        let mut effects = self.start_agent(id, CallNumber(proof.call.0 + 1), brief);
        effects.extend(self.next_landing());
        effects
    }

    /// Why the call that was to resolve conflicts did not; nothing if it did, or was not to.
    pub(super) fn unresolved(&self, id: &AttemptId, verdict: &AfterAgent, tree: &TreeReport) -> Option<String> {
        let attempt = self.attempt(id).filter(|attempt| !attempt.resolves.is_empty())?;
        let files = attempt.resolves.join(", ");
        match verdict {
            AfterAgent::Failed(failure) => Some(format!("conflicts in {files} were not resolved: {}", failure.reason)),
            AfterAgent::Blocked { reason } => Some(format!("conflicts in {files} were not resolved: {reason}")),
            AfterAgent::RunChecks if !tree.unresolved.is_empty() => {
                Some(format!("conflicts are still marked in {}", tree.unresolved.join(", ")))
            }
            AfterAgent::RunChecks if !tree.strayed.is_empty() => {
                Some(format!("conflicts in {files} were to be resolved, and {} changed too", tree.strayed.join(", ")))
            }
            // It did, or the provider is to blame, or a stop.
            AfterAgent::RunChecks | AfterAgent::Inconclusive(_) => None,
        }
    }

    /// The work cannot be brought onto the branch: the story is tried again from where the branch stands now, and left to a
    /// person if that has been in vain before.
    pub(super) fn give_up_merging(&mut self, id: &AttemptId, why: &str) -> Vec<Effect> {
        let reason = format!("not merged: {why}");
        self.revert(id, &reason, AfterRevert::Unmerged { reason: reason.clone() })
    }

    /// The story could not be merged, and its lane is put back.
    pub(super) fn unmerged(&mut self, id: &AttemptId, kept: Option<&String>, reason: &str) -> Vec<Effect> {
        if let Some(record) = self.stories.get_mut(&id.story) {
            record.conflicts += 1;
            let place = kept.map_or(String::new(), |kept| format!("; its work is kept at {kept}"));
            record.tell = Tell::Reason;
            record.failure = Some(format!("{reason}{place}, so start again from what has landed meanwhile"));
            record.reason = Some(format!("{reason}{place}"));
            if record.conflicts >= CONFLICTS {
                record.state = StoryState::Failed;
                return self.exhausted(&id.story);
            }
        }
        self.go_on()
    }

    pub(super) fn landing_step(&mut self, id: &AttemptId, proof: &Proof, fact: &Fact) -> Vec<Effect> {
        match fact {
            Fact::Landed { commit, notes, .. } => self.landed(id, commit, proof.ground, notes),
            Fact::FixTaskAdded { task, story, commit, .. } => self.mended(id, (task, commit.as_ref()), story),
            Fact::NoFixTask { why, .. } => self.cannot_mend(id, why),
            Fact::LandingRefused { by, output, .. } if self.mends(id).is_some() => {
                self.cannot_mend(id, &refused(by, output))
            }
            Fact::LandingRefused { call, by, output, .. } if *call == proof.call => {
                let reason = refused(by, output);
                let failure = Failure { reason, output: output.clone(), at_baseline: false, check: None };
                self.checks_failed(id, proof.call, vec![failure], &proof.tree)
            }
            Fact::LandingBlocked { why, .. } => {
                let reason = format!("its merge is blocked by a local change: {why}");
                self.revert(id, &reason, AfterRevert::Block { reason: reason.clone() })
            }
            Fact::Trespassed { why, .. } => self.trespass_found(id, why),
            Fact::LandingFailed { .. } if let Some(why) = self.cut_short(id) => {
                self.revert(id, why, AfterRevert::Again)
            }
            Fact::LandingFailed { why, .. } => {
                let reason = format!("the story could not be committed: {why}");
                self.revert(id, &reason, AfterRevert::End(Outcome::Environment { reason: reason.clone() }))
            }
            _ => Vec::new(),
        }
    }

    fn landed(&mut self, id: &AttemptId, commit: &CommitId, ground: Ground, notes: &[String]) -> Vec<Effect> {
        let landed = self.attempts.remove(&id.story);
        self.note_attempt(landed.and_then(|attempt| attempt.agent).as_ref(), false);
        for other in self.attempts.values_mut() {
            other.landed_meanwhile.push(id.story.clone());
        }
        if let Some(record) = self.stories.get_mut(&id.story) {
            record.land(self.plan.story(&id.story), commit.clone(), ground);
            record.notes = notes.to_vec();
        }
        self.baseline = self.baseline.next();
        let mut effects = self.next_landing();
        effects.extend(self.go_on());
        effects
    }

    /// The agent of this attempt moved what is not its own, as far as anybody can tell: the attempt failed, and nothing is
    /// put on top of what was moved. Once that is known, the agents of other attempts are not to blame for it.
    pub(super) fn trespassed(&mut self, id: &AttemptId, why: &str) -> Vec<Effect> {
        if self.halted {
            // It is known already, and was another's doing as far as anybody can tell.
            return self.revert(id, HALTED, AfterRevert::Again);
        }
        let known = self.is_alarmed();
        self.halted = true;
        let reason = format!("something outside its worktree was moved while it ran: {why}");
        let failure = AttemptFailure { reason, tell: Tell::Reason };
        let end = crate::evidence::AgentEnd::Finished;
        let mut effects = self.fail(id, failure, &end, &TreeId(String::new()));
        effects.extend(self.halt(moved(why), known));
        effects
    }

    /// Something was moved, and nobody can tell by whom.
    fn trespass_found(&mut self, id: &AttemptId, why: &str) -> Vec<Effect> {
        let known = self.is_alarmed();
        self.halted = true;
        let mut effects =
            self.revert(id, &format!("nothing lands on top of what was moved: {why}"), AfterRevert::Again);
        effects.extend(self.halt(moved(why), known));
        effects
    }
}

impl Attempt {
    /// It was merged: what was known of the base that it began on says nothing of the one that it stands on now.
    fn stands_anew(&mut self, ahead: bool) {
        self.merges += 1;
        self.brought += u32::from(!ahead);
        self.base = Baseline::of_nobody_else();
    }
}

pub(super) fn moved(why: &str) -> Outcome {
    Outcome::Paused { reason: format!("the main checkout was moved under the run, so nothing more lands: {why}") }
}

/// Why there is no commit, with the last thing that was said about it.
fn refused(by: &str, output: &str) -> String {
    let last = output.lines().rev().map(str::trim).find(|line| !line.is_empty());
    last.map_or_else(|| by.to_owned(), |last| format!("{by}: {last}"))
}
