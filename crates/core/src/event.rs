//! Facts, in the order in which they became known. The journal stores them, a run is their fold.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::evidence::{AgentReport, CheckResult, Merge, TreeReport, Usage};
use crate::ids::{AgentId, AttemptId, CallNumber, CommitId, RunId, StoryId, TaskId};
use crate::outcome::Outcome;
use crate::plan::{Plan, Story};
use crate::policy::Policy;
use crate::review::ReviewReport;
use crate::units::Timestamp;

/// One fact and the time at which it became known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// What.
    pub fact: Fact,
}

/// A check of an attempt: one of the run's gates or of the story's own, by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckRef {
    /// A gate of [`Policy::gates`].
    Gate(usize),
    /// A check of the story.
    Story(usize),
}

/// On which tree a check runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStage {
    /// On the base, before the attempt changes anything.
    Baseline,
    /// On what that call of the agent left.
    Call(CallNumber),
    /// On the attempt's so-manieth merge with what has landed meanwhile, counted from 1.
    Merged(u32),
}

/// Who asked the run to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    /// A hang-up of the terminal.
    Hup,
    /// Ctrl-C.
    Int,
    /// A request to terminate.
    Term,
    /// `ralphloop stop`.
    Request,
}

/// How soon a stop takes effect. A stop is only ever made sooner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopLevel {
    /// No further attempt begins.
    AfterAttempt,
    /// What runs is ended and put back.
    Now,
}

/// What became of the spec since it was last read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum PlanChange {
    /// Nothing.
    Same,
    /// A person changed it.
    Changed {
        /// As it reads now.
        plan: Box<Plan>,
    },
    /// It can no longer be read.
    Unreadable {
        /// What is wrong, where, and what to do.
        message: String,
    },
}

/// A call of an agent that was cut off together with the process that watched it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutOff {
    /// The attempt.
    pub attempt: AttemptId,
    /// Which call.
    pub call: CallNumber,
    /// What it had used, as far as what it said until then tells.
    pub usage: Usage,
}

