//! What the agent prints: lines of the format `stream-json`, of which `ralphloop-agent` reads every one. Kinds and fields are
//! those of that format; each line is masked before it is written.

use std::io::{self, Write};

use ralphloop_agent::Class;
use ralphloop_agent::redact::Redactor;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::model::{Answer, Tokens};

/// How the agent's work ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// The model said its last word.
    Finished(String),
    /// A limit of the settings was reached.
    Limit(String),
    /// The provider refused, or could not be reached.
    Failed(Failure),
    /// Something of our own, such as a missing key.
    NotStarted(Class, String),
}

/// Writes the lines.
#[derive(Debug)]
pub(crate) struct Stream<W> {
    out: W,
    redactor: Redactor,
    session: String,
    model: String,
}

impl<W: Write> Stream<W> {
    /// To `out`; `model` is `PROVIDER/MODEL`.
    pub(crate) fn new(out: W, redactor: Redactor, model: String) -> Self {
        Self { out, redactor, session: uuid::Uuid::now_v7().to_string(), model }
    }

    /// What tells this piece of work from others.
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    fn line(&mut self, mut event: Value) -> io::Result<()> {
        mask(&mut event, &self.redactor);
        event["session_id"] = self.session.as_str().into();
        writeln!(self.out, "{event}")?;
        self.out.flush()
    }

    /// The first line.
    pub(crate) fn begins(&mut self) -> io::Result<()> {
        let model = self.model.clone();
        self.line(json!({"type": "system", "subtype": "init", "model": model}))
    }

    /// A piece of an answer came: the provider is alive.
    pub(crate) fn alive(&mut self) -> io::Result<()> {
        self.line(json!({"type": "keep_alive"}))
    }

    /// A remark.
    pub(crate) fn notice(&mut self, text: &str) -> io::Result<()> {
        self.line(json!({"type": "system", "subtype": "informational", "content": text}))
    }

    /// An answer of the model, with the names under which its calls run.
    pub(crate) fn answered(&mut self, step: u32, answer: &Answer, ids: &[String]) -> io::Result<()> {
        let mut blocks = Vec::new();
        if !answer.thoughts.is_empty() {
            blocks.push(json!({"type": "thinking", "thinking": answer.thoughts}));
        }
        if !answer.text.is_empty() {
            blocks.push(json!({"type": "text", "text": answer.text}));
        }
        let calls = answer.calls.iter().zip(ids);
        blocks.extend(
            calls.map(
                |(call, id)| json!({"type": "tool_use", "id": id, "name": call.fn_name, "input": call.fn_arguments}),
            ),
        );
        let stop_reason = if answer.calls.is_empty() { "end_turn" } else { "tool_use" };
        let message = json!({
            "id": format!("step_{step}"), "role": "assistant", "model": self.model, "content": blocks,
            "stop_reason": stop_reason, "usage": usage(answer.tokens),
        });
        self.line(json!({"type": "assistant", "message": message}))
    }

    /// The result of a call of a tool.
    pub(crate) fn tool_returned(&mut self, id: &str, result: &Result<String, String>) -> io::Result<()> {
        let (Ok(text) | Err(text)) = result;
        let block = json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": result.is_err()});
        self.line(json!({"type": "user", "message": {"role": "user", "content": [block]}}))
    }

    /// A request failed and is sent again.
    pub(crate) fn tries_again(
        &mut self,
        failure: &Failure,
        tries: (u32, u32),
        after: std::time::Duration,
    ) -> io::Result<()> {
        let code = code_of(failure.class);
        let delay = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        self.line(json!({
            "type": "system", "subtype": "api_retry", "attempt": tries.0, "max_retries": tries.1,
            "retry_delay_ms": delay, "error": code, "error_status": failure.status,
        }))
    }

