//! The uniform reading: the same JSON for every format.

use ralphloop_core::plan::{Priority, Story, Task, WorkState};
use serde_json::{Value, json};

use crate::document::Reading;
use crate::error::SpecError;

/// The reading as JSON, the same shape for every format.
pub fn to_json(reading: &Reading) -> Value {
    let plan = &reading.plan;
    json!({
        "work": plan.work.to_string(),
        "format": plan.work.scheme,
        "outcome": "ok",
        "title": plan.title,
        "project": reading.project,
        "branch": plan.branch,
        "writable": plan.writable,
        "stories": plan.stories.iter().map(story).collect::<Vec<_>>(),
        "next": reading.next,
        "all_done": reading.all_done,
        "gates": plan.gates,
        "requirements": plan.context.requirements,
        "warnings": reading.warnings,
        "error": null,
    })
}

/// A failed reading as JSON.
pub fn error_json(error: &SpecError) -> Value {
    json!({
        "outcome": "error",
        "error": {
            "class": error.class,
            "file": error.file,
            "line": error.line,
            "column": error.column,
            "message": error.message,
            "help": error.help,
        },
    })
}

fn story(story: &Story) -> Value {
    json!({
        "id": story.id,
        "title": story.title,
        "kind": story.kind,
        "priority": story.priority.map(number),
        "done": story.state == WorkState::Done,
        "state": story.state,
        "optional": story.optional,
        "parent": story.parent,
        "deps": story.deps,
        "group": story.group,
        "tags": story.tags,
        "refs": story.refs,
        "file": story.file,
        "line": story.line,
        "tasks": story.tasks.iter().map(task).collect::<Vec<_>>(),
        "description": story.description,
        "criteria": story.criteria,
        "checks": story.checks,
        "sign_off": story.sign_off,
        "complexity": story.complexity,
        "needs_no_change": story.needs_no_change,
        "notes": story.notes,
    })
}

fn task(task: &Task) -> Value {
    json!({
        "id": task.id,
        "text": task.text,
        "done": task.state == WorkState::Done,
        "state": task.state,
        "optional": task.optional,
        "parent": task.parent,
        "deps": task.deps,
        "tags": task.tags,
        "refs": task.refs,
        "line": task.line,
    })
}

/// Whole ranks without a decimal point.
#[expect(clippy::cast_possible_truncation, reason = "only whole numbers of a size that a float holds exactly")]
fn number(priority: Priority) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let rank = priority.0;
    if rank.fract() == 0.0 && rank.abs() < EXACT { json!(rank as i64) } else { json!(rank) }
}
