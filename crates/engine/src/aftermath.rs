//! What dead runs left in a working tree. Before anything new begins there, an interrupted attempt is put back, its work
//! kept, and a landing that was cut short is finished. None of this needs the dead run's journal.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use ralphloop_core::ids::{AttemptId, LaneId, RunId};
use ralphloop_core::worktree::Afterwards;

use crate::files::{self, FileError};
use crate::git::{
    self, AdvanceError, Checkpoint, CheckpointError, GitError, KeepError, LandedStory, Repository, RevertError,
};
use crate::lane::site::{self, Site};
use crate::runs::{OpenAttempt, RunFolder};
use crate::work::WorkRef;
use crate::work::state::WorkState;

/// How often a run gives a sign of life.
pub(crate) const BEAT: Duration = Duration::from_secs(2);
/// What is done so long after the last sign of life was not done by that run or its agent: one beat, and a second for each of
/// two times that are cut to whole ones.
pub(crate) const SURELY_LATER: Duration = Duration::from_secs(4);

/// Why the tree could not be put right. What is in it stays.
#[derive(Debug, thiserror::Error)]
pub enum AftermathError {
    /// Somebody committed on top of an interrupted attempt.
    #[error(
        "run {run} died in the middle of {attempt}, and these were committed since: {}. Going on takes the attempt's commits \
         off the branch, and these with them. Save them with `git format-patch --stdout {}^..HEAD > ../saved.patch`, take \
         them off with `git reset --soft {base}`, go on with `ralphloop resume`, and put them on top again with \
         `git am ../saved.patch`",
        list(.commits), .commits.first().map_or("HEAD", |c| c.name.as_str())
    )]
    CommittedSince {
        /// The dead run.
        run: RunId,
        /// Its attempt.
        attempt: AttemptId,
        /// What was committed, oldest first.
        commits: Vec<git::ShownCommit>,
        /// Where the branch stood when the attempt began.
        base: String,
    },
    /// The attempt's work could not be kept, so the tree was not touched.
    #[error("what {attempt} of run {run} left in the tree could not be kept: {source}")]
    Keep {
        /// The dead run.
        run: RunId,
        /// Its attempt.
        attempt: AttemptId,
        /// Why.
        source: KeepError,
    },
    /// The tree could not be put back.
    #[error("what {attempt} of run {run} left in the tree could not be put back: {source}")]
    Revert {
        /// The dead run.
        run: RunId,
        /// Its attempt.
        attempt: AttemptId,
        /// Which path, and why.
        source: RevertError,
    },
    /// A checkpoint could not be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// What a killed run had begun to do to the checkout could not be taken back.
    #[error("the checkout could not be put back to where it was before a move that was cut off: {0}")]
    Advance(#[from] AdvanceError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The spec could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

fn list(commits: &[git::ShownCommit]) -> String {
    commits.iter().map(|c| format!("{} \"{}\"", c.name, c.subject)).collect::<Vec<_>>().join(", ")
}

/// An attempt of a dead run whose checkpoint is in this working tree's store.
#[derive(Debug)]
pub(crate) struct Leftover {
    folder: RunFolder,
    attempt: OpenAttempt,
    checkpoint: Checkpoint,
}

/// What the runs among `folders` left in the working tree of `repository`.
pub(crate) async fn leftovers(
    folders: Vec<RunFolder>,
    repository: &Repository,
) -> Result<Vec<Leftover>, CheckpointError> {
    let mut found = Vec::new();
    for folder in folders {
        for attempt in folder.open_attempts() {
            // One without a checkpoint here is finished, or lives in another working tree.
            if let Some(checkpoint) = repository.find_checkpoint(&attempt.checkpoint).await? {
                found.push(Leftover { folder: folder.clone(), attempt, checkpoint });
            }
        }
    }
    Ok(found)
}

impl Leftover {
    /// Finishes the attempt's landing if its commit is on the branch, else puts the tree back. Says what was done. A landing
    /// of other work than `work` stays as it is, since the tree needs nothing then.
    pub(crate) async fn put_right(
        self,
        repository: &Repository,
        work: &WorkRef,
    ) -> Result<Option<String>, AftermathError> {
        let Self { folder, attempt, checkpoint } = &self;
        let landed = repository.landed_since(checkpoint.head.as_ref()).await?;
        if let Some(landed) = landed.into_iter().rev().find(|one| one.run == folder.id) {
            if landed.work != work.id.to_string() {
                return Ok(None);
            }
            if !landed.unsigned {
                mark(work, &attempt.spec_before, &landed)?;
            }
            self.forget(repository).await;
            let LandedStory { commit, story, unsigned, .. } = landed;
            let then = if unsigned { "a person has to sign it" } else { "the spec is marked" };
            return Ok(Some(format!("story {story} has landed in run {}, as commit {commit} says; {then}", folder.id)));
        }
        let kept = self.undo(repository).await?;
        self.forget(repository).await;
        let (run, id) = (&folder.id, &attempt.id);
        Ok(kept
            .map(|kept| format!("what the interrupted attempt {id} of run {run} left in the tree is kept at {kept}")))
    }

    /// Puts the tree back, unless the attempt has landed. The checkpoint stays, for whoever asks for it next.
    pub(crate) async fn put_back(&self, repository: &Repository) -> Result<(), AftermathError> {
        let landed = repository.landed_since(self.checkpoint.head.as_ref()).await?;
        if landed.iter().all(|one| one.run != self.folder.id) {
            self.undo(repository).await?;
        }
        Ok(())
    }

    /// Keeps what the attempt did, and puts the tree and the spec back; says where it is kept.
    async fn undo(&self, repository: &Repository) -> Result<Option<String>, AftermathError> {
        let Self { folder, attempt, checkpoint } = self;
        refuse_if_committed_since(repository, folder, &attempt.id, checkpoint).await?;
        let (run, id) = (folder.id.clone(), attempt.id.clone());
        let kept = keep(repository, folder, &id, checkpoint).await.map_err(|source| AftermathError::Keep {
            run: run.clone(),
            attempt: id.clone(),
            source,
        })?;
        repository.revert(checkpoint).await.map_err(|source| AftermathError::Revert { run, attempt: id, source })?;
        // A spec behind a link that leads out of the working tree is in no checkpoint.
        WorkState::kept(&attempt.spec_before)?.restore()?;
        Ok(kept)
    }

    async fn forget(&self, repository: &Repository) {
        // What cannot be dropped is found again next time, and is put right again.
        drop(repository.drop_checkpoint(&self.checkpoint).await);
        drop(std::fs::remove_file(&self.attempt.spec_before));
    }
}

/// Takes back what moves of the checkout had done when their runs were killed.
pub(crate) async fn undo_half_advances(folders: &[RunFolder], home: &Repository) -> Result<(), AftermathError> {
    for folder in folders.iter().filter(|folder| folder.live_process().is_none()) {
        let Some((branch, old, new)) = folder.half_advance() else { continue };
        home.undo_half_advance(&branch, &old, &new).await?;
        folder.forget_advance();
    }
    Ok(())
}

/// Takes away the worktrees that dead runs have left. What attempts did in them is kept first; says what was done.
pub(crate) async fn clear_worktrees(folders: Vec<RunFolder>, home: &Repository, work: &WorkRef) -> Vec<String> {
    let mut said = Vec::new();
    for folder in folders {
        for (lane, top) in site::left_by(&folder) {
            match clear_worktree(&folder, home, work, (lane, &top)).await {
                Ok(kept) => said.extend(kept),
                Err(why) => said.push(format!("the worktree {} of run {} stays: {why}", top.display(), folder.id)),
            }
        }
    }
    said
}

async fn clear_worktree(
    folder: &RunFolder,
    home: &Repository,
    work: &WorkRef,
    (number, top): (LaneId, &Path),
) -> Result<Vec<String>, String> {
    let lane = Repository::open_worktree(top, top, home.git().clone()).await.map_err(|e| e.to_string())?;
    let landed = home.landed_since(None).await.map_err(|e| e.to_string())?;
    let mut said = Vec::new();
    for OpenAttempt { id, checkpoint, spec_before, .. } in folder.open_attempts() {
        let Some(taken) = lane.find_checkpoint(&checkpoint).await.map_err(|e| e.to_string())? else { continue };
        let is_this = |one: &&LandedStory| {
            one.run == folder.id
                && files::safe_name(one.story.as_str()) == id.story.as_str()
                && one.attempt == id.number.to_string()
        };
        if let Some(landed) = landed.iter().find(is_this) {
            if landed.work == work.id.to_string() && !landed.unsigned {
                // What differs from the worktree's own spec is other lanes' doing, or a person's.
                let marked = WorkState::now(work).and_then(|now| now.reconciled(work, &landed.story, true)?.write());
                marked.map_err(|e| e.to_string())?;
            }
        } else if let Some(kept) = keep(&lane, folder, &id, &taken).await.map_err(|e| e.to_string())? {
            said.push(format!("what the interrupted attempt {id} of run {} did is kept at {kept}", folder.id));
        }
        lane.revert(&taken).await.map_err(|e| e.to_string())?;
        drop(lane.drop_checkpoint(&taken).await);
        drop(std::fs::remove_file(spec_before));
    }
    if let Some(site) = Site::of_lane(folder, number, false) {
        site.close(home, &folder.id, Some(&lane), Afterwards::Removed).await.map_err(|e| e.to_string())?;
        site::tidy(folder, number);
    }
    Ok(said)
}

async fn keep(
    repository: &Repository,
    folder: &RunFolder,
    attempt: &AttemptId,
    checkpoint: &Checkpoint,
) -> Result<Option<String>, KeepError> {
    let reference = git::attempt_ref(&folder.id, attempt);
    let message = format!("attempt {attempt} of run {}: the run was interrupted", folder.id);
    let is_kept = repository.keep_changes(checkpoint, &reference, &message).await?;
    Ok(is_kept.then_some(reference))
}

/// Marks a landed story in a spec that no commit holds. One that is marked stays as it is.
fn mark(work: &WorkRef, before: &Path, landed: &LandedStory) -> Result<(), FileError> {
    WorkState::kept(before)?.reconciled(work, &landed.story, true)?.write()
}

/// Refuses to go on with a run in the middle of an attempt if that would take a person's commits off the branch.
pub(crate) async fn refuse_to_undo_commits(folder: &RunFolder, repository: &Repository) -> Result<(), AftermathError> {
    for Leftover { attempt, checkpoint, .. } in leftovers(vec![folder.clone()], repository).await? {
        let landed = repository.landed_since(checkpoint.head.as_ref()).await?;
        if !landed.iter().any(|one| one.run == folder.id) {
            refuse_if_committed_since(repository, folder, &attempt.id, &checkpoint).await?;
        }
    }
    Ok(())
}

/// Says so if somebody committed on top of an attempt after its run's last sign of life: putting the tree back would take
/// that off the branch.
async fn refuse_if_committed_since(
    repository: &Repository,
    folder: &RunFolder,
    attempt: &AttemptId,
    checkpoint: &Checkpoint,
) -> Result<(), AftermathError> {
    let (Some(base), Some(beat)) = (&checkpoint.head, folder.last_beat()) else { return Ok(()) };
    let beat = beat.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let since = i64::try_from(beat.saturating_add(SURELY_LATER.as_secs())).unwrap_or(i64::MAX);
    let commits = repository.committed_after(base, since).await?;
    if commits.is_empty() {
        return Ok(());
    }
    let base = base.to_string();
    Err(AftermathError::CommittedSince { run: folder.id.clone(), attempt: attempt.clone(), commits, base })
}
