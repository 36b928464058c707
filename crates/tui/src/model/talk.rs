//! The transcript of one call, seen through a window: only the chunks around the window are held, however long it is.

use std::collections::{BTreeMap, BTreeSet};

use crate::port::{CHUNK, CallId, Entry, EntryKind, Request};
use crate::text;

/// So many chunks are kept at most.
const KEPT: usize = 8;
/// So many entries laid out in rows are kept at most.
const LAID: usize = 512;
/// Columns before an entry's text.
pub(crate) const GUTTER: usize = 2;
/// More rows than this are not shown of one entry; an export has them all.
const TALLEST: usize = 2000;

/// Where the window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    /// At the end, and it stays there when more comes.
    #[default]
    End,
    /// This row of this entry is the first.
    At { entry: u64, row: usize },
}

/// One row of the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// The entry.
    pub(crate) entry: u64,
    /// Which of its rows.
    pub(crate) row: usize,
    /// Its kind; none while it is being read.
    pub(crate) kind: Option<EntryKind>,
    /// What stands before the text.
    pub(crate) mark: &'static str,
    /// The text.
    pub(crate) text: String,
}

/// A transcript and the window on it.
#[derive(Debug, Default)]
pub(crate) struct Talk {
    pub(crate) call: Option<CallId>,
    pub(crate) entries: u64,
    pub(crate) reading: bool,
    pub(crate) rows: Vec<Row>,
    pub(crate) all_open: bool,
    pub(crate) needle: String,
    pub(crate) hit: Option<u64>,
    chunks: BTreeMap<u64, Vec<Entry>>,
    asked: BTreeSet<u64>,
    place: Place,
    open: BTreeSet<u64>,
    clicked: Option<u64>,
    width: usize,
    height: usize,
    laid: BTreeMap<u64, (bool, Vec<String>)>,
}

