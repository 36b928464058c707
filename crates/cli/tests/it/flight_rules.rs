//! What Flight Rules asks of a loop that runs unattended: state (F36), failures and their answers (F38), retries (F39), the
//! failure log (F40), ends (F41) and summaries (F42). Going on with a run (F37) is in `taking_up`.

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, Call, call};
use rustix::process::Signal;
use serde_json::Value;

use crate::world::{
    ONCE, ONCE_AND_ON, called, landed_once, nothing_landed, prd_scene, reason, run, start, states, story, two_stories,
};

fn lamps() -> AgentScript {
    AgentScript::new()
        .story("Alpha lamp", [call().write("a.txt", "on").complete()])
        .story("Beta lamp", [call().write("b.txt", "on").complete()])
}

/// Two stories, the first of which plays these calls.
fn first_plays(calls: impl IntoIterator<Item = Call>) -> Scene {
    let script =
        AgentScript::new().story("Alpha lamp", calls).story("Beta lamp", [call().write("b.txt", "on").complete()]);
    prd_scene(&two_stories(), &script)
}

/// The failures of the latest run, as its log tells them.
fn failures(scene: &Scene) -> Vec<Value> {
    scene.run(&["export", "--to", &scene.outside("export").display().to_string()]);
    let folder = scene.outside("export").join("ralph_logs");
    let logs = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let newest = logs.filter(|path| path.extension().is_some_and(|end| end == "json")).max().unwrap();
    let log: Value = serde_json::from_slice(&std::fs::read(newest).unwrap()).unwrap();
    log["failures"].as_array().unwrap().clone()
}

/// Class and answer of a failure.
fn told(failure: &Value) -> (&str, &str) {
    (failure["class"].as_str().unwrap(), failure["action"].as_str().unwrap_or_default())
}

#[test]
fn f36_nothing_is_committed_before_it_is_verified() {
    let committed = "git log --format=%s | grep -q Alpha && touch \"$OUTSIDE\" || true";
    let mut scene = prd_scene(&[story("S1", "Alpha lamp")], &lamps());
    scene.set_env("OUTSIDE", scene.outside("too early"));
    run(&scene, &["--gate", committed]).exits(0);
    landed_once(&scene, "S1", "a.txt");
    assert!(!scene.outside("too early").exists());
}

#[test]
fn f36_a_run_without_its_process_goes_on_behind_what_has_landed() {
    let scene = prd_scene(&two_stories(), &lamps());
    let begun = scene.outside("begun");
    scene.scripted_agent(
        &AgentScript::always([call().write("half.txt", "x").touch(&begun).hang()])
            .story("Alpha lamp", [call().write("a.txt", "on").complete()]),
    );
    scene.write(".gitignore", "/state/\n");
    scene.commit_all("Ignore");
    let running = start(&scene, &["--state-files", "state"]);
    scene.wait_for_file(&begun);
    running.crash();
    scene.nothing_runs();
    let state: Value = serde_json::from_str(&scene.read("state/.ralph-loop-state.json")).unwrap();
    assert_eq!(state["status"], "running", "as it was when the process died");
    scene.scripted_agent(&lamps());
    let before = scene.calls_of("Alpha lamp").len();
    scene.run(&["run", "prd.json", "--headless", "--state-files", "state"]).exits(0);
    assert_eq!(scene.calls_of("Alpha lamp").len(), before, "what has landed is not done again");
    landed_once(&scene, "S2", "b.txt");
    let state: Value = serde_json::from_str(&scene.read("state/.ralph-loop-state.json")).unwrap();
    assert_eq!(state["status"], "complete");
}

