//! Codex: `codex exec --json`, ended by `turn.completed` or `turn.failed`. An `error` is no end: the client reports its
//! retries, and harmless remarks, as errors too.

use std::time::Duration;

use ralphloop_core::evidence::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::classify::class_of_failure;
use crate::lenient::{ListOrText, Number, ObjectOrText, Text};
use crate::plan;
use crate::trace::{Dialect, Sink, Terminal};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    thread_id: Text<'a>,
    #[serde(borrow)]
    item: ObjectOrText<'a, Item<'a>>,
    #[serde(borrow)]
    usage: ObjectOrText<'a, Tokens>,
    /// `turn.failed`.
    #[serde(borrow)]
    error: ObjectOrText<'a, Error<'a>>,
    /// `error`.
    #[serde(borrow)]
    message: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Item<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    message: Text<'a>,
    #[serde(borrow)]
    command: Text<'a>,
    #[serde(borrow)]
    aggregated_output: Text<'a>,
    exit_code: Number,
    #[serde(borrow)]
    status: Text<'a>,
    #[serde(borrow)]
    changes: ListOrText<'a, Change<'a>>,
    #[serde(borrow)]
    server: Text<'a>,
    #[serde(borrow)]
    tool: Text<'a>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    query: Text<'a>,
    #[serde(borrow)]
    items: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Change<'a> {
    #[serde(borrow)]
    path: Text<'a>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct Tokens {
    /// Cached ones included.
    input_tokens: Number,
    cached_input_tokens: Number,
    cache_write_input_tokens: Number,
    /// Those of reasoning included.
    output_tokens: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Error<'a> {
    #[serde(borrow)]
    message: Text<'a>,
}

/// The state between two lines.
#[derive(Debug, Default)]
pub(crate) struct Codex {
    usage: Usage,
    /// The last `error`, which is what happened if the stream ends without a final event.
    last_error: Option<String>,
    /// The last message of the agent, empty or not.
    last_message: String,
}

impl Dialect for Codex {
    fn line(&mut self, line: &str, sink: &mut Sink<'_>) -> bool {
        let Ok(event) = serde_json::from_str::<Line<'_>>(line) else { return false };
        match event.kind.as_str() {
            Some("thread.started") => sink.started(None, None, event.thread_id.owned()),
            Some("turn.started") => {}
            Some(kind @ ("item.started" | "item.updated" | "item.completed")) => {
                if let Some(item) = event.item.object() {
                    return self.item(kind, item, sink);
                }
            }
            Some("turn.completed") => {
                self.count(event.usage.object());
                sink.tell(crate::event::AgentEvent::Usage { so_far: self.usage });
                sink.end(Terminal::finished(&self.last_message), None);
            }
            Some("turn.failed") => {
                let words = event.error.object().and_then(|error| error.message.as_str()).or(event.error.text());
                let words = words.or(self.last_error.as_deref()).unwrap_or("turn.failed").to_owned();
                sink.end(Terminal::failed(&words, class_of_failure(&words)), None);
            }
            Some("error") => self.error(event.message.as_str().unwrap_or_default(), sink),
            _ => return false,
        }
        true
    }

    fn finish(&mut self, sink: &mut Sink<'_>) {
        if sink.seen().terminal.is_none()
            && let Some(words) = self.last_error.take()
            && let Some(class) = class_of_failure(&words)
        {
            // Ended in the midst of its retries: what it retried for is the reason.
            sink.settle(Terminal { inferred: true, ..Terminal::failed(words, Some(class)) });
        }
    }

    fn usage(&self) -> Usage {
        self.usage
    }
}

impl Codex {
    fn count(&mut self, tokens: Option<&Tokens>) {
        let Some(tokens) = tokens else { return };
        // The sums of the thread, which is new in every call.
        self.usage.input_tokens = tokens.input_tokens.count();
        self.usage.output_tokens = tokens.output_tokens.count();
        self.usage.cache_read_tokens = tokens.cached_input_tokens.count();
        self.usage.cache_write_tokens = tokens.cache_write_input_tokens.count();
    }

