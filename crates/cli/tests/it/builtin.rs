//! The built-in agent against a scripted model on loopback, in each protocol: it works, repairs, meets limits, hangs, is
//! stopped; its tokens and cost are right to the unit; its key is nowhere.

use std::path::Path;
use std::time::Duration;

use ralphloop_testkit::model_api::{CacheUse, FaultKind, ModelApi, ModelScript, StoryScript};
use ralphloop_testkit::scene::{Outcome, Scene};
use serde_json::{Value, json};

use crate::leaks::everything;
use crate::world::{COMPLETE, landed_once, nothing_landed, prd_text, scene, story};

/// How long the agent may take to send a request on a loaded machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// A key that no form marks as one.
const KEY: &str = "the quick brown lamp 4711";
/// What every answer tells of the provider's cache.
const CACHE: CacheUse = CacheUse { read: 600, written: 100 };

/// A way to speak with a provider.
#[derive(Clone, Copy)]
struct Way {
    provider: &'static str,
    model: &'static str,
    variable: &'static str,
    /// Below the address of the server.
    path: &'static str,
    /// What one request costs by the list of prices, in millionths of a dollar: 1000 tokens read, 600 of them from the cache
    /// and, where the provider tells that, 100 into it; 50 written.
    each: u64,
}

const MESSAGES: Way = Way {
    provider: "anthropic",
    model: "claude-sonnet-4-5",
    variable: "ANTHROPIC_API_KEY",
    path: "v1",
    // 300 × 3 + 600 × 0.3 + 100 × 3.75 + 50 × 15.
    each: 2205,
};
const RESPONSES: Way = Way {
    provider: "openai",
    model: "gpt-5",
    variable: "OPENAI_API_KEY",
    path: "v1",
    // 400 × 1.25 + 600 × 0.125 + 50 × 10.
    each: 1075,
};
const COMPLETIONS: Way = Way {
    provider: "openai-chat",
    model: "gpt-4.1",
    variable: "OPENAI_API_KEY",
    path: "v1",
    // 400 × 2 + 600 × 0.5 + 50 × 8.
    each: 1500,
};
const GEMINI: Way = Way {
    provider: "gemini",
    model: "gemini-2.5-pro",
    variable: "GEMINI_API_KEY",
    path: "v1beta",
    // 400 × 1.25 + 600 × 0.125 + 50 × 10.
    each: 1075,
};

/// One test in each protocol.
macro_rules! in_every_protocol {
    ($($name:ident)+) => { $(
        mod $name {
            #[test]
            fn messages() {
                super::checks::$name(&super::MESSAGES);
            }
            #[test]
            fn responses() {
                super::checks::$name(&super::RESPONSES);
            }
            #[test]
            fn chat_completions() {
                super::checks::$name(&super::COMPLETIONS);
            }
            #[test]
            fn gemini() {
                super::checks::$name(&super::GEMINI);
            }
        }
    )+ };
}

in_every_protocol! {
    it_works_the_demos_change_and_its_tokens_and_cost_are_right_to_the_unit
    it_waits_for_a_limit_that_ends_later_and_charges_nobody
    it_is_ended_when_its_model_hangs_and_the_next_attempt_lands
    it_is_stopped_with_all_that_it_started
    each_refusal_of_a_provider_is_told_as_what_it_is
    an_answer_that_breaks_off_is_asked_for_again
}

impl Way {
    fn agent(&self) -> String {
        format!("builtin:{}/{}", self.provider, self.model)
    }

    /// The user's settings, which send the requests to the scripted model.
    fn settings(&self, api: &ModelApi, more: &str) -> String {
        format!("[providers.{}]\nurl = \"{}/{}\"\n{more}", self.provider, api.url(), self.path)
    }

    /// A repository with one story, and the model behind the provider.
    fn world(&self, script: ModelScript) -> (Scene, ModelApi) {
        self.world_with(script, "")
    }

