//! What the user decided about a run: limits, retries, what happens when a story is exhausted.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::choice::Difficulty;
use crate::graph::wanted;
use crate::ids::{AgentId, StoryId};
use crate::learning::Learning;
use crate::plan::Story;
use crate::relay::Relay;
use crate::units::Usd;

/// What happens when a story has used up its attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnExhausted {
    /// The run ends.
    Stop,
    /// Other stories go on; those that depend on it are blocked.
    Skip,
    /// The run pauses for a person.
    Pause,
}

/// A kind of failure that a story pays for with an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// A gate or a check is red, or a hook refuses the commit.
    Verification,
    /// The agent did not do it, or said that it cannot.
    Implementation,
    /// The agent was ended by a clock.
    Timeout,
}

impl FailureKind {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Verification, Self::Implementation, Self::Timeout];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Verification => "verification",
            Self::Implementation => "implementation",
            Self::Timeout => "timeout",
        }
    }
}

/// How failures of one kind are answered, beside what holds for all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Retry {
    /// Attempts of a story after failures of that kind; no more than [`Policy::max_retries`] in all. `None`: only that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The waits before those attempts, the last of which holds for all further ones; none: at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backoff: Vec<Duration>,
}

/// A project-wide command that must pass before a story lands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Gate {
    /// How it is shown.
    pub name: String,
    /// The command, for `sh -c`, as it was when the run started.
    pub command: String,
}

/// Bounds on a whole run. `None` is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Budget {
    /// Spawns of an agent.
    pub iterations: Option<u32>,
    /// Time since the run began, waits included, time between a stop and a resume not.
    pub duration: Option<Duration>,
    /// Stories begun, however many attempts each needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stories: Option<u32>,
    /// Money, as the agents report it or by list prices.
    pub cost: Option<Usd>,
    /// Tokens read and written.
    pub tokens: Option<u64>,
    /// By how many hundredths of them a call that is under way may pass the bounds on money and tokens before it is ended.
    #[serde(default)]
    pub margin: u32,
}

/// Where agents work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In the user's checkout, one story at a time.
    #[default]
    Checkout,
    /// Each in a worktree of ours; what is proven there is merged into the branch.
    Worktrees,
}

/// Everything that the core's decisions depend on besides the plan. Kept in the journal, so that a replay decides the
/// same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Attempts of a story after the first.
    pub max_retries: u32,
    /// Repairs in place, per attempt.
    pub max_repairs: u32,
    /// What happens when a story is exhausted.
    pub on_exhausted: OnExhausted,
    /// A story that nothing can verify is not run.
    pub require_verify: bool,
    /// Stories that a person has to sign are left aside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip_manual: bool,
    /// A task that fails for good gets a task that mends it, once in a run, and its story is tried afresh with that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub create_tasks: bool,
    /// The gates, in the given order; the fastest known runs first.
    pub gates: Vec<Gate>,
    /// Bounds on the run.
    pub budget: Budget,
    /// The longest wait for a provider's limit; one that would be longer pauses the run.
    pub limit_wait: Duration,
    /// Tries in a row that fail by overload or network before the run pauses.
    pub provider_retries: u32,
    /// The waits before further tries of a provider or network that fails, the last of which holds for all further ones; none:
    /// 2 seconds, tripled each time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provider_backoff: Vec<Duration>,
    /// What is different for failures of some kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub retries: BTreeMap<FailureKind, Retry>,
    /// Only these stories; empty is all that the work wants.
    pub only: Vec<StoryId>,
    /// The agents that may be called, in the order in which they are preferred. Journals of versions that knew one agent
    /// name none here.
    #[serde(default)]
    pub agents: Vec<AgentId>,
    /// Another order for stories of some difficulty, by what earlier attempts came to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub orders: BTreeMap<Difficulty, Vec<AgentId>>,
    /// Who looks at proven work before it lands.
    #[serde(default)]
    pub reviewer: Option<AgentId>,
    /// How often a reviewer may send the work of one attempt back.
    #[serde(default)]
    pub max_reviews: u32,
    /// Who works on a story one after the other; one agent alone if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<Relay>,
    /// What earlier runs have learned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub learnings: Vec<Learning>,
    /// Where agents work.
    #[serde(default)]
    pub place: Place,
    /// Stories at once, beside one whose turn it is to land; more than one only in worktrees.
    #[serde(default = "one_at_a_time")]
    pub jobs: NonZeroU32,
}

fn one_at_a_time() -> NonZeroU32 {
    NonZeroU32::MIN
}

impl Policy {
    /// Whether a run with this policy is to do the story.
    pub fn selects(&self, story: &Story) -> bool {
        if self.only.is_empty() {
            wanted(story) && !(self.skip_manual && story.needs_sign_off())
        } else {
            self.only.contains(&story.id)
        }
    }

    /// How many attempts may be worked on at once.
    pub fn lanes(&self) -> usize {
        match self.place {
            Place::Checkout => 1,
            Place::Worktrees => usize::try_from(self.jobs.get()).unwrap_or(usize::MAX),
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_retries: 3,
            max_repairs: 2,
            on_exhausted: OnExhausted::Stop,
            require_verify: false,
            skip_manual: false,
            create_tasks: false,
            gates: Vec::new(),
            budget: Budget::default(),
            limit_wait: Duration::from_hours(6),
            provider_retries: 4,
            provider_backoff: Vec::new(),
            retries: BTreeMap::new(),
            only: Vec::new(),
            agents: Vec::new(),
            orders: BTreeMap::new(),
            reviewer: None,
            max_reviews: 2,
            relay: None,
            learnings: Vec::new(),
            place: Place::Checkout,
            jobs: NonZeroU32::MIN,
        }
    }
}