#[test]
fn f36_deleting_the_journal_after_a_kill_and_going_on_from_files_and_commits_ends_in_the_same_tree() {
    let end = |scene: &Scene| (scene.git(&["rev-parse", "HEAD^{tree}"]), scene.landed_subjects());
    let ready = || {
        let scene = prd_scene(&two_stories(), &AgentScript::new());
        scene.write(".gitignore", "/state/\n");
        scene.commit_all("Ignore");
        scene
    };
    let flags = ["--no-gates", "--state-files", "state"];
    let undisturbed = ready();
    undisturbed.scripted_agent(&lamps());
    run(&undisturbed, &flags).exits(0);
    for dies_in in ["Alpha lamp", "Beta lamp"] {
        let scene = ready();
        let begun = scene.outside("begun");
        let half = call().say("<learning>half of it is glass</learning>").write("half.txt", "x").touch(&begun).hang();
        let script = AgentScript::new().story(dies_in, [half]).story(
            "Alpha lamp",
            [call().write("a.txt", "on").end("<learning>glass breaks</learning>\n<promise>COMPLETE</promise>")],
        );
        scene.scripted_agent(&script);
        let running = start(&scene, &flags);
        scene.wait_for_file(&begun);
        running.crash();
        scene.nothing_runs();
        std::fs::remove_dir_all(scene.path(".git/ralphloop/runs")).unwrap();
        drop(std::fs::remove_file(scene.path(".git/ralphloop/learnings.json")));
        // What the dead agent left cannot be told from a person's files any more: it is that person's to keep or remove.
        drop(std::fs::remove_file(scene.path("half.txt")));
        scene.scripted_agent(&lamps());
        let outcome = run(&scene, &flags).exits(0);
        let outcome = outcome.says("no journal is here").says("was running, and its process is gone");
        assert_eq!(end(&scene), end(&undisturbed), "died in {dies_in}");
        if dies_in == "Beta lamp" {
            outcome.says("1 item done (Alpha lamp)");
            let prompts = scene.calls_of("Beta lamp");
            assert!(prompts.last().unwrap().prompt().contains("glass breaks"), "what was learned is read back");
        }
    }
}

#[test]
fn f38_verification_is_repaired_then_tried_again_then_answered_as_wished() {
    let bad = || call().write("a.txt", "bad").complete();
    let other = || call().write("a.txt", "bad too").complete();
    for (wish, code, then) in [("stop", 1, "pending"), ("skip", 1, "passed"), ("pause", 4, "pending")] {
        let scene = first_plays([bad(), other(), call().write("a.txt", "bad 3").complete()]);
        let flags =
            ["--gate", "! grep -qs bad a.txt", "--max-repairs", "1", "--max-retries", "1", "--on-exhausted", wish];
        run(&scene, &flags).exits(code);
        states(&scene, &[("S1", "failed"), ("S2", then)]);
        let failures = failures(&scene);
        assert_eq!(
            told(&failures[0]),
            ("verification", "repaired in place: the agent was called again"),
            "{failures:#?}"
        );
        assert_eq!(told(&failures[1]), ("verification", "put back; the story is tried again"));
        assert_eq!(told(failures.last().unwrap()).0, "verification");
        assert!(told(failures.last().unwrap()).1.contains("no attempt left"), "{failures:#?}");
    }
}

#[test]
fn f38_implementation_is_logged_and_tried_again_with_the_reason() {
    let scene = first_plays([call().failed("no wire"), call().write("a.txt", "on").complete()]);
    run(&scene, &["--no-gates"]).exits(0);
    let failures = failures(&scene);
    assert_eq!(told(&failures[0]), ("implementation", "put back; the story is tried again"));
    assert!(failures[0]["result"].as_str().unwrap().contains("no wire"));
    assert!(scene.calls_of("Alpha lamp")[1].prompt().contains("no wire"));
}

#[test]
fn f38_timeout_kills_what_ran_counts_as_failed_and_the_others_go_on() {
    let scene = first_plays([call().say("slow").leave_child(false).hang()]);
    run(&scene, &[ONCE_AND_ON, &["--no-gates", "--agent-timeout", "1s"]].concat()).exits(1);
    states(&scene, &[("S1", "failed"), ("S2", "passed")]);
    assert_eq!(failures(&scene)[0]["class"], "timeout");
    scene.nothing_runs();
}

#[test]
fn f38_timeout_of_a_check_is_a_failure_with_a_flag() {
    let scene = first_plays([call().write("a.txt", "on").complete()]);
    let slow = "[ ! -e a.txt ] || sleep 1000";
    run(&scene, &[ONCE, &["--gate", slow, "--gate-timeout", "1s"]].concat()).exits(1);
    let failures = failures(&scene);
    assert_eq!((&failures[0]["class"], &failures[0]["verification"]), (&"timeout".into(), &slow.into()));
}

#[test]
fn f38_network_is_waited_for_and_costs_the_story_nothing() {
    let scene = first_plays([call().api_error(529, "Overloaded"), call().write("a.txt", "on").complete()]);
    scene.write("ralphloop.toml", "provider_backoff = [\"1s\"]\n");
    scene.commit_all("Settings");
    run(&scene, &[ONCE, &["--no-gates"]].concat()).exits(0);
    landed_once(&scene, "S1", "a.txt");
    let failures = failures(&scene);
    assert_eq!(failures[0]["class"], "network");
    assert!(told(&failures[0]).1.contains("tried again") || told(&failures[0]).1.contains("called again"));
}

