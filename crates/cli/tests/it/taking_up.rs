//! An unfinished run is gone on with: on a terminal after a question with what there is to know, elsewhere as the flags
//! say, and said.

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{on_a_terminal, prd_scene, run, start, states, two_stories};

fn lamps() -> AgentScript {
    AgentScript::new()
        .story("Alpha lamp", [call().write("a.txt", "on").complete()])
        .story("Beta lamp", [call().write("b.txt", "on").complete()])
}

/// A run that was killed while the agent of its second story worked.
fn cut_off() -> Scene {
    let scene = prd_scene(&two_stories(), &lamps());
    let begun = scene.outside("begun");
    scene.scripted_agent(
        &AgentScript::always([call().write("half.txt", "x").touch(&begun).hang()])
            .story("Alpha lamp", [call().write("a.txt", "on").complete()]),
    );
    let running = start(&scene, &[]);
    scene.wait_for_file(&begun);
    running.crash();
    scene.nothing_runs();
    scene.scripted_agent(&lamps());
    scene
}

#[track_caller]
fn says(shown: &str, words: &[&str]) {
    for word in words {
        assert!(shown.contains(word), "{word:?} is not in {shown}");
    }
}

#[test]
fn f37_a_run_that_was_cut_off_is_asked_about_with_what_is_in_the_tree_and_gone_on_with() {
    let scene = cut_off();
    let (shown, code) = on_a_terminal(&scene, "resume", "r\n");
    says(&shown, &["interrupted", "its process is gone", "1 of 2 stories passed, 1 left to do"]);
    says(&shown, &["S2#1 was under way (the agent works)", "kept at refs/ralphloop/", "half.txt", "Go on? [r]"]);
    assert_eq!(code, Some(0), "{shown}");
    states(&scene, &[("S1", "passed"), ("S2", "passed")]);
    assert!(!scene.path("half.txt").exists());
}

#[test]
fn f37_who_quits_finds_everything_as_it_was_and_so_does_who_hangs_up() {
    let scene = cut_off();
    for typed in ["q\n", "x\nq\n", "\u{4}"] {
        let (shown, code) = on_a_terminal(&scene, "resume", typed);
        says(&shown, &["Go on? [r]", "nothing was started"]);
        assert_eq!(code, Some(4), "{shown}");
        assert_eq!(scene.read("half.txt"), "x");
        assert_eq!(scene.status()["state"], "interrupted");
    }
}

#[test]
fn f37_run_asks_about_an_unfinished_run_of_the_same_work_unless_a_flag_says_what_to_do() {
    let scene = cut_off();
    let (shown, code) = on_a_terminal(&scene, "run prd.json", "n\n");
    says(&shown, &["its process is gone", "[n] begin a new run"]);
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(scene.journals().len(), 2, "it is a new run");
    states(&scene, &[("S2", "passed")]);
    let scene = cut_off();
    let (shown, code) = on_a_terminal(&scene, "run prd.json --resume", "");
    assert!(!shown.contains("Go on?"), "{shown}");
    assert_eq!((code, scene.journals().len()), (Some(0), 1), "{shown}");
}

#[test]
fn f37_a_stopped_run_offers_its_summary_and_a_paused_one_says_why() {
    let scene = prd_scene(&two_stories(), &lamps());
    let (begun, go) = (scene.outside("begun"), scene.outside("go"));
    scene.scripted_agent(
        &AgentScript::always([call().write("b.txt", "on").complete()])
            .story("Alpha lamp", [call().write("a.txt", "on").touch(&begun).wait_for(&go).complete()]),
    );
    let running = start(&scene, &[]);
    scene.wait_for_file(&begun);
    scene.run(&["pause"]).exits(0);
    std::fs::write(&go, "").unwrap();
    running.wait().exits(4);
    let (shown, code) = on_a_terminal(&scene, "resume", "s\n\n");
    says(&shown, &["(paused): ", "asked to pause", "1 of 2 stories passed", "Passed", "Alpha lamp"]);
    assert_eq!(code, Some(0), "{shown}");
    states(&scene, &[("S1", "passed"), ("S2", "passed")]);
}

