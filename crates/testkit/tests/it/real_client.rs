//! The pinned Claude Code against the scripted model: what the recordings say of it still holds.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use ralphloop_testkit::model_api::{FaultKind, ModelApi, ModelScript, StoryScript};
use serde_json::Value;
use tempfile::TempDir;

const PROMPT: &str = "Story HELLO: write hello.txt.";

/// The installed client; the first test to need it installs it.
fn client() -> PathBuf {
    static CLIENT: OnceLock<PathBuf> = OnceLock::new();
    CLIENT
        .get_or_init(|| {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            let installed = Command::new(root.join(".ci/install-test-tools")).output().unwrap();
            assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
            root.join(".test-tools/node_modules/.bin/claude")
        })
        .clone()
}

struct Session {
    folder: TempDir,
    api: ModelApi,
    credential: &'static str,
}

impl Session {
    fn new(story: StoryScript) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "work"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let api = ModelApi::start(ModelScript::new().story(story)).unwrap();
        Self { folder, api, credential: "ANTHROPIC_API_KEY" }
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn start(&self) -> Child {
        let prompt = self.folder.path().join("prompt");
        std::fs::write(&prompt, PROMPT).unwrap();
        Command::new(client())
            .args([
                "-p",
                "--output-format",
                "stream-json",
                "--verbose",
                "--dangerously-skip-permissions",
                "--model",
                "sonnet",
            ])
            .env_clear()
            .envs([
                ("PATH", "/usr/local/bin:/usr/bin:/bin"),
                ("TERM", "xterm"),
                ("LANG", "C.UTF-8"),
                ("IS_SANDBOX", "1"),
            ])
            .envs([("DISABLE_AUTOUPDATER", "1"), ("DISABLE_TELEMETRY", "1"), ("DISABLE_ERROR_REPORTING", "1")])
            .envs([("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"), ("CLAUDE_CODE_MAX_RETRIES", "2")])
            .env(self.credential, "test-key")
            .env("ANTHROPIC_BASE_URL", self.api.url())
            .env("HOME", self.folder.path().join("home"))
            .current_dir(self.work())
            .stdin(std::fs::File::open(prompt).unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Runs the client to its end: its exit code, its events and its result event.
    fn run(&self) -> (Option<i32>, Vec<Value>, Value) {
        read(&self.start().wait_with_output().unwrap())
    }
}

fn read(output: &Output) -> (Option<i32>, Vec<Value>, Value) {
    let text = String::from_utf8_lossy(&output.stdout);
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let result = events.iter().find(|e| e["type"] == "result").cloned().unwrap_or_default();
    (output.status.code(), events, result)
}

fn hello() -> StoryScript {
    StoryScript::when(&["Story HELLO"])
        .write("hello.txt", "hello\n")
        .run("cat hello.txt && echo checked > checked.txt")
        .say("All done.\n<promise>COMPLETE</promise>")
}

#[test]
fn it_writes_a_file_runs_a_command_and_ends_with_the_token() {
    let session = Session::new(hello());
    let (code, events, result) = session.run();
    assert_eq!(code, Some(0), "{events:#?}");
    assert_eq!(result["is_error"], false);
    assert_eq!(result["result"], "All done.\n<promise>COMPLETE</promise>");
    assert_eq!(std::fs::read_to_string(session.work().join("hello.txt")).unwrap(), "hello\n");
    assert_eq!(std::fs::read_to_string(session.work().join("checked.txt")).unwrap(), "checked\n");
}

#[test]
fn a_claim_without_work_reaches_the_final_text_just_the_same() {
    let session = Session::new(StoryScript::when(&["Story HELLO"]).say("Done.\n<promise>COMPLETE</promise>"));
    let (code, _, result) = session.run();
    assert_eq!((code, &result["is_error"]), (Some(0), &Value::Bool(false)));
    assert!(!session.work().join("hello.txt").exists());
}

#[test]
fn a_rate_limit_with_a_short_wait_is_ridden_out_by_the_client() {
    let session = Session::new(hello().fault(1, 1, FaultKind::RateLimit { retry_after: Duration::from_secs(1) }));
    let (code, events, _) = session.run();
    assert_eq!(code, Some(0), "{events:#?}");
    assert!(events.iter().any(|e| e["subtype"] == "api_retry" && e["error_status"] == 429), "{events:#?}");
}

#[test]
fn a_used_up_subscription_names_the_time_of_its_reset() {
    let mut session = Session::new(hello().fault(1, 99, FaultKind::UsageLimit { resets_in: Duration::from_hours(1) }));
    session.credential = "CLAUDE_CODE_OAUTH_TOKEN";
    let (code, events, result) = session.run();
    assert_eq!((code, &result["is_error"]), (Some(1), &Value::Bool(true)), "{events:#?}");
    let limit = events.iter().find(|e| e["type"] == "rate_limit_event").expect("a limit event");
    assert_eq!(limit["rate_limit_info"]["status"], "rejected");
    assert!(limit["rate_limit_info"]["resetsAt"].as_u64().is_some(), "{limit:#}");
}

#[test]
fn a_reset_connection_is_repaired_by_the_client() {
    let session = Session::new(hello().fault(1, 1, FaultKind::ResetMidStream));
    let (code, events, _) = session.run();
    assert_eq!(code, Some(0), "{events:#?}");
    assert!(session.work().join("hello.txt").exists());
}

#[test]
fn connections_that_are_always_reset_end_in_an_error_without_a_status() {
    let session = Session::new(hello().fault(1, 99, FaultKind::Reset));
    let (code, events, result) = session.run();
    assert_eq!((code, &result["is_error"]), (Some(1), &Value::Bool(true)), "{events:#?}");
    assert_eq!(result["api_error_status"], Value::Null);
}

#[test]
fn a_model_that_never_answers_keeps_the_client_waiting_until_it_is_ended() {
    let session = Session::new(hello().fault(1, 99, FaultKind::Hang));
    let mut child = session.start();
    assert!(session.api.wait_for_requests(1, Duration::from_mins(1)), "the client asks");
    assert!(child.try_wait().unwrap().is_none(), "and waits");
    child.kill().unwrap();
    let (_, events, result) = read(&child.wait_with_output().unwrap());
    assert_eq!(result, Value::Null, "{events:#?}");
}

#[test]
fn statuses_of_the_provider_are_reported_as_they_are() {
    for (fault, status) in [
        (FaultKind::Status(529), 529),
        (FaultKind::Status(500), 500),
        (FaultKind::Unauthorized, 401),
        (FaultKind::PromptTooLong, 400),
    ] {
        let session = Session::new(hello().fault(1, 99, fault));
        let (code, events, result) = session.run();
        assert_eq!((code, &result["api_error_status"]), (Some(1), &Value::from(status)), "{events:#?}");
    }
}
