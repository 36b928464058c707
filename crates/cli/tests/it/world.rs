//! The words in which the tests are written.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use ralphloop_testkit::scene::{Outcome, Running, Scene, eventually};
use ralphloop_testkit::script::AgentScript;
use serde_json::{Value, json};

/// The signal that a story is complete.
pub(crate) use ralphloop_testkit::script::COMPLETE;

/// The binary under test: the one that was built with the tests, or the one that `RALPHLOOP_UNDER_TEST` names.
pub(crate) fn binary() -> PathBuf {
    std::env::var_os("RALPHLOOP_UNDER_TEST").map_or_else(|| env!("CARGO_BIN_EXE_ralphloop").into(), Into::into)
}

/// The folder of the real programs, each at its pinned version; the first test of a process to need one installs them all.
pub(crate) fn test_tools() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let installed = Command::new(root.join(".ci/install-test-tools")).output().unwrap();
        assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
        root.join(".test-tools").canonicalize().unwrap()
    })
}

/// A real program that npm installed.
pub(crate) fn installed(program: &str) -> PathBuf {
    test_tools().join("node_modules/.bin").join(program).canonicalize().unwrap()
}

/// A scene for the binary: a repository with one commit.
pub(crate) fn scene() -> Scene {
    Scene::new(binary())
}

/// What a person sees who types `typed` at the program on a terminal, and how it ended.
pub(crate) fn on_a_terminal(scene: &Scene, arguments: &str, typed: &str) -> (String, Option<i32>) {
    conversation(scene, arguments, &[("", typed)])
}

/// The same for one who types each text only once the one before it is seen.
pub(crate) fn conversation(scene: &Scene, arguments: &str, turns: &[(&str, &str)]) -> (String, Option<i32>) {
    // `script` of util-linux makes a pseudo-terminal; one that cannot show the screen.
    let paths = std::env::var_os("PATH").unwrap();
    let script = std::env::split_paths(&paths).map(|folder| folder.join("script")).find(|path| path.is_file()).unwrap();
    let command = format!("'{}' {arguments}", binary().display());
    let mut command = {
        let mut script = scene.command(script);
        script.args(["-qec", &command, "/dev/null"]).env("TERM", "dumb");
        script
    };
    let shown = scene.outside("terminal");
    let seen = || String::from_utf8_lossy(&std::fs::read(&shown).unwrap()).into_owned();
    command.stdin(Stdio::piped()).stdout(std::fs::File::create(&shown).unwrap());
    let mut child = command.spawn().unwrap();
    let mut keys = child.stdin.take().unwrap();
    for (wanted, typed) in turns {
        eventually(wanted, || seen().contains(wanted));
        keys.write_all(typed.as_bytes()).unwrap();
        keys.flush().unwrap();
    }
    // Held open until the end: a terminal does not hang up because nothing more is typed.
    let status = child.wait().unwrap();
    drop(keys);
    (seen(), status.code())
}

/// A story of a `prd.json`.
#[derive(Clone)]
pub(crate) struct PrdStory(Value);

/// A story without criteria, dependencies or checks.
pub(crate) fn story(id: &str, title: &str) -> PrdStory {
    PrdStory(json!({"id": id, "title": title, "priority": 1, "passes": false}))
}

impl PrdStory {
    /// Waits for other stories.
    pub(crate) fn after(self, ids: &[&str]) -> Self {
        self.with("dependsOn", json!(ids))
    }

    /// Is verified by a command.
    pub(crate) fn check(self, command: &str) -> Self {
        self.with("verification_steps", json!([{"type": "shell", "command": command}]))
    }

    /// Carries a further key.
    pub(crate) fn with(mut self, key: &str, value: Value) -> Self {
        self.0[key] = value;
        self
    }
}

/// The text of a `prd.json`.
pub(crate) fn prd_text(stories: &[PrdStory]) -> String {
    let stories: Vec<&Value> = stories.iter().map(|s| &s.0).collect();
    let prd = json!({"project": "Scene", "userStories": stories});
    serde_json::to_string_pretty(&prd).unwrap() + "\n"
}

/// A scene with a committed `prd.json` and a scripted agent.
pub(crate) fn prd_scene(stories: &[PrdStory], script: &AgentScript) -> Scene {
    let scene = scene();
    scene.write("prd.json", prd_text(stories));
    scene.commit_all("Plan");
    scene.scripted_agent(script);
    scene
}

