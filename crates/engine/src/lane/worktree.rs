//! A lane as a worktree of its own: made, given what git does not carry, moved on to where the branch stands, taken away.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ralphloop_core::event::Fact;
use ralphloop_core::evidence::CheckResult;
use ralphloop_core::ids::{AttemptId, LaneId};
use ralphloop_core::policy::{Gate, Place};
use ralphloop_core::worktree::{Afterwards, Seen, Step};
use tokio_util::sync::CancellationToken;

use super::bring::{self, Wanted};
use super::pool::Pool;
use super::site::{self, Site, Steps};
use super::{Parts, Shared, SpecFile};
use crate::files;
use crate::gates::run::Runner;
use crate::git::{self, Repository};
use crate::runs::{RunFolder, StateFolder};
use crate::settings::Worktrees;
use crate::work::WorkRef;

/// Bytes that have to be free before a worktree is made, beside those of the files that git tracks.
const ROOM: u64 = 64 * 1024 * 1024;
/// The first port that is given to a lane.
const FIRST_PORT: u32 = 20_000;
/// Ports that a lane may use for itself, from its first.
const PORTS: u32 = 100;

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

/// The worktree of a lane, made if it is not there; for an attempt, if one is to be begun or put right there.
pub(super) async fn open(shared: &Arc<Shared>, lane: LaneId, attempt: Option<&AttemptId>) -> Result<Parts, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let (site, origin) = get_there(shared, lane).await?;
    let top = std::fs::canonicalize(site.top()).map_err(|e| format!("{}: {e}", site.top().display()))?;
    let (work, spec) = work_in(shared, &top).await?;
    let repository =
        Repository::open_worktree(&top, &work.project, shared.home.git().clone()).await.map_err(|e| text(&e))?;
    let mut kept = None;
    // A checkpoint of another attempt, whose end is written down, is one that a loss of power has brought back.
    let is_idle = match attempt {
        Some(attempt) => {
            let checkpoint = repository.find_checkpoint(&shared.folder.checkpoint_name(attempt)).await;
            checkpoint.map_err(|e| text(&e))?.is_none()
        }
        None => shared.home.keeps_no_checkpoint_of(&top),
    };
    if origin != Origin::Made && is_idle {
        let name = git::found_refs(&shared.folder.id, lane);
        kept = repository.make_as_committed(&name).await.map_err(|e| text(&e))?;
        if let Some(tip) = shared.target.tip().await.filter(|_| origin == Origin::Adopted) {
            repository.move_on_over_files(&tip).await.map_err(|e| text(&e))?;
        }
    }
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
        kept: Mutex::new(kept),
        environment,
    })
}

/// Where the worktree of a lane comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A process of this run that died has worked there.
    Adopted,
    /// It was kept in the pool, where nobody worked.
    Kept,
    /// It has just been made.
    Made,
}

/// The place of a lane's worktree, with that worktree in it.
async fn get_there(shared: &Shared, lane: LaneId) -> Result<(Site, Origin), String> {
    let (run, pool) = (&shared.folder.id, pool_of(shared));
    let there = Site::of_lane(&shared.folder, lane, pool.is_some()).map(|site| (site.see(&shared.home, run), site));
    let ours = there.filter(|(seen, _)| seen.to_open() != Some(Step::Take));
    let site = match ours {
        Some((seen, site)) if seen.to_open().is_none() => return Ok((site, Origin::Adopted)),
        Some((_, site)) => site,
        None => take(shared, lane, pool.as_ref()).map_err(|e| e.to_string())?,
    };
    let made = make(shared, &site).await;
    if made.is_err() {
        let turn = shared.git_turn.lock().await;
        // What cannot be cleared now is cleared when the next run starts.
        drop(site.close(&shared.home, run, None, Afterwards::Kept).await);
        drop(turn);
    }
    made.map(|origin| (site, origin))
}

async fn make(shared: &Shared, site: &Site) -> Result<Origin, String> {
    files::create_private_dir(&site::root(&shared.folder)).map_err(|e| e.to_string())?;
    let mut steps = Steps::of(site, &shared.home, &shared.folder.id);
    let mut origin = Origin::Kept;
    while let Some(step) = steps.next(Seen::to_open).map_err(|e| e.to_string())? {
        match step {
            Step::Make => {
                add(shared, site.top()).await?;
                origin = Origin::Made;
            }
            step => {
                let turn = shared.git_turn.lock().await;
                site.carry_out(step, &shared.home, None).await.map_err(|e| e.to_string())?;
                drop(turn);
            }
        }
    }
    Ok(origin)
}

/// A place that nobody has: one of the pool, or the run's own if there is none.
fn take(shared: &Shared, lane: LaneId, pool: Option<&Pool>) -> Result<Site, files::FileError> {
    let lane = shared.folder.worktree(lane);
    let Some(pool) = pool else {
        // A lane that leads to where the run has nothing any more.
        drop(std::fs::remove_file(&lane));
        return Ok(Site::Own(lane));
    };
    let place = pool.take(&state_of(shared), &shared.folder.id)?;
    Ok(Site::Pooled { place, lane: Some(lane) })
}