    /// The last line, and before it what says how a failure is to be taken.
    pub(crate) fn ends(&mut self, end: &End, steps: u32, tokens: Option<Tokens>) -> io::Result<()> {
        let mut result = json!({"type": "result", "subtype": "success", "is_error": false, "num_turns": steps,
            "usage": usage(tokens)});
        match end {
            End::Finished(text) => {
                result["result"] = text.as_str().into();
                result["terminal_reason"] = "completed".into();
            }
            End::Limit(why) => {
                result["result"] = why.as_str().into();
                result["terminal_reason"] = "budget_exhausted".into();
            }
            End::Failed(failure) => {
                self.failed(failure.class, &failure.message)?;
                if failure.class == Some(Class::Limit) {
                    let resets_at = failure.again.map(jiff::Timestamp::as_second);
                    self.line(json!({"type": "rate_limit_event", "rate_limit_info":
                        {"status": "rejected", "resetsAt": resets_at}}))?;
                }
                result["result"] = failure.message.as_str().into();
                result["terminal_reason"] = reason_of(failure.class).into();
                result["api_error_status"] = failure.status.into();
            }
            End::NotStarted(class, why) => {
                self.failed(Some(*class), why)?;
                result["result"] = why.as_str().into();
                result["terminal_reason"] = reason_of(Some(*class)).into();
            }
        }
        if !matches!(end, End::Finished(_)) {
            result["subtype"] = "error_during_execution".into();
            result["is_error"] = true.into();
        }
        self.line(result)
    }

    /// The code of a failure stands in a message, as in Claude Code's streams.
    fn failed(&mut self, class: Option<Class>, text: &str) -> io::Result<()> {
        let message = json!({"role": "assistant", "content": [{"type": "text", "text": text}]});
        self.line(json!({"type": "assistant", "error": code_of(class), "message": message}))
    }
}

