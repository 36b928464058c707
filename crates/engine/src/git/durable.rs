//! Objects and files that git, an agent or a hook wrote, made durable. What git writes for us it syncs itself
//! (`core.fsync`); but it takes what is there already for written, and an agent's `git add` syncs nothing.
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::record::TICK;
use super::{Repository, StoreError};
use crate::durable::make_durable;

/// What is older than this, in nanoseconds, the system has written by itself: Linux waits for half a minute.
const WRITTEN_BY_ITSELF: i64 = 60 * 1_000_000_000;

impl Repository {
    /// Makes durable what a checkpoint that is begun at `clock` rests on: every object that has come since the one before
    /// it, which did the same.
    pub(super) fn settle_before_checkpoint(&self, clock: i64) -> Result<(), StoreError> {
        self.settle_objects(self.remembered_record().map_or(clock - WRITTEN_BY_ITSELF, |record| record.work.clock))
    }

    /// Makes every object durable that has come since then, by the file system's clock.
    pub(super) fn settle_objects(&self, since: i64) -> Result<(), StoreError> {
        let objects = self.places().common_dir.join("objects");
        let new = loose_since(&objects, since - TICK);
        make_durable(&objects, &new).map_err(|source| StoreError::Io { what: "sync", path: objects, source })
    }

    /// Makes files of the working tree durable that git has just written into it, by their paths in it.
    pub async fn make_durable(&self, files: Vec<PathBuf>) -> Result<(), StoreError> {
        self.blocking(move |this| this.settle_files(&files)).await
    }

    /// The same, for work that blocks.
    pub(super) fn settle_files(&self, files: &[PathBuf]) -> Result<(), StoreError> {
        settle_below(&self.places().top, files)
    }
}

/// Makes files below a folder durable.
pub(super) fn settle_below(root: &Path, files: &[PathBuf]) -> Result<(), StoreError> {
    let files: Vec<PathBuf> = files.iter().map(|file| root.join(file)).collect();
    make_durable(root, &files).map_err(|source| StoreError::Io { what: "sync", path: root.to_owned(), source })
}

/// Files of single objects that were written or used again since then. Packs are left out: git syncs them always.
fn loose_since(objects: &Path, since: i64) -> Vec<PathBuf> {
    let is_new = |path: &Path| {
        fs::symlink_metadata(path).is_ok_and(|found| found.mtime() * 1_000_000_000 + found.mtime_nsec() >= since)
    };
    (0..=u8::MAX)
        .map(|first| objects.join(format!("{first:02x}")))
        .filter(|folder| is_new(folder))
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flat_map(|files| files.filter_map(Result::ok).map(|file| file.path()))
        .filter(|file| is_new(file))
        .collect()
}
