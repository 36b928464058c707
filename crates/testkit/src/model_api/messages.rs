//! The Messages protocol of Anthropic.

use serde_json::{Value, json};

use super::conversation::{Conversation, Step, Tool, list, texts};
use super::protocol::{INPUT_TOKENS, OUTPUT_TOKENS};
use super::script::CacheUse;

pub(super) fn read(body: &Value) -> Conversation {
    let mut talk = Conversation {
        stream: body["stream"] == true,
        model: body["model"].as_str().unwrap_or("scripted-model").to_owned(),
        tools: list(&body["tools"])
            .iter()
            .filter_map(|tool| {
                Some(Tool { name: tool["name"].as_str()?.to_owned(), schema: tool["input_schema"].clone() })
            })
            .collect(),
        ..Conversation::default()
    };
    for message in list(&body["messages"]).iter().filter(|message| message["role"] != "assistant") {
        if message["role"] == "system" {
            talk.told(&texts(&message["content"]).join("\n"));
            continue;
        }
        let results = list(&message["content"]).iter().filter(|block| block["type"] == "tool_result").count();
        if results > 0 {
            talk.steps += results;
        } else {
            talk.asked(&texts(&message["content"]).join("\n"));
        }
    }
    talk
}

/// As one object, for a request that does not stream.
pub(super) fn whole(talk: &Conversation, steps: &[Step]) -> String {
    let mut message = envelope(talk);
    message["content"] = steps.iter().map(block).collect();
    message["stop_reason"] = stop_reason(steps).into();
    message["usage"]["output_tokens"] = OUTPUT_TOKENS.into();
    message.to_string()
}

/// As server-sent events, in order.
pub(super) fn events(talk: &Conversation, steps: &[Step]) -> Vec<String> {
    let blocks = steps.iter().enumerate().flat_map(|(index, step)| {
        let (empty, delta) = match step {
            Step::Say(text) => (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text})),
            Step::Call { id, name, input } => (
                json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                json!({"type": "input_json_delta", "partial_json": Value::from(input.clone()).to_string()}),
            ),
        };
        [
            json!({"type": "content_block_start", "index": index, "content_block": empty}),
            json!({"type": "content_block_delta", "index": index, "delta": delta}),
            json!({"type": "content_block_stop", "index": index}),
        ]
    });
    let end = [
        json!({"type": "message_delta", "delta": {"stop_reason": stop_reason(steps), "stop_sequence": null},
               "usage": {"output_tokens": OUTPUT_TOKENS}}),
        json!({"type": "message_stop"}),
    ];
    let events = [json!({"type": "message_start", "message": envelope(talk)})].into_iter().chain(blocks).chain(end);
    events.map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())).collect()
}

fn block(step: &Step) -> Value {
    match step {
        Step::Say(text) => json!({"type": "text", "text": text}),
        Step::Call { id, name, input } => json!({"type": "tool_use", "id": id, "name": name, "input": input}),
    }
}

fn stop_reason(steps: &[Step]) -> &'static str {
    if steps.iter().any(|step| matches!(step, Step::Call { .. })) { "tool_use" } else { "end_turn" }
}

fn envelope(talk: &Conversation) -> Value {
    let CacheUse { read, written } = talk.cache;
    json!({
        "id": "msg_scripted", "type": "message", "role": "assistant", "model": talk.model, "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": INPUT_TOKENS - read - written, "cache_creation_input_tokens": written,
            "cache_read_input_tokens": read, "output_tokens": 1},
    })
}
