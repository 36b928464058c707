//! Lines that say one thing about a task: `**Status**: 🟡 In Progress (waits)`, `- Verified: false`.

use std::ops::Range;

use ralphloop_core::plan::WorkState;

use crate::document::{Mark, Slot};
use crate::markdown::boxes;
use crate::text::Text;
use crate::words;

/// What a symbol stands for, and the word beside it.
const STATES: &[(&str, &str, WorkState)] = &[
    ("✅", "complete", WorkState::Done),
    ("🟡", "in progress", WorkState::Doing),
    ("🔵", "planned", WorkState::Todo),
    ("⏸", "blocked", WorkState::Blocked),
];

/// What is written for done.
const DONE: (&str, &str) = ("✅", "Complete");

/// What is written for planned.
const PLANNED: (&str, &str) = ("🔵", "Planned");

/// Symbol and word of a state; what has none is planned.
pub(super) fn words_of(state: WorkState) -> &'static str {
    match state {
        WorkState::Done => "✅ Complete",
        WorkState::Doing => "🟡 In Progress",
        WorkState::Blocked => "⏸️ Blocked",
        WorkState::Todo | WorkState::Skipped | WorkState::Other => "🔵 Planned",
    }
}

/// A line `Name: value`, the name bold or not, behind a list marker or not; offsets count from the start of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field<'l> {
    pub name: &'l str,
    pub value: Range<usize>,
}

/// Takes a line apart. The name is at most a few words.
pub(super) fn field(line: &str) -> Option<Field<'_>> {
    const MAX_NAME: usize = 40;
    let mut at = line.len() - line.trim_start().len();
    if let Some(marker) = boxes::list_marker(&line[at..]).filter(|marker| line[at + marker..].starts_with([' ', '\t']))
    {
        at += marker;
        at += line[at..].len() - line[at..].trim_start().len();
    }
    let bold = line[at..].starts_with("**");
    let start = if bold { at + 2 } else { at };
    let colon = start + line[start..].find([':', '：'])?;
    let behind = colon + line[colon..].chars().next().map_or(1, char::len_utf8);
    let mut name = line[start..colon].trim_end();
    let mut value = behind;
    if bold {
        if let Some(inner) = name.strip_suffix("**") {
            name = inner.trim_end();
        } else {
            value = behind + line[behind..].strip_prefix("**").map(|_| 2)?;
        }
    }
    if name.is_empty() || name.len() > MAX_NAME || name.contains(['*', '`', '[', '(']) {
        return None;
    }
    let rest = &line[value..];
    let start = value + rest.len() - rest.trim_start().len();
    let end = (value + rest.trim_end().len()).max(start);
    Some(Field { name, value: start..end })
}

impl Field<'_> {
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// A status, with the bytes of the line that say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Status {
    pub state: WorkState,
    /// Symbol and word, a remark behind them left out.
    pub token: Range<usize>,
    has_symbol: bool,
}

/// The status in the bytes `value` of a line.
pub(super) fn status(line: &str, value: Range<usize>) -> Status {
    let whole = &line[value.clone()];
    let text = whole.trim_start_matches(|c: char| matches!(c, '*' | '`' | '_') || c.is_whitespace());
    let start = value.end - text.len();
    // Without a letter of ASCII it is a symbol, also one that a wrong encoding has made illegible.
    let first = text.split_whitespace().next().unwrap_or_default();
    let symbol = if first.is_ascii() { "" } else { first };
    let has_symbol = !symbol.is_empty() && !symbol.contains(|c: char| c.is_ascii_alphanumeric());
    let words_at = if has_symbol { text.len() - text[symbol.len()..].trim_start().len() } else { 0 };
    let words = &text[words_at..];
    let length = word_length(words);
    let word = words[..length].trim_end_matches(|c: char| !c.is_alphanumeric());
    let end = if word.is_empty() { symbol.len() } else { words_at + word.len() };
    let by_symbol = || STATES.iter().find(|(known, ..)| has_symbol && symbol.starts_with(known)).map(|found| found.2);
    let lower = word.to_lowercase();
    let by_word = STATES.iter().find(|(_, known, _)| *known == lower).map(|found| found.2);
    let by_word = by_word.or(if lower.is_empty() { None } else { Some(words::state(&lower)) });
    let state = match by_word {
        Some(WorkState::Other) | None => by_symbol().unwrap_or(WorkState::Other),
        Some(state) => state,
    };
    Status { state, token: start..start + end, has_symbol }
}

