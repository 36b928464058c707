//! Whatever is wrong with a spec, a flag, a configuration or a repository is said before the first call of the agent,
//! with its place and a way out, and nothing is changed.

use ralphloop_testkit::scene::{Outcome, Scene};
use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{prd_text, scene, story, two_stories};

fn ready() -> Scene {
    let scene = scene();
    scene.write("prd.json", prd_text(&two_stories()));
    scene.commit_all("Plan");
    scene.scripted_agent(&AgentScript::always([call().write("x.txt", "x").complete()]));
    scene
}

/// Runs it, and asserts that it is refused with `code` and that nothing happened.
#[track_caller]
fn refused(scene: &Scene, code: i32, arguments: &[&str]) -> Outcome {
    let before = scene.snapshot();
    let outcome = scene.run(arguments).exits(code);
    assert_eq!(scene.calls().len(), 0, "no agent is called\n{outcome}");
    assert_eq!(scene.snapshot(), before, "nothing is changed\n{outcome}");
    assert!(outcome.stderr.trim().len() > 10, "it says why\n{outcome}");
    scene.nothing_runs();
    outcome
}

const RUN: &[&str] = &["run", "prd.json", "--headless"];

/// Runs a `prd.json` of that text and asserts that it is refused as a fault of the work.
#[track_caller]
fn bad_prd(text: &str) -> Outcome {
    let scene = scene();
    scene.write("prd.json", text);
    scene.commit_all("Plan");
    scene.scripted_agent(&AgentScript::always([call().write("x.txt", "x").complete()]));
    refused(&scene, 2, RUN).says("prd.json")
}

#[test]
fn a_prd_that_is_no_json_is_refused_with_line_and_column() {
    bad_prd("{\n  \"userStories\": [\n    {\"id\": \"S1\" \"title\": \"x\"}\n  ]\n}\n")
        .says_any(&["prd.json:3", "line 3"]);
}

#[test]
fn an_empty_prd_is_refused() {
    bad_prd("");
}

#[test]
fn a_prd_without_stories_is_refused_and_never_complete() {
    bad_prd("{\"userStories\": []}\n").never_says("complete");
}

#[test]
fn a_prd_with_a_trailing_comma_is_refused_with_its_line() {
    bad_prd("{\n  \"userStories\": [\n    {\"id\": \"S1\", \"title\": \"x\"},\n  ]\n}\n").says_any(&[
        "prd.json:3",
        "line 3",
        "prd.json:4",
        "line 4",
    ]);
}

#[test]
fn a_prd_with_a_double_key_is_refused() {
    bad_prd("{\"userStories\": [{\"id\": \"S1\", \"title\": \"x\", \"passes\": true, \"passes\": false}]}\n")
        .says("passes");
}

#[test]
fn a_prd_with_merge_conflict_markers_is_refused_as_such() {
    bad_prd("{\n<<<<<<< HEAD\n  \"userStories\": []\n=======\n  \"userStories\": []\n>>>>>>> other\n}\n")
        .says("conflict");
}

#[test]
fn a_prd_that_is_not_utf8_is_refused() {
    let scene = scene();
    scene.write("prd.json", b"{\"userStories\": [{\"id\": \"S1\", \"title\": \"caf\xe9\"}]}\n");
    scene.commit_all("Plan");
    refused(&scene, 2, RUN).says("utf-8");
}

#[test]
fn b5_a_dependency_on_an_unknown_story_is_refused_with_both_ids() {
    bad_prd(&prd_text(&[story("S1", "Alpha lamp").after(&["S9"])])).says("S1").says("S9");
}

#[test]
fn b5_a_circle_of_dependencies_is_spelled_out() {
    let text = prd_text(&[
        story("S1", "Alpha lamp").after(&["S3"]),
        story("S2", "Beta lamp").after(&["S1"]),
        story("S3", "Gamma lamp").after(&["S2"]),
    ]);
    bad_prd(&text).says("S1").says("S2").says("S3");
}

#[test]
fn a_story_that_depends_on_itself_is_refused() {
    bad_prd(&prd_text(&[story("S1", "Alpha lamp").after(&["S1"])])).says("S1");
}

#[test]
fn two_stories_of_one_id_are_refused() {
    bad_prd(&prd_text(&[story("S1", "Alpha lamp"), story("S1", "Beta lamp")])).says("S1");
}

#[test]
fn an_openspec_change_without_a_box_is_refused() {
    let scene = scene();
    scene.write("openspec/changes/lamp/proposal.md", "# Lamp\n");
    scene.write("openspec/changes/lamp/tasks.md", "# Tasks\n\nNone yet.\n");
    scene.commit_all("Plan");
    refused(&scene, 2, &["run", "openspec:lamp", "--headless"]).says("tasks.md");
}

