//! How the loop picks, tries, retries and gives up: the rules that the seed documents number R31 to R47.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};
use serde_json::Value;

use crate::world::{
    COMPLETE, ONCE, called, landed_once, nothing_landed, prd_scene, reason, run, scene, states, story, two_stories,
};

#[test]
fn r31_stories_are_done_one_after_the_other_each_in_a_fresh_call_until_none_is_left() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp"), story("S2", "Beta lamp"), story("S3", "Gamma lamp")],
        &AgentScript::new()
            .story("Alpha lamp", [call().write("a.txt", "on").complete()])
            .story("Beta lamp", [call().write("b.txt", "on").complete()])
            .story("Gamma lamp", [call().write("c.txt", "on").complete()]),
    );
    run(&scene, &[]).exits(0);
    let told: Vec<String> = scene.calls().iter().map(|c| c.story.clone()).collect();
    assert_eq!(told, ["Alpha lamp", "Beta lamp", "Gamma lamp"]);
    for (id, file) in [("S1", "a.txt"), ("S2", "b.txt"), ("S3", "c.txt")] {
        landed_once(&scene, id, file);
    }
    assert_eq!(scene.landed().len(), 3);
}

#[test]
fn r32_a_complete_story_ends_its_attempt_drops_its_checkpoint_and_the_plan_is_read_again() {
    let scene = prd_scene(
        &two_stories(),
        &AgentScript::new()
            .story("Alpha lamp", [call().write("a.txt", "on").complete()])
            .story("Beta lamp", [call().write("b.txt", "on").complete()]),
    );
    run(&scene, &[]).exits(0);
    let left: Vec<String> = scene.kept_refs().into_iter().filter(|r| r.contains("checkpoint")).collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn r33_a_failure_with_attempts_left_reverts_and_retries_with_the_reason() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([
            call().write("half.txt", "x").write("base.txt", "changed\n").failed("the fuse is blown"),
            call().write("lamp.txt", "on").complete(),
        ]),
    );
    run(&scene, &["--max-retries", "1"]).exits(0);
    assert!(scene.calls()[1].prompt().contains("the fuse is blown"));
    assert_eq!(scene.read("base.txt"), "base\n");
    assert!(!scene.path("half.txt").exists());
}

#[test]
fn r34_an_end_without_signal_reverts_and_retries() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call().write("half.txt", "x").exit(1), call().write("lamp.txt", "on").complete()]),
    );
    run(&scene, &["--max-retries", "1"]).exits(0);
    assert!(!scene.path("half.txt").exists());
    called(&scene, 2);
}

#[test]
fn r35_exhausted_attempts_stop_the_whole_loop_and_the_next_story_is_never_begun() {
    let failing: Vec<_> =
        (1..=9).map(|n| call().write("x.txt", &n.to_string()).failed(&format!("reason number {n}"))).collect();
    let scene = prd_scene(&two_stories(), &AgentScript::always(failing));
    run(&scene, &[]).exits(1).says("reason number 4");
    called(&scene, 4); // the first attempt and three retries
    states(&scene, &[("S1", "failed"), ("S2", "pending")]);
    assert_eq!(scene.story("S1")["attempts"], 4);
}

#[test]
fn r1_max_retries_bounds_the_attempts_after_the_first() {
    let failing: Vec<_> =
        (1..=9).map(|n| call().write("x.txt", &n.to_string()).failed(&format!("reason number {n}"))).collect();
    for retries in [0, 2] {
        let scene = prd_scene(&[story("S1", "Alpha lamp")], &AgentScript::always(failing.clone()));
        run(&scene, &["--max-retries", &retries.to_string()]).exits(1);
        called(&scene, retries + 1);
    }
}

