//! What the next prompt says beyond the story.

use super::{Attempt, Run};
use crate::effect::{Brief, Failure};
use crate::ids::{AttemptId, StoryId};
use crate::verdict::{AttemptFailure, Tell, reasons};

impl Run {
    /// The brief of a fresh attempt. The guidance is used up by it unless the attempt comes to nothing.
    pub(super) fn first_brief(&mut self, id: &AttemptId) -> Brief {
        let mut brief = self.common_brief(id);
        let Some(record) = self.stories.get(&id.story) else { return brief };
        match &record.tell {
            Tell::Nothing => {}
            Tell::Reason => brief.previous = record.failure.clone().map(Failure::new).into_iter().collect(),
            Tell::Failures(failures) => brief.previous.clone_from(failures),
            Tell::LastWords(words) => {
                brief.previous = record.failure.clone().map(Failure::new).into_iter().collect();
                brief.last_words = Some(words.clone());
            }
            Tell::Shorten => brief.shorter = true,
        }
        brief
    }

    /// The brief of a repair. The guidance is used up by it.
    pub(super) fn repair_brief(&mut self, id: &AttemptId, failures: Vec<Failure>) -> Brief {
        Brief { repair: failures, ..self.common_brief(id) }
    }

    /// The brief of a call that resolves conflicts in `files`.
    pub(super) fn resolve_brief(&mut self, id: &AttemptId, files: Vec<String>) -> Brief {
        let titled = |story: &StoryId| {
            let title = self.plan.story(story).map_or("", |s| s.title.lines().next().unwrap_or_default());
            format!("{story}: {title}")
        };
        let landed = self.attempt(id).map(|attempt| attempt.landed_meanwhile.iter().map(titled).collect());
        Brief { conflicts: files, landed_meanwhile: landed.unwrap_or_default(), ..self.common_brief(id) }
    }

    pub(super) fn common_brief(&mut self, id: &AttemptId) -> Brief {
        let guidance = std::mem::take(&mut self.guidance);
        if let Some(attempt) = self.attempts.get_mut(&id.story) {
            attempt.carried.extend(guidance.iter().cloned());
        }
        let ranked = self.learnings.ranked(self.plan.story(&id.story));
        let learnings = ranked.into_iter().map(str::to_owned).collect();
        Brief { guidance, learnings, ..Brief::default() }
    }

    /// The attempt came to nothing, so that its prompts' guidance holds for the next.
    pub(super) fn take_guidance_back(&mut self, attempt: &mut Attempt) {
        self.guidance.splice(0..0, std::mem::take(&mut attempt.carried));
    }
}

/// The reason of an attempt whose checks fail and cannot be repaired any more.
pub(super) fn failure_of_checks(failures: Vec<Failure>) -> AttemptFailure {
    let reason = reasons(&failures);
    AttemptFailure { reason, tell: Tell::Failures(failures) }
}
