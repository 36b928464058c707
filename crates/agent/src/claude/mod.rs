//! Claude Code: `stream-json`, one event a line, ended by a `result` event. Only that event, with the text it carries,
//! says how the call went; exit code 0 and `subtype: success` do not.

mod usage;
mod wire;

use std::time::Duration;

use ralphloop_core::units::Timestamp;

use self::usage::UsageTally;
use self::wire::{Block, Line as Event, Message, RateLimit, ToolInput};
use crate::event::AgentEvent;
use crate::learning;
use crate::lenient::{ListOrText, ObjectOrText};
use crate::lines::{Line, Lines};
use crate::notes::{Notes, decode, preview};
use crate::repeat::{Repeats, fingerprint};
use crate::sanitize;

/// The longest line that is read as an event, in bytes. A longer one is skipped.
const LONGEST_LINE: usize = 16 << 20;
/// How much of the final message is kept, from its end, in bytes.
const FINAL_MESSAGE: usize = 256 << 10;
/// How much of a text that was said is passed on, in bytes.
const SAID: usize = 64 << 10;
/// Tools that change nothing: a call that is let through to one of these is no work.
const READERS: [&str; 9] =
    ["Read", "Grep", "Glob", "LS", "WebFetch", "WebSearch", "TodoWrite", "ToolSearch", "ListMcpResources"];

/// The client's final event, of any client's shape.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Terminal {
    pub(crate) is_error: bool,
    /// The final message; with an error, the client's words.
    pub(crate) text: String,
    pub(crate) reason: Option<String>,
    pub(crate) stop_reason: Option<String>,
    pub(crate) status: Option<u32>,
    pub(crate) api_error: Option<String>,
    /// Tools whose use was refused.
    pub(crate) denials: Vec<String>,
}

/// A request that was rejected for a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rejection {
    /// When the limit ends.
    pub(crate) resets_at: Option<Timestamp>,
}

/// What was seen of the stream, for the classification of its end.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) terminal: Option<Terminal>,
    /// The code of the failure that the client made up a message for (`rate_limit`).
    pub(crate) error_code: Option<String>,
    /// The last time that the provider rejected a request for a limit.
    pub(crate) rejected: Option<Rejection>,
    /// A tool that can change something ran without an error.
    pub(crate) worked: bool,
    pub(crate) learnings: Vec<String>,
    last_text: String,
}

/// The state between two pieces of a stream.
#[derive(Debug)]
pub(crate) struct Decoder {
    lines: Lines,
    state: State,
}

#[derive(Debug)]
struct State {
    seen: Seen,
    usage: UsageTally,
    repeats: Repeats,
}

impl Decoder {
    pub(crate) fn new(loop_after: u32) -> Self {
        let state = State { seen: Seen::default(), usage: UsageTally::default(), repeats: Repeats::new(loop_after) };
        Self { lines: Lines::new(LONGEST_LINE), state }
    }

    pub(crate) fn stdout(&mut self, bytes: &[u8], notes: &mut Notes, out: &mut Vec<AgentEvent>) {
        let state = &mut self.state;
        self.lines.push(bytes, |line| state.line(&line, notes, out));
    }

    pub(crate) fn finish(
        mut self,
        notes: &mut Notes,
        out: &mut Vec<AgentEvent>,
    ) -> (Seen, ralphloop_core::evidence::Usage) {
        let state = &mut self.state;
        self.lines.finish(|line| state.line(&line, notes, out));
        (self.state.seen, self.state.usage.total())
    }
}

impl State {
    fn line(&mut self, line: &Line<'_>, notes: &mut Notes, out: &mut Vec<AgentEvent>) {
        let text = decode(line);
        let is_object = matches!(line, Line::Whole(_)) && text.trim_start().starts_with('{');
        match is_object.then(|| serde_json::from_str::<Event<'_>>(&text)) {
            Some(Ok(event)) => {
                notes.spoke = true;
                if !self.event(&event, notes, out) {
                    notes.stray(&text, out);
                }
            }
            Some(Err(_)) | None => notes.stray(&text, out),
        }
    }

