//! The branch that a run works on: looked up, and switched to without losing anything.
use ralphloop_core::ids::CommitId;

use super::head::{HeadError, read_head};
use super::{GitError, Repository};

/// A branch can't be used. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum BranchError {
    /// Git does not take that name.
    #[error("`{name}` is no name for a branch")]
    BadName {
        /// The name.
        name: String,
    },
    /// There is no such branch.
    #[error("there is no branch `{name}`; `git branch {name}` makes it")]
    Missing {
        /// The name.
        name: String,
    },
    /// The switch was refused.
    #[error("can't switch to `{name}`: {why}")]
    Refused {
        /// The name.
        name: String,
        /// Git's words, with the paths.
        why: String,
    },
    /// HEAD could not be read.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// What a switch to a branch did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switched {
    /// The full name of the branch that was checked out before; `None` if HEAD was detached.
    pub from: Option<String>,
    /// The branch was made by the switch.
    pub created: bool,
}

impl Repository {
    /// The full name of the branch that is checked out; `None` when HEAD is detached.
    pub fn current_branch(&self) -> Result<Option<String>, HeadError> {
        Ok(read_head(self.places())?.branch)
    }

    /// The commit that is checked out; `None` before the first one.
    pub fn head(&self) -> Result<Option<CommitId>, HeadError> {
        Ok(read_head(self.places())?.commit.map(|oid| CommitId(oid.to_string())))
    }

    /// The full name of a branch, if git takes that name for one.
    pub async fn branch_name(&self, name: &str) -> Result<String, BranchError> {
        let name = name.strip_prefix("refs/heads/").unwrap_or(name);
        let is_good = self.read().args(["check-ref-format", "--branch", name]).answer().await?.success();
        if !is_good || name.starts_with('@') {
            return Err(BranchError::BadName { name: name.to_owned() });
        }
        Ok(format!("refs/heads/{name}"))
    }

    /// Checks out a branch, made from HEAD with `create` where it does not exist; an existing one is never moved. Git refuses
    /// what would overwrite an untracked or changed file, and its reason is passed on. Hooks run as for the user. Nothing is
    /// done, and `None` returned, if it is checked out already.
    pub async fn switch_to(&self, name: &str, create: bool) -> Result<Option<Switched>, BranchError> {
        let name = name.strip_prefix("refs/heads/").unwrap_or(name);
        let full = self.branch_name(name).await?;
        let from = read_head(self.places())?.branch;
        if from.as_deref() == Some(&full) {
            return Ok(None);
        }
        let exists = self.read().args(["show-ref", "--verify", "--quiet", &full]).answer().await?.success();
        let command =
            self.git().commit(&self.places().top).args(["switch", "--quiet", "--no-guess", "--no-overwrite-ignore"]);
        let command = match (exists, create) {
            (true, _) => command.arg(name),
            (false, true) => command.args(["--no-track", "--create", name]),
            (false, false) => return Err(BranchError::Missing { name: name.to_owned() }),
        };
        let answer = command.answer().await?;
        if answer.success() {
            Ok(Some(Switched { from, created: !exists }))
        } else {
            Err(BranchError::Refused { name: name.to_owned(), why: answer.message() })
        }
    }

    /// Undoes a switch to `name` on which nothing was committed: back to the branch of before, and a branch that was made
    /// for it goes, if it holds nothing that the other has not.
    pub async fn switch_back(&self, name: &str, switched: &Switched) -> Result<(), BranchError> {
        let Some(from) = &switched.from else { return Ok(()) };
        self.switch_to(from, false).await?;
        if switched.created {
            let name = name.strip_prefix("refs/heads/").unwrap_or(name);
            // Git refuses to delete what is not merged, and then it stays.
            self.write().args(["branch", "--quiet", "--delete", name]).answer().await?;
        }
        Ok(())
    }
}
