//! An agent that speaks the Agent Client Protocol, version 1: JSON-RPC, one object a line, on its standard streams. Unlike
//! the others it is talked with: a session is opened, given the prompt, and its questions are answered. What is to be said
//! follows from what was read, so that it stays a reading of bytes.

use std::collections::BTreeMap;

use ralphloop_core::evidence::Usage;
use ralphloop_core::units::Usd;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::classify::class_of_failure;
use crate::event::AgentEvent;
use crate::lenient::{Number, ObjectOrText, Text};
use crate::plan;
use crate::trace::{Dialect, Sink, Terminal};

/// The protocol's version that is spoken.
const VERSION: u32 = 1;
/// A message in pieces is passed on when it is longer than this, in bytes.
const LONG: usize = 32 << 10;
/// Modes in which an agent asks for nothing, as agents call them, the best first. Nobody is there to answer.
const FREE_MODES: [&str; 5] = ["bypassPermissions", "full-access", "yolo", "autopilot", "build"];
/// "There is no such method", in JSON-RPC.
const NO_METHOD: i32 = -32601;

/// The requests of ours, by their ids.
const INITIALIZE: u32 = 1;
const NEW_SESSION: u32 = 2;
const SET_MODE: u32 = 3;
const PROMPT: u32 = 4;

