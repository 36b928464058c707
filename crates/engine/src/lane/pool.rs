//! Worktrees that outlive a run: a folder of numbered places, each taken by one run at a time. The run's own folder has a
//! link to the place of each lane, so that whoever looks for what a dead run has left finds it there.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use ralphloop_core::ids::RunId;

use crate::files::{self, FileError};
use crate::runs::StateFolder;

/// What the name of the mark of a taken place ends in.
const TAKEN: &str = "run";
/// How long a search for a free place goes on.
const PLACES: u32 = 10_000;

/// The folder in which worktrees are kept, and how many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pool {
    folder: PathBuf,
    keep: usize,
}

impl Pool {
    /// That of a repository, in the folder that the user has named or beside the runs; none if nothing is to be kept and the
    /// user has named no folder.
    pub(crate) fn of(state: &StateFolder, named: Option<&Path>, keep: u32) -> Option<Self> {
        let folder = match named {
            // Several repositories may share the user's folder.
            Some(named) => named.join(own_name(state.path())),
            None if keep == 0 => return None,
            None => state.path().join("worktrees"),
        };
        Some(Self { folder, keep: usize::try_from(keep).unwrap_or(usize::MAX) })
    }

    /// That folder, of which it is known that worktrees are kept there.
    pub(crate) fn at(folder: &Path, keep: u32) -> Self {
        Self { folder: folder.to_owned(), keep: usize::try_from(keep).unwrap_or(usize::MAX) }
    }

    /// A place that no run has, which is `run`'s from now on: one with a worktree from before, if there is one.
    pub(crate) fn take(&self, state: &StateFolder, run: &RunId) -> Result<PathBuf, FileError> {
        files::create_private_dir(&self.folder)?;
        self.note(state)?;
        let empty = (1..=PLACES).map(|number| self.folder.join(format!("lane-{number}")));
        for place in idle(&self.folder).into_iter().chain(empty) {
            let taken = taken_mark(&place);
            let fails = |error| FileError::new("write", &taken, error);
            // Whole from the first moment: a mark of nobody would be taken away by whoever tidies up.
            let mut mark = tempfile::NamedTempFile::new_in(&self.folder).map_err(fails)?;
            mark.write_all(run.as_str().as_bytes()).map_err(fails)?;
            match mark.persist_noclobber(&taken) {
                Ok(_) => return Ok(place),
                Err(e) if e.error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(fails(e.error)),
            }
        }
        let full = std::io::Error::other(format!("all of its {PLACES} places are taken"));
        Err(FileError::new("find a place for a worktree in", &self.folder, full))
    }

    /// Whether one more worktree that nobody uses is to be kept.
    pub(crate) fn has_room(&self) -> bool {
        idle(&self.folder).len() < self.keep
    }

    /// Notes where worktrees are, so that they can be listed.
    fn note(&self, state: &StateFolder) -> Result<(), FileError> {
        if folders(state).contains(&self.folder) {
            return Ok(());
        }
        files::create_private_dir(state.path())?;
        let mut line = self.folder.as_os_str().to_owned().into_encoded_bytes();
        line.push(b'\n');
        files::append(&noted(state), &line, files::Access::Private)
    }
}

/// A name for the repository, by which it finds its own worktrees in a folder that several share.
fn own_name(state: &Path) -> String {
    let git_dir = state.parent().unwrap_or(state);
    let top = if git_dir.ends_with(".git") { git_dir.parent().unwrap_or(git_dir) } else { git_dir };
    let name = top.file_name().map_or_else(|| "repository".to_owned(), |name| name.to_string_lossy().into_owned());
    let hash = blake3::hash(git_dir.as_os_str().as_encoded_bytes()).to_hex();
    format!("{}-{}", files::safe_name(&name), &hash[..8])
}

fn noted(state: &StateFolder) -> PathBuf {
    state.path().join("worktree-folders")
}

fn folders(state: &StateFolder) -> Vec<PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;
    let lines = std::fs::read(noted(state)).unwrap_or_default();
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| PathBuf::from(std::ffi::OsStr::from_bytes(line))).collect()
}

/// Every worktree that is kept for the next run, with the run that uses it, if one does.
pub(crate) fn kept(state: &StateFolder) -> Vec<(PathBuf, Option<RunId>)> {
    let folders = folders(state);
    let places = folders.iter().flat_map(|folder| places(folder));
    places.map(|place| (place.clone(), user(&place))).collect()
}

/// Every place that some run has taken, whether a worktree is there yet or not.
pub(crate) fn taken(state: &StateFolder) -> Vec<(PathBuf, RunId)> {
    let folders = folders(state);
    let items = folders.iter().flat_map(std::fs::read_dir).flatten().filter_map(Result::ok).map(|item| item.path());
    let marks = items.filter(|path| path.extension().is_some_and(|kind| kind == TAKEN));
    marks.filter_map(|mark| Some((mark.with_extension(""), user(&mark)?))).collect()
}

fn places(folder: &Path) -> Vec<PathBuf> {
    let items = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|item| item.path());
    let mut places: Vec<PathBuf> = items.filter(|path| path.join(".git").exists()).collect();
    places.sort();
    places
}

fn idle(folder: &Path) -> Vec<PathBuf> {
    places(folder).into_iter().filter(|place| !taken_mark(place).exists()).collect()
}

/// The run whose place it is.
pub(crate) fn user(place: &Path) -> Option<RunId> {
    std::fs::read_to_string(taken_mark(place)).ok().map(RunId)
}

fn taken_mark(place: &Path) -> PathBuf {
    place.with_extension(TAKEN)
}

/// The place is free again.
pub(crate) fn give_back(place: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(taken_mark(place)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_one_runs_until_it_is_given_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateFolder::of(folder.path());
        let pool = Pool::of(&state, None, 1).expect("something is kept");
        let take = |run: &str| pool.take(&state, &RunId::from(run)).expect("a place");
        let (first, second) = (take("a"), take("b"));
        assert_ne!(first, second);
        give_back(&first).expect("the mark goes");
        assert_eq!(take("c"), first);
        assert!(Pool::of(&state, None, 0).is_none());
    }

    #[test]
    fn as_many_are_kept_as_was_said_and_listed_with_whoever_uses_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateFolder::of(folder.path());
        let pool = Pool::of(&state, Some(&folder.path().join("elsewhere")), 1).expect("a folder is named");
        let place = pool.take(&state, &RunId::from("a")).expect("a place");
        std::fs::create_dir_all(place.join(".git")).expect("a worktree");
        assert_eq!(kept(&state), [(place.clone(), Some(RunId::from("a")))]);
        assert!(pool.has_room());
        give_back(&place).expect("the mark goes");
        assert_eq!(kept(&state), [(place, None)]);
        assert!(!pool.has_room());
    }
}
