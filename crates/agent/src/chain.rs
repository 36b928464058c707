//! The agents that a run may call, in the order in which they are preferred.

use ralphloop_core::ids::AgentId;

use crate::client::{Agent, AgentError};

/// One agent or several, the preferred first; no two of them alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    first: Agent,
    others: Vec<Agent>,
}

impl Chain {
    /// Of one agent alone.
    pub fn of(agent: Agent) -> Self {
        Self { first: agent, others: Vec::new() }
    }

    /// The chain with a further agent at its end.
    ///
    /// # Errors
    /// The same agent with the same model is in it already ([`AgentError::Twice`]).
    pub fn then(mut self, agent: Agent) -> Result<Self, AgentError> {
        if self.get(&agent.id()).is_some() {
            return Err(AgentError::Twice { agent: agent.id().to_string() });
        }
        self.others.push(agent);
        Ok(self)
    }

    /// The preferred agent.
    pub fn first(&self) -> &Agent {
        &self.first
    }

    /// All of them, the preferred first.
    pub fn iter(&self) -> impl Iterator<Item = &Agent> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The agent of that name and model.
    pub fn get(&self, id: &AgentId) -> Option<&Agent> {
        self.iter().find(|agent| agent.id() == *id)
    }

    /// What they are called, in order.
    pub fn ids(&self) -> Vec<AgentId> {
        self.iter().map(Agent::id).collect()
    }

    /// Those of which `keep` is true, unless that is none.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(&Agent) -> bool) -> Option<Self> {
        let mut kept = self.iter().filter(|agent| keep(agent)).cloned();
        let first = kept.next()?;
        Some(Self { first, others: kept.collect() })
    }
}

/// As on the command line: `claude:opus,codex`.
impl std::fmt::Display for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids: Vec<String> = self.iter().map(|agent| agent.id().to_string()).collect();
        f.write_str(&ids.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(choices: &[&str]) -> Result<Chain, AgentError> {
        let mut agents = choices.iter().map(|choice| Agent::named(choice).unwrap());
        let first = Chain::of(agents.next().unwrap());
        agents.try_fold(first, Chain::then)
    }

    #[test]
    fn two_models_of_a_client_are_two_agents_and_the_same_twice_is_refused() {
        let both = chain(&["claude:opus", "claude", "codex"]).unwrap();
        assert_eq!(both.to_string(), "claude:opus,claude,codex");
        assert_eq!(both.get(&"claude".into()).unwrap().model, None);
        let error = chain(&["claude:opus", "codex", "claude:opus"]).unwrap_err();
        assert!(error.to_string().contains("claude:opus"), "{error}");
    }

    #[test]
    fn what_is_left_of_a_chain_keeps_its_order_and_is_never_nothing() {
        let all = chain(&["claude", "codex", "gemini"]).unwrap();
        assert_eq!(all.filtered(|agent| agent.name != "claude").unwrap().to_string(), "codex,gemini");
        assert_eq!(all.filtered(|_| false), None);
    }
}
