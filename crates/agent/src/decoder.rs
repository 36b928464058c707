//! A running call of an agent: bytes in, events out, and at the end one report.

use std::time::Duration;

use ralphloop_core::evidence::{AgentEnd, AgentReport, Claim, Usage};
use ralphloop_core::ids::StoryId;
use ralphloop_core::signal::{self, SignalGrammar};

pub use crate::acp::Errand;
pub use crate::classify::{Clock, ProcessEnd};
use crate::client::Format;
use crate::event::{AgentEvent, Stream};
use crate::notes::Notes;
use crate::trace::Events;
use crate::{acp, classify, claude, codex, copilot, gemini, opencode, pi, sanitize, text};

/// How much of the final message goes into the report, in bytes.
const LAST_WORDS: usize = 1000;
/// After how many equal calls in a row an agent is said to turn in a circle.
pub const LOOP_AFTER: u32 = 20;

/// Reads what one call of an agent writes. Memory stays bounded however long the stream is, and the events are the
/// same however it is cut into pieces.
#[derive(Debug)]
pub struct Decoder {
    notes: Notes,
    format: OfFormat,
}

#[derive(Debug)]
enum OfFormat {
    Events(Box<Events>),
    Text(text::Decoder),
}

/// What a report needs beyond the stream.
#[derive(Debug)]
pub struct Ending<'a> {
    /// How the process ended.
    pub process: ProcessEnd,
    /// The story that was worked on.
    pub story: &'a StoryId,
    /// What counts as a signal.
    pub grammar: &'a SignalGrammar,
    /// Now and here.
    pub clock: &'a Clock,
    /// How long the call took.
    pub took: Duration,
    /// What signs the client in, if it is a known one.
    pub sign_in: Option<&'a str>,
}

impl Decoder {
    /// For a call that was given `prompt`; its echo is never taken for the agent's own words. After `loop_after` equal
    /// tool calls with equal results in a row, and at each multiple, [`AgentEvent::Repeating`] comes; 0 turns that off.
    pub fn new(format: Format, prompt: &str, loop_after: u32) -> Self {
        let events = match format {
            Format::Claude => Events::new(claude::Claude::default(), loop_after),
            Format::Codex => Events::new(codex::Codex::default(), loop_after),
            Format::OpenCode => Events::new(opencode::OpenCode::default(), loop_after),
            Format::Gemini => Events::new(gemini::Gemini::default(), loop_after),
            Format::Copilot => Events::new(copilot::Copilot::default(), loop_after),
            Format::Pi => Events::new(pi::Pi::default(), loop_after),
            Format::Acp => Events::new(acp::Acp::default(), loop_after),
            Format::Text => return Self { notes: Notes::new(), format: OfFormat::Text(text::Decoder::new(prompt)) },
        };
        let format = OfFormat::Events(Box::new(events));
        Self { notes: Notes::new(), format }
    }

    /// For a call that is talked with: [`Decoder::replies`] has what opens the conversation.
    pub fn talking(errand: Errand, loop_after: u32) -> Self {
        let events = Events::new(acp::Acp::talking(errand), loop_after);
        Self { notes: Notes::new(), format: OfFormat::Events(Box::new(events)) }
    }

    /// What is to be written to the client now, after what was read so far.
    pub fn replies(&mut self) -> Vec<u8> {
        match &mut self.format {
            OfFormat::Events(events) => events.replies(),
            OfFormat::Text(_) => Vec::new(),
        }
    }

    /// What asks the client, before any signal, to end the turn that is under way; empty if there is none, or no such word.
    pub fn farewell(&self) -> &[u8] {
        match &self.format {
            OfFormat::Events(events) => events.farewell(),
            OfFormat::Text(_) => &[],
        }
    }

    /// The client is about to be ended: from now on it is allowed nothing.
    pub fn wind_up(&mut self) {
        if let OfFormat::Events(events) = &mut self.format {
            events.wind_up();
        }
    }

    /// Takes the next bytes of a stream and adds the events in them to `out`.
    pub fn push(&mut self, stream: Stream, bytes: &[u8], out: &mut Vec<AgentEvent>) {
        match (stream, &mut self.format) {
            (Stream::Stderr, _) => self.notes.stderr(bytes, out),
            (Stream::Stdout, OfFormat::Events(decoder)) => decoder.stdout(bytes, &mut self.notes, out),
            (Stream::Stdout, OfFormat::Text(decoder)) => decoder.stdout(bytes, &mut self.notes, out),
        }
    }

    /// Adds to `out` what was read and not told yet, for who looks at a stream that goes on or was cut off: a message that
    /// comes in pieces is told in one otherwise.
    pub fn pause(&mut self, out: &mut Vec<AgentEvent>) {
        if let OfFormat::Events(events) = &mut self.format {
            events.pause(&mut self.notes, out);
        }
    }

    /// The report, once the process is gone and both streams are read. Adds the events of last lines without a newline
    /// to `out`.
    pub fn finish(self, ending: Ending<'_>, out: &mut Vec<AgentEvent>) -> AgentReport {
        self.finish_with_message(ending, out).0
    }

    /// The report, and the whole final message of an agent that finished by itself.
    pub fn finish_with_message(self, ending: Ending<'_>, out: &mut Vec<AgentEvent>) -> (AgentReport, String) {
        let Self { mut notes, format } = self;
        notes.finish_stderr(out);
        let claim_of = |message: &str| signal::claim(message, ending.story, ending.grammar);
        let (mut end, claim, message, usage, learnings, model) = match format {
            OfFormat::Events(decoder) => {
                let (seen, usage) = decoder.finish(&mut notes, out);
                let end = classify::with_events(ending.process, &seen, &notes, ending.clock);
                let message = seen.terminal.map(|terminal| terminal.text).unwrap_or_default();
                (end, claim_of(&message), message, usage, seen.learnings, seen.model)
            }
            OfFormat::Text(decoder) => {
                let seen = decoder.finish(&mut notes, out);
                let claim = claim_of(&seen.message);
                let end = classify::without_events(ending.process, &seen, &claim, &notes, ending.clock);
                (end, claim, seen.message, Usage::default(), seen.learnings, None)
            }
        };
        if let (AgentEnd::SignIn { remedy, .. }, Some(sign_in)) = (&mut end, ending.sign_in) {
            *remedy = Some(sign_in.to_owned());
        }
        // Only an agent that came to its own end has a final message.
        let (claim, last_words) = match end {
            AgentEnd::Finished | AgentEnd::PermissionDenied { .. } => {
                (claim, sanitize::tail(message.trim(), LAST_WORDS).into_owned())
            }
            _ => (Claim::None { near_miss: None }, String::new()),
        };
        let message = if end == AgentEnd::Finished { message } else { String::new() };
        (
            AgentReport { end, claim, last_words, handover: String::new(), usage, took: ending.took, learnings, model },
            message,
        )
    }
}
