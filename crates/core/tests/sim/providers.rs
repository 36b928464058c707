//! What must hold of the agents of a chain: none is called before its provider's stated reset, none is passed over without
//! a reason, and nothing is charged that is the provider's.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ralphloop_core::event::Fact;
use ralphloop_core::evidence::AgentEnd;
use ralphloop_core::ids::{AgentId, AttemptId, StoryId};
use ralphloop_core::policy::Policy;
use ralphloop_core::review::Opinion;
use ralphloop_core::run::Run;
use ralphloop_core::units::Timestamp;

use super::world::Breach;

/// Waits in a row that the core allows itself for limits, and one try more.
const LIMITS_IN_A_ROW: usize = 13;
/// The longest wait for a provider that fails, five minutes and a quarter, and what the tree takes to be put back.
const BACKOFF: Duration = Duration::from_secs(375 + 600);

#[derive(Default)]
pub(crate) struct Providers {
    /// Before that its provider has said that it refuses the agent.
    refused_until: BTreeMap<AgentId, Timestamp>,
    /// Until then another may be called in its place.
    excused_until: BTreeMap<AgentId, Timestamp>,
    /// Stories that may move up at once: whoever was called for them cannot do it.
    may_move_up: BTreeSet<StoryId>,
    limits_in_a_row: BTreeMap<AgentId, u32>,
    failures_in_a_row: BTreeMap<AgentId, u32>,
    /// Ends of calls that their stories may be charged for.
    chargeable: BTreeMap<StoryId, u32>,
    /// Attempts whose work was sent back by the last review.
    objected: BTreeSet<AttemptId>,
    /// Whoever reads the clock after it has jumped can tell nothing of waits.
    jumped: bool,
}

impl Providers {
    pub(crate) fn clock_jumped(&mut self) {
        self.jumped = true;
    }

    pub(crate) fn restarted(&mut self) {
        self.refused_until.clear();
        self.limits_in_a_row.clear();
        self.failures_in_a_row.clear();
    }

    /// A call has really ended so, wherever the word of it goes; whether nothing of it is the story's.
    pub(crate) fn ended(&mut self, agent: &AgentId, end: &AgentEnd, policy: &Policy) -> Result<bool, Breach> {
        match end {
            AgentEnd::Limit { .. } => *self.limits_in_a_row.entry(agent.clone()).or_default() += 1,
            AgentEnd::Overloaded { .. } | AgentEnd::Network { .. } => {
                *self.failures_in_a_row.entry(agent.clone()).or_default() += 1;
            }
            AgentEnd::SignIn { .. } | AgentEnd::NoCredit { .. } | AgentEnd::CannotStart { .. } | AgentEnd::Stopped => {}
            _ => {
                self.limits_in_a_row.remove(agent);
                self.failures_in_a_row.remove(agent);
                return Ok(false);
            }
        }
        // Those that run when a limit is met meet it too. Where others go on, a limit may be asked after for ever.
        let limits = self.limits_in_a_row.get(agent).copied().unwrap_or(0);
        if policy.agents.len() < 2 && limits as usize > LIMITS_IN_A_ROW * policy.lanes() {
            return Err(format!("{limits} calls of {agent} in a row ran into a limit"));
        }
        Ok(true)
    }

