//! Skipping stories and trying some again, by verb.

use ralphloop_testkit::scene::eventually;
use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{ONCE_AND_ON, called, landed_once, prd_scene, reason, run, start, states, story, two_stories};

#[test]
fn a_running_story_that_is_skipped_is_kept_and_put_back_and_the_next_goes_on() {
    let scene = prd_scene(&two_stories(), &AgentScript::new());
    let begun = scene.outside("begun");
    let script = AgentScript::new()
        .story("Alpha lamp", [call().write("a.txt", "half").touch(&begun).hang()])
        .story("Beta lamp", [call().write("b.txt", "on").complete()]);
    scene.scripted_agent(&script);
    let running = start(&scene, &["--json"]);
    scene.wait_for_file(&begun);
    scene.run(&["skip", "S1"]).exits(0).says("skips S1; its attempt is ended, kept and put back");
    let ended = running.wait().exits(1);
    let skipped = ended.json_lines().into_iter().find(|event| event["type"] == "story.skipped");
    assert_eq!(skipped.map(|event| event["story"].clone()), Some("S1".into()));
    states(&scene, &[("S1", "skipped"), ("S2", "passed")]);
    assert_eq!(reason(&scene, "S1"), "skipped by you");
    landed_once(&scene, "S2", "b.txt");
    scene.tree_is_clean();
    scene.nothing_runs();
    scene.run(&["diff", "S1"]).exits(0).says("a.txt");
    scene
        .run(&["log", "--story", "S1"])
        .exits(0)
        .says("Skipping story S1: its attempt is ended")
        .says("Story S1 is skipped");
}

#[test]
fn a_waiting_story_that_is_skipped_is_not_begun_and_what_depends_on_it_is_blocked() {
    let stories = [story("S1", "Alpha lamp"), story("S2", "Beta lamp"), story("S3", "Gamma lamp").after(&["S2"])];
    let scene = prd_scene(&stories, &AgentScript::new());
    let (begun, go) = (scene.outside("begun"), scene.outside("go"));
    scene.scripted_agent(&AgentScript::always([call().write("a.txt", "on").touch(&begun).wait_for(&go).complete()]));
    let running = start(&scene, &[]);
    scene.wait_for_file(&begun);
    scene.run(&["skip", "S2"]).exits(0).says("skips S2").never_says("its attempt");
    scene.run(&["skip", "S9"]).exits(2).says("has no story S9").says("it has S1, S2, S3");
    std::fs::write(&go, "").unwrap();
    running.wait().exits(1).says("Story S2 is skipped");
    states(&scene, &[("S1", "passed"), ("S2", "skipped"), ("S3", "blocked")]);
    called(&scene, 1);
    scene.run(&["skip", "S2"]).exits(2).says("no run is at work");
}

#[test]
fn a_failed_story_is_tried_again_while_the_run_goes_on() {
    let scene = prd_scene(&two_stories(), &AgentScript::new());
    let (begun, go) = (scene.outside("begun"), scene.outside("go"));
    let script = AgentScript::new()
        .story("Alpha lamp", [call().failed("no idea"), call().write("a.txt", "on").complete()])
        .story("Beta lamp", [call().write("b.txt", "on").touch(&begun).wait_for(&go).complete()]);
    scene.scripted_agent(&script);
    let running = start(&scene, ONCE_AND_ON);
    scene.wait_for_file(&begun);
    scene.run(&["retry", "S2"]).exits(2).says("S2 is being worked on");
    scene.run(&["retry", "S1"]).exits(0).says("tries S1 again, with all its attempts");
    eventually("the wish to be noted", || running.stderr().contains("Story S1 is tried again"));
    std::fs::write(&go, "").unwrap();
    running.wait().exits(0);
    landed_once(&scene, "S1", "a.txt");
    states(&scene, &[("S1", "passed"), ("S2", "passed")]);
}

#[test]
fn a_run_that_has_ended_is_gone_on_with_for_the_story_that_is_tried_again() {
    let script = |alpha| {
        let beta = call().write("b.txt", "on").complete();
        AgentScript::new().story("Alpha lamp", [alpha]).story("Beta lamp", [beta])
    };
    let scene = prd_scene(&two_stories(), &script(call().blocked("no key")));
    run(&scene, &["--story", "S1"]).exits(1);
    scene.run(&["retry", "S2", "--headless"]).exits(1).says("landed");
    landed_once(&scene, "S2", "b.txt");
    scene.run(&["retry", "S2", "--headless"]).exits(2).says("S2 has passed already");
    scene.scripted_agent(&script(call().write("a.txt", "on").complete()));
    scene.run(&["retry", "S1", "--headless"]).exits(0).says("Story S1 is tried again");
    states(&scene, &[("S1", "passed"), ("S2", "passed")]);
}
