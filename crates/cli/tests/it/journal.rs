//! A damaged journal is rebuilt or refused, with its file and line, and never guessed at.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{PrdStory, called, landed_once, passes, prd_text, run, scene, start, states, two_stories};

const GATES: &[&str] = &["--gate", "test -f base.txt", "--command-timeout", "600"];

fn well() -> AgentScript {
    AgentScript::new()
        .story("Alpha lamp", [call().write("a.txt", "on").complete()])
        .story("Beta lamp", [call().write("b.txt", "on").complete()])
}

/// The first story has landed, and the run has died while the agent worked on the second.
fn dead_in_the_second_story() -> (Scene, PathBuf) {
    dead_in_the_second_story_beside(&[])
}

/// The same, with further `prd.json` files.
fn dead_in_the_second_story_beside(others: &[(&str, &[PrdStory])]) -> (Scene, PathBuf) {
    let scene = scene();
    scene.write("prd.json", prd_text(&two_stories()));
    for (path, stories) in others {
        scene.write(path, prd_text(stories));
    }
    scene.commit_all("Plan");
    let begun = scene.outside("begun");
    scene.scripted_agent(
        &AgentScript::always([call().write("half.txt", "x").write("base.txt", "spoilt").touch(&begun).hang()])
            .story("Alpha lamp", [call().write("a.txt", "on").complete()]),
    );
    let running = start(&scene, GATES);
    scene.wait_for_file(&begun);
    running.crash();
    scene.nothing_runs();
    scene.scripted_agent(&well());
    let journal = scene.journals().pop().unwrap();
    (scene, journal)
}

