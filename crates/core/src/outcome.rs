//! How a run ends.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::event::StopCause;
use crate::units::Timestamp;

/// Which bound ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Spawns of an agent.
    Iterations,
    /// Stories begun.
    Stories,
    /// Time.
    Duration,
    /// Money.
    Cost,
    /// Tokens.
    Tokens,
    /// A provider's limit that ends later than the run may wait.
    LimitWait,
}

impl Bound {
    /// As it is shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Iterations => "iterations",
            Self::Stories => "stories",
            Self::Duration => "duration",
            Self::Cost => "cost budget",
            Self::Tokens => "tokens",
            Self::LimitWait => "wait for a limit",
        }
    }
}

/// How a run ended. It decides the exit code and whether the run can be taken up again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// Every selected story has passed.
    Complete,
    /// Nothing more can be done, and at least one story failed, is blocked or was skipped.
    Failed,
    /// Nothing could be started: no story was open for this run.
    NothingToDo {
        /// Why, per story that is not done.
        reason: String,
    },
    /// A person is needed.
    Paused {
        /// For what.
        reason: String,
    },
    /// Stopped on request or by a signal.
    Stopped {
        /// By whom.
        cause: StopCause,
    },
    /// A bound was reached.
    BoundReached {
        /// Which.
        bound: Bound,
        /// In words, with the numbers.
        reason: String,
        /// When it would make sense to resume, if that is known.
        resume_at: Option<Timestamp>,
    },
    /// The environment is wrong: the agent cannot start or is not signed in, a gate cannot run, the repository is broken.
    Environment {
        /// What is wrong and what to do.
        reason: String,
    },
}

impl Outcome {
    /// The state that the run is in then, as scripts read it: `complete`, `failed`, `paused`, `stopped`, `limit`.
    pub fn state(&self) -> &'static str {
        match self {
            Self::Complete | Self::NothingToDo { .. } => "complete",
            Self::Failed => "failed",
            Self::Paused { .. } | Self::Environment { .. } => "paused",
            Self::Stopped { .. } => "stopped",
            Self::BoundReached { .. } => "limit",
        }
    }
}

/// Why the run ended, in words.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.write_str("every selected story passed"),
            Self::Failed => f.write_str("not every story passed"),
            Self::NothingToDo { reason } => write!(f, "nothing to do: {reason}"),
            Self::Paused { reason } | Self::Environment { reason } => f.write_str(reason),
            Self::Stopped { cause } => f.write_str(match cause {
                StopCause::Hup => "stopped by the signal HUP",
                StopCause::Int => "stopped by Ctrl-C (INT)",
                StopCause::Term => "stopped by the signal TERM",
                StopCause::Request => "stopped on request",
            }),
            Self::BoundReached { bound, reason, .. } => write!(f, "limit reached ({}): {reason}", bound.as_str()),
        }
    }
}
