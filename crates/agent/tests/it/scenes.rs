//! What agents do, good and bad, in both formats.

use std::time::Duration;

use ralphloop_agent::decoder::ProcessEnd;
use ralphloop_core::evidence::{AgentEnd, AgentReport, Claim};
use ralphloop_core::units::Timestamp;

use crate::support::{Call, NOW, result, say, tool};

const TOKEN: &str = "<promise>COMPLETE</promise>";
const PROMPT: &str = "# Story S1\n\nDo it.\n\nEnd with a last line that is exactly:\n<promise>COMPLETE</promise>\n";

/// The same end in both formats: as an error of the final event with `code`, and as plain words with `code`.
fn both(words: &str, code: i32) -> [AgentReport; 2] {
    let events = say(words) + &result(true, words);
    let plain = format!("{words}\n{words}\n");
    [Call::claude(&events).exit(code).report(), Call::text(&plain).exit(code).report()]
}

#[test]
fn the_prompts_own_echo_is_no_signal() {
    let user = serde_json::json!({"type":"user","message":{"content":[{"type":"text","text":PROMPT}]}});
    let events = format!("{user}\n") + &say("I start with the tests.") + &result(false, "Nothing finished yet.");
    let report = Call { prompt: PROMPT, ..Call::claude(&events) }.report();
    assert_eq!((report.end, report.claim), (AgentEnd::Finished, Claim::None { near_miss: None }));

    for stdout in
        [format!("user: {PROMPT}I start.\nNothing finished yet.\n"), format!("hello\nuser: {PROMPT}"), PROMPT.into()]
    {
        let report = Call { prompt: PROMPT, ..Call::text(&stdout) }.report();
        assert!(!matches!(report.claim, Claim::Complete), "{stdout}");
    }
    let own = format!("user: {PROMPT}Finished.\n{TOKEN}");
    assert_eq!(Call { prompt: PROMPT, ..Call::text(&own) }.report().claim, Claim::Complete);
}

#[test]
fn words_of_sub_agents_tools_and_thinking_are_no_signal() {
    let sub = say(TOKEN).replacen("{\"type\"", "{\"parent_tool_use_id\":\"t9\",\"type\"", 1);
    let think = say(TOKEN).replace("\"text\",\"text\"", "\"thinking\",\"thinking\"");
    let stdout = sub + &think + &tool("Bash", TOKEN, TOKEN) + r#"{"type":"result","is_error":false}"#;
    let report = Call::claude(&stdout).report();
    assert_eq!((report.end, report.claim), (AgentEnd::NoFinalMessage, Claim::None { near_miss: None }));
}

#[test]
fn without_a_result_text_the_last_thing_said_is_the_final_message() {
    let stdout = say("One moment.") + &say(TOKEN) + r#"{"type":"result","subtype":"success","is_error":false}"#;
    assert_eq!(Call::claude(&stdout).report().claim, Claim::Complete);
}

#[test]
fn a_text_agents_signal_must_be_its_last_line() {
    assert_eq!(Call::text(&format!("working\n{TOKEN}\n\n")).report().claim, Claim::Complete);
    let report = Call::text(&format!("{TOKEN}\none test is left\n")).report();
    assert!(matches!(report.claim, Claim::None { near_miss: Some(_) }), "{:?}", report.claim);
    assert_eq!(report.last_words, format!("{TOKEN}\none test is left"));
}

#[test]
fn exit_code_0_without_a_word_is_no_output() {
    assert_eq!(Call::claude("").report().end, AgentEnd::NoOutput);
    assert_eq!(Call::text("").report().end, AgentEnd::NoOutput);
    assert_eq!(Call::text("\n \n").report().end, AgentEnd::NoOutput);
    assert_eq!(Call::claude(&result(false, "")).report().end, AgentEnd::NoFinalMessage);
}

#[test]
fn the_final_event_decides_and_neither_an_earlier_signal_nor_the_exit_code() {
    let failed = say(TOKEN) + &result(true, "API Error: Overloaded");
    assert!(matches!(Call::claude(&failed).report().end, AgentEnd::Overloaded { .. }));
    let foreign = format!(
        "{}\n{}\n",
        r#"{"type":"item.completed","item":{"type":"agent_message","text":"<promise>COMPLETE</promise>"}}"#,
        r#"{"type":"turn.failed","error":{"message":"selected model is at capacity"}}"#
    );
    let report = Call::claude(&foreign).report();
    assert_eq!(report.end, AgentEnd::Overloaded { message: "selected model is at capacity".into() });
    assert_eq!(report.claim, Claim::None { near_miss: None });
    let done = result(false, TOKEN);
    assert_eq!(Call::claude(&done).exit(1).report().claim, Claim::Complete);
    let no_subtype = result(false, TOKEN).replace("success", "error_during_execution");
    assert!(matches!(Call::claude(&no_subtype).report().end, AgentEnd::Error { .. }));
}

#[test]
fn a_usage_limit_with_its_time_is_a_limit() {
    let at = NOW.0 / 1000 + 8;
    for report in both(&format!("Claude AI usage limit reached|{at}"), 1) {
        let AgentEnd::Limit { resets_at, message } = report.end else { panic!("{:?}", report.end) };
        assert_eq!(resets_at, Some(Timestamp(at * 1000)));
        assert!(message.contains("usage limit reached"), "{message}");
    }
}

#[test]
fn a_limit_without_a_time_has_none_made_up() {
    for report in both("You've reached your usage limit.", 1) {
        assert!(matches!(report.end, AgentEnd::Limit { resets_at: None, .. }), "{:?}", report.end);
    }
}