/// Spoils line `number` (from 1) of a file.
fn spoil(path: &PathBuf, number: usize) {
    let text = fs::read_to_string(path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[number - 1] = "{\"v\":1,\"seq\":1,\"ti";
    fs::write(path, lines.join("\n") + "\n").unwrap();
}

/// Whatever has happened to the journal, `run` says so and names the file, and the work ends well: each story once, the
/// interrupted attempt's work kept and not in the tree.
fn ends_well(scene: &Scene, journal: &std::path::Path, says: &str) {
    let outcome = run(scene, GATES).exits(0);
    outcome.says(&journal.display().to_string()).says(says);
    landed_once(scene, "S1", "a.txt");
    landed_once(scene, "S2", "b.txt");
    assert_eq!(scene.calls_of("Alpha lamp").len(), 1, "what has landed is not done again");
    states(scene, &[("S1", "passed"), ("S2", "passed")]);
    scene.tree_is_clean();
    assert_eq!(scene.read("base.txt"), "base\n");
    let kept = scene.kept_refs();
    assert!(kept.iter().any(|r| scene.git_succeeds(&["cat-file", "-e", &format!("{r}:half.txt")])), "{kept:?}");
    scene.nothing_runs();
}

#[test]
fn a_journal_damaged_in_its_middle_is_told_with_its_line_and_the_work_goes_on_in_a_new_run() {
    let (scene, journal) = dead_in_the_second_story();
    spoil(&journal, 3);
    ends_well(&scene, &journal, ":3: the journal is damaged");
    assert_eq!(scene.journals().len(), 2);
}

#[test]
fn an_empty_a_zeroed_and_a_deleted_journal_are_told_and_the_work_goes_on() {
    for damage in ["empty", "zeroed", "deleted"] {
        let (scene, journal) = dead_in_the_second_story();
        match damage {
            "empty" => fs::write(&journal, "").unwrap(),
            "zeroed" => {
                let length = fs::metadata(&journal).unwrap().len();
                fs::write(&journal, vec![0; usize::try_from(length).unwrap()]).unwrap();
            }
            _ => fs::remove_file(&journal).unwrap(),
        }
        ends_well(&scene, &journal, "cannot be gone on with");
    }
}

#[test]
fn status_log_runs_and_resume_say_what_is_wrong_with_a_damaged_journal() {
    let (scene, journal) = dead_in_the_second_story();
    spoil(&journal, 2);
    let place = format!("{}:2", journal.display());
    for arguments in [&["status"][..], &["status", "--json"], &["log"], &["resume", "--headless"]] {
        let outcome = scene.run(arguments).exits(6);
        outcome.says(&place).says("damaged").says("ralphloop run");
    }
    let runs = scene.run(&["runs"]).exits(0);
    runs.says("damaged").says(&place);
    assert_eq!(scene.run(&["runs", "--json"]).exits(0).json()[0]["state"], "damaged");
    called(&scene, 2);
}

/// A hook that hangs the first time, after the commit was made.
fn hanging_post_commit(scene: &Scene) -> PathBuf {
    let marker = scene.outside("hook");
    let hook = scene.path(".git/hooks/post-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, format!("#!/bin/sh\n[ -e '{0}' ] && exit 0\ntouch '{0}'\nexec sleep 1000\n", marker.display()))
        .unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    marker
}

#[test]
fn a_story_whose_commit_is_all_that_tells_of_it_is_not_done_again_although_journal_and_spec_do_not_know() {
    let scene = scene();
    // The spec is in no commit, so that its mark is not in the story's commit either.
    fs::write(scene.path(".git/info/exclude"), "prd.json\n").unwrap();
    scene.write("prd.json", prd_text(&two_stories()));
    scene.scripted_agent(&well());
    let marker = hanging_post_commit(&scene);
    scene.git(&["update-ref", "refs/testkit/scene-start", "HEAD"]);
    let running = start(&scene, GATES);
    scene.wait_for_file(&marker);
    running.crash();
    scene.nothing_runs();
    // Of a crash at any time the spec may lack the mark.
    scene.write("prd.json", prd_text(&two_stories()));
    let journal = scene.journals().pop().unwrap();
    spoil(&journal, 2);
    let outcome = run(&scene, GATES).exits(0);
    outcome.says(":2: the journal is damaged").says("story S1 has landed");
    assert_eq!(scene.calls_of("Alpha lamp").len(), 1);
    landed_once(&scene, "S1", "a.txt");
    landed_once(&scene, "S2", "b.txt");
    assert!(passes(&scene, "S1") && passes(&scene, "S2"));
}

#[test]
fn a_run_of_other_work_puts_back_what_an_interrupted_attempt_left_and_that_run_can_still_go_on() {
    let (scene, _) = dead_in_the_second_story_beside(&[("other/prd.json", &[crate::world::story("O1", "Other lamp")])]);
    scene.scripted_agent(&well().story("Other lamp", [call().write("o.txt", "on").complete()]));
    let other = scene.run(&["run", "prd:other/prd.json", "--headless", "--no-gates"]).exits(0);
    assert_eq!(scene.calls_of("Beta lamp").len(), 0, "work of the same name in another folder is other work");
    other.says("left in the tree is kept at refs/ralphloop/");
    assert!(!scene.path("half.txt").exists());
    assert_eq!(scene.read("base.txt"), "base\n");
    let first = scene.journals().remove(0);
    let id = first.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    scene.run(&["resume", &id, "--headless"]).exits(0);
    landed_once(&scene, "S1", "a.txt");
    landed_once(&scene, "S2", "b.txt");
    assert_eq!(scene.calls_of("Alpha lamp").len(), 1);
}

#[test]
fn a_folder_that_cannot_be_written_is_named_before_an_agent_is_paid() {
    let scene = scene();
    scene.write("prd.json", prd_text(&two_stories()));
    scene.commit_all("Plan");
    scene.scripted_agent(&well());
    // A file where a folder has to be: that stops root as well.
    let runs = scene.path(".git/ralphloop");
    fs::create_dir_all(&runs).unwrap();
    fs::write(runs.join("runs"), "in the way").unwrap();
    let outcome = run(&scene, GATES).exits(6);
    outcome.says(&runs.join("runs").display().to_string());
    called(&scene, 0);
}

#[test]
fn a_full_disk_stops_the_run_at_once_and_the_next_run_goes_on() {
    let scene = scene();
    let Some(small) = SmallDisk::mount(&scene) else { return };
    let repo = small.clone_of(&scene);
    let git = |arguments: &[&str]| scene.git(&[&["-C", repo.to_str().unwrap()][..], arguments].concat());
    let begun = scene.outside("filled");
    let fill = format!("head -c 30000000 /dev/zero > fill.bin 2>/dev/null; touch '{}'", begun.display());
    let filling = call().write("b.txt", "on").shell(&fill).flood(200_000).complete();
    scene.scripted_agent(&AgentScript::always([filling]).story("Alpha lamp", [call().write("a.txt", "on").complete()]));
    let arguments = ["run", "prd.json", "--headless", "--no-gates"];
    let stopped = scene.start_in(&repo, &arguments).wait();
    assert!(!matches!(stopped.code(), Some(0 | 101) | None), "{stopped}");
    let stopped = stopped.says_any(&["no space left", "disk"]);
    assert!(begun.exists() && !stopped.stdout.is_empty(), "{stopped}");
    fs::remove_file(repo.join("fill.bin")).ok();
    let status = scene.start_in(&repo, &["status", "--json"]).wait().exits(0).json();
    assert_eq!(status["stories"][0]["state"], "passed", "{status:#}");
    scene.scripted_agent(&well());
    scene.start_in(&repo, &arguments).wait().exits(0);
    let subjects = git(&["log", "--format=%s"]);
    assert_eq!(subjects.lines().filter(|s| s.starts_with("feat(")).count(), 2, "{subjects}");
    assert_eq!(git(&["status", "--porcelain"]), "");
}

#[test]
fn a_gate_that_fails_on_a_full_disk_is_no_failure_of_the_story() {
    let scene = scene();
    let Some(small) = SmallDisk::mount(&scene) else { return };
    let repo = small.clone_of(&scene);
    scene.scripted_agent(&well());
    // It takes away what it has written, as programs do with their temporary files.
    let full = scene.outside("full");
    let gate = format!(
        "test ! -e '{}' || test ! -e a.txt || {{ head -c 30000000 /dev/zero >fill 2>/dev/null; sleep 2; rm fill; exit 1; }}",
        full.display()
    );
    fs::write(&full, "").unwrap();
    let arguments = ["run", "prd.json", "--headless", "--gate", &gate];
    scene.start_in(&repo, &arguments).wait().exits(6).says("for want of room");
    let status = scene.start_in(&repo, &["status", "--json"]).wait().exits(0).json();
    assert_eq!(status["stories"][0]["state"], "pending", "{status:#}");
    fs::remove_file(&full).unwrap();
    scene.start_in(&repo, &["resume"]).wait().exits(0);
    called(&scene, 3);
}

/// A file system on which little has room; unmounted when the test is over.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Nothing where this user may not mount: only root can.
    fn mount(scene: &Scene) -> Option<Self> {
        let small = scene.outside("small");
        fs::create_dir(&small).unwrap();
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=12m", "tmpfs"])
            .arg(&small)
            .status()
            .is_ok_and(|status| status.success());
        mount.then_some(Self(small))
    }

    /// The scene's repository there, with two stories.
    fn clone_of(&self, scene: &Scene) -> PathBuf {
        let repo = self.0.join("repo");
        scene.git(&["clone", "--quiet", ".", &repo.display().to_string()]);
        fs::write(repo.join("prd.json"), prd_text(&two_stories())).unwrap();
        let git = |arguments: &[&str]| scene.git(&[&["-C", repo.to_str().unwrap()][..], arguments].concat());
        git(&["add", "--all"]);
        git(&["commit", "--quiet", "--message", "Plan"]);
        repo
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(std::process::Command::new("umount").arg("-l").arg(&self.0).status());
    }
}
