//! Clocks that are set and machines that sleep, under a whole run: nobody is shot for it, and a wait ends at its stated time.
//!
//! `libfaketime` sets the wall clock of a scene's programs and leaves the steady one alone. Set forward, that is also what a
//! program sees of a machine that slept: on Linux the steady clock stands still meanwhile (`clock_gettime(2)`).

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ralphloop_testkit::scene::{Running, Scene, eventually};
use ralphloop_testkit::script::{AgentScript, call};
use rustix::process::Signal;

use crate::world::{called, landed_once, prd_text, scene, start, states, story};

const HOUR: i64 = 3600;

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

/// A scene with one story whose programs see the clock that [`set`] sets; `None`, said so, where there is no `libfaketime`.
fn with_a_clock() -> Option<Scene> {
    const PLACES: &[&str] = &["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
    let library = PLACES.iter().map(|place| Path::new(place).join("faketime/libfaketime.so.1")).find(|it| it.exists());
    let Some(library) = library else {
        let said = b"left out: libfaketime is not installed (`apt-get install faketime`)\n";
        std::io::Write::write_all(&mut std::io::stderr(), said).unwrap();
        return None;
    };
    let mut scene = scene();
    set(&scene, 0);
    for (name, value) in [
        ("LD_PRELOAD", library.into_os_string()),
        ("FAKETIME_TIMESTAMP_FILE", scene.outside("clock").into_os_string()),
        ("FAKETIME_NO_CACHE", "1".into()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        ("NO_FAKE_STAT", "1".into()),
    ] {
        scene.set_env(name, value);
    }
    scene.write("prd.json", prd_text(&[story("S1", "Alpha lamp")]));
    scene.commit_all("Plan");
    Some(scene)
}

/// Sets the clock so many seconds off the true one.
fn set(scene: &Scene, seconds: i64) {
    // In one step: it is read while it is written.
    fs::write(scene.outside("clock.new"), format!("{seconds:+}\n")).unwrap();
    fs::rename(scene.outside("clock.new"), scene.outside("clock")).unwrap();
}

/// Sets the clock, and waits until the run has seen it.
fn set_and_seen(scene: &Scene, seconds: i64) {
    let told = || fs::read_to_string(&scene.journals()[0]).unwrap().matches("guidance_added").count();
    let before = told();
    set(scene, seconds);
    scene.run(&["guide", "the clock was set"]).exits(0);
    eventually("the run to note what it was told", || told() > before);
    let last = fs::read_to_string(&scene.journals()[0]).unwrap();
    let line = last.lines().rev().find(|line| line.contains("guidance_added")).unwrap();
    let at = serde_json::from_str::<serde_json::Value>(line).unwrap()["at"].as_i64().unwrap() / 1000;
    assert!((at - now() - seconds).abs() < 120, "the run's clock is not the one that was set: {line}");
}

/// A run whose agent has begun and works until it may end.
fn at_work(scene: &Scene, flags: &[&str]) -> Running {
    let works = call().write("a.txt", "on").say("working").touch(scene.outside("begun"));
    scene.scripted_agent(&AgentScript::always([works.wait_for(scene.outside("go-on")).complete()]));
    let running = start(scene, flags);
    scene.wait_for_file(&scene.outside("begun"));
    running
}

#[test]
fn a_clock_that_jumps_or_a_machine_that_sleeps_while_an_agent_works_ends_nothing() {
    let Some(scene) = with_a_clock() else { return };
    let running = at_work(&scene, &[]);
    // Far beyond every limit of an attempt, there and back.
    for hours in [8, -8, 0] {
        set_and_seen(&scene, hours * HOUR);
    }
    fs::write(scene.outside("go-on"), "").unwrap();
    running.wait().exits(0);
    called(&scene, 1);
    landed_once(&scene, "S1", "a.txt");
    scene.nothing_runs();
}

#[test]
fn everything_stopped_for_longer_than_an_agent_may_be_silent_ends_nothing() {
    let scene = scene();
    scene.write("prd.json", prd_text(&[story("S1", "Alpha lamp")]));
    scene.commit_all("Plan");
    let running = at_work(&scene, &["--idle-timeout", "4", "--agent-timeout", "6"]);
    let group = |signal: &str| {
        // The agent and its supervisor lead sessions of their own.
        let marked = ralphloop_testkit::scene::alive_with_mark(&scene.root());
        let numbers = marked.iter().map(ToString::to_string);
        assert!(Command::new("kill").arg(signal).args(numbers).status().unwrap().success());
    };
    group("-STOP");
    let began = Instant::now();
    // What is waited for is the time itself.
    std::thread::sleep(Duration::from_secs(7));
    group("-CONT");
    assert!(began.elapsed() > Duration::from_secs(6));
    running.signal(Signal::CONT);
    fs::write(scene.outside("go-on"), "").unwrap();
    running.wait().exits(0);
    called(&scene, 1);
    landed_once(&scene, "S1", "a.txt");
}

/// A run that waits for a provider until so many seconds from now; the next call would do the work.
fn waiting(seconds: i64) -> Option<(Scene, Running, String)> {
    let scene = with_a_clock()?;
    let until = u64::try_from(now() + seconds).unwrap();
    let limited = call().write("a.txt", "half").usage_limit(until);
    scene.scripted_agent(&AgentScript::always([limited, call().write("a.txt", "on").complete()]));
    let running = start(&scene, &[]);
    eventually("the wait", || scene.calls().len() == 1 && scene.status()["resume_at"].is_string());
    let until = scene.status()["resume_at"].as_str().unwrap().to_owned();
    Some((scene, running, until))
}

#[test]
fn a_wait_ends_when_a_machine_that_slept_is_awake_again() {
    let Some((scene, running, _)) = waiting(2 * HOUR) else { return };
    set_and_seen(&scene, 3 * HOUR);
    running.wait().exits(0);
    called(&scene, 2);
    landed_once(&scene, "S1", "a.txt");
}

#[test]
fn a_clock_that_is_set_back_during_a_wait_makes_it_no_longer_than_it_was_to_be() {
    let Some((scene, running, until)) = waiting(2 * HOUR) else { return };
    let mut until: jiff::Timestamp = until.parse().unwrap();
    for hours in [-1, -5] {
        set_and_seen(&scene, hours * HOUR);
        let status = scene.status();
        let now_until: jiff::Timestamp = status["resume_at"].as_str().unwrap().parse().unwrap();
        let left = now_until.as_second() - (now() + hours * HOUR);
        assert!(left <= 2 * HOUR + 120 && now_until < until, "{left} s are left: {status:#}");
        assert!(left > HOUR, "it is not over either: {status:#}");
        until = now_until;
        states(&scene, &[("S1", "pending")]);
        called(&scene, 1);
    }
    set_and_seen(&scene, 0);
    running.wait().exits(0);
    called(&scene, 2);
}
