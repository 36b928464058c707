//! Claude Code: `stream-json`, one event a line, ended by a `result` event. Only that event, with the text it carries,
//! says how the call went; exit code 0 and `subtype: success` do not. Qwen Code, Amp and Cursor write the same with few
//! differences.

mod failure;
mod usage;
mod wire;

use std::time::Duration;

use ralphloop_core::evidence::Usage;
use ralphloop_core::units::Timestamp;

use self::failure::Told;
use self::usage::UsageTally;
use self::wire::{Block, CursorCall, Line as Event, Message, RateLimit};
use crate::event::AgentEvent;
use crate::lenient::{ListOrText, ObjectOrText};
use crate::notes::preview;
use crate::repeat::fingerprint;
use crate::trace::{Dialect, Sink, Terminal};

/// The state between two lines.
#[derive(Debug, Default)]
pub(crate) struct Claude {
    usage: UsageTally,
    told: Told,
}

impl Dialect for Claude {
    fn line(&mut self, line: &str, sink: &mut Sink<'_>) -> bool {
        match serde_json::from_str::<Event<'_>>(line) {
            Ok(event) => self.event(&event, sink),
            Err(_) => false,
        }
    }

    fn finish(&mut self, sink: &mut Sink<'_>) {
        if let Some(terminal) = sink.seen().terminal.as_mut().filter(|terminal| terminal.is_error) {
            self.told.classify(terminal);
        }
    }

    fn usage(&self) -> Usage {
        self.usage.total()
    }
}

impl Claude {
    /// False if the type of the event is not known.
    fn event(&mut self, event: &Event<'_>, sink: &mut Sink<'_>) -> bool {
        match event.kind.as_str() {
            Some("assistant") => self.assistant(event, sink),
            Some("user") => tool_results(event, sink),
            Some("result") => self.result(event, sink),
            Some("system") => {
                if event.subtype.is("init") {
                    self.usage.paid_by(event.key_source.as_str());
                }
                system(event, sink);
            }
            Some("rate_limit_event") => self.rate_limit(event.rate_limit_info.object(), sink),
            Some("tool_call") => cursor_call(event, sink),
            Some("turn.failed" | "error") => self.foreign_failure(event, sink),
            Some("stream_event" | "keep_alive") => {}
            _ => return false,
        }
        true
    }

    fn assistant(&mut self, event: &Event<'_>, sink: &mut Sink<'_>) {
        if let Some(code) = event.error.text() {
            self.told.code = Some(code.to_owned());
        }
        let by_sub_agent = event.parent_tool_use_id.as_str().is_some();
        let Some(message) = event.message.object() else { return };
        if self.usage.message(message) {
            sink.tell(AgentEvent::Usage { so_far: self.usage.total() });
        }
        let said = |text: &str, sink: &mut Sink<'_>| {
            if by_sub_agent { sink.sub_agent_said(text) } else { sink.said(text) }
        };
        let blocks = match &message.content {
            ListOrText::Text(text) => return said(text, sink),
            ListOrText::List(blocks) => blocks,
        };
        for block in blocks {
            match block.kind.as_str() {
                Some("text") => said(block.text.as_str().unwrap_or_default(), sink),
                Some("thinking") => sink.thought(block.thinking.as_str().unwrap_or_default()),
                Some("tool_use") => tool_started(block, by_sub_agent, sink),
                _ => {}
            }
        }
    }

    fn rate_limit(&mut self, info: Option<&RateLimit<'_>>, sink: &mut Sink<'_>) {
        let Some(info) = info else { return };
        let rejected = info.status.is("rejected");
        let resets_at = info.resets_at.count().and_then(|s| i64::try_from(s).ok()?.checked_mul(1000)).map(Timestamp);
        if rejected {
            self.told.rejected = true;
            self.told.resets_at = resets_at;
        }
        sink.tell(AgentEvent::RateLimited { rejected, resets_at, window: info.window.owned() });
    }

    fn result(&mut self, event: &Event<'_>, sink: &mut Sink<'_>) {
        let failed_kind = event.subtype.as_str().is_some_and(|subtype| subtype.starts_with("error"));
        // Qwen Code calls a request that failed a success, with the failure as its whole message.
        let failed_request = event.result.as_str().is_some_and(|text| {
            let text = text.trim();
            text.starts_with("[API Error:") && text.ends_with(']')
        });
        let is_error = event.is_error.0.unwrap_or(false) || failed_kind || failed_request;
        let stated = event.error.object().and_then(|error| error.message.as_str());
        let text = match (event.result.as_str().or(stated), event.errors.0.as_slice()) {
            (Some(text), _) => text.to_owned(),
            (None, []) if is_error => event.subtype.owned().unwrap_or_default(),
            (None, []) => sink.seen().last_text.clone(),
            (None, errors) => errors.join("; "),
        };
        let denials = match &event.permission_denials {
            ListOrText::List(denials) => denials.iter().filter_map(|denial| denial.tool_name.owned()).collect(),
            ListOrText::Text(_) => Vec::new(),
        };
        self.usage.result(event);
        sink.tell(AgentEvent::Usage { so_far: self.usage.total() });
        self.told.result(event);
        let ended = if is_error { Terminal::failed(text, None) } else { Terminal::finished(text) };
        sink.end(Terminal { denials, ..ended }, event.num_turns.small());
    }

    /// The failure of another client's turn, passed through by a wrapper.
    fn foreign_failure(&mut self, event: &Event<'_>, sink: &mut Sink<'_>) {
        let words = match &event.error {
            ObjectOrText::Text(text) => Some(text.as_ref()),
            ObjectOrText::Object(error) => {
                error.message.as_str().or_else(|| error.data.object().and_then(|data| data.message.as_str()))
            }
            ObjectOrText::Nothing => event.message.text(),
        };
        self.told.forget_all_but_the_rejection();
        sink.end(Terminal::failed(words.or(event.kind.as_str()).unwrap_or("error"), None), None);
    }
}