    /// False if the type of the event is not known.
    fn event(&mut self, event: &Event<'_>, notes: &mut Notes, out: &mut Vec<AgentEvent>) -> bool {
        match event.kind.as_str() {
            Some("assistant") => self.assistant(event, notes, out),
            Some("user") => self.tool_results(event, out),
            Some("result") => self.result(event, out),
            Some("system") => system(event, notes, out),
            Some("rate_limit_event") => self.rate_limit(event.rate_limit_info.object(), out),
            Some("turn.failed" | "error") => self.foreign_failure(event, out),
            Some("stream_event" | "keep_alive") => {}
            _ => return false,
        }
        true
    }

    fn assistant(&mut self, event: &Event<'_>, notes: &mut Notes, out: &mut Vec<AgentEvent>) {
        if let Some(code) = event.error.text() {
            self.seen.error_code = Some(code.to_owned());
        }
        let by_sub_agent = event.parent_tool_use_id.as_str().is_some();
        let Some(message) = event.message.object() else { return };
        if self.usage.message(message) {
            out.push(AgentEvent::Usage { so_far: self.usage.total() });
        }
        let blocks = match &message.content {
            ListOrText::Text(text) => return self.said(text, by_sub_agent, notes, out),
            ListOrText::List(blocks) => blocks,
        };
        for block in blocks {
            match block.kind.as_str() {
                Some("text") => self.said(block.text.as_str().unwrap_or_default(), by_sub_agent, notes, out),
                Some("thinking") => {
                    let text = block.thinking.as_str().unwrap_or_default();
                    notes.alive(text);
                    out.push(AgentEvent::Thought { text: bounded(text) });
                }
                Some("tool_use") => self.tool_started(block, by_sub_agent, notes, out),
                _ => {}
            }
        }
    }

    fn said(&mut self, text: &str, by_sub_agent: bool, notes: &mut Notes, out: &mut Vec<AgentEvent>) {
        notes.alive(text);
        if by_sub_agent {
            out.push(AgentEvent::SubAgentSaid { text: bounded(text) });
            return;
        }
        learning::collect(text, &mut self.seen.learnings);
        self.seen.last_text = sanitize::tail(text, FINAL_MESSAGE).into_owned();
        out.push(AgentEvent::Said { text: bounded(text) });
    }

    fn tool_started(&mut self, block: &Block<'_>, by_sub_agent: bool, notes: &mut Notes, out: &mut Vec<AgentEvent>) {
        let id = block.id.as_str().unwrap_or_default();
        let name = block.name.as_str().unwrap_or_default();
        let raw = block.input.map_or("", |input| input.get());
        let input = tool_preview(raw);
        let label = format!("{name} {input}").trim_end().to_owned();
        notes.alive(&label);
        self.repeats.started(id, name, raw, label);
        out.push(AgentEvent::ToolStarted { id: preview(id), name: preview(name), input, by_sub_agent });
    }

    fn tool_results(&mut self, event: &Event<'_>, out: &mut Vec<AgentEvent>) {
        let Some(Message { content: ListOrText::List(blocks), .. }) = event.message.object() else { return };
        for block in blocks.iter().filter(|block| block.kind.is("tool_result")) {
            let id = block.tool_use_id.as_str().unwrap_or_default();
            let ok = !block.is_error.0.unwrap_or(false);
            let (print, output) = match &block.content {
                ListOrText::Text(text) => (fingerprint(text), preview(text)),
                ListOrText::List(parts) => {
                    let texts: Vec<&str> = parts.iter().filter_map(|part| part.text.as_str()).collect();
                    (fingerprint(&texts), preview(texts.first().unwrap_or(&"")))
                }
            };
            let reads_only = self
                .repeats
                .label(id)
                .is_some_and(|label| READERS.iter().any(|tool| label.split(' ').next() == Some(*tool)));
            self.seen.worked |= ok && !reads_only;
            out.push(AgentEvent::ToolFinished { id: preview(id), ok, output });
            if let Some((call, times)) = self.repeats.finished(id, ok, print) {
                out.push(AgentEvent::Repeating { call, times });
            }
        }
    }

    fn rate_limit(&mut self, info: Option<&RateLimit<'_>>, out: &mut Vec<AgentEvent>) {
        let Some(info) = info else { return };
        let rejected = info.status.is("rejected");
        let resets_at = info.resets_at.count().and_then(|s| i64::try_from(s).ok()?.checked_mul(1000)).map(Timestamp);
        if rejected {
            self.seen.rejected = Some(Rejection { resets_at });
        }
        out.push(AgentEvent::RateLimited { rejected, resets_at, window: info.window.owned() });
    }

