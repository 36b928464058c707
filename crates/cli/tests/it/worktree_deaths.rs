//! Worktrees whose run died, or whose git was ended, at the worst moment: none is left over, taken for whole, or somebody
//! else's.

use std::fs;
use std::path::Path;

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{landed_once, passes, prd_scene, run, start, story, two_stories};

/// The worktrees of the repository but for the checkout.
fn worktrees(scene: &Scene) -> Vec<String> {
    scene.git(&["worktree", "list"]).lines().skip(1).map(str::to_owned).collect()
}

/// Whatever lies in the folders that repositories have below `folder`.
fn places(folder: &Path) -> Vec<std::path::PathBuf> {
    let own = fs::read_dir(folder).into_iter().flatten().map(|own| own.unwrap().path());
    own.flat_map(|own| fs::read_dir(own).unwrap()).map(|item| item.unwrap().path()).collect()
}

/// The lanes of all runs that lead to a place of a pool.
fn linked_lanes(scene: &Scene) -> usize {
    let runs =
        fs::read_dir(scene.path(".git/ralphloop/runs")).unwrap().map(|run| run.unwrap().path().join("worktrees"));
    let lanes = runs.flat_map(|lanes| fs::read_dir(lanes).into_iter().flatten()).map(Result::unwrap);
    lanes.filter(|lane| lane.file_type().unwrap().is_symlink()).count()
}

/// Runs with `flags` and kills the run as soon as git has carried out the command that has these words in it.
fn killed_after(scene: &Scene, words: &str, flags: &[&str]) {
    killed_in_place_of(scene, words, "git \"$@\"", flags);
}

/// The same, where this is done in place of that git, as far as it got.
fn killed_in_place_of(scene: &Scene, words: &str, done: &str, flags: &[&str]) {
    let (real, held) = (scene.outside("tools/git"), scene.outside("held"));
    let (real, held) = (real.display(), held.display());
    let done = format!("git() {{ '{real}' \"$@\"; }}; {done}");
    let waits = format!("case \"$*\" in *'{words}'*) {done}; touch '{held}'; sleep 600;; esac");
    scene.program("git", &format!("#!/bin/sh\n{waits}\nexec '{real}' \"$@\"\n"));
    let running = start(scene, flags);
    scene.wait_for_file(&scene.outside("held"));
    running.crash();
    scene.program("git", &format!("#!/bin/sh\nexec '{real}' \"$@\"\n"));
}

#[test]
fn a_worktree_that_was_being_taken_away_at_a_kill_is_gone_once_the_next_run_has_started() {
    for is_pooled in [false, true] {
        let script = AgentScript::always([call().write("a.txt", "a").complete()]);
        let scene = prd_scene(&[story("S1", "Alpha lamp")], &script);
        let folder = scene.outside("trees");
        let named = ["--worktree-folder", folder.to_str().unwrap()];
        let flags = [&["--worktree", "--no-gates"][..], if is_pooled { &named[..] } else { &[] }].concat();
        killed_after(&scene, "worktree lock", &flags);
        assert_eq!(worktrees(&scene).len(), 1, "it is still there");
        run(&scene, &[&flags[..], &["--fresh"]].concat()).exits(0);
        landed_once(&scene, "S1", "a.txt");
        assert_eq!((worktrees(&scene), places(&folder)), (Vec::new(), Vec::new()));
    }
}

#[test]
fn a_run_that_is_gone_on_with_does_not_work_where_another_has_its_worktree_now() {
    let fails = [call().failed("not yet"), call().write("a.txt", "a").complete()];
    let script =
        AgentScript::new().story("Alpha lamp", fails).story("Beta lamp", [call().write("b.txt", "b").complete()]);
    let scene = prd_scene(&[story("S1", "Alpha lamp"), story("S2", "Beta lamp")], &script);
    let folder = scene.outside("trees");
    let pooled = ["--worktree", "--worktree-folder", folder.to_str().unwrap(), "--no-gates", "--max-retries", "0"];
    // The worktree is gone, and the lane of the dead run still leads to its place.
    killed_after(&scene, "worktree remove", &[&pooled[..], &["--story", "S1"]].concat());
    let kept = [&pooled[..], &["--worktree-keep", "1"]].concat();
    run(&scene, &[&kept[..], &["--fresh", "--story", "S2"]].concat()).exits(0);
    let of_the_second = worktrees(&scene);
    assert_eq!((of_the_second.len(), linked_lanes(&scene)), (1, 0));
    run(&scene, &[&kept[..], &["--resume", "--story", "S1"]].concat()).exits(0);
    landed_once(&scene, "S1", "a.txt");
    // It took the place as any run does, and gave it back.
    assert_eq!(worktrees(&scene).len(), 1, "was {of_the_second:?}");
    assert!(!places(&folder).iter().any(|item| item.extension().is_some_and(|kind| kind == "run")));
}

