//! How an agent is named: which client, which of its models, with how much effort.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ids::AgentId;

/// How much a model is to think before it answers, in the words that clients and providers use. The order is that of the
/// words' meaning; what a model makes of one is its provider's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Not at all.
    None,
    /// As little as it can.
    Minimal,
    /// Little.
    Low,
    /// Neither little nor much.
    Medium,
    /// Much.
    High,
    /// More than that.
    XHigh,
    /// As much as it can.
    Max,
}

impl Effort {
    /// All of them, the least first.
    pub const ALL: [Self; 7] = [Self::None, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::XHigh, Self::Max];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }

    fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.as_str() == word)
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An agent as a person names it: `NAME`, `NAME:MODEL`, `NAME:MODEL:EFFORT`, or `NAME::EFFORT` for the client's usual model.
///
/// A model may hold colons of its own. What follows the last colon is an effort only if it is one of the words of [`Effort`],
/// and only behind the place of a model: `amp:high` and `ollama:qwen3:8b` name models. A model whose own name ends in such a
/// part is written with a colon behind it: `local:qwen3:high:`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AgentName {
    /// The client's name.
    pub name: String,
    /// The model as the client calls it; the client's own default if absent.
    pub model: Option<String>,
    /// How much effort it is to take; the client's own default if absent.
    pub effort: Option<Effort>,
}

/// A text that names no agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoAgentName;

impl fmt::Display for NoAgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("write the name of an agent, or NAME:MODEL, NAME:MODEL:EFFORT or NAME::EFFORT")
    }
}

impl std::error::Error for NoAgentName {}

impl FromStr for AgentName {
    type Err = NoAgentName;

    fn from_str(text: &str) -> Result<Self, NoAgentName> {
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name.trim(), Some(rest.trim())),
            None => (text.trim(), None),
        };
        let (model, effort) = match rest.map(|rest| (rest, rest.rsplit_once(':'))) {
            None => (None, None),
            Some((_, Some((model, "")))) => (Some(model), None),
            Some((rest, Some((model, word)))) => match Effort::read(word) {
                Some(effort) => (Some(model).filter(|model| !model.is_empty()), Some(effort)),
                None => (Some(rest), None),
            },
            Some((rest, None)) => (Some(rest), None),
        };
        if name.is_empty() || model.is_some_and(|model| model.is_empty() || model.starts_with(':')) {
            return Err(NoAgentName);
        }
        Ok(Self { name: name.to_owned(), model: model.map(str::to_owned), effort })
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match (&self.model, self.effort) {
            (None, None) => Ok(()),
            (model, Some(effort)) => write!(f, ":{}:{effort}", model.as_deref().unwrap_or_default()),
            (Some(model), None) => {
                let last = model.rsplit_once(':').map(|(_, last)| last);
                let reads_as_more = last.is_some_and(|last| last.is_empty() || Effort::read(last).is_some());
                write!(f, ":{model}{}", if reads_as_more { ":" } else { "" })
            }
        }
    }
}

impl AgentId {
    /// The same client and model whatever the effort: the account and the provider that a limit or a failure is one of.
    #[must_use]
    pub fn without_effort(&self) -> Self {
        match self.as_str().parse::<AgentName>() {
            Ok(name) if name.effort.is_some() => AgentName { effort: None, ..name }.to_string().into(),
            _ => self.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Option<(String, Option<String>, Option<Effort>)> {
        text.parse::<AgentName>().ok().map(|AgentName { name, model, effort }| (name, model, effort))
    }

    #[test]
    fn a_name_has_a_model_and_behind_that_an_effort() {
        for (text, name, model, effort) in [
            ("claude", "claude", None, None),
            ("claude:opus", "claude", Some("opus"), None),
            ("claude:opus:high", "claude", Some("opus"), Some(Effort::High)),
            ("codex::xhigh", "codex", None, Some(Effort::XHigh)),
            ("builtin:anthropic/claude-opus-4-5:low", "builtin", Some("anthropic/claude-opus-4-5"), Some(Effort::Low)),
        ] {
            assert_eq!(parts(text), Some((name.to_owned(), model.map(str::to_owned), effort)), "{text}");
            assert_eq!(text.parse::<AgentName>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_model_keeps_its_own_colons() {
        for (text, model, effort) in [
            ("ollama:qwen3:8b", "qwen3:8b", None),
            ("builtin:ollama/qwen3:8b", "ollama/qwen3:8b", None),
            ("builtin:ollama/qwen3:8b:high", "ollama/qwen3:8b", Some(Effort::High)),
            ("claude:vendor/x:free", "vendor/x:free", None),
            ("claude:opus:High", "opus:High", None),
            ("amp:high", "high", None),
            ("local:qwen3:high:", "qwen3:high", None),
            ("local:qwen3:high:low", "qwen3:high", Some(Effort::Low)),
            ("local:x::", "x:", None),
        ] {
            let name: AgentName = text.parse().unwrap();
            assert_eq!((name.model.as_deref(), name.effort), (Some(model), effort), "{text}");
            assert_eq!(name.to_string(), text);
        }
        assert_eq!("claude:opus:".parse::<AgentName>().unwrap().to_string(), "claude:opus");
    }

    #[test]
    fn what_names_nobody_is_refused() {
        for text in ["", ":opus", "claude:", "claude::", "claude::opus", "::high", " : "] {
            assert_eq!(parts(text), None, "{text:?}");
        }
    }

    #[test]
    fn two_efforts_of_a_model_share_what_its_provider_says() {
        let alike = |a: &str, b: &str| AgentId::from(a).without_effort() == AgentId::from(b).without_effort();
        assert!(alike("claude:opus:low", "claude:opus") && alike("codex::high", "codex"));
        assert!(!alike("claude:opus:low", "claude:sonnet:low") && !alike("amp:high", "amp:low"));
        assert_eq!(AgentId::from("local:m:high:low").without_effort(), "local:m:high:".into());
    }
}
