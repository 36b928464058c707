//! A commit that is no attempt's: what closes a work, what a person has signed. Whoever makes one has the working tree to
//! themselves; if it cannot be made, the tree is as it was, after a crash from the next start on.

use ralphloop_core::ids::{CommitId, RunId};
use ralphloop_core::plan::WorkId;
use tokio_util::sync::CancellationToken;

use crate::git::{self, Checkpoint, CheckpointError, Finding, GitError, HoldBack, LandError, Landing, RevertError};
use crate::git::{Repository, Severity};
use crate::lock::{Holder, LockError, LockKey, RunLock};

/// Why there is no commit. The tree is as it was.
#[derive(Debug, thiserror::Error)]
pub enum OwnCommitError {
    /// Another run is at work.
    #[error(transparent)]
    Locked(#[from] LockError),
    /// The tree is in no condition to be committed.
    #[error("{}", git::lines(.0))]
    Preflight(Vec<Finding>),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The tree could not be recorded.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The commit could not be made.
    #[error(transparent)]
    Land(Box<LandError>),
    /// The tree could not be put back.
    #[error(transparent)]
    Revert(#[from] RevertError),
}

/// The working tree, held for one commit about a work.
#[derive(Debug)]
pub(crate) struct OwnCommit<'r> {
    repository: &'r Repository,
    work: &'r WorkId,
    _lock: RunLock,
}

impl<'r> OwnCommit<'r> {
    /// Takes the working tree, and puts right what a crash left there of an earlier one. `doing` is what another run is told
    /// that is at work.
    pub(crate) async fn about(
        repository: &'r Repository,
        work: &'r WorkId,
        doing: &str,
    ) -> Result<OwnCommit<'r>, OwnCommitError> {
        let places = repository.places();
        let holder = Holder::this_process(RunId::from(doing));
        let lock = RunLock::acquire(&places.common_dir, LockKey::Worktree(&places.top), &holder)?;
        put_right(repository, work).await?;
        Ok(Self { repository, work, _lock: lock })
    }

    /// Remembers the tree as it is, if it is in a condition to be committed.
    pub(crate) async fn begin(&self) -> Result<Checkpoint, OwnCommitError> {
        let findings = self.repository.preflight().await?;
        let refusals: Vec<_> = findings.into_iter().filter(|f| f.severity == Severity::Refusal).collect();
        if !refusals.is_empty() {
            return Err(OwnCommitError::Preflight(refusals));
        }
        Ok(self.repository.checkpoint(&checkpoint_name(self.work)).await?)
    }

    /// Commits what differs from the checkpoint; nothing if that is nothing that git tracks.
    pub(crate) async fn commit(
        &self,
        checkpoint: &Checkpoint,
        message: String,
    ) -> Result<Option<CommitId>, OwnCommitError> {
        let landing = Landing {
            message,
            kept_under: format!("refs/ralphloop/finish/{}", git::slug(&self.work.to_string())),
            write_back: Vec::new(),
            hold_back: HoldBack { suspects: false, larger_than: u64::MAX },
            guard: None,
            seal: None,
            walls: None,
            allow_empty: false,
            as_looked_at: false,
            stop: CancellationToken::new(),
        };
        match self.repository.land(checkpoint, &landing).await {
            Ok(landed) => Ok(Some(landed.commit)),
            Err(LandError::NothingToCommit) => Ok(None),
            Err(error) => Err(OwnCommitError::Land(Box::new(error))),
        }
    }

    /// The end of it, with what came of it: puts the tree back if that is an error, and forgets the checkpoint.
    pub(crate) async fn end<T, E: From<OwnCommitError>>(
        self,
        checkpoint: &Checkpoint,
        came_of_it: Result<T, E>,
    ) -> Result<T, E> {
        let settled = async {
            if came_of_it.is_err() {
                self.repository.revert(checkpoint).await?;
            }
            Ok(self.repository.drop_checkpoint(checkpoint).await?)
        };
        settled.await.map_err(|error: OwnCommitError| E::from(error))?;
        // What cannot be given back is listed as left over.
        drop(self.repository.release().await);
        came_of_it
    }
}

fn checkpoint_name(work: &WorkId) -> String {
    format!("finish-{work}")
}

/// Puts the tree back if a crash left something half done. What has its commit is whole.
pub(crate) async fn put_right(repository: &Repository, work: &WorkId) -> Result<(), OwnCommitError> {
    let Some(checkpoint) = repository.find_checkpoint(&checkpoint_name(work)).await? else { return Ok(()) };
    if repository.head().ok().flatten() == checkpoint.head {
        repository.revert(&checkpoint).await?;
    }
    Ok(repository.drop_checkpoint(&checkpoint).await?)
}
