//! A plan in another format says the same, and what it cannot say is named.

use ralphloop_core::plan::{Scheme, WorkState};
use ralphloop_spec::{ConvertError, Converted, Reading, SpecFiles, SpecText, Written, convert, read};

use crate::fixtures::{FORMATS, corpus};
use crate::{prd, reading};

/// Formats that can be written.
const WRITABLE: &[Scheme] = &[
    Scheme::Prd,
    Scheme::OpenSpec,
    Scheme::Markdown,
    Scheme::FixPlan,
    Scheme::SpecKit,
    Scheme::Kiro,
    Scheme::Yaml,
    Scheme::Backlog,
    Scheme::Flight,
];

fn converted(reading: &Reading, to: Scheme) -> Converted {
    convert(reading, to).unwrap_or_else(|error| panic!("{error}"))
}

fn text(converted: &Converted) -> &str {
    let Written::File(text) = &converted.written else { panic!("{:?}", converted.written) };
    text
}

fn read_as(scheme: Scheme, text: &str) -> Reading {
    reading(&SpecFiles::single(scheme, SpecText::new("tasks.md", text)))
}

/// What was written, read again as the format that it is.
fn read_back(scheme: Scheme, converted: &Converted) -> Reading {
    match &converted.written {
        Written::File(text) => read_as(scheme, text),
        Written::Folder(files) => {
            let (stories, beside): (Vec<_>, Vec<_>) = files
                .iter()
                .cloned()
                .partition(|file| std::path::Path::new(&file.path).extension().is_some_and(|end| end == "md"));
            let (main, more) = stories.split_first().unwrap();
            let (main, more) = (main.clone(), more.to_vec());
            reading(&SpecFiles { scheme, main, more, beside, folder: Some("folder".into()) })
        }
    }
}

fn said(converted: &Converted) -> Vec<String> {
    converted.losses.iter().map(ToString::to_string).collect()
}

/// One with everything that a `prd.json` can say.
const RICH: &str = r#"{
  "project": "Lamps", "feature": "Desk lamp", "branchName": "ralph/lamp", "description": "Why:\n# not a heading\n- [ ] no box",
  "technical_requirements": ["No solder"], "quality_checks": {"test": "make test"},
  "userStories": [
    {"id": "US-002", "title": "Switch", "priority": 2, "dependsOn": ["US-001"], "passes": false, "labels": ["ui"],
     "acceptanceCriteria": ["It clicks", "It holds"], "complexity": 4, "notes": "Mind the spring.",
     "verification_steps": [{"type": "shell", "command": "cargo test switch"}, {"type": "url", "url": "http://localhost/"}, "look at it"]},
    {"id": "US-001", "title": "Bulb", "priority": 1, "passes": true, "description": "As a reader\nI want light",
     "acceptanceCriteria": [{"text": "It glows", "passes": false}]},
    {"id": "US-003", "title": "Shade", "status": "blocked", "passes": false, "group": "looks", "acceptanceCriteria": []},
    {"id": "US-004", "title": "Dimmer", "status": "skipped", "passes": false, "optional": true, "needs_no_change": true}
  ]
}"#;

#[test]
fn a_prd_json_converted_to_itself_loses_nothing() {
    let before = reading(&prd(RICH));
    let out = converted(&before, Scheme::Prd);
    assert_eq!(said(&out), Vec::<String>::new(), "{}", text(&out));
    let mut after = reading(&prd(text(&out)));
    for (old, new) in before.plan.stories.iter().zip(&mut after.plan.stories) {
        new.line = old.line;
        new.tasks.iter_mut().zip(&old.tasks).for_each(|(new, old)| new.line = old.line);
    }
    assert_eq!(before.plan, after.plan);
}

#[test]
fn a_checklist_keeps_ids_states_dependencies_priorities_and_commands_and_names_the_rest() {
    let before = reading(&prd(RICH));
    let out = converted(&before, Scheme::Markdown);
    let after = read_as(Scheme::Markdown, text(&out)).plan;
    let states: Vec<(&str, WorkState)> = after.stories.iter().map(|s| (s.id.as_str(), s.state)).collect();
    assert_eq!(
        states,
        [("US-002", WorkState::Todo), ("US-001", WorkState::Done), ("US-003", WorkState::Todo)],
        "{}",
        text(&out)
    );
    let switch = &after.stories[0];
    assert_eq!(switch.deps, ["US-001".into()]);
    assert_eq!(switch.priority.unwrap().0.to_string(), "2");
    assert_eq!(switch.checks.len(), 1, "{}", text(&out));
    assert!(
        text(&out).contains("Mind the spring.") && text(&out).contains("As a reader\nI want light"),
        "{}",
        text(&out)
    );
    let said = said(&out).join("\n");
    for wanted in [
        "optional stories (US-004)",
        "states beyond open and done (US-003): left out",
        "complexities (US-002): kept as text only",
        "notes (US-002): kept as text only",
        "open tasks of stories that are done (US-001): they are ticked",
        "the branch: left out",
        "the commands that check every story: left out",
    ] {
        assert!(said.contains(wanted), "{wanted}\nis not in\n{said}");
    }
}

