//! What the agent said and did in one call, from its transcript, for people.

use std::fmt::Write as _;

use ralphloop_agent::decoder::Decoder;
use ralphloop_agent::event::{AgentEvent, Stream};
use ralphloop_agent::plan;
use ralphloop_core::ids::{AttemptId, CallNumber};
use ralphloop_engine::runs::RunFolder;
use ralphloop_engine::transcript::{self, Reader, Record};

use crate::output;

/// A line about anything but the agent's own words is cut to this many columns.
const WIDEST: usize = 400;

/// The lines of a call's talk; empty if its transcript is gone.
pub(super) fn of_call(folder: &RunFolder, attempt: &AttemptId, call: CallNumber) -> String {
    let path = transcript::path_of(folder.path(), attempt, call);
    let Some(format) = transcript::format_of(&path) else { return String::new() };
    let Ok(reader) = Reader::open(&path) else { return String::new() };
    let mut text = String::new();
    let mut decoder = Decoder::new(format, "", u32::MAX);
    let mut events = Vec::new();
    for record in reader {
        match record {
            Ok(record) => {
                let Some(stream) = stream_of(&record) else { continue };
                decoder.push(stream, &record.bytes, &mut events);
                for event in events.drain(..) {
                    tell(&event, &mut text);
                }
            }
            Err(error) => {
                let _ =
                    writeln!(text, "  (the transcript cannot be read on: {})", output::one_line(&error.to_string()));
                break;
            }
        }
    }
    decoder.pause(&mut events);
    for event in &events {
        tell(event, &mut text);
    }
    text
}

fn stream_of(record: &Record) -> Option<Stream> {
    match record.stream {
        transcript::Stream::Out => Some(Stream::Stdout),
        transcript::Stream::Err => Some(Stream::Stderr),
        transcript::Stream::Note => None,
    }
}

fn tell(event: &AgentEvent, text: &mut String) {
    let line = match event {
        AgentEvent::Said { text: said } => return quote("agent", said, text),
        AgentEvent::SubAgentSaid { text: said } => return quote("sub-agent", said, text),
        AgentEvent::ToolStarted { name, input, .. } => format!("tool: {name} {input}"),
        AgentEvent::ToolFinished { ok: false, output, .. } => format!("tool failed: {output}"),
        AgentEvent::Plan { steps } => return quote("plan", &plan::in_full(steps), text),
        AgentEvent::PermissionDenied { tool } => format!("permission denied: {tool}"),
        AgentEvent::Notice { text } => format!("note: {text}"),
        AgentEvent::Raw { text, .. } => format!("output: {text}"),
        AgentEvent::Retrying { attempt, of, why, .. } => format!("retrying ({attempt} of {of}): {why}"),
        AgentEvent::SessionStarted { .. }
        | AgentEvent::Thought { .. }
        | AgentEvent::ToolFinished { .. }
        | AgentEvent::Repeating { .. }
        | AgentEvent::Usage { .. }
        | AgentEvent::RateLimited { .. }
        | AgentEvent::Ended { .. } => return,
    };
    let _ = writeln!(text, "  {}", output::cut(&output::one_line(&line), WIDEST));
}

/// The words in full, their lines kept.
fn quote(who: &str, said: &str, text: &mut String) {
    let mut label = format!("{who}: ");
    for line in said.trim().lines() {
        let _ = writeln!(text, "  {label}{}", output::harmless(line));
        label = " ".repeat(label.len());
    }
}
