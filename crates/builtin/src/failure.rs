//! What went wrong with a request, from the status, the headers and the body of the provider's answer.

use std::time::Duration;

use genai::Error;
use jiff::Timestamp;
use ralphloop_agent::{Class, class_of_answer};
use serde_json::Value;

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Which kind of failure, if that could be told.
    pub(crate) class: Option<Class>,
    /// The status of the answer, if there was one.
    pub(crate) status: Option<u16>,
    /// The provider's words, or the system's.
    pub(crate) message: String,
    /// When it is worth to ask again, as the provider says.
    pub(crate) again: Option<Timestamp>,
}

impl Failure {
    /// The connection broke, or never stood.
    pub(crate) fn network(message: impl Into<String>) -> Self {
        Self { class: Some(Class::Network), status: None, message: message.into(), again: None }
    }

    /// By the client's error. `last` is the last event of the stream that told of a failure, which the client does not keep.
    pub(crate) fn of(error: &Error, last: Option<&str>) -> Self {
        match error {
            Error::HttpError { status, body, headers, .. } => answered(status.as_u16(), body, headers),
            Error::WebStream { error, .. } => {
                if let Some(inner) = error.downcast_ref::<Error>() {
                    return Self::of(inner, last);
                }
                Self::network(causes(error.as_ref()))
            }
            // An error in the middle of a stream has no status of its own.
            Error::ChatResponse { body, .. } => in_stream(&body.to_string()),
            Error::StreamParse { .. } if last.is_some() => in_stream(last.unwrap_or_default()),
            Error::StreamParse { serde_error, .. } => {
                Self::network(format!("the provider's answer cannot be read: {serde_error}"))
            }
            other => match other.status() {
                Some(status) => answered(status.as_u16(), &other.to_string(), &reqwest::header::HeaderMap::new()),
                None => Self { class: None, status: None, message: other.to_string(), again: None },
            },
        }
    }

    /// How long to wait before the request is sent again, if another try may help: what the provider says, at most
    /// `patience`, else what doubles with each try.
    pub(crate) fn wait(&self, tries: u32, patience: Duration) -> Option<Duration> {
        if !matches!(self.class, Some(Class::Limit | Class::Overloaded | Class::Network)) {
            return None;
        }
        let usual = Duration::from_secs(1 << (2 * tries.min(5)));
        let wait = match self.again {
            Some(again) => Duration::try_from(again.duration_since(Timestamp::now())).unwrap_or_default(),
            None => usual,
        };
        (wait <= patience).then_some(wait)
    }
}

fn answered(status: u16, body: &str, headers: &reqwest::header::HeaderMap) -> Failure {
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    // Google sends some errors as a list of one.
    let json = json.get(0).cloned().unwrap_or(json);
    Failure {
        class: class_of_answer(Some(status), &json.to_string()).or_else(|| class_of_answer(Some(status), body)),
        status: Some(status),
        message: match message_of(&json).unwrap_or(body.trim()) {
            "" => format!("the provider answered with status {status}"),
            words => format!("{status}: {words}"),
        },
        again: by_headers(headers).or_else(|| by_body(&json)),
    }
}

/// A failure that is told by an event of a stream.
fn in_stream(event: &str) -> Failure {
    let json: Value = serde_json::from_str(event).unwrap_or_default();
    // `response.failed` has its error in the response.
    let error = ["/response/error", "/error"].iter().find_map(|place| json.pointer(place)).unwrap_or(&json);
    let status = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    Failure {
        class: class_of_answer(status, &error.to_string()),
        status,
        message: message_of(error).unwrap_or(event).to_owned(),
        again: by_body(&json),
    }
}

fn message_of(json: &Value) -> Option<&str> {
    let places = ["/error/message", "/message", "/error"];
    places.iter().find_map(|place| json.pointer(place)?.as_str()).filter(|text| !text.is_empty())
}

fn by_headers(headers: &reqwest::header::HeaderMap) -> Option<Timestamp> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let milliseconds = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()).map(|ms| ms / 1000.0);
    let seconds = milliseconds.or_else(|| text("retry-after")?.parse().ok());
    if let Some(seconds) = seconds {
        return after(seconds);
    }
    if let Some(date) = text("retry-after") {
        return jiff::fmt::rfc2822::parse(date).ok().map(|date| date.timestamp());
    }
    // What an account that is used up answers with.
    text("anthropic-ratelimit-unified-reset").and_then(|text| Timestamp::from_second(text.parse().ok()?).ok())
}

fn by_body(json: &Value) -> Option<Timestamp> {
    let error = json.get("error")?;
    if let Some(reset) = error["resets_at"].as_i64() {
        return Timestamp::from_second(reset).ok();
    }
    if let Some(seconds) = error["resets_in_seconds"].as_f64() {
        return after(seconds);
    }
    let details = error["details"].as_array()?;
    let delay = details.iter().find_map(|detail| detail["retryDelay"].as_str())?;
    after(delay.strip_suffix('s')?.parse().ok()?)
}

