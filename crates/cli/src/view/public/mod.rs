//! The public events: a small vocabulary of its own for scripts and other programs, one JSON object a line. Fields and
//! kinds are only ever added. `docs/events.md` is made from this file.

mod from_facts;

use serde::Serialize;

pub(crate) use from_facts::of;

use super::status::RunState;

/// One public event.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(tag = "type")]
pub(crate) enum PublicEvent {
    /// The first event of a run.
    #[serde(rename = "run.started")]
    RunStarted {
        /// When.
        time: String,
        /// The run's id.
        run: String,
        /// The work: `scheme:id`.
        work: String,
        /// The branch on which stories land.
        branch: String,
        /// The agents and their models, the preferred first, parted by commas.
        agent: String,
        /// How many stories the plan has.
        stories: usize,
    },
    /// A new process took the run up, after an early end or after the old one died.
    #[serde(rename = "run.resumed")]
    RunResumed {
        /// When.
        time: String,
        /// The run's id.
        run: String,
    },
    /// The spec was changed by a person while the run went on.
    #[serde(rename = "plan.changed")]
    PlanChanged {
        /// When.
        time: String,
        /// It can be read, and counts from now on. Otherwise the old reading holds.
        readable: bool,
        /// What is wrong with it, if it cannot be read.
        message: Option<String>,
    },
    /// A story was chosen, and an attempt begins.
    #[serde(rename = "attempt.started")]
    AttemptStarted {
        /// When.
        time: String,
        /// The story's id.
        story: String,
        /// Which attempt of it, from 1.
        attempt: u32,
        /// The story's title.
        title: String,
    },
    /// A gate or a story's check ended.
    #[serde(rename = "check.finished")]
    CheckFinished {
        /// When.
        time: String,
        /// The story's id.
        story: String,
        /// Which attempt of it.
        attempt: u32,
        /// The gate's name, or the check in words.
        check: String,
        /// It ran on the tree as it was before the attempt.
        baseline: bool,
        /// How it ended.
        result: CheckWord,
        /// Why, if it did not pass.
        reason: Option<String>,
        /// It was not run again: the result on this very tree was known.
        cached: bool,
        /// How long it took, or had taken.
        duration_ms: u64,
    },
    /// The agent runs: an iteration begins.
    #[serde(rename = "agent.started")]
    AgentStarted {
        /// When.
        time: String,
        /// The story's id.
        story: String,
        /// Which attempt of it.
        attempt: u32,
        /// Which repair inside the attempt; 0 is the attempt's first call, or a role of a relay.
        repair: u32,
        /// How many times an agent was started in this run, this one included.
        iteration: u32,
        /// The agent, and its model if one was named.
        agent: Option<String>,
        /// Its role, if several work on the story one after the other.
        role: Option<String>,
        /// In which round of the relay, from 1.
        round: Option<u32>,
    },
    /// The agent is gone, and with it all that it had started.
    #[serde(rename = "agent.ended")]
    AgentEnded {
        /// When.
        time: String,
        /// The story's id.
        story: String,
        /// Which attempt of it.
        attempt: u32,
        /// Which repair inside the attempt; 0 is the attempt's first call, or a role of a relay.
        repair: u32,
        /// How it ended.
        end: End,
        /// What it claims. Never proof.
        claim: SaidClaim,
        /// The agent, and its model if one was named.
        agent: Option<String>,
        /// The model that worked, as the client names it.
        model: Option<String>,
        /// Its role, if several work on the story one after the other.
        role: Option<String>,
        /// In which round of the relay, from 1.
        round: Option<u32>,
        /// What the call cost: as its client says, else by list prices.
        cost_usd: Option<f64>,
        /// The cost was computed from list prices.
        estimated: bool,
        /// Tokens that it read, cached ones included.
        input_tokens: Option<u64>,
        /// Tokens that it wrote.
        output_tokens: Option<u64>,
        /// How long it ran.
        duration_ms: u64,
    },
    /// A reviewer looks at proven work: an iteration, too.
    #[serde(rename = "review.started")]
    ReviewStarted {
        /// When.
        time: String,
        /// The story's id.
        story: String,
        /// Which attempt of it.
        attempt: u32,
        /// Which review of the attempt, from 1.
        round: u32,
        /// Who reviews, and the model if one was named.
        agent: String,
    },
    /// The reviewer is gone. What it says is advice: only findings send the work back.
    #[serde(rename = "review.ended")]
    ReviewEnded {
        /// When.
        time: String,
        /// The story's id.
        story: String,
        /// Which attempt of it.
        attempt: u32,
        /// Which review of the attempt, from 1.
        round: u32,
        /// Who reviewed, and the model if one was named.
        agent: String,
        /// How its call ended.
        end: End,
        /// What it thinks.
        opinion: OpinionWord,
        /// What it found, a sentence each.
        findings: Vec<String>,
        /// It changed the tree, which it must not: the attempt is put back, and it is not asked again.
        touched: bool,
        /// What the call cost: as its client says, else by list prices.
        cost_usd: Option<f64>,
        /// Tokens that it read, cached ones included.
        input_tokens: Option<u64>,
        /// Tokens that it wrote.
        output_tokens: Option<u64>,
        /// How long it ran.
        duration_ms: u64,
    },
    /// A story's commit is on the branch.
    #[serde(rename = "story.landed")]
    StoryLanded {
        /// When.
        time: String,
        /// The story's id.
        story: String,
        /// The attempt that landed.
        attempt: u32,
        /// The commit's full name.
        commit: String,
        /// A gate or check of the run has proven it.
        verified: bool,
        /// A person has to sign it before it is done.
        awaits_sign_off: bool,
        /// What is worth saying: files held back, boxes put right.
        notes: Vec<String>,
    },
    /// A task of the story failed for good, and a task that mends it is in the spec; the story is tried afresh with it.
    #[serde(rename = "task.added")]
    TaskAdded {
        /// When.
        time: String,
        /// The story's id.
        story: String,
        /// The new task's id.
        task: String,
        /// The commit's full name; none where git does not track the spec.
        commit: Option<String>,
    },
    /// The tree is as it was before the attempt.
    #[serde(rename = "attempt.reverted")]
    AttemptReverted {
        /// When.
        time: String,
        /// The story's id.
        story: String,
        /// The attempt that was reverted.
        attempt: u32,
        /// The ref that keeps its work; none if it had changed nothing.
        kept: Option<String>,
        /// Why it did not pass.
        reason: Option<String>,
    },
    /// A story has used up its attempts.
    #[serde(rename = "story.failed")]
    StoryFailed {
        /// When.
        time: String,
        /// The story's id.
        story: String,
        /// Why its last attempt did not pass.
        reason: Option<String>,
    },
    /// A story cannot go on without a person.
    #[serde(rename = "story.blocked")]
    StoryBlocked {
        /// When.
        time: String,
        /// The story's id.
        story: String,
        /// What is missing, in the agent's words.
        reason: Option<String>,
    },
    /// An agent is not called for a while, or not before somebody acts: its provider's limit, a failing provider, a sign-in.
    #[serde(rename = "agent.away")]
    AgentAway {
        /// When.
        time: String,
        /// The agent, and its model if one was named.
        agent: String,
        /// When it is called again; absent if a person has to act first.
        until: Option<String>,
        /// Why, and what mends it.
        reason: String,
    },
    /// The run waits for the provider.
    #[serde(rename = "run.waiting")]
    RunWaiting {
        /// When.
        time: String,
        /// When it goes on.
        resume_at: String,
        /// What for.
        reason: String,
    },
    /// Somebody wants the run to stop or to pause.
    #[serde(rename = "run.stopping")]
    RunStopping {
        /// When.
        time: String,
        /// At once, the attempt reverted; otherwise after the attempt.
        now: bool,
    },
    /// A person skipped a story; an attempt of it that is under way is reverted next.
    #[serde(rename = "story.skipped")]
    StorySkipped {
        /// When.
        time: String,
        /// The story.
        story: String,
    },
    /// A person wants a story tried again, with all its attempts.
    #[serde(rename = "story.retried")]
    StoryRetried {
        /// When.
        time: String,
        /// The story.
        story: String,
    },
    /// A person gave a sentence for the next prompt.
    #[serde(rename = "guidance.added")]
    GuidanceAdded {
        /// When.
        time: String,
        /// The sentence.
        text: String,
    },
    /// The agent gave a sentence for all later prompts.
    #[serde(rename = "learning.added")]
    LearningAdded {
        /// When.
        time: String,
        /// The sentence.
        text: String,
    },
    /// Something that is not the agent's doing went wrong: a checkpoint, a commit or a revert.
    #[serde(rename = "error")]
    Error {
        /// When.
        time: String,
        /// The story's id.
        story: Option<String>,
        /// What happened, and what to do.
        message: String,
    },
    /// The last event, unless the run is resumed.
    #[serde(rename = "run.ended")]
    RunEnded {
        /// When.
        time: String,
        /// The run's id.
        run: String,
        /// How the run stands now.
        state: RunState,
        /// Why it ended, in words.
        reason: String,
    },
}

