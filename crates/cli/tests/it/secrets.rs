//! What must not get out: secrets in commit messages, and settings of ours that are nobody else's business.

use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{passes, prd_scene, run, story};

#[test]
fn a_secret_in_the_title_of_a_story_is_masked_in_its_commit() {
    let secret = "very-secret-value-4711";
    let mut scene = prd_scene(
        &[story("S1", &format!("Replace the key {secret} by another"))],
        &AgentScript::always([call().write("a.txt", "on").complete()]),
    );
    scene.set_env("LAMP_API_KEY", secret);
    run(&scene, &[]).exits(0);
    let message = scene.git(&["log", "-1", "--format=%B"]);
    assert!(message.starts_with("feat(S1): Replace the key [redacted] by another"), "{message}");
    assert!(!message.contains(secret) && passes(&scene, "S1"), "{message}");
}

#[test]
fn who_is_told_of_a_run_and_with_which_key_reaches_neither_agent_nor_gate() {
    let mut scene = prd_scene(&[story("S1", "Alpha lamp")], &AgentScript::new());
    let (agent, gate) = (scene.outside("agent-env"), scene.outside("gate-env"));
    scene.scripted_agent(&AgentScript::always([call()
        .write("a.txt", "on")
        .shell(&format!("env > '{}'", agent.display()))
        .complete()]));
    scene.set_env("RALPHLOOP_NOTIFY", "true");
    scene.set_env("RALPHLOOP_NOTIFY_SECRET", "the-key-of-the-web-hook");
    scene.set_env("LAMP_API_KEY", "the-agent-may-need-this");
    run(&scene, &["--gate", &format!("env > '{}'", gate.display())]).exits(0);
    for seen in [agent, gate] {
        let seen = std::fs::read_to_string(seen).unwrap();
        assert!(!seen.contains("RALPHLOOP_NOTIFY"), "{seen}");
        assert!(seen.contains("LAMP_API_KEY=the-agent-may-need-this"), "{seen}");
    }
}
