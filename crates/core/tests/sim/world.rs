//! The world outside the core: the repository with its lanes, the spec, the provider, the processes. What stands here
//! outlives a crash, but for the processes.

use std::collections::{BTreeMap, BTreeSet};

use ralphloop_core::effect::Ground;
use ralphloop_core::event::{CheckRef, PlanChange};
use ralphloop_core::evidence::{AgentReport, CheckResult};
use ralphloop_core::ids::{AgentId, AttemptId, CallNumber, CommitId, StoryId, TreeId};
use ralphloop_core::plan::{Plan, Story, WorkState};
use ralphloop_core::units::Timestamp;

use super::agent::Work;
use super::disk::Disk;
use super::lane::{Lane, Process, Slot};
use super::neighbour::Other;
use super::planted::Planted;
use super::rng::Rng;
use super::scenario::{Faults, Scenario, story};

/// What must never happen, in words.
pub(crate) type Breach = String;

pub(crate) struct Commit {
    pub(crate) attempt: AttemptId,
    pub(crate) id: CommitId,
    pub(crate) ground: Ground,
}

pub(super) type CallKey = (AttemptId, CallNumber);

/// What was seen when the tree that a call left was looked at.
pub(super) struct Seen {
    pub(super) base: usize,
    pub(super) changed: bool,
    pub(super) ticked: bool,
}

/// How an agent's provider stands.
#[derive(Debug, Default)]
pub(super) struct Provider {
    pub(super) limited_until: Option<Timestamp>,
    /// So many requests more it refuses.
    pub(super) overloaded: u64,
    /// Nobody is signed in, or there is no credit, until a person acts.
    pub(super) closed: bool,
}

/// How often lanes met on the branch.
#[derive(Default)]
pub(crate) struct Meetings {
    pub(crate) merges: u64,
    pub(crate) conflicts: u64,
    pub(crate) resolved: u64,
    /// Merges onto what had not landed yet.
    pub(crate) ahead: u64,
}

pub(crate) struct World {
    /// The spec, without what the attempt in the checkout did to it.
    pub(crate) plan: Plan,
    /// The checks of each story when the run first saw it.
    pub(super) pinned: BTreeMap<StoryId, usize>,
    pub(super) gates: usize,
    taken_out: Vec<Story>,
    unreadable: bool,
    pub(crate) commits: Vec<Commit>,
    /// Commits that a person looked at and wants done again.
    pub(super) sent_back: BTreeSet<CommitId>,
    /// The version of the work after so many commits.
    pub(super) heads: Vec<usize>,
    /// Stories to which a task was added that mends another.
    pub(super) mended: BTreeSet<StoryId>,
    pub(super) works: Vec<Work>,
    /// What came of merging one version onto another.
    pub(super) merged: BTreeMap<(usize, usize), Option<usize>>,
    /// What was merged, as what version, and whose work is in it.
    pub(super) candidates: BTreeMap<(AttemptId, TreeId), (usize, BTreeSet<AttemptId>)>,
    pub(crate) last_work: usize,
    pub(super) base_checks: BTreeMap<StoryId, [bool; 2]>,
    pub(super) cannot_run: [bool; 2],
    lanes: Vec<Lane>,
    pub(crate) disk: Disk,
    pub(crate) other: Other,
    pub(crate) checkpoints: BTreeSet<AttemptId>,
    /// Attempts whose work is kept under a ref.
    pub(crate) kept: BTreeSet<AttemptId>,
    /// Attempts whose work was taken out of a lane.
    pub(crate) put_back: BTreeSet<AttemptId>,
    pub(super) started: BTreeSet<CallKey>,
    pub(super) reviewed: BTreeSet<(AttemptId, u32)>,
    /// In which files each call was to resolve conflicts.
    pub(super) told: BTreeMap<CallKey, Vec<String>>,
    /// How each call really ended.
    pub(super) ends: BTreeMap<CallKey, AgentReport>,
    pub(super) seen: BTreeMap<CallKey, Seen>,
    /// What each check really said last of a tree, of what a call left.
    pub(super) results: BTreeMap<(CallKey, CheckRef, TreeId), CheckResult>,
    pub(super) baselines: BTreeMap<(StoryId, usize, CheckRef), CheckResult>,
    pub(super) cache: BTreeMap<(TreeId, CheckRef, StoryId), CheckResult>,
    /// Each agent has a provider of its own.
    pub(super) providers: BTreeMap<AgentId, Provider>,
    pub(super) broken: bool,
    /// Somebody moved the branch or the user's checkout.
    pub(super) moved: bool,
    pub(crate) meetings: Meetings,
    /// Signatures that a person gave.
    pub(crate) signed: u64,
    pub(crate) planted: Option<Planted>,
}

