//! The engine's part of the world: merging, landing, and whether what lands was proven.

use std::collections::BTreeSet;

use ralphloop_core::effect::{Ground, Onto};
use ralphloop_core::event::{CheckRef, Fact};
use ralphloop_core::evidence::{AgentEnd, CheckResult, Claim, Merge};
use ralphloop_core::ids::{AttemptId, CallNumber, CommitId};
use ralphloop_core::plan::{Story, WorkState};

use super::agent::{Dirt, Work};
use super::lane::Slot;
use super::planted::Planted;
use super::rng::Rng;
use super::scenario::Faults;
use super::world::{Breach, Commit, World};

fn conflicts() -> Vec<String> {
    vec!["src/lib.rs".to_owned()]
}

impl World {
    /// What a merge will need is made of the work, which is left as it is.
    pub(crate) fn prepare(&mut self, attempt: &AttemptId, slot: Slot) -> Result<(), Breach> {
        self.quiet(slot, "work is made ready to be merged")?;
        self.at_home(attempt, slot)
    }

    pub(crate) fn merge(
        &mut self,
        rng: &mut Rng,
        faults: &Faults,
        (attempt, call, slot): (AttemptId, CallNumber, Slot),
        (number, onto): (u32, Onto),
    ) -> Result<Fact, Breach> {
        self.quiet(slot, "work is merged")?;
        self.at_home(&attempt, slot)?;
        if self.broken {
            return Ok(Fact::RepositoryBroken { attempt, why: "the branch is gone".to_owned() });
        }
        if let Some(fact) = self.trespass(rng, faults, &attempt, slot) {
            return Ok(fact);
        }
        if rng.chance(faults.git / 4) {
            return Ok(Fact::MergeFailed { attempt, why: "index.lock exists".to_owned() });
        }
        let head = self.head();
        if onto == Onto::Branch && self.lane(slot).base == Some(head) {
            return Ok(Fact::Merged { attempt, call, number, merge: Merge::Current });
        }
        self.meetings.merges += 1;
        if self.lane(slot).own.is_none_or(|(of, _)| of != call) {
            let work = self.lane(slot).work();
            self.lane(slot).own = Some((call, work));
        }
        if onto == Onto::Branch && self.lane(slot).base.is_none() && self.planted == Some(Planted::KeepsLostGround) {
            self.lane(slot).base = Some(head);
            let report = Box::new(self.look(&attempt, slot));
            return Ok(Fact::Merged { attempt, call, number, merge: Merge::Merged { report } });
        }
        let (under, carries) = match &onto {
            Onto::Branch => (self.heads[head], BTreeSet::new()),
            Onto::Candidate(candidate) => {
                self.meetings.ahead += 1;
                let known = self.candidates.get(&(candidate.attempt.clone(), candidate.tree.clone())).cloned();
                known.ok_or_else(|| format!("{attempt} is to be brought onto {candidate:?}, which was never there"))?
            }
        };
        let merge = self.merge_versions(rng, faults, slot, under);
        let lane = self.lane(slot);
        if onto != Onto::Branch && merge.is_none() {
            return Ok(Fact::Merged {
                attempt,
                call,
                number,
                merge: Merge::Conflicts { files: conflicts(), notes: Vec::new() },
            });
        }
        lane.base = (onto == Onto::Branch).then_some(head);
        (lane.under, lane.carries) = (under, carries);
        lane.refusal = None;
        let Some(work) = merge else {
            self.meetings.conflicts += 1;
            let own = self.lane(slot).own.map_or(0, |(_, own)| own);
            let ours = self.works[own];
            let work = Work { gates: [rng.chance(400); 2], checks: ours.checks, breaks_gates: false };
            let work = self.new_work(work);
            self.change(slot, |dirt| {
                dirt.work = work;
                dirt.markers = conflicts();
            });
            return Ok(Fact::Merged {
                attempt,
                call,
                number,
                merge: Merge::Conflicts { files: conflicts(), notes: Vec::new() },
            });
        };
        self.change(slot, |dirt| dirt.work = work);
        let report = Box::new(self.look(&attempt, slot));
        let lane = self.lane(slot);
        let (version, mut carries) = (lane.version(), lane.carries.clone());
        carries.insert(attempt.clone());
        self.candidates.insert((attempt.clone(), report.tree.clone()), (version, carries));
        Ok(Fact::Merged { attempt, call, number, merge: Merge::Merged { report } })
    }

