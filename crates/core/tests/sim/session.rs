//! The decision loop in small: one queue of what is under way, the journal, the core, and death at any step.

use std::collections::BTreeMap;
use std::mem::Discriminant;
use std::time::Duration;

use ralphloop_core::effect::Effect;
use ralphloop_core::event::{Event, Fact, PlanChange, StopCause, StopLevel};
use ralphloop_core::ids::{AttemptId, CommitId, RunId, StoryId};
use ralphloop_core::policy::{Place, Policy};
use ralphloop_core::run::{Activity, Phase, Run, StoryState};
use ralphloop_core::units::Timestamp;

use super::Tally;
use super::disk::{User, Walked, Walker};
use super::executors::Started;
use super::lane::{Process, Slot};
use super::planted::{Awaited, Moment, Planted};
use super::rng::Rng;
use super::scenario::{Scenario, jobs};
use super::watch::Watch;
use super::world::{Breach, World};

/// Steps after which a run is said not to end. The longest honest ones take a tenth of it.
const ENDLESS: u64 = 20_000;
/// Deaths per world; then it lets the run live.
const MOST_CRASHES: u64 = 12;
/// How often an ended run is taken up again at most.
const MOST_RESUMES: u32 = 3;

/// Something that is under way.
enum Action {
    /// An effect that its executor has not begun, and for which lane.
    Do(Effect, Slot),
    /// A fact that has not reached the loop.
    Tell(Fact),
    /// What runs in a lane comes to its end; the number tells it from earlier ones.
    EndProcess { slot: Slot, number: u64, stopped: bool },
}

pub(crate) struct Session {
    rng: Rng,
    scenario: Scenario,
    policy: Policy,
    world: World,
    watch: Watch,
    run: Option<Run>,
    journal: Vec<Event>,
    queue: BTreeMap<(u64, u64), Action>,
    /// Milliseconds that have really passed.
    elapsed: u64,
    /// What the clock shows beyond that.
    clock_error: i64,
    sequence: u64,
    processes: u64,
    /// Each lane has an executor of its own, which begins nothing before what was asked for before it.
    serial: BTreeMap<Slot, u64>,
    /// When the last word of what each lane did to the branch comes.
    said: BTreeMap<Slot, u64>,
    /// Facts of the dead process that may yet turn up.
    leftovers: Vec<Fact>,
    awaited: Awaited,
    resumes: u32,
    sentences: u32,
    restarting: bool,
    /// The run was taken up, and has not begun an attempt since.
    commands_may_change: bool,
    tally: Tally,
    planted: Option<Planted>,
    trace: Option<Vec<String>>,
    /// What was really told last, whatever was taken down.
    honest: Option<Fact>,
}

impl Session {
    pub(crate) fn new(seed: u64, planted: Option<Planted>, traced: bool) -> Self {
        let mut rng = Rng::new(seed);
        let scenario = Scenario::new(&mut rng);
        let world = World::new(&scenario, &mut rng, planted);
        Self {
            policy: scenario.policy.clone(),
            rng,
            scenario,
            world,
            watch: Watch::default(),
            run: None,
            journal: Vec::new(),
            queue: BTreeMap::new(),
            elapsed: 0,
            clock_error: 1_750_000_000_000,
            sequence: 0,
            processes: 0,
            serial: BTreeMap::new(),
            said: BTreeMap::new(),
            leftovers: Vec::new(),
            awaited: Awaited::new(),
            resumes: 0,
            sentences: 0,
            restarting: false,
            commands_may_change: false,
            tally: Tally::default(),
            planted,
            trace: traced.then(Vec::new),
            honest: None,
        }
    }

    pub(crate) fn into_trace(self) -> Vec<String> {
        self.trace.unwrap_or_default()
    }

    pub(crate) fn play(mut self) -> Result<Tally, Breach> {
        self.play_on()?;
        self.tally.calls = u64::from(self.watch.calls);
        self.tally.landed = self.world.commits.len() as u64;
        let met = &self.world.meetings;
        (self.tally.merges, self.tally.conflicts, self.tally.resolved) = (met.merges, met.conflicts, met.resolved);
        self.tally.ahead = met.ahead;
        (self.tally.signed, self.tally.sent_back) = (self.world.signed, self.world.sent_back.len() as u64);
        self.tally.mended = self.watch.mended.len() as u64;
        self.tally.disk = self.world.disk.sights;
        Ok(self.tally)
    }

