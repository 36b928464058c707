//! Bringing an attempt's work, which is proven on the commit it began from, onto a newer one. The work is made a
//! commit and merged as a tree, with the user's merge drivers; then the working tree is moved to the newer commit,
//! checkpointed there, and given the merged tree. From then on the attempt is one that began on the newer commit. What was
//! merged in vain is merged from the same commit again.
use std::path::PathBuf;
use std::sync::Arc;

use ralphloop_core::ids::CommitId;

use super::checkpoint::{Checkpoint, CheckpointError};
use super::command::OF_SUBMODULES_COMMITS_ONLY;
use super::inspect::differences;
use super::keep::KeepError;
use super::record::{Class, Node, Record, RelPath, is_within};
use super::revert::RevertError;
use super::scan::{Scan, ScanError};
use super::{GitError, Repository, bytes_of, path};

/// The work could not be brought onto the newer commit. It is kept.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// The repository is gone or another one.
    #[error("{why}; nothing was touched")]
    Broken {
        /// What is missing.
        why: String,
    },
    /// The checkpoint or the tree could not be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// What the attempt committed by itself could not be kept.
    #[error(transparent)]
    Keep(#[from] KeepError),
    /// Git's state could not be put back.
    #[error(transparent)]
    Restore(#[from] RevertError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl From<ScanError> for MergeError {
    fn from(error: ScanError) -> Self {
        Self::Checkpoint(error.into())
    }
}

impl From<super::StoreError> for MergeError {
    fn from(error: super::StoreError) -> Self {
        Self::Checkpoint(error.into())
    }
}

/// What is to be merged, and onto what.
#[derive(Debug, Clone)]
pub struct Merging<'a> {
    /// The newer commit; one of the checkpoint's commit and the work's parent is an ancestor of it.
    pub onto: &'a CommitId,
    /// The work as it was made a commit, if nothing was added to it since.
    pub work: Option<Work>,
    /// How the work is kept.
    pub keeping: Keeping<'a>,
}

/// How an attempt's work is made a commit.
#[derive(Debug, Clone, Copy)]
pub struct Keeping<'a> {
    /// The ref under which the work is kept as it is before the merge.
    pub under: &'a str,
    /// The message of that.
    pub message: &'a str,
    /// Files of the spec, relative to the top: they are the tool's, and are taken as the newer commit has them.
    pub spec: &'a [PathBuf],
}

/// An attempt's work, before any merge, as a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    commit: String,
    stands: Stands,
}

/// What the index and the working tree hold beside the work.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stands {
    /// Nothing, but that these files of the spec are in the tree as the attempt left them.
    Alone(Vec<PathBuf>),
    /// What a merge brought, so that it can be taken out again.
    Merged,
}

/// What a merge comes to, before the working tree is given it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// The work.
    pub work: Work,
    /// The merged tree, with conflicts marked in it.
    pub tree: String,
    /// The files in conflict.
    pub conflicts: Vec<PathBuf>,
    /// What the index holds as the working tree has it.
    was_merged: bool,
}

impl Repository {
    /// Merges what differs from the checkpoint with a newer commit, as a tree. The working tree stays as it is.
    pub async fn try_merge(&self, checkpoint: &Checkpoint, merging: Merging<'_>) -> Result<Trial, MergeError> {
        if let Some(why) = self.missing_frame() {
            return Err(MergeError::Broken { why });
        }
        let Merging { onto, work, keeping } = merging;
        let work = match work {
            Some(work) => work,
            None => self.make_work(checkpoint, keeping).await?,
        };
        let was_merged = match &work.stands {
            Stands::Merged => {
                self.restore_around_index(checkpoint).await?;
                true
            }
            Stands::Alone(touched) => {
                self.take_spec_back(touched).await?;
                false
            }
        };
        let keep = async {
            if was_merged {
                return Ok(());
            }
            self.write().args(["update-ref", keeping.under, &work.commit]).run().await.map(drop)
        };
        let (kept, merged) = tokio::join!(keep, self.merge_trees(onto, &work.commit));
        kept?;
        let (tree, conflicts) = merged?;
        Ok(Trial { work: Work { stands: Stands::Merged, ..work }, tree, conflicts, was_merged })
    }

