//! The plans of agents, as lines of a run without a screen.

use std::collections::BTreeMap;

use ralphloop_agent::event::AgentEvent;
use ralphloop_agent::plan;
use ralphloop_core::ids::AttemptId;
use ralphloop_engine::clock;
use ralphloop_engine::notice::TalkNotice;

use super::rfc3339;
use crate::output::one_line;

/// More lines than this are not printed of one attempt, however often its plan changes.
const LINES: u32 = 100;

/// What was printed of plans so far.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    told: BTreeMap<AttemptId, u32>,
}

impl Plans {
    /// The line for what an agent has just done, if that was to change its plan.
    pub(crate) fn line(&mut self, notice: &TalkNotice) -> Option<String> {
        let AgentEvent::Plan { steps } = &notice.event else { return None };
        let told = self.told.entry(notice.attempt.clone()).or_default();
        *told += 1;
        let (attempt, brief) = (one_line(&notice.attempt.to_string()), one_line(&plan::in_brief(steps)));
        (*told <= LINES).then(|| format!("[{}] ralphloop: Plan of {attempt}: {brief}\n", rfc3339(clock::now())))
    }
}
