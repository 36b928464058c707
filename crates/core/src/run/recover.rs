//! Taking a run up again: after a stop, a pause, a bound, or the death of its process.

use super::attempt::{AfterRevert, Attempt, Phase};
use super::story::StoryState;
use super::{Activity, Run};
use crate::effect::{Effect, Ground};
use crate::event::{CutOff, PlanChange};
use crate::ids::{AttemptId, CommitId, StoryId};
use crate::outcome::Outcome;
use crate::policy::Policy;

impl Run {
    /// Counts what calls had used that were under way when the process died.
    pub(super) fn count_cut_off(&mut self, calls: &[CutOff]) {
        for CutOff { attempt, call, usage } in calls {
            let was_under_way = self.attempt().is_some_and(|under_way| {
                under_way.id == *attempt
                    && matches!(under_way.phase, Phase::Agent { call: running } if running == *call)
            });
            if !was_under_way {
                continue;
            }
            self.usage = self.usage.plus(*usage);
            self.uncounted += u32::from(usage.cost.is_none());
            if let Some(record) = self.stories.get_mut(&attempt.story) {
                record.usage = record.usage.plus(*usage);
            }
        }
    }

    pub(super) fn restarted(
        &mut self,
        policy: &Policy,
        landed: &[(StoryId, CommitId)],
        spec: &PlanChange,
        agent: &str,
    ) -> Vec<Effect> {
        if self.policy.gates != policy.gates {
            self.gate_times.clear();
        }
        self.policy = policy.clone();
        agent.clone_into(&mut self.agent);
        self.stop = None;
        self.pause = false;
        self.trouble = super::limits::Trouble::default();
        self.baseline = super::Baseline::default();
        self.ended_at = None;
        self.commands_may_change = true;
        self.know_landed(landed);
        let was = std::mem::replace(&mut self.activity, Activity::CheckingPlan);
        if let Activity::Ending(outcome) | Activity::Ended(outcome) = &was
            && a_person_acted(outcome)
        {
            self.renew_stories();
        }
        self.reselect();
        if let Some(attempt) = self.unclean.take() {
            return self.put_right(attempt, AfterRevert::Again);
        }
        match was {
            Activity::Attempt(attempt) if attempt.has_checkpoint() => {
                let id = attempt.id.clone();
                self.put_right(id, attempt.after_interruption())
            }
            Activity::Attempt(attempt) => {
                self.set_pending(&attempt.id.story);
                self.plan_checked(spec)
            }
            Activity::Settling(attempt) => self.settle(attempt),
            Activity::Waiting(wait) if wait.until > self.last_at => self.sleep_on(wait),
            Activity::Waiting(_) | Activity::CheckingPlan | Activity::Ending(_) | Activity::Ended(_) => {
                self.plan_checked(spec)
            }
        }
    }

    /// Settles what the attempt landed, or puts its lane back. How the spec reads before that is not looked at, since the
    /// attempt may have touched it.
    fn put_right(&mut self, attempt: AttemptId, then: AfterRevert) -> Vec<Effect> {
        if self.stories.get(&attempt.story).is_some_and(|r| r.state.passed()) {
            self.carried.clear();
            return self.settle(attempt);
        }
        self.set_pending(&attempt.story);
        self.activity = Activity::Attempt(Box::new(Attempt::reverting(attempt)));
        self.revert("the run was interrupted, and the attempt's work was left in the tree", then)
    }

    fn settle(&mut self, attempt: AttemptId) -> Vec<Effect> {
        self.activity = Activity::Settling(attempt.clone());
        vec![Effect::Settle { attempt }]
    }

    fn renew_stories(&mut self) {
        for record in self.stories.values_mut() {
            if record.selected && matches!(record.state, StoryState::Failed | StoryState::Blocked) {
                record.renew();
            }
        }
    }

    fn know_landed(&mut self, landed: &[(StoryId, CommitId)]) {
        // A landing that a crash cut short was proven before it began.
        let under_way = self.attempt().and_then(|a| match a.phase {
            Phase::Landing { ground, .. } => Some((a.id.story.clone(), ground)),
            _ => None,
        });
        for (story, commit) in landed {
            let ground = match &under_way {
                Some((landing, ground)) if landing == story => *ground,
                _ => Ground::Verified,
            };
            if let Some(record) = self.stories.get_mut(story)
                && !record.state.passed()
            {
                record.state = StoryState::Landed { commit: commit.clone(), ground };
                record.reason = None;
            }
        }
    }

    pub(super) fn set_pending(&mut self, story: &StoryId) {
        if let Some(record) = self.stories.get_mut(story) {
            record.state = StoryState::Pending;
        }
    }

    /// The selection of the new policy holds for stories that are still open.
    fn reselect(&mut self) {
        if self.policy.only.is_empty() {
            return;
        }
        for (id, record) in &mut self.stories {
            if !record.state.passed() {
                record.selected = self.policy.only.contains(id) && !record.taken_out;
                if record.selected && record.state == StoryState::Skipped {
                    record.state = StoryState::Pending;
                }
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