/// What a reviewer thinks.
#[derive(Debug, Clone, Copy, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OpinionWord {
    Approves,
    Objects,
    Unclear,
}

/// How a gate or check ended.
#[derive(Debug, Clone, Copy, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckWord {
    Passed,
    Failed,
    CouldNotRun,
    /// It failed while the disk was full, which is not counted against the story.
    NoRoom,
    Stopped,
}

/// How a call of the agent ended.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct End {
    /// The class, which alone decides what happens next: see `docs/agents.md`.
    pub(crate) end: EndWord,
    /// What the client said, or what was observed.
    pub(crate) message: Option<String>,
    /// When a limit is said to end.
    pub(crate) resets_at: Option<String>,
    /// The command that mends it, if there is one.
    pub(crate) remedy: Option<String>,
}

/// The classes of [`End`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EndWord {
    Finished,
    NoFinalMessage,
    NoOutput,
    Error,
    Crashed,
    NeverSpoke,
    Silent,
    TimedOut,
    Looped,
    PermissionDenied,
    PromptTooLong,
    Limit,
    Overloaded,
    Network,
    SignIn,
    NoCredit,
    ModelUnknown,
    CannotStart,
    OverBudget,
    Stopped,
    Internal,
}

/// What the agent claims in its final message.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct SaidClaim {
    /// The claim.
    pub(crate) claim: ClaimWord,
    /// Why, of `failed` and `blocked`.
    pub(crate) reason: Option<String>,
    /// Of `none`: something that looks like a signal but is in no form of one.
    pub(crate) near_miss: Option<String>,
}

/// The kinds of [`SaidClaim`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClaimWord {
    Complete,
    Failed,
    Blocked,
    None,
}
