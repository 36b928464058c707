//! `--finish`: a work whose stories are all done is closed as its format has it, in one commit, once.

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};

use crate::world::scene;

fn worker() -> AgentScript {
    AgentScript::always([call().write("work.txt", "on").complete(), call().write("more.txt", "on").complete()])
}

/// The subjects of the commits that no story made, newest first.
fn closing_commits(scene: &Scene) -> Vec<String> {
    let log = scene.git(&["log", "--format=%s%x09%(trailers:key=Ralphloop-Finish,valueonly)"]);
    log.lines().filter_map(|line| line.strip_suffix("\tyes")).map(str::to_owned).collect()
}

const LANDED: &str = "backlog/tasks/task-1 - Lens.md";
const BEFORE: &str = "backlog/tasks/task-2 - Roof.md";

fn backlog() -> Scene {
    let scene = scene();
    scene.write(LANDED, "---\nid: task-1\ntitle: Lens\nstatus: To Do\n---\n");
    scene.write(BEFORE, "---\nid: task-2\ntitle: Roof\nstatus: Done\n---\n");
    scene.commit_all("Plan");
    scene.scripted_agent(&worker());
    scene
}

#[test]
fn landed_tasks_of_a_backlog_are_put_aside_and_others_stay() {
    let scene = backlog();
    scene.run(&["run", "backlog", "--headless", "--finish"]).exits(0).says("task-1").never_says("--finish");
    assert_eq!(scene.read("backlog/completed/task-1 - Lens.md"), "---\nid: task-1\ntitle: Lens\nstatus: Done\n---\n");
    assert!(!scene.path(LANDED).exists() && scene.path(BEFORE).exists());
    assert_eq!(closing_commits(&scene), ["chore: put aside to backlog/completed: task-1"]);
    scene.tree_is_clean();
    scene.run(&["run", "backlog", "--headless", "--finish"]).exits(0).says("nothing to do");
    assert_eq!(closing_commits(&scene).len(), 1);
}

#[test]
fn without_the_flag_one_line_offers_it_and_it_can_be_done_later() {
    let scene = backlog();
    scene.run(&["run", "backlog", "--headless"]).exits(0).says("`ralphloop run backlog:backlog --finish`");
    assert!(scene.path(LANDED).exists() && closing_commits(&scene).is_empty());
    scene.run(&["run", "backlog", "--headless", "--finish"]).exits(0);
    assert!(!scene.path(LANDED).exists());
    assert_eq!(scene.calls().len(), 1);
}

#[test]
fn the_setting_of_the_project_file_counts_too() {
    let scene = backlog();
    scene.write("ralphloop.toml", "finish = true\n");
    scene.commit_all("Settings");
    scene.run(&["run", "backlog", "--headless"]).exits(0);
    assert!(!scene.path(LANDED).exists());
}

#[test]
fn a_work_with_an_open_story_is_not_closed() {
    let scene = backlog();
    scene.write("backlog/tasks/task-3 - Mirror.md", "---\nid: task-3\ntitle: Mirror\nstatus: To Do\n---\n");
    scene.commit_all("More");
    scene
        .run(&["run", "backlog", "--headless", "--finish", "--story", "task-1"])
        .exits(0)
        .says("was not closed")
        .says("task-3");
    assert!(scene.path(LANDED).exists() && closing_commits(&scene).is_empty());
}

#[test]
fn a_hook_that_refuses_the_closing_commit_leaves_the_tree_as_it_was() {
    let scene = backlog();
    scene.run(&["run", "backlog", "--headless"]).exits(0);
    scene.write(".git/hooks/pre-commit", "#!/bin/sh\necho not today >&2\nexit 1\n");
    scene.git(&["config", "core.hooksPath", ".git/hooks"]);
    std::process::Command::new("chmod").arg("+x").arg(scene.path(".git/hooks/pre-commit")).status().unwrap();
    scene.run(&["run", "backlog", "--headless", "--finish"]).exits(6).says("not today").says("could not be closed");
    assert!(scene.path(LANDED).exists() && !scene.path("backlog/completed").exists());
    scene.tree_is_clean();
}

const CHANGE: &str = "openspec/changes/add-lamp";

fn change() -> Scene {
    let scene = scene();
    scene.write(&format!("{CHANGE}/proposal.md"), "# Lamp\n\n## Why\n\nDark.\n");
    scene.write(&format!("{CHANGE}/tasks.md"), "## 1. Lamp\n\n- [ ] 1.1 Bulb\n");
    scene.commit_all("Plan");
    scene.scripted_agent(&worker());
    scene
}

