//! JSON as agents break it: what the characters alone say about the mend.

use serde::de::IgnoredAny;

use super::Mend;
use crate::edit::Edit;
use crate::text::Text;

/// The text is JSON.
pub(super) fn is_valid(text: &Text<'_>) -> bool {
    serde_json::from_str::<IgnoredAny>(text.body).is_ok()
}

/// Faults of a text that is no JSON.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Comments, commas to spare, line breaks in texts.
    lexical: Vec<Mend>,
    /// Places at which a comma is missing between two values.
    commas: Vec<Mend>,
}

impl Found {
    pub(super) fn all(&self) -> Vec<Mend> {
        let mut all: Vec<Mend> = self.lexical.iter().chain(&self.commas).cloned().collect();
        all.sort_by_key(|mend| mend.edit.offset);
        all
    }

    pub(super) fn without_commas(self) -> Vec<Mend> {
        self.lexical
    }
}

/// What the last thing was that mattered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// An opening bracket, a colon, or nothing yet.
    Open,
    /// A comma, at this offset.
    Comma(usize),
    /// A value or a key that ends at this offset.
    Value(usize),
}

/// Every fault that the scan meets. It knows tokens, not the grammar; the caller proves the result.
pub(super) fn mends(text: &Text<'_>) -> Found {
    let mut scan = Scan { text, at: 0, last: Last::Open, found: Found::default() };
    while let Some(rest) = text.body.get(scan.at..).filter(|rest| !rest.is_empty()) {
        scan.step(rest);
    }
    scan.found
}

struct Scan<'t, 'a> {
    text: &'t Text<'a>,
    at: usize,
    last: Last,
    found: Found,
}

impl Scan<'_, '_> {
    fn step(&mut self, rest: &str) {
        let first = rest.chars().next().unwrap_or(' ');
        match first {
            '"' => self.string(rest),
            '/' if rest.starts_with("//") => self.comment(rest, rest.find('\n').unwrap_or(rest.len()), ""),
            '/' if rest.starts_with("/*") => {
                let end = rest.find("*/").map_or(rest.len(), |end| end + 2);
                self.comment(rest, end, " ");
            }
            ',' => {
                self.last = Last::Comma(self.at);
                self.at += 1;
            }
            '{' | '[' => {
                self.value();
                self.last = Last::Open;
                self.at += 1;
            }
            '}' | ']' => {
                self.spare_comma();
                self.at += 1;
                self.last = Last::Value(self.at);
            }
            ':' => {
                self.last = Last::Open;
                self.at += 1;
            }
            c if c.is_ascii_alphanumeric() || matches!(c, '-' | '+') => {
                self.value();
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '+' | '.'));
                self.at += end.unwrap_or(rest.len());
                self.last = Last::Value(self.at);
            }
            c if c.is_whitespace() => self.at += c.len_utf8(),
            // Dots and whatever else nobody can mend without knowing what was meant.
            c => {
                self.at += c.len_utf8();
                self.last = Last::Open;
            }
        }
    }

    /// A value begins: there should have been a comma if another one has just ended.
    fn value(&mut self) {
        if let Last::Value(end) = self.last {
            let edit = Edit { offset: self.text.base + end, remove: String::new(), insert: ",".into() };
            let what = "a comma was put between two values".to_owned();
            self.found.commas.push(Mend { line: self.text.line(end.saturating_sub(1)), what, edit });
        }
    }

    fn spare_comma(&mut self) {
        if let Last::Comma(at) = self.last {
            self.lexical(at, ",", "", "a comma before the closing bracket was removed".to_owned());
        }
    }

    fn comment(&mut self, rest: &str, end: usize, instead: &str) {
        let comment = &rest[..end];
        // Blanks before a comment at the end of a line go with it.
        let before = self.text.body.get(..self.at).unwrap_or_default();
        let lead = if instead.is_empty() { &before[before.trim_end_matches([' ', '\t']).len()..] } else { "" };
        let comment = comment.strip_suffix('\r').unwrap_or(comment);
        let removed = format!("{lead}{comment}");
        let what = format!("the comment {comment:?} was removed");
        self.lexical(self.at - lead.len(), &removed, instead, what);
        self.at += end;
    }

    fn string(&mut self, rest: &str) {
        self.value();
        let mut chars = rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += at + 1;
                    self.last = Last::Value(self.at);
                    return;
                }
                '\\' => drop(chars.next()),
                c if c < ' ' => {
                    let escaped = match c {
                        '\n' => "\\n".to_owned(),
                        '\r' => "\\r".to_owned(),
                        '\t' => "\\t".to_owned(),
                        other => format!("\\u{:04x}", u32::from(other)),
                    };
                    let what = match c {
                        '\n' | '\r' => format!("a line break inside a text became {escaped}"),
                        _ => format!("a control character inside a text became {escaped}"),
                    };
                    self.lexical(self.at + at, &c.to_string(), &escaped, what);
                }
                _ => {}
            }
        }
        // A text without an end: nothing behind its beginning can be told.
        self.found.lexical.retain(|mend| mend.edit.offset < self.text.base + self.at);
        self.at = self.text.body.len();
    }

    fn lexical(&mut self, at: usize, remove: &str, insert: &str, what: String) {
        let edit = Edit { offset: self.text.base + at, remove: remove.to_owned(), insert: insert.to_owned() };
        self.found.lexical.push(Mend { line: self.text.line(at), what, edit });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::apply;

    fn mended(source: &str) -> String {
        let text = Text::decode("prd.json", source.as_bytes()).unwrap();
        let edits: Vec<Edit> = mends(&text).all().into_iter().map(|mend| mend.edit).collect();
        String::from_utf8(apply(source.as_bytes(), &edits).unwrap()).unwrap()
    }

    #[test]
    fn each_fault_is_mended_by_the_bytes_at_fault() {
        for (broken, whole) in [
            ("{\"a\": 1, // why\r\n \"b\": 2}", "{\"a\": 1,\r\n \"b\": 2}"),
            ("[1, /* two */ 3]", "[1,   3]"),
            ("{\"a\": [1, 2,], }", "{\"a\": [1, 2] }"),
            ("[{\"a\": 1}\n {\"b\": 2}]", "[{\"a\": 1},\n {\"b\": 2}]"),
            ("{\"a\": true \"b\": -1.5e3 \"c\": \"x\"}", "{\"a\": true, \"b\": -1.5e3, \"c\": \"x\"}"),
            ("[\"one\ntwo\t\"]", "[\"one\\ntwo\\t\"]"),
        ] {
            assert_eq!(mended(broken), whole);
        }
    }

    #[test]
    fn what_looks_like_a_fault_inside_a_text_is_none() {
        let source = "{\"url\": \"http://x//y\", \"t\": \"a \\\" b, ] /* no */\"}";
        assert_eq!(mended(source), source);
    }

    #[test]
    fn a_text_without_an_end_is_left_alone() {
        let source = "[\"a\nb, 1";
        assert_eq!(mended(source), source);
    }
}