    /// Makes what differs from the checkpoint a commit, which the index holds then; the working tree stays as it is.
    pub async fn make_work(&self, checkpoint: &Checkpoint, keeping: Keeping<'_>) -> Result<Work, MergeError> {
        if let Some(why) = self.missing_frame() {
            return Err(MergeError::Broken { why });
        }
        let record = self.record(&checkpoint.name)?;
        let scan = self.scan(Some(Arc::clone(&record))).await?;
        let scan = Arc::new(self.blocking(move |this| this.compare_contents(scan)).await?);
        if record.head != scan.head {
            self.keep_scan(&record, &scan, keeping.under, keeping.message).await?;
        }
        self.restore_frame(checkpoint).await?;
        // What nobody has touched is as the index has it.
        let is_touched = |file: &&PathBuf| scan.work.get(bytes_of(file)) != record.work.get(bytes_of(file));
        let touched = keeping.spec.iter().filter(is_touched).cloned().collect();
        let commit = self.commit_work(&record, &scan, keeping).await?;
        Ok(Work { commit, stands: Stands::Alone(touched) })
    }

    /// Moves the working tree to the newer commit, checkpoints it there in place of where it stood, and gives it the merged
    /// tree.
    pub async fn take_merge(&self, checkpoint: &Checkpoint, onto: &CommitId, trial: &Trial) -> Result<(), MergeError> {
        let move_tree = async {
            if trial.was_merged {
                return self.take_tree(onto.as_str()).await;
            }
            // The index holds the work now, and the tree is the same.
            self.move_tree(&trial.work.commit, onto.as_str()).await
        };
        let move_head = self.write().args(["update-ref", "--no-deref", "HEAD", onto.as_str()]);
        let (tree, head) = tokio::join!(move_tree, move_head.run());
        tree?;
        head?;
        self.checkpoint(&checkpoint.name).await?;
        Ok(self.move_tree(onto.as_str(), &trial.tree).await?)
    }

    /// Moves the index and the working tree from one tree on to another.
    async fn move_tree(&self, from: &str, to: &str) -> Result<(), GitError> {
        let read_tree = || self.write().args(["read-tree", "-m", "-u", from, to]);
        if read_tree().answer().await?.success() {
            return Ok(());
        }
        // It goes by the times of files, and one may have been written since with what it held. The answer says only that
        // something differs.
        self.write().args(["update-index", "-q", "--refresh"]).answer().await?;
        read_tree().run().await.map(drop)
    }

    /// Takes files, in the index and the working tree, as a commit has them; those that it does not have go.
    pub async fn take_from(&self, commit: &CommitId, files: &[PathBuf]) -> Result<(), GitError> {
        let source = format!("--source={commit}");
        self.write().args(["restore", &source, "--staged", "--worktree", "--"]).args(files).run().await?;
        Ok(())
    }

    /// Gives the index and the working tree that tree, whatever is in them.
    pub async fn take_tree(&self, tree: &str) -> Result<(), GitError> {
        self.write().args(["read-tree", "--reset", "-u", tree]).run().await?;
        Ok(())
    }

    /// The index's tree, with these files as the working tree has them.
    pub async fn tree_of(&self, files: &[PathBuf]) -> Result<String, GitError> {
        let names: Vec<u8> = files.iter().flat_map(|file| [bytes_of(file), b"\0"].concat()).collect();
        let update = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
        self.write().args(update).stdin(names).run().await?;
        Ok(self.write().arg("write-tree").run().await?.line()?.to_owned())
    }

    /// Paths in which the working tree differs from a tree object, new ones that are not ignored among them. The index is
    /// neither asked nor changed, since the agent may have written it.
    pub async fn changed_since(&self, tree: &str) -> Result<Vec<PathBuf>, GitError> {
        let index = self.places().git_dir.join("ralphloop-compare");
        self.write().env("GIT_INDEX_FILE", &index).args(["read-tree", tree]).run().await?;
        // Its answer says only that something differs.
        self.write().env("GIT_INDEX_FILE", &index).args(["update-index", "-q", "--refresh"]).answer().await?;
        let changed = ["diff-files", OF_SUBMODULES_COMMITS_ONLY, "--name-only", "-z"];
        let changed = self.read().env("GIT_INDEX_FILE", &index).args(changed).run().await?;
        let others = ["ls-files", "--others", "--exclude-standard", "-z"];
        let new = self.read().env("GIT_INDEX_FILE", &index).args(others).run().await?;
        drop(std::fs::remove_file(&index));
        Ok(changed.items().chain(new.items()).map(path).collect())
    }