/// Every text in it is masked, so that the line stays JSON whatever a secret holds.
fn mask(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => *text = redactor.redact_text(text),
        Value::Array(values) => values.iter_mut().for_each(|value| mask(value, redactor)),
        Value::Object(map) => map.values_mut().for_each(|value| mask(value, redactor)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What is not known is not told: a zero would be believed.
fn usage(tokens: Option<Tokens>) -> Value {
    let Some(tokens) = tokens else { return Value::Null };
    json!({
        "input_tokens": tokens.fresh(), "cache_read_input_tokens": tokens.cache_read,
        "cache_creation_input_tokens": tokens.cache_written, "output_tokens": tokens.output,
    })
}

fn code_of(class: Option<Class>) -> &'static str {
    match class {
        Some(Class::Limit) => "rate_limit",
        Some(Class::Overloaded) => "overloaded",
        Some(Class::SignIn) => "authentication_failed",
        Some(Class::NoCredit) => "billing_error",
        Some(Class::ModelUnknown) => "model_not_found",
        Some(Class::Network | Class::PromptTooLong | Class::RefusedAsRoot | Class::CannotStart) | None => "unknown",
    }
}

fn reason_of(class: Option<Class>) -> &'static str {
    match class {
        Some(Class::PromptTooLong) => "prompt_too_long",
        // A refusal without a known meaning is one of this request alone.
        None => "max_turns",
        Some(_) => "api_error",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use genai::chat::{ChatMessage, ToolCall};
    use ralphloop_agent::client::Format;
    use ralphloop_agent::decoder::{Clock, Decoder, Ending, LOOP_AFTER, ProcessEnd};
    use ralphloop_agent::event::{AgentEvent, Stream as Of};
    use ralphloop_core::evidence::{AgentEnd, AgentReport};
    use ralphloop_core::ids::StoryId;
    use ralphloop_core::signal::SignalGrammar;
    use ralphloop_core::units::Timestamp;

    use super::*;

    fn failure(class: Option<Class>, status: Option<u16>) -> Failure {
        Failure { class, status, message: "words".to_owned(), again: None }
    }

    /// What whoever started the agent makes of its lines.
    fn read(lines: &[u8]) -> (AgentReport, Vec<AgentEvent>) {
        let mut decoder = Decoder::new(Format::Claude, "the prompt", LOOP_AFTER);
        let mut events = Vec::new();
        decoder.push(Of::Stdout, lines, &mut events);
        let ending = Ending {
            process: ProcessEnd::Exited { code: 0 },
            story: &StoryId::from("S1"),
            grammar: &SignalGrammar::default(),
            clock: &Clock { now: Timestamp(0), zone: jiff::tz::TimeZone::UTC },
            took: Duration::ZERO,
            sign_in: Some("set the key"),
        };
        (decoder.finish(ending, &mut events), events)
    }

    fn told(end: &End) -> AgentReport {
        let mut out = Vec::new();
        let mut stream = Stream::new(&mut out, Redactor::new([("A_KEY", "hidden-lamp-4711")]), "p/m".to_owned());
        stream.begins().unwrap();
        stream.ends(end, 3, Some(Tokens { input: 100, cache_read: 60, cache_written: 10, output: 5 })).unwrap();
        read(&out).0
    }

    #[test]
    fn every_way_in_which_it_ends_is_read_as_what_it_is_with_its_tokens() {
        let message = "words".to_owned();
        for (class, status, end) in [
            (Some(Class::Overloaded), Some(529), AgentEnd::Overloaded { message: message.clone() }),
            (Some(Class::Overloaded), None, AgentEnd::Overloaded { message: message.clone() }),
            (Some(Class::Network), None, AgentEnd::Network { message: message.clone() }),
            (Some(Class::NoCredit), Some(429), AgentEnd::NoCredit { message: message.clone() }),
            (Some(Class::ModelUnknown), Some(404), AgentEnd::ModelUnknown { message: message.clone() }),
            (Some(Class::PromptTooLong), Some(400), AgentEnd::PromptTooLong { message: message.clone() }),
            (Some(Class::Limit), Some(429), AgentEnd::Limit { resets_at: None, message: message.clone() }),
            (
                Some(Class::SignIn),
                Some(401),
                AgentEnd::SignIn { message: message.clone(), remedy: Some("set the key".to_owned()) },
            ),
            (None, Some(400), AgentEnd::Error { message }),
        ] {
            let report = told(&End::Failed(failure(class, status)));
            assert_eq!(report.end, end, "{class:?} {status:?}");
            let usage = report.usage;
            assert_eq!((usage.input_tokens, usage.output_tokens), (Some(100), Some(5)));
            assert_eq!((usage.cache_read_tokens, usage.cache_write_tokens), (Some(60), Some(10)));
        }
        assert_eq!(told(&End::Finished("done".to_owned())).end, AgentEnd::Finished);
        assert_eq!(told(&End::Finished(String::new())).end, AgentEnd::NoFinalMessage);
        let limit = told(&End::Limit("429 overloaded: usage limit reached".to_owned()));
        assert!(matches!(limit.end, AgentEnd::Error { .. }), "a limit of our own is none of the provider's: {limit:?}");
        let reset = jiff::Timestamp::from_second(1_800_000_000).unwrap();
        let limit = Failure { again: Some(reset), ..failure(Some(Class::Limit), Some(429)) };
        let end = told(&End::Failed(limit)).end;
        assert!(matches!(end, AgentEnd::Limit { resets_at: Some(Timestamp(1_800_000_000_000)), .. }), "{end:?}");
        let missing = told(&End::NotStarted(Class::SignIn, "X is not set".to_owned())).end;
        assert!(matches!(missing, AgentEnd::SignIn { .. }), "{missing:?}");
    }

    #[test]
    fn what_it_does_is_seen_as_it_goes_and_no_secret_with_it() {
        let call = ToolCall {
            call_id: "provider-id".to_owned(),
            fn_name: "bash".to_owned(),
            fn_arguments: json!({"command": "echo hidden-lamp-4711"}),
            thought_signatures: None,
        };
        let answer = Answer {
            text: "I look".to_owned(),
            thoughts: "hm".to_owned(),
            calls: vec![call.clone()],
            message: ChatMessage::assistant(vec![call]),
            cut: false,
            tokens: None,
        };
        let mut out = Vec::new();
        let mut stream = Stream::new(&mut out, Redactor::new([("A_KEY", "hidden-lamp-4711")]), "p/m".to_owned());
        stream.begins().unwrap();
        stream.answered(1, &answer, &["call_1_1".to_owned()]).unwrap();
        stream.tool_returned("call_1_1", &Err("hidden-lamp-4711 \"quoted\"".to_owned())).unwrap();
        stream.tries_again(&failure(Some(Class::Overloaded), Some(529)), (1, 3), Duration::from_secs(4)).unwrap();
        stream.ends(&End::Finished("done".to_owned()), 1, None).unwrap();
        assert!(!String::from_utf8(out.clone()).unwrap().contains("hidden-lamp"));
        let (report, events) = read(&out);
        assert_eq!(report.usage.input_tokens, None, "what is not known is no zero");
        assert_eq!(report.model.as_deref(), Some("p/m"));
        let seen = |wanted: &dyn Fn(&AgentEvent) -> bool| events.iter().any(wanted);
        assert!(seen(&|event| matches!(event, AgentEvent::Thought { text } if text == "hm")));
        assert!(seen(
            &|event| matches!(event, AgentEvent::ToolFinished { ok: false, output, .. } if output.contains("[redacted]"))
        ));
        assert!(seen(&|event| matches!(event, AgentEvent::Retrying { attempt: 1, of: 3, .. })));
        assert!(!seen(&|event| matches!(event, AgentEvent::Raw { .. })), "{events:#?}");
    }
}
