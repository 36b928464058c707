use std::fs;

use super::*;

struct Project {
    root: tempfile::TempDir,
}

impl Project {
    fn new(files: &[&str]) -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join(".git")).unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("content of {file}")).unwrap();
        }
        Self { root }
    }

    fn path(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    fn found(&self) -> Vec<String> {
        find(&self.path()).iter().map(|found| found.work.id.to_string()).collect()
    }

    fn resolve(&self, argument: &str) -> String {
        match resolve(Some(argument), &self.path()) {
            Ok(work) => format!("{} in {}", work.id, work.shown(&work.main)),
            Err(error) => format!("error: {error}"),
        }
    }
}

const CHANGE: &[&str] = &[
    "openspec/changes/add-login/proposal.md",
    "openspec/changes/add-login/tasks.md",
    "openspec/changes/add-login/specs/identity/tokens/spec.md",
    "openspec/changes/archive/2026-01-01-old/tasks.md",
    "openspec/config.yaml",
];

#[test]
fn r14_changes_are_listed_and_the_archive_is_no_change() {
    assert_eq!(Project::new(CHANGE).found(), ["openspec:add-login"]);
}

#[test]
fn r15_a_change_whose_planning_is_not_complete_is_listed_with_what_it_lacks() {
    let project = Project::new(&["openspec/changes/half/design.md", "openspec/changes/whole/tasks.md"]);
    fs::write(project.path().join("openspec/changes/whole/proposal.md"), "x").unwrap();
    let found = find(&project.path());
    assert_eq!(found[0].missing, ["no proposal.md", "no tasks.md"]);
    assert_eq!(found[1].missing, [""; 0]);
    assert_eq!(resolve(None, &project.path()).unwrap().id.id, "whole");
    let half = resolve(Some("half"), &project.path()).unwrap();
    let error = load(&half).unwrap_err().to_string();
    assert_eq!(error, "openspec:half is not ready: no proposal.md, no tasks.md");
}

#[test]
fn a_prd_is_found_at_every_usual_place_and_archived_ones_come_last() {
    let project = Project::new(&[
        "prd.json",
        "prd-login.json",
        "scripts/ralph/prd.json",
        "tasks/prd.json",
        ".ralph/prd.json",
        "ralph/prd_1f.json",
        "archive/2026-01-01-x/prd.json",
        "other/prd.json",
        "prdx.json",
    ]);
    let want = [
        "prd:prd.json",
        "prd:prd-login.json",
        "prd:scripts/ralph/prd.json",
        "prd:tasks/prd.json",
        "prd:.ralph/prd.json",
        "prd:ralph/prd_1f.json",
        "prd:archive/2026-01-01-x/prd.json",
    ];
    assert_eq!(project.found(), want);
}

#[test]
fn a_prd_that_is_a_link_to_another_one_is_one_piece_of_work() {
    let project = Project::new(&["prd-now.json", "archive/a/prd.json"]);
    std::os::unix::fs::symlink("prd-now.json", project.path().join("prd.json")).unwrap();
    assert_eq!(project.found(), ["prd:prd.json", "prd:archive/a/prd.json"]);
    let work = resolve(None, &project.path()).unwrap();
    assert_eq!(load(&work).unwrap().main.bytes, b"content of prd-now.json");
}

#[test]
fn work_is_found_from_a_folder_below_but_not_beyond_the_repository() {
    let project = Project::new(&["prd.json", "src/deep/x.rs", "inner/.git/HEAD"]);
    let from = |folder: &str| find(&project.path().join(folder)).len();
    assert_eq!((from("src/deep"), from("inner")), (1, 0));
    let work = resolve(Some("prd:prd.json"), &project.path().join("src/deep")).unwrap();
    assert_eq!(work.project, project.path());
}

