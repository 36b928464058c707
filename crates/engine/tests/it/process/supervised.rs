//! Programs under a supervisor: whatever they leave behind is gone when they are. B11, B17 and B18.
use std::time::Duration;

use ralphloop_engine::process::{Capture, Exit, Limits, SpawnError, StopLevel};
use tokio_util::sync::CancellationToken;

use super::{Mark, spawner, supervised};

fn limits(total_ms: u64, grace_ms: u64) -> Limits {
    Limits { grace: Duration::from_millis(grace_ms), ..Limits::total(Duration::from_millis(total_ms)) }
}

#[tokio::test]
async fn output_exit_code_and_signal_come_through_the_supervisor() {
    let output = spawner().run(supervised("printf out; printf err >&2; exit 3")).await.unwrap();
    assert_eq!((output.exit, output.leaked), (Exit::Code(3), false));
    assert_eq!((output.stdout.bytes(), output.stderr.bytes()), (b"out".as_slice(), b"err".as_slice()));
    assert_eq!(spawner().run(supervised("kill -6 $$")).await.unwrap().exit, Exit::Signal(6));
}

#[tokio::test]
async fn what_outlives_the_program_is_gone_with_it_however_it_hid() {
    for leftover in [
        "sleep 999 &",
        "setsid sleep 999 &",
        "setsid setsid sh -c 'setsid sleep 998 & sleep 999' &",
        "( setsid sh -c '( sleep 999 & ) ; ( setsid sleep 998 & )' & ) ; sleep 0.2",
        "setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 0.05; done' >/dev/null 2>&1 </dev/null &",
    ] {
        let mark = Mark::new();
        let output = spawner().run(mark.on(supervised(&format!("{leftover}\necho done; exit 5")))).await.unwrap();
        assert_eq!((output.exit, output.stdout.text().as_str()), (Exit::Code(5), "done\n"), "{leftover}");
        assert!(output.leaked, "{leftover}");
        assert!(output.took < Duration::from_secs(30), "{leftover} took {:?}", output.took);
        mark.assert_none_alive();
    }
}

#[tokio::test]
async fn one_that_writes_its_last_line_a_moment_after_the_program_is_still_heard() {
    let script = "( while kill -0 $$ 2>/dev/null; do :; done; echo late ) & exit 0";
    let output = spawner().run(supervised(script)).await.unwrap();
    assert_eq!((output.stdout.text().as_str(), output.leaked), ("late\n", false));
}

#[tokio::test]
async fn a_tree_that_ignores_term_is_killed_after_the_grace() {
    let mark = Mark::new();
    let script = "trap '' TERM INT HUP; ( setsid sh -c 'trap \"\" TERM; while :; do sleep 0.05; done' & )
        ( trap '' TERM; while :; do sleep 0.05; done ) & while :; do sleep 0.05; done";
    let output = spawner().run(mark.on(supervised(script).limits(limits(400, 300)))).await.unwrap();
    assert_eq!(output.exit, Exit::TimedOut(Duration::from_millis(400)));
    mark.assert_none_alive();
}

#[tokio::test]
async fn processes_that_keep_forking_during_the_end_are_gone_too() {
    let mark = Mark::new();
    let script = "trap '' TERM; for i in 1 2 3; do setsid sh -c 'trap \"\" TERM; while :; do setsid sleep 999 & sleep 0.02; done' & done; sleep 999";
    let output = spawner().run(mark.on(supervised(script).limits(limits(500, 200)))).await.unwrap();
    assert!(matches!(output.exit, Exit::TimedOut(_)));
    mark.assert_none_alive();
}

#[tokio::test]
async fn a_stopped_program_is_ended_all_the_same() {
    let mark = Mark::new();
    let output = spawner().run(mark.on(supervised("kill -STOP $$").limits(limits(300, 60_000)))).await.unwrap();
    assert!(matches!(output.exit, Exit::TimedOut(_)));
    assert!(output.took < Duration::from_secs(30), "TERM was enough: {:?}", output.took);
    mark.assert_none_alive();
}

#[tokio::test]
async fn a_request_to_cancel_ends_all_of_it() {
    let mark = Mark::new();
    let cancel = CancellationToken::new();
    let call = mark.on(supervised("setsid sleep 999 & echo ready; sleep 999")).cancel(cancel.clone());
    let mut running = spawner().start(call).await.unwrap();
    assert_eq!(running.next().await.unwrap().bytes, b"ready\n");
    cancel.cancel();
    assert_eq!(running.wait().await.unwrap().exit, Exit::Cancelled);
    mark.assert_none_alive();
}

