//! Which agent is called: who of the chain is at hand, who waits for a provider, who needs a person, and how far up the
//! chain each story has moved.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::story::Rest;
use super::{Attempt, Run, StoryState};
use crate::choice::Difficulty;
use crate::evidence::AgentReport;
use crate::ids::{AgentId, StoryId};
use crate::outcome::Outcome;
use crate::units::Timestamp;
use crate::verdict::{AfterAgent, Cause, after_agent};

/// Added to a stated reset, since clocks differ.
pub(super) const RESET_MARGIN: Duration = Duration::from_secs(2);
/// The first wait for a limit that names no time; doubled each time in a row.
const GUESS: Duration = Duration::from_mins(5);
/// The first wait for a provider or network that fails; tripled each time in a row.
const BACKOFF: Duration = Duration::from_secs(2);
/// The longest wait for a provider or network that fails.
const BACKOFF_CAP: Duration = Duration::from_mins(5);
/// Waits for a limit in a row, none of which helped, before a person is asked.
const WAITS_IN_A_ROW: u32 = 12;
/// Attempts in a row without any output that show that the client is broken, not the story.
const SILENT_ATTEMPTS: u32 = 2;

/// How an agent of the chain stands. Whatever it finishes ends its troubles.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Standing {
    away: Option<Away>,
    /// Troubles in a row that no wait helped against: if nobody else is left, a person is asked.
    worn: Option<String>,
    /// Tries in a row that did not get through.
    provider: u32,
    /// Waits for a limit in a row.
    limit: u32,
    /// Troubles that were counted, in a row or not.
    waits: u32,
    /// Attempts in a row without any output.
    no_output: u32,
}

/// Why an agent is not called just now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Away {
    /// A limit of its account.
    Limited(Until),
    /// Its provider or the network fails.
    Failing(Until),
    /// A person has to act before this run calls it again.
    Unusable {
        /// What is wrong and what to do.
        reason: String,
        /// Its set-up is wrong, rather than that it was tried in vain.
        set_up: bool,
    },
}

/// When an agent is called again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Until {
    /// Not before then.
    pub at: Timestamp,
    /// What is waited for, in words.
    pub reason: String,
    /// The client's words.
    pub(super) message: String,
    /// How long it is to take, where the provider named no time: from when the tree is put back.
    rest: Option<Duration>,
    /// How long it may still take, so that a clock that is set back makes it no longer.
    span: Duration,
}

impl Away {
    /// When it is called again, if time alone decides.
    pub fn until(&self) -> Option<&Until> {
        match self {
            Self::Limited(until) | Self::Failing(until) => Some(until),
            Self::Unusable { .. } => None,
        }
    }

    /// Why, in words.
    pub fn reason(&self) -> &str {
        match self {
            Self::Limited(until) | Self::Failing(until) => &until.reason,
            Self::Unusable { reason, .. } => reason,
        }
    }

    fn until_mut(&mut self) -> Option<&mut Until> {
        match self {
            Self::Limited(until) | Self::Failing(until) => Some(until),
            Self::Unusable { .. } => None,
        }
    }

    fn is_over(&self, now: Timestamp) -> bool {
        self.until().is_some_and(|until| until.at <= now)
    }
}

/// What agents that are all away leave to do.
pub(super) enum Prospect {
    /// The limit of this one resets before anything else changes.
    Resets(AgentId, Until),
    /// This one is tried again before anything else changes.
    TriedAgain(AgentId, Until),
    /// None of them can without a person.
    Never(Outcome),
}

impl Run {
    /// The agents that may be called, the preferred first.
    pub fn chain(&self) -> &[AgentId] {
        &self.chain
    }

    /// The same in the order in which they are tried for that story, which evidence may have changed.
    pub fn order(&self, story: &StoryId) -> &[AgentId] {
        let difficulty = self.plan.story(story).map(Difficulty::of);
        let order = difficulty.and_then(|difficulty| self.policy.orders.get(&difficulty));
        // What was ranked for another chain ranks nobody.
        let fits = |order: &&Vec<AgentId>| {
            order.len() == self.chain.len() && order.iter().all(|agent| self.chain.contains(agent))
        };
        order.filter(fits).unwrap_or(&self.chain)
    }

