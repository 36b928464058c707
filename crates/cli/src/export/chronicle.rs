//! What a run came to, piece by piece, as other tools' files tell it: a fold of its events.

use std::collections::BTreeMap;
use std::time::Duration;

use ralphloop_core::effect::Ground;
use ralphloop_core::event::{CheckStage, Event, Fact};
use ralphloop_core::evidence::{AgentEnd, AgentReport, CheckResult, Claim, Merge};
use ralphloop_core::ids::{AttemptId, StoryId};
use ralphloop_core::run::{NotARun, Phase, Run, StoryState};
use ralphloop_core::units::Timestamp;
use serde::{Deserialize, Serialize};

use crate::output::one_line;

/// What kind of failure it is: the kind decides how it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FailureClass {
    /// A gate or a check of the story was red, or a hook refused the commit.
    Verification,
    /// The agent did not do it, or said that it cannot.
    Implementation,
    /// A time limit was reached, and what ran was ended.
    Timeout,
    /// The network or the provider failed.
    Network,
    /// The work is in conflict with what others have done meanwhile.
    GitConflict,
    /// A limit of the account, or the budget of the run, is used up.
    Exhaustion,
    /// Something that the run needs is missing or broken.
    Environment,
}

impl FailureClass {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Verification => "verification",
            Self::Implementation => "implementation",
            Self::Timeout => "timeout",
            Self::Network => "network",
            Self::GitConflict => "git conflict",
            Self::Exhaustion => "exhaustion",
            Self::Environment => "environment",
        }
    }
}

/// One failure, and how it was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Failure {
    /// When.
    pub(crate) time: String,
    /// After how many starts of an agent in this run.
    pub(crate) iteration: u32,
    /// The story.
    pub(crate) story: String,
    /// Its title.
    pub(crate) title: String,
    /// Which attempt of it.
    pub(crate) attempt: u32,
    /// What kind of failure.
    pub(crate) class: FailureClass,
    /// The gate, check or hook that failed, if one did.
    pub(crate) verification: Option<String>,
    /// What happened, in one line.
    pub(crate) result: String,
    /// Head and tail of the output that shows it; may be empty.
    pub(crate) error_output: String,
    /// How it was answered; nothing yet if it was not.
    pub(crate) action: Option<String>,
    /// What became of the work that failed.
    pub(crate) state: Option<String>,
}

/// A story that landed in this run.
#[derive(Debug, Clone)]
pub(crate) struct Done {
    pub(crate) story: StoryId,
    pub(crate) title: String,
    pub(crate) at: Timestamp,
    /// From the beginning of its first attempt.
    pub(crate) took: Duration,
    pub(crate) commit: String,
    pub(crate) verified: bool,
    /// The gates and checks that were green on what landed.
    pub(crate) checks: Vec<String>,
    pub(crate) learnings: Vec<String>,
}

/// A run and its pieces.
#[derive(Debug)]
pub(crate) struct Chronicle {
    pub(crate) run: Run,
    /// In the order in which they landed.
    pub(crate) done: Vec<Done>,
    /// Oldest first.
    pub(crate) failures: Vec<Failure>,
    began: BTreeMap<StoryId, Timestamp>,
    /// Green checks of the attempts under way.
    green: BTreeMap<String, Vec<String>>,
    /// What the attempts under way have learned.
    learned: BTreeMap<String, Vec<String>>,
}

impl Chronicle {
    /// The chronicle of a run that begins with this event.
    pub(crate) fn start(event: &Event) -> Result<Self, NotARun> {
        let (run, _) = Run::start(event)?;
        Ok(Self {
            run,
            done: Vec::new(),
            failures: Vec::new(),
            began: BTreeMap::new(),
            green: BTreeMap::new(),
            learned: BTreeMap::new(),
        })
    }

    /// That of a whole journal.
    pub(crate) fn of(events: &[Event]) -> Result<Self, NotARun> {
        let (first, rest) = events.split_first().ok_or(NotARun)?;
        let mut chronicle = Self::start(first)?;
        for event in rest {
            chronicle.take_in(event);
        }
        Ok(chronicle)
    }

    /// Whether other tools' files are to be written after this event, which was just taken in: it begins or ends a piece of
    /// work, or says that the run is to end, and nothing looks at the tree meanwhile.
    pub(crate) fn turns(&self, event: &Event) -> bool {
        match event.fact {
            Fact::RunStarted { .. }
            | Fact::Restarted { .. }
            | Fact::AttemptStarted { .. }
            | Fact::Landed { .. }
            | Fact::FixTaskAdded { .. }
            | Fact::Reverted { .. }
            | Fact::RunEnded { .. } => true,
            Fact::StopRequested { .. } | Fact::PauseRequested => {
                let with_the_agent = |phase: &Phase| matches!(phase, Phase::Agent { .. } | Phase::Held { .. });
                self.run.attempts().all(|attempt| with_the_agent(&attempt.phase))
            }
            _ => false,
        }
    }