async fn add(shared: &Shared, top: &Path) -> Result<(), String> {
    let tip = shared.target.tip().await.ok_or_else(|| format!("{} has no commit", shared.target.branch))?;
    let below = top.parent().unwrap_or(top);
    let needed = ROOM.saturating_add(shared.home.tracked_bytes().map_err(|e| e.to_string())?);
    files::require_space(below, needed).map_err(|e| e.to_string())?;
    // What tells of the set-up of one that was here before says nothing of this one.
    drop(std::fs::remove_file(site::ready_mark(top)));
    // More at once than there are processors would only make the first ready later.
    let place = shared.filling.acquire().await.map_err(|e| e.to_string())?;
    // Its files are written while others land.
    let turn = shared.git_turn.lock().await;
    shared.home.forget_missing_worktrees(below).await.map_err(|e| e.to_string())?;
    shared.home.begin_worktree(top, &tip).await.map_err(|e| e.to_string())?;
    drop(turn);
    shared.home.fill_worktree(top, &shared.hurry).await.map_err(|e| e.to_string())?;
    let turn = shared.git_turn.lock().await;
    shared.home.finish_worktree(top).await.map_err(|e| e.to_string())?;
    drop(turn);
    drop(place);
    files::write_atomic(&site::ready_mark(top), b"", files::Access::Private).map_err(|e| e.to_string())
}

/// The work as it lies in a worktree. A spec that no commit has stays where it is; one that is away, since a dead agent or a
/// loss of power took it, comes back with the worktree's files.
async fn work_in(shared: &Shared, top: &Path) -> Result<(WorkRef, SpecFile), String> {
    let (work, home) = (&shared.work, &shared.home.places().top);
    let moved = |path: &Path| {
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        real.strip_prefix(home).ok().map(|below| top.join(below))
    };
    let project = moved(&work.project).unwrap_or_else(|| top.to_owned());
    // The name counts, not what a link leads to: a link is part of the worktree too.
    let main = work.main.parent().and_then(moved).zip(work.main.file_name()).map(|(folder, name)| folder.join(name));
    if let Some(main) = main
        && (main.exists() || is_committed(shared, main.strip_prefix(top).unwrap_or(&main)).await?)
    {
        let change = work.change.as_deref().and_then(moved);
        return Ok((WorkRef { main, project, change, ..work.clone() }, SpecFile::Own));
    }
    Ok((WorkRef { project, ..work.clone() }, SpecFile::Shared))
}

/// Whether the newest commit of the branch has something there.
async fn is_committed(shared: &Shared, at: &Path) -> Result<bool, String> {
    match shared.target.tip().await {
        Some(tip) => shared.home.commit_has(&tip, at).await.map_err(|e| e.to_string()),
        None => Ok(false),
    }
}

/// What agents and gates of a lane get, so that two lanes do not meet: a number, ports, a folder for temporary files.
fn environment(folder: &RunFolder, lane: LaneId) -> Result<(Vec<(OsString, OsString)>, PathBuf), String> {
    let number = lane.0.saturating_add(1);
    let temporary = site::root(folder).join(format!("lane-{number}.tmp"));
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
    let mark = site::ready_mark(&parts.repository.places().top);
    let id = setup_id(&shared.settings.worktrees);
    let is_set_up = std::fs::read(&mark).is_ok_and(|known| known.starts_with(id.as_bytes()));
    let mut notes = bring_all(parts).await?;
    notes.extend(parts.kept.lock().unwrap_or_else(PoisonError::into_inner).take().map(|reference| {
        format!(
            "the worktree was not as its commit has it, as after a loss of power; what was there is kept at {reference}"
        )
    }));
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
    let (shared, top) = (&parts.shared, &parts.repository.places().top);
    let Some(site) = Site::of_lane(&shared.folder, lane, false) else { return Ok(()) };
    let turn = shared.git_turn.lock().await;
    let is_kept = pool_of(shared).is_some_and(|pool| pool.has_room()) && is_as_brought(&parts.repository).await;
    let afterwards = if is_kept { Afterwards::Kept } else { Afterwards::Removed };
    let closed = site.close(&shared.home, &shared.folder.id, Some(&parts.repository), afterwards).await;
    drop(turn);
    closed.map_err(|e| format!("the worktree of lane {} stays at {}: {e}", lane.0 + 1, top.display()))?;
    site::tidy(&shared.folder, lane);
    Ok(())
}

/// Nothing is in the worktree but its commit, what was brought, and what git ignores.
async fn is_as_brought(lane: &Repository) -> bool {
    let Ok(loose) = lane.loose_files().await else { return false };
    let is_brought = site::brought(&lane.places().top);
    loose.split(|byte| *byte == 0).all(|path| path.is_empty() || is_brought(path)) && lane.is_as_committed().await
}
