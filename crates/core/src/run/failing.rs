//! Failing and going back: an attempt's lane is put back, then its story is charged, waits, or is tried again.

use super::attempt::AfterRevert;
use super::chain::{Away, Prospect};
use super::story::{Rest, StoryRecord, StoryState};
use super::{Attempt, Left, Phase, Run};
use crate::effect::Effect;
use crate::evidence::AgentEnd;
use crate::fingerprint::Fingerprint;
use crate::ids::{AttemptId, StoryId, TreeId};
use crate::outcome::Outcome;
use crate::policy::{FailureKind, OnExhausted};
use crate::verdict::{AttemptFailure, Cause, Tell, cause_in_words};

/// The same failure this often in a row ends the story: nothing suggests that the next attempt would end otherwise.
const SAME_FAILURE: u32 = 3;
/// Of which kind a failure is: what a clock ended is a timeout, what checks found is for them to say.
fn kind_of(failure: &AttemptFailure, end: &AgentEnd) -> FailureKind {
    match (end, &failure.tell) {
        (AgentEnd::TimedOut { .. } | AgentEnd::Silent { .. } | AgentEnd::NeverSpoke { .. }, _) => FailureKind::Timeout,
        (_, Tell::Failures(_)) => FailureKind::Verification,
        _ => FailureKind::Implementation,
    }
}

/// So many charged attempts with one agent show that the last one is better given to the next.
const ON_A_RUNG: u32 = 2;

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
        let kind = kind_of(&failure, end);
        let reason = failure.reason.clone();
        self.revert(id, &reason, AfterRevert::Charge { failure, kind, fingerprint, last, silent })
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
        let aside = self.stories.get(&id.story).is_some_and(StoryRecord::is_put_aside);
        let then = match then {
            // What it came to no longer matters.
            AfterRevert::Charge { .. }
            | AfterRevert::Block { .. }
            | AfterRevert::Unmerged { .. }
            | AfterRevert::Unmended { .. }
                if aside =>
            {
                AfterRevert::Again
            }
            then => then,
        };
        if !matches!(then, AfterRevert::Charge { .. } | AfterRevert::Block { .. }) {
            self.take_guidance_back(&mut attempt);
        }
        match then {
            AfterRevert::Again => self.go_on(),
            AfterRevert::End(outcome) => self.end(outcome),
            AfterRevert::Unmerged { reason } => self.unmerged(id, kept, &reason),
            AfterRevert::Unmended { reason } => self.unmended(id, &reason),
            AfterRevert::Wait(cause) => {
                if let Some(record) = self.stories.get_mut(&id.story).filter(|_| !aside) {
                    record.answer_wish();
                    record.reason = Some(cause_in_words(&cause));
                }
                self.wait_begins(attempt.agent.as_ref());
                match cause {
                    Cause::Environment { message } => self.end(Outcome::Environment { reason: message }),
                    Cause::Limit { .. }
                    | Cause::Provider { .. }
                    | Cause::Agent { .. }
                    | Cause::Bound { .. }
                    | Cause::Stopped => self.go_on(),
                }
            }
            AfterRevert::Block { reason } => {
                if let Some(record) = self.stories.get_mut(&id.story) {
                    record.state = StoryState::Blocked;
                    record.reason = Some(reason);
                }
                self.note_attempt(attempt.agent.as_ref(), false);
                self.go_on()
            }
            AfterRevert::Charge { failure, kind, fingerprint, last, silent } => {
                self.note_attempt(attempt.agent.as_ref(), silent);
                self.charge(&attempt, (failure, kind), fingerprint, last)
            }
        }
    }

    fn charge(
        &mut self,
        attempt: &Attempt,
        (failure, kind): (AttemptFailure, FailureKind),
        fingerprint: Fingerprint,
        last: bool,
    ) -> Vec<Effect> {
        let id = &attempt.id;
        let max_retries = self.policy.max_retries;
        let Some(record) = self.stories.get_mut(&id.story) else { return Vec::new() };
        record.charged += 1;
        record.answer_wish();
        record.on_rung += 1;
        let times = match &record.streak {
            Some((same, times)) if *same == fingerprint => times + 1,
            _ => 1,
        };
        record.streak = Some((fingerprint, times));
        record.tell = failure.tell;
        record.failure = Some(failure.reason.clone());
        let failed = record.failed_as.entry(kind).or_default();
        *failed += 1;
        let own = self.policy.retries.get(&kind);
        let used_up = record.charged > max_retries || own.and_then(|own| own.attempts).is_some_and(|max| *failed > max);
        let nth = usize::try_from(*failed - 1).unwrap_or(usize::MAX);
        let wait = own.and_then(|own| own.backoff.get(nth).or(own.backoff.last())).copied();
        record.rest = wait.map(|span| Rest { until: self.last_at.after(span), span });
        let stuck = times >= SAME_FAILURE && !used_up;
        // What is the last attempt anyway is better spent on an agent that has not failed at it yet.
        let plateau = record.charged == max_retries && record.on_rung >= ON_A_RUNG;
        let repeats = format!("{} (the same failure {times} times in a row: no progress", failure.reason);
        let next = if (stuck || last || plateau) && !used_up { self.move_up(attempt) } else { None };
        let exhausted = used_up || ((stuck || last) && next.is_none());
        let fix = if exhausted { self.fix_for(&id.story) } else { None };
        if let Some(record) = self.stories.get_mut(&id.story) {
            record.reason = Some(match next {
                Some(next) if stuck => format!("{repeats}, so {next} tries next)"),
                Some(next) => format!("{} ({next} tries next)", failure.reason),
                None if stuck => format!("{repeats}, so it is not tried again)"),
                None => failure.reason,
            });
            match fix {
                Some(fix) => record.wants(fix),
                None if exhausted => record.state = StoryState::Failed,
                None => {}
            }
        }
        let all_broken = self.chain.iter().all(|agent| matches!(self.away(agent), Some(Away::Unusable { .. })));
        if let (true, Prospect::Never(outcome)) = (all_broken, self.prospect(&self.chain)) {
            return self.end(outcome);
        }
        let failed = self.stories.get(&id.story).is_some_and(|record| record.state == StoryState::Failed);
        if failed { self.exhausted(&id.story) } else { self.go_on() }
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
