//! What finished runs left, and its removal: only what the user names, nothing of a run that may go on, and no attempt's
//! work without being named itself.
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ralphloop_core::ids::RunId;
use ralphloop_core::run::Run;
use ralphloop_core::units::Timestamp;

use crate::files::FileError;
use crate::git::{CheckpointError, GitError, KeptAttempt, KeptSquash, Repository};
use crate::lane::pool;
use crate::lane::site::{self, SiteError};
use crate::runs::{RunFolder, StateFolder, unfinished};

/// The name of what checkpoints remember.
const CHECKPOINTS: &str = "checkpoints";
/// The name of what gates said of trees.
const CACHE: &str = "cache";

/// A kind of thing that is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A run's folder: journal, transcripts, copies of the spec.
    Run,
    /// The work of an attempt, under a ref.
    Attempt,
    /// A branch as it was before its run's commits were made one.
    Squashed,
    /// Files that left the tree with an attempt and were too large for git.
    Parked,
    /// What makes the next checkpoint quicker.
    Checkpoints,
    /// Results of gates.
    Cache,
    /// A worktree that is kept for the next run.
    Worktree,
}

impl Kind {
    /// As it is shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Attempt => "attempt",
            Self::Squashed => "before squash",
            Self::Parked => "parked files",
            Self::Checkpoints => "checkpoints",
            Self::Cache => "cache",
            Self::Worktree => "worktree",
        }
    }
}

/// One thing that is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What it is.
    pub kind: Kind,
    /// By which it is named for removal; no two items share one.
    pub name: String,
    /// The run that it belongs to.
    pub run: Option<String>,
    /// What it is about, in words.
    pub about: String,
    /// Bytes on the disk.
    pub bytes: u64,
    /// When it was last changed.
    pub changed_at: Option<Timestamp>,
    /// Why it cannot be removed.
    pub held: Option<String>,
    /// Nothing but this holds what is in it: it goes only if it is named itself.
    pub is_work: bool,
    place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Folder(PathBuf),
    Attempt(KeptAttempt),
    Squash(KeptSquash),
    Worktree(PathBuf),
    Store,
}

/// Which items are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// Those of these names, of which a run may be named by the beginning or end of its id.
    Named(Vec<String>),
    /// What finished runs left, but for work that nothing else holds.
    AllFinished,
}

