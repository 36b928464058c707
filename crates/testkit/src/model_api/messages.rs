//! The Anthropic Messages protocol: what a request asks, and how an answer is worded, streamed or whole.

use serde_json::{Map, Value, json};

use super::script::Turn;

/// What matters of a request.
#[derive(Debug, Clone)]
pub(super) struct Conversation {
    /// The text of all prompts of the user.
    pub(super) prompt: String,
    /// Tool results after the last prompt of the user: how many steps have been taken.
    pub(super) steps: usize,
    /// It offers no shell tool: a title, a classifier … which must not advance the script.
    pub(super) side_call: bool,
    /// It wants server-sent events.
    pub(super) stream: bool,
    model: String,
    tools: Vec<Value>,
}

impl Conversation {
    pub(super) fn read(body: &Value) -> Self {
        let mut prompt = String::new();
        let mut steps = 0;
        for message in list(&body["messages"]).iter().filter(|m| m["role"] == "user") {
            let results = list(&message["content"]).iter().filter(|block| block["type"] == "tool_result").count();
            if results > 0 {
                steps += results;
                continue;
            }
            steps = 0;
            match &message["content"] {
                Value::String(text) => prompt.push_str(text),
                content => {
                    for text in list(content).iter().filter_map(|block| block["text"].as_str()) {
                        prompt.push_str(text);
                        prompt.push('\n');
                    }
                }
            }
        }
        let tools = list(&body["tools"]).to_vec();
        Self {
            prompt,
            steps,
            side_call: tool_of_kind(&tools, SHELL_TOOLS).is_none(),
            stream: body["stream"] == true,
            model: body["model"].as_str().unwrap_or("scripted-model").to_owned(),
            tools,
        }
    }

    /// The answer to a side call.
    pub(super) fn short_answer(&self) -> Answer {
        self.text_answer("Scripted side answer")
    }

    /// The answer that carries a plain text and ends the turn.
    pub(super) fn text_answer(&self, text: &str) -> Answer {
        Answer { model: self.model.clone(), block: json!({"type": "text", "text": text}), stop_reason: "end_turn" }
    }

    /// The answer for a turn of the script.
    pub(super) fn answer(&self, turn: &Turn) -> Answer {
        let call = match turn {
            Turn::Say { text } => return self.text_answer(text),
            Turn::Run { command } => self.tool_call(SHELL_TOOLS, |name| match name {
                "command" | "cmd" => Some(command.clone()),
                _ => None,
            }),
            Turn::Write { path, text } => self.tool_call(WRITE_TOOLS, |name| match name {
                "file_path" | "filePath" | "path" | "absolute_path" => Some(path.clone()),
                "content" | "file_text" | "contents" => Some(text.clone()),
                _ => None,
            }),
        };
        match call {
            Some(block) => Answer { model: self.model.clone(), block, stop_reason: "tool_use" },
            None => self.text_answer("The scripted model was offered no tool for its next step."),
        }
    }

    /// A call of the first offered tool of the kind, its arguments filled by its own schema.
    fn tool_call(&self, kind: &[&str], value: impl Fn(&str) -> Option<String>) -> Option<Value> {
        let tool = tool_of_kind(&self.tools, kind)?;
        let schema = &tool["input_schema"];
        let required: Vec<&str> = list(&schema["required"]).iter().filter_map(Value::as_str).collect();
        let mut input = Map::new();
        for (name, property) in schema["properties"].as_object()? {
            if let Some(text) = value(name) {
                input.insert(name.clone(), text.into());
            } else if required.contains(&name.as_str()) {
                input.insert(name.clone(), filler(property));
            }
        }
        let id = format!("toolu_{:024}", self.steps + 1);
        Some(json!({"type": "tool_use", "id": id, "name": tool["name"], "input": input}))
    }
}

const SHELL_TOOLS: &[&str] = &["bash", "shell", "run_shell_command", "exec_command"];
const WRITE_TOOLS: &[&str] = &["write", "write_file", "create"];

fn tool_of_kind<'a>(tools: &'a [Value], kind: &[&str]) -> Option<&'a Value> {
    tools.iter().find(|tool| {
        tool["name"].as_str().is_some_and(|name| kind.iter().any(|known| name.eq_ignore_ascii_case(known)))
    })
}

/// Something of the right type for an argument that the script has no opinion on.
fn filler(property: &Value) -> Value {
    match property["type"].as_str() {
        Some("boolean") => false.into(),
        Some("number" | "integer") => 1.into(),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => "scripted step".into(),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// One assistant message.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    model: String,
    block: Value,
    stop_reason: &'static str,
}

/// Tokens of every answer; the numbers only have to be recognisable.
const INPUT_TOKENS: u64 = 1000;
const OUTPUT_TOKENS: u64 = 50;

impl Answer {
    /// As one object, for a request that does not stream.
    pub(super) fn whole(&self) -> String {
        let mut message = self.envelope();
        message["content"] = json!([self.block]);
        message["stop_reason"] = self.stop_reason.into();
        message["usage"]["output_tokens"] = OUTPUT_TOKENS.into();
        message.to_string()
    }

    /// As server-sent events, in order.
    pub(super) fn events(&self) -> Vec<String> {
        let (empty, delta) = if self.block["type"] == "text" {
            (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": self.block["text"]}))
        } else {
            let mut empty = self.block.clone();
            empty["input"] = json!({});
            (empty, json!({"type": "input_json_delta", "partial_json": self.block["input"].to_string()}))
        };
        [
            json!({"type": "message_start", "message": self.envelope()}),
            json!({"type": "content_block_start", "index": 0, "content_block": empty}),
            json!({"type": "content_block_delta", "index": 0, "delta": delta}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": self.stop_reason, "stop_sequence": null},
                   "usage": {"output_tokens": OUTPUT_TOKENS}}),
            json!({"type": "message_stop"}),
        ]
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()))
        .collect()
    }

    fn envelope(&self) -> Value {
        json!({
            "id": "msg_scripted", "type": "message", "role": "assistant", "model": self.model, "content": [],
            "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": INPUT_TOKENS, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1},
        })
    }
}

/// The body of an error answer.
pub(super) fn error_body(kind: &str, message: &str) -> String {
    json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
}
