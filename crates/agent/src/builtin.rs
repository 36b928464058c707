//! The built-in agent as it is to be started: which provider, by which protocol, with whose key, within which limits.

use std::time::Duration;

pub use ralphloop_core::agent_name::Effort;
use serde::{Deserialize, Serialize};

/// Its name on the command line.
pub const NAME: &str = "builtin";

/// How a provider is spoken with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Anthropic's.
    Messages,
    /// `OpenAI`'s newer one.
    Responses,
    /// `OpenAI`'s older one, which nearly every other server speaks.
    ChatCompletions,
    /// Google's `generateContent`.
    Gemini,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Messages, Self::Responses, Self::ChatCompletions, Self::Gemini];

    /// As written in a file of settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Responses => "responses",
            Self::ChatCompletions => "chat-completions",
            Self::Gemini => "gemini",
        }
    }
}

/// Where the key of a provider is from. The key itself is never a part of the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Key {
    /// It wants none, as a server on one's own machine.
    None,
    /// The first of these variables that is set.
    Variables(Vec<String>),
    /// The first line that this command prints, for `sh -c`.
    Command(String),
}

impl Key {
    /// What gives the key, for a person who has to.
    pub fn remedy(&self, provider: &str) -> String {
        match self {
            Self::None => format!(
                "the provider {provider} wants a key: name its variable as key_variable in [providers.{provider}]"
            ),
            Self::Variables(names) => format!("set {} to a key of {provider}", names.join(" or ")),
            Self::Command(command) => format!("see why the key that `{command}` prints is none of {provider}"),
        }
    }
}

/// A provider of models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provider {
    /// What it is called before the `/` of a model.
    pub name: String,
    /// How it is spoken with.
    pub protocol: Protocol,
    /// The address below which the paths of the protocol lie: `https://api.openai.com/v1`.
    pub url: String,
    /// Where its key is from.
    pub key: Key,
    /// How many tokens its models can read at once, if that is not to be told by their names.
    pub context_window: Option<u64>,
    /// How many tokens an answer may have, if not as many as the provider allows.
    pub max_output: Option<u32>,
}

impl Provider {
    /// One that is known by its name.
    pub fn known(name: &str) -> Option<Self> {
        KNOWN_PROVIDERS.iter().find(|known| known.name == name).map(|known| Self {
            name: known.name.to_owned(),
            protocol: known.protocol,
            url: known.url.to_owned(),
            key: match known.variables {
                [] => Key::None,
                names => Key::Variables(names.iter().map(|name| (*name).to_owned()).collect()),
            },
            context_window: None,
            max_output: None,
        })
    }
}

/// A provider that needs no table.
#[derive(Debug)]
pub struct KnownProvider {
    /// Its name.
    pub name: &'static str,
    /// How it is spoken with.
    pub protocol: Protocol,
    /// Where it is.
    pub url: &'static str,
    /// The variables that may hold its key; none if it wants no key.
    pub variables: &'static [&'static str],
}

/// The providers that need no table.
pub const KNOWN_PROVIDERS: &[KnownProvider] = &[
    KnownProvider {
        name: "anthropic",
        protocol: Protocol::Messages,
        url: "https://api.anthropic.com/v1",
        variables: &["ANTHROPIC_API_KEY"],
    },
    KnownProvider {
        name: "openai",
        protocol: Protocol::Responses,
        url: "https://api.openai.com/v1",
        variables: &["OPENAI_API_KEY"],
    },
    KnownProvider {
        name: "openai-chat",
        protocol: Protocol::ChatCompletions,
        url: "https://api.openai.com/v1",
        variables: &["OPENAI_API_KEY"],
    },
    KnownProvider {
        name: "gemini",
        protocol: Protocol::Gemini,
        url: "https://generativelanguage.googleapis.com/v1beta",
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    },
    KnownProvider {
        name: "openrouter",
        protocol: Protocol::ChatCompletions,
        url: "https://openrouter.ai/api/v1",
        variables: &["OPENROUTER_API_KEY"],
    },
    KnownProvider {
        name: "ollama",
        protocol: Protocol::ChatCompletions,
        url: "http://127.0.0.1:11434/v1",
        variables: &[],
    },
];

/// Within what one call of the agent stays. What it reaches ends it with a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How often the model is asked.
    pub steps: u32,
    /// How many tokens are read and written together.
    pub tokens: Option<u64>,
    /// How long it may take.
    pub duration: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 200, tokens: None, duration: None }
    }
}

/// All that the agent is told of itself when it is started. It holds no key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// Whose model.
    pub provider: Provider,
    /// Which one, as the provider names it.
    pub model: String,
    /// With how much effort it is to think; as the provider will have it if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Within what.
    pub limits: Limits,
}

impl Setup {
    /// `PROVIDER/MODEL`.
    pub fn model_name(&self) -> String {
        format!("{}/{}", self.provider.name, self.model)
    }
}
