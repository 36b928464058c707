//! How the spec file is to look after an attempt: people's edits survive, marks are the tool's.
//!
//! One file is input, state and scratch paper at once, and the agent may write to it. What it changes in the text stays;
//! what it says of other stories' progress does not; and whatever drops a story or cannot be read is undone.

use std::collections::{HashMap, HashSet, VecDeque};

use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Scheme, Story, Task, WorkState};

use crate::document::{Document, ItemMarks, Mark, Slot, StoryMarks};
use crate::edit::{Edit, apply};
use crate::mark::tick_story;
use crate::source::{document, unnamed};
use crate::text::Text;

/// The spec file after an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciled {
    /// What the file is to hold.
    pub bytes: Vec<u8>,
    /// What was put right, in words; empty if nothing was.
    pub notes: Vec<String>,
    /// What the agent did with the boxes of its story.
    pub own_boxes: OwnBoxes,
}

/// The boxes of the story that was attempted, or what a format has in their place. A flag in a `prd.json` is no box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnBoxes {
    /// One of them was open at the checkpoint.
    pub had_open: bool,
    /// There are some, and the agent left all of them ticked.
    pub all_ticked: bool,
}

/// Merges the file as the attempt left it (`now`; `None` if it is gone) with the checkpoint's.
///
/// A file that still reads and holds every story of the checkpoint is kept, but the marks of other stories go back to
/// what they were; so do those of `story` unless it `landed`. Any other file is replaced by the checkpoint's. Then, if
/// the story landed, its marks are set by minimal edits; a file that has no place for them is replaced, too.
pub fn reconcile(scheme: Scheme, checkpoint: &[u8], now: Option<&[u8]>, story: &StoryId, landed: bool) -> Reconciled {
    let mut out = Reconciled { bytes: checkpoint.to_vec(), notes: Vec::new(), own_boxes: OwnBoxes::default() };
    let (before, strictness) = match unnamed(scheme, checkpoint) {
        Ok(read) => read,
        Err(error) => {
            let unmarked = if landed { format!(", without a mark for {story}") } else { String::new() };
            out.notes.push(format!("the spec file cannot be read and is left as it is{unmarked}: {error}"));
            return out;
        }
    };
    out.own_boxes.had_open = boxes_of(&before, story).contains(&false);

    match now {
        None => out.notes.push("the spec file was deleted and has been put back".into()),
        Some(now) if now == checkpoint => out.own_boxes.all_ticked = all_ticked(&before, &before, story),
        Some(now) => {
            let read = Text::decode(scheme.as_str(), now).and_then(|text| document(scheme, &text, strictness));
            match read {
                Ok(after) => keep_edits(&mut out, now, &before, &after, story, landed),
                Err(error) => {
                    let place = error.line.map(|line| format!(" (line {line})")).unwrap_or_default();
                    out.notes.push(format!(
                        "the spec file could no longer be read and has been put back: {}{place}",
                        error.message
                    ));
                }
            }
        }
    }

    if landed && before.reading.plan.writable {
        let is_marked =
            |bytes: &Result<Vec<u8>, String>| bytes.as_ref().is_ok_and(|bytes| is_done(scheme, bytes, story));
        let mut with_mark = marked(scheme, &out.bytes, story);
        if out.bytes != checkpoint && !is_marked(&with_mark) {
            let put_back = marked(scheme, checkpoint, story);
            if is_marked(&put_back) {
                // What was said of the file as the agent left it says nothing of this one.
                out.notes = vec![format!("the spec file had no place for the mark of {story} and has been put back")];
                with_mark = put_back;
            }
        }
        match with_mark {
            Ok(bytes) => out.bytes = bytes,
            Err(error) => out.notes.push(format!("story {story} could not be marked as done: {error}")),
        }
    }
    out
}

/// The file with the marks of a story that is done.
fn marked(scheme: Scheme, bytes: &[u8], story: &StoryId) -> Result<Vec<u8>, String> {
    let edits = tick_story(scheme, bytes, story).map_err(|error| error.to_string())?;
    apply(bytes, &edits).map_err(|error| error.to_string())
}

fn is_done(scheme: Scheme, bytes: &[u8], story: &StoryId) -> bool {
    let is_it = |done: &Story| done.id == *story && done.state == WorkState::Done;
    unnamed(scheme, bytes).is_ok_and(|(document, _)| document.stories().any(|(story, _)| is_it(story)))
}

