//! The audit of a run: who did what, when, and on what grounds. A fold of the journal like every view; its lines are the
//! journal's, so that `verify-log` holds for both.

use ralphloop_core::effect::Ground;
use ralphloop_core::event::{CheckRef, Event, Fact, PlanChange, StopCause};
use ralphloop_core::evidence::CheckResult;
use ralphloop_core::ids::AttemptId;
use ralphloop_core::plan::Check;
use ralphloop_core::run::{Run, StoryState};
use serde::Serialize;

use super::status::outcome_text;
use super::{branch_name, rfc3339};
use crate::output::one_line;

/// One record. Fields are only ever added.
#[derive(Debug, Serialize)]
pub(crate) struct Record {
    /// The line of the journal, from 1.
    pub(crate) line: u64,
    /// When, RFC 3339 in UTC.
    pub(crate) time: String,
    /// Who: `ralphloop`, `user`, `agent NAME`, `reviewer NAME`.
    pub(crate) actor: String,
    /// What: `run`, `command`, `decision`, `landing`, `request`.
    pub(crate) kind: &'static str,
    /// The story and the attempt, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attempt: Option<String>,
    /// What was done, in words.
    pub(crate) what: String,
    /// The command, to the letter, where one was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<String>,
    /// The commit, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
    /// On what grounds: the observations that it follows from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) grounds: Vec<String>,
}

impl Record {
    fn of(line: u64, event: &Event, actor: impl Into<String>, kind: &'static str, what: impl Into<String>) -> Self {
        Self {
            line,
            time: rfc3339(event.at),
            actor: actor.into(),
            kind,
            attempt: event.fact.attempt().map(ToString::to_string),
            what: what.into(),
            command: None,
            commit: None,
            grounds: Vec::new(),
        }
    }

    fn on(self, grounds: impl IntoIterator<Item = String>) -> Self {
        Self { grounds: grounds.into_iter().filter(|ground| !ground.is_empty()).collect(), ..self }
    }

    /// For people, in one line.
    pub(crate) fn text(&self) -> String {
        let about = self.attempt.as_deref().map_or_else(String::new, |attempt| format!("{} ", one_line(attempt)));
        let command = self.command.as_deref().map_or_else(String::new, |command| format!(": `{}`", one_line(command)));
        let grounds = if self.grounds.is_empty() {
            String::new()
        } else {
            format!("  because {}", one_line(&self.grounds.join("; ")))
        };
        format!(
            "{:>5}  {}  {}  {}  {about}{}{command}{grounds}\n",
            self.line,
            self.time,
            one_line(&self.actor),
            self.kind,
            one_line(&self.what)
        )
    }
}

