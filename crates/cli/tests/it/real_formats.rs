//! The real programs behind the formats, pinned: what they write is read, and what is written they read.

use std::process::Command;

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};
use serde_json::Value;

use crate::world::{installed, scene, test_tools};

/// Puts a program of the tools on the scene's path.
fn install(scene: &Scene, name: &str) {
    let program = installed(name);
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

#[test]
fn a_backlog_that_was_converted_is_one_to_backlog_md() {
    let scene = scene();
    install(&scene, "backlog");
    scene.write(
        "prd.json",
        r##"{"project": "Observatory: \"sky\"", "userStories": [
            {"id": "US-2", "title": "Mount: \"steel\"", "priority": 2, "dependsOn": ["US-1"], "passes": false, "labels": ["x: y"],
             "description": "# Why\nIt stands.", "acceptanceCriteria": ["Level", "Turns"]},
            {"id": "US-1", "title": "Lens", "priority": 1, "acceptanceCriteria": ["Shines"], "passes": true}]}"##,
    );
    scene.run(&["convert", "prd.json", "--to", "backlog", "-o", "backlog"]).exits(0);
    scene.commit_all("Plan");
    let listed = says(&scene, "backlog", &["task", "list", "--plain"]);
    let (open, done) = listed.split_once("Done:").unwrap_or_else(|| panic!("{listed}"));
    assert!(open.contains("Mount: \"steel\"") && done.contains("Lens"), "{listed}");
    let task = says(&scene, "backlog", &["task", "view", "US-2", "--plain"]);
    for wanted in ["[ ] #1 Level", "[ ] #2 Turns", "It stands.", "US-1", "x: y"] {
        assert!(task.contains(wanted), "{wanted} is not in {task}");
    }
    let before = scene.run(&["show", "backlog", "--json"]).exits(0).json();
    says(&scene, "backlog", &["task", "edit", "US-2", "--check-ac", "2"]);
    let after = scene.run(&["show", "backlog", "--json"]).exits(0).json();
    let tasks = |shown: &Value| shown["stories"][0]["tasks"].clone();
    assert_eq!((&tasks(&before)[1]["done"], &tasks(&after)[1]["done"]), (&false.into(), &true.into()));
    assert_eq!(before["stories"][0]["description"], after["stories"][0]["description"]);
}

#[test]
fn a_change_that_was_converted_is_counted_by_the_openspec_program_as_it_is_shown_here() {
    let scene = scene();
    install(&scene, "openspec");
    says(&scene, "openspec", &["init", "--tools", "none"]);
    scene.write("PRD.md", "# Lamp\n\n## 1. Bulb\n- [x] Glass\n- [ ] Wire\n\n## 2. Shade\n- [ ] Paper\n  - [x] White\n");
    let tasks = "openspec/changes/lamp/tasks.md";
    scene.write("openspec/changes/lamp/proposal.md", "## Why\n\nIt is dark.\n\n## What Changes\n\n- A lamp\n");
    scene.run(&["convert", "PRD.md", "--to", "openspec", "-o", tasks]).exits(0);
    let progress = |scene: &Scene| {
        let told = says(scene, "openspec", &["instructions", "apply", "--change", "lamp", "--json"]);
        let told: Value = serde_json::from_str(&told).unwrap();
        (told["progress"]["complete"].clone(), told["progress"]["total"].clone())
    };
    assert_eq!(progress(&scene), (2.into(), 4.into()));
    scene.run(&["mark", "openspec:lamp", "1"]).exits(0);
    assert_eq!(progress(&scene), (3.into(), 4.into()));
    scene.run(&["check", "openspec:lamp"]).exits(2).says("openspec");
}

#[test]
fn a_feature_that_the_program_of_spec_kit_began_is_read_worked_through_and_still_its_own() {
    let scene = scene();
    let specify = test_tools().join("specify/bin/specify");
    let specify = specify.to_str().unwrap();
    says(
        &scene,
        specify,
        &[
            "init",
            "--here",
            "--force",
            "--non-interactive",
            "--integration",
            "claude",
            "--script",
            "sh",
            "--ignore-agent-tools",
        ],
    );
    let script = |name: &str| format!(".specify/scripts/bash/{name}.sh");
    says(&scene, "bash", &[&script("create-new-feature"), "--json", "Light the lamps"]);
    says(&scene, "bash", &[&script("setup-plan"), "--json"]);
    let folder = std::fs::read_dir(scene.path("specs")).unwrap().next().unwrap().unwrap().file_name();
    let folder = format!("specs/{}", folder.to_str().unwrap());
    let template = scene.read(".specify/templates/tasks-template.md");
    scene.write(&format!("{folder}/tasks.md"), &template);
    scene.commit_all("Plan");

    let shown = scene.run(&["show", &folder, "--json"]).exits(0).json();
    let boxes = template.lines().filter(|line| line.starts_with("- [ ] ")).count();
    let stories = shown["stories"].as_array().unwrap();
    let read: usize = stories.iter().map(|story| story["tasks"].as_array().unwrap().len()).sum();
    assert_eq!((shown["format"].as_str(), read), (Some("speckit"), boxes), "{shown:#}");
    assert_eq!(stories[0]["tasks"][2]["tags"][0], "P");

    let each = (1..=stories.len()).map(|n| call().write(&format!("{n}.txt"), "on").complete());
    scene.scripted_agent(&AgentScript::always(each));
    scene.run(&["run", &folder, "--headless"]).exits(0);
    assert_eq!(scene.read(&format!("{folder}/tasks.md")), template.replace("- [ ] ", "- [X] "));
    let told = says(&scene, "bash", &[&script("check-prerequisites"), "--json", "--require-tasks", "--include-tasks"]);
    assert!(told.contains("tasks.md"), "{told}");
}
