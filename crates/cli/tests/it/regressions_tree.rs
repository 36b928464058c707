//! Defects of earlier loops that must not come back: what they did to the user's tree, branch and history.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{ONCE, landed_once, nothing_landed, prd_scene, reason, run, scene, story, two_stories};

fn lamp() -> AgentScript {
    AgentScript::always([call().write("a.txt", "on").complete()])
}

fn hook(scene: &Scene, name: &str, text: &str) {
    let path = scene.path(&format!(".git/hooks/{name}"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn b21_untracked_and_ignored_files_survive_reverts_and_are_not_committed() {
    let scene = scene();
    scene.write(".gitignore", "*.log\n.env\n");
    scene.write("prd.json", crate::world::prd_text(&[story("S1", "Alpha lamp")]));
    scene.commit_all("Plan");
    scene.write("notes.txt", "mine\n");
    scene.write(".env", "SECRET=1\n");
    scene.write("build.log", b"\x00\xffbytes");
    scene.scripted_agent(&AgentScript::always([
        call()
            .write("half.txt", "x")
            .write("notes.txt", "overwritten")
            .write(".env", "gone")
            .write("build.log", "gone")
            .failed("no"),
        call().write("a.txt", "on").complete(),
    ]));
    run(&scene, &["--max-retries", "1"]).exits(0);
    assert_eq!(scene.read("notes.txt"), "mine\n");
    assert_eq!(scene.read(".env"), "SECRET=1\n");
    assert_eq!(fs::read(scene.path("build.log")).unwrap(), b"\x00\xffbytes");
    assert_eq!(scene.landed()[0].files, ["a.txt", "prd.json"]);
}

#[test]
fn b34_a_hook_that_refuses_is_a_failed_gate_and_its_words_are_reported() {
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &lamp());
    hook(&scene, "pre-commit", "#!/bin/sh\necho 'HOOK-SAYS-NO: too bright' >&2\nexit 1\n");
    run(&scene, ONCE).exits(1).says("HOOK-SAYS-NO");
    nothing_landed(&scene);
}

#[test]
fn b34_a_hook_that_rewrites_files_does_not_unsettle_the_landing() {
    let scene = prd_scene(
        &two_stories(),
        &AgentScript::always([call().write("a.txt", "on").complete(), call().write("b.txt", "on").complete()]),
    );
    hook(
        &scene,
        "pre-commit",
        "#!/bin/sh\nfor f in a.txt b.txt; do [ -f $f ] && echo formatted > $f && git add $f; done; exit 0\n",
    );
    run(&scene, &[]).exits(0);
    scene.tree_is_clean();
    assert_eq!(scene.file_in("HEAD", "a.txt"), "formatted");
    assert_eq!(scene.landed().len(), 2);
}

#[test]
fn b35_commits_of_the_agent_itself_become_part_of_the_storys_one_commit() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call()
            .write("a.txt", "on")
            .shell("git add a.txt && git commit -qm 'by the agent'")
            .write("b.txt", "on")
            .complete()]),
    );
    run(&scene, &[]).exits(0);
    landed_once(&scene, "S1", "a.txt");
    landed_once(&scene, "S1", "b.txt");
    assert_eq!(scene.landed().len(), 1);
    scene.tree_is_clean();
}

#[test]
fn commits_of_an_agent_whose_attempt_fails_are_not_on_the_branch() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call()
            .write("a.txt", "on")
            .shell("git add a.txt && git commit -qm 'by the agent'")
            .failed("no")]),
    );
    let head = scene.head();
    run(&scene, ONCE).exits(1);
    assert_eq!(scene.head(), head);
    nothing_landed(&scene);
    let kept = scene.kept_refs();
    assert!(kept.iter().any(|r| scene.git_succeeds(&["cat-file", "-e", &format!("{r}:a.txt")])), "{kept:?}");
}

#[test]
fn an_agent_that_switches_the_branch_leaves_the_user_on_the_old_one() {
    for end in [call().complete(), call().failed("no")] {
        let scene = prd_scene(
            &[story("S1", "Alpha lamp")],
            &AgentScript::always([end.clone()])
                .story("Alpha lamp", [call().shell("git checkout -qb elsewhere").write("a.txt", "on").failed("no")]),
        );
        run(&scene, ONCE);
        assert_eq!(scene.git(&["symbolic-ref", "--short", "HEAD"]), "main");
        scene.tree_is_clean();
    }
}

#[test]
fn an_agent_that_stashes_or_resets_loses_nothing_of_the_users() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call()
            .shell("git reset -q --hard HEAD~1; git clean -fdxq; git stash list")
            .write("a.txt", "x")
            .failed("no")]),
    );
    scene.write("untracked.txt", "mine\n");
    let before = scene.snapshot();
    run(&scene, ONCE).exits(1);
    assert_eq!(scene.snapshot(), before);
}

