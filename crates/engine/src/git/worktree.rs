//! Working trees of ours, beside the user's checkout: made, moved on, taken away.
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use ralphloop_core::ids::CommitId;
use tokio_util::sync::CancellationToken;

use super::command::OF_SUBMODULES_COMMITS_ONLY;
use super::durable::settle_below;
use super::head;
use super::index::{Index, IndexError};
use super::store::Store;
use super::{Git, GitError, OpenError, Repository, Scope, SnapshotLimits, StoreError, bytes_of};
use crate::files;

/// The oldest git that merges without a working tree (`merge-tree --write-tree`).
pub(super) const MERGES_SINCE: (u32, u32) = (2, 38);
/// Why git locks a working tree while it makes it, in the language in which we run it (git's `builtin/worktree.c`).
const MAKING: &[u8] = b"initializing";

/// A working tree could not be finished.
#[derive(Debug, thiserror::Error)]
pub enum FinishWorktreeError {
    /// Git refused or failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// What git wrote could not be made durable.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes durable what links a working tree to its repository, both ways.
fn settle_link(top: &Path) -> Result<(), StoreError> {
    const TO: &str = "gitdir: ";
    let link = top.join(".git");
    let text = std::fs::read_to_string(&link).unwrap_or_default();
    let Some(to) = text.trim_end().strip_prefix(TO) else { return Ok(()) };
    let files = std::fs::read_dir(to).into_iter().flatten().filter_map(Result::ok);
    let files: Vec<PathBuf> = files.map(|file| file.path()).chain([link]).collect();
    settle_below(top, &files)
}

impl Repository {
    /// One of our working trees. Its checkpoints answer for it alone, and for the configuration and hooks that all share.
    pub async fn open_worktree(top: &Path, project: &Path, git: Git) -> Result<Self, OpenError> {
        let start = if project.is_dir() { project } else { top };
        Self::open_scoped(start, git, SnapshotLimits::default(), Scope::Worktree).await
    }

    /// Whether a commit has something at that path, relative to the top.
    pub async fn commit_has(&self, commit: &CommitId, at: &Path) -> Result<bool, GitError> {
        let name = [commit.as_str().as_bytes(), b":", bytes_of(at)].concat();
        Ok(self.read().args(["cat-file", "-e"]).arg(OsStr::from_bytes(&name)).answer().await?.success())
    }

    /// Begins a working tree at `top` on `commit`, on no branch and without its files yet: it is one of
    /// [`Self::partial_worktrees`] until [`Self::finish_worktree`]. What the working trees of a repository share is read and
    /// written by one command at a time, since git fails where it meets one that is half begun: that is the caller's to see to.
    pub async fn begin_worktree(&self, top: &Path, commit: &CommitId) -> Result<(), GitError> {
        let reason = std::str::from_utf8(MAKING).unwrap_or_default();
        let add = ["worktree", "add", "--quiet", "--detach", "--no-checkout", "--lock", "--reason", reason];
        self.write().args(add).arg(top).arg(commit.as_str()).run().await?;
        Ok(())
    }

    /// Gives a working tree that was begun its files, which takes the longer the more there are. Others may be begun and
    /// finished meanwhile. `stop` ends it, and leaves a working tree that is only begun.
    pub async fn fill_worktree(&self, top: &Path, stop: &CancellationToken) -> Result<(), GitError> {
        let fill = self.git().write(top).args(["reset", "--hard", "--quiet"]);
        fill.writes_a_tree().stopped_by(stop).run().await?;
        Ok(())
    }

    /// The working tree is whole, and what makes it one outlives a loss of power; its files may not, and
    /// [`Self::make_as_committed`] writes those again. The caller sees to it as for [`Self::begin_worktree`].
    pub async fn finish_worktree(&self, top: &Path) -> Result<(), FinishWorktreeError> {
        self.write().args(["worktree", "unlock"]).arg(top).run().await?;
        let top = top.to_owned();
        Ok(self.blocking(move |_| settle_link(&top)).await?)
    }

    /// Nobody has begun to work in the working tree at `top`, or whatever was done there is over.
    pub(crate) fn keeps_no_checkpoint_of(&self, top: &Path) -> bool {
        Store::new(&self.places().common_dir, top).is_idle()
    }

    /// Writes the tracked files of this working tree of ours again if they are not as its commit has them, where no attempt is
    /// under way: a kill in the middle of a move, or a loss of power, leaves some half written. What was there is kept; says
    /// under which ref below `refs`.
    pub async fn make_as_committed(&self, refs: &str) -> Result<Option<String>, GitError> {
        if self.is_as_committed().await {
            return Ok(None);
        }
        let found = self.write().args(["stash", "create"]).run().await?;
        let is_free = |reference: &String| head::resolve(self.places(), reference).is_none();
        let mut kept = None;
        if !found.line()?.is_empty() {
            kept = (1..=u32::MAX).map(|number| format!("{refs}/{number}")).find(is_free);
        }
        if let Some(reference) = &kept {
            self.write().args(["update-ref", reference, found.line()?, ""]).run().await?;
        }
        self.write().args(["checkout", "--quiet", "--force", "--detach", "--no-guess", "HEAD"]).run().await?;
        Ok(kept)
    }

    /// What is in this working tree and in no commit, ignored files apart; the first of it, if there is anything.
    pub async fn unkept(&self) -> Result<Option<String>, GitError> {
        let modules = self.places().git_dir.join("modules");
        if std::fs::read_dir(modules).is_ok_and(|mut modules| modules.next().is_some()) {
            return Ok(Some("a submodule of its own".to_owned()));
        }
        let status = self.read().args(["status", "--porcelain", "--ignore-submodules=none", "-z"]).run().await?;
        // `XY PATH`
        let first = status.items().next().and_then(|item| item.get(3..));
        Ok(first.map(|path| String::from_utf8_lossy(path).into_owned()))
    }