#[test]
fn f37_checks_that_were_cut_short_run_again() {
    let scene = prd_scene(&two_stories()[..1], &lamps());
    let gate = scene.outside("gate");
    let once = format!("[ ! -f a.txt ] || [ -e '{0}' ] || {{ touch '{0}'; sleep 1000; }}", gate.display());
    let running = start(&scene, &["--gate", &once]);
    scene.wait_for_file(&gate);
    running.crash();
    scene.nothing_runs();
    let (shown, code) = on_a_terminal(&scene, "resume", "\n");
    says(&shown, &["S1#1 was under way (its checks were cut short)"]);
    assert_eq!(code, Some(0), "{shown}");
    states(&scene, &[("S1", "passed")]);
}

#[test]
fn f37_a_damaged_or_missing_journal_leads_to_a_new_run_if_that_is_wanted() {
    for missing in [false, true] {
        let scene = cut_off();
        let journal = scene.journals().pop().unwrap();
        if missing {
            std::fs::remove_file(&journal).unwrap();
        } else {
            let text = std::fs::read_to_string(&journal).unwrap();
            std::fs::write(&journal, text.replacen("\"seq\":1,", "\"seq\":1;", 1)).unwrap();
        }
        let (shown, code) = on_a_terminal(&scene, "resume", "q\n");
        says(&shown, &["cannot be gone on with", "journal.jsonl", "what it landed stays"]);
        assert_eq!((code, scene.read("half.txt")), (Some(4), "x".to_owned()), "{shown}");
        assert_ne!(scene.run(&["resume"]).code(), Some(0), "nobody to ask, so that it is an error");
        let (shown, code) = on_a_terminal(&scene, "resume", "n\n");
        assert_eq!(code, Some(0), "{shown}");
        assert!(scene.path("b.txt").exists() && !scene.path("half.txt").exists(), "{shown}");
    }
}

#[test]
fn f37_changes_of_the_user_are_committed_or_looked_at_again_as_they_wish() {
    let scene = prd_scene(&two_stories(), &lamps());
    scene.write("README.md", "mine\n");
    scene.commit_all("Read me");
    scene.write("README.md", "mine, changed\n");
    let (shown, code) = on_a_terminal(&scene, "run prd.json", "a\nq\n");
    says(&shown, &["uncommitted changes: README.md", "What becomes of them?", "nothing was started"]);
    assert_eq!((code, scene.read("README.md")), (Some(4), "mine, changed\n".to_owned()), "{shown}");
    let (shown, code) = on_a_terminal(&scene, "run prd.json --story S1", "w\n");
    assert_eq!((code, scene.read("README.md")), (Some(0), "mine, changed\n".to_owned()), "{shown}");
    states(&scene, &[("S1", "passed")]);
    let (shown, code) = on_a_terminal(&scene, "run prd.json", "c\n");
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(scene.git(&["show", "HEAD:README.md"]), "mine, changed");
    assert!(scene.git(&["log", "--format=%s"]).contains("Work in progress"));
}

#[test]
fn f37_an_unfinished_run_in_which_nothing_is_left_is_ended() {
    let scene = prd_scene(&two_stories(), &lamps());
    run(&scene, &[]).exits(0);
    let journal = scene.journals().pop().unwrap();
    let text = std::fs::read_to_string(&journal).unwrap();
    let all: Vec<&str> = text.lines().collect();
    // The end was not noted any more.
    std::fs::write(&journal, all[..all.len() - 1].join("\n") + "\n").unwrap();
    assert_eq!(scene.status()["state"], "interrupted");
    let (shown, code) = on_a_terminal(&scene, "resume", "r\n");
    says(&shown, &["2 of 2 stories passed, 0 left to do", "nothing is left to do"]);
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(scene.status()["state"], "complete");
}

#[test]
fn f37_without_a_terminal_it_goes_on_and_says_with_what() {
    let scene = cut_off();
    let outcome = scene.run(&["run", "prd.json"]).exits(0);
    outcome.says("going on with run ").says("its process is gone").says("S2#1 was under way");
    assert_eq!(scene.journals().len(), 1);
    let new = prd_scene(&two_stories(), &lamps());
    assert!(!run(&new, &[]).exits(0).stderr.contains("going on with"), "there is nothing to go on with");
}
