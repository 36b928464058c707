//! GitHub Copilot CLI: `--output-format json`, ended by a `result` with the exit code that it wants. It echoes the
//! prompt twice.

use std::time::Duration;

use ralphloop_core::evidence::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::classify::{Class, class_of_failure};
use crate::lenient::{Flag, ListOrText, Number, ObjectOrText, Text};
use crate::trace::{Dialect, Sink, Terminal};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    data: ObjectOrText<'a, Data<'a>>,
    #[serde(rename = "sessionId", borrow)]
    session: Text<'a>,
    #[serde(rename = "exitCode")]
    exit_code: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Data<'a> {
    #[serde(borrow)]
    content: Text<'a>,
    #[serde(borrow)]
    tool_requests: ListOrText<'a, Request<'a>>,
    #[serde(borrow)]
    parent_tool_call_id: Text<'a>,
    #[serde(borrow)]
    model: Text<'a>,
    #[serde(borrow)]
    tool_call_id: Text<'a>,
    #[serde(borrow)]
    tool_name: Text<'a>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    success: Flag,
    #[serde(borrow)]
    result: ObjectOrText<'a, ToolResult<'a>>,
    #[serde(borrow)]
    error_type: Text<'a>,
    #[serde(borrow)]
    message: Text<'a>,
    status_code: Number,
    #[serde(borrow)]
    error_message: Text<'a>,
    retry_attempt: Number,
    aborted: Flag,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Request<'a> {
    #[serde(borrow)]
    tool_call_id: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ToolResult<'a> {
    #[serde(borrow)]
    content: Text<'a>,
}

/// The state between two lines.
#[derive(Debug, Default)]
pub(crate) struct Copilot {
    begun: bool,
    /// The last message, if it asked for no tool.
    text: String,
    failure: Option<Terminal>,
    /// How the last request ended.
    outcome: Option<String>,
    aborted: bool,
}

impl Dialect for Copilot {
    fn line(&mut self, line: &str, sink: &mut Sink<'_>) -> bool {
        let Ok(event) = serde_json::from_str::<Line<'_>>(line) else { return false };
        let empty = Data::default();
        let data = event.data.object().unwrap_or(&empty);
        match event.kind.as_str() {
            Some("assistant.message") => self.message(data, sink),
            Some("assistant.reasoning") => sink.thought(data.content.as_str().unwrap_or_default()),
            Some("assistant.idle") => self.aborted |= data.aborted.0.unwrap_or(false),
            Some("tool.execution_start") => {
                let (id, name) = (data.tool_call_id.as_str(), data.tool_name.as_str());
                let by_sub_agent = data.parent_tool_call_id.as_str().is_some();
                let input = data.arguments.map_or("", RawValue::get);
                sink.tool_started(id.unwrap_or_default(), name.unwrap_or_default(), input, by_sub_agent);
            }
            Some("tool.execution_complete") => {
                let output = data.result.object().and_then(|result| result.content.as_str()).unwrap_or_default();
                let id = data.tool_call_id.as_str().unwrap_or_default();
                sink.tool_returned(id, data.success.0.unwrap_or(true), output);
            }
            Some("model.call_failure") => {
                let why = data.error_message.as_str().or(data.message.as_str()).unwrap_or("a request failed");
                sink.retrying(data.retry_attempt.small().unwrap_or(0), 0, Duration::ZERO, why);
            }
            Some("model.call_final_result") => {
                self.outcome = data.result.text().map(str::to_owned);
            }
            Some("model.call_start") if !self.begun => {
                self.begun = true;
                sink.started(data.model.owned(), None, None);
            }
            Some("session.error") => self.error(data, sink),
            Some("session.info" | "session.warning") => {
                if let Some(text) = data.message.as_str() {
                    sink.notice(text);
                }
            }
            Some("result") => self.result(&event, sink),
            Some(kind) => {
                return ["session.", "assistant.", "model.", "tool.", "user.", "hook.", "skill.", "subagent."]
                    .iter()
                    .any(|family| kind.starts_with(family));
            }
            None => return false,
        }
        true
    }

    fn finish(&mut self, _sink: &mut Sink<'_>) {}

    fn usage(&self) -> Usage {
        // It counts premium requests, not tokens.
        Usage::default()
    }
}

impl Copilot {
    fn message(&mut self, data: &Data<'_>, sink: &mut Sink<'_>) {
        let text = data.content.as_str().unwrap_or_default();
        if data.parent_tool_call_id.as_str().is_some() {
            return sink.sub_agent_said(text);
        }
        let asks_for_tools = matches!(&data.tool_requests, ListOrText::List(requests) if requests.iter().any(|r| r.tool_call_id.as_str().is_some()));
        self.text = if asks_for_tools { String::new() } else { text.to_owned() };
        self.failure = None;
        if !text.is_empty() {
            sink.said(text);
        }
    }

    fn error(&mut self, data: &Data<'_>, sink: &mut Sink<'_>) {
        let words = data.message.as_str().unwrap_or("the client reported an error");
        sink.notice(words);
        let status = data.status_code.small();
        let class = class_of_failure(words).or_else(|| match data.error_type.as_str() {
            Some("rate_limit" | "quota") => Some(Class::Limit),
            Some("authentication" | "authorization") => Some(Class::SignIn),
            _ => status.and_then(Class::of_status).or(match self.outcome.as_deref() {
                Some("transport_error") => Some(Class::Network),
                Some("http_5xx") => Some(Class::Overloaded),
                Some("http_429") => Some(Class::Limit),
                _ => None,
            }),
        });
        self.failure = Some(Terminal::failed(words, class));
    }

    fn result(&mut self, event: &Line<'_>, sink: &mut Sink<'_>) {
        let code = event.exit_code.0.unwrap_or(0.0);
        let terminal = match self.failure.take() {
            Some(failure) => failure,
            None if self.aborted => Terminal::failed("the client was interrupted", None),
            None if code != 0.0 => Terminal::failed(format!("the client reports exit code {code}"), None),
            None => Terminal::finished(&self.text),
        };
        if !self.begun && event.session.as_str().is_some() {
            sink.started(None, None, event.session.owned());
        }
        sink.end(terminal, None);
    }
}
