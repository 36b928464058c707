//! The failure log of a run, `ralph_logs/YYYYMMDD_HHMM_ralph.md` and `.json`: one section a failure.

use serde::{Deserialize, Serialize};

use super::Telling;
use super::chronicle::Failure;
use crate::output::one_line;

/// The failure log as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct FailureLog {
    /// The run's id.
    pub(crate) run: String,
    /// The work: `scheme:id`.
    pub(crate) work: String,
    /// The failures, oldest first.
    pub(crate) failures: Vec<Failure>,
}

impl FailureLog {
    pub(super) fn of(told: Telling<'_>) -> Self {
        let run = &told.chronicle.run;
        Self { run: run.id().to_string(), work: run.plan().work.to_string(), failures: told.chronicle.failures.clone() }
    }

    pub(super) fn markdown(&self) -> String {
        let mut text = format!("# Failures of run {}\n\nWork: {}\n", self.run, one_line(&self.work));
        if self.failures.is_empty() {
            text.push_str("\nNothing has failed.\n");
        }
        for failure in &self.failures {
            text.push_str(&section(failure));
        }
        text
    }
}

fn section(failure: &Failure) -> String {
    let verification =
        failure.verification.as_ref().map_or_else(|| "none".to_owned(), |what| format!("`{}`", one_line(what)));
    let mut text = format!(
        "\n## Iteration {}, {}\n\n- Task: {} ({}, attempt {})\n- Kind: {}\n- Verification: {verification}\n- Result: {}\n- Action: {}\n- State: {}\n",
        failure.iteration,
        failure.time,
        failure.title,
        one_line(&failure.story),
        failure.attempt,
        failure.class.as_str(),
        failure.result,
        failure.action.as_deref().unwrap_or("none yet"),
        failure.state.as_deref().unwrap_or("in the tree"),
    );
    if !failure.error_output.trim().is_empty() {
        let fence = fence_for(&failure.error_output);
        text.push_str(&format!("\n{fence}text\n{}\n{fence}\n", failure.error_output.trim_end()));
    }
    text
}

/// A fence that nothing in the text can close.
fn fence_for(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}
