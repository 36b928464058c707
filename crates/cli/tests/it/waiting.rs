//! Waiting for a provider: seen from outside, stopped at once, and outliving the process.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ralphloop_testkit::scene::{Running, Scene, eventually};
use ralphloop_testkit::script::{AgentScript, call};
use rustix::process::Signal;

use crate::world::{called, landed_once, nothing_landed, prd_text, scene, start, states, story};

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A run whose first call of the agent ends on a limit that is lifted in so many seconds; the next would do the work.
fn waiting(seconds: u64) -> (Scene, Running) {
    let scene = scene();
    scene.write("prd.json", prd_text(&[story("S1", "Alpha lamp")]));
    scene.commit_all("Plan");
    let limited = call().write("a.txt", "half").usage_limit(now() + seconds);
    scene.scripted_agent(&AgentScript::always([limited, call().write("a.txt", "on").complete()]));
    let running = start(&scene, &[]);
    scene.wait_for_calls(1);
    eventually("the wait", || scene.status()["resume_at"].is_string());
    (scene, running)
}

#[test]
fn while_it_waits_status_tells_until_when_and_why() {
    let (scene, running) = waiting(3000);
    let status = scene.status();
    assert_eq!(status["state"], "running", "{status:#}");
    let at: u64 = scene
        .command("date")
        .args(["-d", status["resume_at"].as_str().unwrap(), "+%s"])
        .output()
        .map(|o| String::from_utf8_lossy(&o.stdout).trim().parse().unwrap())
        .unwrap();
    assert!(at > now() + 2800 && at < now() + 3100, "{status:#}");
    assert!(status["reason"].as_str().unwrap().contains("limit"), "{status:#}");
    // Nothing of the attempt is left in the tree meanwhile, and it is not charged.
    scene.tree_is_clean();
    states(&scene, &[("S1", "pending")]);
    drop(running);
}

#[test]
fn every_way_to_stop_ends_a_wait_at_once() {
    for (way, code) in [(None, 4), (Some(Signal::INT), 130), (Some(Signal::TERM), 143), (Some(Signal::HUP), 129)] {
        let (scene, running) = waiting(3000);
        let asked = std::time::Instant::now();
        match way {
            None => drop(scene.run(&["stop"]).exits(0)),
            Some(signal) => running.signal(signal),
        }
        running.wait().exits(code);
        assert!(asked.elapsed() < Duration::from_secs(20), "{way:?} took {:?}", asked.elapsed());
        nothing_landed(&scene);
        scene.nothing_runs();
    }
}

#[test]
fn a_wait_outlives_the_process_and_no_agent_is_called_before_it_is_over() {
    let (scene, running) = waiting(8);
    let until = scene.status()["resume_at"].clone();
    running.crash();
    scene.nothing_runs();
    let status = scene.status();
    assert_eq!(status["state"], "interrupted");
    assert_eq!(status["resume_at"], until, "it is known to those who ask when it makes sense to resume");
    called(&scene, 1);
    let resumed = scene.start(&["resume", "--headless"]);
    eventually("the wait to go on", || scene.status()["state"] == "running" || scene.calls().len() > 1);
    if scene.calls().len() == 1 {
        assert_eq!(scene.status()["resume_at"], until);
    }
    resumed.wait().exits(0);
    let stated: u64 = scene
        .command("date")
        .args(["-d", until.as_str().unwrap(), "+%s"])
        .output()
        .map(|o| String::from_utf8_lossy(&o.stdout).trim().parse().unwrap())
        .unwrap();
    assert!(now() >= stated, "it did not wait to its end");
    called(&scene, 2);
    landed_once(&scene, "S1", "a.txt");
}

#[test]
fn a_paused_wait_ends_the_run_and_resume_goes_on_with_the_story() {
    let (scene, running) = waiting(4);
    scene.run(&["pause"]).exits(0);
    running.wait().exits(4);
    assert_eq!(scene.status()["state"], "paused");
    scene.run(&["resume", "--headless"]).exits(0);
    landed_once(&scene, "S1", "a.txt");
}
