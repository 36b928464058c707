//! The closing gesture of a finished work, as its format has it: a change is archived, tasks are put aside, issues are
//! closed, a history is written. What it changes in the tree is one commit, or nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ralphloop_core::ids::CommitId;
use ralphloop_core::plan::{Plan, Scheme, WorkState};
use ralphloop_spec::SpecError;

use crate::files::{self, Access, FileError};
use crate::git::{self, GitError};
use crate::openspec_cli::{self, OpenSpecError};
use crate::own_commit::{OwnCommit, OwnCommitError};
use crate::start::Place;
use crate::tracker::{Tracker, TrackerError};
use crate::work::{self, WorkError, WorkRef, landed};

/// The folder that finished plans and tasks are put into, beside or below the others.
const COMPLETED: &str = "completed";

/// Why a work was not closed. The tree is as it was.
#[derive(Debug, thiserror::Error)]
pub enum FinishError {
    /// The work cannot be found or loaded.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// The work cannot be read.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The program of `OpenSpec` did not archive the change.
    #[error(transparent)]
    OpenSpec(#[from] OpenSpecError),
    /// A tracker did not close an issue.
    #[error(transparent)]
    Tracker(#[from] TrackerError),
    /// A file could not be moved or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// An edit does not fit the file any more.
    #[error(transparent)]
    Stale(#[from] ralphloop_spec::StaleEdit),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The commit could not be made.
    #[error(transparent)]
    Commit(#[from] OwnCommitError),
}

/// What was done to close a work.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Finished {
    /// In words, a line each; empty if there was nothing to do.
    pub said: Vec<String>,
    /// The commit that holds what changed in the tree.
    pub commit: Option<CommitId>,
}

/// What would be done to close a work, for people: the end of "`…` …"; none if its format has no such gesture.
pub fn offer(work: &WorkRef) -> Option<&'static str> {
    match Gesture::of(work)? {
        Gesture::Archive => Some("archives the change"),
        Gesture::PutTasksAside => Some("moves the tasks that have landed to `completed/`"),
        Gesture::PutPlanAside => Some("moves the plan to `completed/`"),
        Gesture::NoteHistory => Some("adds to the history and the statistics of prd-status.json"),
        Gesture::Close => Some("closes the issues"),
        Gesture::CloseInFile => Some("closes the issues in the file"),
    }
}

/// How a work of some format is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gesture {
    /// `openspec archive`.
    Archive,
    /// Task files are moved to `completed/`.
    PutTasksAside,
    /// The file is moved to `completed/`.
    PutPlanAside,
    /// `prd-status.json` takes note.
    NoteHistory,
    /// Issues are closed through the program of their tracker.
    Close,
    /// Issues are closed in the file, where that program is missing.
    CloseInFile,
}

impl Gesture {
    fn of(work: &WorkRef) -> Option<Self> {
        match work.id.scheme {
            Scheme::OpenSpec => work.change.as_ref().map(|_| Self::Archive),
            Scheme::Backlog => work.main.is_dir().then_some(Self::PutTasksAside),
            Scheme::Markdown => {
                let folder = work.main.parent().and_then(Path::file_name);
                folder.is_some_and(|name| name == "plans").then_some(Self::PutPlanAside)
            }
            Scheme::Flight => (work.story_files().len() > 1 && !work.main.is_dir()).then_some(Self::NoteHistory),
            Scheme::GitHub => Tracker::of(work).map(|_| Self::Close),
            Scheme::Beads if work.main.ends_with(".beads/issues.jsonl") => {
                Some(if Tracker::of(work).is_some() { Self::Close } else { Self::CloseInFile })
            }
            _ => None,
        }
    }
}

/// Closes a work whose stories are all done. A second time there is nothing left to do; what a crash left half done is put
/// back and done again.
pub async fn finish(place: &Place, work: &WorkRef, timeout: Duration) -> Result<Finished, FinishError> {
    let Some(gesture) = Gesture::of(work) else { return Ok(Finished::default()) };
    let repository = &place.repository;
    let own = OwnCommit::about(repository, &work.id, "finishing").await?;
    let mut plan = ralphloop_spec::read(&work::load(work)?)?.plan;
    let told = landed::known_from_commits(repository, work, &plan, &[]).await?;
    landed::take_for_done(&mut plan, &told);
    if let Some(open) = open_stories(&plan) {
        let said = format!("{} was not closed, since not every story of it is done: {open}", work.id);
        return Ok(Finished { said: vec![said], commit: None });
    }
    let closing = Closing { place, work, timeout };
    if gesture == Gesture::Close && work.query().is_some() {
        return Ok(Finished { said: closing.close_issues().await?, commit: None });
    }
    let checkpoint = own.begin().await?;
    let result = closing.in_tree(gesture, &own, &checkpoint).await;
    own.end(&checkpoint, result).await
}

/// The ids of stories that must still be done.
fn open_stories(plan: &Plan) -> Option<String> {
    let settled = |state| matches!(state, WorkState::Done | WorkState::Skipped);
    let open: Vec<&str> =
        plan.stories.iter().filter(|s| !s.optional && !settled(s.state)).map(|s| s.id.as_str()).collect();
    (!open.is_empty()).then(|| open.join(", "))
}

struct Closing<'c> {
    place: &'c Place,
    work: &'c WorkRef,
    timeout: Duration,
}

