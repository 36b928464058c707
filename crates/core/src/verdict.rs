//! From evidence to verdict: the decision table, pure.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::effect::{Failure, Ground};
use crate::event::CheckRef;
use crate::evidence::{AgentEnd, AgentReport, CheckResult, Claim, TreeReport};
use crate::outcome::Bound;
use crate::units::Timestamp;

/// What follows from how the agent ended and what it claims, before any check has run.
#[derive(Debug, Clone, PartialEq)]
pub enum AfterAgent {
    /// The checks decide.
    RunChecks,
    /// The attempt failed; no check is run.
    Failed(AttemptFailure),
    /// The story cannot be done without a person.
    Blocked {
        /// Why, in the agent's words.
        reason: String,
    },
    /// Nothing follows for the story: no attempt is charged.
    Inconclusive(Cause),
}

/// Why an attempt failed, and what the next prompt says of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptFailure {
    /// In one line, for people.
    pub reason: String,
    /// For the next prompt. Nothing after an abnormal end.
    pub tell: Tell,
}

/// What the next attempt's prompt says of a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tell {
    /// Nothing.
    Nothing,
    /// The reason.
    Reason,
    /// What fails, with output.
    Failures(Vec<Failure>),
    /// The last words, and that nobody answers.
    LastWords(String),
    /// The prompt must be shorter.
    Shorten,
}

/// Why an attempt says nothing about its story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// A limit of the account.
    Limit {
        /// When it ends, if that was said.
        resets_at: Option<Timestamp>,
        /// The client's words.
        message: String,
    },
    /// The provider or the network fails.
    Provider {
        /// In words.
        message: String,
    },
    /// This agent cannot be used before a person has acted.
    Agent {
        /// What is wrong and what to do.
        message: String,
    },
    /// The environment is wrong; a person is needed.
    Environment {
        /// What is wrong and what to do.
        message: String,
    },
    /// A bound of the run was passed while the agent worked.
    Bound {
        /// Which.
        bound: Bound,
        /// The numbers.
        message: String,
    },
    /// The run is stopping.
    Stopped,
}

/// One check's result on the attempt's tree, beside the one on the base.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckEvidence {
    /// Which.
    pub check: CheckRef,
    /// How it is called.
    pub label: String,
    /// On the attempt's tree.
    pub result: CheckResult,
    /// On the base, if it was run there.
    pub baseline: Option<CheckResult>,
}

/// What follows once the checks have run.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The story lands.
    Pass(Ground),
    /// These checks fail: repair, or fail the attempt.
    ChecksFail(Vec<Failure>),
    /// The attempt failed and no repair can help.
    Fail(AttemptFailure),
    /// A check cannot run, and could not on the base either: the set-up is wrong.
    SetUp {
        /// Which check and why.
        message: String,
    },
}

fn failed(reason: impl Into<String>, tell: Tell) -> AfterAgent {
    AfterAgent::Failed(AttemptFailure { reason: reason.into(), tell })
}

fn seconds(span: Duration) -> String {
    format!("{} s", span.as_secs_f64())
}

fn colon(text: &str) -> String {
    if text.trim().is_empty() { String::new() } else { format!(": {}", text.trim()) }
}

