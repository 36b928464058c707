//! Several agents: who takes over, who is called again, and what is said of it.

use std::time::{SystemTime, UNIX_EPOCH};

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};
use serde_json::Value;

use crate::world::{codex, landed_once, prd_scene, story};

fn in_an_hour() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 3600
}

fn run(scene: &Scene, agents: &str) -> ralphloop_testkit::scene::Outcome {
    scene.run(&["run", "prd.json", "--headless", "--no-gates", "--agent", agents])
}

fn events_of(scene: &Scene, kind: &str) -> Vec<Value> {
    let events = scene.run(&["log", "--json"]).exits(0).json_lines();
    events.into_iter().filter(|event| event["type"] == kind).collect()
}

#[test]
fn a_limit_of_the_first_agent_gives_the_story_to_the_next_which_reads_in_its_own_way() {
    let limited = call().write("lamp.txt", "half").usage_limit(in_an_hour());
    let scene = prd_scene(&[story("S1", "Alpha"), story("S2", "Beta")], &AgentScript::always([limited]));
    codex(&scene);
    let outcome = run(&scene, "claude:opus,codex").exits(0);
    outcome.says("with claude:opus").says("claude:opus is not called before").says("with codex");
    assert_eq!(scene.calls().len(), 1, "claude is not asked again before its reset");
    landed_once(&scene, "S1", "lamp.txt");
    assert_eq!(scene.read("lamp.txt"), "on\non\n", "nothing of the first agent's half is left");
    let commit = scene.landed().pop().unwrap();
    assert_eq!(commit.trailer("Ralphloop-Agent"), Some("codex"));
    let status = scene.status();
    assert_eq!(status["agent"], "claude:opus,codex");
    let agents = status["agents"].as_array().unwrap();
    assert_eq!((&agents[0]["agent"], &agents[0]["state"]), (&"claude:opus".into(), &"waiting".into()));
    assert!(agents[0]["until"].is_string() && agents[0]["reason"].as_str().unwrap().contains("limit"), "{status:#}");
    assert_eq!(agents[1]["state"], "ready");
    let first = &status["stories"][0];
    assert_eq!((&first["agent"], &first["attempts"]), (&"codex".into(), &2.into()));
    assert_eq!((&status["input_tokens"], &status["output_tokens"]), (&6000.into(), &300.into()));
    let agents: Vec<Value> = events_of(&scene, "agent.started").into_iter().map(|mut e| e["agent"].take()).collect();
    assert_eq!(agents, ["claude:opus", "codex", "codex"]);
    let away = events_of(&scene, "agent.away");
    assert_eq!((away.len(), &away[0]["agent"]), (1, &"claude:opus".into()));
}

#[test]
fn an_agent_that_is_not_here_is_left_out_of_the_chain_with_a_warning_unless_none_is_here() {
    let scene = prd_scene(&[story("S1", "Alpha")], &AgentScript::always([call().write("a.txt", "on").complete()]));
    let outcome = run(&scene, "gemini,claude").exits(0);
    outcome.says("gemini").says("goes on without gemini");
    assert_eq!(scene.status()["agent"], "claude");
    scene.write("prd.json", crate::world::prd_text(&[story("S2", "Beta")]));
    scene.commit_all("More");
    run(&scene, "gemini,copilot").exits(6).says("gemini").says("not on the PATH");
}

#[test]
fn an_agent_that_is_not_signed_in_is_told_with_its_remedy_and_the_others_go_on() {
    let scene = prd_scene(&[story("S1", "Alpha")], &AgentScript::new());
    scene.program("claude", "#!/bin/sh\ncat >/dev/null\necho 'Not logged in · Please run /login'\nexit 1\n");
    codex(&scene);
    run(&scene, "claude,codex").exits(0).says("/login").says("with codex");
    landed_once(&scene, "S1", "lamp.txt");
    let agents = scene.status()["agents"].clone();
    assert_eq!((&agents[0]["state"], &agents[0]["until"]), (&"unusable".into(), &Value::Null));
}

#[test]
fn a_story_that_fails_in_the_same_way_again_and_again_moves_up_to_the_next_agent() {
    let scene = prd_scene(&[story("S1", "Alpha")], &AgentScript::always([call().failed("no idea")]));
    codex(&scene);
    run(&scene, "claude,codex").exits(0).says("3 times in a row").says("codex tries next");
    assert_eq!(scene.calls().len(), 3);
    assert_eq!(scene.status()["stories"][0]["attempts"], 4, "not one more than it has");
}

