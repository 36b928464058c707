//! The disk on which worktrees are: places of a pool and of the run's own folder. They change a step at a time, as
//! `ralphloop_core::worktree` names the steps; a process may die between any two and in the middle of one.

use std::collections::{BTreeMap, BTreeSet};

use ralphloop_core::worktree::{Afterwards, Seen, Step, Tree};

use super::lane::{Lane, Slot};
use super::neighbour::follow_old_links;
use super::planted::Planted;
use super::rng::Rng;
use super::scenario::Faults;
use super::world::{Breach, World};

/// More steps at one place than any honest way has.
const ENDLESS: u32 = 20;

/// Whose a place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum User {
    /// The run that is simulated.
    Us,
    /// A run of somebody else in the same repository.
    Other,
}

/// A place of the pool.
struct Place {
    mark: Option<User>,
    tree: Tree,
    /// What lies there, unless a lane of ours leads there and has it.
    lies: Lane,
}

/// Where a worktree of a run is or is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// Nobody has looked for a place yet.
    Nowhere(Slot),
    /// In our own folder; the other run has its worktrees in the pool.
    Own(Slot),
    /// In the pool, with the lane that leads or is to lead there.
    Pooled(usize, Option<Slot>),
}

/// How far somebody came with the steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Walked {
    /// To their end.
    Through,
    /// A step could not be taken.
    Stuck(&'static str),
    /// The process died.
    Died,
}

/// Who takes steps, and how likely they die at each, per thousand.
#[derive(Clone, Copy)]
pub(crate) struct Walker {
    pub(crate) user: User,
    pub(crate) risk: u64,
}

/// What was to be seen on the disk.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Sights {
    /// Worktrees of a dead process that the next went on with.
    pub(crate) adopted: u64,
    /// Worktrees that were being made or taken away when a process died.
    pub(crate) partial: u64,
    /// Worktrees that stayed at the end of a run for what was in them.
    pub(crate) stayed: u64,
    /// Worktrees for which there was no room.
    pub(crate) refused: u64,
}

impl Sights {
    pub(crate) fn add(&mut self, other: Self) {
        self.adopted += other.adopted;
        self.partial += other.partial;
        self.stayed += other.stayed;
        self.refused += other.refused;
    }
}

pub(crate) struct Disk {
    pub(crate) sights: Sights,
    pool: Vec<Place>,
    own: BTreeMap<Slot, Tree>,
    links: BTreeMap<(User, Slot), usize>,
    /// The lanes that our process has opened.
    open: BTreeSet<Slot>,
    /// New worktrees lie in the pool.
    is_pooled: bool,
    /// So many worktrees that nobody uses stay in the pool.
    keep: usize,
    /// There is room for so many worktrees.
    room: usize,
}

