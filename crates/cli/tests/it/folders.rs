//! Work that is a folder with a file a story, or several files: each story is marked in its own.

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, Call, call};

use crate::world::{landed_once, scene, states};

const LENS: &str = "backlog/tasks/task-1 - Clean-the-lens.md";
const MOUNT: &str = "backlog/tasks/task-2 - Mount.md";

fn task(id: &str, title: &str, more: &str) -> String {
    format!(
        "---\nid: {id}\ntitle: {title}\nstatus: To Do\nassignee: @sky\n{more}---\n\n## Acceptance Criteria\n<!-- AC:BEGIN -->\n\
         - [ ] #1 It holds\n<!-- AC:END -->\n"
    )
}

fn lens() -> String {
    task("task-1", "Clean the lens", "dependencies: [TASK-2, task-0]\n")
}

fn mount() -> String {
    task("task-2", "Mount", "priority: low\n")
}

fn done(text: &str) -> String {
    text.replace("To Do", "Done").replace("[ ]", "[x]")
}

/// A backlog of two tasks, the first of which waits for the second.
fn backlog(script: &AgentScript) -> Scene {
    let scene = scene();
    scene.write("backlog/config.yml", "project_name: \"Observatory\"\n");
    scene.write("backlog/completed/task-0 - Roof.md", "---\nid: task-0\ntitle: Roof\nstatus: Done\n---\n");
    scene.write("backlog/tasks/readme.md", "Notes on telescopes.\n");
    scene.write(LENS, lens());
    scene.write(MOUNT, mount());
    scene.commit_all("Plan");
    scene.scripted_agent(script);
    scene
}

fn each(lens: Call, mount: Call) -> AgentScript {
    AgentScript::new().story("# Story task-1", [lens]).story("# Story task-2", [mount])
}

fn works(file: &str) -> Call {
    call().write(file, "on").complete()
}

#[test]
fn a_backlog_is_worked_through_and_each_landing_marks_its_own_file() {
    let scene = backlog(&each(works("lens.txt"), works("mount.txt")));
    scene.run(&["list"]).exits(0).says("backlog:backlog").says("Observatory").says("0/2");
    scene.run(&["show", "backlog"]).exits(0).says("after task-2, task-0").says(MOUNT);
    scene.run(&["run", "--headless"]).exits(0);
    assert_eq!((scene.read(LENS), scene.read(MOUNT)), (done(&lens()), done(&mount())));
    landed_once(&scene, "task-2", "mount.txt");
    landed_once(&scene, "task-1", "lens.txt");
    let landed = scene.landed();
    assert!(landed[0].files.contains(&MOUNT.to_owned()) && !landed[0].files.contains(&LENS.to_owned()), "{landed:?}");
    scene.tree_is_clean();
    scene.run(&["run", "backlog", "--headless"]).exits(0).says("nothing to do");
}

#[test]
fn the_prompt_names_the_file_of_the_story() {
    let scene = backlog(&AgentScript::new());
    scene.run(&["show", "backlog", "--prompt", "task-2"]).exits(0).says(&format!("`{MOUNT}`"));
}

#[test]
fn marks_by_hand_go_to_the_file_that_holds_them() {
    let scene = backlog(&AgentScript::new());
    scene.run(&["mark", "backlog", "task-2#1"]).exits(0).says(MOUNT);
    assert_eq!((scene.read(LENS), scene.read(MOUNT)), (lens(), mount().replace("[ ]", "[x]")));
    scene.run(&["mark", &format!("backlog:{LENS}"), "task-1"]).exits(0);
    assert_eq!(scene.read(LENS), lens().replace("To Do", "Done"));
    scene.run(&["mark", "backlog", "task-9"]).exits(2).says("task-1, task-2");
}

#[test]
fn what_an_agent_breaks_in_the_files_of_other_tasks_is_put_right() {
    let breaks = call()
        .write("mount.txt", "on")
        .write(LENS, &done(&lens()).replace("It holds", "It holds well"))
        .write(MOUNT, "no front matter any more")
        .write("backlog/tasks/task-3 - New.md", &task("task-3", "New", "status_of: nothing\n"))
        .complete();
    let scene = backlog(&each(call().failed("too dusty"), breaks));
    scene.run(&["run", "backlog", "--headless", "--story", "task-2"]).exits(0).says("has been put back");
    assert_eq!(scene.read(LENS), lens().replace("It holds", "It holds well"), "its words stay, its marks do not");
    assert_eq!(scene.read(MOUNT), done(&mount()));
    scene.run(&["list"]).says("1/3");
    scene.tree_is_clean();
}

