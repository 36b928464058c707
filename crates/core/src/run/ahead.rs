//! Preparing ahead: while one candidate is checked on its merged tree, the next is merged on top of it and checked there; a
//! line grows so, of which each stands on the one before. What lands is proven on the very tree that lands, so a guess that
//! was right saves its checks, and one that was wrong costs only what it took.

use serde::{Deserialize, Serialize};

use super::Run;
use super::attempt::{Attempt, Phase, Proof};
use crate::effect::{Candidate, Effect, Onto};
use crate::ids::{AttemptId, TreeId};

/// Where an attempt is on its way to the branch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Approach {
    /// Merges that were asked for; the number of the last one.
    asked: u32,
    stands: Stands,
    /// Its merged tree, as long as others may be prepared on top of it.
    candidate: Option<TreeId>,
    /// On this candidate it is in conflict, or red.
    avoids: Option<Candidate>,
}

/// What the work stands on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
enum Stands {
    /// A commit of the branch.
    #[default]
    Branch,
    /// A candidate. If its attempt is not under way any more, it has landed.
    Ahead(Candidate),
    /// A candidate that came to nothing. As soon as what runs has ended, the work is brought onto something else.
    Lost,
}

impl Run {
    /// Asks for the work to be brought onto the branch, or a candidate.
    pub(super) fn ask_to_merge(&mut self, id: &AttemptId, onto: Onto) -> Vec<Effect> {
        let Some(attempt) = self.attempts.get_mut(&id.story) else { return Vec::new() };
        let Phase::Queued(proof) = attempt.phase.clone() else { return Vec::new() };
        let call = proof.call;
        attempt.phase = Phase::Merging(proof);
        let approach = &mut attempt.approach;
        approach.asked += 1;
        approach.avoids = None;
        approach.stands = match &onto {
            Onto::Branch => Stands::Branch,
            Onto::Candidate(candidate) => Stands::Ahead(candidate.clone()),
        };
        vec![Effect::Merge { attempt: id.clone(), call, number: approach.asked, onto }]
    }

    /// Brings the next in the queue onto the last of the line, if that holds still.
    pub(super) fn prepare_ahead(&mut self) -> Vec<Effect> {
        let Some(last) = self.last_in_line().and_then(Attempt::as_ground) else { return Vec::new() };
        let may = |a: &&Attempt| matches!(a.phase, Phase::Queued(_)) && self.before(a).is_none() && !self.is_avoided(a);
        let next = self.attempts.values().filter(may).filter_map(|a| Some((a.turn()?, a.id.clone()))).min();
        let Some((_, id)) = next else { return Vec::new() };
        self.ask_to_merge(&id, Onto::Candidate(last))
    }

    /// Whose turn it is: it stands on the branch, or on what has landed, and is merged, checked as merged, or landing.
    pub(super) fn first_in_line(&self) -> Option<&Attempt> {
        self.attempts.values().find(|a| a.is_on_its_way() && !a.is_lost() && self.before(a).is_none())
    }

    fn last_in_line(&self) -> Option<&Attempt> {
        let mut last = self.first_in_line()?;
        // Each stands on one that was there before it, so that this ends.
        while let Some(next) = self.attempts.values().find(|a| a.stands_on(&last.id)) {
            last = next;
        }
        Some(last)
    }

    /// The attempt under way on whose candidate this one stands.
    fn before(&self, attempt: &Attempt) -> Option<&Attempt> {
        match &attempt.approach.stands {
            Stands::Ahead(candidate) => self.attempt(&candidate.attempt),
            Stands::Branch | Stands::Lost => None,
        }
    }

    /// The candidate that it has failed on is still there.
    fn is_avoided(&self, attempt: &Attempt) -> bool {
        let avoided = attempt.approach.avoids.as_ref();
        avoided
            .is_some_and(|c| self.attempt(&c.attempt).is_some_and(|a| a.approach.candidate.as_ref() == Some(&c.tree)))
    }

    /// Something runs for one whose ground is gone, and which will be back in the queue in a moment.
    pub(super) fn one_is_lost(&self) -> bool {
        self.attempts.values().any(|a| a.is_on_its_way() && a.is_lost())
    }

    pub(super) fn is_lost(&self, id: &AttemptId) -> bool {
        self.attempt(id).is_some_and(Attempt::is_lost)
    }

    /// It stands on a candidate, landed or not, and not on the branch itself.
    pub(super) fn stands_ahead(&self, id: &AttemptId) -> bool {
        self.attempt(id).is_some_and(Attempt::is_ahead)
    }

    /// It was merged as this tree, which the next may be prepared on.
    pub(super) fn offer(&mut self, id: &AttemptId, tree: &TreeId) -> Vec<Effect> {
        if self.attempt(id).is_some_and(|a| a.approach.candidate.as_ref() == Some(tree)) {
            return Vec::new();
        }
        let effects = self.lose_candidate(id);
        if let Some(attempt) = self.attempts.get_mut(&id.story) {
            attempt.approach.candidate = Some(tree.clone());
        }
        effects
    }