#[test]
fn a_worktree_that_git_was_ended_in_the_middle_of_is_not_taken_for_whole() {
    let script = AgentScript::always([call().shell("cat slow.txt >seen.txt").complete()]);
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &script);
    let folder = scene.outside("trees");
    scene.write(".gitattributes", "slow.txt filter=slow\n");
    scene.write("slow.txt", "slow\n");
    scene.commit_all("A file that takes its time");
    scene.git(&["config", "filter.slow.smudge", "trap '' TERM; sleep 100"]);
    let flags = ["--worktree", "--worktree-folder", folder.to_str().unwrap(), "--no-gates"];
    run(&scene, &[&flags[..], &["--command-timeout", "1s"]].concat()).exits(6).says("did not end within");
    assert_eq!((worktrees(&scene), places(&folder)), (Vec::new(), Vec::new()), "what was begun is gone at the end");
    scene.git(&["config", "filter.slow.smudge", "cat"]);
    run(&scene, &[&flags[..], &["--resume"]].concat()).exits(0);
    assert_eq!(scene.file_in("HEAD", "seen.txt"), "slow");
    assert_eq!((worktrees(&scene), places(&folder)), (Vec::new(), Vec::new()));
}

#[test]
fn worktrees_of_a_killed_process_go_with_the_run_although_others_are_to_be_kept_now() {
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &AgentScript::new());
    let begun = scene.outside("begun");
    scene.scripted_agent(&AgentScript::always([call().touch(&begun).hang(), call().write("a.txt", "a").complete()]));
    let flags = ["--worktree", "--no-gates"];
    let first = start(&scene, &flags);
    scene.wait_for_file(&begun);
    first.crash();
    run(&scene, &[&flags[..], &["--resume", "--worktree-keep", "2"]].concat()).exits(0);
    landed_once(&scene, "S1", "a.txt");
    assert_eq!(worktrees(&scene), Vec::<String>::new(), "it lies in the folder of a run that is over");
}

#[test]
fn a_worktree_that_was_moved_half_way_at_a_kill_is_moved_all_the_way() {
    // The third waits for both, in the lane of the first, which the second has overtaken.
    let script = AgentScript::new()
        .story("Alpha lamp", [call().write("a.txt", "on").complete()])
        .story("Beta lamp", [call().shell("sleep 1").write("b.txt", "on").complete()])
        .story("Gamma lamp", [call().write("c.txt", "on").complete()]);
    let third = story("S3", "Gamma lamp").after(&["S1", "S2"]);
    let scene = prd_scene(&[story("S1", "Alpha lamp"), story("S2", "Beta lamp"), third], &script);
    killed_after(&scene, "checkout --quiet --detach", &["--jobs", "2", "--no-gates"]);
    // Git writes the files first, then the index and where HEAD is.
    let tip = scene.git(&["rev-parse", "main"]);
    let moved: Vec<String> = worktrees(&scene)
        .iter()
        .filter_map(|line| line.split(' ').next())
        .filter(|lane| scene.git(&["-C", lane, "rev-parse", "HEAD"]) == tip)
        .map(str::to_owned)
        .collect();
    assert!(!moved.is_empty());
    for lane in &moved {
        scene.git(&["-C", lane, "reset", "--quiet", "--mixed", "HEAD~1"]);
        scene.git(&["-C", lane, "checkout", "--quiet", "HEAD", "--", "prd.json"]);
        assert!(scene.git(&["-C", lane, "status", "--porcelain"]).starts_with("?? "), "a new file is there already");
    }
    scene.run(&["resume", "--headless"]).exits(0);
    for (number, file) in (1..).zip(["a.txt", "b.txt", "c.txt"]) {
        landed_once(&scene, &format!("S{number}"), file);
    }
    assert_eq!(worktrees(&scene), Vec::<String>::new());
}

