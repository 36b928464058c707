//! Pi: `--mode json`. It exits with 0 whatever happened, and `agent_end` comes once a try: the last message of the
//! assistant says how it went.

use std::time::Duration;

use ralphloop_core::evidence::Usage;
use ralphloop_core::units::Usd;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::classify::class_of_failure;
use crate::event::AgentEvent;
use crate::lenient::{Flag, ListOrText, Number, ObjectOrText, Text};
use crate::trace::{Dialect, Sink, Terminal};

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow)]
    message: ObjectOrText<'a, Message<'a>>,
    #[serde(borrow)]
    tool_call_id: Text<'a>,
    #[serde(borrow)]
    tool_name: Text<'a>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    result: ObjectOrText<'a, ToolResult<'a>>,
    is_error: Flag,
    attempt: Number,
    max_attempts: Number,
    delay_ms: Number,
    #[serde(borrow)]
    error_message: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Message<'a> {
    #[serde(borrow)]
    role: Text<'a>,
    #[serde(borrow)]
    content: ListOrText<'a, Block<'a>>,
    #[serde(borrow)]
    usage: ObjectOrText<'a, Tokens<'a>>,
    #[serde(borrow)]
    stop_reason: Text<'a>,
    #[serde(borrow)]
    error_message: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    thinking: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ToolResult<'a> {
    #[serde(borrow)]
    content: ListOrText<'a, Block<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Tokens<'a> {
    input: Number,
    output: Number,
    cache_read: Number,
    cache_write: Number,
    #[serde(borrow)]
    cost: ObjectOrText<'a, Cost>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cost {
    total: Number,
}

/// The state between two lines.
#[derive(Debug, Default)]
pub(crate) struct Pi {
    usage: Usage,
    /// How the call would end if the stream ended now.
    so_far: Option<Terminal>,
}

impl Dialect for Pi {
    fn line(&mut self, line: &str, sink: &mut Sink<'_>) -> bool {
        let Ok(event) = serde_json::from_str::<Line<'_>>(line) else { return false };
        match event.kind.as_str() {
            Some("session") => sink.started(None, None, event.id.owned()),
            Some("message_end") => {
                if let Some(message) = event.message.object().filter(|message| message.role.is("assistant")) {
                    self.message(message, sink);
                }
            }
            Some("tool_execution_start") => {
                let input = event.args.map_or("", RawValue::get);
                let (id, name) = (event.tool_call_id.as_str(), event.tool_name.as_str());
                sink.tool_started(id.unwrap_or_default(), name.unwrap_or_default(), input, false);
            }
            Some("tool_execution_end") => {
                let output = match event.result.object().map(|result| &result.content) {
                    Some(ListOrText::List(blocks)) => texts(blocks),
                    Some(ListOrText::Text(text)) => text.clone().into_owned(),
                    None => String::new(),
                };
                let ok = !event.is_error.0.unwrap_or(false);
                sink.tool_returned(event.tool_call_id.as_str().unwrap_or_default(), ok, &output);
            }
            Some("auto_retry_start") => sink.retrying(
                event.attempt.small().unwrap_or(0),
                event.max_attempts.small().unwrap_or(0),
                Duration::from_millis(event.delay_ms.count().unwrap_or(0)),
                event.error_message.as_str().unwrap_or("a request failed"),
            ),
            Some(
                "agent_start"
                | "agent_end"
                | "turn_start"
                | "turn_end"
                | "message_start"
                | "message_update"
                | "tool_execution_update"
                | "auto_retry_end"
                | "compaction_start"
                | "compaction_end",
            ) => {}
            _ => return false,
        }
        true
    }

    fn finish(&mut self, sink: &mut Sink<'_>) {
        if let Some(terminal) = self.so_far.take() {
            sink.settle(Terminal { inferred: true, ..terminal });
        }
    }

    fn usage(&self) -> Usage {
        self.usage
    }
}

impl Pi {
    fn message(&mut self, message: &Message<'_>, sink: &mut Sink<'_>) {
        let text = match &message.content {
            ListOrText::Text(text) => text.clone().into_owned(),
            ListOrText::List(blocks) => {
                for thought in blocks.iter().filter_map(|block| block.thinking.as_str()) {
                    sink.thought(thought);
                }
                texts(blocks)
            }
        };
        if !text.is_empty() {
            sink.said(&text);
        }
        if let Some(tokens) = message.usage.object() {
            let read = [tokens.input, tokens.cache_read, tokens.cache_write];
            self.usage = self.usage.plus(Usage {
                input_tokens: read.into_iter().filter_map(Number::count).reduce(u64::saturating_add),
                output_tokens: tokens.output.count(),
                // Of a model without a price it says 0, which is none.
                cost: tokens.cost.object().and_then(|cost| cost.total.0).filter(|c| *c > 0.0).map(Usd::from_dollars),
                cache_read_tokens: tokens.cache_read.count(),
                cache_write_tokens: tokens.cache_write.count(),
                ..Usage::default()
            });
            sink.tell(AgentEvent::Usage { so_far: self.usage });
        }
        let words = message.error_message.as_str();
        self.so_far = match message.stop_reason.as_str() {
            Some("stop") => Some(Terminal::finished(text)),
            Some("length") => Some(Terminal::failed("the answer was cut at the model's output limit", None)),
            Some("error" | "aborted") => {
                let words = words.unwrap_or("the client reported an error");
                Some(Terminal::failed(words, class_of_failure(words)))
            }
            // It goes on after its tools.
            _ => None,
        };
    }
}

fn texts(blocks: &[Block<'_>]) -> String {
    let texts: Vec<&str> =
        blocks.iter().filter(|block| block.kind.is("text")).filter_map(|block| block.text.as_str()).collect();
    texts.join("\n")
}
