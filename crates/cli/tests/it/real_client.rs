//! The other real clients, pinned, against a scripted model on loopback: each completes a story, is caught at a false
//! claim, hits a limit, hangs and is stopped. Nothing is imitated but the model, and nothing of them stays.

use std::time::Duration;

use ralphloop_testkit::model_api::{FaultKind, ModelApi, ModelScript, StoryScript};
use ralphloop_testkit::scene::{Outcome, Scene};
use serde_json::json;

use crate::world::{COMPLETE, installed, landed_once, prd_text, scene, story};

/// How long a client may take to send its first request on a loaded machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// A repository with one story, the real client on the path with a home of its own, and the model it talks to.
fn world(client: &str, script: ModelScript) -> (Scene, ModelApi) {
    let client = client.trim_end_matches(" acp");
    let mut scene = scene();
    scene.write("prd.json", prd_text(&[story("S1", "Bulb")]));
    scene.commit_all("Plan");
    let api = ModelApi::start(script).unwrap();
    scene.link_program(client, &installed(client));
    scene.link_program("node", &node());
    let url = api.url();
    let home = |path: &str, text: String| {
        let path = scene.outside("home").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let variables: Vec<(&str, String)> = match client {
        "codex" => {
            home(
                ".codex/config.toml",
                format!(
                    "model = \"scripted\"\nmodel_provider = \"scripted\"\ncheck_for_update_on_startup = false\n\
                     [analytics]\nenabled = false\n[model_providers.scripted]\nname = \"scripted\"\n\
                     base_url = \"{url}/v1\"\nenv_key = \"CODEX_API_KEY\"\nwire_api = \"responses\"\n\
                     request_max_retries = 1\nstream_max_retries = 1\n"
                ),
            );
            vec![("CODEX_API_KEY", "test-key".into())]
        }
        "opencode" => vec![
            ("OPENCODE_CONFIG_CONTENT", opencode_settings(&url)),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1".into()),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".into()),
        ],
        "gemini" => {
            home(".gemini/settings.json", node_client_settings("gemini-api-key"));
            vec![("GEMINI_API_KEY", "test-key".into()), ("GOOGLE_GEMINI_BASE_URL", url)]
        }
        "qwen" => {
            home(".qwen/settings.json", node_client_settings("openai"));
            vec![
                ("OPENAI_API_KEY", "test-key".into()),
                ("OPENAI_BASE_URL", format!("{url}/v1")),
                ("OPENAI_MODEL", "scripted".into()),
            ]
        }
        other => unreachable!("{other} is no client of these tests"),
    };
    for (name, value) in variables.into_iter().chain([("SHELL", "/bin/bash".into()), ("TERM", "dumb".into())]) {
        scene.set_env(name, value);
    }
    (scene, api)
}

pub(crate) fn node() -> std::path::PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).map(|folder| folder.join("node")).find(|node| node.is_file()).unwrap()
}

fn opencode_settings(url: &str) -> String {
    let model =
        json!({"name": "scripted", "limit": {"context": 100_000, "output": 8000}, "cost": {"input": 1, "output": 2}});
    json!({
        "autoupdate": false, "share": "disabled", "model": "scripted/scripted", "small_model": "scripted/scripted",
        "provider": {"scripted": {"npm": "@ai-sdk/openai-compatible", "name": "scripted",
            "options": {"baseURL": format!("{url}/v1"), "apiKey": "test-key"}, "models": {"scripted": model}}},
    })
    .to_string()
}

/// As Gemini CLI and Qwen Code, which comes from it, are set.
fn node_client_settings(sign_in: &str) -> String {
    json!({
        "security": {"auth": {"selectedType": sign_in}, "folderTrust": {"enabled": false}},
        "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},
        "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
    })
    .to_string()
}

fn run(scene: &Scene, client: &str, flags: &[&str]) -> Outcome {
    scene.run(&[&["run", "prd.json", "--headless"], agent(client), flags].concat())
}

/// Gemini CLI without a model asks one which to take, and waits long for an answer that it can read.
fn agent(client: &str) -> &'static [&'static str] {
    match client {
        "codex" => &["--agent", "codex"],
        "opencode" => &["--agent", "opencode"],
        "qwen" => &["--agent", "qwen"],
        "gemini" => &["--agent", "gemini:gemini-2.5-flash"],
        "gemini acp" => &["--agent-format", "acp", "--agent-command", "gemini --acp --model gemini-2.5-flash"],
        "opencode acp" => &["--agent-format", "acp", "--agent-command", "opencode acp"],
        other => unreachable!("{other} is no client of these tests"),
    }
}

fn honest() -> StoryScript {
    StoryScript::when(&["Bulb"])
        .run("echo bulb > alpha.txt")
        .run("cat alpha.txt > alpha.seen")
        .say(&format!("The bulb is in.\n{COMPLETE}"))
}

