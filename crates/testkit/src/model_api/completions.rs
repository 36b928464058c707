//! The Chat Completions protocol, which nearly every server speaks.

use serde_json::{Value, json};

use super::conversation::{Conversation, Step, Tool, list, texts};
use super::protocol::{INPUT_TOKENS, OUTPUT_TOKENS};

pub(super) fn read(body: &Value) -> Conversation {
    let mut talk = Conversation {
        stream: body["stream"] == true,
        model: body["model"].as_str().unwrap_or("scripted-model").to_owned(),
        tools: list(&body["tools"])
            .iter()
            .map(|tool| &tool["function"])
            .filter_map(|tool| {
                Some(Tool { name: tool["name"].as_str()?.to_owned(), schema: tool["parameters"].clone() })
            })
            .collect(),
        ..Conversation::default()
    };
    for message in list(&body["messages"]) {
        match message["role"].as_str() {
            Some("user") => talk.asked(&texts(&message["content"]).join("\n")),
            Some("tool") => talk.steps += 1,
            _ => {}
        }
    }
    talk
}

/// As one object, for a request that does not stream.
pub(super) fn whole(talk: &Conversation, steps: &[Step]) -> String {
    let mut answer = envelope(talk, "chat.completion");
    answer["choices"] = json!([{"index": 0, "message": message(steps), "finish_reason": finish_reason(steps)}]);
    answer["usage"] = usage(talk);
    answer.to_string()
}

/// As server-sent events, in order.
pub(super) fn events(talk: &Conversation, steps: &[Step]) -> Vec<String> {
    let chunk = |delta: Value, finish: Value| {
        let mut chunk = envelope(talk, "chat.completion.chunk");
        chunk["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        chunk
    };
    let mut last = envelope(talk, "chat.completion.chunk");
    last["choices"] = json!([]);
    last["usage"] = usage(talk);
    let chunks = [chunk(message(steps), Value::Null), chunk(json!({}), finish_reason(steps).into()), last];
    chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).chain(["data: [DONE]\n\n".to_owned()]).collect()
}

fn message(steps: &[Step]) -> Value {
    let mut message = json!({"role": "assistant", "content": null});
    let mut calls = Vec::new();
    for step in steps {
        match step {
            Step::Say(text) => message["content"] = text.as_str().into(),
            Step::Call { id, name, input } => calls.push(json!({"index": calls.len(), "id": id, "type": "function",
                "function": {"name": name, "arguments": Value::from(input.clone()).to_string()}})),
        }
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    message
}

fn finish_reason(steps: &[Step]) -> &'static str {
    if steps.iter().any(|step| matches!(step, Step::Call { .. })) { "tool_calls" } else { "stop" }
}

fn usage(talk: &Conversation) -> Value {
    json!({"prompt_tokens": INPUT_TOKENS, "prompt_tokens_details": {"cached_tokens": talk.cache.read},
        "completion_tokens": OUTPUT_TOKENS, "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS})
}

fn envelope(talk: &Conversation, object: &str) -> Value {
    json!({"id": "chatcmpl-scripted", "object": object, "created": 1, "model": talk.model})
}
