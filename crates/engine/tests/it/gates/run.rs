use std::time::Duration;

use ralphloop_core::evidence::CheckResult;
use ralphloop_engine::gates::run::{Cancelled, Runner};
use tokio_util::sync::CancellationToken;

use super::{could_not_run, failed, gate, ran, runner, spawner};

#[tokio::test]
async fn a_gate_that_ends_well_has_passed() {
    let ran = ran("echo fine").await;
    assert_eq!((ran.result, ran.repeatable), (CheckResult::Passed, true));
}

#[tokio::test]
async fn b14_a_failed_gate_has_its_exit_code_and_both_outputs_in_order() {
    let ran = ran("echo one; sleep 0.2; echo two >&2; sleep 0.2; echo three; exit 3").await;
    assert_eq!(failed(&ran.result), ("exit code 3", "one\ntwo\nthree\n"));
    assert!(ran.repeatable);
}

#[tokio::test]
async fn a_gate_that_is_missing_could_not_run_and_is_named() {
    let ran = ran("echo before; no-such-test-runner --all").await;
    let why = could_not_run(&ran.result);
    assert!(why.contains("no-such-test-runner") && why.contains("127"), "{why}");
    assert!(!ran.repeatable);
}

#[tokio::test]
async fn a_gate_that_may_not_be_executed_could_not_run() {
    let ran = ran("echo '#!/bin/sh' > gate.sh; ./gate.sh").await;
    let why = could_not_run(&ran.result);
    assert!(why.contains("gate.sh") && why.contains("126"), "{why}");
}

#[tokio::test]
async fn a_gate_whose_folder_is_gone_could_not_run() {
    let project = tempfile::tempdir().unwrap();
    let gone = project.path().join("gone");
    let spawner = spawner();
    let ran = runner(&spawner, &gone).run_gate(&gate("true")).await.unwrap();
    assert!(could_not_run(&ran.result).contains("gone"));
}

#[tokio::test]
async fn r36_a_gate_that_never_returns_fails_at_its_time_limit_and_leaves_nothing_running() {
    let project = tempfile::tempdir().unwrap();
    let spawner = spawner();
    let runner = Runner { timeout: Duration::from_secs(1), ..runner(&spawner, project.path()) };
    let hidden = "setsid sh -c 'echo $$ >>pids; exec sleep 999' &";
    let command = format!("echo begun; echo $$ >>pids; {hidden} sleep 999 & echo $! >>pids; wait");
    let ran = runner.run_gate(&gate(&command)).await.unwrap();
    assert_eq!(failed(&ran.result), ("timed out after 1s", "begun\n"));
    assert!(!ran.repeatable && ran.took < Duration::from_secs(10), "{ran:?}");
    let pids = std::fs::read_to_string(project.path().join("pids")).unwrap();
    let pids: Vec<u32> = pids.lines().map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(pids.len(), 3);
    assert!(pids.iter().all(|pid| !alive(*pid)), "{pids:?}");
}

#[tokio::test]
async fn b18_a_gate_gets_ci_and_no_input_and_no_terminal() {
    let ran = ran("cat; [ \"$CI\" = 1 ] || exit 4; [ ! -t 0 ] && [ ! -t 1 ] || exit 5; ! true </dev/tty").await;
    assert_eq!(ran.result, CheckResult::Passed);
}

#[tokio::test]
async fn a_gate_runs_in_the_project() {
    let project = tempfile::tempdir().unwrap();
    std::fs::write(project.path().join("here"), "").unwrap();
    let spawner = spawner();
    let ran = runner(&spawner, project.path()).run_gate(&gate("test -f here")).await.unwrap();
    assert_eq!(ran.result, CheckResult::Passed);
}

#[tokio::test]
async fn any_bytes_and_any_length_come_back_as_bounded_text() {
    let ran =
        ran(r"printf 'gate \377\000\033[31m bytes\n'; head -c 400000 /dev/zero | tr '\0' z; echo END; exit 1").await;
    let (_, output) = failed(&ran.result);
    assert!(output.starts_with("gate \u{fffd} bytes\nzzz"), "{}", &output[..40]);
    assert!(output.ends_with("zzzEND\n") && output.contains("bytes left out"));
    assert!(output.len() < 40_000);
}

#[tokio::test]
async fn secrets_in_the_output_are_redacted() {
    let ran = ran("echo password hunter2-hunter2; exit 1").await;
    assert_eq!(failed(&ran.result).1, "password [redacted]\n");
}

#[tokio::test]
async fn a_gate_that_was_killed_is_not_taken_as_repeatable() {
    assert!(!ran("kill -9 $$").await.repeatable);
    assert!(!ran("sh -c 'kill -9 $$'; exit $?").await.repeatable);
}

#[tokio::test]
async fn a_cancelled_gate_has_no_result() {
    let project = tempfile::tempdir().unwrap();
    let spawner = spawner();
    let cancel = CancellationToken::new();
    let runner = Runner { cancel: cancel.clone(), ..runner(&spawner, project.path()) };
    let gate = gate("echo > begun; sleep 999");
    let begun = async {
        while !project.path().join("begun").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(runner.run_gate(&gate), begun);
    assert_eq!(result, Err(Cancelled));
}

/// Whether a process runs; a zombie does not.
fn alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().starts_with(" Z"))
}