/// The story is in, once, and nothing is left.
fn landed(scene: &Scene) {
    landed_once(scene, "S1", "alpha.txt");
    assert_eq!(scene.read("alpha.txt"), "bulb\n");
    scene.tree_is_clean();
    scene.nothing_runs();
}

/// A false claim is caught by the gate, repaired in place, and lands with the tokens that the client told.
fn claims_falsely_and_repairs(client: &str, tokens_a_request: impl Into<Option<u64>>) {
    let repaired = StoryScript::when(&["GATE-SAYS-DARK"])
        .run("echo bulb > alpha.txt")
        .run("cat alpha.txt > alpha.seen")
        .say(&format!("Now.\n{COMPLETE}"));
    let claimed = StoryScript::when(&["Bulb"]);
    // Qwen Code writes to absolute paths only, which a script does not know.
    let claimed = match client {
        "qwen" => claimed.run("echo nothing > alpha.txt"),
        _ => claimed.write("alpha.txt", "nothing\n"),
    };
    let claimed = claimed.say(&format!("All tests pass.\n{COMPLETE}"));
    let (scene, api) = world(client, ModelScript::new().story(repaired).story(claimed));
    // The prompt names the gate's command, so the words of its failure are in a file.
    scene.write("gate.sh", "test ! -e alpha.txt || grep -q bulb alpha.txt || { echo GATE-SAYS-DARK; exit 3; }\n");
    scene.commit_all("Gate");
    run(&scene, client, &["--gate", "sh gate.sh", "--max-repairs", "1", "--max-retries", "0"]).exits(0);
    landed(&scene);
    assert_eq!(scene.read("alpha.seen"), "bulb\n", "its shell tool has run");
    let status = scene.status();
    if let Some(tokens) = tokens_a_request.into() {
        assert_eq!(status["input_tokens"], 5 * tokens, "{status:#}");
        assert_eq!(status["output_tokens"], 250, "{status:#}");
    }
    assert!(!api.requests().is_empty());
}

/// A model that never answers is cut by our own clock; what was done is put back, and the next attempt lands.
fn hangs_and_is_tried_again(client: &str, hung_at: usize) {
    let (scene, _api) = world(client, ModelScript::new().story(honest().fault(hung_at, 1, FaultKind::Hang)));
    run(&scene, client, &["--start-timeout", "60", "--idle-timeout", "15", "--max-retries", "1"]).exits(0).says_any(&[
        "no output for",
        "silent",
        "no output within",
        "never",
    ]);
    landed(&scene);
    assert_eq!(scene.story("S1")["attempts"], 2);
}

/// A model that never answers, and a person who stops the run in the midst of that and takes it up again. No clock of ours
/// takes part, so that no machine is too slow for it.
fn hangs_is_stopped_and_taken_up_again(client: &str, hung_at: usize) {
    let (scene, api) = world(client, ModelScript::new().story(honest().fault(hung_at, 1, FaultKind::Hang)));
    let running = scene.start(&[&["run", "prd.json", "--headless"], agent(client)].concat());
    assert!(api.wait_for_hang(PATIENCE), "{client} did not get so far");
    scene.run(&["stop", "--now"]).exits(0);
    running.wait().exits(4);
    assert_eq!(scene.landed_subjects(), Vec::<String>::new());
    scene.tree_is_clean();
    scene.nothing_runs();
    scene.run(&["resume"]).exits(0);
    landed(&scene);
}

/// Stopped in the middle of a tool that ignores it, whose children would go on.
fn is_stopped(client: &str) {
    let busy = StoryScript::when(&["Bulb"])
        .run("echo bulb > alpha.txt")
        .run("touch ../tmp/busy; (trap '' TERM HUP; sleep 300 & wait) & sleep 300")
        .say(COMPLETE);
    let (scene, api) = world(client, ModelScript::new().story(busy));
    let running = scene.start(&[&["run", "prd.json", "--headless"], agent(client)].concat());
    assert!(api.wait_for_requests(2, PATIENCE), "{client} sent no second request");
    scene.wait_for_file(&scene.outside("tmp/busy"));
    scene.run(&["stop", "--now"]).exits(0);
    running.wait().exits(4);
    assert_eq!(scene.landed_subjects(), Vec::<String>::new());
    assert!(!scene.path("alpha.txt").exists(), "what it wrote is put back");
    scene.tree_is_clean();
    scene.nothing_runs();
}

/// A limit that ends in two hours: no attempt is charged, and the run says when it can go on.
fn hits_a_limit(client: &str) {
    let limited = honest().fault(1, 99, FaultKind::UsageLimit { resets_in: Duration::from_hours(2) });
    let (scene, _api) = world(client, ModelScript::new().story(limited));
    run(&scene, client, &["--limit-wait", "60", "--max-retries", "0"]).exits(5).says("limit");
    let status = scene.status();
    let at: jiff::Timestamp = status["resume_at"].as_str().unwrap_or_default().parse().unwrap();
    let wait = at.duration_since(jiff::Timestamp::now()).as_secs();
    assert!((7000..7300).contains(&wait), "it resumes in {wait} s: {status:#}");
    assert_eq!(scene.state_of("S1"), "pending", "the limit is not the story's fault");
    scene.tree_is_clean();
    scene.nothing_runs();
}