    /// Plays the world to its end.
    pub(crate) fn play_on(&mut self) -> Result<(), Breach> {
        self.note(|s| format!("policy {:?}", s.policy));
        for story in self.scenario.plan.stories.clone() {
            self.note(|_| format!("story {} after {:?}, {} checks", story.id, story.deps, story.checks.len()));
        }
        self.take(Fact::RunStarted {
            run: RunId::from("r"),
            plan: Box::new(self.scenario.plan.clone()),
            policy: Box::new(self.policy.clone()),
            branch: "refs/heads/main".to_owned(),
            base: CommitId::from("base"),
            agent: "scripted".to_owned(),
            unsigned: Vec::new(),
        })?;
        loop {
            if matches!(self.run().activity(), Activity::Ended(_)) {
                self.watch.over(self.run(), &self.world)?;
                self.same_on_replay()?;
                self.close()?;
                if self.resumes == MOST_RESUMES || self.rng.chance(400) {
                    return Ok(());
                }
                self.resume()?;
                continue;
            }
            let Some(((time, _), action)) = self.queue.pop_first() else {
                return Err(format!("nothing is under way, and the run has not ended: {:?}", self.run().activity()));
            };
            self.tally.steps += 1;
            if self.tally.steps > ENDLESS {
                return Err("the run does not end".to_owned());
            }
            self.elapsed = self.elapsed.max(time);
            self.disturb();
            if self.rng.chance(self.scenario.faults.neighbour) {
                self.neighbour(false)?;
            }
            if self.dies(4) {
                self.crash()?;
                continue;
            }
            match action {
                Action::Do(effect, slot) => self.carry_out(effect, slot)?,
                Action::Tell(fact) => self.take(fact)?,
                Action::EndProcess { slot, number, stopped } => {
                    if number == self.world.lane(slot).number {
                        self.end_process(slot, stopped)?;
                    }
                }
            }
        }
    }

    fn run(&self) -> &Run {
        self.run.as_ref().expect("the run was started first")
    }

    fn note(&mut self, line: impl FnOnce(&Self) -> String) {
        if self.trace.is_some() {
            let line = format!("{:>9.3} s  {}", Duration::from_millis(self.elapsed).as_secs_f64(), line(self));
            self.trace.get_or_insert_default().push(line);
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.clock_error.saturating_add_unsigned(self.elapsed))
    }

    fn later(&mut self, millis: u64, action: Action) {
        self.sequence += 1;
        self.queue.insert((self.elapsed + millis, self.sequence), action);
    }

    fn soon(&mut self, fact: Fact) {
        let delay = self.rng.below(50);
        self.later(delay, Action::Tell(fact));
    }

    /// Whether the process dies here; a part of the scenario's rate, as there are several places in each step.
    fn dies(&mut self, part: u64) -> bool {
        self.tally.crashes < MOST_CRASHES && self.rng.chance(self.scenario.faults.crash / part)
    }

    /// People and clocks.
    fn disturb(&mut self) {
        if self.rng.chance(self.scenario.faults.clock) {
            let jump = i64::try_from(self.rng.below(40_000_000)).unwrap_or(0) - 20_000_000;
            self.clock_error += jump;
            self.watch.providers.clock_jumped();
            self.note(|_| format!("the clock jumps by {} s", jump / 1000));
        }
        if !self.rng.chance(self.scenario.faults.control) {
            return;
        }
        self.sentences += 1;
        let text = format!("sentence {}", self.sentences);
        let cause = *self.rng.pick(&[StopCause::Hup, StopCause::Int, StopCause::Term, StopCause::Request]);
        let stories: Vec<StoryId> = self.run().plan().stories.iter().map(|story| story.id.clone()).collect();
        let story = if stories.is_empty() { StoryId::from("none") } else { self.rng.pick(&stories).clone() };
        let fact = match self.rng.below(14) {
            0 => Fact::StopRequested { cause, level: StopLevel::AfterAttempt },
            1 => Fact::StopRequested { cause, level: StopLevel::Now },
            2 => Fact::PauseRequested,
            10 | 11 => Fact::SkipRequested { story },
            12 | 13 => Fact::RetryRequested { story },
            3 => Fact::LearningAdded { text: format!("learning {}", self.sentences % 4) },
            _ => Fact::GuidanceAdded { text },
        };
        self.soon(fact);
    }

