//! Stories side by side: each in a worktree of its own, landing one after the other on a branch that is never broken.

use std::fs;

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, Call, call};
use rustix::process::Signal;

use crate::world::{
    called, landed_once, passes, prd_scene, prd_text, reason, run, scene, start, states, story, two_stories,
};

const SIDE_BY_SIDE: &[&str] =
    &["--jobs", "4", "--no-gates", "--max-retries", "0", "--max-repairs", "0", "--on-exhausted", "skip"];

/// The user's checkout, alone and on its branch, with nothing of ours in it.
#[track_caller]
fn the_checkout_is_alone(scene: &Scene) {
    assert_eq!(scene.git(&["worktree", "list"]).lines().count(), 1, "{}", scene.git(&["worktree", "list"]));
    assert_eq!(scene.git(&["symbolic-ref", "--short", "HEAD"]).trim(), "main");
    assert_eq!(scene.git(&["for-each-ref", "refs/heads"]).lines().count(), 1);
    scene.tree_is_clean();
    scene.nothing_runs();
}

/// A call that ends only when the other story's has begun too.
fn meeting(scene: &Scene, own: &str, other: &str) -> Call {
    call().touch(scene.outside(own)).wait_for(scene.outside(other))
}

/// A scene with two stories, whose calls are made for it.
fn of_two(calls: impl Fn(&Scene) -> [Vec<Call>; 2]) -> Scene {
    let scene = scene();
    scene.write("prd.json", prd_text(&two_stories()));
    scene.write("shared.txt", "one\ntwo\nthree\n");
    scene.commit_all("Plan");
    let [alpha, beta] = calls(&scene);
    scene.scripted_agent(&AgentScript::new().story("Alpha lamp", alpha).story("Beta lamp", beta));
    scene
}

#[test]
fn stories_that_depend_on_nothing_run_at_once_and_all_land() {
    let scene = of_two(|scene| {
        [
            vec![meeting(scene, "a", "b").write("a.txt", "a").complete()],
            vec![meeting(scene, "b", "a").write("b.txt", "b").complete()],
        ]
    });
    run(&scene, SIDE_BY_SIDE).exits(0);
    for (id, file) in [("S1", "a.txt"), ("S2", "b.txt")] {
        landed_once(&scene, id, file);
        assert!(passes(&scene, id), "{}", scene.read("prd.json"));
    }
    called(&scene, 2);
    the_checkout_is_alone(&scene);
}

#[test]
fn a_dependant_begins_when_what_it_needs_has_landed_and_sees_it() {
    let script = AgentScript::new()
        .story("Alpha lamp", [call().write("a.txt", "a").complete()])
        .story("Beta lamp", [call().shell("cp a.txt b.txt").complete()]);
    let scene = prd_scene(&[story("S1", "Alpha lamp"), story("S2", "Beta lamp").after(&["S1"])], &script);
    run(&scene, SIDE_BY_SIDE).exits(0);
    assert_eq!(scene.file_in("HEAD", "b.txt"), "a");
    the_checkout_is_alone(&scene);
}

#[test]
fn what_is_green_alone_and_red_together_is_found_before_it_lands() {
    let scene = of_two(|scene| {
        let alone = |own: &str, other: &str| meeting(scene, own, other).write(&format!("{own}.txt"), own).complete();
        // Whoever comes second finds the other's file and moves its own out of the way.
        let mend = |own: &str| call().shell(&format!("mv {own}.txt {own}-moved.txt")).complete();
        [vec![alone("a", "b"), mend("a")], vec![alone("b", "a"), mend("b")]]
    });
    let gate = "! { test -f a.txt && test -f b.txt; }";
    run(&scene, &["--jobs", "2", "--gate", gate, "--max-retries", "0", "--max-repairs", "1"]).exits(0);
    let commits = scene.landed();
    assert_eq!(commits.len(), 2, "{commits:#?}");
    for commit in &commits {
        let files = scene.git(&["ls-tree", "--name-only", &commit.hash]);
        assert!(!(files.contains("a.txt") && files.contains("b.txt")), "{files}");
    }
    the_checkout_is_alone(&scene);
}

/// Both change the same line; the second to land finds the conflict.
fn conflict(resolution: &Call) -> Scene {
    of_two(|scene| {
        let change = |own, other, word| {
            meeting(scene, own, other)
                .shell(&format!("sed -i 's/two/{word}/' shared.txt"))
                .write(&format!("{own}.txt"), own)
                .complete()
        };
        let again = resolution.clone();
        [vec![change("a", "b", "alpha"), again.clone()], vec![change("b", "a", "beta"), again]]
    })
}

