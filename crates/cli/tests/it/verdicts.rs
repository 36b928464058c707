//! What follows from claim and evidence: one test for each row of the table of verdicts.

use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{
    COMPLETE, ONCE, ONCE_AND_ON, called, landed_once, nothing_landed, passes, prd_scene, reason, run, scene, states,
    story, two_stories,
};

#[test]
fn a_claim_that_the_checks_prove_lands() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp").check("test -f lamp.txt")],
        &AgentScript::always([call().write("lamp.txt", "on").complete()]),
    );
    run(&scene, &["--gate", "grep -q on lamp.txt"]).exits(0);
    landed_once(&scene, "S1", "lamp.txt");
    assert!(passes(&scene, "S1"));
    assert_eq!(scene.story("S1")["verified"], true);
    scene.tree_is_clean();
}

#[test]
fn a_claim_that_nothing_checks_lands_as_unverified_and_is_shown_so() {
    let scene =
        prd_scene(&[story("S1", "Alpha lamp")], &AgentScript::always([call().write("lamp.txt", "on").complete()]));
    run(&scene, &[]).exits(0).says("unverified");
    landed_once(&scene, "S1", "lamp.txt");
    assert_eq!(scene.story("S1")["verified"], false);
}

#[test]
fn with_require_verify_a_story_without_any_check_is_not_run() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp"), story("S2", "Beta lamp").check("test -f b.txt")],
        &AgentScript::always([call().write("b.txt", "on").complete()]),
    );
    let outcome = run(&scene, &["--require-verify"]);
    assert_ne!(outcome.code(), Some(0), "{outcome}");
    assert_eq!(scene.calls_of("").len(), 1, "only S2 is run");
    assert_ne!(scene.state_of("S1"), "passed");
    states(&scene, &[("S2", "passed")]);
}

#[test]
fn a_claim_over_an_unchanged_tree_fails_even_if_every_check_passes() {
    let scene = prd_scene(&[story("S1", "Alpha lamp").check("true")], &AgentScript::always([call().complete()]));
    run(&scene, ONCE).exits(1).says_any(&["nothing changed", "no change", "unchanged"]);
    nothing_landed(&scene);
    states(&scene, &[("S1", "failed")]);
}

#[test]
fn a_claim_over_an_unchanged_tree_lands_if_a_check_that_failed_before_passes_now() {
    let scene = scene();
    let proof = scene.outside("proof");
    scene.write(
        "prd.json",
        crate::world::prd_text(&[story("S1", "Alpha lamp").check(&format!("test -f {}", proof.display()))]),
    );
    scene.commit_all("Plan");
    scene.scripted_agent(&AgentScript::always([call().touch(&proof).complete()]));
    run(&scene, ONCE).exits(0);
    states(&scene, &[("S1", "passed")]);
    assert!(passes(&scene, "S1"));
}

#[test]
fn a_story_that_is_marked_as_needing_no_change_lands_over_an_unchanged_tree() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp").with("needsNoChange", true.into()).check("true")],
        &AgentScript::always([call().complete()]),
    );
    run(&scene, ONCE).exits(0);
    assert!(passes(&scene, "S1"));
    assert_eq!(scene.landed().len(), 1);
}

#[test]
fn open_boxes_of_a_proven_story_are_ticked_by_the_tool() {
    let scene = scene();
    scene.write("openspec/changes/lamp/proposal.md", "# Lamp\n\n## Why\n\nIt is dark.\n");
    scene.write("openspec/changes/lamp/tasks.md", "## 1. Alpha lamp\n\n- [ ] 1.1 Bulb\n- [ ] 1.2 Switch\n");
    scene.commit_all("Plan");
    scene.scripted_agent(&AgentScript::always([call().write("lamp.txt", "on").complete()]));
    scene.run(&["run", "openspec:lamp", "--headless", "--gate", "test -f lamp.txt"]).exits(0);
    assert_eq!(scene.read("openspec/changes/lamp/tasks.md"), "## 1. Alpha lamp\n\n- [x] 1.1 Bulb\n- [x] 1.2 Switch\n");
    landed_once(&scene, "1", "openspec/changes/lamp/tasks.md");
}

