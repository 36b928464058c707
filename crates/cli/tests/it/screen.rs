//! The real program on a terminal of its own: choose, filter, preview, change, start, watch, detach, attach, stop, end.

use ralphloop_testkit::scene::{OnScreen, Scene, eventually};
use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{called, landed_once, nothing_landed, prd_scene, states, two_stories};

const ENTER: &str = "\r";
const ESC: &str = "\x1b";
const TAB: &str = "\t";
const RIGHT: &str = "\x1b[C";
const DOWN: &str = "\x1b[B";

fn lamps() -> AgentScript {
    AgentScript::new()
        .story("Alpha lamp", [call().write("a.txt", "on").complete()])
        .story("Beta lamp", [call().write("b.txt", "on").complete()])
}

/// Two pieces of work.
fn shop(script: &AgentScript) -> Scene {
    let scene = prd_scene(&two_stories(), script);
    scene.write("openspec/changes/add-bell/tasks.md", "## 1. Ring the bell\n- [ ] 1.1 Write bell.txt\n");
    scene.write("openspec/changes/add-bell/proposal.md", "A bell.\n");
    scene.write("ralphloop.toml", "no_gates = true\nmax_repairs = 0\n");
    scene.commit_all("More work");
    scene
}

/// The preview of the lamps is open.
fn opened(scene: &Scene) -> OnScreen {
    let mut screen = scene.on_screen("");
    screen.sees("add-bell");
    screen.sees("prd.json");
    screen.types("prd");
    screen.sees("Filter: prd");
    screen.types(ENTER);
    screen.sees("0 of 2 stories done");
    screen
}

#[test]
fn work_is_chosen_previewed_changed_and_run_to_its_end_and_looked_back_at() {
    let scene = shop(&lamps());
    let mut screen = opened(&scene);
    screen.sees("agent claude");
    screen.types(TAB);
    screen.sees("no scenarios");
    screen.types("\x1b[Z\x1b[Z");
    screen.sees("# Story S1: Alpha lamp");
    // An agent that does not exist is answered with those that do.
    screen.types("cclawd\r");
    screen.sees("unknown agent \"clawd\"");
    screen.types(ESC);
    screen.sees("c change agent");
    screen.types(&format!("c{DOWN}opus{DOWN}{DOWN}{RIGHT}{ENTER}"));
    screen.sees("model opus · at once 1 · retries 4");
    screen.types("R");
    screen.sees("The run has ended: every selected story passed");
    screen.types(&format!("{DOWN}{ENTER}"));
    screen.sees("✓ S1  Alpha lamp");
    screen.types(TAB);
    screen.sees("A a.txt  +1 -0");
    screen.sees("+on");
    screen.types("q");
    let (shown, code) = screen.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("every selected story passed") && shown.contains("ralphloop squash"), "{shown}");
    landed_once(&scene, "S1", "a.txt");
    landed_once(&scene, "S2", "b.txt");
    assert!(scene.calls()[0].argv.iter().any(|argument| argument == "opus"), "the model that was chosen");

    let mut screen = scene.on_screen("");
    screen.sees("runs, newest first");
    screen.types("run complete");
    screen.sees("▸ 20");
    screen.types(ENTER);
    screen.sees("COMPLETE");
    screen.types("q");
    screen.sees("pieces of work");
    screen.types(ESC);
    screen.sees("Type to filter");
    screen.types("q");
    assert_eq!(screen.ends().1, Some(0));
}

#[test]
fn a_run_is_detached_from_attached_to_by_a_bare_call_and_stopped_level_by_level() {
    let scene = shop(&AgentScript::new());
    let begun = scene.outside("begun");
    scene.scripted_agent(&AgentScript::always([call().write("half.txt", "x").touch(&begun).hang()]));
    let mut screen = opened(&scene);
    screen.types("R");
    screen.sees("the agent works");
    scene.wait_for_file(&begun);
    screen.types("\t");
    screen.sees("A half.txt  +1 -0");
    screen.types("d");
    let (shown, code) = screen.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("goes on"), "{shown}");

    let mut screen = scene.on_screen("");
    screen.sees("RUNNING");
    screen.types("q");
    assert_eq!(screen.ends().1, Some(0));
    assert_eq!(scene.status()["state"], "running", "closing a view touches nothing");
    scene.run(&["stop", "--now"]).exits(0);
    eventually("the run stops", || scene.status()["state"] == "stopped");
    nothing_landed(&scene);

    // It is asked about, and nothing is answered by itself.
    let mut screen = opened(&scene);
    screen.sees("is stopped");
    screen.types("R");
    screen.sees("Go on?");
    screen.types(ESC);
    screen.sees("The run was not started");
    screen.types(" R");
    screen.sees("Go on?");
    std::fs::remove_file(&begun).unwrap();
    screen.types("n");
    scene.wait_for_file(&begun);
    screen.types("q");
    screen.sees("STOPPING");
    let (shown, code) = screen.ends();
    assert_eq!(code, Some(4), "{shown}");
    scene.nothing_runs();
    states(&scene, &[("S1", "pending"), ("S2", "pending")]);
}

#[test]
fn a_run_without_a_name_chooses_among_several_works_with_its_flags() {
    let scene = shop(&lamps());
    let mut screen = scene.on_screen("run --max-retries 0 --fresh");
    screen.sees("add-bell");
    screen.types(&format!("prd{ENTER}"));
    screen.sees("retries 0");
    screen.types("q");
    assert_eq!(screen.ends().1, Some(0));
    called(&scene, 0);
    assert!(scene.journals().is_empty());
}

#[test]
fn the_commits_are_squashed_from_the_end_after_they_were_shown() {
    let scene = shop(&lamps());
    let mut screen = opened(&scene);
    screen.types("R");
    screen.sees("Squash: make one commit of them");
    screen.sees("Pull request: not possible");
    screen.types(&format!("{DOWN}{DOWN}{ENTER}"));
    screen.sees("2 commits on main become one");
    screen.types(ENTER);
    screen.sees("2 commits are one now");
    screen.types(&format!("{ENTER}{ENTER}"));
    assert_eq!(screen.ends().1, Some(0));
    assert_eq!(scene.git(&["log", "--format=%s", "-1"]).trim(), "feat: Scene");
    assert_eq!(scene.git(&["status", "--porcelain"]), "");
}
