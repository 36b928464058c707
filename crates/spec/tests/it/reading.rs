//! What a reading holds beyond the uniform shape, and how errors read.

use std::time::Duration;

use ralphloop_core::plan::{Check, Delta, Scheme, WorkState};
use ralphloop_spec::{Finding, error_json, to_json};

use crate::{error, openspec, prd, reading};

const SPEC: &str = "## ADDED Requirements\n### Requirement: Jar lids\nA jar SHALL have a lid.\n#### Scenario: Closed\n\
    - **GIVEN** a jar\n- **AND** a lid\n- **WHEN** it is turned\n- **THEN** it is shut\n";

fn shell(command: &str) -> Check {
    Check::Shell {
        name: None,
        command: command.into(),
        cwd: None,
        expect_output_contains: vec![],
        expect_files_glob: vec![],
        timeout: None,
    }
}

#[test]
fn r6_a_task_has_an_id_a_text_and_a_mark() {
    let reading = reading(&openspec("## 1. Jars\n- [x] 1.1 Wash\n- [ ] 1.2 Fill\n", &[]));
    let tasks = &reading.plan.stories[0].tasks;
    assert_eq!((tasks[0].id.as_str(), tasks[0].text.as_str(), tasks[0].state), ("1.1", "Wash", WorkState::Done));
    assert_eq!(tasks[1].state, WorkState::Todo);
}

