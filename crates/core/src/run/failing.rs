//! Failing and going back: an attempt's lane is put back, then its story is charged, waits, or is tried again.

use super::attempt::{AfterRevert, reason_of};
use super::story::StoryState;
use super::{Left, Phase, Run};
use crate::effect::Effect;
use crate::evidence::AgentEnd;
use crate::fingerprint::Fingerprint;
use crate::ids::{AttemptId, StoryId, TreeId};
use crate::outcome::Outcome;
use crate::policy::OnExhausted;
use crate::verdict::{AttemptFailure, Tell};

/// The same failure this often in a row ends the story: nothing suggests that the next attempt would end otherwise.
const SAME_FAILURE: u32 = 3;
/// Attempts in a row without any output that show that the client is broken, not the story.
const SILENT_ATTEMPTS: u32 = 2;

impl Run {
    /// Leaves the attempt without a verdict; the story stays open.
    pub(super) fn abandon(&mut self, id: &AttemptId) {
        self.attempts.remove(&id.story);
        self.set_pending(&id.story);
    }

    /// Leaves the attempt's work in the lane. Nothing starts there before it has been put back.
    pub(super) fn leave_unclean(&mut self, id: &AttemptId) {
        if let Some(mut attempt) = self.attempts.remove(&id.story) {
            self.unclean.insert(id.story.clone(), Left { id: id.clone(), lane: attempt.lane });
            self.take_guidance_back(&mut attempt);
        }
        self.set_pending(&id.story);
    }

    pub(super) fn fail(
        &mut self,
        id: &AttemptId,
        failure: AttemptFailure,
        end: &AgentEnd,
        tree: &TreeId,
    ) -> Vec<Effect> {
        let mut text = failure.reason.clone();
        if let Tell::Failures(failures) = &failure.tell {
            for f in failures {
                text.push('\n');
                text.push_str(&f.output);
            }
        }
        let told_before = self.stories.get(&id.story).map(|r| &r.tell);
        let last = matches!(end, AgentEnd::PermissionDenied { .. })
            || (failure.tell == Tell::Shorten && told_before == Some(&Tell::Shorten));
        let fingerprint = Fingerprint::new(&text, Some(tree.clone()));
        let silent = matches!(end, AgentEnd::NoOutput);
        let reason = failure.reason.clone();
        self.revert(id, &reason, AfterRevert::Charge { failure, fingerprint, last, silent })
    }

    pub(super) fn revert(&mut self, id: &AttemptId, reason: &str, then: AfterRevert) -> Vec<Effect> {
        self.phase(id, Phase::Reverting { then });
        let mut effects = vec![Effect::Revert { attempt: id.clone(), reason: reason.to_owned() }];
        effects.extend(self.lose_candidate(id));
        // If it was its turn to land, it is the next one's now.
        effects.extend(self.next_landing());
        effects
    }

    pub(super) fn reverted(
        &mut self,
        id: &AttemptId,
        then: AfterRevert,
        kept: Option<&String>,
        notes: &[String],
    ) -> Vec<Effect> {
        let Some(mut attempt) = self.attempts.remove(&id.story) else { return Vec::new() };
        self.set_pending(&id.story);
        if let Some(record) = self.stories.get_mut(&id.story) {
            record.notes = notes.to_vec();
            if let Some(kept) = kept {
                record.kept.push((id.number, kept.clone()));
            }
        }
        if !matches!(then, AfterRevert::Charge { .. } | AfterRevert::Block { .. }) {
            self.take_guidance_back(&mut attempt);
        }
        match then {
            AfterRevert::Again => self.go_on(),
            AfterRevert::End(outcome) => self.end(outcome),
            AfterRevert::Unmerged { reason } => self.unmerged(id, kept, &reason),
            AfterRevert::Wait(cause) => {
                if let Some(record) = self.stories.get_mut(&id.story) {
                    record.reason = Some(reason_of(&cause));
                }
                self.wait_for(&cause, attempt.waits)
            }
            AfterRevert::Block { reason } => {
                if let Some(record) = self.stories.get_mut(&id.story) {
                    record.state = StoryState::Blocked;
                    record.reason = Some(reason);
                }
                self.trouble.no_output = 0;
                self.go_on()
            }
            AfterRevert::Charge { failure, fingerprint, last, silent } => {
                self.charge(id, failure, fingerprint, last, silent)
            }
        }
    }

    fn charge(
        &mut self,
        id: &AttemptId,
        failure: AttemptFailure,
        fingerprint: Fingerprint,
        last: bool,
        silent: bool,
    ) -> Vec<Effect> {
        self.trouble.no_output = if silent { self.trouble.no_output + 1 } else { 0 };
        let max_retries = self.policy.max_retries;
        let Some(record) = self.stories.get_mut(&id.story) else { return Vec::new() };
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
            return self.end(Outcome::Paused {
                reason: format!(
                    "the agent produced no output {SILENT_ATTEMPTS} times in a row: the client is broken, not the story; \
                     start it by hand to see why"
                ),
            });
        }
        if exhausted { self.exhausted(&id.story) } else { self.go_on() }
    }

    /// A story has failed for good.
    pub(super) fn exhausted(&mut self, story: &StoryId) -> Vec<Effect> {
        match self.policy.on_exhausted {
            OnExhausted::Skip => self.go_on(),
            OnExhausted::Stop => {
                let outcome = self.asked_to_end().unwrap_or(Outcome::Failed);
                self.end(outcome)
            }
            OnExhausted::Pause => self
                .end(Outcome::Paused { reason: format!("{story} has used up its attempts; resume tries it afresh") }),
        }
    }
}
