//! What must hold whatever the world does. The executors refuse what must never be asked of them; here is the rest:
//! bounds, stops, guidance, and that the core and the world agree when a run ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ralphloop_core::effect::{Brief, Effect, Onto};
use ralphloop_core::event::{CheckStage, Event, Fact, StopLevel};
use ralphloop_core::evidence::{AgentEnd, CheckResult};
use ralphloop_core::graph::wanted;
use ralphloop_core::ids::{AgentId, AttemptId, LaneId, StoryId};
use ralphloop_core::outcome::Outcome;
use ralphloop_core::plan::WorkState;
use ralphloop_core::policy::{OnExhausted, Policy};
use ralphloop_core::run::{Activity, Attempt, Phase, Run, StoryRecord, StoryState};
use ralphloop_core::units::Timestamp;

use super::providers::Providers;
use super::relays::Relays;
use super::world::{Breach, World};

/// Attempts of a story in a row that the core lets go without a merge.
const UNMERGED: u32 = 2;
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
    pub(crate) providers: Providers,
    relays: Relays,
    /// Attempts of each story that could not be merged.
    unmerged: BTreeMap<StoryId, u32>,
    /// Something was moved or broken under the run, and it knows.
    halted: bool,
    /// Attempts of which a check failed on a full disk.
    without_room: BTreeSet<AttemptId>,
    /// Proven attempts in the order in which they were.
    proven: Vec<AttemptId>,
    /// Those of them that wait for their turn, and those that did one fact ago.
    queue: Vec<AttemptId>,
    queue_before: Vec<AttemptId>,
    /// Attempts that were brought onto what had not landed yet.
    ahead: BTreeSet<AttemptId>,
    /// For whom the branch stands still.
    turn: Option<AttemptId>,
    restarts: u32,
    repairs: BTreeMap<AttemptId, u32>,
    /// Stories that a person does not want done, and attempts that were under way when they said so.
    skipped: BTreeSet<StoryId>,
    dropped: BTreeSet<AttemptId>,
    /// How often a person gave a story all its attempts back.
    again: BTreeMap<StoryId, u32>,
    /// Stories that a person asked for by name while the run went on.
    wanted: BTreeSet<StoryId>,
    /// The last thing heard was that these are to be tried again.
    to_be_open: BTreeSet<StoryId>,
    sent_back: BTreeMap<AttemptId, u32>,
    /// Attempts in which a task was to be added, and how many were added to each story.
    mending: BTreeSet<AttemptId>,
    pub(crate) mended: BTreeMap<StoryId, u32>,
    /// Attempts whose agents were called after the money was spent, since the run was taken up.
    overspent: BTreeSet<AttemptId>,
}

/// How many attempts may be under way.
fn lanes(policy: &Policy, run: &Run) -> usize {
    Policy { place: run.policy().place, ..policy.clone() }.lanes()
}

impl Watch {
    /// What somebody wants of the run is about to be taken in by it, and they know that it has been heard.
    pub(crate) fn heard(&mut self, said: &Fact, run: Option<&Run>) {
        let record = |story: &StoryId| run.and_then(|run| run.record(story));
        let state = |story: &StoryId| record(story).map(|record| &record.state);
        match said {
            Fact::StopRequested { level, .. } => {
                self.stop = self.stop.max(Some(*level));
                self.excuses += 1;
            }
            Fact::SkipRequested { story } => {
                let open = state(story).is_some_and(|state| !state.is_on_branch() && *state != StoryState::Skipped);
                if open && self.skipped.insert(story.clone()) {
                    self.excuses += 1;
                    let under_way = run.into_iter().flat_map(Run::attempts).find(|attempt| attempt.id.story == *story);
                    self.dropped.extend(under_way.map(|attempt| attempt.id.clone()));
                }
            }
            Fact::RetryRequested { story } => {
                let ends = run.is_some_and(|run| matches!(run.activity(), Activity::Ending(_) | Activity::Ended(_)));
                if !ends {
                    self.wants_again(story, record(story));
                }
            }
            Fact::Restarted { retry, .. } => retry.iter().for_each(|story| self.wants_again(story, record(story))),
            _ => {}
        }
    }