/// Installs a hook that hangs the first time it runs.
fn hang_once(scene: &Scene, hook: &str) {
    let marker = scene.outside("hung");
    scene.write(
        &format!(".git/hooks/{hook}"),
        format!("#!/bin/sh\n[ -e '{0}' ] && exit 0\ntouch '{0}'\nexec sleep 1000\n", marker.display()),
    );
    fs::set_permissions(scene.path(&format!(".git/hooks/{hook}")), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn r36_a_helper_command_that_times_out_while_a_story_runs_goes_through_the_retry_path() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([
            call().write("lamp.txt", "first").complete(),
            call().write("lamp.txt", "second").complete(),
        ]),
    );
    hang_once(&scene, "pre-commit");
    run(&scene, &["--max-retries", "1", "--max-repairs", "0", "--command-timeout", "3", "--gate-timeout", "3"])
        .exits(0);
    called(&scene, 2);
    landed_once(&scene, "S1", "lamp.txt");
    assert_eq!(scene.read("lamp.txt"), "second");
    scene.nothing_runs();
}

#[test]
fn r37_complete_with_open_boxes_does_not_run_the_same_story_for_ever() {
    let scene = scene();
    scene.write("openspec/changes/lamp/proposal.md", "# Lamp\n");
    scene.write("openspec/changes/lamp/tasks.md", "## 1. Alpha lamp\n\n- [ ] 1.1 Bulb\n- [ ] 1.2 Switch\n");
    scene.commit_all("Plan");
    scene.scripted_agent(&AgentScript::always([call().write("lamp.txt", "on").complete()]));
    scene.run(&["run", "openspec:lamp", "--headless"]).exits(0);
    called(&scene, 1);
}

#[test]
fn r38_the_last_signal_of_the_final_message_counts() {
    for (message, state) in [
        (format!("<promise>FAILED: one test is red</promise>\nFixed it.\n{COMPLETE}"), "passed"),
        (format!("{COMPLETE}\nOn second thoughts:\n<promise>FAILED: one test is red</promise>"), "failed"),
    ] {
        let scene = prd_scene(
            &[story("S1", "Alpha lamp")],
            &AgentScript::always([call().write("lamp.txt", "on").end(&message)]),
        );
        run(&scene, ONCE);
        states(&scene, &[("S1", state)]);
    }
}

#[test]
fn r38_other_spellings_of_the_signal_are_understood() {
    for message in ["STORY_COMPLETE: S1", "STORY_COMPLETE", "ITERATION_COMPLETE", "  <PROMISE>complete</PROMISE>  \n\n"]
    {
        let scene = prd_scene(
            &[story("S1", "Alpha lamp")],
            &AgentScript::always([call().write("lamp.txt", "on").end(message)]),
        );
        let outcome = run(&scene, ONCE);
        assert_eq!(outcome.code(), Some(0), "{message:?}\n{outcome}");
    }
}

#[test]
fn r38_a_signal_that_names_another_story_does_not_count_and_is_reported() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call().write("lamp.txt", "on").end("STORY_COMPLETE: S2")]),
    );
    run(&scene, ONCE).exits(1).says("S2");
    nothing_landed(&scene);
}

#[test]
fn r39_stopping_is_heard_while_a_helper_command_runs_and_the_command_is_gone() {
    let scene =
        prd_scene(&[story("S1", "Alpha lamp")], &AgentScript::always([call().write("lamp.txt", "on").complete()]));
    hang_once(&scene, "pre-commit");
    let running = crate::world::start(&scene, &["--command-timeout", "600", "--gate-timeout", "600"]);
    scene.wait_for_file(&scene.outside("hung"));
    running.signal(rustix::process::Signal::TERM);
    running.wait().exits(143);
    scene.nothing_runs();
    nothing_landed(&scene);
}

#[test]
fn r40_a_checkpoint_puts_back_staged_unstaged_and_untracked_files() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call()
            .write("base.txt", "changed\n")
            .shell("git add base.txt; rm prd.json; mkdir deep && echo x > deep/new.txt; rm -f notes.txt; git config user.name Mallory")
            .failed("no")]),
    );
    scene.write("notes.txt", "my own notes\n");
    let before = scene.snapshot();
    run(&scene, ONCE).exits(1);
    assert_eq!(scene.read("notes.txt"), "my own notes\n");
    assert_eq!(scene.snapshot(), before);
}

