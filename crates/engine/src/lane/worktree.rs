//! A lane as a worktree of its own: made, given what git does not carry, moved on to where the branch stands, taken away.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use ralphloop_core::event::Fact;
use ralphloop_core::evidence::CheckResult;
use ralphloop_core::ids::{AttemptId, LaneId};
use ralphloop_core::policy::{Gate, Place};
use tokio_util::sync::CancellationToken;

use super::{Parts, Shared, SpecFile};
use crate::files;
use crate::gates::run::Runner;
use crate::git::{GitError, Repository};
use crate::runs::RunFolder;
use crate::work::WorkRef;

/// Bytes that have to be free before a worktree is made.
const ROOM: u64 = 64 * 1024 * 1024;
/// The first port that is given to a lane.
const FIRST_PORT: u32 = 20_000;
/// Ports that a lane may use for itself, from its first.
const PORTS: u32 = 100;

/// Where the worktrees of a run are.
fn root(folder: &RunFolder) -> PathBuf {
    folder.path().join("worktrees")
}

fn top(folder: &RunFolder, lane: LaneId) -> PathBuf {
    folder.worktree(lane)
}

/// Says that the worktree has got what git does not carry.
fn ready_mark(top: &Path) -> PathBuf {
    top.with_extension("ready")
}

/// The worktree of a lane, made if it is not there.
pub(super) async fn open(shared: &Arc<Shared>, lane: LaneId) -> Result<Parts, String> {
    let top = top(&shared.folder, lane);
    let text = |error: &dyn std::fmt::Display| error.to_string();
    if !top.exists() {
        let turn = shared.git_turn.lock().await;
        let tip = shared.target.tip().await.ok_or_else(|| format!("{} has no commit", shared.target.branch))?;
        let root = root(&shared.folder);
        files::create_private_dir(&root).map_err(|e| text(&e))?;
        files::require_space(&root, ROOM).map_err(|e| text(&e))?;
        shared.home.forget_missing_worktrees(&root).await.map_err(|e| text(&e))?;
        shared.home.add_worktree(&top, &tip).await.map_err(|e| text(&e))?;
        drop(turn);
    }
    let top = std::fs::canonicalize(&top).map_err(|e| format!("{}: {e}", top.display()))?;
    let (work, spec) = work_in(&shared.work, &shared.home.places().top, &top);
    let repository =
        Repository::open_worktree(&top, &work.project, shared.home.git().clone()).await.map_err(|e| text(&e))?;
    std::fs::create_dir_all(&work.project).map_err(|e| format!("{}: {e}", work.project.display()))?;
    let environment = environment(&shared.folder, lane)?;
    Ok(Parts {
        shared: shared.clone(),
        repository,
        work,
        spec,
        place: Place::Worktrees,
        inspected: Mutex::default(),
        unmerged: Mutex::default(),
        environment,
    })
}

/// The work as it lies in a worktree. A spec that no commit has stays where it is.
fn work_in(work: &WorkRef, home: &Path, top: &Path) -> (WorkRef, SpecFile) {
    let moved = |path: &Path| {
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        real.strip_prefix(home).ok().map(|below| top.join(below))
    };
    let project = moved(&work.project).unwrap_or_else(|| top.to_owned());
    // The name counts, not what a link leads to: a link is part of the worktree too.
    let main = work.main.parent().and_then(moved).zip(work.main.file_name()).map(|(folder, name)| folder.join(name));
    match main.filter(|main| main.exists()) {
        Some(main) => {
            let change = work.change.as_deref().and_then(moved);
            (WorkRef { main, project, change, ..work.clone() }, SpecFile::Own)
        }
        None => (WorkRef { project, ..work.clone() }, SpecFile::Shared),
    }
}

/// What agents and gates of a lane get, so that two lanes do not meet: a number, ports, a folder for temporary files.
fn environment(folder: &RunFolder, lane: LaneId) -> Result<Vec<(OsString, OsString)>, String> {
    let number = lane.0.saturating_add(1);
    let temporary = root(folder).join(format!("lane-{number}.tmp"));
    files::create_private_dir(&temporary).map_err(|e| e.to_string())?;
    let port = FIRST_PORT.saturating_add(lane.0.saturating_mul(PORTS));
    Ok(vec![
        ("RALPHLOOP_LANE".into(), number.to_string().into()),
        ("RALPHLOOP_PORT".into(), port.to_string().into()),
        ("TMPDIR".into(), temporary.into()),
    ])
}

