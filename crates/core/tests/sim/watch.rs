//! What must hold whatever the world does. The executors refuse what must never be asked of them; here is the rest:
//! bounds, stops, guidance, and that the core and the world agree when a run ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ralphloop_core::effect::Effect;
use ralphloop_core::event::{Event, Fact, StopLevel};
use ralphloop_core::evidence::AgentEnd;
use ralphloop_core::graph::wanted;
use ralphloop_core::ids::{AttemptId, StoryId};
use ralphloop_core::outcome::Outcome;
use ralphloop_core::policy::{OnExhausted, Policy};
use ralphloop_core::run::{Activity, Run, StoryState};

use super::world::{Breach, World};

/// Waits in a row that the core allows itself for limits, and one try more.
const LIMITS_IN_A_ROW: u32 = 13;
/// The longest wait for a provider that fails: five minutes and a quarter of it.
const LONGEST_BACKOFF: Duration = Duration::from_secs(375);

#[derive(Default)]
pub(crate) struct Watch {
    /// How soon the run is to stop, since it was taken up.
    stop: Option<StopLevel>,
    pause: bool,
    guidance: BTreeSet<String>,
    /// Which calls' prompts carried a sentence.
    carried: BTreeMap<String, BTreeSet<AttemptId>>,
    /// Attempts that came to a conclusion: charged, blocked, landed.
    concluded: BTreeSet<AttemptId>,
    /// Agents really started.
    pub(crate) calls: u32,
    begun: BTreeMap<StoryId, u32>,
    /// What may have cost an attempt that is not charged.
    excuses: u32,
    /// How often a person acted, so that all attempts are given back.
    renewals: u32,
    limits_in_a_row: u32,
    provider_in_a_row: u32,
}

impl Watch {
    /// Somebody wants the run to stop, and knows that it has been heard.
    pub(crate) fn stop_asked(&mut self, level: Option<StopLevel>) {
        self.stop = self.stop.max(level);
        self.excuses += u32::from(level.is_some());
    }

    /// A fact is in the journal, and the core has taken it in.
    pub(crate) fn taken(&mut self, event: &Event, run: &Run) -> Result<(), Breach> {
        match &event.fact {
            Fact::PauseRequested => self.pause = true,
            Fact::GuidanceAdded { text } => {
                self.guidance.insert(text.clone());
            }
            Fact::CheckpointFailed { .. }
            | Fact::LandingFailed { .. }
            | Fact::RevertFailed { .. }
            | Fact::RepositoryBroken { .. } => self.excuses += 1,
            _ => {}
        }
        for (story, record) in run.records() {
            if record.charged > run.policy().max_retries + 1 {
                return Err(format!("{} is charged {} attempts", story.id, record.charged));
            }
            if record.state == StoryState::Running && run.attempts().all(|a| a.id.story != story.id) {
                return Err(format!("{} is said to run, and no attempt of it is under way", story.id));
            }
        }
        Ok(())
    }

    /// The process is gone, or the run was ended, and it is taken up again.
    pub(crate) fn restarted(&mut self, before: &Activity) {
        self.stop = None;
        self.pause = false;
        self.excuses += 1;
        self.limits_in_a_row = 0;
        self.provider_in_a_row = 0;
        if let Activity::Ended(outcome) | Activity::Ending(outcome) = before
            && matches!(outcome, Outcome::Paused { .. } | Outcome::Failed | Outcome::Environment { .. })
        {
            self.renewals += 1;
        }
    }

    /// How a call really ended.
    pub(crate) fn ended(&mut self, end: &AgentEnd) -> Result<(), Breach> {
        match end {
            AgentEnd::Limit { .. } => self.limits_in_a_row += 1,
            AgentEnd::Overloaded { .. } | AgentEnd::Network { .. } => self.provider_in_a_row += 1,
            AgentEnd::SignIn { .. } | AgentEnd::NoCredit { .. } | AgentEnd::CannotStart { .. } | AgentEnd::Stopped => {}
            _ => {
                (self.limits_in_a_row, self.provider_in_a_row) = (0, 0);
                return Ok(());
            }
        }
        self.excuses += 1;
        if self.limits_in_a_row > LIMITS_IN_A_ROW {
            return Err(format!("{} calls in a row ran into a limit", self.limits_in_a_row));
        }
        Ok(())
    }

    /// An attempt came to a conclusion, as the core's records say.
    pub(crate) fn concluded(&mut self, attempt: &AttemptId) {
        self.concluded.insert(attempt.clone());
    }

