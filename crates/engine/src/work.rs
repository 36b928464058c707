//! Work in the file system: what is written down here, what an argument of the command line means, and the files that
//! belong to it.

mod change;
mod find;
mod folders;
mod places;
mod resolve;

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use ralphloop_core::plan::{Scheme, WorkId};
use ralphloop_spec::{SpecFiles, SpecText};

pub use find::{Found, find};
pub use resolve::resolve;

/// Larger files are no specs; the bound keeps a wrong argument from filling the memory.
const MAX_FILE: u64 = 32 * 1024 * 1024;

/// A piece of work in the file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkRef {
    /// Its name.
    pub id: WorkId,
    /// The file with its stories; absolute. May be a link.
    pub main: PathBuf,
    /// The folder that its paths count from and its gates run in; absolute.
    pub project: PathBuf,
    /// The folder that `main` belongs to, in formats where other texts of it matter: the change's, the feature's.
    pub change: Option<PathBuf>,
}

impl WorkRef {
    /// `path` as it is shown: below the project if it is there.
    pub fn shown(&self, path: &Path) -> String {
        shown(&self.project, path)
    }
}

/// `path` relative to `base` if it is below it, else as it is.
fn shown(base: &Path, path: &Path) -> String {
    path.strip_prefix(base).unwrap_or(path).display().to_string()
}

/// Why there is no work to go on with.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// Nothing is written down here.
    #[error("no work found in {}", .folder.display())]
    NoneFound {
        /// Where was looked.
        folder: PathBuf,
    },
    /// More than one thing could be meant.
    #[error("{} pieces of work found, name one of them:{}", .found.len(), list(.found))]
    Several {
        /// All of them.
        found: Vec<WorkId>,
    },
    /// A format that does not exist.
    #[error("unknown format '{scheme}'; the known ones are {}", known())]
    UnknownScheme {
        /// What was written before the colon.
        scheme: String,
    },
    /// Nothing of that name.
    #[error("there is no work '{argument}'{}{}", if .found.is_empty() { "" } else { "; there is:" }, list(.found))]
    NotFound {
        /// What was written.
        argument: String,
        /// What there is instead.
        found: Vec<WorkId>,
    },
    /// The file or folder exists, but does not tell its format.
    #[error("the format of {} is not clear; write FORMAT:PATH, with one of {}", .path.display(), known())]
    NoFormat {
        /// The path.
        path: PathBuf,
    },
    /// The work is not written down completely.
    #[error("{work} is not ready: {}", .missing.join(", "))]
    NotReady {
        /// Its name.
        work: WorkId,
        /// What is missing.
        missing: Vec<String>,
    },
    /// A file could not be read.
    #[error("could not read {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Not a file of text.
    #[error("{} {why}", .path.display())]
    NotText {
        /// The path.
        path: PathBuf,
        /// `is a folder`, `is larger than 32 MiB`.
        why: &'static str,
    },
}

fn list(found: &[WorkId]) -> String {
    found.iter().fold(String::new(), |mut text, work| {
        let _ = write!(text, "\n  {work}");
        text
    })
}

fn known() -> String {
    Scheme::ALL.iter().map(|scheme| scheme.as_str()).collect::<Vec<_>>().join(", ")
}

/// Reads the files of a piece of work. Links are followed. The main file is named from the project, the others from the
/// folder of the change, or from the project if they are not in it.
pub fn load(work: &WorkRef) -> Result<SpecFiles, WorkError> {
    let text = |path: &Path, base: &Path| Ok(SpecText { path: shown(base, path), bytes: read(path)? });
    let main = match text(&work.main, &work.project) {
        Err(WorkError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound && work.change.is_some() => {
            let missing = match work.id.scheme {
                Scheme::OpenSpec => work.change.as_deref().map(change::missing).unwrap_or_default(),
                _ => folders::missing(),
            };
            return Err(WorkError::NotReady { work: work.id.clone(), missing });
        }
        main => main?,
    };
    let mut beside = Vec::new();
    if let Some(folder) = work.change.as_deref() {
        for path in change::companions(folder, &work.main) {
            beside.push(text(&path, if path.starts_with(folder) { folder } else { &work.project })?);
        }
    }
    Ok(SpecFiles { scheme: work.id.scheme, main, beside })
}

/// Reads a file of text, up to a bound.
fn read(path: &Path) -> Result<Vec<u8>, WorkError> {
    let fail = |source| WorkError::Read { path: path.to_owned(), source };
    let meta = std::fs::metadata(path).map_err(fail)?;
    let refuse = |why| Err(WorkError::NotText { path: path.to_owned(), why });
    if meta.is_dir() {
        return refuse("is a folder");
    }
    if !meta.is_file() {
        return refuse("is no regular file");
    }
    if meta.len() > MAX_FILE {
        return refuse("is larger than 32 MiB");
    }
    std::fs::read(path).map_err(fail)
}

#[cfg(test)]
mod tests;