/// The kinds of facts. A fact about an attempt carries its id; one of an attempt that is over changes nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Fact {
    /// The first fact of every journal.
    RunStarted {
        /// The run.
        run: RunId,
        /// What is to be done; pinned.
        plan: Box<Plan>,
        /// How.
        policy: Box<Policy>,
        /// The branch on which stories land, its full ref name.
        branch: String,
        /// Where the branch stood.
        base: CommitId,
        /// The agents that may be called and their models, as they are shown.
        agent: String,
        /// Stories that landed in an earlier run and that no person has signed yet, with their commits.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unsigned: Vec<(StoryId, CommitId)>,
    },
    /// A new process took the run up: after a stop, or after the old one died.
    Restarted {
        /// How, from now on.
        policy: Box<Policy>,
        /// Stories whose commit stands on the branch.
        landed: Vec<(StoryId, CommitId)>,
        /// What became of the spec.
        spec: PlanChange,
        /// The agents that may be called and their models, as they are shown.
        agent: String,
        /// Calls of agents whose end nobody lived to note.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        cut_off: Vec<CutOff>,
        /// Stories that are to be tried again: as by [`Fact::RetryRequested`].
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        retry: Vec<StoryId>,
    },
    /// The spec was looked at between stories.
    PlanChecked {
        /// What became of it.
        spec: PlanChange,
    },
    /// A story was chosen, and an attempt begins.
    AttemptStarted {
        /// The attempt.
        attempt: AttemptId,
        /// What is worth saying of its lane.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    /// A gate or check begins.
    CheckStarted {
        /// The attempt.
        attempt: AttemptId,
        /// On which tree.
        stage: CheckStage,
        /// Which.
        check: CheckRef,
    },
    /// A gate or check ended.
    CheckFinished {
        /// The attempt.
        attempt: AttemptId,
        /// On which tree.
        stage: CheckStage,
        /// Which.
        check: CheckRef,
        /// How.
        result: CheckResult,
        /// It was not run: the same tree has been seen before.
        cached: bool,
        /// How long it took, or had taken.
        took: Duration,
    },
    /// The lane can be put back to here.
    CheckpointTaken {
        /// The attempt.
        attempt: AttemptId,
        /// What is not in it: huge files, ignored folders.
        notes: Vec<String>,
    },
    /// There is no checkpoint, so no agent starts.
    CheckpointFailed {
        /// The attempt.
        attempt: AttemptId,
        /// Why, and what to do.
        why: String,
    },
    /// The agent runs.
    AgentStarted {
        /// The attempt.
        attempt: AttemptId,
        /// Which call.
        call: CallNumber,
        /// Which agent; not noted by versions that knew one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
    },
    /// The agent is gone, and with it all that it started.
    AgentEnded {
        /// The attempt.
        attempt: AttemptId,
        /// Which call.
        call: CallNumber,
        /// Which agent; not noted by versions that knew one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
        /// What it came to.
        report: Box<AgentReport>,
    },
    /// The tree that the agent left was looked at.
    TreeInspected {
        /// The attempt.
        attempt: AttemptId,
        /// After which call.
        call: CallNumber,
        /// What was found.
        report: TreeReport,
    },
    /// A reviewer looks at the attempt's work, which is proven.
    ReviewStarted {
        /// The attempt.
        attempt: AttemptId,
        /// Which review of the attempt, from 1.
        round: u32,
        /// Who.
        agent: AgentId,
    },
    /// The reviewer is gone, and with it all that it started.
    ReviewEnded {
        /// The attempt.
        attempt: AttemptId,
        /// Which review of the attempt, from 1.
        round: u32,
        /// Who.
        agent: AgentId,
        /// What it came to.
        report: Box<ReviewReport>,
    },
    /// There is no working tree for the attempt.
    LaneFailed {
        /// The attempt.
        attempt: AttemptId,
        /// Why, and what to do.
        why: String,
    },
    /// The attempt's work was brought onto what stands before it: the branch, or what is about to land.
    Merged {
        /// The attempt.
        attempt: AttemptId,
        /// What that call had left.
        call: CallNumber,
        /// Which of the attempt's merges, counted from 1. Versions that prepared nothing ahead of its turn did not count.
        #[serde(default)]
        number: u32,
        /// What came of it.
        merge: Merge,
    },
    /// The attempt's work could not be brought onto the branch for a reason that is not the story's.
    MergeFailed {
        /// The attempt.
        attempt: AttemptId,
        /// Why, and what to do.
        why: String,
    },
    /// The branch or the user's checkout was moved by somebody else while the attempt ran. Nothing lands on top of that.
    Trespassed {
        /// The attempt that was looked at when it was found.
        attempt: AttemptId,
        /// What moved, and the commands that keep or drop it.
        why: String,
    },
    /// The branch cannot move, since the user's checkout holds changes that it would overwrite.
    LandingBlocked {
        /// The attempt.
        attempt: AttemptId,
        /// Which files.
        why: String,
    },
    /// The repository is no longer what it was: nothing may be touched.
    RepositoryBroken {
        /// The attempt.
        attempt: AttemptId,
        /// What is missing or moved, and what to do.
        why: String,
    },
    /// The story's commit is on the branch.
    Landed {
        /// The attempt.
        attempt: AttemptId,
        /// The commit.
        commit: CommitId,
        /// What is worth saying: files held back, boxes put right.
        notes: Vec<String>,
    },
    /// The repository refused the commit: a hook, or a file that may not go in.
    LandingRefused {
        /// The attempt.
        attempt: AttemptId,
        /// What that call had left.
        #[serde(default)]
        call: CallNumber,
        /// By what.
        by: String,
        /// Its output.
        output: String,
    },
    /// The commit could not be made for a reason that is not the story's.
    LandingFailed {
        /// The attempt.
        attempt: AttemptId,
        /// Why, and what to do.
        why: String,
    },
    /// A task that mends another is in the spec, and its commit on the branch.
    FixTaskAdded {
        /// The attempt in which that was done.
        attempt: AttemptId,
        /// The new task.
        task: TaskId,
        /// The story as it reads now.
        story: Box<Story>,
        /// The commit; nothing where git does not track the spec, or the task was there already.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<CommitId>,
    },
    /// No such task can be added.
    NoFixTask {
        /// The attempt in which that was to be done.
        attempt: AttemptId,
        /// Why.
        why: String,
    },
    /// The lane is as it was at the checkpoint.
    Reverted {
        /// The attempt.
        attempt: AttemptId,
        /// The ref under which the attempt's work was kept, if there was any.
        kept: Option<String>,
        /// What is worth saying.
        notes: Vec<String>,
    },
    /// The lane could not be put back, or what a crash left of a landing not be finished. Nothing starts on it.
    RevertFailed {
        /// The attempt.
        attempt: AttemptId,
        /// Which path, why, and what to do.
        why: String,
    },
    /// What was left of a landing after a crash is done: the spec is marked, the checkpoint gone.
    Settled {
        /// The attempt.
        attempt: AttemptId,
    },
    /// The wait is over.
    Woke,
    /// Somebody wants the run to stop.
    StopRequested {
        /// Who.
        cause: StopCause,
        /// How soon.
        level: StopLevel,
    },
    /// Somebody wants the run to pause after the attempt.
    PauseRequested,
    /// Somebody does not want the story done in this run.
    SkipRequested {
        /// Which.
        story: StoryId,
    },
    /// Somebody wants a story tried again that failed, is blocked, was skipped or awaits a sign-off; all its attempts are given
    /// back.
    RetryRequested {
        /// Which.
        story: StoryId,
    },
    /// A sentence for the next prompt.
    GuidanceAdded {
        /// The sentence.
        text: String,
    },
    /// A sentence for all later prompts.
    LearningAdded {
        /// The sentence.
        text: String,
    },
    /// The last fact, unless the run is taken up again.
    RunEnded {
        /// How.
        outcome: Outcome,
    },
}