    /// What the core asks for.
    pub(crate) fn asked(&mut self, effect: &Effect, policy: &Policy, run: &Run) -> Result<(), Breach> {
        let stopped_now = self.stop == Some(StopLevel::Now);
        match effect {
            Effect::Begin { attempt, .. } => {
                if self.stop.is_some() || self.pause {
                    return Err(format!("{attempt} begins although the run is to stop"));
                }
                let begun = self.begun.entry(attempt.story.clone()).or_default();
                *begun += 1;
                let most = (policy.max_retries + 1) * (self.renewals + 1) + self.excuses;
                if *begun > most {
                    return Err(format!("{attempt} is one attempt too many: {most} are allowed"));
                }
            }
            Effect::StartAgent { attempt, call, brief } => {
                if stopped_now {
                    return Err(format!("{attempt}: an agent is started although the run is to stop at once"));
                }
                if call.0 > policy.max_repairs {
                    return Err(format!("{attempt}: repair {} is one too many", call.0));
                }
                self.calls += 1;
                if policy.budget.iterations.is_some_and(|max| self.calls > max) {
                    return Err(format!("{attempt}: call {} is beyond the bound", self.calls));
                }
                if policy.budget.cost.is_some_and(|max| run.usage().cost.is_some_and(|spent| spent >= max)) {
                    return Err(format!("{attempt}: an agent is started although the money is spent"));
                }
                if self.provider_in_a_row > policy.provider_retries {
                    return Err(format!("{} calls in a row did not get through", self.provider_in_a_row));
                }
                for text in &brief.guidance {
                    let before = self.carried.entry(text.clone()).or_default();
                    if before.iter().any(|a| a == attempt || self.concluded.contains(a)) {
                        return Err(format!("{attempt}: the prompt carries `{text}` again"));
                    }
                    before.insert(attempt.clone());
                }
            }
            Effect::Land { attempt, .. } | Effect::RunCheck { attempt, .. } if stopped_now => {
                return Err(format!("{attempt}: work goes on although the run is to stop at once"));
            }
            Effect::Sleep { until } => {
                let most = policy.limit_wait.saturating_add(Duration::from_secs(2)).max(LONGEST_BACKOFF);
                if until.since(run.last_at()) > most {
                    return Err(format!("a wait of {} s is too long", until.since(run.last_at()).as_secs()));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The run has ended.
    pub(crate) fn over(&self, run: &Run, world: &World) -> Result<(), Breach> {
        let Activity::Ended(outcome) = run.activity() else { return Err("the run did not end".to_owned()) };
        if let Some(process) = &world.process {
            return Err(format!("the run has ended, and something runs for {}", process.attempt()));
        }
        let person_needed = matches!(outcome, Outcome::Paused { .. });
        if world.lane_is_dirty() && !person_needed {
            return Err(format!("the run ended as {outcome:?} and left a dirty lane"));
        }
        self.outcome_is_true(outcome, run, world)?;
        agree(run, world)?;
        for text in &self.guidance {
            let used = self.carried.get(text).is_some_and(|by| by.iter().any(|a| self.concluded.contains(a)));
            if !used && !run.guidance().contains(text) {
                return Err(format!("the guidance `{text}` was lost"));
            }
        }
        let distinct: BTreeSet<&String> = run.learnings().iter().collect();
        if distinct.len() != run.learnings().len() {
            return Err("a learning is kept twice".to_owned());
        }
        Ok(())
    }

    fn outcome_is_true(&self, outcome: &Outcome, run: &Run, world: &World) -> Result<(), Breach> {
        let only = &run.policy().only;
        let open: Vec<&StoryId> = world
            .plan
            .stories
            .iter()
            .filter(|s| if only.is_empty() { wanted(s) } else { only.contains(&s.id) })
            .map(|s| &s.id)
            .filter(|id| !world.is_done(id))
            .collect();
        let named = |text: &str| if text.is_empty() { Err(format!("{outcome:?} names no reason")) } else { Ok(()) };
        match outcome {
            Outcome::Complete if !open.is_empty() => Err(format!("the run says that it is complete; open: {open:?}")),
            Outcome::Failed if open.is_empty() => Err("the run says that it failed, and all is done".to_owned()),
            Outcome::Failed => {
                let unexplained = run.records().find(|(_, r)| {
                    r.selected
                        && !r.state.passed()
                        && r.reason.is_none()
                        && (r.state != StoryState::Pending || run.policy().on_exhausted != OnExhausted::Stop)
                });
                match unexplained {
                    Some((story, record)) => {
                        Err(format!("the run failed; {} is {:?} without a reason", story.id, record.state))
                    }
                    None => Ok(()),
                }
            }
            Outcome::Stopped { .. } if self.stop.is_none() => Err("the run stopped, and nobody asked".to_owned()),
            Outcome::Complete | Outcome::Stopped { .. } => Ok(()),
            Outcome::NothingToDo { reason }
            | Outcome::Paused { reason }
            | Outcome::BoundReached { reason, .. }
            | Outcome::Environment { reason } => named(reason),
        }
    }
}

/// What the core believes of each story is what the repository shows.
fn agree(run: &Run, world: &World) -> Result<(), Breach> {
    for (story, record) in run.records() {
        let commit = world.commit_of(&story.id);
        match (&record.state, commit) {
            (StoryState::Landed { commit: id, ground }, Some(commit))
                if (id, ground) != (&commit.id, &commit.ground) =>
            {
                return Err(format!("{} landed as {} {:?}, not {id} {ground:?}", story.id, commit.id, commit.ground));
            }
            (StoryState::Landed { .. }, Some(_)) => {}
            (StoryState::Landed { .. }, None) => return Err(format!("{} is said to have landed", story.id)),
            (_, Some(commit)) => return Err(format!("{} is on the branch as {}, unknown", story.id, commit.id)),
            (StoryState::DoneBefore, None) if !world.is_done(&story.id) => {
                return Err(format!("{} is said to have been done before", story.id));
            }
            (StoryState::Running, None) => return Err(format!("{} is said to run after the end", story.id)),
            _ => {}
        }
    }
    Ok(())
}
