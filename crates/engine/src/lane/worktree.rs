//! A lane as a worktree of its own: made, given what git does not carry, moved on to where the branch stands, taken away.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use ralphloop_core::event::Fact;
use ralphloop_core::evidence::CheckResult;
use ralphloop_core::ids::{AttemptId, CommitId, LaneId, RunId};
use ralphloop_core::policy::{Gate, Place};
use tokio_util::sync::CancellationToken;

use super::bring::{self, Wanted};
use super::pool::{self, Pool};
use super::{Parts, Shared, SpecFile};
use crate::files;
use crate::gates::run::Runner;
use crate::git::{GitError, Repository};
use crate::runs::{RunFolder, StateFolder};
use crate::settings::Worktrees;
use crate::work::WorkRef;

/// Bytes that have to be free before a worktree is made, beside those of the files that git tracks.
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

/// Says that the worktree has got what git does not carry: the set-up, and which files of it git would call new.
fn ready_mark(top: &Path) -> PathBuf {
    top.with_extension("ready")
}

/// What a worktree was set up with; another set-up is none.
fn setup_id(settings: &Worktrees) -> String {
    let text = format!("{:?} {:?} {:?}", settings.copy, settings.link, settings.setup);
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

fn state_of(shared: &Shared) -> StateFolder {
    StateFolder::of(&shared.home.places().common_dir)
}

fn pool_of(shared: &Shared) -> Option<Pool> {
    let settings = &shared.settings.worktrees;
    Pool::of(&state_of(shared), settings.folder.as_deref(), settings.keep)
}

/// The worktree of a lane, made if it is not there.
pub(super) async fn open(shared: &Arc<Shared>, lane: LaneId) -> Result<Parts, String> {
    let top = top(&shared.folder, lane);
    let text = |error: &dyn std::fmt::Display| error.to_string();
    if !top.join(".git").exists() {
        let turn = shared.git_turn.lock().await;
        make(shared, &top).await?;
        drop(turn);
    }
    let top = std::fs::canonicalize(&top).map_err(|e| format!("{}: {e}", top.display()))?;
    let (work, spec) = work_in(&shared.work, &shared.home.places().top, &top);
    let repository =
        Repository::open_worktree(&top, &work.project, shared.home.git().clone()).await.map_err(|e| text(&e))?;
    std::fs::create_dir_all(&work.project).map_err(|e| format!("{}: {e}", work.project.display()))?;
    let (environment, temporary) = environment(&shared.folder, lane)?;
    Ok(Parts {
        temporary,
        shared: shared.clone(),
        repository,
        work,
        spec,
        place: Place::Worktrees,
        inspected: Mutex::default(),
        unmerged: Mutex::default(),
        furnished: AtomicBool::new(false),
        environment,
    })
}

/// Makes the worktree at `top`, or a link there to the place in the pool that it is kept in.
async fn make(shared: &Shared, top: &Path) -> Result<(), String> {
    let tip = shared.target.tip().await.ok_or_else(|| format!("{} has no commit", shared.target.branch))?;
    let root = root(&shared.folder);
    files::create_private_dir(&root).map_err(|e| e.to_string())?;
    let Some(pool) = pool_of(shared) else { return add(shared, &root, top, &tip).await };
    let place = pool.take(&state_of(shared), &shared.folder.id).map_err(|e| e.to_string())?;
    let made = async {
        if !place.join(".git").exists() {
            let below = place.parent().unwrap_or(&place).to_owned();
            drop(std::fs::remove_file(ready_mark(&place)));
            add(shared, &below, &place, &tip).await?;
        }
        // A link of a lane whose worktree was taken away leads nowhere.
        drop(std::fs::remove_file(top));
        std::os::unix::fs::symlink(&place, top).map_err(|e| format!("{}: {e}", top.display()))
    };
    let made = made.await;
    if made.is_err() {
        pool::give_back(&place);
    }
    made
}

async fn add(shared: &Shared, below: &Path, top: &Path, tip: &CommitId) -> Result<(), String> {
    let needed = ROOM.saturating_add(shared.home.tracked_bytes().map_err(|e| e.to_string())?);
    files::require_space(below, needed).map_err(|e| e.to_string())?;
    shared.home.forget_missing_worktrees(below).await.map_err(|e| e.to_string())?;
    shared.home.add_worktree(top, tip).await.map_err(|e| e.to_string())
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
fn environment(folder: &RunFolder, lane: LaneId) -> Result<(Vec<(OsString, OsString)>, PathBuf), String> {
    let number = lane.0.saturating_add(1);
    let temporary = root(folder).join(format!("lane-{number}.tmp"));
    files::create_private_dir(&temporary).map_err(|e| e.to_string())?;
    let port = FIRST_PORT.saturating_add(lane.0.saturating_mul(PORTS));
    let variables = vec![
        ("RALPHLOOP_LANE".into(), number.to_string().into()),
        ("RALPHLOOP_PORT".into(), port.to_string().into()),
        ("TMPDIR".into(), temporary.clone().into()),
    ];
    Ok((variables, temporary))
}

/// Gets the lane ready for an attempt: on the newest commit of the branch, and with what git does not carry.
pub(super) async fn begin(parts: &Parts, attempt: AttemptId, cancel: CancellationToken) {
    let fact = match get_ready(parts, &cancel).await {
        Ok(Ok(notes)) => Fact::AttemptStarted { attempt, notes },
        Ok(Err(why)) => Fact::Trespassed { attempt, why },
        Err(why) => Fact::LaneFailed { attempt, why },
    };
    parts.shared.say(fact);
}

/// What is worth saying; the inner error is who moved the branch, if somebody did.
async fn get_ready(parts: &Parts, cancel: &CancellationToken) -> Result<Result<Vec<String>, String>, String> {
    if parts.place == Place::Checkout {
        return Ok(Ok(Vec::new()));
    }
    let shared = &parts.shared;
    if let Some(why) = shared.target.trespass(&shared.home).await.map_err(|e| e.to_string())? {
        return Ok(Err(why));
    }
    let tip = shared.target.tip().await;
    if let Some(tip) = tip.filter(|tip| parts.repository.head().ok().flatten().as_ref() != Some(tip)) {
        parts.tree_is(None);
        parts.repository.move_on(&tip).await.map_err(|e| e.to_string())?;
    }
    if parts.furnished.load(Ordering::Relaxed) {
        return Ok(Ok(Vec::new()));
    }
    parts.tree_is(None);
    let mark = ready_mark(&parts.repository.places().top);
    let id = setup_id(&shared.settings.worktrees);
    let is_set_up = std::fs::read(&mark).is_ok_and(|known| known.starts_with(id.as_bytes()));
    let notes = bring_all(parts).await?;
    if !is_set_up {
        set_up(parts, cancel).await?;
    }
    // Nobody has worked here yet: what no commit has was brought.
    let mut ready = id.into_bytes();
    ready.push(0);
    ready.extend(parts.repository.loose_files().await.map_err(|e| e.to_string())?);
    files::write_atomic(&mark, &ready, files::Access::Private).map_err(|e| e.to_string())?;
    parts.furnished.store(true, Ordering::Relaxed);
    Ok(Ok(notes))
}

/// Brings what git does not carry.
async fn bring_all(parts: &Parts) -> Result<Vec<String>, String> {
    let settings = &parts.shared.settings.worktrees;
    let (from, to) = (parts.shared.home.places().top.clone(), parts.repository.places().top.clone());
    let wanted = Wanted::of(&settings.copy, &settings.link)?;
    let tracks = parts.repository.tracks().map_err(|e| e.to_string())?;
    let brought = tokio::task::spawn_blocking(move || bring::bring(&from, &to, &wanted, &tracks)).await;
    brought.map_err(|e| e.to_string())?.map_err(|e| format!("worktree set-up: {e}"))
}

/// Runs the set-up's command.
async fn set_up(parts: &Parts, cancel: &CancellationToken) -> Result<(), String> {
    let settings = &parts.shared.settings.worktrees;
    let Some(command) = &settings.setup else { return Ok(()) };
    let runner = Runner {
        spawner: &parts.shared.spawner,
        project: &parts.work.project,
        timeout: parts.shared.settings.times.gate,
        cancel: cancel.clone(),
        environment: &parts.environment,
        sees: &parts.shared.settings.passing.gates,
        redactor: &parts.shared.redactor,
        // The user's own command, before anybody has worked here: it may have to fill caches.
        inside: &|call| call,
    };
    let gate = Gate { name: "worktree set-up".to_owned(), command: command.clone() };
    match runner.run_gate(&gate).await.map(|ran| ran.result) {
        Ok(CheckResult::Passed) => Ok(()),
        Ok(CheckResult::Failed { why, output }) => {
            let last = output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            Err(format!("the worktree set-up `{command}` failed: {why}: {last}"))
        }
        Ok(CheckResult::CouldNotRun { why } | CheckResult::NoRoom { why }) => {
            Err(format!("the worktree set-up `{command}` could not run: {why}"))
        }
        Ok(CheckResult::Stopped) | Err(_) => Err(format!("the worktree set-up `{command}` was stopped")),
    }
}

/// Keeps the worktree for the next run, if there is room in the pool, or takes it away. Git refuses that if something is in
/// it that nothing keeps; then it says what stays.
pub(super) async fn close(parts: &Parts, lane: LaneId) -> Result<(), String> {
    let top = &parts.repository.places().top;
    let turn = parts.shared.git_turn.lock().await;
    let keeps = pool_of(&parts.shared).is_some_and(|pool| pool.has_room());
    let removed = if keeps && is_as_brought(&parts.repository).await {
        Ok(())
    } else {
        remove(&parts.shared.home, &parts.repository).await
    };
    drop(turn);
    removed.map_err(|e| format!("the worktree of lane {} stays at {}: {e}", lane.0 + 1, top.display()))?;
    tidy(&parts.shared.folder, lane, top);
    Ok(())
}

/// Nothing is in the worktree but its commit, what was brought, and what git ignores.
async fn is_as_brought(lane: &Repository) -> bool {
    let Ok(loose) = lane.loose_files().await else { return false };
    let brought = std::fs::read(ready_mark(&lane.places().top)).unwrap_or_default();
    let is_brought = |path: &[u8]| brought.split(|byte| *byte == 0).any(|known| known == path);
    loose.split(|byte| *byte == 0).all(|path| path.is_empty() || is_brought(path)) && lane.is_as_committed().await
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

/// What stood beside a worktree that the run has no more; one that is kept keeps what tells of its set-up.
pub(crate) fn tidy(folder: &RunFolder, lane: LaneId, top: &Path) {
    // Leftovers of these are empty or temporary, and the run's folder is removed as a whole later.
    if !top.join(".git").exists() {
        drop(std::fs::remove_file(ready_mark(top)));
    }
    // The link goes first: a place that somebody else may take is never this run's, too.
    let link = folder.worktree(lane);
    drop(std::fs::remove_file(&link));
    pool::give_back(top);
    drop(std::fs::remove_dir_all(link.with_extension("tmp")));
    drop(std::fs::remove_dir(root(folder)));
}

/// What stood beside a worktree of the pool that is gone.
pub(crate) fn forget_place(top: &Path) {
    drop(std::fs::remove_file(ready_mark(top)));
    pool::give_back(top);
}

/// Takes away what dead runs had begun to make when they were killed, `half_made`; nobody has worked there. Places of the
/// pool that they had only taken are free again.
pub(crate) async fn clear_half_made(
    state: &StateFolder,
    home: &Repository,
    half_made: &[PathBuf],
) -> Result<(), GitError> {
    let taken = pool::taken(state);
    if half_made.is_empty() && taken.is_empty() {
        return Ok(());
    }
    let runs = state.runs().unwrap_or_default();
    let is_live = |id: &RunId| runs.iter().any(|run| run.id == *id && run.live_process().is_some());
    for top in half_made {
        if owner(state, &taken, top).is_some_and(|owner| !is_live(&owner)) {
            home.remove_half_made_worktree(top).await?;
        }
    }
    let linked: Vec<PathBuf> = runs.iter().flat_map(left_by).map(|(_, top)| top).collect();
    for (place, user) in taken {
        let real = std::fs::canonicalize(&place).unwrap_or_else(|_| place.clone());
        if !is_live(&user) && !linked.contains(&real) {
            pool::give_back(&place);
        }
    }
    Ok(())
}

/// The run that a worktree of ours is of.
fn owner(state: &StateFolder, taken: &[(PathBuf, RunId)], top: &Path) -> Option<RunId> {
    let root = std::fs::canonicalize(state.runs_folder()).ok()?;
    let below = top.strip_prefix(root).ok().and_then(|below| below.components().next());
    let run = below.and_then(|run| run.as_os_str().to_str()).map(RunId::from);
    run.or_else(|| taken.iter().find(|(place, _)| place == top).map(|(_, user)| user.clone()))
}

/// The worktrees that a run has left, by lane.
pub(crate) fn left_by(folder: &RunFolder) -> Vec<(LaneId, PathBuf)> {
    let items = std::fs::read_dir(root(folder)).into_iter().flatten().filter_map(Result::ok);
    let lane = |path: &Path| {
        let number: u32 = path.file_name()?.to_str()?.strip_prefix("lane-")?.parse().ok()?;
        Some(LaneId(number.checked_sub(1)?))
    };
    let found = items.map(|item| item.path()).filter(|path| path.join(".git").exists());
    let mut tops: Vec<(LaneId, PathBuf)> =
        found.filter_map(|path| Some((lane(&path)?, std::fs::canonicalize(&path).ok()?))).collect();
    tops.sort();
    tops
}