impl Disk {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let room = if rng.chance(100) { 2 } else { 40 };
        Self {
            sights: Sights::default(),
            pool: Vec::new(),
            own: BTreeMap::new(),
            links: BTreeMap::new(),
            open: BTreeSet::new(),
            is_pooled: rng.chance(700),
            keep: rng.index(4),
            room,
        }
    }

    /// Somebody has changed where worktrees are to be, or made room.
    pub(crate) fn change_settings(&mut self, rng: &mut Rng) {
        self.is_pooled = rng.chance(700);
        self.room = self.room.max(rng.index(20));
    }

    /// Of a process that is gone nothing is open.
    pub(crate) fn forget_what_is_open(&mut self) {
        self.open.clear();
    }

    /// The lanes of that run that lead to a worktree of its own, or to what looks like one.
    pub(super) fn left_by(&self, user: User) -> Vec<At> {
        let there = |(_, tree): &(&Slot, &Tree)| **tree != Tree::Missing && user == User::Us;
        let mut left: Vec<At> = self.own.iter().filter(there).map(|(slot, _)| At::Own(*slot)).collect();
        for ((of, slot), place) in self.links.iter().filter(|((of, _), _)| *of == user) {
            let there = &self.pool[*place];
            if there.mark == Some(*of) && there.tree != Tree::Missing {
                left.push(At::Pooled(*place, Some(*slot)));
            }
        }
        left
    }

    /// All that a run has or has begun.
    pub(super) fn all_of(&self, user: User) -> Vec<At> {
        let mut all: Vec<At> = Vec::new();
        if user == User::Us {
            let there = self.own.iter().filter(|(_, tree)| **tree != Tree::Missing);
            all.extend(there.map(|(slot, _)| At::Own(*slot)));
        }
        all.extend(self.links.iter().filter(|((of, _), _)| *of == user).map(|((_, s), at)| At::Pooled(*at, Some(*s))));
        let linked: Vec<usize> = self.links.iter().filter(|((of, _), _)| *of == user).map(|(_, at)| *at).collect();
        let marked = self.pool.iter().enumerate().filter(|(_, place)| place.mark == Some(user)).map(|(at, _)| at);
        all.extend(marked.filter(|at| !linked.contains(at)).map(|at| At::Pooled(at, None)));
        all
    }

    pub(super) fn of_lane(&self, user: User, slot: Slot) -> At {
        match (self.links.get(&(user, slot)), self.own.get(&slot)) {
            (Some(place), _) => At::Pooled(*place, Some(slot)),
            (None, Some(tree)) if user == User::Us && *tree != Tree::Missing => At::Own(slot),
            (None, _) if self.is_pooled || user == User::Other => At::Nowhere(slot),
            (None, _) => At::Own(slot),
        }
    }

    pub(super) fn tree(&self, at: At) -> Tree {
        match at {
            At::Nowhere(_) => Tree::Missing,
            At::Own(slot) => self.own.get(&slot).copied().unwrap_or(Tree::Missing),
            At::Pooled(place, _) => self.pool[place].tree,
        }
    }

    fn set_tree(&mut self, at: At, tree: Tree) {
        match at {
            At::Nowhere(_) => {}
            At::Own(slot) => drop(self.own.insert(slot, tree)),
            At::Pooled(place, _) => self.pool[place].tree = tree,
        }
    }

    fn see(&self, at: At, user: User, planted: Option<Planted>) -> Seen {
        let tree = self.tree(at);
        match at {
            At::Nowhere(_) => Seen::Pooled { is_marked: false, tree, is_linked: false },
            At::Own(_) => Seen::Own(tree),
            At::Pooled(place, slot) => {
                let is_linked = slot.is_some_and(|slot| self.links.get(&(user, slot)) == Some(&place));
                let is_believed = is_linked && planted == Some(Planted::FollowsOldLinks) && tree == Tree::Whole;
                Seen::Pooled { is_marked: self.pool[place].mark == Some(user) || is_believed, tree, is_linked }
            }
        }
    }

    fn worktrees(&self) -> usize {
        let trees = self.own.values().copied().chain(self.pool.iter().map(|place| place.tree));
        trees.filter(|tree| *tree != Tree::Missing).count()
    }

    fn idle(&self) -> impl Iterator<Item = usize> {
        let is_idle = |place: &Place| place.mark.is_none() && place.tree != Tree::Missing;
        self.pool.iter().enumerate().filter(move |(_, place)| is_idle(place)).map(|(at, _)| at)
    }

    fn kept(&self) -> usize {
        if self.is_pooled { self.keep } else { 0 }
    }

    fn afterwards(&self) -> Afterwards {
        if self.idle().count() < self.kept() { Afterwards::Kept } else { Afterwards::Removed }
    }

    /// Marks a place that nobody has, one with a worktree first.
    fn take(&mut self, user: User, planted: Option<Planted>) -> usize {
        let free = |place: &Place| place.mark.is_none() || planted == Some(Planted::TakesTakenPlaces);
        let there = self.idle().next().or_else(|| self.pool.iter().position(free));
        let place = there.unwrap_or_else(|| {
            self.pool.push(Place { mark: None, tree: Tree::Missing, lies: Lane::default() });
            self.pool.len() - 1
        });
        self.pool[place].mark = Some(user);
        place
    }
}

/// What lies in worktrees.
impl World {
    /// What lies there.
    pub(super) fn content(&mut self, at: At) -> &mut Lane {
        match at {
            At::Own(slot) | At::Nowhere(slot) => self.lane(slot),
            At::Pooled(place, _) => {
                match self.disk.links.iter().find(|((user, _), to)| *user == User::Us && **to == place) {
                    Some(((_, slot), _)) => self.lane(*slot),
                    None => &mut self.disk.pool[place].lies,
                }
            }
        }
    }

    fn link(&mut self, place: usize, user: User, slot: Slot) {
        self.disk.links.insert((user, slot), place);
        if user == User::Us {
            *self.lane(slot) = std::mem::take(&mut self.disk.pool[place].lies);
        }
    }

    fn unlink(&mut self, user: User, slot: Slot) {
        if let Some(place) = self.disk.links.remove(&(user, slot))
            && user == User::Us
        {
            let left = std::mem::take(self.lane(slot));
            self.disk.pool[place].lies = if left.is_dirty() { left } else { Lane::default() };
        }
    }
}

