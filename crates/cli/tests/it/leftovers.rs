//! What the agent of a run that died left in the checkout is put back before anything there is read or believed.

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{landed_once, on_a_terminal, prd_text, scene, start, states, story};

const SETTINGS: &str = "gate = [\"test -f good.txt\"]\nmax_retries = 0\nmax_repairs = 0\n";

/// A run with a gate that only good work passes, killed once its agent has done `damage`. Its next agent does `work`.
fn dead_after(damage: &str, work: &str) -> Scene {
    let scene = scene();
    scene.write("prd.json", prd_text(&[story("S1", "Alpha lamp")]));
    scene.write("ralphloop.toml", SETTINGS);
    scene.commit_all("Plan");
    scene.run(&["trust"]);
    let begun = scene.outside("begun");
    scene.scripted_agent(&AgentScript::always([call().shell(damage).touch(&begun).hang()]));
    let running = start(&scene, &["prd.json"]);
    scene.wait_for_file(&begun);
    running.crash();
    scene.nothing_runs();
    scene.scripted_agent(&AgentScript::always([call().write(work, "x").complete()]));
    scene
}

#[test]
fn gates_that_the_agent_of_a_dead_run_has_changed_are_not_those_of_the_next() {
    for again in [&["resume", "--headless"][..], &["run", "prd.json", "--headless"], &["run", "--fresh", "--headless"]]
    {
        let scene = dead_after("echo 'gate = [\"true\"]' >ralphloop.toml", "bad.txt");
        scene.run(again).exits(1);
        states(&scene, &[("S1", "failed")]);
        assert_eq!((scene.read("ralphloop.toml"), scene.landed().len()), (SETTINGS.to_owned(), 0));
        let kept = scene.kept_refs();
        assert!(kept.iter().any(|kept| scene.file_in(kept, "ralphloop.toml").contains("true")), "{kept:?}");
    }
}

#[test]
fn work_and_settings_that_the_agent_of_a_dead_run_took_away_are_there_for_the_next() {
    for damage in ["rm prd.json", "rm ralphloop.toml", "echo '[[' >ralphloop.toml", "git mv prd.json away.json"] {
        for again in [&["resume", "--headless"][..], &["run", "prd.json", "--headless"], &["run", "--headless"]] {
            let scene = dead_after(damage, "good.txt");
            let outcome = scene.run(again).exits(0);
            outcome.says("kept at refs/ralphloop/");
            landed_once(&scene, "S1", "good.txt");
            assert_eq!(scene.read("ralphloop.toml"), SETTINGS, "{damage}");
        }
    }
}

#[test]
fn who_is_asked_first_finds_the_changed_settings_until_the_answer_and_none_of_them_holds_after_it() {
    let changed = "gate = [\"true\"]\n";
    let scene = dead_after("echo 'gate = [\"true\"]' >ralphloop.toml", "bad.txt");
    let (_, code) = on_a_terminal(&scene, "resume", "q\n");
    assert_eq!((code, scene.read("ralphloop.toml").as_str()), (Some(4), changed));
    let (shown, code) = on_a_terminal(&scene, "resume", "r\n");
    assert_eq!(code, Some(1), "{shown}");
    assert_eq!((scene.read("ralphloop.toml").as_str(), scene.landed().len()), (SETTINGS, 0));
    // Without the work there is nothing to ask about.
    let scene = dead_after("rm prd.json", "good.txt");
    let (shown, code) = on_a_terminal(&scene, "resume", "r\n");
    assert_eq!(code, Some(0), "{shown}");
    landed_once(&scene, "S1", "good.txt");
}

#[test]
fn a_run_that_died_before_it_had_noted_how_the_spec_read_goes_on() {
    let scene = dead_after("echo x >bad.txt", "good.txt");
    let attempts = scene.journals().pop().unwrap().with_file_name("attempts");
    std::fs::remove_file(attempts.join("S1-1.spec")).unwrap();
    scene.run(&["resume", "--headless"]).exits(0);
    assert!(!scene.path("bad.txt").exists());
    landed_once(&scene, "S1", "good.txt");
}