/// A limit that the client waits for by itself, again and again, until it gives up: no attempt is charged.
fn gives_up_at_a_limit(client: &str) {
    let limited = honest().fault(1, 99, FaultKind::RateLimit { retry_after: Duration::from_secs(1) });
    let (scene, api) = world(client, ModelScript::new().story(limited));
    run(&scene, client, &["--max-iterations", "1", "--max-retries", "0"]).exits(5).says("limit");
    assert!(api.requests().len() > 1, "it has tried again by itself");
    assert_eq!(scene.state_of("S1"), "pending", "the limit is not the story's fault");
    scene.tree_is_clean();
    scene.nothing_runs();
}

/// A rejected key ends the run, and the message says how to sign in to this client.
fn is_not_signed_in(client: &str, remedy: &str) {
    let (scene, _api) = world(client, ModelScript::new().story(honest().fault(1, 99, FaultKind::Unauthorized)));
    run(&scene, client, &["--max-retries", "0"]).exits(6).says(remedy);
    scene.tree_is_clean();
    scene.nothing_runs();
}

#[test]
fn codex_claims_falsely_and_repairs() {
    claims_falsely_and_repairs("codex", 1000);
}

/// A model that the client knows to think: of others it sends no effort.
#[test]
fn codex_asks_the_model_for_the_effort_that_was_named() {
    let (scene, api) = world("codex", ModelScript::new().story(honest()));
    scene.run(&["run", "prd.json", "--headless", "--no-gates", "--agent", "codex:gpt-5:high"]).exits(0);
    landed(&scene);
    let asked: serde_json::Value = serde_json::from_slice(&api.requests()[0].body).unwrap();
    assert_eq!(asked["reasoning"]["effort"], "high", "{}", asked["reasoning"]);
}

#[test]
fn codex_hangs_and_is_tried_again() {
    hangs_and_is_tried_again("codex", 2);
}

#[test]
fn codex_is_stopped() {
    is_stopped("codex");
}

#[test]
fn codex_hits_a_limit() {
    hits_a_limit("codex");
}

#[test]
fn codex_is_not_signed_in() {
    is_not_signed_in("codex", "codex login");
}

#[test]
fn opencode_claims_falsely_and_repairs() {
    claims_falsely_and_repairs("opencode", 1000);
}

#[test]
fn opencode_hangs_and_is_tried_again() {
    hangs_and_is_tried_again("opencode", 2);
}

#[test]
fn opencode_is_stopped() {
    is_stopped("opencode");
}

#[test]
fn opencode_gives_up_at_a_limit() {
    gives_up_at_a_limit("opencode");
}

#[test]
fn opencode_is_not_signed_in() {
    is_not_signed_in("opencode", "opencode auth login");
}

#[test]
fn gemini_claims_falsely_and_repairs() {
    claims_falsely_and_repairs("gemini", 1000);
}

#[test]
fn gemini_hangs_and_is_tried_again() {
    hangs_and_is_tried_again("gemini", 2);
}

#[test]
fn gemini_is_stopped() {
    is_stopped("gemini");
}

#[test]
fn gemini_hits_a_limit() {
    hits_a_limit("gemini");
}

#[test]
fn gemini_is_not_signed_in() {
    is_not_signed_in("gemini", "GEMINI_API_KEY");
}

#[test]
fn qwen_claims_falsely_and_repairs() {
    claims_falsely_and_repairs("qwen", 1000);
}

#[test]
fn qwen_hangs_and_is_tried_again() {
    hangs_and_is_tried_again("qwen", 2);
}

#[test]
fn qwen_is_stopped() {
    is_stopped("qwen");
}

#[test]
fn qwen_is_not_signed_in() {
    is_not_signed_in("qwen", "OPENAI_API_KEY");
}

#[test]
fn gemini_over_acp_claims_falsely_and_repairs() {
    claims_falsely_and_repairs("gemini acp", None);
}

#[test]
fn gemini_over_acp_hangs_and_is_tried_again() {
    hangs_and_is_tried_again("gemini acp", 2);
}

#[test]
fn gemini_over_acp_is_stopped() {
    is_stopped("gemini acp");
}

#[test]
fn gemini_over_acp_hits_a_limit() {
    hits_a_limit("gemini acp");
}

#[test]
fn opencode_over_acp_claims_falsely_and_repairs() {
    claims_falsely_and_repairs("opencode acp", None);
}

#[test]
fn opencode_over_acp_hangs_is_stopped_and_taken_up_again() {
    hangs_is_stopped_and_taken_up_again("opencode acp", 2);
}

#[test]
fn opencode_over_acp_gives_up_at_a_limit() {
    gives_up_at_a_limit("opencode acp");
}

#[test]
fn opencode_over_acp_is_stopped() {
    is_stopped("opencode acp");
}
