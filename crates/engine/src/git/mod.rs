//! The repository: looked at before a run, checkpointed, put back exactly, landed in.
//!
//! A checkpoint is a record of every path's `lstat`, and of the content of those that git does not already hold; see
//! [`Repository::checkpoint`]. Nothing here uses the stash, `clean`, `reset` or a force push, and git itself is asked for
//! every rule about ignoring, status and attributes.

mod answers;
mod branch;
mod checkpoint;
mod command;
mod content;
mod drivers;
mod durable;
mod follow;
mod foresee;
mod guard;
mod head;
mod hold;
mod holdback;
mod hooks;
mod index;
mod inspect;
mod keep;
mod land;
mod leftovers;
mod merge;
mod names;
mod object;
mod oid;
mod preflight;
mod record;
mod replace;
mod restore;
mod revert;
mod scan;
mod seal;
mod settings;
mod signing;
mod store;
mod trailers;
mod walk;
mod worktree;

use std::collections::BTreeSet;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use branch::{BranchError, Switched};
pub use checkpoint::{Checkpoint, CheckpointError};
pub use command::{Answer, Command, Git, GitError, MINIMUM_VERSION};
pub use follow::{AdvanceError, MovedSubmodule, Standing as BranchStanding};
pub use head::HeadError;
pub use hooks::Walls;
pub use index::IndexError;
pub use inspect::{Change, ChangeKind, Frame, Inspection, Repair, Standing};
pub use keep::{KeepError, Kept};
pub use land::{Guard, HeldBack, HoldBack, LandError, Landed, Landing};
pub use leftovers::{KeptAttempt, KeptSquash, Stored};
pub use merge::{Keeping, MergeError, Merging, Trial, Work};
pub(crate) use names::found_refs;
pub use names::{attempt_ref, slug, squashed_ref};
pub(crate) use preflight::lines;
pub use preflight::{Finding, FindingKind, Severity};
pub(crate) use replace::Replacement;
pub use revert::{RevertError, RevertReport};
pub use scan::ScanError;
pub use seal::{Seal, Sealed};
pub use store::StoreError;
pub(crate) use trailers::{FINISH, FIX_TASK, OwnCommit, RUN, SIGN_OFF, SIGNED, SQUASHED, WORK};
pub use trailers::{LandedStory, ShownCommit};
pub use walk::WalkError;

use oid::HashKind;
use record::{Listing, Record};
use store::Store;

/// What was found so long ago is taken for what is there, where nothing of ours has run since. Who changes the tree in
/// that time has changed it just after the look.
const JUST_NOW: Duration = Duration::from_millis(500);
/// A look at a large tree takes long itself, and misses what changes behind it; so many times that long is just now, too.
const JUST_NOW_OF_A_LONG_LOOK: u32 = 4;

/// Four directories that are never taken for each other. All absolute, links resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The top of the working tree.
    pub top: PathBuf,
    /// Where the agent and the gates run: where the program was started, at or below `top`.
    pub project: PathBuf,
    /// This working tree's git directory.
    pub git_dir: PathBuf,
    /// The git directory that all working trees of the repository share.
    pub common_dir: PathBuf,
}

/// The common git directory of the working tree at `top`, as its `.git` tells; none if it has none.
pub(crate) fn common_dir_of(top: &Path) -> Option<PathBuf> {
    let dot = top.join(".git");
    if dot.is_dir() {
        return Some(dot);
    }
    let told = std::fs::read_to_string(&dot).ok()?;
    let git = top.join(told.strip_prefix("gitdir:")?.trim());
    match std::fs::read_to_string(git.join("commondir")) {
        Ok(common) => Some(git.join(common.trim())),
        Err(_) => Some(git),
    }
}

/// How much a checkpoint keeps. What is beyond stays where it is and is protected by size and times only, and said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotLimits {
    /// Bytes of one file.
    pub file: u64,
    /// Bytes of all files that one checkpoint reads.
    pub total: u64,
    /// Files in an ignored directory; a directory with more is left alone.
    pub ignored_files: u64,
    /// Bytes in an ignored directory; a directory with more is left alone.
    pub ignored_bytes: u64,
}

impl Default for SnapshotLimits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self { file: 64 * MIB, total: 1024 * MIB, ignored_files: 5_000, ignored_bytes: 64 * MIB }
    }
}

/// How much of git's own state a working tree's checkpoints answer for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// All of it: nobody else works in the repository meanwhile.
    Repository,
    /// The working tree's own part, and the configuration and hooks that all share: refs move in other working trees.
    Worktree,
}