#[test]
fn a_task_that_an_agent_renames_or_puts_aside_is_still_marked_once() {
    let renamed = "backlog/tasks/task-2 - Mount-it.md";
    let moves = call().write("mount.txt", "on").remove(MOUNT).write(renamed, &mount()).complete();
    let scene = backlog(&each(works("lens.txt"), moves));
    scene.run(&["run", "backlog", "--headless"]).exits(0);
    assert!(!scene.path(MOUNT).exists());
    assert_eq!(scene.read(renamed), done(&mount()));

    let scene = backlog(&each(works("lens.txt"), call().write("mount.txt", "on").remove(MOUNT).complete()));
    scene.run(&["run", "backlog", "--headless"]).exits(0).says("deleted and has been put back");
    assert_eq!(scene.read(MOUNT), done(&mount()));
    scene.tree_is_clean();
}

#[test]
fn a_failed_attempt_leaves_every_file_of_the_backlog_as_it_was() {
    let spoils = call().write(LENS, "spoilt").remove(MOUNT).write("x.txt", "x").failed("no");
    let scene = backlog(&AgentScript::always([spoils]));
    scene.run(&["run", "backlog", "--headless", "--max-retries", "0"]).exits(1);
    assert_eq!((scene.read(LENS), scene.read(MOUNT)), (lens(), mount()));
    scene.tree_is_clean();
}

#[test]
fn a_backlog_is_gone_on_with_after_a_crash() {
    let scene = backlog(&AgentScript::new());
    let begun = scene.outside("begun");
    scene.scripted_agent(&each(call().write(LENS, "half").remove(MOUNT).touch(&begun).hang(), works("mount.txt")));
    let running = scene.start(&["run", "backlog", "--headless"]);
    scene.wait_for_file(&begun);
    running.crash();
    scene.scripted_agent(&each(works("lens.txt"), works("mount.txt")));
    scene.run(&["resume", "--headless"]).exits(0);
    assert_eq!((scene.read(LENS), scene.read(MOUNT)), (done(&lens()), done(&mount())));
    states(&scene, &[("task-1", "passed"), ("task-2", "passed")]);
    scene.tree_is_clean();
}

#[test]
fn two_tasks_at_once_are_marked_each_in_its_file_and_new_tasks_land_too() {
    let third = "backlog/tasks/task-3 - New.md";
    let scene = scene();
    scene.write(LENS, task("task-1", "Clean the lens", ""));
    scene.write(MOUNT, mount());
    scene.commit_all("Plan");
    let adds = call().write("lens.txt", "on").write(third, &task("task-3", "New", "")).complete();
    scene.scripted_agent(&each(adds, works("mount.txt")).story("# Story task-3", [works("new.txt")]));
    scene.run(&["run", "backlog", "--headless", "--jobs", "2"]).exits(0);
    assert_eq!(scene.read(LENS), done(&task("task-1", "Clean the lens", "")));
    assert_eq!((scene.read(MOUNT), scene.read(third)), (done(&mount()), done(&task("task-3", "New", ""))));
    assert_eq!(scene.landed().len(), 3);
    scene.tree_is_clean();
}

#[test]
fn a_task_that_cannot_be_read_stops_the_run_with_its_file_and_line() {
    let scene = backlog(&AgentScript::new());
    scene.write("backlog/tasks/task-4 - Bad.md", "---\nid: task-4\ntitle: Fix: it\n---\n");
    scene.run(&["run", "backlog", "--headless"]).exits(2).says("task-4 - Bad.md:3");
    scene.run(&["check", "backlog"]).exits(2).says("task-4 - Bad.md:3");
}

const CLOCK: &str = "docs/implementation/1-sync/1.1-clock.md";
const TRAYS: &str = "docs/implementation/2-cards/2.1-trays.md";
const CLOCK_TEXT: &str = "# 1.1 Clock\n\n## 1.1.1. Tick\n\n**Status**: ✅ Complete\n\n## 1.1.2. Tock\n\n**Status**: 🔵 Planned (soon)\n\
    **Verified**: false\n**Verification**:\n- Command: `test -f clock.txt`\n- Timeout: 20s\n";
const TRAYS_TEXT: &str = "# 2.1 Trays\n\n- **Requires**: 1.1\n\n### 2.1.1 Fill\n\n- Status: In Progress\n";

fn flight(script: &AgentScript) -> Scene {
    let scene = scene();
    scene.write("docs/implementation/overview.md", "# Overview\n\n1. **Sync**\n   - Status: 🔵 Planned\n");
    scene.write("docs/implementation/1-sync/index.md", "# 1. Sync\n\n## Groups\n");
    scene.write(CLOCK, CLOCK_TEXT);
    scene.write(TRAYS, TRAYS_TEXT);
    scene.commit_all("Plan");
    scene.scripted_agent(script);
    scene
}

