//! Taking a run up again: after a stop, a pause, a bound, or the death of its process.

use std::collections::BTreeSet;

use super::attempt::{Attempt, Phase};
use super::story::{StoryRecord, StoryState};
use super::{Activity, Left, Run};
use crate::effect::{Effect, Ground};
use crate::event::{CutOff, PlanChange};
use crate::ids::{CommitId, StoryId};
use crate::outcome::Outcome;
use crate::policy::Policy;

/// What is different from when the run was left.
#[derive(Clone, Copy)]
pub(super) struct Meanwhile<'a> {
    /// Stories whose commit stands on the branch.
    pub(super) landed: &'a [(StoryId, CommitId)],
    /// What became of the spec.
    pub(super) spec: &'a PlanChange,
    /// What a person wants tried again.
    pub(super) retry: &'a [StoryId],
}

impl Run {
    /// Counts what calls had used that were under way when the process died.
    pub(super) fn count_cut_off(&mut self, calls: &[CutOff]) {
        for CutOff { attempt, call, usage } in calls {
            let running = match self.attempt(attempt).map(|under_way| &under_way.phase) {
                Some(Phase::Agent { call }) => Some(*call),
                Some(Phase::Reviewing(reviewing)) => Some(reviewing.proof.call),
                _ => None,
            };
            if running != Some(*call) {
                continue;
            }
            self.usage = self.usage.plus(*usage);
            self.uncounted += u32::from(usage.money().is_none());
            if let Some(record) = self.stories.get_mut(&attempt.story) {
                record.usage = record.usage.plus(*usage);
            }
        }
    }

    pub(super) fn restarted(&mut self, policy: &Policy, agent: &str, meanwhile: Meanwhile<'_>) -> Vec<Effect> {
        let Meanwhile { landed, spec, retry } = meanwhile;
        if self.policy.gates != policy.gates {
            self.gate_times.clear();
        }
        // What lies in lanes of one kind is put right there before lanes of another kind are used.
        let lies_somewhere = !(self.is_idle() && self.unclean.is_empty());
        let place = if lies_somewhere { self.policy.place } else { policy.place };
        let aside = self.policy.skip_manual != policy.skip_manual;
        let reordered = self.policy.orders != policy.orders;
        self.policy = Policy { place, ..policy.clone() };
        self.learnings.merge(&policy.learnings);
        agent.clone_into(&mut self.agent);
        self.stop = None;
        self.pause = false;
        self.baseline = self.baseline.next();
        self.halted = false;
        self.review_off = None;
        self.ended_at = None;
        self.commands_may_change = true;
        self.know_landed(landed);
        // What of these lies in a lane is a landing, also of a story that is to be done again.
        let on_branch = |id: &&StoryId| self.stories.get(*id).is_some_and(|record| record.state.is_on_branch());
        let settle: BTreeSet<StoryId> =
            self.attempts.keys().chain(self.unclean.keys()).filter(on_branch).cloned().collect();
        for story in retry {
            self.try_again(story);
        }
        // One that was asked for before and is still open is asked for once more.
        let is_open = |story: &StoryId| self.record(story).is_some_and(|record| record.state == StoryState::Pending);
        let asked: Vec<&StoryId> = retry.iter().filter(|story| is_open(story) || self.tries_again(story)).collect();
        let was = std::mem::replace(&mut self.activity, Activity::Working);
        // Whoever takes up a run that had ended may have done something about its agents.
        let cut_off = !matches!(was, Activity::Ended(_));
        self.adopt_chain(&policy.agents, agent, cut_off);
        if reordered {
            self.stories.values_mut().for_each(|record| (record.rung, record.on_rung) = (0, 0));
        }
        if let Activity::Ending(outcome) | Activity::Ended(outcome) = &was
            && a_person_acted(outcome)
        {
            self.renew_stories();
        }
        self.reselect(aside);
        // What is asked for now holds whatever the selection says; what was asked for before does not outlive another one.
        for (id, record) in &mut self.stories {
            if asked.contains(&id) {
                record.selected = true;
            } else if !record.selected {
                record.answer_wish();
            }
        }
        // How the spec reads before lanes are put back is not looked at, since the attempts may have touched it.
        let interrupted = std::mem::take(&mut self.attempts);
        let mut effects = Vec::new();
        for Left { id, lane } in std::mem::take(&mut self.unclean).into_values() {
            effects.extend(self.put_right(Attempt::reverting(id, lane), &settle));
        }
        for attempt in interrupted.into_values() {
            if attempt.has_checkpoint() {
                effects.extend(self.put_right(attempt, &settle));
            } else {
                self.set_pending(&attempt.id.story);
            }
        }
        effects.extend(self.settling.values().map(|left| Effect::Settle { attempt: left.id.clone() }));
        self.activity = Activity::Working;
        match was {
            Activity::Waiting(wait) if wait.until > self.last_at => effects.extend(self.sleep_on(wait)),
            _ if effects.is_empty() => {
                self.activity = Activity::CheckingPlan;
                effects.extend(self.plan_checked(spec));
            }
            _ => {}
        }
        effects
    }

