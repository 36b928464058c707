//! What git has said of the tree: which paths it ignores, and the settings. Asking costs two programs a look, so an answer
//! is kept for as long as nothing has happened that could change it.
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::index::Index;
use super::record::{Class, Entry, Listing, Pair, Pairs, Record, RelPath, Stat, is_within};
use super::scan::Scan;
use super::settings::Settings;
use super::walk::lstat_numbers;

/// Files of a git directory that say what is ignored, or how git is set.
const SOURCES: &[&[u8]] = &[b"config", b"config.worktree", b"info/exclude"];

/// Git's answers.
#[derive(Debug)]
pub(super) struct Answers {
    /// Ignored paths; of an ignored directory only itself.
    pub(super) ignored: HashSet<RelPath>,
    pub(super) settings: Settings,
    /// The files outside the repository that they depend on, as they were before git was asked.
    pub(super) outside: Watched,
}

/// Answers, and all that was there when they were given or found to hold still.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) answers: Arc<Answers>,
    seen: Seen,
    git: Vec<Listing>,
    submodules: Vec<RelPath>,
}

/// The look at the tree that the answers are of.
#[derive(Debug)]
enum Seen {
    Look(Arc<Listing>),
    Record(Arc<Record>),
}

/// Whether answers hold for what is there now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Holds {
    Yes,
    /// There are these files that git has not been asked about; what was looked into and what not stays right.
    NotForNewFiles(Vec<RelPath>),
    No,
}

impl Kept {
    /// Of a look whose contents are known.
    pub(super) fn of_look(answers: Arc<Answers>, look: Arc<Listing>, git: Vec<Listing>, index: &Index) -> Self {
        Self { answers, seen: Seen::Look(look), git, submodules: index.submodules() }
    }

    /// Of a checkpoint.
    pub(super) fn of_record(answers: Arc<Answers>, record: Arc<Record>) -> Self {
        let submodules = record.submodules.iter().map(|(path, _)| path.clone()).collect();
        Self { answers, git: record.git.clone(), submodules, seen: Seen::Record(record) }
    }

    fn work(&self) -> &Listing {
        match &self.seen {
            Seen::Look(look) => look,
            Seen::Record(record) => &record.work,
        }
    }

    /// Whether a directory was there, so that it is known whether git ignores it. In one that was left alone nobody looked,
    /// and all are as that is.
    pub(super) fn knows_directory(&self, path: &[u8]) -> bool {
        self.work().get(path).is_some_and(|entry| entry.node.is_directory())
            || self.work().left_alone.iter().any(|left| is_within(path, left))
    }

    /// Whether git's configuration and its list of excluded paths are untouched.
    pub(super) fn sources_hold(&self, git: &[Listing]) -> bool {
        self.git.len() == git.len()
            && self.git.iter().zip(git).all(|(before, now)| {
                SOURCES.iter().all(|path| match (before.get(path), now.get(path)) {
                    (None, None) => true,
                    (Some(one), Some(other)) => one.is_untouched(before.clock, other),
                    _ => false,
                })
            })
            && self.answers.outside.hold()
    }

    /// Whether the answers are those that git would give of the tree as `scan` found it.
    ///
    /// A path's answer depends on the patterns alone, and on whether it is in the index or below another repository. So it
    /// stays the same as long as no `.gitignore` and no `.git` came, went or changed and nothing left the index.
    pub(super) fn hold_for(&self, scan: &Scan) -> Holds {
        if scan.index.submodules() != self.submodules {
            return Holds::No;
        }
        let mut tracked = scan.index.names().peekable();
        let mut is_tracked = |entry: &Entry| {
            while tracked.next_if(|path| *path < entry.path.as_slice()).is_some() {}
            tracked.peek().is_some_and(|path| *path == entry.path)
        };
        if self.left_alone_has_tracked(&scan.index) {
            return Holds::No;
        }
        let mut asked_about = Vec::new();
        for pair in Pairs::new(&self.work().entries, &scan.work.entries) {
            match pair {
                Pair::Both(before, now) => {
                    let was_asked = before.node.same_kind(&now.node)
                        && (!says_what_is_ignored(before) || before.is_untouched(self.work().clock, now))
                        && match before.class {
                            Class::Tracked => is_tracked(now),
                            Class::Ignored => !is_tracked(now),
                            Class::Untracked | Class::Nested | Class::Internal => true,
                        };
                    if !was_asked {
                        return Holds::No;
                    }
                }
                Pair::Left(gone) if says_what_is_ignored(gone) => return Holds::No,
                Pair::Left(_) => {}
                Pair::Right(new) if new.node.is_directory() || says_what_is_ignored(new) => return Holds::No,
                Pair::Right(new) => asked_about.push(new.path.clone()),
            }
        }
        if asked_about.is_empty() { Holds::Yes } else { Holds::NotForNewFiles(asked_about) }
    }

    /// Git calls no directory ignored that has something tracked in it.
    fn left_alone_has_tracked(&self, index: &Index) -> bool {
        let ignored: Vec<_> =
            self.work().left_alone.iter().filter(|path| self.answers.ignored.contains(path.as_slice())).collect();
        !ignored.is_empty() && index.names().any(|path| ignored.iter().any(|directory| is_within(path, directory)))
    }
}

/// A list of patterns, or the beginning of another repository.
fn says_what_is_ignored(entry: &Entry) -> bool {
    !entry.node.is_directory() && entry.name() == b".gitignore" || entry.name() == b".git"
}

/// Files outside the repository, as they were at a time.
#[derive(Debug, Clone)]
pub(super) struct Watched {
    files: Vec<(PathBuf, Option<Stat>)>,
    /// There are others that nobody can name.
    unknown: bool,
}

impl Watched {
    /// The files as they are now, links followed.
    pub(super) fn now(files: Vec<PathBuf>) -> Self {
        Self { files: files.into_iter().map(|file| (file.clone(), stat(&file))).collect(), unknown: false }
    }

    /// One more, as it is now.
    pub(super) fn add(&mut self, file: PathBuf) {
        let now = stat(&file);
        self.files.push((file, now));
    }

    /// Says that there are files that nobody can name.
    pub(super) fn everything(&mut self) {
        self.unknown = true;
    }

    fn hold(&self) -> bool {
        !self.unknown && self.files.iter().all(|(file, before)| stat(file) == *before)
    }
}

fn stat(file: &Path) -> Option<Stat> {
    rustix::fs::stat(file).ok().map(|stat| lstat_numbers(&stat))
}