    fn world_with(&self, script: ModelScript, more: &str) -> (Scene, ModelApi) {
        let mut scene = scene();
        scene.write("prd.json", prd_text(&[story("S1", "Bulb")]));
        scene.commit_all("Plan");
        let api = ModelApi::start(script).unwrap();
        users_settings(&scene, &self.settings(&api, more));
        scene.set_env(self.variable, KEY);
        (scene, api)
    }

    fn run(&self, scene: &Scene, flags: &[&str]) -> Outcome {
        let agent = self.agent();
        scene.run(&[&["run", "prd.json", "--headless", "--agent", &agent], flags].concat())
    }
}

fn users_settings(scene: &Scene, text: &str) {
    let file = scene.outside("home/.config/ralphloop/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

fn honest() -> StoryScript {
    StoryScript::when(&["Bulb"]).write("alpha.txt", "bulb\n").say(&format!("The bulb is in.\n{COMPLETE}"))
}

fn one(story: StoryScript) -> ModelScript {
    ModelScript::new().story(story)
}

mod checks {
    use super::*;

    pub(super) fn it_works_the_demos_change_and_its_tokens_and_cost_are_right_to_the_unit(way: &Way) {
        let (scene, api) = way.world(demo_script().cached(CACHE));
        let repository = demo(&scene);
        let work = ["run", "openspec:first-commands", "--fresh", "--headless", "--agent", &way.agent()];
        let outcome = scene.start_in(&repository, &work).wait().exits(1);
        outcome.says("by list prices").says("the address of the package server is missing");
        let read = |name: &str| std::fs::read_to_string(repository.join(name)).unwrap();
        assert_eq!(read("bin/count"), "#!/bin/sh\nwc -w | tr -d ' '\n");
        assert!(read("openspec/changes/first-commands/tasks.md").contains("- [x] 3.1"));
        let status: Value = scene.start_in(&repository, &["status", "--json"]).wait().json();
        let requests = u64::try_from(api.requests().len()).unwrap();
        assert_eq!(requests, DEMO_REQUESTS);
        assert_eq!(status["input_tokens"], json!(1000 * requests), "{status:#}");
        assert_eq!(status["output_tokens"], json!(50 * requests));
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let dollars = (way.each * requests) as f64 / 1e6;
        assert_eq!(status["cost_usd"], json!(dollars));
        assert_eq!((&status["estimated_cost_usd"], &status["unpriced_calls"]), (&json!(dollars), &json!(0)));
        scene.nothing_runs();
    }

    pub(super) fn it_waits_for_a_limit_that_ends_later_and_charges_nobody(way: &Way) {
        let limit = FaultKind::UsageLimit { resets_in: Duration::from_hours(2) };
        let (scene, api) = way.world(one(honest().fault(2, 99, limit)));
        way.run(&scene, &["--limit-wait", "60", "--max-retries", "0"]).exits(5).says("limit");
        let status = scene.status();
        let at: jiff::Timestamp = status["resume_at"].as_str().unwrap_or_default().parse().unwrap();
        let wait = at.duration_since(jiff::Timestamp::now()).as_secs();
        assert!((7000..7300).contains(&wait), "it resumes in {wait} s: {status:#}");
        assert_eq!(scene.state_of("S1"), "pending");
        assert_eq!(api.requests().len(), 2, "what is told to come back in two hours is not asked again");
        nothing_landed(&scene);
    }

    pub(super) fn it_is_ended_when_its_model_hangs_and_the_next_attempt_lands(way: &Way) {
        let (scene, _api) = way.world(one(honest().fault(2, 1, FaultKind::HangMidStream)));
        way.run(&scene, &["--idle-timeout", "10", "--max-retries", "1"]).exits(0).says("no output for");
        landed_once(&scene, "S1", "alpha.txt");
        assert_eq!(scene.story("S1")["attempts"], 2);
        scene.nothing_runs();
    }

    pub(super) fn it_is_stopped_with_all_that_it_started(way: &Way) {
        let busy = StoryScript::when(&["Bulb"])
            .write("alpha.txt", "bulb\n")
            .run("touch ../tmp/busy; (trap '' TERM HUP; setsid sleep 300 & wait) & sleep 300")
            .say(COMPLETE);
        let (scene, api) = way.world(one(busy));
        let agent = way.agent();
        let running = scene.start(&["run", "prd.json", "--headless", "--agent", &agent]);
        assert!(api.wait_for_requests(2, PATIENCE));
        scene.wait_for_file(&scene.outside("tmp/busy"));
        scene.run(&["stop", "--now"]).exits(0);
        running.wait().exits(4);
        nothing_landed(&scene);
        assert!(!scene.path("alpha.txt").exists(), "what it wrote is put back");
        scene.nothing_runs();
    }

    pub(super) fn each_refusal_of_a_provider_is_told_as_what_it_is(way: &Way) {
        for (fault, said) in [
            (FaultKind::Unauthorized, way.variable),
            (FaultKind::Status(402), "credit"),
            (FaultKind::Status(404), "model"),
        ] {
            let (scene, api) = way.world(one(honest().fault(1, 99, fault)));
            way.run(&scene, &["--max-retries", "0"]).exits(6).says(said);
            assert_eq!(api.requests().len(), 1, "{said}: nothing is won by asking again");
            assert_eq!(scene.state_of("S1"), "pending", "{said}: that is not the story's fault");
            nothing_landed(&scene);
        }
    }

    pub(super) fn an_answer_that_breaks_off_is_asked_for_again(way: &Way) {
        let story = honest().fault(1, 1, FaultKind::Cut).fault(3, 1, FaultKind::Status(529));
        let (scene, api) = way.world(one(story));
        way.run(&scene, &["--max-retries", "0"]).exits(0);
        landed_once(&scene, "S1", "alpha.txt");
        assert_eq!(api.requests().len(), 4);
        let status = scene.status();
        assert_eq!((&status["input_tokens"], &status["output_tokens"]), (&json!(2000), &json!(100)));
    }
}

/// The demo's repository, before its first story.
fn demo(scene: &Scene) -> std::path::PathBuf {
    let folder = scene.outside("demo");
    scene.run(&["demo", "--folder", folder.to_str().unwrap()]).exits(0);
    let repository = folder.join("toolbox");
    let git = |arguments: &[&str]| {
        let output = scene.command("git").current_dir(&repository).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let first = git(&["rev-list", "--max-parents=0", "HEAD"]);
    git(&["reset", "--quiet", "--hard", &first]);
    assert!(!repository.join("bin/greet").exists());
    repository
}

/// Two for the greeting, six for the count and its repair, four for the slug, one for the release.
const DEMO_REQUESTS: u64 = 13;

/// What the model does for the demo's change: every tool is used, one mistake is made and repaired, one story is blocked.
fn demo_script() -> ModelScript {
    let complete = |text: &str| format!("{text}\n\n{COMPLETE}");
    let repairs = StoryScript::when(&["bin/count", "wanted: 3"])
        .call("edit", &json!({"path": "bin/count", "old_text": "wc -l", "new_text": "wc -w"}))
        .run("sh tests/run.sh")
        .say(&complete("Lines were counted, not words. Mended."));
    let greets = StoryScript::when(&["bin/greet"])
        .write("bin/greet", "#!/bin/sh\necho \"Hello, ${1:-world}!\"\n")
        .say(&complete("The greeting is written."));
    let counts = StoryScript::when(&["bin/count"])
        .together(&[
            ("read", json!({"path": "tests/count_test.sh"})),
            ("glob", json!({"pattern": "tests/*.sh"})),
            ("list", json!({"path": "bin"})),
        ])
        .write("bin/count", "#!/bin/sh\nwc -l | tr -d ' '\n")
        .say(&complete("Counting is done with wc."));
    let slugs = StoryScript::when(&["bin/slug"])
        .together(&[
            ("grep", json!({"pattern": "expect \"hello", "files": "*.sh"})),
            ("write", json!({"path": "bin/slug", "content": "#!/bin/sh\ntr 'A-Z' 'a-z' | tr -cs 'a-z' '_' | sed 's/^_//; s/_$//'\n"})),
        ])
        .call(
            "multi_edit",
            &json!({"path": "bin/slug", "edits": [{"old_text": "'_'", "new_text": "'-'"},
                {"old_text": "s/^_//; s/_$//", "new_text": "s/^-//; s/-$//"}]}),
        )
        .call("diff", &json!({}))
        .say(&complete("Slugs work."));
    let release = StoryScript::when(&["release/toolbox-1.0"])
        .say("<promise>BLOCKED: the address of the package server is missing</promise>");
    ModelScript::new().story(repairs).story(greets).story(counts).story(slugs).story(release)
}

/// The results of tools that the model was sent with its last request, as text.
fn sent_back(api: &ModelApi) -> String {
    String::from_utf8(api.requests().pop().unwrap().body).unwrap()
}

#[test]
fn its_key_is_seen_by_the_provider_alone_and_by_no_command_of_its() {
    let script = StoryScript::when(&["Bulb"]).run("env > alpha.txt; cat alpha.txt").say(&format!("Done.\n{COMPLETE}"));
    let (scene, api) = MESSAGES.world(one(script));
    MESSAGES.run(&scene, &[]).exits(0).never_says(KEY);
    assert_eq!(api.requests()[0].header("x-api-key"), Some(KEY));
    assert!(scene.read("alpha.txt").contains("PATH=") && !scene.read("alpha.txt").contains("lamp 4711"));
    for (place, text) in everything(&scene) {
        assert!(!text.contains("brown lamp 4711"), "the key is in {place}");
    }
}

#[test]
fn a_command_may_print_the_key_which_nothing_else_knows() {
    let script = StoryScript::when(&["Bulb"])
        .run("cat ../home/vault > alpha.txt; cat alpha.txt; rm alpha.txt; echo on > alpha.txt")
        .say(&format!("Done.\n{COMPLETE}"));
    let (mut scene, api) = COMPLETIONS.world_with(one(script), "key_command = \"cat ../home/vault\"\n");
    scene.set_env(COMPLETIONS.variable, "");
    std::fs::write(scene.outside("home/vault"), format!("{KEY}\nanother line\n")).unwrap();
    COMPLETIONS.run(&scene, &["--no-gates"]).exits(0).never_says("brown lamp 4711");
    assert_eq!(api.requests()[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    for (place, text) in everything(&scene) {
        assert!(!text.contains("brown lamp 4711"), "the key is in {place}");
    }
    std::fs::write(scene.outside("home/vault"), "").unwrap();
    scene.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    COMPLETIONS.run(&scene, &["--fresh"]).exits(6).says("printed no key").says("cat ../home/vault");
}

#[test]
fn without_a_key_nothing_is_asked_and_it_is_said_which_one_is_missing() {
    let (mut scene, api) = RESPONSES.world(one(honest()));
    scene.set_env(RESPONSES.variable, "");
    RESPONSES.run(&scene, &[]).exits(6).says("set OPENAI_API_KEY to a key of openai");
    assert!(api.requests().is_empty());
    users_settings(&scene, "agent = \"builtin:openai/gpt-5\"\n");
    scene.run(&["doctor"]).exits(6).says("builtin:openai/gpt-5 has no key of openai").says("set OPENAI_API_KEY");
    scene.set_env(RESPONSES.variable, KEY);
    scene.run(&["doctor"]).says("with OPENAI_API_KEY").never_says(KEY);
    scene
        .run(&["agents"])
        .exits(0)
        .says("builtin   the built-in agent: here, ralphloop")
        .says("signed in by OPENAI_API_KEY");
    users_settings(
        &scene,
        "agent = \"builtin:house/m\"\n[providers.house]\nprotocol = \"messages\"\nurl = \"http://127.0.0.1:1\"\n\
         key_variable = \"HOUSE_KEY\"\n",
    );
    scene.run(&["agents"]).exits(0).says("builtin   the built-in agent: here").says("sign-in not seen");
    scene.set_env("HOUSE_KEY", KEY);
    scene.run(&["agents"]).exits(0).says("signed in by HOUSE_KEY").never_says(KEY);
}

#[test]
fn its_file_tools_do_not_leave_the_repository_and_say_so_to_the_model() {
    let script = StoryScript::when(&["Bulb"])
        .together(&[
            ("read", json!({"path": "../home/secret"})),
            ("write", json!({"path": "../home/new", "content": "x"})),
            ("read", json!({"path": "link/secret"})),
            ("write", json!({"path": ".git/hooks/post-commit", "content": "x"})),
            ("grep", json!({"pattern": "SECRET", "path": "link"})),
            ("no_such_tool", json!({})),
        ])
        .write("alpha.txt", "bulb\n")
        .say(COMPLETE);
    let (scene, api) = MESSAGES.world(one(script));
    std::fs::write(scene.outside("home/secret"), "THE-SECRET-TEXT").unwrap();
    std::os::unix::fs::symlink(scene.outside("home"), scene.path("link")).unwrap();
    scene.commit_all("A link");
    MESSAGES.run(&scene, &["--no-gates"]).exits(0);
    let sent = sent_back(&api);
    assert!(!sent.contains("THE-SECRET-TEXT"), "{sent}");
    assert!(sent.matches("is outside of the workspace").count() == 4, "{sent}");
    assert!(sent.contains("is git's own"), "{sent}");
    assert!(!scene.outside("home/new").exists() && !scene.path(".git/hooks/post-commit").exists());
}

#[test]
fn each_limit_of_its_own_ends_it_with_its_reason() {
    let endless = || StoryScript::when(&["Bulb"]).write("alpha.txt", "bulb\n").run("date +%N; sleep 0.2");
    for (setting, reason, requests) in [
        ("builtin_max_steps = 3\n", "3 steps (builtin_max_steps)", Some(3)),
        ("builtin_max_tokens = 2000\n", "2100 tokens of 2000 (builtin_max_tokens)", Some(2)),
        ("builtin_max_duration = \"4s\"\n", "builtin_max_duration", None),
    ] {
        let (scene, api) = GEMINI.world(one(endless()));
        users_settings(&scene, &format!("{setting}{}", GEMINI.settings(&api, "")));
        GEMINI.run(&scene, &["--max-retries", "0"]).exits(1).says(reason);
        if let Some(requests) = requests {
            assert_eq!(api.requests().len(), requests, "{setting}");
        }
        nothing_landed(&scene);
        scene.nothing_runs();
    }
}

#[test]
fn a_context_that_fills_up_is_made_smaller_before_it_overflows() {
    // Each result is a third of the window.
    let noise = "head -c 12000 /dev/zero | tr '\\0' ";
    let summed = StoryScript::when(&["Write down, for yourself"]).say("NOTES: all lamps were looked at");
    let goes_on = StoryScript::when(&["NOTES: all lamps"]).write("alpha.txt", "bulb\n").say(COMPLETE);
    let reads = StoryScript::when(&["Bulb"])
        .run(&format!("{noise} a"))
        .run(&format!("{noise} b"))
        .run(&format!("{noise} c"))
        .run(&format!("{noise} d"))
        .run(&format!("{noise} e"))
        .write("alpha.txt", "bulb\n")
        .say(COMPLETE);
    for (script, window) in
        [(one(reads.clone()), 16_000), (ModelScript::new().story(summed).story(goes_on).story(reads), 9000)]
    {
        let (scene, api) = COMPLETIONS.world_with(script, &format!("context_window = {window}\nmax_output = 500\n"));
        COMPLETIONS.run(&scene, &[]).exits(0);
        landed_once(&scene, "S1", "alpha.txt");
        let longest = api.requests().iter().map(|request| request.body.len()).max().unwrap();
        assert!(longest < window * 4, "{longest} bytes were sent to a window of {window} tokens");
        let last = sent_back(&api);
        assert!(last.contains("removed to make room"), "{last}");
    }
}

#[test]
fn the_prompt_is_cached_and_the_project_says_what_it_wants() {
    let (scene, api) = MESSAGES.world(one(honest()));
    scene.write("AGENTS.md", "Lamps are screwed in clockwise.\n");
    scene.commit_all("Words");
    MESSAGES.run(&scene, &[]).exits(0);
    let requests: Vec<Value> =
        api.requests().iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect();
    let system = requests[1]["system"].to_string();
    assert!(system.contains("screwed in clockwise") && system.contains("cache_control"), "{system}");
    assert_eq!((&requests[0]["stream"], &requests[0]["max_tokens"]), (&json!(true), &json!(16_000)));
    let marks: Vec<usize> =
        requests.iter().map(|one| one["messages"].to_string().matches("cache_control").count()).collect();
    assert_eq!(marks, [1, 1], "the last message alone");
    assert!(requests[1]["messages"][2].to_string().contains("cache_control"));
    assert!(Path::new(requests[0]["model"].as_str().unwrap()).ends_with(MESSAGES.model));
}

#[test]
fn the_models_name_is_sent_as_it_was_given() {
    for (way, model) in
        [(RESPONSES, "gpt-5.1-codex-max"), (COMPLETIONS, "qwen/qwen-max"), (COMPLETIONS, "local:7b-low")]
    {
        let (scene, api) = Way { model, ..way }.world(one(honest()));
        Way { model, ..way }.run(&scene, &["--no-gates"]).exits(0);
        let sent: Value = serde_json::from_slice(&api.requests()[0].body).unwrap();
        assert_eq!(sent["model"], model);
        assert!(sent["reasoning_effort"].is_null() && sent["reasoning"]["effort"].is_null(), "{sent:#}");
    }
}

#[test]
fn the_effort_is_asked_of_the_model_in_each_protocols_own_way() {
    let sent = |way: Way, model: &'static str| {
        let (scene, api) = Way { model, ..way }.world(one(honest()));
        Way { model, ..way }.run(&scene, &["--no-gates"]).exits(0);
        serde_json::from_slice::<Value>(&api.requests()[0].body).unwrap()
    };
    let asked = sent(RESPONSES, "gpt-5:high");
    assert_eq!((&asked["model"], &asked["reasoning"]), (&json!("gpt-5"), &json!({"effort": "high"})));
    let asked = sent(COMPLETIONS, "qwen3:8b:low");
    assert_eq!((&asked["model"], &asked["reasoning_effort"]), (&json!("qwen3:8b"), &json!("low")));
    let asked = sent(MESSAGES, "claude-opus-4-6:max");
    assert_eq!(asked["model"], "claude-opus-4-6");
    assert_eq!(asked["output_config"]["effort"], "max", "{asked:#}");
    let asked = sent(GEMINI, "gemini-2.5-pro:low");
    assert!(asked["generationConfig"]["thinkingConfig"]["thinkingBudget"].is_number(), "{asked:#}");
}

#[test]
fn its_commands_are_bounded_in_time_and_output_and_leave_nothing_behind() {
    let bash = |command: &str| ("bash", json!({"command": command}));
    let script = StoryScript::when(&["Bulb"])
        .together(&[
            ("bash", json!({"command": "echo begun; sleep 100", "timeout_seconds": 1})),
            bash("seq 1 100000"),
            bash("cat; echo the-input-is-empty; exit 3"),
            bash("setsid sleep 400 >/dev/null 2>&1 & echo left"),
            bash("true"),
            ("write", json!({"path": "alpha.txt", "content": "bulb\n"})),
            ("write", json!({"path": "README.md", "content": "another word\n"})),
        ])
        .call("diff", &json!({}))
        .say(COMPLETE);
    let (scene, api) = MESSAGES.world(one(script));
    scene.write("README.md", "a word\n");
    scene.commit_all("Words");
    MESSAGES.run(&scene, &["--no-gates"]).exits(0);
    let sent = sent_back(&api);
    for wanted in [
        "Error: begun\\n[it was ended after its time limit of 1s]",
        "bytes left out …",
        "100000",
        "Error: the-input-is-empty\\n[it exited with code 3]",
        "left\\n\\n[what it left running was ended]",
        "(no output)",
        "-a word\\n+another word",
        "New files:\\nalpha.txt",
    ] {
        assert!(sent.contains(wanted), "{wanted} in {sent}");
    }
    assert!(sent.len() < 80_000, "{}", sent.len());
    scene.nothing_runs();
}

#[test]
fn a_silent_command_is_not_taken_for_an_agent_that_hangs() {
    let patient = StoryScript::when(&["Bulb"]).run("sleep 14; echo bulb > alpha.txt").say(COMPLETE);
    let (scene, _api) = MESSAGES.world(one(patient));
    MESSAGES.run(&scene, &["--idle-timeout", "10", "--max-retries", "0"]).exits(0);
    landed_once(&scene, "S1", "alpha.txt");
}

#[test]
fn in_the_sandbox_it_works_and_its_commands_stay_inside() {
    for level in ["workspace", "strict"] {
        let script = StoryScript::when(&["Bulb"])
            .run("echo x > ../home/escaped; echo bulb > alpha.txt")
            .say(&format!("Done.\n{COMPLETE}"));
        let (scene, _api) = MESSAGES.world(one(script));
        MESSAGES.run(&scene, &["--sandbox", level, "--no-gates"]).exits(0).says("the sandbox");
        landed_once(&scene, "S1", "alpha.txt");
        assert!(!scene.outside("home/escaped").exists(), "{level}");
        scene.nothing_runs();
    }
}

#[test]
fn a_provider_that_the_repository_names_is_shown_as_what_it_brings() {
    let scene = scene();
    scene.write("prd.json", prd_text(&[story("S1", "Bulb")]));
    scene.write(
        "ralphloop.toml",
        "agent = \"builtin:anthropic/x\"\n[providers.anthropic]\nurl = \"https://elsewhere.invalid/v1\"\n",
    );
    scene.commit_all("Plan");
    scene.run(&["trust"]).says("sends to https://elsewhere.invalid/v1 with the key of ANTHROPIC_API_KEY");
    for (wrong, said) in [
        ("[providers.x]\nurl = \"http://a\"\n", "has no protocol"),
        ("[providers.x]\nprotocol = \"morse\"\nurl = \"http://a\"\n", "chat-completions"),
        ("[providers.openai]\nurl = \"ftp://a\"\n", "http://"),
        ("[providers.openai]\nkey_variable = \"A\"\nkey_command = \"b\"\n", "two places"),
        ("[providers.openai]\nurll = \"http://a\"\n", "did you mean url?"),
        ("[providers.\"a/b\"]\nurl = \"http://a\"\n", "cannot be the name"),
        ("agent = \"builtin\"\n", "builtin:PROVIDER/MODEL"),
        ("agent = \"builtin:nobody/x\"\n", "unknown provider"),
    ] {
        scene.write("ralphloop.toml", wrong);
        let outcome = scene.run(&["run", "prd.json", "--headless", "--dry-run"]).exits(2);
        outcome.says(said);
    }
}