#[test]
fn formats_without_dependencies_take_the_stories_in_the_order_in_which_they_would_run() {
    let before = reading(&prd(RICH));
    for to in [Scheme::OpenSpec, Scheme::SpecKit, Scheme::Kiro, Scheme::FixPlan] {
        let out = converted(&before, to);
        let after = read_as(to, text(&out)).plan;
        let titles: Vec<&str> = after.stories.iter().filter(|s| !s.optional).map(|s| s.title.as_str()).collect();
        assert_eq!(titles, ["Bulb", "Switch", "Shade"], "{to:?}\n{}", text(&out));
        assert!(said(&out).contains(&"dependencies (US-002): kept as the order of the stories".to_owned()), "{to:?}");
    }
}

#[test]
fn ids_that_a_heading_cannot_carry_are_replaced_everywhere_and_named() {
    let before = reading(&prd(
        r#"{"stories": [{"id": "lay-pipes", "title": "Pipes", "deps": ["dig"]}, {"id": "dig", "title": "Dig"}]}"#,
    ));
    let out = converted(&before, Scheme::Markdown);
    let after = read_as(Scheme::Markdown, text(&out)).plan;
    assert_eq!(after.stories[0].deps, [after.stories[1].id.clone()]);
    assert!(said(&out).iter().any(|line| line.contains("lay-pipes is 1, dig is 2")), "{:?}", said(&out));
}

#[test]
fn what_lives_elsewhere_has_no_file_and_says_how_its_items_are_made() {
    let before = reading(&prd(RICH));
    for (to, way) in [(Scheme::GitHub, "gh issue create"), (Scheme::Beads, "bd create")] {
        let error = convert(&before, to).unwrap_err();
        assert!(matches!(error, ConvertError::NoFile { .. }) && error.to_string().contains(way), "{error}");
    }
}

#[test]
fn a_backlog_has_a_file_a_task_with_its_order_dependencies_criteria_and_commands() {
    let before = reading(&prd(RICH));
    let out = converted(&before, Scheme::Backlog);
    let Written::Folder(files) = &out.written else { panic!() };
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["config.yml", "tasks/us-002 - Switch.md", "tasks/us-001 - Bulb.md", "tasks/us-003 - Shade.md"]);
    let after = read_back(Scheme::Backlog, &out).plan;
    let states: Vec<(&str, WorkState)> = after.stories.iter().map(|s| (s.id.as_str(), s.state)).collect();
    assert_eq!(states, [("US-002", WorkState::Todo), ("US-001", WorkState::Done), ("US-003", WorkState::Blocked)]);
    let switch = &after.stories[0];
    assert_eq!((switch.deps.as_slice(), switch.tags.as_slice()), (&["US-001".into()][..], &["ui".to_owned()][..]));
    assert_eq!(switch.tasks.iter().map(|task| task.text.as_str()).collect::<Vec<_>>(), ["It clicks", "It holds"]);
    assert_eq!(switch.checks.len(), 1, "{files:?}");
    let said = said(&out).join("\n");
    assert!(said.contains("optional stories (US-004): left out") && !said.contains("priorities"), "{said}");
}

