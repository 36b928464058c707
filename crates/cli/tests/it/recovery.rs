//! Killed at any moment, a run ends as if nothing had happened, each story landed once.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use ralphloop_testkit::scene::{Running, Scene, eventually};
use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{landed_once, passes, prd_text, run, scene, start, states, two_stories};

/// What a run that nobody disturbed leaves: the tree of its last commit and the states of its stories.
fn undisturbed() -> (String, Vec<String>) {
    let scene = ready();
    run(&scene, GATES).exits(0);
    end_of(&scene)
}

const GATES: &[&str] = &["--gate", "test -f base.txt"];

fn end_of(scene: &Scene) -> (String, Vec<String>) {
    (scene.git(&["rev-parse", "HEAD^{tree}"]), scene.landed_subjects())
}

fn script() -> AgentScript {
    AgentScript::new()
        .story("Alpha lamp", [call().write("a.txt", "on").complete()])
        .story("Beta lamp", [call().write("b.txt", "on").complete()])
}

fn ready() -> Scene {
    let scene = scene();
    scene.write("prd.json", prd_text(&two_stories()));
    scene.commit_all("Plan");
    scene.scripted_agent(&script());
    scene
}

/// Kills the run, resumes it, and compares with a run that nobody disturbed.
#[track_caller]
fn killed_and_resumed(scene: &Scene, running: Running) {
    running.crash();
    scene.nothing_runs();
    assert_eq!(scene.status()["state"], "interrupted");
    scene.scripted_agent(&script());
    scene.run(&["resume", "--headless"]).exits(0);
    assert_eq!(end_of(scene), undisturbed());
    landed_once(scene, "S1", "a.txt");
    landed_once(scene, "S2", "b.txt");
    assert!(passes(scene, "S1") && passes(scene, "S2"));
    states(scene, &[("S1", "passed"), ("S2", "passed")]);
    assert_eq!(scene.status()["state"], "complete");
    scene.tree_is_clean();
    scene.nothing_runs();
}

#[test]
fn b36_killed_while_the_agent_works() {
    let scene = ready();
    let begun = scene.outside("begun");
    scene.scripted_agent(&AgentScript::always([call()
        .write("half.txt", "x")
        .write("base.txt", "spoilt")
        .touch(&begun)
        .hang()]));
    let running = start(&scene, GATES);
    scene.wait_for_file(&begun);
    killed_and_resumed(&scene, running);
}

#[test]
fn b36_killed_while_the_agent_of_the_second_story_works() {
    let scene = ready();
    let begun = scene.outside("begun");
    scene.scripted_agent(
        &AgentScript::always([call().write("half.txt", "x").touch(&begun).hang()])
            .story("Alpha lamp", [call().write("a.txt", "on").complete()]),
    );
    let running = start(&scene, GATES);
    scene.wait_for_file(&begun);
    assert_eq!(scene.landed().len(), 1);
    killed_and_resumed(&scene, running);
    assert_eq!(scene.calls_of("Alpha lamp").len(), 1, "a story that has landed is not done again");
}

#[test]
fn b36_killed_while_an_agent_works_that_ignores_every_signal_and_has_left_children() {
    let scene = ready();
    let begun = scene.outside("begun");
    scene.scripted_agent(&AgentScript::always([call()
        .ignore_term()
        .leave_child(true)
        .leave_child(false)
        .touch(&begun)
        .hang()]));
    let running = start(&scene, GATES);
    scene.wait_for_file(&begun);
    killed_and_resumed(&scene, running);
}

#[test]
fn b36_killed_while_a_gate_runs() {
    let scene = ready();
    let marker = scene.outside("gate");
    let once = format!("[ ! -f a.txt ] || [ -e '{0}' ] || {{ touch '{0}'; sleep 1000; }}", marker.display());
    let running = start(&scene, &["--gate", "test -f base.txt", "--gate", &once]);
    scene.wait_for_file(&marker);
    killed_and_resumed(&scene, running);
}

/// Installs a hook that hangs the first time it runs after `a.txt` was made.
fn hanging_hook(scene: &Scene, name: &str) -> std::path::PathBuf {
    let marker = scene.outside("hook");
    let hook = scene.path(&format!(".git/hooks/{name}"));
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, format!("#!/bin/sh\n[ -e '{0}' ] && exit 0\ntouch '{0}'\nexec sleep 1000\n", marker.display()))
        .unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    marker
}

#[test]
fn b36_killed_before_the_commit_of_a_story_is_made() {
    let scene = ready();
    let marker = hanging_hook(&scene, "pre-commit");
    let running = start(&scene, &[GATES, &["--command-timeout", "600"]].concat());
    scene.wait_for_file(&marker);
    killed_and_resumed(&scene, running);
}

#[test]
fn b36_killed_after_the_commit_of_a_story_was_made_but_before_it_was_written_down() {
    let scene = ready();
    let marker = hanging_hook(&scene, "post-commit");
    let running = start(&scene, &[GATES, &["--command-timeout", "600"]].concat());
    scene.wait_for_file(&marker);
    killed_and_resumed(&scene, running);
    assert_eq!(scene.calls_of("Alpha lamp").len(), 1, "the commit is recognised");
}

#[test]
fn b36_killed_again_and_again() {
    let scene = ready();
    for n in 0..4 {
        let begun = scene.outside(&format!("begun-{n}"));
        scene.scripted_agent(&AgentScript::always([call().write(&format!("half-{n}.txt"), "x").touch(&begun).hang()]));
        let running = if n == 0 { start(&scene, GATES) } else { scene.start(&["resume", "--headless"]) };
        scene.wait_for_file(&begun);
        if n == 3 {
            killed_and_resumed(&scene, running);
            return;
        }
        running.crash();
    }
}