impl Closing<'_> {
    /// Makes the gesture, and commits what it changed.
    async fn in_tree(
        &self,
        gesture: Gesture,
        own: &OwnCommit<'_>,
        checkpoint: &git::Checkpoint,
    ) -> Result<Finished, FinishError> {
        let said = match gesture {
            Gesture::Archive => self.archive().await?,
            Gesture::PutTasksAside => self.put_tasks_aside().await?,
            Gesture::PutPlanAside => self.put_plan_aside()?,
            Gesture::NoteHistory => self.note_history()?,
            Gesture::Close => self.close_issues().await?,
            Gesture::CloseInFile => self.close_in_file().await?,
        };
        let Some(first) = said.first() else { return Ok(Finished::default()) };
        let message = format!("chore: {first}\n\n{}: {}\n{}: yes\n", git::WORK, self.work.id, git::FINISH);
        let commit = own.commit(checkpoint, message).await?;
        Ok(Finished { said, commit })
    }

    async fn archive(&self) -> Result<Vec<String>, FinishError> {
        let name = &self.work.id.id;
        openspec_cli::archive(
            &self.place.spawner,
            &openspec_cli::Program::default(),
            &self.work.project,
            name,
            self.timeout,
        )
        .await?;
        Ok(vec![format!("the change {name} is archived")])
    }

    /// Moves the files of landed tasks; what a person closed stays on the board until they put it aside.
    async fn put_tasks_aside(&self) -> Result<Vec<String>, FinishError> {
        let name = self.work.id.to_string();
        let landed = self.place.repository.landed_since(None).await?;
        let landed: Vec<_> = landed.into_iter().filter(|one| one.work == name).collect();
        let plan = ralphloop_spec::read(&work::load(self.work)?)?.plan;
        let aside = self.work.main.join(COMPLETED);
        let mut moved = Vec::new();
        for story in plan.stories.iter().filter(|story| landed.iter().any(|one| one.story == story.id)) {
            let Some(file) = story.file.as_ref().map(|file| self.work.place_of(file)) else { continue };
            move_into(&file, &aside)?;
            moved.push(story.id.to_string());
        }
        if moved.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![format!("put aside to {}: {}", self.work.shown(&aside), moved.join(", "))])
    }

    fn put_plan_aside(&self) -> Result<Vec<String>, FinishError> {
        let aside = self.work.main.with_file_name(COMPLETED);
        let to = move_into(&self.work.main, &aside)?;
        Ok(vec![format!("the finished plan is now {}", self.work.shown(&to))])
    }

    fn note_history(&self) -> Result<Vec<String>, FinishError> {
        let Some(path) = self.work.story_files().into_iter().nth(1) else { return Ok(Vec::new()) };
        let shown = self.work.shown(&path);
        let now = now();
        let noted = edited(&path, |bytes| ralphloop_spec::prd_history(&shown, bytes, &now))?;
        Ok(if noted { vec![format!("{shown} tells what has passed")] } else { Vec::new() })
    }

    async fn close_issues(&self) -> Result<Vec<String>, FinishError> {
        let Some(tracker) = Tracker::of(self.work) else { return Ok(Vec::new()) };
        let mut closed = Vec::new();
        for (story, landed) in self.landed_open().await? {
            tracker.close(&self.place.spawner, &story, Some(&landed.commit), self.timeout).await?;
            closed.push(story.to_string());
        }
        Ok(said_closed(&closed))
    }

    async fn close_in_file(&self) -> Result<Vec<String>, FinishError> {
        let issues: Vec<_> = self.landed_open().await?.into_iter().map(|(story, _)| story).collect();
        let shown = self.work.shown(&self.work.main);
        let now = now();
        let changed = edited(&self.work.main, |bytes| ralphloop_spec::close_issues(&shown, bytes, &issues, &now))?;
        let closed: Vec<String> = issues.iter().map(ToString::to_string).collect();
        Ok(if changed { said_closed(&closed) } else { Vec::new() })
    }

    /// Stories that the tracker still calls open, with their commits.
    async fn landed_open(&self) -> Result<Vec<(ralphloop_core::ids::StoryId, git::LandedStory)>, FinishError> {
        let plan = ralphloop_spec::read(&work::load(self.work)?)?.plan;
        Ok(landed::known_from_commits(&self.place.repository, self.work, &plan, &[]).await?)
    }
}

fn said_closed(closed: &[String]) -> Vec<String> {
    if closed.is_empty() { Vec::new() } else { vec![format!("closed: {}", closed.join(", "))] }
}

fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Makes edits in a file; whether there were any.
fn edited(
    path: &Path,
    edits: impl FnOnce(&[u8]) -> Result<Vec<ralphloop_spec::Edit>, SpecError>,
) -> Result<bool, FinishError> {
    let bytes = std::fs::read(path).map_err(|e| FileError::new("read", path, e))?;
    let edits = edits(&bytes)?;
    if !edits.is_empty() {
        files::write_atomic(path, &ralphloop_spec::apply(&bytes, &edits)?, Access::Usual)?;
    }
    Ok(!edits.is_empty())
}

/// Moves a file into a folder, which is made if it is missing. What is there already stays, and is an error.
fn move_into(file: &Path, folder: &Path) -> Result<PathBuf, FileError> {
    std::fs::create_dir_all(folder).map_err(|e| FileError::new("create the folder", folder, e))?;
    let to = folder.join(file.file_name().unwrap_or_default());
    if to.symlink_metadata().is_ok() {
        let there = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
        return Err(FileError::new("move a file to", &to, there));
    }
    std::fs::rename(file, &to).map_err(|e| FileError::new("move", file, e))?;
    Ok(to)
}