/// No repository in which ralphloop can work.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Not inside a repository.
    #[error("{} is not in a git repository; `git init` makes one", start.display())]
    NoRepository {
        /// Where it was looked for.
        start: PathBuf,
    },
    /// No working tree.
    #[error("{} is a bare repository; clone it and start there", git_dir.display())]
    Bare {
        /// The git directory.
        git_dir: PathBuf,
    },
    /// Started inside the git directory.
    #[error("{} is inside the git directory; start in the working tree", start.display())]
    InsideGitDirectory {
        /// Where it was started.
        start: PathBuf,
    },
    /// Git is too old.
    #[error("git {found} is too old; {}.{} or newer is needed", MINIMUM_VERSION.0, MINIMUM_VERSION.1)]
    TooOld {
        /// What `git version` said.
        found: String,
    },
    /// Another owner's repository.
    #[error("git refuses {}: {message}", start.display())]
    Refused {
        /// Where it was started.
        start: PathBuf,
        /// Git's words, which name the command that helps.
        message: String,
    },
    /// A path that cannot be written down everywhere: in a journal, in what git answers line by line.
    #[error("{path:?} is no plain text in UTF-8 on one line, so that it cannot be noted; move the repository")]
    Unspeakable {
        /// Where it was started.
        path: PathBuf,
    },
    /// Git is missing or failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// One working tree of a repository, and what is remembered of it between calls. Cheap to clone. All that writes has to come from
/// one task at a time.
#[derive(Debug, Clone)]
pub struct Repository {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    git: Git,
    places: Places,
    hash: HashKind,
    limits: SnapshotLimits,
    scope: Scope,
    store: Store,
    memory: Mutex<Memory>,
}

/// What saves reading files again; never needed for an answer to be right.
#[derive(Debug, Default)]
struct Memory {
    /// The newest record, with everything saved.
    record: Option<Arc<Record>>,
    /// The commit that HEAD was last seen at, and its tree.
    head_tree: Option<(oid::Oid, oid::Oid)>,
    /// The newest look at the tree, with everything hashed.
    look: Option<Arc<Listing>>,
    /// When that was.
    looked: Option<Looked>,
    /// Git's newest answers, and what was there then.
    answers: Option<Arc<answers::Kept>>,
    /// Where submodules ever were.
    nested: BTreeSet<record::RelPath>,
}

/// When a tree was walked.
#[derive(Debug, Clone, Copy)]
struct Looked {
    ended: Instant,
    took: Duration,
}

impl Looked {
    fn is_just_now(self) -> bool {
        self.ended.elapsed() < JUST_NOW.max(self.took.saturating_mul(JUST_NOW_OF_A_LONG_LOOK))
    }
}

impl Repository {
    /// Finds the repository that `start` is in.
    pub async fn open(start: &Path, git: Git, limits: SnapshotLimits) -> Result<Self, OpenError> {
        Self::open_scoped(start, git, limits, Scope::Repository).await
    }

    async fn open_scoped(start: &Path, git: Git, limits: SnapshotLimits, scope: Scope) -> Result<Self, OpenError> {
        let real = std::fs::canonicalize(start).unwrap_or_else(|_| start.to_owned());
        if real.to_str().is_none_or(|text| text.contains('\n')) {
            return Err(OpenError::Unspeakable { path: real });
        }
        let question = git
            .read(start)
            .args(["rev-parse", "--path-format=absolute", "--is-bare-repository", "--is-inside-git-dir"])
            .args(["--show-object-format", "--git-dir", "--git-common-dir", "--show-toplevel"]);
        let answer = question.answer().await?;
        if answer.stdout.starts_with(b"--path-format") {
            // A git that does not know the option repeats it. The first that knows it is the oldest that is good enough.
            check_version(&git, start).await?;
            return Err(answer.unexpected().into());
        }
        let mut lines = answer.stdout.splitn(6, |byte| *byte == b'\n');
        let mut line = || lines.next().unwrap_or_default();
        let (bare, inside, format, git_dir, common_dir) = (line(), line(), line(), line(), line());
        let top = line();
        if !answer.success() {
            let message = answer.message();
            return Err(if bare == b"true" {
                OpenError::Bare { git_dir: path(git_dir) }
            } else if inside == b"true" {
                OpenError::InsideGitDirectory { start: start.to_owned() }
            } else if message.contains("not a git repository") {
                OpenError::NoRepository { start: start.to_owned() }
            } else if message.contains("dubious ownership") {
                OpenError::Refused { start: start.to_owned(), message }
            } else {
                answer.into_error().into()
            });
        }
        let hash = match format {
            b"sha1" => HashKind::Sha1,
            b"sha256" => HashKind::Sha256,
            _ => return Err(answer.unexpected().into()),
        };
        let real = |bytes: &[u8]| std::fs::canonicalize(path(bytes)).map_err(|_| answer.unexpected());
        let places = Places {
            top: real(top.strip_suffix(b"\n").unwrap_or(top))?,
            project: std::fs::canonicalize(start).map_err(|_| answer.unexpected())?,
            git_dir: real(git_dir)?,
            common_dir: real(common_dir)?,
        };
        let store = Store::new(&places.common_dir, &places.top);
        Ok(Self { shared: Arc::new(Shared { git, places, hash, limits, scope, store, memory: Mutex::default() }) })
    }