impl Fact {
    /// The story that the fact is about, if it is about one.
    pub fn story(&self) -> Option<&StoryId> {
        match self {
            Self::SkipRequested { story } | Self::RetryRequested { story } => Some(story),
            fact => fact.attempt().map(|attempt| &attempt.story),
        }
    }

    /// The attempt that the fact is about.
    pub fn attempt(&self) -> Option<&AttemptId> {
        match self {
            Self::AttemptStarted { attempt, .. }
            | Self::CheckStarted { attempt, .. }
            | Self::CheckFinished { attempt, .. }
            | Self::CheckpointTaken { attempt, .. }
            | Self::CheckpointFailed { attempt, .. }
            | Self::AgentStarted { attempt, .. }
            | Self::AgentEnded { attempt, .. }
            | Self::TreeInspected { attempt, .. }
            | Self::ReviewStarted { attempt, .. }
            | Self::ReviewEnded { attempt, .. }
            | Self::LaneFailed { attempt, .. }
            | Self::Merged { attempt, .. }
            | Self::MergeFailed { attempt, .. }
            | Self::Trespassed { attempt, .. }
            | Self::LandingBlocked { attempt, .. }
            | Self::RepositoryBroken { attempt, .. }
            | Self::Landed { attempt, .. }
            | Self::LandingRefused { attempt, .. }
            | Self::LandingFailed { attempt, .. }
            | Self::FixTaskAdded { attempt, .. }
            | Self::NoFixTask { attempt, .. }
            | Self::Reverted { attempt, .. }
            | Self::RevertFailed { attempt, .. }
            | Self::Settled { attempt } => Some(attempt),
            Self::RunStarted { .. }
            | Self::Restarted { .. }
            | Self::PlanChecked { .. }
            | Self::Woke
            | Self::StopRequested { .. }
            | Self::PauseRequested
            | Self::SkipRequested { .. }
            | Self::RetryRequested { .. }
            | Self::GuidanceAdded { .. }
            | Self::LearningAdded { .. }
            | Self::RunEnded { .. } => None,
        }
    }
}
