//! Ending what a dead run left behind, and nobody else.
//!
//! A supervisor ends everything when its orchestrator dies. What is left to do here is the case in which both were
//! killed at once. Identity is never a number alone: a process is ours if it has the recorded number *and* start time in
//! the recorded boot of the machine, or carries the recorded mark in its environment, or descends from one that does.
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open};
use serde::{Deserialize, Serialize};

use super::tree::{self, Row};

/// The variable that marks a supervised child and its descendants; its value is one per start.
pub(super) const MARK: &str = "RALPHLOOP_SPAWN";
/// How long they have from TERM to KILL.
const GRACE: Duration = Duration::from_millis(500);
/// How long KILL may take to be confirmed.
const CONFIRM: Duration = Duration::from_secs(5);

/// What identifies a started program later, from another process: for the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// Its process id, which is also its group and its session.
    pub pid: u32,
    /// When it started, in ticks since the machine did: field 22 of proc(5) `stat`.
    pub start_time: u64,
    /// Which start of the machine that was: `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// What it and its descendants carry in their environment, where it was supervised.
    pub mark: Option<String>,
}

/// What became of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The record.
    pub leftover: Leftover,
    /// Processes that were found alive and are gone now.
    pub gone: Vec<u32>,
    /// Processes that are still there: they wait uninterruptibly or belong to somebody else.
    pub survived: Vec<u32>,
}

/// Which start of the machine this is; empty where the system does not say.
pub(crate) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

/// The process that started it, or that has taken it over; nothing if there is no such process, or it cannot be told.
pub fn parent(pid: u32) -> Option<u32> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    u32::try_from(tree::look(pid)?.parent).ok()
}

/// When the live process of that number started, in ticks since the machine did.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    tree::look(pid).filter(|row| !row.zombie).map(|row| row.start_time)
}

/// Ends what is left of each record: TERM, half a second, KILL, and looking until nobody is left. Blocks the thread,
/// for milliseconds where nobody is left and for six seconds at most; call it where that is allowed.
pub fn end_leftovers(records: &[Leftover]) -> Vec<Ended> {
    let boot_id = boot_id();
    let found: Vec<_> = records.iter().map(|record| Search { record, boot_id: &boot_id, seen: Vec::new() }).collect();
    found.into_iter().map(Search::end).collect()
}

struct Search<'a> {
    record: &'a Leftover,
    boot_id: &'a str,
    /// All that were ever found.
    seen: Vec<Row>,
}

impl Search<'_> {
    fn end(mut self) -> Ended {
        let began = Instant::now();
        let mut left = self.look();
        for row in &left {
            tree::signal(row, Signal::TERM);
            tree::signal(row, Signal::CONT);
        }
        while !left.is_empty() && began.elapsed() < GRACE {
            wait_for_an_end(&left, GRACE.saturating_sub(began.elapsed()));
            left = self.look();
        }
        while !left.is_empty() && began.elapsed() < GRACE + CONFIRM {
            for row in &left {
                tree::signal(row, Signal::KILL);
            }
            wait_for_an_end(&left, Duration::from_millis(50));
            left = self.look();
        }
        let number = |row: &Row| row.pid.as_raw_nonzero().get().cast_unsigned();
        Ended {
            leftover: self.record.clone(),
            gone: self.seen.iter().filter(|row| !left.contains(row)).map(number).collect(),
            survived: left.iter().map(number).collect(),
        }
    }

    /// Who is there now and belongs to the record, or to somebody found before.
    fn look(&mut self) -> Vec<Row> {
        if self.record.boot_id != self.boot_id || self.boot_id.is_empty() {
            return Vec::new();
        }
        let rows = tree::snapshot();
        let ours = ourselves(&rows);
        let mut left: Vec<Row> = Vec::new();
        for row in rows.iter().filter(|row| self.is_meant(row)) {
            let family = std::iter::once(*row).chain(tree::descendants(&rows, row.pid));
            for member in family.filter(|member| !member.zombie && !ours.contains(&member.pid)) {
                if !left.iter().any(|known| known.pid == member.pid) {
                    left.push(member);
                }
            }
        }
        for row in &left {
            if !self.seen.iter().any(|known| same(known, row)) {
                self.seen.push(*row);
            }
        }
        left
    }

    fn is_meant(&self, row: &Row) -> bool {
        let number = row.pid.as_raw_nonzero().get().cast_unsigned();
        (number == self.record.pid && row.start_time == self.record.start_time)
            || self.seen.iter().any(|known| same(known, row))
            || (row.start_time >= self.record.start_time && self.carries_mark(row.pid))
    }

    fn carries_mark(&self, pid: Pid) -> bool {
        let Some(mark) = &self.record.mark else { return false };
        let wanted = format!("{MARK}={mark}");
        std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()))
            .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()))
    }
}

fn same(one: &Row, other: &Row) -> bool {
    one.pid == other.pid && one.start_time == other.start_time
}

/// This process and those it descends from: a run that was started inside a dead run's agent must not end itself.
fn ourselves(rows: &[Row]) -> Vec<Pid> {
    let mut line = vec![getpid()];
    while let Some(parent) = line
        .last()
        .and_then(|last| rows.iter().find(|row| row.pid == *last))
        .and_then(|row| Pid::from_raw(row.parent))
        .filter(|parent| !line.contains(parent))
    {
        line.push(parent);
    }
    line
}

/// Returns when one of them has ended, or after `patience`.
fn wait_for_an_end(rows: &[Row], patience: Duration) {
    let pinned: Vec<_> = rows.iter().filter_map(|row| pidfd_open(row.pid, PidfdFlags::empty()).ok()).collect();
    let mut fds: Vec<_> = pinned.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    if let Ok(patience) = rustix::event::Timespec::try_from(patience) {
        // Interrupted or not, the caller looks again.
        let _ = poll(&mut fds, Some(&patience));
    }
}