    /// One turn of the loop: journal, step, effects.
    fn take(&mut self, mut fact: Fact) -> Result<(), Breach> {
        self.honest = Some(fact.clone());
        let said = fact.clone();
        if let Some(planted) = self.planted {
            planted.distort(&mut fact, self.run.as_ref(), &self.awaited);
        }
        if self.dies(2) && self.run.is_some() {
            self.leftovers.push(fact);
            return self.crash();
        }
        if may_be_doubled(&fact) && self.rng.chance(self.scenario.faults.doubled) {
            let delay = *self.rng.pick(&[1, 1_000, 60_000, 400_000]);
            self.later(delay, Action::Tell(fact.clone()));
        }
        let restarted = matches!(fact, Fact::Restarted { .. });
        let event = Event { at: self.now(), fact };
        self.note(|_| format!("<- {:?}", event.fact));
        if self.planted == Some(Planted::ActsBeforeTheJournal) && self.run.is_some() {
            self.heard(&said);
            return self.act_first(event);
        }
        self.journal.push(event.clone());
        self.heard(&said);
        let effects = self.step(&event)?;
        if self.dies(2) && !restarted {
            return self.crash();
        }
        self.dispatch(effects, restarted)
    }

    /// Somebody knows that they were heard.
    fn heard(&mut self, said: &Fact) {
        self.watch.heard(said, self.run.as_ref());
        let Some(run) = &self.run else { return };
        let unsigned = |story: &&StoryId| {
            let state = run.record(story).map(|record| &record.state);
            matches!(state, Some(StoryState::AwaitsSignOff { .. }))
        };
        // What landed when the process died is taken in before that is asked for.
        let landed = |story: &&StoryId| unsigned(story) || self.world.awaits_sign_off(story);
        let ends = matches!(run.activity(), Activity::Ending(_) | Activity::Ended(_));
        let back: Vec<StoryId> = match said {
            Fact::RetryRequested { story } if !ends => [story].into_iter().filter(unsigned).cloned().collect(),
            Fact::Restarted { retry, .. } => retry.iter().filter(landed).cloned().collect(),
            _ => Vec::new(),
        };
        for story in back {
            // It did land, whatever comes then.
            if let Some(attempt) = self.world.send_back(&story) {
                self.watch.concluded(&attempt);
            }
            self.watch.sent_back(&story);
        }
    }

    /// The planted bug: what follows is done at once, and only then does the cause become durable.
    fn act_first(&mut self, event: Event) -> Result<(), Breach> {
        let before = self.run.clone();
        for effect in self.step(&event)? {
            self.watch.asked(&effect, &self.policy, self.run.as_ref().expect("the run was started"))?;
            let slot = self.slot(&effect)?;
            self.carry_out(effect, slot)?;
        }
        if self.dies(1) {
            self.run = before;
            return self.crash();
        }
        self.journal.push(event);
        Ok(())
    }

