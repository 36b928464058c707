//! Repositories, agents and runs to measure.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use ralphloop_core::event::{Event, Fact};
use ralphloop_engine::journal;
use ralphloop_testkit::scene::Scene;
use serde_json::json;

use crate::roles;

pub(crate) fn binary() -> PathBuf {
    env!("CARGO_BIN_EXE_ralphloop").into()
}

/// A repository of so many files, with a `prd.json` of so many stories, and this program as the agent.
pub(crate) fn scene(files: usize, stories: usize) -> Scene {
    let mut scene = Scene::new(binary());
    for file in 0..files {
        scene.write(&format!("d{}/f{}", file / 20, file % 20), format!("file {file}\n"));
    }
    let stories: Vec<_> = (1..=stories)
        .map(|n| json!({"id": format!("S{n}"), "title": format!("Story {n}"), "priority": 1, "passes": false}))
        .collect();
    scene
        .write("prd.json", serde_json::to_string_pretty(&json!({"project": "Speed", "userStories": stories})).unwrap());
    scene.commit_all("All");
    symlink(std::env::current_exe().unwrap(), scene.outside("bin/agent")).unwrap();
    scene.set_env(roles::AGENT_NOTES, notes(&scene, "agent"));
    scene
}

pub(crate) fn notes(scene: &Scene, of: &str) -> PathBuf {
    scene.outside(&format!("{of}-notes"))
}

/// The numbers that a role has noted so far.
pub(crate) fn noted(scene: &Scene, of: &str) -> Vec<Vec<f64>> {
    let text = fs::read_to_string(notes(scene, of)).unwrap_or_default();
    text.lines().map(|line| line.split(' ').map(|number| number.parse().unwrap()).collect()).collect()
}

/// One gate, which is as cheap as can be.
pub(crate) const TRIVIAL_GATE: &[&str] = &["--gate", "true"];
pub(crate) const NO_GATES: &[&str] = &["--no-gates"];

/// `ralphloop run` of all stories, with an agent that does `work`.
pub(crate) fn command(scene: &Scene, work: &str, format: &str, gates: &[&str]) -> Command {
    let mut command = scene.command(binary());
    let agent = scene.outside("bin/agent");
    command.args(["run", "prd.json", "--headless", "--max-retries", "0"]).args(gates);
    command.args(["--agent-format", format, "--agent-command", &format!("{} {work}", agent.display())]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// The events of the newest run.
pub(crate) fn events(scene: &Scene) -> Vec<Event> {
    let mut journals = scene.journals();
    journals.sort();
    journal::read(journals.last().expect("a run was made")).unwrap().events
}

/// Milliseconds between two events.
pub(crate) fn between(events: &[Event], first: fn(&Fact) -> bool, last: fn(&Fact) -> bool) -> f64 {
    let at = |event: Option<&Event>| event.expect("the run got so far").at.0;
    (at(events.iter().rev().find(|e| last(&e.fact))) - at(events.iter().find(|e| first(&e.fact)))) as f64
}

/// Waits for the end; the most memory it ever had, in mebibytes.
pub(crate) fn peak_memory(child: &mut Child) -> f64 {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0.0_f64;
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
        peak = peak.max(kib.unwrap_or(0.0) / 1024.0);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    peak
}