impl Talk {
    /// Looks at this call from now on.
    pub(super) fn show(&mut self, call: CallId, requests: &mut Vec<Request>) {
        if self.call.as_ref() != Some(&call) {
            requests.push(Request::Watch(call.clone()));
            let needle = std::mem::take(&mut self.needle);
            *self = Self { call: Some(call), needle, all_open: self.all_open, reading: true, ..Self::default() };
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self { all_open: self.all_open, ..Self::default() };
    }

    pub(super) fn extent(&mut self, call: &CallId, entries: u64, reading: bool) {
        if self.call.as_ref() == Some(call) {
            self.entries = entries;
            self.reading = reading;
        }
    }

    pub(super) fn entries(&mut self, call: &CallId, chunk: u64, entries: Vec<Entry>) {
        if self.call.as_ref() != Some(call) {
            return;
        }
        self.asked.remove(&chunk);
        let known = self.chunks.get(&chunk).map_or(0, Vec::len);
        // What was laid out of it stays valid: a chunk only grows.
        if entries.len() < known {
            return;
        }
        self.chunks.insert(chunk, entries);
        while self.chunks.len() > KEPT {
            let here = self.first_entry() / CHUNK;
            let Some(far) = self.chunks.keys().copied().max_by_key(|chunk| chunk.abs_diff(here)) else { break };
            self.chunks.remove(&far);
        }
    }

    /// The window is at the end and stays there.
    pub(crate) fn following(&self) -> bool {
        self.place == Place::End
    }

    fn first_entry(&self) -> u64 {
        match self.place {
            Place::End => self.entries.saturating_sub(1),
            Place::At { entry, .. } => entry,
        }
    }

    /// How far through the transcript the window is, for a scroll bar.
    pub(crate) fn position(&self) -> (u64, u64) {
        (self.rows.first().map_or(0, |row| row.entry), self.entries)
    }

    fn entry(&self, entry: u64) -> Option<&Entry> {
        let chunk = self.chunks.get(&(entry / CHUNK))?;
        chunk.get(usize::try_from(entry % CHUNK).ok()?)
    }

    fn ask(&mut self, entry: u64, requests: &mut Vec<Request>) {
        let chunk = entry / CHUNK;
        if let Some(call) = &self.call
            && self.asked.insert(chunk)
        {
            requests.push(Request::Read { call: call.clone(), chunk });
        }
    }

    fn is_open(&self, entry: u64) -> bool {
        self.all_open != self.open.contains(&entry)
    }

    /// The rows of an entry, laid out; `None` if it is not there yet.
    fn lay(&mut self, entry: u64) -> Option<usize> {
        let open = self.is_open(entry);
        if let Some((as_open, rows)) = self.laid.get(&entry)
            && *as_open == open
        {
            return Some(rows.len());
        }
        let rows = lay_out(self.entry(entry)?, open, self.width);
        let count = rows.len();
        if self.laid.len() >= LAID {
            self.laid.clear();
        }
        self.laid.insert(entry, (open, rows));
        Some(count)
    }

    /// Fills the window, asking for what is missing.
    pub(super) fn settle(&mut self, width: usize, height: usize, requests: &mut Vec<Request>) {
        let width = width.saturating_sub(GUTTER).max(1);
        if self.width != width {
            self.width = width;
            self.laid.clear();
        }
        self.height = height;
        self.rows.clear();
        if self.entries == 0 || height == 0 {
            return;
        }
        if let Place::At { entry, row } = self.place {
            self.fill_down(entry.min(self.entries - 1), row, requests);
            if self.rows.len() >= height {
                return;
            }
            // The end is in sight.
            self.rows.clear();
            self.place = Place::End;
        }
        self.fill_up(requests);
    }

    fn fill_down(&mut self, mut entry: u64, mut row: usize, requests: &mut Vec<Request>) {
        while self.rows.len() < self.height && entry < self.entries {
            if let Some(count) = self.lay(entry) {
                for at in row..count {
                    if self.rows.len() < self.height {
                        self.push_row(entry, at);
                    }
                }
            } else {
                self.ask(entry, requests);
                self.rows.push(unread(entry));
            }
            entry += 1;
            row = 0;
        }
    }

    fn fill_up(&mut self, requests: &mut Vec<Request>) {
        let mut entry = self.entries;
        let mut rows = 0;
        let mut first = (0, 0);
        while rows < self.height && entry > 0 {
            entry -= 1;
            let count = self.lay(entry).unwrap_or_else(|| {
                self.ask(entry, requests);
                1
            });
            rows += count;
            first = (entry, rows.saturating_sub(self.height));
        }
        self.fill_down(first.0, first.1, requests);
    }

    fn push_row(&mut self, entry: u64, row: usize) {
        let Some(kind) = self.entry(entry).map(|entry| entry.kind) else {
            // It was laid out before its chunk was let go.
            if let Some((_, rows)) = self.laid.get(&entry) {
                let text = rows.get(row).cloned().unwrap_or_default();
                self.rows.push(Row { entry, row, kind: None, mark: "", text });
            }
            return;
        };
        let mark = if row == 0 { mark(kind, self.is_open(entry)) } else { "" };
        let text = self.laid.get(&entry).and_then(|(_, rows)| rows.get(row)).cloned().unwrap_or_default();
        self.rows.push(Row { entry, row, kind: Some(kind), mark, text });
    }

    /// Moves the window by rows; up is negative.
    pub(super) fn scroll(&mut self, by: i64) {
        let Some(first) = self.rows.first() else { return };
        let (mut entry, mut row) = (first.entry, first.row);
        if by > 0 && self.following() {
            return;
        }
        for _ in 0..by.unsigned_abs() {
            if by < 0 {
                if row > 0 {
                    row -= 1;
                } else if entry > 0 {
                    entry -= 1;
                    row = self.lay(entry).unwrap_or(1).saturating_sub(1);
                }
            } else {
                let count = self.lay(entry).unwrap_or(1);
                if row + 1 < count {
                    row += 1;
                } else if entry + 1 < self.entries {
                    entry += 1;
                    row = 0;
                }
            }
        }
        self.place = Place::At { entry, row };
    }

    pub(super) fn page(&self) -> i64 {
        i64::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1)
    }

    pub(super) fn top(&mut self) {
        self.place = Place::At { entry: 0, row: 0 };
    }

    pub(super) fn bottom(&mut self) {
        self.place = Place::End;
    }

    /// The entry that keys are about: the one that was clicked, else the last if the end is followed, else the first.
    pub(crate) fn marked(&self) -> Option<u64> {
        let seen = |entry: &u64| self.rows.iter().any(|row| row.entry == *entry);
        self.clicked.or(self.hit).filter(seen).or_else(|| {
            let row = if self.following() { self.rows.last() } else { self.rows.first() };
            row.map(|row| row.entry)
        })
    }

