//! Agents that speak the Agent Client Protocol: how their turns are ended, and that their plans are seen.

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::AgentScript;

use crate::world::{prd_scene, story};

/// Does half of the work and goes on for ever, until it is told to end its turn.
const AGENT: &str = r#"#!/bin/sh
while read -r line; do
  case $line in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}' ;;
    *'"session/new"'*) echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s-7"}}' ;;
    *'"session/prompt"'*)
      echo half > lamp.txt
      echo '{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"plan","entries":[{"content":"Look at sk-ant-api03-'"$SECRET"'","status":"completed"},{"content":"Light it","status":"in_progress"}]}}}'
      echo '{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"busy"}}}'
      touch ../tmp/busy ;;
    *'"session/cancel"'*'"s-7"'*)
      touch ../tmp/cancelled
      echo '{"jsonrpc":"2.0","id":4,"result":{"stopReason":"cancelled"}}' ;;
  esac
done
"#;

const RUN: [&str; 8] =
    ["run", "prd.json", "--headless", "--no-gates", "--agent-format", "acp", "--agent-command", "talker"];

/// What is masked wherever the agent says it.
fn secret() -> String {
    "q7Zt".repeat(24)
}

fn world() -> Scene {
    let mut scene = prd_scene(&[story("S1", "Alpha")], &AgentScript::new());
    scene.program("talker", AGENT);
    scene.set_env("SECRET", secret());
    scene
}

fn was_cancelled_and_put_back(scene: &Scene) {
    assert!(scene.outside("tmp/cancelled").exists(), "the agent was not told");
    assert!(!scene.path("lamp.txt").exists(), "what it wrote is put back");
    scene.tree_is_clean();
    scene.nothing_runs();
}

#[test]
fn a_stop_tells_the_agent_to_cancel_its_turn_before_it_is_sent_signals() {
    let scene = world();
    let running = scene.start(&RUN);
    scene.wait_for_file(&scene.outside("tmp/busy"));
    scene.run(&["stop", "--now"]).exits(0);
    running.wait().exits(4).says("Plan of S1#1: 1 of 2 done; now: Light it");
    was_cancelled_and_put_back(&scene);
    assert_eq!(scene.state_of("S1"), "pending", "no attempt is charged");
    let log = scene.run(&["log", "--story", "S1", "--attempt", "1"]).exits(0);
    log.says("[>] Light it").says("[x] Look at").never_says(&secret());
}

#[test]
fn an_agent_that_is_cut_by_a_clock_is_told_to_cancel_its_turn_too() {
    let scene = world();
    scene.run(&[&RUN[..], &["--idle-timeout", "1", "--max-retries", "0"]].concat()).exits(1).says("no output for");
    was_cancelled_and_put_back(&scene);
}
