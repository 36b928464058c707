//! A program that only prints text. Everything on stdout is its message; there is no final event, so the exit status
//! and the last lines are all there is.

use crate::echo;
use crate::event::AgentEvent;
use crate::learning;
use crate::lines::{Line, Lines};
use crate::notes::{Notes, Tail, decode};
use crate::sanitize;

/// How much of one line is kept, in bytes.
const LONGEST_LINE: usize = 64 << 10;
/// How much of the message is kept, from its end, in bytes.
const MESSAGE: usize = 64 << 10;

/// The state between two pieces of a stream.
#[derive(Debug)]
pub(crate) struct Decoder {
    lines: Lines,
    message: Tail,
    prompt: String,
}

/// What was seen of the stream, for the classification of its end.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The end of the output, without the prompt's echo.
    pub(crate) message: String,
    pub(crate) learnings: Vec<String>,
}

impl Decoder {
    pub(crate) fn new(prompt: &str) -> Self {
        Self { lines: Lines::new(LONGEST_LINE), message: Tail::new(MESSAGE), prompt: prompt.to_owned() }
    }

    pub(crate) fn stdout(&mut self, bytes: &[u8], notes: &mut Notes, out: &mut Vec<AgentEvent>) {
        let message = &mut self.message;
        self.lines.push(bytes, |line| said(&line, message, notes, out));
    }

    pub(crate) fn finish(mut self, notes: &mut Notes, out: &mut Vec<AgentEvent>) -> Seen {
        let message = &mut self.message;
        self.lines.finish(|line| said(&line, message, notes, out));
        let lines: Vec<&str> = self.message.lines().collect();
        let message = echo::without_echo(&lines, &self.prompt).join("\n");
        let mut learnings = Vec::new();
        learning::collect(&message, &mut learnings);
        Seen { message, learnings }
    }
}

fn said(line: &Line<'_>, message: &mut Tail, notes: &mut Notes, out: &mut Vec<AgentEvent>) {
    let text = decode(line);
    let text = sanitize::sanitize(&text);
    notes.alive(&text);
    message.push(&text);
    if !text.trim_start().is_empty() {
        out.push(AgentEvent::Said { text: text.into_owned() });
    }
}
