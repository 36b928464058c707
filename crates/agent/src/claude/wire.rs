//! The lines of Claude Code's `stream-json`, as far as they matter. One flat struct serves every type of line: the key
//! order is not fixed, so a line's type is known only at its end.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::lenient::{Flag, ListOrText, Number, ObjectOrText, Text, Texts};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) subtype: Text<'a>,
    #[serde(borrow)]
    pub(super) message: ObjectOrText<'a, Message<'a>>,
    #[serde(borrow)]
    pub(super) parent_tool_use_id: Text<'a>,
    #[serde(borrow)]
    pub(super) session_id: Text<'a>,
    /// `system/init`.
    #[serde(borrow)]
    pub(super) model: Text<'a>,
    /// Where the key of the API is from; `none` of a subscription.
    #[serde(rename = "apiKeySource", borrow)]
    pub(super) key_source: Text<'a>,
    #[serde(borrow)]
    pub(super) claude_code_version: Text<'a>,
    #[serde(borrow)]
    pub(super) qwen_code_version: Text<'a>,
    /// `system/api_retry`.
    pub(super) attempt: Number,
    pub(super) max_retries: Number,
    pub(super) retry_delay_ms: Number,
    pub(super) error_status: Number,
    /// `system/retry` of Qwen Code.
    #[serde(borrow)]
    pub(super) data: ObjectOrText<'a, Retry<'a>>,
    /// `tool_call` of Cursor.
    #[serde(borrow)]
    pub(super) call_id: Text<'a>,
    #[serde(borrow)]
    pub(super) tool_call: Option<&'a RawValue>,
    /// A code in `api_retry` and `assistant`, an object in failures of other clients.
    #[serde(borrow)]
    pub(super) error: ObjectOrText<'a, ForeignError<'a>>,
    /// `system/permission_denied`.
    #[serde(borrow)]
    pub(super) tool_name: Text<'a>,
    /// `system/informational`, `system/model_fallback`.
    #[serde(borrow)]
    pub(super) content: Text<'a>,
    #[serde(borrow)]
    pub(super) rate_limit_info: ObjectOrText<'a, RateLimit<'a>>,
    /// `result`, and from here on.
    pub(super) is_error: Flag,
    #[serde(borrow)]
    pub(super) result: Text<'a>,
    #[serde(borrow)]
    pub(super) errors: Texts<'a>,
    pub(super) num_turns: Number,
    pub(super) total_cost_usd: Number,
    #[serde(borrow)]
    pub(super) usage: ObjectOrText<'a, Tokens>,
    #[serde(borrow)]
    pub(super) permission_denials: ListOrText<'a, Denial<'a>>,
    #[serde(borrow)]
    pub(super) stop_reason: Text<'a>,
    #[serde(borrow)]
    pub(super) terminal_reason: Text<'a>,
    pub(super) api_error_status: Number,
    #[serde(borrow)]
    pub(super) api_error: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) content: ListOrText<'a, Block<'a>>,
    #[serde(borrow)]
    pub(super) stop_reason: Text<'a>,
    #[serde(borrow)]
    pub(super) usage: ObjectOrText<'a, Tokens>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Block<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_use_id: Text<'a>,
    #[serde(borrow)]
    pub(super) content: ListOrText<'a, Part<'a>>,
    pub(super) is_error: Flag,
}

/// A part of a tool's result; what is not text (images) is left out.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Part<'a> {
    #[serde(borrow)]
    pub(super) text: Text<'a>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    #[serde(rename = "input_tokens")]
    fresh: Number,
    #[serde(rename = "cache_creation_input_tokens")]
    cached: Number,
    #[serde(rename = "cache_read_input_tokens")]
    from_cache: Number,
    #[serde(rename = "output_tokens")]
    output: Number,
    /// Only where the input includes what came from the cache.
    #[serde(rename = "total_tokens")]
    total: Number,
}

impl Tokens {
    /// Tokens read, cached ones included.
    pub(super) fn input(&self) -> Option<u64> {
        if self.total.count().is_some() {
            return self.fresh.count();
        }
        [self.fresh, self.cached, self.from_cache].into_iter().filter_map(Number::count).reduce(u64::saturating_add)
    }

    /// Of the tokens read, those that came from the cache.
    pub(super) fn cache_read(&self) -> Option<u64> {
        self.from_cache.count()
    }

    /// Of the tokens read, those that were put into the cache.
    pub(super) fn cache_written(&self) -> Option<u64> {
        self.cached.count()
    }

    /// Tokens written.
    pub(super) fn output(&self) -> Option<u64> {
        self.output.count()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RateLimit<'a> {
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    /// Seconds since the Unix epoch.
    pub(super) resets_at: Number,
    #[serde(rename = "rateLimitType", borrow)]
    pub(super) window: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Denial<'a> {
    #[serde(borrow)]
    pub(super) tool_name: Text<'a>,
}

/// The error of another client's terminal event (`turn.failed`, `error`).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ForeignError<'a> {
    #[serde(borrow)]
    pub(super) message: Text<'a>,
    #[serde(borrow)]
    pub(super) data: ObjectOrText<'a, ForeignErrorData<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ForeignErrorData<'a> {
    #[serde(borrow)]
    pub(super) message: Text<'a>,
}

/// What a `system/retry` of Qwen Code carries.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Retry<'a> {
    #[serde(borrow)]
    pub(super) reason: Text<'a>,
    pub(super) attempt: Number,
    pub(super) max_retries: Number,
    pub(super) delay_ms: Number,
}

/// A tool call of Cursor: `{"readToolCall": {"args": …, "result": …}}`.
#[derive(Debug)]
pub(super) struct CursorCall {
    pub(super) name: String,
    pub(super) args: String,
    pub(super) result: String,
    pub(super) ok: bool,
}

impl CursorCall {
    pub(super) fn read(raw: &str) -> Option<Self> {
        let calls: serde_json::Map<String, serde_json::Value> = serde_json::from_str(raw).ok()?;
        let (name, call) = calls.iter().find(|(_, call)| call.is_object())?;
        let part = |key: &str| call.get(key).map(ToString::to_string).unwrap_or_default();
        Some(Self {
            name: name.trim_end_matches("ToolCall").to_owned(),
            args: part("args"),
            result: part("result"),
            ok: call.pointer("/result/success").is_some(),
        })
    }
}
