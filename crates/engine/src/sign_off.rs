//! A person's word that a story is done which no command can check: its mark in the spec, as a commit of its own.

use ralphloop_core::ids::{CommitId, StoryId};
use ralphloop_core::plan::WorkState;
use ralphloop_spec::{MarkError, SpecError, StaleEdit};

use crate::files::{Access, FileError, write_atomic};
use crate::git::{self, GitError};
use crate::lane::message::trailer_id;
use crate::own_commit::{OwnCommit, OwnCommitError};
use crate::start::Place;
use crate::work::{self, WorkError, WorkRef, landed};

/// Why a story was not signed. The tree is as it was.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The work cannot be found or loaded.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// The work cannot be read.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// There is no such story.
    #[error("{work} has no story {story}; it has: {}", .known.join(", "))]
    Unknown {
        /// The work.
        work: String,
        /// What was named.
        story: StoryId,
        /// What there is.
        known: Vec<String>,
    },
    /// The story is done when its checks pass.
    #[error("{story} needs no sign-off; `ralphloop mark` ticks it by hand")]
    NotAsked {
        /// The story.
        story: StoryId,
    },
    /// There is nothing yet that could be looked at.
    #[error("{story} has not landed on this branch, so there is nothing to sign yet; `ralphloop run` works on it")]
    NotLanded {
        /// The story.
        story: StoryId,
    },
    /// The story has no mark that could be set.
    #[error(transparent)]
    Mark(#[from] MarkError),
    /// An edit does not fit the file any more.
    #[error(transparent)]
    Stale(#[from] StaleEdit),
    /// A file could not be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The commit could not be made.
    #[error(transparent)]
    Commit(#[from] OwnCommitError),
}

/// What was signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signed {
    /// The spec says that it is done.
    Marked {
        /// The commit that holds the mark, unless git does not track the file.
        commit: Option<CommitId>,
    },
    /// It was done already.
    Before,
}

/// Marks a story that has landed, and that a person had to look at, as done, and commits that.
///
/// # Errors
/// The story needs no sign-off or has not landed here, a run is at work, or the commit cannot be made.
pub async fn sign(place: &Place, work: &WorkRef, story: &StoryId) -> Result<Signed, SignError> {
    let repository = &place.repository;
    let own = OwnCommit::about(repository, &work.id, "signing").await?;
    let files = work::load(work)?;
    let plan = ralphloop_spec::read(&files)?.plan;
    let Some(found) = plan.story(story) else {
        let known = plan.stories.iter().map(|story| story.id.to_string()).collect();
        return Err(SignError::Unknown { work: work.id.to_string(), story: story.clone(), known });
    };
    if found.state == WorkState::Done {
        return Ok(Signed::Before);
    }
    if !found.needs_sign_off() {
        return Err(SignError::NotAsked { story: story.clone() });
    }
    if landed::unsigned(repository, work, &plan).await?.iter().all(|(id, _)| id != story) {
        return Err(SignError::NotLanded { story: story.clone() });
    }
    let marked = ralphloop_spec::apply_in(&files, &ralphloop_spec::mark_in(&files, story.as_str())?)?;
    let checkpoint = own.begin().await?;
    let message = format!(
        "chore({}): signed off\n\n{}: {}\n{}: {}\n",
        trailer_id(story),
        git::WORK,
        work.id,
        git::SIGNED,
        trailer_id(story)
    );
    let written = marked
        .iter()
        .try_for_each(|file| write_atomic(&work.place_of(&file.path), &file.bytes, Access::Usual))
        .map_err(SignError::from);
    let committed = match written {
        Ok(()) => own.commit(&checkpoint, message).await.map_err(SignError::from),
        Err(error) => Err(error),
    };
    own.end(&checkpoint, committed).await.map(|commit| Signed::Marked { commit })
}
