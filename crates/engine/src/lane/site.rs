//! Where the worktree of a lane is or is to be: what is seen there, and the steps of [`ralphloop_core::worktree`] as they are
//! carried out on the disk.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use ralphloop_core::ids::{LaneId, RunId};
use ralphloop_core::worktree::{Afterwards, Seen, Step, Tree};

use super::pool::{self, Pool};
use crate::files;
use crate::git::{GitError, Repository};
use crate::runs::{RunFolder, StateFolder};

/// The place of a worktree of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Site {
    /// In the run's folder.
    Own(PathBuf),
    /// In a pool.
    Pooled {
        place: PathBuf,
        /// The link in the run's folder by which a lane leads there, or is to lead there; none if no lane knows of it.
        lane: Option<PathBuf>,
    },
}

/// Why a step could not be taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SiteError {
    /// Git refused or failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// It is no working tree, whatever it looks like.
    #[error(transparent)]
    Open(#[from] crate::git::OpenError),
    /// It stays for what is in it.
    #[error("it holds {first}, which nothing else keeps")]
    Holds {
        /// The first of that.
        first: String,
    },
    /// The disk refused.
    #[error("{}: {source}", .path.display())]
    Disk {
        /// What was to be changed.
        path: PathBuf,
        /// Why it was not.
        source: std::io::Error,
    },
    /// A step was taken and nothing is different, so that the next would be the same.
    #[error("{} is as it was after git had changed it", .top.display())]
    Unchanged {
        /// The worktree.
        top: PathBuf,
    },
}

impl Site {
    /// Where a lane leads; nowhere if it leads nowhere yet and the run's worktrees are in a pool.
    pub(crate) fn of_lane(folder: &RunFolder, lane: LaneId, is_pooled: bool) -> Option<Self> {
        let path = folder.worktree(lane);
        match std::fs::read_link(&path) {
            Ok(place) => Some(Self::Pooled { place, lane: Some(path) }),
            Err(_) if is_pooled && !path.exists() => None,
            Err(_) => Some(Self::Own(path)),
        }
    }

    /// All that a run has: where its lanes lead, what git was making in its folder, and places that it has only marked.
    fn all_of(run: &RunId, folder: Option<&RunFolder>, marks: &[(PathBuf, RunId)], partial: &[PathBuf]) -> Vec<Self> {
        let mut sites = Vec::new();
        if let Some(folder) = folder {
            sites.extend(lanes_of(folder).into_iter().filter_map(|lane| Self::of_lane(folder, lane, false)));
            let root = files::real(&root(folder));
            let making = partial.iter().filter(|top| top.parent() == Some(&root));
            sites.extend(making.map(|top| Self::Own(top.clone())));
        }
        for (place, _) in marks.iter().filter(|(_, user)| user == run) {
            let is_linked = |site: &Self| files::real(site.top()) == files::real(place);
            if !sites.iter().any(is_linked) {
                sites.push(Self::Pooled { place: place.clone(), lane: None });
            }
        }
        sites
    }

    /// The worktree's top.
    pub(crate) fn top(&self) -> &Path {
        match self {
            Self::Own(top) | Self::Pooled { place: top, .. } => top,
        }
    }

    /// How it looks for that run.
    pub(crate) fn see(&self, home: &Repository, run: &RunId) -> Seen {
        let top = files::real(self.top());
        // Without a mark a loss of power may have left it so, unless attempts have begun there since it was made.
        let is_whole = || ready_mark(&top).exists() || !home.keeps_no_checkpoint_of(&top);
        let tree = if home.partial_worktrees().contains(&top) {
            Tree::Partial
        } else if !top.join(".git").exists() {
            Tree::Missing
        } else if is_whole() {
            Tree::Whole
        } else {
            Tree::Partial
        };
        match self {
            Self::Own(_) => Seen::Own(tree),
            Self::Pooled { place, lane } => Seen::Pooled {
                is_marked: pool::user(place).as_ref() == Some(run),
                tree,
                is_linked: lane.as_ref().is_some_and(|lane| std::fs::read_link(lane).is_ok_and(|to| to == *place)),
            },
        }
    }

