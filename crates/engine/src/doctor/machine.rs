//! The machine: room, clock, what dead runs left, and the programs that help.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use ralphloop_core::run::{Activity, Run};

use super::{Finding, Subject};
use crate::bytes::Bytes;
use crate::files::free_space;
use crate::gates::find::on_path;
use crate::git::Repository;
use crate::journal::JournalError;
use crate::process;
use crate::runs::{RunFolder, StateFolder};

const GIB: u64 = 1024 * 1024 * 1024;
/// Less than this is worth a word; at a fifth of it no run starts.
const LITTLE: u64 = GIB;
/// Inodes below which a file system is nearly full.
const FEW_INODES: u64 = 10_000;
/// Clocks of machines differ so much, in seconds.
const SKEW: u64 = 120;
/// 2025-01-01. This program is younger.
const TOO_EARLY: u64 = 1_735_689_600;
/// Runs that are looked at, from the newest.
const RUNS: usize = 20;

/// Room for the repository; that there is too little for a run is found with the repository.
pub(super) fn disk(at: &Path) -> Option<Finding> {
    let free = free_space(at).ok()?;
    let inodes = rustix::fs::statvfs(at).ok().filter(|space| space.f_files > 0).map(|space| space.f_favail);
    if inodes.is_some_and(|inodes| inodes < FEW_INODES) {
        return Some(Finding::warn(
            "disk",
            format!("few inodes are free where {} is: new files will fail", at.display()),
            "df -i shows where; remove many small files",
        ));
    }
    Some(room(free, at))
}

/// Room for gates and agents that use the temporary folder.
pub(super) fn temporary_folder() -> Option<Finding> {
    let folder = std::env::temp_dir();
    match tempfile::tempfile_in(&folder) {
        Err(error) => Some(Finding::warn(
            "disk",
            format!("no file can be made in the temporary folder {}: {error}", folder.display()),
            "set TMPDIR to a folder that can be written",
        )),
        Ok(_) => Some(room(free_space(&folder).ok()?, &folder)),
    }
}

fn room(free: u64, at: &Path) -> Finding {
    let message = format!("{} are free where {} is", Bytes(free), at.display());
    match free {
        0..LITTLE => Finding::warn("disk", message, "make room: `ralphloop clean` shows what old runs hold"),
        _ => Finding::ok("disk", message),
    }
}

/// Whether the clock can be right: waits for limits and times of commits rely on it.
pub(super) async fn clock(repository: &Repository) -> Finding {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mend = "timedatectl set-ntp true, or set the clock";
    if now < TOO_EARLY {
        return Finding::warn("clock", "it stands long before this program was made", mend);
    }
    let answer = repository.git().read(&repository.places().top).args(["log", "-1", "--format=%ct"]).answer().await;
    let latest = answer.ok().and_then(|answer| answer.line().ok()?.trim().parse::<u64>().ok()).unwrap_or(0);
    if latest > now + SKEW {
        return Finding::warn(
            "clock",
            format!("it is {} seconds behind the latest commit: one of the two clocks is wrong", latest - now),
            mend,
        );
    }
    Finding::ok("clock", "later than the latest commit")
}

/// Runs that were cut off, and what they may have left running.
pub(super) fn leftovers(repository: &Repository) -> Vec<Finding> {
    let state = StateFolder::of(&repository.places().common_dir);
    let runs = match state.runs() {
        Ok(runs) => runs,
        Err(error) => {
            return vec![Finding::error(
                "runs",
                error.to_string(),
                format!("chown -R \"$USER\" '{}'", state.path().display()),
            )];
        }
    };
    let findings: Vec<Finding> = runs.iter().take(RUNS).flat_map(dead_run).collect();
    if findings.is_empty() { vec![Finding::ok("runs", "none was cut off")] } else { findings }
}

fn dead_run(folder: &RunFolder) -> Vec<Finding> {
    if folder.live_process().is_some() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let id = &folder.id;
    match folder.fold() {
        Ok(known) if is_cut_off(&known.run) => findings.push(Finding::warn(
            "runs",
            format!("run {id} was cut off: its process is gone"),
            format!("ralphloop resume {id}"),
        )),
        Ok(_) => {}
        Err(error @ JournalError::Newer { .. }) => {
            findings.push(Finding::warn("runs", error.to_string(), "use the newer ralphloop that wrote it"));
        }
        Err(error) => findings.push(Finding::warn(
            "runs",
            format!("run {id} cannot be gone on with: {error}"),
            format!("what it landed is in the branch; rm -r '{}' removes the rest", folder.path().display()),
        )),
    }
    let alive: Vec<String> = folder
        .children()
        .iter()
        .filter(|child| child.boot_id == process::boot_id() && process::start_time(child.pid) == Some(child.start_time))
        .map(|child| child.pid.to_string())
        .collect();
    if !alive.is_empty() {
        findings.push(Finding::warn(
            "runs",
            format!("programs of the dead run {id} still run: {}", alive.join(", ")),
            "the next ralphloop run or resume here ends them",
        ));
    }
    findings
}

fn is_cut_off(run: &Run) -> bool {
    !matches!(run.activity(), Activity::Ended(_))
}

/// The program that validates OpenSpec's changes, where there are some.
pub(super) async fn openspec(subject: &Subject) -> Finding {
    if !subject.project.join("openspec").is_dir() {
        return Finding::ok("openspec", "not needed: there is no openspec folder here");
    }
    if !on_path("openspec") {
        return Finding::warn(
            "openspec",
            "it is not installed, so changes run without its validation",
            "npm install -g @fission-ai/openspec",
        );
    }
    match subject.version("openspec").await {
        Some(version) => Finding::ok("openspec", version),
        None => Finding::warn("openspec", "it does not tell its version", "openspec --version shows why"),
    }
}