/// What an agent is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errand {
    /// The prompt.
    pub prompt: String,
    /// The folder to work in, absolute.
    pub folder: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Text<'a>,
    #[serde(borrow)]
    params: ObjectOrText<'a, Params<'a>>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: ObjectOrText<'a, Error<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Error<'a> {
    #[serde(borrow)]
    message: Text<'a>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Params<'a> {
    #[serde(borrow)]
    update: ObjectOrText<'a, Update<'a>>,
    #[serde(borrow)]
    tool_call: ObjectOrText<'a, Update<'a>>,
    #[serde(borrow)]
    options: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Update<'a> {
    #[serde(borrow)]
    session_update: Text<'a>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_call_id: Text<'a>,
    #[serde(borrow)]
    title: Text<'a>,
    #[serde(borrow)]
    status: Text<'a>,
    #[serde(borrow)]
    raw_input: Option<&'a RawValue>,
    #[serde(borrow)]
    raw_output: Option<&'a RawValue>,
    #[serde(borrow)]
    entries: Option<&'a RawValue>,
    #[serde(borrow)]
    cost: ObjectOrText<'a, Cost<'a>>,
    /// What an agent adds of its own; Codex tells its failures there.
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cost<'a> {
    amount: Number,
    #[serde(borrow)]
    currency: Text<'a>,
}

/// The state between two lines.
#[derive(Debug, Default)]
pub(crate) struct Acp {
    /// What is to be said; nothing if a conversation that is over is only read.
    errand: Option<Errand>,
    /// What waits to be written to the agent.
    replies: Vec<u8>,
    session: Option<String>,
    /// What asks the agent to end the turn that is under way.
    farewell: Vec<u8>,
    /// It was asked to: nothing is allowed any more.
    winds_up: bool,
    usage: Usage,
    /// What was said since the last tool call.
    text: String,
    /// How much of that was passed on.
    passed_on: usize,
    /// Titles of tool calls by their ids, until they end.
    tools: BTreeMap<String, String>,
    denials: Vec<String>,
    /// A failure that was told beside the protocol: such a turn ends like a good one.
    failure: Option<String>,
}

impl Acp {
    /// Opens the conversation.
    pub(crate) fn talking(errand: Errand) -> Self {
        let mut this = Self { errand: Some(errand), ..Self::default() };
        // Files are the agent's own business: it works in the same tree.
        let capabilities = json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
        this.ask(INITIALIZE, "initialize", &json!({"protocolVersion": VERSION, "clientCapabilities": capabilities}));
        this
    }

    fn ask(&mut self, id: u32, method: &str, params: &Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    fn answer(&mut self, id: &RawValue, answer: (&str, &Value)) {
        let id: Value = serde_json::from_str(id.get()).unwrap_or_default();
        let (kind, value) = answer;
        self.say(&json!({"jsonrpc": "2.0", "id": id, kind: value}));
    }

    fn say(&mut self, message: &Value) {
        if self.errand.is_some() {
            self.replies.extend(line_of(message));
        }
    }

    /// The agent answers a request of ours.
    fn answered(&mut self, id: u32, line: &Line<'_>, sink: &mut Sink<'_>) {
        if let Some(error) = line.error.object() {
            return Self::refused(error, sink);
        }
        let result: Value = line.result.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        if id == INITIALIZE {
            let version = result["agentInfo"]["version"].as_str().map(str::to_owned);
            sink.started(None, version, None);
            let folder = self.errand.as_ref().map(|errand| errand.folder.clone()).unwrap_or_default();
            self.ask(NEW_SESSION, "session/new", &json!({"cwd": folder, "mcpServers": []}));
        } else if id == NEW_SESSION {
            self.session = result["sessionId"].as_str().map(str::to_owned);
            let current = &result["modes"]["currentModeId"];
            let modes = result["modes"]["availableModes"].as_array().map_or(&[][..], Vec::as_slice);
            let free = FREE_MODES.iter().find(|free| modes.iter().any(|mode| mode["id"] == **free));
            match free.filter(|free| current != **free) {
                Some(mode) => {
                    let params = json!({"sessionId": self.session, "modeId": mode});
                    self.ask(SET_MODE, "session/set_mode", &params);
                }
                None => self.give_prompt(),
            }
        } else if id == SET_MODE {
            self.give_prompt();
        } else if id == PROMPT {
            self.farewell.clear();
            self.turn_is_over(&result, sink);
        }
    }

    fn give_prompt(&mut self) {
        let prompt = self.errand.as_ref().map(|errand| errand.prompt.clone()).unwrap_or_default();
        let params = json!({"sessionId": self.session, "prompt": [{"type": "text", "text": prompt}]});
        self.ask(PROMPT, "session/prompt", &params);
        let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": self.session}});
        self.farewell = line_of(&cancel);
    }

    fn refused(error: &Error<'_>, sink: &mut Sink<'_>) {
        let message = error.message.as_str().unwrap_or("the agent refused a request");
        let data = error.data.map(RawValue::get).unwrap_or_default();
        let words = if data.is_empty() || data == "null" { message.to_owned() } else { format!("{message}: {data}") };
        let kind = data.to_lowercase();
        let class = class_of_failure(message).or_else(|| class_of_failure(data)).or_else(|| {
            [("rate_limit", "429"), ("usagelimitexceeded", "429"), ("server_error", "529 Overloaded")]
                .iter()
                .find(|(told, _)| kind.contains(told))
                .and_then(|(_, meaning)| class_of_failure(&format!("last status: {meaning}")))
        });
        sink.end(Terminal::failed(words, class), None);
    }

    fn turn_is_over(&mut self, result: &Value, sink: &mut Sink<'_>) {
        let count = |names: &[&str]| {
            let counts: Vec<u64> = names.iter().filter_map(|name| result["usage"][*name].as_u64()).collect();
            (!counts.is_empty()).then(|| counts.iter().sum())
        };
        // Cached ones are told apart from the others.
        self.usage.input_tokens = count(&["inputTokens", "cachedReadTokens", "cachedWriteTokens"]);
        self.usage.output_tokens = count(&["outputTokens"]);
        if self.usage != Usage::default() {
            sink.tell(AgentEvent::Usage { so_far: self.usage });
        }
        let stop = result["stopReason"].as_str().unwrap_or("nothing");
        let terminal = match (stop, self.failure.take()) {
            (_, Some(words)) => Terminal::failed(&words, class_of_failure(&words)),
            ("end_turn", None) => {
                Terminal { denials: std::mem::take(&mut self.denials), ..Terminal::finished(&self.text) }
            }
            ("max_tokens", None) => {
                let words = "the agent's answer reached the model's limit of tokens (max_tokens)";
                Terminal::failed(words, None)
            }
            (other, None) => Terminal::failed(format!("the agent ended its turn with `{other}`"), None),
        };
        sink.end(terminal, None);
    }

    /// The agent asks something of us.
    fn asked(&mut self, id: &RawValue, line: &Line<'_>, sink: &mut Sink<'_>) {
        let params = line.params.object();
        if !line.method.is("session/request_permission") {
            let error = json!({"code": NO_METHOD, "message": "this client has no such method"});
            return self.answer(id, ("error", &error));
        }
        let options: Vec<Value> = params
            .and_then(|params| params.options)
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        let option =
            |kind: &str| options.iter().find(|option| option["kind"] == kind).map(|option| &option["optionId"]);
        let allowed = option("allow_once").or_else(|| option("allow_always"));
        let outcome = if self.winds_up {
            json!({"outcome": "cancelled"})
        } else if let Some(chosen) = allowed {
            json!({"outcome": "selected", "optionId": chosen})
        } else {
            let tool = params.and_then(|params| params.tool_call.object()).and_then(|call| call.title.owned());
            let tool = tool.unwrap_or_else(|| "a tool".to_owned());
            sink.tell(AgentEvent::PermissionDenied { tool: tool.clone() });
            self.denials.push(tool);
            json!({"outcome": "cancelled"})
        };
        self.answer(id, ("result", &json!({"outcome": outcome})));
    }

    /// The agent tells what it does.
    fn told(&mut self, update: &Update<'_>, sink: &mut Sink<'_>) {
        match update.session_update.as_str().unwrap_or_default() {
            "agent_message_chunk" => {
                let piece = text_of(update.content);
                sink.notes.alive(&piece);
                self.text.push_str(&piece);
                if self.text.len() - self.passed_on > LONG {
                    self.pass_on(sink);
                }
            }
            "agent_thought_chunk" => {
                self.pass_on(sink);
                sink.thought(&text_of(update.content));
            }
            kind @ ("tool_call" | "tool_call_update") => {
                self.pass_on(sink);
                self.tool(kind == "tool_call", update, sink);
            }
            "plan" => {
                self.pass_on(sink);
                sink.plans(update.entries.map(|list| plan::of_list(list.get())).unwrap_or_default());
            }
            "usage_update" => {
                if let Some(cost) = update.cost.object().filter(|cost| cost.currency.is("USD")) {
                    self.usage.cost = cost.amount.0.map(Usd::from_dollars);
                    sink.tell(AgentEvent::Usage { so_far: self.usage });
                }
            }
            "session_info_update" => {
                let meta: Value = update.meta.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
                let error = &meta["codex"]["error"];
                if !error.is_null() {
                    self.failure = Some(error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned));
                }
            }
            _ => {}
        }
    }

    fn tool(&mut self, begins: bool, update: &Update<'_>, sink: &mut Sink<'_>) {
        let id = update.tool_call_id.as_str().unwrap_or_default();
        if begins || !self.tools.contains_key(id) {
            self.text.clear();
            self.passed_on = 0;
            let title = update.title.as_str().unwrap_or("tool");
            self.tools.insert(id.to_owned(), title.to_owned());
            sink.tool_started(id, title, update.raw_input.map_or("", RawValue::get), false);
        }
        if let Some(status @ ("completed" | "failed")) = update.status.as_str() {
            let output = update.raw_output.or(update.content).map_or("", RawValue::get);
            sink.tool_returned(id, status == "completed", output);
            self.tools.remove(id);
        }
    }

    fn pass_on(&mut self, sink: &mut Sink<'_>) {
        let rest = self.text.get(self.passed_on..).unwrap_or_default();
        if !rest.trim().is_empty() {
            sink.said(rest);
        }
        self.passed_on = self.text.len();
    }
}

/// A message as it is sent.
fn line_of(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// The text of a content block.
fn text_of(content: Option<&RawValue>) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Block<'a> {
        #[serde(borrow)]
        text: Text<'a>,
    }
    let block: Block<'_> = content.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    block.text.owned().unwrap_or_default()
}

impl Dialect for Acp {
    fn line(&mut self, line: &str, sink: &mut Sink<'_>) -> bool {
        let Ok(message) = serde_json::from_str::<Line<'_>>(line) else { return false };
        let method = message.method.as_str();
        match (message.id, method) {
            (Some(id), Some(_)) => self.asked(id, &message, sink),
            (None, Some("session/update")) => {
                if let Some(update) = message.params.object().and_then(|params| params.update.object()) {
                    self.told(update, sink);
                }
            }
            (None, Some(_)) => {}
            (Some(id), None) => {
                // Some languages write whole numbers as fractions.
                let Ok(id) = id.get().trim_end_matches(".0").parse() else { return false };
                self.pass_on(sink);
                self.answered(id, &message, sink);
            }
            (None, None) => return false,
        }
        true
    }

    fn pause(&mut self, sink: &mut Sink<'_>) {
        self.pass_on(sink);
    }

    fn finish(&mut self, sink: &mut Sink<'_>) {
        self.pass_on(sink);
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn replies(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.replies)
    }

    fn farewell(&self) -> &[u8] {
        if self.errand.is_some() { &self.farewell } else { &[] }
    }

    fn wind_up(&mut self) {
        self.winds_up = true;
    }
}