    /// Takes one of the steps that need no pool, room or commit. `worktree` is what stands here, if it is open.
    pub(crate) async fn carry_out(
        &self,
        step: Step,
        home: &Repository,
        worktree: Option<&Repository>,
    ) -> Result<(), SiteError> {
        let fails = |path: &Path| {
            let path = path.to_owned();
            move |source| SiteError::Disk { path, source }
        };
        let lane = match self {
            Self::Own(_) => None,
            Self::Pooled { lane, .. } => lane.as_deref(),
        };
        match step {
            Step::Clear => {
                drop(std::fs::remove_file(ready_mark(self.top())));
                home.remove_partial_worktree(&files::real(self.top())).await?;
            }
            Step::Link => {
                if let Some(lane) = lane {
                    // One that was there leads to where the run has nothing any more.
                    drop(std::fs::remove_file(lane));
                    std::os::unix::fs::symlink(self.top(), lane).map_err(fails(lane))?;
                }
            }
            Step::Condemn => {
                if let Some(worktree) = worktree {
                    condemn(home, worktree).await?;
                } else {
                    let worktree = Repository::open_worktree(self.top(), self.top(), home.git().clone()).await?;
                    condemn(home, &worktree).await?;
                }
            }
            Step::Unlink => {
                if let Some(lane) = lane {
                    std::fs::remove_file(lane).map_err(fails(lane))?;
                }
            }
            Step::GiveBack => pool::give_back(self.top()).map_err(fails(self.top()))?,
            // Those need a pool, room and a commit.
            Step::Take | Step::Make => {}
        }
        Ok(())
    }

    /// Takes the steps that `next` names until it names none.
    async fn go(
        &self,
        home: &Repository,
        run: &RunId,
        worktree: Option<&Repository>,
        next: impl Fn(Seen) -> Option<Step>,
    ) -> Result<(), SiteError> {
        let mut steps = Steps::of(self, home, run);
        while let Some(step) = steps.next(&next)? {
            self.carry_out(step, home, worktree).await?;
        }
        Ok(())
    }

    /// What the run has here goes, if nobody can have worked in it. Says what stays.
    async fn tidy(&self, home: &Repository, run: &RunId, keep: u32) -> Option<String> {
        let is_room = self.top().parent().is_some_and(|folder| Pool::at(folder, keep).has_room());
        let afterwards = if is_room { Afterwards::Kept } else { Afterwards::Removed };
        let why = self.go(home, run, None, |seen| seen.to_tidy(afterwards)).await.err()?;
        Some(format!("what run {run} was making at {} stays: {why}", self.top().display()))
    }

    /// The run has nothing here any more. Git refuses that if something is in the worktree that nothing keeps; then it stays.
    pub(crate) async fn close(
        &self,
        home: &Repository,
        run: &RunId,
        worktree: Option<&Repository>,
        afterwards: Afterwards,
    ) -> Result<(), SiteError> {
        self.go(home, run, worktree, |seen| seen.to_close(afterwards)).await
    }
}

/// The steps at a site, each chosen by what is seen there.
pub(crate) struct Steps<'a> {
    site: &'a Site,
    home: &'a Repository,
    run: &'a RunId,
    before: Option<Seen>,
}

impl<'a> Steps<'a> {
    pub(crate) fn of(site: &'a Site, home: &'a Repository, run: &'a RunId) -> Self {
        Self { site, home, run, before: None }
    }

    /// The one that `next` names now. It is an error if the last changed nothing.
    pub(crate) fn next(&mut self, next: impl Fn(Seen) -> Option<Step>) -> Result<Option<Step>, SiteError> {
        let seen = self.site.see(self.home, self.run);
        let step = next(seen);
        if step.is_some() && self.before.replace(seen) == Some(seen) {
            return Err(SiteError::Unchanged { top: self.site.top().to_owned() });
        }
        Ok(step)
    }
}

/// The folder of a run in which its lanes are.
pub(crate) fn root(folder: &RunFolder) -> PathBuf {
    folder.path().join("worktrees")
}

/// Says that the worktree was made whole, and, once it has that, what git does not carry: the set-up, and which files of it
/// git would call new.
pub(crate) fn ready_mark(top: &Path) -> PathBuf {
    top.with_extension("ready")
}

/// Tells of a path whether it was brought into the worktree, as the mark beside it says.
pub(crate) fn brought(top: &Path) -> impl Fn(&[u8]) -> bool + use<> {
    let known = std::fs::read(ready_mark(top)).unwrap_or_default();
    move |path| known.split(|byte| *byte == 0).any(|known| known == path)
}

