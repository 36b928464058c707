//! What a child is given, and what is said when it can't be started.
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ralphloop_engine::process::{Call, Exit, Ownership, SpawnError, Spawner, SupervisorProgram};

use super::{light, spawner, supervised};

fn file(folder: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

async fn refusal(call: Call) -> [SpawnError; 2] {
    let under_supervision = call.clone().ownership(Ownership::Supervised);
    [spawner().run(call).await.unwrap_err(), spawner().run(under_supervision).await.unwrap_err()]
}

#[tokio::test]
async fn a_missing_program_is_named_and_is_no_exit_code() {
    for error in refusal(Call::new("no-such-program-here", "/")).await {
        assert!(matches!(&error, SpawnError::NotFound { path: Some(_), .. }), "{error:?}");
        assert!(error.to_string().contains("`no-such-program-here` not found in PATH"), "{error}");
    }
    for error in refusal(Call::new("/no/such/program", "/")).await {
        assert!(matches!(&error, SpawnError::NotFound { path: None, .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_script_without_its_interpreter_names_both() {
    let folder = tempfile::tempdir().unwrap();
    let script = file(folder.path(), "tool", "#! /opt/none/node --flag\n", 0o755);
    for error in refusal(Call::new(&script, "/")).await {
        let SpawnError::BadInterpreter { program, interpreter } = &error else { panic!("{error:?}") };
        assert_eq!((program, interpreter), (&script, &PathBuf::from("/opt/none/node")));
    }
}

#[tokio::test]
async fn a_file_that_may_not_be_executed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let text = file(folder.path(), "notes", "hello\n", 0o644);
    for error in refusal(Call::new(&text, "/")).await {
        assert!(matches!(&error, SpawnError::NotExecutable { program, .. } if *program == text), "{error:?}");
    }
}

#[tokio::test]
async fn a_missing_folder_is_not_taken_for_a_missing_program() {
    for error in refusal(Call::new("true", "/no/such/folder")).await {
        assert!(
            matches!(&error, SpawnError::BadDirectory { cwd, .. } if cwd == Path::new("/no/such/folder")),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn arguments_that_are_too_long_point_to_standard_input() {
    for error in refusal(Call::new("true", "/").arg("x".repeat(200_000))).await {
        assert!(matches!(error, SpawnError::TooLong { bytes: 200_001, .. }), "{error:?}");
        assert!(error.to_string().contains("standard input"), "{error}");
    }
}

#[tokio::test]
async fn a_missing_supervisor_is_not_taken_for_a_missing_program() {
    let nowhere = Spawner::new(SupervisorProgram { program: "/no/supervisor".into(), args: Vec::new() });
    let error = nowhere.run(supervised("true")).await.unwrap_err();
    assert!(
        matches!(&error, SpawnError::Supervisor { supervisor, .. } if supervisor == Path::new("/no/supervisor")),
        "{error:?}"
    );
    let refuses = Spawner::new(SupervisorProgram { program: "/bin/false".into(), args: Vec::new() });
    let error = refuses.run(supervised("true")).await.unwrap_err();
    assert!(matches!(&error, SpawnError::Supervisor { .. }), "{error:?}");
}

#[tokio::test]
async fn a_child_sees_the_decided_environment_and_nothing_of_git() {
    for call in [light("env"), supervised("env")] {
        let call = call.env("GIT_WORK_TREE", "/decided").env("CI", "1").env_remove("HOME");
        let output = spawner().run(call).await.unwrap().stdout.text();
        let has = |line: &str| output.lines().any(|found| found == line);
        assert!(has("CI=1") && has("GIT_WORK_TREE=/decided"), "{output}");
        assert!(output.lines().any(|line| line.starts_with("PATH=")), "what nobody decided about passes: {output}");
        assert!(!output.lines().any(|line| line.starts_with("HOME=")), "{output}");
    }
}

#[tokio::test]
async fn a_child_has_no_terminal_and_leads_its_own_group_and_a_supervised_one_its_own_session() {
    for (call, leads) in [(light(SESSION), "group"), (supervised(SESSION), "group session")] {
        let output = spawner().run(call).await.unwrap();
        assert_eq!(output.stdout.text(), format!("no terminal\n{leads}\n"), "{}", output.stderr.text());
    }
}

const SESSION: &str = r#"( : >/dev/tty ) 2>/dev/null && echo terminal || echo "no terminal"
set -- $(cut -d')' -f2- /proc/$$/stat); leads=; [ "$3" = $$ ] && leads=group; [ "$4" = $$ ] && leads="$leads session"
echo $leads"#;

#[tokio::test]
async fn a_child_holds_its_three_streams_and_no_file_of_ours() {
    let list = "ls /proc/self/fd";
    // What whoever started us left open for all is not ours to close.
    let plain = std::process::Command::new("/bin/sh").args(["-c", list]).stdin(std::process::Stdio::null()).output();
    let plain = String::from_utf8(plain.unwrap().stdout).unwrap();
    for call in [light(list), supervised(list), light(list).stdin_bytes("x"), supervised(list).stdin_bytes("x")] {
        assert_eq!(spawner().run(call).await.unwrap().stdout.text(), plain);
    }
}

#[tokio::test]
async fn a_child_starts_with_the_usual_signals() {
    const MASKS: &str = "grep -E '^Sig(Blk|Ign)' /proc/self/status";
    for call in [light(MASKS), supervised(MASKS)] {
        let output = spawner().run(call).await.unwrap().stdout.text();
        let masks: Vec<u64> = output.lines().map(|line| u64::from_str_radix(line[8..].trim(), 16).unwrap()).collect();
        let broken_pipe = 1 << (13 - 1);
        assert_eq!(masks[0], 0, "nothing is blocked: {output}");
        assert_eq!(masks[1] & broken_pipe, 0, "a broken pipe ends a program: {output}");
    }
}

#[tokio::test]
async fn standard_input_is_at_its_end_at_once_or_after_what_is_fed() {
    for call in [Call::new("cat", "/"), Call::new("cat", "/").ownership(Ownership::Supervised)] {
        assert_eq!(spawner().run(call.clone()).await.unwrap().stdout.bytes(), b"");
        let prompt = vec![b'p'; 2_000_000];
        let output = spawner().run(call.stdin_bytes(prompt.clone())).await.unwrap();
        assert!(output.stdout.bytes() == prompt && output.exit == Exit::Code(0));
    }
}

#[tokio::test]
async fn a_child_that_never_reads_its_huge_input_is_no_error() {
    for call in [light("echo done"), supervised("echo done")] {
        let output = spawner().run(call.stdin_bytes(vec![b'x'; 8_000_000])).await.unwrap();
        assert_eq!((output.exit, output.stdout.text().as_str()), (Exit::Code(0), "done\n"));
    }
}
