//! Stopping: after the attempt, at once, and by force (R48 to R51 without a screen).

use std::fs;

use ralphloop_testkit::scene::{Running, Scene};
use ralphloop_testkit::script::{AgentScript, Call, call};
use rustix::process::Signal;

use crate::world::{called, landed_once, nothing_landed, prd_text, scene, start, states, two_stories};

/// Two stories; the first call tells that it has begun and goes on with `then`.
fn begun(then: impl Fn(&Scene, Call) -> Call) -> (Scene, Running) {
    let scene = scene();
    scene.write("prd.json", prd_text(&two_stories()));
    scene.commit_all("Plan");
    let first = then(&scene, call().write("a.txt", "on").say("working").touch(scene.outside("begun")));
    scene.scripted_agent(&AgentScript::always([call().write("b.txt", "on").complete()]).story("Alpha lamp", [first]));
    let running = start(&scene, &[]);
    scene.wait_for_file(&scene.outside("begun"));
    (scene, running)
}

#[test]
fn r48_stop_lets_the_attempt_end_keeps_its_work_and_begins_nothing_more() {
    let (scene, running) = begun(|scene, c| c.wait_for(scene.outside("go-on")).complete());
    scene.run(&["stop"]).exits(0);
    fs::write(scene.outside("go-on"), "").unwrap();
    running.wait().exits(4);
    landed_once(&scene, "S1", "a.txt");
    states(&scene, &[("S1", "passed"), ("S2", "pending")]);
    assert_eq!(scene.status()["state"], "stopped");
    called(&scene, 1);
}

#[test]
fn r48_a_stop_does_not_wait_for_the_retries_of_a_story() {
    let (scene, running) = begun(|scene, c| c.wait_for(scene.outside("go-on")).failed("not yet"));
    scene.run(&["stop"]).exits(0);
    fs::write(scene.outside("go-on"), "").unwrap();
    running.wait().exits(4);
    called(&scene, 1);
    nothing_landed(&scene);
}

#[test]
fn stop_now_ends_the_agent_keeps_its_work_under_a_ref_and_charges_nothing() {
    let (scene, running) = begun(|_, c| c.hang());
    scene.run(&["stop", "--now"]).exits(0);
    running.wait().exits(4);
    nothing_landed(&scene);
    scene.nothing_runs();
    states(&scene, &[("S1", "pending"), ("S2", "pending")]);
    let kept = scene.kept_refs();
    assert!(kept.iter().any(|r| scene.git_succeeds(&["cat-file", "-e", &format!("{r}:a.txt")])), "{kept:?}");
}

#[test]
fn a_stopped_run_goes_on_with_resume() {
    let (scene, running) = begun(|_, c| c.hang());
    scene.run(&["stop", "--now"]).exits(0);
    running.wait().exits(4);
    scene.scripted_agent(
        &AgentScript::always([call().write("b.txt", "on").complete()])
            .story("Alpha lamp", [call().write("a.txt", "on").complete()]),
    );
    scene.run(&["resume", "--headless"]).exits(0);
    landed_once(&scene, "S1", "a.txt");
    landed_once(&scene, "S2", "b.txt");
}

#[test]
fn r49_three_interrupts_in_a_row_leave_at_once_with_130_and_no_process_behind() {
    let (scene, running) = begun(|_, c| c.ignore_term().leave_child(true).hang());
    for _ in 0..3 {
        running.signal_group(Signal::INT);
        // Three are three only if each is seen by itself.
        std::thread::sleep(std::time::Duration::from_millis(150));
    }
    let outcome = running.wait().exits(130);
    assert!(outcome.took < std::time::Duration::from_secs(20), "{outcome}");
    scene.nothing_runs();
}

#[test]
fn r50_a_second_interrupt_shortens_the_grace_of_an_agent_that_ignores_the_first() {
    let (scene, mut running) = begun(|_, c| c.ignore_term().hang());
    running.signal_group(Signal::INT);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(running.is_running(), "the agent has a grace time");
    running.signal_group(Signal::INT);
    running.wait().exits(130);
    scene.nothing_runs();
    nothing_landed(&scene);
}

#[test]
fn r51_stopping_says_how_to_force_it() {
    let (scene, running) = begun(|scene, c| c.wait_for(scene.outside("go-on")).complete());
    running.signal_group(Signal::INT);
    ralphloop_testkit::scene::eventually("the hint", || {
        let said = running.stderr().to_lowercase();
        said.contains("again") || said.contains("force")
    });
    fs::write(scene.outside("go-on"), "").unwrap();
    running.wait();
    scene.nothing_runs();
}

#[test]
fn b16_an_agent_that_is_ended_takes_its_children_along_also_those_in_sessions_of_their_own() {
    let (scene, running) = begun(|_, c| c.leave_child(false).leave_child(true).ignore_term().hang());
    running.signal(Signal::TERM);
    running.wait().exits(143);
    assert_eq!(
        ralphloop_testkit::scene::alive_with_mark(&scene.root()),
        Vec::<u32>::new(),
        "confirmed gone before it exits"
    );
}

#[test]
fn b32_a_stop_is_heard_while_a_gate_runs_and_the_gate_is_gone() {
    let scene = scene();
    scene.write("prd.json", prd_text(&two_stories()));
    scene.commit_all("Plan");
    scene.scripted_agent(&AgentScript::always([call().write("a.txt", "on").complete()]));
    let marker = scene.outside("gate");
    let gate = format!("[ ! -f a.txt ] || {{ touch '{}'; sleep 1000; }}", marker.display());
    let running = start(&scene, &["--gate", &gate]);
    scene.wait_for_file(&marker);
    scene.run(&["stop", "--now"]).exits(0);
    running.wait().exits(4);
    scene.nothing_runs();
    nothing_landed(&scene);
    states(&scene, &[("S1", "pending"), ("S2", "pending")]);
}

#[test]
fn b32_a_stop_is_heard_while_the_run_waits_for_a_limit() {
    let scene = scene();
    scene.write("prd.json", prd_text(&two_stories()));
    scene.commit_all("Plan");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    scene.scripted_agent(&AgentScript::always([call().usage_limit(now + 3000)]));
    let running = start(&scene, &[]);
    scene.wait_for_calls(1);
    ralphloop_testkit::scene::eventually("the wait", || scene.status()["resume_at"].is_string());
    scene.run(&["stop"]).exits(0);
    running.wait().exits(4);
    scene.nothing_runs();
    nothing_landed(&scene);
}

#[test]
fn stop_without_a_running_loop_says_so() {
    let scene = scene();
    let outcome = scene.run(&["stop"]);
    assert_ne!(outcome.code(), Some(0), "{outcome}");
    outcome.says("no run");
}

#[test]
fn stop_now_does_not_wait_for_an_address_that_does_not_answer() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/health", listener.local_addr().unwrap());
    let check = serde_json::json!([{"type": "url", "url": url, "timeout": 100}]);
    let scene = scene();
    scene.write("prd.json", prd_text(&[two_stories()[0].clone().with("verification_steps", check)]));
    scene.commit_all("Plan");
    scene.scripted_agent(&AgentScript::always([call().write("a.txt", "on").complete()]));
    let running = start(&scene, &[]);
    // It is asked, accepted, and never answered.
    let _asked = listener.accept().unwrap();
    let stopped = std::time::Instant::now();
    scene.run(&["stop", "--now"]).exits(0);
    running.wait().exits(4);
    assert!(stopped.elapsed() < std::time::Duration::from_secs(50), "{:?}", stopped.elapsed());
    nothing_landed(&scene);
}
