//! Which agent works: known ones, those of the user's own, and what is said of one that is not there.

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::AgentScript;
use serde_json::Value;

use crate::world::{COMPLETE, landed_once, prd_scene, scene, story};

fn listed(scene: &Scene) -> (String, Vec<Value>) {
    let json = scene.run(&["agents", "list", "--json"]).exits(0).json();
    (json["chosen"].as_str().unwrap().to_owned(), json["agents"].as_array().unwrap().clone())
}

#[track_caller]
fn agent(agents: &[Value], name: &str) -> Value {
    agents.iter().find(|agent| agent["name"] == name).unwrap_or_else(|| panic!("no {name} in {agents:#?}")).clone()
}

#[test]
fn every_known_agent_is_listed_with_its_version_and_sign_in_if_it_is_here() {
    let mut scene = scene();
    scene.program("codex", "#!/bin/sh\necho 'codex-cli 0.171.0'\n");
    scene.program("gemini", "#!/bin/sh\necho broken >&2; exit 3\n");
    scene.set_env("OPENAI_API_KEY", "test-key-of-the-scene");
    let (chosen, agents) = listed(&scene);
    assert_eq!(chosen, "codex", "claude is not here, so the first that is");
    assert_eq!(agents.len(), 14);
    let codex = agent(&agents, "codex");
    assert_eq!((&codex["here"], &codex["version"]), (&true.into(), &"codex-cli 0.171.0".into()));
    assert_eq!((&codex["signed_in"], &codex["signed_in_by"]), (&true.into(), &"OPENAI_API_KEY".into()));
    let gemini = agent(&agents, "gemini");
    assert_eq!((&gemini["here"], &gemini["version"]), (&true.into(), &Value::Null));
    assert_eq!(gemini["signed_in"], Value::Null, "a keyring may hold what is not seen");
    let claude = agent(&agents, "claude");
    assert_eq!((&claude["here"], &claude["signed_in"]), (&false.into(), &Value::Null));
    let outcome = scene.run(&["agents"]).exits(0).says("codex-cli 0.171.0").says("npm install -g @qwen-code/qwen-code");
    outcome.never_says("test-key-of-the-scene");
}

#[test]
fn an_unknown_agent_is_answered_with_the_known_ones_and_the_one_that_was_meant() {
    let scene = prd_scene(&[story("S1", "Alpha")], &AgentScript::new());
    scene
        .run(&["run", "prd.json", "--headless", "--agent", "codxe"])
        .exits(2)
        .says("did you mean codex?")
        .says("claude, codex, opencode, gemini, qwen, copilot, cursor, amp, droid, kimi, pi, aider, goose, builtin");
}

#[test]
fn without_claude_the_first_agent_that_is_here_is_taken() {
    let scene = scene();
    scene.write("prd.json", crate::world::prd_text(&[story("S1", "Alpha")]));
    scene.commit_all("Plan");
    // As little of Codex as a run needs.
    scene.program(
        "codex",
        &format!(
            "#!/bin/sh\ncat >/dev/null\necho \"$@\" > arguments\n\
             echo '{{\"type\":\"item.completed\",\"item\":{{\"id\":\"i\",\"type\":\"agent_message\",\"text\":\"{COMPLETE}\"}}}}'\n\
             echo '{{\"type\":\"turn.completed\",\"usage\":{{\"input_tokens\":3000,\"output_tokens\":150}}}}'\n"
        ),
    );
    scene.run(&["run", "prd.json", "--headless", "--no-gates"]).exits(0).says("--dangerously-bypass-approvals");
    landed_once(&scene, "S1", "arguments");
    let arguments = scene.read("arguments");
    assert_eq!(arguments.trim(), "exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -");
    let status = scene.status();
    assert_eq!((&status["input_tokens"], &status["output_tokens"]), (&3000.into(), &150.into()));
    assert_eq!(status["cost_usd"], Value::Null, "it does not say what it cost");
}

#[test]
fn an_agent_of_the_projects_own_works_with_its_model_and_gets_the_prompt_as_it_wants() {
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &AgentScript::new());
    scene.write(
        "ralphloop.toml",
        "agent = \"local:small\"\n[agents.local]\ncommand = \"mine --fast\"\nmodel_flag = \"--use\"\nprompt = \"argument\"\n",
    );
    scene.commit_all("Agent");
    scene.program("mine", &format!("#!/bin/sh\nprintf '%s|' \"$@\" > arguments\necho '{COMPLETE}'\n"));
    scene.run(&["run", "prd.json", "--headless", "--no-gates"]).exits(0);
    landed_once(&scene, "S1", "arguments");
    let arguments = scene.read("arguments");
    assert!(arguments.starts_with("--fast|--use|small|") && arguments.contains("Alpha lamp"), "{arguments}");
    let (chosen, agents) = listed(&scene);
    assert_eq!(chosen, "local");
    assert_eq!((&agent(&agents, "local")["own"], &agent(&agents, "local")["here"]), (&true.into(), &true.into()));
}

#[test]
fn a_prompt_that_fits_into_no_argument_is_too_long_and_not_a_crash() {
    let big = "x".repeat(140_000);
    let scene = prd_scene(&[story("S1", "Alpha").with("description", big.into())], &AgentScript::new());
    scene.write("ralphloop.toml", "agent = \"local\"\n[agents.local]\ncommand = \"mine\"\nprompt = \"argument\"\n");
    scene.commit_all("Agent");
    scene.program("mine", "#!/bin/sh\ntouch started\n");
    scene.run(&["run", "prd.json", "--headless", "--no-gates", "--max-retries", "0"]).exits(1).says("does not fit");
    assert!(!scene.path("started").exists());
}