/// The record of an event on that line of the journal, if it is one of a command, a decision or a landing. `run` is the run
/// after it.
pub(crate) fn record(line: u64, event: &Event, run: &Run) -> Option<Record> {
    let own = |kind, what: String| Record::of(line, event, "ralphloop", kind, what);
    let user = |what: String| Record::of(line, event, "user", "request", what);
    Some(match &event.fact {
        Fact::RunStarted { run, plan, policy, branch, base, agent, .. } => {
            let gates = policy.gates.iter().map(|gate| format!("gate `{}`", gate.command));
            let what = format!("run {run} of {} began on {} at {base}", plan.work, branch_name(branch));
            own("run", what).on([format!("agents {agent}")].into_iter().chain(gates))
        }
        Fact::Restarted { agent, .. } => {
            own("run", "the run was taken up again".to_owned()).on([format!("agents {agent}")])
        }
        Fact::PlanChecked { spec: PlanChange::Changed { .. } } => {
            Record::of(line, event, "user", "request", "the spec was changed, and counts from now on")
        }
        Fact::CheckStarted { attempt, check, .. } => {
            let (what, command) = command_of(attempt, *check, run);
            Record { command, ..own("command", what) }
        }
        Fact::CheckFinished { attempt, check, result, cached, .. } => {
            let label = run.label(attempt, *check);
            let known = if *cached { ", known from the same tree" } else { "" };
            let (what, why) = match result {
                CheckResult::Passed => ("passed", String::new()),
                CheckResult::Failed { why, .. } => ("failed", why.clone()),
                CheckResult::CouldNotRun { why } => ("could not run", why.clone()),
                CheckResult::NoRoom { why } => ("failed for want of room", why.clone()),
                CheckResult::Stopped => ("was stopped", String::new()),
            };
            own("decision", format!("`{label}` {what}{known}")).on([why])
        }
        Fact::AgentStarted { agent, .. } => {
            let agent = agent.as_ref().map_or_else(|| run.agent().to_owned(), ToString::to_string);
            own("command", format!("the agent {agent} was started"))
        }
        Fact::AgentEnded { agent, report, .. } => {
            let agent = agent.as_ref().map_or_else(|| run.agent().to_owned(), ToString::to_string);
            Record::of(line, event, format!("agent {agent}"), "decision", report.end.in_words(&report.claim))
        }
        Fact::ReviewEnded { agent, report, .. } => {
            let what = format!("the review ended: {:?}", report.opinion);
            Record::of(line, event, format!("reviewer {agent}"), "decision", what)
        }
        Fact::Landed { attempt, commit, notes } => {
            let state = run.record(&attempt.story).map(|record| &record.state);
            let ground = state.and_then(StoryState::ground).map(ground_of).unwrap_or_default();
            let then =
                if matches!(state, Some(StoryState::AwaitsSignOff { .. })) { "; a person has to sign it" } else { "" };
            let what = format!("landed as {commit}{then}");
            let record = own("landing", what).on([ground].into_iter().chain(notes.iter().cloned()));
            Record { commit: Some(commit.to_string()), ..record }
        }
        Fact::FixTaskAdded { task, commit, .. } => {
            let record =
                own("landing", format!("the task {task} was added to the spec, since another failed for good"));
            Record { commit: commit.as_ref().map(ToString::to_string), ..record }
        }
        Fact::NoFixTask { why, .. } => own("decision", "no fix task was added".to_owned()).on([why.clone()]),
        Fact::LandingRefused { by, output, .. } => {
            let lines = output.lines().take(5).map(str::to_owned);
            own("decision", "no commit was made".to_owned()).on([by.clone()].into_iter().chain(lines))
        }
        Fact::Reverted { attempt, kept, .. } => {
            let reason = run.record(&attempt.story).and_then(|record| record.reason.clone()).unwrap_or_default();
            let kept = kept.as_ref().map_or_else(String::new, |kept| format!(", kept at {kept}"));
            own("decision", format!("the attempt was put back{kept}")).on([reason])
        }
        Fact::Trespassed { why, .. }
        | Fact::RepositoryBroken { why, .. }
        | Fact::LandingFailed { why, .. }
        | Fact::LandingBlocked { why, .. }
        | Fact::RevertFailed { why, .. }
        | Fact::CheckpointFailed { why, .. }
        | Fact::LaneFailed { why, .. }
        | Fact::MergeFailed { why, .. } => own("decision", "it could not be done".to_owned()).on([why.clone()]),
        Fact::StopRequested { cause, .. } => {
            let by = match cause {
                StopCause::Hup => "the signal HUP",
                StopCause::Int => "the signal INT",
                StopCause::Term => "the signal TERM",
                StopCause::Request => "`ralphloop stop`",
            };
            user("a stop was asked for".to_owned()).on([by.to_owned()])
        }
        Fact::PauseRequested => user("a pause was asked for".to_owned()),
        Fact::SkipRequested { story } => user(format!("{story} is to be skipped")),
        Fact::RetryRequested { story } => user(format!("{story} is to be tried again")),
        Fact::GuidanceAdded { text } => user(format!("guidance: {text}")),
        Fact::LearningAdded { text } => own("decision", format!("learning: {text}")),
        Fact::RunEnded { outcome } => own("run", format!("the run ended: {}", outcome_text(outcome))),
        Fact::PlanChecked { .. }
        | Fact::AttemptStarted { .. }
        | Fact::CheckpointTaken { .. }
        | Fact::TreeInspected { .. }
        | Fact::ReviewStarted { .. }
        | Fact::Merged { .. }
        | Fact::Settled { .. }
        | Fact::Woke => return None,
    })
}

fn command_of(attempt: &AttemptId, check: CheckRef, run: &Run) -> (String, Option<String>) {
    let label = run.label(attempt, check);
    let command = match check {
        CheckRef::Gate(gate) => run.policy().gates.get(gate).map(|gate| gate.command.clone()),
        CheckRef::Story(own) => match run.plan().story(&attempt.story).and_then(|story| story.checks.get(own)) {
            Some(Check::Shell { command, .. }) => Some(command.clone()),
            _ => None,
        },
    };
    let what = if matches!(check, CheckRef::Gate(_)) { "a gate was run" } else { "a check of the story was run" };
    match command {
        Some(command) => (what.to_owned(), Some(command)),
        None => (format!("{what}: {label}"), None),
    }
}

fn ground_of(ground: Ground) -> String {
    match ground {
        Ground::Verified => "every gate and check passed on its tree",
        Ground::Unverified => "no gate and no check exists",
        Ground::NoSignal => "every gate and check passed, though the agent gave no signal",
        Ground::NoChange => "every gate and check passed, and no file had to change",
    }
    .to_owned()
}
