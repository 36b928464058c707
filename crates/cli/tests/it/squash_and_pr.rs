//! What becomes of a run's commits: one, or a pull request.

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{called, prd_scene, run, two_stories};

fn landed() -> Scene {
    let script = AgentScript::new()
        .story("Alpha lamp", [call().write("a.txt", "on").complete()])
        .story("Beta lamp", [call().write("b.txt", "on").complete()]);
    let scene = prd_scene(&two_stories(), &script);
    run(&scene, &["--no-gates"]).exits(0);
    scene
}

fn subjects(scene: &Scene) -> Vec<String> {
    scene.git(&["log", "--reverse", "--format=%s"]).lines().map(str::to_owned).collect()
}

#[test]
fn the_commits_of_a_run_become_one_of_the_same_tree_and_the_old_tip_is_kept() {
    let scene = landed();
    let (before, tree) = (scene.git(&["rev-parse", "HEAD"]), scene.git(&["rev-parse", "HEAD^{tree}"]));
    scene.write("mine.txt", "untracked");
    scene.run(&["squash", "--dry-run"]).exits(0).says("2 commits on main become one");
    assert_eq!(scene.git(&["rev-parse", "HEAD"]), before, "it is only shown");
    let done = scene.run(&["squash", "--message", "Lamps"]).exits(0);
    assert_eq!(subjects(&scene).last().map(String::as_str), Some("Lamps"));
    assert_eq!(subjects(&scene).len(), 3, "{:?}", subjects(&scene));
    assert_eq!(scene.git(&["rev-parse", "HEAD^{tree}"]), tree);
    assert_eq!(scene.git(&["status", "--porcelain"]), "?? mine.txt");
    let run = scene.status()["run"].as_str().unwrap().to_owned();
    assert_eq!(scene.git(&["rev-parse", &format!("refs/ralphloop/squashed/{run}")]), before);
    assert!(done.stdout.contains(&format!("refs/ralphloop/squashed/{run}")), "{}", done.stdout);
    let message = scene.git(&["log", "-1", "--format=%B"]);
    for line in ["- feat(S1): Alpha lamp", "Ralphloop-Squashed: S1#1", "Ralphloop-Squashed: S2#1"] {
        assert!(message.contains(line), "{message}");
    }
    // Once more there is nothing to make one.
    scene.run(&["squash"]).exits(2);
    scene.run(&["diff", "S1"]).exits(0);
    let kept = format!("squashed/{run}");
    scene.run(&["clean"]).exits(0).says(&kept).says("as it was before `squash`");
    scene.run(&["clean", "--apply", &kept]).exits(0);
    assert!(!scene.git_succeeds(&["rev-parse", "--verify", "--quiet", &format!("refs/ralphloop/{kept}")]));
}

#[test]
fn commits_of_others_are_in_nobodys_way_and_stop_it_by_name() {
    let scene = landed();
    scene.write("mine.txt", "mine");
    scene.commit_all("Mine");
    let before = scene.git(&["rev-parse", "HEAD"]);
    let refused = scene.run(&["squash"]).exits(2);
    assert!(refused.stderr.contains("Mine"), "{}", refused.stderr);
    assert_eq!(scene.git(&["rev-parse", "HEAD"]), before);
}

#[test]
fn commits_that_a_remote_has_are_left_alone() {
    let scene = landed();
    scene.git(&["init", "-q", "--bare", "../remote.git"]);
    scene.git(&["remote", "add", "origin", "../remote.git"]);
    scene.git(&["push", "-q", "origin", "main"]);
    let refused = scene.run(&["squash"]).exits(2);
    assert!(refused.stderr.contains("origin/main"), "{}", refused.stderr);
}

#[test]
fn work_that_only_commits_tell_of_is_still_known_after_they_became_one() {
    let script = AgentScript::new()
        .story("Alpha lamp", [call().write("a.txt", "on").complete()])
        .story("Beta lamp", [call().write("b.txt", "on").complete()]);
    let scene = crate::world::scene();
    let issues = r#"[{"number":1,"title":"Alpha lamp","body":"","state":"OPEN","labels":[]},
                     {"number":2,"title":"Beta lamp","body":"","state":"OPEN","labels":[]}]"#;
    scene.write("issues.json", issues);
    scene.commit_all("Issues");
    scene.scripted_agent(&script);
    let arguments = ["run", "github:issues.json", "--headless", "--no-gates"];
    scene.run(&arguments).exits(0);
    called(&scene, 2);
    scene.run(&["squash"]).exits(0);
    let again = scene.run(&arguments).exits(0);
    called(&scene, 2);
    assert!(again.stdout.contains("nothing to do"), "{}", again.stdout);
}

/// A remote to push to, and a `gh` that notes how it was called.
fn with_remote(scene: &Scene) {
    scene.git(&["init", "-q", "--bare", "../remote.git"]);
    scene.git(&["remote", "add", "origin", "../remote.git"]);
    let note = scene.outside("gh-called");
    let text = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" >'{0}'\ncat >>'{0}'\necho https://example.invalid/pull/7\n",
        note.display()
    );
    scene.program("gh", &text);
}

#[test]
fn a_pull_request_is_shown_and_nothing_is_pushed_unless_told() {
    let scene = landed();
    with_remote(&scene);
    let shown = scene.run(&["pr"]).exits(4);
    let run = scene.status()["run"].as_str().unwrap().to_owned();
    let push = format!("git push origin refs/heads/main:refs/heads/ralphloop/{run}");
    assert!(shown.stdout.contains(&push) && shown.stdout.contains("gh pr create --head"), "{}", shown.stdout);
    scene.run(&["pr", "--dry-run"]).exits(0);
    assert_eq!(scene.git(&["ls-remote", "origin"]), "");
    assert!(!scene.outside("gh-called").exists());

    let opened = scene.run(&["pr", "--yes"]).exits(0);
    assert!(opened.stdout.contains("https://example.invalid/pull/7"), "{}", opened.stdout);
    let pushed = scene.git(&["ls-remote", "origin"]);
    assert_eq!(pushed.split_whitespace().next(), Some(scene.git(&["rev-parse", "HEAD"]).trim()));
    assert!(pushed.contains(&format!("refs/heads/ralphloop/{run}")), "{pushed}");
    let called = std::fs::read_to_string(scene.outside("gh-called")).unwrap();
    assert!(called.starts_with("pr\ncreate\n") && called.contains("- [x] S1 Alpha lamp"), "{called}");
}

#[test]
fn without_a_remote_or_gh_the_way_out_is_said() {
    let scene = landed();
    let refused = scene.run(&["pr"]).exits(6);
    assert!(refused.stderr.contains("git remote add origin"), "{}", refused.stderr);
    scene.git(&["remote", "add", "origin", "../remote.git"]);
    let refused = scene.run(&["pr"]).exits(6);
    assert!(refused.stderr.contains("https://cli.github.com"), "{}", refused.stderr);
}

#[test]
fn what_gh_says_when_it_refuses_is_passed_on() {
    let scene = landed();
    with_remote(&scene);
    scene.program("gh", "#!/bin/sh\necho 'a pull request already exists' >&2\nexit 1\n");
    let refused = scene.run(&["pr", "--yes"]).exits(6);
    assert!(refused.stderr.contains("a pull request already exists"), "{}", refused.stderr);
}
