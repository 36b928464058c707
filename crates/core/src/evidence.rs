//! What was observed of an attempt: how the agent ended, what it claimed, what the tree and the checks say.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::TreeId;
use crate::outcome::Bound;
use crate::units::{Timestamp, Usd, span};

/// What the agent says of its work. A claim, never proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "claim", rename_all = "snake_case")]
pub enum Claim {
    /// The story is complete.
    Complete,
    /// It failed, and may be tried again.
    Failed {
        /// Why, in the agent's words; may be empty.
        reason: String,
    },
    /// It cannot be done without a person.
    Blocked {
        /// Why, in the agent's words.
        reason: String,
    },
    /// Nothing in the final message is a signal.
    None {
        /// Something that looks like a signal but is none: quoted, fenced, inside a sentence, another story's id.
        near_miss: Option<String>,
    },
}

/// Tokens and money of one call of an agent. `None` is unknown, not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input_tokens: Option<u64>,
    /// Tokens written.
    pub output_tokens: Option<u64>,
    /// What the client says it cost.
    pub cost: Option<Usd>,
    /// Of the tokens read, those that came from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Of the tokens read, those that were put into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// What it comes to by list prices, where the client does not say what it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Usd>,
    /// Of both sums of money, what a subscription covers: nobody is billed for it, the API would cost so much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covered: Option<Usd>,
}

impl Usage {
    /// What it cost, as the clients say or by list prices.
    pub fn money(&self) -> Option<Usd> {
        match (self.cost, self.estimate) {
            (None, None) => None,
            (cost, estimate) => Some(cost.unwrap_or_default().plus(estimate.unwrap_or_default())),
        }
    }

    /// [`Usage::money`] for people, with what kind of sum it is.
    pub fn money_in_words(&self) -> Option<String> {
        let money = self.money()?;
        let mut words = money.to_string();
        match (self.cost, self.estimate) {
            (None, Some(_)) => words.push_str(" by list prices"),
            (Some(_), Some(estimate)) => words.push_str(&format!(", {estimate} of it by list prices")),
            _ => {}
        }
        match self.covered {
            Some(covered) if covered == money => words.push_str(", the API's equivalent of what a subscription covers"),
            Some(covered) => {
                words.push_str(&format!(", {covered} of it the API's equivalent of what a subscription covers"));
            }
            None => {}
        }
        Some(words)
    }

    /// Tokens read and written, as far as they are known.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.unwrap_or(0).saturating_add(self.output_tokens.unwrap_or(0))
    }

    /// The sum; unknown only if both are.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
            match (a, b) {
                (None, None) => None,
                (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
            }
        }
        Self {
            input_tokens: sum(self.input_tokens, other.input_tokens),
            output_tokens: sum(self.output_tokens, other.output_tokens),
            cost: sum(self.cost.map(|c| c.0), other.cost.map(|c| c.0)).map(Usd),
            cache_read_tokens: sum(self.cache_read_tokens, other.cache_read_tokens),
            cache_write_tokens: sum(self.cache_write_tokens, other.cache_write_tokens),
            estimate: sum(self.estimate.map(|c| c.0), other.estimate.map(|c| c.0)).map(Usd),
            covered: sum(self.covered.map(|c| c.0), other.covered.map(|c| c.0)).map(Usd),
        }
    }
}

/// How one call of an agent ended. A closed list: the variant alone decides who pays and what happens next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum AgentEnd {
    /// It ended by itself, without an error, with a final message.
    Finished,
    /// It ended by itself without a final message.
    NoFinalMessage,
    /// It ended by itself without a single byte on either stream that says anything.
    NoOutput,
    /// The client reported an error that no other variant names.
    Error {
        /// The client's words.
        message: String,
    },
    /// It exited with a failure, or died by a signal, without saying why.
    Crashed {
        /// `exit code 3`, `signal 11`.
        status: String,
        /// The tail of what it wrote to stderr.
        message: String,
    },
    /// Ended by us: no byte came within the time to the first one.
    NeverSpoke {
        /// The limit that was reached.
        after: Duration,
    },
    /// Ended by us: no byte came for so long.
    Silent {
        /// The limit that was reached.
        after: Duration,
        /// The last thing it wrote.
        last_output: String,
    },
    /// Ended by us: the attempt's time was up.
    TimedOut {
        /// The limit that was reached.
        after: Duration,
    },
    /// Ended by us: it made the same call with the same result over and over.
    Looped {
        /// The call.
        call: String,
        /// How often.
        times: u32,
    },
    /// It was refused what it needs by its own permission settings, and did not change anything.
    PermissionDenied {
        /// The tools that were refused.
        tools: Vec<String>,
    },
    /// The prompt does not fit the model's context.
    PromptTooLong {
        /// The client's words.
        message: String,
    },
    /// Usage or rate limit of the account. Not the story's fault.
    Limit {
        /// When it is said to end.
        resets_at: Option<Timestamp>,
        /// The client's words.
        message: String,
    },
    /// The provider is overloaded or failing (5xx). Not the story's fault.
    Overloaded {
        /// The client's words.
        message: String,
    },
    /// The network failed. Not the story's fault.
    Network {
        /// The client's words.
        message: String,
    },
    /// Not signed in, or the sign-in expired. A person is needed.
    SignIn {
        /// The client's words.
        message: String,
        /// The command that signs in, if the client has one.
        remedy: Option<String>,
    },
    /// No credit. A person is needed.
    NoCredit {
        /// The client's words.
        message: String,
    },
    /// The model is unknown or not allowed. A person is needed.
    ModelUnknown {
        /// The client's words.
        message: String,
    },
    /// The program could not be started, or refused to (nesting, root, a bad flag). A person is needed.
    CannotStart {
        /// What happened, with the program's path.
        message: String,
    },
    /// Ended by us: it used more than the run's budget and its margin allow.
    OverBudget {
        /// Which bound.
        bound: Bound,
        /// The numbers.
        message: String,
    },
    /// Ended by us because the run is stopping.
    Stopped,
    /// Our own fault: the transcript could not be written, a task panicked.
    Internal {
        /// What happened.
        message: String,
    },
}

