//! The reviewers of the world: they approve, object, mumble, fail, and sometimes write where they have nothing to write.

use std::time::Duration;

use ralphloop_core::event::{CheckRef, Fact};
use ralphloop_core::evidence::{AgentEnd, CheckResult, Usage};
use ralphloop_core::ids::{AgentId, AttemptId};
use ralphloop_core::review::{Opinion, ReviewReport};
use ralphloop_core::units::{Timestamp, Usd};

use super::agent::{Dirt, Work};
use super::executors::Started;
use super::lane::{Process, Slot};
use super::rng::Rng;
use super::world::{Breach, World};

impl World {
    pub(crate) fn start_review(
        &mut self,
        rng: &mut Rng,
        (attempt, round, agent): (AttemptId, u32, AgentId),
        slot: Slot,
        now: Timestamp,
    ) -> Result<Started, Breach> {
        if !self.reviewed.insert((attempt.clone(), round)) {
            return Ok(Started::Ignored);
        }
        self.quiet(slot, "a reviewer is started")?;
        self.at_home(&attempt, slot)?;
        self.is_green(&attempt, slot)?;
        let mut report = ReviewReport {
            end: AgentEnd::Finished,
            opinion: opinion(rng),
            usage: Usage { cost: rng.chance(800).then(|| Usd(rng.below(100_000))), ..Usage::default() },
            took: Duration::from_secs(30),
            model: None,
            touched: rng.chance(30),
        };
        if rng.chance(80) {
            report.end = end(rng, now);
            report.opinion = Opinion::Unclear { said: String::new() };
        }
        let (report, seconds) = (Box::new(report), 1 + rng.below(100));
        if self.lane(slot).cancelled.as_ref() == Some(&attempt) {
            return Ok(Started::Answered(ended(attempt, round, agent, report, true)));
        }
        let first = Some(Fact::ReviewStarted { attempt: attempt.clone(), round, agent: agent.clone() });
        self.lane(slot).process = Some(Process::Review { attempt, round, agent, report });
        Ok(Started::Runs { seconds, first })
    }

    /// What is shown to a reviewer has been proven: it is advice, and no check.
    fn is_green(&mut self, attempt: &AttemptId, slot: Slot) -> Result<(), Breach> {
        let tree = self.lane(slot).tree();
        let Some(key) = self.last_call(attempt) else {
            return Err(format!("{attempt} is reviewed before its agent ended"));
        };
        let own = self.pinned.get(&attempt.story).copied().unwrap_or(0);
        let mut checks = (0..self.gates).map(CheckRef::Gate).chain((0..own).map(CheckRef::Story));
        let red =
            checks.find(|check| self.results.get(&(key.clone(), *check, tree.clone())) != Some(&CheckResult::Passed));
        red.map_or(Ok(()), |red| Err(format!("{attempt} is reviewed although {red:?} has not passed on {tree}")))
    }

    /// A reviewer that writes has changed the tree by the time it ends.
    pub(super) fn end_review(
        &mut self,
        slot: Slot,
        (attempt, round, agent): (AttemptId, u32, AgentId),
        report: Box<ReviewReport>,
        stopped: bool,
    ) -> Fact {
        if report.touched && !stopped {
            let work = self.new_work(Work::default());
            let dirt = self.lane(slot).dirt.clone().unwrap_or_else(|| Dirt::new(attempt.clone()));
            self.lane(slot).dirt = Some(Dirt { work, ..dirt });
        }
        ended(attempt, round, agent, report, stopped)
    }
}

fn ended(attempt: AttemptId, round: u32, agent: AgentId, mut report: Box<ReviewReport>, stopped: bool) -> Fact {
    if stopped {
        report.end = AgentEnd::Stopped;
        report.touched = false;
    }
    Fact::ReviewEnded { attempt, round, agent, report }
}

fn opinion(rng: &mut Rng) -> Opinion {
    match rng.below(10) {
        0..=4 => Opinion::Approves,
        5..=8 => Opinion::Objects { findings: vec![format!("finding {}", rng.below(4))] },
        _ => Opinion::Unclear { said: "well".to_owned() },
    }
}

fn end(rng: &mut Rng, now: Timestamp) -> AgentEnd {
    let message = "so says the reviewer's provider".to_owned();
    match rng.below(5) {
        0 => AgentEnd::Limit { resets_at: Some(now.after(Duration::from_secs(60 + rng.below(3000)))), message },
        1 => AgentEnd::Overloaded { message },
        2 => AgentEnd::SignIn { message, remedy: None },
        3 => AgentEnd::Crashed { status: "signal 11".to_owned(), message },
        _ => AgentEnd::NoFinalMessage,
    }
}
