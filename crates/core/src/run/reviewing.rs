//! The reviewer: proven work is shown to it before it lands. It is advice, so that nothing it says or fails to say makes
//! work land that is not proven, and nothing but a clear objection sends proven work back.

use serde::{Deserialize, Serialize};

use super::Run;
use super::attempt::{AfterRevert, Phase, Proof};
use super::landing::HALTED;
use crate::effect::{Brief, Effect};
use crate::event::Fact;
use crate::evidence::{AgentEnd, AgentReport, Claim};
use crate::ids::{AgentId, AttemptId, CallNumber};
use crate::review::{Opinion, ReviewReport, Reviewed};
use crate::verdict::{AfterAgent, CheckEvidence, after_agent, cause_in_words};

/// A review under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reviewing {
    /// Which of the attempt, from 1.
    pub round: u32,
    /// Who reviews.
    pub by: AgentId,
    pub(super) proof: Proof,
}

impl Reviewing {
    /// The call whose work is reviewed.
    pub fn call(&self) -> CallNumber {
        self.proof.call
    }
}

impl Run {
    /// The attempt's work is proven: a reviewer sees it, if there is one to be asked, before it lands.
    pub(super) fn review(&mut self, id: &AttemptId, proof: Proof, checks: &[CheckEvidence]) -> Vec<Effect> {
        let Some(by) = self.policy.reviewer.clone() else { return self.proven(id, proof) };
        let sent_back = self.attempt(id).map_or(0, |attempt| attempt.sent_back);
        if let Some(reviewed) = self.not_asked(&by, sent_back) {
            return self.land_reviewed(id, proof, reviewed);
        }
        let Some(attempt) = self.attempts.get_mut(&id.story) else { return Vec::new() };
        attempt.reviews += 1;
        let (round, call) = (attempt.reviews, proof.call);
        self.calls += 1;
        let earlier = self.stories.get(&id.story).map(|record| record.findings.clone()).unwrap_or_default();
        let passed = checks.iter().filter(|check| check.result.passed()).map(|check| check.label.clone()).collect();
        self.phase(id, Phase::Reviewing(Box::new(Reviewing { round, by: by.clone(), proof })));
        vec![Effect::Review { attempt: id.clone(), call, round, agent: by, earlier, passed }]
    }

    /// Why the reviewer is not asked, if it is not; what it would say must be able to change something.
    fn not_asked(&self, by: &AgentId, sent_back: u32) -> Option<Reviewed> {
        let not = |why: String| Some(Reviewed::Not { why });
        if sent_back >= self.policy.max_reviews {
            return match sent_back {
                0 => not("max_reviews is 0".to_owned()),
                times => Some(Reviewed::Mended { by: by.to_string(), times }),
            };
        }
        if let Some(why) = &self.review_off {
            return not(why.clone());
        }
        if let Some(away) = self.away(by) {
            return not(format!("{by} cannot be called: {}", away.reason()));
        }
        match self.bound_reached() {
            Some(outcome) => not(outcome.to_string()),
            None if self.begins_nothing() => not("the run ends".to_owned()),
            None => None,
        }
    }

    fn land_reviewed(&mut self, id: &AttemptId, mut proof: Proof, reviewed: Reviewed) -> Vec<Effect> {
        if let Some(record) = self.stories.get_mut(&id.story) {
            record.reviewed = Some(reviewed);
        }
        proof.turn = self.next_turn();
        self.proven(id, proof)
    }

    /// Takes in a fact about an attempt whose work is being reviewed.
    pub(super) fn reviewing_step(&mut self, id: &AttemptId, reviewing: Reviewing, fact: &Fact) -> Vec<Effect> {
        match fact {
            Fact::ReviewEnded { round, report, .. } if *round == reviewing.round => {
                self.review_ended(id, reviewing, report)
            }
            _ => Vec::new(),
        }
    }

    fn review_ended(&mut self, id: &AttemptId, reviewing: Reviewing, report: &ReviewReport) -> Vec<Effect> {
        let Reviewing { by, proof, .. } = reviewing;
        let as_agent = AgentReport {
            end: report.end.clone(),
            claim: Claim::None { near_miss: None },
            last_words: String::new(),
            handover: String::new(),
            usage: report.usage,
            took: report.took,
            learnings: Vec::new(),
            model: report.model.clone(),
        };
        self.count(id, &as_agent);
        let waits = self.waits_of(&by);
        self.note_end(&by, &as_agent, waits);
        if let Some(why) = self.cut_short(id) {
            return self.revert(id, why, AfterRevert::Again);
        }
        if self.halted {
            return self.revert(id, HALTED, AfterRevert::Again);
        }
        if report.touched {
            let why = format!("{by} changed the tree that it was to review, so it is not asked again in this run");
            self.review_off = Some(why.clone());
            return self.revert(id, &why, AfterRevert::Again);
        }
        let reviewed = match (&report.end, &report.opinion) {
            (AgentEnd::Finished, Opinion::Objects { findings }) => {
                return self.send_back(id, proof, &by, findings);
            }
            (AgentEnd::Finished, Opinion::Approves) => Reviewed::Approved { by: by.to_string() },
            (AgentEnd::Finished, Opinion::Unclear { said }) => {
                Reviewed::Not { why: format!("what {by} said is in no form of an opinion: {said}") }
            }
            _ => Reviewed::Not { why: format!("{by}: {}", end_in_words(&as_agent)) },
        };
        self.land_reviewed(id, proof, reviewed)
    }

    /// Hands the findings to the agent, as a repair that is not counted as one; if nobody can mend them, the work lands.
    fn send_back(&mut self, id: &AttemptId, proof: Proof, by: &AgentId, findings: &[String]) -> Vec<Effect> {
        if let Some(record) = self.stories.get_mut(&id.story) {
            for finding in findings {
                if !record.findings.contains(finding) {
                    record.findings.push(finding.clone());
                }
            }
        }
        if let Some(outcome) = self.bound_reached() {
            let why = format!("{by} found {}, and it was not sent back: {outcome}", findings.join("; "));
            return self.land_reviewed(id, proof, Reviewed::Not { why });
        }
        if let Some(attempt) = self.attempts.get_mut(&id.story) {
            attempt.sent_back += 1;
        }
        let brief = Brief { findings: findings.to_vec(), ..self.repair_brief(id, Vec::new()) };
        let mut effects = self.start_agent(id, CallNumber(proof.call.0 + 1), brief);
        effects.extend(self.next_landing());
        effects
    }
}

fn end_in_words(report: &AgentReport) -> String {
    match after_agent(report) {
        AfterAgent::Inconclusive(cause) => cause_in_words(&cause),
        AfterAgent::Failed(failure) => failure.reason,
        AfterAgent::Blocked { reason } => reason,
        AfterAgent::RunChecks => "it ended without an opinion".to_owned(),
    }
}