#[test]
fn r41_the_users_own_stash_is_never_touched() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call().write("x.txt", "x").failed("no"), call().write("a.txt", "on").complete()]),
    );
    scene.write("base.txt", "in the stash\n");
    scene.git(&["stash", "--quiet"]);
    let stash = scene.git(&["rev-parse", "refs/stash"]);
    run(&scene, &["--max-retries", "1"]).exits(0);
    assert_eq!(scene.git(&["rev-parse", "refs/stash"]), stash);
}

#[test]
fn a_mode_a_link_and_a_deleted_file_are_put_back_and_landed_exactly() {
    let scene = scene();
    scene.write("run.sh", "#!/bin/sh\n");
    scene.write("old.txt", "old\n");
    scene.write("prd.json", crate::world::prd_text(&[story("S1", "Alpha lamp")]));
    scene.commit_all("Plan");
    let work = "chmod +x run.sh && rm old.txt && ln -s run.sh link";
    scene.scripted_agent(&AgentScript::always([call().shell(work).failed("no"), call().shell(work).complete()]));
    run(&scene, &["--max-retries", "1"]).exits(0);
    let listed = scene.git(&["ls-tree", "HEAD"]);
    assert!(listed.contains("100755") && listed.contains("120000") && !listed.contains("old.txt"), "{listed}");
    scene.tree_is_clean();
}

#[test]
fn b83_an_agent_that_deletes_the_plan_fails_its_story_or_has_it_put_back() {
    let scene = prd_scene(
        &two_stories(),
        &AgentScript::always([call().write("b.txt", "on").complete()])
            .story("Alpha lamp", [call().write("a.txt", "on").remove("prd.json").complete()]),
    );
    let outcome =
        run(&scene, &["--max-retries", "0", "--max-repairs", "0", "--on-exhausted", "skip"]).never_says("panicked");
    assert!(scene.path("prd.json").exists(), "{outcome}");
    assert_eq!(scene.state_of("S2"), "passed", "{outcome}");
}

#[test]
fn b80_an_agent_that_spoils_the_plan_does_not_end_the_run_as_complete() {
    let scene = prd_scene(
        &two_stories(),
        &AgentScript::always([call().write("b.txt", "on").complete()])
            .story("Alpha lamp", [call().write("a.txt", "on").write("prd.json", "{ broken").complete()]),
    );
    let outcome =
        run(&scene, &["--max-retries", "0", "--max-repairs", "0", "--on-exhausted", "skip"]).never_says("panicked");
    assert!(outcome.code() != Some(0) || scene.state_of("S2") == "passed", "{outcome}");
    assert!(serde_json::from_str::<serde_json::Value>(&scene.read("prd.json")).is_ok(), "{outcome}");
}

#[test]
fn g3_the_program_itself_never_uses_a_command_that_can_lose_work() {
    let scene = prd_scene(
        &two_stories(),
        &AgentScript::always([call().write("x.txt", "x").failed("no"), call().write("a.txt", "on").complete()]).story(
            "Beta lamp",
            [call().write("y.txt", "y").failed("never"), call().write("y.txt", "z").failed("really never")],
        ),
    );
    let log = scene.outside("git.log");
    let real = scene.outside("tools/git");
    scene.program(
        "git",
        &format!("#!/bin/sh\nprintf '%s\\n' \"$*\" >> '{}'\nexec '{}' \"$@\"\n", log.display(), real.display()),
    );
    run(&scene, &["--max-retries", "1"]).exits(1);
    for line in fs::read_to_string(&log).unwrap().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        for forbidden in ["stash", "clean", "--no-verify", "--force", "-X"] {
            assert!(!words.contains(&forbidden), "git {line}");
        }
        assert!(!(words.contains(&"reset") && words.contains(&"--hard")), "git {line}");
        assert!(!words.contains(&"push"), "git {line}");
    }
}

#[test]
fn b34_a_commit_message_hook_that_refuses_says_why_in_the_reason() {
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &lamp());
    hook(&scene, "commit-msg", "#!/bin/sh\necho 'MESSAGE-77 is not wanted' >&2\nexit 1\n");
    run(&scene, ONCE).exits(1);
    assert!(reason(&scene, "S1").contains("MESSAGE-77"), "{}", reason(&scene, "S1"));
}

#[test]
fn a_run_from_a_folder_below_works_on_the_whole_repository() {
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &lamp());
    let below = scene.path("deep");
    fs::create_dir_all(&below).unwrap();
    scene.start_in(&below, &["run", "../prd.json", "--headless"]).wait().exits(0);
    landed_once(&scene, "S1", "a.txt");
    assert_eq!(scene.calls()[0].cwd, scene.repo());
}

#[test]
fn variables_of_git_and_of_nesting_do_not_reach_the_agent() {
    let mut scene = prd_scene(&[story("S1", "Alpha lamp")], &lamp());
    scene.set_env("CLAUDECODE", "1");
    scene.set_env("CLAUDE_CODE_ENTRYPOINT", "cli");
    run(&scene, &[]).exits(0);
    let env = &scene.calls()[0].env;
    for name in ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"] {
        assert!(!env.contains_key(name), "{name}");
    }
}
