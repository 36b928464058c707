//! Bounds of the run, and waits for providers that are nobody's fault.

use std::collections::BTreeSet;
use std::time::Duration;

use super::attempt::AfterRevert;
use super::chain::{Prospect, RESET_MARGIN, Until};
use super::{Activity, Attempt, Phase, Run, Wait};
use crate::effect::Effect;
use crate::ids::{AgentId, AttemptId};
use crate::outcome::{Bound, Outcome};
use crate::units::Usd;

/// What a call may use. `None` is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Allowance {
    /// Money.
    pub cost: Option<Usd>,
    /// Tokens read and written.
    pub tokens: Option<u64>,
}

/// Why an attempt is put back that nobody will ever go on with.
const NOBODY: &str = "no agent can be called just now";

impl Run {
    /// The bound that no further call of an agent may pass.
    pub(super) fn bound_reached(&self) -> Option<Outcome> {
        let budget = &self.policy.budget;
        let reached = |bound, reason| Some(Outcome::BoundReached { bound, reason, resume_at: None });
        // An attempt that has begun will call the agent.
        let calls = self.calls.saturating_add(self.calls_to_come());
        if let Some(max) = budget.iterations
            && calls >= max
        {
            return reached(Bound::Iterations, format!("{calls} of {max} iterations are used"));
        }
        if let Some(max) = budget.cost
            && let Some(spent) = self.usage.money()
            && spent >= max
        {
            return reached(Bound::Cost, format!("{spent} of the cost budget of {max} are spent"));
        }
        let tokens = self.usage.tokens();
        if let Some(max) = budget.tokens
            && tokens >= max
        {
            return reached(Bound::Tokens, format!("{tokens} of {max} tokens are used"));
        }
        if let Some(max) = budget.duration
            && self.active_time >= max
        {
            return reached(
                Bound::Duration,
                format!("{} s of {} s are over", self.active_time.as_secs(), max.as_secs()),
            );
        }
        None
    }

    fn begun_stories(&self) -> u32 {
        let begun = self.stories.values().filter(|record| record.attempts > 0).count();
        u32::try_from(begun).unwrap_or(u32::MAX)
    }

    /// The bound on stories leaves room for another one.
    pub(super) fn may_begin_more(&self) -> bool {
        self.policy.budget.stories.is_none_or(|max| self.begun_stories() < max)
    }

    /// All that is left to do are stories beyond the bound on them.
    pub(super) fn stories_used_up(&self) -> Option<Outcome> {
        let max = self.policy.budget.stories.filter(|_| !self.may_begin_more())?;
        let mut ready = self.plan.stories.iter().filter(|story| self.is_ready(story)).peekable();
        ready.peek()?;
        ready.all(|story| !self.is_begun(story)).then(|| Outcome::BoundReached {
            bound: Bound::Stories,
            reason: format!("{} of {max} stories have been begun", self.begun_stories()),
            resume_at: None,
        })
    }

    /// What a call that starts now may use before it is ended: what is left of the budget, and its margin.
    pub fn allowance(&self) -> Allowance {
        let budget = &self.policy.budget;
        let with_margin = |max: u64| max.saturating_add(max.saturating_mul(u64::from(budget.margin)) / 100);
        let spent = self.usage.money().unwrap_or_default();
        Allowance {
            cost: budget.cost.map(|max| Usd(with_margin(max.0).saturating_sub(spent.0))),
            tokens: budget.tokens.map(|max| with_margin(max).saturating_sub(self.usage.tokens())),
        }
    }

    fn calls_to_come(&self) -> u32 {
        u32::try_from(self.attempts.values().filter(|attempt| attempt.will_call()).count()).unwrap_or(u32::MAX)
    }

    /// Nobody of `agents` can be called, and stories wait for them: waits for the first to return, or ends the run if none
    /// does in time. While something is under way, that may still change.
    pub(super) fn hold(&mut self, agents: &[AgentId]) -> Vec<Effect> {
        // Nobody is waited for who could not be called then.
        let bound = || self.bound_reached().filter(|_| self.is_idle());
        if let Some(outcome) = self.asked_to_end().or_else(bound) {
            return self.end(outcome);
        }
        let (limited, Until { at: until, reason, message, .. }) = match self.prospect(agents) {
            Prospect::Resets(agent, until) => (true, self.named(&agent, until)),
            Prospect::TriedAgain(agent, until) => (false, self.named(&agent, until)),
            Prospect::Never(outcome) => {
                // What is under way cannot change that if it holds for the whole chain.
                return match self.prospect(&self.chain) {
                    Prospect::Never(outcome) => self.end(outcome),
                    _ => self.end_if_idle(outcome),
                };
            }
        };
        let span = until.since(self.last_at);
        if limited && span > self.policy.limit_wait.saturating_add(RESET_MARGIN) {
            return self.end_if_idle(Outcome::BoundReached {
                bound: Bound::LimitWait,
                reason: format!(
                    "the provider's limit resets later than --limit-wait ({} s) allows: {message}",
                    self.policy.limit_wait.as_secs()
                ),
                resume_at: Some(until),
            });
        }
        if let Some(max) = self.policy.budget.duration
            && self.active_time.saturating_add(span) > max
        {
            return self.end_if_idle(Outcome::BoundReached {
                bound: Bound::Duration,
                reason: format!(
                    "a wait of {} s would outlast the {} s of the run: {reason}",
                    span.as_secs(),
                    max.as_secs()
                ),
                resume_at: Some(until),
            });
        }
        self.activity = Activity::Waiting(Wait { until, reason, span });
        vec![Effect::Sleep { until }]
    }

