//! An `OpenSpec` change as large as real ones: eight stories, forty tasks, every kind of delta, nested capabilities.

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{called, landed_once, scene, states};

const FILES: &[(&str, &str)] = &[
    ("proposal.md", include_str!("fixtures/add-passkeys/proposal.md")),
    ("design.md", include_str!("fixtures/add-passkeys/design.md")),
    ("tasks.md", TASKS),
    ("specs/identity/passkeys/spec.md", include_str!("fixtures/add-passkeys/specs/identity/passkeys/spec.md")),
    ("specs/identity/sessions/spec.md", include_str!("fixtures/add-passkeys/specs/identity/sessions/spec.md")),
    ("specs/notifications/email/spec.md", include_str!("fixtures/add-passkeys/specs/notifications/email/spec.md")),
    ("specs/audit/spec.md", include_str!("fixtures/add-passkeys/specs/audit/spec.md")),
];
const TASKS: &str = include_str!("fixtures/add-passkeys/tasks.md");
const TITLES: [&str; 8] = [
    "Credential store",
    "Challenges",
    "Registration",
    "Sign-in",
    "Sessions",
    "Mail",
    "Removal of security questions",
    "Documents",
];
const TASKS_PATH: &str = "openspec/changes/add-passkeys/tasks.md";

fn change() -> Scene {
    let scene = scene();
    scene.write("openspec/config.yaml", "schema: spec-driven\ncontext: |\n  The service is written in Rust.\n");
    for (path, text) in FILES {
        scene.write(&format!("openspec/changes/add-passkeys/{path}"), text);
    }
    scene.commit_all("Propose passkeys");
    scene
}

/// The agent finds its story by the first task of it, which no other prompt shows.
fn agent(ticks: bool) -> AgentScript {
    let first_tasks = TASKS.lines().filter(|l| l.contains(".1 ")).map(|l| l.trim_start_matches("- [ ] "));
    first_tasks.enumerate().fold(AgentScript::new(), |script, (index, task)| {
        let number = index + 1;
        let mut steps = call().write(&format!("src/story_{number}.rs"), "// done\n");
        if ticks {
            for k in 1..=5 {
                steps = steps.tick(TASKS_PATH, &format!("{number}.{k} "));
            }
        }
        script.story(&task[4..], [steps.complete()])
    })
}

fn all_landed(scene: &Scene) {
    called(scene, 8);
    let commits = scene.landed();
    assert_eq!(commits.len(), 8);
    for (index, commit) in commits.iter().enumerate() {
        let number = index + 1;
        assert_eq!(commit.subject, format!("feat({number}): {}", TITLES[index]));
        assert_eq!(commit.trailer("Story"), Some(number.to_string().as_str()));
        for name in ["Run", "Story", "Attempt", "Agent"] {
            assert!(commit.trailer(name).is_some_and(|v| !v.is_empty()), "trailer {name} in {commit:#?}");
        }
        let mut files = commit.files.clone();
        files.sort();
        assert_eq!(files, [TASKS_PATH.to_owned(), format!("src/story_{number}.rs")]);
        let tasks = scene.file_in(&commit.hash, TASKS_PATH);
        assert_eq!(tasks.matches("- [x]").count(), 5 * number, "boxes are ticked in the story's own commit");
        assert_eq!(tasks.replace("[x]", "[ ]") + "\n", TASKS, "and nothing else is changed");
    }
    scene.tree_is_clean();
    scene.nothing_runs();
}

#[test]
fn all_eight_stories_land_each_as_one_commit_with_its_boxes_ticked() {
    let scene = change();
    scene.scripted_agent(&agent(false));
    scene.run(&["run", "openspec:add-passkeys", "--headless", "--gate", "test -d src"]).exits(0);
    all_landed(&scene);
    let status = scene.status();
    assert_eq!((&status["state"], &status["passed"], &status["total"]), (&"complete".into(), &8.into(), &8.into()));
}

#[test]
fn it_makes_no_difference_if_the_agent_ticks_its_boxes_itself() {
    let scene = change();
    scene.scripted_agent(&agent(true));
    scene.run(&["run", "--headless", "--gate", "test -d src"]).exits(0);
    all_landed(&scene);
}