#[test]
fn limit_words_in_a_file_that_was_read_are_no_limit() {
    let words = "You've hit your session limit. usage limit reached, resets 10pm. HTTP 429";
    let after = Duration::from_secs(6);
    let events = tool("Read", "src/limits.rs", words);
    let killed = Call::claude(&events).ended(ProcessEnd::TimedOut { after }).report();
    assert_eq!(killed.end, AgentEnd::TimedOut { after });
    let killed = Call::text(words).ended(ProcessEnd::TimedOut { after }).report();
    assert_eq!(killed.end, AgentEnd::TimedOut { after });

    let failed = events.clone() + &result(true, "The directory is missing.");
    assert_eq!(
        Call::claude(&failed).exit(1).report().end,
        AgentEnd::Error { message: "The directory is missing.".into() }
    );

    let prose = "The upload handler should get rate limiting; it answers 429 too late.";
    let done = events + &say(prose) + &result(false, &format!("{prose}\n{TOKEN}"));
    assert_eq!(Call::claude(&done).report().end, AgentEnd::Finished);
    let plain = format!("[tool] Read src/limits.rs\n{words}\n{prose}\n");
    assert_eq!(Call::text(&format!("{plain}Finished.\n{TOKEN}\n")).report().claim, Claim::Complete);
    assert_eq!(Call::text(&plain).report().end, AgentEnd::Finished);
}

#[test]
fn an_expired_sign_in_names_the_command_that_signs_in_whatever_the_exit_code() {
    for report in both("Failed to authenticate. API Error: 401 OAuth token has expired. Please run /login", 0) {
        let AgentEnd::SignIn { remedy, .. } = report.end else { panic!("{:?}", report.end) };
        assert!(remedy.unwrap().contains("/login"));
    }
}

#[test]
fn a_prompt_that_is_too_long_is_a_class_of_its_own() {
    for report in both("Prompt is too long", 1) {
        assert_eq!(report.end, AgentEnd::PromptTooLong { message: report_message(&report) });
    }
}

fn report_message(report: &AgentReport) -> String {
    match &report.end {
        AgentEnd::PromptTooLong { message } => message.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn r27_a_refusal_to_start_is_told_from_a_crash_and_stderr_is_part_of_the_reason() {
    let nested = Call::claude("").stderr("Error: cannot be launched inside another session\n").exit(1).report();
    assert!(matches!(nested.end, AgentEnd::CannotStart { .. }), "{:?}", nested.end);
    let root = Call::claude("")
        .stderr("--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons\n")
        .exit(1)
        .report();
    let AgentEnd::CannotStart { message } = root.end else { panic!("{:?}", root.end) };
    assert!(message.contains("IS_SANDBOX=1"), "{message}");
    let crash = Call::claude("").stderr("panicked at src/main.rs\n").exit(101).report();
    assert_eq!(
        crash.end,
        AgentEnd::Crashed { status: "exit code 101".into(), message: "panicked at src/main.rs".into() }
    );
    let missing = ProcessEnd::CannotStart { message: "no program `claude` on the path".into() };
    assert!(matches!(Call::claude("").ended(missing).report().end, AgentEnd::CannotStart { .. }));
}

#[test]
fn refused_tools_and_nothing_done_is_a_matter_of_permissions() {
    let refused = |done: &str| {
        say("I was not allowed to edit.")
            + done
            + r#"{"type":"result","is_error":false,"result":"I could not edit any file.\n<promise>COMPLETE</promise>","permission_denials":[{"tool_name":"Edit"},{"tool_name":"Edit"}]}"#
    };
    let report = Call::claude(&refused(&tool("Read", "a", "b"))).report();
    assert_eq!(report.end, AgentEnd::PermissionDenied { tools: vec!["Edit".into()] });
    assert_eq!(Call::claude(&refused(&tool("Bash", "make", "ok"))).report().end, AgentEnd::Finished);
}

#[test]
fn a_text_agents_honest_failure_holds_though_it_exits_with_an_error() {
    let report = Call::text("<promise>FAILED: no compiler</promise>\n").exit(1).report();
    assert_eq!((report.end, report.claim), (AgentEnd::Finished, Claim::Failed { reason: "no compiler".into() }));
    let report = Call::text(&format!("{TOKEN}\n")).exit(1).report();
    assert!(matches!(report.end, AgentEnd::Crashed { .. }), "{:?}", report.end);
    assert_eq!(report.claim, Claim::None { near_miss: None });
}

#[test]
fn a_client_that_stays_after_its_final_event_has_ended_well() {
    let report = Call::claude(&result(false, TOKEN)).ended(ProcessEnd::Lingered).report();
    assert_eq!((report.end, report.claim), (AgentEnd::Finished, Claim::Complete));
}

#[test]
fn a_question_is_kept_as_the_last_words() {
    let question = "Should I use SQLite or Postgres? Please choose.";
    let events = say(question) + &result(false, question);
    assert_eq!(Call::claude(&events).report().last_words, question);
    assert_eq!(Call::text(&format!("{question}\n{question}\n")).report().last_words, format!("{question}\n{question}"));
}

#[test]
fn a_request_that_failed_is_no_success_though_the_client_calls_it_one() {
    let stdout = say("[API Error: 401 invalid x-api-key]") + &result(false, "[API Error: 401 invalid x-api-key]");
    assert!(matches!(Call::claude(&stdout).report().end, AgentEnd::SignIn { .. }));
    let prose = result(false, "[API Error: 401] is what the test expects now.\n<promise>COMPLETE</promise>");
    assert_eq!(Call::claude(&prose).report().claim, Claim::Complete);
}
