//! The state files of the three loops of Flight Rules, exactly in their schemas.

use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::Scheme;
use ralphloop_core::run::{Activity, Run, StoryState};
use serde::{Deserialize, Serialize};

use super::Telling;
use super::chronicle::Done;
use crate::view::rfc3339;
use crate::view::status::RunState;

/// How a loop stands, in the words of its state file. A loop that can be gone on with is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LoopStatus {
    Running,
    Paused,
    Stopping,
    Complete,
    Failed,
}

impl LoopStatus {
    /// A run whose process is gone is still `running` in these words: whoever reads that looks for the process.
    pub(super) fn of(run: &Run) -> Self {
        match RunState::of(run, true) {
            RunState::Running | RunState::Interrupted => Self::Running,
            RunState::Stopping => Self::Stopping,
            RunState::Paused | RunState::Limit | RunState::Stopped => Self::Paused,
            RunState::Complete => Self::Complete,
            RunState::Failed => Self::Failed,
        }
    }
}

/// How a piece of work was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verification {
    Passed,
    Failed,
    Skipped,
}

/// `.continuous-session-state.json`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContinuousSession {
    /// How the loop stands.
    pub(crate) status: LoopStatus,
    /// When it began.
    pub(crate) started_at: String,
    /// When it last changed.
    pub(crate) last_updated: String,
    /// The bound on sessions, each of which is one start of an agent; 0 is no bound.
    pub(crate) max_sessions: u32,
    /// Sessions so far.
    pub(crate) current_session: u32,
    /// What the queue was read from.
    pub(crate) source_session: String,
    /// What has landed, in that order.
    pub(crate) completed_items: Vec<CompletedItem>,
    /// What could not be done.
    pub(crate) failed_items: Vec<FailedItem>,
    /// What is left to do, in order.
    pub(crate) queue_snapshot: Vec<String>,
}

/// One item that landed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CompletedItem {
    /// Its title.
    pub(crate) title: String,
    /// The log of its session, beside this file.
    pub(crate) session_log: String,
    /// How it was verified; skipped if nothing could verify it.
    pub(crate) verification: Verification,
    /// How long it took, in milliseconds.
    pub(crate) duration: u64,
}

/// One item that could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FailedItem {
    /// Its title.
    pub(crate) title: String,
    /// Why.
    pub(crate) error: String,
    /// The log of its session, beside this file.
    pub(crate) session_log: String,
}

/// `.task-loop-state.json`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskLoop {
    /// How the loop stands.
    pub(crate) status: LoopStatus,
    /// When it began.
    pub(crate) started_at: String,
    /// When it last changed.
    pub(crate) last_updated: String,
    /// The bound on iterations, each of which is one start of an agent; 0 is no bound.
    pub(crate) max_iterations: u32,
    /// Iterations so far.
    pub(crate) current_iteration: u32,
    /// The task, or group of tasks, that is worked on.
    pub(crate) current_task: Option<String>,
    /// What the loop is about.
    pub(crate) scope: Scope,
    /// What has landed.
    pub(crate) completed_tasks: Vec<CompletedTask>,
    /// What could not be done.
    pub(crate) failed_tasks: Vec<FailedTask>,
}

/// What a task loop is about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Scope {
    /// An area, by its folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) area: Option<String>,
    /// A task group, by its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task_group: Option<String>,
}

/// One task that is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct CompletedTask {
    /// Its id.
    pub(crate) id: String,
    /// Its title.
    pub(crate) title: String,
    /// A gate or a check has proven it.
    pub(crate) verified: bool,
    /// How long it took, with those that landed with it, in milliseconds.
    pub(crate) duration: u64,
}

/// One task that could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct FailedTask {
    /// Its id.
    pub(crate) id: String,
    /// Its title.
    pub(crate) title: String,
    /// Why.
    pub(crate) error: String,
    /// Attempts so far.
    pub(crate) attempts: u32,
}

/// `.ralph-loop-state.json`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RalphLoop {
    /// How the loop stands.
    pub(crate) status: LoopStatus,
    /// How many agents were started.
    pub(crate) current_iteration: u32,
}