impl World {
    pub(crate) fn new(scenario: &Scenario, rng: &mut Rng, planted: Option<Planted>) -> Self {
        let base = Work { gates: [rng.chance(850), rng.chance(850)], checks: [false; 2], breaks_gates: false };
        let plan = scenario.plan.clone();
        let base_checks = plan.stories.iter().map(|s| (s.id.clone(), [rng.chance(300), rng.chance(300)])).collect();
        let mut world = Self {
            plan,
            pinned: BTreeMap::new(),
            gates: scenario.policy.gates.len(),
            taken_out: Vec::new(),
            unreadable: false,
            commits: Vec::new(),
            sent_back: BTreeSet::new(),
            heads: vec![0],
            mended: BTreeSet::new(),
            works: vec![base],
            merged: BTreeMap::new(),
            candidates: BTreeMap::new(),
            last_work: 0,
            base_checks,
            cannot_run: [rng.chance(15), rng.chance(15)],
            lanes: Vec::new(),
            disk: Disk::new(rng),
            other: Other::Away,
            checkpoints: BTreeSet::new(),
            kept: BTreeSet::new(),
            put_back: BTreeSet::new(),
            started: BTreeSet::new(),
            reviewed: BTreeSet::new(),
            told: BTreeMap::new(),
            ends: BTreeMap::new(),
            seen: BTreeMap::new(),
            results: BTreeMap::new(),
            baselines: BTreeMap::new(),
            cache: BTreeMap::new(),
            providers: BTreeMap::new(),
            broken: false,
            moved: false,
            meetings: Meetings::default(),
            signed: 0,
            planted,
        };
        world.pin();
        world
    }

    /// The commands that the run reads now, having been taken up, are the ones that hold.
    pub(crate) fn pin_anew(&mut self) {
        self.pinned.extend(self.plan.stories.iter().map(|s| (s.id.clone(), s.checks.len())));
    }

    fn pin(&mut self) {
        for story in &self.plan.stories {
            self.pinned.entry(story.id.clone()).or_insert(story.checks.len());
        }
    }

    pub(crate) fn new_work(&mut self, work: Work) -> usize {
        self.works.push(work);
        self.last_work = self.works.len() - 1;
        self.last_work
    }

    pub(crate) fn lane(&mut self, slot: Slot) -> &mut Lane {
        if self.lanes.len() <= slot {
            self.lanes.resize_with(slot + 1, Lane::default);
        }
        &mut self.lanes[slot]
    }

    pub(super) fn lane_at(&self, slot: Slot) -> &Lane {
        &self.lanes[slot]
    }

    pub(crate) fn lanes(&self) -> impl Iterator<Item = (Slot, &Lane)> {
        self.lanes.iter().enumerate()
    }

    /// How many commits the branch has.
    pub(super) fn head(&self) -> usize {
        self.heads.len() - 1
    }

    /// The story's commit, unless a person wants it done again.
    pub(crate) fn commit_of(&self, story: &StoryId) -> Option<&Commit> {
        self.commits.iter().find(|c| c.attempt.story == *story && !self.sent_back.contains(&c.id))
    }

    /// It has landed, and nobody has signed it.
    pub(crate) fn awaits_sign_off(&self, id: &StoryId) -> bool {
        self.commit_of(id).is_some() && self.story(id).is_some_and(|s| s.needs_sign_off() && s.state != WorkState::Done)
    }

    /// A person has looked at what landed, and wants it done again. Answers whose landing it was.
    pub(crate) fn send_back(&mut self, story: &StoryId) -> Option<AttemptId> {
        let (attempt, commit) = self.commit_of(story).map(|commit| (commit.attempt.clone(), commit.id.clone()))?;
        self.sent_back.insert(commit);
        Some(attempt)
    }

    /// The story, also if a person has taken it out of the spec.
    pub(super) fn story(&self, id: &StoryId) -> Option<&Story> {
        self.plan.stories.iter().chain(&self.taken_out).find(|s| s.id == *id)
    }

