//! The `generateContent` protocol of Gemini.

use serde_json::{Value, json};

use super::conversation::{Conversation, Step, Tool, list};
use super::protocol::{INPUT_TOKENS, OUTPUT_TOKENS};

pub(super) fn read(body: &Value, stream: bool) -> Conversation {
    let declared = list(&body["tools"]).iter().flat_map(|tool| list(&tool["functionDeclarations"]));
    let mut talk = Conversation {
        stream,
        model: "scripted-model".to_owned(),
        tools: declared
            .filter_map(|tool| {
                let schema = ["parametersJsonSchema", "parameters"].into_iter().find_map(|key| tool.get(key));
                Some(Tool { name: tool["name"].as_str()?.to_owned(), schema: schema.cloned().unwrap_or_default() })
            })
            .collect(),
        ..Conversation::default()
    };
    for content in list(&body["contents"]).iter().filter(|content| content["role"] == "user") {
        let parts = list(&content["parts"]);
        let results = parts.iter().filter(|part| part.get("functionResponse").is_some()).count();
        if results > 0 {
            talk.steps += results;
        } else {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            talk.asked(&texts.join("\n"));
        }
    }
    talk
}

/// As one object, for a request that does not stream.
pub(super) fn whole(talk: &Conversation, steps: &[Step]) -> String {
    chunk(talk, &steps.iter().map(part).collect::<Vec<_>>(), true).to_string()
}

/// As server-sent events, in order: a thought first, so that an answer can be cut before its end.
pub(super) fn events(talk: &Conversation, steps: &[Step]) -> Vec<String> {
    let thought = json!({"text": "Scripted thought", "thought": true});
    [chunk(talk, &[thought], false), chunk(talk, &steps.iter().map(part).collect::<Vec<_>>(), true)]
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect()
}

fn part(step: &Step) -> Value {
    match step {
        Step::Say(text) => json!({"text": text}),
        Step::Call { id, name, input } => json!({"functionCall": {"id": id, "name": name, "args": input}}),
    }
}

fn chunk(talk: &Conversation, parts: &[Value], is_last: bool) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if is_last {
        candidate["finishReason"] = "STOP".into();
    }
    json!({"candidates": [candidate], "usageMetadata": usage(talk), "modelVersion": "scripted"})
}

fn usage(talk: &Conversation) -> Value {
    json!({"promptTokenCount": INPUT_TOKENS, "cachedContentTokenCount": talk.cache.read, "candidatesTokenCount": OUTPUT_TOKENS, "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS})
}
