//! Gates and checks in the lane.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use ralphloop_core::event::{CheckRef, CheckStage, Fact};
use ralphloop_core::evidence::CheckResult;
use ralphloop_core::ids::{AttemptId, TreeId};
use ralphloop_core::plan::Check;
use ralphloop_core::run::Run;
use tokio_util::sync::CancellationToken;

use super::Parts;
use crate::gates::Gate;
use crate::gates::run::{Ran, Runner};
use crate::sandbox::Role;

/// What is to be run.
#[derive(Debug)]
pub(super) enum What {
    /// A gate, and the tree where it was inspected just now.
    Gate(Gate, Option<TreeId>),
    Story(Check),
    /// The reference names nothing, which the core never does.
    Nothing,
}

impl What {
    pub(super) fn of(run: &Run, attempt: &AttemptId, check: CheckRef) -> Self {
        match check {
            CheckRef::Gate(gate) => run.policy().gates.get(gate).cloned().map(|gate| Self::Gate(gate, None)),
            CheckRef::Story(own) => {
                run.plan().story(&attempt.story).and_then(|s| s.checks.get(own)).cloned().map(Self::Story)
            }
        }
        .unwrap_or(Self::Nothing)
    }

    /// The same, on a tree that was inspected just now.
    pub(super) fn on(self, inspected: Option<TreeId>) -> Self {
        match self {
            Self::Gate(gate, _) => Self::Gate(gate, inspected),
            other => other,
        }
    }
}

pub(super) async fn run(
    parts: &Parts,
    attempt: AttemptId,
    stage: CheckStage,
    check: CheckRef,
    what: What,
    fresh: bool,
    cancel: CancellationToken,
) {
    let finished = |attempt, result, cached, took| Fact::CheckFinished { attempt, stage, check, result, cached, took };
    let tree = match &what {
        What::Gate(_, Some(inspected)) => Some(inspected.clone()),
        What::Gate(_, None) => parts.repository.tree_id().await.ok(),
        // A story's check may look beyond the tree, so its result is never taken from another time.
        What::Story(_) | What::Nothing => None,
    };
    let shared = &parts.shared;
    // Another lane may be running the same gate on the same tree: what it finds holds here too.
    let turn = match (&what, &tree) {
        (What::Gate(gate, _), Some(tree)) => Some(turn_of(parts, tree, gate)),
        _ => None,
    };
    let turn = match &turn {
        Some(turn) => tokio::select! {
            turn = turn.lock() => Some(turn),
            () = cancel.cancelled() => {
                return shared.say(finished(attempt, CheckResult::Stopped, false, Duration::ZERO));
            }
        },
        None => None,
    };
    if let (What::Gate(gate, _), Some(tree), false) = (&what, &tree, fresh)
        && let Some((result, took)) = known(parts, tree, gate)
    {
        // Nothing ran, so that it is the tree for the next one too.
        parts.tree_is(Some(tree.clone()));
        return shared.say(finished(attempt, result, true, took));
    }
    shared.say(Fact::CheckStarted { attempt: attempt.clone(), stage, check });
    let runner = Runner {
        spawner: &shared.spawner,
        project: &parts.work.project,
        timeout: shared.settings.times.gate,
        cancel: either(cancel, &shared.hurry),
        environment: &parts.environment,
        sees: &shared.settings.passing.gates,
        redactor: &shared.redactor,
        inside: &|call| parts.confined(call, Role::Gate),
    };
    let ran = match &what {
        What::Gate(gate, _) => runner.run_gate(gate).await,
        What::Story(check) => runner.run_check(check).await,
        What::Nothing => Ok(Ran {
            result: CheckResult::CouldNotRun { why: "there is no such check".to_owned() },
            took: Duration::ZERO,
            repeatable: false,
        }),
    };
    match ran {
        Err(_) => shared.say(finished(attempt, CheckResult::Stopped, false, Duration::ZERO)),
        Ok(ran) => {
            if let (What::Gate(gate, _), Some(tree)) = (&what, &tree) {
                remember(parts, tree, gate, &ran);
            }
            shared.say(finished(attempt, ran.result, false, ran.took));
        }
    }
    drop(turn);
}

/// The right to run this gate on this tree.
fn turn_of(parts: &Parts, tree: &TreeId, gate: &Gate) -> Arc<tokio::sync::Mutex<()>> {
    let mut turns = parts.shared.running_gates.lock().unwrap_or_else(PoisonError::into_inner);
    // Those that nobody holds any more are of trees that are gone.
    turns.retain(|_, turn| Arc::strong_count(turn) > 1);
    turns.entry((tree.clone(), gate.command.clone())).or_default().clone()
}

fn known(parts: &Parts, tree: &TreeId, gate: &Gate) -> Option<(CheckResult, Duration)> {
    let cache = parts.shared.cache.lock().unwrap_or_else(PoisonError::into_inner);
    cache.get(tree, gate).map(|(result, took)| (result.clone(), took))
}

fn remember(parts: &Parts, tree: &TreeId, gate: &Gate, ran: &Ran) {
    let mut cache = parts.shared.cache.lock().unwrap_or_else(PoisonError::into_inner);
    // A cache that cannot be written only costs time.
    drop(cache.put(tree, gate, ran));
}

/// A token that is cancelled when either is.
pub(super) fn either(own: CancellationToken, hurry: &CancellationToken) -> CancellationToken {
    if hurry.is_cancelled() {
        own.cancel();
    }
    own
}
