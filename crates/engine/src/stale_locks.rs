//! Locks that git of a dead run held when it was killed or the power went. Git leaves them to a person; but what a run was
//! doing is known, so that it can be gone on with.
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::aftermath::SURELY_LATER;
use crate::git::Repository;
use crate::runs::{RunFolder, StateFolder};

/// Takes those among `locks` away; says which. One that is younger than the dead runs' last sign of life, or that a git at work here or
/// a run that is alive may hold, stays.
pub(crate) fn clear(locks: Vec<PathBuf>, state: &StateFolder, home: &Repository) -> Vec<String> {
    let (alive, dead): (Vec<RunFolder>, Vec<RunFolder>) =
        state.runs().unwrap_or_default().into_iter().partition(|run| run.live_process().is_some());
    let Some(last_sign) = dead.iter().filter_map(RunFolder::last_beat).max() else { return Vec::new() };
    let is_theirs = |lock: &Path| {
        let made = std::fs::symlink_metadata(lock).and_then(|found| found.modified());
        made.is_ok_and(|made: SystemTime| made <= last_sign + SURELY_LATER)
    };
    let is_held = !alive.is_empty() || is_git_at_work(home);
    let is_of_a_dead_run = |lock: &Path| dead.iter().any(|run| lock.starts_with(home.refs_of(&run.id)));
    let gone = locks.into_iter().filter(|lock| is_theirs(lock) && (!is_held || is_of_a_dead_run(lock)));
    // What cannot be removed is named by whoever meets it.
    let gone: Vec<PathBuf> = gone.filter(|lock| std::fs::remove_file(lock).is_ok()).collect();
    gone.iter()
        .map(|lock| format!("removed {}, which git of a run held when that was killed", lock.display()))
        .collect()
}

/// Whether somebody's git runs in this repository.
#[cfg(target_os = "linux")]
fn is_git_at_work(home: &Repository) -> bool {
    let places = home.places();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok).map(|item| item.path());
    let mut gits =
        processes.filter(|process| std::fs::read(process.join("comm")).is_ok_and(|name| name.starts_with(b"git")));
    gits.any(|git| match std::fs::read_link(git.join("cwd")) {
        Ok(folder) => folder.starts_with(&places.top) || folder.starts_with(&places.common_dir),
        // It has ended; one that cannot be looked at may be here.
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    })
}

/// Elsewhere nobody can be seen at work, so that somebody may be.
#[cfg(not(target_os = "linux"))]
fn is_git_at_work(_home: &Repository) -> bool {
    true
}
