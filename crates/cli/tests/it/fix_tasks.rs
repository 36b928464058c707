//! A task of Flight Rules that fails for good gets a task that mends it, in a commit of the run's own (F20).

use std::fs;
use std::os::unix::fs::PermissionsExt;

use ralphloop_testkit::scene::{Outcome, Scene};
use ralphloop_testkit::script::{AgentScript, Call, call};

use crate::world::{called, landed_once, scene, states};

const LAMPS: &str = "docs/implementation/1-light/1.4-lamps.md";
const FLAGS: &[&str] = &["run", "flight", "--headless", "--no-gates", "--max-retries", "0", "--max-repairs", "0"];

/// Two task groups: the agent fails at the first so often that it has no attempt left, and then does it.
fn ready(lamps: impl IntoIterator<Item = Call>) -> Scene {
    let scene = scene();
    scene.write(
        LAMPS,
        "# 1.4. Lamps\n\n## 1.4.1. Alpha lamp\n\n**Status**: 🔵 Planned\n**Verified**: false\n**Verification**:\n\
         - command: `grep on a.txt || { echo no light; exit 3; }`\n\n---\n\n## 1.4.2. Shade\n\n**Status**: 🔵 Planned\n",
    );
    scene.write(
        "docs/implementation/1-light/1.5-beta.md",
        "# 1.5. Beta lamp\n\n## 1.5.1. Lamp\n\n**Status**: 🔵 Planned\n",
    );
    scene.commit_all("Plan");
    let script =
        AgentScript::new().story("Alpha lamp", lamps).story("Beta lamp", [call().write("b.txt", "on").complete()]);
    scene.scripted_agent(&script);
    scene
}

fn fails_then_succeeds() -> [Call; 2] {
    [call().write("a.txt", "off").complete(), call().write("a.txt", "on").complete()]
}

fn go(scene: &Scene, flags: &[&str]) -> Outcome {
    scene.run(&[FLAGS, flags].concat())
}

/// The fix task is there once, done, and has a commit of its own.
fn mended(scene: &Scene) {
    let group = scene.read(LAMPS);
    assert_eq!(group.matches("## 1.4.1a. Fix: Alpha lamp\n\n**Status**: ✅ Complete").count(), 1, "{group}");
    assert!(group.contains("exit code 3") && group.contains("no light"), "{group}");
    assert!(group.contains("**Verified**: true"), "{group}");
    let subjects = scene.git(&["log", "--format=%s"]);
    assert_eq!(subjects.matches("chore(1.4): add the fix task 1.4.1a").count(), 1, "{subjects}");
    landed_once(scene, "1.4", "a.txt");
    landed_once(scene, "1.5", "b.txt");
    states(scene, &[("1.4", "passed"), ("1.5", "passed")]);
    scene.tree_is_clean();
}

#[test]
fn f20_a_task_that_fails_for_good_gets_a_fix_task_in_a_commit_of_its_own_with_which_the_run_goes_on() {
    for place in [&["--in-place"][..], &["--worktree"], &["--jobs", "2"]] {
        let scene = ready(fails_then_succeeds());
        let outcome = go(&scene, &[place, &["--create-tasks"]].concat()).exits(0);
        outcome
            .says("The fix task 1.4.1a was added as ")
            .never_says("changed by a person")
            .says("3 commits of this run");
        mended(&scene);
        let calls = scene.calls_of("Alpha lamp");
        assert_eq!(calls.len(), 2, "{place:?}");
        let prompt = calls[1].prompt();
        assert!(prompt.contains("1.4.1a") && prompt.contains("no light"), "{prompt}");
        assert!(!calls[0].prompt().contains("1.4.1a"));
    }
}

