//! Bounds of the run, and waits for a provider that are nobody's fault.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Activity, Attempt, Phase, Run, Wait};
use crate::effect::Effect;
use crate::outcome::{Bound, Outcome};
use crate::units::Timestamp;
use crate::verdict::Cause;

/// Added to a stated reset, since clocks differ.
const RESET_MARGIN: Duration = Duration::from_secs(2);
/// The first wait for a limit that names no time; doubled each time in a row.
const GUESS: Duration = Duration::from_mins(5);
/// The first wait for a provider or network that fails; tripled each time in a row.
const BACKOFF: Duration = Duration::from_secs(2);
/// The longest wait for a provider or network that fails.
const BACKOFF_CAP: Duration = Duration::from_mins(5);
/// Waits for a limit in a row, none of which helped, before a person is asked.
const WAITS_IN_A_ROW: u32 = 12;

/// Troubles in a row. Whatever an agent finishes ends them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Trouble {
    provider: u32,
    limit: u32,
    /// Waits that have begun.
    waits: u32,
    pub(super) no_output: u32,
}

impl Trouble {
    /// An agent came to an end of its own.
    pub(super) fn provider_is_well(&mut self) {
        self.provider = 0;
        self.limit = 0;
    }

    pub(super) fn waits(&self) -> u32 {
        self.waits
    }
}

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
            && let Some(spent) = self.usage.cost
            && spent >= max
        {
            return reached(Bound::Cost, format!("{spent} of the cost budget of {max} are spent"));
        }
        let tokens = self.usage.input_tokens.unwrap_or(0).saturating_add(self.usage.output_tokens.unwrap_or(0));
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

    fn calls_to_come(&self) -> u32 {
        u32::try_from(self.attempts.values().filter(|attempt| attempt.will_call()).count()).unwrap_or(u32::MAX)
    }

    /// Waits for the provider, or ends the run if that would take too long. `waits` had begun when the call was made that
    /// met the trouble.
    pub(super) fn wait_for(&mut self, cause: &Cause, waits: u32) -> Vec<Effect> {
        // Several calls that meet the same trouble are one trouble: those made before the last wait for it began met no other.
        let anew = u32::from(self.wait().is_none() && waits == self.trouble.waits);
        if let Activity::Ending(_) | Activity::Ended(_) = self.activity {
            return self.go_on();
        }
        match cause {
            Cause::Limit { resets_at, message } => self.wait_for_limit(*resets_at, message, anew),
            Cause::Provider { message } => self.wait_for_provider(message, anew),
            Cause::Environment { message } => self.end(Outcome::Environment { reason: message.clone() }),
            Cause::Stopped => self.go_on(),
        }
    }

    fn wait_for_limit(&mut self, resets_at: Option<Timestamp>, message: &str, anew: u32) -> Vec<Effect> {
        self.trouble.limit += anew;
        if self.trouble.limit > WAITS_IN_A_ROW {
            return self.end(Outcome::Paused {
                reason: format!("{WAITS_IN_A_ROW} waits for the provider's limit in a row did not help: {message}"),
            });
        }
        let (until, note) = match resets_at {
            Some(at) if at > self.last_at => (at.after(RESET_MARGIN), String::new()),
            stated => {
                let doubled = self.trouble.limit.saturating_sub(1);
                let guess = GUESS.saturating_mul(1 << doubled).min(self.policy.limit_wait);
                let why = if stated.is_some() { "the stated reset has passed" } else { "no reset time was given" };
                (self.last_at.after(guess), format!(" ({why}, so the time is a guess)"))
            }
        };
        let reason = format!("waiting for the provider's limit to reset{note}: {message}");
        if until.since(self.last_at) > self.policy.limit_wait.saturating_add(RESET_MARGIN) {
            return self.end(Outcome::BoundReached {
                bound: Bound::LimitWait,
                reason: format!(
                    "the provider's limit resets later than --limit-wait ({} s) allows: {message}",
                    self.policy.limit_wait.as_secs()
                ),
                resume_at: Some(until),
            });
        }
        self.sleep_until(until, reason)
    }

    fn wait_for_provider(&mut self, message: &str, anew: u32) -> Vec<Effect> {
        self.trouble.provider += anew;
        if self.trouble.provider >= self.policy.provider_retries {
            return self.end(Outcome::Paused {
                reason: format!("{} tries in a row did not get through: {message}", self.trouble.provider),
            });
        }
        let backoff =
            BACKOFF.saturating_mul(3_u32.saturating_pow(self.trouble.provider.saturating_sub(1))).min(BACKOFF_CAP);
        let until = self.last_at.after(self.jittered(backoff));
        self.sleep_until(until, format!("waiting before the next try: {message}"))
    }

    fn sleep_until(&mut self, until: Timestamp, reason: String) -> Vec<Effect> {
        if let Some(outcome) = self.asked_to_end() {
            return self.end(outcome);
        }
        let span = until.since(self.last_at);
        if let Some(max) = self.policy.budget.duration
            && self.active_time.saturating_add(span) > max
        {
            return self.end(Outcome::BoundReached {
                bound: Bound::Duration,
                reason: format!(
                    "a wait of {} s would outlast the {} s of the run: {reason}",
                    span.as_secs(),
                    max.as_secs()
                ),
                resume_at: Some(until),
            });
        }
        if self.wait().is_some_and(|wait| wait.until >= until) {
            return Vec::new();
        }
        self.trouble.waits += u32::from(self.wait().is_none());
        self.activity = Activity::Waiting(Wait { until, reason, span });
        vec![Effect::Sleep { until }]
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
        match &self.activity {
            Activity::Waiting(wait) if self.last_at >= wait.until => {
                self.activity = Activity::Working;
                let mut effects = self.call_the_held();
                effects.extend(self.go_on());
                effects
            }
            Activity::Waiting(wait) => self.sleep_on(wait.clone()),
            _ => Vec::new(),
        }
    }

    /// Makes the calls that were held while the provider was waited for.
    fn call_the_held(&mut self) -> Vec<Effect> {
        let held = |attempt: &Attempt| match &attempt.phase {
            Phase::Held { call, brief } => Some((attempt.id.clone(), *call, brief.clone())),
            _ => None,
        };
        let held: Vec<_> = self.attempts.values().filter_map(held).collect();
        held.into_iter().map(|(id, call, brief)| self.call_agent(&id, call, brief)).collect()
    }

    /// The span, longer by up to a quarter, so that runs do not come back all at once; the same on every replay.
    fn jittered(&self, span: Duration) -> Duration {
        let seed = self
            .id
            .as_str()
            .bytes()
            .fold(u64::from(self.calls), |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let quarters = u32::try_from(seed % 256).unwrap_or(0);
        span + span / 4 * quarters / 256
    }
}
