//! How each type of setting is written: as a flag, in an environment variable, in a TOML file.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use ralphloop_agent::client::Format;
use ralphloop_core::agent_name::{AgentName, NoAgentName};
use ralphloop_core::units::Usd;
use ralphloop_engine::sandbox::{Host, NoHost};
use serde_json::{Value as Json, json};
use toml::de::DeValue;

use crate::{duration, money};

/// How often a flag may be given, and whether it needs a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `--x V`
    One,
    /// `--x`, or `--x=false` to take back what a file says.
    Switch,
    /// `--x V --x W`
    Many,
}

/// A setting as somebody wrote it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Raw<'a> {
    /// The value of an environment variable. Of a list, one item a line.
    Variable(&'a str),
    /// What a flag was given, in order.
    Flags(&'a [String]),
    /// A value in a file.
    Toml(&'a DeValue<'a>),
}

/// A type of setting. Errors are fragments that follow the name of the setting and what was written.
pub(crate) trait Value: Sized {
    /// How its flag is given.
    const FORM: Form = Form::One;

    /// Reads one text.
    fn parse(text: &str) -> Result<Self, String>;

    /// Writes it as [`Value::parse`] reads it.
    fn show(&self) -> String;

    /// As JSON, for programs.
    fn json(&self) -> Json {
        Json::String(self.show())
    }

    /// As the values of its flag, one for each time it would be given.
    fn texts(&self) -> Vec<String> {
        vec![self.show()]
    }

    /// Reads it from wherever it was written.
    fn read(raw: Raw<'_>) -> Result<Self, String> {
        match raw {
            Raw::Variable(text) => Self::parse(text),
            Raw::Flags(texts) => Self::parse(texts.last().map_or("", String::as_str)),
            Raw::Toml(value) => Self::parse(scalar(value)?),
        }
    }
}

pub(super) fn scalar<'a>(value: &'a DeValue<'_>) -> Result<&'a str, String> {
    match value {
        DeValue::String(text) => Ok(text),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str()),
        DeValue::Float(number) => Ok(number.as_str()),
        DeValue::Boolean(true) => Ok("true"),
        DeValue::Boolean(false) => Ok("false"),
        DeValue::Integer(_) => Err("write the number in decimal digits".to_owned()),
        other => Err(format!("a single value is expected here, not {}", with_article(other.type_str()))),
    }
}

fn with_article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {kind}")
}

impl Value for u32 {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "write a whole number, 0 or more".to_owned())
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn json(&self) -> Json {
        json!(self)
    }
}

impl Value for bool {
    const FORM: Form = Form::Switch;

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" => Ok(false),
            _ => Err("write true or false".to_owned()),
        }
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn json(&self) -> Json {
        json!(self)
    }
}

impl Value for Duration {
    fn parse(text: &str) -> Result<Self, String> {
        duration::parse(text)
    }
    fn show(&self) -> String {
        duration::show(*self)
    }
}

impl Value for Usd {
    fn parse(text: &str) -> Result<Self, String> {
        money::parse(text)
    }
    fn show(&self) -> String {
        money::show(*self)
    }
}

impl Value for String {
    fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() { Err("must not be empty".to_owned()) } else { Ok(text.to_owned()) }
    }
    fn show(&self) -> String {
        self.clone()
    }
}

impl Value for PathBuf {
    fn parse(text: &str) -> Result<Self, String> {
        String::parse(text).map(Self::from)
    }
    fn show(&self) -> String {
        self.display().to_string()
    }
}

impl Value for Host {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: NoHost| error.to_string())
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

/// A number of tokens, of agent calls and so on, of which zero makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u64);

impl Value for Count {
    fn parse(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(0) | Err(_) => Err("write a whole number above zero, or none".to_owned()),
            Ok(number) => Ok(Self(number)),
        }
    }
    fn show(&self) -> String {
        self.0.to_string()
    }
    fn json(&self) -> Json {
        json!(self.0)
    }
}

/// A number of bytes: `8GiB`, `500 MB`, or a bare number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) u64);

/// What units of bytes are called, the largest first.
const UNITS: [(&str, u64); 8] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
];

impl Value for Bytes {
    fn parse(text: &str) -> Result<Self, String> {
        let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let unit = unit.trim();
        let factor = match UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) {
            Some((_, factor)) => Some(*factor),
            None => (unit.is_empty() || unit.eq_ignore_ascii_case("b")).then_some(1),
        };
        let bytes =
            factor.and_then(|factor| digits.parse::<u64>().ok()?.checked_mul(factor)).filter(|bytes| *bytes > 0);
        bytes.map(Self).ok_or_else(|| "write an amount of bytes, such as 8GiB or 500MB, or none".to_owned())
    }
    fn show(&self) -> String {
        let whole = UNITS.iter().find(|(name, factor)| name.len() == 3 && self.0.is_multiple_of(*factor));
        whole.map_or_else(|| self.0.to_string(), |(name, factor)| format!("{}{name}", self.0 / factor))
    }
    fn json(&self) -> Json {
        json!(self.0)
    }
}

