//! Which processes there are, who descends from whom, and how to signal exactly one of them.
//!
//! Read from `/proc/<pid>/stat` (proc(5)). Where there is no such file the tree is empty and only groups can be
//! signalled: see [`supervisor`](super::supervisor).
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// One process, as it was at a moment. Its number and its start together name it for as long as the machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) pid: Pid,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// Ticks since the machine started: field 22.
    pub(super) start_time: u64,
    /// Dead, and not yet waited for by its parent.
    pub(super) zombie: bool,
}

/// Looks at one process.
pub(super) fn look(pid: Pid) -> Option<Row> {
    let stat = std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    parse(pid, &stat)
}

/// Looks at all processes. One that comes or goes meanwhile may or may not be in it.
pub(super) fn snapshot() -> Vec<Row> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .filter_map(look)
        .collect()
}

/// Everybody who descends from `root` through living parents, parents before their children.
pub(super) fn descendants(rows: &[Row], root: Pid) -> Vec<Row> {
    let mut found: Vec<Row> = Vec::new();
    let mut parent = root.as_raw_nonzero().get();
    for next in 0.. {
        found.extend(rows.iter().filter(|row| row.parent == parent));
        let Some(row) = found.get(next) else { break };
        parent = row.pid.as_raw_nonzero().get();
    }
    found
}

/// Signals this process and never another one that has been given its number. Whether it was sent.
pub(super) fn signal(row: &Row, signal: Signal) -> bool {
    // The descriptor pins the process; the second look makes sure that it pins the right one.
    let Ok(pinned) = pidfd_open(row.pid, PidfdFlags::empty()) else { return false };
    look(row.pid).is_some_and(|now| now.start_time == row.start_time) && pidfd_send_signal(&pinned, signal).is_ok()
}

/// The command name stands in parentheses and may hold anything, parentheses and spaces too: fields are counted from
/// the last closing one.
fn parse(pid: Pid, stat: &[u8]) -> Option<Row> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields: Vec<&str> = std::str::from_utf8(&stat[end + 1..]).ok()?.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    Some(Row {
        pid,
        zombie: matches!(field(3)?, "Z" | "X"),
        parent: field(4)?.parse().ok()?,
        group: field(5)?.parse().ok()?,
        start_time: field(22)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(raw: i32) -> Pid {
        Pid::from_raw(raw).unwrap()
    }

    #[test]
    fn a_command_name_with_parentheses_and_spaces_does_not_move_the_fields() {
        let stat = b"42 (a) R 1 (b) S 7 42 41 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 9876543 0 0";
        let row = parse(pid(42), stat).unwrap();
        assert_eq!((row.parent, row.group, row.start_time, row.zombie), (7, 42, 9_876_543, false));
    }

    #[test]
    fn parents_come_before_their_children_and_strangers_not_at_all() {
        let row = |id, parent| Row { pid: pid(id), parent, group: 0, start_time: 0, zombie: false };
        let rows = [row(5, 3), row(3, 2), row(4, 1), row(6, 5), row(2, 1)];
        let found: Vec<_> = descendants(&rows, pid(2)).iter().map(|row| row.pid.as_raw_nonzero().get()).collect();
        assert_eq!(found, [3, 5, 6]);
    }

    #[test]
    fn this_process_is_there_and_a_number_with_another_start_is_not_signalled() {
        let me = look(rustix::process::getpid()).unwrap();
        assert!(snapshot().contains(&me));
        let earlier = Row { start_time: me.start_time - 1, ..me };
        assert!(!signal(&earlier, Signal::KILL));
    }
}