    /// The run has taken in what really happened.
    pub(crate) fn told(&mut self, fact: &Fact, at: Timestamp, policy: &Policy) {
        let (attempt, agent, end) = match fact {
            Fact::AgentEnded { attempt, agent: Some(agent), report, .. } => (attempt, agent, &report.end),
            Fact::ReviewEnded { attempt, agent, report, .. } => {
                self.objected.remove(attempt);
                if matches!(report.opinion, Opinion::Objects { .. }) {
                    self.objected.insert(attempt.clone());
                }
                (attempt, agent, &report.end)
            }
            Fact::Trespassed { attempt, .. } => {
                *self.chargeable.entry(attempt.story.clone()).or_default() += 1;
                return;
            }
            _ => return,
        };
        let excuse = match end {
            AgentEnd::Limit { resets_at: Some(reset), .. } if *reset > at => {
                let until = self.refused_until.entry(agent.clone()).or_insert(*reset);
                *until = (*until).max(*reset);
                reset.after(Duration::from_secs(3))
            }
            AgentEnd::Limit { .. } => at.after(policy.limit_wait.saturating_add(BACKOFF)),
            AgentEnd::Overloaded { .. } | AgentEnd::Network { .. } => at.after(BACKOFF),
            AgentEnd::SignIn { .. } | AgentEnd::NoCredit { .. } | AgentEnd::CannotStart { .. } => Timestamp(i64::MAX),
            AgentEnd::Stopped => return,
            end => {
                *self.chargeable.entry(attempt.story.clone()).or_default() += 1;
                match end {
                    AgentEnd::NoOutput => Timestamp(i64::MAX),
                    AgentEnd::PermissionDenied { .. } | AgentEnd::PromptTooLong { .. } => {
                        self.may_move_up.insert(attempt.story.clone());
                        return;
                    }
                    _ => return,
                }
            }
        };
        let until = self.excused_until.entry(agent.clone()).or_insert(excuse);
        *until = (*until).max(excuse);
    }

    /// Findings are handed to an agent.
    pub(crate) fn may_send_back(&self, attempt: &AttemptId) -> Result<(), Breach> {
        if self.objected.contains(attempt) {
            Ok(())
        } else {
            Err(format!("{attempt}: nobody objected, and it is sent back"))
        }
    }

    /// A reviewer is to be called.
    pub(crate) fn reviews(&self, attempt: &AttemptId, agent: &AgentId, now: Timestamp) -> Result<(), Breach> {
        match self.refused_until.get(agent).filter(|until| !self.jumped && now < **until) {
            Some(_) => Err(format!("{attempt}: {agent} is to review before its limit resets")),
            None => Ok(()),
        }
    }

    /// An agent is to be called.
    pub(crate) fn called(
        &self,
        attempt: &AttemptId,
        agent: &AgentId,
        policy: &Policy,
        run: &Run,
    ) -> Result<(), Breach> {
        let now = run.last_at();
        let troubles =
            (policy.provider_retries as usize + 1) * Policy { place: run.policy().place, ..policy.clone() }.lanes();
        let failed = |agent: &AgentId| self.failures_in_a_row.get(agent).is_some_and(|n| *n as usize >= troubles);
        let chain = run.order(&attempt.story);
        if chain.len() < 2 && failed(agent) {
            return Err(format!("calls of {agent} do not get through, again and again"));
        }
        if self.jumped {
            return Ok(());
        }
        if let Some(until) = self.refused_until.get(agent).filter(|until| now < **until) {
            return Err(format!(
                "{attempt}: {agent} is called {} s before its limit resets",
                until.since(now).as_secs()
            ));
        }
        let charged = run.record(&attempt.story).map_or(0, |record| record.charged);
        if charged >= 2 || self.may_move_up.contains(&attempt.story) {
            return Ok(());
        }
        let excused = |agent: &AgentId| self.excused_until.get(agent).is_some_and(|until| now <= *until);
        match chain.iter().take_while(|other| *other != agent).find(|other| !excused(other)) {
            Some(other) => Err(format!("{attempt}: {agent} is called, and nothing is known against {other}")),
            None => Ok(()),
        }
    }

    /// What the run has charged.
    pub(crate) fn charged(&self, run: &Run) -> Result<(), Breach> {
        for (story, record) in run.records() {
            let most = self.chargeable.get(&story.id).copied().unwrap_or(0);
            if record.charged > most {
                return Err(format!("{} is charged {} attempts, and {most} were its own", story.id, record.charged));
            }
        }
        Ok(())
    }
}