    /// Why an agent is not called just now; nothing if it can be.
    pub fn away(&self, agent: &AgentId) -> Option<&Away> {
        self.standing(agent).and_then(|standing| standing.away.as_ref()).filter(|away| !away.is_over(self.last_at))
    }

    /// How the agent stands, which it does with whatever effort it is asked for.
    fn standing(&self, agent: &AgentId) -> Option<&Standing> {
        self.standings.get(&agent.without_effort())
    }

    fn standing_mut(&mut self, agent: &AgentId) -> &mut Standing {
        self.standings.entry(agent.without_effort()).or_default()
    }

    /// The chain that holds from now on. What was known of how its agents stand stays known if `keep` says so.
    pub(super) fn adopt_chain(&mut self, agents: &[AgentId], shown: &str, keep: bool) {
        let chain = if agents.is_empty() { vec![AgentId::from(shown)] } else { agents.to_vec() };
        if self.chain != chain {
            for record in self.stories.values_mut() {
                (record.rung, record.on_rung) = (0, 0);
            }
            self.chain = chain;
        }
        let was = std::mem::take(&mut self.standings);
        let still_away = |standing: Standing| standing.away.filter(|away| away.until().is_some());
        self.standings = was
            .into_iter()
            .filter(|(agent, _)| keep && self.chain.iter().any(|one| one.without_effort() == *agent))
            .filter_map(|(agent, standing)| {
                Some((agent, Standing { away: Some(still_away(standing)?), ..Standing::default() }))
            })
            .collect();
    }

    /// The agents that the story has not moved past.
    pub(super) fn candidates(&self, story: &StoryId) -> &[AgentId] {
        let rung = self.stories.get(story).map_or(0, |record| record.rung);
        self.order(story).get(rung..).unwrap_or_default()
    }

    /// The agent that an attempt of the story may begin with now.
    pub(super) fn agent_for(&self, story: &StoryId) -> Option<&AgentId> {
        self.candidates(story).iter().find(|agent| self.away(agent).is_none())
    }

    /// The troubles of the agent's provider that were counted so far.
    pub(super) fn waits_of(&self, agent: &AgentId) -> u32 {
        self.standing(agent).map_or(0, |standing| standing.waits)
    }

    /// Nobody of the chain can be called, and a story waits for somebody.
    pub(super) fn is_deserted(&self) -> bool {
        let waits = |record: &super::StoryRecord| record.selected && record.state == StoryState::Pending;
        self.chain.iter().all(|agent| self.away(agent).is_some()) && self.stories.values().any(waits)
    }

    /// Takes in what an ended call tells of its agent's provider; so many of its troubles were known when the call was made.
    pub(super) fn note_end(&mut self, agent: &AgentId, report: &AgentReport, waits: u32) {
        // Several calls that meet the same trouble are one trouble: those made before the last one was counted met no other.
        let anew = self.away(agent).is_none() && waits == self.waits_of(agent);
        match after_agent(report) {
            AfterAgent::Inconclusive(Cause::Limit { resets_at, message }) => {
                self.limited(agent, resets_at, &message, anew);
            }
            AfterAgent::Inconclusive(Cause::Provider { message }) => self.failing(agent, &message, anew),
            AfterAgent::Inconclusive(Cause::Agent { message }) => self.unusable(agent, message, true),
            // Neither says anything of the provider.
            AfterAgent::Inconclusive(Cause::Environment { .. } | Cause::Bound { .. } | Cause::Stopped) => {}
            AfterAgent::RunChecks | AfterAgent::Failed(_) | AfterAgent::Blocked { .. } => {
                if let Some(standing) = self.standings.get_mut(&agent.without_effort()) {
                    (standing.provider, standing.limit, standing.worn) = (0, 0, None);
                }
            }
        }
    }