/// Gets the lane ready for an attempt: on the newest commit of the branch, and with what git does not carry.
pub(super) async fn begin(parts: &Parts, attempt: AttemptId, cancel: CancellationToken) {
    let fact = match get_ready(parts, &cancel).await {
        Ok(None) => Fact::AttemptStarted { attempt },
        Ok(Some(why)) => Fact::Trespassed { attempt, why },
        Err(why) => Fact::LaneFailed { attempt, why },
    };
    parts.shared.say(fact);
}

/// Why not, if somebody moved the branch.
async fn get_ready(parts: &Parts, cancel: &CancellationToken) -> Result<Option<String>, String> {
    if parts.place == Place::Checkout {
        return Ok(None);
    }
    let shared = &parts.shared;
    if let Some(why) = shared.target.trespass(&shared.home).await.map_err(|e| e.to_string())? {
        return Ok(Some(why));
    }
    let tip = shared.target.tip().await;
    if let Some(tip) = tip.filter(|tip| parts.repository.head().ok().flatten().as_ref() != Some(tip)) {
        parts.repository.move_on(&tip).await.map_err(|e| e.to_string())?;
    }
    let mark = ready_mark(&parts.repository.places().top);
    if !mark.exists() {
        furnish(parts, cancel).await?;
        // Nobody has worked here yet: what no commit has was brought.
        let brought = parts.repository.loose_files().await.map_err(|e| e.to_string())?;
        files::write_atomic(&mark, &brought, files::Access::Private).map_err(|e| e.to_string())?;
    }
    Ok(None)
}

/// Brings what git does not carry.
async fn furnish(parts: &Parts, cancel: &CancellationToken) -> Result<(), String> {
    let settings = &parts.shared.settings.worktrees;
    let (from, to) = (parts.shared.home.places().top.clone(), parts.repository.places().top.clone());
    let (copied, linked) = (globs(&settings.copy)?, globs(&settings.link)?);
    // A pattern without a folder names what is at the top, and a large tree need not be walked for it.
    let is_deep = settings.copy.iter().chain(&settings.link).any(|p| p.trim_end_matches('/').contains('/'));
    let depth = if is_deep { usize::MAX } else { 1 };
    let brought = tokio::task::spawn_blocking(move || bring(&from, &to, &copied, &linked, depth)).await;
    brought.map_err(|e| e.to_string())?.map_err(|e| format!("worktree set-up: {e}"))?;
    let Some(command) = &settings.setup else { return Ok(()) };
    let runner = Runner {
        spawner: &parts.shared.spawner,
        project: &parts.work.project,
        timeout: parts.shared.settings.times.gate,
        cancel: cancel.clone(),
        environment: &parts.environment,
        redact: &|bytes| parts.shared.redact(bytes),
    };
    let gate = Gate { name: "worktree set-up".to_owned(), command: command.clone() };
    match runner.run_gate(&gate).await.map(|ran| ran.result) {
        Ok(CheckResult::Passed) => Ok(()),
        Ok(CheckResult::Failed { why, output }) => {
            let last = output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            Err(format!("the worktree set-up `{command}` failed: {why}: {last}"))
        }
        Ok(CheckResult::CouldNotRun { why }) => Err(format!("the worktree set-up `{command}` could not run: {why}")),
        Ok(CheckResult::Stopped) | Err(_) => Err(format!("the worktree set-up `{command}` was stopped")),
    }
}

fn globs(patterns: &[String]) -> Result<GlobSet, String> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = GlobBuilder::new(pattern.trim_end_matches('/')).literal_separator(true).build();
        set.add(glob.map_err(|e| format!("`{pattern}` is no pattern: {e}"))?);
    }
    set.build().map_err(|e| e.to_string())
}

