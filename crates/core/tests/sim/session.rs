//! The decision loop in small: one queue of what is under way, the journal, the core, and death at any step.

use std::collections::BTreeMap;
use std::time::Duration;

use ralphloop_core::effect::Effect;
use ralphloop_core::event::{CheckRef, CheckStage, Event, Fact, StopCause, StopLevel};
use ralphloop_core::ids::{AttemptId, CommitId, RunId};
use ralphloop_core::policy::Policy;
use ralphloop_core::run::{Activity, Run, StoryState};
use ralphloop_core::units::Timestamp;

use super::Tally;
use super::planted::Planted;
use super::rng::Rng;
use super::scenario::Scenario;
use super::watch::Watch;
use super::world::{Breach, Process, Started, World};

/// Steps after which a run is said not to end. The longest honest ones take a tenth of it.
const ENDLESS: u64 = 20_000;
/// Deaths per world; then it lets the run live.
const MOST_CRASHES: u64 = 12;
/// How often an ended run is taken up again at most.
const MOST_RESUMES: u32 = 3;

/// Something that is under way.
enum Action {
    /// An effect that its executor has not begun.
    Do(Effect),
    /// A fact that has not reached the loop.
    Tell(Fact),
    /// What runs in the lane comes to its end; the number tells it from earlier ones.
    EndProcess { number: u64, stopped: bool },
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
    /// Executors are serial: none begins before the one before it.
    serial: u64,
    /// Facts of the dead process that may yet turn up.
    leftovers: Vec<Fact>,
    awaited: Option<(CheckStage, CheckRef)>,
    resumes: u32,
    sentences: u32,
    restarting: bool,
    /// The run was taken up, and has not begun an attempt since.
    commands_may_change: bool,
    tally: Tally,
    planted: Option<Planted>,
    trace: Option<Vec<String>>,
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
            serial: 0,
            leftovers: Vec::new(),
            awaited: None,
            resumes: 0,
            sentences: 0,
            restarting: false,
            commands_may_change: false,
            tally: Tally::default(),
            planted,
            trace: traced.then(Vec::new),
        }
    }

    pub(crate) fn into_trace(self) -> Vec<String> {
        self.trace.unwrap_or_default()
    }

    pub(crate) fn play(mut self) -> Result<Tally, Breach> {
        self.play_on()?;
        self.tally.calls = u64::from(self.watch.calls);
        self.tally.landed = self.world.commits.len() as u64;
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
        })?;
        loop {
            if matches!(self.run().activity(), Activity::Ended(_)) {
                self.watch.over(self.run(), &self.world)?;
                self.same_on_replay()?;
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
            if self.dies(4) {
                self.crash()?;
                continue;
            }
            match action {
                Action::Do(effect) => self.carry_out(effect)?,
                Action::Tell(fact) => self.take(fact)?,
                Action::EndProcess { number, stopped } if number == self.processes => self.end_process(stopped)?,
                Action::EndProcess { .. } => {}
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
            self.note(|_| format!("the clock jumps by {} s", jump / 1000));
        }
        if !self.rng.chance(self.scenario.faults.control) {
            return;
        }
        self.sentences += 1;
        let text = format!("sentence {}", self.sentences);
        let cause = *self.rng.pick(&[StopCause::Hup, StopCause::Int, StopCause::Term, StopCause::Request]);
        let fact = match self.rng.below(10) {
            0 => Fact::StopRequested { cause, level: StopLevel::AfterAttempt },
            1 => Fact::StopRequested { cause, level: StopLevel::Now },
            2 => Fact::PauseRequested,
            3 => Fact::LearningAdded { text: format!("learning {}", self.sentences % 4) },
            _ => Fact::GuidanceAdded { text },
        };
        self.soon(fact);
    }

    /// One turn of the loop: journal, step, effects.
    fn take(&mut self, mut fact: Fact) -> Result<(), Breach> {
        let stop = match &fact {
            Fact::StopRequested { level, .. } => Some(*level),
            _ => None,
        };
        if let Some(planted) = self.planted {
            planted.distort(&mut fact, self.run.as_ref(), self.awaited);
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
            self.watch.stop_asked(stop);
            return self.act_first(event);
        }
        self.journal.push(event.clone());
        self.watch.stop_asked(stop);
        let effects = self.step(&event)?;
        if self.dies(2) && !restarted {
            return self.crash();
        }
        self.dispatch(effects, restarted)
    }

    /// The planted bug: what follows is done at once, and only then does the cause become durable.
    fn act_first(&mut self, event: Event) -> Result<(), Breach> {
        let before = self.run.clone();
        for effect in self.step(&event)? {
            self.watch.asked(&effect, &self.scenario.policy, self.run.as_ref().expect("the run was started"))?;
            self.carry_out(effect)?;
        }
        if self.dies(1) {
            self.run = before;
            return self.crash();
        }
        self.journal.push(event);
        Ok(())
    }

    fn step(&mut self, event: &Event) -> Result<Vec<Effect>, Breach> {
        let under_way =
            self.run.as_ref().and_then(|run| run.attempts().next()).map(|a| (a.id.clone(), self.charged(&a.id)));
        let effects = if let Some(run) = &mut self.run {
            run.step(event)
        } else {
            let (run, effects) = Run::start(event).map_err(|_| "not a run".to_owned())?;
            self.run = Some(run);
            effects
        };
        self.conclude(under_way);
        if self.commands_may_change && effects.iter().any(|e| matches!(e, Effect::Begin { .. })) {
            self.commands_may_change = false;
            self.world.pin_anew();
        }
        let run = self.run.as_ref().expect("the run was started");
        self.watch.taken(event, run)?;
        Ok(effects)
    }

    fn charged(&self, attempt: &AttemptId) -> u32 {
        self.run().record(&attempt.story).map_or(0, |r| r.charged)
    }

    /// Tells the watch if the attempt that was under way is over for good.
    fn conclude(&mut self, under_way: Option<(AttemptId, u32)>) {
        let Some((attempt, charged)) = under_way else { return };
        let Some(record) = self.run().record(&attempt.story) else { return };
        let over = record.charged > charged
            || matches!(record.state, StoryState::Landed { .. } | StoryState::Blocked | StoryState::Failed);
        if over {
            self.watch.concluded(&attempt);
        }
    }

    fn dispatch(&mut self, effects: Vec<Effect>, restarted: bool) -> Result<(), Breach> {
        for effect in effects {
            let (effects, facts) = match self.planted {
                Some(planted) => planted.twist(effect, restarted || self.restarting),
                None => (vec![effect], Vec::new()),
            };
            for effect in effects {
                self.note(|_| format!("-> {effect:?}"));
                self.watch.asked(&effect, &self.scenario.policy, self.run.as_ref().expect("the run was started"))?;
                if let Effect::RunCheck { stage, check, .. } = &effect {
                    self.awaited = Some((*stage, *check));
                }
                if effect == Effect::CheckPlan {
                    self.world.edit_spec(&mut self.rng, &self.scenario.faults);
                }
                let twice = self.rng.chance(self.scenario.faults.asked_twice);
                if twice {
                    self.hand_over(effect.clone());
                }
                self.hand_over(effect);
            }
            for fact in facts {
                self.soon(fact);
            }
        }
        Ok(())
    }

    /// Gives the effect to its executor, which begins in order.
    fn hand_over(&mut self, effect: Effect) {
        let begins = self.serial.max(self.elapsed + self.rng.below(20));
        self.serial = begins;
        self.later(begins - self.elapsed, Action::Do(effect));
    }

    fn carry_out(&mut self, effect: Effect) -> Result<(), Breach> {
        let (now, known) = (self.now(), self.run().plan().clone());
        let Self { world, rng, scenario, .. } = self;
        let faults = &scenario.faults;
        let fact = match effect {
            Effect::CheckPlan => world.check_plan(&known)?,
            Effect::Begin { attempt, .. } => Fact::AttemptStarted { attempt },
            Effect::Checkpoint { attempt } => world.checkpoint(rng, faults, attempt)?,
            Effect::Inspect { attempt, call, .. } => world.inspect(rng, faults, attempt, call)?,
            Effect::Land { attempt, ground } => world.land(rng, faults, attempt, ground)?,
            Effect::Revert { attempt, .. } => world.revert(rng, faults, attempt)?,
            Effect::Merge { .. } => return Err("a merge is asked for in the user's checkout".to_owned()),
            Effect::Settle { attempt } => world.settle(attempt)?,
            Effect::Finish { outcome } => Fact::RunEnded { outcome },
            Effect::RunCheck { attempt, stage, check, fresh } => {
                let started = world.start_check(rng, attempt, stage, check, fresh)?;
                self.started(started);
                return Ok(());
            }
            Effect::StartAgent { attempt, call, .. } => {
                let started = world.start_agent(rng, faults, now, attempt, call)?;
                self.started(started);
                return Ok(());
            }
            Effect::StopWork { attempt } => {
                if world.stop_work(&attempt) {
                    let (number, delay) = (self.processes, self.rng.below(3000));
                    self.later(delay, Action::EndProcess { number, stopped: true });
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

    fn started(&mut self, started: Started) {
        match started {
            Started::Ignored => {}
            Started::Answered(fact) => self.soon(fact),
            Started::Runs { seconds, first } => {
                self.processes += 1;
                let number = self.processes;
                self.later(seconds * 1000, Action::EndProcess { number, stopped: false });
                if let Some(fact) = first {
                    self.soon(fact);
                }
            }
        }
    }

    fn end_process(&mut self, stopped: bool) -> Result<(), Breach> {
        let Some(fact) = self.world.end_process(&mut self.rng, &self.scenario.faults, stopped) else { return Ok(()) };
        // Its number is used up: the other end that was planned for it comes to nothing.
        self.processes += 1;
        if let Fact::AgentEnded { report, .. } = &fact {
            self.watch.ended(&report.end)?;
        }
        self.soon(fact);
        Ok(())
    }

    /// The process dies: all that is only in memory is gone, and a new process takes the run up.
    fn crash(&mut self) -> Result<(), Breach> {
        self.tally.crashes += 1;
        self.note(|_| "the process dies".to_owned());
        for action in std::mem::take(&mut self.queue).into_values() {
            if let Action::Tell(fact) = action {
                self.leftovers.push(fact);
            }
        }
        if let Some(Process::Agent { attempt, call, course }) = &self.world.process {
            let report = Box::new(course.report.clone());
            self.leftovers.push(Fact::AgentEnded { attempt: attempt.clone(), call: *call, report });
        }
        self.world.crash(&mut self.rng);
        self.same_on_replay()?;
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
            self.scenario.policy = self.policy.clone();
        }
        self.take_up()
    }

    fn take_up(&mut self) -> Result<(), Breach> {
        let run = Run::replay(&self.journal).map_err(|_| "the journal is none".to_owned())?;
        self.watch.restarted(run.activity());
        let fact = Fact::Restarted {
            policy: Box::new(self.policy.clone()),
            landed: self.world.landed(),
            spec: self.world.read_spec(run.plan()),
            agent: "scripted".to_owned(),
            cut_off: Vec::new(),
        };
        self.run = Some(run);
        self.awaited = None;
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