#[test]
fn boxes_of_other_stories_that_an_agent_ticks_do_not_count_and_are_put_back() {
    let scene = change();
    let greedy = (1..=8)
        .fold(call().write("src/story_1.rs", "// done\n"), |c, n| c.tick(TASKS_PATH, &format!("{n}.1 ")))
        .complete();
    scene.scripted_agent(&AgentScript::always([greedy]));
    scene.run(&["run", "openspec:add-passkeys", "--headless", "--max-iterations", "1"]).exits(5);
    landed_once(&scene, "1", "src/story_1.rs");
    assert_eq!(scene.read(TASKS_PATH).matches("- [x]").count(), 5);
    states(&scene, &[("1", "passed"), ("2", "pending"), ("8", "pending")]);
}

#[test]
fn the_prompt_carries_tasks_proposal_design_and_all_kinds_of_deltas_of_nested_capabilities() {
    let scene = change();
    let prompt = scene.run(&["show", "openspec:add-passkeys", "--prompt", "4"]).exits(0).stdout;
    for wanted in [
        "4.2 Verify the assertion",
        "Passwords are the most frequent reason",
        "Challenges are random, 32 bytes",
        "identity/passkeys",
        "Passkey registration",
        "Eleventh passkey",
        "Session lifetime",
        "Sign out",
        "Log out",
        "Security question answers",
        "notifications/email",
        "The service is written in Rust.",
    ] {
        assert!(prompt.contains(wanted), "{wanted:?} in\n{prompt}");
    }
    assert!(!prompt.contains("6.3 Queue it"), "tasks of other stories are not this story's\n{prompt}");
}

#[test]
fn b24_a_given_that_is_followed_by_and_keeps_it() {
    let scene = change();
    let prompt = scene.run(&["show", "openspec:add-passkeys", "--prompt", "1"]).exits(0).stdout;
    let order: Vec<usize> = ["has no passkey", "registers one", "is listed under"]
        .iter()
        .map(|t| prompt.find(t).unwrap_or_else(|| panic!("{t}\n{prompt}")))
        .collect();
    assert!(order.is_sorted(), "{prompt}");
}

#[test]
fn tasks_that_a_person_adds_during_the_run_are_read_between_stories() {
    let scene = change();
    let (begun, go_on) = (scene.outside("begun"), scene.outside("go-on"));
    scene.scripted_agent(&AgentScript::always([call()
        .write("src/a.rs", "x")
        .touch(&begun)
        .wait_for(&go_on)
        .complete()]));
    let running = scene.start(&["run", "openspec:add-passkeys", "--headless", "--max-iterations", "1"]);
    scene.wait_for_file(&begun);
    std::fs::write(&go_on, "").unwrap();
    running.wait().exits(5);
    let edited =
        scene.read(TASKS_PATH).replace("## 8. Documents", "## 9. Afterwards\n- [ ] 9.1 Celebrate\n\n## 8. Documents");
    scene.write(TASKS_PATH, edited);
    scene.commit_all("One more");
    let shown = scene.run(&["show", "openspec:add-passkeys", "--json"]).exits(0).json();
    let ids: Vec<&str> = shown["stories"].as_array().unwrap().iter().filter_map(|s| s["id"].as_str()).collect();
    assert_eq!(ids, ["1", "2", "3", "4", "5", "6", "7", "9", "8"]);
}

#[test]
fn r16_a_heading_without_a_number_keeps_its_tasks_and_other_markers_count() {
    let scene = scene();
    let tasks = "## Bulb\n\n- [ ] Buy it\n* [ ] Screw it in\n\n## Switch\n\n1. [ ] Wire it\n   - [ ] Fuse first\n";
    scene.write("openspec/changes/lamp/tasks.md", tasks);
    scene.write("openspec/changes/lamp/proposal.md", "# Lamp\n");
    scene.commit_all("Plan");
    scene.scripted_agent(&AgentScript::always([
        call().write("a.txt", "1").complete(),
        call().write("b.txt", "2").complete(),
    ]));
    scene.run(&["run", "openspec:lamp", "--headless"]).exits(0);
    assert_eq!(scene.read("openspec/changes/lamp/tasks.md"), tasks.replace("[ ]", "[x]"));
    assert_eq!(scene.landed().len(), 2);
}
