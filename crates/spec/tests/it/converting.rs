//! A plan in another format says the same, and what it cannot say is named.

use ralphloop_core::plan::{Scheme, WorkState};
use ralphloop_spec::{ConvertError, Converted, Reading, SpecFiles, SpecText, convert, read};

use crate::fixtures::{FORMATS, corpus};
use crate::{prd, reading};

/// Formats that are written as one file.
const WRITABLE: &[Scheme] =
    &[Scheme::Prd, Scheme::OpenSpec, Scheme::Markdown, Scheme::FixPlan, Scheme::SpecKit, Scheme::Kiro, Scheme::Yaml];

fn converted(reading: &Reading, to: Scheme) -> Converted {
    convert(reading, to).unwrap_or_else(|error| panic!("{error}"))
}

fn read_as(scheme: Scheme, text: &str) -> Reading {
    reading(&SpecFiles::single(scheme, SpecText::new("tasks.md", text)))
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
    assert_eq!(said(&out), Vec::<String>::new(), "{}", out.text);
    let mut after = reading(&prd(&out.text));
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
    let after = read_as(Scheme::Markdown, &out.text).plan;
    let states: Vec<(&str, WorkState)> = after.stories.iter().map(|s| (s.id.as_str(), s.state)).collect();
    assert_eq!(
        states,
        [("US-002", WorkState::Todo), ("US-001", WorkState::Done), ("US-003", WorkState::Todo)],
        "{}",
        out.text
    );
    let switch = &after.stories[0];
    assert_eq!(switch.deps, ["US-001".into()]);
    assert_eq!(switch.priority.unwrap().0.to_string(), "2");
    assert_eq!(switch.checks.len(), 1, "{}", out.text);
    assert!(out.text.contains("Mind the spring.") && out.text.contains("As a reader\nI want light"), "{}", out.text);
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
        let after = read_as(to, &out.text).plan;
        let titles: Vec<&str> = after.stories.iter().filter(|s| !s.optional).map(|s| s.title.as_str()).collect();
        assert_eq!(titles, ["Bulb", "Switch", "Shade"], "{to:?}\n{}", out.text);
        assert!(said(&out).contains(&"dependencies (US-002): kept as the order of the stories".to_owned()), "{to:?}");
    }
}

#[test]
fn ids_that_a_heading_cannot_carry_are_replaced_everywhere_and_named() {
    let before = reading(&prd(
        r#"{"stories": [{"id": "lay-pipes", "title": "Pipes", "deps": ["dig"]}, {"id": "dig", "title": "Dig"}]}"#,
    ));
    let out = converted(&before, Scheme::Markdown);
    let after = read_as(Scheme::Markdown, &out.text).plan;
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