    /// What comes of the lane's own work and that version, the same every time; nothing if they are in conflict.
    fn merge_versions(&mut self, rng: &mut Rng, faults: &Faults, slot: Slot, theirs: usize) -> Option<usize> {
        let own = self.lane(slot).own.map_or(0, |(_, own)| own);
        if own == 0 {
            return Some(0);
        }
        if let Some(known) = self.merged.get(&(own, theirs)) {
            return *known;
        }
        let (ours, base) = (self.works[own], self.works[theirs]);
        let merge = if rng.chance(faults.conflict) {
            None
        } else {
            let mut still = |holds: bool| holds && !rng.chance(faults.together);
            let gates = [still(ours.gates[0] && base.gates[0]), still(ours.gates[1] && base.gates[1])];
            let checks = [still(ours.checks[0]), still(ours.checks[1])];
            // Now and then somebody else has done the very same.
            let breaks_gates = ours.breaks_gates || base.breaks_gates;
            Some(if rng.chance(20) { 0 } else { self.new_work(Work { gates, checks, breaks_gates }) })
        };
        self.merged.insert((own, theirs), merge);
        merge
    }

    fn change(&mut self, slot: Slot, change: impl FnOnce(&mut Dirt)) {
        if let Some(dirt) = &mut self.lane(slot).dirt {
            change(dirt);
        }
    }

    /// What stands in the way of the attempt's commit before one is tried: the repository, an earlier refusal, somebody else.
    pub(super) fn bars_commit(
        &mut self,
        rng: &mut Rng,
        faults: &Faults,
        attempt: &AttemptId,
        slot: Slot,
    ) -> Option<Fact> {
        if self.broken {
            return Some(Fact::RepositoryBroken { attempt: attempt.clone(), why: "the branch is gone".to_owned() });
        }
        let refusal = self.lane(slot).refusal.clone().filter(|r| r.attempt() == Some(attempt));
        refusal.or_else(|| self.trespass(rng, faults, attempt, slot))
    }

    pub(crate) fn land(
        &mut self,
        rng: &mut Rng,
        faults: &Faults,
        (attempt, call, slot): (AttemptId, CallNumber, Slot),
        ground: Ground,
    ) -> Result<Fact, Breach> {
        self.quiet(slot, "a story lands")?;
        // Its own commit is one also if a person has sent it back since.
        let own = self.commits.iter().find(|commit| commit.attempt == attempt);
        let there = own.or_else(|| self.commit_of(&attempt.story)).map(|c| (c.attempt.clone(), c.id.clone()));
        if let Some((by, commit)) = there {
            if by == attempt && self.planted != Some(Planted::LandsTwice) {
                return Ok(Fact::Landed { attempt, commit, notes: Vec::new() });
            }
            return Err(format!("{attempt}: the story lands a second time; {by} landed it before"));
        }
        self.at_home(&attempt, slot)?;
        self.proven(&attempt, slot, ground)?;
        if let Some(fact) = self.bars_commit(rng, faults, &attempt, slot) {
            return Ok(fact);
        }
        if rng.chance(faults.git) {
            let refusal = match rng.below(5) {
                0 => Fact::LandingFailed { attempt, why: "cannot sign".to_owned() },
                1 => {
                    self.broken = true;
                    Fact::RepositoryBroken { attempt, why: "HEAD has moved".to_owned() }
                }
                2 if slot != 0 => Fact::LandingBlocked { attempt, why: "src/lib.rs".to_owned() },
                _ => Fact::LandingRefused { attempt, call, by: "pre-commit".to_owned(), output: "no".to_owned() },
            };
            self.lane(slot).refusal = Some(refusal.clone());
            return Ok(refusal);
        }
        let lane = self.lane(slot);
        let work = lane.work();
        lane.dirt = None;
        lane.resident = None;
        let head = self.heads.last().copied().unwrap_or(0);
        self.heads.push(if work == 0 { head } else { work });
        if self.last_call(&attempt).is_some_and(|key| self.told.get(&key).is_some_and(|files| !files.is_empty())) {
            self.meetings.resolved += 1;
        }
        let commit = CommitId(format!("c{}", self.commits.len()));
        self.commits.push(Commit { attempt: attempt.clone(), id: commit.clone(), ground });
        let marked = |s: &&mut Story| s.id == attempt.story && !s.needs_sign_off();
        if let Some(story) = self.plan.stories.iter_mut().find(marked) {
            story.state = WorkState::Done;
        }
        if rng.chance(500) {
            self.checkpoints.remove(&attempt);
        }
        Ok(Fact::Landed { attempt, commit, notes: Vec::new() })
    }