#[test]
fn r7_a_story_without_tasks_is_never_complete() {
    let reading = reading(&openspec("## 1. Empty\n\n## 2. Jars\n- [x] 2.1 Wash\n", &[]));
    let ids: Vec<_> = reading.plan.stories.iter().map(|story| story.id.as_str()).collect();
    assert_eq!(ids, ["2"]);
    assert!(reading.all_done);
    assert_eq!(error(&openspec("## 1. Empty\n", &[])).class.as_str(), "no_tasks");
    assert_eq!(error(&prd(r#"{"userStories": []}"#)).class.as_str(), "no_tasks");
}

#[test]
fn r8_a_scenario_keeps_its_steps_apart() {
    let reading = reading(&openspec("- [ ] a", &[("specs/pantry/spec.md", SPEC)]));
    let requirement = &reading.plan.context.requirements[0];
    assert_eq!((requirement.id.as_str(), requirement.capability.as_str()), ("jar-lids", "pantry"));
    let scenario = &requirement.scenarios[0];
    assert_eq!(scenario.given, ["a jar", "a lid"]);
    assert_eq!((scenario.when[0].as_str(), scenario.then[0].as_str()), ("it is turned", "it is shut"));
}

#[test]
fn r9_the_context_holds_what_stands_beside_the_tasks() {
    let files = openspec(
        "# Tasks\n- [ ] a",
        &[
            ("proposal.md", "# Change: Jars for all\n## Why\nBecause.\n"),
            ("design.md", "Glass."),
            ("openspec/config.yaml", "context: We speak Rust.\n"),
            ("specs/pantry/spec.md", SPEC),
        ],
    );
    let reading = reading(&files);
    let context = &reading.plan.context;
    assert!(context.proposal.contains("Because.") && context.design == "Glass." && context.project == "We speak Rust.");
    assert_eq!(reading.plan.title.as_deref(), Some("Jars for all"));
    assert_eq!(reading.project.as_deref(), Some("Tasks"));
    assert_eq!(reading.plan.work.to_string(), "openspec:add-jars");
}

#[test]
fn r9_a_change_may_lack_design_and_specs() {
    let context = reading(&openspec("- [ ] a", &[])).plan.context;
    assert!(context.design.is_empty() && context.requirements.is_empty());
    assert!(!context.tool_prompt.contains("design.md"));
}

#[test]
fn r10_verification_lines_become_checks_of_their_story() {
    let tasks = "## 1. Jars\n\nStory verification: `cargo test jar`\n\n- [ ] 1.1 Wash. Verify: `make wash`\n  - Verify: look at it\n\n\
        ## 2. Lids\n- [ ] 2.1 Turn\n```\nVerify: `make never`\n```\n";
    let stories = reading(&openspec(tasks, &[])).plan.stories;
    assert_eq!(stories[0].checks, [shell("cargo test jar"), shell("make wash")]);
    assert!(stories[1].checks.is_empty());
}

#[test]
fn r11_every_format_answers_through_the_same_reading() {
    for files in [openspec("## 1. A\n- [ ] 1.1 b", &[]), prd(r#"{"tasks": [{"id": 1, "title": "A"}]}"#)] {
        let json = to_json(&reading(&files));
        assert_eq!((&json["next"], &json["stories"][0]["title"]), (&"1".into(), &"A".into()));
        assert!(!json["writable"].is_null() && json["error"].is_null());
    }
}

#[test]
fn r16_a_heading_without_a_number_keeps_its_tasks() {
    let stories = reading(&openspec("## Setup the shelf\n- [ ] Saw the boards\n", &[])).plan.stories;
    assert_eq!((stories[0].id.as_str(), stories[0].title.as_str()), ("s1", "Setup the shelf"));
    assert_eq!(stories[0].tasks[0].text, "Saw the boards");
}

#[test]
fn b23_no_box_is_lost_however_it_is_written() {
    let tasks = "## Notes\r\n- [~] a\r\n1. [ ] b\r\n+ [ ] c\r\n  - [ ] d\r\n- [2026-01-02] a date\r\n\t- [] e\r\n";
    let stories = reading(&openspec(tasks, &[])).plan.stories;
    let texts: Vec<_> = stories[0].tasks.iter().map(|task| task.text.as_str()).collect();
    assert_eq!(texts, ["a", "b", "c", "d", "e"]);
    assert!(stories[0].tasks.iter().all(|task| task.state != WorkState::Done));
}

#[test]
fn r17_b24_capabilities_in_nested_folders_are_found() {
    let files = openspec(
        "- [ ] a",
        &[("specs/identity/tokens/spec.md", SPEC), ("specs/x/spec.md", "## REMOVED Requirements\n- Y\n")],
    );
    let requirements = reading(&files).plan.context.requirements;
    assert_eq!(requirements[0].capability, "identity/tokens");
    assert_eq!((requirements[1].title.as_str(), &requirements[1].delta), ("Y", &Delta::Removed));
}

#[test]
fn r19_the_tool_prompt_says_where_things_are_and_who_commits() {
    let files = openspec("- [ ] a", &[("proposal.md", "Why"), ("design.md", "How"), ("specs/pantry/spec.md", SPEC)]);
    let prompt = reading(&files).plan.context.tool_prompt;
    for told in [
        "openspec/changes/add-jars/tasks.md",
        "openspec/changes/add-jars/proposal.md",
        "openspec/changes/add-jars/design.md",
        "openspec/changes/add-jars/specs/pantry/spec.md",
        "`- [x]`",
        "Do not commit",
        "#### Scenario:",
        "verification commands",
    ] {
        assert!(prompt.contains(told), "{told:?} is not in:\n{prompt}");
    }
    let prompt = reading(&prd(r#"[{"title": "a"}]"#)).plan.context.tool_prompt;
    assert!(prompt.contains("Do not edit that file") && prompt.contains("`passes`"));
}

#[test]
fn what_stands_below_a_heading_reaches_the_agent() {
    let tasks =
        "## 1. Pump\nMind the motor.\n- [ ] 1.1 Turn\n  - keep below 200 mA\n\n  A paragraph.\n- [ ] 1.2 Stop\n";
    let description = reading(&openspec(tasks, &[])).plan.stories[0].description.clone();
    assert_eq!(description, "Mind the motor.\n\nTo 1.1:\n- keep below 200 mA\n\nA paragraph.");
}

#[test]
fn open_boxes_in_another_tasks_file_are_warned_of() {
    let files = openspec("- [x] a", &[("web/tasks.md", "- [x] b\n- [ ] c\n"), ("api/tasks.md", "- [x] d\n")]);
    let warnings = reading(&files).warnings;
    let found: Vec<_> = warnings.iter().map(|w| (w.code.as_str(), w.file.as_str(), w.line)).collect();
    assert_eq!(found, [("other_tasks_file", "web/tasks.md", Some(2))]);
}

#[test]
fn a_companion_that_cannot_be_read_stops_nothing() {
    let mut files = openspec("- [ ] a", &[("design.md", ""), ("openspec/config.yaml", "a: [b\n")]);
    files.beside.push(ralphloop_spec::SpecText::new("proposal.md", *b"\xFF"));
    let warnings = reading(&files).warnings;
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(warnings.iter().all(|w| w.code == Finding::Code(ralphloop_spec::Code::UnreadableCompanion)));
}

#[test]
fn a_prd_fills_every_field_of_the_plan() {
    let json = r#"{
      "project": "kiln", "feature": "Curves", "branch_name": "feat/curves", "description": "Why",
      "technical_requirements": ["No unsafe"],
      "quality_checks": {"test": "cargo test", "lint": null},
      "verifyCommands": ["make lint", "cargo test"],
      "user_stories": [{
        "id": "US-1", "title": "Model", "description": "Hold it", "complexity": "high", "noCode": true,
        "acceptance_criteria": [{"text": "Noon", "testCommand": "npm test -- noon"}],
        "steps": ["Saw", "Glue"],
        "verification_steps": [
          {"type": "shell", "command": "cargo test curve", "cwd": "a", "expect_output_contains": ["ok"], "expect_files_glob": ["*.txt"]},
          {"type": "file_exists", "path": "a.txt"},
          {"type": "url", "url": "http://127.0.0.1/"},
          "make check", "`./run.sh`", "open the editor and look"
        ],
        "notes": "later", "labels": ["core"]
      }]
    }"#;
    let plan = reading(&prd(json)).plan;
    assert_eq!((plan.title.as_deref(), plan.branch.as_deref()), (Some("Curves"), Some("feat/curves")));
    assert_eq!(plan.context.constraints, ["No unsafe"]);
    assert_eq!(plan.context.proposal, "Why");
    let gates: Vec<_> = plan.gates.iter().map(|gate| (gate.name.as_str(), gate.command.as_str())).collect();
    assert_eq!(gates, [("test", "cargo test"), ("make lint", "make lint")]);

    let story = &plan.stories[0];
    assert_eq!((story.complexity, story.needs_no_change, story.notes.as_str()), (Some(4), true, "later"));
    assert_eq!(story.criteria, ["Noon", "Verify: open the editor and look"]);
    assert_eq!(story.description, "Hold it\n\nsteps:\n- Saw\n- Glue");
    assert_eq!(
        story.checks,
        [
            Check::Shell {
                name: None,
                command: "cargo test curve".into(),
                cwd: Some("a".into()),
                expect_output_contains: vec!["ok".into()],
                expect_files_glob: vec!["*.txt".into()],
                timeout: None,
            },
            Check::FileExists { name: None, path: "a.txt".into(), glob: false },
            Check::Url {
                name: None,
                url: "http://127.0.0.1/".into(),
                method: "GET".into(),
                expect_status: 200,
                expect_body_contains: vec![],
                timeout: Duration::from_secs(30),
            },
            shell("make check"),
            shell("./run.sh"),
            Check::Shell {
                name: Some("Noon".into()),
                command: "npm test -- noon".into(),
                cwd: None,
                expect_output_contains: vec![],
                expect_files_glob: vec![],
                timeout: None,
            },
        ]
    );
}

#[test]
fn dependencies_are_read_in_every_spelling() {
    for spelled in [
        r#""dependsOn": ["a", "b"]"#,
        r#""depends_on": "a, b""#,
        r#""dependencies": [{"id": "a"}, " b "]"#,
        r#""deps": ["a"], "blockedBy": ["b", "a"]"#,
    ] {
        let json = format!(
            r#"[{{"id": "a", "title": "x"}}, {{"id": "b", "title": "y"}}, {{"id": "c", "title": "z", {spelled}}}]"#
        );
        let plan = reading(&prd(&json)).plan;
        let deps: Vec<_> = plan.stories[2].deps.iter().map(ralphloop_core::ids::StoryId::as_str).collect();
        assert_eq!(deps, ["a", "b"], "{spelled}");
    }
    let whole =
        r#"[{"id": "a, b", "title": "x"}, {"title": "y", "dependsOn": "a, b"}, {"title": "z", "dependsOn": "none"}]"#;
    let plan = reading(&prd(whole)).plan;
    assert_eq!(plan.stories[1].deps.len(), 1);
    assert!(plan.stories[2].deps.is_empty());
}

#[test]
fn b5_every_unknown_dependency_is_named_at_once() {
    let json = "[{\"id\": \"US-001\", \"title\": \"x\", \"dependsOn\": [\"US-1\"]},\n{\"id\": \"b\", \"title\": \"y\", \"dependsOn\": [\"c\"]}]";
    let error = error(&prd(json));
    assert_eq!((error.class.as_str(), error.line), ("unknown_dependency", Some(1)));
    for told in ["\"US-001\"", "\"US-1\"", "did you mean \"US-001\"?", "(line 2)", "\"c\""] {
        assert!(error.to_string().contains(told), "{told} is not in {error}");
    }
}

#[test]
fn b5_a_cycle_is_spelled_out_and_only_open_stories_make_one() {
    let json = |passes: bool| {
        format!(
            r#"[{{"id": "A", "title": "a"}}, {{"id": "B", "title": "b", "dependsOn": ["A", "D"]}},
            {{"id": "C", "title": "c", "dependsOn": ["B"]}},
            {{"id": "D", "title": "d", "dependsOn": ["C"], "passes": {passes}}}, {{"id": "E", "title": "e", "dependsOn": ["E"]}}]"#
        )
    };
    let found = error(&prd(&json(false)));
    assert!(found.message.contains("B → D → C → B") && found.message.contains("E → E"), "{found}");
    let found = error(&prd(&json(true)));
    assert!(!found.message.contains('B'), "{found}");
}

#[test]
fn errors_say_what_where_and_what_to_do() {
    let found = error(&prd("{\n  \"userStories\": [\n    {\"title\": \"a\"},\n  ]\n}"));
    assert_eq!(found.to_string(), "prd.json:4:3: not valid JSON: a comma before the closing bracket; remove the comma");
    let json = error_json(&found);
    assert_eq!((&json["error"]["class"], &json["error"]["line"]), (&"json_syntax".into(), &4.into()));
}

#[test]
fn wrong_shapes_have_a_class_of_their_own() {
    for (json, class) in [
        ("", "empty_file"),
        ("null", "unrecognised_shape"),
        ("[\"a\"]", "unrecognised_shape"),
        ("{\"stories\": [\"a\", \"b\"]}", "unrecognised_shape"),
        ("{\"stories\": 3}", "wrong_type"),
        ("[{\"title\": \"a\"}, 3]", "wrong_type"),
        ("[{\"title\": 3}]", "wrong_type"),
        ("[{\"title\": \"a\", \"passes\": 1}]", "wrong_type"),
        ("[{\"title\": \"a\", \"id\": true}]", "wrong_type"),
        ("[{\"id\": \"a\"}]", "missing_field"),
        ("{\"phases\": []}", "no_tasks"),
        ("{\"phases\": [{\"id\": 1, \"stories\": []}]}", "no_tasks"),
        ("Write a prd please", "json_syntax"),
    ] {
        assert_eq!(error(&prd(json)).class.as_str(), class, "{json}");
    }
}

#[test]
fn an_id_made_from_the_position_gives_way_to_a_written_one() {
    let plan = reading(&prd(r#"[{"title": "x"}, {"id": "s1", "title": "y"}]"#)).plan;
    let ids: Vec<_> = plan.stories.iter().map(|story| story.id.as_str()).collect();
    assert_eq!(ids, ["s1~2", "s1"]);
}

#[test]
fn r12_the_scheme_picks_the_reader() {
    let text = "## 1. Lamp\n\n- [ ] 1.1 Light it\n";
    assert_eq!(reading(&openspec(text, &[])).plan.work.scheme, Scheme::OpenSpec);
    assert_eq!(error(&prd(text)).class.as_str(), "json_syntax");
}
