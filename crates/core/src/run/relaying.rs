//! A story that is worked on by a relay: who has the next turn, with which baton, and when it is over. Whatever its roles
//! say, what counts in the end is judged as the work of one agent is.

use serde::{Deserialize, Serialize};

use super::Run;
use super::attempt::{AfterRevert, Attempt};
use super::landing::HALTED;
use crate::effect::{Brief, Effect};
use crate::evidence::{AgentReport, Claim, TreeReport};
use crate::ids::{AgentId, AttemptId, CallNumber, TreeId};
use crate::relay::{Leg, Note, baton, says_the_same};

/// So many roles in a row that say the same and leave the same tree have nothing left to do.
const SAME: u32 = 3;

/// How far the relay of an attempt is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Relaying {
    /// The leg that is run, or was run last.
    leg: Leg,
    /// What all of its legs are told.
    brief: Box<Brief>,
    notes: Vec<Note>,
    /// The tree that the last leg left, and how many in a row said the same and left that one.
    same: Option<(TreeId, u32)>,
    /// Calls made for it.
    legs: u32,
    /// Who ran which role.
    runners: Vec<(String, AgentId)>,
    /// Its turn is over: what comes now are repairs.
    over: bool,
}

impl Attempt {
    /// The leg of the relay that its agent runs.
    pub fn leg(&self) -> Option<&Leg> {
        self.relaying.as_ref().filter(|relaying| !relaying.over).map(|relaying| &relaying.leg)
    }

    /// The roles of its relay that have had their turn, and who ran them.
    pub fn runners(&self) -> &[(String, AgentId)] {
        self.relaying.as_ref().map_or(&[], |relaying| relaying.runners.as_slice())
    }

    /// Which repair a call is, from 1; 0 for the attempt's first call and for the legs of a relay.
    pub fn repair_number(&self, call: CallNumber) -> u32 {
        let legs = self.relaying.as_ref().map_or(1, |relaying| relaying.legs.max(1));
        call.0.saturating_sub(legs - 1)
    }
}

impl Run {
    /// The brief of the attempt's first call: that of the first role, if there is a relay.
    pub(super) fn first_leg(&mut self, id: &AttemptId, brief: Brief) -> Brief {
        let Some(relay) = self.policy.relay.clone() else { return brief };
        let Some(role) = relay.roles.first().cloned() else { return brief };
        let team = relay.roles.iter().map(|role| role.name.clone()).collect();
        let leg = Leg { role, team, place: 0, round: 1, rounds: relay.rounds.max(1), baton: Vec::new() };
        if let Some(attempt) = self.attempts.get_mut(&id.story) {
            let (leg, brief) = (leg.clone(), Box::new(brief.clone()));
            attempt.relaying =
                Some(Relaying { leg, brief, notes: Vec::new(), same: None, legs: 1, runners: Vec::new(), over: false });
        }
        Brief { leg: Some(Box::new(leg)), ..brief }
    }

    /// Who is called for that brief: the agent of the role, else whoever works on the story.
    pub(super) fn agent_for_call(&self, id: &AttemptId, brief: &Brief) -> Option<&AgentId> {
        let of_role = brief.leg.as_ref().and_then(|leg| leg.role.agent.as_ref());
        match of_role.filter(|agent| self.away(agent).is_none()) {
            // The run keeps agents by what they are called; the brief does not live as long.
            Some(agent) => self.policy.relay.as_ref().and_then(|relay| {
                relay.roles.iter().filter_map(|role| role.agent.as_ref()).find(|known| *known == agent)
            }),
            None => None,
        }
        .or_else(|| self.agent_for(&id.story))
    }

    /// A leg of the relay ended well: the next one begins. Nothing if its work is to be judged now.
    pub(super) fn hand_on(
        &mut self,
        id: &AttemptId,
        call: CallNumber,
        report: &AgentReport,
        tree: &TreeReport,
    ) -> Option<Vec<Effect>> {
        let roles = self.policy.relay.as_ref().map(|relay| relay.roles.clone()).unwrap_or_default();
        let attempt = self.attempts.get_mut(&id.story)?;
        let relaying = attempt.relaying.as_mut().filter(|relaying| !relaying.over)?;
        let complete = report.claim == Claim::Complete;
        let times = match (&relaying.same, relaying.notes.last()) {
            (Some((known, times)), Some(last))
                if *known == tree.tree && says_the_same(&last.text, &report.handover) =>
            {
                times + 1
            }
            _ => 1,
        };
        relaying.same = Some((tree.tree.clone(), times));
        let (role, round) = (relaying.leg.role.name.clone(), relaying.leg.round);
        if let Some(agent) = attempt.agent.clone().map(|agent| (role.clone(), agent))
            && !relaying.runners.contains(&agent)
        {
            relaying.runners.push(agent);
        }
        relaying.notes.push(Note { role, round, complete, text: report.handover.clone() });
        let is_last = relaying.leg.closes_the_round();
        let next = if is_last { 0 } else { relaying.leg.place + 1 };
        let ends = times >= SAME || (is_last && (complete || relaying.leg.round >= relaying.leg.rounds));
        let role = roles.get(next).filter(|_| !ends).cloned();
        let Some(role) = role else {
            relaying.over = true;
            return None;
        };
        relaying.leg = Leg {
            role,
            place: next,
            round: relaying.leg.round + u32::from(is_last),
            baton: baton(&relaying.notes),
            ..relaying.leg.clone()
        };
        if self.halted {
            return Some(self.revert(id, HALTED, AfterRevert::Again));
        }
        if let Some(outcome) = self.bound_reached() {
            let reason = format!("{outcome}, and the relay may not go on");
            return Some(self.revert(id, &reason, AfterRevert::End(outcome)));
        }
        let brief = self.next_leg(id)?;
        Some(self.start_agent(id, CallNumber(call.0 + 1), brief))
    }

    /// What the next role is told: what the first one was, what the user has said since, and the baton.
    fn next_leg(&mut self, id: &AttemptId) -> Option<Brief> {
        let fresh = self.common_brief(id);
        let attempt = self.attempts.get_mut(&id.story)?;
        let guidance = attempt.carried.clone();
        let relaying = attempt.relaying.as_mut()?;
        relaying.legs += 1;
        let leg = Some(Box::new(relaying.leg.clone()));
        Some(Brief { guidance, learnings: fresh.learnings, leg, ..(*relaying.brief).clone() })
    }
}