#[test]
fn an_openspec_change_that_does_not_exist_is_refused_with_those_that_do() {
    let scene = scene();
    scene.write("openspec/changes/lamp/tasks.md", "## 1. Lamp\n\n- [ ] 1.1 Bulb\n");
    scene.commit_all("Plan");
    refused(&scene, 2, &["run", "openspec:lmap", "--headless"]).says("lamp");
}

#[test]
fn work_that_does_not_exist_is_refused() {
    refused(&ready(), 2, &["run", "no-such.json", "--headless"]).says("no-such.json");
}

#[test]
fn an_unknown_scheme_is_refused_with_the_known_ones() {
    refused(&ready(), 2, &["run", "jira:ABC-1", "--headless"]).says("openspec").says("prd");
}

#[test]
fn without_work_and_with_two_pieces_of_it_the_list_is_shown() {
    let scene = ready();
    scene.write("openspec/changes/lamp/tasks.md", "## 1. Lamp\n\n- [ ] 1.1 Bulb\n");
    scene.commit_all("More");
    refused(&scene, 2, &["run", "--headless"]).says("openspec:lamp").says("prd.json");
}

#[test]
fn without_work_and_without_any_it_says_where_it_looked() {
    refused(&scene(), 2, &["run", "--headless"]).says("prd.json");
}

#[test]
fn unknown_verbs_and_flags_are_refused_with_a_suggestion() {
    let scene = ready();
    refused(&scene, 2, &["rum"]).says("run");
    refused(&scene, 2, &[RUN, &["--max-retires", "1"]].concat()).says("--max-retries");
    refused(&scene, 2, &[RUN, &["extra"]].concat()).says("extra");
}

#[test]
fn values_that_do_not_parse_are_refused_with_flag_and_value() {
    let scene = ready();
    for (flag, value) in [
        ("--max-retries", "banana"),
        ("--max-retries", "-1"),
        ("--max-retries", "1.5"),
        ("--max-repairs", "99999999999999999999"),
        ("--max-iterations", ""),
        ("--max-cost", "lots"),
        ("--max-cost", "-1"),
        ("--max-cost", "NaN"),
        ("--max-tokens", "1e"),
        ("--max-duration", "yesterday"),
        ("--agent-timeout", "soon"),
        ("--idle-timeout", "-3s"),
        ("--gate-timeout", "5 minutes or so"),
        ("--command-timeout", "x"),
        ("--limit-wait", "never"),
        ("--on-exhausted", "panic"),
        ("--dirty", "maybe"),
        ("--agent-format", "morse"),
    ] {
        let argument = format!("{flag}={value}");
        refused(&scene, 2, &[RUN, &[&argument]].concat()).says(flag);
    }
}

#[test]
fn an_unknown_agent_is_refused_with_the_known_ones() {
    refused(&ready(), 2, &[RUN, &["--agent", "clod"]].concat()).says("clod").says("claude");
}

#[test]
fn an_unknown_story_is_refused_with_its_id() {
    refused(&ready(), 2, &[RUN, &["--story", "S77"]].concat()).says("S77");
}

#[test]
fn an_empty_gate_is_refused() {
    refused(&ready(), 2, &[RUN, &["--gate", " "]].concat()).says("gate");
}

#[test]
fn a_configuration_that_is_no_toml_is_refused_with_its_line() {
    let scene = ready();
    scene.write("ralphloop.toml", "max_retries = 1\nmax_repairs = = 2\n");
    scene.commit_all("Configuration");
    refused(&scene, 2, RUN).says("ralphloop.toml").says_any(&["ralphloop.toml:2", "line 2"]);
}

#[test]
fn an_unknown_key_of_the_configuration_is_refused_with_a_suggestion() {
    let scene = ready();
    scene.write("ralphloop.toml", "max-retires = 1\n");
    scene.commit_all("Configuration");
    refused(&scene, 2, RUN).says("max-retires").says("ralphloop.toml");
}

#[test]
fn a_value_of_the_wrong_kind_in_the_configuration_is_refused() {
    let scene = ready();
    scene.write("ralphloop.toml", "max-retries = \"many\"\n");
    scene.commit_all("Configuration");
    refused(&scene, 2, RUN).says("max-retries").says("ralphloop.toml");
}

#[test]
fn a_bad_value_in_the_environment_is_refused_with_the_variable() {
    let mut scene = ready();
    scene.set_env("RALPHLOOP_MAX_RETRIES", "many");
    refused(&scene, 2, RUN).says("RALPHLOOP_MAX_RETRIES");
}

