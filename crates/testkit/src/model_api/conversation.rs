//! What matters of a request, whatever protocol it speaks, and what the scripted model does next.

use serde_json::{Map, Value, json};

use super::script::{CacheUse, Turn};

/// A request, read.
#[derive(Debug, Clone, Default)]
pub(super) struct Conversation {
    /// The text of all prompts of the user, and of what the client says by itself between them.
    pub(super) prompt: String,
    /// Tool results after the last prompt of the user: how many steps have been taken.
    pub(super) steps: usize,
    /// It wants server-sent events.
    pub(super) stream: bool,
    pub(super) model: String,
    pub(super) tools: Vec<Tool>,
    /// What its answer says of the cache.
    pub(super) cache: CacheUse,
}

/// A tool that the client offers.
#[derive(Debug, Clone)]
pub(super) struct Tool {
    pub(super) name: String,
    /// The JSON Schema of its input.
    pub(super) schema: Value,
}

/// What the model answers.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// A text that ends the turn.
    Say(String),
    /// A call of a tool.
    Call { id: String, name: String, input: Map<String, Value> },
}

const SHELL_TOOLS: &[&str] = &["bash", "shell", "run_shell_command", "exec_command"];
const WRITE_TOOLS: &[&str] = &["write", "write_file", "create"];

impl Conversation {
    /// A prompt of the user: what was done before it is done.
    pub(super) fn asked(&mut self, text: &str) {
        self.steps = 0;
        self.told(text);
    }

    /// The client says something by itself, such as what a hook of it says: what was done stays done.
    pub(super) fn told(&mut self, text: &str) {
        self.prompt.push_str(text);
        self.prompt.push('\n');
    }

    /// It offers no shell tool: a title, a classifier … which must not advance the script.
    pub(super) fn is_side_call(&self) -> bool {
        self.tool_of_kind(SHELL_TOOLS).is_none()
    }

    /// What comes for a turn of the script: several calls, or one step.
    pub(super) fn steps(&self, turn: &Turn) -> Vec<Step> {
        let Turn::Together { calls } = turn else { return vec![self.step(turn)] };
        let call = |(number, (tool, input)): (usize, &(String, Value))| match self.named(tool, input) {
            Some(Step::Call { id, name, input }) => Step::Call { id: format!("{id}_{number}"), name, input },
            _ => no_tool(),
        };
        calls.iter().enumerate().map(call).collect()
    }

    /// A call of the offered tool whose name ends so.
    fn named(&self, tool: &str, input: &Value) -> Option<Step> {
        let offered = self.tools.iter().find(|offered| offered.name.ends_with(tool))?;
        let input = input.as_object().cloned().unwrap_or_default();
        Some(Step::Call { id: self.next_id(), name: offered.name.clone(), input })
    }

    fn step(&self, turn: &Turn) -> Step {
        let shell = |command: &str| {
            self.tool_call(SHELL_TOOLS, |name| match name {
                "command" | "cmd" => Some(command.to_owned()),
                _ => None,
            })
        };
        let call = match turn {
            Turn::Say { text } => return Step::Say(text.clone()),
            Turn::Run { command } => shell(command),
            Turn::Call { tool, input } => self.named(tool, input),
            Turn::Together { .. } => None,
            Turn::Write { path, text } => self
                .tool_call(WRITE_TOOLS, |name| match name {
                    "file_path" | "filePath" | "path" | "absolute_path" => Some(path.clone()),
                    "content" | "file_text" | "contents" => Some(text.clone()),
                    _ => None,
                })
                // A client without a tool that writes files writes them by its shell.
                .or_else(|| shell(&format!("printf %s {} > {}", quoted(text), quoted(path)))),
        };
        call.unwrap_or_else(no_tool)
    }

    fn next_id(&self) -> String {
        format!("toolu_{:024}", self.steps + 1)
    }

    fn tool_of_kind(&self, kind: &[&str]) -> Option<&Tool> {
        self.tools.iter().find(|tool| kind.iter().any(|known| tool.name.eq_ignore_ascii_case(known)))
    }

    /// A call of the first offered tool of the kind, its arguments filled by its own schema.
    fn tool_call(&self, kind: &[&str], value: impl Fn(&str) -> Option<String>) -> Option<Step> {
        let tool = self.tool_of_kind(kind)?;
        let required: Vec<&str> = list(&tool.schema["required"]).iter().filter_map(Value::as_str).collect();
        let mut input = Map::new();
        for (name, property) in tool.schema["properties"].as_object()? {
            if let Some(text) = value(name) {
                input.insert(name.clone(), text.into());
            } else if required.contains(&name.as_str()) {
                input.insert(name.clone(), filler(property));
            }
        }
        Some(Step::Call { id: self.next_id(), name: tool.name.clone(), input })
    }
}

fn no_tool() -> Step {
    Step::Say("The scripted model was offered no tool for its next step.".to_owned())
}

/// Something of the right type for an argument that the script has no opinion on.
fn filler(property: &Value) -> Value {
    match property["type"].as_str().map(str::to_ascii_lowercase).as_deref() {
        Some("boolean") => false.into(),
        Some("number" | "integer") => 1.into(),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => "scripted step".into(),
    }
}

/// As one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The texts of a content that is a text or a list of parts.
pub(super) fn texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        content => list(content).iter().filter_map(|part| part["text"].as_str()).collect(),
    }
}
