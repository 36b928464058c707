//! Bytes of every kind: broken, cut, endless, huge.

use std::time::Duration;

use proptest::prelude::*;
use ralphloop_agent::decoder::ProcessEnd;
use ralphloop_agent::event::{AgentEvent, Stream};
use ralphloop_agent::redact::Redactor;
use ralphloop_core::evidence::{AgentEnd, Claim};

use crate::support::{Call, result, say, tool};

const DONE: &str = "Finished.\n<promise>COMPLETE</promise>";

#[test]
fn r25_every_text_and_tool_block_of_a_message_is_an_event() {
    let line = r#"{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"one"},{"type":"tool_use","id":"t","name":"Bash","input":{"timeout":5,"command":"cargo test\n--all"}},{"type":"text","text":"two"}]}}"#;
    let (events, _) = Call::claude(line).run(usize::MAX);
    assert_eq!(
        events,
        [
            AgentEvent::Thought { text: "hm".into() },
            AgentEvent::Said { text: "one".into() },
            AgentEvent::ToolStarted {
                id: "t".into(),
                name: "Bash".into(),
                input: "cargo test --all".into(),
                by_sub_agent: false
            },
            AgentEvent::Said { text: "two".into() },
        ]
    );
}

#[test]
fn bytes_that_are_not_utf_8_and_split_characters_end_nothing() {
    let mut stdout = b"\xff\xfe latin1: caf\xe9 \x00 nul\n".to_vec();
    stdout.extend(
        b"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"\xe4\xb8\xad \xff\"}]}}\n",
    );
    stdout.extend(result(false, DONE).bytes());
    let call = Call { stdout: &stdout, stderr: b"\xf0\x9f\n", ..Call::claude("") };
    let (events, report) = call.run(1);
    assert!(events.contains(&AgentEvent::Said { text: "中 \u{fffd}".into() }), "{events:?}");
    assert_eq!((report.end, report.claim), (AgentEnd::Finished, Claim::Complete));
}

#[test]
fn lines_that_are_no_events_and_unknown_events_are_shown_and_the_last_line_needs_no_newline() {
    let mut stdout = [
        "npm WARN something",
        "",
        "null",
        "[]",
        "42",
        r#"{"type":"assistant","mess"#,
        r#"{"type":"brand_new_event","payload":{"deep":[1,2]}}"#,
        r#"{"type":"assistant","message":{"content":"a string, not a list"}}"#,
        r#"{"type":"result_preview","result":"x"}"#,
        r#"{"type":7,"is_error":"maybe","message":[1],"usage":"none"}"#,
    ]
    .join("\n");
    stdout.push('\n');
    stdout.push_str(result(false, DONE).trim_end());
    let (events, report) = Call::claude(&stdout).run(usize::MAX);
    assert_eq!((report.end, report.claim), (AgentEnd::Finished, Claim::Complete));
    let raw = events.iter().filter(|event| matches!(event, AgentEvent::Raw { stream: Stream::Stdout, .. })).count();
    assert_eq!(raw, 8, "{events:?}");
    assert!(events.contains(&AgentEvent::Said { text: "a string, not a list".into() }));
}

#[test]
fn the_final_event_is_found_after_a_flood_and_after_a_line_that_is_too_long() {
    let mut stdout = "x".repeat(200);
    stdout.push('\n');
    let mut stdout = stdout.repeat(20_000);
    stdout.push_str(&"y".repeat(17 << 20));
    stdout.push('\n');
    stdout.push_str(&result(false, DONE));
    let (events, report) = Call::claude(&stdout).run(1 << 16);
    assert_eq!((report.end, report.claim), (AgentEnd::Finished, Claim::Complete));
    assert!(events.len() < 1100, "a flood is reported in full: {} events", events.len());
}

#[test]
fn a_cut_stream_is_no_end_though_the_signal_was_said() {
    let report = Call::claude(&say(DONE)).report();
    assert_eq!(report.end, AgentEnd::NoFinalMessage);
    assert_eq!(report.claim, Claim::None { near_miss: None });
    assert_eq!(report.last_words, "");
}

#[test]
fn the_same_call_with_the_same_result_twenty_times_is_reported() {
    let stdout = tool("Grep", "same pattern, same path", "no matches").repeat(25);
    let (events, _) = Call::claude(&stdout).run(usize::MAX);
    let repeating: Vec<_> = events.iter().filter(|e| matches!(e, AgentEvent::Repeating { .. })).collect();
    assert_eq!(repeating, [&AgentEvent::Repeating { call: "Grep same pattern, same path".into(), times: 20 }]);
    let progress: String = (0..25).map(|n| tool("Bash", "cargo test", &format!("{n} failed"))).collect();
    let (events, _) = Call::claude(&progress).run(usize::MAX);
    assert!(!events.iter().any(|e| matches!(e, AgentEvent::Repeating { .. })));
}

