//! Ticking items: the edits, and the proof that they change that item and nothing else.

use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Plan, Scheme, Story, Task, WorkState};

use crate::document::{ItemMarks, Mark, Slot, ticks};
use crate::edit::{Edit, apply};
use crate::error::SpecError;
use crate::source::{Strictness, document, unnamed};
use crate::text::Text;

/// Why an item cannot be ticked. Nothing is changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MarkError {
    /// The file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] SpecError),
    /// Nothing is called so.
    #[error("there is no story and no task {id:?} here; {known}")]
    Unknown {
        /// What was asked for.
        id: String,
        /// What is there instead.
        known: String,
    },
    /// The item has no state of its own that could be changed.
    #[error("{id:?} cannot be marked: {why}")]
    NotWritable {
        /// The item.
        id: String,
        /// Why.
        why: String,
    },
    /// Read again after the edit, the file said something else than wanted.
    #[error("marking {id:?} would change more than that item: {what}; mark it by hand")]
    Unproven {
        /// The item.
        id: String,
        /// What differs.
        what: String,
    },
}

/// The edits that mark a story or a task as done; none if it is done already.
///
/// A story is marked by its own mark where that suffices, else also by those of its open tasks. An id that names a
/// story and a task means the task, which is the smaller change.
///
/// # Errors
/// The file cannot be read, nothing is called so, or the item has no state of its own.
pub fn mark_done(scheme: Scheme, bytes: &[u8], id: &str) -> Result<Vec<Edit>, MarkError> {
    let (before, strictness) = unnamed(scheme, bytes)?;
    refuse_read_only(scheme, &before.reading.plan, id)?;
    let proof = Proof { scheme, strictness, bytes, before: &before.reading.plan, id };
    if let Some((task, marks, story)) = before.task(id) {
        if task.state == WorkState::Done {
            return Ok(Vec::new());
        }
        let edits: Vec<Edit> =
            marks.marks.iter().filter(|mark| mark.slot.is_ticked_by_hand()).filter_map(Mark::tick).collect();
        if edits.is_empty() {
            let why = without_mark(scheme, story);
            return Err(MarkError::NotWritable { id: id.to_owned(), why });
        }
        return proof.of(&Target::Task(story.id.clone()), edits);
    }
    if let Some((story, marks)) = before.story(id) {
        if story.state == WorkState::Done {
            return Ok(Vec::new());
        }
        let own: Vec<Edit> = marks.own.marks.iter().filter_map(Mark::tick).collect();
        if !own.is_empty()
            && let Ok(edits) = proof.of(&Target::Story, own)
        {
            return Ok(edits);
        }
    }
    whole_story(scheme, bytes, &StoryId::from(id), |mark| mark.slot != Slot::Verified)
}

fn refuse_read_only(scheme: Scheme, plan: &Plan, id: &str) -> Result<(), MarkError> {
    if plan.writable {
        return Ok(());
    }
    let way = match scheme {
        Scheme::Beads => format!("close it with `bd close {id}`"),
        Scheme::GitHub => format!("close it with `gh issue close {id}`"),
        _ => "change it with the tool that wrote the file".to_owned(),
    };
    let why = format!("the file is only read; {way}");
    Err(MarkError::NotWritable { id: id.to_owned(), why })
}

/// Why a task cannot be marked, and the way out.
fn without_mark(scheme: Scheme, story: &Story) -> String {
    if scheme == Scheme::Flight {
        return "only a box or a Status line can be marked, and it has none; write **Status**: 🔵 Planned below a task, \
                or make the item a box"
            .to_owned();
    }
    format!("it has no flag of its own and is done when its story is; mark {:?} instead", story.id.as_str())
}

/// The edits that landing writes: every open box of the story that is not optional, or its flag and, where the file
/// has a word for done, its status.
///
/// # Errors
/// As for [`mark_done`].
pub fn tick_story(scheme: Scheme, bytes: &[u8], story: &StoryId) -> Result<Vec<Edit>, MarkError> {
    whole_story(scheme, bytes, story, |_| true)
}