    /// Takes in the next event.
    pub(crate) fn take_in(&mut self, event: &Event) {
        let begins = match &event.fact {
            Fact::AttemptStarted { attempt, .. } => Some(attempt.story.clone()),
            _ => None,
        };
        drop(self.run.step(event));
        if let Some(story) = begins {
            self.began.entry(story).or_insert(event.at);
        }
        match &event.fact {
            Fact::CheckFinished { attempt, stage, check, result, .. } if *stage != CheckStage::Baseline => {
                let label = self.run.label(attempt, *check);
                self.checked(event.at, attempt, label, result);
            }
            Fact::AgentStarted { attempt, .. } => {
                self.green.remove(&attempt.to_string());
                self.answer(attempt, |class| match class {
                    FailureClass::Network | FailureClass::Exhaustion => "waited, then the agent was called again",
                    FailureClass::GitConflict => "the agent was called to resolve it",
                    _ => "repaired in place: the agent was called again",
                });
            }
            Fact::AgentEnded { attempt, report, .. } => self.agent_ended(event.at, attempt, report),
            Fact::Merged { attempt, merge: Merge::Conflicts { files, .. }, .. } => {
                let result = format!("in conflict with what has landed meanwhile: {}", files.join(", "));
                self.fail(event.at, attempt, FailureClass::GitConflict, None, &result, String::new());
            }
            Fact::LandingBlocked { attempt, why } | Fact::Trespassed { attempt, why } => {
                self.fail(event.at, attempt, FailureClass::GitConflict, None, why, String::new());
            }
            Fact::LandingRefused { attempt, by, output, .. } => {
                let result = format!("{by} refused the commit");
                self.fail(event.at, attempt, FailureClass::Verification, Some(by.clone()), &result, output.clone());
            }
            Fact::LaneFailed { attempt, why }
            | Fact::CheckpointFailed { attempt, why }
            | Fact::MergeFailed { attempt, why }
            | Fact::RepositoryBroken { attempt, why }
            | Fact::LandingFailed { attempt, why }
            | Fact::RevertFailed { attempt, why } => {
                self.fail(event.at, attempt, FailureClass::Environment, None, why, String::new());
            }
            Fact::Landed { attempt, commit, .. } => self.landed(event.at, attempt, commit.as_str()),
            Fact::Restarted { landed, .. } => {
                for (story, commit) in landed {
                    let number = self.run.record(story).map_or(0, |record| record.attempts);
                    let attempt = AttemptId { story: story.clone(), number };
                    if self.done.iter().all(|done| done.story != *story) {
                        self.landed(event.at, &attempt, commit.as_str());
                    }
                }
            }
            Fact::Reverted { attempt, kept, .. } => self.reverted(event.at, attempt, kept.as_deref()),
            _ => {}
        }
    }

    fn agent_ended(&mut self, at: Timestamp, attempt: &AttemptId, report: &AgentReport) {
        self.learned.entry(attempt.to_string()).or_default().extend(report.learnings.iter().cloned());
        let Some(class) = class_of(&report.end, &report.claim) else { return };
        self.fail(at, attempt, class, None, &report.end.in_words(&report.claim), report.last_words.clone());
    }

    fn checked(&mut self, at: Timestamp, attempt: &AttemptId, label: String, result: &CheckResult) {
        match result {
            CheckResult::Passed => {
                let green = self.green.entry(attempt.to_string()).or_default();
                if !green.contains(&label) {
                    green.push(label);
                }
            }
            CheckResult::Failed { why, output } => {
                let class =
                    if why.starts_with("timed out") { FailureClass::Timeout } else { FailureClass::Verification };
                self.fail(at, attempt, class, Some(label), why, output.clone());
            }
            CheckResult::CouldNotRun { why } => {
                self.fail(at, attempt, FailureClass::Verification, Some(label), why, String::new());
            }
            CheckResult::NoRoom { why } => {
                self.fail(at, attempt, FailureClass::Environment, Some(label), why, String::new());
            }
            CheckResult::Stopped => {}
        }
    }

    fn fail(
        &mut self,
        at: Timestamp,
        attempt: &AttemptId,
        class: FailureClass,
        verification: Option<String>,
        result: &str,
        error_output: String,
    ) {
        self.failures.push(Failure {
            time: crate::view::rfc3339(at),
            iteration: self.run.calls(),
            story: attempt.story.to_string(),
            title: self.title(&attempt.story),
            attempt: attempt.number,
            class,
            verification,
            result: one_line(result),
            error_output,
            action: None,
            state: None,
        });
    }

