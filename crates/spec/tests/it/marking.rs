//! Ticking by hand and by landing.

use ralphloop_core::plan::Scheme;
use ralphloop_spec::{MarkError, apply, mark_done, tick_story};

fn marked(scheme: Scheme, source: &str, id: &str) -> String {
    let edits = mark_done(scheme, source.as_bytes(), id).unwrap_or_else(|error| panic!("{error}"));
    String::from_utf8(apply(source.as_bytes(), &edits).unwrap()).unwrap()
}

#[test]
fn marking_a_markdown_story_ticks_its_open_boxes_and_no_others() {
    let source = "## 1. A\n- [x] 1.1 a\n  - [~] b\n- [ ] c\n## 2. B\n- [ ] 2.1 d\n";
    assert_eq!(
        marked(Scheme::OpenSpec, source, "1"),
        "## 1. A\n- [x] 1.1 a\n  - [x] b\n- [x] c\n## 2. B\n- [ ] 2.1 d\n"
    );
}

#[test]
fn landing_writes_what_marking_the_story_writes() {
    let source = "## 1. A\r\n- [ ] 1.1 a\r\n- [] b";
    let edits = tick_story(Scheme::OpenSpec, source.as_bytes(), &"1".into()).unwrap();
    assert_eq!(apply(source.as_bytes(), &edits).unwrap(), b"## 1. A\r\n- [x] 1.1 a\r\n- [x] b");
}

#[test]
fn b12_unknown_keys_and_layout_survive_a_mark() {
    let source = "{\"x\": 1.50, \"stories\": [ {\"title\":\"a\" , \"n\": 1e3}, { \"title\": \"b\\u2014\" ,\n\t\"zz\": {\"passes\": false} } ]}";
    let after = marked(Scheme::Prd, source, "s1");
    assert_eq!(after, source.replace("1e3}", "1e3, \"passes\": true}"));
    let after = marked(Scheme::Prd, source, "s2");
    assert_eq!(after, source.replace("{\"passes\": false} }", "{\"passes\": false},\n\t\"passes\": true }"));
}

#[test]
fn a_status_of_several_lines_is_prose_and_stays() {
    let source = "tasks:\n  - title: Lamp\n    status: 'waits for the bulb\n      that was ordered'\n";
    let after = marked(Scheme::Yaml, source, "s1");
    assert_eq!(after, source.replace("Lamp\n", "Lamp\n    completed: true\n"));
}

#[test]
fn prose_under_the_name_of_a_flag_stays() {
    let source = "tasks:\n  - title: Lamp\n    completed: 'once the bulb\n      is there'\n";
    let after = marked(Scheme::Yaml, source, "s1");
    assert_eq!(after, source.replace("Lamp\n", "Lamp\n    passes: true\n"));
}

#[test]
fn what_is_done_stays_as_it_is() {
    let source = "## 1. A\n- [X] 1.1 a\n";
    assert_eq!(marked(Scheme::OpenSpec, source, "1.1"), source);
    assert_eq!(marked(Scheme::OpenSpec, source, "1"), source);
    let source = r#"[{"title": "a", "passes": "TRUE", "acceptance": ["b"]}]"#;
    assert_eq!(marked(Scheme::Prd, source, "s1"), source);
    assert_eq!(marked(Scheme::Prd, source, "s1#1"), source);
}

#[test]
fn r20_an_unknown_id_is_refused_with_those_that_are_there() {
    let error = mark_done(Scheme::OpenSpec, b"## 1. A\n- [ ] 1.1 a\n", "9").unwrap_err();
    assert_eq!(error.to_string(), "there is no story and no task \"9\" here; the stories are 1");
}

#[test]
fn a_criterion_without_a_flag_is_refused_with_the_reason() {
    let error = mark_done(Scheme::Prd, br#"[{"id": "A", "title": "a", "steps": ["b"]}]"#, "A#1").unwrap_err();
    assert!(matches!(error, MarkError::NotWritable { .. }));
    assert!(error.to_string().contains("mark \"A\" instead"), "{error}");
}

#[test]
fn an_id_of_a_story_and_a_task_means_the_task() {
    let source = "## 1. A\n- [ ] a\n- [ ] 1. b\n";
    assert_eq!(marked(Scheme::OpenSpec, source, "1"), "## 1. A\n- [ ] a\n- [x] 1. b\n");
}

#[test]
fn a_file_with_comments_keeps_them() {
    let source = "// c\n[{\"title\": \"a\", \"passes\": false,},]\n";
    assert_eq!(marked(Scheme::Prd, source, "s1"), source.replace("false", "true"));
}