    fn error(&mut self, message: &str, sink: &mut Sink<'_>) {
        if let Some((attempt, of, why)) = retry(message) {
            self.last_error = Some(why.to_owned());
            sink.retrying(attempt, of, Duration::ZERO, why);
        } else {
            self.last_error = Some(message.to_owned());
            sink.notice(message);
        }
    }

    /// False if the type of the item is not known.
    fn item(&mut self, event: &str, item: &Item<'_>, sink: &mut Sink<'_>) -> bool {
        let id = item.id.as_str().unwrap_or_default();
        let done = event == "item.completed";
        let ok = !item.status.is("failed") && item.exit_code.0.is_none_or(|code| code == 0.0);
        let (name, input, output) = match item.kind.as_str() {
            Some("agent_message") => {
                if done {
                    self.last_message = item.text.owned().unwrap_or_default();
                    sink.said(&self.last_message);
                }
                return true;
            }
            Some("reasoning") => {
                if done {
                    sink.thought(item.text.as_str().unwrap_or_default());
                }
                return true;
            }
            // A remark: not the end of anything.
            Some("error") => {
                sink.notice(item.message.as_str().unwrap_or_default());
                return true;
            }
            Some("todo_list") => {
                sink.plans(item.items.map(|list| plan::of_list(list.get())).unwrap_or_default());
                return true;
            }
            Some("command_execution") => {
                let input = serde_json::json!({"command": item.command.as_str()}).to_string();
                ("shell", input, item.aggregated_output.as_str().unwrap_or_default())
            }
            Some("file_change") => {
                let ListOrText::List(changes) = &item.changes else { return true };
                let paths: Vec<&str> = changes.iter().filter_map(|change| change.path.as_str()).collect();
                ("edit", serde_json::json!({"path": paths.join(" ")}).to_string(), "")
            }
            Some("mcp_tool_call") => {
                let input = item.arguments.map_or("", RawValue::get).to_owned();
                let output = item.result.map_or("", RawValue::get);
                let name =
                    format!("{} {}", item.server.as_str().unwrap_or_default(), item.tool.as_str().unwrap_or_default());
                Self::tool(event, id, name.trim(), &input, ok, output, sink);
                return true;
            }
            Some("web_search") => ("search", serde_json::json!({"query": item.query.as_str()}).to_string(), ""),
            _ => return false,
        };
        Self::tool(event, id, name, &input, ok, output, sink);
        true
    }

    fn tool(event: &str, id: &str, name: &str, input: &str, ok: bool, output: &str, sink: &mut Sink<'_>) {
        match event {
            "item.started" => sink.tool_started(id, name, input, false),
            "item.completed" => {
                // A change of files is only told when it is made.
                if !sink.is_open(id) {
                    sink.tool_started(id, name, input, false);
                }
                sink.tool_returned(id, ok, output);
            }
            _ => {}
        }
    }
}

/// The numbers and the reason in `Reconnecting... 2/5 (why)`.
fn retry(message: &str) -> Option<(u32, u32, &str)> {
    let rest = message.strip_prefix("Reconnecting...")?.trim_start();
    let (count, why) = rest.split_once(' ').unwrap_or((rest, ""));
    let (attempt, of) = count.split_once('/')?;
    let why = why.trim().strip_prefix('(').and_then(|why| why.strip_suffix(')')).unwrap_or(why.trim());
    Some((attempt.parse().ok()?, of.parse().ok()?, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_is_told_from_other_errors() {
        let message = "Reconnecting... 2/5 (exceeded retry limit, last status: 429 Too Many Requests)";
        assert_eq!(retry(message), Some((2, 5, "exceeded retry limit, last status: 429 Too Many Requests")));
        assert_eq!(retry("Reconnecting... 1/5"), Some((1, 5, "")));
        assert_eq!(retry("Quota exceeded."), None);
    }
}