    /// Opens or closes an entry.
    pub(super) fn toggle(&mut self, entry: u64) {
        if !self.open.remove(&entry) {
            self.open.insert(entry);
        }
    }

    pub(super) fn toggle_all(&mut self) {
        self.all_open = !self.all_open;
        self.open.clear();
    }

    /// A click on a row of the window.
    pub(super) fn click(&mut self, row: usize) {
        let Some(entry) = self.rows.get(row).map(|row| row.entry) else { return };
        if self.clicked == Some(entry) || self.entry(entry).is_some_and(|entry| entry.kind.folds()) {
            self.toggle(entry);
        }
        self.clicked = Some(entry);
    }

    /// The text of the marked entry.
    pub(super) fn marked_text(&self) -> Option<String> {
        Some(self.entry(self.marked()?)?.text.clone())
    }

    /// Asks for the next place of what is searched for.
    pub(super) fn find(&mut self, backwards: bool, requests: &mut Vec<Request>) {
        let (Some(call), false) = (&self.call, self.needle.is_empty() || self.entries == 0) else { return };
        let here = self.hit.or_else(|| self.marked());
        let from = match (here, backwards) {
            (Some(here), true) => here.checked_sub(1).unwrap_or(self.entries - 1),
            (Some(here), false) => here + 1,
            (None, _) => 0,
        };
        requests.push(Request::Find { call: call.clone(), text: self.needle.clone(), from, backwards });
    }

    /// Goes to what was found, or says that nothing was.
    pub(super) fn found(&mut self, call: &CallId, entry: Option<u64>) -> Option<String> {
        if self.call.as_ref() != Some(call) {
            return None;
        }
        match entry {
            Some(entry) => {
                self.hit = Some(entry);
                self.clicked = None;
                if !self.rows.iter().any(|row| row.entry == entry) {
                    self.place = Place::At { entry, row: 0 };
                }
                if !self.is_open(entry) {
                    self.toggle(entry);
                }
                None
            }
            None => Some(format!("no further place with \"{}\"", self.needle)),
        }
    }
}

fn unread(entry: u64) -> Row {
    Row { entry, row: 0, kind: None, mark: "", text: "…".to_owned() }
}

fn mark(kind: EntryKind, open: bool) -> &'static str {
    match kind {
        EntryKind::Agent => "●",
        EntryKind::SubAgent => "○",
        EntryKind::Tool | EntryKind::Thought | EntryKind::ToolOutput if open => "▾",
        EntryKind::Tool | EntryKind::Thought => "▸",
        EntryKind::ToolOutput => "└",
        EntryKind::ToolFailed => "✗",
        EntryKind::Plan => "≡",
        EntryKind::Output => "",
        EntryKind::Note => "!",
    }
}

/// The rows of an entry in so many columns.
fn lay_out(entry: &Entry, open: bool, width: usize) -> Vec<String> {
    let label = match entry.kind {
        EntryKind::SubAgent => "sub-agent: ",
        EntryKind::Thought => "thinking: ",
        EntryKind::ToolFailed => "failed: ",
        EntryKind::Plan => "plan:\n",
        _ => "",
    };
    let text = entry.text.trim_end();
    if entry.kind.folds() && !open {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or_default();
        let more = lines.count();
        let more = match more {
            0 => String::new(),
            1 => "  (+1 line)".to_owned(),
            more => format!("  (+{more} lines)"),
        };
        let room = width.saturating_sub(text::width(&more) + text::width(label));
        // A line may be very long, and no more of it is seen than this.
        let head: String = first.chars().take(width * 2).collect();
        let shown = text::cut(&text::one_line(&head), room).into_owned();
        return vec![text::cut(&format!("{label}{shown}{more}"), width).into_owned()];
    }
    let mut rows = Vec::new();
    text::wrap(&format!("{label}{text}"), width, &mut rows);
    if rows.len() > TALLEST {
        let more = rows.len() - TALLEST;
        rows.truncate(TALLEST);
        rows.push(text::cut(&format!("… {more} more rows: an export has them"), width).into_owned());
    }
    if rows.is_empty() {
        rows.push(String::new());
    }
    if matches!(entry.kind, EntryKind::Agent) {
        rows.push(String::new());
    }
    rows
}
