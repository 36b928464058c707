//! One run per working tree and branch; a dead one locks nobody out, and looking is always allowed.

use std::fs;

use ralphloop_testkit::scene::{Running, Scene};
use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{called, landed_once, prd_text, scene, start, states, two_stories};

/// A run whose agent works until `go-on` is there.
fn at_work() -> (Scene, Running, String) {
    let scene = scene();
    scene.write("prd.json", prd_text(&two_stories()));
    scene.write("deep/er/note.txt", "x");
    scene.commit_all("Plan");
    let begun = scene.outside("begun");
    scene.scripted_agent(
        &AgentScript::always([call().write("b.txt", "on").complete()]).story(
            "Alpha lamp",
            [call().write("a.txt", "on").touch(&begun).wait_for(scene.outside("go-on")).complete()],
        ),
    );
    let running = start(&scene, &[]);
    scene.wait_for_file(&begun);
    let id = scene.status()["run"].as_str().unwrap().to_owned();
    (scene, running, id)
}

fn let_it_end(scene: &Scene, running: Running) {
    fs::write(scene.outside("go-on"), "").unwrap();
    running.wait().exits(0);
    landed_once(scene, "S1", "a.txt");
    landed_once(scene, "S2", "b.txt");
}

#[test]
fn b18_a_second_run_is_refused_at_once_and_told_run_and_process_of_the_first() {
    let (scene, running, id) = at_work();
    for arguments in [
        &["run", "prd.json", "--headless"][..],
        &["run", "prd.json", "--fresh", "--headless"],
        &["resume", "--headless"],
    ] {
        let refused = scene.run(arguments).exits(6);
        assert!(refused.took < std::time::Duration::from_secs(20), "{refused}");
        refused.says(&format!("run {id}")).says(&format!("pid {}", running.id()));
    }
    called(&scene, 1);
    let_it_end(&scene, running);
}

#[test]
fn b18_a_run_started_in_a_subdirectory_meets_the_same_lock() {
    let (scene, running, id) = at_work();
    let below = scene.path("deep/er");
    scene.start_in(&below, &["run", "../../prd.json", "--headless"]).wait().exits(6).says(&id);
    called(&scene, 1);
    let_it_end(&scene, running);
}

#[test]
fn a_linked_worktree_is_another_tree_with_another_branch_and_is_free() {
    let (scene, running, id) = at_work();
    let linked = scene.outside("linked");
    scene.git(&["worktree", "add", "--quiet", "-b", "aside", &linked.display().to_string()]);
    fs::write(linked.join("own.json"), prd_text(&[crate::world::story("L1", "Linked lamp")])).unwrap();
    scene.scripted_agent(
        &AgentScript::always([call().write("b.txt", "on").complete()])
            .story("Linked lamp", [call().write("l.txt", "on").complete()]),
    );
    scene.start_in(&linked, &["run", "prd:own.json", "--headless"]).wait().exits(0);
    // The branch of the run that is at work is taken, wherever one starts from.
    fs::write(linked.join("next.json"), prd_text(&[crate::world::story("N1", "Next lamp")])).unwrap();
    scene.start_in(&linked, &["run", "prd:next.json", "--headless", "--branch", "main"]).wait().exits(6).says(&id);
    assert!(scene.run(&["status", &id]).exits(0).stdout.contains("running"));
    let_it_end(&scene, running);
}

#[test]
fn b19_the_lock_of_a_dead_run_is_free_whatever_its_file_says() {
    let (scene, running, _) = at_work();
    running.crash();
    scene.nothing_runs();
    let locks = scene.path(".git/ralphloop/locks");
    assert!(fs::read_dir(&locks).unwrap().count() >= 2, "the files stay");
    fs::write(scene.outside("go-on"), "").unwrap();
    scene.run(&["run", "prd.json", "--headless"]).exits(0);
    landed_once(&scene, "S1", "a.txt");
}

#[test]
fn what_only_reads_works_while_a_run_is_at_work() {
    let (scene, running, id) = at_work();
    for arguments in [
        &["status"][..],
        &["status", "--json"],
        &["log"],
        &["log", "--json"],
        &["runs"],
        &["runs", "--json"],
        &["list"],
        &["show", "prd.json"],
        &["check", "prd.json"],
        &["run", "prd.json", "--dry-run"],
    ] {
        scene.run(arguments).exits(0);
    }
    let status = scene.status();
    assert_eq!((status["state"].as_str(), status["run"].as_str()), (Some("running"), Some(id.as_str())));
    assert_eq!(status["pid"], running.id());
    states(&scene, &[("S1", "running"), ("S2", "pending")]);
    let_it_end(&scene, running);
}
