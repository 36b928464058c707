//! Providers for the built-in agent: `[providers.NAME]` tables of a file of settings.

use ralphloop_agent::builtin::{Key, Protocol, Provider};
use toml::Spanned;
use toml::de::DeValue;

use super::origin::Origin;
use super::table::{Fault, only_known, setting, table_of};
use super::value::{Count, Value};

/// What may stand in a table.
const KEYS: &[&str] = &["protocol", "url", "key_variable", "key_command", "context_window", "max_output"];

/// A provider of the user's own, and where it is described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnProvider {
    /// How it is spoken with.
    pub(crate) provider: Provider,
    /// Where its table begins.
    pub(crate) origin: Origin,
}

impl OwnProvider {
    /// What it means for a person who has to trust it: where prompts and the key go.
    pub(crate) fn told(&self) -> String {
        let Provider { name, url, key, .. } = &self.provider;
        match key {
            Key::None => format!("builtin:{name} sends to {url}"),
            Key::Variables(names) => format!("builtin:{name} sends to {url} with the key of {}", names.join(" or ")),
            Key::Command(command) => format!("builtin:{name} sends to {url} with the key of `{command}`"),
        }
    }
}

/// Reads the value of `providers`; `origin` makes the origin of a table from where it begins.
pub(super) fn read(
    providers: &Spanned<DeValue<'_>>,
    origin: impl Fn(usize) -> Origin,
) -> Result<Vec<OwnProvider>, Fault> {
    let tables = table_of(providers, "'providers' holds one table for each provider", &example("NAME"))?;
    let one = |(name, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        Ok(OwnProvider { provider: one(name, value)?, origin: origin(name.span().start) })
    };
    tables.iter().map(one).collect()
}

fn example(name: &str) -> String {
    format!("[providers.{name}] and below it url = \"…\"")
}

fn one(name: &Spanned<std::borrow::Cow<'_, str>>, value: &Spanned<DeValue<'_>>) -> Result<Provider, Fault> {
    let text = name.get_ref();
    if text.is_empty() || text.contains([':', ',', '/']) || text.contains(char::is_whitespace) {
        return Err(Fault {
            message: format!("'{text}' cannot be the name of a provider"),
            span: name.span(),
            label: "no name".to_owned(),
            hint: Some(
                "a name has no blanks, colons, commas or slashes: builtin:NAME/MODEL chooses a model".to_owned(),
            ),
        });
    }
    let table = table_of(value, &format!("the provider '{text}' is described by a table"), &example(text))?;
    let whose = format!("of the provider '{text}'");
    only_known(table, KEYS, &whose, &format!("a provider has {}", KEYS.join(", ")))?;
    let missing = |key: &str, hint: String| Fault {
        message: format!("the provider '{text}' has no {key}"),
        span: name.span(),
        label: format!("{key} is missing"),
        hint: Some(hint),
    };
    // Of a known one, the table changes what it names.
    let known = Provider::known(text);
    let protocol = setting::<ProtocolName>(table, "protocol")?.map(|name| name.0);
    let protocol = protocol.or(known.as_ref().map(|known| known.protocol)).ok_or_else(|| {
        missing("protocol", format!("write one of {}", Protocol::ALL.map(Protocol::as_str).join(", ")))
    })?;
    let url = setting::<Address>(table, "url")?.map(|url| url.0).or(known.as_ref().map(|known| known.url.clone()));
    let url = url.ok_or_else(|| missing("url", "such as http://127.0.0.1:8080/v1".to_owned()))?;
    let variable = setting::<String>(table, "key_variable")?;
    let key = match (variable, setting::<String>(table, "key_command")?, table.get("key_command")) {
        (Some(_), Some(_), Some(command)) => {
            return Err(Fault {
                message: format!("the provider '{text}' has its key from two places"),
                span: command.span(),
                label: "key_variable is there, too".to_owned(),
                hint: Some("keep one of the two".to_owned()),
            });
        }
        (Some(name), ..) => Key::Variables(vec![name]),
        (None, Some(command), _) => Key::Command(command),
        (None, None, _) => known.map_or(Key::None, |known| known.key),
    };
    let count = |key: &str| Ok(setting::<Count>(table, key)?.map(|count| count.0));
    let max_output = count("max_output")?.map(|most| u32::try_from(most).unwrap_or(u32::MAX));
    Ok(Provider { name: text.to_string(), protocol, url, key, context_window: count("context_window")?, max_output })
}

struct ProtocolName(Protocol);

impl Value for ProtocolName {
    fn parse(text: &str) -> Result<Self, String> {
        let found = Protocol::ALL.into_iter().find(|protocol| protocol.as_str() == text);
        found.map(Self).ok_or_else(|| format!("write one of {}", Protocol::ALL.map(Protocol::as_str).join(", ")))
    }
    fn show(&self) -> String {
        self.0.as_str().to_owned()
    }
}

struct Address(String);

impl Value for Address {
    fn parse(text: &str) -> Result<Self, String> {
        let is_address =
            ["http://", "https://"].iter().any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()));
        if is_address {
            Ok(Self(text.to_owned()))
        } else {
            Err("write an address that begins with http:// or https://".to_owned())
        }
    }
    fn show(&self) -> String {
        self.0.clone()
    }
}