/// The stories that the run could not do, with why.
pub(super) fn failed(run: &Run) -> impl Iterator<Item = (&StoryId, String, u32)> {
    run.records().filter(|(_, record)| matches!(record.state, StoryState::Failed | StoryState::Blocked)).map(
        |(story, record)| {
            (&story.id, record.reason.clone().unwrap_or_else(|| "it has not passed".to_owned()), record.attempts)
        },
    )
}

/// How many items the session may take, else how often an agent may be started.
fn bound(run: &Run) -> u32 {
    let budget = &run.policy().budget;
    budget.stories.or(budget.iterations).unwrap_or(0)
}

fn millis(done: &Done) -> u64 {
    u64::try_from(done.took.as_millis()).unwrap_or(u64::MAX)
}

impl ContinuousSession {
    pub(super) fn of(told: Telling<'_>) -> Self {
        let (chronicle, log) = (told.chronicle, told.session_log());
        let run = &chronicle.run;
        Self {
            status: LoopStatus::of(run),
            started_at: rfc3339(run.started_at()),
            last_updated: rfc3339(run.last_at()),
            max_sessions: bound(run),
            current_session: run.calls(),
            source_session: run.plan().work.id.trim_end_matches(ralphloop_spec::NEXT_STEPS).to_owned(),
            completed_items: chronicle
                .done
                .iter()
                .map(|done| CompletedItem {
                    title: done.title.clone(),
                    session_log: log.clone(),
                    verification: if done.verified { Verification::Passed } else { Verification::Skipped },
                    duration: millis(done),
                })
                .collect(),
            failed_items: failed(run)
                .map(|(story, error, _)| FailedItem { title: chronicle.title(story), error, session_log: log.clone() })
                .collect(),
            queue_snapshot: told.open().map(|story| chronicle.title(&story.id)).collect(),
        }
    }
}

impl TaskLoop {
    pub(super) fn of(told: Telling<'_>) -> Self {
        let chronicle = told.chronicle;
        let run = &chronicle.run;
        let current = match run.activity() {
            Activity::Ended(_) => None,
            _ => run.attempts().next().map(|attempt| attempt.id.story.to_string()),
        };
        Self {
            status: LoopStatus::of(run),
            started_at: rfc3339(run.started_at()),
            last_updated: rfc3339(run.last_at()),
            max_iterations: bound(run),
            current_iteration: run.calls(),
            current_task: current,
            scope: scope(run),
            completed_tasks: chronicle.done.iter().flat_map(|done| completed(run, done)).collect(),
            failed_tasks: failed(run)
                .map(|(story, error, attempts)| FailedTask {
                    id: story.to_string(),
                    title: chronicle.title(story),
                    error,
                    attempts,
                })
                .collect(),
        }
    }
}

/// The tasks of a group of tasks; a story of any other work is a task itself.
fn completed(run: &Run, done: &Done) -> Vec<CompletedTask> {
    let task = |id: String, title: String| CompletedTask { id, title, verified: done.verified, duration: millis(done) };
    let group = run.plan().story(&done.story).filter(|story| {
        run.plan().work.scheme == Scheme::Flight && !story.tasks.is_empty() && !told_by_next_steps(run)
    });
    match group {
        Some(story) => {
            story.tasks.iter().map(|one| task(one.id.to_string(), crate::output::one_line(&one.text))).collect()
        }
        None => vec![task(done.story.to_string(), done.title.clone())],
    }
}

fn told_by_next_steps(run: &Run) -> bool {
    run.plan().work.id.ends_with(ralphloop_spec::NEXT_STEPS)
}

fn scope(run: &Run) -> Scope {
    let work = &run.plan().work;
    if work.scheme != Scheme::Flight || told_by_next_steps(run) {
        return Scope::default();
    }
    let path = Some(work.id.clone());
    if std::path::Path::new(&work.id).extension().is_some_and(|kind| kind == "md") {
        Scope { task_group: path, ..Scope::default() }
    } else {
        Scope { area: path, ..Scope::default() }
    }
}

impl RalphLoop {
    pub(super) fn of(run: &Run) -> Self {
        Self { status: LoopStatus::of(run), current_iteration: run.calls() }
    }
}