/// Stories at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Jobs(pub(crate) NonZeroU32);

impl Value for Jobs {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|_| "write a whole number, 1 or more".to_owned())
    }
    fn show(&self) -> String {
        self.0.to_string()
    }
    fn json(&self) -> Json {
        json!(self.0)
    }
}

/// How many agents may be started: a number, or no bound, which is written `0` or `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Iterations(pub(crate) Option<u32>);

impl Value for Iterations {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "none" | "0" => Ok(Self(None)),
            text => u32::parse(text).map(|number| Self(Some(number))),
        }
    }
    fn show(&self) -> String {
        self.0.map_or_else(|| "none".to_owned(), |number| number.to_string())
    }
    fn json(&self) -> Json {
        json!(self.0)
    }
}

impl<T: Value> Value for Option<T> {
    const FORM: Form = T::FORM;

    fn read(raw: Raw<'_>) -> Result<Self, String> {
        let said = match raw {
            Raw::Variable(text) => Some(text),
            Raw::Flags(texts) => texts.last().map(String::as_str),
            Raw::Toml(value) => value.as_str(),
        };
        if said == Some("none") { Ok(None) } else { T::read(raw).map(Some) }
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text == "none" { Ok(None) } else { T::parse(text).map(Some) }
    }
    fn show(&self) -> String {
        self.as_ref().map_or_else(|| "none".to_owned(), Value::show)
    }
    fn json(&self) -> Json {
        self.as_ref().map_or(Json::Null, Value::json)
    }
    fn texts(&self) -> Vec<String> {
        self.as_ref().map_or_else(|| vec!["none".to_owned()], Value::texts)
    }
}

impl<T: Value> Value for Vec<T> {
    const FORM: Form = Form::Many;

    fn parse(text: &str) -> Result<Self, String> {
        text.lines().filter(|line| !line.trim().is_empty()).map(T::parse).collect()
    }
    fn show(&self) -> String {
        if self.is_empty() {
            return "none".to_owned();
        }
        self.iter().map(Value::show).collect::<Vec<_>>().join("\n")
    }
    fn json(&self) -> Json {
        self.iter().map(Value::json).collect()
    }
    fn texts(&self) -> Vec<String> {
        self.iter().flat_map(Value::texts).collect()
    }
    fn read(raw: Raw<'_>) -> Result<Self, String> {
        match raw {
            Raw::Variable(text) => Self::parse(text),
            Raw::Flags(texts) => texts.iter().map(|text| T::parse(text)).collect(),
            Raw::Toml(DeValue::Array(items)) => {
                items.iter().map(|item| scalar(item.get_ref()).and_then(T::parse)).collect()
            }
            Raw::Toml(value) => scalar(value).and_then(T::parse).map(|item| vec![item]),
        }
    }
}

impl Value for AgentName {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: NoAgentName| error.to_string())
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

/// Agents, the preferred first: `claude:opus,codex`, or in a file also a list of such texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentNames(Vec<AgentName>);

impl Value for AgentNames {
    fn parse(text: &str) -> Result<Self, String> {
        text.split(',').map(|one| AgentName::parse(one.trim())).collect::<Result<_, _>>().map(Self)
    }
    fn show(&self) -> String {
        self.texts().join(",")
    }
    fn texts(&self) -> Vec<String> {
        self.0.iter().map(Value::show).collect()
    }
    fn read(raw: Raw<'_>) -> Result<Self, String> {
        match raw {
            Raw::Toml(DeValue::Array(items)) if items.is_empty() => Err("name an agent at least".to_owned()),
            Raw::Toml(DeValue::Array(items)) => items
                .iter()
                .map(|item| scalar(item.get_ref()).and_then(AgentName::parse))
                .collect::<Result<_, _>>()
                .map(Self),
            Raw::Toml(value) => Self::parse(scalar(value)?),
            Raw::Variable(text) => Self::parse(text),
            // As it is given more than once, or kept for a resume.
            Raw::Flags(texts) => Self::parse(&texts.join(",")),
        }
    }
}

/// How the output of an agent reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AgentFormat {
    /// JSON lines as Claude Code writes them with `--output-format stream-json --verbose`
    Claude,
    /// JSON lines as Codex writes them with `exec --json`
    Codex,
    /// JSON lines as `OpenCode` writes them with `run --format json`
    #[value(name = "opencode")]
    OpenCode,
    /// JSON lines as Gemini CLI writes them with `--output-format stream-json`
    Gemini,
    /// JSON lines as GitHub Copilot CLI writes them with `--output-format json`
    Copilot,
    /// JSON lines as Pi writes them with `--mode json`
    Pi,
    /// The Agent Client Protocol, which any agent may speak on its standard streams
    Acp,
    /// Plain text
    Text,
}

