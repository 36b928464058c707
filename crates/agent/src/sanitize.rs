//! Foreign text made harmless and short: the one thing between what an agent writes and a terminal, a commit message or
//! a notification.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// `text` without escape sequences and control characters. Line ends and tabs stay; a carriage return becomes a blank
/// or goes with its newline; characters that turn the direction of text or cannot be seen are dropped.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    if is_plain(text.as_bytes()) || text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => skip_escape(&mut rest),
            '\u{9b}' => skip_control_sequence(&mut rest),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut rest),
            '\r' if rest.peek() != Some(&'\n') => clean.push(' '),
            c if is_harmless(c) => clean.push(c),
            _ => {}
        }
    }
    Cow::Owned(clean)
}

/// Most text is plain, and this is asked of every line: of sixteen bytes at once, without a branch for each.
fn is_plain(bytes: &[u8]) -> bool {
    let is_odd = |byte: u8| !matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    let all_plain = |piece: &[u8]| !piece.iter().fold(false, |any, byte| any | is_odd(*byte));
    let (pieces, rest) = bytes.as_chunks::<16>();
    // What is left over is looked at together with some of what is before it.
    pieces.iter().all(|piece| all_plain(piece))
        && bytes.last_chunk::<16>().map_or_else(|| all_plain(rest), |last| all_plain(last))
}

/// `text` on one line and at most `cells` wide on a terminal, sanitized; a cut is shown by `…`.
pub fn one_line(text: &str, cells: usize) -> String {
    let clean = sanitize(text);
    let mut line = String::new();
    let mut width = 0;
    let words = clean.split_whitespace().flat_map(|word| [" ", word]).skip(1);
    for c in words.flat_map(str::chars) {
        let wide = c.width().unwrap_or(0);
        if width + wide > cells {
            while width + 1 > cells {
                match line.pop() {
                    Some(last) => width -= last.width().unwrap_or(0),
                    None => return line,
                }
            }
            line.push('…');
            return line;
        }
        line.push(c);
        width += wide;
    }
    line
}

/// The first `limit` bytes of `text` or a little less, never inside a character; a cut is shown by `…`.
pub fn head(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(limit)]))
}

/// The last `limit` bytes of `text` or a little less, never inside a character; a cut is shown by `…`.
pub fn tail(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("…{}", &text[text.ceil_char_boundary(text.len() - limit)..]))
}

fn is_harmless(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => false,
        c => !c.is_control(),
    }
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_escape(rest: &mut Rest<'_>) {
    match rest.peek() {
        Some('[') => {
            rest.next();
            skip_control_sequence(rest);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            rest.next();
            skip_string(rest);
        }
        // Two-character sequences, some with intermediate characters (`ESC ( B`).
        Some(' '..='/') => {
            while rest.next_if(|c| matches!(c, ' '..='/')).is_some() {}
            rest.next_if(|c| matches!(c, '0'..='~'));
        }
        Some('0'..='~') => {
            rest.next();
        }
        _ => {}
    }
}

/// Parameters up to the final character. Anything that cannot belong to the sequence ends it and is kept.
fn skip_control_sequence(rest: &mut Rest<'_>) {
    while rest.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    rest.next_if(|c| matches!(c, '@'..='~'));
}

/// A title, clipboard or device string, up to its end. A string that never ends hides no more than its line.
fn skip_string(rest: &mut Rest<'_>) {
    while let Some(c) = rest.next_if(|c| *c != '\n') {
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' if rest.next_if_eq(&'\\').is_some() => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escape_sequences_leave_nothing_behind() {
        let text = "a\u{1b}[2J\u{1b}[?1049hb\u{1b}]0;owned\u{7}c\u{1b}]52;c;cHduZWQ=\u{1b}\\d\u{1b}[31m red \u{1b}[0m\u{1b}(Be";
        assert_eq!(sanitize(text), "abcd red e");
        assert_eq!(sanitize("x\u{9b}31my\u{9d}0;t\u{9c}z"), "xyz");
    }

    #[test]
    fn control_characters_go_and_line_ends_stay() {
        assert_eq!(sanitize("a\r\nb\tc\rd\u{8}\u{0}e\u{7f}"), "a\nb\tc de");
        assert_eq!(sanitize("safe\u{202e}txt"), "safetxt");
        assert!(matches!(sanitize("nothing to do: é 日本 👩‍💻"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_title_that_never_ends_hides_only_its_own_line() {
        assert_eq!(sanitize("a\u{1b}]0;title\nb"), "a\nb");
    }

    #[test]
    fn a_line_is_cut_by_cells_and_not_by_bytes() {
        assert_eq!(one_line("日本語の題", 7), "日本語…");
        assert_eq!(one_line("two\n  lines", 20), "two lines");
        assert_eq!(one_line("abcdef", 4), "abc…");
        assert_eq!(one_line("abc", 0), "");
    }

    #[test]
    fn head_and_tail_never_cut_a_character() {
        assert_eq!(head("日本語", 4), "日…");
        assert_eq!(tail("日本語", 4), "…語");
        assert_eq!(head("ab", 2), "ab");
    }

    proptest! {
        #[test]
        fn whatever_comes_in_no_control_character_comes_out(text in "[\u{1b}\u{9b}\\[\\]0-9;?a-z\u{7}\\n\\r\u{9d}\u{202e}]{0,40}", cells in 0usize..30) {
            prop_assert!(sanitize(&text).chars().all(is_harmless));
            let line = one_line(&text, cells);
            prop_assert!(!line.contains('\n') && unicode_width::UnicodeWidthStr::width(line.as_str()) <= cells);
        }
    }
}
