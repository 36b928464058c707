//! The Agent Client Protocol: a whole conversation, however its bytes are cut.

use std::time::Duration;

use jiff::tz::TimeZone;
use ralphloop_agent::decoder::{Clock, Decoder, Ending, Errand, LOOP_AFTER, ProcessEnd};
use ralphloop_agent::event::{AgentEvent, Stream};
use ralphloop_agent::plan::in_full;
use ralphloop_core::evidence::{AgentEnd, AgentReport, Claim};
use ralphloop_core::ids::StoryId;
use ralphloop_core::signal::SignalGrammar;
use ralphloop_core::units::Timestamp;
use serde_json::Value;

/// What an agent says: handshake, a mode, text around a tool, a question, things nobody knows, and the end of its turn.
const SAID: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"version":"7.1"}}}
{"jsonrpc":"2.0","id":2.0,"result":{"sessionId":"s-1","modes":{"currentModeId":"default","availableModes":[{"id":"default"},{"id":"yolo"}]}}}
{"jsonrpc":"2.0","id":3,"result":{}}
warming up, no JSON
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Hm.\n<promise>FAILED: no</promise>"}}}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"First I look."}}}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"tool_call","toolCallId":"t1","title":"cat ä.txt","kind":"read","status":"pending"}}}
{"jsonrpc":"2.0","id":"ask-1","method":"session/request_permission","params":{"sessionId":"s-1","toolCall":{"toolCallId":"t1","title":"cat"},"options":[{"optionId":"n","kind":"reject_once"},{"optionId":"y","kind":"allow_once"}]}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","rawOutput":"<promise>BLOCKED: no</promise>"}}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"plan","entries":[{"content":"x","status":"pending"}]}}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"of_next_year","x":[1]}}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"usage_update","used":10,"size":100,"cost":{"amount":0.25,"currency":"USD"}}}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Done.\n<promise>COM"}}}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"PLETE</promise>"}}}}
{"jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn","usage":{"inputTokens":70,"cachedReadTokens":30,"outputTokens":9}}}
"#;

fn talk(said: &[&[u8]]) -> (Vec<AgentEvent>, Vec<Value>, AgentReport) {
    let errand = Errand { prompt: "Do S1.".to_owned(), folder: "/work".to_owned() };
    let mut decoder = Decoder::talking(errand, LOOP_AFTER);
    let mut told = decoder.replies();
    let mut events = Vec::new();
    for piece in said {
        decoder.push(Stream::Stdout, piece, &mut events);
        told.extend(decoder.replies());
    }
    let ending = Ending {
        process: ProcessEnd::Exited { code: 0 },
        story: &StoryId::from("S1"),
        grammar: &SignalGrammar::default(),
        clock: &Clock { now: Timestamp(1_750_000_000_000), zone: TimeZone::UTC },
        took: Duration::from_secs(3),
        sign_in: None,
    };
    let report = decoder.finish(ending, &mut events);
    let told = String::from_utf8(told).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (events, told, report)
}

#[test]
fn a_conversation_gives_the_prompt_answers_what_is_asked_and_comes_to_its_end() {
    let (events, told, report) = talk(&[SAID.as_bytes()]);
    let methods: Vec<&str> = told.iter().filter_map(|said| said["method"].as_str()).collect();
    assert_eq!(methods, ["initialize", "session/new", "session/set_mode", "session/prompt"]);
    assert_eq!(told[1]["params"]["cwd"], "/work");
    assert_eq!(told[2]["params"]["modeId"], "yolo");
    assert_eq!(told[3]["params"]["prompt"][0]["text"], "Do S1.");
    assert_eq!((&told[4]["id"], &told[4]["result"]["outcome"]["optionId"]), (&"ask-1".into(), &"y".into()));
    assert_eq!((&report.end, &report.claim), (&AgentEnd::Finished, &Claim::Complete));
    assert_eq!((report.usage.input_tokens, report.usage.output_tokens), (Some(100), Some(9)));
    assert_eq!(report.usage.cost.map(ralphloop_core::units::Usd::dollars), Some(0.25));
    let planned = |event: &AgentEvent| matches!(event, AgentEvent::Plan { steps } if in_full(steps) == "[ ] x");
    assert!(events.iter().any(planned), "{events:?}");
    assert!(events.iter().any(|event| matches!(event, AgentEvent::ToolFinished { ok: true, .. })), "{events:?}");
}

#[test]
fn it_reads_the_same_however_its_bytes_are_cut() {
    let whole = talk(&[SAID.as_bytes()]);
    for at in 1..SAID.len() {
        let (head, tail) = SAID.as_bytes().split_at(at);
        assert_eq!(talk(&[head, tail]), whole, "cut at {at}");
    }
    let single: Vec<&[u8]> = SAID.as_bytes().chunks(1).collect();
    assert_eq!(talk(&single), whole);
}

#[test]
fn a_conversation_that_breaks_off_has_no_final_message() {
    let lines: Vec<&str> = SAID.lines().collect();
    for end in 0..lines.len() - 1 {
        let text = lines[..end].iter().map(|line| format!("{line}\n")).collect::<String>();
        let (_, _, report) = talk(&[text.as_bytes()]);
        assert_ne!(report.end, AgentEnd::Finished, "after {end} lines");
        assert_eq!(report.claim, Claim::None { near_miss: None });
    }
}

#[test]
fn a_turn_that_is_under_way_is_cancelled_by_the_protocols_own_word_and_then_nothing_is_allowed() {
    let lines: Vec<&str> = SAID.lines().collect();
    let errand = Errand { prompt: "Do S1.".to_owned(), folder: "/work".to_owned() };
    let mut decoder = Decoder::talking(errand, LOOP_AFTER);
    let say = |decoder: &mut Decoder, line: &str| {
        decoder.push(Stream::Stdout, format!("{line}\n").as_bytes(), &mut Vec::new());
        String::from_utf8(decoder.replies()).unwrap()
    };
    for line in &lines[..2] {
        say(&mut decoder, line);
        assert!(decoder.farewell().is_empty(), "there is no turn yet");
    }
    say(&mut decoder, lines[2]);
    let farewell: Value = serde_json::from_slice(decoder.farewell()).unwrap();
    assert_eq!((&farewell["method"], &farewell["params"]["sessionId"]), (&"session/cancel".into(), &"s-1".into()));
    assert!(farewell["id"].is_null(), "it is no request");
    decoder.wind_up();
    let asks = lines.iter().find(|line| line.contains("request_permission")).unwrap();
    assert!(say(&mut decoder, asks).contains(r#""outcome":{"outcome":"cancelled"}"#));
    say(&mut decoder, r#"{"jsonrpc":"2.0","id":4,"result":{"stopReason":"cancelled"}}"#);
    assert!(decoder.farewell().is_empty(), "the turn is over");
}
