//! `status --follow` and `log --follow`: told of what happens as it happens, and of the end, whatever it is.

use std::time::{Duration, Instant};

use ralphloop_testkit::scene::eventually;
use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{prd_scene, start, two_stories};

#[test]
fn who_follows_a_run_sees_each_change_and_its_end() {
    let scene = prd_scene(&two_stories(), &AgentScript::new());
    let (begun, go) = (scene.outside("begun"), scene.outside("go"));
    scene.scripted_agent(
        &AgentScript::always([call().write("b.txt", "on").complete()])
            .story("Alpha lamp", [call().write("a.txt", "on").touch(&begun).wait_for(&go).complete()]),
    );
    let running = start(&scene, &[]);
    scene.wait_for_file(&begun);
    let (log, status) = (scene.start(&["log", "--follow", "--json"]), scene.start(&["status", "--follow", "--json"]));
    eventually("the beginning to be told", || {
        log.stdout().contains("agent.started") && status.stdout().contains("the agent works")
    });
    std::fs::write(&go, "").unwrap();
    running.wait().exits(0);
    let (log, status) = (log.wait().exits(0), status.wait().exits(0));
    assert_eq!(log.json_lines().last().unwrap()["type"], "run.ended");
    let all = scene.run(&["log", "--json"]).exits(0);
    assert_eq!(log.stdout, all.stdout, "nothing is missed and nothing told twice");
    let last = status.stdout.rsplit("\n{").next().unwrap();
    assert!(last.contains("\"state\": \"complete\"") && last.contains("\"passed\": 2"), "{status}");
}

#[test]
fn who_follows_a_run_is_told_when_its_process_dies_without_a_word() {
    let scene = prd_scene(&two_stories(), &AgentScript::new());
    let begun = scene.outside("begun");
    scene.scripted_agent(&AgentScript::always([call().touch(&begun).hang()]));
    let running = start(&scene, &[]);
    scene.wait_for_file(&begun);
    let (log, status) = (scene.start(&["log", "--follow"]), scene.start(&["status", "--follow", "--json"]));
    eventually("the beginning to be told", || status.stdout().contains("the agent works"));
    running.crash();
    let died = Instant::now();
    log.wait().exits(0);
    status.wait().exits(0).says("interrupted");
    assert!(died.elapsed() < Duration::from_secs(20));
}