    fn step(&mut self, event: &Event) -> Result<Vec<Effect>, Breach> {
        let under_way: Vec<(AttemptId, u32)> = match (&self.run, event.fact.attempt()) {
            (Some(run), Some(id)) => run.attempt(id).into_iter().map(|a| (a.id.clone(), self.charged(&a.id))).collect(),
            (Some(run), None) if matches!(event.fact, Fact::Restarted { .. }) => {
                run.attempts().map(|a| (a.id.clone(), self.charged(&a.id))).collect()
            }
            _ => Vec::new(),
        };
        let phase = self.phase_of(&event.fact);
        let looks = self.run.as_ref().is_some_and(|run| *run.activity() == Activity::CheckingPlan);
        let effects = if let Some(run) = &mut self.run {
            run.step(event)
        } else {
            let (run, effects) = Run::start(event).map_err(|_| "not a run".to_owned())?;
            self.run = Some(run);
            effects
        };
        for (attempt, charged) in under_way {
            self.conclude(&attempt, charged);
        }
        let read = matches!(event.fact, Fact::PlanChecked { spec: PlanChange::Same | PlanChange::Changed { .. } });
        if self.commands_may_change && (looks && read || effects.iter().any(|e| matches!(e, Effect::Begin { .. }))) {
            self.commands_may_change = false;
            self.world.pin_anew();
        }
        if phase.is_some() && phase != self.phase_of(&event.fact) {
            let honest = self.honest.take();
            self.watch.took_effect(honest.as_ref().unwrap_or(&event.fact), event.at, &self.policy);
        }
        let run = self.run.as_ref().expect("the run was started");
        self.watch.taken(event, run)?;
        Ok(effects)
    }

    /// The phase of the attempt that the fact is about.
    fn phase_of(&self, fact: &Fact) -> Option<Discriminant<Phase>> {
        let attempt = self.run.as_ref()?.attempt(fact.attempt()?)?;
        Some(std::mem::discriminant(&attempt.phase))
    }

    fn charged(&self, attempt: &AttemptId) -> u32 {
        self.run().record(&attempt.story).map_or(0, |r| r.charged)
    }

    /// Tells the watch if the attempt that was under way is over for good.
    fn conclude(&mut self, attempt: &AttemptId, charged: u32) {
        let Some(record) = self.run().record(&attempt.story) else { return };
        let over = record.charged > charged || record.state.is_on_branch() || record.state == StoryState::Blocked;
        if over {
            self.watch.concluded(attempt);
        }
    }

    fn dispatch(&mut self, effects: Vec<Effect>, restarted: bool) -> Result<(), Breach> {
        for effect in effects {
            let (effects, facts) = match self.planted {
                Some(planted) => {
                    let was_queued = effect.attempt().is_some_and(|a| self.watch.was_queued(a));
                    let restarted = restarted || self.restarting;
                    planted.twist(effect, &Moment { restarted, was_queued, run: self.run() })
                }
                None => (vec![effect], Vec::new()),
            };
            for effect in effects {
                self.note(|_| format!("-> {effect:?}"));
                self.watch.asked(&effect, &self.policy, self.run.as_ref().expect("the run was started"))?;
                if let Effect::RunCheck { attempt, stage, check, .. } = &effect {
                    self.awaited.insert(attempt.clone(), (*stage, *check));
                }
                if let Effect::Begin { attempt, .. } = &effect {
                    self.world.may_begin(attempt, self.run().plan())?;
                    self.world.keeps_apart(attempt, self.run())?;
                }
                if effect == Effect::CheckPlan {
                    self.world.edit_spec(&mut self.rng, &self.scenario.faults);
                }
                let slot = self.slot(&effect)?;
                // What was read of a spec twice may be old the second time, which is nobody's fault.
                let twice = self.rng.chance(self.scenario.faults.asked_twice)
                    && (effect != Effect::CheckPlan || self.run().policy().place == Place::Checkout);
                if twice {
                    self.hand_over(effect.clone(), slot);
                }
                self.hand_over(effect, slot);
            }
            for fact in facts {
                self.soon(fact);
            }
        }
        Ok(())
    }

    /// For which lane an effect is. What is for none is for the user's checkout.
    fn slot(&self, effect: &Effect) -> Result<Slot, Breach> {
        let Some(attempt) = effect.attempt() else { return Ok(0) };
        let lane = match effect {
            Effect::Begin { lane, .. } => Some(*lane),
            _ => self.run().lane_of(attempt),
        };
        let Some(lane) = lane else { return Err(format!("{effect:?} is asked for, and {attempt} is in no lane")) };
        match self.run().policy().place {
            Place::Checkout if lane.0 == 0 => Ok(0),
            Place::Checkout => Err(format!("{effect:?} is asked for in {lane:?}, and there is one checkout")),
            Place::Worktrees => Ok(1 + lane.0 as usize),
        }
    }

