//! What the engine must do. It answers each with facts; every effect may be asked for twice.

use serde::{Deserialize, Serialize};

use crate::event::{CheckRef, CheckStage};
use crate::ids::{AgentId, AttemptId, CallNumber, LaneId, TaskId, TreeId};
use crate::outcome::Outcome;
use crate::relay::Leg;
use crate::units::Timestamp;

/// What the agent is told besides the story itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Brief {
    /// What the last attempt of this run came to; nothing after an abnormal end.
    pub previous: Vec<Failure>,
    /// This call repairs: the attempt's work is in the tree, and this is what fails.
    pub repair: Vec<Failure>,
    /// The last words of an attempt that ended without a signal. Nobody answers questions.
    pub last_words: Option<String>,
    /// This call mends what a reviewer has found in work that is proven.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Sentences of the user for this prompt.
    pub guidance: Vec<String>,
    /// Sentences that earlier attempts and runs left, the best first.
    pub learnings: Vec<String>,
    /// This call resolves conflicts of the attempt's work with what has landed meanwhile, in these files and no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// What has landed meanwhile and is in conflict: `id: title` each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub landed_meanwhile: Vec<String>,
    /// This call is one leg of a relay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leg: Option<Box<Leg>>,
    /// The last prompt was too long for the model: leave out what can be left out.
    pub shorter: bool,
}

/// One reason why something failed, with its output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What and why, in one line.
    pub reason: String,
    /// The output that shows it, bounded; may be empty.
    pub output: String,
    /// It failed in the same way before the attempt began.
    pub at_baseline: bool,
    /// The gate or check that failed, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckRef>,
}

impl Failure {
    /// A failure that has no output.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), output: String::new(), at_baseline: false, check: None }
    }
}

/// A task that is to be added to a story, since one of its tasks failed for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixTask {
    /// The task that failed.
    pub of: TaskId,
    /// Its check, as it is called: for a command, the command.
    pub check: String,
    /// How that failed, in one line.
    pub why: String,
    /// Head and tail of its output, bounded; may be empty.
    pub output: String,
}

/// What is known of how a landed story was proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ground {
    /// Gates or checks passed.
    Verified,
    /// There was nothing to verify it with.
    Unverified,
    /// Checks passed and all boxes are ticked, but the agent gave no signal.
    NoSignal,
    /// Nothing changed, and a check that failed at the baseline passes now, or the story needs no change.
    NoChange,
}

/// An attempt's work merged with what lands before it, as a tree that is being checked: the next may be prepared on top of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Whose.
    pub attempt: AttemptId,
    /// Which tree.
    pub tree: TreeId,
}

/// What an attempt's work is brought onto.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Onto {
    /// The branch, where it stands now.
    Branch,
    /// What is about to land before it, and may yet come to nothing.
    Candidate(Candidate),
}

impl Effect {
    /// The attempt that it is about.
    pub fn attempt(&self) -> Option<&AttemptId> {
        match self {
            Self::Begin { attempt, .. }
            | Self::RunCheck { attempt, .. }
            | Self::Checkpoint { attempt }
            | Self::StartAgent { attempt, .. }
            | Self::Inspect { attempt, .. }
            | Self::Review { attempt, .. }
            | Self::Prepare { attempt, .. }
            | Self::Merge { attempt, .. }
            | Self::StopCheck { attempt }
            | Self::StopWork { attempt }
            | Self::Land { attempt, .. }
            | Self::AddFixTask { attempt, .. }
            | Self::Revert { attempt, .. }
            | Self::Settle { attempt } => Some(attempt),
            Self::CheckPlan | Self::Sleep { .. } | Self::Finish { .. } => None,
        }
    }
}