#[test]
fn the_agent_is_asked_to_resolve_a_conflict_and_both_land() {
    let resolve = "sed -i '/^<<<<<<<\\|^=======\\|^>>>>>>>/d' shared.txt";
    let scene = conflict(&call().shell(resolve).end("CONFLICTS_RESOLVED"));
    run(&scene, SIDE_BY_SIDE).exits(0).says("Conflicts with what has landed meanwhile, in shared.txt");
    let text = scene.read("shared.txt");
    assert!(text.contains("alpha") && text.contains("beta") && !text.contains("<<<"), "{text}");
    called(&scene, 3);
    let asked = scene.calls().last().unwrap().prompt();
    assert!(asked.contains("shared.txt") && asked.contains("CONFLICTS_RESOLVED"), "{asked}");
    assert!(scene.kept_refs().is_empty(), "{:?}", scene.kept_refs());
    the_checkout_is_alone(&scene);
}

#[test]
fn a_conflict_that_stays_marked_is_tried_from_the_new_base_and_then_named_with_its_work() {
    // Whatever it is asked, it changes the line again and leaves the marks.
    let scene = conflict(&call().shell("sed -i 's/one/one more/' shared.txt").complete());
    run(&scene, SIDE_BY_SIDE).exits(0);
    // The second try began from what had landed and had nothing to merge.
    called(&scene, 4);
    assert!(!scene.git(&["log", "--all", "-p"]).contains("+<<<<<<< "), "a mark was committed");
    the_checkout_is_alone(&scene);
}

#[test]
fn a_resolver_that_changes_other_files_is_not_believed() {
    let resolve = "sed -i '/^<<<<<<<\\|^=======\\|^>>>>>>>/d' shared.txt; echo x >elsewhere.txt";
    let scene = conflict(&call().shell(resolve).end("CONFLICTS_RESOLVED"));
    run(&scene, SIDE_BY_SIDE).says("elsewhere.txt changed too");
    the_checkout_is_alone(&scene);
}

#[test]
fn a_local_change_in_the_way_keeps_the_branch_and_names_the_file() {
    let scene = of_two(|scene| {
        [
            vec![meeting(scene, "a", "edited").shell("sed -i 's/two/alpha/' shared.txt").complete()],
            vec![meeting(scene, "b", "edited").write("b.txt", "b").complete()],
        ]
    });
    let running = start(&scene, SIDE_BY_SIDE);
    scene.wait_for_file(&scene.outside("a"));
    scene.write("shared.txt", "one\nmine\nthree\n");
    fs::write(scene.outside("edited"), "").unwrap();
    running.wait().exits(1).says("shared.txt");
    states(&scene, &[("S1", "blocked"), ("S2", "passed")]);
    assert_eq!(scene.read("shared.txt"), "one\nmine\nthree\n");
    let kept = scene.kept_refs();
    assert!(kept.iter().any(|kept| scene.file_in(kept, "shared.txt").contains("alpha")), "{kept:?}");
    assert!(reason(&scene, "S1").contains("shared.txt"), "{}", reason(&scene, "S1"));
}

#[test]
fn a_branch_that_somebody_moved_is_not_built_upon() {
    let scene = of_two(|scene| {
        [
            vec![meeting(scene, "a", "moved").write("a.txt", "a").complete()],
            vec![meeting(scene, "b", "moved").write("b.txt", "b").complete()],
        ]
    });
    let running = start(&scene, SIDE_BY_SIDE);
    scene.wait_for_file(&scene.outside("a"));
    scene.git(&["commit", "--quiet", "--allow-empty", "-m", "by somebody else"]);
    let theirs = scene.head();
    fs::write(scene.outside("moved"), "").unwrap();
    running.wait().exits(4).says("main checkout was moved").says("ralphloop resume");
    assert_eq!(scene.head(), theirs);
    // Their commit is kept, and the run goes on from there.
    scene.run(&["resume", "--headless"]).exits(0);
    landed_once(&scene, "S1", "a.txt");
    landed_once(&scene, "S2", "b.txt");
    the_checkout_is_alone(&scene);
}

#[test]
fn a_kill_with_several_under_way_loses_no_work_and_resume_lands_all() {
    let scene = of_two(|scene| {
        let hang = |own: &str, other: &str| {
            meeting(scene, own, other)
                .write(&format!("half-{own}.txt"), "half")
                .touch(scene.outside(&format!("{own}-half")))
                .hang()
        };
        [
            vec![hang("a", "b"), call().write("a.txt", "a").complete()],
            vec![hang("b", "a"), call().write("b.txt", "b").complete()],
        ]
    });
    let running = start(&scene, SIDE_BY_SIDE);
    scene.wait_for_file(&scene.outside("a-half"));
    scene.wait_for_file(&scene.outside("b-half"));
    running.crash();
    scene.run(&["resume", "--headless"]).exits(0);
    landed_once(&scene, "S1", "a.txt");
    landed_once(&scene, "S2", "b.txt");
    for half in ["half-a.txt", "half-b.txt"] {
        let kept = scene.kept_refs();
        assert!(
            kept.iter().any(|kept| scene.git_succeeds(&["cat-file", "-e", &format!("{kept}:{half}")])),
            "{half} in {kept:?}"
        );
    }
    the_checkout_is_alone(&scene);
}

