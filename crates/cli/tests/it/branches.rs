//! The branch that a run works on, and the one that the user finds afterwards.

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};
use serde_json::{Value, json};

use crate::world::{ONCE, prd_text, run, scene, story};

/// A work that wants its commits on a branch of its own.
fn branch_scene(script: &AgentScript) -> Scene {
    let scene = scene();
    let mut plan: Value = serde_json::from_str(&prd_text(&[story("S1", "Alpha lamp")])).unwrap();
    plan["branchName"] = json!("ralph/lamps");
    scene.write("prd.json", format!("{plan:#}\n"));
    scene.commit_all("Plan");
    scene.scripted_agent(script);
    scene
}

#[test]
fn stories_land_on_the_branch_that_the_work_names_and_main_stays() {
    let scene = branch_scene(&AgentScript::always([call().write("a.txt", "on").complete()]));
    let main = scene.git(&["rev-parse", "main"]);
    run(&scene, ONCE).exits(0).says("ralph/lamps");
    assert_eq!(scene.git(&["symbolic-ref", "--short", "HEAD"]).trim(), "ralph/lamps");
    assert_eq!(scene.git(&["rev-parse", "main"]), main);
    assert_eq!(scene.landed().len(), 1);
}

#[test]
fn a_run_that_lands_nothing_gives_the_users_branch_back() {
    let scene = branch_scene(&AgentScript::always([call().write("a.txt", "on").failed("too dark")]));
    run(&scene, ONCE).exits(1);
    assert_eq!(scene.git(&["symbolic-ref", "--short", "HEAD"]).trim(), "main");
    assert_eq!(scene.git(&["branch", "--format=%(refname:short)"]).trim(), "main");
    assert_eq!(scene.kept_refs().len(), 1);
}

#[test]
fn r42_a_branch_that_exists_is_gone_on_with_and_never_reset() {
    let scene = branch_scene(&AgentScript::always([call().write("a.txt", "on").complete()]));
    scene.git(&["switch", "--quiet", "--create", "ralph/lamps"]);
    scene.write("earlier.txt", "work of another day\n");
    scene.commit_all("Earlier work");
    let earlier = scene.head();
    scene.git(&["switch", "--quiet", "main"]);
    run(&scene, ONCE).exits(0);
    assert!(scene.git_succeeds(&["merge-base", "--is-ancestor", earlier.trim(), "ralph/lamps"]));
    assert_eq!(scene.read("earlier.txt"), "work of another day\n");
}

#[test]
fn r13_a_run_leaves_no_file_of_its_own_in_the_tree() {
    let scene = branch_scene(&AgentScript::always([call().write("a.txt", "on").complete()]));
    run(&scene, ONCE).exits(0);
    scene.tree_is_clean();
    assert_eq!(scene.landed()[0].files, ["a.txt", "prd.json"]);
    assert_eq!(scene.git(&["status", "--short", "--ignored"]).trim(), "");
}

#[test]
fn a_finished_change_is_offered_for_archiving_and_stays_where_it_is() {
    let scene = scene();
    scene.write("openspec/changes/add-lamp/proposal.md", "# Why\n\nIt is dark.\n");
    scene.write("openspec/changes/add-lamp/tasks.md", "## 1. Lamp\n\n- [ ] 1.1 Light it\n");
    scene.commit_all("Plan");
    scene.scripted_agent(&AgentScript::always([call().write("a.txt", "on").complete()]));
    scene.run(&["run", "--headless"]).exits(0).says("openspec archive add-lamp");
    assert!(scene.path("openspec/changes/add-lamp/tasks.md").exists());
}