    /// Gives the effect to its executor, which begins in order.
    fn hand_over(&mut self, effect: Effect, slot: Slot) {
        let soonest = self.elapsed + self.rng.below(20);
        let begins = self.serial.get(&slot).map_or(soonest, |before| soonest.max(*before));
        self.serial.insert(slot, begins);
        self.later(begins - self.elapsed, Action::Do(effect, slot));
    }

    /// Our process at its steps on the disk.
    fn walker(&self) -> Walker {
        let risk = if self.tally.crashes < MOST_CRASHES { self.scenario.faults.crash / 4 } else { 0 };
        Walker { user: User::Us, risk }
    }

    /// Gives the worktrees back once the run has ended. Whoever starts next finds what a death leaves of that.
    fn close(&mut self) -> Result<(), Breach> {
        let (walker, mut named) = (self.walker(), Vec::new());
        let closed = self.world.close(&mut self.rng, &self.scenario.faults, walker, &mut named)?;
        self.note(|_| format!("the lanes are closed: {closed:?}, and {named:?} stay"));
        if closed == Walked::Died {
            self.tally.crashes += 1;
        } else {
            self.world.nothing_is_left(&named)?;
        }
        self.world.disk.forget_what_is_open();
        if self.rng.chance(300) {
            self.neighbour(true)?;
        }
        Ok(())
    }

    /// The run of somebody else in the same repository.
    fn neighbour(&mut self, are_we_dead: bool) -> Result<(), Breach> {
        self.world.other_acts(&mut self.rng, &self.scenario.faults, are_we_dead)?;
        self.note(|s| format!("the other run is {:?}", s.world.other));
        Ok(())
    }

    /// A worktree for what is to be done in that lane. Nothing, if the effect is answered or the process has died.
    fn reach(&mut self, effect: &Effect, slot: Slot) -> Result<bool, Breach> {
        let attempt = match effect {
            Effect::StopWork { .. } | Effect::StopCheck { .. } | Effect::Prepare { .. } => return Ok(true),
            _ => effect.attempt().filter(|_| slot != 0).cloned(),
        };
        let Some(attempt) = attempt else { return Ok(true) };
        let walker = self.walker();
        match self.world.open(&mut self.rng, &self.scenario.faults, walker, slot)? {
            Walked::Through => Ok(true),
            Walked::Died => {
                self.crash()?;
                Ok(false)
            }
            Walked::Stuck(why) => {
                let why = why.to_owned();
                self.soon(match effect {
                    Effect::Begin { .. } => Fact::LaneFailed { attempt, why },
                    Effect::Revert { .. } | Effect::Settle { .. } => Fact::RevertFailed { attempt, why },
                    _ => Fact::RepositoryBroken { attempt, why },
                });
                Ok(false)
            }
        }
    }

