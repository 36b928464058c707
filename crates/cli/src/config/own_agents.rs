//! Agents of the user's own: `[agents.NAME]` tables of a file of settings.

use ralphloop_agent::client::{Agent, OwnClient, PromptDelivery};
use toml::Spanned;
use toml::de::DeValue;

use super::origin::Origin;
use super::table::{Fault, only_known, setting, table_of};
use super::value::{AgentFormat, Value};

/// What may stand in a table.
const KEYS: &[&str] = &["command", "format", "model_flag", "effort_flag", "prompt"];

/// An agent of the user's own, and where it is described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnAgent {
    /// How it is started and read.
    pub(crate) client: OwnClient,
    /// Where its table begins.
    pub(crate) origin: Origin,
}

/// Reads the value of `agents`; `origin` makes the origin of a table from where it begins.
pub(super) fn read(agents: &Spanned<DeValue<'_>>, origin: impl Fn(usize) -> Origin) -> Result<Vec<OwnAgent>, Fault> {
    let tables = table_of(agents, "'agents' holds one table for each agent of your own", &example("NAME"))?;
    let one = |(name, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let client = one(name, value)?;
        Ok(OwnAgent { client, origin: origin(name.span().start) })
    };
    tables.iter().map(one).collect()
}

fn example(name: &str) -> String {
    format!("[agents.{name}] and below it command = \"…\"")
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
    let table = table_of(value, &format!("the agent '{text}' is described by a table"), &example(text))?;
    only_known(table, KEYS, &format!("of the agent '{text}'"), &format!("an agent has {}", KEYS.join(", ")))?;
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
        effort_flag: setting::<String>(table, "effort_flag")?,
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
            PromptDelivery::Conversation => "conversation".to_owned(),
        }
    }
}
