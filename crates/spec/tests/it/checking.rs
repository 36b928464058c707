//! Findings beyond the reading.

use ralphloop_spec::{Severity, check};

use crate::{openspec, prd};

fn codes(files: &ralphloop_spec::SpecFiles) -> Vec<(&'static str, Option<u32>)> {
    check(files).iter().map(|finding| (finding.code.as_str(), finding.line)).collect()
}

#[test]
fn sound_work_has_no_findings() {
    let spec = "## ADDED Requirements\n### Requirement: A\nIt SHALL.\n#### Scenario: s\n- **WHEN** a\n- **THEN** b\n";
    let files = openspec("## 1. A\nVerify: `make check`\n- [ ] 1.1 a\n", &[("specs/a/spec.md", spec)]);
    assert_eq!(codes(&files), []);
}

#[test]
fn an_unreadable_file_is_one_error_with_its_place() {
    let findings = check(&prd("{\n  oops"));
    assert_eq!(findings.len(), 1);
    assert_eq!(
        (findings[0].severity, findings[0].code.as_str(), findings[0].line),
        (Severity::Error, "json_syntax", Some(2))
    );
}

#[test]
fn boxes_before_any_heading_and_missing_checks_are_found() {
    let files = openspec("- [ ] a\n\n## 1. B\n- [ ] 1.1 b\n", &[]);
    assert_eq!(codes(&files), [("box_outside_story", Some(1)), ("story_without_check", Some(1))]);
    assert!(check(&files)[1].message.ends_with("s1, 1"));
}

#[test]
fn problems_of_the_deltas_are_found_in_their_files() {
    let files = openspec(
        "## 1. A\nVerify: `make check`\n- [ ] a",
        &[("specs/a/spec.md", "## ADDED Requirements\n### Requirement: A\nText.\n")],
    );
    let findings = check(&files);
    let found: Vec<_> = findings.iter().map(|f| (f.code.as_str(), f.file.as_str(), f.line)).collect();
    assert_eq!(
        found,
        [
            ("requirement_without_shall", "specs/a/spec.md", Some(2)),
            ("requirement_without_scenario", "specs/a/spec.md", Some(2))
        ]
    );
}

#[test]
fn a_step_that_is_a_sentence_is_pointed_at() {
    let json = "[{\"title\": \"a\", \"verification_steps\": [\"make check\",\n\"look at the page\"]}]";
    assert_eq!(codes(&prd(json)), [("step_is_no_command", Some(2))]);
}