#[tokio::test]
async fn r26_dropping_it_ends_all_of_it() {
    let mark = Mark::new();
    let mut running = spawner().start(mark.on(supervised("setsid sleep 999 & echo ready; sleep 999"))).await.unwrap();
    running.next().await.unwrap();
    drop(running);
    mark.assert_none_alive_within(Duration::from_secs(1));
}

#[tokio::test]
async fn signals_to_the_supervisor_and_to_our_group_do_not_reach_it() {
    let mark = Mark::new();
    // The parent of the program is its supervisor.
    let script = "kill -TERM $PPID; kill -INT $PPID; kill -HUP $PPID; sleep 0.2; setsid sleep 999 & echo alive";
    let output = spawner().run(mark.on(supervised(script))).await.unwrap();
    assert_eq!((output.exit, output.stdout.text().as_str(), output.leaked), (Exit::Code(0), "alive\n", true));
    mark.assert_none_alive();
}

#[tokio::test]
async fn a_supervisor_that_is_killed_is_an_error_and_leaves_nobody() {
    let mark = Mark::new();
    let script = "setsid sleep 999 & kill -KILL $PPID; sleep 999";
    let error = spawner().run(mark.on(supervised(script))).await.unwrap_err();
    assert!(matches!(error, SpawnError::Supervisor { .. }), "{error:?}");
    mark.assert_none_alive();
}

#[tokio::test]
async fn two_hundred_megabytes_pass_in_constant_memory() {
    let before = resident();
    let flood = "yes \"$(printf 'x%.0s' $(seq 200))\" | head -c 200000000; yes noise | head -c 20000000 >&2; echo END";
    let capture = Capture::HeadTail { head: 100, tail: 100 };
    let output = spawner().run(supervised(flood).capture(capture)).await.unwrap();
    assert!(output.stdout.text().ends_with("END\n"));
    assert_eq!(output.stdout.left_out(), 200_000_004 - 200);
    assert_eq!(output.stderr.left_out(), 20_000_000 - 200);
    // Tests beside this one use some too.
    let grown = resident().saturating_sub(before);
    assert!(grown < 80_000_000, "memory grew by {grown} bytes");
}

/// Our own memory, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[tokio::test]
async fn the_memory_killer_takes_the_child_before_the_supervisor() {
    // The supervisor takes its own score back when the child runs already.
    let wait = "while read above </proc/$PPID/oom_score_adj && read own </proc/$$/oom_score_adj && [ $own -le $above ]; do sleep 0.01; done";
    let output = spawner().run(supervised(wait).timeout(Duration::from_secs(10))).await.unwrap();
    assert_eq!(output.exit, Exit::Code(0), "the child's score is the higher one");
}

/// Reads lines, and knows a word for the end.
const TALKER: &str = "trap 'echo term; exit 4' TERM; echo up; while read -r word; do \
                      case $word in bye) echo parting; read -r more; echo hung up; sleep 600 & wait;; esac; done";

async fn said_after(running: &mut ralphloop_engine::process::Running, until: &str) -> String {
    let mut said = String::new();
    while let Some(chunk) = running.next().await {
        said.push_str(&String::from_utf8_lossy(&chunk.bytes));
        if said.contains(until) {
            break;
        }
    }
    said
}

#[tokio::test]
async fn one_that_knows_a_word_for_the_end_is_told_it_before_any_signal() {
    let mark = Mark::new();
    let mut running = spawner().start(mark.on(supervised(TALKER)).stdin_talk()).await.unwrap();
    said_after(&mut running, "up").await;
    running.part_with(b"bye\n");
    running.stop(StopLevel::Gentle);
    assert!(running.is_ending());
    let said = said_after(&mut running, "parting").await;
    assert!(!said.contains("term"), "{said}");
    // Its result is there: nothing more is waited for.
    running.hang_up();
    running.saw_final_event();
    assert!(said_after(&mut running, "\u{0}").await.contains("term"));
    assert_eq!(running.wait().await.unwrap().exit, Exit::Cancelled);
    mark.assert_none_alive();
}

#[tokio::test]
async fn one_that_does_not_heed_its_word_is_ended_like_any_other() {
    let mark = Mark::new();
    let deaf = "trap 'echo term; exit 4' TERM; echo up; while :; do sleep 0.05; done";
    let mut running = spawner().start(mark.on(supervised(deaf)).stdin_talk()).await.unwrap();
    said_after(&mut running, "up").await;
    running.part_with(b"bye\n");
    running.stop(StopLevel::Gentle);
    assert!(said_after(&mut running, "\u{0}").await.contains("term"));
    assert_eq!(running.wait().await.unwrap().exit, Exit::Cancelled);
    mark.assert_none_alive();
}