#[test]
fn b20_a_new_run_of_interrupted_work_resumes_it_without_being_asked_when_nobody_can_answer() {
    let scene = ready();
    let begun = scene.outside("begun");
    scene.scripted_agent(
        &AgentScript::always([call().touch(&begun).hang()])
            .story("Alpha lamp", [call().write("a.txt", "on").complete()]),
    );
    let running = start(&scene, GATES);
    scene.wait_for_file(&begun);
    running.crash();
    scene.nothing_runs();
    scene.scripted_agent(&script());
    run(&scene, GATES).exits(0);
    assert_eq!(end_of(&scene), undisturbed());
    assert_eq!(scene.journals().len(), 1, "it is the same run");
}

#[test]
fn fresh_begins_a_new_run_of_what_is_left() {
    let scene = ready();
    let begun = scene.outside("begun");
    scene.scripted_agent(&AgentScript::always([call().write("half.txt", "x").touch(&begun).hang()]));
    let running = start(&scene, GATES);
    scene.wait_for_file(&begun);
    running.crash();
    scene.nothing_runs();
    scene.scripted_agent(&script());
    run(&scene, &[GATES, &["--fresh"]].concat()).exits(0);
    assert_eq!(scene.journals().len(), 2);
    assert_eq!(end_of(&scene), undisturbed());
    scene.tree_is_clean();
}

#[test]
fn a_torn_last_line_of_the_journal_is_dropped() {
    let scene = ready();
    let begun = scene.outside("begun");
    scene.scripted_agent(
        &AgentScript::always([call().touch(&begun).hang()])
            .story("Alpha lamp", [call().write("a.txt", "on").complete()]),
    );
    let running = start(&scene, GATES);
    scene.wait_for_file(&begun);
    running.crash();
    let journal = scene.journals().pop().unwrap();
    let mut bytes = fs::read(&journal).unwrap();
    bytes.extend_from_slice(b"{\"seq\":99999,\"ti");
    fs::write(&journal, bytes).unwrap();
    scene.scripted_agent(&script());
    scene.run(&["resume", "--headless"]).exits(0);
    assert_eq!(end_of(&scene), undisturbed());
}

#[test]
fn a_journal_torn_in_its_middle_is_refused_with_the_line() {
    let scene = ready();
    let begun = scene.outside("begun");
    scene.scripted_agent(&AgentScript::always([call().touch(&begun).hang()]));
    let running = start(&scene, GATES);
    scene.wait_for_file(&begun);
    running.crash();
    let journal = scene.journals().pop().unwrap();
    let text = fs::read_to_string(&journal).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() > 2, "{text}");
    lines[1] = "{\"seq\":1,\"ti";
    fs::write(&journal, lines.join("\n") + "\n").unwrap();
    let outcome = scene.run(&["resume", "--headless"]);
    assert_ne!(outcome.code(), Some(0), "{outcome}");
    outcome.says_any(&["line 2", ":2"]);
    assert_eq!(scene.calls().len(), 1);
}

#[test]
fn resume_without_anything_to_resume_says_so() {
    let scene = ready();
    let outcome = scene.run(&["resume", "--headless"]);
    assert!(matches!(outcome.code(), Some(2 | 3)), "{outcome}");
    outcome.says("no run");
}

/// Also without the dead run's journal.
#[test]
fn a_spec_behind_a_link_that_leads_out_of_the_tree_is_put_back_by_a_new_run_too() {
    for without_journal in [false, true] {
        let scene = scene();
        let spec = scene.outside("elsewhere.json");
        let text = prd_text(&two_stories());
        fs::write(&spec, &text).unwrap();
        std::os::unix::fs::symlink(&spec, scene.path("prd.json")).unwrap();
        scene.commit_all("Plan");
        let begun = scene.outside("begun");
        let spoil = format!("echo '{{' > '{}'", spec.display());
        scene.scripted_agent(&AgentScript::always([call().shell(&spoil).write("half.txt", "x").touch(&begun).hang()]));
        let running = start(&scene, GATES);
        scene.wait_for_file(&begun);
        running.crash();
        scene.nothing_runs();
        assert_ne!(fs::read_to_string(&spec).unwrap(), text);
        if without_journal {
            fs::remove_file(scene.journals().pop().unwrap()).unwrap();
        }
        scene.scripted_agent(&script());
        run(&scene, &[GATES, &["--fresh"]].concat()).exits(0);
        assert!(!scene.path("half.txt").exists());
        assert!(fs::read_to_string(&spec).unwrap().contains("\"passes\": true"));
        states(&scene, &[("S1", "passed"), ("S2", "passed")]);
    }
}

#[test]
fn what_an_agent_had_used_when_it_was_killed_counts_as_far_as_its_transcript_tells() {
    let scene = ready();
    let begun = scene.outside("begun");
    scene.scripted_agent(&AgentScript::always([call().say("at work").touch(&begun).hang()]));
    let running = start(&scene, GATES);
    scene.wait_for_file(&begun);
    let transcripts = scene.journals()[0].with_file_name("transcripts");
    eventually("what was said to be on the disk", || {
        fs::read_dir(&transcripts).is_ok_and(|mut all| all.any(|one| one.unwrap().metadata().unwrap().len() > 0))
    });
    running.crash();
    scene.nothing_runs();
    scene.scripted_agent(&script());
    let resumed = scene.run(&["resume", "--headless"]).exits(0);
    let status = scene.status();
    // A message of the killed call, and the two calls that came to their end.
    assert_eq!(status["input_tokens"], 3000, "{status:#}");
    assert_eq!(status["uncounted_calls"], 1, "{status:#}");
    resumed.says("without one call that was cut off");
}