#[test]
fn every_way_to_name_a_change_means_the_same() {
    let project = Project::new(CHANGE);
    for argument in [
        "openspec:add-login",
        "add-login",
        "openspec/changes/add-login",
        "openspec/changes/add-login/",
        "openspec/changes/add-login/tasks.md",
        "openspec/changes/add-login/proposal.md",
        "openspec/changes/add-login/specs/identity/tokens/spec.md",
        "openspec:openspec/changes/add-login/tasks.md",
        "openspec:openspec/changes/add-login",
        "openspec/changes",
        "openspec",
        ".",
    ] {
        assert_eq!(
            project.resolve(argument),
            "openspec:add-login in openspec/changes/add-login/tasks.md",
            "{argument}"
        );
    }
}

#[test]
fn every_way_to_name_a_prd_means_the_same_project() {
    let project = Project::new(&["scripts/ralph/prd.json"]);
    for argument in ["prd:scripts/ralph/prd.json", "scripts/ralph/prd.json", ".", "scripts/ralph"] {
        let work = resolve(Some(argument), &project.path()).unwrap();
        assert_eq!(fs::read(&work.main).unwrap(), b"content of scripts/ralph/prd.json", "{argument}");
        if argument != "scripts/ralph" {
            assert_eq!(work.project.canonicalize().unwrap(), project.path(), "{argument}");
        }
    }
}

#[test]
fn a_lone_file_is_read_as_the_format_that_is_named() {
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().canonicalize().unwrap().join("01-basic.md");
    fs::write(&file, "# x").unwrap();
    let project = Project::new(&["prd.json"]);
    let work = resolve(Some(&format!("openspec:{}", file.display())), &project.path()).unwrap();
    assert_eq!((work.id.scheme, &work.main, &work.change), (Scheme::OpenSpec, &file, &None));
    assert_eq!(work.project, project.path(), "the work is about the repository that one stands in");
    assert!(load(&work).unwrap().beside.is_empty());
    assert!(project.resolve(&file.display().to_string()).contains("write FORMAT:PATH"));
}

#[test]
fn task_lists_with_boxes_are_found_and_those_without_are_no_work() {
    let project = Project::new(&["README.md", "PRD.md", "docs/todo.md"]);
    for (file, text) in [("TODO.md", "- [ ] a\n"), ("tasks/prd-login.md", "# x\n- [x] a\n"), ("Tasks.md", "- a\n")] {
        fs::create_dir_all(project.path().join(file).parent().unwrap()).unwrap();
        fs::write(project.path().join(file), text).unwrap();
    }
    assert_eq!(project.found(), ["markdown:TODO.md", "markdown:tasks/prd-login.md"]);
    assert_eq!(project.resolve("TODO.md"), "markdown:TODO.md in TODO.md");
    let work = resolve(Some("tasks/prd-login.md"), &project.path()).unwrap();
    assert_eq!((work.id.id.as_str(), &work.project), ("tasks/prd-login.md", &project.path()));
    assert_eq!(project.resolve("markdown:README.md"), "markdown:README.md in README.md");
}

#[test]
fn folders_of_spec_kit_and_kiro_are_work_with_what_stands_beside_the_tasks() {
    let project = Project::new(&[
        "specs/001-guide/tasks.md",
        "specs/001-guide/spec.md",
        "specs/002-later/spec.md",
        "specs/unit/x_spec.rb",
        ".kiro/specs/garden/tasks.md",
        ".kiro/specs/garden/requirements.md",
        ".kiro/specs/garden/design.md",
    ]);
    assert_eq!(project.found(), ["kiro:garden", "speckit:001-guide", "speckit:002-later"]);
    for argument in ["kiro:garden", "kiro", "garden", ".kiro/specs/garden", ".kiro/specs/garden/design.md"] {
        assert_eq!(project.resolve(argument), "kiro:garden in .kiro/specs/garden/tasks.md", "{argument}");
    }
    let files = load(&resolve(Some("kiro:.kiro/specs/garden/tasks.md"), &project.path()).unwrap()).unwrap();
    let beside: Vec<&str> = files.beside.iter().map(|text| text.path.as_str()).collect();
    assert_eq!(beside, ["design.md", "requirements.md"]);
    let later = resolve(Some("002-later"), &project.path()).unwrap();
    assert_eq!(load(&later).unwrap_err().to_string(), "speckit:002-later is not ready: no tasks.md");
}