/// The edits that make a story done, of those marks that are `wanted`.
fn whole_story(
    scheme: Scheme,
    bytes: &[u8],
    story: &StoryId,
    wanted: fn(&Mark) -> bool,
) -> Result<Vec<Edit>, MarkError> {
    let (before, strictness) = unnamed(scheme, bytes)?;
    let plan = &before.reading.plan;
    refuse_read_only(scheme, plan, story.as_str())?;
    let Some((found, marks)) = before.story(story.as_str()) else {
        return Err(MarkError::Unknown { id: story.as_str().to_owned(), known: known(plan) });
    };
    let marks_of_own = &marks.own.marks;
    let unmarked = |(task, marks): (&Task, &ItemMarks)| {
        !task.optional && task.state != WorkState::Done && marks.marks.is_empty() && marks_of_own.is_empty()
    };
    if scheme == Scheme::Flight && found.tasks.iter().zip(&marks.tasks).any(unmarked) {
        let why = without_mark(scheme, found);
        return Err(MarkError::NotWritable { id: story.as_str().to_owned(), why });
    }
    let edits = match found.state {
        // What is done may still carry a status that says otherwise.
        WorkState::Done => marks.own.marks.iter().filter(|mark| wanted(mark)).filter_map(Mark::tick).collect(),
        _ => ticks(found, marks, wanted),
    };
    if edits.is_empty() && found.state != WorkState::Done {
        let why = without_mark(scheme, found);
        return Err(MarkError::NotWritable { id: story.as_str().to_owned(), why });
    }
    Proof { scheme, strictness, bytes, before: plan, id: story.as_str() }.of(&Target::Story, edits)
}

/// What there is, for somebody who asked for something else.
pub(crate) fn known(plan: &Plan) -> String {
    const SHOWN: usize = 12;
    let ids: Vec<&str> = plan.stories.iter().map(|story| story.id.as_str()).collect();
    let more = if ids.len() > SHOWN { format!(" and {} more", ids.len() - SHOWN) } else { String::new() };
    format!("the stories are {}{more}", ids[..ids.len().min(SHOWN)].join(", "))
}

enum Target {
    Story,
    /// A task of this story.
    Task(StoryId),
}

/// What edits are proven against: the file and its reading.
struct Proof<'p> {
    scheme: Scheme,
    strictness: Strictness,
    bytes: &'p [u8],
    before: &'p Plan,
    id: &'p str,
}

impl Proof<'_> {
    /// The edits, if the file reads back with exactly that item changed.
    fn of(&self, target: &Target, edits: Vec<Edit>) -> Result<Vec<Edit>, MarkError> {
        let unproven = |what: String| MarkError::Unproven { id: self.id.to_owned(), what };
        let changed = apply(self.bytes, &edits).map_err(|stale| unproven(stale.to_string()))?;
        let text = Text::decode(self.scheme.as_str(), &changed).map_err(|error| unproven(error.message))?;
        let after =
            document(self.scheme, &text, self.strictness).map_err(|error| unproven(error.message))?.reading.plan;
        match self.difference(target, &after) {
            None => Ok(edits),
            Some(what) => Err(unproven(what)),
        }
    }

    /// What differs from what was wanted.
    fn difference(&self, target: &Target, after: &Plan) -> Option<String> {
        if after.stories.len() != self.before.stories.len() {
            return Some("the number of stories differs".into());
        }
        self.before.stories.iter().zip(&after.stories).find_map(|(old, new)| self.story_difference(target, old, new))
    }

    fn story_difference(&self, target: &Target, old: &Story, new: &Story) -> Option<String> {
        if old.id != new.id || old.title != new.title || old.tasks.len() != new.tasks.len() {
            return Some(format!("the story {} reads differently", old.id));
        }
        let wanted = matches!(target, Target::Story) && old.id.as_str() == self.id;
        let touched = wanted || matches!(target, Target::Task(story) if *story == old.id);
        if !touched && old.state != new.state || wanted && new.state != WorkState::Done {
            return Some(format!("the story {} has another state than wanted", old.id));
        }
        let wrong = |(old, new): (&Task, &Task)| {
            let this = touched && !wanted && old.id.as_str() == self.id;
            let may_change = wanted || this;
            old.id != new.id || !may_change && old.state != new.state || this && new.state != WorkState::Done
        };
        let task = old.tasks.iter().zip(&new.tasks).find(|(old, new)| wrong((old, new)))?;
        Some(format!("the task {} has another state than wanted", task.0.id))
    }
}
