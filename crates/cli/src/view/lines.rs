//! What happened, one line a fact: the log, and what a run prints without a terminal.

use ralphloop_agent::sanitize;
use ralphloop_core::event::{CheckStage, Event, Fact, PlanChange, StopCause, StopLevel};
use ralphloop_core::evidence::{AgentEnd, CheckResult, Claim, Merge};
use ralphloop_core::ids::{AgentId, AttemptId, CallNumber, CommitId, TaskId};
use ralphloop_core::review::{Opinion, ReviewReport};
use ralphloop_core::run::{Attempt, Phase, Run, StoryState};

use super::status::outcome_text;
use super::summary::ground_text;
use super::{branch_name, rfc3339, short, span};
use crate::output::{count, one_line};

/// How a line of a program's output begins.
pub(crate) const OUTPUT: &str = "  | ";
/// Lines of an output that are shown in the log.
const OUTPUT_LINES: usize = 12;

/// The lines that tell of an event, without a time; `run` is the run after it. Facts that matter to nobody have none.
pub(crate) fn of(event: &Event, run: &Run) -> Vec<String> {
    let mut lines = told(event, run);
    if run.policy().lanes() > 1
        && let Some(attempt) = event.fact.attempt()
    {
        // Several tell their stories at once.
        let story = one_line(attempt.story.as_str());
        lines
            .iter_mut()
            .filter(|line| !line.starts_with(OUTPUT))
            .for_each(|line| line.insert_str(0, &format!("{story}: ")));
    }
    lines
}

/// The stories that are no longer in the spec and are not run, if there are any.
pub(crate) fn taken_out(run: &Run) -> Option<String> {
    let ids: Vec<String> = run.taken_out().map(|id| one_line(id.as_str())).collect();
    (!ids.is_empty()).then(|| format!("Taken out of the spec and not run: {}", ids.join(", ")))
}