/// Why nothing was removed, or not all.
#[derive(Debug, thiserror::Error)]
pub enum CleanError {
    /// Nothing has that name.
    #[error("nothing that runs left is called `{name}`; `ralphloop clean` lists what there is")]
    Unknown {
        /// What was named.
        name: String,
    },
    /// More than one thing has it.
    #[error("`{name}` may be any of {}", .candidates.join(", "))]
    Ambiguous {
        /// What was named.
        name: String,
        /// What it fits.
        candidates: Vec<String>,
    },
    /// It is still needed.
    #[error("{name} stays: {why}")]
    Held {
        /// What was named.
        name: String,
        /// Why.
        why: String,
    },
    /// The state folder cannot be read or changed.
    #[error(transparent)]
    File(#[from] FileError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The store of checkpoints cannot be changed.
    #[error(transparent)]
    Store(#[from] CheckpointError),
}

/// All that is left, runs first, newest first.
pub async fn left(repository: &Repository) -> Result<Vec<Item>, CleanError> {
    let state = StateFolder::of(&repository.places().common_dir);
    let runs: Vec<Known> = state.runs()?.into_iter().map(Known::of).collect();
    let mut items: Vec<Item> = runs.iter().map(Known::item).collect();
    let held_by = |run: &str| runs.iter().find(|known| known.folder.id.as_str() == run).and_then(|k| k.held.clone());

    let mut attempts = repository.kept_attempts().await?;
    attempts.sort_by_key(|attempt| std::cmp::Reverse(attempt.kept_at));
    let short = |attempt: &KeptAttempt| format!("{}#{}", attempt.story, attempt.number);
    for attempt in &attempts {
        let alone = attempts.iter().filter(|other| short(other) == short(attempt)).count() == 1;
        let name = if alone { short(attempt) } else { format!("{}/{}", attempt.run, short(attempt)) };
        let is_work = attempt.own_bytes > 0;
        items.push(Item {
            kind: Kind::Attempt,
            name,
            about: if is_work { "work that did not land" } else { "merged" }.to_owned(),
            bytes: attempt.own_bytes,
            changed_at: Some(Timestamp(attempt.kept_at.saturating_mul(1000))),
            held: held_by(&attempt.run),
            run: Some(attempt.run.clone()),
            is_work,
            place: Place::Attempt(attempt.clone()),
        });
    }
    for squash in repository.kept_squashes().await? {
        items.push(Item {
            kind: Kind::Squashed,
            name: format!("squashed/{}", squash.run),
            about: "the branch as it was before `squash`".to_owned(),
            bytes: squash.own_bytes,
            changed_at: Some(Timestamp(squash.kept_at.saturating_mul(1000))),
            held: held_by(&squash.run),
            run: Some(squash.run.clone()),
            is_work: true,
            place: Place::Squash(squash),
        });
    }

    let at_work = runs.iter().find(|known| known.held.is_some());
    let stored = repository.stored();
    for (checkpoint, folder) in stored.parked {
        let run = runs.iter().find(|known| checkpoint.starts_with(known.folder.id.as_str()));
        items.push(Item {
            kind: Kind::Parked,
            name: format!("parked/{checkpoint}"),
            run: run.map(|known| known.folder.id.to_string()),
            about: "files too large for git that an attempt left".to_owned(),
            bytes: size(&folder),
            changed_at: changed(&folder),
            held: run.and_then(|known| known.held.clone()),
            is_work: true,
            place: Place::Folder(folder),
        });
    }
    if stored.bytes > 0 {
        let held = match at_work {
            _ if stored.is_needed => Some("a checkpoint is kept, which needs it".to_owned()),
            Some(known) => Some(format!("run {} may go on", known.folder.id)),
            None => None,
        };
        items.push(Item {
            kind: Kind::Checkpoints,
            name: CHECKPOINTS.to_owned(),
            run: None,
            about: "what makes the next checkpoint quicker".to_owned(),
            bytes: stored.bytes,
            changed_at: changed(&stored.folder),
            held,
            is_work: false,
            place: Place::Store,
        });
    }
    items.extend(pool::kept(&state).into_iter().map(|(place, user)| worktree_item(&runs, place, user)));
    let cache = state.path().join("cache");
    if cache.is_dir() {
        items.push(Item {
            kind: Kind::Cache,
            name: CACHE.to_owned(),
            run: None,
            about: "what gates said of trees".to_owned(),
            bytes: size(&cache),
            changed_at: changed(&cache),
            held: at_work.map(|known| format!("run {} may go on", known.folder.id)),
            is_work: false,
            place: Place::Folder(cache),
        });
    }
    Ok(items)
}

fn worktree_item(runs: &[Known], place: PathBuf, user: Option<RunId>) -> Item {
    let name = place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // One whose run has no link to it any more was given back, and nobody lived to say so.
    let using = user.filter(|user| {
        let run = runs.iter().find(|known| known.folder.id == *user);
        run.is_some_and(|run| site::left_by(&run.folder).iter().any(|(_, top)| *top == place))
    });
    Item {
        kind: Kind::Worktree,
        name: format!("worktree/{name}"),
        run: using.as_ref().map(ToString::to_string),
        about: "kept for the next run, with what was set up and built in it".to_owned(),
        bytes: size(&place),
        changed_at: changed(&place),
        held: using.map(|run| format!("run {run} uses it")),
        is_work: false,
        place: Place::Worktree(place),
    }
}

/// Of `items`, those that are meant and may go. A name that fits nothing, or something that is needed, is an error before
/// anything is removed.
pub fn choose(items: Vec<Item>, wanted: &Wanted) -> Result<Vec<Item>, CleanError> {
    let names = match wanted {
        Wanted::AllFinished => {
            let goes = |item: &Item| item.held.is_none() && !item.is_work;
            return Ok(items.into_iter().filter(goes).collect());
        }
        Wanted::Named(names) => names,
    };
    let mut chosen: Vec<Item> = Vec::new();
    for name in names {
        let item = find(&items, name)?;
        if let Some(why) = &item.held {
            return Err(CleanError::Held { name: item.name.clone(), why: why.clone() });
        }
        if !chosen.contains(item) {
            chosen.push(item.clone());
        }
    }
    Ok(chosen)
}

fn find<'a>(items: &'a [Item], name: &str) -> Result<&'a Item, CleanError> {
    if let Some(exact) = items.iter().find(|item| item.is_called(name)) {
        return Ok(exact);
    }
    let fits = |item: &&Item| match item.kind {
        Kind::Run => !name.is_empty() && (item.name.starts_with(name) || item.name.ends_with(name)),
        Kind::Attempt => item.name.rsplit_once('/').is_some_and(|(_, short)| short == name),
        _ => false,
    };
    let candidates: Vec<&Item> = items.iter().filter(fits).collect();
    match candidates.as_slice() {
        [one] => Ok(one),
        [] => Err(CleanError::Unknown { name: name.to_owned() }),
        several => Err(CleanError::Ambiguous {
            name: name.to_owned(),
            candidates: several.iter().map(|item| item.name.clone()).collect(),
        }),
    }
}

