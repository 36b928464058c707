//! What runs leave in the repository: kept attempts, and what checkpoints needed between each other.
use std::path::{Path, PathBuf};

use ralphloop_core::ids::CommitId;

use super::names::{REFS, SQUASHED_REFS, unslug};
use super::{CheckpointError, GitError, Repository, StoreError};

/// An attempt that is kept under a ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAttempt {
    /// The ref.
    pub reference: String,
    /// The commit that it holds.
    pub commit: CommitId,
    /// The run, as its id or, if that cannot be told from the ref, as the ref has it.
    pub run: String,
    /// The story, likewise.
    pub story: String,
    /// The attempt's number.
    pub number: u32,
    /// When it was kept, in seconds since the epoch.
    pub kept_at: i64,
    /// Bytes on the disk of what no branch and no tag reaches; zero for an attempt that was merged.
    pub own_bytes: u64,
}

/// A branch as it was before the commits of a run were made one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSquash {
    /// The ref.
    pub reference: String,
    /// The commit that it holds.
    pub commit: CommitId,
    /// The run.
    pub run: String,
    /// When its last commit was made, in seconds since the epoch.
    pub kept_at: i64,
    /// Bytes on the disk of what no branch and no tag reaches.
    pub own_bytes: u64,
}

/// What checkpoints of one working tree left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Where it is.
    pub folder: PathBuf,
    /// What only saves work at the next checkpoint, in bytes.
    pub bytes: u64,
    /// A checkpoint is kept, which needs that.
    pub is_needed: bool,
    /// Folders with what left the tree and was too large for git, by the name of the checkpoint it belongs to.
    pub parked: Vec<(String, PathBuf)>,
}

impl Repository {
    /// All attempts that are kept, by ref.
    pub async fn kept_attempts(&self) -> Result<Vec<KeptAttempt>, GitError> {
        let mut attempts = Vec::new();
        for line in self.own_refs(&format!("{REFS}/")).await? {
            let Some(mut attempt) = attempt_of(&line) else { continue };
            attempt.own_bytes = self.own_bytes(&attempt.reference).await?;
            attempts.push(attempt);
        }
        Ok(attempts)
    }

    /// What branches were before their runs' commits were made one.
    pub async fn kept_squashes(&self) -> Result<Vec<KeptSquash>, GitError> {
        let mut squashes = Vec::new();
        for line in self.own_refs(&format!("{SQUASHED_REFS}/")).await? {
            let Some(mut squash) = squash_of(&line) else { continue };
            squash.own_bytes = self.own_bytes(&squash.reference).await?;
            squashes.push(squash);
        }
        Ok(squashes)
    }

    /// `REF COMMIT SECONDS` of every ref below.
    async fn own_refs(&self, below: &str) -> Result<Vec<String>, GitError> {
        let format = "--format=%(refname) %(objectname) %(committerdate:unix)";
        let answer = self.read().args(["for-each-ref", format]).arg(below).run().await?;
        Ok(String::from_utf8_lossy(&answer.stdout).lines().map(str::to_owned).collect())
    }

    /// Bytes on the disk of what the ref holds and no branch and no tag reaches.
    async fn own_bytes(&self, reference: &str) -> Result<u64, GitError> {
        let answer = self
            .read()
            .args(["rev-list", "--disk-usage", "--objects", reference])
            .args(["--not", "--branches", "--tags", "--remotes"])
            .run()
            .await?;
        answer.line()?.trim().parse().map_err(|_| answer.unexpected())
    }

    /// Lets go of a ref of ours, if it still holds that commit. Git itself removes the objects later (`git gc`).
    pub async fn forget_kept(&self, reference: &str, commit: &CommitId) -> Result<(), GitError> {
        self.write().args(["update-ref", "-d", reference, commit.as_str()]).run().await.map(drop)
    }

    /// What checkpoints of this working tree left.
    pub fn stored(&self) -> Stored {
        let folder = self.store().root().to_owned();
        let bytes = self.remembered_files().iter().map(|file| size_of(file)).sum();
        let parked = std::fs::read_dir(folder.join("parked"))
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .map(|entry| {
                let slug = entry.file_name().to_string_lossy().into_owned();
                (unslug(&slug).unwrap_or(slug), entry.path())
            })
            .collect();
        Stored { folder, bytes, is_needed: !self.store().is_idle(), parked }
    }

    /// Removes what only saves work at the next checkpoint. Does nothing while a checkpoint is kept.
    pub async fn forget_stored(&self) -> Result<(), CheckpointError> {
        if !self.store().is_idle() {
            return Ok(());
        }
        self.release().await?;
        for file in self.remembered_files() {
            std::fs::remove_file(&file).map_err(|source| StoreError::Io { what: "remove", path: file, source })?;
        }
        Ok(())
    }

    /// The files of the store that no kept checkpoint is made of.
    fn remembered_files(&self) -> Vec<PathBuf> {
        let is_ours = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            matches!(name, "latest" | "held" | "clock") || name.starts_with("pack-")
        };
        let files = std::fs::read_dir(self.store().root()).into_iter().flatten().filter_map(Result::ok);
        files.map(|file| file.path()).filter(|path| is_ours(path) && path.is_file()).collect()
    }
}

fn size_of(file: &Path) -> u64 {
    std::fs::symlink_metadata(file).map_or(0, |metadata| metadata.len())
}

/// `refs/ralphloop/RUN/STORY/NUMBER COMMIT SECONDS`; other refs of ours have other forms.
fn attempt_of(line: &str) -> Option<KeptAttempt> {
    let mut parts = line.split(' ');
    let (reference, commit, kept_at) = (parts.next()?, parts.next()?, parts.next()?);
    let mut names = reference.strip_prefix(REFS)?.strip_prefix('/')?.split('/');
    let (run, story, number) = (names.next()?, names.next()?, names.next()?);
    let name = |slug: &str| unslug(slug).unwrap_or_else(|| slug.to_owned());
    Some(KeptAttempt {
        reference: reference.to_owned(),
        commit: CommitId(commit.to_owned()),
        run: name(run),
        story: name(story),
        number: number.parse().ok().filter(|_| names.next().is_none())?,
        kept_at: kept_at.parse().ok()?,
        own_bytes: 0,
    })
}

/// `refs/ralphloop/squashed/RUN COMMIT SECONDS`.
fn squash_of(line: &str) -> Option<KeptSquash> {
    let mut parts = line.split(' ');
    let (reference, commit, kept_at) = (parts.next()?, parts.next()?, parts.next()?);
    let slug = reference.strip_prefix(SQUASHED_REFS)?.strip_prefix('/')?;
    Some(KeptSquash {
        reference: reference.to_owned(),
        commit: CommitId(commit.to_owned()),
        run: unslug(slug).unwrap_or_else(|| slug.to_owned()),
        kept_at: kept_at.parse().ok()?,
        own_bytes: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refs_of_attempts_are_taken_for_attempts() {
        let attempt = attempt_of("refs/ralphloop/20260101-000000-000/_53-3/2 abc 1767225600").unwrap();
        assert_eq!((attempt.run.as_str(), attempt.story.as_str(), attempt.number), ("20260101-000000-000", "S-3", 2));
        for line in [
            "refs/ralphloop/held/1 abc 0",
            "refs/ralphloop/held/a/b abc 0",
            "refs/ralphloop/r/s/1/x abc 0",
            "refs/heads/a/b/1 abc 0",
            "refs/ralphloop/r/s/1",
        ] {
            assert_eq!(attempt_of(line), None, "{line}");
        }
    }
}