    fn carry_out(&mut self, effect: Effect, slot: Slot) -> Result<(), Breach> {
        if !self.reach(&effect, slot)? {
            return Ok(());
        }
        let now = self.now();
        let Self { world, rng, scenario, run, .. } = self;
        let faults = &scenario.faults;
        let fact = match effect {
            Effect::CheckPlan => world.check_plan(run.as_ref().expect("the run was started").plan())?,
            Effect::Begin { attempt, .. } => world.begin(rng, faults, attempt, slot)?,
            Effect::Checkpoint { attempt } => world.checkpoint(rng, faults, attempt, slot)?,
            Effect::Inspect { attempt, call, resolves } => {
                world.inspect(rng, faults, (attempt, call, slot), &resolves)?
            }
            Effect::Revert { attempt, .. } => world.revert(rng, faults, attempt, slot)?,
            Effect::Merge { .. } if slot == 0 => return Err("a merge is asked for in the user's checkout".to_owned()),
            Effect::Merge { attempt, call, number, onto } => {
                let fact = world.merge(rng, faults, (attempt, call, slot), (number, onto))?;
                self.in_a_while(fact, slot);
                return Ok(());
            }
            Effect::Land { attempt, call, ground } => {
                let fact = world.land(rng, faults, (attempt, call, slot), ground)?;
                self.in_a_while(fact, slot);
                return Ok(());
            }
            Effect::AddFixTask { attempt, fix } => {
                let fact = world.add_fix_task(rng, faults, (attempt, slot), &fix)?;
                self.in_a_while(fact, slot);
                return Ok(());
            }
            Effect::Settle { attempt } => world.settle(rng, faults, attempt, slot)?,
            Effect::Finish { outcome } => Fact::RunEnded { outcome },
            Effect::RunCheck { attempt, stage, check, fresh } => {
                let started = world.start_check(rng, (attempt, slot), stage, check, fresh)?;
                self.started(started, slot);
                return Ok(());
            }
            Effect::StartAgent { attempt, call, agent, brief } => {
                let started = world.start_agent(rng, faults, now, (attempt, call, slot), agent, &brief)?;
                self.started(started, slot);
                return Ok(());
            }
            Effect::Review { attempt, round, agent, .. } => {
                let started = world.start_review(rng, (attempt, round, agent), slot, now)?;
                self.started(started, slot);
                return Ok(());
            }
            Effect::Prepare { attempt, .. } => return world.prepare(&attempt, slot),
            Effect::StopWork { attempt } => {
                if world.stop_work(&attempt, slot) {
                    let (number, delay) = (world.lane(slot).number, rng.below(3000));
                    self.later(delay, Action::EndProcess { slot, number, stopped: true });
                }
                return Ok(());
            }
            Effect::StopCheck { attempt } => {
                if world.stop_check(&attempt, slot) {
                    let (number, delay) = (world.lane(slot).number, rng.below(3000));
                    self.later(delay, Action::EndProcess { slot, number, stopped: true });
                }
                return Ok(());
            }
            Effect::Sleep { until } => {
                let delay = u64::try_from(until.since(now).as_millis()).unwrap_or(u64::MAX);
                self.later(delay, Action::Tell(Fact::Woke));
                return Ok(());
            }
        };
        self.soon(fact);
        Ok(())
    }

    /// Between what was done to the branch and the word of it others may do much.
    fn in_a_while(&mut self, fact: Fact, slot: Slot) {
        let soonest = self.elapsed + *self.rng.pick(&[0, 200, 20_000, 120_000]);
        // What one executor did is told in the order in which it did it.
        let said = self.said.get(&slot).map_or(soonest, |before| soonest.max(*before));
        self.said.insert(slot, said);
        self.later(said - self.elapsed, Action::Tell(fact));
    }

    fn started(&mut self, started: Started, slot: Slot) {
        match started {
            Started::Ignored => {}
            Started::Answered(fact) => self.soon(fact),
            Started::Runs { seconds, first } => {
                self.processes += 1;
                let number = self.processes;
                self.world.lane(slot).number = number;
                self.later(seconds * 1000, Action::EndProcess { slot, number, stopped: false });
                if let Some(fact) = first {
                    self.soon(fact);
                }
            }
        }
    }

    fn end_process(&mut self, slot: Slot, stopped: bool) -> Result<(), Breach> {
        let Self { world, rng, scenario, .. } = self;
        let Some(fact) = world.end_process(rng, &scenario.faults, slot, stopped) else { return Ok(()) };
        // Its number is used up: the other end that was planned for it comes to nothing.
        world.lane(slot).number = 0;
        if let Fact::AgentEnded { agent, report, .. } = &fact {
            self.watch.ended(agent.as_ref(), &report.end, &self.policy)?;
        }
        self.soon(fact);
        Ok(())
    }

    /// The process dies: all that is only in memory is gone, and a new process takes the run up.
    fn crash(&mut self) -> Result<(), Breach> {
        self.tally.crashes += 1;
        let among_many = self.run().attempts().len() > 1;
        self.tally.crashes_among_many += u64::from(among_many);
        self.note(|_| "the process dies".to_owned());
        for action in std::mem::take(&mut self.queue).into_values() {
            if let Action::Tell(fact) = action {
                self.leftovers.push(fact);
            }
        }
        for (_, lane) in self.world.lanes() {
            if let Some(Process::Review { attempt, round, agent, report }) = &lane.process {
                let (attempt, agent, report) = (attempt.clone(), agent.clone(), report.clone());
                self.leftovers.push(Fact::ReviewEnded { attempt, round: *round, agent, report });
            }
            if let Some(Process::Agent { attempt, call, agent, course }) = &lane.process {
                let report = Box::new(course.report.clone());
                let (attempt, agent) = (attempt.clone(), Some(agent.clone()));
                self.leftovers.push(Fact::AgentEnded { attempt, call: *call, agent, report });
            }
        }
        self.world.crash(&mut self.rng);
        self.same_on_replay()?;
        if self.rng.chance(300) {
            self.neighbour(true)?;
        }
        self.take_up()
    }