/// A Codex that writes a file, says that it is done, and reports 3000 tokens read, 900 of them from the cache, and 150 written.
pub(crate) fn codex(scene: &Scene) {
    scene.program(
        "codex",
        &format!(
            "#!/bin/sh\ncat >/dev/null\necho on >> lamp.txt\n\
             echo '{{\"type\":\"item.completed\",\"item\":{{\"id\":\"i\",\"type\":\"agent_message\",\"text\":\"{COMPLETE}\"}}}}'\n\
             echo '{{\"type\":\"turn.completed\",\"usage\":{{\"input_tokens\":3000,\"cached_input_tokens\":900,\"output_tokens\":150}}}}'\n"
        ),
    );
}

/// Two independent stories, of which most tests need no more.
pub(crate) fn two_stories() -> [PrdStory; 2] {
    [story("S1", "Alpha lamp"), story("S2", "Beta lamp")]
}

/// Starts `ralphloop run prd.json`.
pub(crate) fn start(scene: &Scene, flags: &[&str]) -> Running {
    scene.start(&[&["run", "prd.json", "--headless"], flags].concat())
}

/// Runs `ralphloop run prd.json` to its end.
pub(crate) fn run(scene: &Scene, flags: &[&str]) -> Outcome {
    start(scene, flags).wait()
}

/// Flags for one attempt and no repair.
pub(crate) const ONCE: &[&str] = &["--max-retries", "0", "--max-repairs", "0"];

/// Flags for one attempt, no repair, and going on after a story that failed.
pub(crate) const ONCE_AND_ON: &[&str] = &["--max-retries", "0", "--max-repairs", "0", "--on-exhausted", "skip"];

/// Asserts how many calls of the agent there were.
#[track_caller]
pub(crate) fn called(scene: &Scene, times: usize) {
    let calls = scene.calls();
    let stories: Vec<&str> = calls.iter().map(|c| c.story.as_str()).collect();
    assert_eq!(calls.len(), times, "calls of the agent, about {stories:?}");
}

/// Asserts the states of stories, as `status --json` tells them.
#[track_caller]
pub(crate) fn states(scene: &Scene, wanted: &[(&str, &str)]) {
    let status = scene.status();
    for (id, state) in wanted {
        let story = status["stories"].as_array().and_then(|s| s.iter().find(|s| s["id"] == *id));
        let is = story.and_then(|s| s["state"].as_str());
        assert_eq!(is, Some(*state), "state of {id} in {status:#}");
    }
}

/// The last attempt's words about a story.
pub(crate) fn reason(scene: &Scene, id: &str) -> String {
    scene.story(id)["reason"].as_str().unwrap_or_default().to_owned()
}

/// Asserts that a story landed as exactly one commit with its trailers, and that the commit holds `file`.
#[track_caller]
pub(crate) fn landed_once(scene: &Scene, id: &str, file: &str) {
    let commits = scene.landed();
    let own: Vec<_> = commits.iter().filter(|c| c.trailer("Story") == Some(id)).collect();
    assert_eq!(own.len(), 1, "commits of {id} in {commits:#?}");
    assert!(own[0].files.iter().any(|f| f == file), "{file} in {:?}", own[0].files);
}

/// Asserts that nothing landed and the tree is as the last commit of the test left it.
#[track_caller]
pub(crate) fn nothing_landed(scene: &Scene) {
    assert_eq!(scene.landed_subjects(), Vec::<String>::new());
    scene.tree_is_clean();
}

/// Whether a story passes by its `prd.json`.
pub(crate) fn passes(scene: &Scene, id: &str) -> bool {
    let prd: Value = serde_json::from_str(&scene.read("prd.json")).unwrap();
    prd["userStories"].as_array().unwrap().iter().any(|s| s["id"] == id && s["passes"] == true)
}

/// Whether every request to the model carried the test's own credential, sent as the client sends that kind.
pub(crate) fn called_by_model(api: &ralphloop_testkit::model_api::ModelApi, credential: &str) -> bool {
    let requests = api.requests();
    let ours = |r: &ralphloop_testkit::model_api::Request| match credential {
        "ANTHROPIC_API_KEY" => r.header("x-api-key") == Some("test-key"),
        _ => r.header("authorization") == Some("Bearer test-key"),
    };
    !requests.is_empty() && requests.iter().all(ours)
}
