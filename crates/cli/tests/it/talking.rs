//! Agents that speak the Agent Client Protocol: a scripted one, for what real ones seldom do.

use ralphloop_testkit::scene::{Outcome, Scene};
use ralphloop_testkit::script::{AgentScript, call};
use serde_json::json;

use crate::world::{landed_once, nothing_landed, prd_scene, story};

/// A scene with an agent that answers line by line: `turn` is what it does once it has its prompt, `answered` what it does
/// with an answer of ours.
fn scene_with(turn: &str, answered: &str) -> Scene {
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &AgentScript::always([call().complete()]));
    scene.program(
        "talker",
        &format!(
            "#!/bin/sh\n\
             say() {{ printf '%s\\n' \"$1\"; }}\n\
             ends() {{ say \"{{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":$ID,\\\"result\\\":{{\\\"stopReason\\\":\\\"$1\\\",\\\"usage\\\":{{\\\"inputTokens\\\":70,\\\"cachedReadTokens\\\":30,\\\"outputTokens\\\":9}}}}}}\"; }}\n\
             tells() {{ say \"{{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"method\\\":\\\"session/update\\\",\\\"params\\\":{{\\\"sessionId\\\":\\\"s\\\",\\\"update\\\":{{\\\"sessionUpdate\\\":\\\"agent_message_chunk\\\",\\\"content\\\":{{\\\"type\\\":\\\"text\\\",\\\"text\\\":\\\"$1\\\"}}}}}}}}\"; }}\n\
             while read -r line; do\n\
             printf '%s\\n' \"$line\" >> {told}\n\
             ID=$(printf '%s' \"$line\" | sed -n 's/.*\"id\":\\([0-9]*\\).*/\\1/p')\n\
             case \"$line\" in\n\
             *'\"initialize\"'*) say \"{{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":$ID,\\\"result\\\":{{\\\"protocolVersion\\\":1,\\\"agentCapabilities\\\":{{}}}}}}\";;\n\
             *'\"session/new\"'*) say \"{{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":$ID,\\\"result\\\":{{\\\"sessionId\\\":\\\"s\\\"}}}}\";;\n\
             *'\"session/prompt\"'*) PROMPT=$ID; {turn};;\n\
             *) {answered};;\n\
             esac\ndone\necho bye >> {told}\n",
            told = scene.outside("told").display(),
        ),
    );
    scene
}

fn run(scene: &Scene) -> Outcome {
    let flags = ["--agent-command", "talker", "--agent-format", "acp", "--max-retries", "0", "--gate", "true"];
    scene.run(&[&["run", "prd.json", "--headless"], &flags[..]].concat())
}

fn told(scene: &Scene) -> String {
    std::fs::read_to_string(scene.outside("told")).unwrap()
}

const DONE: &str = "tells '<promise>COMPLETE</promise>'; ends end_turn";

#[test]
fn an_agent_is_told_the_prompt_in_a_session_of_its_folder_and_its_tokens_count() {
    let scene = scene_with(&format!("echo on > lamp.txt; tells 'It is '; tells 'on.\\n'; {DONE}"), "true");
    run(&scene).exits(0);
    landed_once(&scene, "S1", "lamp.txt");
    let told = told(&scene);
    assert!(told.contains("Alpha lamp") && told.contains(scene.repo().to_str().unwrap()), "{told}");
    assert!(told.ends_with("bye\n"), "its input is closed once its turn is over: {told}");
    let status = scene.status();
    assert_eq!((&status["input_tokens"], &status["output_tokens"]), (&json!(100), &json!(9)));
}

#[test]
fn a_permission_is_given_once_and_what_nobody_knows_is_answered_with_an_error() {
    let ask = "{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"s\",\
               \"toolCall\":{\"toolCallId\":\"t\",\"title\":\"write\"},\"options\":[{\"optionId\":\"no\",\"kind\":\"reject_once\"},\
               {\"optionId\":\"ever\",\"kind\":\"allow_always\"},{\"optionId\":\"once\",\"kind\":\"allow_once\"}]}}";
    let odd =
        "{\"jsonrpc\":\"2.0\",\"id\":\"x-1\",\"method\":\"fs/read_text_file\",\"params\":{\"path\":\"/etc/passwd\"}}";
    let answered = format!(
        "case \"$line\" in *'\"optionId\":\"once\"'*) echo on > lamp.txt; say '{odd}';; *'\"error\"'*) ID=$PROMPT; {DONE};; esac"
    );
    let scene = scene_with(
        &format!("say '{ask}'; say 'no json'; say '{{\"jsonrpc\":\"2.0\",\"method\":\"new/thing\"}}'"),
        &answered,
    );
    run(&scene).exits(0);
    landed_once(&scene, "S1", "lamp.txt");
    assert!(told(&scene).contains("\"id\":\"x-1\""), "{}", told(&scene));
}

#[test]
fn a_turn_that_ends_in_another_way_than_well_is_no_success() {
    for (reason, said) in [("refusal", "refusal"), ("max_tokens", "max_tokens"), ("cancelled", "cancelled")] {
        let scene =
            scene_with(&format!("echo on > lamp.txt; tells '<promise>COMPLETE</promise>'; ends {reason}"), "true");
        run(&scene).exits(1).says(said);
        nothing_landed(&scene);
    }
}

#[test]
fn an_error_with_a_limit_in_its_data_is_the_providers_and_not_the_storys() {
    let error = "{\"jsonrpc\":\"2.0\",\"id\":'$ID',\"error\":{\"code\":-32603,\"message\":\"Internal error\",\
                 \"data\":{\"errorKind\":\"rate_limit\"}}}";
    let scene = scene_with(&format!("say '{error}'"), "true");
    scene
        .run(&[
            "run",
            "prd.json",
            "--headless",
            "--agent-command",
            "talker",
            "--agent-format",
            "acp",
            "--max-iterations",
            "1",
        ])
        .exits(5)
        .says("limit");
    assert_eq!(scene.story("S1")["attempts"], json!(1));
    assert_eq!(scene.state_of("S1"), "pending");
}

#[test]
fn an_agent_that_dies_or_says_nothing_in_its_turn_is_a_failure_and_nothing_of_it_stays() {
    let scene = scene_with("exit 3", "true");
    run(&scene).exits(1);
    nothing_landed(&scene);
    let scene = scene_with("(sleep 300 &) ; sleep 300", "true");
    let flags = ["--agent-command", "talker", "--agent-format", "acp", "--max-retries", "0", "--idle-timeout", "2s"];
    scene.run(&[&["run", "prd.json", "--headless"], &flags[..]].concat()).exits(1).says("no output");
    scene.nothing_runs();
}