fn told(event: &Event, run: &Run) -> Vec<String> {
    match &event.fact {
        Fact::RunStarted { run: id, plan, policy, branch, agent, .. } => {
            let done = run.records().filter(|(_, r)| r.state.passed()).count();
            let gates = match policy.gates.len() {
                0 => "none".to_owned(),
                _ => policy.gates.iter().map(|g| format!("`{}`", one_line(&g.command))).collect::<Vec<_>>().join(", "),
            };
            vec![format!(
                "Run {id}: {} with {}, {done} of {} done; branch {}; gates: {gates}",
                one_line(&plan.work.to_string()),
                one_line(agent),
                count(plan.stories.len(), "story", "stories"),
                one_line(branch_name(branch)),
            )]
        }
        Fact::Restarted { landed, retry, .. } => {
            let mut lines = vec![format!("Run {} goes on; {} stories have landed in it", run.id(), landed.len())];
            lines.extend(retry.iter().map(|story| one_line(&run.came_of_retry(story))));
            lines
        }
        Fact::PlanChecked { spec } => plan_lines(spec, run),
        Fact::CheckStarted { attempt, stage, check } => {
            let base = if *stage == CheckStage::Baseline { " on the base" } else { "" };
            vec![format!("Running{base}: `{}`", one_line(&run.label(attempt, *check)))]
        }
        Fact::CheckFinished { attempt, stage, check, result, cached, took } => {
            check_lines(&run.label(attempt, *check), *stage, result, *cached, *took)
        }
        Fact::CheckpointTaken { notes, .. } => notes.iter().map(|n| format!("Note: {}", one_line(n))).collect(),
        Fact::AgentStarted { attempt, call, .. } => vec![started(attempt, *call, run)],
        Fact::AgentEnded { attempt, report, .. } => {
            let cost = report.usage.money_in_words().map_or_else(String::new, |cost| format!(", {cost}"));
            let leg = run.attempt(attempt).and_then(Attempt::leg);
            let who = leg.map_or_else(|| "Agent".to_owned(), |leg| capital(&one_line(&leg.role.name)));
            let mut lines = vec![format!(
                "{who} of {} ended after {}: {}{cost}",
                one_line(&attempt.to_string()),
                span(report.took),
                one_line(&report.end.in_words(&report.claim))
            )];
            lines.extend(others_take_over(attempt, run));
            lines
        }
        Fact::ReviewStarted { agent, round, .. } => {
            let again = if *round > 1 { format!(", review {round}") } else { String::new() };
            vec![format!("Reviewing with {}{again}", one_line(agent.as_str()))]
        }
        Fact::ReviewEnded { agent, report, .. } => review_lines(agent, report),
        Fact::TreeInspected { report, .. } => {
            let mut lines = vec![format!("Changed files: {}", report.files_changed)];
            lines.extend(report.notes.iter().map(|n| format!("Note: {}", one_line(n))));
            lines
        }
        Fact::Landed { attempt, commit, notes } => {
            let record = run.record(&attempt.story);
            let ground = record.and_then(|record| record.state.ground()).map_or("", ground_text);
            let how = match record.map(|record| &record.state) {
                Some(StoryState::AwaitsSignOff { .. }) => "landed",
                _ => "passed and landed",
            };
            let title = run.plan().story(&attempt.story).map(|s| one_line(&s.title)).unwrap_or_default();
            let mut lines = vec![format!(
                "Story {} {how} as {}{ground}: {title}",
                one_line(attempt.story.as_str()),
                short(commit.as_str())
            )];
            lines.extend(notes.iter().map(|n| format!("Note: {}", one_line(n))));
            if let Some(record) = record.filter(|record| !record.state.passed()) {
                let story = one_line(attempt.story.as_str());
                lines.push(format!("Story {story} {}", one_line(record.reason.as_deref().unwrap_or_default())));
            }
            lines
        }
        Fact::LandingRefused { by, output, .. } => {
            let mut lines = vec![format!("No commit was made: {}", one_line(by))];
            lines.extend(output_lines(output));
            lines
        }
        Fact::FixTaskAdded { attempt, task, commit, .. } => vec![fix_task_words(attempt, task, commit.as_ref())],
        Fact::NoFixTask { why, .. } => vec![format!("No fix task can be added: {}", one_line(why))],
        Fact::Reverted { attempt, kept, notes } => reverted_lines(attempt, kept.as_deref(), notes, run),
        Fact::StopRequested { cause, level } => vec![stopping(*cause, *level).to_owned()],
        Fact::PauseRequested => vec!["Pausing after this attempt".to_owned()],
        Fact::SkipRequested { story } => vec![one_line(&run.came_of_skip(story))],
        Fact::RetryRequested { story } => vec![one_line(&run.came_of_retry(story))],
        Fact::GuidanceAdded { text } => vec![format!("Guidance for the next prompt: {}", one_line(text))],
        Fact::LearningAdded { text } => vec![format!("Learning: {}", one_line(text))],
        Fact::RunEnded { outcome } => vec![format!("Run ended: {}", one_line(&outcome_text(outcome)))],
        Fact::CheckpointFailed { why, .. } => vec![format!("No checkpoint could be taken: {}", one_line(why))],
        Fact::RepositoryBroken { why, .. } => vec![format!("The repository was changed: {}", one_line(why))],
        Fact::LandingFailed { why, .. } => vec![format!("The story could not be committed: {}", one_line(why))],
        Fact::LaneFailed { why, .. } => vec![format!("There is no working tree: {}", one_line(why))],
        Fact::Merged { attempt, merge, .. } => match merge {
            Merge::Current => Vec::new(),
            Merge::Merged { report } => with_notes(merged_words(attempt, run), &report.notes),
            Merge::Conflicts { files, notes } => {
                with_notes(conflict_words(attempt, run, &one_line(&files.join(", "))), notes)
            }
        },
        Fact::MergeFailed { why, .. } => vec![format!("The work could not be merged: {}", one_line(why))],
        Fact::Trespassed { why, .. } => {
            vec![format!("Something outside the worktrees was moved by somebody else: {}", one_line(why))]
        }
        Fact::LandingBlocked { why, .. } => vec![format!("The merge is blocked by a local change: {}", one_line(why))],
        Fact::RevertFailed { why, .. } => vec![format!("The tree could not be put back: {}", one_line(why))],
        Fact::AttemptStarted { notes, .. } => notes.iter().map(|note| format!("Note: {}", one_line(note))).collect(),
        Fact::Settled { .. } | Fact::Woke => Vec::new(),
    }
}