    /// Where there are several agents, it is said for which of them the run waits.
    fn named(&self, agent: &AgentId, mut until: Until) -> Until {
        if self.chain.len() > 1 {
            until.reason.insert_str(0, &format!("{agent}: "));
            until.message.insert_str(0, &format!("{agent}: "));
        }
        until
    }

    /// Ends the run, unless something is under way that may change what there is to do.
    fn end_if_idle(&mut self, outcome: Outcome) -> Vec<Effect> {
        if self.is_idle() {
            return self.end(outcome);
        }
        self.activity = Activity::Working;
        // Calls that are held wait for the same agents, and no timer will wake the run up for them.
        self.put_back_the_lost()
    }

    /// Goes on with a wait that is not over.
    pub(super) fn sleep_on(&mut self, mut wait: Wait) -> Vec<Effect> {
        if wait.until.since(self.last_at) > wait.span {
            wait.until = self.last_at.after(wait.span);
        }
        let until = wait.until;
        self.activity = Activity::Waiting(wait);
        vec![Effect::Sleep { until }]
    }

    pub(super) fn woke(&mut self) -> Vec<Effect> {
        self.heed_the_clock();
        match &self.activity {
            Activity::Waiting(wait) if self.last_at >= wait.until => {
                self.activity = Activity::Working;
                let mut effects = self.call_the_held();
                effects.extend(self.go_on());
                effects.extend(self.hold_on());
                effects
            }
            Activity::Waiting(wait) => self.sleep_on(wait.clone()),
            _ => Vec::new(),
        }
    }

    /// Makes the calls that were held, as far as there are agents and places for them by now.
    pub(super) fn call_the_held(&mut self) -> Vec<Effect> {
        let held: Vec<_> = self.attempts.values().filter(|attempt| attempt.is_held()).map(|a| a.id.clone()).collect();
        held.iter().filter_map(|id| self.call_if_possible(id)).collect()
    }

    fn call_if_possible(&mut self, id: &AttemptId) -> Option<Effect> {
        let Phase::Held { call, brief } = &self.attempt(id)?.phase else { return None };
        let agent = self.agent_for_call(id, brief).filter(|_| self.may_work(id))?.clone();
        let (call, brief) = (*call, brief.clone());
        Some(self.call_agent(id, call, agent, brief))
    }

    /// Its call is held, and not only for want of a place.
    pub fn waits_for_agents(&self, attempt: &Attempt) -> bool {
        matches!(&attempt.phase, Phase::Held { brief, .. } if self.agent_for_call(&attempt.id, brief).is_none())
    }

    /// Sees to it that the run wakes up for the calls that are held; if nobody will ever be there to be called for one, its
    /// attempt is put back.
    pub(super) fn hold_on(&mut self) -> Vec<Effect> {
        match self.activity {
            Activity::Working | Activity::Waiting(_) => {}
            // A run that ends waits for nobody.
            Activity::Ending(_) => return self.put_back(Self::waits_for_agents, NOBODY),
            // The next look at what there is to do sees to it.
            Activity::CheckingPlan | Activity::Ended(_) => return Vec::new(),
        }
        let mut effects = self.put_back_the_lost();
        let held = self.held_for();
        if !held.is_empty() {
            effects.extend(self.hold(&held));
        }
        effects
    }

    /// Puts back the attempts whose calls are held for nobody.
    pub(super) fn put_back_the_lost(&mut self) -> Vec<Effect> {
        let lost =
            |attempt: &&Attempt| self.waits_for_agents(attempt) && !self.may_return(self.candidates(&attempt.id.story));
        let lost: Vec<_> = self.attempts.values().filter(lost).map(|attempt| attempt.id.clone()).collect();
        lost.iter().flat_map(|id| self.revert(id, NOBODY, AfterRevert::Again)).collect()
    }

    /// The agents that held calls wait for.
    pub(super) fn held_for(&self) -> Vec<AgentId> {
        let held = self.attempts.values().filter(|attempt| self.waits_for_agents(attempt));
        let all: BTreeSet<&AgentId> = held.flat_map(|attempt| self.candidates(&attempt.id.story)).collect();
        self.chain().iter().filter(|agent| all.contains(agent)).cloned().collect()
    }

    /// One of these agents can be called again before the run may wait no longer.
    fn may_return(&self, agents: &[AgentId]) -> bool {
        let (longest, until) = match self.prospect(agents) {
            Prospect::Resets(_, until) => (self.policy.limit_wait.saturating_add(RESET_MARGIN), until),
            Prospect::TriedAgain(_, until) => (Duration::MAX, until),
            Prospect::Never(_) => return false,
        };
        let span = until.at.since(self.last_at);
        let in_time = self.policy.budget.duration.is_none_or(|max| self.active_time.saturating_add(span) <= max);
        span <= longest && in_time
    }

    /// The span, longer by up to a quarter, so that runs do not come back all at once; the same on every replay.
    pub(super) fn jittered(&self, span: Duration) -> Duration {
        let seed = self
            .id
            .as_str()
            .bytes()
            .fold(u64::from(self.calls), |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let quarters = u32::try_from(seed % 256).unwrap_or(0);
        span + span / 4 * quarters / 256
    }
}
