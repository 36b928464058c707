//! What a person asks of a run while it goes on: stop, pause, skip a story, try one again.

use super::story::{StoryState, Wish};
use super::{Activity, Run};
use crate::effect::Effect;
use crate::event::{StopCause, StopLevel};
use crate::ids::{AttemptId, StoryId};
use crate::outcome::Outcome;

/// Why an attempt is put back when the run stops.
pub(super) const STOPPED: &str = "the run was stopped";
/// Why an attempt is put back when its story is skipped.
const DROPPED: &str = "its story was skipped";

impl Run {
    pub(super) fn stop_requested(&mut self, cause: StopCause, level: StopLevel) -> Vec<Effect> {
        let level = match self.stop {
            Some((_, earlier)) if earlier >= level => return Vec::new(),
            _ => level,
        };
        self.stop = Some((cause, level));
        let mut effects = if level == StopLevel::Now { self.stop_work() } else { Vec::new() };
        if let Activity::Waiting(_) = self.activity {
            effects.extend(self.end(Outcome::Stopped { cause }));
        }
        effects
    }

    /// Ends what runs for the attempts under way, and puts back those that only wait for their turn.
    fn stop_work(&mut self) -> Vec<Effect> {
        let ids: Vec<AttemptId> = self.attempts.values().map(|a| a.id.clone()).collect();
        ids.into_iter().flat_map(|id| self.stop_attempt(&id)).collect()
    }

    pub(super) fn pause_requested(&mut self) -> Vec<Effect> {
        self.pause = true;
        match self.activity {
            Activity::Waiting(_) => self.go_on(),
            _ => Vec::new(),
        }
    }

    /// The story is not begun any more. An attempt of it is ended as by a stop: it is kept and put back, unless its commit
    /// is being made and comes out well.
    pub(super) fn skip_requested(&mut self, story: &StoryId) -> Vec<Effect> {
        let Some(record) = self.stories.get_mut(story) else { return Vec::new() };
        if record.state.is_on_branch() || record.state == StoryState::Skipped || record.is_put_aside() {
            return Vec::new();
        }
        record.wish = Wish::Skip;
        if let Some(attempt) = self.attempts.get_mut(story) {
            attempt.dropped = true;
            let id = attempt.id.clone();
            return self.stop_attempt(&id);
        }
        record.rest();
        let nothing_left =
            self.is_idle() && !self.stories.values().any(|r| r.selected && r.state == StoryState::Pending);
        if nothing_left && let Activity::Waiting(_) = self.activity {
            self.activity = Activity::Working;
        }
        self.go_on()
    }

    /// In a run that is ending it would not be begun, and taking the run up again says for what.
    pub(super) fn retry_requested(&mut self, story: &StoryId) -> Vec<Effect> {
        if !matches!(self.activity, Activity::Ending(_) | Activity::Ended(_)) {
            self.try_again(story);
        }
        self.go_on()
    }

    /// The story has all its attempts again. What its last one told goes into the next prompt all the same.
    pub(super) fn try_again(&mut self, story: &StoryId) {
        let Some(record) = self.stories.get_mut(story) else { return };
        match record.state {
            // The attempt that was dropped is put back, and then the story is open again.
            StoryState::Running => record.wish = Wish::None,
            StoryState::Pending if record.selected => record.rest = None,
            StoryState::Pending
            | StoryState::Failed
            | StoryState::Blocked
            | StoryState::Skipped
            | StoryState::AwaitsSignOff { .. } => {
                record.sent_back.extend(record.state.commit().cloned());
                record.renew();
                record.selected = true;
                record.wish = Wish::Again;
                record.reason = Some("to be tried again, as you asked".to_owned());
            }
            StoryState::Landed { .. } | StoryState::DoneBefore => {}
        }
    }

    /// What came of a wish to skip a story, in words.
    pub fn came_of_skip(&self, story: &StoryId) -> String {
        match self.record(story) {
            Some(record) if record.state == StoryState::Running && record.is_put_aside() => {
                format!("Skipping story {story}: its attempt is ended, kept and put back")
            }
            Some(record) if record.state == StoryState::Skipped => format!("Story {story} is skipped"),
            Some(record) if record.state.passed() => format!("Story {story} is not skipped: it has passed"),
            Some(record) if record.state.is_on_branch() => {
                format!("Story {story} is not skipped: it has landed, and awaits a sign-off")
            }
            _ => format!("Story {story} is not skipped: it is not in this run"),
        }
    }

    /// The story waits for an attempt, or has one, because somebody wanted it tried again.
    pub fn tries_again(&self, story: &StoryId) -> bool {
        let asked = self.record(story).filter(|record| record.wish == Wish::Again);
        asked.is_some_and(|record| matches!(record.state, StoryState::Pending | StoryState::Running))
    }

    /// What came of a wish to try a story again, in words.
    pub fn came_of_retry(&self, story: &StoryId) -> String {
        let Some(record) = self.record(story) else {
            return format!("Story {story} is not tried again: it is not in this run");
        };
        match (&record.state, &self.activity) {
            (state, _) if state.passed() => format!("Story {story} is not tried again: it has passed"),
            _ if self.tries_again(story) => format!("Story {story} is tried again, with all its attempts"),
            (StoryState::Pending, _) => format!("Story {story} is waiting for its turn"),
            (StoryState::Running, _) => format!("Story {story} is being worked on"),
            (_, Activity::Ending(_) | Activity::Ended(_)) => format!(
                "Story {story} is not tried again, since the run is ending: `ralphloop retry {story}` does it afterwards"
            ),
            _ => format!("Story {story} cannot be tried yet: {}", record.reason.as_deref().unwrap_or_default()),
        }
    }

    /// What has not called its agent yet does not, and what waits to land goes on waiting.
    pub(super) fn begins_nothing(&self) -> bool {
        self.halted || self.stopping_now()
    }

    fn stopping_now(&self) -> bool {
        matches!(self.stop, Some((_, StopLevel::Now)))
    }

    /// Why the attempt does not go on: its story was skipped, or the run stops at once.
    pub(super) fn cut_short(&self, id: &AttemptId) -> Option<&'static str> {
        match self.attempt(id) {
            Some(attempt) if attempt.dropped => Some(DROPPED),
            _ => self.stopping_now().then_some(STOPPED),
        }
    }

    pub(super) fn asked_to_end(&self) -> Option<Outcome> {
        match self.stop {
            Some((cause, _)) => Some(Outcome::Stopped { cause }),
            None if self.pause => Some(Outcome::Paused { reason: "asked to pause; resume goes on".to_owned() }),
            None => None,
        }
    }
}