    /// The four directories.
    pub fn places(&self) -> &Places {
        &self.shared.places
    }

    /// The git program with the settings of this repository's commands.
    pub fn git(&self) -> &Git {
        &self.shared.git
    }

    /// The same working tree, whose git, with what that starts, is found elsewhere than in it: agents write there.
    #[must_use]
    pub(crate) fn with_programs_from_elsewhere(&self) -> Self {
        let Shared { git, places, hash, limits, scope, .. } = &*self.shared;
        let (git, store) = (git.clone().without_programs_in(&places.top), Store::new(&places.common_dir, &places.top));
        let (places, hash, limits, scope) = (places.clone(), *hash, *limits, *scope);
        Self { shared: Arc::new(Shared { git, places, hash, limits, scope, store, memory: Mutex::default() }) }
    }

    /// A command that only reads, at the top of the working tree.
    fn read(&self) -> Command<'_> {
        self.shared.git.read(&self.shared.places.top)
    }

    /// A command that may write, at the top of the working tree.
    fn write(&self) -> Command<'_> {
        self.shared.git.write(&self.shared.places.top)
    }

    fn store(&self) -> &Store {
        &self.shared.store
    }

    /// The folders of the working tree that are repositories of their own to git, as the index has them or had them before:
    /// whoever works in the tree could have changed it since.
    pub(crate) fn nested(&self) -> Vec<PathBuf> {
        // One that cannot be read ends the run elsewhere.
        let now = index::Index::read(&self.places().git_dir, self.shared.hash).map(|index| index.submodules());
        let mut nested = Vec::new();
        self.remember(|memory| {
            memory.nested.extend(now.unwrap_or_default());
            nested.extend(memory.nested.iter().map(|at| self.places().top.join(path(at))));
        });
        nested
    }

    fn remember(&self, change: impl FnOnce(&mut Memory)) {
        change(&mut self.shared.memory.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn remembered_record(&self) -> Option<Arc<Record>> {
        self.shared.memory.lock().unwrap_or_else(PoisonError::into_inner).record.clone()
    }

    fn remembered_look(&self) -> Option<Arc<Listing>> {
        self.shared.memory.lock().unwrap_or_else(PoisonError::into_inner).look.clone()
    }

    /// It is one of the working trees that we have made, beside the user's checkout.
    pub(crate) fn is_worktree_of_ours(&self) -> bool {
        self.shared.scope == Scope::Worktree
    }

    /// The newest look, if there was not even time for a person to change something since.
    fn look_of_just_now(&self) -> Option<(Arc<Listing>, Looked)> {
        let memory = self.shared.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.look.clone().zip(memory.looked.filter(|looked| looked.is_just_now()))
    }

    fn kept_answers(&self) -> Option<Arc<answers::Kept>> {
        self.shared.memory.lock().unwrap_or_else(PoisonError::into_inner).answers.clone()
    }

    /// Runs work that blocks (walks, reads, writes of files) beside the event loop, to its end.
    async fn blocking<T: Send + 'static>(&self, work: impl FnOnce(&Self) -> T + Send + 'static) -> T {
        let this = self.clone();
        match tokio::task::spawn_blocking(move || work(&this)).await {
            Ok(result) => result,
            Err(error) => std::panic::resume_unwind(
                error.try_into_panic().unwrap_or_else(|error| Box::new(format!("the runtime ended: {error}"))),
            ),
        }
    }
}

async fn check_version(git: &Git, start: &Path) -> Result<(), OpenError> {
    let answer = git.read(start).arg("version").run().await?;
    let line = answer.line()?;
    let found = line.strip_prefix("git version ").unwrap_or(line);
    let mut numbers = found.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    if (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < MINIMUM_VERSION {
        return Err(OpenError::TooOld { found: found.to_owned() });
    }
    Ok(())
}

/// A path as git wrote it.
fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsString::from_vec(bytes.to_vec()))
}

/// The bytes of a path, as git and the records write it.
fn bytes_of(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}
