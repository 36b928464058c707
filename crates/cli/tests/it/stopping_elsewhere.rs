//! Stopping and steering from another terminal and by signals: acknowledged, with the right exit code, nothing left alive,
//! and to be gone on with.

use std::fs;

use ralphloop_testkit::scene::{Outcome, Running, Scene, alive_with_mark, eventually};
use ralphloop_testkit::script::{AgentScript, call};
use rustix::process::Signal;

use crate::world::{called, landed_once, nothing_landed, prd_text, scene, start, states, two_stories};

/// A run whose agent is at work, ignores TERM, has children in other sessions, and never ends by itself.
fn stubborn() -> (Scene, Running) {
    let scene = scene();
    scene.write("prd.json", prd_text(&two_stories()));
    scene.commit_all("Plan");
    let begun = scene.outside("begun");
    let agent = call().write("a.txt", "half").ignore_term().leave_child(true).leave_child(false).touch(&begun).hang();
    scene.scripted_agent(&AgentScript::always([agent]));
    let running = start(&scene, &[]);
    scene.wait_for_file(&begun);
    (scene, running)
}

/// Whatever ended the run, nothing is alive when it has, the tree is as it was, and `resume` does the work.
fn goes_on(scene: &Scene, ended: Outcome, code: i32) {
    let alive = alive_with_mark(&scene.root());
    let ended = ended.exits(code);
    assert!(alive.is_empty(), "{alive:?} are alive after\n{ended}");
    assert!(!ended.stdout.is_empty(), "a summary is printed at every end\n{ended}");
    scene.scripted_agent(
        &AgentScript::new()
            .story("Alpha lamp", [call().write("a.txt", "on").complete()])
            .story("Beta lamp", [call().write("b.txt", "on").complete()]),
    );
    scene.run(&["resume", "--headless"]).exits(0);
    landed_once(scene, "S1", "a.txt");
    landed_once(scene, "S2", "b.txt");
    assert_eq!(scene.read("a.txt"), "on");
    states(scene, &[("S1", "passed"), ("S2", "passed")]);
    scene.tree_is_clean();
    scene.nothing_runs();
}

#[test]
fn one_signal_ends_even_a_stubborn_agent_and_has_its_own_exit_code() {
    for (signal, code) in [(Signal::HUP, 129), (Signal::INT, 130), (Signal::TERM, 143)] {
        let (scene, running) = stubborn();
        running.signal(signal);
        let ended = running.wait();
        nothing_landed(&scene);
        assert_eq!(scene.status()["state"], "stopped");
        goes_on(&scene, ended, code);
    }
}

#[test]
fn a_second_signal_shortens_the_grace_and_the_tree_is_still_put_back() {
    let (scene, running) = stubborn();
    running.signal(Signal::TERM);
    eventually("the first to be heard", || running.stderr().contains("Stopping now"));
    let asked = std::time::Instant::now();
    running.signal(Signal::TERM);
    let ended = running.wait();
    assert!(asked.elapsed() < std::time::Duration::from_secs(4), "no more grace, but it took {:?}", asked.elapsed());
    nothing_landed(&scene);
    goes_on(&scene, ended, 143);
}

#[test]
fn a_third_signal_forces_the_end_and_resume_puts_the_tree_back() {
    let (scene, running) = stubborn();
    running.signal(Signal::INT);
    eventually("the first to be heard", || running.stderr().contains("Stopping now"));
    // Signals of one kind that come at once are one; these are two kinds.
    running.signal(Signal::TERM);
    running.signal(Signal::HUP);
    let ended = running.wait();
    goes_on(&scene, ended, 130);
}

#[test]
fn stop_now_ends_a_stubborn_agent_and_is_acknowledged_in_the_log() {
    let (scene, running) = stubborn();
    scene.run(&["stop", "--now"]).exits(0).says("stops now");
    let ended = running.wait();
    scene.run(&["log"]).exits(0).says("Stopping now");
    assert!(scene.run(&["log", "--json"]).exits(0).stdout.contains("stop"));
    nothing_landed(&scene);
    goes_on(&scene, ended, 4);
}

#[test]
fn stop_pause_and_guide_from_another_terminal_are_acknowledged_in_the_log() {
    for (verb, state, said) in [("stop", "stopped", "Stopping after"), ("pause", "paused", "Pausing after")] {
        let scene = scene();
        scene.write("prd.json", prd_text(&two_stories()));
        scene.commit_all("Plan");
        let (begun, on) = (scene.outside("begun"), scene.outside("go-on"));
        scene.scripted_agent(&AgentScript::always([call()
            .write("a.txt", "on")
            .touch(&begun)
            .wait_for(&on)
            .complete()]));
        let running = start(&scene, &[]);
        scene.wait_for_file(&begun);
        scene.run(&["guide", "Use the small lamp."]).exits(0);
        scene.run(&[verb]).exits(0);
        eventually("both in the log", || {
            let log = scene.run(&["log"]).stdout;
            log.contains("Use the small lamp.") && log.contains(said)
        });
        assert_eq!(scene.status()["state"], "stopping");
        fs::write(&on, "").unwrap();
        running.wait().exits(4);
        assert_eq!(scene.status()["state"], state);
        called(&scene, 1);
        landed_once(&scene, "S1", "a.txt");
        scene.scripted_agent(&AgentScript::always([call().write("b.txt", "on").complete()]));
        scene.run(&["resume", "--headless"]).exits(0);
        let prompts = scene.calls_of("");
        assert!(prompts.last().unwrap().prompt().contains("Use the small lamp."), "the next prompt carries it");
        landed_once(&scene, "S2", "b.txt");
        scene.nothing_runs();
    }
}