    /// Whether the attempt may land on that ground: its last agent finished, and every gate and every check of the
    /// story passed on this very tree, after that call, on the branch's newest commit.
    fn proven(&mut self, attempt: &AttemptId, slot: Slot, ground: Ground) -> Result<(), Breach> {
        let not = |why: &str| Err(format!("{attempt} lands as {ground:?} without ground: {why}"));
        let (head, tree) = (self.head(), self.lane(slot).tree());
        if self.lane(slot).base != Some(head) {
            return not(&format!("it was checked on {:?} commits, and the branch has {head}", self.lane(slot).base));
        }
        let there = |attempt: &AttemptId| self.commits.iter().any(|commit| commit.attempt == *attempt);
        if let Some(gone) = self.lane_at(slot).carries.iter().find(|attempt| !there(attempt)) {
            return not(&format!("the work of {gone} is in its tree, and has not landed"));
        }
        if let Some(dirt) = &self.lane(slot).dirt {
            if dirt.any() && dirt.owner != *attempt {
                return not("the lane holds another attempt's work");
            }
            if !dirt.markers.is_empty() || dirt.strayed {
                return not("its conflicts are not resolved, or more than they was changed");
            }
        }
        let Some(key) = self.last_call(attempt) else { return not("no agent ended") };
        let report = &self.ends[&key];
        if report.end != AgentEnd::Finished {
            return not("its agent did not finish");
        }
        let silent = match report.claim {
            Claim::Complete => false,
            Claim::None { .. } => true,
            Claim::Failed { .. } | Claim::Blocked { .. } => return not("its agent does not claim so"),
        };
        let own = self.pinned.get(&attempt.story).copied().unwrap_or(0);
        let checks: Vec<CheckRef> = (0..self.gates).map(CheckRef::Gate).chain((0..own).map(CheckRef::Story)).collect();
        for check in &checks {
            match self.results.get(&(key.clone(), *check, tree.clone())) {
                Some(CheckResult::Passed) => {}
                Some(result) => return not(&format!("{check:?} came to {result:?}")),
                None => return not(&format!("{check:?} was not run on {tree}")),
            }
        }
        let Some(seen) = self.seen.get(&key) else { return not("nobody looked at the tree") };
        let failed_before = || {
            checks.iter().any(|c| {
                self.baselines.get(&(attempt.story.clone(), seen.base, *c)).is_some_and(|result| !result.passed())
                    || self.baselines.iter().any(|((_, at, check), result)| {
                        *at == seen.base && check == c && matches!(c, CheckRef::Gate(_)) && !result.passed()
                    })
            })
        };
        let needs_no_change = || self.story(&attempt.story).is_some_and(|s| s.needs_no_change);
        let right = match (seen.changed, silent, checks.is_empty()) {
            (false, false, _) if failed_before() || needs_no_change() => Ground::NoChange,
            (true, true, false) if self.has_open_boxes(&attempt.story) && seen.ticked => Ground::NoSignal,
            (true, false, true) => Ground::Unverified,
            (true, false, false) => Ground::Verified,
            _ => return not("nothing changed, or nothing was claimed"),
        };
        if right == ground { Ok(()) } else { not(&format!("it is {right:?}")) }
    }

    pub(crate) fn settle(
        &mut self,
        rng: &mut Rng,
        faults: &Faults,
        attempt: AttemptId,
        slot: Slot,
    ) -> Result<Fact, Breach> {
        self.quiet(slot, "a landing is settled")?;
        if !self.commits.iter().any(|c| c.attempt == attempt) {
            return Err(format!("{attempt}: there is no landing to settle"));
        }
        if rng.chance(faults.git / 2) {
            return Ok(Fact::RevertFailed { attempt, why: "the spec cannot be written".to_owned() });
        }
        self.checkpoints.remove(&attempt);
        Ok(Fact::Settled { attempt })
    }
}
