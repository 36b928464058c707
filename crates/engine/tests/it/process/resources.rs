//! Runaways: whatever is used too much of, the program is ended with all that it started, and named.
use ralphloop_engine::process::{Exit, Resource, Resources};

use super::{Mark, spawner, supervised};

#[track_caller]
fn exceeds(exit: Exit, resource: Resource) {
    match exit {
        Exit::Exceeded(excess) => {
            assert_eq!(excess.resource, resource);
            assert!(excess.used > excess.limit, "{excess}");
        }
        other => panic!("ended otherwise: {other}"),
    }
}

async fn runs(script: &str, resources: Resources) -> Exit {
    let mark = Mark::new();
    let mut running = spawner().start(mark.on(supervised(script)).resources(resources)).await.unwrap();
    while running.next().await.is_some() {}
    let exit = running.wait().await.unwrap().exit;
    mark.assert_none_alive();
    exit
}

#[tokio::test]
async fn too_many_processes_in_sessions_of_their_own() {
    let resources = Resources { processes: Some(60), ..Resources::default() };
    exceeds(runs("while :; do setsid sleep 600 & done", resources).await, Resource::Processes);
}

#[tokio::test]
async fn too_much_memory_of_several_together() {
    let resources = Resources { memory: Some(150 << 20), ..Resources::default() };
    let script = "for i in 1 2 3 4; do (head -c 60000000 /dev/zero | tail; sleep 600) & done; \
                  head -c 200000000 /dev/zero | { tail; }; sleep 600";
    exceeds(runs(script, resources).await, Resource::Memory);
}

#[tokio::test]
async fn too_much_written_by_those_who_are_gone_already() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let resources = Resources { written: Some(30 << 20), ..Resources::default() };
    let script = format!(
        "cd '{}'; for i in 1 2 3 4; do head -c 20000000 /dev/zero > f$i; done; sync; sleep 600",
        folder.path().display()
    );
    exceeds(runs(&script, resources).await, Resource::Written);
}

#[tokio::test]
async fn too_much_output() {
    let resources = Resources { output: Some(1 << 20), ..Resources::default() };
    exceeds(runs("yes", resources).await, Resource::Output);
}

#[tokio::test]
async fn who_stays_within_is_left_alone() {
    let resources =
        Resources { memory: Some(1 << 40), processes: Some(1000), written: Some(1 << 40), output: Some(1000) };
    assert_eq!(runs("sleep 0.6; echo done; exit 3", resources).await, Exit::Code(3));
}
