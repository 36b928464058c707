//! The spec file after an attempt.

use ralphloop_core::plan::Scheme;
use ralphloop_spec::{OwnBoxes, Reconciled, reconcile};

const TASKS: &str =
    "# Jars\r\n## 1. Wash\r\n- [ ] 1.1 soap\r\n- [ ] 1.2 rinse\r\n## 2. Fill\r\n- [ ] 2.1 jam\r\n- [x] 2.2 label\r\n";
const PRD: &str = "{\"stories\": [\n  {\"id\": \"A\", \"title\": \"a\", \"passes\": false},\n  {\"id\": \"B\", \"title\": \"b\"}\n], \"x\": 1.50}";

fn after(scheme: Scheme, checkpoint: &str, now: &str, story: &str, landed: bool) -> (String, Reconciled) {
    let out = reconcile(scheme, checkpoint.as_bytes(), Some(now.as_bytes()), &story.into(), landed);
    (String::from_utf8(out.bytes.clone()).unwrap(), out)
}

#[test]
fn an_untouched_file_gets_the_ticks_of_the_landed_story_only() {
    let (text, out) = after(Scheme::OpenSpec, TASKS, TASKS, "1", true);
    assert_eq!(text, TASKS.replace("[ ] 1.1", "[x] 1.1").replace("[ ] 1.2", "[x] 1.2"));
    assert_eq!(out.own_boxes, OwnBoxes { had_open: true, all_ticked: false });
    assert!(out.notes.is_empty());
    let (text, _) = after(Scheme::OpenSpec, TASKS, TASKS, "1", false);
    assert_eq!(text, TASKS);
}

#[test]
fn r37_that_the_agent_ticked_every_box_of_its_story_is_seen() {
    let now = TASKS.replace("[ ] 1.1", "[x] 1.1").replace("[ ] 1.2", "[X] 1.2");
    let (text, out) = after(Scheme::OpenSpec, TASKS, &now, "1", true);
    assert_eq!(out.own_boxes, OwnBoxes { had_open: true, all_ticked: true });
    assert_eq!(text, now);
    let dropped = TASKS.replace("[ ] 1.1", "[x] 1.1").replace("- [ ] 1.2 rinse\r\n", "");
    let (_, out) = after(Scheme::OpenSpec, TASKS, &dropped, "1", true);
    assert!(!out.own_boxes.all_ticked);
    assert!(out.notes[0].contains("1.2"), "{:?}", out.notes);
}

#[test]
fn b1_open_boxes_of_a_landed_story_are_ticked_for_the_agent() {
    let now = TASKS.replace("[ ] 1.1", "[x] 1.1");
    let (text, out) = after(Scheme::OpenSpec, TASKS, &now, "1", true);
    assert!(text.contains("[x] 1.2 rinse"));
    assert!(!out.own_boxes.all_ticked);
}

#[test]
fn boxes_of_other_stories_go_back_and_the_text_stays() {
    let now = TASKS.replace("[ ] 2.1 jam", "[x] 2.1 plum jam").replace("[x] 2.2", "[ ] 2.2")
        + "## 3. New\r\n- [ ] 3.1 lid\r\n";
    let (text, out) = after(Scheme::OpenSpec, TASKS, &now, "1", true);
    assert!(text.contains("- [ ] 2.1 plum jam\r\n- [x] 2.2 label\r\n## 3. New"), "{text}");
    assert!(out.notes[0].contains("story 2") && out.notes[0].contains("2.1, 2.2"), "{:?}", out.notes);
}

#[test]
fn own_boxes_go_back_when_the_story_did_not_land() {
    let now = TASKS.replace("[ ] 1.1 soap", "[x] 1.1 much soap");
    let (text, out) = after(Scheme::OpenSpec, TASKS, &now, "1", false);
    assert_eq!(text, TASKS.replace("soap", "much soap"));
    assert!(out.notes.is_empty());
}

#[test]
fn reordered_stories_keep_their_identity() {
    let now = "## 2. Fill\n- [x] 2.1 jam\n- [x] 2.2 label\n## 1. Wash\n- [ ] 1.2 rinse\n- [ ] 1.1 soap\n";
    let (text, _) = after(Scheme::OpenSpec, TASKS, now, "1", true);
    assert_eq!(text, "## 2. Fill\n- [ ] 2.1 jam\n- [x] 2.2 label\n## 1. Wash\n- [x] 1.2 rinse\n- [x] 1.1 soap\n");
}

