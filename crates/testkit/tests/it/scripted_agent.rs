//! The scripted agent, alone.

use std::io::Write;
use std::process::{Output, Stdio};

use ralphloop_testkit::scene::{Scene, alive_with_mark, eventually};
use ralphloop_testkit::script::{AgentScript, COMPLETE, call};
use serde_json::Value;

fn ask(scene: &Scene, prompt: &str) -> Output {
    let mut child = scene
        .command(scene.outside("bin/claude"))
        .arg("-p")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(prompt.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn it_plays_the_calls_of_the_story_that_the_prompt_names_first() {
    let scene = Scene::new("unused");
    scene.scripted_agent(
        &AgentScript::always([call().end("what story?")])
            .story("Alpha", [call().write("sub/a.txt", "a1").complete(), call().failed("no more")])
            .story("Beta", [call().exit(3)]),
    );

    let first = ask(&scene, "Story Alpha, before Beta");
    let events: Vec<Value> =
        String::from_utf8(first.stdout).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(events[0]["subtype"], "init");
    let result = events.last().unwrap();
    assert_eq!((&result["type"], &result["is_error"]), (&"result".into(), &false.into()));
    assert!(result["result"].as_str().unwrap().ends_with(COMPLETE));
    assert_eq!(scene.read("sub/a.txt"), "a1");

    let second = ask(&scene, "Story Alpha again");
    assert!(String::from_utf8(second.stdout).unwrap().contains("FAILED: no more"));
    assert_eq!(ask(&scene, "now Beta").status.code(), Some(3));

    let calls = scene.calls();
    let told: Vec<(&str, &str)> = calls.iter().map(|c| (c.story.as_str(), c.stdin.as_str())).collect();
    assert_eq!(told, [("Alpha", "Story Alpha, before Beta"), ("Alpha", "Story Alpha again"), ("Beta", "now Beta")]);
    assert_eq!(calls[0].argv, ["-p"]);
    assert_eq!(calls[0].cwd, scene.repo());
}

#[test]
fn an_agent_that_ends_at_once_says_nothing_at_all() {
    let scene = Scene::new("unused");
    scene.scripted_agent(&AgentScript::always([call().exit(0)]));
    assert_eq!(ask(&scene, "anything").stdout, b"");
}

#[test]
fn a_child_that_it_leaves_behind_is_found_by_the_scenes_mark_and_gone_with_the_scene() {
    let scene = Scene::new("unused");
    scene.scripted_agent(&AgentScript::always([call().leave_child(false)]));
    ask(&scene, "anything");
    let root = scene.root();
    // While a program takes another's place, its environment cannot be read.
    eventually("the child to be seen", || alive_with_mark(&root).len() == 1);
    drop(scene);
    eventually("the child to be gone", || alive_with_mark(&root).is_empty());
}
