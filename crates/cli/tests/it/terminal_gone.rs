//! A terminal that goes away under the screen, with or without a hang-up.

use std::process::Stdio;

use ralphloop_testkit::scene::{Scene, eventually};
use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{binary, nothing_landed, prd_scene, states, two_stories};

/// Closes the terminal of a run with a screen while its agent works; `before` goes before the program's name.
fn close_under(before: &str) -> Scene {
    let scene = prd_scene(&two_stories(), &AgentScript::new());
    let begun = scene.outside("begun");
    scene.scripted_agent(&AgentScript::always([call().write("half.txt", "x").touch(&begun).hang()]));
    let command = format!("{before} '{}' run prd.json --tui --no-gates", binary().display());
    let paths = std::env::var_os("PATH").unwrap();
    let script = std::env::split_paths(&paths).map(|folder| folder.join("script")).find(|path| path.is_file()).unwrap();
    let mut script = scene.command(script);
    script.args(["-qec", &command, "/dev/null"]).env("TERM", "xterm-256color");
    let mut terminal = script.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    scene.wait_for_file(&begun);
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    scene
}

#[track_caller]
fn the_run_ended(scene: &Scene) {
    eventually("the run ends with its terminal", || scene.status()["state"] == "stopped");
    scene.nothing_runs();
    states(scene, &[("S1", "pending"), ("S2", "pending")]);
    nothing_landed(scene);
}

#[test]
fn a_terminal_that_hangs_up_ends_the_run_and_puts_the_tree_back() {
    the_run_ended(&close_under("exec"));
}

#[test]
fn a_terminal_that_is_gone_without_a_word_ends_it_too_and_is_not_read_from_for_ever() {
    // In a session of its own, nobody sends it HUP.
    the_run_ended(&close_under("exec setsid -w"));
}