/// What one call of an agent came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReport {
    /// How it ended.
    pub end: AgentEnd,
    /// What it claimed in its final message.
    pub claim: Claim,
    /// The last lines of its final message, bounded; for people and the next prompt.
    pub last_words: String,
    /// What it hands on to the next role of a relay, bounded; empty outside of one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub handover: String,
    /// What it used.
    pub usage: Usage,
    /// How long it ran.
    pub took: Duration,
    /// Sentences it wants carried into later prompts.
    pub learnings: Vec<String>,
    /// The model that worked, as the client names it; unknown if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// The tree that an agent left, against the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeReport {
    /// Its content now.
    pub tree: TreeId,
    /// How many files of the work differ from the checkpoint; the spec's own files do not count.
    pub files_changed: u32,
    /// Which these are, from the top of the tree: the first [`SHOWN_FILES`] of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<String>,
    /// The story had open boxes at the checkpoint.
    pub had_open_boxes: bool,
    /// All its boxes are ticked now.
    pub all_boxes_ticked: bool,
    /// What was put right or is worth saying: the branch switched back, boxes of other stories unticked …
    pub notes: Vec<String>,
    /// Files in which a merge left conflicts that are not resolved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unresolved: Vec<String>,
    /// Files that the call which was to resolve conflicts changed besides those in conflict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strayed: Vec<String>,
}

/// Changed files that a [`TreeReport`] names. Stories that change more are few, and meet others wherever they are.
pub const SHOWN_FILES: usize = 100;

/// What came of bringing an attempt's work onto something newer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "merge", rename_all = "snake_case")]
pub enum Merge {
    /// Nothing has landed since the attempt began: what was proven is what lands.
    Current,
    /// The lane holds the merged tree, on what it was brought onto.
    Merged {
        /// The tree, against that.
        report: Box<TreeReport>,
    },
    /// They are in conflict. If it was brought onto the branch, the lane holds the merge with its conflicts marked.
    Conflicts {
        /// The files in conflict, from the top of the tree.
        files: Vec<String>,
        /// What else is worth saying.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
}

/// How one gate or check ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum CheckResult {
    /// It passed.
    Passed,
    /// It ran and failed.
    Failed {
        /// `exit code 1`, `timed out after 10m`, `no file matches dist/*.js`.
        why: String,
        /// Head and tail of its output, bounded.
        output: String,
    },
    /// It could not run at all: the command is missing, not executable.
    CouldNotRun {
        /// What happened.
        why: String,
    },
    /// It failed while there was no room left on the disk, which says nothing of the tree.
    NoRoom {
        /// Where, and how little there was.
        why: String,
    },
    /// Ended by us because the run is stopping. Says nothing.
    Stopped,
}

impl CheckResult {
    /// It passed.
    pub fn passed(&self) -> bool {
        matches!(self, Self::Passed)
    }
}

impl AgentEnd {
    /// How the agent ended, in a few words; `claim` is what it said. May hold text of others.
    pub fn in_words(&self, claim: &Claim) -> String {
        match self {
            Self::Finished => match claim {
                Claim::Complete => "it claims that the story is complete".to_owned(),
                Claim::Failed { reason } => format!("it says that it failed: {reason}"),
                Claim::Blocked { reason } => format!("it says that it is blocked: {reason}"),
                Claim::None { near_miss: Some(seen) } => {
                    format!("no signal, but something like one in another form: {seen}")
                }
                Claim::None { near_miss: None } => "no signal".to_owned(),
            },
            Self::NoFinalMessage => "no final message".to_owned(),
            Self::NoOutput => "no output".to_owned(),
            Self::Error { message } => format!("error: {message}"),
            Self::Crashed { status, message } => format!("crashed ({status}): {message}"),
            Self::NeverSpoke { after } => format!("no output within {} of its start", span(*after)),
            Self::Silent { after, .. } => format!("no output for {} (idle timeout)", span(*after)),
            Self::TimedOut { after } => format!("its time of {} was up (agent timeout)", span(*after)),
            Self::Looped { call, times } => format!("the same call {times} times in a row: {call}"),
            Self::PermissionDenied { tools } => format!("permission denied: {}", tools.join(", ")),
            Self::PromptTooLong { message } => format!("prompt too long: {message}"),
            Self::Limit { message, .. } => format!("limit of the account: {message}"),
            Self::Overloaded { message } => format!("provider overloaded: {message}"),
            Self::Network { message } => format!("network: {message}"),
            Self::SignIn { message, .. } => format!("not signed in: {message}"),
            Self::NoCredit { message } => format!("no credit: {message}"),
            Self::ModelUnknown { message } => format!("model unknown: {message}"),
            Self::CannotStart { message } => format!("could not start: {message}"),
            Self::OverBudget { message, .. } => format!("over the budget: {message}"),
            Self::Stopped => "stopped by us".to_owned(),
            Self::Internal { message } => format!("could not be watched: {message}"),
        }
    }
}