/// Removes one thing.
pub async fn remove(repository: &Repository, item: &Item) -> Result<(), CleanError> {
    match &item.place {
        Place::Attempt(attempt) => Ok(repository.forget_kept(&attempt.reference, &attempt.commit).await?),
        Place::Squash(squash) => Ok(repository.forget_kept(&squash.reference, &squash.commit).await?),
        Place::Store => Ok(repository.forget_stored().await?),
        Place::Worktree(top) => {
            site::remove(repository, top).await.map_err(|why| match why {
                SiteError::Git(error) => CleanError::Git(error),
                why => CleanError::Held { name: item.name.clone(), why: why.to_string() },
            })?;
            pool::give_back(top).map_err(|source| FileError::new("free the place", top, source))?;
            Ok(())
        }
        Place::Folder(folder) => {
            // It may have been taken up since it was looked at.
            if item.kind == Kind::Run
                && let Some(why) = Known::of(RunFolder::at(folder)).held
            {
                return Err(CleanError::Held { name: item.name.clone(), why });
            }
            remove_folder(&StateFolder::of(&repository.places().common_dir), folder)
        }
    }
}

/// Moves it aside first, so that half a run is never taken for one.
fn remove_folder(state: &StateFolder, folder: &Path) -> Result<(), CleanError> {
    let aside = state.path().join("removing");
    let gone = |path: &Path| match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(FileError::new("remove", path, error)),
        _ => Ok(()),
    };
    gone(&aside)?;
    std::fs::rename(folder, &aside).map_err(|error| FileError::new("remove", folder, error))?;
    Ok(gone(&aside)?)
}

/// A run's folder with what is known of it.
struct Known {
    folder: RunFolder,
    run: Option<Run>,
    /// Why it has to stay.
    held: Option<String>,
}

impl Known {
    fn of(folder: RunFolder) -> Self {
        let state = folder.fold();
        let held = match &state {
            _ if folder.live_process().is_some() => Some("it is running".to_owned()),
            Ok(known) if unfinished(&known.run) => {
                Some(format!("it is not finished; `ralphloop resume {}` goes on with it", folder.id))
            }
            Ok(_) => None,
            Err(error) => Some(format!(
                "whether it is finished cannot be told ({error}); `rm -r '{}'` removes it",
                folder.path().display()
            )),
        };
        Self { run: state.ok().map(|known| known.run), folder, held }
    }

    fn item(&self) -> Item {
        let about = self.run.as_ref().map_or_else(
            || "unreadable".to_owned(),
            |run| match run.activity() {
                ralphloop_core::run::Activity::Ended(outcome) => format!("{}, {}", run.plan().work, outcome.state()),
                _ => format!("{}, not ended", run.plan().work),
            },
        );
        Item {
            kind: Kind::Run,
            name: self.folder.id.to_string(),
            run: Some(self.folder.id.to_string()),
            about,
            bytes: size(self.folder.path()),
            changed_at: self.run.as_ref().map(Run::last_at).or_else(|| changed(self.folder.path())),
            held: self.held.clone(),
            is_work: false,
            place: Place::Folder(self.folder.path().to_owned()),
        }
    }
}

impl Item {
    fn is_called(&self, name: &str) -> bool {
        let of_attempt = |attempt: &KeptAttempt| {
            name == attempt.reference || name == format!("{}/{}#{}", attempt.run, attempt.story, attempt.number)
        };
        self.name == name
            || match &self.place {
                Place::Attempt(attempt) => of_attempt(attempt),
                Place::Squash(squash) => name == squash.reference,
                _ => false,
            }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Run | Kind::Attempt => write!(f, "{} {}", self.kind.as_str(), self.name),
            Kind::Squashed | Kind::Parked | Kind::Checkpoints | Kind::Cache | Kind::Worktree => f.write_str(&self.name),
        }
    }
}

/// Bytes of all files below.
fn size(folder: &Path) -> u64 {
    let files = walkdir::WalkDir::new(folder).into_iter().filter_map(Result::ok);
    files.filter_map(|file| file.metadata().ok()).filter(std::fs::Metadata::is_file).map(|meta| meta.len()).sum()
}

fn changed(path: &Path) -> Option<Timestamp> {
    let since = std::fs::metadata(path).ok()?.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(Timestamp(i64::try_from(since.as_millis()).ok()?))
}
