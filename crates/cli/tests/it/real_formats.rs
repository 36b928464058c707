//! The real programs behind the formats, pinned: what they write is read, and what is written they read.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};

use crate::world::scene;

/// The folder with the installed programs; the first test to need it installs them.
fn tools() -> PathBuf {
    static TOOLS: OnceLock<PathBuf> = OnceLock::new();
    TOOLS
        .get_or_init(|| {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            let installed = Command::new(root.join(".ci/install-test-tools")).output().unwrap();
            assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
            root.join(".test-tools/node_modules/.bin").canonicalize().unwrap()
        })
        .clone()
}

/// Puts a program of the tools on the scene's path.
fn install(scene: &Scene, name: &str) {
    let program = tools().join(name).canonicalize().unwrap();
    let node = Command::new("sh").args(["-c", "command -v node"]).output().unwrap().stdout;
    let node = String::from_utf8(node).unwrap();
    scene.program(name, &format!("#!/bin/sh\nexec {} {} \"$@\"\n", node.trim(), program.display()));
}

#[track_caller]
fn says(scene: &Scene, program: &str, arguments: &[&str]) -> String {
    let output = scene.command(program).args(arguments).current_dir(scene.repo()).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {arguments:?}: {out}{err}");
    out.into_owned()
}

#[test]
fn a_backlog_that_backlog_md_made_is_worked_through_and_it_calls_the_tasks_done() {
    let scene = scene();
    install(&scene, "backlog");
    says(&scene, "backlog", &["init", "Observatory", "--defaults"]);
    says(&scene, "backlog", &["config", "set", "remoteOperations", "false"]);
    says(
        &scene,
        "backlog",
        &[
            "task",
            "create",
            "Lens: clean",
            "-d",
            "Dust it.",
            "--ac",
            "It shines",
            "--ac",
            "No scratch",
            "--priority",
            "high",
            "-a",
            "@sky",
            "-l",
            "optics",
        ],
    );
    says(&scene, "backlog", &["task", "create", "Mount", "--dep", "task-1"]);
    scene.commit_all("Plan");
    let before = scene.run(&["show", "backlog", "--json"]).exits(0).json();
    assert_eq!(before["stories"][0]["title"], "Lens: clean", "{before:#}");
    assert_eq!(before["stories"][0]["tasks"].as_array().map(Vec::len), Some(2));
    assert_eq!(before["stories"][0]["priority"], 1);
    assert_eq!(before["stories"][1]["deps"][0], before["stories"][0]["id"]);

    scene.scripted_agent(&AgentScript::always([
        call().write("lens.txt", "on").complete(),
        call().write("mount.txt", "on").complete(),
    ]));
    scene.run(&["run", "backlog", "--headless"]).exits(0);
    let listed = says(&scene, "backlog", &["task", "list", "--plain"]);
    let done = listed.split_once("Done:").map_or("", |(_, done)| done);
    assert!(done.contains("Lens: clean") && done.contains("Mount"), "{listed}");
    assert!(!listed.contains("To Do:"), "{listed}");
    let task = says(&scene, "backlog", &["task", "view", "task-1", "--plain"]);
    assert!(task.contains("[x] #1 It shines") && task.contains("[x] #2 No scratch"), "{task}");

    scene.run(&["run", "backlog", "--headless", "--finish"]).exits(0);
    let listed = says(&scene, "backlog", &["task", "list", "--plain"]);
    assert!(!listed.contains("Lens: clean"), "completed tasks are off the board: {listed}");
}

#[test]
fn a_task_that_backlog_md_marked_reads_as_it_says() {
    let scene = scene();
    install(&scene, "backlog");
    says(&scene, "backlog", &["init", "Observatory", "--defaults"]);
    says(&scene, "backlog", &["task", "create", "Lens", "--ac", "It shines", "--ac", "No scratch"]);
    says(&scene, "backlog", &["task", "edit", "task-1", "--check-ac", "1", "-s", "In Progress"]);
    let shown = scene.run(&["show", "backlog", "--json"]).exits(0).json();
    let story = &shown["stories"][0];
    assert_eq!(story["state"], "doing", "{shown:#}");
    assert_eq!((&story["tasks"][0]["done"], &story["tasks"][1]["done"]), (&true.into(), &false.into()));
    let id = story["id"].as_str().unwrap();
    scene.run(&["mark", "backlog", &format!("{id}#2")]).exits(0);
    scene.run(&["mark", "backlog", id]).exits(0);
    let task = says(&scene, "backlog", &["task", "view", "task-1", "--plain"]);
    assert!(task.contains("[x] #2 No scratch") && task.contains("Done"), "{task}");
}

#[test]
fn a_change_is_validated_worked_and_archived_by_the_openspec_program() {
    let scene = scene();
    install(&scene, "openspec");
    says(&scene, "openspec", &["init", "--tools", "none"]);
    scene.write("openspec/changes/add-lamp/proposal.md", "## Why\n\nIt is dark.\n\n## What Changes\n\n- A lamp\n");
    scene.write(
        "openspec/changes/add-lamp/specs/light/spec.md",
        "## ADDED Requirements\n\n### Requirement: Lamp\nThe room SHALL have a lamp.\n\n#### Scenario: Dark\n\
         - **WHEN** it is dark\n- **THEN** the lamp is on\n",
    );
    scene.write("openspec/changes/add-lamp/tasks.md", "## 1. Lamp\n\n- [ ] 1.1 Bulb\n- [ ] 1.2 Switch\n");
    scene.commit_all("Plan");
    says(&scene, "openspec", &["validate", "add-lamp", "--strict"]);
    scene.scripted_agent(&AgentScript::always([call().write("lamp.txt", "on").complete()]));
    scene.run(&["run", "add-lamp", "--headless"]).exits(0);
    let listed = says(&scene, "openspec", &["list"]);
    assert!(listed.contains("add-lamp") && listed.contains("Complete"), "{listed}");
    scene.run(&["run", "add-lamp", "--headless", "--finish"]).exits(0).says("archived");
    assert!(scene.read("openspec/specs/light/spec.md").contains("Requirement: Lamp"));
    scene.tree_is_clean();
    assert!(!says(&scene, "openspec", &["list"]).contains("add-lamp"));
}