/// Keeps the current text with the marks put right, unless stories are gone.
fn keep_edits(out: &mut Reconciled, now: &[u8], before: &Document, after: &Document, own: &StoryId, landed: bool) {
    out.own_boxes.all_ticked = all_ticked(before, after, own);
    let now_there = Stories::of(after);
    let gone: Vec<&str> =
        before.stories().filter(|(s, _)| now_there.counterpart(s).is_none()).map(|(s, _)| s.id.as_str()).collect();
    if !gone.is_empty() {
        out.notes.push(format!(
            "the spec file no longer held these stories as they were and has been put back: {}",
            gone.join(", ")
        ));
        return;
    }

    let (mut edits, mut notes) = (Vec::new(), Vec::new());
    for (story, marks) in before.stories() {
        let Some((new_story, new_marks)) = now_there.counterpart(story) else { continue };
        for task in vanished(story, new_story) {
            notes.push(format!("the task {task} of story {} is no longer in the spec file", story.id));
        }
        if story.id == *own && landed {
            continue;
        }
        let put_back = put_back((story, marks), (new_story, new_marks));
        if !put_back.edits.is_empty() {
            edits.extend(put_back.edits);
            if story.id != *own {
                notes.push(format!(
                    "marks of story {} were changed and have been put back: {}",
                    story.id,
                    put_back.items.join(", ")
                ));
            }
        }
    }
    match restored(now, before, &edits, own, landed) {
        Ok(bytes) => {
            out.bytes = bytes;
            out.notes.append(&mut notes);
        }
        Err(note) => out.notes.push(note),
    }
}

/// The bytes with the marks put back; a note if another story would count as done that was not.
fn restored(now: &[u8], before: &Document, edits: &[Edit], own: &StoryId, landed: bool) -> Result<Vec<u8>, String> {
    let scheme = before.reading.plan.work.scheme;
    let bytes = apply(now, edits).map_err(|error| format!("the spec file has been put back: {error}"))?;
    let (after, _) = unnamed(scheme, &bytes).map_err(|error| format!("the spec file has been put back: {error}"))?;
    let now_there = Stories::of(&after);
    for (story, _) in before.stories().filter(|(story, _)| !(landed && story.id == *own)) {
        let done = now_there.counterpart(story).is_some_and(|(new, _)| new.state == WorkState::Done);
        if done && story.state != WorkState::Done {
            return Err(format!(
                "story {} would have counted as done without being run; the spec file has been put back",
                story.id
            ));
        }
    }
    Ok(bytes)
}

/// The stories of a reading by id and by title.
struct Stories<'d> {
    by_id: HashMap<&'d str, (&'d Story, &'d StoryMarks)>,
    /// The ids of those that have a title, at most two of them.
    by_title: HashMap<&'d str, Vec<&'d StoryId>>,
}

impl<'d> Stories<'d> {
    fn of(document: &'d Document) -> Self {
        let (mut by_id, mut by_title) = (HashMap::new(), HashMap::<&str, Vec<&StoryId>>::new());
        for (story, marks) in document.stories() {
            by_id.entry(story.id.as_str()).or_insert((story, marks));
            let same = by_title.entry(story.title.as_str()).or_default();
            if same.len() < 2 {
                same.push(&story.id);
            }
        }
        Self { by_id, by_title }
    }

    /// The same story here: the id is the same, and its old title has not moved to another story.
    fn counterpart(&self, story: &Story) -> Option<(&'d Story, &'d StoryMarks)> {
        let found = *self.by_id.get(story.id.as_str())?;
        let same = self.by_title.get(story.title.as_str()).map_or(&[][..], Vec::as_slice);
        let moved = found.0.title != story.title && same.iter().any(|id| **id != story.id);
        (!moved).then_some(found)
    }
}

struct PutBack {
    edits: Vec<Edit>,
    items: Vec<String>,
}

fn put_back((story, marks): (&Story, &StoryMarks), (new_story, new_marks): (&Story, &StoryMarks)) -> PutBack {
    let mut out = PutBack { edits: marks_back(&marks.own, &new_marks.own), items: Vec::new() };
    if !out.edits.is_empty() {
        out.items.push(story.id.as_str().to_owned());
    }
    for (old, new) in pairs(story, marks, new_story, new_marks) {
        if old.0.state == new.0.state {
            continue;
        }
        let edits = marks_back(old.1, new.1);
        if !edits.is_empty() {
            out.items.push(new.0.id.as_str().to_owned());
            out.edits.extend(edits);
        }
    }
    out
}

