//! One look at everything that a checkpoint answers for: the working tree, and git's own state without its objects.
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::answers::{Answers, Holds};
use super::head::{HeadError, read_head};
use super::index::{Index, IndexError};
use super::oid::Oid;
use super::record::{Class, Entry, Head, Listing, Record, RelPath, file_name};
use super::walk::{Small, Step, WalkError, look_at, walk};
use super::{GitError, Looked, Places, Repository, Scope, StoreError, bytes_of};

/// The tree or git's state could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A directory could not be read.
    #[error(transparent)]
    Walk(#[from] WalkError),
    /// The index could not be read.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// HEAD could not be read.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// The store could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file could not be read.
    #[error("can't read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file kept changing while it was read.
    #[error("{} changes while it is read; stop what writes it", path.display())]
    Changing {
        /// The file.
        path: PathBuf,
    },
}

/// What was found; contents are not known yet.
pub(super) struct Scan {
    pub(super) head: Head,
    pub(super) index: Index,
    /// Shared with what is remembered of the newest look.
    pub(super) work: Arc<Listing>,
    /// When the tree was walked for it.
    pub(super) looked: Looked,
    /// The common git directory, then the linked working tree's own, if there is one.
    pub(super) git: Vec<Listing>,
    /// Submodules and the commits that are checked out in them.
    pub(super) submodules: Vec<(RelPath, Option<Oid>)>,
    /// Bytes of a tracked file may differ from its blob: line ends, encodings, filters.
    pub(super) conversions: bool,
    /// What git said of it.
    pub(super) answers: Arc<Answers>,
}

impl Repository {
    /// The directories of git that a checkpoint answers for, in the order of [`Record::git`].
    pub(super) fn git_roots(&self) -> Vec<PathBuf> {
        let places = self.places();
        let mut roots = vec![places.common_dir.clone()];
        if places.git_dir != places.common_dir {
            roots.push(places.git_dir.clone());
        }
        roots
    }

    /// Looks at everything. What `base` left alone is left alone again, and what it looked into is looked into, however
    /// large it is by now.
    pub(super) async fn scan(&self, base: Option<Arc<Record>>) -> Result<Scan, ScanError> {
        let Some(kept) = self.kept_answers() else {
            let (answers, own) = tokio::try_join!(self.ask(), self.own_state())?;
            return self.blocking(move |this| this.scan_work(own, answers, base.as_deref(), &|_| false)).await;
        };
        let own = self.own_state().await?;
        if !kept.sources_hold(&own.git) {
            let answers = self.ask().await?;
            return self.blocking(move |this| this.scan_work(own, answers, base.as_deref(), &|_| false)).await;
        }
        let (scan, holds) = {
            let base = base.clone();
            self.blocking(move |this| {
                let news = AtomicBool::new(false);
                // A new directory may be ignored and large: it is not looked into before git was asked about it.
                let is_new = |path: &[u8]| {
                    let is_new = news.load(Ordering::Relaxed) || !kept.knows_directory(path);
                    news.fetch_or(is_new, Ordering::Relaxed);
                    is_new
                };
                let scan = this.scan_work(own, Arc::clone(&kept.answers), base.as_deref(), &is_new)?;
                let holds = if news.into_inner() { Holds::No } else { kept.hold_for(&scan) };
                Ok::<_, ScanError>((scan, holds))
            })
            .await?
        };
        match holds {
            Holds::Yes => Ok(scan),
            Holds::NotForNewFiles(new) => {
                let answers = self.ask_about(&scan.answers, new).await?;
                self.blocking(move |_| Ok(Self::classified(scan, answers))).await
            }
            Holds::No => {
                let (answers, own) = tokio::try_join!(self.ask(), self.own_state())?;
                self.blocking(move |this| this.scan_work(own, answers, base.as_deref(), &|_| false)).await
            }
        }
    }

    /// The last look once more, with what is at `changed` by now and with git's own state as it is: right as long as nothing
    /// else was done in the tree. Nothing if there is none of just now, or if more may have changed by it.
    pub(super) async fn scan_on(&self, changed: Vec<RelPath>) -> Result<Option<Scan>, ScanError> {
        let (Some((look, looked)), Some(kept)) = (self.look_of_just_now(), self.kept_answers()) else {
            return Ok(None);
        };
        let own = self.own_state().await?;
        if !kept.sources_hold(&own.git) || !self.would_be_looked_into(&look, &kept.answers) {
            return Ok(None);
        }
        self.blocking(move |this| {
            let mut shared = look;
            let work = Arc::make_mut(&mut shared);
            // A file that was replaced gives its folder another time.
            let folders: Vec<RelPath> = changed.iter().map(|path| parent(path).to_vec()).collect();
            for path in changed.into_iter().chain(folders) {
                let full = this.places().top.join(super::path(&path));
                let now = look_at(&full).map_err(|source| ScanError::Read { path: full, source })?;
                let now = now.map(|now| Entry { path: path.clone(), ..now });
                match (work.entries.binary_search_by(|entry| entry.path.cmp(&path)), now) {
                    (Ok(at), Some(now)) => work.entries[at] = now,
                    (Err(at), Some(now)) => work.entries.insert(at, now),
                    (Ok(at), None) => drop(work.entries.remove(at)),
                    (Err(_), None) => {}
                }
            }
            Ok(Some(this.scan_of(own, shared, looked, Arc::clone(&kept.answers))))
        })
        .await
    }

