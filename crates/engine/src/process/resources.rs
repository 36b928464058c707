//! What a program and all that it starts may use of the machine, and how that is measured.
//!
//! A supervisor looks at its descendants a few times a second. What is counted is what they use together: a limit of the
//! system for one process says nothing about ten thousand of them, and one for a user would hit the user's other programs.
use std::fmt;
use std::time::Duration;

use rustix::process::{Pid, getpid};
use serde::{Deserialize, Serialize};

use super::tree::Row;
use crate::bytes::Bytes;

/// How often is looked.
const LOOK: Duration = Duration::from_millis(250);
/// How often while there are many: they may be about to become too many.
const LOOK_CLOSELY: Duration = Duration::from_millis(25);
/// When is looked first: most programs are over by then, and are not looked at at all.
pub(super) const FIRST_LOOK: Duration = LOOK_CLOSELY;

/// What may be used by one call; what is absent is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Resources {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Processes at a time.
    pub processes: Option<u64>,
    /// Bytes written to disks.
    pub written: Option<u64>,
    /// Bytes of output, both streams together.
    pub output: Option<u64>,
}

/// Something of which there is only so much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Memory.
    Memory,
    /// Processes.
    Processes,
    /// What is written to disks.
    Written,
    /// What a program says.
    Output,
}

/// More was used than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excess {
    /// Of what.
    pub resource: Resource,
    /// How much was seen.
    pub used: u64,
    /// How much was allowed.
    pub limit: u64,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, used, limit } = self;
        let (used, limit, key) = match resource {
            Resource::Processes => (used.to_string(), limit.to_string(), "max_processes"),
            Resource::Memory => (Bytes(*used).to_string(), Bytes(*limit).to_string(), "max_memory"),
            Resource::Written => (Bytes(*used).to_string(), Bytes(*limit).to_string(), "max_written"),
            Resource::Output => (Bytes(*used).to_string(), Bytes(*limit).to_string(), "max_output"),
        };
        let what = match resource {
            Resource::Memory => "of memory",
            Resource::Processes => "processes at once",
            Resource::Written => "written to disk",
            Resource::Output => "of output",
        };
        write!(f, "was ended as a runaway: {used} {what}, more than the {limit} of {key}")
    }
}

impl Resources {
    /// Four fifths of the machine's memory: the limit where nobody sets one. None where the system does not tell.
    pub fn usual_memory() -> Option<u64> {
        let text = std::fs::read_to_string("/proc/meminfo").ok()?;
        Some(field(&text, "MemTotal:")?.saturating_mul(1024) / 5 * 4)
    }

    /// Nothing has to be looked at.
    pub(super) fn needs_no_look(&self) -> bool {
        self.memory.is_none() && self.processes.is_none() && self.written.is_none()
    }

    /// When to look next, if there were so many just now.
    pub(super) fn next_look(&self, count: u64) -> Duration {
        if self.processes.is_some_and(|most| count > most / 4) { LOOK_CLOSELY } else { LOOK }
    }

    /// What these use too much of.
    pub(super) fn excess(&self, rows: &[Row]) -> Option<Excess> {
        let over = |resource, used, limit: Option<u64>| {
            limit.filter(|limit| used > *limit).map(|limit| Excess { resource, used, limit })
        };
        let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        let pids = || rows.iter().map(|row| row.pid);
        over(Resource::Processes, count, self.processes)
            .or_else(|| {
                let resident = if self.memory.is_some() { pids().map(resident).sum() } else { 0 };
                // Pages that several share are counted for each of them there, and exactly here, which takes longer.
                over(Resource::Memory, resident, self.memory)?;
                over(Resource::Memory, pids().map(proportional).sum(), self.memory)
            })
            .or_else(|| {
                // What those wrote who are gone was added to whoever waited for them, at last to this process.
                let written = if self.written.is_some() { pids().chain([getpid()]).map(written).sum() } else { 0 };
                over(Resource::Written, written, self.written)
            })
    }
}

/// Bytes of memory that are a process's own, as far as a short look tells (proc(5), `statm`).
fn resident(pid: Pid) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/statm", pid.as_raw_nonzero())).unwrap_or_default();
    let mut pages = text.split_ascii_whitespace().skip(1).map(|pages| pages.parse::<u64>().unwrap_or(0));
    let (resident, of_files) = (pages.next().unwrap_or(0), pages.next().unwrap_or(0));
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    resident.saturating_sub(of_files).saturating_mul(page)
}

/// Bytes of memory that are a process's own, with its part of what it shares.
fn proportional(pid: Pid) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", pid.as_raw_nonzero()));
    let own = text.ok().and_then(|text| Some(field(&text, "Pss_Anon:")? + field(&text, "Pss_Shmem:").unwrap_or(0)));
    // Older systems do not tell the parts.
    own.map_or_else(|| resident(pid), |kib| kib.saturating_mul(1024))
}

/// Bytes that a process, and those that it waited for, caused to be written.
fn written(pid: Pid) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/io", pid.as_raw_nonzero())).unwrap_or_default();
    let cancelled = field(&text, "cancelled_write_bytes:").unwrap_or(0);
    field(&text, "write_bytes:").unwrap_or(0).saturating_sub(cancelled)
}

/// The number after a name at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excess_names_what_it_was_and_the_setting() {
        let excess = Excess { resource: Resource::Memory, used: 3 << 30, limit: 2 << 30 };
        assert_eq!(excess.to_string(), "was ended as a runaway: 3 GiB of memory, more than the 2 GiB of max_memory");
        let excess = Excess { resource: Resource::Processes, used: 31, limit: 30 };
        assert!(excess.to_string().contains("31 processes at once, more than the 30 of max_processes"));
    }

    #[test]
    fn this_process_uses_memory_and_a_limit_below_that_is_exceeded() {
        let me = super::super::tree::look(getpid()).unwrap();
        assert!(resident(getpid()) > 0 && proportional(getpid()) > 0);
        let limits = Resources { memory: Some(1), ..Resources::default() };
        assert_eq!(limits.excess(&[me]).unwrap().resource, Resource::Memory);
        let limits = Resources { memory: Some(u64::MAX), processes: Some(1), written: Some(u64::MAX), output: None };
        assert_eq!(limits.excess(&[me]), None);
        assert_eq!(limits.excess(&[me, me]).unwrap().resource, Resource::Processes);
    }
}
