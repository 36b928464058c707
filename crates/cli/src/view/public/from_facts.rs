//! From the facts of a run to its public events.

use ralphloop_core::event::{CheckStage, Event, Fact, PlanChange, StopLevel};
use ralphloop_core::evidence::{AgentEnd, CheckResult, Claim};
use ralphloop_core::ids::{AttemptId, CallNumber, StoryId};
use ralphloop_core::review::Opinion;
use ralphloop_core::run::{Run, StoryRecord, StoryState};

use super::{CheckWord, ClaimWord, End, EndWord, OpinionWord, PublicEvent, RunState, SaidClaim};
use crate::view::status::outcome_text;
use crate::view::{branch_name, rfc3339, span};

/// The public events that tell of one event of the run; `run` is the run after it.
pub(crate) fn of(event: &Event, run: &Run) -> Vec<PublicEvent> {
    let time = rfc3339(event.at);
    let Some(attempt) = event.fact.attempt() else { return of_run(event, run, time) };
    let (story, number) = (attempt.story.to_string(), attempt.number);
    let error = |why: &String, story: String, time: String| {
        vec![PublicEvent::Error { time, story: Some(story), message: why.clone() }]
    };
    match &event.fact {
        Fact::AttemptStarted { .. } => {
            let title = run.plan().story(&attempt.story).map(|s| s.title.clone()).unwrap_or_default();
            vec![PublicEvent::AttemptStarted { time, story, attempt: number, title }]
        }
        Fact::CheckFinished { stage, check, result, cached, took, .. } => {
            let (word, reason) = match result {
                CheckResult::Passed => (CheckWord::Passed, None),
                CheckResult::Failed { why, .. } => (CheckWord::Failed, Some(why.clone())),
                CheckResult::CouldNotRun { why } => (CheckWord::CouldNotRun, Some(why.clone())),
                CheckResult::NoRoom { why } => (CheckWord::NoRoom, Some(why.clone())),
                CheckResult::Stopped => (CheckWord::Stopped, None),
            };
            vec![PublicEvent::CheckFinished {
                time,
                story,
                attempt: number,
                check: run.label(attempt, *check),
                baseline: *stage == CheckStage::Baseline,
                result: word,
                reason,
                cached: *cached,
                duration_ms: millis(*took),
            }]
        }
        Fact::AgentStarted { call, .. } => {
            let (repair, iteration, agent) = (repair_of(attempt, *call, run), run.calls(), agent_of(attempt, run));
            let (role, round) = leg_of(attempt, run);
            vec![PublicEvent::AgentStarted { time, story, attempt: number, repair, iteration, agent, role, round }]
        }
        Fact::AgentEnded { call, report, .. } => {
            let (role, round) = leg_of(attempt, run);
            let ended = PublicEvent::AgentEnded {
                role,
                round,
                time: time.clone(),
                story,
                attempt: number,
                repair: repair_of(attempt, *call, run),
                end: end(&report.end),
                claim: claim(&report.claim),
                agent: agent_of(attempt, run),
                model: report.model.clone(),
                cost_usd: report.usage.money().map(ralphloop_core::units::Usd::dollars),
                estimated: report.usage.estimate.is_some(),
                input_tokens: report.usage.input_tokens,
                output_tokens: report.usage.output_tokens,
                duration_ms: millis(report.took),
            };
            std::iter::once(ended).chain(away(time, attempt, run)).collect()
        }
        Fact::ReviewStarted { round, agent, .. } => {
            let (round, agent) = (*round, agent.to_string());
            vec![PublicEvent::ReviewStarted { time, story, attempt: number, round, agent }]
        }
        Fact::ReviewEnded { round, agent, report, .. } => {
            let (opinion, findings) = match &report.opinion {
                Opinion::Approves => (OpinionWord::Approves, Vec::new()),
                Opinion::Objects { findings } => (OpinionWord::Objects, findings.clone()),
                Opinion::Unclear { .. } => (OpinionWord::Unclear, Vec::new()),
            };
            vec![PublicEvent::ReviewEnded {
                time,
                story,
                attempt: number,
                round: *round,
                agent: agent.to_string(),
                end: end(&report.end),
                opinion,
                findings,
                touched: report.touched,
                cost_usd: report.usage.money().map(ralphloop_core::units::Usd::dollars),
                input_tokens: report.usage.input_tokens,
                output_tokens: report.usage.output_tokens,
                duration_ms: millis(report.took),
            }]
        }
        Fact::Landed { commit, notes, .. } => {
            use ralphloop_core::effect::Ground;
            let state = run.record(&attempt.story).map(|record| &record.state);
            let verified = state.and_then(StoryState::ground).is_some_and(|ground| ground != Ground::Unverified);
            let awaits_sign_off = matches!(state, Some(StoryState::AwaitsSignOff { .. }));
            let (commit, notes) = (commit.to_string(), notes.clone());
            vec![PublicEvent::StoryLanded { time, story, attempt: number, commit, verified, awaits_sign_off, notes }]
        }
        Fact::FixTaskAdded { task, commit, .. } => {
            let (task, commit) = (task.to_string(), commit.as_ref().map(ToString::to_string));
            vec![PublicEvent::TaskAdded { time, story, task, commit }]
        }
        Fact::Reverted { kept, .. } => reverted(time, attempt, kept.clone(), run),
        Fact::CheckpointFailed { why, .. }
        | Fact::LaneFailed { why, .. }
        | Fact::MergeFailed { why, .. }
        | Fact::LandingBlocked { why, .. }
        | Fact::Trespassed { why, .. }
        | Fact::RepositoryBroken { why, .. }
        | Fact::LandingFailed { why, .. }
        | Fact::RevertFailed { why, .. } => error(why, story, time),
        Fact::LandingRefused { by, output, .. } => error(&format!("{by}: {output}"), story, time),
        _ => Vec::new(),
    }
}

