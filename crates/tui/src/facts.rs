//! What the screen knows of a run: the run itself, and per attempt what the run no longer needs. A fold of events.
//!
//! Every access to what runs just now goes through here.

use std::collections::BTreeMap;
use std::time::Duration;

use ralphloop_core::event::{CheckStage, Event, Fact};
use ralphloop_core::evidence::{AgentReport, CheckResult};
use ralphloop_core::ids::{AttemptId, CallNumber, StoryId};
use ralphloop_core::outcome::Outcome;
use ralphloop_core::review::Opinion;
use ralphloop_core::run::{Activity, Attempt, Phase, Run, StoryState};
use ralphloop_core::units::Timestamp;

use crate::port::CallId;

/// A run and its attempts.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    pub(crate) run: Run,
    /// Every attempt, in the order of story and number.
    pub(crate) tries: BTreeMap<AttemptId, Try>,
    /// The process that worked on the run is gone though the run has not ended.
    pub(crate) gone: bool,
}

/// What is known of one attempt.
#[derive(Debug, Clone)]
pub(crate) struct Try {
    pub(crate) began: Timestamp,
    pub(crate) ended: Option<Timestamp>,
    pub(crate) calls: Vec<Called>,
    pub(crate) checks: Vec<Checked>,
    pub(crate) files_changed: Option<u32>,
    pub(crate) notes: Vec<String>,
    pub(crate) end: Option<TryEnd>,
}

/// One call of the agent.
#[derive(Debug, Clone)]
pub(crate) struct Called {
    pub(crate) number: CallNumber,
    /// `agent`, `repair 1`, or the role that it has in a relay.
    pub(crate) which: String,
    pub(crate) began: Timestamp,
    pub(crate) report: Option<Box<AgentReport>>,
}

/// One gate or check.
#[derive(Debug, Clone)]
pub(crate) struct Checked {
    pub(crate) stage: CheckStage,
    pub(crate) label: String,
    pub(crate) began: Timestamp,
    /// `None` while it runs.
    pub(crate) result: Option<CheckResult>,
    pub(crate) cached: bool,
    pub(crate) took: Duration,
}

/// How an attempt ended.
#[derive(Debug, Clone)]
pub(crate) enum TryEnd {
    Landed { commit: String },
    Added { task: String },
    Reverted { kept: Option<String>, why: String },
    Broken { why: String },
}

impl Watched {
    /// Begins with the first event of a run; `None` if it is not one.
    pub(crate) fn start(event: &Event) -> Option<Self> {
        let (run, _) = Run::start(event).ok()?;
        Some(Self { run, tries: BTreeMap::new(), gone: false })
    }

    /// Takes an event in.
    pub(crate) fn step(&mut self, event: &Event) {
        let label = match &event.fact {
            Fact::CheckStarted { attempt, check, .. } | Fact::CheckFinished { attempt, check, .. } => {
                Some(self.run.label(attempt, *check))
            }
            _ => None,
        };
        drop(self.run.step(event));
        let Some(attempt) = event.fact.attempt() else { return };
        if let Fact::AttemptStarted { attempt, .. } = &event.fact {
            self.tries.insert(attempt.clone(), Try::new(event.at));
            return;
        }
        let why = self.run.record(&attempt.story).and_then(|record| record.reason.clone()).unwrap_or_default();
        if let Some(one) = self.tries.get_mut(attempt) {
            let which = self.run.attempt(attempt).map(which).unwrap_or_default();
            one.step(event, label.unwrap_or_default(), (why, which));
        }
    }

    /// The attempts under way. The one place that knows how a run keeps them.
    pub(crate) fn attempts(&self) -> impl Iterator<Item = &Attempt> {
        self.run.attempts()
    }

    /// The attempt of a story that is under way.
    pub(crate) fn attempt_of(&self, story: &StoryId) -> Option<&Attempt> {
        self.attempts().find(|attempt| attempt.id.story == *story)
    }

    /// What the run waits for, and until when.
    pub(crate) fn waits(&self) -> Option<(Timestamp, &str)> {
        self.run.wait().map(|wait| (wait.until, wait.reason.as_str()))
    }