#[test]
fn b22_g4_tracked_changes_of_the_user_are_refused_without_a_terminal_and_survive_byte_for_byte() {
    let scene = ready();
    scene.write("base.txt", "my unsaved work\n");
    let outcome = refused(&scene, 6, RUN);
    outcome.says("base.txt").says_any(&["commit", "--dirty"]);
    assert_eq!(scene.read("base.txt"), "my unsaved work\n");
}

#[test]
fn g4_a_non_empty_index_is_refused_too() {
    let scene = ready();
    scene.write("staged.txt", "staged\n");
    scene.git(&["add", "staged.txt"]);
    refused(&scene, 6, RUN).says("staged.txt");
}

#[test]
fn g7_a_merge_under_way_is_refused_with_the_command_that_mends_it() {
    let scene = ready();
    scene.git(&["checkout", "--quiet", "-b", "other", "HEAD~1"]);
    scene.write("base.txt", "theirs\n");
    scene.git(&["commit", "--quiet", "--all", "--message", "theirs"]);
    scene.git(&["checkout", "--quiet", "main"]);
    scene.write("base.txt", "ours\n");
    scene.git(&["commit", "--quiet", "--all", "--message", "ours"]);
    assert!(!scene.git_succeeds(&["merge", "other"]));
    refused(&scene, 6, RUN).says("merge");
}

#[test]
fn g7_a_repository_without_a_commit_is_refused_with_the_command_that_mends_it() {
    let scene = Scene::without_repository(crate::world::binary());
    scene.git(&["init", "--quiet"]);
    scene.write("prd.json", prd_text(&two_stories()));
    scene.scripted_agent(&AgentScript::always([call().write("x.txt", "x").complete()]));
    refused(&scene, 6, RUN).says("commit");
}

#[test]
fn g7_a_detached_head_is_refused_with_the_command_that_mends_it() {
    let scene = ready();
    scene.git(&["checkout", "--quiet", "--detach"]);
    refused(&scene, 6, RUN).says_any(&["git switch", "git checkout", "--branch"]);
}

#[test]
fn g7_a_stale_index_lock_is_refused_by_its_name() {
    let scene = ready();
    scene.write(".git/index.lock", "");
    let outcome = scene.run(RUN).exits(6);
    outcome.says("index.lock");
    assert_eq!(scene.calls().len(), 0);
    assert!(scene.path(".git/index.lock").exists(), "somebody else may hold it");
}

#[test]
fn g7_a_missing_identity_is_refused_with_the_command_that_mends_it() {
    let scene = ready();
    std::fs::write(scene.outside("home/.gitconfig"), "[user]\n\tuseConfigOnly = true\n").unwrap();
    refused(&scene, 6, RUN).says("user.email");
}

#[test]
fn g8_a_second_run_on_the_same_branch_is_refused_and_the_first_goes_on() {
    let scene = scene();
    scene.write("prd.json", prd_text(&two_stories()));
    scene.commit_all("Plan");
    let go_on = scene.outside("go-on");
    scene.scripted_agent(
        &AgentScript::always([call().wait_for(&go_on).write("x.txt", "x").complete()])
            .story("Beta lamp", [call().write("b.txt", "on").complete()]),
    );
    let running = scene.start(RUN);
    scene.wait_for_calls(1);
    let outcome = scene.run(RUN);
    assert!(matches!(outcome.code(), Some(2 | 6)), "{outcome}");
    outcome.says("running");
    std::fs::write(&go_on, "").unwrap();
    running.wait().exits(0);
    assert_eq!(scene.calls().len(), 2);
}

#[test]
fn a_gate_that_cannot_run_ends_the_run_and_is_named() {
    let scene = ready();
    let outcome = scene.run(&[RUN, &["--gate", "no-such-test-runner --all"]].concat()).says("no-such-test-runner");
    assert_ne!(outcome.code(), Some(0), "{outcome}");
    assert!(scene.calls().len() <= 1, "{outcome}");
    scene.tree_is_clean();
}

#[test]
fn an_agent_that_cannot_be_executed_is_6_and_no_story_changes_state() {
    let scene = ready();
    let not_executable = scene.outside("tmp/agent");
    std::fs::write(&not_executable, "#!/bin/sh\n").unwrap();
    let bad_interpreter = scene.program("bad-interpreter", "#!/no/such/interpreter\n");
    for program in
        ["/no/such/agent".to_owned(), not_executable.display().to_string(), bad_interpreter.display().to_string()]
    {
        let outcome = scene.run(&[RUN, &["--agent-command", &program, "--agent-format", "text"]].concat());
        assert_eq!(outcome.code(), Some(6), "{outcome}");
        outcome.says(&program);
        assert_eq!(scene.landed_subjects(), Vec::<String>::new());
    }
}
