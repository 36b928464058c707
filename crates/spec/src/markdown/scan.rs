//! Which lines of a Markdown file speak, and which are front matter, code, comment or quotation.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::Code;
use crate::markdown::boxes;
use crate::text::Text;

/// What a line is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Anything that speaks.
    Text,
    /// YAML between rules at the start of the file.
    FrontMatter,
    /// A code fence, its delimiters included.
    Fence,
    /// Wholly inside an HTML comment.
    Comment,
    /// A quotation.
    Quote,
}

/// A line with what hides parts of it.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    /// From 1.
    pub number: u32,
    /// Offset in the body of the [`Text`].
    pub offset: usize,
    /// Without the line end.
    pub raw: &'a str,
    /// What it is part of.
    pub kind: Kind,
    /// Bytes of the line that are comment.
    comments: Vec<Range<usize>>,
}

impl Line<'_> {
    /// The line with blanks for comments, of the same length.
    pub(crate) fn masked(&self) -> Cow<'_, str> {
        if self.comments.is_empty() {
            return Cow::Borrowed(self.raw);
        }
        let mut masked = String::with_capacity(self.raw.len());
        let mut at = 0;
        for range in &self.comments {
            masked.push_str(self.raw.get(at..range.start).unwrap_or_default());
            masked.extend(std::iter::repeat_n(' ', range.len()));
            at = range.end;
        }
        masked.push_str(self.raw.get(at..).unwrap_or_default());
        Cow::Owned(masked)
    }

    /// The text from a byte on, without comments, trimmed.
    pub(crate) fn clean(&self, from: usize) -> String {
        let mut out = String::new();
        let mut at = from;
        for range in self.comments.iter().filter(|range| range.end > from) {
            out.push_str(self.raw.get(at..range.start.max(at)).unwrap_or_default());
            at = range.end;
            if out.is_empty() || out.ends_with(char::is_whitespace) {
                let rest = self.raw.get(at..).unwrap_or_default();
                at += rest.len() - rest.trim_start().len();
            }
        }
        out.push_str(self.raw.get(at..).unwrap_or_default());
        out.trim().to_owned()
    }
}

/// A whole file, line by line.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    /// Every line of the file.
    pub lines: Vec<Line<'a>>,
    /// Warnings with their lines.
    pub notes: Vec<(Code, u32)>,
    /// The line of the first box that is hidden.
    pub hidden_box: Option<u32>,
}

/// Sorts the lines of a file.
pub(crate) fn scan<'a>(text: &Text<'a>) -> Scan<'a> {
    let raw: Vec<(u32, usize, &'a str)> = text.numbered().collect();
    let mut scanner = Scanner {
        body: text.body,
        raw: &raw,
        out: Scan { lines: Vec::with_capacity(raw.len()), notes: Vec::new(), hidden_box: None },
        comment_end: 0,
        comments_never_end: false,
        never_closed: [usize::MAX; 2],
    };
    let mut index = scanner.front_matter();
    while index < raw.len() {
        index = scanner.take(index);
    }
    scanner.out
}

struct Scanner<'s, 'a> {
    body: &'a str,
    raw: &'s [(u32, usize, &'a str)],
    out: Scan<'a>,
    /// Offset in the body at which the comment that was opened last ends.
    comment_end: usize,
    comments_never_end: bool,
    /// For backquotes and tildes: the shortest fence that is known to have no end below.
    never_closed: [usize; 2],
}