#[test]
fn tasks_of_a_backlog_have_one_prefix() {
    for (ids, expected) in [(["AB-1", "ab-2"], ["AB-1", "ab-2"]), (["AB-1", "CD-2"], ["task-1", "task-2"])] {
        let [a, b] = ids;
        let before =
            reading(&prd(&format!(r#"{{"stories": [{{"id": "{a}", "title": "A"}}, {{"id": "{b}", "title": "B"}}]}}"#)));
        let out = converted(&before, Scheme::Backlog);
        let after = read_back(Scheme::Backlog, &out).plan;
        assert_eq!(after.stories.iter().map(|story| story.id.as_str()).collect::<Vec<_>>(), expected);
        let Written::Folder(files) = &out.written else { panic!() };
        let config = String::from_utf8(files[0].bytes.clone()).unwrap();
        let prefix = expected[0].split('-').next().unwrap().to_lowercase();
        assert!(config.contains(&format!("task_prefix: \"{prefix}\"")), "{config}");
    }
}

#[test]
fn ranks_without_a_word_become_the_order_of_the_board() {
    let before = reading(&prd(
        r#"{"stories": [{"id": "late", "title": "A", "priority": 9}, {"id": "soon", "title": "B: \"b\"", "priority": 0.5}]}"#,
    ));
    for (to, ids) in [(Scheme::Backlog, ["task-1", "task-2"]), (Scheme::Flight, ["1.1", "1.2"])] {
        let out = converted(&before, to);
        let after = read_back(to, &out).plan;
        let stories: Vec<_> = after.stories.iter().map(|s| (s.id.as_str(), s.title.as_str(), s.priority)).collect();
        assert_eq!(stories, [(ids[0], "B: \"b\"", None), (ids[1], "A", None)]);
        assert!(
            said(&out).iter().any(|line| line.contains("priorities") && line.contains("order")),
            "{:?}",
            said(&out)
        );
    }
}

#[test]
fn an_area_of_flight_rules_has_a_file_a_group_that_runs_its_command_and_waits_for_others() {
    let before = reading(&prd(RICH));
    let out = converted(&before, Scheme::Flight);
    let Written::Folder(files) = &out.written else { panic!() };
    assert_eq!(files[0].path, "1.1-bulb.md");
    let switch = String::from_utf8(files[1].bytes.clone()).unwrap();
    assert!(switch.starts_with("# 1.2. Switch\n"), "{switch}");
    assert!(switch.contains("\n**Requires**: 1.1\n\n**Verification**: `cargo test switch`\n"), "{switch}");
    assert!(switch.ends_with("\n## 1.2.2. It holds\n\n**Status**: 🔵 Planned\n"), "{switch}");
    let after = read_back(Scheme::Flight, &out).plan;
    let states: Vec<WorkState> = after.stories.iter().map(|story| story.state).collect();
    assert_eq!(states, [WorkState::Done, WorkState::Todo, WorkState::Blocked]);
    assert_eq!(after.stories[1].checks.len(), 1);
}

#[test]
fn there_and_back_again_the_same_stories_are_open_and_in_the_same_order() {
    let before = reading(&prd(RICH));
    let order = |reading: &Reading| -> Vec<(String, bool)> {
        let wanted = reading.plan.stories.iter().filter(|s| !s.optional && s.state != WorkState::Skipped);
        let mut stories: Vec<_> = wanted.collect();
        stories.sort_by(|a, b| ralphloop_core::graph::rank(a, b));
        stories.iter().map(|story| (story.title.clone(), story.state == WorkState::Done)).collect()
    };
    for there in WRITABLE {
        let middle = read_back(*there, &converted(&before, *there));
        for back in WRITABLE {
            let after = read_back(*back, &converted(&middle, *back));
            let (mut old, mut new) = (order(&before), order(&after));
            if *there != Scheme::Markdown && *back != Scheme::Markdown {
                assert_eq!(old, new, "{there:?}, then {back:?}");
            }
            old.sort();
            new.sort();
            assert_eq!(old, new, "{there:?}, then {back:?}");
        }
    }
}

#[test]
fn every_readable_fixture_converts_to_every_format_with_its_stories_and_states() {
    let Some(corpus) = corpus() else {
        eprintln!("no corpus of fixtures beside this checkout: nothing to convert");
        return;
    };
    let (mut done, mut failures) = (0, Vec::new());
    for (folder, scheme) in FORMATS {
        for entry in std::fs::read_dir(corpus.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let bytes = if path.is_file() { std::fs::read(&path).unwrap() } else { continue };
            if name.ends_with(".expect.json") {
                continue;
            }
            let Ok(before) = read(&SpecFiles::single(*scheme, SpecText::new(name.clone(), bytes))) else { continue };
            for to in WRITABLE {
                match convert(&before, *to) {
                    Ok(_) => done += 1,
                    Err(ConvertError::NothingLeft { .. }) => {
                        let stories = &before.plan.stories;
                        assert!(stories.iter().all(|s| s.optional || s.state == WorkState::Skipped), "{name}");
                    }
                    Err(error) => failures.push(format!("{folder}/{name}: {error}")),
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} of {done}:\n{}", failures.len(), failures.join("\n"));
    assert!(done > 500, "{done}");
}
