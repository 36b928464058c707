//! A working tree of the world: who lives in it, what lies in it, and what runs in it.

use std::collections::BTreeSet;

use ralphloop_core::event::{CheckRef, CheckStage, Fact};
use ralphloop_core::ids::{AgentId, AttemptId, CallNumber, TreeId};
use ralphloop_core::review::ReviewReport;

use super::agent::{Course, Dirt};

/// What runs in a lane.
pub(crate) enum Process {
    Agent { attempt: AttemptId, call: CallNumber, agent: AgentId, course: Box<Course> },
    Review { attempt: AttemptId, round: u32, agent: AgentId, report: Box<ReviewReport> },
    Check { attempt: AttemptId, stage: CheckStage, check: CheckRef },
}

impl Process {
    pub(crate) fn attempt(&self) -> &AttemptId {
        match self {
            Self::Agent { attempt, .. } | Self::Review { attempt, .. } | Self::Check { attempt, .. } => attempt,
        }
    }
}

/// Which lane: 0 is the user's checkout, the others are worktrees.
pub(crate) type Slot = usize;

#[derive(Default)]
pub(crate) struct Lane {
    /// The attempt that it was made ready for last, until it has landed or was put back.
    pub(crate) resident: Option<AttemptId>,
    /// How many commits it stands on; none if that is a candidate.
    pub(crate) base: Option<usize>,
    /// The version of the work that it stands on.
    pub(crate) under: usize,
    /// The version that a call left, before it was merged.
    pub(crate) own: Option<(CallNumber, usize)>,
    /// Attempts that are in the tree and had not landed when it was merged with them.
    pub(crate) carries: BTreeSet<AttemptId>,
    pub(crate) dirt: Option<Dirt>,
    pub(crate) process: Option<Process>,
    /// Tells what runs from what ran before.
    pub(crate) number: u64,
    pub(crate) cancelled: Option<AttemptId>,
    /// How the last landing was refused; asked again about the same work, it is refused again.
    pub(crate) refusal: Option<Fact>,
}

impl Lane {
    /// The version of the work; 0 if no file differs.
    pub(crate) fn work(&self) -> usize {
        self.dirt.as_ref().map_or(0, |d| d.work)
    }

    /// The version of all that is in it.
    pub(crate) fn version(&self) -> usize {
        if self.work() == 0 { self.under } else { self.work() }
    }

    pub(crate) fn tree(&self) -> TreeId {
        TreeId(self.version().to_string())
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.dirt.as_ref().is_some_and(Dirt::any)
    }
}