/// Steps.
impl World {
    /// Takes the steps that `next` names until it names none.
    pub(super) fn walk(
        &mut self,
        rng: &mut Rng,
        faults: &Faults,
        walker: Walker,
        at: &mut At,
        next: impl Fn(Seen) -> Option<Step>,
    ) -> Result<Walked, Breach> {
        for _ in 0..ENDLESS {
            if rng.chance(walker.risk) {
                self.disk.sights.partial += u64::from(self.disk.tree(*at) == Tree::Partial);
                return Ok(Walked::Died);
            }
            let Some(step) = next(self.disk.see(*at, walker.user, self.planted)) else { return Ok(Walked::Through) };
            match self.take_step(rng, faults, walker, at, step)? {
                Walked::Through => {}
                other => return Ok(other),
            }
        }
        Err(format!("the steps at {at:?} have no end"))
    }

    fn take_step(
        &mut self,
        rng: &mut Rng,
        faults: &Faults,
        walker: Walker,
        at: &mut At,
        step: Step,
    ) -> Result<Walked, Breach> {
        let (user, planted) = (walker.user, self.planted);
        let slot = match *at {
            At::Nowhere(slot) | At::Own(slot) => Some(slot),
            At::Pooled(_, slot) => slot,
        };
        match step {
            Step::Take if !self.disk.is_pooled && user == User::Us => {
                let slot = slot.ok_or("a place is taken for no lane")?;
                self.unlink(user, slot);
                *at = At::Own(slot);
            }
            Step::Take => *at = At::Pooled(self.disk.take(user, planted), slot),
            Step::Make => return self.make(rng, faults, walker, *at),
            Step::Clear => {
                if rng.chance(faults.lane) {
                    return Ok(Walked::Stuck("what git was making cannot be taken away"));
                }
                if let Some(owner) = self.content(*at).dirt.as_ref().filter(|dirt| dirt.any()).map(|d| d.owner.clone())
                {
                    return Err(format!("the work of {owner} is taken away with its worktree"));
                }
                self.disk.set_tree(*at, Tree::Missing);
                *self.content(*at) = Lane::default();
            }
            Step::Condemn => {
                let holds_work = self.content(*at).is_dirty() && planted != Some(Planted::RemovesByForce);
                if holds_work || rng.chance(faults.lane) {
                    return Ok(Walked::Stuck("the worktree cannot be taken away"));
                }
                self.disk.set_tree(*at, Tree::Partial);
            }
            Step::Link => {
                let (At::Pooled(place, _), Some(slot)) = (*at, slot) else { return Err(format!("{at:?} is linked")) };
                self.unlink(user, slot);
                self.link(place, user, slot);
            }
            Step::Unlink => self.unlink(user, slot.ok_or("no lane is to lead nowhere")?),
            Step::GiveBack => {
                let is_one_more = self.disk.tree(*at) == Tree::Whole && self.disk.idle().count() >= self.disk.kept();
                if is_one_more {
                    return Err(format!("{at:?} stays for the next run, and {} are to be kept", self.disk.kept()));
                }
                if let At::Pooled(place, _) = *at {
                    self.disk.pool[place].mark = None;
                }
            }
        }
        Ok(Walked::Through)
    }

    fn make(&mut self, rng: &mut Rng, faults: &Faults, walker: Walker, at: At) -> Result<Walked, Breach> {
        let is_room = self.disk.worktrees() < self.disk.room;
        if !is_room && self.planted != Some(Planted::LooksForNoRoom) {
            self.disk.sights.refused += 1;
            return Ok(Walked::Stuck("no space left on the disk"));
        }
        if !is_room {
            return Err("a worktree is made where there is no room for it".to_owned());
        }
        *self.content(at) = Lane::default();
        if rng.chance(walker.risk) {
            self.disk.set_tree(at, Tree::Partial);
            self.disk.sights.partial += 1;
            return Ok(Walked::Died);
        }
        if rng.chance(faults.lane) {
            // Git takes away what it has made, unless it was killed itself.
            let left = if rng.chance(500) { Tree::Partial } else { Tree::Missing };
            self.disk.set_tree(at, left);
            return Ok(Walked::Stuck("git cannot make the worktree"));
        }
        self.disk.set_tree(at, Tree::Whole);
        Ok(Walked::Through)
    }
}