fn clock_and_trays() -> AgentScript {
    AgentScript::new().story("# Story 1.1", [works("clock.txt")]).story("# Story 2.1", [works("trays.txt")])
}

#[test]
fn task_groups_are_completed_in_their_order_and_verified_ones_say_so() {
    let scene = flight(&clock_and_trays());
    scene.run(&["run", "flight", "--headless"]).exits(0);
    let clock = CLOCK_TEXT.replace("🔵 Planned", "✅ Complete");
    assert_eq!(scene.read(CLOCK), clock.replace("Verified**: false", "Verified**: true (`test -f clock.txt`)"));
    assert_eq!(scene.read(TRAYS), TRAYS_TEXT.replace("In Progress", "Complete"));
    assert_eq!(scene.landed_subjects(), ["feat(1.1): Clock", "feat(2.1): Trays"]);
    scene.tree_is_clean();
    scene.run(&["run", "flight", "--headless"]).exits(0).says("nothing to do");
}

#[test]
fn an_area_and_a_group_are_work_by_themselves() {
    let scene = flight(&clock_and_trays());
    scene.run(&["show", "flight:1"]).exits(0).says("1.1  Clock").never_says("Trays");
    scene.run(&["show", "flight:2-cards"]).exits(0).says("Trays").never_says("Clock");
    scene.run(&["run", "flight:2.1", "--headless"]).exits(0);
    assert_eq!(scene.landed_subjects(), ["feat(2.1): Trays"]);
    scene.run(&["show", "flight:9.9"]).exits(2).says("there is no work 'flight:9.9'");
}

const LOG: &str = "# Session Log: 2026-02-11\n\n## Next Steps\n\n1. Draw an axis [VERIFY: test -f axis.txt] [PRIORITY: 2]\n\
    2. **Export** as SVG\n3. Ask for a key [BLOCKED: no account]\n\n## Learnings\n\n- None\n";

#[test]
fn next_steps_of_the_newest_session_are_stories_and_none_is_done_twice() {
    let scene = scene();
    scene.write("docs/session_logs/20260210_2115_session.md", "# Session Log\n\n## Next Steps\n\n- Old\n");
    scene.write("docs/session_logs/20260211_0900_session.md", LOG);
    scene.commit_all("Plan");
    scene.scripted_agent(
        &AgentScript::new()
            .story("# Story draw-an-axis", [works("axis.txt"), works("axis-2.txt")])
            .story("# Story export-as-svg", [works("svg.txt")]),
    );
    scene.run(&["run", "flight:next-steps", "--headless"]).exits(0);
    assert_eq!(scene.landed_subjects(), ["feat(export-as-svg): **Export** as SVG", "feat(draw-an-axis): Draw an axis"]);
    assert_eq!(scene.calls().len(), 2);
    scene.run(&["run", "flight:next-steps", "--headless"]).says("landed already");
    assert_eq!(scene.calls().len(), 2);
    scene.run(&["run", "flight:next-steps", "--headless", "--story", "draw-an-axis"]).exits(0);
    assert_eq!(scene.calls().len(), 3);
    scene.run(&["mark", "flight:next-steps", "draw-an-axis"]).exits(2).says("session log");
    assert_eq!(scene.read("docs/session_logs/20260211_0900_session.md"), LOG);
}

#[test]
fn a_prd_is_marked_in_its_text_and_in_the_file_with_its_state() {
    let prd = "# PRD\n\n### US-1: Sort\n\n- [ ] by town\n\n### US-2: Print\n\n- [ ] prints\n";
    let status = "{\n  \"version\": 1,\n  \"stories\": [\n    {\"id\": \"US-1\", \"title\": \"Sort\", \"passes\": false, \
        \"verification\": {\"type\": \"command\", \"command\": \"test -f sort.txt\"}},\n    \
        {\"id\": \"US-2\", \"title\": \"Print\", \"passes\": true}\n  ]\n}\n";
    let scene = scene();
    scene.write("docs/prd.md", prd);
    scene.write("docs/prd-status.json", status);
    scene.commit_all("Plan");
    scene.scripted_agent(&AgentScript::always([works("sort.txt")]));
    scene.run(&["run", "flight:prd", "--headless"]).exits(0);
    assert_eq!(scene.calls().len(), 1);
    assert_eq!(scene.read("docs/prd.md"), prd.replace("[ ] by town", "[x] by town"));
    assert_eq!(scene.read("docs/prd-status.json"), status.replace("\"passes\": false", "\"passes\": true"));
    assert!(scene.landed()[0].files.contains(&"docs/prd-status.json".to_owned()));
}
