//! Work of several files.

use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Scheme, WorkState};
use ralphloop_spec::{ErrorClass, SpecFiles, SpecText, apply_in, mark_in, read, reconcile_files};

fn task(id: &str, more: &str) -> String {
    format!("---\nid: {id}\ntitle: The {id}\nstatus: To Do\n{more}---\n\n## Acceptance Criteria\n- [ ] #1 works\n")
}

fn folder(scheme: Scheme, name: &str, files: &[(&str, &str)]) -> SpecFiles {
    let mut files = files.iter().map(|(path, text)| SpecText::new(*path, *text));
    let main = files.next().unwrap();
    SpecFiles { more: files.collect(), folder: Some(name.to_owned()), ..SpecFiles::single(scheme, main) }
}

fn backlog(files: &[(&str, &str)]) -> SpecFiles {
    folder(Scheme::Backlog, "backlog", files)
}

fn ids(files: &SpecFiles) -> Vec<String> {
    read(files).unwrap().plan.stories.iter().map(|story| story.id.to_string()).collect()
}

#[test]
fn tasks_come_in_the_order_of_the_board_then_of_their_numbers() {
    let texts = [task("T-10", ""), task("T-9", ""), task("T-1", "ordinal: 3000\n"), task("T-2", "ordinal: 1000.5\n")];
    let files: Vec<(String, &str)> =
        texts.iter().enumerate().map(|(n, text)| (format!("{n}.md"), text.as_str())).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    assert_eq!(ids(&backlog(&files)), ["T-2", "T-1", "T-9", "T-10"]);
}

#[test]
fn dependencies_are_found_whatever_their_case_or_old_prefix_and_finished_ones_are_not_missed() {
    let mut files = backlog(&[
        ("a.md", &task("BACK-1", "dependencies: [back-2, task-3, TASK-4, nobody-9]\n")),
        ("b.md", &task("BACK-2", "")),
        ("c.md", &task("BACK-3", "")),
    ]);
    files.beside.push(SpecText::new("backlog/completed/task-4 - Roof.md", ""));
    let reading = read(&files).unwrap();
    let deps: Vec<&str> = reading.plan.stories[0].deps.iter().map(StoryId::as_str).collect();
    assert_eq!(deps, ["BACK-2", "BACK-3", "TASK-4", "nobody-9"]);
    let said: Vec<_> = reading.warnings.iter().map(|w| (w.code.as_str(), w.file.as_str())).collect();
    assert_eq!(said, [("unknown_dependency", "a.md")]);
}

#[test]
fn the_projects_own_word_for_done_is_understood() {
    let (shipped, open) = (task("T-1", "").replace("To Do", "Shipped"), task("T-2", "").replace("To Do", "Backlog"));
    let mut files = backlog(&[("a.md", &shipped), ("b.md", &open)]);
    files.beside.push(SpecText::new("backlog/config.yml", "statuses: [\"Backlog\", \"Doing\", \"Shipped\"]\n"));
    let reading = read(&files).unwrap();
    assert_eq!(reading.next.as_ref().map(StoryId::as_str), Some("T-2"));
    assert_eq!(reading.plan.stories[0].state, WorkState::Done);
}

#[test]
fn one_id_in_two_files_is_an_error_that_names_both() {
    let error = read(&backlog(&[("a.md", &task("T-1", "")), ("b.md", &task("t-1", ""))])).unwrap_err();
    assert_eq!(error.class, ErrorClass::DuplicateId);
    assert!(error.to_string().contains("a.md") && error.to_string().contains("b.md"), "{error}");
}

#[test]
fn notes_among_the_tasks_are_left_out_with_a_warning_and_broken_tasks_are_errors() {
    let reading = read(&backlog(&[("a.md", &task("T-1", "")), ("notes.md", "# Notes\n")])).unwrap();
    assert_eq!(reading.warnings[0].code.as_str(), "unreadable_companion");
    let error = read(&backlog(&[("a.md", &task("T-1", "")), ("b.md", "---\nid: [\n---\n")])).unwrap_err();
    assert_eq!((error.class, error.file.as_str()), (ErrorClass::YamlSyntax, "b.md"));
    assert_eq!(read(&backlog(&[("notes.md", "# Notes\n")])).unwrap_err().class, ErrorClass::NoTasks);
}