    fn limited(&mut self, agent: &AgentId, resets_at: Option<Timestamp>, message: &str, anew: bool) {
        let (now, longest) = (self.last_at, self.policy.limit_wait);
        let standing = self.standing_mut(agent);
        standing.limit += u32::from(anew);
        standing.waits += u32::from(anew);
        if standing.limit > WAITS_IN_A_ROW {
            standing.worn =
                Some(format!("{WAITS_IN_A_ROW} waits for the provider's limit in a row did not help: {message}"));
        }
        let (at, rest, note) = match resets_at {
            Some(at) if at > now => (at.after(RESET_MARGIN), None, String::new()),
            stated => {
                let doubled = 1_u32.checked_shl(standing.limit.saturating_sub(1)).unwrap_or(u32::MAX);
                let why = if stated.is_some() { "the stated reset has passed" } else { "no reset time was given" };
                let guess = GUESS.saturating_mul(doubled).min(longest);
                (now.after(guess), Some(guess), format!(" ({why}, so the time is a guess)"))
            }
        };
        let reason = format!("waiting for the provider's limit to reset{note}: {message}");
        self.stay_away(
            agent,
            Away::Limited(Until { at, reason, message: message.to_owned(), rest, span: at.since(now) }),
        );
    }

    fn failing(&mut self, agent: &AgentId, message: &str, anew: bool) {
        let tries = self.policy.provider_retries;
        let standing = self.standing_mut(agent);
        standing.provider += u32::from(anew);
        standing.waits += u32::from(anew);
        if standing.provider >= tries {
            standing.worn = Some(format!("{} tries in a row did not get through: {message}", standing.provider));
        }
        let before = standing.provider.saturating_sub(1);
        let named = &self.policy.provider_backoff;
        let nth = usize::try_from(before).unwrap_or(usize::MAX).min(named.len().saturating_sub(1));
        let usual = BACKOFF.saturating_mul(3_u32.saturating_pow(before)).min(BACKOFF_CAP);
        let backoff = named.get(nth).copied().unwrap_or(usual);
        let span = self.jittered(backoff);
        let reason = format!("waiting before the next try: {message}");
        self.stay_away(
            agent,
            Away::Failing(Until {
                at: self.last_at.after(span),
                reason,
                message: message.to_owned(),
                rest: Some(span),
                span,
            }),
        );
    }

    /// The later of two times holds, and a limit or a person's part is not forgotten for a provider that fails.
    fn stay_away(&mut self, agent: &AgentId, away: Away) {
        let longer = match (self.away(agent), &away) {
            (Some(Away::Unusable { .. }), _) | (Some(Away::Limited(_)), Away::Failing(_)) => false,
            (Some(Away::Limited(known)), Away::Limited(new)) | (Some(Away::Failing(known)), Away::Failing(new)) => {
                new.at > known.at
            }
            _ => true,
        };
        if longer {
            self.standing_mut(agent).away = Some(away);
        }
    }

    /// The tree is put back after a call that met the agent's trouble: a wait of no stated end begins now.
    pub(super) fn wait_begins(&mut self, agent: Option<&AgentId>) {
        let now = self.last_at;
        let standing = agent.and_then(|agent| self.standings.get_mut(&agent.without_effort()));
        if let Some(until) = standing.and_then(|s| s.away.as_mut()).and_then(Away::until_mut)
            && let Some(rest) = until.rest
        {
            (until.at, until.span) = (now.after(rest), rest);
        }
    }

    fn unusable(&mut self, agent: &AgentId, reason: String, set_up: bool) {
        self.standing_mut(agent).away = Some(Away::Unusable { reason, set_up });
    }

    /// An attempt of the agent was charged or blocked its story; `silent` if not a byte came from it.
    pub(super) fn note_attempt(&mut self, agent: Option<&AgentId>, silent: bool) {
        let Some(agent) = agent else { return };
        let standing = self.standing_mut(agent);
        standing.no_output = if silent { standing.no_output + 1 } else { 0 };
        if standing.no_output >= SILENT_ATTEMPTS {
            let reason = format!(
                "the agent produced no output {SILENT_ATTEMPTS} times in a row: the client is broken, not the story; \
                 start it by hand to see why"
            );
            self.unusable(agent, reason, false);
        }
    }

