//! What an agent does while it runs, as its client reports it. For views, transcripts and the engine's clocks; nothing
//! in here is a claim or proof.

use std::time::Duration;

use ralphloop_core::evidence::Usage;
use ralphloop_core::units::Timestamp;
use serde::{Deserialize, Serialize};

use crate::plan::Step;

/// One of the two streams of an agent's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// One thing that an agent did. All text is free of control characters and bounded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AgentEvent {
    /// A session began.
    SessionStarted {
        /// The model, as the client names it.
        model: Option<String>,
        /// The client's version.
        version: Option<String>,
        /// The client's name of the session.
        session: Option<String>,
    },
    /// The agent itself said something to the user.
    Said {
        /// The text.
        text: String,
    },
    /// It thought aloud.
    Thought {
        /// The text.
        text: String,
    },
    /// A sub-agent said something.
    SubAgentSaid {
        /// The text.
        text: String,
    },
    /// A tool call began.
    ToolStarted {
        /// The call's name in the stream.
        id: String,
        /// The tool.
        name: String,
        /// What tells most of its input: the command, the path, the pattern.
        input: String,
        /// A sub-agent called it.
        by_sub_agent: bool,
    },
    /// A tool call ended.
    ToolFinished {
        /// The call's name in the stream.
        id: String,
        /// It did not report an error.
        ok: bool,
        /// The head of what it returned.
        output: String,
    },
    /// It told what it plans to do, and how far it is with that. Each takes the place of the one before.
    Plan {
        /// The steps in their order, so many as are passed on.
        steps: Vec<Step>,
    },
    /// The same call had the same result for the given number of times in a row.
    Repeating {
        /// The call.
        call: String,
        /// How often so far.
        times: u32,
    },
    /// What it has used so far in all.
    Usage {
        /// The sums.
        so_far: Usage,
    },
    /// The provider told how the account stands with its limits.
    RateLimited {
        /// The limit is reached; otherwise it is only near.
        rejected: bool,
        /// When the window ends.
        resets_at: Option<Timestamp>,
        /// Which limit (`five_hour`).
        window: Option<String>,
    },
    /// A request failed and will be sent again by the client itself.
    Retrying {
        /// Which try.
        attempt: u32,
        /// Tries in all.
        of: u32,
        /// How long the client waits first.
        after: Duration,
        /// `overloaded (529)`.
        why: String,
    },
    /// A tool call was refused by the client's permission settings.
    PermissionDenied {
        /// The tool.
        tool: String,
    },
    /// A remark of the client.
    Notice {
        /// The text.
        text: String,
    },
    /// The client's final event has come; the process should exit now.
    Ended {
        /// It reported an error.
        is_error: bool,
        /// The number of turns.
        turns: Option<u32>,
    },
    /// A line that is no event of the client: broken, unknown, or not meant as one. Only the first of many are
    /// reported.
    Raw {
        /// Where it came from.
        stream: Stream,
        /// The head of the line.
        text: String,
    },
}

impl AgentEvent {
    /// The same event with every text that came from the agent or its client changed by `change`: the place to mask
    /// secrets before the event goes to views and records.
    #[must_use]
    pub fn map_text(mut self, change: &dyn Fn(&str) -> String) -> Self {
        match &mut self {
            Self::SessionStarted { model, version, session } => {
                for text in [model, version, session].into_iter().flatten() {
                    *text = change(text);
                }
            }
            Self::ToolStarted { id, name, input, .. } => {
                for text in [id, name, input] {
                    *text = change(text);
                }
            }
            Self::Plan { steps } => {
                for step in steps {
                    step.text = change(&step.text);
                }
            }
            Self::ToolFinished { id, output, .. } => {
                *id = change(id);
                *output = change(output);
            }
            Self::Said { text }
            | Self::Thought { text }
            | Self::SubAgentSaid { text }
            | Self::Notice { text }
            | Self::Raw { text, .. }
            | Self::Repeating { call: text, .. }
            | Self::Retrying { why: text, .. }
            | Self::PermissionDenied { tool: text }
            | Self::RateLimited { window: Some(text), .. } => *text = change(text),
            Self::RateLimited { window: None, .. } | Self::Usage { .. } | Self::Ended { .. } => {}
        }
        self
    }
}