impl Scanner<'_, '_> {
    /// Takes the line at `index`, or the whole fence that it opens; answers the next index.
    fn take(&mut self, index: usize) -> usize {
        let (number, offset, raw) = self.raw[index];
        let comments = self.comments_of(number, offset, raw);
        let line = Line { number, offset, raw, kind: Kind::Text, comments };
        for range in &line.comments {
            let inner = raw[range.clone()].trim_start_matches("<!--");
            self.hide(Code::CheckboxInComment, number, inner);
        }
        let masked = line.masked();
        let mut kind = Kind::Text;
        if masked.trim().is_empty() && !line.comments.is_empty() {
            kind = Kind::Comment;
        } else if masked.trim_start().starts_with('>') {
            kind = Kind::Quote;
            self.hide(Code::CheckboxInQuote, number, masked.trim_start_matches(['>', ' ', '\t']));
        } else if let Some(fence) = Fence::opened_by(&masked) {
            if let Some(last) = self.fence_end(index, fence) {
                self.out.lines.push(line_of(self.raw[index], Kind::Fence));
                for inside in &self.raw[index + 1..last] {
                    self.hide(Code::CheckboxInFence, inside.0, inside.2);
                    self.out.lines.push(line_of(*inside, Kind::Fence));
                }
                self.out.lines.push(line_of(self.raw[last], Kind::Fence));
                return last + 1;
            }
            self.out.notes.push((Code::UnclosedFence, number));
        }
        drop(masked);
        self.out.lines.push(Line { kind, ..line });
        index + 1
    }

    /// Parts of the line that are comment. Comments are not looked for in code spans.
    fn comments_of(&mut self, number: u32, offset: usize, raw: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut at = 0;
        if self.comment_end > offset {
            at = (self.comment_end - offset).min(raw.len());
            found.push(0..at);
        }
        while !self.comments_never_end
            && let Some(start) = comment_start(raw, at)
        {
            let begin = offset + start;
            // `<!-->` is a whole comment.
            let Some(length) = self.body[begin + 2..].find("-->") else {
                self.comments_never_end = true;
                self.out.notes.push((Code::UnclosedComment, number));
                break;
            };
            let end = begin + 2 + length + 3;
            self.comment_end = end;
            at = (end - offset).min(raw.len());
            found.push(start..at);
        }
        found
    }

    /// The index of the line that closes the fence opened at `index`.
    fn fence_end(&mut self, index: usize, fence: Fence) -> Option<usize> {
        let known = &mut self.never_closed[usize::from(fence.mark == '~')];
        if fence.length >= *known {
            return None;
        }
        let end = (index + 1..self.raw.len()).find(|at| fence.closed_by(self.raw[*at].2));
        if end.is_none() {
            *known = fence.length;
        }
        end
    }

    /// Notes a box that is not counted: each reason once, with the first line.
    fn hide(&mut self, code: Code, number: u32, line: &str) {
        if boxes::parse(line).is_none() {
            return;
        }
        if self.out.notes.iter().all(|(known, _)| *known != code) {
            self.out.notes.push((code, number));
        }
        self.out.hidden_box.get_or_insert(number);
    }

    /// Takes the front matter: from a rule in the first line to the next one, if what is between looks like YAML.
    fn front_matter(&mut self) -> usize {
        let is_rule = |line: &str| line.trim_end() == "---";
        if !self.raw.first().is_some_and(|(_, _, line)| is_rule(line)) {
            return 0;
        }
        let Some(end) = self.raw.iter().skip(1).position(|(_, _, line)| is_rule(line) || line.trim_end() == "...")
        else {
            return 0;
        };
        let inside = &self.raw[1..=end];
        let keys = inside.iter().filter(|(_, _, line)| is_yaml_key(line)).count();
        if keys == 0 || !inside.iter().all(|(_, _, line)| is_yaml_like(line)) {
            return 0;
        }
        for line in &self.raw[..=end + 1] {
            self.out.lines.push(line_of(*line, Kind::FrontMatter));
        }
        end + 2
    }
}

fn line_of((number, offset, raw): (u32, usize, &str), kind: Kind) -> Line<'_> {
    Line { number, offset, raw, kind, comments: Vec::new() }
}

/// Where `<!--` opens on a line, from `at` on, code spans left out.
fn comment_start(raw: &str, mut at: usize) -> Option<usize> {
    if !raw[at..].contains("<!--") {
        return None;
    }
    while let Some(next) = raw[at..].find(['`', '<']) {
        let start = at + next;
        if raw[start..].starts_with("<!--") {
            return Some(start);
        }
        let run = raw[start..].len() - raw[start..].trim_start_matches('`').len();
        at = start + run.max(1);
        if run > 0
            && let Some(close) = code_span_end(&raw[at..], run)
        {
            at += close;
        }
    }
    None
}