/// Says that a worktree is to go, if it holds nothing that nothing else keeps; what was brought into it and is in no commit goes
/// at once.
async fn condemn(home: &Repository, lane: &Repository) -> Result<(), SiteError> {
    let top = lane.places().top.clone();
    let (loose, is_brought) = (lane.loose_files().await?, brought(&top));
    let loose = loose.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    for path in loose.filter(|path| is_brought(path)) {
        let path = top.join(std::ffi::OsStr::from_bytes(path.strip_suffix(b"/").unwrap_or(path)));
        // What cannot be removed stays, and is seen then.
        let is_folder = std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir());
        drop(if is_folder { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) });
    }
    match lane.unkept().await? {
        Some(first) => Err(SiteError::Holds { first }),
        None => Ok(home.condemn_worktree(&top).await?),
    }
}

/// Takes a worktree away that no run uses. One that holds anything that nothing else keeps stays.
pub(crate) async fn remove(home: &Repository, top: &Path) -> Result<(), SiteError> {
    let site = Site::Own(top.to_owned());
    site.go(home, &RunId::from(""), None, |seen| seen.to_close(Afterwards::Removed)).await
}

/// What stood beside the worktree of a lane that the run has no more.
pub(crate) fn tidy(folder: &RunFolder, lane: LaneId) {
    // Leftovers of these are empty or temporary, and the run's folder is removed as a whole later.
    drop(std::fs::remove_dir_all(folder.worktree(lane).with_extension("tmp")));
    drop(std::fs::remove_dir(root(folder)));
}

/// Takes away what dead runs have and nobody has worked in: worktrees that git was making, places of a pool that they had only
/// marked, lanes that lead nowhere. A pool keeps `keep` worktrees. Says what stays.
pub(crate) async fn tidy_after_the_dead(state: &StateFolder, home: &Repository, keep: u32) -> Vec<String> {
    let mut said = Vec::new();
    let (marks, partial) = (pool::taken(state), home.partial_worktrees());
    let folders = state.runs().unwrap_or_default();
    let orphans = marks.iter().map(|(_, user)| user).filter(|user| folders.iter().all(|folder| folder.id != **user));
    let runs = folders.iter().map(|folder| (&folder.id, Some(folder))).chain(orphans.map(|user| (user, None)));
    for (run, folder) in runs.filter(|(_, folder)| folder.is_none_or(|folder| folder.live_process().is_none())) {
        for site in Site::all_of(run, folder, &marks, &partial) {
            said.extend(site.tidy(home, run, keep).await);
        }
    }
    said
}

/// The same for a run that has ended and closed its lanes.
pub(crate) async fn tidy_at_the_end(folder: &RunFolder, home: &Repository, keep: u32) -> Vec<String> {
    let mut said = Vec::new();
    let marks = pool::taken(&StateFolder::of(&home.places().common_dir));
    for site in Site::all_of(&folder.id, Some(folder), &marks, &home.partial_worktrees()) {
        said.extend(site.tidy(home, &folder.id, keep).await);
    }
    said
}

/// The lanes of a run that lead anywhere, if only to where nothing is any more.
fn lanes_of(folder: &RunFolder) -> Vec<LaneId> {
    let items = std::fs::read_dir(root(folder)).into_iter().flatten().filter_map(Result::ok);
    let lane = |name: std::ffi::OsString| {
        let number: u32 = name.to_str()?.strip_prefix("lane-")?.parse().ok()?;
        Some(LaneId(number.checked_sub(1)?))
    };
    let mut lanes: Vec<LaneId> = items.filter_map(|item| lane(item.file_name())).collect();
    lanes.sort();
    lanes
}

/// The worktrees that a run has left, by lane.
pub(crate) fn left_by(folder: &RunFolder) -> Vec<(LaneId, PathBuf)> {
    let is_the_runs = |site: &Site| match site {
        Site::Own(_) => true,
        Site::Pooled { place, .. } => pool::user(place).as_ref() == Some(&folder.id),
    };
    let left = |lane| {
        let site = Site::of_lane(folder, lane, false).filter(is_the_runs)?;
        site.top().join(".git").exists().then(|| Some((lane, std::fs::canonicalize(site.top()).ok()?)))?
    };
    lanes_of(folder).into_iter().filter_map(left).collect()
}
