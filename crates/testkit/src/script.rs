//! What the scripted agent does, as data in a file: per story and call a list of steps.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The signal that a story is complete, as the prompt asks for it.
pub const COMPLETE: &str = "<promise>COMPLETE</promise>";

/// All that a scripted agent knows.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct AgentScript {
    stories: Vec<StoryCalls>,
    otherwise: Vec<Call>,
}

/// What happens in the calls about one story.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoryCalls {
    when: String,
    calls: Vec<Call>,
}

/// Which entry of a script serves a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selected {
    /// The text that was found, empty for `otherwise`.
    pub(crate) when: String,
    calls: Vec<Call>,
}

impl Selected {
    /// The steps of the `number`-th call (from 1); the last one serves all later calls.
    pub(crate) fn call(&self, number: usize) -> Call {
        self.calls.get(number.saturating_sub(1)).or(self.calls.last()).cloned().unwrap_or_default()
    }
}

impl AgentScript {
    /// An agent that ends every call without a word.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An agent that plays the same calls for whatever story it is given.
    #[must_use]
    pub fn always(calls: impl IntoIterator<Item = Call>) -> Self {
        Self { stories: Vec::new(), otherwise: calls.into_iter().collect() }
    }

    /// Adds the calls about the story whose prompt names `when`. If a prompt names several, the first named counts.
    #[must_use]
    pub fn story(mut self, when: &str, calls: impl IntoIterator<Item = Call>) -> Self {
        self.stories.push(StoryCalls { when: when.to_owned(), calls: calls.into_iter().collect() });
        self
    }

    pub(crate) fn select(&self, prompt: &str) -> Selected {
        let named =
            self.stories.iter().filter_map(|s| prompt.find(&s.when).map(|at| (at, s))).min_by_key(|(at, _)| *at);
        match named {
            Some((_, story)) => Selected { when: story.when.clone(), calls: story.calls.clone() },
            None => Selected { when: String::new(), calls: self.otherwise.clone() },
        }
    }
}

/// The steps of one call of the agent, in order. After the last one it exits with code 0.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Call {
    pub(crate) steps: Vec<Step>,
}

/// One step. Paths are relative to the agent's working directory, or absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    Write { path: String, text: String },
    Remove { path: String },
    Tick { path: String, text: String },
    Shell { command: String },
    Emit { event: Value },
    Raw { line: String },
    Stderr { text: String },
    Flood { bytes: usize },
    Touch { path: String },
    WaitFor { path: String },
    IgnoreTerm,
    LeaveChild { holds_stdout: bool },
    Hang,
    Exit { code: u8 },
}

/// Begins a call without any step.
#[must_use]
pub fn call() -> Call {
    Call::default()
}

impl Call {
    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    fn emit(self, event: Value) -> Self {
        self.step(Step::Emit { event })
    }

    /// Writes a file, its folders too, and says so as a tool call.
    #[must_use]
    pub fn write(self, path: &str, text: &str) -> Self {
        self.tool("Write", &serde_json::json!({"file_path": path}), "written")
            .step(Step::Write { path: path.to_owned(), text: text.to_owned() })
    }

    /// Removes a file.
    #[must_use]
    pub fn remove(self, path: &str) -> Self {
        self.step(Step::Remove { path: path.to_owned() })
    }

    /// Ticks every open box of a file whose line contains `text`.
    #[must_use]
    pub fn tick(self, path: &str, text: &str) -> Self {
        self.step(Step::Tick { path: path.to_owned(), text: text.to_owned() })
    }

    /// Runs a command with `sh -c` to its end, whatever its exit code.
    #[must_use]
    pub fn shell(self, command: &str) -> Self {
        self.step(Step::Shell { command: command.to_owned() })
    }

    /// Says a text in an assistant message, before the final one.
    #[must_use]
    pub fn say(self, text: &str) -> Self {
        self.emit(assistant(&serde_json::json!({"type": "text", "text": text})))
    }

    /// Thinks aloud.
    #[must_use]
    pub fn think(self, text: &str) -> Self {
        self.emit(assistant(&serde_json::json!({"type": "thinking", "thinking": text})))
    }

    /// Calls a tool and shows its result.
    #[must_use]
    pub fn tool(self, name: &str, input: &Value, result: &str) -> Self {
        let call = serde_json::json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": input});
        let result = serde_json::json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": result});
        self.emit(assistant(&call)).emit(user(&result))
    }

    /// Repeats a text of the user, as clients echo the prompt.
    #[must_use]
    pub fn echo(self, text: &str) -> Self {
        self.emit(user(&serde_json::json!({"type": "text", "text": text})))
    }

    /// Lets a sub-agent speak.
    #[must_use]
    pub fn sub_agent(self, text: &str) -> Self {
        let mut event = assistant(&serde_json::json!({"type": "text", "text": text}));
        event["parent_tool_use_id"] = "toolu_9".into();
        self.emit(event)
    }