#[test]
fn a_claim_that_a_check_contradicts_is_repaired_in_place() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp").check("grep -q bright lamp.txt || { echo DIM-77; exit 4; }")],
        &AgentScript::always([
            call().write("lamp.txt", "dim").complete(),
            call().write("more.txt", "bright").shell("cp more.txt lamp.txt").complete(),
        ]),
    );
    run(&scene, &["--max-retries", "0", "--max-repairs", "1"]).exits(0);
    called(&scene, 2);
    assert!(scene.calls()[1].prompt().contains("DIM-77"), "the repair is told what failed");
    landed_once(&scene, "S1", "lamp.txt");
}

#[test]
fn a_claim_that_a_check_contradicts_to_the_end_fails_with_the_output() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp").check("echo DIM-77; exit 4")],
        &AgentScript::always([call().write("lamp.txt", "dim").complete()]),
    );
    run(&scene, &["--max-retries", "0", "--max-repairs", "1"]).exits(1).says("DIM-77");
    nothing_landed(&scene);
    assert!(!passes(&scene, "S1"));
    assert!(reason(&scene, "S1").contains("exit code 4"), "{}", reason(&scene, "S1"));
}

/// An `OpenSpec` change with one story of one task.
fn lamp_change() -> ralphloop_testkit::scene::Scene {
    let scene = scene();
    scene.write("openspec/changes/lamp/proposal.md", "# Lamp\n");
    scene.write("openspec/changes/lamp/tasks.md", "## 1. Alpha lamp\n\n- [ ] 1.1 Bulb\n");
    scene.commit_all("Plan");
    scene
}

const LAMP_TASKS: &str = "openspec/changes/lamp/tasks.md";

#[test]
fn without_a_signal_ticked_boxes_and_passing_checks_land_with_a_note() {
    let scene = lamp_change();
    scene.scripted_agent(&AgentScript::always([call()
        .write("lamp.txt", "on")
        .tick(LAMP_TASKS, "1.1")
        .end("The bulb is in.")]));
    scene.run(&["run", "openspec:lamp", "--headless", "--gate", "test -f lamp.txt"]).exits(0).says("no signal");
    landed_once(&scene, "1", "lamp.txt");
}

#[test]
fn without_a_signal_and_without_checks_ticked_boxes_are_no_proof() {
    let scene = lamp_change();
    scene.scripted_agent(&AgentScript::always([call()
        .write("lamp.txt", "on")
        .tick(LAMP_TASKS, "1.1")
        .end("The bulb is in.")]));
    scene.run(&[&["run", "openspec:lamp", "--headless"], ONCE].concat()).exits(1);
    nothing_landed(&scene);
}

#[test]
fn without_a_signal_a_story_with_open_boxes_fails_though_checks_pass() {
    let scene = lamp_change();
    scene.scripted_agent(&AgentScript::always([call().write("lamp.txt", "on").end("The bulb is in.")]));
    scene.run(&[&["run", "openspec:lamp", "--headless", "--gate", "test -f lamp.txt"], ONCE].concat()).exits(1);
    nothing_landed(&scene);
}

#[test]
fn last_words_without_a_signal_are_quoted_to_the_next_attempt() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([
            call().end("Should the lamp be red or blue?"),
            call().write("lamp.txt", "red").complete(),
        ]),
    );
    run(&scene, &["--max-retries", "1"]).exits(0);
    let prompt = scene.calls()[1].prompt();
    assert!(prompt.contains("Should the lamp be red or blue?"), "{prompt}");
}

#[test]
fn an_abnormal_end_without_a_final_message_adds_nothing_to_the_next_prompt() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([
            call().say("I begin.").write("half.txt", "x").exit(0),
            call().write("lamp.txt", "on").complete(),
        ]),
    );
    run(&scene, &["--max-retries", "1"]).exits(0);
    let calls = scene.calls();
    assert_eq!(calls[0].prompt(), calls[1].prompt());
    assert!(!scene.path("half.txt").exists());
}