/// The end of a code span opened by `run` backquotes, if it ends on this line.
fn code_span_end(rest: &str, run: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(next) = rest[at..].find('`') {
        let start = at + next;
        let length = rest[start..].len() - rest[start..].trim_start_matches('`').len();
        at = start + length;
        if length == run {
            return Some(at);
        }
    }
    None
}

fn is_yaml_key(line: &str) -> bool {
    line.split_once(':').is_some_and(|(key, value)| {
        !key.is_empty()
            && !key.starts_with(['#', '-', ' ', '\t'])
            && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ' | '"' | '\''))
            && (value.is_empty() || value.starts_with([' ', '\t', '\r']))
    })
}

fn is_yaml_like(line: &str) -> bool {
    line.trim().is_empty()
        || is_yaml_key(line)
        || line.starts_with([' ', '\t', '#', '}', ']'])
        || line.starts_with("- ") && boxes::parse(line).is_none()
}

/// An open code fence.
#[derive(Debug, Clone, Copy)]
struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    /// At any indent, also behind a list marker.
    fn opened_by(line: &str) -> Option<Self> {
        let mut text = line.trim_start();
        if let Some(marker) = boxes::list_marker(text)
            && text[marker..].starts_with([' ', '\t'])
        {
            text = text[marker..].trim_start();
        }
        let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let length = text.len() - info.len();
        (length >= 3 && (mark == '~' || !info.contains('`'))).then_some(Self { mark, length })
    }

    fn closed_by(self, line: &str) -> bool {
        let text = line.trim();
        text.len() >= self.length && text.chars().all(|c| c == self.mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> (String, Vec<(Code, u32)>) {
        let text = Text::decode("t", source.as_bytes()).unwrap();
        let scan = scan(&text);
        let letters = scan.lines.iter().map(|line| match line.kind {
            Kind::Text => 't',
            Kind::FrontMatter => 'm',
            Kind::Fence => 'f',
            Kind::Comment => 'c',
            Kind::Quote => 'q',
        });
        (letters.collect(), scan.notes)
    }

    #[test]
    fn a_fence_ends_with_its_own_mark_and_length() {
        assert_eq!(kinds("a\n~~~~x\n```\n~~~\n~~~~\nb").0, "tfffft");
        assert_eq!(kinds("- a\n  ```\n  - [ ] b\n  ```\nc"), ("tffft".into(), vec![(Code::CheckboxInFence, 3)]));
        assert_eq!(kinds("```one line``` code\nb").0, "tt");
        assert_eq!(kinds("- ```sh\n  x\n  ```\nb").0, "ffft");
    }

    #[test]
    fn a_fence_without_end_is_text() {
        assert_eq!(kinds("```\na\n~~~\nb\n~~~\nc"), ("ttffft".into(), vec![(Code::UnclosedFence, 1)]));
    }

    #[test]
    fn comments_hide_what_is_in_them_but_not_what_is_in_code() {
        assert_eq!(kinds("a <!-- b\n- [ ] c\n--> d"), ("tct".into(), vec![(Code::CheckboxInComment, 2)]));
        assert_eq!(kinds("say `<!--` here\nb").0, "tt");
        assert_eq!(kinds("a <!-- b\nc"), ("tt".into(), vec![(Code::UnclosedComment, 1)]));
        assert_eq!(kinds("<!-- - [ ] a -->"), ("c".into(), vec![(Code::CheckboxInComment, 1)]));
        assert_eq!(kinds("<!-->\n- [ ] a\n<!--->\n<!-- -->").0, "ctcc");
    }

    #[test]
    fn a_rule_in_the_first_line_is_front_matter_only_with_keys() {
        assert_eq!(kinds("---\na: b\nlist:\n- c\n---\nd").0, "mmmmmt");
        assert_eq!(kinds("---\n\n# Title\n\n- [ ] a\n\n---\nd").0, "tttttttt");
        assert_eq!(kinds("---\na: b\n").0, "tt");
    }

    #[test]
    fn comments_leave_one_blank_in_the_text() {
        let text = Text::decode("t", b"x 1.2 <!-- a --> B <!-- c -->").unwrap();
        assert_eq!(scan(&text).lines[0].clean(2), "1.2 B");
    }
}