/// What follows from how the agent ended. Evidence of the end beats every word: only an agent that finished by itself
/// can claim anything.
pub fn after_agent(report: &AgentReport) -> AfterAgent {
    match &report.end {
        AgentEnd::Finished => after_claim(report),
        AgentEnd::NoFinalMessage => failed("the agent ended without a final message", Tell::Nothing),
        AgentEnd::NoOutput => failed("the agent produced no output", Tell::Nothing),
        AgentEnd::Error { message } => failed(format!("the agent reported an error{}", colon(message)), Tell::Reason),
        AgentEnd::Crashed { status, message } => {
            failed(format!("the agent crashed ({status}){}", colon(message)), Tell::Nothing)
        }
        AgentEnd::NeverSpoke { after } => failed(
            format!(
                "the agent gave no output within {} of its start; look at the servers (MCP) and hooks that it starts",
                seconds(*after)
            ),
            Tell::Nothing,
        ),
        AgentEnd::Silent { after, last_output } => {
            let last = if last_output.trim().is_empty() {
                String::new()
            } else {
                format!("; its last output was: {}", last_output.trim())
            };
            failed(format!("no output from the agent for {} (idle timeout){last}", seconds(*after)), Tell::Nothing)
        }
        AgentEnd::TimedOut { after } => {
            failed(format!("the attempt's time was up after {} (agent timeout)", seconds(*after)), Tell::Nothing)
        }
        AgentEnd::Looped { call, times } => failed(
            format!("the agent made the same call {times} times with the same result (a loop): {call}"),
            Tell::Reason,
        ),
        AgentEnd::PermissionDenied { tools } => failed(
            format!(
                "permission: the agent was refused {} and changed nothing; allow it in the client's permission settings",
                tools.join(", ")
            ),
            Tell::Nothing,
        ),
        AgentEnd::PromptTooLong { message } => {
            failed(format!("the prompt is too long for the model's context{}", colon(message)), Tell::Shorten)
        }
        AgentEnd::Limit { resets_at, message } => {
            AfterAgent::Inconclusive(Cause::Limit { resets_at: *resets_at, message: message.clone() })
        }
        AgentEnd::Overloaded { message } => AfterAgent::Inconclusive(Cause::Provider {
            message: format!("the provider is overloaded or failing{}", colon(message)),
        }),
        AgentEnd::Network { message } => {
            AfterAgent::Inconclusive(Cause::Provider { message: format!("the network failed{}", colon(message)) })
        }
        AgentEnd::SignIn { message, remedy } => AfterAgent::Inconclusive(Cause::Agent {
            message: format!(
                "the agent is not signed in (authentication){}{}",
                colon(message),
                remedy.as_ref().map_or(String::new(), |r| format!("; {r}"))
            ),
        }),
        AgentEnd::NoCredit { message } => AfterAgent::Inconclusive(Cause::Agent {
            message: format!("the agent's account has no credit{}; top it up, then resume", colon(message)),
        }),
        AgentEnd::ModelUnknown { message } => AfterAgent::Inconclusive(Cause::Agent {
            message: format!("the model is not known or not allowed{}; name another with --agent", colon(message)),
        }),
        AgentEnd::CannotStart { message } => {
            AfterAgent::Inconclusive(Cause::Agent { message: format!("the agent cannot start{}", colon(message)) })
        }
        AgentEnd::OverBudget { bound, message } => {
            AfterAgent::Inconclusive(Cause::Bound { bound: *bound, message: message.clone() })
        }
        AgentEnd::Stopped => AfterAgent::Inconclusive(Cause::Stopped),
        AgentEnd::Internal { message } => AfterAgent::Inconclusive(Cause::Environment {
            message: format!("ralphloop could not watch the agent{}", colon(message)),
        }),
    }
}

/// A cause in one line.
pub fn cause_in_words(cause: &Cause) -> String {
    match cause {
        Cause::Limit { message, .. } => format!("the provider's limit was reached: {message}"),
        Cause::Provider { message }
        | Cause::Agent { message }
        | Cause::Environment { message }
        | Cause::Bound { message, .. } => message.clone(),
        Cause::Stopped => "the run was stopped".to_owned(),
    }
}

fn after_claim(report: &AgentReport) -> AfterAgent {
    match &report.claim {
        Claim::Complete | Claim::None { .. } => AfterAgent::RunChecks,
        Claim::Failed { reason } if reason.trim().is_empty() => {
            failed("the agent said that it failed, without a reason", Tell::Reason)
        }
        Claim::Failed { reason } => failed(format!("the agent said that it failed: {}", reason.trim()), Tell::Reason),
        Claim::Blocked { reason } => AfterAgent::Blocked {
            reason: if reason.trim().is_empty() {
                "the agent said that it is blocked, without a reason".to_owned()
            } else {
                reason.trim().to_owned()
            },
        },
    }
}