#[test]
fn f38_git_conflict_with_a_persons_commit_pauses_for_that_person() {
    let scene = first_plays([call().write("a.txt", "on").shell("git switch -q -c elsewhere").complete()]);
    let begun = scene.outside("begun");
    let go = scene.outside("go");
    let script = AgentScript::always([call().write("a.txt", "agent\n").touch(&begun).wait_for(&go).complete()]);
    scene.scripted_agent(&script);
    scene.write("a.txt", "plan\n");
    scene.commit_all("File");
    let running = start(&scene, &["--worktree", "--no-gates", "--story", "S1"]);
    scene.wait_for_file(&begun);
    scene.write("a.txt", "person\n");
    scene.commit_all("Mine");
    std::fs::write(go, "").unwrap();
    running.wait().exits(4).says("main");
    assert_eq!(scene.read("a.txt"), "person\n");
    assert_eq!(failures(&scene)[0]["class"], "git_conflict");
    nothing_of_the_agent_landed(&scene);
}

fn nothing_of_the_agent_landed(scene: &Scene) {
    assert_eq!(scene.landed_subjects(), Vec::<String>::new());
}

#[test]
fn f38_corrupt_state_is_said_and_written_anew() {
    let scene = first_plays([call().write("a.txt", "on").complete()]);
    scene.write(".gitignore", "/state/\n");
    scene.commit_all("Ignore");
    scene.write("state/.continuous-session-state.json", "{ torn");
    run(&scene, &["--no-gates", "--state-files", "state"]).exits(0).says("is corrupt");
    let state: Value = serde_json::from_str(&scene.read("state/.continuous-session-state.json")).unwrap();
    assert_eq!(state["status"], "complete");
}

#[test]
fn f38_exhaustion_pauses_tells_and_is_gone_on_with_later() {
    let in_a_day = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() + 86_400;
    let scene = first_plays([call().usage_limit(in_a_day), call().write("a.txt", "on").complete()]);
    let alert = format!("cat > '{}'", scene.outside("alert").display());
    run(&scene, &["--no-gates", "--limit-wait", "1s", "--notify", &alert]).exits(5);
    assert!(scene.outside("alert").exists(), "somebody is told");
    assert_eq!(failures(&scene)[0]["class"], "exhaustion");
    assert!(scene.status()["resume_at"].is_string());
}

#[test]
fn f39_attempts_are_bounded_and_none_is_charged_for_the_network() {
    let scene = first_plays([call().api_error(529, "Overloaded")]);
    scene.write("ralphloop.toml", "provider_retries = 2\nprovider_backoff = [\"1s\", \"1s\"]\n");
    scene.commit_all("Settings");
    run(&scene, &["--no-gates", "--max-retries", "5"]).says("tries in a row");
    called(&scene, 2);
    assert_ne!(scene.state_of("S1"), "failed");
}

