//! Gates, checks and `openspec` against real commands.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]
mod check;
mod openspec;
mod run;

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use ralphloop_agent::redact::Redactor;
use ralphloop_core::evidence::CheckResult;
use ralphloop_engine::gates::Gate;
use ralphloop_engine::gates::run::{Ran, Runner};
use ralphloop_engine::process::{Passing, Spawner, SupervisorProgram};
use tokio_util::sync::CancellationToken;

static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| Redactor::new([("LAMP_PASSWORD", "hunter2-hunter2")]));

fn runner<'a>(spawner: &'a Spawner, project: &'a Path) -> Runner<'a> {
    let (timeout, cancel) = (Duration::from_secs(20), CancellationToken::new());
    let (environment, sees) = (&[], &Passing::All);
    Runner { spawner, project, timeout, cancel, environment, sees, inside: &|call| call, redactor: &REDACTOR }
}

fn spawner() -> Spawner {
    Spawner::new(SupervisorProgram { program: env!("CARGO_BIN_EXE_ralphloop-supervise").into(), args: Vec::new() })
}

fn gate(command: &str) -> Gate {
    Gate { name: "gate".to_owned(), command: command.to_owned() }
}

/// Runs a gate in an empty project.
async fn ran(command: &str) -> Ran {
    let project = tempfile::tempdir().unwrap();
    let spawner = spawner();
    runner(&spawner, project.path()).run_gate(&gate(command)).await.unwrap()
}

fn failed(result: &CheckResult) -> (&str, &str) {
    match result {
        CheckResult::Failed { why, output } => (why, output),
        other => panic!("not failed: {other:?}"),
    }
}

fn could_not_run(result: &CheckResult) -> &str {
    match result {
        CheckResult::CouldNotRun { why } => why,
        other => panic!("not unable to run: {other:?}"),
    }
}