/// What the last look at the spec has found.
fn plan_lines(spec: &PlanChange, run: &Run) -> Vec<String> {
    let mut lines = match spec {
        PlanChange::Same => Vec::new(),
        PlanChange::Changed { .. } => {
            let mut lines = vec!["The spec was changed by a person; it counts from now on".to_owned()];
            lines.extend(taken_out(run));
            lines
        }
        PlanChange::Unreadable { message } => vec![format!("The spec can no longer be read: {}", one_line(message))],
    };
    lines.extend(waiting(run));
    lines
}

fn fix_task_words(attempt: &AttemptId, task: &TaskId, commit: Option<&CommitId>) -> String {
    let commit = commit.map_or_else(String::new, |commit| format!(" as {}", short(commit.as_str())));
    let (task, story) = (one_line(task.as_str()), one_line(attempt.story.as_str()));
    format!("The fix task {task} was added{commit}; story {story} is tried afresh with it")
}

fn merged_words(attempt: &AttemptId, run: &Run) -> String {
    match run.attempt(attempt).and_then(Attempt::prepared_on) {
        Some(first) => format!("Prepared on top of {}, which is about to land", one_line(first.story.as_str())),
        None if run.attempt(attempt).is_some_and(|attempt| matches!(attempt.phase, Phase::Landing(_))) => {
            "Merged with what has landed meanwhile; nothing is left to check".to_owned()
        }
        None => "Merged with what has landed meanwhile".to_owned(),
    }
}

fn conflict_words(attempt: &AttemptId, run: &Run, files: &str) -> String {
    match run.attempt(attempt).and_then(Attempt::waits_for) {
        Some(first) => {
            format!("In conflict with {} in {files}: waits until that has landed", one_line(first.story.as_str()))
        }
        None => format!("Conflicts with what has landed meanwhile, in {files}"),
    }
}

fn with_notes(line: String, notes: &[String]) -> Vec<String> {
    std::iter::once(line).chain(notes.iter().map(|note| format!("Note: {}", one_line(note)))).collect()
}

/// The lines as they are printed: `[2026-01-17T14:00:00Z] ralphloop: …`.
pub(crate) fn printed(event: &Event, run: &Run) -> String {
    of(event, run).iter().map(|line| format!("[{}] ralphloop: {line}\n", rfc3339(event.at))).collect()
}

fn stopping(cause: StopCause, level: StopLevel) -> &'static str {
    match (cause, level) {
        (_, StopLevel::AfterAttempt) => "Stopping after this attempt",
        (StopCause::Request, StopLevel::Now) => "Stopping now: the agent is ended and the tree put back",
        (StopCause::Hup | StopCause::Int | StopCause::Term, StopLevel::Now) => {
            "Stopping now: the agent is ended and the tree put back; the same again kills the agent without waiting for \
             it, a third time leaves at once"
        }
    }
}

fn review_lines(agent: &AgentId, report: &ReviewReport) -> Vec<String> {
    let cost = report.usage.money_in_words().map_or_else(String::new, |cost| format!(", {cost}"));
    let begins = format!("Review by {} after {}{cost}", one_line(agent.as_str()), span(report.took));
    if report.touched {
        return vec![format!("{begins}: it changed the tree that it was to review")];
    }
    match (&report.end, &report.opinion) {
        (AgentEnd::Finished, Opinion::Approves) => vec![format!("{begins}: approved")],
        (AgentEnd::Finished, Opinion::Objects { findings }) => {
            let mut lines = vec![format!("{begins}: {}", count(findings.len(), "finding", "findings"))];
            lines.extend(findings.iter().map(|finding| format!("Finding: {}", one_line(finding))));
            lines
        }
        (AgentEnd::Finished, Opinion::Unclear { said }) => {
            vec![format!("{begins}: no opinion in a form that counts, which is no objection: {}", one_line(said))]
        }
        (end, _) => {
            let end = one_line(&end.in_words(&Claim::None { near_miss: None }));
            vec![format!("{begins}: no opinion, which is no objection: {end}")]
        }
    }
}