/// How far the words go before a remark begins.
fn word_length(words: &str) -> usize {
    const REMARKS: &[&str] = &["(", "[", "<", " -", " –", " —", ",", ";", ":", "|", ". ", "**"];
    let end = REMARKS.iter().filter_map(|remark| words.find(remark)).min().unwrap_or(words.len());
    words[..end].trim_end().len()
}

impl Status {
    /// The mark in a line that starts at `offset` of the body.
    pub(super) fn mark(&self, text: &Text<'_>, line: &str, offset: usize) -> Mark {
        let (symbol, word) = DONE;
        Mark {
            slot: Slot::Line,
            offset: text.base + offset + self.token.start,
            now: line[self.token.clone()].to_owned(),
            done: if self.has_symbol || self.token.is_empty() { format!("{symbol} {word}") } else { word.to_owned() },
            open: if self.has_symbol { "🔵 Planned" } else { "Planned" },
            is_done: self.state == WorkState::Done,
        }
    }
}

/// The line that says done, where a task has none: as its siblings write it.
pub(super) fn whole_line(sibling: Option<&str>) -> String {
    line_like(sibling, DONE)
}

/// The line that says planned, as the siblings of a task write it.
pub(super) fn planned_line(sibling: Option<&str>) -> String {
    line_like(sibling, PLANNED)
}

fn line_like(sibling: Option<&str>, (symbol, word): (&str, &str)) -> String {
    let Some((line, found)) = sibling.and_then(|line| Some((line, field(line)?))) else {
        return format!("**Status**: {symbol} {word}");
    };
    let status = status(line, found.value.clone());
    let words = if status.has_symbol { format!("{symbol} {word}") } else { word.to_owned() };
    format!("{}{words}", &line[..status.token.start])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_in_every_spelling_and_its_remark_stays() {
        for (line, state, token) in [
            ("**Status**: ✅ Complete", WorkState::Done, "✅ Complete"),
            ("**Status:** 🟡 In Progress (waits for it)", WorkState::Doing, "🟡 In Progress"),
            ("- Status: Planned", WorkState::Todo, "Planned"),
            ("Status: ⏸️ Blocked - no key", WorkState::Blocked, "⏸️ Blocked"),
            ("- **Status:** ðŸ”µ Planned", WorkState::Todo, "ðŸ”µ Planned"),
            ("**Status**: âœ… Complete, tried", WorkState::Done, "âœ… Complete"),
            ("**Status**: ✅", WorkState::Done, "✅"),
            ("**Status**:` ✅ Complete", WorkState::Done, "✅ Complete"),
            ("**Status**: **🔵 Planned**", WorkState::Todo, "🔵 Planned"),
            ("**Status**: on ice", WorkState::Other, "on ice"),
            ("**Status**: ", WorkState::Other, ""),
        ] {
            let found = field(line).unwrap_or_else(|| panic!("{line}"));
            assert!(found.is("status"), "{line}");
            let status = status(line, found.value);
            assert_eq!((status.state, &line[status.token.clone()]), (state, token), "{line}");
        }
    }

    #[test]
    fn sentences_with_a_colon_are_no_fields() {
        assert_eq!(field("**Note** that: x"), None);
        assert_eq!(field("no colon"), None);
        assert_eq!(field("see `a`: b"), None);
    }
}
