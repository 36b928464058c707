//! What a run costs, whence that is known, and how a budget ends it.

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};
use serde_json::{Value, json};

use crate::world::{codex, landed_once, nothing_landed, prd_scene, story};

fn run(scene: &Scene, more: &[&str]) -> ralphloop_testkit::scene::Outcome {
    scene.run(&[&["run", "prd.json", "--headless", "--no-gates"], more].concat())
}

#[test]
fn tokens_of_a_model_with_a_list_price_have_a_cost_to_the_millionth_that_is_labelled() {
    let scene = prd_scene(&[story("S1", "Alpha"), story("S2", "Beta")], &AgentScript::new());
    codex(&scene);
    run(&scene, &["--agent", "codex:gpt-5"]).exits(0).says("by list prices");
    let status = scene.status();
    // 2100 × 1.25 + 900 × 0.125 + 150 × 10 dollars for a million, for each story.
    let each = 0.004_238;
    assert_eq!(status["stories"][0]["cost_usd"], json!(each), "{status:#}");
    assert_eq!((&status["cost_usd"], &status["estimated_cost_usd"]), (&json!(0.008_476), &json!(0.008_476)));
    assert_eq!((&status["covered_cost_usd"], &status["unpriced_calls"]), (&Value::Null, &json!(0)));
    let commit = scene.landed().pop().unwrap();
    assert_eq!(commit.trailer("Ralphloop-Cost"), Some("0.0042 USD by list prices"));
    let ended: Vec<Value> = scene.run(&["log", "--json"]).json_lines();
    let ended: Vec<&Value> = ended.iter().filter(|event| event["type"] == "agent.ended").collect();
    assert_eq!((&ended[0]["cost_usd"], &ended[0]["estimated"]), (&json!(each), &json!(true)));
}

#[test]
fn a_cost_that_nobody_knows_is_unknown_and_no_zero_and_a_budget_says_so_before_the_run() {
    let scene = prd_scene(&[story("S1", "Alpha")], &AgentScript::new());
    codex(&scene);
    let outcome = run(&scene, &["--agent", "codex", "--max-cost", "1"]).exits(0);
    outcome.says("max_cost may not be kept with codex").says("[prices.").says("cost unknown");
    let status = scene.status();
    assert_eq!((&status["cost_usd"], &status["unpriced_calls"]), (&Value::Null, &json!(1)));
}

#[test]
fn a_price_of_ones_own_goes_before_the_list_and_a_mistake_in_it_is_shown_where_it_stands() {
    let scene = prd_scene(&[story("S1", "Alpha")], &AgentScript::new());
    codex(&scene);
    scene.write("ralphloop.toml", "[prices.\"gpt-5\"]\ninput = 2\noutput = 4\ncache_read = 0\n");
    scene.commit_all("Prices");
    run(&scene, &["--agent", "codex:gpt-5"]).exits(0);
    assert_eq!(scene.status()["cost_usd"], json!(0.0048), "2100 × 2 + 150 × 4 dollars for a million");
    for (wrong, said) in [
        ("[prices.\"gpt-5\"]\ninput = 2\n", "output is missing"),
        ("[prices.\"gpt-5\"]\ninput = -2\noutput = 4\n", "invalid value of input"),
        ("[prices.\"gpt-5\"]\ninput = 2\noutput = 4\ncache_reed = 1\n", "did you mean cache_read?"),
    ] {
        scene.write("ralphloop.toml", wrong);
        scene.run(&["config"]).exits(2).says("ralphloop.toml").says(said);
    }
}

#[test]
fn a_call_that_passes_the_budget_and_its_margin_is_ended_and_its_story_put_back_uncharged() {
    let scene = prd_scene(&[story("S1", "Alpha")], &AgentScript::new());
    scene.program(
        "claude",
        "#!/bin/sh\ncat >/dev/null\necho half > lamp.txt\n\
         echo '{\"type\":\"system\",\"subtype\":\"init\",\"model\":\"claude-sonnet-4-5\",\"session_id\":\"s\"}'\n\
         echo '{\"type\":\"assistant\",\"message\":{\"id\":\"m1\",\"content\":[{\"type\":\"text\",\"text\":\"working\"}],\"usage\":{\"input_tokens\":200000,\"output_tokens\":1}}}'\n\
         exec sleep 600\n",
    );
    // 200000 tokens read come to 0.60 dollars at least.
    let outcome = run(&scene, &["--max-cost", "0.50"]).exits(5);
    outcome.says("ended in the middle of its call").says("$0.60");
    nothing_landed(&scene);
    scene.tree_is_clean();
    scene.nothing_runs();
    assert_eq!(scene.status()["state"], "limit");
    // Within the margin it goes on.
    scene.write("ralphloop.toml", "budget_margin = 50\nidle_timeout = 1\n");
    scene.commit_all("Margin");
    run(&scene, &["--fresh", "--max-cost", "0.50", "--max-retries", "0"]).exits(1).says("idle timeout");
}

#[test]
fn what_a_client_reports_is_not_computed_again() {
    let scene = prd_scene(&[story("S1", "Alpha")], &AgentScript::always([call().write("a.txt", "on").complete()]));
    run(&scene, &["--agent", "claude:claude-sonnet-4-5"]).exits(0).never_says("by list prices");
    landed_once(&scene, "S1", "a.txt");
    let status = scene.status();
    assert!(status["cost_usd"].as_f64().is_some_and(|cost| cost > 0.0), "{status:#}");
    assert_eq!(status["estimated_cost_usd"], Value::Null);
}