    /// Whether a story counts as done, whatever the core thinks.
    pub(crate) fn is_done(&self, id: &StoryId) -> bool {
        let landed = self.commit_of(id).is_some() && !self.awaits_sign_off(id);
        landed || self.story(id).is_some_and(|s| s.state == WorkState::Done)
    }

    /// The spec as somebody who reads it in the user's checkout now sees it.
    pub(crate) fn read_spec(&self, known: &Plan) -> PlanChange {
        if self.unreadable {
            return PlanChange::Unreadable { message: "line 3: not a number".to_owned() };
        }
        let mut plan = self.plan.clone();
        if let Some(dirt) = self.lanes.first().and_then(|checkout| checkout.dirt.as_ref()) {
            plan.stories.iter_mut().filter(|s| dirt.ticks.contains(&s.id)).for_each(|s| s.state = WorkState::Done);
            if dirt.no_checks {
                plan.stories.iter_mut().for_each(|s| s.checks.clear());
            }
            plan.stories.retain(|s| Some(&s.id) != dirt.removed.as_ref());
        }
        if plan == *known { PlanChange::Same } else { PlanChange::Changed { plan: Box::new(plan) } }
    }

    /// The commits that carry the run's trailers.
    pub(crate) fn landed(&self) -> Vec<(StoryId, CommitId)> {
        self.commits.iter().map(|c| (c.attempt.story.clone(), c.id.clone())).collect()
    }

    /// Nothing may run in that lane.
    pub(super) fn quiet(&self, slot: Slot, what: &str) -> Result<(), Breach> {
        match self.lanes.get(slot).and_then(|lane| lane.process.as_ref()) {
            Some(process) => Err(format!("{what} while something runs for {}", process.attempt())),
            None => Ok(()),
        }
    }

    /// The user's checkout holds nobody's work.
    pub(super) fn checkout_is_clean(&self) -> bool {
        !self.lanes.first().is_some_and(Lane::is_dirty)
    }
}

/// Troubles that come from outside, and people.
impl World {
    /// The process of the tool is gone. Its agents work on for a moment before the supervisor ends them.
    pub(crate) fn crash(&mut self, rng: &mut Rng) {
        for lane in &mut self.lanes {
            if let Some(Process::Agent { course, .. }) = lane.process.take()
                && rng.chance(700)
            {
                lane.dirt = Some(course.dirt);
            }
            lane.cancelled = None;
        }
        self.disk.forget_what_is_open();
    }

    /// A person mends what the run asked for, and perhaps edits the spec.
    pub(crate) fn person_acts(&mut self, rng: &mut Rng, faults: &Faults) {
        self.unreadable = false;
        self.broken = false;
        self.moved = false;
        self.providers.values_mut().for_each(|provider| provider.overloaded = 0);
        if rng.chance(500) {
            self.providers.clear();
            self.cannot_run = [false; 2];
        }
        let unsigned: Vec<StoryId> =
            self.plan.stories.iter().map(|s| s.id.clone()).filter(|id| self.awaits_sign_off(id)).collect();
        for id in unsigned {
            if rng.chance(500)
                && let Some(story) = self.plan.stories.iter_mut().find(|story| story.id == id)
            {
                story.state = WorkState::Done;
                self.signed += 1;
            }
        }
        self.edit_spec(rng, faults);
    }

    pub(crate) fn edit_spec(&mut self, rng: &mut Rng, faults: &Faults) {
        if !rng.chance(faults.edit) || self.plan.stories.is_empty() || !self.checkout_is_clean() {
            return;
        }
        let any = rng.index(self.plan.stories.len());
        match rng.below(7) {
            0 => self.plan.stories[any].state = WorkState::Done,
            1 => match self.taken_out.pop() {
                Some(story) => self.plan.stories.push(story),
                None => self.taken_out.push(self.plan.stories.remove(any)),
            },
            2 | 3 => {
                let mut new = story(&format!("N{}", self.pinned.len()));
                if rng.chance(400) {
                    new.deps.push(self.plan.stories[any].id.clone());
                }
                self.base_checks.insert(new.id.clone(), [false; 2]);
                self.plan.stories.push(new);
            }
            4 => self.plan.stories[any].checks.clear(),
            5 => {
                let other = rng.index(self.plan.stories.len());
                let dep = self.plan.stories[other].id.clone();
                self.plan.stories[any].deps.push(dep);
            }
            _ => self.unreadable = true,
        }
        self.pin();
    }
}
