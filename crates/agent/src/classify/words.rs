//! The wordings by which clients tell of a failure that is not the story's. In what may be prose a wording counts only at
//! the start of a line, where a client's own message stands; the words of a client's own error are read more closely.

use ralphloop_core::evidence::AgentEnd;
use serde::Deserialize;
use serde_json::Value;

use super::Clock;
use super::reset::reset_time;

/// How much of a line is read, in bytes.
const LINE: usize = 600;
/// Within how many words after `API Error` its status stands.
const STATUS_WORDS: usize = 6;

/// The kinds of failure that a wording or a status can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A limit of the account, or of requests in a time.
    Limit,
    /// The provider cannot answer just now.
    Overloaded,
    /// The provider cannot be reached.
    Network,
    /// The key is none, or not allowed to do this.
    SignIn,
    /// Nothing is left to pay with.
    NoCredit,
    /// There is no such model.
    ModelUnknown,
    /// More than the model can read.
    PromptTooLong,
    /// The client does not work for root.
    RefusedAsRoot,
    /// The client cannot start.
    CannotStart,
}

impl Class {
    /// Of an HTTP status, where that alone tells enough.
    pub(crate) fn of_status(status: u32) -> Option<Self> {
        match status {
            429 => Some(Self::Limit),
            401 | 403 => Some(Self::SignIn),
            402 => Some(Self::NoCredit),
            413 => Some(Self::PromptTooLong),
            500..=599 => Some(Self::Overloaded),
            _ => None,
        }
    }

    /// The end of a call that failed so, with the client's words.
    pub(super) fn end(self, message: String, clock: &Clock) -> AgentEnd {
        match self {
            Self::Limit => AgentEnd::Limit { resets_at: reset_time(&message, clock), message },
            Self::Overloaded => AgentEnd::Overloaded { message },
            Self::Network => AgentEnd::Network { message },
            Self::SignIn => AgentEnd::SignIn {
                message,
                remedy: Some("run `claude` and sign in with /login, or set ANTHROPIC_API_KEY".to_owned()),
            },
            Self::NoCredit => AgentEnd::NoCredit { message },
            Self::ModelUnknown => AgentEnd::ModelUnknown { message },
            Self::PromptTooLong => AgentEnd::PromptTooLong { message },
            Self::RefusedAsRoot => AgentEnd::CannotStart {
                message: format!(
                    "{message}; run as an ordinary user, or set IS_SANDBOX=1 where this machine is a sandbox"
                ),
            },
            Self::CannotStart => AgentEnd::CannotStart { message },
        }
    }
}

/// The class of the first line that has a known wording.
pub(super) fn class(text: &str) -> Option<Class> {
    text.lines().find_map(class_of_line)
}

/// The class of the words with which a client itself reports the failure of its call. They hold no prose, so that what
/// the provider answered is looked for inside them: its JSON, its status, its message.
pub(crate) fn class_of_failure(words: &str) -> Option<Class> {
    let body = Body::inside(words);
    if let Some(class) = body.as_ref().and_then(Body::class) {
        return Some(class);
    }
    class(words).or_else(|| {
        let lower = words.to_lowercase();
        // `… retried 5 times. Last error: 529 Overloaded`, `exceeded retry limit, last status: 429`.
        let inner = ["last error:", "last status:", "unexpected status", "failed:"];
        let told = inner.iter().find_map(|lead| lower.split_once(lead)).map_or(lower.as_str(), |(_, told)| told);
        class_of_words(told)
    })
}

/// The class of what a provider answered with an error, by its body first: one status has several meanings.
pub fn class_of_answer(status: Option<u16>, body: &str) -> Option<Class> {
    let by_body = Body::inside(body).as_ref().and_then(Body::class);
    by_body.or_else(|| status.and_then(|status| Class::of_status(status.into())))
}