/// Copies and links what the patterns name, from the top of the checkout, where the worktree does not have it. Never what
/// is git's or ours.
fn bring(from: &Path, to: &Path, copied: &GlobSet, linked: &GlobSet, depth: usize) -> std::io::Result<()> {
    if copied.is_empty() && linked.is_empty() {
        return Ok(());
    }
    let mut items = walkdir::WalkDir::new(from).min_depth(1).max_depth(depth).follow_links(false).into_iter();
    while let Some(item) = items.next() {
        // What cannot be looked at is no file that anybody has named.
        let Ok(item) = item else { continue };
        let Ok(below) = item.path().strip_prefix(from) else { continue };
        let is_folder = item.file_type().is_dir();
        if item.file_name() == ".git" {
            if is_folder {
                items.skip_current_dir();
            }
            continue;
        }
        let target = to.join(below);
        if linked.is_match(below) {
            if is_folder {
                items.skip_current_dir();
            }
            if std::fs::symlink_metadata(&target).is_err() {
                make_parent(&target)?;
                std::os::unix::fs::symlink(item.path(), &target)?;
            }
        } else if copied.is_match(below) {
            if is_folder {
                items.skip_current_dir();
            }
            copy(item.path(), &target)?;
        }
    }
    Ok(())
}

fn make_parent(path: &Path) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)
}

/// Copies a file or a folder with all that is in it, modes and links kept; what is there already stays.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    for item in walkdir::WalkDir::new(from).follow_links(false) {
        let item = item.map_err(std::io::Error::from)?;
        let below = item.path().strip_prefix(from).unwrap_or(Path::new(""));
        let target = if below.as_os_str().is_empty() { to.to_owned() } else { to.join(below) };
        if item.file_type().is_dir() {
            std::fs::create_dir_all(&target)?;
        } else if std::fs::symlink_metadata(&target).is_err() {
            make_parent(&target)?;
            if item.file_type().is_symlink() {
                std::os::unix::fs::symlink(std::fs::read_link(item.path())?, &target)?;
            } else if item.file_type().is_file() {
                std::fs::copy(item.path(), &target)?;
            }
        }
    }
    Ok(())
}

/// Takes the worktree away. Git refuses if something is in it that nothing keeps; then it says what stays.
pub(super) async fn close(parts: &Parts, lane: LaneId) -> Result<(), String> {
    let turn = parts.shared.git_turn.lock().await;
    let removed = remove(&parts.shared.home, &parts.repository).await;
    drop(turn);
    let top = &parts.repository.places().top;
    removed.map_err(|e| format!("the worktree of lane {} stays at {}: {e}", lane.0 + 1, top.display()))?;
    tidy(&parts.shared.folder, top);
    Ok(())
}

/// Removes a worktree, and before it what was brought into it and is in no commit.
pub(crate) async fn remove(home: &Repository, lane: &Repository) -> Result<(), GitError> {
    let top = lane.places().top.clone();
    if let Ok(brought) = std::fs::read(ready_mark(&top)) {
        let loose = lane.loose_files().await?;
        let is_brought = |path: &[u8]| brought.split(|byte| *byte == 0).any(|known| known == path);
        let loose = loose.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        for path in loose.filter(|path| is_brought(path)) {
            let path = top.join(std::ffi::OsStr::from_bytes(path.strip_suffix(b"/").unwrap_or(path)));
            // What cannot be removed stays, and git refuses then.
            let is_folder = std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir());
            drop(if is_folder { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) });
        }
    }
    home.remove_worktree(lane).await
}

/// What stood beside a worktree that is gone.
pub(crate) fn tidy(folder: &RunFolder, top: &Path) {
    // Leftovers of these are empty or temporary, and the run's folder is removed as a whole later.
    drop(std::fs::remove_file(ready_mark(top)));
    drop(std::fs::remove_dir_all(top.with_extension("tmp")));
    drop(std::fs::remove_dir(root(folder)));
}

/// The worktrees that a run has left.
pub(crate) fn left_by(folder: &RunFolder) -> Vec<PathBuf> {
    let items = std::fs::read_dir(root(folder)).into_iter().flatten().filter_map(Result::ok);
    let mut tops: Vec<PathBuf> = items.map(|item| item.path()).filter(|path| path.join(".git").exists()).collect();
    tops.sort();
    tops
}