    /// Whether a new look would go into every ignored directory that this one went into: they may have grown.
    fn would_be_looked_into(&self, look: &Listing, answers: &Answers) -> bool {
        let limits = self.shared.limits;
        answers.ignored.iter().filter(|path| look.get(path).is_some_and(|entry| entry.node.is_directory())).all(
            |path| {
                let (mut files, mut bytes) = (0_u64, 0_u64);
                for entry in look.within(path) {
                    files += 1;
                    bytes = bytes.saturating_add(entry.stat.size);
                }
                files <= limits.ignored_files && bytes <= limits.ignored_bytes
            },
        )
    }

    /// Asks git what it ignores and how it is set.
    async fn ask(&self) -> Result<Arc<Answers>, ScanError> {
        let ignored = async {
            let answer = self
                .read()
                .args(["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"])
                .run()
                .await?;
            Ok::<_, ScanError>(answer.items().map(|path| path.strip_suffix(b"/").unwrap_or(path).to_vec()).collect())
        };
        let settings = async { Ok::<_, ScanError>(self.settings().await?) };
        let (ignored, (settings, outside)) = tokio::try_join!(ignored, settings)?;
        Ok(Arc::new(Answers { ignored, settings, outside }))
    }

    /// The same answers, where git has also been asked which of some new files it ignores.
    async fn ask_about(&self, known: &Answers, new: Vec<RelPath>) -> Result<Arc<Answers>, ScanError> {
        const NONE: i32 = 1;
        // It refuses literal paths, and takes a colon at the beginning for more than a name.
        const HERE: &[u8] = b"./";
        let asked = new.iter().flat_map(|path| [HERE, path, b"\0"].concat()).collect::<Vec<u8>>();
        let question =
            self.read().args(["check-ignore", "-z", "--stdin"]).env("GIT_LITERAL_PATHSPECS", "0").stdin(asked);
        let answer = question.answer().await?;
        if !answer.success() && answer.code != Some(NONE) {
            // It does not look behind links, nor into other repositories; the whole question leaves these out by itself.
            return self.ask().await;
        }
        let named = answer.items().map(|path| path.strip_prefix(HERE).unwrap_or(path).to_vec());
        let ignored = known.ignored.iter().cloned().chain(named).collect();
        Ok(Arc::new(Answers { ignored, settings: known.settings.clone(), outside: known.outside.clone() }))
    }

    async fn own_state(&self) -> Result<OwnState, ScanError> {
        self.blocking(Repository::scan_git).await
    }

    fn scan_git(&self) -> Result<OwnState, ScanError> {
        // First of all: what changes from here on is not older than the look.
        let clock = self.store().clock()?;
        let places = self.places();
        let head = read_head(places)?;
        let index = Index::read(&places.git_dir, self.shared.hash)?;
        let git = self.scan_git_state_at(clock)?;
        Ok(OwnState { clock, head, index, git })
    }

    /// Git's own state, found without git.
    pub(super) fn scan_git_state(&self) -> Result<Vec<Listing>, ScanError> {
        self.scan_git_state_at(self.store().clock()?)
    }

    fn scan_git_state_at(&self, clock: i64) -> Result<Vec<Listing>, ScanError> {
        let everything = Small { files: u64::MAX, bytes: u64::MAX };
        let shares = self.shared.scope == Scope::Worktree;
        let look = |root: &PathBuf| {
            let is_shared = shares && *root == self.places().common_dir;
            let found = walk(root, everything, if is_shared { &step_in_shared_git } else { &step_in_git })?;
            Ok(Listing { clock, entries: found.entries, left_alone: Vec::new() })
        };
        self.git_roots().iter().map(look).collect()
    }

    fn scan_work(
        &self,
        own: OwnState,
        answers: Arc<Answers>,
        base: Option<&Record>,
        is_new: &(dyn Fn(&[u8]) -> bool + Sync),
    ) -> Result<Scan, ScanError> {
        let ignored = &answers.ignored;
        let places = self.places();
        let limits = self.shared.limits;
        let omitted: Vec<RelPath> = [&places.git_dir, &places.common_dir]
            .into_iter()
            .filter_map(|path| path.strip_prefix(&places.top).ok())
            .map(|path| bytes_of(path).to_vec())
            .collect();
        let step = |path: &[u8], is_directory: bool| {
            if omitted.iter().any(|omitted| omitted == path) {
                return Step::Omit;
            }
            if !is_directory {
                return Step::Enter;
            }
            if is_new(path) {
                return Step::Omit;
            }
            if base.is_none() && ignored.is_empty() {
                return Step::Enter;
            }
            if let Some(base) = base {
                if base.work.left_alone.binary_search_by(|left| left.as_slice().cmp(path)).is_ok() {
                    return Step::LeaveAlone;
                }
                if base.work.get(path).is_some_and(|entry| entry.node.is_directory()) {
                    return Step::Enter;
                }
            }
            if ignored.contains(path) { Step::EnterIfSmall } else { Step::Enter }
        };
        let small = Small { files: limits.ignored_files, bytes: limits.ignored_bytes };
        let began = Instant::now();
        let found = walk(&places.top, small, &step)?;
        let ended = Instant::now();
        let looked = Looked { ended, took: ended.duration_since(began) };
        let work = Listing { clock: own.clock, entries: found.entries, left_alone: found.left_alone };
        Ok(self.scan_of(own, Arc::new(work), looked, answers))
    }

