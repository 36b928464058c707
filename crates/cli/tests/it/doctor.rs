//! `doctor`: everything that a run depends on, and what mends it.

use ralphloop_testkit::scene::{Outcome, Scene};
use ralphloop_testkit::script::{AgentScript, call};
use serde_json::Value;

use crate::world::{binary, prd_scene, scene, start, two_stories};

/// A scene in which everything is well.
fn healthy() -> Scene {
    let mut scene = scene();
    scene.program("claude", "#!/bin/sh\necho '9.9.9 (Claude Code)'\n");
    scene.set_env("ANTHROPIC_API_KEY", "test-key-of-the-scene");
    scene
}

fn findings(outcome: &Outcome, area: &str) -> Vec<Value> {
    let all = outcome.json()["findings"].as_array().cloned().unwrap();
    all.into_iter().filter(|finding| finding["area"] == area).collect()
}

/// The only finding about `area`, as level, message and remedy.
#[track_caller]
fn only(outcome: &Outcome, area: &str) -> (String, String, String) {
    let found = findings(outcome, area);
    assert_eq!(found.len(), 1, "findings about {area}\n{outcome}");
    let text = |key: &str| found[0][key].as_str().unwrap_or_default().to_owned();
    (text("level"), text("message"), text("remedy"))
}

#[test]
fn a_place_where_all_is_well_is_told_area_by_area() {
    let scene = healthy();
    let outcome = scene.run(&["doctor", "--json"]).exits(0);
    assert_eq!(outcome.json()["ready"], true);
    for area in
        ["git", "repository", "tree", "identity", "signing", "hooks", "line ends", "runs", "clock", "agent", "sign-in"]
    {
        let (level, _, remedy) = only(&outcome, area);
        assert_eq!((level.as_str(), remedy.as_str()), ("ok", ""), "{area}\n{outcome}");
    }
    assert!(only(&outcome, "agent").1.contains("9.9.9"), "{outcome}");
    assert!(only(&outcome, "identity").1.contains("scene@example.invalid"), "{outcome}");
    assert!(only(&outcome, "sign-in").1.contains("ANTHROPIC_API_KEY"), "{outcome}");
    outcome.never_says("test-key-of-the-scene");
    scene.run(&["doctor"]).exits(0).says("ok     git").says("a run can start here");
    scene.tree_is_clean();
}

#[test]
fn without_a_repository_the_command_that_makes_one_is_named_and_the_rest_is_looked_at_all_the_same() {
    let scene = Scene::without_repository(binary());
    let outcome = scene.run(&["doctor", "--json"]).exits(6);
    let (level, _, remedy) = only(&outcome, "repository");
    assert!(level == "error" && remedy.starts_with("git init"), "{outcome}");
    assert_eq!(only(&outcome, "agent").0, "error", "no agent is here\n{outcome}");
}

#[test]
fn what_would_stop_a_run_is_an_error_with_its_remedy_and_code_6() {
    let scene = healthy();
    std::fs::remove_file(scene.outside("bin/claude")).unwrap();
    scene.write("README.md", "changed\n");
    scene.git(&["add", "README.md"]);
    std::fs::write(scene.outside("home/.gitconfig"), "[user]\n\tuseConfigOnly = true\n").unwrap();
    let outcome = scene.run(&["doctor", "--json"]).exits(6);
    assert_eq!(outcome.json()["ready"], false);
    for (area, remedy) in [("tree", "git commit"), ("identity", "git config user.name"), ("agent", "npm install")] {
        let found = only(&outcome, area);
        assert!(found.0 == "error" && found.2.contains(remedy), "{area}: {found:?}\n{outcome}");
    }
    scene.run(&["doctor"]).exits(6).says("→ git config user.name").says("a run would not start here");
}

#[test]
fn what_only_deserves_a_look_is_a_warning_and_code_0() {
    let mut scene = healthy();
    scene.set_env("ANTHROPIC_API_KEY", "");
    scene.git(&["config", "core.autocrlf", "true"]);
    scene.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 0\n");
    scene.write("openspec/project.md", "");
    let outcome = scene.run(&["doctor", "--json"]).exits(0);
    for (area, remedy) in [("sign-in", "/login"), ("line ends", "autocrlf input"), ("openspec", "npm install")] {
        let found = only(&outcome, area);
        assert!(found.0 == "warn" && found.2.contains(remedy), "{area}: {found:?}\n{outcome}");
    }
    let hooks = findings(&outcome, "hooks");
    assert!(hooks.iter().any(|f| f["remedy"].as_str().is_some_and(|r| r.starts_with("chmod +x"))), "{outcome}");
}

#[test]
fn a_run_that_was_cut_off_is_found_with_the_command_that_goes_on() {
    let scene = prd_scene(&two_stories(), &AgentScript::always([call().say("working").hang()]));
    let running = start(&scene, &[]);
    scene.wait_for_calls(1);
    running.crash();
    scene.nothing_runs();
    let outcome = scene.run(&["doctor", "--json"]);
    let run = scene.status()["run"].as_str().unwrap().to_owned();
    let (level, _, remedy) = only(&outcome, "runs");
    assert_eq!((level.as_str(), remedy), ("warn", format!("ralphloop resume {run}")), "{outcome}");
}
