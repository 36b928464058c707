//! One line: is it a box, what does its mark mean, and which bytes are the mark?

use std::ops::Range;

use ralphloop_core::plan::WorkState;

/// Columns between tab stops.
const TAB: usize = 4;

/// Nested list markers before one box (`- - [ ]`).
const MAX_MARKERS: usize = 3;

/// A box on a line; offsets count from the start of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BoxLine {
    /// Columns before the list marker.
    pub indent: usize,
    /// The bytes between the brackets.
    pub mark: Range<usize>,
    /// What the mark means.
    pub state: WorkState,
    /// Where the text begins, blanks before it included.
    pub text: usize,
    /// Blanks are missing or to spare.
    pub malformed: bool,
    /// The mark is neither blank nor x.
    pub nonstandard: bool,
}

/// The box on this line. Links, footnotes, letters and words in brackets are none.
pub(crate) fn parse(line: &str) -> Option<BoxLine> {
    let (indent, mut at) = indentation(line);
    let (mut malformed, mut emphasis) = (false, false);
    for nested in 0..=MAX_MARKERS {
        if line[at..].starts_with('[') {
            break;
        }
        let star = line[at..].starts_with('*');
        at += list_marker(&line[at..])?;
        let blanks = line[at..].find(|c: char| !c.is_whitespace()).unwrap_or(line.len() - at);
        if star && line[at..].starts_with('*') {
            return None; // Strong text: `**[x]** means done`.
        }
        emphasis = star && blanks == 0;
        malformed |= blanks == 0 || nested > 0;
        at += blanks;
    }
    let open = at + 1;
    if line[..at].trim().is_empty() || !line[at..].starts_with('[') {
        return None;
    }
    let close = open + line[open..].find(']')?;
    let (state, standard, blanks_right) = meaning(&line[open..close])?;
    let text = close + 1;
    let rest = &line[text..];
    if rest.starts_with(['(', '[']) || emphasis && rest.starts_with('*') {
        return None;
    }
    // A star right behind the box is how some plans mark what is optional.
    let behind = rest.trim_start_matches('\\').strip_prefix('*').unwrap_or(rest);
    let spaced = behind.chars().next().is_none_or(char::is_whitespace);
    Some(BoxLine {
        indent,
        mark: open..close,
        state,
        text,
        malformed: malformed || !blanks_right || !spaced,
        nonstandard: !standard,
    })
}

/// Columns and bytes of the blanks at the start of a line.
pub(crate) fn indentation(line: &str) -> (usize, usize) {
    let mut columns = 0;
    for (at, c) in line.char_indices() {
        match c {
            ' ' => columns += 1,
            '\t' => columns += TAB - columns % TAB,
            _ => return (columns, at),
        }
    }
    (columns, line.len())
}

/// Length of `-`, `*`, `+`, `1.` or `1)` at the start.
pub(crate) fn list_marker(text: &str) -> Option<usize> {
    if text.starts_with(['-', '*', '+']) {
        return Some(1);
    }
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    ((1..=9).contains(&digits) && text[digits..].starts_with(['.', ')'])).then_some(digits + 1)
}

/// State of a mark, whether it is a usual one, and whether its blanks are. `None`: brackets with a text, no box.
fn meaning(content: &str) -> Option<(WorkState, bool, bool)> {
    let mark = content.trim();
    if mark.is_empty() {
        return Some((WorkState::Todo, true, content == " "));
    }
    let tidy = mark.len() == content.len();
    let mut chars = mark.trim_end_matches(['\u{FE0E}', '\u{FE0F}']).chars();
    let (Some(symbol), None) = (chars.next(), chars.next()) else { return None };
    let state = match symbol {
        'x' | 'X' => return Some((WorkState::Done, true, tidy)),
        '✓' | '✔' | '✅' => WorkState::Done,
        '-' | '/' => WorkState::Doing,
        letter if letter.is_alphanumeric() || matches!(letter, '[' | '\\' | '`' | '^' | '@' | '#') => return None,
        _ => WorkState::Other,
    };
    Some((state, false, tidy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_marker_carries_a_box() {
        for line in ["- [ ] a", "* [ ] a", "+ [ ] a", "1. [ ] a", "12) [ ] a", "\t- [ ] a", "      - [ ] a"] {
            let found = parse(line).unwrap();
            assert_eq!((found.state, found.malformed), (WorkState::Todo, false), "{line}");
        }
    }

    #[test]
    fn misspelt_boxes_are_tasks_and_called_malformed() {
        for (line, mark) in [
            ("- [] a", ""),
            ("- [ ]a", " "),
            ("-[ ] a", " "),
            ("- [x ] a", "x "),
            ("- [\u{a0}] a", "\u{a0}"),
            ("- -[ ] a", " "),
            ("- - [ ] a", " "),
            ("*[ ] a", " "),
            ("- [x  ] a", "x  "),
        ] {
            let found = parse(line).unwrap();
            assert!(found.malformed && !found.nonstandard, "{line}");
            assert_eq!(&line[found.mark], mark, "{line}");
        }
    }

    #[test]
    fn an_unknown_mark_is_open_and_never_invisible() {
        for (line, state) in [
            ("- [~] a", WorkState::Other),
            ("- [>] a", WorkState::Other),
            ("- […] a", WorkState::Other),
            ("- [❌] a", WorkState::Other),
            ("- [-] a", WorkState::Doing),
            ("- [✔\u{FE0F}] a", WorkState::Done),
        ] {
            let found = parse(line).unwrap();
            assert_eq!((found.state, found.nonstandard), (state, true), "{line}");
        }
    }

    #[test]
    fn brackets_with_text_are_no_boxes() {
        for line in [
            "- [x](https://example.org) link",
            "- [x][ref]",
            "- [P] parallel",
            "- [1] footnote",
            "- [A-1] assumption",
            "- [2026-03-04] date",
            "[ ] no bullet",
            "text with [ ] inside",
            "- text with [ ] inside",
            "| - [ ] |",
            "- [ ",
            "-",
            "",
            "1.",
            "- [完] letter",
            "**[x]** means done, **[ ]** open",
            "*[ ]* is open",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