/// What can be said before the checks run, so that none is run for nothing.
pub fn before_checks(report: &AgentReport, tree: &TreeReport, checks_exist: bool) -> Option<AttemptFailure> {
    let Claim::None { near_miss } = &report.claim else { return None };
    let by_boxes = checks_exist && tree.files_changed > 0 && tree.had_open_boxes && tree.all_boxes_ticked;
    if by_boxes {
        return None;
    }
    let reason = match near_miss {
        Some(seen) => format!("no completion signal; something like it was seen in another form: {seen}"),
        None => format!("no completion signal{}", quote(&report.last_words)),
    };
    Some(AttemptFailure { reason, tell: Tell::LastWords(report.last_words.clone()) })
}

fn quote(last_words: &str) -> String {
    let last = last_words.trim();
    if last.is_empty() { String::new() } else { format!("; the agent's last words: {last}") }
}

/// The verdict on an attempt whose agent finished and did not claim to have failed.
pub fn judge(report: &AgentReport, tree: &TreeReport, checks: &[CheckEvidence], needs_no_change: bool) -> Verdict {
    if let Some(failure) = before_checks(report, tree, !checks.is_empty()) {
        return Verdict::Fail(failure);
    }
    if let Some(message) = checks.iter().find_map(cannot_be_run_here) {
        return Verdict::SetUp { message };
    }
    let failures: Vec<Failure> = checks.iter().filter_map(failure_of).collect();
    if !failures.is_empty() {
        return match report.claim {
            // Nothing says that the agent thought itself done, so there is nothing to repair.
            Claim::None { .. } => Verdict::Fail(AttemptFailure {
                reason: format!("no completion signal, and {}", reasons(&failures)),
                tell: Tell::LastWords(report.last_words.clone()),
            }),
            _ => Verdict::ChecksFail(failures),
        };
    }
    if tree.files_changed == 0 {
        let proven = checks.iter().any(|c| c.baseline.as_ref().is_some_and(|b| !b.passed()));
        return if proven || needs_no_change {
            Verdict::Pass(Ground::NoChange)
        } else {
            Verdict::Fail(AttemptFailure {
                reason: "the agent claims completion, but nothing changed".to_owned(),
                tell: Tell::Reason,
            })
        };
    }
    Verdict::Pass(match (&report.claim, checks.is_empty()) {
        (Claim::None { .. }, _) => Ground::NoSignal,
        (_, true) => Ground::Unverified,
        (_, false) => Ground::Verified,
    })
}

/// What fails, in one line.
pub fn reasons(failures: &[Failure]) -> String {
    let each = failures.iter().map(|f| {
        if f.at_baseline { format!("{} (it failed before the story too)", f.reason) } else { f.reason.clone() }
    });
    each.collect::<Vec<_>>().join("; ")
}

/// A gate that cannot run is the set-up's fault unless it could on the base: then the attempt broke it. A story's own
/// check may name a program that the story is to make. What fails on a full disk is nobody's fault but the disk's.
fn cannot_be_run_here(check: &CheckEvidence) -> Option<String> {
    match (&check.result, &check.baseline) {
        (CheckResult::NoRoom { why }, _) => Some(format!("`{}` failed for want of room: {why}", check.label)),
        (CheckResult::CouldNotRun { why }, None | Some(CheckResult::CouldNotRun { .. }))
            if matches!(check.check, CheckRef::Gate(_)) =>
        {
            Some(format!("`{}` could not run: {why}", check.label))
        }
        _ => None,
    }
}

fn failure_of(check: &CheckEvidence) -> Option<Failure> {
    let at_baseline = check.baseline.as_ref().is_some_and(|b| !b.passed());
    match &check.result {
        CheckResult::Passed | CheckResult::Stopped | CheckResult::NoRoom { .. } => None,
        CheckResult::Failed { why, output } => Some(Failure {
            reason: format!("`{}`: {why}", check.label),
            output: output.clone(),
            at_baseline,
            check: Some(check.check),
        }),
        CheckResult::CouldNotRun { why } => Some(Failure {
            reason: format!("`{}` can no longer run: {why}", check.label),
            output: String::new(),
            at_baseline,
            check: Some(check.check),
        }),
    }
}