#[test]
fn a_mark_goes_to_the_file_that_holds_the_item() {
    let files = backlog(&[("a.md", &task("T-1", "")), ("b.md", &task("T-2", ""))]);
    let edits = mark_in(&files, "T-2#1").unwrap();
    let marked = apply_in(&files, &edits).unwrap();
    assert_eq!(marked, [SpecText::new("b.md", task("T-2", "").replace("[ ]", "[x]"))]);
    assert!(mark_in(&files, "T-3").unwrap_err().to_string().contains("T-1, T-2"));
}

#[test]
fn only_the_files_of_the_story_and_those_that_were_touched_change() {
    let before = [
        SpecText::new("a.md", task("T-1", "")),
        SpecText::new("b.md", task("T-2", "")),
        SpecText::new("n.md", "Notes"),
    ];
    let ticked = task("T-2", "").replace("To Do", "Done").replace("[ ]", "[x]");
    let now = [
        before[0].clone(),
        SpecText::new("b.md", ticked),
        SpecText::new("n.md", "More notes"),
        SpecText::new("c.md", "new"),
    ];
    let out = reconcile_files(Scheme::Backlog, &before, &now, &"T-1".into(), true);
    let done = task("T-1", "").replace("To Do", "Done").replace("[ ]", "[x]");
    assert_eq!(out.files, [SpecText::new("a.md", done), before[1].clone(), now[2].clone()]);
    assert_eq!(out.notes.len(), 1, "{:?}", out.notes);
    assert!(out.notes[0].starts_with("b.md: ") && out.own_boxes.had_open);
}

#[test]
fn groups_of_an_implementation_come_by_number_with_what_they_require() {
    let files = folder(
        Scheme::Flight,
        "docs/implementation",
        &[
            (
                "i/2-b/2.10-x.md",
                "# 2.10 X\n\n**Requires**: 2.9, 9.9 and prose\n\n## 2.10.1 A\n\n**Status**: 🔵 Planned\n",
            ),
            ("i/2-b/2.9-y.md", "# 2.9 Y\n\n## 2.9.1 B\n\n**Status**: ✅ Complete\n"),
            ("i/2-b/notes.md", "# Thoughts\n\n**Status**: 🔵 Planned\n"),
        ],
    );
    let reading = read(&files).unwrap();
    let stories: Vec<_> =
        reading.plan.stories.iter().map(|s| (s.id.as_str(), s.group.as_deref(), s.deps.len())).collect();
    assert_eq!(stories, [("2.9", Some("2-b"), 0), ("2.10", Some("2-b"), 1)]);
}

#[test]
fn the_state_of_a_prd_holds_and_its_text_says_what_is_wanted() {
    let prd = "# PRD\n\n### US-1: Sort\n\nBy town.\n\n- [x] by town\n\n### US-2: Print\n\n- [ ] prints\n";
    let status = "{\"stories\": [{\"id\": \"US-1\", \"title\": \"Sort\", \"passes\": false}, \
                  {\"id\": \"US-2\", \"title\": \"Print\", \"passes\": true}]}";
    let main = SpecText::new("docs/prd.md", prd);
    let files = SpecFiles {
        more: vec![SpecText::new("docs/prd-status.json", status)],
        ..SpecFiles::single(Scheme::Flight, main)
    };
    let reading = read(&files).unwrap();
    assert_eq!(reading.next.as_ref().map(StoryId::as_str), Some("US-1"));
    assert_eq!(reading.plan.stories[0].description, "By town.");
    let edits = mark_in(&files, "US-1").unwrap();
    assert_eq!(
        apply_in(&files, &edits).unwrap(),
        [SpecText::new("docs/prd-status.json", status.replace("false", "true"))]
    );
}
