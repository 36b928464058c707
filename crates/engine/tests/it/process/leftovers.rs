//! What is left when this process dies, and when its supervisor dies with it. B17 and B20.
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use ralphloop_engine::process::{Call, Exit, Leftover, Limits, Ownership, StopLevel, end_leftovers};

use super::{Mark, TEST_MARK, light, spawner, supervised};

/// What an orchestrator of the test runs; its first line says that all of it is up.
const STUBBORN: &str = "trap '' TERM INT HUP
    setsid sh -c 'trap \"\" TERM; while :; do sleep 0.05; done' & setsid setsid sleep 999 & sleep 998 &
    echo ready; while :; do sleep 0.05; done";

/// What it runs beside that, as light calls.
const STUBBORN_GROUP: &str = "trap '' TERM INT HUP; sleep 997 & echo ready; while :; do sleep 0.05; done";

/// The arguments with which this test binary is an orchestrator.
const ORCHESTRATOR: [&str; 4] =
    ["--exact", "process::leftovers::orchestrator_to_be_killed", "--ignored", "--nocapture"];

/// Not a test of its own: the orchestrator that the tests below start as a process, to kill it. It prints the record.
#[tokio::test]
#[ignore = "started by other tests"]
async fn orchestrator_to_be_killed() {
    let mark = std::env::var(TEST_MARK).expect("started by another test");
    let spawner = spawner();
    let mut light_ones = Vec::new();
    for _ in 0..2 {
        let mut running = spawner.start(light(STUBBORN_GROUP).env(TEST_MARK, &mark)).await.unwrap();
        assert_eq!(running.next().await.unwrap().bytes, b"ready\n");
        light_ones.push(running);
    }
    let mut running = spawner.start(supervised(STUBBORN).env(TEST_MARK, mark)).await.unwrap();
    assert_eq!(running.next().await.unwrap().bytes, b"ready\n");
    println!("\nrecord {}", serde_json::to_string(&running.record()).unwrap());
    while running.next().await.is_some() {}
}

/// Starts an orchestrator as a process of its own and waits until its child is up.
fn orchestrator(mark: &Mark) -> (std::process::Child, Leftover) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(ORCHESTRATOR)
        .env(TEST_MARK, &mark.0)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let record = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("record ").map(|record| serde_json::from_str(record).unwrap()))
        .unwrap();
    (child, record)
}

fn kill(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

/// The parent of a process.
fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn when_the_orchestrator_is_killed_everything_is_dead_within_a_second() {
    let mark = Mark::new();
    let (mut orchestrator, _) = orchestrator(&mark);
    super::until("the tree is up", || mark.alive().len() >= 9);
    orchestrator.kill().unwrap();
    mark.assert_none_alive_within(Duration::from_secs(1));
    orchestrator.wait().unwrap();
}

#[tokio::test]
async fn an_orchestrator_that_is_itself_supervised_goes_with_all_that_it_supervises() {
    let mark = Mark::new();
    let call = Call::new(std::env::current_exe().unwrap(), "/")
        .args(ORCHESTRATOR)
        .ownership(Ownership::Supervised)
        .limits(Limits { grace: Duration::from_millis(300), ..Limits::total(Duration::from_mins(1)) });
    let mut running = spawner().start(mark.on(call)).await.unwrap();
    let mut said = String::new();
    while !said.contains("record ") {
        said += &String::from_utf8(running.next().await.unwrap().bytes).unwrap();
    }
    super::until("both trees are up", || mark.alive().len() >= 7);
    running.stop(StopLevel::Gentle);
    assert_eq!(running.wait().await.unwrap().exit, Exit::Cancelled);
    mark.assert_none_alive();
}

#[test]
fn when_the_supervisor_is_killed_with_it_the_record_is_enough_to_end_the_rest() {
    let mark = Mark::new();
    let (mut orchestrator, record) = orchestrator(&mark);
    let supervisor = parent(record.pid);
    kill("-STOP", supervisor);
    orchestrator.kill().unwrap();
    orchestrator.wait().unwrap();
    kill("-KILL", supervisor);
    super::until("the supervisor is gone", || !super::alive(supervisor));
    super::until("the tree outlived both", || mark.alive().len() >= 4);
    let ended = end_leftovers(std::slice::from_ref(&record));
    mark.assert_none_alive();
    assert_eq!(ended.len(), 1);
    assert!(ended[0].gone.contains(&record.pid) && ended[0].gone.len() >= 4, "{ended:?}");
    assert_eq!(ended[0].survived, Vec::<u32>::new());
    let again = end_leftovers(&[record]);
    assert_eq!(again[0].gone, Vec::<u32>::new(), "there is nobody left to end");
}

#[test]
fn a_process_that_has_the_number_now_is_not_touched() {
    let mark = Mark::new();
    let mut stranger = Command::new("sleep").arg("999").env(TEST_MARK, &mark.0).spawn().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", stranger.id())).unwrap();
    let start_time: u64 = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse().unwrap();
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned();
    let itself = Leftover { pid: stranger.id(), start_time, boot_id, mark: None };
    let earlier = Leftover { start_time: start_time - 1, ..itself.clone() };
    let other_boot = Leftover { boot_id: "another boot".to_owned(), ..itself.clone() };
    for ended in end_leftovers(&[earlier, other_boot]) {
        assert_eq!((ended.gone, ended.survived), (Vec::new(), Vec::new()));
    }
    assert!(super::alive(stranger.id()));
    assert_eq!(end_leftovers(&[itself])[0].gone, [stranger.id()]);
    stranger.wait().unwrap();
}
