//! Gemini CLI: `--output-format stream-json`, ended by a `result`. It echoes the prompt, and its answers come in pieces.

use ralphloop_core::evidence::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::classify::class_of_failure;
use crate::event::AgentEvent;
use crate::lenient::{Number, ObjectOrText, Text};
use crate::trace::{Dialect, Sink, Terminal};

/// A message in pieces is passed on when it is longer than this, in bytes.
const LONG: usize = 32 << 10;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    session_id: Text<'a>,
    #[serde(borrow)]
    model: Text<'a>,
    #[serde(borrow)]
    role: Text<'a>,
    #[serde(borrow)]
    content: Text<'a>,
    #[serde(borrow)]
    tool_name: Text<'a>,
    #[serde(borrow)]
    tool_id: Text<'a>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Text<'a>,
    #[serde(borrow)]
    output: Text<'a>,
    #[serde(borrow)]
    severity: Text<'a>,
    #[serde(borrow)]
    message: Text<'a>,
    #[serde(borrow)]
    error: ObjectOrText<'a, Error<'a>>,
    #[serde(borrow)]
    stats: ObjectOrText<'a, Stats>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Error<'a> {
    #[serde(borrow)]
    message: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Stats {
    /// Cached ones included.
    input_tokens: Number,
    cached: Number,
    output_tokens: Number,
}

/// The state between two lines.
#[derive(Debug, Default)]
pub(crate) struct Gemini {
    usage: Usage,
    /// What was said since the last tool call.
    text: String,
    /// How much of that was passed on.
    passed_on: usize,
    last_error: Option<String>,
    /// The client stopped the agent by itself, though it calls that a success.
    halted: Option<String>,
}

impl Dialect for Gemini {
    fn line(&mut self, line: &str, sink: &mut Sink<'_>) -> bool {
        let Ok(event) = serde_json::from_str::<Line<'_>>(line) else { return false };
        let kind = event.kind.as_str();
        if kind == Some("message") && event.role.is("assistant") {
            let piece = event.content.as_str().unwrap_or_default();
            sink.notes.alive(piece);
            self.text.push_str(piece);
            if self.text.len() - self.passed_on > LONG {
                self.pass_on(sink);
            }
            return true;
        }
        if !matches!(kind, Some("init" | "message" | "tool_use" | "tool_result" | "error" | "result")) {
            return false;
        }
        self.pass_on(sink);
        match kind {
            Some("init") => sink.started(event.model.owned(), None, event.session_id.owned()),
            Some("tool_use") => {
                self.text.clear();
                self.passed_on = 0;
                let id = event.tool_id.as_str().unwrap_or_default();
                let input = event.parameters.map_or("", RawValue::get);
                sink.tool_started(id, event.tool_name.as_str().unwrap_or_default(), input, false);
            }
            Some("tool_result") => {
                let output = event.output.as_str().unwrap_or_default();
                sink.tool_returned(event.tool_id.as_str().unwrap_or_default(), !event.status.is("error"), output);
            }
            Some("error") => self.remark(&event, sink),
            Some("result") => self.result(&event, sink),
            // `message` of the user is the echo of the prompt.
            _ => {}
        }
        true
    }

    fn pause(&mut self, sink: &mut Sink<'_>) {
        self.pass_on(sink);
    }

    fn finish(&mut self, sink: &mut Sink<'_>) {
        self.pass_on(sink);
    }

    fn usage(&self) -> Usage {
        self.usage
    }
}

impl Gemini {
    fn pass_on(&mut self, sink: &mut Sink<'_>) {
        let rest = self.text.get(self.passed_on..).unwrap_or_default();
        if !rest.trim().is_empty() {
            sink.said(rest);
        }
        self.passed_on = self.text.len();
    }

    fn remark(&mut self, event: &Line<'_>, sink: &mut Sink<'_>) {
        let words = event.message.as_str().unwrap_or_default();
        sink.notice(words);
        if event.severity.is("warning") {
            if words.starts_with("Loop detected") || words.starts_with("Maximum session turns") {
                self.halted = Some(words.to_owned());
            }
        } else {
            self.last_error = Some(words.to_owned());
        }
    }

    fn result(&mut self, event: &Line<'_>, sink: &mut Sink<'_>) {
        if let Some(stats) = event.stats.object() {
            self.usage.input_tokens = stats.input_tokens.count();
            self.usage.output_tokens = stats.output_tokens.count();
            self.usage.cache_read_tokens = stats.cached.count();
            sink.tell(AgentEvent::Usage { so_far: self.usage });
        }
        let terminal = if event.status.is("success") {
            match self.halted.take() {
                Some(words) => Terminal::failed(words, None),
                None => Terminal::finished(&self.text),
            }
        } else {
            let stated = event.error.object().and_then(|error| error.message.as_str()).or(event.error.text());
            let words = stated.or(self.last_error.as_deref()).unwrap_or("the client reported an error").to_owned();
            Terminal::failed(&words, class_of_failure(&words))
        };
        sink.end(terminal, None);
    }
}
