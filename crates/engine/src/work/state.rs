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
    /// Where the paths led at that time.
    leading: Vec<Leading>,
}

/// Where a path led, links followed. Who made a link there since does not decide what we write next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Leading {
    path: PathBuf,
    to: PathBuf,
    /// The folder that it is in.
    folder: PathBuf,
}

impl Leading {
    fn now(path: &Path) -> Option<Self> {
        let folder = std::fs::canonicalize(path.parent()?).ok()?;
        Some(Self { path: path.to_owned(), to: std::fs::canonicalize(path).ok()?, folder })
    }

    /// Takes a link away that leads elsewhere than before; whether there was one.
    ///
    /// # Errors
    /// A folder above it is such a link: it is for a person, or a revert, to say what becomes of what lies there.
    fn put_right(&self) -> Result<bool, FileError> {
        let folder = self.path.parent().unwrap_or(&self.path);
        match std::fs::canonicalize(folder) {
            Ok(now) if now != self.folder => {
                let why = format!("a link was put above it, which leads to {}", now.display());
                return Err(FileError::new("write", &self.path, io::Error::other(why)));
            }
            _ => {}
        }
        let is_link = std::fs::symlink_metadata(&self.path).is_ok_and(|found| found.is_symlink());
        if !is_link || std::fs::canonicalize(&self.path).is_ok_and(|now| now == self.to) {
            return Ok(false);
        }
        std::fs::remove_file(&self.path).map_err(|e| FileError::new("remove the link", &self.path, e))?;
        Ok(true)
    }
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
        let leading = found.iter().filter_map(|(path, _)| Leading::now(path)).collect();
        Ok(Self { files: found, leading })
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
        let Ok(Self { files, leading }) = kept else { return self };
        for (path, bytes) in files {
            if self.files.iter().all(|(known, _)| *known != path) {
                self.leading.extend(leading.iter().filter(|known| known.path == path).cloned());
                self.files.push((path, bytes));
            }
        }
        self
    }

    /// Takes away the links that were put in the place of its files to lead elsewhere; where they were.
    fn put_links_right(&self) -> Result<Vec<&Path>, FileError> {
        let mut links = Vec::new();
        for leading in &self.leading {
            if leading.put_right()? {
                links.push(leading.path.as_path());
            }
        }
        Ok(links)
    }

    /// The files after an attempt of `story`, whose state at the checkpoint this is.
    pub(crate) fn reconciled(&self, work: &WorkRef, story: &StoryId, landed: bool) -> Result<Reconciled, FileError> {
        let links = self.put_links_right()?;
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
        let shown = |path: &Path| path.strip_prefix(&work.project).unwrap_or(path).display().to_string();
        let links = links.into_iter().map(|path| format!("{} had been made a link; it is a file again", shown(path)));
        let notes = links.chain(notes);
        let notes = notes.into_iter().map(|note| note.strip_prefix(&prefix).map_or(note.clone(), str::to_owned));
        let wanted = Self { files: files.collect(), leading: self.leading.clone() };
        Ok(Reconciled { wanted, notes: notes.collect(), own_boxes, now })
    }

    /// Writes the files that are not as this says. What is gone is made again; what is new stays.
    pub(crate) fn restore(&self) -> Result<(), FileError> {
        self.put_links_right()?;
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

    /// The same, but for files below `top`.
    pub(crate) fn restore_outside(&self, top: &Path) -> Result<(), FileError> {
        let files = self.files.iter().filter(|(path, _)| path_below(path, top).is_none()).cloned().collect();
        Self { files, leading: self.leading.clone() }.restore()
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
        let files = self.wanted.files.iter().filter(untouched).cloned().collect();
        WorkState { files, leading: self.wanted.leading.clone() }.restore()
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
        WorkState { files, leading: Vec::new() }.below(top)
    }
}