    /// How the failures of an attempt that nothing has answered yet are answered.
    fn answer(&mut self, attempt: &AttemptId, action: impl Fn(FailureClass) -> &'static str) {
        for failure in self.open(attempt) {
            failure.action = Some(action(failure.class).to_owned());
            failure.state = Some("the work stays in the tree".to_owned());
        }
    }

    fn open(&mut self, attempt: &AttemptId) -> impl Iterator<Item = &mut Failure> {
        let (story, number) = (attempt.story.to_string(), attempt.number);
        self.failures.iter_mut().filter(move |f| f.story == story && f.attempt == number && f.action.is_none())
    }

    fn landed(&mut self, at: Timestamp, attempt: &AttemptId, commit: &str) {
        let story = &attempt.story;
        let ground = self.run.record(story).and_then(|record| record.state.ground());
        let verified = ground.is_some_and(|ground| ground != Ground::Unverified);
        let done = Done {
            story: story.clone(),
            title: self.title(story),
            at,
            took: self.began.get(story).map_or(Duration::ZERO, |began| at.since(*began)),
            commit: commit.to_owned(),
            verified,
            checks: self.green.remove(&attempt.to_string()).unwrap_or_default(),
            learnings: self.learned.remove(&attempt.to_string()).unwrap_or_default(),
        };
        self.done.push(done);
    }

    fn reverted(&mut self, at: Timestamp, attempt: &AttemptId, kept: Option<&str>) {
        self.green.remove(&attempt.to_string());
        let Some(record) = self.run.record(&attempt.story) else { return };
        let action = match record.state {
            StoryState::Pending if self.run.to_be_mended(&attempt.story).is_some() => {
                "put back; a fix task is added, and the story is tried afresh with it"
            }
            StoryState::Pending | StoryState::Running => "put back; the story is tried again",
            StoryState::Failed => "put back; the story has no attempt left",
            StoryState::Blocked => "put back; the story waits for a person",
            StoryState::Skipped => "put back; the story is skipped",
            StoryState::AwaitsSignOff { .. } => "put back; a person has to sign the story",
            StoryState::Landed { .. } | StoryState::DoneBefore => "put back; the story is done",
        };
        let state = kept.map_or_else(|| "nothing was left to keep".to_owned(), |kept| format!("kept at {kept}"));
        let reason = record.reason.clone();
        if self.open(attempt).next().is_none()
            && !self.run.stopping()
            && let Some(reason) = reason
        {
            self.fail(at, attempt, FailureClass::Implementation, None, &reason, String::new());
        }
        for failure in self.open(attempt) {
            failure.action = Some(action.to_owned());
            failure.state = Some(state.clone());
        }
    }

    /// The first line of a story's title.
    pub(crate) fn title(&self, story: &StoryId) -> String {
        let title = self.run.plan().story(story).map_or("", |story| story.title.lines().next().unwrap_or_default());
        if title.is_empty() { story.to_string() } else { one_line(title) }
    }

    /// What went wrong with a story last.
    pub(crate) fn last_failure(&self, story: &StoryId) -> Option<&Failure> {
        self.failures.iter().rev().find(|failure| failure.story == story.as_str())
    }
}

/// The class of a call that came to nothing; none of one whose work is looked at, or that was stopped.
fn class_of(end: &AgentEnd, claim: &Claim) -> Option<FailureClass> {
    match end {
        AgentEnd::Finished => match claim {
            Claim::Failed { .. } | Claim::Blocked { .. } => Some(FailureClass::Implementation),
            Claim::Complete | Claim::None { .. } => None,
        },
        AgentEnd::NoFinalMessage
        | AgentEnd::NoOutput
        | AgentEnd::Error { .. }
        | AgentEnd::Crashed { .. }
        | AgentEnd::Looped { .. }
        | AgentEnd::PermissionDenied { .. }
        | AgentEnd::PromptTooLong { .. } => Some(FailureClass::Implementation),
        AgentEnd::NeverSpoke { .. } | AgentEnd::Silent { .. } | AgentEnd::TimedOut { .. } => {
            Some(FailureClass::Timeout)
        }
        AgentEnd::Overloaded { .. } | AgentEnd::Network { .. } => Some(FailureClass::Network),
        AgentEnd::Limit { .. } | AgentEnd::OverBudget { .. } => Some(FailureClass::Exhaustion),
        AgentEnd::SignIn { .. }
        | AgentEnd::NoCredit { .. }
        | AgentEnd::ModelUnknown { .. }
        | AgentEnd::CannotStart { .. }
        | AgentEnd::Internal { .. } => Some(FailureClass::Environment),
        AgentEnd::Stopped => None,
    }
}
