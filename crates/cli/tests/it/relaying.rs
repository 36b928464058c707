//! A relay: who is called with what, what is shown of it, and that all of it is counted.

use ralphloop_testkit::scene::{Outcome, Scene};
use ralphloop_testkit::script::{AgentScript, call};
use serde_json::json;

use crate::world::{landed_once, nothing_landed, prd_scene, story};

/// A scene with three agents of the settings, each a shell script that keeps its prompt under its own name.
fn scene_with(planner: &str, tester: &str) -> Scene {
    let work =
        AgentScript::always([call().write("lamp.txt", "on").complete(), call().write("lamp.txt", "green").complete()]);
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &work);
    let seen = scene.outside("seen");
    std::fs::create_dir_all(&seen).unwrap();
    for (name, words) in [("plans", planner), ("tests", tester)] {
        let script = format!("#!/bin/sh\ncat > {}/{name}\n{words}\n", seen.display());
        scene.program(name, &script);
    }
    scene.write(
        "ralphloop.toml",
        "[agents.plans]\ncommand = \"plans\"\n[agents.tests]\ncommand = \"tests\"\n\
         [roles.skeptic]\nagent = \"tests\"\nprompt = \"Doubt everything.\"\n",
    );
    scene.commit_all("Roles");
    scene
}

const RELAY: &str = "planner=plans,coder,skeptic";

fn run(scene: &Scene, more: &[&str]) -> Outcome {
    let gate = "grep -q on lamp.txt || test ! -e lamp.txt";
    scene.run(&[&["run", "prd.json", "--headless", "--gate", gate, "--relay", RELAY], more].concat())
}

fn seen(scene: &Scene, who: &str) -> String {
    std::fs::read_to_string(scene.outside("seen").join(who)).unwrap()
}

#[test]
fn each_role_is_called_with_its_part_the_story_and_what_was_handed_on() {
    let scene = scene_with("echo Use a bright lamp.", "echo It shines.; echo '<promise>COMPLETE</promise>'");
    run(&scene, &[])
        .exits(0)
        .says("planner, round 1 with plans")
        .says("skeptic, round 1 with tests")
        .says("Planner of S1#1");
    landed_once(&scene, "S1", "lamp.txt");
    let planner = seen(&scene, "plans");
    assert!(planner.starts_with("# Your part: planner") && planner.contains("Alpha lamp"), "{planner}");
    let coder = &scene.calls()[0].stdin;
    assert!(coder.contains("# Your part: coder") && coder.contains("Use a bright lamp."), "{coder}");
    let tester = seen(&scene, "tests");
    assert!(tester.contains("Doubt everything.") && tester.contains("who holds the story to be complete"), "{tester}");
    assert_eq!(scene.status()["iterations"], json!(3));
    assert_eq!(scene.story("S1")["attempts"], json!(1));
    let events = scene.run(&["log", "--json"]).json_lines();
    let roles: Vec<_> = events.iter().filter(|e| e["type"] == "agent.started").map(|e| e["role"].clone()).collect();
    assert_eq!(roles, [json!("planner"), json!("coder"), json!("skeptic")]);
    assert!(events.iter().all(|e| e["type"] != "agent.started" || e["repair"] == json!(0)));
}

#[test]
fn a_last_role_that_is_not_content_begins_another_round_and_a_relay_that_never_is_fails() {
    let scene = scene_with("echo Plan $(wc -l < /dev/null) $$", "echo Still dark $$");
    run(&scene, &["--relay-rounds", "2", "--max-retries", "0"]).exits(1).says("planner, round 2 with plans");
    nothing_landed(&scene);
    assert_eq!(scene.status()["iterations"], json!(6));
    assert!(scene.calls()[1].stdin.contains("Still dark"), "the second round knows what the first came to");
}

#[test]
fn an_unknown_role_is_refused_before_anything_starts_and_named_with_those_there_are() {
    let scene = scene_with("", "");
    scene.run(&["run", "prd.json", "--headless", "--relay", "planer,coder"]).exits(2).says("did you mean planner?");
    scene
        .run(&["run", "prd.json", "--headless", "--relay", "coder,poet"])
        .exits(2)
        .says("[roles.poet]")
        .says("skeptic");
    assert!(scene.calls().is_empty());
}
