//! What is remembered of a stream while it runs, in bounded memory: the last lines and the last sign of life.

use std::borrow::Cow;

use memchr::{memchr, memrchr};

use crate::event::{AgentEvent, Stream};
use crate::lines::{Line, Lines};
use crate::sanitize;

/// How much of one line is shown, in bytes.
pub(crate) const PREVIEW: usize = 400;
/// How many lines that are no events are reported as such; the rest is only counted.
const RAW_EVENTS: u32 = 1000;
/// How much of stderr is kept for the reason of a failure, in bytes.
const STDERR_TAIL: usize = 8 << 10;
const STDERR_LINE: usize = 16 << 10;

/// The last lines of a text, up to a number of bytes.
#[derive(Debug)]
pub(crate) struct Tail {
    /// Each line with its end. Lines that are too old stay until there are as many bytes of them again: dropping each by itself
    /// would cost more than keeping it.
    text: String,
    limit: usize,
}

impl Tail {
    pub(crate) fn new(limit: usize) -> Self {
        Self { text: String::new(), limit }
    }

    pub(crate) fn push(&mut self, line: &str) {
        self.text.push_str(&sanitize::tail(line, self.limit));
        self.text.push('\n');
        if self.text.len() > 2 * self.limit {
            self.text.drain(..self.start());
        }
    }

    pub(crate) fn lines(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.text[self.start()..].split_terminator('\n')
    }

    pub(crate) fn text(&self) -> &str {
        let text = &self.text[self.start()..];
        text.strip_suffix('\n').unwrap_or(text)
    }

    /// Where the lines begin that count: so many as are not longer than the limit together, or the last one.
    fn start(&self) -> usize {
        let Some(beyond) = self.text.len().checked_sub(self.limit + 1) else { return 0 };
        let after = |end: Option<usize>| end.map_or(0, |end| end + 1);
        let first = beyond + after(memchr(b'\n', &self.text.as_bytes()[beyond..]));
        if first < self.text.len() {
            return first;
        }
        after(memrchr(b'\n', &self.text.as_bytes()[..first - 1]))
    }
}

/// What every decoder keeps.
#[derive(Debug)]
pub(crate) struct Notes {
    stderr_lines: Lines,
    pub(crate) stderr: Tail,
    /// Lines on stdout that are no events.
    pub(crate) strays: Tail,
    /// A byte came that is not blank.
    pub(crate) spoke: bool,
    /// The last that a person could read.
    pub(crate) last_output: String,
    raw_events: u32,
}

impl Notes {
    pub(crate) fn new() -> Self {
        Self {
            stderr_lines: Lines::new(STDERR_LINE),
            stderr: Tail::new(STDERR_TAIL),
            strays: Tail::new(STDERR_TAIL),
            spoke: false,
            last_output: String::new(),
            raw_events: 0,
        }
    }

    pub(crate) fn stderr(&mut self, bytes: &[u8], out: &mut Vec<AgentEvent>) {
        let mut lines = std::mem::replace(&mut self.stderr_lines, Lines::new(0));
        lines.push(bytes, |line| self.stderr_line(&line, out));
        self.stderr_lines = lines;
    }

    pub(crate) fn finish_stderr(&mut self, out: &mut Vec<AgentEvent>) {
        let mut lines = std::mem::replace(&mut self.stderr_lines, Lines::new(0));
        lines.finish(|line| self.stderr_line(&line, out));
    }

    fn stderr_line(&mut self, line: &Line<'_>, out: &mut Vec<AgentEvent>) {
        let text = decode(line);
        self.stderr.push(&sanitize::sanitize(&text));
        self.raw(Stream::Stderr, &text, out);
    }

    /// A line of stdout that is no event.
    pub(crate) fn stray(&mut self, text: &str, out: &mut Vec<AgentEvent>) {
        self.strays.push(&preview(text));
        self.raw(Stream::Stdout, text, out);
    }

    fn raw(&mut self, stream: Stream, text: &str, out: &mut Vec<AgentEvent>) {
        self.alive(text);
        if self.raw_events < RAW_EVENTS && !text.trim_start().is_empty() {
            self.raw_events += 1;
            out.push(AgentEvent::Raw { stream, text: preview(text) });
        }
    }

    /// Remembers `text` as the last sign of life, if it says anything.
    pub(crate) fn alive(&mut self, text: &str) {
        let text = text.trim();
        if !text.is_empty() {
            self.spoke = true;
            self.last_output.clear();
            self.last_output.push_str(&sanitize::sanitize(&sanitize::tail(text, PREVIEW)));
        }
    }
}

/// The head of a text, sanitized.
pub(crate) fn preview(text: &str) -> String {
    sanitize::sanitize(&sanitize::head(text, PREVIEW)).into_owned()
}

/// A line as text, with what is not UTF-8 replaced; of a line that was too long, its head.
pub(crate) fn decode<'a>(line: &Line<'a>) -> Cow<'a, str> {
    match line {
        // Whole text is told much sooner than it is searched for what has to be replaced.
        Line::Whole(bytes) | Line::TooLong { head: bytes } => {
            std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn of_a_text_as_many_of_the_last_lines_are_kept_as_fit_and_the_last_one_in_any_case(
            lines in prop::collection::vec("[ab]{0,12}", 0..40),
            limit in 4usize..20,
        ) {
            let mut tail = Tail::new(limit);
            for (pushed, line) in lines.iter().enumerate() {
                tail.push(line);
                let mut fit: Vec<String> = Vec::new();
                for line in lines[..=pushed].iter().rev() {
                    let line = sanitize::tail(line, limit).into_owned();
                    let length: usize = fit.iter().map(|line| line.len() + 1).sum();
                    if !fit.is_empty() && length + line.len() + 1 > limit {
                        break;
                    }
                    fit.insert(0, line);
                }
                prop_assert_eq!(tail.lines().collect::<Vec<_>>(), fit.clone());
                prop_assert_eq!(tail.text(), fit.join("\n"));
                prop_assert!(tail.text.len() <= 2 * limit);
            }
        }
    }
}