/// The agent of an attempt under way.
fn agent_of(attempt: &AttemptId, run: &Run) -> Option<String> {
    run.attempt(attempt).and_then(|attempt| attempt.agent.as_ref()).map(ToString::to_string)
}

/// Which repair a call is.
fn repair_of(attempt: &AttemptId, call: CallNumber, run: &Run) -> u32 {
    run.attempt(attempt).map_or(call.0, |attempt| attempt.repair_number(call))
}

/// The role that the attempt's agent has in a relay, and in which round.
fn leg_of(attempt: &AttemptId, run: &Run) -> (Option<String>, Option<u32>) {
    let leg = run.attempt(attempt).and_then(|attempt| attempt.leg());
    (leg.map(|leg| leg.role.name.clone()), leg.map(|leg| leg.round))
}

/// The agent of an attempt is not called for now, as its call has just shown.
fn away(time: String, attempt: &AttemptId, run: &Run) -> Option<PublicEvent> {
    let agent = run.attempt(attempt)?.agent.as_ref()?;
    let away = run.away(agent)?;
    let (agent, reason) = (agent.to_string(), away.reason().to_owned());
    Some(PublicEvent::AgentAway { time, agent, until: away.until().map(|until| rfc3339(until.at)), reason })
}

fn reverted(time: String, attempt: &AttemptId, kept: Option<String>, run: &Run) -> Vec<PublicEvent> {
    let record = run.record(&attempt.story);
    let reason = record.and_then(|r| r.reason.clone());
    let story = attempt.story.to_string();
    let mut events = vec![PublicEvent::AttemptReverted {
        time: time.clone(),
        story: story.clone(),
        attempt: attempt.number,
        kept,
        reason: reason.clone(),
    }];
    match record.map(|r| &r.state) {
        Some(StoryState::Failed) => events.push(PublicEvent::StoryFailed { time: time.clone(), story, reason }),
        Some(StoryState::Blocked) => events.push(PublicEvent::StoryBlocked { time: time.clone(), story, reason }),
        _ => {}
    }
    events.extend(waiting(time, run));
    events
}

fn waiting(time: String, run: &Run) -> Option<PublicEvent> {
    let wait = run.wait()?;
    Some(PublicEvent::RunWaiting { time, resume_at: rfc3339(wait.until), reason: wait.reason.clone() })
}