    /// How the run ended, if it has.
    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        match self.run.activity() {
            Activity::Ended(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Nothing more will happen, unless somebody resumes.
    pub(crate) fn over(&self) -> bool {
        self.gone || self.outcome().is_some()
    }

    /// The attempts of a story, oldest first.
    pub(crate) fn tries_of(&self, story: &StoryId) -> impl DoubleEndedIterator<Item = (&AttemptId, &Try)> {
        let from = AttemptId { story: story.clone(), number: 0 };
        let to = AttemptId { story: story.clone(), number: u32::MAX };
        self.tries.range(from..=to)
    }

    /// The calls of a story's agents, oldest first: each has a transcript.
    pub(crate) fn calls_of(&self, story: &StoryId) -> Vec<CallId> {
        let of = |(id, one): (&AttemptId, &Try)| {
            one.calls.iter().map(|call| CallId { attempt: id.clone(), call: call.number }).collect::<Vec<_>>()
        };
        self.tries_of(story).flat_map(of).collect()
    }

    /// What that call is called: `repair 1`, or its role; nothing for the first call of an agent that works alone.
    pub(crate) fn name_of(&self, id: &CallId) -> Option<&str> {
        let calls = &self.tries.get(&id.attempt)?.calls;
        let which = calls.iter().find(|called| called.number == id.call).map(|called| called.which.as_str())?;
        (which != "agent").then_some(which)
    }

    /// Whether a gate or check failed when it last ran before an attempt had changed anything.
    pub(crate) fn was_red(&self, label: &str) -> bool {
        let base = |check: &&Checked| check.stage == CheckStage::Baseline && check.label == label;
        let checks = self.tries.values().flat_map(|one| &one.checks);
        let last = checks.filter(base).max_by_key(|check| check.began);
        last.is_some_and(|check| matches!(check.result, Some(CheckResult::Failed { .. })))
    }

    /// How many stories are in that state.
    pub(crate) fn count(&self, is: impl Fn(&StoryState) -> bool) -> usize {
        self.run.records().filter(|(_, record)| is(&record.state)).count()
    }
}

impl Try {
    fn new(began: Timestamp) -> Self {
        Self {
            began,
            ended: None,
            calls: Vec::new(),
            checks: Vec::new(),
            files_changed: None,
            notes: Vec::new(),
            end: None,
        }
    }

    fn step(&mut self, event: &Event, label: String, (why, which): (String, String)) {
        let end = match &event.fact {
            Fact::CheckStarted { stage, .. } => {
                self.checks.push(Checked {
                    stage: *stage,
                    label,
                    began: event.at,
                    result: None,
                    cached: false,
                    took: Duration::ZERO,
                });
                None
            }
            Fact::CheckFinished { stage, result, cached, took, .. } => {
                let open = self.checks.iter_mut().rev().find(|c| c.result.is_none() && c.label == label);
                let done = Checked {
                    stage: *stage,
                    label,
                    began: event.at,
                    result: Some(result.clone()),
                    cached: *cached,
                    took: *took,
                };
                match open {
                    Some(open) => *open = done,
                    None => self.checks.push(done),
                }
                None
            }
            Fact::AgentStarted { call, .. } => {
                self.calls.push(Called { number: *call, which, began: event.at, report: None });
                None
            }
            Fact::AgentEnded { call, report, .. } => {
                let report = Some(report.clone());
                if let Some(known) = self.calls.iter_mut().find(|known| known.number == *call) {
                    known.report = report;
                } else {
                    // It ended before it began: it could not be started.
                    self.calls.push(Called { number: *call, which, began: event.at, report });
                }
                None
            }
            Fact::TreeInspected { report, .. } => {
                self.files_changed = Some(report.files_changed);
                self.notes.extend(report.notes.iter().cloned());
                None
            }
            Fact::ReviewEnded { agent, report, .. } => {
                self.notes.push(match &report.opinion {
                    Opinion::Approves => format!("{agent} approves"),
                    Opinion::Objects { findings } => format!("{agent} sends it back: {}", findings.join("; ")),
                    Opinion::Unclear { .. } => format!("{agent} has no opinion that counts"),
                });
                None
            }
            Fact::CheckpointTaken { notes, .. } => {
                self.notes.extend(notes.iter().cloned());
                None
            }
            Fact::Landed { commit, notes, .. } => {
                self.notes.extend(notes.iter().cloned());
                Some(TryEnd::Landed { commit: commit.as_str().to_owned() })
            }
            Fact::LandingRefused { by, output, .. } => {
                self.notes.push(format!("no commit was made: {by}\n{output}"));
                None
            }
            Fact::FixTaskAdded { task, .. } => Some(TryEnd::Added { task: task.to_string() }),
            Fact::NoFixTask { why, .. } => {
                self.notes.push(format!("no fix task can be added: {why}"));
                None
            }
            Fact::Reverted { kept, notes, .. } => {
                self.notes.extend(notes.iter().cloned());
                Some(TryEnd::Reverted { kept: kept.clone(), why })
            }
            Fact::CheckpointFailed { why, .. }
            | Fact::RepositoryBroken { why, .. }
            | Fact::LandingFailed { why, .. }
            | Fact::LaneFailed { why, .. }
            | Fact::MergeFailed { why, .. }
            | Fact::Trespassed { why, .. }
            | Fact::LandingBlocked { why, .. }
            | Fact::RevertFailed { why, .. } => Some(TryEnd::Broken { why: why.clone() }),
            _ => None,
        };
        if end.is_some() {
            self.end = end;
            self.ended = Some(event.at);
        }
    }
}

/// What the call of an attempt is called that runs now.
fn which(attempt: &Attempt) -> String {
    let call = match &attempt.phase {
        Phase::Agent { call } | Phase::Inspecting { call, .. } => *call,
        _ => CallNumber(0),
    };
    match (attempt.leg(), attempt.repair_number(call)) {
        (Some(leg), _) if leg.rounds > 1 => format!("{}, round {}", leg.role.name, leg.round),
        (Some(leg), _) => leg.role.name.clone(),
        (None, 0) => "agent".to_owned(),
        (None, repair) => format!("repair {repair}"),
    }
}

/// What an attempt does just now, in words for people.
pub fn doing(attempt: &Attempt, run: &Run) -> String {
    match &attempt.phase {
        phase if run.mends(&attempt.id).is_some() && !matches!(phase, Phase::Reverting { .. }) => {
            "adds a fix task to the spec".to_owned()
        }
        Phase::Beginning => "begins".to_owned(),
        Phase::Baseline { queue } => {
            let check = queue.front().map(|check| run.label(&attempt.id, *check)).unwrap_or_default();
            format!("checks the base: {check}")
        }
        Phase::Checkpointing => "takes the checkpoint".to_owned(),
        Phase::Held { .. } if run.waits_for_agents(attempt) => "waits for the provider".to_owned(),
        Phase::Held { .. } => "waits until another agent is through".to_owned(),
        Phase::Agent { call } => {
            let who = match &attempt.agent {
                Some(agent) if run.chain().len() > 1 || attempt.leg().is_some() => agent.as_str(),
                _ => "the agent",
            };
            match (attempt.leg(), attempt.repair_number(*call)) {
                (Some(leg), _) => {
                    format!("{who} works as {}, round {} of {} at most", leg.role.name, leg.round, leg.rounds)
                }
                (None, 0) => format!("{who} works"),
                (None, repair) => format!("{who} works (repair {repair})"),
            }
        }
        Phase::Inspecting { .. } => "looks at the changes".to_owned(),
        Phase::Checking(checking) => {
            let check = checking.current().map(|check| run.label(&attempt.id, check)).unwrap_or_default();
            format!("runs a check: {check}")
        }
        Phase::Reviewing(reviewing) => format!("{} reviews", reviewing.by),
        Phase::Queued(_) => "proven, waits for its turn to land".to_owned(),
        Phase::Merging(_) => "merges with what lands before it".to_owned(),
        Phase::Landing(_) => "commits".to_owned(),
        Phase::Reverting { .. } => "puts the tree back".to_owned(),
    }
}