    /// The spec's files as the index has them; those that it does not have are left alone.
    async fn take_spec_back(&self, spec: &[PathBuf]) -> Result<(), MergeError> {
        if spec.is_empty() {
            return Ok(());
        }
        let index = super::index::Index::read(&self.places().git_dir, self.shared.hash).map_err(ScanError::from)?;
        let mut names: Vec<u8> = Vec::new();
        for file in spec.iter().filter(|file| index.has(bytes_of(file))) {
            names.extend_from_slice(bytes_of(file));
            names.push(0);
        }
        if !names.is_empty() {
            let checkout = ["checkout-index", "--force", "--index", "--quiet", "-z", "--stdin"];
            self.write().args(checkout).stdin(names).run().await?;
        }
        Ok(())
    }

    /// Puts everything that could land into the index and makes a commit of it, which is to be kept under a ref: the working
    /// tree is about to be moved away from it. What was there before stays reachable.
    async fn commit_work(
        &self,
        record: &Arc<Record>,
        scan: &Arc<Scan>,
        keeping: Keeping<'_>,
    ) -> Result<String, MergeError> {
        let spec: Vec<&[u8]> = keeping.spec.iter().map(|file| bytes_of(file)).collect();
        let mut names: Vec<u8> = Vec::new();
        for at in work_of(record, scan).into_iter().filter(|at| !spec.contains(&at.as_slice())) {
            names.extend_from_slice(&at);
            names.push(0);
        }
        if !names.is_empty() {
            let update = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
            self.write().args(update).stdin(names).run().await?;
        }
        let answer = self.write().arg("write-tree").run().await?;
        let tree = answer.line()?.to_owned();
        let mut command = self.write().args(["commit-tree", &tree, "-m", keeping.message]);
        for name in ["AUTHOR", "COMMITTER"] {
            command = command
                .env(format!("GIT_{name}_NAME"), "ralphloop")
                .env(format!("GIT_{name}_EMAIL"), "ralphloop@localhost");
        }
        let base = record.head.commit.map(|oid| oid.to_string());
        let before = super::head::resolve(self.places(), keeping.under).map(|oid| oid.to_string());
        for parent in base.into_iter().chain(before) {
            command = command.arg("-p").arg(parent);
        }
        let answer = command.option("commit.gpgSign=false").run().await?;
        Ok(answer.line()?.to_owned())
    }

    /// The merge of two commits as a tree, and the files in conflict in it.
    async fn merge_trees(&self, onto: &CommitId, work: &str) -> Result<(String, Vec<PathBuf>), MergeError> {
        let args = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", onto.as_str(), work];
        let answer = self.write().args(args).answer().await?;
        if !matches!(answer.code, Some(0 | 1)) {
            return Err(answer.into_error().into());
        }
        let mut items = answer.items();
        let tree = items.next().and_then(|tree| std::str::from_utf8(tree).ok()).ok_or_else(|| answer.unexpected())?;
        let mut conflicts: Vec<PathBuf> = items.filter(|item| !item.is_empty()).map(path).collect();
        conflicts.dedup();
        if answer.code == Some(1) && conflicts.is_empty() {
            return Err(answer.unexpected().into());
        }
        Ok((tree.to_owned(), conflicts))
    }

    /// Lets go of what was kept before a merge, once it has landed; a ref that has moved since stays.
    pub async fn let_go(&self, reference: &str) -> Result<(), GitError> {
        let Some(commit) = super::head::resolve(self.places(), reference) else { return Ok(()) };
        self.write().args(["update-ref", "-d", reference, &commit.to_string()]).answer().await?;
        Ok(())
    }
}

/// Every changed path that may be committed: not what is ignored, nor what was there before in no commit.
fn work_of(record: &Record, scan: &Scan) -> Vec<RelPath> {
    let in_submodule = |at: &[u8]| record.submodules.iter().any(|(submodule, _)| is_within(at, submodule));
    let mut paths: Vec<RelPath> = differences(&record.work, &scan.work)
        .iter()
        .filter(|change| match (change.before, change.after) {
            (Some(before), _) => before.class == Class::Tracked,
            (None, Some(after)) => {
                after.class != Class::Ignored
                    && matches!(after.node, Node::File(_) | Node::Link(_))
                    && !in_submodule(&after.path)
            }
            (None, None) => false,
        })
        .map(|change| change.path().to_vec())
        .collect();
    for (submodule, commit) in &scan.submodules {
        if record.submodules.iter().any(|(path, before)| path == submodule && before != commit) {
            paths.push(submodule.clone());
        }
    }
    paths
}
