//! A task that fails for good gets another task that mends it: that is added to the spec in an attempt of its own, in which no
//! agent works, and which lands as any other. Then the story is tried afresh.

use super::Run;
use super::attempt::{AfterRevert, Proof};
use super::story::{Mending, StoryRecord, StoryState};
use crate::effect::{Effect, FixTask, Ground};
use crate::event::CheckRef;
use crate::evidence::{AgentEnd, AgentReport, Claim, Usage};
use crate::ids::{AttemptId, CallNumber, CommitId, StoryId, TaskId, TreeId};
use crate::plan::{Check, Story, WorkState};
use crate::verdict::Tell;

impl Run {
    /// The task that the attempt adds to its story, if that is what it is for.
    pub fn mends(&self, id: &AttemptId) -> Option<&FixTask> {
        self.attempt(id)?;
        self.to_be_mended(&id.story)
    }

    /// The task that the story's next attempt adds to it.
    pub fn to_be_mended(&self, story: &StoryId) -> Option<&FixTask> {
        match &self.stories.get(story)?.mending {
            Mending::Wanted(fix) => Some(fix),
            Mending::Never | Mending::Over => None,
        }
    }

    /// The task that is to mend a story which has failed for good: if the check of a task is what failed, and neither this run
    /// nor an earlier one has added a task for that.
    pub(super) fn fix_for(&self, story: &StoryId) -> Option<FixTask> {
        let record = self.stories.get(story).filter(|record| record.mending == Mending::Never)?;
        let (plan, Tell::Failures(failures)) = (self.plan.story(story)?, &record.tell) else { return None };
        if !self.policy.create_tasks || !self.plan.writable {
            return None;
        }
        failures.iter().find_map(|failure| {
            let Some(CheckRef::Story(at)) = failure.check else { return None };
            let check = plan.checks.get(at)?;
            let of = failed_task(plan, check)?;
            let (label, output) = (check.label().to_owned(), failure.output.clone());
            let why = failure.reason.strip_prefix(&format!("`{label}`: ")).unwrap_or(&failure.reason).to_owned();
            Some(FixTask { of, check: label, why, output })
        })
    }

    /// The lane is ready, and there is nothing to prove.
    pub(super) fn ready_to_mend(&mut self, id: &AttemptId) -> Vec<Effect> {
        let report = AgentReport {
            end: AgentEnd::Finished,
            claim: Claim::None { near_miss: None },
            last_words: String::new(),
            handover: String::new(),
            usage: Usage::default(),
            took: std::time::Duration::ZERO,
            learnings: Vec::new(),
            model: None,
        };
        let proof = Proof {
            call: CallNumber(0),
            ground: Ground::NoChange,
            tree: TreeId(String::new()),
            also: Vec::new(),
            turn: self.next_turn(),
            report: Box::new(report),
        };
        self.proven(id, proof)
    }

    /// The task is in the spec: the story has all its attempts again.
    pub(super) fn mended(
        &mut self,
        id: &AttemptId,
        (task, commit): (&TaskId, Option<&CommitId>),
        story: &Story,
    ) -> Vec<Effect> {
        self.attempts.remove(&id.story);
        if let Some(known) = self.plan.stories.iter_mut().find(|known| known.id == id.story) {
            // Commands are those that stood there when the run began.
            *known = Story { checks: std::mem::take(&mut known.checks), ..story.clone() };
        }
        let aside = self.stories.get(&id.story).is_some_and(StoryRecord::is_put_aside);
        if let Some(record) = self.stories.get_mut(&id.story) {
            record.mending = Mending::Over;
            record.mended_by = commit.cloned();
            if aside {
                record.rest();
            } else {
                record.renew();
                record.reason = Some(format!("the task {task} was added to mend it"));
            }
        }
        self.baseline = self.baseline.next();
        let mut effects = self.next_landing();
        effects.extend(self.go_on());
        effects
    }

    /// There will be no such task.
    pub(super) fn cannot_mend(&mut self, id: &AttemptId, why: &str) -> Vec<Effect> {
        let reason = format!("no fix task was added: {why}");
        self.revert(id, &reason, AfterRevert::Unmended { reason: reason.clone() })
    }

    /// What there is of the attempt is put back: the story has failed for good.
    pub(super) fn unmended(&mut self, id: &AttemptId, why: &str) -> Vec<Effect> {
        if let Some(record) = self.stories.get_mut(&id.story) {
            record.mending = Mending::Over;
            record.state = StoryState::Failed;
            let failure = record.failure.clone().unwrap_or_default();
            record.reason = Some(format!("{failure} ({why})"));
        }
        self.exhausted(&id.story)
    }
}

impl StoryRecord {
    /// A task is to be added to it, at once.
    pub(super) fn wants(&mut self, fix: FixTask) {
        self.rest = None;
        self.mending = Mending::Wanted(Box::new(fix));
    }
}

/// The open task whose check it is, unless that one is to mend another, or is being mended already.
fn failed_task(story: &Story, check: &Check) -> Option<TaskId> {
    let open = || story.tasks.iter().filter(|task| task.state != WorkState::Done);
    let failed = open().find(|task| task.mends.is_none() && task.verified_by.as_ref() == Some(check))?;
    let is_mended = open().any(|task| task.mends.as_ref() == Some(&failed.id));
    (!is_mended).then(|| failed.id.clone())
}