#[test]
fn a_tasks_yaml_of_another_tool_is_no_work() {
    let project = Project::new(&[]);
    let listed = |text: &str| {
        fs::write(project.path().join("tasks.yaml"), text).unwrap();
        project.found().len()
    };
    assert_eq!(listed("tasks:\n  - title: a\n"), 1);
    assert_eq!(listed("- name: install\n  apt: {name: x}\n"), 0);
    assert_eq!(listed("kind: Task\nspec:\n  tasks: []\n"), 0);
    assert_eq!(listed("version: 3\ntasks:\n  build: make\n"), 0);
    assert_eq!(listed("- shell: {{ x }}: {\n"), 0);
}

#[test]
fn a_task_list_is_not_meant_where_there_is_other_work() {
    let project = Project::new(&["prd.json"]);
    fs::write(project.path().join("TODO.md"), "- [ ] a\n").unwrap();
    assert_eq!(project.found(), ["prd:prd.json", "markdown:TODO.md"]);
    assert_eq!(resolve(None, &project.path()).unwrap().id.to_string(), "prd:prd.json");
    fs::remove_file(project.path().join("prd.json")).unwrap();
    assert_eq!(resolve(None, &project.path()).unwrap().id.to_string(), "markdown:TODO.md");
}

#[test]
fn what_cannot_be_meant_is_an_error_that_says_what_there_is() {
    let project = Project::new(&["prd.json", "prd-b.json"]);
    let known = Scheme::ALL.iter().map(|scheme| scheme.as_str()).collect::<Vec<_>>().join(", ");
    assert_eq!(project.resolve("word:x"), format!("error: unknown format 'word'; the known ones are {known}"));
    assert_eq!(project.resolve("nope"), "error: there is no work 'nope'; there is:\n  prd:prd.json\n  prd:prd-b.json");
    assert_eq!(project.resolve("openspec:nope"), "error: there is no work 'openspec:nope'");
    let error = resolve(None, &project.path()).unwrap_err().to_string();
    assert_eq!(error, "2 pieces of work found, name one of them:\n  prd:prd.json\n  prd:prd-b.json");
    let empty = Project::new(&[]);
    assert!(matches!(resolve(None, &empty.path()), Err(WorkError::NoneFound { .. })));
}

#[test]
fn the_texts_beside_the_tasks_come_along_with_nested_capabilities() {
    let project = Project::new(CHANGE);
    let files = load(&resolve(None, &project.path()).unwrap()).unwrap();
    assert_eq!(files.main.path, "openspec/changes/add-login/tasks.md");
    let beside: Vec<&str> = files.beside.iter().map(|text| text.path.as_str()).collect();
    assert_eq!(beside, ["proposal.md", "specs/identity/tokens/spec.md", "openspec/config.yaml"]);
}

#[test]
fn a_folder_that_links_to_itself_is_walked_once() {
    let project = Project::new(CHANGE);
    let specs = project.path().join("openspec/changes/add-login/specs");
    std::os::unix::fs::symlink(&specs, specs.join("again")).unwrap();
    let files = load(&resolve(None, &project.path()).unwrap()).unwrap();
    assert_eq!(files.beside.len(), 3);
}

#[test]
fn what_is_no_file_of_text_is_refused() {
    let project = Project::new(&[]);
    fs::create_dir(project.path().join("x.json")).unwrap();
    let work = find::prd_at(&project.path().join("x.json"), &project.path());
    assert!(load(&work).unwrap_err().to_string().ends_with("is a folder"));
    let work = find::prd_at(Path::new("/dev/zero"), &project.path());
    assert!(load(&work).unwrap_err().to_string().ends_with("is no regular file"));
}

