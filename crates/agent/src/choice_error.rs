//! Why an agent cannot be chosen as it was named, and what to write instead.

use ralphloop_core::agent_name::{AgentName, Effort, NoAgentName};
use thiserror::Error;

/// A choice of agent that cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AgentError {
    /// No agent of that name.
    #[error(
        "unknown agent {name:?}{}; known: {known}; any other program can be used with --agent-command and --agent-format, \
         or named in an [agents] table of ralphloop.toml",
        .meant.as_ref().map(|meant| format!("; did you mean {meant}?")).unwrap_or_default()
    )]
    UnknownAgent {
        /// What was asked for.
        name: String,
        /// A known name that is close to it.
        meant: Option<String>,
        /// The names that are known.
        known: String,
    },
    /// What was written names no agent.
    #[error("{0}")]
    NoName(#[from] NoAgentName),
    /// An effort was asked of an agent that cannot be told one.
    #[error("the agent {agent:?} cannot be told an effort, and {asked} names {effort}; {remedy}")]
    TakesNoEffort {
        /// The agent.
        agent: String,
        /// What was asked for.
        asked: String,
        /// The effort in it.
        effort: Effort,
        /// What to do instead.
        remedy: String,
    },
    /// An effort that this agent does not know.
    #[error("the agent {agent:?} knows no effort {effort}; it knows {known}")]
    UnknownEffort {
        /// The agent.
        agent: String,
        /// What was asked for.
        effort: Effort,
        /// What could have been.
        known: String,
    },
    /// No format of that name.
    #[error("unknown agent format {name:?}; known: {known}")]
    UnknownFormat {
        /// What was asked for.
        name: String,
        /// The names that are known.
        known: String,
    },
    /// The command is empty or blank.
    #[error("the agent command is empty; give a program and its arguments")]
    EmptyCommand,
    /// The command's quotes do not match.
    #[error("the agent command {command:?} cannot be split into words: {why}")]
    BadCommand {
        /// The command.
        command: String,
        /// What is wrong.
        why: String,
    },
    /// The same agent with the same model and effort stands in a chain twice.
    #[error("the agent {agent} is named twice; each agent of a chain, with its model and effort, is named once")]
    Twice {
        /// The agent.
        agent: String,
    },
    /// The user's own agent has no flag for a model.
    #[error("the agent {name:?} takes no model; give its table a model_flag, or name it without one")]
    TakesNoModel {
        /// The agent.
        name: String,
    },
    /// The built-in agent is named without a model, or with one that does not say whose it is.
    #[error(
        "the built-in agent needs a provider and a model: builtin:PROVIDER/MODEL, such as builtin:anthropic/claude-sonnet-4-5"
    )]
    NoProvider,
    /// No provider of that name.
    #[error("unknown provider {name:?}; known: {known}; any other can be described in a table [providers.{name}]")]
    UnknownProvider {
        /// What was asked for.
        name: String,
        /// The names that are known.
        known: String,
    },
    /// An extra argument that sets the effort once more.
    #[error("the argument {argument:?} sets the effort, which {agent} names already; leave one of the two out")]
    EffortTwice {
        /// The agent.
        agent: String,
        /// The argument as it was given.
        argument: String,
    },
    /// An extra argument that ralphloop gives itself, or that would break its reading.
    #[error("the argument {argument:?} is not yours to give to {agent}: ralphloop decides on {flag} itself{}", model_hint(.flag))]
    ReservedArgument {
        /// The agent.
        agent: String,
        /// The argument as it was given.
        argument: String,
        /// The flag that it is.
        flag: String,
    },
}

fn model_hint(flag: &str) -> &'static str {
    if matches!(flag, "--model" | "-m") { "; name the model as NAME:MODEL in `agent`" } else { "" }
}

/// What the last part of a name that reads as an effort may have been meant to be.
pub(crate) fn as_model(name: &AgentName) -> String {
    let model = name.model.as_deref().map(|model| format!("{model}:")).unwrap_or_default();
    let effort = name.effort.map(Effort::as_str).unwrap_or_default();
    let whole = AgentName { model: Some(format!("{model}{effort}")), effort: None, ..name.clone() };
    format!("leave it out, or write {whole} if it is a part of the model's name")
}
