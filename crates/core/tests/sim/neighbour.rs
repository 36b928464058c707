//! Starts of runs, which put right what dead ones left, and a run of somebody else in the same repository, which wants
//! worktrees of the same pool and dies as well.

use ralphloop_core::ids::{AttemptId, StoryId};
use ralphloop_core::worktree::{Afterwards, Seen, Step, Tree};

use super::agent::Dirt;
use super::disk::{At, User, Walked, Walker};
use super::lane::Lane;
use super::planted::Planted;
use super::rng::Rng;
use super::scenario::Faults;
use super::world::{Breach, World};

/// How likely the other run dies at a step, per thousand.
const RISK: u64 = 30;

/// How the other run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Other {
    Away,
    AtWork,
    Dead,
}

impl World {
    /// A run of `walker` starts: what the dead have begun is taken away, what they have done is kept and put back.
    pub(crate) fn start(
        &mut self,
        rng: &mut Rng,
        faults: &Faults,
        walker: Walker,
        are_we_dead: bool,
    ) -> Result<Walked, Breach> {
        let dead = [(User::Us, are_we_dead), (User::Other, self.other != Other::AtWork)];
        let mut stuck = false;
        for (of, _) in dead.iter().filter(|(_, dead)| *dead) {
            match self.tidy_after(rng, faults, walker.risk, *of, &mut Vec::new())? {
                Walked::Died => return Ok(Walked::Died),
                Walked::Stuck(_) => stuck = true,
                Walked::Through => {}
            }
            // What lies in our own lanes we go on with.
            if walker.user == *of && *of == User::Us {
                continue;
            }
            match self.clear(rng, faults, walker.risk, *of)? {
                Walked::Died => return Ok(Walked::Died),
                Walked::Stuck(_) => stuck = true,
                Walked::Through => {}
            }
            if !stuck && let Some(at) = self.disk.all_of(*of).first() {
                return Err(format!("a run has started, and a dead one of {of:?} still has {at:?}"));
            }
        }
        let is_whole = |world: &Self, at: &At| world.disk.tree(*at) == Tree::Whole;
        if walker.user == User::Us
            && !stuck
            && let Some(at) = self.disk.all_of(User::Us).iter().find(|at| !is_whole(self, at))
        {
            return Err(format!("the run is taken up, and has {at:?}, where nothing whole is"));
        }
        Ok(Walked::Through)
    }

    /// Takes away what the dead run `of` has worked in; its work is kept and put back first.
    fn clear(&mut self, rng: &mut Rng, faults: &Faults, risk: u64, of: User) -> Result<Walked, Breach> {
        let mut result = Walked::Through;
        for mut at in self.disk.left_by(of) {
            let lane = self.content(at);
            let resident = lane.resident.clone();
            let owner = lane.dirt.as_ref().filter(|dirt| dirt.any()).map(|dirt| dirt.owner.clone());
            *lane = Lane::default();
            for attempt in resident.iter().chain(&owner).filter(|_| of == User::Us) {
                self.checkpoints.remove(attempt);
            }
            if let Some(owner) = owner.filter(|_| of == User::Us) {
                self.put_back.insert(owner.clone());
                self.kept.insert(owner);
            }
            let walker = Walker { user: of, risk };
            match self.walk(rng, faults, walker, &mut at, |seen| seen.to_close(Afterwards::Removed))? {
                Walked::Died => return Ok(Walked::Died),
                Walked::Stuck(why) => result = Walked::Stuck(why),
                Walked::Through => {}
            }
        }
        Ok(result)
    }

    /// The other run starts, ends, or dies.
    pub(crate) fn other_acts(&mut self, rng: &mut Rng, faults: &Faults, are_we_dead: bool) -> Result<(), Breach> {
        let walker = Walker { user: User::Other, risk: RISK };
        self.other = match self.other {
            Other::AtWork if rng.chance(200) => Other::Dead,
            Other::AtWork => {
                let ends = rng.chance(800);
                for at in self.disk.left_by(User::Other) {
                    if ends {
                        *self.content(at) = Lane::default();
                    }
                }
                if self.close(rng, faults, walker, &mut Vec::new())? == Walked::Died {
                    Other::Dead
                } else {
                    Other::Away
                }
            }
            Other::Away | Other::Dead => {
                if self.start(rng, faults, walker, are_we_dead)? == Walked::Died {
                    Other::Dead
                } else {
                    self.other_works(rng, faults, walker)?
                }
            }
        };
        Ok(())
    }

    fn other_works(&mut self, rng: &mut Rng, faults: &Faults, walker: Walker) -> Result<Other, Breach> {
        for slot in 1..=1 + rng.index(3) {
            match self.open(rng, faults, walker, slot)? {
                Walked::Through if rng.chance(500) => {
                    let mut dirt = Dirt::new(AttemptId { story: StoryId::from("of the other run"), number: 1 });
                    dirt.no_checks = true;
                    let at = self.disk.of_lane(walker.user, slot);
                    self.content(at).dirt = Some(dirt);
                }
                Walked::Died => return Ok(Other::Dead),
                Walked::Through | Walked::Stuck(_) => {}
            }
        }
        Ok(Other::AtWork)
    }

    /// Once our run has ended and closed its lanes, it has nothing but what it has named.
    pub(crate) fn nothing_is_left(&self, named: &[At]) -> Result<(), Breach> {
        match self.disk.all_of(User::Us).iter().find(|at| !named.contains(at) && self.disk.tree(**at) != Tree::Missing)
        {
            Some(at) => Err(format!("the run has ended, still has {at:?}, and does not say so")),
            None => Ok(()),
        }
    }
}

/// The planted bug: where a link leads nowhere any more, the place is given back and the link stays.
pub(super) fn follow_old_links(planted: Option<Planted>, seen: Seen, step: Option<Step>) -> Option<Step> {
    match (seen, step) {
        (Seen::Pooled { is_marked, .. }, Some(Step::Unlink)) if planted == Some(Planted::FollowsOldLinks) => {
            is_marked.then_some(Step::GiveBack)
        }
        (_, step) => step,
    }
}
