//! Plans for tests, in few words.

use crate::ids::StoryId;
use crate::plan::{Plan, Priority, Scheme, Story, WorkId, WorkState};

/// A story that wants to be done.
pub(crate) fn story(id: &str) -> StoryBuilder {
    StoryBuilder(Story::new(id, format!("title of {id}")))
}

pub(crate) struct StoryBuilder(Story);

impl StoryBuilder {
    pub(crate) fn after(mut self, deps: &[&str]) -> Self {
        self.0.deps = deps.iter().map(|d| StoryId::from(*d)).collect();
        self
    }

    pub(crate) fn priority(mut self, rank: f64) -> Self {
        self.0.priority = Some(Priority(rank));
        self
    }

    pub(crate) fn done(mut self) -> Self {
        self.0.state = WorkState::Done;
        self
    }
}

/// A plan of those stories.
pub(crate) fn plan(stories: Vec<StoryBuilder>) -> Plan {
    Plan::new(WorkId { scheme: Scheme::Prd, id: "prd.json".to_owned() }, stories.into_iter().map(|s| s.0).collect())
}