#[test]
fn a_checkout_that_was_moved_half_way_at_a_kill_is_put_back_before_the_work_is_looked_for_in_it() {
    let script = AgentScript::always([call().write("a.txt", "on and on\n").write("base.txt", "a\nb\n").complete()]);
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &script);
    scene.write("mine.txt", "of the user\n");
    // Git takes a file away before it writes the new one, from its first byte on.
    let half_way = "rm prd.json; printf 'on and' >a.txt; : >base.txt";
    killed_in_place_of(&scene, "merge --ff-only", half_way, &["--worktree", "--no-gates"]);
    assert!(!scene.path("prd.json").exists());
    scene.run(&["run", "prd.json", "--headless", "--worktree", "--no-gates"]).exits(0);
    landed_once(&scene, "S1", "a.txt");
    assert_eq!(scene.read("base.txt"), "a\nb\n");
    assert_eq!(scene.git(&["status", "--porcelain"]), "?? mine.txt");
}

#[test]
fn a_merge_that_was_cut_off_brings_no_older_spec_back_into_the_worktree() {
    let script = AgentScript::new()
        .story("Alpha lamp", [call().write("a.txt", "on").complete()])
        .story("Beta lamp", [call().shell("sleep 1").write("b.txt", "on").complete()]);
    let scene = prd_scene(&two_stories(), &script);
    // The worktree stands on the newer commit then, and how the spec reads there is not noted yet.
    let first = scene.outside("first");
    let the_second_time = format!("git \"$@\"; [ -e '{0}' ] || {{ touch '{0}'; exit; }}", first.display());
    killed_in_place_of(&scene, "read-tree -m -u", &the_second_time, &["--jobs", "2", "--no-gates"]);
    scene.run(&["resume", "--headless"]).exits(0);
    landed_once(&scene, "S1", "a.txt");
    landed_once(&scene, "S2", "b.txt");
    assert!(passes(&scene, "S1") && passes(&scene, "S2"));
    assert_eq!(worktrees(&scene), Vec::<String>::new());
}

#[test]
fn a_spec_that_the_agent_of_a_dead_run_took_out_of_its_worktree_is_marked_there_all_the_same() {
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &AgentScript::new());
    let begun = scene.outside("begun");
    let takes_it = call().shell("rm prd.json").touch(&begun).hang();
    scene.scripted_agent(&AgentScript::always([takes_it, call().write("a.txt", "a").complete()]));
    let flags = ["--worktree", "--no-gates"];
    let first = start(&scene, &flags);
    scene.wait_for_file(&begun);
    first.crash();
    run(&scene, &[&flags[..], &["--resume"]].concat()).exits(0);
    landed_once(&scene, "S1", "a.txt");
    assert!(passes(&scene, "S1"), "{}", scene.read("prd.json"));
    scene.tree_is_clean();
}

#[test]
fn a_checkpoint_that_a_loss_of_power_brought_back_does_not_pass_empty_files_for_work() {
    let script = AgentScript::new()
        .story("Alpha lamp", [call().write("a.txt", "on").complete()])
        .story("Beta lamp", [call().write("b.txt", "on").complete()]);
    let scene = prd_scene(&two_stories(), &script);
    let folder = scene.outside("trees");
    let kept = ["--worktree-folder", folder.to_str().unwrap(), "--worktree-keep", "1", "--no-gates"];
    run(&scene, &[&["--worktree", "--story", "S1"][..], &kept].concat()).exits(0);
    let place = worktrees(&scene)[0].split(' ').next().unwrap().to_owned();
    for file in ["prd.json", "base.txt"] {
        fs::write(Path::new(&place).join(file), "").unwrap();
    }
    for store in fs::read_dir(scene.path(".git/ralphloop/snapshots")).unwrap() {
        fs::write(store.unwrap().path().join("of-an-attempt-that-is-over.checkpoint"), "").unwrap();
    }
    run(&scene, &[&["--worktree", "--story", "S2"][..], &kept].concat()).exits(0);
    assert_eq!(worktrees(&scene)[0].split(' ').next(), Some(place.as_str()), "it is used again");
    landed_once(&scene, "S2", "b.txt");
    assert!(passes(&scene, "S2"));
    assert_eq!(fs::read_to_string(Path::new(&place).join("base.txt")).unwrap(), "base\n");
}
