//! Programs that are owned directly, as git is.
use std::time::Duration;

use ralphloop_engine::process::{Call, Capture, Exit, Limits, SpawnError};
use tokio_util::sync::CancellationToken;

use super::{light, spawner};

#[tokio::test]
async fn output_and_exit_code_come_back_as_they_are() {
    let output = spawner().run(light("printf 'a\\377b'; printf err >&2; exit 3")).await.unwrap();
    assert_eq!(output.exit, Exit::Code(3));
    assert_eq!((output.stdout.bytes(), output.stderr.bytes()), (b"a\xffb".as_slice(), b"err".as_slice()));
    assert!(!output.leaked);
}

#[tokio::test]
async fn a_signal_is_not_an_exit_code() {
    let output = spawner().run(light("kill -9 $$")).await.unwrap();
    assert_eq!(output.exit, Exit::Signal(9));
}

#[tokio::test]
async fn the_time_limit_ends_the_whole_group_and_is_the_reason() {
    let limit = Duration::from_millis(300);
    let limits = Limits { grace: Duration::from_mins(1), ..Limits::total(limit) };
    let output = spawner().run(light("sleep 998 & sleep 999").limits(limits)).await.unwrap();
    assert_eq!(output.exit, Exit::TimedOut(limit));
    assert!(output.took < Duration::from_secs(30), "took {:?}", output.took);
}

#[tokio::test]
async fn a_program_that_ignores_term_is_killed_after_the_grace() {
    let limits = Limits { grace: Duration::from_millis(200), ..Limits::total(Duration::from_millis(300)) };
    let output = spawner().run(light("trap '' TERM; while :; do sleep 0.05; done").limits(limits)).await.unwrap();
    assert_eq!(output.exit, Exit::TimedOut(Duration::from_millis(300)));
}

#[tokio::test]
async fn a_request_to_cancel_ends_it() {
    let cancel = CancellationToken::new();
    let call = light("echo ready; sleep 999").cancel(cancel.clone());
    let mut running = spawner().start(call).await.unwrap();
    assert_eq!(running.next().await.unwrap().bytes, b"ready\n");
    cancel.cancel();
    assert_eq!(running.wait().await.unwrap().exit, Exit::Cancelled);
}

#[tokio::test]
async fn a_background_child_that_holds_the_output_hangs_nobody() {
    let output = spawner().run(light("echo $$; sleep 999 & exit 0")).await.unwrap();
    assert_eq!(output.exit, Exit::Code(0));
    assert!(output.leaked);
    assert!(output.took < Duration::from_secs(30));
    let group = output.stdout.text().trim().to_owned();
    super::until("nobody of its group is left", || {
        let listed = std::process::Command::new("pgrep").args(["-g", &group]).output().unwrap();
        String::from_utf8(listed.stdout).unwrap().lines().all(|pid| !super::alive(pid.parse().unwrap()))
    });
}

#[tokio::test]
async fn more_output_than_the_call_keeps_is_an_error_that_names_the_limit() {
    let error = spawner().run(Call::new("yes", "/").capture(Capture::Full { max: 1000 })).await.unwrap_err();
    assert!(matches!(error, SpawnError::TooMuchOutput { max: 1000, .. }), "{error}");
}

#[tokio::test]
async fn dropping_it_ends_it() {
    let mut running = spawner().start(light("echo ready; sleep 999")).await.unwrap();
    running.next().await.unwrap();
    let pid = running.record().pid;
    drop(running);
    super::until("the dropped program is gone", || !super::alive(pid));
}

#[tokio::test]
async fn with_the_last_who_could_ask_for_them_all_are_gone() {
    let spawner = spawner();
    let mark = super::Mark::new();
    let mut calls = Vec::new();
    for _ in 0..3 {
        calls.push(
            spawner.start(mark.on(light("trap '' TERM; echo ready; while :; do sleep 0.05; done"))).await.unwrap(),
        );
    }
    for call in &mut calls {
        assert_eq!(call.next().await.unwrap().bytes, b"ready\n");
    }
    drop((calls, spawner));
    mark.assert_none_alive_within(Duration::from_secs(1));
}

#[tokio::test]
async fn many_at_once_each_end_as_they_do_by_themselves() {
    let spawner = spawner();
    let calls = (0..20).map(|number| {
        let spawner = spawner.clone();
        async move {
            let output = spawner.run(light(&format!("echo {number}; exit {number}"))).await.unwrap();
            (output.exit, output.stdout.text())
        }
    });
    let mut running = tokio::task::JoinSet::new();
    calls.for_each(|call| drop(running.spawn(call)));
    let mut ended = running.join_all().await;
    ended.sort_by_key(|(_, text)| text.trim().parse::<i32>().unwrap());
    for (number, (exit, text)) in ended.into_iter().enumerate() {
        assert_eq!((exit, text), (Exit::Code(i32::try_from(number).unwrap()), format!("{number}\n")));
    }
}
