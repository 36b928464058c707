//! What is remembered of a stream while it runs, in bounded memory: the last lines and the last sign of life.

use std::borrow::Cow;
use std::collections::VecDeque;

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
    lines: VecDeque<String>,
    bytes: usize,
    limit: usize,
}

impl Tail {
    pub(crate) fn new(limit: usize) -> Self {
        Self { lines: VecDeque::new(), bytes: 0, limit }
    }

    pub(crate) fn push(&mut self, line: &str) {
        let line = sanitize::tail(line, self.limit);
        self.bytes += line.len() + 1;
        self.lines.push_back(line.into_owned());
        while self.bytes > self.limit && self.lines.len() > 1 {
            self.bytes -= self.lines.pop_front().map_or(0, |dropped| dropped.len() + 1);
        }
    }

    pub(crate) fn lines(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    pub(crate) fn text(&self) -> String {
        self.lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
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
        if self.raw_events < RAW_EVENTS && !text.trim().is_empty() {
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
