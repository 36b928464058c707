//! What is written of a run can be checked: its lines, and the commits that it tells of.

use std::fs;

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{prd_scene, run, story};

fn lamp() -> Scene {
    prd_scene(
        &[story("S1", "Alpha lamp").check("test -f a.txt")],
        &AgentScript::always([call().write("a.txt", "on").complete()]),
    )
}

fn done(environment: &[(&str, &str)]) -> Scene {
    let mut scene = lamp();
    for (name, value) in environment {
        scene.set_env(name, *value);
    }
    run(&scene, &["--gate", "test -d ."]).exits(0);
    scene
}

#[test]
fn every_command_decision_and_landing_is_told_with_time_actor_and_grounds() {
    let scene = done(&[]);
    let outcome = scene.run(&["log", "--audit", "--json"]).exits(0);
    let records = outcome.json_lines();
    let of = |kind: &str| records.iter().filter(|record| record["kind"] == kind).collect::<Vec<_>>();
    let commands: Vec<&str> = of("command").iter().filter_map(|record| record["command"].as_str()).collect();
    assert!(commands.contains(&"test -d .") && commands.contains(&"test -f a.txt"), "{commands:?}");
    let landing = of("landing")[0];
    assert_eq!(landing["commit"], scene.head());
    assert_eq!(landing["attempt"], "S1#1");
    assert_eq!(landing["grounds"][0], "every gate and check passed on its tree");
    assert!(of("decision").iter().any(|record| record["actor"].as_str().unwrap().starts_with("agent ")), "{records:?}");
    assert!(records.iter().all(|record| record["time"].as_str().unwrap().ends_with('Z')));
    let lines = fs::read_to_string(&scene.journals()[0]).unwrap().lines().count() as u64;
    assert!(records.iter().all(|record| (1..=lines).contains(&record["line"].as_u64().unwrap())));
    scene.run(&["log", "--audit"]).exits(0).says("a gate was run: `test -d .`").says("landed as");
}

#[test]
fn a_record_that_was_changed_cut_or_reordered_is_found_and_named_by_its_line() {
    let scene = done(&[]);
    scene.run(&["verify-log"]).exits(0).says("as they were written, 1 commit");
    let journal = &scene.journals()[0];
    let whole = fs::read_to_string(journal).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let tampered = |lines: &[&str]| {
        fs::write(journal, lines.join("\n") + "\n").unwrap();
        scene.run(&["verify-log"]).exits(1)
    };
    let place = journal.display();
    let changed = lines[2].replace("passed", "failed").replace("\"took\"", "\"tooK\"");
    let mut other = lines.clone();
    let marked = format!("{} ", lines[2]);
    other[2] = if changed == lines[2] { &marked } else { &changed };
    tampered(&other).says(&format!("{place}:3: it was changed"));
    tampered(&lines[..lines.len() - 2]).says(&format!("{place}:{}: 2 more lines were written", lines.len() - 1));
    let mut moved = lines.clone();
    moved.swap(3, 4);
    tampered(&moved).says(&format!("{place}:4: "));
    fs::write(journal, &whole).unwrap();
    scene.run(&["verify-log", "--json"]).exits(0);
}

#[test]
fn a_signed_commit_is_traced_to_its_attempt_and_a_changed_one_is_found() {
    let key = [("RALPHLOOP_COMMIT_KEY", "the-key-of-the-lamp-maker")];
    let scene = done(&key);
    let commit = scene.commit("HEAD");
    assert!(commit.trailer("Signature").unwrap().starts_with("hmac-sha256="), "{commit:?}");
    assert!(commit.trailer("Journal").unwrap().split(' ').count() == 2, "{commit:?}");
    scene.run(&["verify-log"]).exits(0).says("1 commit, 1 of them signed with the key");
    scene.write("a.txt", "off");
    scene.git(&["commit", "--quiet", "--all", "--amend", "--no-edit"]);
    scene.run(&["verify-log"]).exits(1).says("the signature of").says("does not fit");
}

#[test]
fn a_command_tells_the_key_and_nothing_starts_if_it_does_not() {
    let command = [("RALPHLOOP_COMMIT_KEY_COMMAND", "echo the-key-of-the-lamp-maker; echo and more")];
    let mut scene = done(&command);
    assert!(scene.commit("HEAD").trailer("Signature").unwrap().starts_with("hmac-sha256="));
    scene.run(&["verify-log"]).exits(0).says("1 of them signed with the key");
    // It is the same key as one that is set.
    scene.set_env("RALPHLOOP_COMMIT_KEY", "the-key-of-the-lamp-maker");
    scene.run(&["verify-log"]).exits(0).says("1 of them signed with the key");
    scene.set_env("RALPHLOOP_COMMIT_KEY", "another");
    scene.run(&["verify-log"]).exits(1).says("does not fit");

    let mut scene = lamp();
    for (command, why) in [("echo no such key >&2; exit 3", "no such key"), ("true", "told no key")] {
        scene.set_env("RALPHLOOP_COMMIT_KEY_COMMAND", command);
        run(&scene, &["--no-gates"]).exits(6).says("the key for commits").says(why);
    }
    scene.set_env("RALPHLOOP_COMMIT_KEY_COMMAND", "echo the-key");
    scene.write("ralphloop.toml", "commit_key_command = \"touch mine; echo key\"\n");
    scene.commit_all("Settings");
    run(&scene, &["--no-gates"]).exits(0);
    let scene = lamp();
    scene.write("ralphloop.toml", "commit_key_command = \"touch mine; echo key\"\n");
    scene.commit_all("Settings");
    run(&scene, &["--no-gates"]).exits(2).says("cannot be set by the repository itself");
    assert!(!scene.path("mine").exists());
}
