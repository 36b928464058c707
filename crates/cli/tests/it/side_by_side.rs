//! Stories side by side: each in a worktree of its own, landing one after the other on a branch that is never broken.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use ralphloop_testkit::scene::{Scene, eventually};
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
fn worktrees_that_a_killed_process_made_and_nobody_needs_any_more_are_taken_away_at_the_end() {
    let scene = scene();
    let stories = [("S1", "Alpha lamp"), ("S2", "Beta lamp"), ("S3", "Gamma lamp")];
    scene.write("prd.json", prd_text(&stories.map(|(id, title)| story(id, title))));
    scene.commit_all("Plan");
    // All three have a worktree before one of them lands.
    let began = scene.outside("c");
    let late = || call().wait_for(&began);
    let script = AgentScript::new()
        .story("Alpha lamp", [late().write("a.txt", "a").complete()])
        .story("Beta lamp", [late().write("b.txt", "b").complete()])
        .story("Gamma lamp", [call().touch(&began).hang(), call().write("c.txt", "c").complete()]);
    scene.scripted_agent(&script);
    let running = start(&scene, SIDE_BY_SIDE);
    eventually("two stories to land", || scene.landed().len() == 2);
    running.crash();
    scene.run(&["resume", "--headless"]).exits(0);
    landed_once(&scene, "S3", "c.txt");
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
fn worktrees_that_were_being_made_at_a_kill_are_made_again() {
    for (pooled, again) in [(false, "--resume"), (false, "--fresh"), (true, "--fresh")] {
        let scene =
            of_two(|_| [vec![call().write("a.txt", "a").complete()], vec![call().write("b.txt", "b").complete()]]);
        let (begun, folder) = (scene.outside("begun"), scene.outside("worktrees"));
        scene.write(".gitattributes", "slow.txt filter=slow\n");
        scene.write("slow.txt", "slow\n");
        scene.commit_all("A file that takes its time");
        let flags = if pooled { vec!["--worktree-folder", folder.to_str().unwrap()] } else { Vec::new() };
        let flags = [SIDE_BY_SIDE, &flags].concat();
        scene.git(&["config", "filter.slow.smudge", &format!("touch '{}'; sleep 100", begun.display())]);
        let first = start(&scene, &flags);
        scene.wait_for_file(&begun);
        first.crash();
        scene.git(&["config", "filter.slow.smudge", "cat"]);
        run(&scene, &[&flags, &[again][..]].concat()).exits(0);
        assert_eq!(scene.landed_subjects().len(), 2, "{again}");
        the_checkout_is_alone(&scene);
        let of_repository = fs::read_dir(&folder).into_iter().flatten();
        let left = of_repository.flat_map(|own| fs::read_dir(own.unwrap().path()).unwrap());
        let left: Vec<_> = left.map(|item| item.unwrap().path()).collect();
        assert!(left.is_empty(), "places are taken for ever: {left:?}");
    }
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

/// Three stories, each with a file of its own, that end at about the same time.
fn of_three(scene: &Scene) {
    let stories = [story("S1", "Alpha lamp"), story("S2", "Beta lamp"), story("S3", "Gamma lamp")];
    scene.write("prd.json", prd_text(&stories));
    scene.commit_all("Plan");
    let call = |own: &str| {
        let began = call().touch(scene.outside(own));
        let met = ["a", "b", "c"].iter().fold(began, |call, name| call.wait_for(scene.outside(name)));
        [met.write(&format!("{own}.txt"), own).complete()]
    };
    let script = AgentScript::new().story("Alpha lamp", call("a")).story("Beta lamp", call("b"));
    scene.scripted_agent(&script.story("Gamma lamp", call("c")));
}

/// A gate that, on a tree with two of the files, waits until it has begun on one with all three, and then goes on as told.
fn waits_for_three(scene: &Scene, then: &str) -> String {
    let mark = scene.outside("three");
    let mark = mark.display();
    format!(
        "n=$(ls | grep -c '^[abc].txt$'); if [ $n = 3 ]; then touch {mark}; fi; \
         if [ $n = 2 ]; then while [ ! -e {mark} ]; do sleep 0.02; done; {then}; fi"
    )
}

#[test]
fn the_next_is_checked_on_top_of_one_that_is_still_being_checked() {
    let scene = scene();
    of_three(&scene);
    let gate = waits_for_three(&scene, ":");
    let outcome = run(&scene, &["--jobs", "3", "--gate", &gate, "--max-retries", "0", "--max-repairs", "0"]);
    outcome.exits(0).says("Prepared on top of S").says("which is about to land");
    assert_eq!(scene.landed().len(), 3);
    for id in ["S1", "S2", "S3"] {
        assert!(passes(&scene, id), "{}", scene.read("prd.json"));
    }
    for commit in scene.landed() {
        assert_eq!(commit.files.len(), 2, "its own file and the spec: {commit:?}");
    }
    called(&scene, 3);
    the_checkout_is_alone(&scene);
}

#[test]
fn what_was_prepared_on_one_that_fails_lands_without_it() {
    let scene = scene();
    of_three(&scene);
    let once = scene.outside("once");
    let gate = waits_for_three(&scene, &format!("! mkdir {} 2>/dev/null", once.display()));
    let flags = ["--jobs", "3", "--gate", &gate, "--max-retries", "0", "--max-repairs", "0", "--on-exhausted", "skip"];
    run(&scene, &flags).exits(1);
    let landed = scene.landed();
    assert_eq!(landed.len(), 2, "{landed:#?}");
    let status = scene.status();
    let failed = status["stories"].as_array().unwrap().iter().find(|story| story["state"] == "failed").unwrap();
    let file = match failed["id"].as_str().unwrap() {
        "S1" => "a.txt",
        "S2" => "b.txt",
        _ => "c.txt",
    };
    assert!(!scene.git_succeeds(&["cat-file", "-e", &format!("HEAD:{file}")]), "{file} has landed with another");
    let there =
        ["a.txt", "b.txt", "c.txt"].map(|name| scene.git_succeeds(&["cat-file", "-e", &format!("HEAD:{name}")]));
    assert_eq!(there.iter().filter(|there| **there).count(), 2);
    the_checkout_is_alone(&scene);
}

/// Two stories that each add a source, and change the file that is made of all sources.
fn generated(command: &str) -> Scene {
    let scene = of_two(|scene| {
        let add = |own: &str, other: &str| {
            let add = format!("echo {own} >src/{own}; cat src/* >all.lock");
            let resolve = "sed -i '/^<<<<<<<\\|^=======\\|^>>>>>>>/d' all.lock";
            let resolve = call().shell(resolve).end("CONFLICTS_RESOLVED");
            vec![meeting(scene, own, other).shell(&add).complete(), resolve]
        };
        [add("a", "b"), add("b", "a")]
    });
    scene.write("src/m", "m\n");
    scene.write("all.lock", "m\n");
    scene.write("ralphloop.toml", format!("[[generate]]\nfiles = [\"*.lock\"]\ncommand = \"{command}\"\n"));
    scene.commit_all("Rules");
    scene
}

#[test]
fn a_generated_file_in_conflict_is_made_anew_and_nobody_is_asked() {
    let scene = generated("cat src/* >all.lock");
    run(&scene, SIDE_BY_SIDE).exits(0).says("all.lock made anew by `cat src/* >all.lock`");
    assert_eq!(scene.file_in("HEAD", "all.lock"), "a\nb\nm");
    called(&scene, 2);
    the_checkout_is_alone(&scene);
}

#[test]
fn a_command_that_cannot_make_a_file_anew_leaves_the_conflict_to_the_agent() {
    let scene = generated("echo no registry >&2; exit 3");
    let outcome = run(&scene, SIDE_BY_SIDE).exits(0);
    outcome.says("Conflicts with what has landed meanwhile, in all.lock").says("no registry");
    called(&scene, 3);
    the_checkout_is_alone(&scene);
}

#[test]
fn worktrees_that_are_kept_serve_the_next_run_set_up_as_they_are_until_they_are_cleaned_away() {
    let script = AgentScript::always([call().shell("cat made >seen.txt; cat .env >>seen.txt").complete()]);
    let scene = prd_scene(&[story("S1", "Alpha lamp"), story("S2", "Beta lamp")], &script);
    scene.write(".gitignore", ".env\nmade\n");
    scene.commit_all("Ignore");
    scene.write(".env", "first\n");
    let count = scene.outside("set-ups");
    let set_up = format!("echo made >made; echo >>{}", count.display());
    let flags = ["--worktree", "--worktree-keep", "1", "--worktree-setup", &set_up, "--no-gates", "--story"];
    run(&scene, &[&flags[..], &["S1"]].concat()).exits(0);
    assert_eq!(scene.git(&["worktree", "list"]).lines().count(), 2, "{}", scene.git(&["worktree", "list"]));
    scene.write(".env", "second\n");
    run(&scene, &[&flags[..], &["S2"]].concat()).exits(0);
    assert_eq!(scene.file_in("HEAD", "seen.txt"), "made\nsecond");
    assert_eq!(fs::read_to_string(&count).unwrap().lines().count(), 1, "it was set up once");
    scene.run(&["clean"]).exits(0).says("worktree/lane-1");
    scene.run(&["clean", "--apply", "worktree/lane-1"]).exits(0);
    the_checkout_is_alone(&scene);
}

#[test]
fn worktrees_lie_in_the_folder_that_was_named() {
    let script = AgentScript::always([call().shell("pwd -P >where.txt").complete()]);
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &script);
    let folder = scene.outside("trees");
    run(&scene, &["--worktree", "--worktree-folder", folder.to_str().unwrap(), "--no-gates"]).exits(0);
    let top = fs::canonicalize(&folder).unwrap();
    let at = scene.file_in("HEAD", "where.txt");
    assert!(at.starts_with(top.to_str().unwrap()), "{at} is not below {}", top.display());
    the_checkout_is_alone(&scene);
}

#[test]
fn one_that_was_made_ready_to_be_merged_lands_as_it_is_if_the_one_before_it_does_not_land() {
    let scene = of_two(|scene| {
        [
            vec![meeting(scene, "a", "b").write("bad.txt", "a").complete()],
            // It is through while the other one lands.
            vec![meeting(scene, "b", "hook").write("b.txt", "b").complete()],
        ]
    });
    let (hook, ready) = (scene.outside("hook"), scene.outside("ready"));
    let script = format!(
        "#!/bin/sh\n[ -e bad.txt ] || exit 0\ntouch '{}'\nn=0\nwhile [ $n -lt 100 ] && ! [ -e '{}' ]; do sleep 0.1; \
         n=$((n + 1)); done\nexit 1\n",
        hook.display(),
        ready.display()
    );
    let path = scene.path(".git/hooks/pre-commit");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let running = start(&scene, SIDE_BY_SIDE);
    eventually("the second to be made ready", || {
        let indexes = fs::read_dir(scene.path(".git/worktrees")).into_iter().flatten().filter_map(Result::ok);
        let mut indexes = indexes.filter_map(|lane| fs::read(lane.path().join("index")).ok());
        indexes.any(|index| index.windows(5).any(|name| name == b"b.txt"))
    });
    fs::write(&ready, "").unwrap();
    running.wait().exits(1);
    states(&scene, &[("S1", "failed"), ("S2", "passed")]);
    landed_once(&scene, "S2", "b.txt");
    assert_eq!(
        scene.git(&["show", "--name-only", "--format=", "HEAD"]).lines().collect::<Vec<_>>(),
        ["b.txt", "prd.json"]
    );
    the_checkout_is_alone(&scene);
}