#[test]
fn a_story_without_a_number_is_known_by_its_title() {
    let before = "## Wash\n- [ ] soap\n## Fill\n- [ ] jam\n";
    let (text, out) = after(Scheme::OpenSpec, before, &format!("## Sort\n- [x] a\n{before}"), "s2", true);
    assert_eq!(text, "## Wash\n- [ ] soap\n## Fill\n- [x] jam\n");
    assert!(out.notes[0].contains("s1, s2"), "{:?}", out.notes);
    let (text, _) = after(Scheme::OpenSpec, before, &format!("{before}## Sort\n- [ ] a\n"), "s2", true);
    assert!(text.ends_with("- [x] jam\n## Sort\n- [ ] a\n"));
}

#[test]
fn deleted_unreadable_or_shortened_files_are_put_back() {
    for now in [None, Some(""), Some("gone"), Some("## 1. Wash\n- [x] 1.1 soap\n"), Some("- [x] all done")] {
        let out = reconcile(Scheme::OpenSpec, TASKS.as_bytes(), now.map(str::as_bytes), &"1".into(), false);
        assert_eq!(out.bytes, TASKS.as_bytes(), "{now:?}");
        assert!(out.notes[0].contains("put back"), "{:?}", out.notes);
    }
    for now in ["{ \"broken\": ", "{\"master\": {\"stories\": []}}", "[{\"id\": \"A\", \"title\": \"a\"}]", "// c\n[]"]
    {
        let (text, out) = after(Scheme::Prd, PRD, now, "A", true);
        assert_eq!(text, PRD.replace("false", "true"), "{now}");
        assert_eq!(out.notes.len(), 1, "{now}");
    }
}

#[test]
fn another_story_is_never_done_by_losing_its_open_box() {
    let now = TASKS.replace("- [ ] 2.1 jam\r\n", "");
    let (text, out) = after(Scheme::OpenSpec, TASKS, &now, "1", false);
    assert_eq!(text, TASKS);
    assert!(out.notes[0].contains("story 2"), "{:?}", out.notes);
}

#[test]
fn flags_of_other_stories_are_the_tools() {
    let now = PRD.replace("\"title\": \"b\"", "\"title\": \"bee\", \"passes\": true, \"notes\": \"hm\"");
    let (text, out) = after(Scheme::Prd, PRD, &now, "A", true);
    assert_eq!(text, now.replace("false", "?").replace("true", "false").replace('?', "true"));
    assert!(out.notes[0].contains("story B"));
    assert_eq!(out.own_boxes, OwnBoxes::default());
}

#[test]
fn landing_also_sets_a_status_that_the_agent_forgot() {
    let before =
        r#"[{"title": "a", "status": "done", "passes": true}, {"title": "b", "status": "todo", "passes": false}]"#;
    let (text, _) = after(Scheme::Prd, before, &before.replace("false", "true"), "s2", true);
    assert_eq!(text, before.replace("todo", "done").replace("false", "true"));
}

#[test]
fn a_status_that_the_agent_invents_does_not_finish_another_story() {
    let now = PRD.replace("\"title\": \"b\"", "\"title\": \"b\", \"status\": \"done\"");
    let (text, _) = after(Scheme::Prd, PRD, &now, "A", false);
    assert_eq!(text, now.replace("\"done\"", "\"todo\""));
}

#[test]
fn a_removed_flag_of_a_finished_story_comes_back() {
    let before = PRD.replace("false", "true");
    let now = PRD.replace(", \"passes\": false", "");
    let (text, _) = after(Scheme::Prd, &before, &now, "B", false);
    assert_eq!(text, before);
}

#[test]
fn b81_an_agent_that_drops_and_renames_stories_is_undone_with_every_key_kept() {
    let now = "{\"stories\": [\n  {\"id\": \"B\", \"title\": \"b\", \"passes\": true}]}";
    let (text, out) = after(Scheme::Prd, PRD, now, "B", true);
    assert!(text.contains("\"x\": 1.50") && text.contains("\"B\", \"title\": \"b\", \"passes\": true}"), "{text}");
    assert!(out.notes[0].contains('A'));
}

#[test]
fn a_file_that_an_agent_left_without_a_place_for_the_mark_is_put_back() {
    let area = "# 2.3 Sorter\n\n## 2.3.1. Towns\n\n**Status**: Planned\n";
    let (text, out) =
        after(Scheme::Flight, area, &area.replace(" Sorter", "<!-- Sorter").replace("**: ", "**:--> "), "2.3", true);
    assert_eq!(text, area.replace("Planned", "Complete"));
    assert!(out.notes[0].contains("no place for the mark of 2.3"), "{:?}", out.notes);
}

#[test]
fn blanks_of_more_than_a_byte_before_a_detail_are_no_panic() {
    let plan = "- [ ] 1. Set up\n \u{a0} - _Requirements: 1.1_\n";
    let (text, _) = after(Scheme::Kiro, plan, plan, "1", true);
    assert_eq!(text, plan.replace("[ ]", "[x]"));
}