/// The class of what a provider answered, in a client's error: a status, a message, or both.
fn class_of_words(answer: &str) -> Option<Class> {
    let bare = answer.trim_start_matches(|c: char| !c.is_alphanumeric());
    let after_status = bare.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    let names_model = |text: &str| {
        let name = text.strip_prefix("model: ").map(|name| name.trim_end_matches([']', '.', ' ']));
        name.is_some_and(|name| !name.contains(char::is_whitespace))
    };
    if names_model(after_status) {
        return Some(Class::ModelUnknown);
    }
    class_of_line(after_status).or_else(|| class_of_api_error(bare))
}

/// What a provider answers with an error, as JSON: of OpenAI, Anthropic and Google, each in its form.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Body {
    error: Option<Value>,
    message: Option<String>,
    code: Value,
    r#type: Value,
    status: Value,
}

impl Body {
    /// The first JSON object in `words`.
    fn inside(words: &str) -> Option<Self> {
        let start = words.find('{')?;
        let mut values = serde_json::Deserializer::from_str(&words[start..]).into_iter::<Self>();
        let outer = values.next()?.ok()?;
        match &outer.error {
            Some(inner @ Value::Object(_)) => serde_json::from_value(inner.clone()).ok(),
            _ => Some(outer),
        }
    }

    fn class(&self) -> Option<Class> {
        let by_words = self.message.as_deref().and_then(class);
        if by_words == Some(Class::PromptTooLong) {
            return by_words;
        }
        let by_name = [&self.code, &self.r#type, &self.status].into_iter().find_map(|name| match name.as_str()? {
            "rate_limit_error" | "rate_limit_exceeded" | "usage_limit_reached" | "RESOURCE_EXHAUSTED" => {
                Some(Class::Limit)
            }
            "insufficient_quota" | "billing_error" | "billing_hard_limit_reached" => Some(Class::NoCredit),
            "invalid_api_key"
            | "authentication_error"
            | "permission_error"
            | "UNAUTHENTICATED"
            | "PERMISSION_DENIED" => Some(Class::SignIn),
            "model_not_found" | "not_found_error" | "NOT_FOUND" => Some(Class::ModelUnknown),
            "overloaded_error" | "server_error" | "api_error" | "UNAVAILABLE" | "INTERNAL" => Some(Class::Overloaded),
            "context_length_exceeded" | "exceed_context_size_error" => Some(Class::PromptTooLong),
            _ => None,
        });
        let status = self.code.as_u64().and_then(|code| u32::try_from(code).ok());
        by_name.or(by_words).or_else(|| status.and_then(Class::of_status))
    }
}