    fn wants_again(&mut self, story: &StoryId, record: Option<&StoryRecord>) {
        self.skipped.remove(story);
        let rests = |record: &StoryRecord| match record.state {
            StoryState::Failed | StoryState::Blocked | StoryState::Skipped => true,
            StoryState::Pending => !record.selected,
            _ => false,
        };
        if record.is_some_and(|record| record.state == StoryState::Pending) {
            // Another selection may have left it out meanwhile.
            self.wanted.insert(story.clone());
        }
        if record.is_some_and(rests) {
            *self.again.entry(story.clone()).or_default() += 1;
            self.wanted.insert(story.clone());
            self.to_be_open.insert(story.clone());
        }
    }

    /// A person wants a story done again that has landed.
    pub(crate) fn sent_back(&mut self, story: &StoryId) {
        *self.again.entry(story.clone()).or_default() += 1;
        self.wanted.insert(story.clone());
        self.to_be_open.insert(story.clone());
    }

    /// A fact is in the journal, and the core has taken it in.
    pub(crate) fn taken(&mut self, event: &Event, run: &Run) -> Result<(), Breach> {
        match &event.fact {
            Fact::PauseRequested => self.pause = true,
            Fact::GuidanceAdded { text } => {
                self.guidance.insert(text.clone());
            }
            Fact::CheckpointFailed { .. }
            | Fact::LaneFailed { .. }
            | Fact::MergeFailed { .. }
            | Fact::LandingFailed { .. }
            | Fact::RevertFailed { .. }
            | Fact::Trespassed { .. }
            | Fact::RepositoryBroken { .. } => self.excuses += 1,
            _ => {}
        }
        self.watch_lanes(run)?;
        for story in std::mem::take(&mut self.to_be_open) {
            // It may be blocked again, or gone from the spec, by what was looked at in the same step.
            let charged = run.record(&story).filter(|r| r.state == StoryState::Failed || r.is_put_aside());
            if charged.is_some() {
                return Err(format!("{story} was to be tried again, and is {:?}", charged.map(|r| &r.state)));
            }
        }
        self.providers.charged(run)?;
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

    /// Who waits for its turn to land, and that no two live in a lane.
    fn watch_lanes(&mut self, run: &Run) -> Result<(), Breach> {
        let waits = |a: &&Attempt| matches!(a.phase, Phase::Queued(_));
        self.queue_before.clone_from(&self.queue);
        self.queue = run.attempts().filter(waits).map(|a| a.id.clone()).collect();
        self.proven.retain(|id| run.attempt(id).is_some());
        for id in &self.queue {
            if !self.proven.contains(id) {
                self.proven.push(id.clone());
            }
        }
        if self.turn.as_ref().is_some_and(|id| run.attempt(id).is_none()) {
            self.turn = None;
        }
        // A repair that waits for its agent makes other work of it, as one that begins does.
        let held = run.attempts().filter(|a| matches!(a.phase, Phase::Held { .. })).map(|a| a.id.clone());
        for id in held.collect::<Vec<_>>() {
            self.release(&id);
        }
        let lanes: BTreeSet<LaneId> = run.attempts().map(|a| a.lane).collect();
        if lanes.len() != run.attempts().len() {
            return Err("two attempts live in one lane".to_owned());
        }
        match run.wait() {
            Some(wait) if wait.reason.is_empty() => Err("the run waits, and does not say for what".to_owned()),
            _ => Ok(()),
        }
    }

    /// The fact changed how far its attempt is.
    pub(crate) fn took_effect(&mut self, fact: &Fact, at: Timestamp, policy: &Policy) {
        self.providers.told(fact, at, policy);
        self.relays.told(fact);
        self.halted |= matches!(fact, Fact::Trespassed { .. } | Fact::RepositoryBroken { .. });
        // What was prepared ahead is checked again, on the branch.
        if let Fact::CheckFinished { attempt, result: CheckResult::NoRoom { .. }, .. } = fact
            && !self.ahead.contains(attempt)
        {
            self.without_room.insert(attempt.clone());
        }
        if let Fact::FixTaskAdded { attempt, .. } = fact {
            *self.mended.entry(attempt.story.clone()).or_default() += 1;
            *self.again.entry(attempt.story.clone()).or_default() += 1;
        }
    }

    /// The attempt waited for its turn to land before the last fact.
    pub(crate) fn was_queued(&self, attempt: &AttemptId) -> bool {
        self.queue_before.contains(attempt)
    }

    /// The process is gone, or the run was ended, and it is taken up again.
    pub(crate) fn restarted(&mut self, run: &Run, policy: &Policy) {
        // What is named with `--story` is wanted, whatever was said before.
        self.skipped.retain(|story| !policy.only.contains(story));
        if !policy.only.is_empty() {
            self.wanted.clear();
        }
        let before = run.activity();
        self.halted = false;
        self.turn = None;
        self.queue.clear();
        self.proven.clear();
        self.ahead.clear();
        self.restarts += 1;
        self.overspent.clear();
        self.stop = None;
        self.pause = false;
        self.excuses += 1;
        self.providers.restarted();
        if let Activity::Ended(outcome) | Activity::Ending(outcome) = before
            && matches!(outcome, Outcome::Paused { .. } | Outcome::Failed | Outcome::Environment { .. })
        {
            self.renewals += 1;
        }
    }

    /// How a call really ended.
    pub(crate) fn ended(&mut self, agent: Option<&AgentId>, end: &AgentEnd, policy: &Policy) -> Result<(), Breach> {
        let Some(agent) = agent else { return Ok(()) };
        self.excuses += u32::from(self.providers.ended(agent, end, policy)?);
        Ok(())
    }

    /// An attempt came to a conclusion, as the core's records say.
    pub(crate) fn concluded(&mut self, attempt: &AttemptId) {
        self.concluded.insert(attempt.clone());
    }

    /// What the core asks for.
    pub(crate) fn asked(&mut self, effect: &Effect, policy: &Policy, run: &Run) -> Result<(), Breach> {
        let stopped_now = self.stop == Some(StopLevel::Now);
        if let Effect::Merge { attempt, .. } = effect
            && !self.proven.contains(attempt)
        {
            self.proven.push(attempt.clone());
        }
        match effect {
            Effect::Begin { attempt, .. }
            | Effect::StartAgent { attempt, .. }
            | Effect::Review { attempt, .. }
            | Effect::Merge { attempt, .. }
            | Effect::Land { attempt, .. }
            | Effect::AddFixTask { attempt, .. }
                if self.halted =>
            {
                return Err(format!("{attempt}: {effect:?}, although something was moved under the run"));
            }
            Effect::StartAgent { attempt, .. }
            | Effect::RunCheck { attempt, .. }
            | Effect::Review { attempt, .. }
            | Effect::Merge { attempt, .. }
            | Effect::Land { attempt, .. }
                if self.without_room.contains(attempt) =>
            {
                return Err(format!("{attempt}: {effect:?}, although a check of it failed for want of room"));
            }
            Effect::Begin { attempt, .. } if self.skipped.contains(&attempt.story) => {
                return Err(format!("{attempt} begins although its story is skipped"));
            }
            Effect::StartAgent { attempt, .. } if self.mending.contains(attempt) => {
                return Err(format!("{attempt}: an agent is started where a task was to be added"));
            }
            Effect::StartAgent { attempt, .. }
            | Effect::Merge { attempt, .. }
            | Effect::Land { attempt, .. }
            | Effect::AddFixTask { attempt, .. }
                if self.dropped.contains(attempt) =>
            {
                return Err(format!("{attempt}: {effect:?}, although its story is skipped"));
            }
            Effect::Begin { attempt, lane } => self.begins(attempt, *lane, policy, run)?,
            Effect::StartAgent { attempt, agent, brief, .. } => {
                if brief.leg.as_ref().is_some_and(|leg| leg.role.agent.as_ref() == Some(agent)) {
                    self.providers.reviews(attempt, agent, run.last_at())?;
                } else {
                    self.providers.called(attempt, agent, policy, run)?;
                }
                self.relays.called(attempt, brief, policy)?;
                if stopped_now {
                    return Err(format!("{attempt}: an agent is started although the run is to stop at once"));
                }
                if let Some(away) = run.away(agent) {
                    return Err(format!("{attempt}: {agent} is called while it is waited for: {}", away.reason()));
                }
                self.release(attempt);
                self.calls_agent(attempt, brief, policy, run)?;
            }
            Effect::Merge { attempt, .. }
            | Effect::Land { attempt, .. }
            | Effect::AddFixTask { attempt, .. }
            | Effect::RunCheck { attempt, .. }
            | Effect::Review { attempt, .. }
                if stopped_now =>
            {
                return Err(format!("{attempt}: work goes on although the run is to stop at once"));
            }
            Effect::RunCheck { attempt, stage: CheckStage::Call(_), .. } => self.relays.judged(attempt, policy)?,
            Effect::Review { attempt, agent, .. } => {
                self.providers.reviews(attempt, agent, run.last_at())?;
                self.counts(attempt, policy, run)?;
            }
            Effect::Merge { attempt, onto: Onto::Candidate(first), .. } => {
                if run.attempt(&first.attempt).is_none() {
                    return Err(format!("{attempt} is to be brought onto {}, which is over", first.attempt));
                }
                self.ahead.insert(attempt.clone());
            }
            Effect::Merge { attempt, .. } => {
                self.ahead.remove(attempt);
                let waited = |id: &&AttemptId| *id == attempt || self.queue_before.contains(id);
                if let Some(first) = self.proven.iter().find(waited).filter(|first| *first != attempt) {
                    return Err(format!("{attempt} lands before {first}, which was proven before it"));
                }
                self.takes_turn(attempt)?;
            }
            Effect::RunCheck { attempt, stage: CheckStage::Merged(_), .. } if !self.ahead.contains(attempt) => {
                self.takes_turn(attempt)?;
            }
            Effect::Land { attempt, .. } => self.takes_turn(attempt)?,
            Effect::AddFixTask { attempt, .. } => self.mends(attempt, policy, run)?,
            Effect::Revert { attempt, reason } => {
                self.release(attempt);
                let excused = reason == "no agent can be called just now" || reason.contains("that it was to review");
                self.excuses += u32::from(excused);
                if reason.starts_with("not merged") {
                    self.excuses += 1;
                    let times = self.unmerged.entry(attempt.story.clone()).or_default();
                    *times += 1;
                    let renewals = self.renewals + self.again.get(&attempt.story).copied().unwrap_or(0);
                    if *times > UNMERGED * (renewals + 1) + self.restarts {
                        return Err(format!("{attempt} is the {times}. attempt of its story that is not merged"));
                    }
                }
            }
            Effect::Sleep { until } => {
                let named = policy.retries.values().flat_map(|retry| &retry.backoff).max().copied().unwrap_or_default();
                let most = policy.limit_wait.saturating_add(Duration::from_secs(2)).max(LONGEST_BACKOFF).max(named);
                if until.since(run.last_at()) > most {
                    return Err(format!("a wait of {} s is too long", until.since(run.last_at()).as_secs()));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn begins(&mut self, attempt: &AttemptId, lane: LaneId, policy: &Policy, run: &Run) -> Result<(), Breach> {
        if self.stop.is_some() || self.pause {
            return Err(format!("{attempt} begins although the run is to stop"));
        }
        if let Some(other) = run.attempts().find(|a| a.lane == lane && a.id != *attempt) {
            return Err(format!("{attempt} begins in {lane:?}, where {} is", other.id));
        }
        let most = lanes(policy, run);
        let lands = most > 1 && run.attempts().any(Attempt::is_on_its_way);
        if run.attempts().len() > most + usize::from(lands) || lane.0 as usize > most {
            return Err(format!("{attempt} begins in {lane:?} beside {} others", run.attempts().len() - 1));
        }
        if run.mends(attempt).is_some() {
            self.mending.insert(attempt.clone());
            return Ok(());
        }
        let begun = self.begun.entry(attempt.story.clone()).or_default();
        *begun += 1;
        let renewals = self.renewals + self.again.get(&attempt.story).copied().unwrap_or(0);
        let most = (policy.max_retries + 1) * (renewals + 1) + self.excuses;
        if *begun > most {
            return Err(format!("{attempt} is one attempt too many: {most} are allowed"));
        }
        Ok(())
    }

    fn calls_agent(&mut self, attempt: &AttemptId, brief: &Brief, policy: &Policy, run: &Run) -> Result<(), Breach> {
        let agents = run.attempts().filter(|a| matches!(a.phase, Phase::Agent { .. } | Phase::Reviewing(_))).count();
        if agents > lanes(policy, run) {
            return Err(format!("{attempt} calls its agent beside {} others", agents - 1));
        }
        if !brief.repair.is_empty() {
            let repairs = self.repairs.entry(attempt.clone()).or_default();
            *repairs += 1;
            if *repairs > policy.max_repairs {
                return Err(format!("{attempt}: repair {repairs} is one too many"));
            }
        }
        if !brief.findings.is_empty() {
            self.providers.may_send_back(attempt)?;
            let times = self.sent_back.entry(attempt.clone()).or_default();
            *times += 1;
            if *times > policy.max_reviews {
                return Err(format!("{attempt} is sent back a {times}. time"));
            }
        }
        self.counts(attempt, policy, run)?;
        for text in &brief.guidance {
            let before = self.carried.entry(text.clone()).or_default();
            // Every role of a relay is told what the user said.
            let relayed = brief.leg.is_some();
            if before.iter().any(|a| (a == attempt && !relayed) || self.concluded.contains(a)) {
                return Err(format!("{attempt}: the prompt carries `{text}` again"));
            }
            before.insert(attempt.clone());
        }
        Ok(())
    }

    /// A task is to be added.
    fn mends(&mut self, attempt: &AttemptId, policy: &Policy, run: &Run) -> Result<(), Breach> {
        self.takes_turn(attempt)?;
        let charged = run.record(&attempt.story).map_or(0, |record| record.charged);
        let wanted = policy.create_tasks || self.restarts > 0;
        if !wanted || charged == 0 || self.mended.contains_key(&attempt.story) || !self.mending.contains(attempt) {
            return Err(format!("{attempt} is to add a task, after {charged} charged attempts"));
        }
        Ok(())
    }

    /// A call is counted, and is within the bounds.
    fn counts(&mut self, attempt: &AttemptId, policy: &Policy, run: &Run) -> Result<(), Breach> {
        self.calls += 1;
        if policy.budget.iterations.is_some_and(|max| self.calls > max) {
            return Err(format!("{attempt}: call {} is beyond the bound", self.calls));
        }
        if policy.budget.cost.is_some_and(|max| run.usage().cost.is_some_and(|spent| spent >= max)) {
            // Those that had begun before it was spent go on.
            self.overspent.insert(attempt.clone());
            if self.overspent.len() >= lanes(policy, run) {
                return Err(format!("{attempt}: an agent is started although the money is spent"));
            }
        }
        Ok(())
    }

    fn release(&mut self, attempt: &AttemptId) {
        self.proven.retain(|id| id != attempt);
        self.ahead.remove(attempt);
        if self.turn.as_ref() == Some(attempt) {
            self.turn = None;
        }
    }

    /// One at a time is merged, checked as merged, and landed.
    fn takes_turn(&mut self, attempt: &AttemptId) -> Result<(), Breach> {
        match &self.turn {
            Some(holder) if holder != attempt => Err(format!("{attempt} is to land while {holder} does")),
            _ => {
                self.turn = Some(attempt.clone());
                Ok(())
            }
        }
    }

    /// The run has ended.
    pub(crate) fn over(&self, run: &Run, world: &World) -> Result<(), Breach> {
        let Activity::Ended(outcome) = run.activity() else { return Err("the run did not end".to_owned()) };
        let person_needed = matches!(outcome, Outcome::Paused { .. });
        for (slot, lane) in world.lanes() {
            if let Some(process) = &lane.process {
                return Err(format!("the run has ended, and something runs for {}", process.attempt()));
            }
            if lane.is_dirty() && !person_needed {
                return Err(format!("the run ended as {outcome:?} and left lane {slot} dirty"));
            }
        }
        if self.halted && !person_needed {
            return Err(format!("something was moved under the run, and it ends as {outcome:?}"));
        }
        kept(run, world)?;
        for story in &self.skipped {
            match run.record(story) {
                Some(r) if r.state.is_on_branch() || (r.state == StoryState::Skipped && r.reason.is_some()) => {}
                Some(r) => return Err(format!("{story} was skipped, and is {:?} ({:?})", r.state, r.reason)),
                None => {}
            }
        }
        self.outcome_is_true(outcome, run, world)?;
        agree(run, world)?;
        for text in &self.guidance {
            let used = self.carried.get(text).is_some_and(|by| by.iter().any(|a| self.concluded.contains(a)));
            if !used && !run.guidance().contains(text) {
                return Err(format!("the guidance `{text}` was lost"));
            }
        }
        let distinct: BTreeSet<&String> = run.learnings().iter().map(|learning| &learning.text).collect();
        if distinct.len() != run.learnings().iter().len() {
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
            .filter(|s| self.wanted.contains(&s.id) || if only.is_empty() { wanted(s) } else { only.contains(&s.id) })
            .map(|s| &s.id)
            .filter(|id| !world.is_done(id))
            .collect();
        let named = |text: &str| if text.is_empty() { Err(format!("{outcome:?} names no reason")) } else { Ok(()) };
        match outcome {
            Outcome::Complete if !open.is_empty() => Err(format!("the run says that it is complete; open: {open:?}")),
            Outcome::Failed if open.is_empty() && !failed_in_vain(run, world) => {
                Err("the run says that it failed, and all is done".to_owned())
            }
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

/// A person took a story out of the spec, or ticked it, while it was worked on, and then it failed.
fn failed_in_vain(run: &Run, world: &World) -> bool {
    let needless = |id: &StoryId| world.plan.story(id).is_none_or(|story| story.state == WorkState::Done);
    run.records().any(|(s, r)| r.state == StoryState::Failed && needless(&s.id))
}

/// What was taken out of a lane is kept, and the run knows where.
fn kept(run: &Run, world: &World) -> Result<(), Breach> {
    // What could not be put back is put back, and kept, when the run is taken up.
    for attempt in world.put_back.iter().filter(|_| !run.is_unclean()) {
        let record = run.record(&attempt.story);
        if !record.is_some_and(|r| r.kept.iter().any(|(number, _)| *number == attempt.number)) {
            return Err(format!("the work of {attempt} was put back, and is kept nowhere"));
        }
    }
    for (story, record) in run.records() {
        let reason = record.reason.as_deref().unwrap_or("");
        if record.state == StoryState::Failed && reason.starts_with("not merged") && !reason.contains("refs/") {
            return Err(format!("{} was not merged, and nobody says where its work is: {reason}", story.id));
        }
    }
    Ok(())
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
            (StoryState::AwaitsSignOff { commit: id, ground }, Some(commit))
                if (id, ground) != (&commit.id, &commit.ground) =>
            {
                return Err(format!("{} awaits a sign-off as {id}, not {}", story.id, commit.id));
            }
            (StoryState::AwaitsSignOff { .. }, Some(_)) if story.needs_sign_off() => {}
            (StoryState::AwaitsSignOff { .. }, _) => return Err(format!("{} is to be signed in vain", story.id)),
            (StoryState::Landed { .. }, Some(_)) if world.awaits_sign_off(&story.id) => {
                return Err(format!("{} is said to be done, and nobody has signed it", story.id));
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