const ARCHIVES: &str = "#!/bin/sh\n[ \"$1 $3\" = 'archive --yes' ] || exit 0\nmkdir -p openspec/changes/archive\n\
    mv openspec/changes/$2 openspec/changes/archive/2026-01-01-$2\n";

fn is_archived(scene: &Scene) -> bool {
    scene.path("openspec/changes/archive/2026-01-01-add-lamp/tasks.md").exists() && !scene.path(CHANGE).exists()
}

#[test]
fn an_openspec_change_is_archived_by_its_own_program() {
    let scene = change();
    scene.program("openspec", ARCHIVES);
    scene.run(&["run", "add-lamp", "--headless", "--finish"]).exits(0);
    assert!(is_archived(&scene));
    assert_eq!(closing_commits(&scene), ["chore: the change add-lamp is archived"]);
    scene.tree_is_clean();
}

#[test]
fn a_change_that_is_not_archived_stays_and_the_reason_is_told() {
    let scene = change();
    scene.run(&["run", "add-lamp", "--headless", "--finish"]).exits(6).says("`openspec` is not installed");
    scene.program("openspec", "#!/bin/sh\necho half > openspec/half.md\necho 'delta is wrong' >&2\nexit 0\n");
    scene.run(&["run", "add-lamp", "--headless", "--finish"]).exits(6).says("delta is wrong");
    assert!(scene.path(CHANGE).exists() && !scene.path("openspec/half.md").exists());
    scene.tree_is_clean();
}

#[test]
fn killed_while_a_change_is_archived_it_is_archived_once_by_the_next_run() {
    let scene = change();
    scene.run(&["run", "add-lamp", "--headless"]).exits(0);
    let begun = scene.outside("begun");
    scene.program(
        "openspec",
        &format!(
            "#!/bin/sh\necho half > openspec/half.md\nrm {CHANGE}/proposal.md\n: > {}\nexec sleep 600\n",
            begun.display()
        ),
    );
    let running = scene.start(&["run", "add-lamp", "--headless", "--finish", "--command-timeout", "300"]);
    scene.wait_for_file(&begun);
    running.crash();
    scene.program("openspec", ARCHIVES);
    scene.run(&["run", "add-lamp", "--headless", "--finish"]).exits(0);
    assert!(is_archived(&scene) && !scene.path("openspec/half.md").exists());
    assert!(scene.path("openspec/changes/archive/2026-01-01-add-lamp/proposal.md").exists());
    assert_eq!(closing_commits(&scene).len(), 1);
    scene.tree_is_clean();
    scene.nothing_runs();
}

#[test]
fn a_finished_plan_is_moved_and_its_validation_commands_were_its_gates() {
    let plan = "# Plan: lamp\n\n## Validation Commands\n\n- `test -f work.txt`\n\n### Task 1: Lamp\n\n- [ ] Bulb\n";
    let scene = scene();
    scene.write("docs/plans/lamp.md", plan);
    scene.commit_all("Plan");
    scene.scripted_agent(&worker());
    scene.run(&["show", "docs/plans/lamp.md"]).exits(0).says("test -f work.txt");
    scene.run(&["run", "docs/plans/lamp.md", "--headless", "--finish"]).exits(0);
    assert_eq!(scene.read("docs/plans/completed/lamp.md"), plan.replace("[ ]", "[x]"));
    assert!(!scene.path("docs/plans/lamp.md").exists());
    scene.tree_is_clean();
}

#[test]
fn the_state_of_a_prd_takes_note_in_history_and_statistics() {
    let scene = scene();
    scene.write("docs/prd.md", "# PRD\n\n### US-1: Sort\n\n- [ ] by town\n");
    scene.write(
        "docs/prd-status.json",
        "{\n  \"lastUpdated\": \"then\",\n  \"stories\": [\n    {\"id\": \"US-1\", \"title\": \"Sort\", \"passes\": false, \"history\": []}\n  ],\n  \
         \"statistics\": {\"total\": 1, \"passed\": 0, \"failed\": 0, \"pending\": 1}\n}\n",
    );
    scene.commit_all("Plan");
    scene.scripted_agent(&worker());
    scene.run(&["run", "flight:prd", "--headless", "--finish"]).exits(0);
    let status: serde_json::Value = serde_json::from_str(&scene.read("docs/prd-status.json")).unwrap();
    assert_eq!(status["stories"][0]["history"][0]["result"], "pass", "{status:#}");
    assert_eq!((&status["statistics"]["passed"], &status["statistics"]["pending"]), (&1.into(), &0.into()));
    assert_ne!(status["lastUpdated"], "then");
    scene.tree_is_clean();
    let head = scene.head();
    scene.run(&["run", "flight:prd", "--headless", "--finish"]).exits(0);
    assert_eq!(scene.head(), head, "a second time there is nothing to add");
}