/// Edits of the new file that make its marks say what the old ones said.
fn marks_back(old: &ItemMarks, new: &ItemMarks) -> Vec<Edit> {
    let slot = |marks: &ItemMarks, slot: Slot| marks.marks.iter().find(|mark| mark.slot == slot).cloned();
    let mut edits = Vec::new();
    for kind in [Slot::Box, Slot::Flag, Slot::Status, Slot::Line, Slot::Verified] {
        match (slot(old, kind), slot(new, kind)) {
            (Some(old), Some(new)) if old.now != new.now => edits.extend(mark_back(&old, &new)),
            (None, Some(new)) if new.is_done => edits.push(new.replaced_by(new.open)),
            _ => {}
        }
    }
    edits
}

fn mark_back(old: &Mark, new: &Mark) -> Option<Edit> {
    match (old.now.is_empty() && old.slot == Slot::Flag, new.now.is_empty() && new.slot == Slot::Flag) {
        // The flag was not there, and came: it stays, but open.
        (true, _) => new.is_done.then(|| new.replaced_by(new.open)),
        // The flag was there, and went: only a set one is missed.
        (false, true) => {
            if old.is_done {
                new.tick()
            } else {
                None
            }
        }
        (false, false) => Some(new.replaced_by(&old.now)),
    }
}

type Item<'d> = (&'d Task, &'d ItemMarks);

/// The same tasks in two readings of a story: by declared id, then by text, then by order.
fn pairs<'d>(
    old: &'d Story,
    old_marks: &'d StoryMarks,
    new: &'d Story,
    new_marks: &'d StoryMarks,
) -> Vec<(Item<'d>, Item<'d>)> {
    let olds: Vec<Item<'d>> = old.tasks.iter().zip(&old_marks.tasks).collect();
    let news: Vec<Item<'d>> = new.tasks.iter().zip(&new_marks.tasks).collect();
    let mut free = vec![true; news.len()];
    let mut partners: Vec<Option<usize>> = vec![None; olds.len()];
    let declared = news.iter().enumerate().filter(|(_, new)| new.1.declared);
    let by_id: HashMap<&str, usize> = declared.map(|(at, new)| (new.0.id.as_str(), at)).collect();
    for (old, partner) in olds.iter().zip(&mut partners).filter(|(old, _)| old.1.declared) {
        *partner = by_id.get(old.0.id.as_str()).copied().filter(|at| std::mem::take(&mut free[*at]));
    }
    let mut by_text: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (at, new) in news.iter().enumerate().filter(|(at, _)| free[*at]) {
        by_text.entry(new.0.text.as_str()).or_default().push_back(at);
    }
    for (old, partner) in olds.iter().zip(&mut partners).filter(|(_, partner)| partner.is_none()) {
        *partner = by_text.get_mut(old.0.text.as_str()).and_then(VecDeque::pop_front);
        for at in partner.iter() {
            free[*at] = false;
        }
    }
    let mut left = (0..news.len()).filter(|at| free[*at]);
    for partner in partners.iter_mut().filter(|partner| partner.is_none()) {
        *partner = left.next();
    }
    olds.into_iter().zip(partners).filter_map(|(old, at)| Some((old, news[at?]))).collect()
}

/// Tasks of the old story that the new one has neither by id nor by text.
fn vanished<'s>(old: &'s Story, new: &Story) -> Vec<&'s str> {
    let ids: HashSet<&str> = new.tasks.iter().map(|task| task.id.as_str()).collect();
    let texts: HashSet<&str> = new.tasks.iter().map(|task| task.text.as_str()).collect();
    let gone = |task: &&Task| !ids.contains(task.id.as_str()) && !texts.contains(task.text.as_str());
    old.tasks.iter().filter(gone).map(|task| task.id.as_str()).collect()
}

/// The boxes of a story that must be ticked, its own included: whether each is.
fn boxes_of(document: &Document, story: &StoryId) -> Vec<bool> {
    let Some((story, marks)) = document.story(story.as_str()) else { return Vec::new() };
    let has_box = |marks: &ItemMarks| marks.marks.iter().any(|mark| mark.slot.is_ticked_with_its_story());
    let own = marks.own.marks.iter().filter(|mark| mark.slot == Slot::Box).map(|mark| mark.is_done);
    let tasks = story.tasks.iter().zip(&marks.tasks).filter(|(task, marks)| !task.optional && has_box(marks));
    own.chain(tasks.map(|(task, _)| task.state == WorkState::Done)).collect()
}

/// Every box that the story had at the checkpoint is still there, and all that it has now are ticked.
fn all_ticked(before: &Document, after: &Document, own: &StoryId) -> bool {
    let (Some((old, _)), Some((new, _))) = (before.story(own.as_str()), after.story(own.as_str())) else {
        return false;
    };
    let boxes = boxes_of(after, own);
    !boxes.is_empty() && !boxes.contains(&false) && vanished(old, new).is_empty()
}