#[test]
fn a_message_whose_usage_is_repeated_is_counted_once_and_the_final_sum_replaces_ours() {
    let line = r#"{"type":"assistant","message":{"id":"m1","content":[],"usage":{"input_tokens":100,"cache_read_input_tokens":20,"output_tokens":1}}}"#;
    let two = format!("{line}\n{line}\n{}\n", line.replace("m1", "m2"));
    let report = Call::claude(&two).report();
    assert_eq!((report.usage.input_tokens, report.usage.output_tokens, report.usage.cost), (Some(240), None, None));
    let ended = two
        + r#"{"type":"result","is_error":false,"result":"x","usage":{"input_tokens":7,"output_tokens":5},"total_cost_usd":0.5}"#;
    let report = Call::claude(&ended).report();
    assert_eq!((report.usage.input_tokens, report.usage.output_tokens), (Some(7), Some(5)));
    assert_eq!(report.usage.cost.unwrap().to_string(), "$0.50");
}

#[test]
fn what_an_agent_says_reaches_nobody_with_control_characters() {
    let text = "before \u{1b}[2J\u{1b}]0;owned\u{7}\u{1b}[31m red \u{1b}[0m\r over\u{8}";
    let stdout = say(text) + "plain \u{1b}]0;owned\u{7}\u{1b}[?1003h tail\n" + &result(false, text);
    let (events, report) = Call::claude(&stdout).run(usize::MAX);
    let shown = format!("{events:?}{report:?}");
    assert!(!shown.contains("\\u{") && !shown.contains("owned"), "{shown}");
    assert!(events.contains(&AgentEvent::Said { text: "before  red   over".into() }), "{events:?}");
}

#[test]
fn every_text_of_an_event_can_be_masked() {
    let secret = "plain-secret-value";
    let init = format!(r#"{{"type":"system","subtype":"init","model":"{secret}","session_id":"{secret}"}}"#);
    let limit = format!(r#"{{"type":"rate_limit_event","rate_limit_info":{{"rateLimitType":"{secret}"}}}}"#);
    let denied = format!(r#"{{"type":"system","subtype":"permission_denied","tool_name":"{secret}"}}"#);
    let notice = format!(r#"{{"type":"system","subtype":"informational","content":"{secret}"}}"#);
    let retry = format!(r#"{{"type":"system","subtype":"api_retry","error":"{secret}"}}"#);
    let lines = [init, limit, denied, notice, retry, secret.to_owned()].join("\n") + "\n";
    let stdout = lines + &tool(secret, secret, secret).repeat(20) + &say(secret);
    let (events, _) = Call::claude(&stdout).run(usize::MAX);
    let redactor = Redactor::new([("SOME_TOKEN", secret)]);
    let masked: Vec<_> = events.into_iter().map(|event| event.map_text(&|text| redactor.redact_text(text))).collect();
    assert_eq!(masked.len(), 48);
    assert!(!format!("{masked:?}").contains(secret), "{masked:?}");
}

#[test]
fn learnings_come_from_marked_lines_of_the_agent_itself() {
    let stdout = tool("Read", "x", "<learning>from a file</learning>")
        + &say("<learning>run `make deps` first</learning>\nI learned that water is wet.")
        + &result(false, DONE);
    assert_eq!(Call::claude(&stdout).report().learnings, ["run `make deps` first"]);
}

#[test]
fn the_last_output_before_a_silent_kill_is_part_of_the_reason() {
    let after = Duration::from_secs(4);
    for call in [Call::claude("Allow Bash(cargo check)? [y/N] "), Call::text("Allow Bash(cargo check)? [y/N] ")] {
        let end = call.ended(ProcessEnd::Silent { after }).report().end;
        assert_eq!(end, AgentEnd::Silent { after, last_output: "Allow Bash(cargo check)? [y/N]".into() });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_bytes_whatever_end_a_decoder_and_every_split_reads_the_same(
        pieces in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 0..20),
            Just(say("hello 日本\n<promise>COMPLETE</promise>").into_bytes()),
            Just(tool("Bash", "ls", "a\nb").into_bytes()),
            Just(result(false, "ok").into_bytes()),
            Just(b"{\"type\":\"error\",\"message\":\"x\"}\r\n".to_vec()),
            Just(b"\n".to_vec()),
        ], 0..12),
        piece in 1usize..40,
        text in any::<bool>(),
    ) {
        let bytes = pieces.concat();
        let call = Call { stdout: &bytes, ..if text { Call::text("") } else { Call::claude("") } };
        prop_assert_eq!(call.clone().run(piece), call.run(usize::MAX));
    }
}