    /// Settles what the attempt landed, if its story is one of those, or puts its lane back.
    fn put_right(&mut self, attempt: Attempt, settle: &BTreeSet<StoryId>) -> Vec<Effect> {
        let (id, lane) = (attempt.id.clone(), attempt.lane);
        if settle.contains(&id.story) {
            self.settling.insert(id.story.clone(), Left { id, lane });
            return Vec::new();
        }
        let then = attempt.after_interruption();
        if let Some(record) = self.stories.get_mut(&id.story) {
            record.state = StoryState::Running;
        }
        self.attempts.insert(
            id.story.clone(),
            Attempt {
                phase: Phase::Reverting { then: then.clone() },
                approach: super::ahead::Approach::default(),
                ..attempt
            },
        );
        self.revert(&id, "the run was interrupted, and the attempt's work was left in the tree", then)
    }

    /// What a crash left of the story's landing could not be finished. That is tried again when the run is taken up.
    pub(super) fn settling_failed(&mut self, story: &StoryId, why: &str) -> Vec<Effect> {
        let known = self.is_alarmed();
        let reason = format!("{story} has landed, and what a crash left of that could not be finished: {why}");
        if let Some(left) = self.settling.remove(story) {
            self.unclean.insert(story.clone(), left);
        }
        self.end_alarmed(Outcome::Paused { reason }, known)
    }

    fn renew_stories(&mut self) {
        for record in self.stories.values_mut() {
            if record.selected && matches!(record.state, StoryState::Failed | StoryState::Blocked) {
                record.renew();
            }
        }
    }

    fn know_landed(&mut self, landed: &[(StoryId, CommitId)]) {
        for (story, commit) in landed {
            // A landing that a crash cut short was proven before it began.
            let ground = match self.attempts.get(story).map(|attempt| &attempt.phase) {
                Some(Phase::Landing(proof)) => proof.ground,
                _ => Ground::Verified,
            };
            if let Some(record) = self.stories.get_mut(story)
                && !record.state.is_on_branch()
                && !record.sent_back.contains(commit)
            {
                record.land(self.plan.story(story), commit.clone(), ground);
            }
        }
    }

    pub(super) fn set_pending(&mut self, story: &StoryId) {
        if let Some(record) = self.stories.get_mut(story) {
            record.rest();
        }
    }

    /// The selection of the new policy holds for stories that are still open; `aside` says that it answers differently from the
    /// one before whether stories that a person signs are left aside.
    fn reselect(&mut self, aside: bool) {
        for (id, record) in self.stories.iter_mut().filter(|(_, record)| !record.state.is_on_branch()) {
            if !self.policy.only.is_empty() {
                record.selected = self.policy.only.contains(id) && !record.taken_out;
            } else if aside
                && let Some(story) = self.plan.story(id).filter(|story| story.needs_sign_off())
                && !record.is_put_aside()
            {
                record.selected = self.policy.selects(story);
                if !record.selected && record.state == StoryState::Pending {
                    let first = StoryRecord::first(story, false);
                    (record.state, record.reason) = (first.state, first.reason);
                }
            } else {
                continue;
            }
            if record.selected && record.state == StoryState::Skipped {
                record.renew();
            }
        }
    }
}

/// Whether taking up a run that ended so means that somebody did what it waited for.
fn a_person_acted(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Paused { .. } | Outcome::Failed | Outcome::Environment { .. } => true,
        Outcome::Complete | Outcome::NothingToDo { .. } | Outcome::Stopped { .. } | Outcome::BoundReached { .. } => {
            false
        }
    }
}
