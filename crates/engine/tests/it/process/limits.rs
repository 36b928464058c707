//! The clocks and their reasons. B14, B15, B16 and B92 of the classes of failure.
use std::time::{Duration, Instant};

use ralphloop_engine::process::{Call, Condition, Exit, Limits, StopLevel, Stream};

use super::{Mark, light, spawner, supervised};

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn limits() -> Limits {
    Limits { grace: ms(300), ..Limits::total(Duration::from_mins(1)) }
}

#[tokio::test]
async fn one_that_never_speaks_is_told_apart_from_one_that_falls_silent() {
    let mark = Mark::new();
    let limits = Limits { first_output: Some(ms(400)), idle: Some(ms(200)), ..limits() };
    let never = spawner().run(mark.on(supervised("sleep 999").limits(limits))).await.unwrap();
    assert_eq!(never.exit, Exit::NeverSpoke(ms(400)));
    let limits = Limits { first_output: Some(Duration::from_secs(30)), ..limits };
    let slow_start = supervised("sleep 0.3; echo ready; sleep 999").limits(limits);
    let silent = spawner().run(mark.on(slow_start)).await.unwrap();
    assert_eq!((silent.exit, silent.stdout.text().as_str()), (Exit::Silent(ms(200)), "ready\n"));
    mark.assert_none_alive();
}

#[tokio::test]
async fn life_on_standard_error_alone_is_not_silence() {
    let limits = Limits { idle: Some(ms(2000)), ..limits() };
    let script = "for i in 1 2 3 4 5 6 7 8; do echo working >&2; sleep 0.3; done; exit 7";
    let output = spawner().run(supervised(script).limits(limits)).await.unwrap();
    assert_eq!((output.exit, output.stderr.bytes().len()), (Exit::Code(7), 8 * 8));
}

#[tokio::test]
async fn the_time_in_all_is_a_limit_for_one_that_never_stops_talking() {
    let mark = Mark::new();
    let limits = Limits { total: ms(1500), idle: Some(ms(1000)), ..limits() };
    let mut running = spawner().start(mark.on(supervised("yes")).limits(limits)).await.unwrap();
    while running.next().await.is_some() {}
    assert_eq!(running.wait().await.unwrap().exit, Exit::TimedOut(ms(1500)));
    mark.assert_none_alive();
}

#[tokio::test]
async fn one_that_stays_after_its_final_event_has_ended_by_itself() {
    let mark = Mark::new();
    let first_output = Some(Duration::from_secs(30));
    let limits = Limits { exit_grace: ms(200), first_output, idle: Some(ms(100)), ..limits() };
    let script = "echo result; sleep 999 & sleep 999";
    let mut running = spawner().start(mark.on(supervised(script)).limits(limits)).await.unwrap();
    assert_eq!(running.next().await.unwrap().bytes, b"result\n");
    running.saw_final_event();
    let ending = running.wait().await.unwrap();
    assert_eq!((ending.exit, ending.stayed), (Exit::Code(0), true));
    mark.assert_none_alive();
}

#[tokio::test]
async fn one_that_exits_after_its_final_event_keeps_its_own_code() {
    let mut running = spawner().start(supervised("echo result; exit 4").limits(limits())).await.unwrap();
    running.next().await.unwrap();
    running.saw_final_event();
    let ending = running.wait().await.unwrap();
    assert_eq!((ending.exit, ending.stayed), (Exit::Code(4), false));
}

#[tokio::test]
async fn a_reader_that_was_busy_elsewhere_shoots_nobody() {
    let limits = Limits { idle: Some(ms(3000)), ..limits() };
    let mut running = spawner().start(light("echo one; sleep 3.4; echo two").limits(limits)).await.unwrap();
    assert_eq!(running.next().await.unwrap().bytes, b"one\n");
    // The thread is blocked for longer than the limit: nobody looked, so the clock saw a step at most.
    std::thread::sleep(ms(3200));
    assert_eq!(running.next().await.unwrap().bytes, b"two\n");
    assert_eq!(running.wait().await.unwrap().exit, Exit::Code(0));
}

/// All that a watcher is told of a call, from its start to its end.
async fn conditions(call: Call) -> Vec<Condition> {
    let mut running = spawner().start(call).await.unwrap();
    let mut condition = running.condition();
    let first = *condition.borrow_and_update();
    let watcher = tokio::spawn(async move {
        let mut seen = vec![first];
        while condition.changed().await.is_ok() {
            seen.push(*condition.borrow_and_update());
        }
        seen
    });
    running.wait().await.unwrap();
    drop(running);
    watcher.await.unwrap()
}

#[tokio::test]
async fn a_watcher_is_told_of_slow_ending_leaking_and_gone() {
    use Condition::{Ending, ExitedButLeaking, Gone, Running, Slow};
    let limits = Limits { idle: Some(ms(2000)), ..limits() };
    assert_eq!(conditions(supervised("echo hi; sleep 999").limits(limits)).await, [Running, Slow, Ending, Gone]);
    assert_eq!(conditions(supervised("setsid sleep 999 &")).await, [Running, ExitedButLeaking, Gone]);
    assert_eq!(conditions(supervised("exit 1")).await, [Running, Gone]);
}

#[tokio::test]
async fn a_second_harder_stop_cuts_the_grace_short() {
    let mark = Mark::new();
    let limits = Limits { grace: Duration::from_mins(1), ..limits() };
    let script = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    let mut running = spawner().start(mark.on(supervised(script)).limits(limits)).await.unwrap();
    running.next().await.unwrap();
    let began = Instant::now();
    running.stop(StopLevel::Gentle);
    running.stop(StopLevel::Now);
    assert_eq!(running.wait().await.unwrap().exit, Exit::Cancelled);
    assert!(began.elapsed() < Duration::from_secs(30), "took {:?}", began.elapsed());
    mark.assert_none_alive();
}

#[tokio::test]
async fn a_program_that_cleans_up_on_term_is_heard_to_the_end() {
    let script = "trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let limits = Limits { grace: Duration::from_secs(30), ..limits() };
    let mut running = spawner().start(supervised(script).limits(limits)).await.unwrap();
    running.next().await.unwrap();
    running.stop(StopLevel::Gentle);
    let mut said = Vec::new();
    while let Some(chunk) = running.next().await {
        // On its error output the shell remarks on its own child's end.
        if chunk.stream == Stream::Stdout {
            said.extend(chunk.bytes);
        }
    }
    assert_eq!(said, b"cleaned\n");
    assert_eq!(running.wait().await.unwrap().exit, Exit::Cancelled);
}