#[test]
fn a_failure_that_the_agent_admits_is_told_to_the_next_attempt_and_no_check_runs() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([
            call().write("half.txt", "x").failed("the socket is missing"),
            call().write("lamp.txt", "on").complete(),
        ]),
    );
    let ran = scene.outside("gate-ran");
    run(&scene, &["--max-retries", "1", "--gate", &format!("test -f lamp.txt && echo run >> {}", ran.display())])
        .exits(0);
    assert!(scene.calls()[1].prompt().contains("the socket is missing"));
    assert_eq!(std::fs::read_to_string(ran).unwrap().lines().count(), 1, "the gate ran for the second attempt alone");
    assert!(!scene.path("half.txt").exists());
}

#[test]
fn a_blocked_story_waits_for_a_person_while_others_go_on_and_dependants_wait() {
    let [first, second] = two_stories();
    let scene = prd_scene(
        &[first, second, story("S3", "Gamma lamp").after(&["S1"])],
        &AgentScript::always([call().write("b.txt", "on").complete()])
            .story("Alpha lamp", [call().write("a.txt", "x").blocked("nobody pays for the bulb")]),
    );
    run(&scene, &[]).exits(1).says("nobody pays for the bulb");
    states(&scene, &[("S1", "blocked"), ("S2", "passed"), ("S3", "blocked")]);
    assert_eq!(scene.calls_of("Alpha lamp").len(), 1, "a blocked story is not tried again");
    called(&scene, 2);
    assert!(!scene.path("a.txt").exists());
}

#[test]
fn an_error_of_the_agent_fails_the_attempt_with_its_message() {
    let scene = prd_scene(
        &two_stories(),
        &AgentScript::always([call().write("b.txt", "on").complete()]).story(
            "Alpha lamp",
            [call().write("a.txt", "x").say(COMPLETE).api_error(400, "the request made no sense")],
        ),
    );
    run(&scene, ONCE_AND_ON).exits(1).says("the request made no sense");
    states(&scene, &[("S1", "failed"), ("S2", "passed")]);
    assert!(!scene.path("a.txt").exists());
}

#[test]
fn a_crash_of_the_agent_fails_the_attempt_with_its_exit_code_and_stderr() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call().write("a.txt", "x").say("working").stderr("fuse blown").exit(7)]),
    );
    run(&scene, ONCE).exits(1);
    let reason = reason(&scene, "S1");
    assert!(reason.contains('7') && reason.contains("fuse blown"), "{reason}");
    nothing_landed(&scene);
}

#[test]
fn silence_fails_the_attempt_and_says_so() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call().write("a.txt", "x").hang(), call().write("lamp.txt", "on").complete()]),
    );
    run(&scene, &["--max-retries", "1", "--idle-timeout", "2"]).exits(0).says_any(&[
        "no output for",
        "silent",
        "silence",
    ]);
    called(&scene, 2);
    assert!(!scene.path("a.txt").exists());
    scene.nothing_runs();
}

#[test]
fn the_attempts_clock_fails_an_attempt_that_keeps_talking() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call().shell("for i in $(seq 300); do echo tick >&2; sleep 0.2; done").complete()]),
    );
    run(&scene, &[ONCE, &["--agent-timeout", "2"]].concat()).exits(1).says("time");
    nothing_landed(&scene);
    scene.nothing_runs();
}

#[test]
fn two_attempts_without_any_output_pause_the_run() {
    let scene = prd_scene(&two_stories(), &AgentScript::always([call().exit(0)]));
    run(&scene, &[]).exits(4).says("no output");
    called(&scene, 2);
    nothing_landed(&scene);
}

#[test]
fn the_same_failure_over_the_same_tree_is_not_paid_for_again() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp").check("echo always wrong; exit 1")],
        &AgentScript::always([call().write("lamp.txt", "on").complete()]),
    );
    run(&scene, &["--max-retries", "40", "--max-repairs", "0"]).exits(1).says("same");
    assert!((2..=5).contains(&scene.calls().len()), "{} calls", scene.calls().len());
}
