//! Text from outside on a grid of cells: made harmless, measured, cut and wrapped by what a terminal shows.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Columns of a tab.
const TAB: &str = "    ";

/// Whether a character can make a terminal do something, or turns the direction of writing.
pub fn is_harmful(c: char) -> bool {
    match c {
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}' => true,
        c => c.is_control(),
    }
}

/// The character, or what is shown in its place if it is harmful.
pub fn symbol(c: char) -> char {
    match c {
        c if !is_harmful(c) => c,
        c @ '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\u{7f}' => '\u{2421}',
        _ => char::REPLACEMENT_CHARACTER,
    }
}

/// One line of text without anything that could make a terminal do something: control characters, and those that turn
/// the direction of writing, become symbols; tabs become blanks.
pub fn harmless(line: &str) -> Cow<'_, str> {
    if !line.chars().any(is_harmful) {
        return Cow::Borrowed(line);
    }
    Cow::Owned(line.replace('\t', TAB).chars().map(symbol).collect())
}

/// [`harmless`], with line ends and runs of blanks made one blank.
pub fn one_line(text: &str) -> String {
    harmless(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

/// How many cells a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// What people see as characters, and the cells of each. Of a text without anything but ASCII that is every byte, which
/// needs no tables.
fn pieces(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let (ascii, mut at, mut graphemes) = (text.is_ascii(), 0, text.graphemes(true));
    std::iter::from_fn(move || {
        if !ascii {
            return graphemes.next().map(|grapheme| (grapheme, grapheme.width()));
        }
        let piece = text.get(at..=at)?;
        at += 1;
        Some((piece, piece.width()))
    })
}

/// `text` cut to `cells`, with an ellipsis if something is missing.
pub fn cut(text: &str, cells: usize) -> Cow<'_, str> {
    // A byte takes at most a cell, so that a short text needs no look at its characters.
    if text.len() <= cells || text.width() <= cells {
        return Cow::Borrowed(text);
    }
    let mut kept = String::new();
    let mut used = 0;
    for (grapheme, wide) in pieces(text) {
        if used + wide + 1 > cells {
            break;
        }
        used += wide;
        kept.push_str(grapheme);
    }
    if cells > 0 {
        kept.push('…');
    }
    Cow::Owned(kept)
}

/// The lines of `text`, each made harmless and broken so that it fits into `cells`; where possible between words.
pub fn wrap(text: &str, cells: usize, out: &mut Vec<String>) {
    for line in text.lines() {
        wrap_line(&harmless(line), cells.max(1), out);
    }
}

fn wrap_line(line: &str, cells: usize, out: &mut Vec<String>) {
    if line.len() <= cells || line.width() <= cells {
        out.push(line.to_owned());
        return;
    }
    let mut row = String::new();
    let mut used = 0;
    // Where the row could be broken: after that many bytes and cells.
    let mut blank = (0, 0);
    for (grapheme, wide) in pieces(line) {
        if used + wide > cells && !row.is_empty() {
            let (at, cells_there) = if blank.0 > 0 && grapheme != " " { blank } else { (row.len(), used) };
            let rest = row.split_off(at);
            out.push(std::mem::replace(&mut row, rest));
            used -= cells_there;
            blank = (0, 0);
            if grapheme == " " && row.is_empty() {
                continue;
            }
        }
        if wide > cells {
            // A character that is wider than the whole space cannot be shown.
            row.push('…');
            used += 1;
            continue;
        }
        row.push_str(grapheme);
        used += wide;
        if grapheme == " " {
            blank = (row.len(), used);
        }
    }
    if !row.is_empty() {
        out.push(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, cells: usize) -> Vec<String> {
        let mut out = Vec::new();
        wrap(text, cells, &mut out);
        out
    }

    #[test]
    fn nothing_that_a_terminal_would_obey_is_left() {
        let text = harmless("a\x1b[2J\u{202e}b\x07\tc\u{9b}d");
        assert_eq!(text, "a␛[2J\u{fffd}b␇    c\u{fffd}d");
    }

    #[test]
    fn lines_break_between_words_and_long_words_anywhere() {
        assert_eq!(wrapped("the quick brown fox", 10), ["the quick ", "brown fox"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("a\n\nb", 4), ["a", "", "b"]);
    }

    #[test]
    fn no_row_is_wider_than_the_space_whatever_the_characters() {
        let text = "界面 🧪 测试 e\u{301}e\u{301} 👩‍👩‍👧‍👦 ｗｉｄｅ שלום عالم 界界界界界界界界界界";
        for cells in 1..40 {
            for row in wrapped(text, cells) {
                assert!(width(&row) <= cells, "{row:?} in {cells}");
            }
            assert!(width(&cut(text, cells)) <= cells);
        }
    }

    #[test]
    fn a_cut_says_that_something_is_missing() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("界界", 3), "界…");
        assert_eq!(cut("abc", 0), "");
    }
}
