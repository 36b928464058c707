//! The process that starts all others is killed while a git that it holds is at work.

use std::fs;
use std::path::PathBuf;

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};
use rustix::process::{Pid, Signal, kill_process};

use crate::world::{prd_scene, start, states, two_stories};

/// Every call of git goes through; the first one after `armed` is there waits for ever, and says so by `held`.
fn git_that_waits_once(scene: &Scene) -> PathBuf {
    let paths = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&paths).map(|folder| folder.join("git")).find(|path| path.is_file()).unwrap();
    let (armed, held) = (scene.outside("armed"), scene.outside("held"));
    let script = format!(
        "#!/bin/sh\nif [ -e '{0}' ] && mkdir '{1}' 2>/dev/null; then sleep 600; fi\nexec '{2}' \"$@\"\n",
        armed.display(),
        held.display(),
        git.display()
    );
    scene.program("git", &script);
    held
}

/// The children of a process that were started to start others.
fn cradles_of(parent: u32) -> Vec<Pid> {
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let is_one = |pid: &i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        status.contains(&format!("\nPPid:\t{parent}\n")) && line.contains("__supervise")
    };
    all.filter(is_one).filter_map(Pid::from_raw).collect()
}

#[test]
fn what_starts_the_programs_is_killed_while_git_is_at_work_and_nothing_is_lost() {
    let scene = prd_scene(&two_stories(), &AgentScript::new());
    let armed = scene.outside("armed");
    scene.scripted_agent(
        &AgentScript::new()
            .story("Alpha lamp", [call().write("a.txt", "a\n").touch(&armed).complete()])
            .story("Beta lamp", [call().write("b.txt", "b\n").complete()]),
    );
    let held = git_that_waits_once(&scene);
    let running = start(&scene, &["--no-gates"]);
    scene.wait_for_file(&held);
    let cradles = cradles_of(running.id());
    assert_eq!(cradles.len(), 1, "{cradles:?}");
    kill_process(cradles[0], Signal::KILL).unwrap();
    running.wait().exits(0).says("was gone before the program was");
    scene.nothing_runs();
    states(&scene, &[("S1", "passed"), ("S2", "passed")]);
    assert_eq!(scene.landed().len(), 2);
    scene.tree_is_clean();
    // What the agent had made when nobody could look at it is not lost either.
    let kept = scene.kept_refs();
    assert!(kept.iter().any(|name| scene.git_succeeds(&["cat-file", "-e", &format!("{name}:a.txt")])), "{kept:?}");
}