#[test]
fn r40_what_is_reverted_stays_inspectable_under_a_ref() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call().write("half.txt", "precious").failed("no")]),
    );
    run(&scene, ONCE).exits(1);
    let kept = scene.kept_refs();
    let holds = kept.iter().any(|r| scene.git_succeeds(&["cat-file", "-e", &format!("{r}:half.txt")]));
    assert!(holds, "no ref of {kept:?} holds what the attempt wrote");
}

/// The events of a run with `--json` about two stories, the second of which passes.
fn events_of_two_stories() -> Vec<Value> {
    let long = format!("I begin. {}", "step by step ".repeat(400));
    let scene = prd_scene(
        &two_stories(),
        &AgentScript::new()
            .story("Alpha lamp", [call().say(&long).write("a.txt", "on").complete()])
            .story("Beta lamp", [call().write("b.txt", "on").complete()]),
    );
    run(&scene, &["--json"]).exits(0).json_lines()
}

#[test]
fn r45_events_tell_which_story_begins_its_title_and_the_total() {
    let events = events_of_two_stories();
    assert_eq!((&events[0]["type"], &events[0]["stories"]), (&"run.started".into(), &2.into()));
    let begun: Vec<(&Value, &Value)> =
        events.iter().filter(|e| e["type"] == "attempt.started").map(|e| (&e["story"], &e["title"])).collect();
    assert_eq!(begun, [(&"S1".into(), &"Alpha lamp".into()), (&"S2".into(), &"Beta lamp".into())]);
}

#[test]
fn r45_what_the_agent_said_can_be_read_in_full_afterwards() {
    let long = format!("I begin. {}the end of the long text", "step by step ".repeat(400));
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call().say(&long).write("a.txt", "on").complete()]),
    );
    run(&scene, &[]).exits(0);
    scene.run(&["log", "--story", "S1"]).exits(0).says("the end of the long text");
}

#[test]
fn r46_exhausted_attempts_are_an_event_that_names_the_story() {
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &AgentScript::always([call().failed("glued in")]));
    let events = run(&scene, &[ONCE, &["--json"]].concat()).exits(1).json_lines();
    let failed = events.iter().find(|e| e["type"] == "story.failed").unwrap_or_else(|| panic!("{events:#?}"));
    assert_eq!(failed["story"], "S1");
    assert!(failed["reason"].as_str().unwrap().contains("glued in"), "{failed}");
}

#[test]
fn r47_events_tell_that_a_story_is_complete_and_that_the_run_is() {
    let events = events_of_two_stories();
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["state"]), (&"run.ended".into(), &"complete".into()));
    let landed: Vec<&Value> = events.iter().filter(|e| e["type"] == "story.landed").map(|e| &e["story"]).collect();
    assert_eq!(landed, ["S1", "S2"]);
}

#[test]
fn r30_r29_the_prompt_needs_no_variable_and_names_its_story_tasks_and_signals() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp").with("acceptanceCriteria", serde_json::json!(["It shines at night"]))],
        &AgentScript::always([call().write("lamp.txt", "on").complete()]),
    );
    run(&scene, &[]).exits(0);
    let call = &scene.calls()[0];
    for wanted in ["S1", "Alpha lamp", "It shines at night", COMPLETE, "<promise>FAILED:"] {
        assert!(call.prompt().contains(wanted), "{wanted} in {}", call.prompt());
    }
    // The one variable of ours marks processes, so that those of a dead run are found again; it tells no story.
    let ours = call.env.iter().filter(|(name, _)| name.as_str() != "RALPHLOOP_SPAWN");
    let names: Vec<&String> = ours
        .filter(|(name, value)| {
            name.to_uppercase().contains("STORY") || name.starts_with("RALPH") || value.contains("Alpha lamp")
        })
        .map(|(name, _)| name)
        .collect();
    assert!(names.is_empty(), "{names:?}");
    assert_eq!(reason(&scene, "S1"), "");
}
