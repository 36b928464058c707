//! What the tools take and give, as JSON.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::seat::Sight;

/// What a session is told.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Turn {
    /// What this is.
    pub(super) state: State,
    /// What happened since the last answer, oldest first.
    pub(super) happened: Vec<String>,
    /// With `work`: what is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) call: Option<Call>,
    /// Attempts that were handed out and wait for a report.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) unreported: Vec<String>,
    /// With `busy` and `waiting`: what the run does just now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) doing: Option<String>,
    /// With `waiting`: when it goes on, RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) resume_at: Option<String>,
    /// With `ended`: how it ended, and what a person should do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<String>,
}

impl Turn {
    pub(super) fn new(state: State, sight: &mut Sight) -> Self {
        let unreported = sight.taken.keys().cloned().collect();
        Self { state, happened: sight.take_news(), unreported, ..Self::default() }
    }
}

/// What an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// Something is to be done now: `call` says what.
    Work,
    /// Gates, checks or git are at work: call `next` again.
    #[default]
    Busy,
    /// There is nothing to do but what was handed out and is `unreported`.
    Reports,
    /// The run waits for a time: call `next` again.
    Waiting,
    /// The run is over.
    Ended,
}

/// Work for an agent: one call of one attempt.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Call {
    /// The attempt, as `report` wants it named.
    pub(super) attempt: String,
    /// Which call of the attempt: 1 is its first, later ones repair what it left.
    pub(super) number: u32,
    /// The story.
    pub(super) story: String,
    /// The folder to work in, and nowhere else.
    pub(super) folder: String,
    /// Variables that commands run there should have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) variables: BTreeMap<String, String>,
    /// How many seconds it may take; later a report counts for nothing.
    pub(super) seconds: u64,
    /// What to do, complete: for an agent with a fresh context.
    pub(super) prompt: String,
}

/// `show_work`
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ShowWork {
    /// A file, a folder or FORMAT:NAME; the only one found if absent.
    pub(super) work: Option<String>,
}

/// `start_run`
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct StartRun {
    /// A file, a folder or FORMAT:NAME; the only one found if absent.
    pub(super) work: Option<String>,
    /// Only these stories, by id; all if empty.
    #[serde(default)]
    pub(super) stories: Vec<String>,
    /// Settings by their names, as in ralphloop.toml: `{"max_retries": 1, "gate": ["cargo test"]}`.
    #[serde(default)]
    pub(super) settings: serde_json::Map<String, serde_json::Value>,
    /// Begin a new run even if an unfinished one of the same work exists.
    #[serde(default)]
    pub(super) fresh: bool,
}

/// `next`
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Next {
    /// An attempt that was handed out before, to get its call once more.
    pub(super) attempt: Option<String>,
}

/// `report`
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Report {
    /// The attempt, as it was handed out.
    pub(super) attempt: String,
    /// The last message of the agent that worked on it, whole, with its signal line.
    pub(super) message: String,
    /// What it claims, if the message has no signal line of its own. It decides nothing: gates and checks do.
    pub(super) signal: Option<Signal>,
    /// With `failed` and `blocked`: why.
    pub(super) reason: Option<String>,
}

/// What an agent claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Signal {
    /// Everything is done and checked.
    Complete,
    /// It could not be done.
    Failed,
    /// It cannot be done without a person.
    Blocked,
}

impl Report {
    /// The words that the report comes to: one grammar of signals, however they come in.
    pub(super) fn words(&self) -> String {
        let reason = self.reason.as_deref().unwrap_or("no reason was given").split_whitespace().collect::<Vec<_>>();
        let line = match self.signal {
            None => return self.message.clone(),
            Some(Signal::Complete) => "<promise>COMPLETE</promise>".to_owned(),
            Some(Signal::Failed) => format!("<promise>FAILED: {}</promise>", reason.join(" ")),
            Some(Signal::Blocked) => format!("<promise>BLOCKED: {}</promise>", reason.join(" ")),
        };
        format!("{}\n\n{line}\n", self.message.trim_end())
    }
}

/// `guide`
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Guide {
    /// One sentence of the user's for the next prompt.
    pub(super) text: String,
}

/// `stop`
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Stop {
    /// At once: the attempt under way is put back, its work kept. Else after the attempt.
    #[serde(default)]
    pub(super) now: bool,
}
