//! The branch on which stories land, and the user's checkout: looked at, and moved on together.
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use ralphloop_core::ids::CommitId;

use super::head::{HeadError, read_head, resolve};
use super::index::{Index, IndexError};
use super::{GitError, Repository, bytes_of, path};

/// Where the branch and the user's checkout stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The full name of the branch that is checked out; `None` if HEAD is detached.
    pub checked_out: Option<String>,
    /// The commit of HEAD.
    pub head: Option<CommitId>,
    /// The commit of the branch on which stories land.
    pub tip: Option<CommitId>,
}

/// A submodule that is at another commit than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedSubmodule {
    /// Relative to the top of the working tree.
    pub path: PathBuf,
    /// The commit that it is at now.
    pub commit: String,
}

/// The branch was not moved.
#[derive(Debug, thiserror::Error)]
pub enum AdvanceError {
    /// The checkout holds changes that the move would overwrite.
    #[error("{}", list(.paths))]
    Blocked {
        /// The files.
        paths: Vec<PathBuf>,
    },
    /// A submodule's commit was made in a worktree and has no place in the checkout.
    #[error(
        "the submodule {} was changed to commit {commit}, which the checkout cannot take: `git submodule update --init` there",
        .submodule.display()
    )]
    NoSubmodule {
        /// Where it is.
        submodule: PathBuf,
        /// The commit.
        commit: String,
    },
    /// The branch stands elsewhere than it did.
    #[error("{branch} was moved by somebody else")]
    Moved {
        /// The full name of the branch.
        branch: String,
    },
    /// It could not be noted that the branch is about to move.
    #[error(transparent)]
    Note(#[from] crate::files::FileError),
    /// HEAD could not be read.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// The index could not be read.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

impl Repository {
    /// Where `branch` (its full name) and this checkout stand. Starts no program.
    pub fn standing(&self, branch: &str) -> Result<Standing, HeadError> {
        let head = read_head(self.places())?;
        let id = |oid: super::oid::Oid| CommitId(oid.to_string());
        Ok(Standing {
            checked_out: head.branch,
            head: head.commit.map(id),
            tip: resolve(self.places(), branch).map(id),
        })
    }

    /// Makes the branch `name` (its full name) at `commit`, if it is not there.
    pub async fn ensure_branch(&self, name: &str, commit: &CommitId) -> Result<(), GitError> {
        if resolve(self.places(), name).is_none() {
            self.write().args(["update-ref", name, commit.as_str(), ""]).run().await?;
        }
        Ok(())
    }

    /// The working tree other than this one that has `branch` checked out.
    pub async fn checked_out_elsewhere(&self, branch: &str) -> Result<Option<PathBuf>, GitError> {
        let listed = self.read().args(["worktree", "list", "--porcelain", "-z"]).run().await?;
        let mut top = PathBuf::new();
        for item in listed.items() {
            if let Some(at) = item.strip_prefix(b"worktree ") {
                top = path(at);
            } else if item.strip_prefix(b"branch ") == Some(branch.as_bytes())
                && std::fs::canonicalize(&top).unwrap_or_else(|_| top.clone()) != self.places().top
            {
                return Ok(Some(top));
            }
        }
        Ok(None)
    }

    /// Submodules whose commit differs between two commits, of which the newer one is checked out here.
    pub async fn moved_submodules(&self, old: &CommitId, new: &CommitId) -> Result<Vec<MovedSubmodule>, AdvanceError> {
        if Index::read(&self.places().git_dir, self.shared.hash)?.submodules().is_empty() {
            return Ok(Vec::new());
        }
        let args = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old.as_str(), new.as_str()];
        let answer = self.read().args(args).run().await?;
        let mut items = answer.items();
        let mut moved = Vec::new();
        while let (Some(change), Some(at)) = (items.next(), items.next()) {
            // `:<old mode> <new mode> <old object> <new object> <what>`
            let change = String::from_utf8_lossy(change).into_owned();
            if let [_, "160000", _, commit, _] = change.split(' ').collect::<Vec<_>>()[..] {
                moved.push(MovedSubmodule { path: path(at), commit: commit.to_owned() });
            }
        }
        Ok(moved)
    }

    /// Brings the commits of submodules that were made in another working tree into this one's submodules, where they stay
    /// reachable. Errors name the submodule that has no place here.
    pub async fn bring_submodules(&self, from: &Self, moved: &[MovedSubmodule]) -> Result<(), AdvanceError> {
        for MovedSubmodule { path, commit } in moved {
            let (here, there) = (self.places().top.join(path), from.places().top.join(path));
            if !here.join(".git").exists() {
                return Err(AdvanceError::NoSubmodule { submodule: path.clone(), commit: commit.clone() });
            }
            let kept = format!("{commit}:refs/ralphloop/kept/{commit}");
            let fetch = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"];
            self.git().write(&here).args(fetch).arg(&there).arg(kept).run().await?;
        }
        Ok(())
    }

    /// Checks the new commits of submodules out, where the user has changed nothing in them.
    async fn follow_submodules(&self, old: &CommitId, moved: &[MovedSubmodule]) -> Result<(), GitError> {
        for MovedSubmodule { path, commit } in moved {
            let here = self.places().top.join(path);
            let before = format!("{old}:{}", path.display());
            let before = self.read().args(["rev-parse", "--verify", "--quiet", &before]).answer().await?;
            let now = self.git().read(&here).args(["rev-parse", "--verify", "--quiet", "HEAD"]).answer().await?;
            if before.success() && before.stdout == now.stdout {
                // Git refuses if that would overwrite something, and then the user sees both.
                let checkout = ["checkout", "--quiet", "--detach", "--no-guess", commit];
                self.git().write(&here).args(checkout).answer().await?;
            }
        }
        Ok(())
    }

    /// Takes back what a move of the checkout from `old` to `new` had done when it was cut off: files that have the content
    /// of `new`, or have got a part of it, or are away since git was about to write them, get that of `old` again. What the
    /// user has changed stays. Does nothing if the branch has moved.
    pub async fn undo_half_advance(&self, branch: &str, old: &CommitId, new: &CommitId) -> Result<(), AdvanceError> {
        let standing = self.standing(branch)?;
        if standing.tip.as_ref() != Some(old) || standing.checked_out.as_deref() != Some(branch) {
            return Ok(());
        }
        // Whoever held it is gone: only one run works in a checkout, and this one has just begun.
        drop(std::fs::remove_file(self.places().git_dir.join("index.lock")));
        let args = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old.as_str(), new.as_str()];
        let answer = self.read().args(args).run().await?;
        let mut items = answer.items();
        // Whether a run can begin with one that cannot be read is said later, with what mends it.
        let index = Index::read(&self.places().git_dir, self.shared.hash).ok();
        let is_left_out = |at: &[u8]| index.as_ref().is_some_and(|index| index.leaves_out(at));
        let (mut restored, mut removed) = (Vec::new(), Vec::new());
        while let (Some(change), Some(at)) = (items.next(), items.next()) {
            let change = String::from_utf8_lossy(change).into_owned();
            let [_, mode, before, after, _] = change.split(' ').collect::<Vec<_>>()[..] else { continue };
            let is_new = !after.trim_matches('0').is_empty();
            let was_there = !before.trim_matches('0').is_empty();
            let after = is_new.then_some(after);
            if !is_left_out(at) && self.is_of_a_move_to(new, at, mode, after).await? {
                if was_there { restored.extend_from_slice(&[at, b"\0"].concat()) } else { removed.push(at.to_vec()) }
            }
        }
        let forget: Vec<u8> = removed.iter().flat_map(|at| [at.as_slice(), b"\0"].concat()).collect();
        if !forget.is_empty() {
            self.write().args(["update-index", "--force-remove", "-z", "--stdin"]).stdin(forget).run().await?;
        }
        for at in removed {
            drop(std::fs::remove_file(self.places().top.join(path(&at))));
        }
        if !restored.is_empty() {
            let checkout = ["checkout", "--quiet", old.as_str(), "--pathspec-from-file=-", "--pathspec-file-nul"];
            self.write().option("core.literalPathspecs=true").args(checkout).stdin(restored).run().await?;
        }
        Ok(())
    }

    /// Whether a file is as a move to `new`, which has that object there, leaves it at its end, or when it is cut off: git
    /// takes what was there away, and then writes from the first byte on.
    async fn is_of_a_move_to(
        &self,
        new: &CommitId,
        at: &[u8],
        mode: &str,
        object: Option<&str>,
    ) -> Result<bool, GitError> {
        let full = self.places().top.join(path(at));
        let Ok(found) = std::fs::symlink_metadata(&full) else { return Ok(true) };
        let Some(object) = object.filter(|_| mode != "160000") else { return Ok(false) };
        if found.is_symlink() {
            let Ok(target) = std::fs::read_link(&full) else { return Ok(false) };
            let hashed = self.write().args(["hash-object", "--stdin"]).stdin(bytes_of(&target).to_vec()).run().await?;
            return Ok(hashed.line()? == object);
        }
        let hashed = self.write().args(["hash-object", "--"]).arg(&full).answer().await?;
        if hashed.success() && hashed.line()? == object {
            return Ok(true);
        }
        let Ok(begun) = std::fs::read(&full) else { return Ok(false) };
        if begun.is_empty() {
            return Ok(true);
        }
        // As git writes it there: with the user's line ends and filters.
        let name = [new.as_str().as_bytes(), b":", at].concat();
        let whole = self.read().args(["cat-file", "--filters"]).arg(OsStr::from_bytes(&name)).answer().await?;
        Ok(whole.success() && whole.stdout.starts_with(&begun))
    }

    /// Moves `branch` from `old` on to `new`, which descends from it; where it is checked out here, the checkout goes along,
    /// and what the user has changed in it stays. No hook runs: those of the commit have.
    pub async fn advance(
        &self,
        branch: &str,
        (old, new): (&CommitId, &CommitId),
        submodules: &[MovedSubmodule],
    ) -> Result<(), AdvanceError> {
        let standing = self.standing(branch)?;
        if standing.tip.as_ref() == Some(new) {
            return Ok(());
        }
        if standing.tip.as_ref() != Some(old) {
            return Err(AdvanceError::Moved { branch: branch.to_owned() });
        }
        if standing.checked_out.as_deref() != Some(branch) {
            let args = ["update-ref", "-m", "ralphloop: landed", branch, new.as_str(), old.as_str()];
            self.write().args(args).run().await?;
            return Ok(());
        }
        let merge = ["merge", "--ff-only", "--quiet", "--no-stat", "--no-progress", "--no-overwrite-ignore"];
        let answer = self.write().option("merge.autoStash=false").args(merge).arg(new.as_str()).answer().await?;
        if answer.success() {
            self.follow_submodules(old, submodules).await?;
            return Ok(());
        }
        if self.standing(branch)?.tip.as_ref() != Some(old) {
            return Err(AdvanceError::Moved { branch: branch.to_owned() });
        }
        let message = answer.message();
        // Git lists the files that are in the way one a line, behind a tab.
        let paths: Vec<PathBuf> =
            message.lines().filter_map(|line| line.strip_prefix('\t')).map(|line| path(line.as_bytes())).collect();
        if paths.is_empty() { Err(answer.into_error().into()) } else { Err(AdvanceError::Blocked { paths }) }
    }
}
