//! What the agents of the world do: work, lie, fail, crash, hang, run into limits, tick boxes that are not theirs.

use std::collections::BTreeSet;
use std::time::Duration;

use ralphloop_core::evidence::{AgentEnd, AgentReport, Claim, Usage};
use ralphloop_core::ids::{AgentId, AttemptId, StoryId};
use ralphloop_core::units::{Timestamp, Usd};

use super::rng::Rng;
use super::scenario::{Faults, finished};
use super::world::World;

/// What a version of the work is worth: which gates and which checks of its story hold on it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Work {
    pub(crate) gates: [bool; 2],
    pub(crate) checks: [bool; 2],
    /// A gate can no longer be run.
    pub(crate) breaks_gates: bool,
}

/// What an attempt has done to its lane.
#[derive(Debug, Clone)]
pub(crate) struct Dirt {
    pub(crate) owner: AttemptId,
    /// The version of the work; 0 if no file differs.
    pub(crate) work: usize,
    /// Stories whose boxes it ticked in the spec.
    pub(crate) ticks: BTreeSet<StoryId>,
    /// A story that it took out of the spec.
    pub(crate) removed: Option<StoryId>,
    /// It took its own checks out of the spec.
    pub(crate) no_checks: bool,
    /// Files in which a merge's conflicts are marked.
    pub(crate) markers: Vec<String>,
    /// It was to resolve conflicts, and did more.
    pub(crate) strayed: bool,
}

impl Dirt {
    pub(crate) fn new(owner: AttemptId) -> Self {
        Self {
            owner,
            work: 0,
            ticks: BTreeSet::new(),
            removed: None,
            no_checks: false,
            markers: Vec::new(),
            strayed: false,
        }
    }

    /// It has touched anything at all.
    pub(crate) fn any(&self) -> bool {
        self.work != 0 || !self.ticks.is_empty() || self.removed.is_some() || self.no_checks
    }
}

/// One call of an agent, as it will come to pass unless it is ended before.
#[derive(Debug, Clone)]
pub(crate) struct Course {
    /// Seconds until it ends.
    pub(crate) takes: u64,
    pub(crate) report: AgentReport,
    pub(crate) dirt: Dirt,
}

impl Course {
    pub(crate) fn new(
        world: &mut World,
        rng: &mut Rng,
        faults: &Faults,
        before: Dirt,
        (agent, now): (&AgentId, Timestamp),
    ) -> Self {
        let refused = provider_trouble(world, rng, faults, agent, now);
        let starts = refused.is_none();
        let end = refused.unwrap_or_else(|| end(rng, faults));
        let works = starts && !matches!(end, AgentEnd::PermissionDenied { .. } | AgentEnd::PromptTooLong { .. });
        let dirt = match (works, before.markers.is_empty()) {
            (false, _) => before,
            (true, true) => work(world, rng, faults, before),
            (true, false) => resolve(world, rng, faults, before),
        };
        let mut report = finished(claim(rng));
        if end != AgentEnd::Finished {
            report.claim = Claim::None { near_miss: None };
        }
        let takes = match end {
            AgentEnd::Silent { .. } | AgentEnd::NeverSpoke { .. } | AgentEnd::TimedOut { .. } => 600,
            _ => 1 + rng.below(300),
        };
        report.handover = format!("note {}", rng.pick(&["alpha", "alpha", "beta", "gamma"]));
        report.end = end;
        report.took = Duration::from_secs(takes);
        report.usage = usage(rng);
        if rng.chance(100) {
            report.learnings.push(format!("learning {}", rng.below(5)));
        }
        Self { takes, report, dirt }
    }
}

fn usage(rng: &mut Rng) -> Usage {
    let known = rng.chance(700);
    Usage {
        input_tokens: known.then(|| rng.below(2000)),
        output_tokens: known.then(|| rng.below(2000)),
        cost: known.then(|| Usd(rng.below(500_000))),
        ..Usage::default()
    }
}

fn claim(rng: &mut Rng) -> Claim {
    let reason = format!("reason {}", rng.pick(&["alpha", "beta", "gamma"]));
    match rng.below(20) {
        0..=12 => Claim::Complete,
        13..=15 => Claim::Failed { reason },
        16 => Claim::Blocked { reason },
        17 => Claim::None { near_miss: Some("COMPLETE".to_owned()) },
        _ => Claim::None { near_miss: None },
    }
}