impl AgentFormat {
    /// As the agent crate calls it.
    pub(crate) fn format(self) -> Format {
        match self {
            Self::Claude => Format::Claude,
            Self::Codex => Format::Codex,
            Self::OpenCode => Format::OpenCode,
            Self::Gemini => Format::Gemini,
            Self::Copilot => Format::Copilot,
            Self::Pi => Format::Pi,
            Self::Acp => Format::Acp,
            Self::Text => Format::Text,
        }
    }
}

/// What follows when a story has used up its attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnExhausted {
    /// End the run
    Stop,
    /// Go on with the stories that do not depend on it
    Skip,
    /// Pause the run and say what a person should look at
    Pause,
}

/// What is done about changes in the checkout that are in no commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dirty {
    /// Do not start
    Refuse,
    /// Work in a worktree without them
    Worktree,
}

/// What becomes of commands that the repository brings and that nobody has trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Trusting {
    /// Ask on a terminal; elsewhere run them and say so
    Ask,
    /// Do not start before they are trusted
    Require,
    /// Run them
    Off,
}

/// What keeps agents and gates inside, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Sandbox {
    /// Nothing: they can do whatever you can
    Off,
    /// They write in the working tree, their own temporary folder and the agent's own folders, and read no secrets
    Workspace,
    /// They also read nothing but the system, its tools and the working tree; agents reach their endpoint alone, gates no network
    Strict,
}

/// Who keeps agents and gates inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxBy {
    /// Whoever can: first ralphloop itself, then bubblewrap
    Auto,
    /// Ralphloop itself, by namespaces
    Namespaces,
    /// The program bwrap
    Bubblewrap,
}

macro_rules! value_by_name {
    ($($name:ty),+) => { $(
        impl $crate::config::value::Value for $name {
            fn parse(text: &str) -> Result<Self, String> {
                <Self as ValueEnum>::from_str(text, false)
                    .map_err(|_| format!("write one of {}", $crate::config::value::names::<Self>()))
            }
            fn show(&self) -> String {
                self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
            }
        }
    )+ };
}
value_by_name!(AgentFormat, Dirty, OnExhausted, Sandbox, SandboxBy, Trusting);
pub(super) use value_by_name;

pub(super) fn names<T: ValueEnum>() -> String {
    let names: Vec<String> =
        T::value_variants().iter().filter_map(T::to_possible_value).map(|v| v.get_name().to_owned()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_reads_from_lines_of_a_variable_and_from_repeated_flags() {
        let want = vec!["cargo test".to_owned(), "cargo fmt --check".to_owned()];
        assert_eq!(Vec::<String>::read(Raw::Variable("cargo test\n\ncargo fmt --check\n")), Ok(want.clone()));
        assert_eq!(Vec::<String>::read(Raw::Flags(&want)), Ok(want));
    }

    #[test]
    fn zero_iterations_and_none_are_no_bound_but_zero_tokens_are_refused() {
        assert_eq!(Iterations::parse("0"), Ok(Iterations(None)));
        assert_eq!(Iterations::parse("none"), Ok(Iterations(None)));
        assert_eq!(Iterations::parse("3"), Ok(Iterations(Some(3))));
        assert!(Iterations::parse("-1").is_err());
        assert!(Option::<Count>::parse("0").is_err());
        assert_eq!(Option::<Count>::parse("none"), Ok(None));
    }

    #[test]
    fn a_chain_of_agents_reads_from_one_text_from_a_list_and_from_what_was_kept() {
        let chain = AgentNames::parse("claude:opus:max, codex,local:vendor/x:7b").unwrap();
        assert_eq!(chain.show(), "claude:opus:max,codex,local:vendor/x:7b");
        assert_eq!(AgentNames::read(Raw::Flags(&chain.texts())), Ok(chain));
        assert_eq!(AgentNames::parse("claude").unwrap().texts(), ["claude"]);
        for text in ["", "claude,", ",codex", "claude,,codex", "claude:,codex"] {
            assert!(AgentNames::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn bytes_read_with_their_units_and_are_shown_as_they_are_read() {
        for (text, bytes) in [("8GiB", 8 << 30), ("500 MB", 500_000_000), ("1kib", 1024), ("77", 77), ("3 b", 3)] {
            assert_eq!(Bytes::parse(text), Ok(Bytes(bytes)), "{text}");
            assert_eq!(Bytes::parse(&Bytes(bytes).show()), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "0", "GiB", "1.5GiB", "-1", "9 elephants", "99999999999TiB"] {
            assert!(Bytes::parse(text).is_err(), "{text:?}");
        }
    }
}
