//! OpenCode: `opencode run --format json`. There is no final event: the last step's reason, an error, and the exit
//! status say how it went.

use std::time::Duration;

use ralphloop_core::evidence::Usage;
use ralphloop_core::units::Usd;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::classify::{Class, class_of_failure};
use crate::event::AgentEvent;
use crate::lenient::{Number, ObjectOrText, Text};
use crate::trace::{Dialect, Sink, Terminal};

/// After so many errors or broken answers in a row it is ended, since by itself it would go on for ever.
const IN_VAIN: u32 = 5;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(rename = "sessionID", borrow)]
    session: Text<'a>,
    #[serde(borrow)]
    part: ObjectOrText<'a, Part<'a>>,
    #[serde(borrow)]
    error: ObjectOrText<'a, Error<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    tool: Text<'a>,
    #[serde(rename = "callID", borrow)]
    call: Text<'a>,
    #[serde(borrow)]
    state: ObjectOrText<'a, ToolState<'a>>,
    #[serde(borrow)]
    reason: Text<'a>,
    #[serde(borrow)]
    tokens: ObjectOrText<'a, Tokens<'a>>,
    cost: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ToolState<'a> {
    #[serde(borrow)]
    status: Text<'a>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Text<'a>,
    #[serde(borrow)]
    error: Text<'a>,
    #[serde(borrow)]
    metadata: ObjectOrText<'a, Metadata>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    exit: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Tokens<'a> {
    input: Number,
    output: Number,
    reasoning: Number,
    #[serde(borrow)]
    cache: ObjectOrText<'a, Cache>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cache {
    read: Number,
    write: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Error<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    data: ObjectOrText<'a, ErrorData<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ErrorData<'a> {
    #[serde(borrow)]
    message: Text<'a>,
    status_code: Number,
    #[serde(borrow)]
    response_body: Text<'a>,
    #[serde(borrow)]
    response_headers: ObjectOrText<'a, Headers<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Headers<'a> {
    #[serde(borrow)]
    retry_after: Text<'a>,
}

/// The state between two lines.
#[derive(Debug, Default)]
pub(crate) struct OpenCode {
    usage: Usage,
    begun: bool,
    /// What was said since the last step began.
    text: String,
    /// Why the last step ended; none while one goes on.
    reason: Option<String>,
    failure: Option<Terminal>,
    in_vain: u32,
}

impl Dialect for OpenCode {
    fn line(&mut self, line: &str, sink: &mut Sink<'_>) -> bool {
        let Ok(event) = serde_json::from_str::<Line<'_>>(line) else { return false };
        if !self.begun && event.session.as_str().is_some() {
            self.begun = true;
            sink.started(None, None, event.session.owned());
        }
        let empty = Part::default();
        let part = event.part.object().unwrap_or(&empty);
        match event.kind.as_str() {
            Some("step_start") => {
                self.text.clear();
                self.reason = None;
            }
            Some("text") => {
                let text = part.text.as_str().unwrap_or_default();
                self.text = if self.text.is_empty() { text.to_owned() } else { format!("{}\n{text}", self.text) };
                sink.said(text);
            }
            Some("reasoning") => sink.thought(part.text.as_str().unwrap_or_default()),
            Some("tool_use") => tool_used(part, sink),
            Some("step_finish") => self.step_finished(part, sink),
            Some("error") => self.failed(event.error.object(), sink),
            _ => return false,
        }
        true
    }

    fn finish(&mut self, sink: &mut Sink<'_>) {
        if sink.seen().terminal.is_some() {
            return;
        }
        let ended = self.failure.take().or_else(|| match self.reason.as_deref() {
            Some("stop") => Some(Terminal::finished(&self.text)),
            Some("length") => Some(Terminal::failed("the answer was cut at the model's output limit", None)),
            _ => None,
        });
        if let Some(terminal) = ended {
            sink.settle(Terminal { inferred: true, ..terminal });
        }
    }

    fn usage(&self) -> Usage {
        self.usage
    }
}

impl OpenCode {
    fn step_finished(&mut self, part: &Part<'_>, sink: &mut Sink<'_>) {
        self.reason = part.reason.owned();
        if let Some(tokens) = part.tokens.object() {
            let cache = tokens.cache.object();
            let read = [Some(tokens.input), cache.map(|cache| cache.read), cache.map(|cache| cache.write)];
            let sum = |counts: &[Option<Number>]| {
                counts.iter().flatten().filter_map(|n| n.count()).reduce(u64::saturating_add)
            };
            self.usage = self.usage.plus(Usage {
                input_tokens: sum(&read),
                output_tokens: sum(&[Some(tokens.output), Some(tokens.reasoning)]),
                // Of a model without a price it says 0, which is none.
                cost: part.cost.0.filter(|cost| *cost > 0.0).map(Usd::from_dollars),
                cache_read_tokens: cache.and_then(|cache| cache.read.count()),
                cache_write_tokens: cache.and_then(|cache| cache.write.count()),
                ..Usage::default()
            });
            sink.tell(AgentEvent::Usage { so_far: self.usage });
        }
        if self.reason.as_deref() == Some("unknown") {
            let words = "the answer broke off before its end";
            self.count_in_vain(Terminal::failed(words, Some(Class::Network)), sink);
        } else if self.reason.as_deref() != Some("content-filter") {
            self.in_vain = 0;
            self.failure = None;
        }
    }

    fn failed(&mut self, error: Option<&Error<'_>>, sink: &mut Sink<'_>) {
        let data = error.and_then(|error| error.data.object());
        let name = error.and_then(|error| error.name.as_str()).unwrap_or("error");
        let words = data.and_then(|data| data.message.as_str()).unwrap_or(name);
        sink.notice(words);
        let by_status = || data.and_then(|data| data.status_code.small()).and_then(Class::of_status);
        let by_body = || data.and_then(|data| data.response_body.as_str()).and_then(class_of_failure);
        let class = match name {
            "ContextOverflowError" => Some(Class::PromptTooLong),
            "ProviderAuthError" => Some(Class::SignIn),
            "ContentFilterError" | "MessageAbortedError" => None,
            _ => by_body().or_else(|| class_of_failure(words)).or_else(by_status),
        };
        let headers = data.and_then(|data| data.response_headers.object());
        let retry_after = headers.and_then(|headers| headers.retry_after.as_str()?.trim().parse().ok());
        let terminal = Terminal { retry_after: retry_after.map(Duration::from_secs), ..Terminal::failed(words, class) };
        self.count_in_vain(terminal, sink);
    }

    /// Keeps how the call would end now, and ends it if it turns in a circle.
    fn count_in_vain(&mut self, terminal: Terminal, sink: &mut Sink<'_>) {
        self.in_vain += 1;
        if self.in_vain >= IN_VAIN && sink.seen().terminal.is_none() {
            sink.end(terminal, None);
        } else {
            self.failure = Some(terminal);
        }
    }
}

/// A call, which is told when it is over.
fn tool_used(part: &Part<'_>, sink: &mut Sink<'_>) {
    let Some(state) = part.state.object() else { return };
    let id = part.call.as_str().unwrap_or_default();
    sink.tool_started(id, part.tool.as_str().unwrap_or_default(), state.input.map_or("", RawValue::get), false);
    let exit = state.metadata.object().and_then(|metadata| metadata.exit.0);
    let ok = !state.status.is("error") && exit.is_none_or(|code| code == 0.0);
    sink.tool_returned(id, ok, state.output.as_str().or(state.error.as_str()).unwrap_or_default());
}