    /// Its merged tree will not land: what stands on that has lost its ground, and so on up the line.
    pub(super) fn lose_candidate(&mut self, id: &AttemptId) -> Vec<Effect> {
        let offered = self.attempts.get_mut(&id.story).and_then(|attempt| attempt.approach.candidate.take());
        if offered.is_none() {
            return Vec::new();
        }
        let lost: Vec<AttemptId> = self.attempts.values().filter(|a| a.stands_on(id)).map(|a| a.id.clone()).collect();
        let mut effects = Vec::new();
        for other in lost {
            let Some(attempt) = self.attempts.get_mut(&other.story) else { continue };
            attempt.approach.stands = match attempt.phase {
                Phase::Merging(_) | Phase::Checking(_) => Stands::Lost,
                _ => Stands::Branch,
            };
            if let Phase::Checking(_) = attempt.phase {
                effects.push(Effect::StopCheck { attempt: other.clone() });
            }
            effects.extend(self.lose_candidate(&other));
        }
        effects
    }

    /// It is in conflict with the candidate that it stands on, or red on top of it: it waits for what becomes of that.
    pub(super) fn set_aside(&mut self, id: &AttemptId, proof: Proof) -> Vec<Effect> {
        let mut effects = self.lose_candidate(id);
        if let Some(attempt) = self.attempts.get_mut(&id.story)
            && let Stands::Ahead(candidate) = std::mem::take(&mut attempt.approach.stands)
        {
            attempt.approach.avoids = Some(candidate);
        }
        effects.extend(self.queue(id, proof));
        effects
    }

    /// The merged tree is proven.
    pub(super) fn proven_merged(&mut self, id: &AttemptId, mut proof: Proof, tree: TreeId) -> Vec<Effect> {
        proof.holds_for(tree);
        // A tree on the branch's newest commit stays on it, since nothing lands before it.
        if self.stands_ahead(id) { self.queue(id, proof) } else { self.land(id, proof) }
    }
}

impl Attempt {
    /// The attempt on whose work it was prepared; if that is not under way any more, it has landed.
    pub fn prepared_on(&self) -> Option<&AttemptId> {
        match &self.approach.stands {
            Stands::Ahead(candidate) => Some(&candidate.attempt),
            Stands::Branch | Stands::Lost => None,
        }
    }

    /// The attempt on whose work its own failed, for whose fate it waits.
    pub fn waits_for(&self) -> Option<&AttemptId> {
        self.approach.avoids.as_ref().map(|candidate| &candidate.attempt)
    }

    /// The fact answers the merge that was asked for last.
    pub(super) fn awaits_merge(&mut self, number: u32) -> bool {
        if number == 0 {
            // It was written down by a version that merged with the branch only.
            self.approach.stands = Stands::Branch;
        }
        number == 0 || number == self.approach.asked
    }

    fn is_ahead(&self) -> bool {
        matches!(self.approach.stands, Stands::Ahead(_))
    }

    fn is_lost(&self) -> bool {
        self.approach.stands == Stands::Lost
    }

    fn stands_on(&self, other: &AttemptId) -> bool {
        matches!(&self.approach.stands, Stands::Ahead(candidate) if candidate.attempt == *other)
    }

    /// It is merged, checked as merged, or landing.
    pub fn is_on_its_way(&self) -> bool {
        match &self.phase {
            Phase::Merging(_) | Phase::Landing(_) => true,
            Phase::Checking(checking) => checking.merged.is_some(),
            _ => false,
        }
    }

    /// As what others may stand on. One that is about to land will be on the branch before they are prepared.
    fn as_ground(&self) -> Option<Candidate> {
        let holds_still = matches!(self.phase, Phase::Checking(_) | Phase::Queued(_));
        let tree = self.approach.candidate.as_ref().filter(|_| holds_still)?;
        Some(Candidate { attempt: self.id.clone(), tree: tree.clone() })
    }

    /// Its place among those that wait to land.
    pub(super) fn turn(&self) -> Option<u32> {
        self.proof().map(|proof| proof.turn)
    }

    fn proof(&self) -> Option<&Proof> {
        match &self.phase {
            Phase::Queued(proof) | Phase::Merging(proof) | Phase::Landing(proof) => Some(proof),
            Phase::Checking(checking) => checking.merged.as_deref(),
            _ => None,
        }
    }
}

impl Proof {
    /// All that has to pass has passed on that tree, after the same call.
    pub(super) fn covers(&self, tree: &TreeId) -> bool {
        self.tree == *tree || self.also.contains(tree)
    }

    pub(super) fn holds_for(&mut self, tree: TreeId) {
        let before = std::mem::replace(&mut self.tree, tree);
        self.also.retain(|known| *known != self.tree);
        if before != self.tree {
            self.also.push(before);
        }
    }
}
