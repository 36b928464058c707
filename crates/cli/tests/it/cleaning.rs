//! `clean`: only what is named goes, nothing of a run that may go on, no attempt's work by the way.

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};
use serde_json::Value;

use crate::world::{ONCE_AND_ON, prd_scene, run, scene, start, two_stories};

/// A finished run: S1 landed, the attempt of S2 is kept.
fn finished() -> Scene {
    let script = AgentScript::always([call().write("a.txt", "on").complete()])
        .story("Beta lamp", [call().write("b.txt", "off").failed("no")]);
    let scene = prd_scene(&two_stories(), &script);
    run(&scene, ONCE_AND_ON).exits(1);
    scene
}

fn listed(scene: &Scene) -> Vec<Value> {
    scene.run(&["clean", "--json"]).exits(0).json().as_array().cloned().unwrap()
}

fn item(scene: &Scene, kind: &str) -> Value {
    listed(scene).into_iter().find(|item| item["kind"] == kind).unwrap_or_default()
}

/// The refs of attempts.
fn kept(scene: &Scene) -> Vec<String> {
    scene.kept_refs().into_iter().filter(|name| !name.starts_with("refs/ralphloop/held/")).collect()
}

fn run_id(scene: &Scene) -> String {
    scene.status()["run"].as_str().unwrap().to_owned()
}

#[test]
fn what_is_left_is_listed_with_names_sizes_and_ages_and_nothing_is_removed() {
    let scene = finished();
    let before = kept(&scene);
    assert_eq!(before.len(), 1, "{before:?}");
    let attempt = item(&scene, "attempt");
    assert_eq!((&attempt["name"], &attempt["unmerged"]), (&"S2#1".into(), &true.into()), "{attempt:#}");
    assert!(attempt["bytes"].as_u64().unwrap() > 0, "{attempt:#}");
    let of_run = item(&scene, "run");
    assert_eq!((&of_run["name"], &of_run["removable"]), (&run_id(&scene).into(), &true.into()), "{of_run:#}");
    scene.run(&["clean"]).exits(0).says("S2#1").says("min ago").says("work that did not land");
    scene.run(&["clean", "S2#1"]).exits(0).says("Nothing was removed");
    scene.run(&["clean", "--apply"]).exits(2).says("only what is named");
    assert_eq!(kept(&scene), before);
}

#[test]
fn a_run_goes_without_its_unmerged_attempt_which_goes_when_it_is_named() {
    let scene = finished();
    let head = scene.git(&["rev-parse", "HEAD"]);
    let run = run_id(&scene);
    scene.run(&["clean", "--apply", &run]).exits(0).says(&format!("Removed run {run}"));
    assert_eq!(scene.run(&["runs", "--json"]).exits(0).json().as_array().map(Vec::len), Some(0));
    assert_eq!(kept(&scene).len(), 1, "the attempt's work is still held");
    scene.run(&["clean", "--apply", "S2#1"]).exits(0).says("Removed attempt S2#1");
    assert_eq!(kept(&scene), Vec::<String>::new());
    assert_eq!(scene.git(&["rev-parse", "HEAD"]), head);
    scene.tree_is_clean();
}

#[test]
fn all_finished_takes_everything_but_work_that_nothing_else_holds() {
    let scene = finished();
    scene.run(&["clean", "--apply", "--all-finished"]).exits(0).says("Removed run");
    let left: Vec<Value> = listed(&scene).iter().map(|item| item["kind"].clone()).collect();
    assert_eq!(left, ["attempt"]);
    assert_eq!(scene.kept_refs(), kept(&scene), "nothing is held for checkpoints any more");
    scene.run(&["run", "prd.json", "--headless", "--max-retries", "0", "--max-repairs", "0"]).exits(1);
}

#[test]
fn an_attempt_that_was_merged_goes_with_all_that_is_finished() {
    let scene = finished();
    let attempt = kept(&scene).remove(0);
    scene.git(&["branch", "rescued", &attempt]);
    let attempt = item(&scene, "attempt");
    assert_eq!((&attempt["unmerged"], &attempt["about"]), (&false.into(), &"merged".into()), "{attempt:#}");
    scene.run(&["clean", "--apply", "--all-finished"]).exits(0);
    assert_eq!(kept(&scene), Vec::<String>::new());
    scene.git(&["show", "rescued:b.txt"]);
}

#[test]
fn nothing_of_a_run_that_may_go_on_is_removed() {
    let script = AgentScript::always([call().write("a.txt", "on").say("working").hang()]);
    let scene = prd_scene(&two_stories(), &script);
    let running = start(&scene, &[]);
    scene.wait_for_calls(1);
    let run = run_id(&scene);
    scene.run(&["clean", "--apply", &run]).exits(2).says("it is running");
    scene.run(&["clean", "--apply", "--all-finished"]).exits(0).says("nothing to remove");
    scene.run(&["stop", "--now"]).exits(0);
    running.wait().exits(4);
    let attempt = item(&scene, "attempt")["name"].as_str().unwrap().to_owned();
    for name in [run.as_str(), attempt.as_str()] {
        scene.run(&["clean", "--apply", name]).exits(2).says("not finished");
    }
    assert_eq!(kept(&scene).len(), 1);
    assert_eq!(run_id(&scene), run);
}

#[test]
fn a_name_that_fits_nothing_removes_nothing_of_what_else_was_named() {
    let scene = finished();
    scene.run(&["clean", "--apply", "S2#1", "S9#9"]).exits(2).says("S9#9");
    assert_eq!(kept(&scene).len(), 1);
}

#[test]
fn a_repository_without_runs_has_nothing_left() {
    scene().run(&["clean"]).exits(0).says("nothing is left");
}
