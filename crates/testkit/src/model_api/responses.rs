//! The Responses protocol of OpenAI, which always streams.

use serde_json::{Value, json};

use super::conversation::{Conversation, Step, Tool, list, texts};
use super::protocol::{INPUT_TOKENS, OUTPUT_TOKENS};

pub(super) fn read(body: &Value) -> Conversation {
    let mut talk = Conversation {
        stream: true,
        model: body["model"].as_str().unwrap_or("scripted-model").to_owned(),
        tools: list(&body["tools"])
            .iter()
            .filter_map(|tool| {
                Some(Tool { name: tool["name"].as_str()?.to_owned(), schema: tool["parameters"].clone() })
            })
            .collect(),
        ..Conversation::default()
    };
    for item in list(&body["input"]) {
        if item["role"] == "user" {
            talk.asked(&texts(&item["content"]).join("\n"));
        } else if item["type"] == "function_call_output" {
            talk.steps += 1;
        }
    }
    talk
}

/// As server-sent events, in order.
pub(super) fn events(talk: &Conversation, steps: &[Step]) -> Vec<String> {
    let items: Vec<Value> = steps.iter().map(item).collect();
    let usage = json!({
        "input_tokens": INPUT_TOKENS, "input_tokens_details": {"cached_tokens": talk.cache.read}, "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    });
    let response =
        |status: &str| json!({"id": "resp_scripted", "object": "response", "model": talk.model, "status": status});
    let mut completed = response("completed");
    completed["output"] = items.clone().into();
    completed["usage"] = usage;
    let parts = items.iter().enumerate().flat_map(|(index, item)| {
        let text = &item["content"][0]["text"];
        let said = json!({"type": "response.output_text.delta", "output_index": index, "item_id": item["id"],
            "content_index": 0, "delta": text});
        [
            Some(json!({"type": "response.output_item.added", "output_index": index, "item": item})),
            text.is_string().then_some(said),
            Some(json!({"type": "response.output_item.done", "output_index": index, "item": item})),
        ]
    });
    let begin = json!({"type": "response.created", "response": response("in_progress")});
    let end = json!({"type": "response.completed", "response": completed});
    [begin]
        .into_iter()
        .chain(parts.flatten())
        .chain([end])
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()))
        .collect()
}

fn item(step: &Step) -> Value {
    match step {
        Step::Say(text) => json!({"type": "message", "id": "msg_scripted", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]}),
        Step::Call { id, name, input } => {
            json!({"type": "function_call", "id": "fc_scripted", "call_id": id, "name": name,
            "status": "completed", "arguments": Value::from(input.clone()).to_string()})
        }
    }
}