/// How known messages begin, in lower case and without `error:` and marks before them.
const BEGINNINGS: &[(Class, &[&str])] = &[
    (
        Class::NoCredit,
        &[
            "quota exceeded. check your plan",
            "you exceeded your current quota",
            "credit balance is too low",
            "your credit balance is too low",
            "insufficient credit",
            "insufficient_quota",
            "insufficient balance",
        ],
    ),
    (
        Class::Limit,
        &[
            "claude ai usage limit reached",
            "claude usage limit reached",
            "usage limit reached",
            "5-hour limit reached",
            "session limit reached",
            "weekly limit reached",
            "weekly usage limit reached",
            "5-hour usage limit reached",
            "daily limit reached",
            "daily usage limit reached",
            "monthly limit reached",
            "monthly usage limit reached",
            "extra usage limit reached",
            "opus limit reached",
            "opus weekly limit reached",
            "sonnet limit reached",
            "sonnet weekly limit reached",
            "haiku limit reached",
            "rate limit reached",
            "rate limit exceeded",
            "rate limited",
            "quota exceeded",
            "too many requests",
            "resource_exhausted",
            "rate_limit_error",
            "usage_limit_reached",
            "the usage limit has been reached",
            "this request would exceed your rate limit",
            "you have exhausted your",
        ],
    ),
    (
        Class::PromptTooLong,
        &[
            "prompt is too long",
            "input length and `max_tokens` exceed context limit",
            "input is too long",
            "conversation is too long",
            "context length exceeded",
            "context window exceeded",
            "piped stdin input exceeds",
            "the provider rejected the prompt as too long",
            "turn/start: turn/start failed: input exceeds the maximum length",
            "this model's maximum context length",
            "this endpoint's maximum context length",
            "the input token count",
            "your input exceeds the context window",
        ],
    ),
    (
        Class::SignIn,
        &[
            "failed to authenticate",
            "authentication failed",
            "authentication_error",
            "invalid api key",
            "invalid authentication credentials",
            "not logged in",
            "please run /login",
            "oauth token has expired",
            "oauth token revoked",
            "unauthorized",
            "missing environment variable",
            "invalid x-api-key",
            "incorrect api key",
            "api key not valid",
            "when using gemini api, you must specify",
            "no api key",
        ],
    ),
    (
        Class::ModelUnknown,
        &[
            "there's an issue with the selected model",
            "model not found",
            "unknown model",
            "invalid model name",
            "model is not supported",
        ],
    ),
    (
        Class::Overloaded,
        &[
            "overloaded",
            "internal server error",
            "service unavailable",
            "bad gateway",
            "gateway timeout",
            "we're currently experiencing high demand",
            "the server had an error",
        ],
    ),
    (
        Class::Network,
        &[
            "connection error",
            "network error",
            "request timed out",
            "fetch failed",
            "unable to connect",
            "could not resolve host",
            "getaddrinfo",
            "econn",
            "enotfound",
            "etimedout",
            "stream disconnected before completion",
            "incomplete json segment",
            "model stream ended without a finish reason",
            "exception typeerror: fetch failed",
        ],
    ),
    (
        Class::CannotStart,
        &[
            "cannot be launched inside another",
            "claude code cannot be launched inside another",
            "unknown option",
            "unexpected argument",
            "input must be provided",
            "when using --print",
            "settings file not found",
            "unknown arguments:",
            "error loading config",
        ],
    ),
];

fn class_of_line(line: &str) -> Option<Class> {
    let line = without_marks(&crate::sanitize::head(line, LINE).to_lowercase().replace('’', "'"));
    if line.contains("cannot be used with root/sudo privileges") {
        return Some(Class::RefusedAsRoot);
    }
    if let Some(rest) = line.strip_prefix("api error") {
        return class_of_words(rest);
    }
    let begins = |starts: &[&str]| starts.iter().any(|start| line.starts_with(start));
    if is_unknown_model(&line) {
        return Some(Class::ModelUnknown);
    }
    if let Some((class, _)) = BEGINNINGS.iter().find(|(_, starts)| begins(starts)) {
        return Some(*class);
    }
    if begins(&["you've hit your", "you've reached your", "you have hit your", "you have reached your"])
        && line.contains("limit")
    {
        return Some(Class::Limit);
    }
    if begins(&["you're out of", "you are out of", "you've run out of"]) {
        return if line.contains("credit") {
            Some(Class::NoCredit)
        } else {
            line.contains("usage").then_some(Class::Limit)
        };
    }
    (begins(&["selected model", "the selected model", "model"]) && line.contains("at capacity"))
        .then_some(Class::Overloaded)
}

/// `The model "x" does not exist`, `Model 'x' not found on …`.
fn is_unknown_model(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("the ").unwrap_or(line).strip_prefix("model ") else { return false };
    let said: Vec<&str> = rest.split_whitespace().skip(1).take(3).collect();
    matches!(said.as_slice(), ["not", "found", ..] | ["does", "not", "exist"] | ["is", "not", "supported"])
}

