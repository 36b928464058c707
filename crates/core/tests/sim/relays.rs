//! What must hold of relays: every role has its turn, in order and round by round, is told what the one before said, and
//! nothing is judged before its end.

use std::collections::BTreeMap;

use ralphloop_core::effect::Brief;
use ralphloop_core::event::Fact;
use ralphloop_core::evidence::Claim;
use ralphloop_core::ids::{AttemptId, TreeId};
use ralphloop_core::policy::Policy;
use ralphloop_core::relay::BATON;

use super::world::Breach;

/// One leg that was run.
#[derive(Default)]
struct Run {
    complete: bool,
    said: String,
    left: Option<TreeId>,
}

#[derive(Default)]
pub(crate) struct Relays {
    legs: BTreeMap<AttemptId, Vec<Run>>,
    /// Attempts whose relay is over.
    over: std::collections::BTreeSet<AttemptId>,
}

impl Relays {
    pub(crate) fn told(&mut self, fact: &Fact) {
        match fact {
            Fact::AgentEnded { attempt, report, .. } if !self.over.contains(attempt) => {
                if let Some(leg) = self.legs.get_mut(attempt).and_then(|legs| legs.last_mut()) {
                    leg.complete = report.claim == Claim::Complete;
                    leg.said.clone_from(&report.handover);
                }
            }
            Fact::TreeInspected { attempt, report, .. } if !self.over.contains(attempt) => {
                if let Some(leg) = self.legs.get_mut(attempt).and_then(|legs| legs.last_mut()) {
                    leg.left = Some(report.tree.clone());
                }
            }
            _ => {}
        }
    }

    /// An agent is to be called.
    pub(crate) fn called(&mut self, attempt: &AttemptId, brief: &Brief, policy: &Policy) -> Result<(), Breach> {
        let begins = !self.legs.contains_key(attempt);
        let (Some(relay), true) = (&policy.relay, begins || brief.leg.is_some()) else {
            self.over.insert(attempt.clone());
            return Ok(());
        };
        let Some(leg) = &brief.leg else { return Err(format!("{attempt}: there is a relay, and it is not run")) };
        let legs = self.legs.entry(attempt.clone()).or_default();
        let (place, round) = (legs.len() % relay.roles.len(), legs.len() / relay.roles.len() + 1);
        if relay.roles.get(place) != Some(&leg.role) || u32::try_from(round) != Ok(leg.round) {
            return Err(format!("{attempt}: {leg:?} is run as leg {} of {relay:?}", legs.len()));
        }
        if leg.round > relay.rounds {
            return Err(format!("{attempt}: round {} of the relay is one too many", leg.round));
        }
        if let Some(last) = legs.last().filter(|last| leg.baton.last().is_none_or(|note| note.text != last.said)) {
            return Err(format!("{attempt}: {} is not told what the one before said: {}", leg.role.name, last.said));
        }
        if leg.baton.iter().map(|note| note.text.len()).sum::<usize>() > BATON {
            return Err(format!("{attempt}: the baton of {} is too large", leg.role.name));
        }
        legs.push(Run::default());
        Ok(())
    }

    /// What the attempt's agents left is judged.
    pub(crate) fn judged(&mut self, attempt: &AttemptId, policy: &Policy) -> Result<(), Breach> {
        let (Some(relay), Some(legs)) = (&policy.relay, self.legs.get(attempt)) else { return Ok(()) };
        if !self.over.insert(attempt.clone()) {
            return Ok(());
        }
        let round_ends = legs.len() % relay.roles.len() == 0;
        let complete = legs.last().is_some_and(|leg| leg.complete);
        let last_round = legs.len() >= relay.roles.len() * usize::try_from(relay.rounds).unwrap_or(usize::MAX);
        let agree = |pair: &[Run]| match pair {
            [one, other] => one.said == other.said && one.left == other.left,
            _ => false,
        };
        let same = legs.len() >= 3 && legs[legs.len() - 3..].windows(2).all(agree);
        if (round_ends && (complete || last_round)) || same {
            Ok(())
        } else {
            Err(format!("{attempt}: it is judged after {} legs of {relay:?}", legs.len()))
        }
    }
}