#[test]
fn a_story_moves_up_by_effort_which_is_told_and_shown_wherever_its_agent_is() {
    let scene = prd_scene(&[story("S1", "Alpha")], &AgentScript::new());
    // It can do the story with much effort only.
    scene.program(
        "codex",
        "#!/bin/sh\ncat >/dev/null\n\
         case \"$*\" in *'--model gpt-5 -c model_reasoning_effort=high -') echo on >> lamp.txt; word=COMPLETE;;\n\
         *'--model gpt-5 -c model_reasoning_effort=low -') word='FAILED: no idea';; *) exit 9;; esac\n\
         printf '{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"<promise>%s</promise>\"}}\\n' \"$word\"\n\
         echo '{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":1000000,\"output_tokens\":0}}'\n",
    );
    run(&scene, "codex:gpt-5:low,codex:gpt-5:high").exits(0).says("codex:gpt-5:high tries next");
    landed_once(&scene, "S1", "lamp.txt");
    let commit = scene.landed().pop().unwrap();
    assert_eq!(commit.trailer("Ralphloop-Agent"), Some("codex:gpt-5:high"));
    let status = scene.status();
    assert_eq!(status["stories"][0]["agent"], "codex:gpt-5:high");
    assert_eq!(status["cost_usd"], 5.0, "the price is the model's: {status:#}");
    let called: Vec<Value> = events_of(&scene, "agent.started").into_iter().map(|mut e| e["agent"].take()).collect();
    let low = "codex:gpt-5:low";
    assert_eq!(called, [low, low, low, "codex:gpt-5:high"]);
    let evidence = scene.run(&["agents", "stats", "--json"]).exits(0).json();
    let known: Vec<_> = evidence["outcomes"].as_array().unwrap().iter().map(|row| &row["agent"]).collect();
    assert_eq!(known, [&Value::from("codex:gpt-5:high"), &Value::from(low)], "{evidence:#}");
}

#[test]
fn an_effort_that_a_client_cannot_be_told_is_refused_before_anything_starts() {
    let scene = prd_scene(&[story("S1", "Alpha")], &AgentScript::always([call().write("a.txt", "on").complete()]));
    run(&scene, "claude,gemini:flash:high").exits(2).says("cannot be told an effort").says("gemini:flash:high:");
    run(&scene, "claude:opus:minimal").exits(2).says("low, medium, high, xhigh, max");
    assert_eq!(scene.calls().len(), 0);
    // A model keeps the colons of its own name.
    run(&scene, "claude:qwen3:8b").exits(0);
    assert_eq!(scene.status()["agent"], "claude:qwen3:8b");
}

#[test]
fn the_same_agent_twice_is_refused_and_a_list_in_a_file_reads_like_the_flag() {
    let scene = prd_scene(&[story("S1", "Alpha")], &AgentScript::always([call().write("a.txt", "on").complete()]));
    codex(&scene);
    run(&scene, "claude,codex,claude").exits(2).says("named twice");
    run(&scene, "claude,,codex").exits(2).says("name of an agent");
    scene.write("ralphloop.toml", "agent = [\"claude:opus\", \"codex\"]\n");
    scene.commit_all("Agents");
    scene.run(&["run", "prd.json", "--headless", "--no-gates"]).exits(0);
    assert_eq!(scene.status()["agent"], "claude:opus,codex");
    scene.run(&["config"]).exits(0).says("claude:opus,codex");
}

#[test]
fn a_run_that_was_cut_off_counts_what_the_agent_that_ran_had_used_and_resumes_with_its_chain() {
    let limited = call().usage_limit(in_an_hour());
    let scene = prd_scene(&[story("S1", "Alpha")], &AgentScript::always([limited]));
    scene.program(
        "codex",
        "#!/bin/sh\ncat >/dev/null\n\
         echo '{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":700,\"output_tokens\":30}}'\n\
         touch said\nexec sleep 600\n",
    );
    let running =
        scene.start(&["run", "prd.json", "--headless", "--no-gates", "--agent", "claude,codex", "--exit-grace", "600"]);
    scene.wait_for_file(&scene.path("said"));
    // The transcript of a quiet agent is readable after a second.
    ralphloop_testkit::scene::eventually("the transcript", || {
        scene.run(&["log", "--story", "S1", "--attempt", "2"]).output().contains("codex") && transcript_is_there(&scene)
    });
    running.crash();
    codex(&scene);
    scene.run(&["resume"]).exits(0);
    let status = scene.status();
    assert_eq!(status["agent"], "claude,codex");
    assert_eq!(status["input_tokens"], 3700, "{status:#}");
}

fn transcript_is_there(scene: &Scene) -> bool {
    let runs = scene.path(".git/ralphloop/runs");
    let Ok(runs) = std::fs::read_dir(runs) else { return false };
    runs.filter_map(Result::ok).any(|run| {
        let Ok(files) = std::fs::read_dir(run.path().join("transcripts")) else { return false };
        let grown = |file: std::fs::DirEntry| {
            let second = file.file_name().to_string_lossy().contains("S1-2");
            second && file.metadata().is_ok_and(|meta| meta.len() > 0)
        };
        files.filter_map(Result::ok).any(grown)
    })
}