    fn scan_of(&self, own: OwnState, work: Arc<Listing>, looked: Looked, answers: Arc<Answers>) -> Scan {
        let top = &self.places().top;
        let submodules = own.index.submodules();
        let submodules = submodules.into_iter().map(|path| (path.clone(), checked_out(top, &path))).collect();
        let OwnState { head, index, git, .. } = own;
        Self::classified(
            Scan { head, index, work, looked, git, submodules, conversions: false, answers: Arc::clone(&answers) },
            answers,
        )
    }

    /// The same look, by what git says of it.
    fn classified(mut scan: Scan, answers: Arc<Answers>) -> Scan {
        classify(&mut Arc::make_mut(&mut scan.work).entries, &scan.index, &answers.ignored);
        scan.conversions = answers.settings.converts
            || scan.git.iter().flat_map(|listing| &listing.entries).any(|entry| entry.path == b"info/attributes")
            || scan.work.entries.iter().any(|entry| entry.name() == b".gitattributes");
        scan.answers = answers;
        scan
    }
}

struct OwnState {
    clock: i64,
    head: Head,
    index: Index,
    git: Vec<Listing>,
}

/// What of a git directory is its state: all but objects, our own files and refs, and other working trees.
fn step_in_git(path: &[u8], is_directory: bool) -> Step {
    let omitted = match path {
        b"objects" | b"ralphloop" | b"worktrees" | b"lfs" => is_directory,
        _ if path.ends_with(b"refs/ralphloop") => true,
        // A submodule's own git directory is below `modules/`, at any depth.
        _ if path.starts_with(b"modules/") => is_directory && matches!(file_name(path), b"objects" | b"lfs"),
        _ => path.starts_with(b"fsmonitor--daemon"),
    };
    if omitted { Step::Omit } else { Step::Enter }
}

/// What of the common git directory is the state of a working tree that shares it with others at work.
fn step_in_shared_git(path: &[u8], _: bool) -> Step {
    let first = path.split(|byte| *byte == b'/').next().unwrap_or_default();
    if path.is_empty() || matches!(first, b"config" | b"hooks" | b"info") { Step::Enter } else { Step::Omit }
}

/// Says of each entry how git sees it.
fn classify(entries: &mut [Entry], index: &Index, ignored: &HashSet<RelPath>) {
    let mut inherited: HashMap<RelPath, Class> =
        index.submodules().into_iter().map(|path| (path, Class::Nested)).collect();
    for entry in entries.iter() {
        if entry.name() == b".git" && entry.path != b".git" {
            inherited.insert(parent(&entry.path).to_vec(), Class::Nested);
        }
    }
    let mut tracked = index.names().peekable();
    for entry in entries {
        while tracked.next_if(|path| *path < entry.path.as_slice()).is_some() {}
        let above = if inherited.is_empty() || entry.path.is_empty() {
            None
        } else {
            inherited.get(parent(&entry.path)).copied()
        };
        let own = if ignored.contains(&entry.path) { Some(Class::Ignored) } else { None };
        let is_tracked = !entry.node.is_directory() && tracked.peek().is_some_and(|path| *path == entry.path);
        entry.class = if is_tracked { Class::Tracked } else { above.or(own).unwrap_or(Class::Untracked) };
        if entry.node.is_directory() {
            match inherited.get(&entry.path) {
                Some(own) => entry.class = *own,
                None if entry.class != Class::Untracked => {
                    inherited.insert(entry.path.clone(), entry.class);
                }
                None => {}
            }
        }
    }
}

/// The commit that is checked out in a submodule, where there is one.
fn checked_out(top: &Path, path: &[u8]) -> Option<Oid> {
    let root = top.join(super::path(path));
    let link = root.join(".git");
    let git_dir = if link.is_dir() {
        link
    } else {
        let text = std::fs::read(&link).ok()?;
        root.join(super::path(text.strip_prefix(b"gitdir:")?.trim_ascii()))
    };
    let places = Places { top: root.clone(), project: root, common_dir: git_dir.clone(), git_dir };
    read_head(&places).ok()?.commit
}

/// The directory that a path is in; empty for the root.
pub(super) fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(b"", |at| &path[..at])
}
