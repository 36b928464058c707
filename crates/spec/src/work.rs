//! Work of several files: each is marked and reconciled by itself, and a story's edits go to the files that hold it.

use ralphloop_core::effect::FixTask;
use ralphloop_core::ids::{StoryId, TaskId};
use ralphloop_core::plan::{Plan, Scheme, WorkState};

use crate::document::Document;
use crate::edit::{Edit, apply};
use crate::flight::fix_task;
use crate::mark::{MarkError, mark_done, tick_story};
use crate::reconcile::{OwnBoxes, Reconciled, reconcile};
use crate::source::{SpecFiles, SpecText, unnamed};

/// Edits with the place in [`SpecFiles::stories`] of the file that they are for.
pub type EditsByFile = Vec<(usize, Vec<Edit>)>;

/// The edits that mark a story or a task as done, for each file that holds it; none if it is done already. Files are told
/// by their place in [`SpecFiles::stories`].
///
/// # Errors
/// As for [`mark_done`].
pub fn mark_in(files: &SpecFiles, id: &str) -> Result<EditsByFile, MarkError> {
    if files.main.path.ends_with(crate::NEXT_STEPS) {
        let why =
            "it is an item of a session log, and only boxes can be marked; the next session's log says what is left";
        return Err(MarkError::NotWritable { id: id.to_owned(), why: why.to_owned() });
    }
    let mut edits = Vec::new();
    let mut unknown = Vec::new();
    let mut held = false;
    for (index, file) in files.stories().enumerate() {
        match mark_done(files.scheme, &file.bytes, id) {
            Ok(found) => {
                held = true;
                edits.extend((!found.is_empty()).then_some((index, found)));
            }
            Err(MarkError::Unknown { known, .. }) => unknown.push(known),
            // What is beside the stories of a folder has been told when it was read.
            Err(MarkError::Unreadable(_)) if files.folder.is_some() || !files.more.is_empty() => {}
            Err(error) => return Err(error),
        }
    }
    if held || !edits.is_empty() {
        return Ok(edits);
    }
    let known = match crate::read(files) {
        Ok(reading) if files.folder.is_some() => crate::mark::known(&reading.plan),
        _ => unknown.into_iter().next().unwrap_or_default(),
    };
    Err(MarkError::Unknown { id: id.to_owned(), known })
}

/// The edits that add a task to a story, which mends one that failed for good; with its id. No edits if it is there.
///
/// # Errors
/// The story is none that tasks can be added to, or the file would say something else besides.
pub fn add_fix_task(files: &SpecFiles, story: &StoryId, fix: &FixTask) -> Result<(TaskId, EditsByFile), MarkError> {
    let holds = |file: &SpecText| files.scheme == Scheme::Flight && fix_task::is_of(&file.bytes, story);
    let Some((index, file)) = files.stories().enumerate().find(|(_, file)| holds(file)) else {
        let why = "only task groups of Flight Rules have tasks that are verified one by one".to_owned();
        return Err(MarkError::NotWritable { id: story.to_string(), why });
    };
    let (id, edits) = fix_task::add(&file.bytes, fix)?;
    Ok((id, if edits.is_empty() { Vec::new() } else { vec![(index, edits)] }))
}

/// The open stories whose landing leaves no mark in the files: only their commits tell. Files that are only read have no
/// others, session logs have some.
pub fn told_by_commits(files: &SpecFiles, plan: &Plan) -> Vec<StoryId> {
    let open = plan.stories.iter().filter(|story| story.state != WorkState::Done).map(|story| &story.id);
    if !plan.writable {
        return open.cloned().collect();
    }
    if files.scheme != Scheme::Flight || files.folder.is_some() {
        return Vec::new();
    }
    let cannot = |story: &&StoryId| files.stories().all(|file| tick_story(files.scheme, &file.bytes, story).is_err());
    open.filter(cannot).cloned().collect()
}

