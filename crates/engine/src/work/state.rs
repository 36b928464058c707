//! The files that hold the stories' state: as they were at a checkpoint, as they are, and as they are to be.

use std::io;
use std::path::{Path, PathBuf};

use ralphloop_core::ids::StoryId;
use ralphloop_spec::{ReconciledFiles, SpecText, reconcile_files};
use serde::{Deserialize, Serialize};

use super::WorkRef;
use crate::files::{self, Access, FileError};

/// The state of a work at one time: its files with their bytes, by absolute paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkState {
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl WorkState {
    /// As it is now. Files that are gone are left out.
    pub(crate) fn now(work: &WorkRef) -> Result<Self, FileError> {
        let mut found = Vec::new();
        for path in work.story_files() {
            match std::fs::read(&path) {
                Ok(bytes) => found.push((path, bytes)),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(FileError::new("read", &path, e)),
            }
        }
        Ok(Self { files: found })
    }

    /// Keeps it in a file of ours.
    pub(crate) fn keep(&self, path: &Path) -> Result<(), FileError> {
        let fail = |e: postcard::Error| FileError::new("write", path, io::Error::other(e));
        files::write_atomic(path, &postcard::to_stdvec(self).map_err(fail)?, Access::Private)
    }

    /// What was kept there.
    pub(crate) fn kept(path: &Path) -> Result<Self, FileError> {
        let fail = |e| FileError::new("read", path, e);
        let bytes = std::fs::read(path).map_err(fail)?;
        postcard::from_bytes(&bytes).map_err(|e| fail(io::Error::new(io::ErrorKind::InvalidData, e)))
    }

    /// With the files that are gone as `kept` has them, if it could be read.
    pub(crate) fn or_as_in(mut self, kept: Result<Self, FileError>) -> Self {
        for (path, bytes) in kept.map(|kept| kept.files).unwrap_or_default() {
            if self.files.iter().all(|(known, _)| *known != path) {
                self.files.push((path, bytes));
            }
        }
        self
    }

    /// The files after an attempt of `story`, whose state at the checkpoint this is.
    pub(crate) fn reconciled(&self, work: &WorkRef, story: &StoryId, landed: bool) -> Result<Reconciled, FileError> {
        let now = Self::now(work)?;
        let name = |path: &Path| path.to_string_lossy().into_owned();
        let texts = |state: &Self| -> Vec<SpecText> {
            state.files.iter().map(|(path, bytes)| SpecText { path: name(path), bytes: bytes.clone() }).collect()
        };
        let out = reconcile_files(work.id.scheme, &texts(self), &texts(&now), story, landed);
        let ReconciledFiles { files, notes, own_boxes } = out;
        // Paths that are no text keep their bytes.
        let known = || self.files.iter().chain(&now.files).map(|(path, _)| path);
        let files = files.into_iter().map(|file| {
            let path = known().find(|path| name(path) == file.path).cloned();
            (path.unwrap_or_else(|| PathBuf::from(&file.path)), file.bytes)
        });
        let prefix = format!("{}/", work.project.display());
        let notes = notes.into_iter().map(|note| note.strip_prefix(&prefix).map_or(note.clone(), str::to_owned));
        Ok(Reconciled { wanted: Self { files: files.collect() }, notes: notes.collect(), own_boxes, now })
    }

    /// Writes the files that are not as this says. What is gone is made again; what is new stays.
    pub(crate) fn restore(&self) -> Result<(), FileError> {
        for (path, bytes) in &self.files {
            match std::fs::read(path) {
                Ok(now) if now == *bytes => {}
                Ok(_) => files::write_atomic(path, bytes, Access::Usual)?,
                Err(e) if e.kind() == io::ErrorKind::NotFound => files::write_atomic(path, bytes, Access::Usual)?,
                Err(e) => return Err(FileError::new("read", path, e)),
            }
        }
        Ok(())
    }

    /// The paths relative to `top`, links followed; those outside of it are left out.
    pub(crate) fn paths_below(&self, top: &Path) -> Vec<PathBuf> {
        self.files.iter().filter_map(|(path, _)| path_below(path, top)).collect()
    }

    /// The files relative to `top`, links followed; those outside of it are left out.
    fn below(&self, top: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let files = self.files.iter().filter_map(|(path, bytes)| Some((path_below(path, top)?, bytes.clone())));
        files.collect()
    }
}

/// A path relative to `top`, links followed.
fn path_below(path: &Path, top: &Path) -> Option<PathBuf> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    real.strip_prefix(top).ok().map(PathBuf::from)
}

/// What is to become of the files of a work.
#[derive(Debug)]
pub(crate) struct Reconciled {
    /// How they are to be.
    pub(crate) wanted: WorkState,
    /// What was put right, in words.
    pub(crate) notes: Vec<String>,
    /// What the agent did with the boxes of its story.
    pub(crate) own_boxes: ralphloop_spec::OwnBoxes,
    now: WorkState,
}

impl Reconciled {
    /// Writes what differs from what is there.
    pub(crate) fn write(&self) -> Result<(), FileError> {
        self.wanted.restore()
    }

    /// Writes what differs, but for the files that somebody has touched since they were looked at: nobody of ours is at work
    /// any more, so that is a person's edit.
    pub(crate) fn write_unless_touched(&self) -> Result<(), FileError> {
        let untouched = |(path, _): &&(PathBuf, Vec<u8>)| {
            let seen = self.now.files.iter().find(|(known, _)| known == path).map(|(_, bytes)| bytes);
            std::fs::read(path).ok().as_ref() == seen
        };
        WorkState { files: self.wanted.files.iter().filter(untouched).cloned().collect() }.restore()
    }

    /// Every file that belongs to the spec, before or after, relative to `top`.
    pub(crate) fn paths_below(&self, top: &Path) -> Vec<PathBuf> {
        [self.wanted.paths_below(top), self.now.paths_below(top)].concat()
    }

    /// What a landing writes: the files that are not as they are to be, and those that were touched.
    pub(crate) fn write_back(&self, before: &WorkState, top: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let touched = |(path, bytes): &&(PathBuf, Vec<u8>)| {
            let same = |state: &WorkState| state.files.iter().any(|(other, held)| other == path && held == bytes);
            !same(before) || !same(&self.now)
        };
        let files = self.wanted.files.iter().filter(touched).cloned().collect();
        WorkState { files }.below(top)
    }
}
