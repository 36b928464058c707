//! What every decoder of JSON lines keeps of a stream and tells of it, whichever client wrote it.

use std::fmt;
use std::time::Duration;

use ralphloop_core::evidence::Usage;
use ralphloop_core::units::Timestamp;
use serde::Deserialize;

use crate::classify::Class;
use crate::event::AgentEvent;
use crate::learning;
use crate::lenient::Text;
use crate::lines::{Line, Lines};
use crate::notes::{Notes, PREVIEW, decode, preview};
use crate::plan::{self, Step};
use crate::repeat::{Repeats, fingerprint};
use crate::sanitize;

/// The longest line that is read as an event, in bytes. A longer one is skipped.
const LONGEST_LINE: usize = 16 << 20;
/// How much of the final message is kept, from its end, in bytes.
pub(crate) const FINAL_MESSAGE: usize = 256 << 10;
/// How much of a text that was said is passed on, in bytes.
const SAID: usize = 64 << 10;
/// Tools that change nothing: a call that is let through to one of these is no work.
const READERS: [&str; 8] = ["Read", "Grep", "Glob", "LS", "WebFetch", "WebSearch", "ToolSearch", "ListMcpResources"];

/// How a client itself says that its call ended.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Terminal {
    pub(crate) is_error: bool,
    /// The final message; with an error, the client's words.
    pub(crate) text: String,
    /// What kind of error it is, where the client's fields or words tell it.
    pub(crate) class: Option<Class>,
    /// When the limit ends that was hit, as a typed field says.
    pub(crate) resets_at: Option<Timestamp>,
    /// How long the provider asked to wait.
    pub(crate) retry_after: Option<Duration>,
    /// Tools whose use was refused.
    pub(crate) denials: Vec<String>,
    /// Put together from what came before the end of the stream, since the client has no final event: then a failing
    /// exit status counts too.
    pub(crate) inferred: bool,
}

impl Terminal {
    /// The end of a call that failed, with the client's words and their class.
    pub(crate) fn failed(text: impl AsRef<str>, class: Option<Class>) -> Self {
        let text = sanitize::sanitize(&sanitize::tail(text.as_ref(), FINAL_MESSAGE)).into_owned();
        Self { is_error: true, text, class, ..Self::default() }
    }

    /// The end of a call that came to its own end, with its final message.
    pub(crate) fn finished(text: impl AsRef<str>) -> Self {
        let text = sanitize::sanitize(&sanitize::tail(text.as_ref(), FINAL_MESSAGE)).into_owned();
        Self { text, ..Self::default() }
    }
}

/// What was seen of the stream, for the classification of its end.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) terminal: Option<Terminal>,
    /// A tool that can change something ran without an error.
    pub(crate) worked: bool,
    pub(crate) learnings: Vec<String>,
    /// The last that the agent itself said.
    pub(crate) last_text: String,
    /// The model that works, as the client names it.
    pub(crate) model: Option<String>,
}