/// What becomes of the files of a work after an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconciledFiles {
    /// What each file is to hold: those of the checkpoint, in their order, under the name that they have now.
    pub files: Vec<SpecText>,
    /// What was put right, in words; empty if nothing was.
    pub notes: Vec<String>,
    /// What the agent did with the boxes of its story.
    pub own_boxes: OwnBoxes,
}

/// Merges the files as the attempt left them (`now`) with those of the checkpoint, each as [`reconcile`] does it. A file
/// that is gone, while a new one holds its stories, was renamed, and stays so. Other new files are kept as they are.
pub fn reconcile_files(
    scheme: Scheme,
    checkpoint: &[SpecText],
    now: &[SpecText],
    story: &StoryId,
    landed: bool,
) -> ReconciledFiles {
    let mut out = ReconciledFiles { files: Vec::new(), notes: Vec::new(), own_boxes: OwnBoxes::default() };
    let several = checkpoint.len() > 1;
    let mut own = Vec::new();
    for before in checkpoint {
        let same = now.iter().find(|file| file.path == before.path);
        let found = same.or_else(|| renamed(scheme, before, checkpoint, now));
        // Most files of a folder are neither touched nor the story's.
        let untouched = found.is_some_and(|found| found.bytes == before.bytes);
        let holds = !several || holds(scheme, before, story);
        // Nor is every file in it one with stories.
        let other = several && unnamed(scheme, &before.bytes).is_err();
        if untouched && !holds || other {
            out.files.extend(found.cloned());
            continue;
        }
        let bytes = found.map(|found| found.bytes.as_slice());
        let Reconciled { bytes, notes, own_boxes } = reconcile(scheme, &before.bytes, bytes, story, landed && holds);
        if holds {
            own.push(own_boxes);
        }
        let name = |note| if several { format!("{}: {note}", before.path) } else { note };
        out.notes.extend(notes.into_iter().map(name));
        let path = found.map_or_else(|| before.path.clone(), |found| found.path.clone());
        out.files.push(SpecText { path, bytes });
    }
    let boxes: Vec<&OwnBoxes> = own.iter().filter(|boxes| boxes.had_open || boxes.all_ticked).collect();
    out.own_boxes = OwnBoxes {
        had_open: boxes.iter().any(|boxes| boxes.had_open),
        all_ticked: !boxes.is_empty() && boxes.iter().all(|boxes| boxes.all_ticked),
    };
    out
}

fn holds(scheme: Scheme, file: &SpecText, story: &StoryId) -> bool {
    unnamed(scheme, &file.bytes).is_ok_and(|(document, _)| document.story(story.as_str()).is_some())
}

/// The new file that holds the stories of one that is gone.
fn renamed<'f>(scheme: Scheme, gone: &SpecText, before: &[SpecText], now: &'f [SpecText]) -> Option<&'f SpecText> {
    let ids = |document: &Document| {
        document.reading.plan.stories.iter().map(|story| story.id.clone()).collect::<Vec<StoryId>>()
    };
    let (old, _) = unnamed(scheme, &gone.bytes).ok()?;
    let old = ids(&old);
    now.iter().filter(|file| before.iter().all(|other| other.path != file.path)).find(|file| {
        unnamed(scheme, &file.bytes).is_ok_and(|(document, _)| {
            let new = ids(&document);
            !old.is_empty() && old.iter().all(|id| new.contains(id))
        })
    })
}

/// The bytes of the files with their edits made.
///
/// # Errors
/// As for [`apply`].
pub fn apply_in(files: &SpecFiles, edits: &[(usize, Vec<Edit>)]) -> Result<Vec<SpecText>, crate::StaleEdit> {
    let changed = edits.iter().filter_map(|(index, edits)| Some((files.stories().nth(*index)?, edits)));
    changed.map(|(file, edits)| Ok(SpecText { path: file.path.clone(), bytes: apply(&file.bytes, edits)? })).collect()
}
