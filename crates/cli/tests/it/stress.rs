//! Many stories at once, killed again and again: whatever landed is whole, whatever did not is accounted for, and the
//! branch was green at every commit.

use std::time::Duration;

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{PrdStory, prd_text, scene, start, story};

/// Stories, unless the environment says otherwise.
const USUALLY: usize = 24;
/// The run is killed once for so many stories.
const STORIES_A_KILL: usize = 6;

/// A third of the stories writes the same line, a tenth fails, the others have files of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Own,
    Shared,
    Fails,
}

fn kind(number: usize) -> Kind {
    match number {
        n if n % 10 == 7 => Kind::Fails,
        n if n % 3 == 0 => Kind::Shared,
        _ => Kind::Own,
    }
}

fn name(number: usize) -> String {
    format!("Lamp number {number:03}.")
}

/// How many stories there are.
fn count() -> usize {
    std::env::var("RALPHLOOP_STRESS").ok().and_then(|count| count.parse().ok()).unwrap_or(USUALLY)
}

fn many_stories(count: usize) -> Scene {
    let scene = scene();
    let stories: Vec<PrdStory> = (1..=count).map(|n| story(&format!("S{n}"), &name(n))).collect();
    scene.write("prd.json", prd_text(&stories));
    scene.write("shared.txt", "first\nsecond\nthird\n");
    scene.commit_all("Plan");
    // In conflict it keeps both sides, as the prompt asks.
    let resolve = "if grep -q '^<<<<<<<' shared.txt; then sed -i '/^<<<<<<<\\|^=======\\|^>>>>>>>/d' shared.txt; else ";
    let script = (1..=count).fold(AgentScript::new(), |script, n| {
        let own = format!("echo {n} >own-{n}.txt");
        let steps = match kind(n) {
            Kind::Own => call().shell(&own).complete(),
            Kind::Shared => call().shell(&format!("{resolve} sed -i '2s/$/ {n}./' shared.txt; {own}; fi")).complete(),
            Kind::Fails => call().shell(&format!("{own}; echo >broken.txt")).complete(),
        };
        script.story(&name(n), [steps])
    });
    scene.scripted_agent(&script);
    scene
}

#[test]
fn many_stories_with_conflicts_failures_and_kills_are_all_accounted_for() {
    let count = count();
    let scene = many_stories(count);
    let flags = ["--jobs", "8", "--gate", "! test -e broken.txt", "--max-retries", "1", "--max-repairs", "0"];
    let flags = [&flags[..], &["--on-exhausted", "skip"]].concat();
    for kill in 0..count / STORIES_A_KILL {
        let mut running = start(&scene, &flags);
        // At another point of the work each time.
        std::thread::sleep(Duration::from_millis(1500 + 700 * (kill as u64 % 5)));
        if !running.is_running() {
            running.wait();
            break;
        }
        running.crash();
    }
    let end = start(&scene, &flags).wait();
    assert!(matches!(end.code(), Some(0 | 1)), "{end}");
    every_commit_is_green(&scene);
    every_story_is_accounted_for(&scene, count);
    let places = scene.git(&["worktree", "list"]);
    assert_eq!(places.lines().count(), 1, "{places}\n{}", scene.run(&["log"]).stdout);
    scene.tree_is_clean();
    scene.nothing_runs();
}

fn every_commit_is_green(scene: &Scene) {
    for commit in scene.landed() {
        let files = scene.git(&["ls-tree", "--name-only", &commit.hash]);
        assert!(!files.lines().any(|file| file == "broken.txt"), "{commit:?}");
        let shared = scene.file_in(&commit.hash, "shared.txt");
        assert!(!shared.contains("<<<<<<<") && shared.starts_with("first\nsecond"), "{commit:?}: {shared}");
    }
}

fn every_story_is_accounted_for(scene: &Scene, count: usize) {
    let status = scene.status();
    let stories = status["stories"].as_array().unwrap();
    assert_eq!(stories.len(), count, "{status:#}");
    let landed = scene.landed();
    let shared = scene.file_in("HEAD", "shared.txt");
    for n in 1..=count {
        let id = format!("S{n}");
        let story = stories.iter().find(|story| story["id"] == id.as_str()).unwrap();
        let commits = landed.iter().filter(|commit| commit.trailer("Story") == Some(&id)).count();
        let is_there = scene.git_succeeds(&["cat-file", "-e", &format!("HEAD:own-{n}.txt")]);
        match (story["state"].as_str(), kind(n)) {
            (Some("passed"), kind) => {
                assert!(kind != Kind::Fails, "{story:#}");
                assert_eq!((commits, is_there), (1, true), "{story:#}");
                assert!(kind != Kind::Shared || shared.contains(&format!(" {n}.")), "{n} is not in {shared}");
            }
            (Some("failed"), kind) => {
                assert!(kind != Kind::Own, "{story:#}");
                assert_eq!((commits, is_there), (0, false), "{story:#}");
                assert!(story["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{story:#}");
                assert!(!story["kept"].as_array().is_none_or(Vec::is_empty), "its work is gone: {story:#}");
            }
            (state, _) => panic!("{id} is {state:?}: {story:#}"),
        }
    }
    let passed = stories.iter().filter(|story| story["state"] == "passed").count();
    assert!(passed >= count * 2 / 3, "only {passed} of {count} passed");
}
