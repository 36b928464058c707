//! A reading together with the places in the file at which it can be changed.

use std::collections::HashSet;

use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Plan, Story, StoryKind, Task, WorkState};

use crate::edit::Edit;
use crate::error::Diagnostic;

/// What a spec says.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The stories with everything that an agent is told.
    pub plan: Plan,
    /// The project that the file names; the first heading of level 1 in Markdown.
    pub project: Option<String>,
    /// What is worth saying about the file.
    pub warnings: Vec<Diagnostic>,
    /// The story that is to be done first.
    pub next: Option<StoryId>,
    /// Nothing required is left.
    pub all_done: bool,
}

impl Reading {
    pub(crate) fn new(plan: Plan, project: Option<String>, warnings: Vec<Diagnostic>) -> Self {
        let next = next(&plan.stories);
        let all_done = !plan.stories.is_empty() && plan.stories.iter().all(is_settled);
        Self { plan, project, warnings, next, all_done }
    }
}

fn is_settled(story: &Story) -> bool {
    story.optional || matches!(story.state, WorkState::Done | WorkState::Skipped)
}

/// By rank, then by place in the file: the first story that is open, wanted, and waits for nothing.
fn next(stories: &[Story]) -> Option<StoryId> {
    let open: HashSet<&StoryId> = stories.iter().filter(|s| s.state != WorkState::Done).map(|s| &s.id).collect();
    let ready = |story: &&Story| {
        story.kind == StoryKind::Story
            && !story.optional
            && !matches!(story.state, WorkState::Done | WorkState::Blocked | WorkState::Skipped)
            && !story.deps.iter().any(|dep| open.contains(dep))
    };
    let rank = |story: &&Story| story.priority.map_or(f64::INFINITY, |priority| priority.0);
    stories.iter().filter(ready).min_by(|a, b| rank(a).total_cmp(&rank(b))).map(|story| story.id.clone())
}

/// What kind of token a mark is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// What stands between the brackets of a Markdown box.
    Box,
    /// A done flag, present or to be inserted.
    Flag,
    /// A status word.
    Status,
    /// The status of a task, on a line of its own.
    Line,
    /// Such a line that is not there; it is only written when its story lands.
    NoLine,
    /// Whether a task was verified, on a line of its own.
    Verified,
}

impl Slot {
    /// Whether a task's mark of this kind is written when its story lands.
    pub(crate) fn is_ticked_with_its_story(self) -> bool {
        matches!(self, Self::Box | Self::Line | Self::NoLine | Self::Verified)
    }

    /// Whether a person who marks the item alone means this.
    pub(crate) fn is_ticked_by_hand(self) -> bool {
        !matches!(self, Self::NoLine | Self::Verified)
    }
}

/// A token that says whether an item is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    pub slot: Slot,
    /// In the file's bytes.
    pub offset: usize,
    /// What stands there; empty if nothing does.
    pub now: String,
    /// What stands there once the item is done.
    pub done: String,
    /// What says that it is not done, where nothing better is known.
    pub open: &'static str,
    /// It says done already.
    pub is_done: bool,
}

impl Mark {
    /// The edit that makes it say done; none if it does.
    pub(crate) fn tick(&self) -> Option<Edit> {
        (!self.is_done).then(|| self.replaced_by(&self.done))
    }

    pub(crate) fn replaced_by(&self, text: &str) -> Edit {
        Edit { offset: self.offset, remove: self.now.clone(), insert: text.to_owned() }
    }
}

/// The marks of one item. Without any, it follows its story.
#[derive(Debug, Clone, Default)]
pub(crate) struct ItemMarks {
    pub marks: Vec<Mark>,
    /// Its id stands in the file, unchanged; others come from the position or carry a suffix.
    pub declared: bool,
}

/// The marks of a story and of its tasks, in the order of [`Story::tasks`].
#[derive(Debug, Clone, Default)]
pub(crate) struct StoryMarks {
    pub own: ItemMarks,
    pub tasks: Vec<ItemMarks>,
}

/// A reading with its marks, in the order of [`Plan::stories`].
#[derive(Debug)]
pub(crate) struct Document {
    pub reading: Reading,
    pub marks: Vec<StoryMarks>,
}

impl Document {
    /// Stories with their marks.
    pub(crate) fn stories(&self) -> impl Iterator<Item = (&Story, &StoryMarks)> {
        self.reading.plan.stories.iter().zip(&self.marks)
    }

    pub(crate) fn story(&self, id: &str) -> Option<(&Story, &StoryMarks)> {
        self.stories().find(|(story, _)| story.id.as_str() == id)
    }

    /// A task with its marks and its story.
    pub(crate) fn task(&self, id: &str) -> Option<(&Task, &ItemMarks, &Story)> {
        self.stories().find_map(|(story, marks)| {
            let mut tasks = story.tasks.iter().zip(&marks.tasks);
            tasks.find(|(task, _)| task.id.as_str() == id).map(|(task, marks)| (task, marks, story))
        })
    }
}

/// What landing writes: the story's own marks, and those of all its tasks that must be done, as far as `wanted`.
pub(crate) fn ticks(story: &Story, marks: &StoryMarks, wanted: fn(&Mark) -> bool) -> Vec<Edit> {
    let tasks = story.tasks.iter().zip(&marks.tasks);
    let needed = tasks.filter(|(task, _)| story.optional || !task.optional);
    let boxes = needed.flat_map(|(_, marks)| &marks.marks).filter(|mark| mark.slot.is_ticked_with_its_story());
    marks.own.marks.iter().chain(boxes).filter(|mark| wanted(mark)).filter_map(Mark::tick).collect()
}