/// What becomes of an agent that has just shown that it cannot go on, where there are others.
fn others_take_over(attempt: &AttemptId, run: &Run) -> Option<String> {
    let agent = run.attempt(attempt)?.agent.as_ref().filter(|_| run.chain().len() > 1)?;
    let away = run.away(agent)?;
    let until = away.until().map_or_else(String::new, |until| format!(" before {}", rfc3339(until.at)));
    Some(format!("{} is not called{until}: {}", one_line(agent.as_str()), one_line(away.reason())))
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn started(attempt: &AttemptId, call: CallNumber, run: &Run) -> String {
    let total = run.plan().stories.len();
    let place = run.plan().stories.iter().position(|s| s.id == attempt.story).map_or(0, |p| p + 1);
    let title = run.plan().story(&attempt.story).map(|s| one_line(&s.title)).unwrap_or_default();
    let under_way = run.attempt(attempt);
    let mut which = match (under_way.map_or(call.0, |under_way| under_way.repair_number(call)), attempt.number) {
        (0, 1) => String::new(),
        (0, number) => format!(", attempt {number}"),
        (repair, _) => format!(", repair {repair}"),
    };
    let leg = under_way.and_then(Attempt::leg);
    if let Some(leg) = leg {
        let round = if leg.rounds > 1 { format!(", round {}", leg.round) } else { String::new() };
        which = format!("{which}, {}{round}", one_line(&leg.role.name));
    }
    // With one agent alone, the first line has named it.
    let agent = under_way.and_then(|a| a.agent.as_ref()).filter(|_| run.chain().len() > 1 || leg.is_some());
    let with = agent.map_or_else(String::new, |agent| format!(" with {}", one_line(agent.as_str())));
    format!("Starting iteration {} (story {place} of {total}: \"{title}\"){which}{with}", run.calls())
}

fn check_lines(
    label: &str,
    stage: CheckStage,
    result: &CheckResult,
    cached: bool,
    took: std::time::Duration,
) -> Vec<String> {
    let on = match stage {
        CheckStage::Baseline => " on the base",
        CheckStage::Call(_) => "",
        CheckStage::Merged(_) => " on the merged tree",
    };
    let time = if cached { "known from the same tree".to_owned() } else { span(took) };
    let label = one_line(label);
    match result {
        CheckResult::Passed => vec![format!("Passed{on}: `{label}` ({time})")],
        CheckResult::Failed { why, output } => {
            let then = if stage == CheckStage::Baseline { "; it has to pass before the story lands" } else { "" };
            let mut lines = vec![format!("Failed{on}: `{label}`: {} ({time}){then}", one_line(why))];
            if stage != CheckStage::Baseline {
                lines.extend(output_lines(output));
            }
            lines
        }
        CheckResult::CouldNotRun { why } => vec![format!("Could not run{on}: `{label}`: {}", one_line(why))],
        CheckResult::NoRoom { why } => vec![format!("Failed for want of room{on}: `{label}`: {}", one_line(why))],
        CheckResult::Stopped => vec![format!("Stopped{on}: `{label}`")],
    }
}

/// The last lines of an output, each harmless.
fn output_lines(output: &str) -> Vec<String> {
    let lines: Vec<&str> = output.lines().filter(|l| !l.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(OUTPUT_LINES);
    lines[from..].iter().map(|l| format!("{OUTPUT}{}", sanitize::head(&sanitize::sanitize(l), 400))).collect()
}

fn reverted_lines(attempt: &AttemptId, kept: Option<&str>, notes: &[String], run: &Run) -> Vec<String> {
    let name = one_line(&attempt.to_string());
    let mut lines = vec![match kept {
        Some(reference) => format!("Reverted {name}; its work is kept at {reference}"),
        None => format!("Reverted {name}; it had changed nothing"),
    }];
    lines.extend(notes.iter().map(|n| format!("Note: {}", one_line(n))));
    if let Some(record) = run.record(&attempt.story) {
        let reason = record.reason.as_deref().map(one_line).unwrap_or_default();
        let story = one_line(attempt.story.as_str());
        match record.state {
            StoryState::Failed => lines.push(format!("Story {story} failed: {reason}")),
            StoryState::Blocked => lines.push(format!("Story {story} is blocked: {reason}")),
            StoryState::Skipped => lines.push(format!("Story {story} is skipped")),
            StoryState::Pending if !reason.is_empty() => lines.push(format!("{name} did not pass: {reason}")),
            _ => {}
        }
    }
    lines.extend(waiting(run));
    lines
}

/// What the run waits for.
fn waiting(run: &Run) -> Option<String> {
    run.wait().map(|wait| format!("Until {}: {}", rfc3339(wait.until), one_line(&wait.reason)))
}