    fn result(&mut self, event: &Event<'_>, out: &mut Vec<AgentEvent>) {
        let failed_kind = event.subtype.as_str().is_some_and(|subtype| subtype.starts_with("error"));
        let is_error = event.is_error.0.unwrap_or(false) || failed_kind;
        let text = match (event.result.as_str(), event.errors.0.as_slice()) {
            (Some(text), _) => sanitize::tail(text, FINAL_MESSAGE).into_owned(),
            (None, []) if is_error => event.subtype.owned().unwrap_or_default(),
            (None, []) => self.seen.last_text.clone(),
            (None, errors) => errors.join("; "),
        };
        let denials = match &event.permission_denials {
            ListOrText::List(denials) => denials.iter().filter_map(|denial| denial.tool_name.owned()).collect(),
            ListOrText::Text(_) => Vec::new(),
        };
        if !is_error {
            learning::collect(&text, &mut self.seen.learnings);
        }
        self.usage.result(event);
        out.push(AgentEvent::Usage { so_far: self.usage.total() });
        self.end(
            Terminal {
                is_error,
                text: sanitize::sanitize(&text).into_owned(),
                reason: event.terminal_reason.owned(),
                stop_reason: event.stop_reason.owned(),
                status: event.api_error_status.small(),
                api_error: event.api_error.owned(),
                denials,
            },
            event.num_turns.small(),
            out,
        );
    }

    /// The failure of another client's turn, passed through by a wrapper.
    fn foreign_failure(&mut self, event: &Event<'_>, out: &mut Vec<AgentEvent>) {
        let words = match &event.error {
            ObjectOrText::Text(text) => Some(text.as_ref()),
            ObjectOrText::Object(error) => {
                error.message.as_str().or_else(|| error.data.object().and_then(|data| data.message.as_str()))
            }
            ObjectOrText::Nothing => event.message.text(),
        };
        let kind = event.kind.as_str().unwrap_or("error");
        let text = sanitize::sanitize(words.unwrap_or(kind)).into_owned();
        self.end(Terminal { is_error: true, text, ..Terminal::default() }, None, out);
    }

    fn end(&mut self, terminal: Terminal, turns: Option<u32>, out: &mut Vec<AgentEvent>) {
        out.push(AgentEvent::Ended { is_error: terminal.is_error, turns });
        self.seen.terminal = Some(terminal);
    }
}

fn system(event: &Event<'_>, notes: &mut Notes, out: &mut Vec<AgentEvent>) {
    match event.subtype.as_str() {
        Some("init") => out.push(AgentEvent::SessionStarted {
            model: event.model.owned(),
            version: event.claude_code_version.owned(),
            session: event.session_id.owned(),
        }),
        Some("api_retry") => {
            let code = event.error.text().unwrap_or("unknown");
            let why = match event.error_status.small() {
                Some(status) => format!("{code} ({status})"),
                None => format!("{code}, no answer"),
            };
            notes.alive(&format!("the client repeats a request: {why}"));
            out.push(AgentEvent::Retrying {
                attempt: event.attempt.small().unwrap_or(0),
                of: event.max_retries.small().unwrap_or(0),
                after: Duration::from_millis(event.retry_delay_ms.count().unwrap_or(0)),
                why,
            });
        }
        Some("permission_denied") => {
            out.push(AgentEvent::PermissionDenied { tool: event.tool_name.owned().unwrap_or_default() });
        }
        Some("informational" | "model_fallback") => {
            if let Some(text) = event.content.as_str() {
                out.push(AgentEvent::Notice { text: preview(text) });
            }
        }
        _ => {}
    }
}

fn bounded(text: &str) -> String {
    sanitize::sanitize(&sanitize::head(text, SAID)).into_owned()
}

/// What tells most of a tool's input, on one line.
fn tool_preview(raw: &str) -> String {
    let input: ToolInput<'_> = serde_json::from_str(raw).unwrap_or_default();
    let fields = [&input.command, &input.file_path, &input.pattern, &input.path, &input.url, &input.query];
    let telling = fields.into_iter().chain([&input.description]).find_map(|field| field.as_str());
    sanitize::one_line(&sanitize::head(telling.unwrap_or(raw), 4 * crate::notes::PREVIEW), crate::notes::PREVIEW)
}