/// A project with these files and texts.
fn project(files: &[(&str, &str)]) -> Project {
    let project = Project::new(&files.iter().map(|(path, _)| *path).collect::<Vec<_>>());
    for (path, text) in files {
        fs::write(project.path().join(path), text).unwrap();
    }
    project
}

const BOXES: &str = "# P\n\n## 1. A\n\n- [ ] 1.1 a\n";
const STORIES: &str = r#"{"userStories": [{"id": "A", "title": "a", "passes": false}]}"#;

#[test]
fn a_folder_in_specs_is_what_stands_in_it_and_both_ways_to_name_it_are_said() {
    let project = project(&[
        ("specs/kiro-like/tasks.md", BOXES),
        ("specs/kiro-like/requirements.md", "x"),
        ("specs/both/tasks.md", BOXES),
        ("specs/both/requirements.md", "x"),
        ("specs/both/spec.md", "x"),
        ("specs/plain/tasks.md", BOXES),
    ]);
    assert_eq!(project.found(), ["kiro:both", "speckit:both", "kiro:kiro-like", "speckit:plain"]);
    let unclear = "could be kiro or speckit; say which, as in kiro:specs/both";
    assert_eq!(project.resolve("specs/both"), format!("error: specs/both {unclear}"));
    assert_eq!(project.resolve("specs/both/tasks.md"), format!("error: specs/both/tasks.md {unclear}/tasks.md"));
    assert_eq!(
        project.resolve("both"),
        "error: 2 pieces of work found, name one of them:\n  kiro:both\n  speckit:both"
    );
    for argument in ["kiro:both", "kiro:specs/both", "kiro:specs/both/tasks.md"] {
        assert_eq!(project.resolve(argument), "kiro:both in specs/both/tasks.md", "{argument}");
        let other = argument.replace("kiro", "speckit");
        assert_eq!(project.resolve(&other), "speckit:both in specs/both/tasks.md", "{other}");
    }
}

#[test]
fn a_tasks_md_elsewhere_is_known_by_what_stands_beside_it() {
    let project = project(&[
        ("tasks.md", BOXES),
        ("a/tasks.md", BOXES),
        ("a/spec.md", "x"),
        ("b/tasks.md", BOXES),
        ("b/requirements.md", "x"),
        ("c/tasks.md", BOXES),
        ("c/proposal.md", "x"),
        ("c/plan.md", "x"),
        ("d/tasks.md", BOXES),
        ("e/tasks.md", BOXES),
        ("e/prd.json", STORIES),
        ("f/tasks.md", BOXES),
        ("f/spec.md", "x"),
        ("f/prd.json", STORIES),
    ]);
    for (argument, means) in [
        ("tasks.md", "markdown:tasks.md in tasks.md"),
        ("a", "speckit:a in a/tasks.md"),
        ("a/tasks.md", "speckit:a in a/tasks.md"),
        ("b", "kiro:b in b/tasks.md"),
        ("c", "error: c could be openspec or speckit; say which, as in openspec:c"),
        ("openspec:c", "openspec:tasks.md in c/tasks.md"),
        ("speckit:c", "speckit:c in c/tasks.md"),
        ("d", "openspec:tasks.md in d/tasks.md"),
        ("e", "prd:prd.json in e/prd.json"),
        ("f", "error: 2 pieces of work found, name one of them:\n  prd:f/prd.json\n  speckit:f"),
        ("prd:e", "prd:prd.json in e/prd.json"),
    ] {
        let found = match resolve(Some(argument), &project.path()) {
            Ok(work) => format!("{} in {}", work.id, work.main.strip_prefix(project.path()).unwrap().display()),
            Err(error) => format!("error: {error}"),
        };
        assert_eq!(found, means, "{argument}");
    }
}