    /// Ends well with `text` as the final message.
    #[must_use]
    pub fn end(self, text: &str) -> Self {
        self.end_at_cost(text, 0.01)
    }

    /// Ends well with `text` as the final message, at a cost in dollars.
    #[must_use]
    pub fn end_at_cost(self, text: &str, dollars: f64) -> Self {
        self.say(text).emit(serde_json::json!({
            "type": "result", "subtype": "success", "is_error": false, "result": text, "num_turns": 3,
            "session_id": SESSION, "total_cost_usd": dollars, "duration_ms": 1200, "terminal_reason": "completed",
            "usage": {"input_tokens": 1000, "output_tokens": 50, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0},
        }))
    }

    /// Ends well and claims the story complete.
    #[must_use]
    pub fn complete(self) -> Self {
        self.end(&format!("Finished.\n{COMPLETE}"))
    }

    /// Ends well and claims that the story failed.
    #[must_use]
    pub fn failed(self, reason: &str) -> Self {
        self.end(&format!("I could not do it.\n<promise>FAILED: {reason}</promise>"))
    }

    /// Ends well and claims that a person is needed.
    #[must_use]
    pub fn blocked(self, reason: &str) -> Self {
        self.end(&format!("I cannot go on.\n<promise>BLOCKED: {reason}</promise>"))
    }

    /// Ends with an error of the provider, as the client reports it, and exit code 1.
    #[must_use]
    pub fn api_error(self, status: u16, message: &str) -> Self {
        self.emit(serde_json::json!({
            "type": "result", "subtype": "success", "is_error": true, "result": format!("API Error: {status} {message}"),
            "num_turns": 1, "session_id": SESSION, "total_cost_usd": 0, "terminal_reason": "api_error", "api_error_status": status,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }))
        .exit(1)
    }

    /// Ends on the account's usage limit, which is lifted at `resets_at` (seconds since the epoch).
    #[must_use]
    pub fn usage_limit(self, resets_at: u64) -> Self {
        self.emit(serde_json::json!({
            "type": "rate_limit_event", "session_id": SESSION,
            "rate_limit_info": {"status": "rejected", "resetsAt": resets_at, "rateLimitType": "five_hour", "utilization": 1},
        }))
        .emit(serde_json::json!({
            "type": "result", "subtype": "success", "is_error": true, "result": "You've hit your 5-hour limit",
            "num_turns": 1, "session_id": SESSION, "total_cost_usd": 0, "terminal_reason": "api_error",
            "api_error_status": 429, "api_error": "usage_limit_reached", "usage": {"input_tokens": 0, "output_tokens": 0},
        }))
        .exit(1)
    }

    /// Writes a line to stdout as it is.
    #[must_use]
    pub fn raw(self, line: &str) -> Self {
        self.step(Step::Raw { line: line.to_owned() })
    }

    /// Writes to stderr.
    #[must_use]
    pub fn stderr(self, text: &str) -> Self {
        self.step(Step::Stderr { text: text.to_owned() })
    }

    /// Says this many bytes of text in assistant messages.
    #[must_use]
    pub fn flood(self, bytes: usize) -> Self {
        self.step(Step::Flood { bytes })
    }

    /// Makes an empty file, for the test to wait for.
    #[must_use]
    pub fn touch(self, path: impl AsRef<std::path::Path>) -> Self {
        self.step(Step::Touch { path: path.as_ref().to_string_lossy().into_owned() })
    }

    /// Waits until the test has made a file.
    #[must_use]
    pub fn wait_for(self, path: impl AsRef<std::path::Path>) -> Self {
        self.step(Step::WaitFor { path: path.as_ref().to_string_lossy().into_owned() })
    }

    /// Ignores TERM, INT and HUP from here on.
    #[must_use]
    pub fn ignore_term(self) -> Self {
        self.step(Step::IgnoreTerm)
    }

    /// Leaves a child behind in a session of its own, which never ends by itself.
    #[must_use]
    pub fn leave_child(self, holds_stdout: bool) -> Self {
        self.step(Step::LeaveChild { holds_stdout })
    }

    /// Does nothing more, for ever.
    #[must_use]
    pub fn hang(self) -> Self {
        self.step(Step::Hang)
    }

    /// Exits at once.
    #[must_use]
    pub fn exit(self, code: u8) -> Self {
        self.step(Step::Exit { code })
    }
}

/// The session id in everything that the scripted agent says.
pub(crate) const SESSION: &str = "00000000-0000-4000-8000-000000000001";

pub(crate) fn assistant(block: &Value) -> Value {
    serde_json::json!({
        "type": "assistant", "session_id": SESSION, "parent_tool_use_id": null,
        "message": {"id": "msg_scripted", "role": "assistant", "model": "scripted-model", "content": [block], "stop_reason": null,
                    "usage": {"input_tokens": 1000, "output_tokens": 1}},
    })
}

fn user(block: &Value) -> Value {
    serde_json::json!({"type": "user", "session_id": SESSION, "message": {"role": "user", "content": [block]}})
}
