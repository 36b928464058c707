//! Roles of a relay: `[roles.NAME]` tables of a file of settings, and how a relay is written.

use ralphloop_core::agent_name::AgentName;
use toml::Spanned;
use toml::de::DeValue;

use super::table::{Fault, only_known, setting, table_of};
use super::value::{Raw, Value, scalar};

/// What may stand in a table.
const KEYS: &[&str] = &["agent", "prompt"];
/// More roles than that hand on what nobody reads.
const MOST: usize = 8;

/// A role as a file describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnRole {
    /// What it is called.
    pub(crate) name: String,
    /// Who takes it, unless the relay says otherwise.
    pub(crate) agent: Option<AgentName>,
    /// What it is told of its part.
    pub(crate) prompt: Option<String>,
}

/// How one is written.
const EXAMPLE: &str = "[roles.NAME] and below it prompt = \"…\" or agent = \"…\"";

/// Reads the value of `roles`.
pub(super) fn read(roles: &Spanned<DeValue<'_>>) -> Result<Vec<OwnRole>, Fault> {
    let tables = table_of(roles, "each role is described by a table", EXAMPLE)?;
    let one = |(name, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
        let text = name.get_ref();
        named(text).map_err(|label| Fault {
            message: format!("'{text}' cannot be the name of a role"),
            span: name.span(),
            label,
            hint: None,
        })?;
        let table = table_of(value, &format!("the role '{text}' is described by a table"), EXAMPLE)?;
        only_known(table, KEYS, &format!("of the role '{text}'"), &format!("a role has {}", KEYS.join(" and ")))?;
        Ok(OwnRole { name: text.to_string(), agent: setting(table, "agent")?, prompt: setting(table, "prompt")? })
    };
    tables.iter().map(one).collect()
}

fn named(name: &str) -> Result<(), String> {
    if name.is_empty() || name.contains([':', ',', '=']) || name.contains(char::is_whitespace) {
        return Err("a name has no blanks, colons, commas or equals signs".to_owned());
    }
    Ok(())
}

/// Roles in their order, each with its agent if it has one of its own: `planner=claude:opus,coder,reviewer`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RelayRoles(pub(crate) Vec<(String, Option<AgentName>)>);

fn role(text: &str) -> Result<(String, Option<AgentName>), String> {
    let (name, agent) = match text.trim().split_once('=') {
        Some((name, agent)) => (name.trim(), Some(AgentName::parse(agent.trim())?)),
        None => (text.trim(), None),
    };
    named(name).map_err(|why| format!("write ROLE or ROLE=AGENT, parted by commas; {why}"))?;
    Ok((name.to_owned(), agent))
}

impl Value for RelayRoles {
    fn parse(text: &str) -> Result<Self, String> {
        let roles: Vec<_> = text.split(',').map(role).collect::<Result<_, _>>()?;
        if roles.len() > MOST {
            return Err(format!("{} roles are too many; {MOST} can be named", roles.len()));
        }
        Ok(Self(roles))
    }
    fn show(&self) -> String {
        self.texts().join(",")
    }
    fn texts(&self) -> Vec<String> {
        let one = |(name, agent): &(String, Option<AgentName>)| match agent {
            Some(agent) => format!("{name}={}", agent.show()),
            None => name.clone(),
        };
        self.0.iter().map(one).collect()
    }
    fn read(raw: Raw<'_>) -> Result<Self, String> {
        match raw {
            Raw::Toml(DeValue::Array(items)) => {
                let texts: Vec<&str> = items.iter().map(|item| scalar(item.get_ref())).collect::<Result<_, _>>()?;
                Self::parse(&texts.join(","))
            }
            Raw::Toml(value) => Self::parse(scalar(value)?),
            Raw::Variable(text) => Self::parse(text),
            Raw::Flags(texts) => Self::parse(&texts.join(",")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_reads_from_one_text_and_from_what_was_kept() {
        let relay = RelayRoles::parse("planner=claude:opus, coder,reviewer=local:vendor/x:7b").unwrap();
        assert_eq!(relay.show(), "planner=claude:opus,coder,reviewer=local:vendor/x:7b");
        assert_eq!(RelayRoles::read(Raw::Flags(&relay.texts())), Ok(relay));
        for text in ["", "planner,", "=claude", "planner=", "a b", "a,b,c,d,e,f,g,h,i"] {
            assert!(RelayRoles::parse(text).is_err(), "{text:?}");
        }
    }
}