fn provider_trouble(
    world: &mut World,
    rng: &mut Rng,
    faults: &Faults,
    agent: &AgentId,
    now: Timestamp,
) -> Option<AgentEnd> {
    let message = format!("so says the provider of {agent}");
    let provider = world.providers.entry(agent.clone()).or_default();
    if provider.closed {
        return Some(AgentEnd::SignIn { message, remedy: None });
    }
    if provider.limited_until.is_some_and(|until| until > now) {
        let resets_at = match rng.below(3) {
            0 => None,
            1 => Some(Timestamp(now.0 - 1000)),
            _ => provider.limited_until,
        };
        return Some(AgentEnd::Limit { resets_at, message });
    }
    if provider.overloaded > 0 {
        provider.overloaded -= 1;
        return Some(AgentEnd::Overloaded { message });
    }
    if !rng.chance(faults.provider) {
        return None;
    }
    Some(match rng.below(9) {
        0..=2 => {
            let until = now.after(Duration::from_secs(60 + rng.below(30_000)));
            provider.limited_until = Some(until);
            AgentEnd::Limit { resets_at: rng.chance(600).then_some(until), message }
        }
        3 | 4 => {
            provider.overloaded = rng.below(8);
            AgentEnd::Overloaded { message }
        }
        5 => AgentEnd::Network { message },
        6 => {
            provider.closed = true;
            AgentEnd::SignIn { message, remedy: None }
        }
        7 => AgentEnd::NoCredit { message },
        _ => AgentEnd::CannotStart { message },
    })
}

fn end(rng: &mut Rng, faults: &Faults) -> AgentEnd {
    if !rng.chance(faults.bad_end) {
        return AgentEnd::Finished;
    }
    let message = format!("message {}", rng.below(3));
    let after = Duration::from_mins(10);
    match rng.below(11) {
        0 => AgentEnd::NoFinalMessage,
        1 => AgentEnd::NoOutput,
        2 => AgentEnd::Error { message },
        3 => AgentEnd::Crashed { status: "signal 11".to_owned(), message },
        4 => AgentEnd::NeverSpoke { after },
        5 => AgentEnd::Silent { after, last_output: message },
        6 => AgentEnd::TimedOut { after },
        7 => AgentEnd::Looped { call: message, times: 9 },
        8 => AgentEnd::PermissionDenied { tools: vec![message] },
        9 => AgentEnd::PromptTooLong { message },
        _ => AgentEnd::Finished,
    }
}

/// What the call leaves in the lane.
fn work(world: &mut World, rng: &mut Rng, faults: &Faults, mut dirt: Dirt) -> Dirt {
    let lies = rng.chance(faults.lie);
    if !lies || rng.chance(600) {
        let good = |rng: &mut Rng| !lies && rng.chance(930);
        let work = Work { gates: [good(rng), good(rng)], checks: [good(rng), good(rng)], breaks_gates: rng.chance(10) };
        // An agent at its wits' end does the very same again.
        let same = rng.chance(150).then_some(world.last_work).filter(|last| *last != 0);
        dirt.work = same.unwrap_or_else(|| world.new_work(work));
    }
    if rng.chance(600) {
        dirt.ticks.insert(dirt.owner.story.clone());
    }
    if lies && rng.chance(300) {
        let other = rng.pick(&world.plan.stories).id.clone();
        dirt.ticks.insert(other);
    }
    if lies && rng.chance(150) {
        dirt.removed = Some(rng.pick(&world.plan.stories).id.clone());
    }
    dirt.no_checks |= lies && rng.chance(150);
    dirt
}

/// What a call that is to resolve conflicts leaves in the lane.
fn resolve(world: &mut World, rng: &mut Rng, faults: &Faults, mut dirt: Dirt) -> Dirt {
    let lies = rng.chance(faults.lie);
    let good = |rng: &mut Rng| !lies && rng.chance(930);
    let work = Work { gates: [good(rng), good(rng)], checks: [good(rng), good(rng)], breaks_gates: false };
    dirt.work = world.new_work(work);
    // Marks in a text that nothing checks break nothing.
    if !rng.chance(faults.lie / 2 + 50) {
        dirt.markers.clear();
    }
    dirt.strayed = rng.chance(faults.lie / 4 + 20);
    dirt
}
