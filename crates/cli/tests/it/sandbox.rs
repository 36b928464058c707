//! The sandbox as a user meets it: asked for, not to be had, opened a little; and runaways, and branches that are protected.

use std::process::Command;

use ralphloop_testkit::scene::{Outcome, Scene};

use crate::world::{ONCE, binary, prd_text, reason, run, scene, story};

/// A scene whose agent runs this script, and says that it is done.
fn with_agent(script: &str) -> Scene {
    let mut scene = scene();
    scene.write("prd.json", prd_text(&[story("S1", "Alpha lamp")]));
    scene.commit_all("Plan");
    let agent =
        scene.program("agent", &format!("#!/bin/sh\ncat >/dev/null\n{script}\necho '<promise>COMPLETE</promise>'\n"));
    scene.set_env("RALPHLOOP_AGENT_COMMAND", agent);
    scene
}

/// Runs the binary where nobody can make namespaces.
#[expect(clippy::print_stderr, reason = "whoever reads what the tests said has to know")]
fn without_namespaces(scene: &Scene, flags: &[&str]) -> Option<(Option<i32>, String)> {
    let mut command: Command = scene.command("/usr/bin/unshare");
    let inner = "echo 0 > /proc/sys/user/max_user_namespaces && \
                 exec /usr/bin/setpriv --bounding-set=-all --inh-caps=-all --no-new-privs -- \"$0\" \"$@\"";
    command.args(["--user", "--map-root-user", "/bin/sh", "-c", inner]).arg(binary());
    let output = command.args(["run", "prd.json", "--headless"]).args(ONCE).args(flags).output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("unshare:") || said.contains("setpriv:") {
        eprintln!("SKIPPED: this machine makes no namespace to take the others away in: {said}");
        return None;
    }
    Some((output.status.code(), said))
}

#[test]
fn a_sandbox_that_was_asked_for_and_cannot_be_had_starts_nothing_and_says_what_helps() {
    let scene = with_agent("echo on > lamp.txt; touch \"$HOME/started\"");
    let Some((code, said)) = without_namespaces(&scene, &["--sandbox", "workspace"]) else { return };
    assert_eq!(code, Some(6), "{said}");
    for word in
        ["cannot be had on this machine", "namespaces:", "bubblewrap:", "nothing was started", "max_user_namespaces"]
    {
        assert!(said.contains(word), "{word:?} in {said}");
    }
    assert!(!scene.outside("home/started").exists(), "an agent was started\n{said}");
    assert!(scene.journals().is_empty());
}

#[test]
fn an_agent_in_a_worktree_stays_inside_if_that_is_asked_for() {
    let outside = "echo on > lamp.txt; echo x > \"$HOME/reached\"";
    let scene = with_agent(outside);
    run(&scene, &[&["--worktree"], ONCE].concat()).exits(0);
    assert!(scene.outside("home/reached").exists(), "nobody asked for a sandbox");
    let scene = with_agent(outside);
    let outcome = run(&scene, &[&["--worktree", "--sandbox", "workspace"], ONCE].concat());
    if sandboxed(&outcome) {
        outcome.exits(0);
        assert!(!scene.outside("home/reached").exists(), "the home folder was written");
    }
}

/// Whether there was a sandbox; a machine that has none says so, and then nothing can be tested.
#[expect(clippy::print_stderr, reason = "whoever reads what the tests said has to know")]
fn sandboxed(outcome: &Outcome) -> bool {
    let there = outcome.stderr.contains("the sandbox `");
    if !there {
        eprintln!("SKIPPED: this machine has no sandbox: {}", outcome.stderr);
    }
    there
}

#[test]
fn folders_that_the_user_opens_can_be_written_and_one_that_holds_everything_cannot_be_opened() {
    let scene = with_agent("echo on > lamp.txt; echo x > \"$HOME/cache/entry\"; cat \"$HOME/.npmrc\" > seen.txt");
    std::fs::create_dir(scene.outside("home/cache")).unwrap();
    std::fs::write(scene.outside("home/.npmrc"), "mine\n").unwrap();
    scene.write(
        "ralphloop.toml",
        "sandbox = \"workspace\"\nsandbox_write = [\"~/cache\"]\nsandbox_read = [\"~/.npmrc\"]\n",
    );
    scene.commit_all("Settings");
    let flags = [&["--sandbox", "workspace"], ONCE].concat();
    let outcome = run(&scene, &flags);
    if sandboxed(&outcome) {
        outcome.exits(0);
        assert_eq!(std::fs::read_to_string(scene.outside("home/cache/entry")).unwrap(), "x\n");
        assert_eq!(scene.read("seen.txt"), "mine\n");
    }
    let scene = with_agent("echo on > lamp.txt");
    scene.write("ralphloop.toml", "sandbox_write = [\"~\"]\n");
    scene.commit_all("Too wide");
    run(&scene, &flags).exits(6).says("cannot be opened to the sandbox");
}

#[test]
fn a_runaway_agent_is_ended_with_all_it_started_and_named() {
    let scene = with_agent("while :; do sleep 600 & done");
    run(&scene, &[&["--max-processes", "40"], ONCE].concat()).exits(1);
    let reason = reason(&scene, "S1");
    assert!(reason.contains("runaway") && reason.contains("more than the 40 of max_processes"), "{reason}");
    scene.nothing_runs();
}

#[test]
fn a_runaway_gate_fails_the_story_with_its_name() {
    let scene = with_agent("echo on > lamp.txt");
    let gate = "test ! -e lamp.txt || while :; do echo on and on and on and on and on and on and on and on; done";
    run(&scene, &[&["--max-output", "1MiB", "--gate", gate], ONCE].concat()).exits(1);
    let reason = reason(&scene, "S1");
    assert!(reason.contains("runaway") && reason.contains("max_output"), "{reason}");
}

#[test]
fn nothing_is_committed_to_a_protected_branch() {
    let scene = with_agent("echo on > lamp.txt");
    scene.write("ralphloop.toml", "protected_branches = [\"ma*\"]\n");
    scene.commit_all("Protect");
    run(&scene, ONCE).exits(2).says("nothing may be committed to the branch main").says("--branch");
    assert!(scene.journals().is_empty());
    run(&scene, &[&["--branch", "feature"], ONCE].concat()).exits(0);
}
