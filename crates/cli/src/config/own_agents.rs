//! Agents of the user's own: `[agents.NAME]` tables of a file of settings.

use std::ops::Range;

use ralphloop_agent::client::{Agent, OwnClient, PromptDelivery};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::origin::Origin;
use super::value::{AgentFormat, Raw, Value};
use crate::error::closest;

/// What may stand in a table.
const KEYS: &[&str] = &["command", "format", "model_flag", "prompt"];

/// An agent of the user's own, and where it is described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnAgent {
    /// How it is started and read.
    pub(crate) client: OwnClient,
    /// Where its table begins.
    pub(crate) origin: Origin,
}

/// What is wrong with a table, and where.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) message: String,
    pub(super) span: Range<usize>,
    pub(super) label: String,
    pub(super) hint: Option<String>,
}

/// Reads the value of `agents`; `origin` makes the origin of a table from where it begins.
pub(super) fn read(agents: &Spanned<DeValue<'_>>, origin: impl Fn(usize) -> Origin) -> Result<Vec<OwnAgent>, Fault> {
    let DeValue::Table(tables) = agents.get_ref() else {
        return Err(Fault {
            message: "'agents' holds one table for each agent of your own".to_owned(),
            span: agents.span(),
            label: "no table".to_owned(),
            hint: Some("write [agents.NAME] and below it command = \"…\"".to_owned()),
        });
    };
    let one = |(name, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let client = one(name, value)?;
        Ok(OwnAgent { client, origin: origin(name.span().start) })
    };
    tables.iter().map(one).collect()
}

fn one(name: &Spanned<std::borrow::Cow<'_, str>>, value: &Spanned<DeValue<'_>>) -> Result<OwnClient, Fault> {
    let text = name.get_ref();
    let wrong_name = text.is_empty() || text.contains([':', ',']) || text.contains(char::is_whitespace);
    if wrong_name {
        return Err(Fault {
            message: format!("'{text}' cannot be the name of an agent"),
            span: name.span(),
            label: "no name".to_owned(),
            hint: Some("a name has no blanks, colons or commas: NAME:MODEL chooses a model".to_owned()),
        });
    }
    let DeValue::Table(table) = value.get_ref() else {
        return Err(Fault {
            message: format!("the agent '{text}' is described by a table"),
            span: value.span(),
            label: "no table".to_owned(),
            hint: Some(format!("write [agents.{text}] and below it command = \"…\"")),
        });
    };
    for key in table.keys() {
        if !KEYS.contains(&key.get_ref().as_ref()) {
            return Err(Fault {
                message: format!("unknown key '{}' of the agent '{text}'", key.get_ref()),
                span: key.span(),
                label: "unknown".to_owned(),
                hint: Some(match closest(key.get_ref(), KEYS.iter().copied()) {
                    Some(meant) => format!("did you mean {meant}?"),
                    None => format!("an agent has {}", KEYS.join(", ")),
                }),
            });
        }
    }
    let Some(command) = table.get("command") else {
        return Err(Fault {
            message: format!("the agent '{text}' has no command"),
            span: name.span(),
            label: "command is missing".to_owned(),
            hint: Some("command = \"program --flag\" starts it, with the prompt on its standard input".to_owned()),
        });
    };
    let client = OwnClient {
        name: text.to_string(),
        command: setting::<String>(table, "command")?.unwrap_or_default(),
        format: setting::<AgentFormat>(table, "format")?.unwrap_or(AgentFormat::Text).format(),
        model_flag: setting::<String>(table, "model_flag")?,
        prompt: setting::<Prompt>(table, "prompt")?.map_or(PromptDelivery::Stdin, |prompt| prompt.0),
    };
    // What cannot be started is said here, where it stands.
    Agent::command(&client.command, client.format).map_err(|error| Fault {
        message: format!("invalid command of the agent '{text}'"),
        span: command.span(),
        label: error.to_string(),
        hint: None,
    })?;
    Ok(client)
}

fn setting<T: Value>(table: &DeTable<'_>, key: &str) -> Result<Option<T>, Fault> {
    let Some(value) = table.get(key) else { return Ok(None) };
    T::read(Raw::Toml(value.get_ref())).map(Some).map_err(|problem| Fault {
        message: format!("invalid value of {key}"),
        span: value.span(),
        label: problem,
        hint: None,
    })
}

struct Prompt(PromptDelivery);

impl Value for Prompt {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "stdin" => Ok(Self(PromptDelivery::Stdin)),
            "argument" => Ok(Self(PromptDelivery::Argument)),
            _ => Err("write stdin or argument".to_owned()),
        }
    }
    fn show(&self) -> String {
        match self.0 {
            PromptDelivery::Stdin => "stdin".to_owned(),
            PromptDelivery::Argument => "argument".to_owned(),
        }
    }
}