    /// Says that a working tree of ours is to go, as git says that it is making one: [`Self::partial_worktrees`] lists it from
    /// then on. Whoever dies while they take it away leaves nothing that looks like work.
    pub async fn condemn_worktree(&self, top: &Path) -> Result<(), GitError> {
        let reason = std::str::from_utf8(MAKING).unwrap_or_default();
        self.write().args(["worktree", "lock", "--reason", reason]).arg(top).run().await?;
        Ok(())
    }

    /// Working trees whose making was cut off, and those that are condemned. Git locks each that it makes until it is whole, and
    /// nobody has worked in it before.
    pub fn partial_worktrees(&self) -> Vec<PathBuf> {
        let known = std::fs::read_dir(self.places().common_dir.join("worktrees"));
        let known = known.into_iter().flatten().filter_map(Result::ok).map(|item| item.path());
        let cut_off = known.filter(|of| std::fs::read(of.join("locked")).is_ok_and(|why| why.trim_ascii() == MAKING));
        let link = |of: PathBuf| Some(of.join(super::path(std::fs::read(of.join("gitdir")).ok()?.trim_ascii())));
        let tops = cut_off.filter_map(link).filter_map(|link| link.parent().map(Path::to_owned));
        tops.map(|top| files::real(&top)).collect()
    }

    /// Takes away one of [`Self::partial_worktrees`] that is ours, with its checkpoints.
    pub async fn remove_partial_worktree(&self, top: &Path) -> Result<(), GitError> {
        // Git does not take away what has no link to the repository yet, but forgets what is not there. What cannot be
        // removed here is git's to refuse.
        let gone = top.to_owned();
        drop(tokio::task::spawn_blocking(move || std::fs::remove_dir_all(gone)).await);
        let forgotten = self.write().args(["worktree", "remove", "--force", "--force"]).arg(top).answer().await?;
        // After a loss of power git may not know any more that it was there.
        if !forgotten.success() && top.exists() {
            return Err(forgotten.into_error());
        }
        // What is left of its checkpoints is only in the way of disk space, and `clean` lists it.
        drop(std::fs::remove_dir_all(Store::new(&self.places().common_dir, top).root()));
        Ok(())
    }

    /// Files and folders that git neither tracks nor ignores, each ended by NUL; a folder without anything tracked as one.
    pub async fn loose_files(&self) -> Result<Vec<u8>, GitError> {
        let args = ["ls-files", "--others", "--exclude-standard", "--directory", "-z"];
        Ok(self.read().args(args).run().await?.stdout)
    }

    /// Tracked files are as the commit has them.
    pub async fn is_as_committed(&self) -> bool {
        let args = ["diff-index", "--quiet", OF_SUBMODULES_COMMITS_ONLY, "HEAD", "--"];
        // What only its time says to have changed is looked at by `update-index`, whose answer says no more than that.
        let refreshed = self.write().args(["update-index", "-q", "--refresh"]).answer().await.is_ok();
        refreshed && self.read().args(args).answer().await.is_ok_and(|answer| answer.success())
    }

    /// Tells of a path from the top whether git tracks it, as the index is now.
    pub fn tracks(&self) -> Result<impl Fn(&Path) -> bool + Send + use<>, IndexError> {
        let index = Index::read(&self.places().git_dir, self.shared.hash)?;
        Ok(move |path: &Path| index.has(bytes_of(path)))
    }

    /// Bytes of the tracked files, as the index knows their sizes.
    pub fn tracked_bytes(&self) -> Result<u64, IndexError> {
        Ok(Index::read(&self.places().git_dir, self.shared.hash)?.bytes())
    }

    /// Forgets working trees of ours whose folders are gone.
    pub async fn forget_missing_worktrees(&self, below: &Path) -> Result<(), GitError> {
        let listed = self.read().args(["worktree", "list", "--porcelain", "-z"]).run().await?;
        for item in listed.items() {
            let Some(top) = item.strip_prefix(b"worktree ").map(super::path) else { continue };
            if top.starts_with(below) && !top.exists() {
                self.write().args(["worktree", "remove", "--force"]).arg(&top).answer().await?;
            }
        }
        Ok(())
    }

    /// Moves this clean working tree, which is on no branch, to `commit`.
    pub async fn move_on(&self, commit: &CommitId) -> Result<(), GitError> {
        self.write().args(["checkout", "--quiet", "--detach", "--no-guess", commit.as_str()]).run().await?;
        Ok(())
    }

    /// The same where a move may have been cut off: files of the commit that it has left there, and git takes for somebody's,
    /// are written again.
    pub async fn move_on_over_files(&self, commit: &CommitId) -> Result<(), GitError> {
        let checkout = ["checkout", "--quiet", "--force", "--detach", "--no-guess"];
        self.write().args(checkout).arg(commit.as_str()).run().await?;
        Ok(())
    }

    /// Whether this git can do what working trees beside each other need.
    pub async fn merges_without_a_tree(&self) -> Result<bool, GitError> {
        Ok(self.version().await? >= MERGES_SINCE)
    }

    async fn version(&self) -> Result<(u32, u32), GitError> {
        let answer = self.read().arg("version").run().await?;
        let line = answer.line()?;
        let mut numbers =
            line.strip_prefix("git version ").unwrap_or(line).split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        Ok((numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)))
    }
}