/// What the engine must do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Effect {
    /// Look at the spec: [`crate::event::Fact::PlanChecked`].
    CheckPlan,
    /// Get the lane ready and note that the attempt begins: [`crate::event::Fact::AttemptStarted`] or `LaneFailed`.
    Begin {
        /// The attempt.
        attempt: AttemptId,
        /// Where.
        lane: LaneId,
    },
    /// Run a gate or check: [`crate::event::Fact::CheckFinished`].
    RunCheck {
        /// The attempt.
        attempt: AttemptId,
        /// On which tree.
        stage: CheckStage,
        /// Which.
        check: CheckRef,
        /// Run it even if its result on this tree is known.
        fresh: bool,
    },
    /// Record what the lane can be put back to: [`crate::event::Fact::CheckpointTaken`] or `CheckpointFailed`.
    Checkpoint {
        /// The attempt.
        attempt: AttemptId,
    },
    /// Start the agent: `AgentStarted`, later `AgentEnded`.
    StartAgent {
        /// The attempt.
        attempt: AttemptId,
        /// Which call.
        call: CallNumber,
        /// Which agent.
        agent: AgentId,
        /// What it is told.
        brief: Box<Brief>,
    },
    /// Look at the tree that the agent left: `TreeInspected` or `RepositoryBroken`.
    Inspect {
        /// The attempt.
        attempt: AttemptId,
        /// After which call.
        call: CallNumber,
        /// The call was to resolve conflicts in these files; empty if it was not.
        resolves: Vec<String>,
    },
    /// Show what the attempt has changed to a reviewer: `ReviewStarted`, later `ReviewEnded`.
    Review {
        /// The attempt.
        attempt: AttemptId,
        /// What that call left.
        call: CallNumber,
        /// Which review of the attempt, from 1.
        round: u32,
        /// Who reviews.
        agent: AgentId,
        /// What earlier reviews of the story found.
        earlier: Vec<String>,
        /// The gates and checks that passed.
        passed: Vec<String>,
    },
    /// The attempt waits for its turn to land: do now what its merge will need of its work, as that call left it. Has no
    /// answer, and whatever is asked for next waits for it.
    Prepare {
        /// The attempt.
        attempt: AttemptId,
        /// After which call.
        call: CallNumber,
    },
    /// Bring the attempt's work, as that call left it, onto something else than what it stands on: `Merged`, `MergeFailed` or
    /// `Trespassed`.
    Merge {
        /// The attempt.
        attempt: AttemptId,
        /// What that call left, whatever it was merged with since.
        call: CallNumber,
        /// Which of the attempt's merges, counted from 1.
        number: u32,
        /// Onto what.
        onto: Onto,
    },
    /// End the check that runs for the attempt, since its tree is of no use any more. It answers as usual.
    StopCheck {
        /// The attempt.
        attempt: AttemptId,
    },
    /// End what runs for the attempt; a commit gets a moment, since it is proven. What was running answers as usual.
    StopWork {
        /// The attempt.
        attempt: AttemptId,
    },
    /// Make the story's commit, unless it is there: `Landed`, `LandingRefused`, `LandingFailed`, `LandingBlocked` or
    /// `Trespassed`.
    Land {
        /// The attempt.
        attempt: AttemptId,
        /// What that call left, merged or not.
        call: CallNumber,
        /// How it was proven.
        ground: Ground,
    },
    /// Add a task to the spec and commit that, unless it is there: `FixTaskAdded` or `NoFixTask`, or what answers `Land`.
    AddFixTask {
        /// The attempt; no agent works in it.
        attempt: AttemptId,
        /// Which task.
        fix: Box<FixTask>,
    },
    /// Keep the attempt's work under a ref and put the lane back: `Reverted` or `RevertFailed`.
    Revert {
        /// The attempt.
        attempt: AttemptId,
        /// Why, in one line.
        reason: String,
    },
    /// Finish a landing whose commit is on the branch: `Settled` or `RevertFailed`.
    Settle {
        /// The attempt.
        attempt: AttemptId,
    },
    /// Wait: `Woke`.
    Sleep {
        /// Until then.
        until: Timestamp,
    },
    /// End the run: `RunEnded`.
    Finish {
        /// How.
        outcome: Outcome,
    },
}