/// How the lines of one client read.
pub(crate) trait Dialect: fmt::Debug + Send {
    /// Takes a line that begins like an object. False if it is no event of this client: broken, or of a type that is not known.
    fn line(&mut self, line: &str, sink: &mut Sink<'_>) -> bool;

    /// Tells what was read and not told yet, though more of it may come.
    fn pause(&mut self, _sink: &mut Sink<'_>) {}

    /// The stream is over: the last chance to settle how the call ended.
    fn finish(&mut self, sink: &mut Sink<'_>);

    /// What was used so far.
    fn usage(&self) -> Usage;

    /// What is to be written to the client now; nothing where it is only read.
    fn replies(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// What asks the client to end what it is doing, as things are now; nothing where there is no such word.
    fn farewell(&self) -> &[u8] {
        &[]
    }

    /// The client is about to be ended.
    fn wind_up(&mut self) {}
}

/// A stream of JSON lines on its way through a dialect.
#[derive(Debug)]
pub(crate) struct Events {
    lines: Lines,
    trace: Trace,
    dialect: Box<dyn Dialect>,
}

#[derive(Debug)]
struct Trace {
    seen: Seen,
    repeats: Repeats,
    plan: Vec<Step>,
}

impl Events {
    pub(crate) fn new(dialect: impl Dialect + 'static, loop_after: u32) -> Self {
        let trace = Trace { seen: Seen::default(), repeats: Repeats::new(loop_after), plan: Vec::new() };
        Self { lines: Lines::new(LONGEST_LINE), trace, dialect: Box::new(dialect) }
    }

    pub(crate) fn stdout(&mut self, bytes: &[u8], notes: &mut Notes, out: &mut Vec<AgentEvent>) {
        let Self { lines, trace, dialect } = self;
        lines.push(bytes, |line| one_line(&line, dialect.as_mut(), trace, notes, out));
    }

    pub(crate) fn pause(&mut self, notes: &mut Notes, out: &mut Vec<AgentEvent>) {
        let Self { trace, dialect, .. } = self;
        dialect.pause(&mut Sink { trace, notes, out });
    }

    pub(crate) fn replies(&mut self) -> Vec<u8> {
        self.dialect.replies()
    }

    pub(crate) fn farewell(&self) -> &[u8] {
        self.dialect.farewell()
    }

    pub(crate) fn wind_up(&mut self) {
        self.dialect.wind_up();
    }

    pub(crate) fn finish(mut self, notes: &mut Notes, out: &mut Vec<AgentEvent>) -> (Seen, Usage) {
        let Self { lines, trace, dialect } = &mut self;
        lines.finish(|line| one_line(&line, dialect.as_mut(), trace, notes, out));
        dialect.finish(&mut Sink { trace, notes, out });
        let usage = dialect.usage();
        (self.trace.seen, usage)
    }
}

fn one_line(
    line: &Line<'_>,
    dialect: &mut dyn Dialect,
    trace: &mut Trace,
    notes: &mut Notes,
    out: &mut Vec<AgentEvent>,
) {
    let text = decode(line);
    let is_object = matches!(line, Line::Whole(_)) && text.trim_start().starts_with('{');
    if is_object && dialect.line(&text, &mut Sink { trace, notes, out }) {
        notes.spoke = true;
    } else {
        notes.stray(&text, out);
    }
}

/// Where a dialect tells what it has read.
pub(crate) struct Sink<'a> {
    trace: &'a mut Trace,
    pub(crate) notes: &'a mut Notes,
    out: &'a mut Vec<AgentEvent>,
}

impl Sink<'_> {
    pub(crate) fn seen(&mut self) -> &mut Seen {
        &mut self.trace.seen
    }

    pub(crate) fn tell(&mut self, event: AgentEvent) {
        self.out.push(event);
    }

    pub(crate) fn started(&mut self, model: Option<String>, version: Option<String>, session: Option<String>) {
        if model.is_some() {
            self.trace.seen.model = model.as_deref().map(preview);
        }
        self.tell(AgentEvent::SessionStarted { model, version, session });
    }

    /// The agent itself said something.
    pub(crate) fn said(&mut self, text: &str) {
        self.notes.alive(text);
        learning::collect(text, &mut self.trace.seen.learnings);
        self.trace.seen.last_text = sanitize::tail(text, FINAL_MESSAGE).into_owned();
        if !text.trim().is_empty() {
            self.tell(AgentEvent::Said { text: bounded(text) });
        }
    }

    pub(crate) fn sub_agent_said(&mut self, text: &str) {
        self.notes.alive(text);
        self.tell(AgentEvent::SubAgentSaid { text: bounded(text) });
    }

    pub(crate) fn thought(&mut self, text: &str) {
        self.notes.alive(text);
        self.tell(AgentEvent::Thought { text: bounded(text) });
    }

    /// A call began; `input` is its raw JSON.
    pub(crate) fn tool_started(&mut self, id: &str, name: &str, input: &str, by_sub_agent: bool) {
        let shown = tool_preview(input);
        let label = format!("{name} {shown}").trim_end().to_owned();
        self.notes.alive(&label);
        self.trace.repeats.started(id, name, input, label);
        self.tell(AgentEvent::ToolStarted { id: preview(id), name: preview(name), input: shown, by_sub_agent });
        if !by_sub_agent {
            self.plans(plan::of_tool(name, input));
        }
    }

    /// The agent told its plan. One that it has told before, or that has no step, is no news.
    pub(crate) fn plans(&mut self, steps: Vec<Step>) {
        if !steps.is_empty() && self.trace.plan != steps {
            self.notes.alive(&plan::in_brief(&steps));
            self.trace.plan.clone_from(&steps);
            self.tell(AgentEvent::Plan { steps });
        }
    }

    /// A call of that name in the stream is not over.
    pub(crate) fn is_open(&self, id: &str) -> bool {
        self.trace.repeats.label(id).is_some()
    }

    /// A call ended; `output` is the head of what it returned, `print` the fingerprint of all of it.
    pub(crate) fn tool_finished(&mut self, id: &str, ok: bool, output: &str, print: u64) {
        let label = self.trace.repeats.label(id);
        let tool = label.and_then(|label| label.split(' ').next());
        let reads_only = tool.is_some_and(|tool| READERS.contains(&tool) || plan::is_tool(tool));
        self.trace.seen.worked |= ok && !reads_only;
        self.tell(AgentEvent::ToolFinished { id: preview(id), ok, output: preview(output) });
        if let Some((call, times)) = self.trace.repeats.finished(id, ok, print) {
            self.tell(AgentEvent::Repeating { call, times });
        }
    }

    /// As [`Sink::tool_finished`], with a text that is all of the result.
    pub(crate) fn tool_returned(&mut self, id: &str, ok: bool, output: &str) {
        self.tool_finished(id, ok, output, fingerprint(&output));
    }

    pub(crate) fn retrying(&mut self, attempt: u32, of: u32, after: Duration, why: &str) {
        let why = preview(why);
        self.notes.alive(&format!("the client repeats a request: {why}"));
        self.tell(AgentEvent::Retrying { attempt, of, after, why });
    }

    pub(crate) fn notice(&mut self, text: &str) {
        self.notes.alive(text);
        self.tell(AgentEvent::Notice { text: preview(text) });
    }

    /// The client's final event.
    pub(crate) fn end(&mut self, terminal: Terminal, turns: Option<u32>) {
        self.tell(AgentEvent::Ended { is_error: terminal.is_error, turns });
        self.settle(terminal);
    }

    /// How the call ended, without an event that says so.
    pub(crate) fn settle(&mut self, terminal: Terminal) {
        if !terminal.is_error {
            learning::collect(&terminal.text, &mut self.trace.seen.learnings);
        }
        self.trace.seen.terminal = Some(terminal);
    }
}

fn bounded(text: &str) -> String {
    sanitize::sanitize(&sanitize::head(text, SAID)).into_owned()
}

/// The fields of a tool's input that tell most, in the order in which they are preferred.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ToolInput<'a> {
    #[serde(borrow, alias = "cmd")]
    command: Text<'a>,
    #[serde(borrow, alias = "filePath")]
    file_path: Text<'a>,
    #[serde(borrow)]
    pattern: Text<'a>,
    #[serde(borrow)]
    path: Text<'a>,
    #[serde(borrow)]
    url: Text<'a>,
    #[serde(borrow)]
    query: Text<'a>,
    #[serde(borrow)]
    description: Text<'a>,
}

/// What tells most of a tool's input, on one line.
fn tool_preview(raw: &str) -> String {
    let input: ToolInput<'_> = serde_json::from_str(raw).unwrap_or_default();
    let fields = [&input.command, &input.file_path, &input.pattern, &input.path, &input.url, &input.query];
    let telling = fields.into_iter().chain([&input.description]).find_map(|field| field.as_str());
    sanitize::one_line(&sanitize::head(telling.unwrap_or(raw), 4 * PREVIEW), PREVIEW)
}