#[test]
fn a_file_that_several_formats_can_read_says_which() {
    let issues = r#"[{"number": 1, "title": "a", "state": "OPEN"}]"#;
    let project = project(&[
        ("notes.md", "# P\n\n## A\n\n- [ ] a\n"),
        ("urgent.md", "## High Priority\n\n- [ ] a\n"),
        ("grouped.md", "## 1. Lamps\n\n- [ ] 1.1 a\n"),
        ("phases.md", "## Phase 1\n\n- [ ] T001 [P] a\n"),
        ("asked.md", "- [ ] a\n  - _Requirements: 1.1_\n"),
        ("issues.json", issues),
        ("list.json", STORIES),
        ("other.json", "{}"),
        ("list.yaml", "tasks:\n  - title: a\n"),
        ("ci.yaml", "on: push\n"),
        ("log.jsonl", "{\"a\": 1}\n"),
        ("empty.md", "# x\n"),
        ("log.md", "# Session Log\n\n## Next Steps\n\n- a\n"),
    ]);
    let or = |name: &str, other: &str| {
        format!("error: {name} could be markdown or {other}; say which, as in markdown:{name}")
    };
    for (argument, means) in [
        ("notes.md", "markdown:notes.md in notes.md".to_owned()),
        ("urgent.md", or("urgent.md", "fixplan")),
        ("grouped.md", or("grouped.md", "openspec")),
        ("phases.md", or("phases.md", "speckit")),
        ("asked.md", or("asked.md", "kiro")),
        ("fixplan:notes.md", "fixplan:notes.md in notes.md".to_owned()),
        ("issues.json", "error: issues.json could be prd or github; say which, as in prd:issues.json".to_owned()),
        ("github:issues.json", "github:issues.json in issues.json".to_owned()),
        ("list.json", "prd:list.json in list.json".to_owned()),
        ("other.json", "prd:other.json in other.json".to_owned()),
        ("list.yaml", "yaml:list.yaml in list.yaml".to_owned()),
        ("ci.yaml", "yaml:ci.yaml in ci.yaml".to_owned()),
        ("log.jsonl", "beads:log.jsonl in log.jsonl".to_owned()),
        ("log.md", "flight:log.md in log.md".to_owned()),
    ] {
        assert_eq!(project.resolve(argument), means, "{argument}");
    }
    assert!(project.resolve("empty.md").contains("write FORMAT:PATH"));
}

#[test]
fn work_in_another_folder_is_named_so_that_it_is_found_from_here() {
    let project = project(&[
        ("prd.json", STORIES),
        ("app/prd.json", STORIES),
        ("app/fix_plan.md", BOXES),
        ("app/backlog/tasks/task-1 - A.md", "---\nid: task-1\ntitle: A\n---\n"),
        ("app/docs/implementation/1-a/1.1-b.md", "# 1.1. B\n\n**Status**: Planned\n"),
    ]);
    let error = project.resolve("app");
    let named: Vec<&str> = error.lines().skip(1).map(str::trim).collect();
    assert_eq!(
        named,
        ["prd:app/prd.json", "backlog:app/backlog", "flight:app/docs/implementation", "fixplan:app/fix_plan.md"]
    );
    for name in named {
        assert!(!project.resolve(name).starts_with("error"), "{name}: {}", project.resolve(name));
    }
}

#[test]
fn a_repository_is_no_feature_and_no_part_of_a_backlog_wherever_it_stands() {
    let around = tempfile::tempdir().unwrap();
    let root = around.path().canonicalize().unwrap();
    for (folder, file) in [("specs/app", "tasks.md"), ("backlog/app", "prd.json")] {
        fs::create_dir_all(root.join(folder).join(".git")).unwrap();
        fs::write(root.join(folder).join(file), if file == "prd.json" { STORIES } else { BOXES }).unwrap();
    }
    fs::create_dir(root.join("backlog/tasks")).unwrap();
    let app = root.join("specs/app");
    assert_eq!(resolve(Some("tasks.md"), &app).unwrap().project, app);
    let app = root.join("backlog/app");
    assert_eq!(resolve(Some("."), &app).unwrap().id.to_string(), "prd:prd.json");
}