fn after(seconds: f64) -> Option<Timestamp> {
    let span = Duration::try_from_secs_f64(seconds).ok()?;
    Timestamp::now().checked_add(span).ok()
}

/// An error with all that caused it, each once.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> reqwest::header::HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn seconds_until(again: Option<Timestamp>) -> i64 {
        again.unwrap().duration_since(Timestamp::now()).as_secs()
    }

    #[test]
    fn every_refusal_of_a_provider_has_its_kind_by_its_code_and_then_by_its_status() {
        let openai = |code: &str| format!(r#"{{"error":{{"message":"m","type":"x","code":"{code}"}}}}"#);
        let anthropic = |kind: &str, message: &str| {
            format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}}}}"#)
        };
        let google = |status: &str, message: &str| {
            format!(r#"[{{"error":{{"code":400,"message":"{message}","status":"{status}"}}}}]"#)
        };
        for (status, body, class) in [
            (429, openai("rate_limit_exceeded"), Some(Class::Limit)),
            (429, openai("insufficient_quota"), Some(Class::NoCredit)),
            (400, openai("context_length_exceeded"), Some(Class::PromptTooLong)),
            (404, openai("model_not_found"), Some(Class::ModelUnknown)),
            (401, openai("invalid_api_key"), Some(Class::SignIn)),
            (400, openai("unknown_parameter"), None),
            (529, anthropic("overloaded_error", "Overloaded"), Some(Class::Overloaded)),
            (
                400,
                anthropic("invalid_request_error", "prompt is too long: 201000 tokens > 200000 maximum"),
                Some(Class::PromptTooLong),
            ),
            (
                400,
                anthropic(
                    "invalid_request_error",
                    "input length and `max_tokens` exceed context limit: 190000 + 16000",
                ),
                Some(Class::PromptTooLong),
            ),
            (400, anthropic("invalid_request_error", "Your credit balance is too low"), Some(Class::NoCredit)),
            (404, anthropic("not_found_error", "model: claude-9"), Some(Class::ModelUnknown)),
            (403, anthropic("permission_error", "no"), Some(Class::SignIn)),
            (400, google("INVALID_ARGUMENT", "API key not valid. Please pass one."), Some(Class::SignIn)),
            (
                400,
                google("INVALID_ARGUMENT", "The input token count (9) exceeds the maximum"),
                Some(Class::PromptTooLong),
            ),
            (503, google("UNAVAILABLE", "later"), Some(Class::Overloaded)),
            (402, "pay first".to_owned(), Some(Class::NoCredit)),
            (502, "<html>bad gateway</html>".to_owned(), Some(Class::Overloaded)),
        ] {
            let failure = answered(status, &body, &headers(&[]));
            assert_eq!((failure.class, failure.status), (class, Some(status)), "{status} {body}");
        }
        assert_eq!(answered(400, &openai("x"), &headers(&[])).message, "400: m");
    }

    #[test]
    fn a_failure_in_the_middle_of_a_stream_has_its_kind_too() {
        let failed =
            r#"{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"slow"}}}"#;
        assert_eq!((in_stream(failed).class, in_stream(failed).message.as_str()), (Some(Class::Limit), "slow"));
        let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        assert_eq!(in_stream(overloaded).class, Some(Class::Overloaded));
        assert_eq!(in_stream(r#"{"code":502,"message":"upstream"}"#).class, Some(Class::Overloaded));
    }

    #[test]
    fn when_to_ask_again_is_read_wherever_a_provider_tells_it() {
        let now = Timestamp::now().as_second();
        for (headers, body) in [
            (headers(&[("retry-after", "90")]), Value::Null),
            (headers(&[("retry-after-ms", "90000")]), Value::Null),
            (headers(&[("anthropic-ratelimit-unified-reset", &(now + 90).to_string())]), Value::Null),
            (headers(&[]), serde_json::json!({"error": {"resets_at": now + 90}})),
            (headers(&[]), serde_json::json!({"error": {"details": [{"@type": "x"}, {"retryDelay": "90s"}]}})),
        ] {
            let failure = answered(429, &body.to_string(), &headers);
            assert!((85..=91).contains(&seconds_until(failure.again)), "{headers:?} {body}");
            assert_eq!(failure.wait(0, Duration::from_mins(1)), None, "too long to be waited for here");
            assert!(failure.wait(0, Duration::from_secs(100)).is_some());
        }
    }

    #[test]
    fn only_what_passes_by_itself_is_tried_again_and_each_time_later() {
        let patience = Duration::from_mins(1);
        let broken = Failure::network("reset");
        assert_eq!(broken.wait(0, patience), Some(Duration::from_secs(1)));
        assert_eq!(broken.wait(2, patience), Some(Duration::from_secs(16)));
        assert_eq!(Failure { class: Some(Class::SignIn), ..broken.clone() }.wait(0, patience), None);
        assert_eq!(Failure { class: None, ..broken }.wait(0, patience), None);
    }
}