fn tool_started(block: &Block<'_>, by_sub_agent: bool, sink: &mut Sink<'_>) {
    let input = block.input.map_or("", |input| input.get());
    sink.tool_started(
        block.id.as_str().unwrap_or_default(),
        block.name.as_str().unwrap_or_default(),
        input,
        by_sub_agent,
    );
}

fn tool_results(event: &Event<'_>, sink: &mut Sink<'_>) {
    let Some(Message { content: ListOrText::List(blocks), .. }) = event.message.object() else { return };
    for block in blocks.iter().filter(|block| block.kind.is("tool_result")) {
        let id = block.tool_use_id.as_str().unwrap_or_default();
        let ok = !block.is_error.0.unwrap_or(false);
        match &block.content {
            ListOrText::Text(text) => sink.tool_returned(id, ok, text),
            ListOrText::List(parts) => {
                let texts: Vec<&str> = parts.iter().filter_map(|part| part.text.as_str()).collect();
                sink.tool_finished(id, ok, texts.first().unwrap_or(&""), fingerprint(&texts));
            }
        }
    }
}

/// A tool call as Cursor tells it: an object whose one key names the tool.
fn cursor_call(event: &Event<'_>, sink: &mut Sink<'_>) {
    let Some(CursorCall { name, args, result, ok }) = event.tool_call.and_then(|raw| CursorCall::read(raw.get()))
    else {
        return;
    };
    let id = event.call_id.as_str().unwrap_or_default();
    match event.subtype.as_str() {
        Some("started") => sink.tool_started(id, &name, &args, false),
        Some("completed") => sink.tool_returned(id, ok, &result),
        _ => {}
    }
}

fn system(event: &Event<'_>, sink: &mut Sink<'_>) {
    match event.subtype.as_str() {
        Some("init") => {
            let version = event.claude_code_version.owned().or_else(|| event.qwen_code_version.owned());
            sink.started(event.model.owned(), version, event.session_id.owned());
        }
        Some("api_retry") => {
            let code = event.error.text().unwrap_or("unknown");
            let why = match event.error_status.small() {
                Some(status) => format!("{code} ({status})"),
                None => format!("{code}, no answer"),
            };
            sink.retrying(
                event.attempt.small().unwrap_or(0),
                event.max_retries.small().unwrap_or(0),
                Duration::from_millis(event.retry_delay_ms.count().unwrap_or(0)),
                &why,
            );
        }
        Some("retry") => {
            let Some(retry) = event.data.object() else { return };
            sink.retrying(
                retry.attempt.small().unwrap_or(0),
                retry.max_retries.small().unwrap_or(0),
                Duration::from_millis(retry.delay_ms.count().unwrap_or(0)),
                retry.reason.as_str().unwrap_or("retry"),
            );
        }
        Some("permission_denied") => {
            sink.tell(AgentEvent::PermissionDenied { tool: event.tool_name.owned().unwrap_or_default() });
        }
        Some("informational" | "model_fallback") => {
            if let Some(text) = event.content.as_str() {
                sink.tell(AgentEvent::Notice { text: preview(text) });
            }
        }
        _ => {}
    }
}
