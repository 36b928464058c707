//! Work in the file system: what is written down here, what an argument of the command line means, and the files that
//! belong to it.

mod change;
mod claims;
mod find;
mod folders;
pub(crate) mod landed;
mod places;
mod resolve;
mod several;
pub(crate) mod state;

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use crate::tracker;
use ralphloop_core::plan::{Scheme, WorkId};
use ralphloop_spec::{NEXT_STEPS, SpecFiles, SpecText};

pub use find::{Found, find};
pub use resolve::resolve;

/// Larger files are no specs; the bound keeps a wrong argument from filling the memory.
const MAX_FILE: u64 = 32 * 1024 * 1024;

/// A piece of work in the file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkRef {
    /// Its name.
    pub id: WorkId,
    /// The file with its stories, or the folder with a file a story; absolute. May be a link.
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

    /// The filters of the issues on GitHub that are the work, if it is no file.
    pub(crate) fn query(&self) -> Option<Vec<(String, String)>> {
        let asked = self.id.scheme == Scheme::GitHub && !self.main.ends_with(&self.id.id);
        asked.then(|| tracker::filters(&self.id.id)).flatten()
    }

    /// Where a file is that was named from the project.
    pub fn place_of(&self, named: &str) -> PathBuf {
        self.project.join(named)
    }

    /// Whether tasks can be added to it that mend others: to task groups of Flight Rules.
    pub fn may_have_fix_tasks(&self) -> bool {
        let groups = |file: &Path| std::fs::read(file).is_ok_and(|bytes| ralphloop_spec::is_task_group(&bytes));
        self.id.scheme == Scheme::Flight && !self.is_next_steps() && self.story_files().iter().any(|file| groups(file))
    }

    /// Named in full, so that it means the same when there is other work beside it, and from any folder.
    pub fn named_in_full(&self) -> String {
        if self.query().is_some() {
            return self.id.to_string();
        }
        let place = self.change.as_deref().unwrap_or(&self.main).display();
        let part = if self.is_next_steps() { NEXT_STEPS } else { "" };
        format!("{}:{place}{part}", self.id.scheme.as_str())
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
        /// How each of them is named from here.
        found: Vec<String>,
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
        /// How what there is instead is named.
        found: Vec<String>,
    },
    /// Several formats could be meant by a file or a folder.
    #[error("{shown} could be {}; say which, as in {}:{shown}", either(.schemes), .schemes.first().map_or("", |scheme| scheme.as_str()))]
    Unclear {
        /// The path, as it can be named from here.
        shown: String,
        /// The formats that it could have, the likeliest first.
        schemes: Vec<Scheme>,
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

/// `a`, `a or b`, `a, b or c`.
fn either(schemes: &[Scheme]) -> String {
    let names: Vec<&str> = schemes.iter().map(|scheme| scheme.as_str()).collect();
    match names.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        names => names.concat(),
    }
}

fn list(found: &[String]) -> String {
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
    if let Some(folder) = work.folder() {
        return load_folder(work, folder);
    }
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
    let mut files = SpecFiles { beside, ..SpecFiles::single(work.id.scheme, main) };
    if work.is_next_steps() {
        files.main.path.push_str(NEXT_STEPS);
    }
    if work.query().is_some() {
        files.main.path.clone_from(&work.id.id);
    }
    for path in work.story_files().iter().skip(1) {
        files.more.push(text(path, &work.project)?);
    }
    Ok(files)
}

/// Reads a work that is a folder with a file a story.
fn load_folder(work: &WorkRef, folder: String) -> Result<SpecFiles, WorkError> {
    let text = |path: &Path| Ok::<_, WorkError>(SpecText { path: work.shown(path), bytes: read(path)? });
    let mut stories = work.story_files().into_iter();
    let Some(first) = stories.next() else {
        let missing = vec![format!("no file with a story in {folder}")];
        return Err(WorkError::NotReady { work: work.id.clone(), missing });
    };
    let main = text(&first)?;
    let mut files = SpecFiles { folder: Some(folder), ..SpecFiles::single(work.id.scheme, main) };
    for path in stories {
        files.more.push(text(&path)?);
    }
    if work.id.scheme == Scheme::Backlog {
        let (settings, aside) = several::beside(&work.main);
        for path in settings {
            files.beside.push(text(&path)?);
        }
        files.beside.extend(aside.iter().map(|path| SpecText::new(work.shown(path), "")));
    }
    Ok(files)
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