fn of_run(event: &Event, run: &Run, time: String) -> Vec<PublicEvent> {
    match &event.fact {
        Fact::RunStarted { run: id, plan, branch, agent, .. } => vec![PublicEvent::RunStarted {
            time,
            run: id.to_string(),
            work: plan.work.to_string(),
            branch: branch_name(branch).to_owned(),
            agent: agent.clone(),
            stories: plan.stories.len(),
        }],
        Fact::Restarted { retry, .. } => {
            let mut events = vec![PublicEvent::RunResumed { time: time.clone(), run: run.id().to_string() }];
            events.extend(retry.iter().filter_map(|story| retried(&time, story, run)));
            events
        }
        Fact::PlanChecked { spec } => match spec {
            PlanChange::Same => waiting(time, run).into_iter().collect(),
            PlanChange::Changed { .. } => {
                let changed = PublicEvent::PlanChanged { time: time.clone(), readable: true, message: None };
                std::iter::once(changed).chain(waiting(time, run)).collect()
            }
            PlanChange::Unreadable { message } => {
                vec![PublicEvent::PlanChanged { time, readable: false, message: Some(message.clone()) }]
            }
        },
        Fact::StopRequested { level, .. } => {
            vec![PublicEvent::RunStopping { time, now: *level == StopLevel::Now }]
        }
        Fact::PauseRequested => vec![PublicEvent::RunStopping { time, now: false }],
        Fact::SkipRequested { story } if run.record(story).is_some_and(StoryRecord::is_put_aside) => {
            vec![PublicEvent::StorySkipped { time, story: story.to_string() }]
        }
        Fact::RetryRequested { story } => retried(&time, story, run).into_iter().collect(),
        Fact::GuidanceAdded { text } => vec![PublicEvent::GuidanceAdded { time, text: text.clone() }],
        Fact::LearningAdded { text } => vec![PublicEvent::LearningAdded { time, text: text.clone() }],
        Fact::RunEnded { outcome } => vec![PublicEvent::RunEnded {
            time,
            run: run.id().to_string(),
            state: RunState::of(run, true),
            reason: outcome_text(outcome),
        }],
        _ => Vec::new(),
    }
}

/// If it is to be tried.
fn retried(time: &str, story: &StoryId, run: &Run) -> Option<PublicEvent> {
    run.tries_again(story).then(|| PublicEvent::StoryRetried { time: time.to_owned(), story: story.to_string() })
}

fn millis(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn end(end: &AgentEnd) -> End {
    let (word, message) = match end {
        AgentEnd::Finished => (EndWord::Finished, None),
        AgentEnd::NoFinalMessage => (EndWord::NoFinalMessage, None),
        AgentEnd::NoOutput => (EndWord::NoOutput, None),
        AgentEnd::Stopped => (EndWord::Stopped, None),
        AgentEnd::Error { message } => (EndWord::Error, Some(message.clone())),
        AgentEnd::Crashed { status, message } if message.is_empty() => (EndWord::Crashed, Some(status.clone())),
        AgentEnd::Crashed { status, message } => (EndWord::Crashed, Some(format!("{status}: {message}"))),
        AgentEnd::NeverSpoke { after } => (EndWord::NeverSpoke, Some(format!("no output within {}", span(*after)))),
        AgentEnd::Silent { after, last_output } => {
            (EndWord::Silent, Some(format!("no output for {}; the last was: {last_output}", span(*after))))
        }
        AgentEnd::TimedOut { after } => (EndWord::TimedOut, Some(format!("its time of {} was up", span(*after)))),
        AgentEnd::Looped { call, times } => (EndWord::Looped, Some(format!("the same call {times} times: {call}"))),
        AgentEnd::PermissionDenied { tools } => (EndWord::PermissionDenied, Some(tools.join(", "))),
        AgentEnd::PromptTooLong { message } => (EndWord::PromptTooLong, Some(message.clone())),
        AgentEnd::Limit { message, .. } => (EndWord::Limit, Some(message.clone())),
        AgentEnd::Overloaded { message } => (EndWord::Overloaded, Some(message.clone())),
        AgentEnd::Network { message } => (EndWord::Network, Some(message.clone())),
        AgentEnd::SignIn { message, .. } => (EndWord::SignIn, Some(message.clone())),
        AgentEnd::NoCredit { message } => (EndWord::NoCredit, Some(message.clone())),
        AgentEnd::ModelUnknown { message } => (EndWord::ModelUnknown, Some(message.clone())),
        AgentEnd::CannotStart { message } => (EndWord::CannotStart, Some(message.clone())),
        AgentEnd::OverBudget { message, .. } => (EndWord::OverBudget, Some(message.clone())),
        AgentEnd::Internal { message } => (EndWord::Internal, Some(message.clone())),
    };
    let resets_at = match end {
        AgentEnd::Limit { resets_at, .. } => resets_at.map(rfc3339),
        _ => None,
    };
    let remedy = match end {
        AgentEnd::SignIn { remedy, .. } => remedy.clone(),
        _ => None,
    };
    End { end: word, message, resets_at, remedy }
}

fn claim(claim: &Claim) -> SaidClaim {
    let (word, reason, near_miss) = match claim {
        Claim::Complete => (ClaimWord::Complete, None, None),
        Claim::Failed { reason } => (ClaimWord::Failed, Some(reason.clone()), None),
        Claim::Blocked { reason } => (ClaimWord::Blocked, Some(reason.clone()), None),
        Claim::None { near_miss } => (ClaimWord::None, None, near_miss.clone()),
    };
    SaidClaim { claim: word, reason, near_miss }
}
