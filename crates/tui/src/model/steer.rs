//! Skipping a story and trying one again.

use std::time::Duration;

use ralphloop_core::event::{Event, Fact};
use ralphloop_core::ids::StoryId;
use ralphloop_core::run::StoryState;
use ralphloop_core::units::Timestamp;

use super::Model;
use crate::keys::Action;
use crate::port::{Leave, Request};
use crate::text::one_line;

/// The second press comes within this time.
const SURE: Duration = Duration::from_secs(3);

/// The first press of a key that costs an attempt.
pub(crate) type Doubt = Option<(StoryId, Timestamp)>;

impl Model {
    /// Takes the selected story out of the run.
    pub(super) fn skip(&mut self, over: bool, requests: &mut Vec<Request>) {
        let Some((story, state, _)) = self.selected_story() else { return };
        let id = one_line(story.as_str());
        match state {
            _ if over => self.say(format!("the run is over, so {id} is not begun in it anyway")),
            state if state.passed() => self.say(format!("{id} has passed")),
            StoryState::Skipped => self.say(format!("{id} is skipped already")),
            StoryState::Running if !self.is_sure(&story) => {
                let key = self.options.keys.name(Action::Skip);
                self.run.doubt = Some((story, self.now));
                self.say(format!("{key} once more skips {id}: its attempt is ended, kept and put back"));
            }
            _ => {
                self.run.doubt = None;
                requests.push(Request::Skip(story));
            }
        }
    }

    /// Tries the selected story again.
    pub(super) fn retry(&mut self, over: bool, requests: &mut Vec<Request>) {
        let Some((story, state, put_aside)) = self.selected_story() else { return };
        let id = one_line(story.as_str());
        match state {
            state if state.passed() => self.say(format!("{id} has passed")),
            _ if over => requests.push(Request::Leave(Leave::Retry(story))),
            StoryState::Running if !put_aside => self.say(format!("{id} is being worked on")),
            StoryState::Pending => self.say(format!("{id} is waiting for its turn")),
            _ => requests.push(Request::Retry(story)),
        }
    }

    /// Says what came of such a wish, whoever had it, if it was had just now.
    pub(super) fn tell_of_wish(&mut self, event: &Event) {
        let Some(watched) = self.run.watched.as_ref().filter(|_| self.now.since(event.at) <= SURE) else { return };
        let said = match &event.fact {
            Fact::SkipRequested { story } => watched.run.came_of_skip(story),
            Fact::RetryRequested { story } => watched.run.came_of_retry(story),
            _ => return,
        };
        self.say(said);
    }

    fn is_sure(&self, story: &StoryId) -> bool {
        self.run.doubt.as_ref().is_some_and(|(first, at)| first == story && self.now.since(*at) <= SURE)
    }

    fn selected_story(&self) -> Option<(StoryId, StoryState, bool)> {
        let story = self.run.story()?;
        let record = self.run.watched.as_ref()?.run.record(story)?;
        Some((story.clone(), record.state.clone(), record.is_put_aside()))
    }
}