#[test]
fn a_new_run_clears_the_worktrees_of_a_dead_one_and_keeps_what_was_in_them() {
    let scene = of_two(|scene| {
        let hang = meeting(scene, "a", "b").write("half.txt", "half").touch(scene.outside("half")).hang();
        [
            vec![hang, call().write("a.txt", "a").complete()],
            vec![meeting(scene, "b", "a").hang(), call().write("b.txt", "b").complete()],
        ]
    });
    let running = start(&scene, SIDE_BY_SIDE);
    scene.wait_for_file(&scene.outside("half"));
    running.crash();
    run(&scene, &[SIDE_BY_SIDE, &["--fresh"]].concat()).exits(0);
    let kept = scene.kept_refs();
    assert!(kept.iter().any(|kept| scene.git_succeeds(&["cat-file", "-e", &format!("{kept}:half.txt")])), "{kept:?}");
    the_checkout_is_alone(&scene);
}

#[test]
fn a_stop_at_once_ends_all_of_them_and_takes_the_worktrees_away() {
    let scene = of_two(|scene| {
        [
            vec![meeting(scene, "a", "b").write("a.txt", "a").say("working").hang()],
            vec![meeting(scene, "b", "a").write("b.txt", "b").say("working").hang()],
        ]
    });
    let running = start(&scene, SIDE_BY_SIDE);
    scene.wait_for_file(&scene.outside("a"));
    scene.wait_for_file(&scene.outside("b"));
    running.signal(Signal::TERM);
    running.wait().exits(143);
    states(&scene, &[("S1", "pending"), ("S2", "pending")]);
    the_checkout_is_alone(&scene);
}

#[test]
fn a_worktree_gets_what_git_does_not_carry() {
    let script = AgentScript::always([call()
        .shell("cp .env seen.txt; cat cache/big >>seen.txt; cat made >>seen.txt; echo $RALPHLOOP_LANE >>seen.txt")
        .complete()]);
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &script);
    scene.write(".gitignore", ".env\ncache/\nmade\n");
    scene.commit_all("Ignore");
    scene.write(".env", "secretless\n");
    scene.write("cache/big", "cached\n");
    run(&scene, &["--worktree", "--worktree-link", "cache", "--worktree-setup", "echo made >made", "--no-gates"])
        .exits(0);
    assert_eq!(scene.file_in("HEAD", "seen.txt"), "secretless\ncached\nmade\n1");
    assert_eq!(scene.read("cache/big"), "cached\n");
    assert!(!scene.path("made").exists());
    the_checkout_is_alone(&scene);
}

#[test]
fn a_set_up_that_fails_is_no_storys_fault() {
    let scene = prd_scene(&two_stories(), &AgentScript::new());
    let outcome = run(&scene, &["--jobs", "2", "--worktree-setup", "echo no network >&2; exit 3", "--no-gates"]);
    outcome.exits(6).says("worktree set-up").says("no network");
    states(&scene, &[("S1", "pending"), ("S2", "pending")]);
    called(&scene, 0);
    the_checkout_is_alone(&scene);
}

#[test]
fn changes_of_the_user_are_worked_around_in_a_worktree_if_that_is_asked_for() {
    let script = AgentScript::always([call().write("a.txt", "a").complete()]);
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &script);
    scene.write("notes.txt", "before\n");
    scene.commit_all("Notes");
    scene.write("notes.txt", "mine\n");
    run(&scene, &["--no-gates"]).exits(6);
    run(&scene, &["--no-gates", "--dirty", "worktree"]).exits(0);
    landed_once(&scene, "S1", "a.txt");
    assert_eq!(scene.read("notes.txt"), "mine\n");
    assert_eq!(scene.read("a.txt"), "a");
}

#[test]
fn several_at_once_in_the_checkout_are_refused_before_anything_starts() {
    let scene = prd_scene(&two_stories(), &AgentScript::new());
    run(&scene, &["--jobs", "2", "--in-place"]).exits(2).says("in_place").says("jobs");
    run(&scene, &["--jobs", "0"]).exits(2).says("1 or more");
    called(&scene, 0);
}

#[test]
fn stories_land_on_a_branch_of_their_own_while_the_checkout_stays_where_it_is() {
    let script = AgentScript::always([call().write("a.txt", "a").complete()]);
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &script);
    run(&scene, &["--worktree", "--branch", "lamps", "--no-gates"]).exits(0);
    assert_eq!(scene.file_in("lamps", "a.txt"), "a");
    assert_eq!(scene.git(&["symbolic-ref", "--short", "HEAD"]).trim(), "main");
    assert!(!scene.path("a.txt").exists());
}
