//! Choosing by evidence: what attempts came to is kept, shown, and decides who is tried first.

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};
use serde_json::json;

use crate::world::{PrdStory, landed_once, prd_scene, story};

/// Two agents of the settings: `lazy` never does anything, `keen` does the story.
fn scene_with(stories: &[PrdStory]) -> Scene {
    let scene = prd_scene(stories, &AgentScript::always([call().complete()]));
    scene.program("lazy", "#!/bin/sh\ncat > /dev/null\necho '<promise>FAILED: too hard</promise>'\n");
    scene.program("keen", "#!/bin/sh\ncat > /dev/null\necho on >> lamp.txt\necho '<promise>COMPLETE</promise>'\n");
    scene.write("ralphloop.toml", "[agents.lazy]\ncommand = \"lazy\"\n[agents.keen]\ncommand = \"keen\"\n");
    scene.commit_all("Agents");
    scene
}

const RUN: [&str; 7] = ["run", "prd.json", "--headless", "--agent", "lazy,keen", "--max-retries", "3"];

#[test]
fn who_failed_before_is_tried_after_whoever_landed_and_the_table_says_why() {
    let scene = scene_with(&[story("S1", "Alpha lamp"), story("S2", "Beta lamp")]);
    scene.run(&["agents", "stats"]).exits(0).says("No attempt");
    scene.run(&[&RUN[..], &["--story", "S1", "--choose"]].concat()).exits(0).says("with lazy");
    landed_once(&scene, "S1", "lamp.txt");
    let stats = scene.run(&["agents", "stats", "--json"]).exits(0).json();
    let known: Vec<_> = stats["outcomes"].as_array().unwrap().iter().map(|row| &row["agent"]).collect();
    assert_eq!(known, [&json!("keen"), &json!("lazy")], "{stats:#}");
    scene.write("ralphloop.toml", scene.read("ralphloop.toml") + "");
    scene.run(&[&RUN[..], &["--story", "S2", "--choose"]].concat()).exits(0).says("in the order keen, lazy");
    let events = scene.run(&["log", "--json"]).json_lines();
    let called: Vec<_> = events.iter().filter(|e| e["type"] == "agent.started").map(|e| e["agent"].clone()).collect();
    assert_eq!(called, [json!("keen")]);
}

#[test]
fn without_the_flag_the_listed_order_holds_and_a_damaged_file_costs_nothing() {
    let scene = scene_with(&[story("S1", "Alpha lamp"), story("S2", "Beta lamp")]);
    scene.run(&[&RUN[..], &["--story", "S1"]].concat()).exits(0);
    let kept = scene.repo().join(".git/ralphloop/outcomes.jsonl");
    let text = std::fs::read_to_string(&kept).unwrap();
    std::fs::write(&kept, format!("{text}{{\"torn\": tr")).unwrap();
    scene.run(&["agents", "stats"]).exits(0).says("cannot be read").says("lazy");
    scene.run(&[&RUN[..], &["--story", "S2"]].concat()).exits(0).says("with lazy");
}