#[test]
fn f20_without_the_flag_or_when_the_fix_fails_too_the_story_ends_as_on_exhausted_says() {
    let bad = || [call().write("a.txt", "off").complete()];
    let scene = ready(bad());
    go(&scene, &[]).exits(1);
    assert!(!scene.read(LAMPS).contains("1.4.1a"));
    called(&scene, 1);
    let scene = ready(bad());
    go(&scene, &["--create-tasks", "--on-exhausted", "skip"]).exits(1).says("no light");
    states(&scene, &[("1.4", "failed"), ("1.5", "passed")]);
    assert_eq!(scene.calls_of("Alpha lamp").len(), 2, "one fix task, and no fix of a fix");
    // The next run finds it open, and adds no other.
    go(&scene, &["--create-tasks", "--fresh"]).exits(1);
    assert_eq!(scene.read(LAMPS).matches("Fix: ").count(), 1, "{}", scene.read(LAMPS));
    scene.tree_is_clean();
}

#[test]
fn f20_a_hook_that_refuses_the_fix_task_leaves_the_failure_as_it_was() {
    let scene = ready(fails_then_succeeds());
    let hook = scene.path(".git/hooks/commit-msg");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\n! grep -q 'fix task' \"$1\" || { echo no chores; exit 1; }\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    go(&scene, &["--create-tasks"]).exits(1).says("no fix task was added").says("no chores");
    states(&scene, &[("1.4", "failed")]);
    assert!(!scene.read(LAMPS).contains("1.4.1a"));
    scene.tree_is_clean();
}

#[test]
fn f20_killed_while_the_fix_task_is_committed_the_run_adds_it_once() {
    for place in ["--in-place", "--worktree"] {
        for hook in ["pre-commit", "post-commit"] {
            let scene = ready(fails_then_succeeds());
            let path = scene.path(".git/hooks").join(hook);
            let (first, at_work) = (scene.outside("first"), scene.outside("at work"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = "#!/bin/sh\n[ -e FIRST ] && exit 0\ntouch FIRST 'AT_WORK'\nsleep 60\n";
            let text = text.replace("AT_WORK", &at_work.display().to_string());
            fs::write(&path, text.replace("FIRST", &format!("'{}'", first.display()))).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            let running = start_flight(&scene, place);
            scene.wait_for_file(&at_work);
            running.crash();
            scene.nothing_runs();
            go(&scene, &[place, "--create-tasks"]).exits(0);
            mended(&scene);
            assert_eq!(scene.calls_of("Alpha lamp").len(), 2, "{place} {hook}");
        }
    }
}

fn start_flight(scene: &Scene, place: &str) -> ralphloop_testkit::scene::Running {
    scene.start(&[FLAGS, &[place, "--create-tasks"]].concat())
}

#[test]
fn f29_create_tasks_is_refused_where_there_are_no_task_groups_and_says_what_to_do() {
    let scene = ready(fails_then_succeeds());
    scene.write("docs/prd.md", "# PRD\n\n### US-1: Lamp\n\n- [ ] it shines\n");
    scene.commit_all("PRD");
    let refused = scene.run(&["run", "flight:docs/prd.md", "--headless", "--create-tasks"]).exits(2);
    refused.says("has none").says("`ralphloop run flight --create-tasks`");
    called(&scene, 0);
    // As a setting it is for the works that can have them.
    scene.write("ralphloop.toml", "create_tasks = true\n");
    scene.run(&["run", "flight:docs/prd.md", "--dry-run"]).exits(0);
}

#[test]
fn f21_task_chooses_the_story_of_a_task_and_says_what_lands_with_it() {
    let scene = ready([call().write("a.txt", "on").complete()]);
    go(&scene, &["--task", "1.4.1"]).exits(0).says("1.4.1 lands with its story 1.4 as a whole, with 1.4.2 too");
    states(&scene, &[("1.4", "passed"), ("1.5", "pending")]);
    go(&scene, &["--task", "9.9.9"]).exits(2).says("no task 9.9.9").says("--story ID");
    called(&scene, 1);
}

#[test]
fn f21_f29_flags_of_the_loops_that_could_switch_nothing_on_say_so() {
    let scene = ready(fails_then_succeeds());
    for (flag, says) in [("--task-loop", "what every run does"), ("--session-per-task", "a fresh context")] {
        go(&scene, &[flag]).exits(2).says(says).says("leave it out");
    }
    called(&scene, 0);
}
