//! The protocols that the scripted model speaks, told by the path of a request.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::conversation::{Conversation, Step};
use super::{completions, generate, messages, responses};

/// Tokens of every answer; the numbers only have to be recognisable.
pub(super) const INPUT_TOKENS: u64 = 1000;
/// See [`INPUT_TOKENS`].
pub(super) const OUTPUT_TOKENS: u64 = 50;

/// How a client speaks with the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Anthropic's.
    Messages,
    /// OpenAI's newer one.
    Responses,
    /// OpenAI's older one.
    Completions,
    /// Google's.
    Generate {
        /// It wants server-sent events.
        stream: bool,
    },
}

/// An error of the API.
#[derive(Debug)]
pub(super) struct ErrorAnswer {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: String,
}

impl Protocol {
    /// By the path of a `POST`.
    pub(super) fn of(path: &str) -> Option<Self> {
        match path {
            "/v1/messages" => Some(Self::Messages),
            "/v1/responses" => Some(Self::Responses),
            "/v1/chat/completions" => Some(Self::Completions),
            path if path.ends_with(":streamGenerateContent") => Some(Self::Generate { stream: true }),
            path if path.ends_with(":generateContent") => Some(Self::Generate { stream: false }),
            _ => None,
        }
    }

    pub(super) fn read(self, body: &Value) -> Conversation {
        match self {
            Self::Messages => messages::read(body),
            Self::Responses => responses::read(body),
            Self::Completions => completions::read(body),
            Self::Generate { stream } => generate::read(body, stream),
        }
    }

    /// As server-sent events, in order.
    pub(super) fn events(self, talk: &Conversation, steps: &[Step]) -> Vec<String> {
        match self {
            Self::Messages => messages::events(talk, steps),
            Self::Responses => responses::events(talk, steps),
            Self::Completions => completions::events(talk, steps),
            Self::Generate { .. } => generate::events(talk, steps),
        }
    }

    /// As one object; the Responses protocol has none, since every client of it streams.
    pub(super) fn whole(self, talk: &Conversation, steps: &[Step]) -> String {
        match self {
            Self::Messages => messages::whole(talk, steps),
            Self::Completions => completions::whole(talk, steps),
            Self::Generate { .. } => generate::whole(talk, steps),
            Self::Responses => String::new(),
        }
    }

    /// 429, to be tried again after a while.
    pub(super) fn rate_limit(self, retry_after: Duration) -> ErrorAnswer {
        let mut answer = self.error(429, "rate_limit_error", "this request would exceed your rate limit");
        answer.headers.push(("retry-after", retry_after.as_secs().to_string()));
        if let Self::Generate { .. } = self {
            answer.body = exhausted("this request would exceed your rate limit", retry_after);
        }
        answer
    }

    /// 429, as a used-up subscription answers. The reset is a whole second in the future, never rounded down.
    pub(super) fn usage_limit(self, resets_in: Duration) -> ErrorAnswer {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let reset = (now + resets_in).as_secs() + 1;
        match self {
            Self::Messages => {
                let mut answer = self.error(429, "rate_limit_error", "this request would exceed your account's limit");
                answer.headers = vec![
                    ("anthropic-ratelimit-unified-status", "rejected".into()),
                    ("anthropic-ratelimit-unified-reset", reset.to_string()),
                    ("anthropic-ratelimit-unified-representative-claim", "five_hour".into()),
                    ("anthropic-ratelimit-unified-5h-utilization", "1.0".into()),
                    ("anthropic-ratelimit-unified-5h-reset", reset.to_string()),
                    ("anthropic-ratelimit-unified-overage-status", "rejected".into()),
                    ("anthropic-ratelimit-unified-overage-disabled-reason", "org_level_disabled".into()),
                ];
                answer
            }
            Self::Responses => ErrorAnswer {
                status: 429,
                headers: Vec::new(),
                body: json!({"error": {"type": "usage_limit_reached", "message": "The usage limit has been reached",
                    "plan_type": "plus", "resets_at": reset}})
                .to_string(),
            },
            Self::Completions | Self::Generate { .. } => self.rate_limit(resets_in),
        }
    }

    /// An error in the form of the protocol; `kind` is Anthropic's word for it.
    pub(super) fn error(self, status: u16, kind: &str, message: &str) -> ErrorAnswer {
        let body = match self {
            Self::Messages => json!({"type": "error", "error": {"type": kind, "message": message}}),
            Self::Responses | Self::Completions => json!({"error": {"message": message, "type": kind, "code": null}}),
            Self::Generate { .. } => {
                let name = match status {
                    401 => "UNAUTHENTICATED",
                    404 => "NOT_FOUND",
                    429 => "RESOURCE_EXHAUSTED",
                    500.. => "UNAVAILABLE",
                    _ => "INVALID_ARGUMENT",
                };
                json!({"error": {"code": status, "message": message, "status": name}})
            }
        };
        ErrorAnswer { status, headers: Vec::new(), body: body.to_string() }
    }
}

fn exhausted(message: &str, retry_after: Duration) -> String {
    json!({"error": {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{}s", retry_after.as_secs())}]}})
    .to_string()
}