    /// What the clock shows now holds for every wait: none becomes longer than it was to be, and one that is over stays
    /// over, however the clock is set.
    pub(super) fn heed_the_clock(&mut self) {
        let now = self.last_at;
        for record in self.stories.values_mut() {
            record.rest = record.rest.and_then(|Rest { until, span }| {
                let left = until.since(now).min(span);
                (!left.is_zero()).then(|| Rest { until: now.after(left), span: left })
            });
        }
        for standing in self.standings.values_mut() {
            let Some(until) = standing.away.as_mut().and_then(Away::until_mut) else { continue };
            let left = until.at.since(now);
            if left.is_zero() {
                standing.away = None;
            } else if left > until.span {
                until.at = now.after(until.span);
            } else {
                until.span = left;
            }
        }
    }

    /// What there is to hope for if all of these agents are away.
    pub(super) fn prospect(&self, agents: &[AgentId]) -> Prospect {
        let hopeful = |agent: &&AgentId| self.standing(agent).is_none_or(|standing| standing.worn.is_none());
        let returning = agents.iter().filter(hopeful).filter_map(|agent| match self.away(agent)? {
            Away::Limited(until) => Some((until.at, Prospect::Resets(agent.clone(), until.clone()))),
            Away::Failing(until) => Some((until.at, Prospect::TriedAgain(agent.clone(), until.clone()))),
            Away::Unusable { .. } => None,
        });
        if let Some((_, first)) = returning.min_by_key(|(at, _)| *at) {
            return first;
        }
        let several = agents.len() > 1;
        let mut reasons = Vec::new();
        let mut set_up = None;
        for agent in agents {
            let Some(standing) = self.standing(agent) else { continue };
            let (reason, wrong) = match (&standing.away, &standing.worn) {
                (Some(Away::Unusable { reason, set_up }), _) => (reason, *set_up),
                (_, Some(worn)) => (worn, false),
                _ => continue,
            };
            set_up.get_or_insert(wrong);
            reasons.push(if several { format!("{agent}: {reason}") } else { reason.clone() });
        }
        let reason = reasons.join("; ");
        Prospect::Never(if set_up == Some(true) { Outcome::Environment { reason } } else { Outcome::Paused { reason } })
    }

    /// Moves the attempt's story up past the agent that failed at it, which may have stood in for another, to the next one of
    /// the chain that can be used, and says which; nothing if there is none.
    pub(super) fn move_up(&mut self, attempt: &Attempt) -> Option<AgentId> {
        let story = &attempt.id.story;
        let order = self.order(story).to_vec();
        let failed = attempt.agent.as_ref().and_then(|agent| order.iter().position(|one| one == agent));
        let rung = self.stories.get(story)?.rung.max(failed.unwrap_or(0));
        let usable = |agent: &AgentId| !matches!(self.away(agent), Some(Away::Unusable { .. }));
        let next = (rung + 1..order.len()).find(|next| order.get(*next).is_some_and(usable))?;
        let record = self.stories.get_mut(story)?;
        (record.rung, record.on_rung, record.streak) = (next, 0, None);
        order.get(next).cloned()
    }

    /// Stories that have moved up to agents of which none can be used any more. The first names the reason.
    pub(super) fn stranded(&self) -> Option<(StoryId, String)> {
        let unusable = |agent: &AgentId| matches!(self.away(agent), Some(Away::Unusable { .. }));
        self.stories.iter().filter(|(_, r)| r.selected && r.state == StoryState::Pending && r.rung > 0).find_map(
            |(story, record)| {
                let candidates = self.candidates(story);
                let why = candidates.iter().all(unusable).then(|| candidates.first())??;
                let failure = record.failure.clone().unwrap_or_default();
                let away = self.away(why).map(Away::reason).unwrap_or_default();
                Some((story.clone(), format!("{failure}; {why}, which was to try next, cannot be called: {away}")))
            },
        )
    }
}