#[test]
fn f40_the_failure_log_has_a_section_for_each_failure_with_all_that_is_asked_for() {
    let scene = first_plays([call().write("a.txt", "bad").complete()]);
    run(&scene, &[ONCE, &["--gate", "cat a.txt 2>/dev/null; ! grep -qs bad a.txt"]].concat()).exits(1);
    failures(&scene);
    let folder = scene.outside("export").join("ralph_logs");
    let log =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).find(|path| path.extension().unwrap() == "md");
    let text = std::fs::read_to_string(log.unwrap()).unwrap();
    for part in [
        "## Iteration 1",
        "- Task: Alpha lamp (S1",
        "- Verification: `cat a.txt",
        "- Result: exit code 1",
        "```text\nbad",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    for part in ["- Action: put back; the story has no attempt left", "- State: kept at refs/ralphloop/"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
}

#[test]
fn f41_the_queue_is_kept_when_a_bound_ends_the_run() {
    let scene = first_plays([call().write("a.txt", "on").complete()]);
    run(&scene, &["--no-gates", "--max-sessions", "1"]).exits(5).says("1 of 1 stories have been begun");
    states(&scene, &[("S1", "passed"), ("S2", "pending")]);
    called(&scene, 1);
    scene.run(&["resume", "--headless", "--max-stories", "2"]).exits(0);
    states(&scene, &[("S2", "passed")]);
}

#[test]
fn f41_a_signal_saves_the_state_and_ends() {
    let begun_at = |scene: &Scene| scene.outside("begun");
    let scene = first_plays([call().complete()]);
    scene.scripted_agent(&AgentScript::always([call().write("half.txt", "x").touch(begun_at(&scene)).hang()]));
    scene.write(".gitignore", "/state/\n");
    scene.commit_all("Ignore");
    let running = start(&scene, &["--no-gates", "--state-files", "state"]);
    scene.wait_for_file(&begun_at(&scene));
    running.signal(Signal::TERM);
    running.wait().exits(143);
    let state: Value = serde_json::from_str(&scene.read("state/.continuous-session-state.json")).unwrap();
    assert_eq!((&state["status"], &state["queueSnapshot"][0]), (&"paused".into(), &"Alpha lamp".into()));
    nothing_landed(&scene);
}

#[test]
fn f41_an_item_that_fails_again_and_again_pauses_or_is_left_as_wished() {
    let scene = first_plays([call().failed("no wire")]);
    run(&scene, &["--no-gates", "--max-retries", "1", "--pause-on-fail"]).exits(4);
    called(&scene, 2);
    assert!(reason(&scene, "S1").contains("no wire"));
    assert_eq!(scene.status()["state"], "paused");
    let scene = first_plays([call().failed("no wire")]);
    run(&scene, &["--no-gates", "--max-retries", "1", "--stop-on-fail"]).exits(1);
    states(&scene, &[("S1", "failed"), ("S2", "pending")]);
}

#[test]
fn f41_an_exhausted_queue_is_complete_a_stop_keeps_it_and_what_is_fatal_says_so() {
    let begun_at = |scene: &Scene| scene.outside("begun");
    let state =
        |scene: &Scene| -> Value { serde_json::from_str(&scene.read("state/.continuous-session-state.json")).unwrap() };
    let ready = || {
        let scene = first_plays([call().write("a.txt", "on").complete()]);
        scene.write(".gitignore", "/state/\n");
        scene.commit_all("Ignore");
        scene
    };
    let flags = ["--state-files", "state"];
    let scene = ready();
    run(&scene, &flags).exits(0);
    assert_eq!(
        (&state(&scene)["status"], &state(&scene)["queueSnapshot"]),
        (&"complete".into(), &serde_json::json!([]))
    );

    let scene = ready();
    scene.scripted_agent(&AgentScript::always([call().write("half.txt", "x").touch(begun_at(&scene)).hang()]));
    let running = start(&scene, &flags);
    scene.wait_for_file(&begun_at(&scene));
    scene.run(&["stop", "--now"]).exits(0);
    running.wait().exits(4);
    assert_eq!(
        (&state(&scene)["status"], &state(&scene)["queueSnapshot"][0]),
        (&"paused".into(), &"Alpha lamp".into())
    );

    let scene = ready();
    let fatal = run(&scene, &[&["--gate", "no-such-program-of-ours"], &flags[..]].concat()).exits(6);
    fatal.says("`no-such-program-of-ours` could not run").says("Next:");
    called(&scene, 0);
    assert_eq!(state(&scene)["queueSnapshot"].as_array().unwrap().len(), 2);
}

#[test]
fn f39_each_kind_of_failure_has_attempts_and_waits_of_its_own() {
    let scene = first_plays([call().failed("no wire")]);
    scene.write("ralphloop.toml", "[retry.implementation]\nattempts = 1\nbackoff = [\"1s\"]\n");
    scene.commit_all("Settings");
    scene.run(&["config"]).exits(0).says("[retry.implementation] attempts = 1, backoff = [\"1s\"]");
    let outcome = run(&scene, &["--no-gates", "--on-exhausted", "skip", "--max-retries", "5"]).exits(1);
    outcome.says("waiting before S1 is tried again");
    assert_eq!(scene.calls_of("Alpha lamp").len(), 2);
    states(&scene, &[("S1", "failed"), ("S2", "passed")]);
    for (text, said) in [
        ("[retry.timout]\nattempts = 1\n", "did you mean timeout?"),
        ("[retry.network]\nattempts = 1\n", "provider_retries and provider_backoff"),
        ("[retry.timeout]\ntries = 1\n", "unknown key 'tries'"),
        ("[retry.timeout]\nbackoff = [\"soon\"]\n", "invalid value of backoff"),
    ] {
        scene.write("ralphloop.toml", text);
        scene.run(&["config"]).exits(2).says(said);
    }
}

#[test]
fn f42_every_end_writes_a_summary_with_what_a_person_does_next() {
    let scene = first_plays([call().failed("no wire")]);
    scene.write(".gitignore", "/state/\n");
    scene.commit_all("Ignore");
    let outcome = run(&scene, &[ONCE_AND_ON, &["--no-gates", "--state-files", "state"]].concat()).exits(1);
    for part in ["Failed (1)", "Alpha lamp", "no wire", "Passed (1)", "Beta lamp", "Took", "Next:"] {
        assert!(outcome.stdout.contains(part), "{part:?} in {}", outcome.stdout);
    }
    let log = std::fs::read_dir(scene.path("state/session_logs")).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(log).unwrap();
    assert!(text.contains("1 of 2 done") && text.contains("1. Alpha lamp [NO-VERIFY]"), "{text}");
}

#[test]
fn f10_f21_the_loops_name_their_work_by_session_area_and_group() {
    let scene = first_plays([call().complete()]);
    let group = |id: &str, topic: &str| format!("# {id} {topic}\n\n## {id}.1. {topic} one\n\n**Status**: 🔵 Planned\n");
    scene.write("docs/implementation/1-lamps/1.1-alpha.md", group("1.1", "Alpha"));
    scene.write("docs/implementation/2-cords/2.1-beta.md", group("2.1", "Beta"));
    scene.write(
        "docs/session_logs/20260101_1000_session.md",
        "# Session\n\n## Next Steps\n\n- Mend the lamp\n- Polish it\n",
    );
    scene.write("docs/session_logs/20260102_1000_session.md", "# Session\n\n## Next Steps\n\n- Another\n");
    scene.commit_all("Work");
    let shown = |flags: &[&str]| scene.run(&[&["run", "--dry-run"], flags].concat()).exits(0).stdout;
    let session = shown(&["--from-session", "docs/session_logs/20260101_1000_session.md", "--skip-unverifiable"]);
    assert!(session.contains("Mend the lamp") && !session.contains("Another"), "{session}");
    assert!(shown(&["--area", "1"]).contains("Alpha"));
    let group = shown(&["--task-group", "2.1"]);
    assert!(group.contains("Beta") && !group.contains("Alpha"), "{group}");
    scene.run(&["run", "prd.json", "--area", "1"]).exits(2);
}

#[test]
fn r54_an_agent_at_work_asks_learns_and_ticks_by_arguments() {
    let scene = first_plays([call().complete()]);
    let tasks = "# Tasks\n\n## Alpha lamp\n\n- [ ] wire it\n- [ ] light it\n\n## Beta lamp\n\n- [ ] wire it too\n";
    scene.write("TODO.md", tasks);
    scene.commit_all("Tasks");
    let binary = crate::world::binary();
    let ask =
        |what: &str, into: &str| format!("'{}' agent {what} > '{}'", binary.display(), scene.outside(into).display());
    let shown = scene.run(&["show", "TODO.md", "--json"]).exits(0).json();
    let (id, task) =
        (shown["stories"][0]["id"].as_str().unwrap(), shown["stories"][0]["tasks"][0]["id"].as_str().unwrap());
    let script = AgentScript::new()
        .story(
            "light it",
            [call()
                .write("a.txt", "on")
                .shell(&ask(&format!("context '{id}'"), "context"))
                .shell(&ask("learn 'mind the cat'", "learn"))
                .shell(&ask(&format!("done '{task}'"), "done"))
                .shell(&ask("status", "status"))
                .complete()],
        )
        .story("wire it too", [call().write("b.txt", "on").complete()]);
    scene.scripted_agent(&script);
    scene.run(&["run", "TODO.md", "--headless", "--no-gates"]).exits(0);
    let said = |name: &str| -> Value {
        let text = std::fs::read_to_string(scene.outside(name)).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"))
    };
    assert_eq!(said("context")["tasks"].as_array().unwrap().len(), 2);
    assert_eq!((&said("learn")["learned"], &said("done")["complete"]), (&"mind the cat".into(), &true.into()));
    let status = said("status");
    assert_eq!((&status["story"]["tasks_done"], &status["story_complete"]), (&1.into(), &false.into()), "{status:#}");
    assert!(scene.calls().last().unwrap().prompt().contains("mind the cat"), "the next prompt has it");
    // And so has the first prompt of the next run.
    scene.scripted_agent(&AgentScript::new().story("Alpha lamp", [call().write("c.txt", "on").complete()]));
    run(&scene, &["--no-gates", "--story", "S1"]).exits(0);
    assert!(scene.calls_of("Alpha lamp").last().unwrap().prompt().contains("mind the cat"));
}
