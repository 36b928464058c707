//! The real Claude Code, pinned, against a scripted model on loopback: the whole loop, with nothing imitated but the model.

use std::time::Duration;

use ralphloop_testkit::model_api::{FaultKind, ModelApi, ModelScript, StoryScript};
use ralphloop_testkit::scene::Scene;

use crate::world::{COMPLETE, called_by_model, installed, landed_once, scene};

const TASKS: &str = "openspec/changes/lamp/tasks.md";

/// A repository with a change of two stories, the real client on the path, and the model it talks to.
fn world(script: ModelScript, credential: &str) -> (Scene, ModelApi) {
    let mut scene = scene();
    scene.write("openspec/changes/lamp/proposal.md", "# Lamp\n\n## Why\n\nIt is dark.\n");
    scene.write(TASKS, "## 1. Alpha lamp\n\n- [ ] 1.1 Bulb\n\n## 2. Beta lamp\n\n- [ ] 2.1 Switch\n");
    scene.commit_all("Plan");
    let api = ModelApi::start(script).unwrap();
    scene.link_program("claude", &installed("claude"));
    for (name, value) in client_settings(credential, &api.url()) {
        scene.set_env(name, value);
    }
    (scene, api)
}

/// What makes the client talk to a model on loopback, and to nobody else.
pub(crate) fn client_settings<'a>(credential: &'a str, url: &str) -> [(&'a str, String); 10] {
    [
        (credential, "test-key"),
        ("ANTHROPIC_BASE_URL", url),
        ("IS_SANDBOX", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("DISABLE_TELEMETRY", "1"),
        ("DISABLE_ERROR_REPORTING", "1"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("CLAUDE_CODE_MAX_RETRIES", "2"),
        ("SHELL", "/bin/bash"),
        ("TERM", "dumb"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
}

pub(crate) const KEY: &str = "ANTHROPIC_API_KEY";

fn alpha() -> StoryScript {
    StoryScript::when(&["Bulb"])
        .write("alpha.txt", "bulb\n")
        .run("cat alpha.txt > alpha.seen")
        .say(&format!("The bulb is in.\n{COMPLETE}"))
}

fn beta() -> StoryScript {
    StoryScript::when(&["Switch"]).write("beta.txt", "switch\n").say(&format!("The switch works.\n{COMPLETE}"))
}

fn run(scene: &Scene, flags: &[&str]) -> ralphloop_testkit::scene::Outcome {
    scene.run(&[&["run", "openspec:lamp", "--headless", "--agent", "claude"], flags].concat())
}

#[test]
fn it_asks_the_model_for_the_effort_that_was_named() {
    let (scene, api) = world(ModelScript::new().story(alpha()).story(beta()), KEY);
    let agent = ["--agent", "claude:opus:low", "--story", "1"];
    scene.run(&[&["run", "openspec:lamp", "--headless", "--no-gates"][..], &agent].concat()).exits(0);
    let requests = api.requests();
    let asked = |request: &[u8]| String::from_utf8_lossy(request).contains("\"effort\":\"low\"");
    assert!(requests.iter().any(|request| asked(&request.body)), "{}", String::from_utf8_lossy(&requests[0].body));
}

#[test]
fn it_works_in_the_sandbox_and_cannot_leave_it() {
    let outside = StoryScript::when(&["Switch"])
        .run("echo x > \"$HOME/left\"; cat \"$HOME/.netrc\"; true")
        .write("beta.txt", "switch\n")
        .say(&format!("The switch works.\n{COMPLETE}"));
    let (scene, _api) = world(ModelScript::new().story(alpha()).story(outside), KEY);
    std::fs::write(scene.outside("home/.netrc"), "password of the scene\n").unwrap();
    let outcome = run(&scene, &["--no-gates", "--worktree", "--sandbox", "workspace"]);
    if !outcome.stderr.contains("the sandbox `") {
        eprintln!("SKIPPED: this machine has no sandbox: {}", outcome.stderr);
        return;
    }
    outcome.exits(0);
    both_landed(&scene);
    assert!(!scene.outside("home/left").exists());
    scene.run(&["log", "--json"]).never_says("password of the scene");
}

#[test]
fn at_strict_it_reaches_its_endpoint_and_no_other_host() {
    let elsewhere = StoryScript::when(&["Switch"])
        .run(
            "exec 3<>/dev/tcp/127.0.0.1/${HTTPS_PROXY##*:}; printf 'CONNECT lamp.example:443 HTTP/1.1\\r\\n\\r\\n' >&3; \
             head -c 12 <&3 | grep 200 > reached.txt || rm reached.txt",
        )
        .write("beta.txt", "switch\n")
        .say(&format!("The switch works.\n{COMPLETE}"));
    let (scene, _api) = world(ModelScript::new().story(alpha()).story(elsewhere), KEY);
    let outcome = run(&scene, &["--no-gates", "--worktree", "--sandbox", "strict"]);
    if !outcome.stderr.contains("the sandbox `") {
        eprintln!("SKIPPED: this machine has no sandbox: {}", outcome.stderr);
        return;
    }
    outcome.exits(0).says("kept claude from reaching").says("lamp.example:443");
    both_landed(&scene);
    assert!(!scene.path("reached.txt").exists());
}

/// Both stories are in, with their boxes, and nothing is left running.
fn both_landed(scene: &Scene) {
    landed_once(scene, "1", "alpha.txt");
    landed_once(scene, "2", "beta.txt");
    assert_eq!(scene.landed().len(), 2);
    assert_eq!(scene.read(TASKS).matches("[x]").count(), 2);
    scene.tree_is_clean();
    scene.nothing_runs();
}

#[test]
fn both_stories_land_as_commits_of_their_own() {
    let (scene, api) = world(ModelScript::new().story(alpha()).story(beta()), KEY);
    run(&scene, &["--gate", "test ! -e beta.txt || test -e alpha.txt"]).exits(0);
    both_landed(&scene);
    assert_eq!(scene.read("alpha.seen"), "bulb\n");
    let status = scene.status();
    assert!(status["input_tokens"].as_u64() > Some(0) && status["cost_usd"].as_f64() > Some(0.0), "{status:#}");
    assert!(called_by_model(&api, KEY), "the key of the test is the one that was used");
}

#[test]
fn a_false_claim_is_caught_by_the_gate_and_repaired() {
    // The prompt names the gate's command, so the words of its failure are in a file.
    let gate = "sh gate.sh";
    let repaired =
        StoryScript::when(&["GATE-SAYS-DARK"]).write("alpha.txt", "bulb\n").say(&format!("Now.\n{COMPLETE}"));
    let claimed =
        StoryScript::when(&["Bulb"]).write("alpha.txt", "nothing\n").say(&format!("All tests pass.\n{COMPLETE}"));
    let (scene, _api) = world(ModelScript::new().story(repaired).story(claimed).story(beta()), KEY);
    scene.write("gate.sh", "test ! -e alpha.txt || grep -q bulb alpha.txt || { echo GATE-SAYS-DARK; exit 3; }\n");
    scene.commit_all("Gate");
    run(&scene, &["--gate", gate, "--max-repairs", "1", "--max-retries", "0"]).exits(0);
    both_landed(&scene);
    assert_eq!(scene.read("alpha.txt"), "bulb\n");
}

#[test]
fn a_claim_over_nothing_fails_and_the_next_attempt_lands() {
    let retried = StoryScript::when(&["Bulb", "othing changed"]).write("alpha.txt", "bulb\n").say(COMPLETE);
    let claimed = StoryScript::when(&["Bulb"]).say(COMPLETE);
    let (scene, _api) = world(ModelScript::new().story(retried).story(claimed).story(beta()), KEY);
    run(&scene, &["--max-retries", "1"]).exits(0);
    both_landed(&scene);
    assert_eq!(scene.story("1")["attempts"], 2);
}

#[test]
fn a_rate_limit_with_a_short_wait_passes_unnoticed() {
    let limited = alpha().fault(1, 1, FaultKind::RateLimit { retry_after: Duration::from_secs(1) });
    let (scene, _api) = world(ModelScript::new().story(limited).story(beta()), KEY);
    run(&scene, &[]).exits(0);
    both_landed(&scene);
    assert_eq!(scene.story("1")["attempts"], 1);
}

#[test]
fn a_used_up_subscription_is_waited_for_until_its_reset_and_charges_no_attempt() {
    let limited = alpha().fault(1, 1, FaultKind::UsageLimit { resets_in: Duration::from_secs(5) });
    let (scene, _api) = world(ModelScript::new().story(limited).story(beta()), "CLAUDE_CODE_OAUTH_TOKEN");
    let outcome = run(&scene, &["--max-retries", "0"]).exits(0).says("limit");
    assert!(outcome.took >= Duration::from_secs(5), "{outcome}");
    both_landed(&scene);
    assert_eq!(scene.story("1")["attempts"], 2, "though only one was allowed");
}

#[test]
fn a_model_that_never_answers_is_cut_by_our_own_clock_reverted_and_tried_again() {
    let hung = StoryScript::when(&["Bulb"])
        .write("alpha.txt", "bulb\n")
        .run("cat alpha.txt > alpha.seen")
        .say(COMPLETE)
        .fault(2, 1, FaultKind::Hang);
    let (scene, _api) = world(ModelScript::new().story(hung).story(beta()), KEY);
    run(&scene, &["--idle-timeout", "5", "--max-retries", "1"]).exits(0).says_any(&[
        "no output for",
        "silent",
        "silence",
    ]);
    both_landed(&scene);
    assert_eq!(scene.story("1")["attempts"], 2);
}

#[test]
fn a_model_that_stops_in_mid_answer_is_cut_by_the_attempts_clock() {
    let hung = alpha().fault(1, 1, FaultKind::HangMidStream);
    let (scene, _api) = world(ModelScript::new().story(hung).story(beta()), KEY);
    // The first attempt waits for it to the end; the others have to be done within it on a busy machine.
    run(&scene, &["--agent-timeout", "30", "--max-retries", "1"]).exits(0).says("time");
    both_landed(&scene);
}

#[test]
fn a_connection_that_is_reset_once_is_repaired_by_the_client() {
    let broken = alpha().fault(1, 1, FaultKind::ResetMidStream);
    let (scene, _api) = world(ModelScript::new().story(broken).story(beta()), KEY);
    run(&scene, &[]).exits(0);
    both_landed(&scene);
}

#[test]
fn connections_that_are_reset_until_the_client_gives_up_are_not_the_storys_fault() {
    let broken = alpha().fault(1, 3, FaultKind::Reset);
    let (scene, _api) = world(ModelScript::new().story(broken).story(beta()), KEY);
    run(&scene, &["--max-retries", "0", "--limit-wait", "60"]).exits(0);
    both_landed(&scene);
    assert_eq!(scene.story("1")["attempts"], 2, "though only one was allowed");
}

#[test]
fn a_rejected_key_ends_the_run_and_says_how_to_sign_in() {
    let refused = alpha().fault(1, 99, FaultKind::Unauthorized);
    let (scene, _api) = world(ModelScript::new().story(refused).story(beta()), KEY);
    run(&scene, &[]).exits(6).says_any(&["sign in", "signed in", "login"]);
    assert_eq!(scene.landed_subjects(), Vec::<String>::new());
    scene.tree_is_clean();
}
