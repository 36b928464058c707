//! A person edits the work while the run goes on: what is added is picked up, what is taken out is dropped, what is
//! renamed stays what it was, and nothing is done twice or lost.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{called, landed_once, scene, states};

/// A story as a person sees it: number, title, done.
type Told = (usize, &'static str, bool);

/// A format: how the work is named, and its files for these stories.
struct Format {
    work: &'static str,
    id: fn(usize) -> String,
    files: fn(&[Told]) -> Vec<(String, String)>,
    /// A file that nobody can read.
    broken: &'static str,
}

fn joined(stories: &[Told], head: &str, each: impl Fn(&Told) -> String) -> String {
    stories.iter().fold(head.to_owned(), |text, story| text + &each(story))
}

fn tick(done: bool) -> char {
    if done { 'x' } else { ' ' }
}

fn sections(head: &'static str, stories: &[Told]) -> String {
    joined(stories, head, |(n, title, done)| format!("\n## {n}. {title}\n\n- [{}] {n}.1 Do it\n", tick(*done)))
}

const PRD: Format = Format {
    work: "prd.json",
    id: |n| format!("US-{n}"),
    files: |stories| {
        let each =
            |(n, title, done): &Told| format!("{{\"id\": \"US-{n}\", \"title\": \"{title}\", \"passes\": {done}}}");
        let stories: Vec<String> = stories.iter().map(each).collect();
        vec![("prd.json".into(), format!("{{\"userStories\": [\n{}\n]}}\n", stories.join(",\n")))]
    },
    broken: "{\"userStories\": [\n",
};

const OPENSPEC: Format = Format {
    work: "openspec:lamps",
    id: |n| n.to_string(),
    files: |stories| {
        let proposal = ("openspec/changes/lamps/proposal.md".into(), "# Lamps\n".into());
        vec![("openspec/changes/lamps/tasks.md".into(), sections("", stories)), proposal]
    },
    broken: "# no box left\n",
};

const MARKDOWN: Format = Format {
    work: "PRD.md",
    id: |n| n.to_string(),
    files: |stories| vec![("PRD.md".into(), sections("# Lamps\n", stories))],
    broken: "<<<<<<< ours\n- [ ] a\n=======\n- [ ] b\n>>>>>>> theirs\n",
};

const SPEC_KIT: Format = Format {
    work: "specs/001-lamps/tasks.md",
    id: |n| n.to_string(),
    files: |stories| {
        let each = |(n, title, done): &Told| {
            format!("\n## Phase {n}: {title}\n\n- [{}] T00{n} Do it\n", if *done { 'X' } else { ' ' })
        };
        vec![("specs/001-lamps/tasks.md".into(), joined(stories, "# Tasks\n", each))]
    },
    broken: "",
};

const KIRO: Format = Format {
    work: "kiro:lamps",
    id: |n| n.to_string(),
    files: |stories| {
        let each = |(n, title, done): &Told| format!("- [{}] {n}. {title}\n", tick(*done));
        vec![(".kiro/specs/lamps/tasks.md".into(), joined(stories, "# Plan\n\n", each))]
    },
    broken: "# Plan\n",
};

const YAML: Format = Format {
    work: "tasks.yaml",
    id: |n| format!("t{n}"),
    files: |stories| {
        let each = |(n, title, done): &Told| format!("  - id: t{n}\n    title: {title}\n    completed: {done}\n");
        vec![("tasks.yaml".into(), joined(stories, "tasks:\n", each))]
    },
    broken: "tasks:\n\t- title: a\n",
};

const BACKLOG: Format = Format {
    work: "backlog",
    id: |n| format!("TASK-{n}"),
    files: |stories| {
        let file = |(n, title, done): &Told| {
            let status = if *done { "Done" } else { "To Do" };
            let text = format!("---\nid: TASK-{n}\ntitle: {title}\nstatus: {status}\n---\n");
            (format!("backlog/tasks/task-{n} - x.md"), text)
        };
        stories.iter().map(file).collect()
    },
    broken: "---\nid: TASK-1\ntitle: a: b: c\n---\n",
};

/// The person's editor: the files as they are to be now, those of stories that are gone removed.
fn edit(scene: &Scene, format: &Format, before: &[Told], now: &[Told]) {
    let files = (format.files)(now);
    for (path, _) in (format.files)(before) {
        if files.iter().all(|(kept, _)| *kept != path) {
            fs::remove_file(scene.path(&path)).unwrap();
        }
    }
    for (path, text) in files {
        scene.write(&path, text);
    }
}

/// A hook that says once that a story has landed, and waits for the person.
fn wait_after_the_first_landing(scene: &Scene) -> (PathBuf, PathBuf) {
    let (landed, go_on) = (scene.outside("landed"), scene.outside("landed-go-on"));
    let hook = scene.path(".git/hooks/post-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let text = format!(
        "#!/bin/sh\n[ -e '{0}' ] && exit 0\ntouch '{0}'\nwhile [ ! -e '{1}' ]; do sleep 0.05; done\n",
        landed.display(),
        go_on.display()
    );
    fs::write(&hook, text).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    (landed, go_on)
}

const START: &[Told] = &[(1, "Alpha", false), (2, "Beta", false), (3, "Gamma", false)];

fn ready(format: &Format) -> Scene {
    let scene = scene();
    edit(&scene, format, &[], START);
    scene.commit_all("Plan");
    scene
}

fn picks_up_every_edit(format: &Format) {
    let scene = ready(format);
    let (begun, go_on) = (scene.outside("begun"), scene.outside("go-on"));
    let first = call().write("1.txt", "on").touch(&begun).wait_for(&go_on).complete();
    let others = (2..=4).map(|n| call().write(&format!("{n}.txt"), "on").complete());
    scene.scripted_agent(&AgentScript::always(std::iter::once(first).chain(others)));
    let (landed, on_again) = wait_after_the_first_landing(&scene);
    let running = scene.start(&["run", format.work, "--headless", "--command-timeout", "120"]);

    scene.wait_for_file(&begun);
    let while_it_works: &[Told] =
        &[(1, "Alpha", false), (2, "Beta anew", false), (3, "Gamma", false), (4, "Delta", false)];
    edit(&scene, format, START, while_it_works);
    fs::write(&go_on, "").unwrap();

    scene.wait_for_file(&landed);
    // One is taken out, and the mark of the finished one is lost.
    let between: &[Told] = &[(1, "Alpha too", false), (2, "Beta anew", false), (4, "Delta", false)];
    edit(&scene, format, while_it_works, between);
    fs::write(&on_again, "").unwrap();

    let outcome = running.wait().exits(0).says(&format!("Taken out of the spec and not run: {}", (format.id)(3)));
    called(&scene, 3);
    let id = format.id;
    for (number, file) in [(1, "1.txt"), (2, "2.txt"), (4, "3.txt")] {
        landed_once(&scene, &id(number), file);
    }
    let subjects = scene.landed_subjects().join("\n");
    assert!(subjects.contains("Beta anew") && subjects.contains("Delta"), "{subjects}\n{outcome}");
    states(&scene, &[(&id(1), "passed"), (&id(2), "passed"), (&id(4), "passed")]);
}

fn pauses_at_a_broken_edit(format: &Format) {
    let scene = ready(format);
    let calls = (1..=3).map(|n| call().write(&format!("{n}.txt"), "on").complete());
    scene.scripted_agent(&AgentScript::always(calls));
    let (landed, go_on) = wait_after_the_first_landing(&scene);
    let running = scene.start(&["run", format.work, "--headless", "--command-timeout", "120"]);
    scene.wait_for_file(&landed);
    let (file, _) = (format.files)(START).swap_remove(0);
    scene.write(&file, format.broken);
    fs::write(&go_on, "").unwrap();
    running.wait().exits(4).says("can no longer be read").says("resume");
    called(&scene, 1);
    assert_eq!(scene.read(&file), format.broken, "what the person wrote is left alone");

    scene.run(&["resume", "--headless"]).exits(2);
    called(&scene, 1);
    edit(&scene, format, START, &[(1, "Alpha", true), (2, "Beta", false), (3, "Gamma", false)]);
    scene.run(&["resume", "--headless"]).exits(0);
    called(&scene, 3);
    for (number, file) in [(1, "1.txt"), (2, "2.txt"), (3, "3.txt")] {
        landed_once(&scene, &(format.id)(number), file);
    }
    scene.tree_is_clean();
}

#[test]
fn a_prd_json_that_is_edited_meanwhile() {
    picks_up_every_edit(&PRD);
    pauses_at_a_broken_edit(&PRD);
}

#[test]
fn a_change_of_openspec_that_is_edited_meanwhile() {
    picks_up_every_edit(&OPENSPEC);
    pauses_at_a_broken_edit(&OPENSPEC);
}

#[test]
fn a_task_list_that_is_edited_meanwhile() {
    picks_up_every_edit(&MARKDOWN);
    pauses_at_a_broken_edit(&MARKDOWN);
}

#[test]
fn a_feature_of_spec_kit_that_is_edited_meanwhile() {
    picks_up_every_edit(&SPEC_KIT);
    pauses_at_a_broken_edit(&SPEC_KIT);
}

#[test]
fn a_spec_of_kiro_that_is_edited_meanwhile() {
    picks_up_every_edit(&KIRO);
    pauses_at_a_broken_edit(&KIRO);
}

#[test]
fn a_yaml_list_that_is_edited_meanwhile() {
    picks_up_every_edit(&YAML);
    pauses_at_a_broken_edit(&YAML);
}

#[test]
fn a_backlog_that_is_edited_meanwhile() {
    picks_up_every_edit(&BACKLOG);
    pauses_at_a_broken_edit(&BACKLOG);
}
