//! Stories that a person has to look at: they land, and are done once somebody signs.

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};
use serde_json::json;

use crate::world::{PrdStory, scene};
use crate::world::{called, landed_once, passes, prd_scene, prd_text, run, states, story};

fn by_hand(id: &str, title: &str) -> PrdStory {
    let steps =
        json!([{"type": "shell", "command": "test -e a.txt"}, {"type": "manual", "criteria": ["the light is warm"]}]);
    story(id, title).with("verification_steps", steps)
}

fn stories() -> [PrdStory; 3] {
    [by_hand("S1", "Alpha lamp"), story("S2", "Beta lamp"), story("S3", "Gamma lamp").after(&["S1"])]
}

fn lamps() -> AgentScript {
    AgentScript::new()
        .story("Alpha lamp", [call().write("a.txt", "on").complete(), call().write("a.txt", "warm").complete()])
        .story("Beta lamp", [call().write("b.txt", "on").complete()])
        .story("Gamma lamp", [call().write("c.txt", "on").complete()])
}

fn again(scene: &Scene) -> ralphloop_testkit::scene::Outcome {
    scene.run(&["run", "prd.json", "--headless", "--no-gates"])
}

#[test]
fn b39_f30_a_manual_check_pauses_the_run_for_a_sign_off_which_a_person_gives() {
    let scene = prd_scene(&stories(), &lamps());
    scene.run(&["show", "prd.json"]).exits(0).says("sign-off: the light is warm");
    let ended = run(&scene, &["--no-gates"]).exits(4);
    ended.says("Awaiting sign-off (1):").says("awaits a sign-off: the light is warm").says("`ralphloop sign S1`");
    landed_once(&scene, "S1", "a.txt");
    assert!(!passes(&scene, "S1") && passes(&scene, "S2"));
    states(&scene, &[("S1", "awaiting_sign_off"), ("S2", "passed"), ("S3", "blocked")]);
    scene.run(&["status"]).says("awaiting sign-off");
    again(&scene).exits(4);
    called(&scene, 2);
    scene.run(&["sign", "S1"]).exits(0).says("S1 is signed off");
    scene.tree_is_clean();
    assert!(passes(&scene, "S1"));
    assert_eq!(scene.git(&["log", "-1", "--format=%s"]), "chore(S1): signed off");
    again(&scene).exits(0);
    states(&scene, &[("S1", "passed"), ("S2", "passed"), ("S3", "passed")]);
    called(&scene, 3);
    scene.run(&["sign", "S1"]).exits(0).says("done already");
}

#[test]
fn an_agent_does_not_sign() {
    let ticked = prd_text(&[by_hand("S1", "Alpha lamp").with("passes", json!(true))]);
    let script =
        AgentScript::new().story("Alpha lamp", [call().write("a.txt", "on").write("prd.json", &ticked).complete()]);
    let scene = prd_scene(&[by_hand("S1", "Alpha lamp")], &script);
    run(&scene, &["--no-gates"]).exits(4);
    assert!(!passes(&scene, "S1"));
    scene.tree_is_clean();
}

#[test]
fn what_a_person_sends_back_is_done_again_and_a_new_run_knows_what_is_not_signed() {
    for place in ["--in-place", "--worktree"] {
        let scene = prd_scene(&[by_hand("S1", "Alpha lamp"), story("S2", "Beta lamp")], &lamps());
        run(&scene, &["--no-gates", place]).exits(4);
        run(&scene, &["--no-gates", "--fresh", place]).exits(4).says("S1 awaits a sign-off");
        called(&scene, 2);
        scene.run(&["retry", "S1", "--headless"]).exits(4);
        called(&scene, 3);
        assert_eq!(scene.read("a.txt"), "warm", "{place}");
        let landed = scene.landed();
        assert_eq!(landed.iter().filter(|c| c.trailer("Story") == Some("S1")).count(), 2, "{place}");
        scene.run(&["sign", "S1", "prd.json"]).exits(0);
        again(&scene).exits(0);
        called(&scene, 3);
    }
}

#[test]
fn f29_skip_manual_leaves_such_stories_aside() {
    let scene = prd_scene(&[by_hand("S1", "Alpha lamp"), story("S2", "Beta lamp")], &lamps());
    run(&scene, &["--no-gates", "--skip-manual"]).exits(0);
    states(&scene, &[("S1", "skipped"), ("S2", "passed")]);
    again(&scene).exits(4);
    landed_once(&scene, "S1", "a.txt");
}

#[test]
fn only_what_has_landed_and_asks_for_it_is_signed() {
    let scene = prd_scene(&stories(), &lamps());
    scene.run(&["sign", "S1", "prd.json"]).exits(2).says("has not landed on this branch");
    scene.run(&["sign", "S2", "prd.json"]).exits(2).says("needs no sign-off");
    scene.run(&["sign", "S9", "prd.json"]).exits(2).says("it has: S1, S2, S3");
    scene.tree_is_clean();
}

#[test]
fn f17_a_task_group_with_a_manual_verification_waits_for_a_person() {
    let scene = scene();
    scene.write(
        "docs/implementation/1-light/1.1-lamp.md",
        "# 1.1 Lamp\n\n## 1.1.1. Hang it\n\n**Status**: 🔵 Planned\n\n**Verification:**\n- type: manual\n- criteria:\n  - \
         it hangs straight\n  - it shines\n",
    );
    scene.write(
        "docs/prd.md",
        "# PRD\n\n## User Stories\n\n### US-1: Lamp\n\n- [ ] it hangs\n\n**Verification:** manual - it is warm\n",
    );
    scene.commit_all("Plan");
    scene.run(&["show", "flight:prd"]).exits(0).says("sign-off: it is warm");
    scene.scripted_agent(&AgentScript::always([call().write("a.txt", "on").complete()]));
    scene.run(&["run", "flight:1.1", "--headless", "--no-gates"]).exits(4).says("it hangs straight; 1.1.1: it shines");
    assert!(scene.read("docs/implementation/1-light/1.1-lamp.md").contains("🔵 Planned"));
    scene.run(&["sign", "1.1"]).exits(0);
    assert!(scene.read("docs/implementation/1-light/1.1-lamp.md").contains("✅ Complete"));
    scene.run(&["run", "flight:1.1", "--headless", "--no-gates"]).exits(0);
}

#[test]
fn the_screen_at_the_end_shows_what_waits_for_a_signature_and_takes_it() {
    let scene = prd_scene(&[by_hand("S1", "Alpha lamp")], &lamps());
    let mut screen = scene.on_screen("run prd.json --no-gates --tui");
    screen.sees("Sign S1: it has landed, and waits for you");
    screen.types("\x1b[B\x1b[B\r");
    screen.sees("Look at it: the light is warm");
    screen.sees("ralphloop sign S1");
    assert!(!passes(&scene, "S1"), "it is shown first");
    screen.types("\r");
    screen.sees("S1 is signed off, committed as");
    assert!(passes(&scene, "S1"));
    screen.types("\r\r");
    screen.ends();
    again(&scene).exits(0);
}
