//! The screen of a run on a real terminal: attached to from another, detached from, steered by key, with keys of the user's
//! own.

use ralphloop_testkit::scene::{Scene, eventually};
use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{landed_once, prd_scene, states, two_stories};

/// Two stories, of which the agent of the first works until it is told to go on or is ended.
fn waiting() -> Scene {
    let scene = prd_scene(&two_stories(), &AgentScript::new());
    let (begun, go) = (scene.outside("begun"), scene.outside("go"));
    let script = AgentScript::new()
        .story(
            "Alpha lamp",
            [
                call().say("I look at the lamp").write("a.txt", "on").touch(&begun).wait_for(&go).complete(),
                call().write("a.txt", "on").complete(),
            ],
        )
        .story("Beta lamp", [call().write("b.txt", "on").complete()]);
    scene.scripted_agent(&script);
    scene
}

fn go_on(scene: &Scene) {
    std::fs::write(scene.outside("go"), "").unwrap();
}

const RUN: &str = "run prd.json --tui --no-gates";

#[test]
fn a_run_is_watched_from_a_second_terminal_left_and_found_again() {
    let scene = waiting();
    let mut first = scene.on_screen(RUN);
    first.sees("I look at the lamp");
    let mut second = scene.on_screen("status --follow");
    second.sees("I look at the lamp");
    second.types("q");
    let (said, code) = second.ends();
    assert!(code == Some(0) && said.contains("running"), "{said}");
    first.types("d");
    let (said, code) = first.ends();
    assert!(code == Some(0) && said.contains("goes on"), "{said}");
    assert_eq!(scene.status()["state"], "running");
    let third = scene.on_screen("status --follow");
    third.sees("I look at the lamp");
    // A screen that is killed touches nothing.
    drop(third);
    assert_eq!(scene.status()["state"], "running");
    go_on(&scene);
    eventually("the run ends without anybody", || scene.status()["state"] == "complete");
    landed_once(&scene, "S1", "a.txt");
    scene.nothing_runs();
}

#[test]
fn an_agent_that_does_not_end_is_left_at_once_by_the_third_key() {
    let scene = prd_scene(&two_stories(), &AgentScript::new());
    let begun = scene.outside("begun");
    let stays = call().ignore_term().write("half.txt", "x").touch(&begun).hang();
    scene.scripted_agent(&AgentScript::new().story("Alpha lamp", [stays]));
    let mut screen = scene.on_screen(RUN);
    scene.wait_for_file(&begun);
    screen.types("q");
    screen.sees("STOPPING");
    screen.types("q");
    screen.sees("once more within 3 s leaves at once");
    screen.types("q");
    let (said, code) = screen.ends();
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("forced to quit") && said.contains("the tree was not put back"), "{said}");
    scene.nothing_runs();
    // What the agent had done is kept by whoever goes on.
    let script = AgentScript::new()
        .story("Alpha lamp", [call().write("a.txt", "on").complete()])
        .story("Beta lamp", [call().write("b.txt", "on").complete()]);
    scene.scripted_agent(&script);
    scene.run(&["resume", "--headless"]).exits(0);
    landed_once(&scene, "S1", "a.txt");
    assert_eq!(scene.kept_refs().len(), 1);
}

#[test]
fn a_story_is_skipped_and_tried_again_by_key() {
    let scene = waiting();
    let mut screen = scene.on_screen(RUN);
    screen.sees("I look at the lamp");
    screen.types("s");
    screen.sees("s once more skips S1");
    screen.types("s");
    screen.sees("The run has ended");
    states(&scene, &[("S1", "skipped"), ("S2", "passed")]);
    screen.types("\x1b");
    eventually("the box to close", || !screen.text().contains("The run has ended:"));
    screen.sees("- S1");
    go_on(&scene);
    screen.types("Kr");
    screen.sees("every selected story passed");
    states(&scene, &[("S1", "passed"), ("S2", "passed")]);
    screen.types("q");
    assert_eq!(screen.ends().1, Some(0));
    landed_once(&scene, "S1", "a.txt");
}

#[test]
fn keys_and_colours_are_the_users_own() {
    let scene = waiting();
    scene.write(
        "ralphloop.toml",
        "[screen]\ntheme = \"high-contrast\"\nkeys = { stop = \"X\", help = [\"F\", \"ctrl-h\"] }\n",
    );
    scene.commit_all("Settings");
    scene
        .run(&["config"])
        .exits(0)
        .says("screen.theme")
        .says("high-contrast")
        .says("stop = X")
        .says("ralphloop.toml:3");
    let mut screen = scene.on_screen(RUN);
    screen.sees("I look at the lamp");
    screen.types("x");
    screen.types("F");
    screen.sees("Stop the run: the agent is asked to end");
    let text = screen.text();
    let line = text.lines().find(|line| line.contains("Stop the run: the agent is asked to end"));
    assert!(line.is_some_and(|line| line.contains("X  ")), "{text}");
    screen.types("F");
    assert_eq!(scene.status()["state"], "running", "the old key does nothing");
    screen.types("X");
    screen.sees("The run has ended");
    assert_eq!(scene.status()["state"], "stopped");
}

#[test]
fn keys_that_cannot_be_used_are_refused_with_their_place() {
    let scene = waiting();
    let refused = |text: &str, said: &[&str]| {
        scene.write("ralphloop.toml", text);
        let outcome = scene.run(&["config"]).exits(2);
        said.iter().fold(outcome, |outcome, said| outcome.says(said));
    };
    refused("[screen.keys]\nfly = \"z\"\n", &["ralphloop.toml:2", "there is no action `fly`; there are quit, detach"]);
    refused("[screen]\nkeys = { stop = \"F99\" }\n", &["ralphloop.toml:2", "`F99` is no key"]);
    refused("[screen.keys]\npause = \"z\"\nstop = \"z\"\n", &["ralphloop.toml:3", "`z` is given to `pause` as well"]);
    refused("[screen]\ntheme = \"pink\"\n", &["write one of auto, dark, light, none, high-contrast"]);
    refused("[screen]\ncolour = \"pink\"\n", &["unknown setting 'screen.colour'"]);
}