    /// A person takes the ended run up, perhaps after having mended what it asked for.
    fn resume(&mut self) -> Result<(), Breach> {
        self.resumes += 1;
        self.queue.clear();
        self.leftovers.clear();
        self.elapsed += 1000 * self.rng.below(100_000);
        self.note(|_| "a person takes the run up".to_owned());
        self.world.person_acts(&mut self.rng, &self.scenario.faults);
        if self.rng.chance(300) {
            self.policy.budget.iterations = self.policy.budget.iterations.map(|n| n + 3);
            self.policy.budget.cost = None;
        }
        if self.rng.chance(300) {
            self.policy.jobs = jobs(&mut self.rng);
            self.policy.place = *self.rng.pick(&[Place::Checkout, Place::Worktrees]);
            self.world.disk.change_settings(&mut self.rng);
        }
        self.take_up()
    }

    fn take_up(&mut self) -> Result<(), Breach> {
        loop {
            let walker = self.walker();
            if self.world.start(&mut self.rng, &self.scenario.faults, walker, true)? != Walked::Died {
                break;
            }
            self.tally.crashes += 1;
            self.note(|_| "the process dies while it puts right what the dead have left".to_owned());
        }
        let run = Run::replay(&self.journal).map_err(|_| "the journal is none".to_owned())?;
        self.watch.restarted(&run, &self.policy);
        let stories: Vec<StoryId> = run.records().map(|(story, _)| story.id.clone()).collect();
        let again = self.rng.chance(200) && !stories.is_empty();
        let retry: Vec<StoryId> = if again { vec![self.rng.pick(&stories).clone()] } else { Vec::new() };
        let fact = Fact::Restarted {
            policy: Box::new(self.policy.clone()),
            landed: self.world.landed(),
            spec: self.world.read_spec(run.plan()),
            agent: "scripted".to_owned(),
            cut_off: Vec::new(),
            retry,
        };
        self.run = Some(run);
        self.awaited.clear();
        self.serial.clear();
        self.said.clear();
        self.restarting = true;
        self.commands_may_change = true;
        self.take(fact)?;
        self.restarting = false;
        // What the dead process had not said yet may still turn up, by way of files that it left.
        for fact in std::mem::take(&mut self.leftovers) {
            if fact.attempt().is_some() && self.rng.chance(500) {
                let delay = *self.rng.pick(&[0, 100, 5_000, 100_000]);
                self.later(delay, Action::Tell(fact));
            }
        }
        Ok(())
    }

    /// The journal makes the same state, also where it goes on from a state that was kept in the middle of it.
    fn same_on_replay(&self) -> Result<(), Breach> {
        // Anywhere, without a part in what happens.
        let middle = usize::try_from(self.elapsed).unwrap_or_default() % self.journal.len();
        let (before, after) = self.journal.split_at(middle.max(1));
        let begun = Run::replay(before).map_err(|_| "the journal is none".to_owned())?;
        let kept = serde_json::to_vec(&begun).and_then(|kept| serde_json::from_slice::<Run>(&kept));
        let mut run = kept.map_err(|error| format!("a state cannot be kept: {error}: {begun:?}"))?;
        if run != begun {
            return Err("a kept state is another one when it is read again".to_owned());
        }
        for event in after {
            drop(run.step(event));
        }
        if run == *self.run() { Ok(()) } else { Err("the replay of the journal is another state".to_owned()) }
    }
}

/// Facts that carry an attempt may come twice, and those that say nothing new.
fn may_be_doubled(fact: &Fact) -> bool {
    fact.attempt().is_some() || matches!(fact, Fact::Woke | Fact::RunEnded { .. } | Fact::StopRequested { .. })
}