/// What runs do.
impl World {
    /// A worktree for the lane, the one that is there or a new one.
    pub(crate) fn open(
        &mut self,
        rng: &mut Rng,
        faults: &Faults,
        walker: Walker,
        slot: Slot,
    ) -> Result<Walked, Breach> {
        if walker.user == User::Us && self.disk.open.contains(&slot) {
            return Ok(Walked::Through);
        }
        let mut at = self.disk.of_lane(walker.user, slot);
        let takes_half = self.planted == Some(Planted::TakesHalfForWhole);
        let next = |seen: Seen| if takes_half { half_for_whole(seen).to_open() } else { seen.to_open() };
        let first = next(self.disk.see(at, walker.user, self.planted));
        match self.walk(rng, faults, walker, &mut at, next)? {
            Walked::Through if first.is_none() => self.disk.sights.adopted += 1,
            Walked::Through => {}
            Walked::Stuck(why) => {
                let closed = self.walk(rng, faults, walker, &mut at, |seen| seen.to_close(Afterwards::Kept))?;
                return Ok(if closed == Walked::Died { closed } else { Walked::Stuck(why) });
            }
            Walked::Died => return Ok(Walked::Died),
        }
        if self.disk.tree(at) != Tree::Whole {
            return Err(format!("a lane leads to {at:?}, where no whole worktree is"));
        }
        if let At::Pooled(place, _) = at
            && let Some((other, _)) =
                self.disk.links.iter().find(|(of, to)| **of != (walker.user, slot) && **to == place)
        {
            return Err(format!("lane {slot} of {:?} and {other:?} share place {place}", walker.user));
        }
        if first == Some(Step::Take) && self.content(at).is_dirty() {
            return Err(format!("a new lane leads to {at:?}, where the work of others lies"));
        }
        if walker.user == User::Us {
            self.disk.open.insert(slot);
        }
        Ok(Walked::Through)
    }

    /// The worktrees of the run are given back or taken away at its end, but for those that hold work. Those that stay are named.
    pub(crate) fn close(
        &mut self,
        rng: &mut Rng,
        faults: &Faults,
        walker: Walker,
        named: &mut Vec<At>,
    ) -> Result<Walked, Breach> {
        let only_open = self.planted == Some(Planted::LeavesWhatItDidNotNeed);
        for mut at in self.disk.left_by(walker.user) {
            if let (At::Own(slot) | At::Pooled(_, Some(slot)), User::Us) = (at, walker.user)
                && only_open
                && !self.disk.open.contains(&slot)
            {
                continue;
            }
            let is_clean = !self.content(at).is_dirty() || self.planted == Some(Planted::KeepsUnseen);
            let afterwards = if is_clean { self.disk.afterwards() } else { Afterwards::Removed };
            match self.walk(rng, faults, walker, &mut at, |seen| seen.to_close(afterwards))? {
                Walked::Died => return Ok(Walked::Died),
                Walked::Stuck(_) => named.push(at),
                Walked::Through => {}
            }
        }
        if only_open {
            return Ok(Walked::Through);
        }
        let before = named.len();
        let tidied = self.tidy_after(rng, faults, walker.risk, walker.user, named)?;
        self.disk.sights.stayed += before as u64;
        Ok(if tidied == Walked::Died { tidied } else { Walked::Through })
    }

    /// Takes away what the dead run `of` has begun and nobody has worked in.
    pub(super) fn tidy_after(
        &mut self,
        rng: &mut Rng,
        faults: &Faults,
        risk: u64,
        of: User,
        named: &mut Vec<At>,
    ) -> Result<Walked, Breach> {
        if self.planted == Some(Planted::NeverFreesPlaces) {
            return Ok(Walked::Through);
        }
        let (mut result, planted) = (Walked::Through, self.planted);
        for mut at in self.disk.all_of(of) {
            let afterwards = self.disk.afterwards();
            let walker = Walker { user: of, risk };
            let next = |seen: Seen| follow_old_links(planted, seen, seen.to_tidy(afterwards));
            match self.walk(rng, faults, walker, &mut at, next)? {
                Walked::Died => return Ok(Walked::Died),
                Walked::Stuck(why) => {
                    named.push(at);
                    result = Walked::Stuck(why);
                }
                Walked::Through => {}
            }
        }
        Ok(result)
    }
}

/// The planted bug: what git was making when its process died is taken for a worktree.
fn half_for_whole(seen: Seen) -> Seen {
    match seen {
        Seen::Own(Tree::Partial) => Seen::Own(Tree::Whole),
        Seen::Pooled { is_marked, tree: Tree::Partial, is_linked } => {
            Seen::Pooled { is_marked, tree: Tree::Whole, is_linked }
        }
        seen => seen,
    }
}