/// The words after `API Error`.
fn class_of_api_error(rest: &str) -> Option<Class> {
    const WORDS: &[(Class, &[&str])] = &[
        (Class::PromptTooLong, &["prompt is too long", "input is too long", "context length"]),
        (Class::NoCredit, &["credit balance"]),
        (Class::ModelUnknown, &["not_found_error", "selected model"]),
    ];
    const WORDS_WITHOUT_STATUS: &[(Class, &[&str])] = &[
        (Class::Overloaded, &["overloaded", "internal server error"]),
        (Class::Limit, &["rate limit", "limiting requests", "usage limit", "exhausted your"]),
        (Class::SignIn, &["oauth token", "authenticat", "api key"]),
        (
            Class::Network,
            &["connection", "econn", "enotfound", "etimedout", "fetch failed", "socket", "network", "timed out"],
        ),
    ];
    let find = |table: &[(Class, &[&str])]| {
        table.iter().find(|(_, words)| words.iter().any(|word| rest.contains(word))).map(|(class, _)| *class)
    };
    find(WORDS).or_else(|| status_in(rest).and_then(Class::of_status)).or_else(|| find(WORDS_WITHOUT_STATUS))
}

/// The first word near the beginning that is an HTTP error status.
fn status_in(text: &str) -> Option<u32> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .take(STATUS_WORDS)
        .filter(|word| word.len() == 3)
        .filter_map(|digits| digits.parse().ok())
        .find(|status| (400..600).contains(status))
}

fn without_marks(line: &str) -> String {
    let mut line = line.trim();
    loop {
        let bare = line.trim_start_matches(|c: char| !c.is_alphanumeric());
        let bare =
            ["error:", "error]", "fatal:", "warning:"].iter().find_map(|lead| bare.strip_prefix(lead)).unwrap_or(bare);
        if bare.len() == line.len() {
            return line.to_owned();
        }
        line = bare;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_own_message_is_known_by_how_it_begins() {
        for (text, class_wanted) in [
            ("Claude AI usage limit reached|1795821068", Class::Limit),
            ("You've hit your session limit · resets 3:45pm (Europe/Warsaw)", Class::Limit),
            ("You’ve reached your usage limit.", Class::Limit),
            ("You're out of extra usage · resets Mon 9am", Class::Limit),
            ("Extra usage limit reached · resets Dec 1", Class::Limit),
            ("⚠ Monthly usage limit reached. It resets in 3 days.", Class::Limit),
            ("API Error: Request rejected (429) · This request would exceed your rate limit.", Class::Limit),
            ("API Error: 529 Overloaded.", Class::Overloaded),
            ("API Error: Overloaded", Class::Overloaded),
            ("selected model is at capacity", Class::Overloaded),
            ("API Error (Connection error.)", Class::Network),
            ("Error: ECONNRESET while reading", Class::Network),
            ("Failed to authenticate. API Error: 401 OAuth token has expired. Please run /login", Class::SignIn),
            ("API Error: 401 {\"type\":\"error\",\"error\":{\"type\":\"authentication_error\"}}", Class::SignIn),
            ("Not logged in · Please run /login", Class::SignIn),
            ("Credit balance is too low", Class::NoCredit),
            ("API Error: 400 prompt is too long: 250000 tokens > 200000 maximum", Class::PromptTooLong),
            ("Error: cannot be launched inside another session", Class::CannotStart),
            ("error: unknown option '--no-such-flag'", Class::CannotStart),
        ] {
            assert_eq!(class(text), Some(class_wanted), "{text}");
        }
    }

    #[test]
    fn the_same_words_inside_prose_mean_nothing() {
        for text in [
            "The upload handler should get rate limiting; it answers 429 too late.",
            "I saw `usage limit reached, try again at 10pm` in src/limits.rs.",
            "Should I handle HTTP 429 and 529?",
            "You've hit your stride.",
            "You've used 95% of your weekly limit · resets Mon 9am",
            "Approaching usage limit · resets at 7pm",
            "You're now using extra usage",
            "The tests print: API Error: 500",
            "API Error: empty response, request-id req_8bcff536fe10, after many more words than the status has: 529",
            "",
        ] {
            assert_eq!(class(text), None, "{text}");
        }
    }
}
