use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use ralphloop_engine::openspec_cli::{Finding, Level, OpenSpecError, Program, Validation, validate};

use super::spawner;

const LONG: Duration = Duration::from_secs(20);

/// An `openspec` that is that shell script.
fn fake(folder: &Path, script: &str) -> Program {
    let path = folder.join("openspec");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    Program(path)
}

async fn run(script: &str, timeout: Duration) -> Result<Validation, OpenSpecError> {
    let dir = tempfile::tempdir().unwrap();
    let program = fake(dir.path(), script);
    validate(&spawner(), &program, dir.path(), "add-login", timeout).await
}

#[tokio::test]
async fn findings_have_level_path_line_and_message() {
    let script = r#"
echo 'A new version is available'
[ "$*" = "validate add-login --strict --json" ] && [ "$OPENSPEC_TELEMETRY" = 0 ] || exit 9
cat <<'END'
{"items":[{"id":"add-login","type":"change","valid":false,"issues":[
 {"level":"ERROR","path":"auth/spec.md","line":12,"message":"must contain SHALL"},
 {"level":"WARNING","path":"proposal.md","message":"too short"}],"durationMs":3}],
 "summary":{},"version":"1.0"}
END
exit 1"#;
    let expected = [
        (Level::Error, "auth/spec.md", Some(12), "must contain SHALL"),
        (Level::Warning, "proposal.md", None, "too short"),
    ]
    .map(|(level, path, line, message)| Finding { level, path: path.into(), line, message: message.into() });
    assert_eq!(run(script, LONG).await.unwrap(), Validation { valid: false, findings: expected.to_vec() });
}

#[tokio::test]
async fn a_valid_change_has_no_findings() {
    let script = r#"echo '{"items":[{"id":"add-login","valid":true,"issues":[]}],"root":{}}'"#;
    assert_eq!(run(script, LONG).await.unwrap(), Validation { valid: true, findings: Vec::new() });
}

#[tokio::test]
async fn r3_and_r21_an_absent_program_is_its_own_error() {
    let dir = tempfile::tempdir().unwrap();
    let absent = Program(dir.path().join("openspec"));
    let error = validate(&spawner(), &absent, dir.path(), "x", LONG).await.unwrap_err();
    assert!(matches!(error, OpenSpecError::Absent), "{error}");
}

#[tokio::test]
async fn r21_a_program_that_does_not_end_in_time_is_another() {
    let error = run("sleep 999", Duration::from_millis(300)).await.unwrap_err();
    assert!(matches!(error, OpenSpecError::TimedOut { .. }), "{error}");
    assert!(error.to_string().contains("300ms"), "{error}");
}

#[tokio::test]
async fn a_refusal_is_told_in_its_own_words() {
    let script = r#"echo '{"status":[{"severity":"error","code":"unknown_item","message":"Unknown item","fix":"run list"}]}'; exit 1"#;
    let error = run(script, LONG).await.unwrap_err().to_string();
    assert!(error.contains("unknown_item") && error.contains("Unknown item") && error.contains("run list"), "{error}");
}

#[tokio::test]
async fn an_answer_that_is_not_understood_is_shown() {
    for (script, shown) in [("echo hello", "hello"), ("echo '{}'", "{}"), ("echo oops >&2; exit 3", "oops")] {
        let error = run(script, LONG).await.unwrap_err();
        assert!(matches!(error, OpenSpecError::BadAnswer { .. }) && error.to_string().contains(shown), "{error}");
    }
}
