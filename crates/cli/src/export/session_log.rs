//! The session log of a run, `session_logs/YYYYMMDD_HHMM_session.md`. Its *Next Steps* are the queue that a continuous
//! session goes on with, in the form that [`ralphloop_spec`] reads.

use ralphloop_core::plan::{Check, Story};
use ralphloop_core::run::{Activity, StoryState};

use super::Telling;
use super::progress::minute;
use crate::output::one_line;
use crate::view::status::outcome_text;
use crate::view::{short, span};

/// The log of the run as it stands.
pub(super) fn text(told: Telling<'_>) -> String {
    let chronicle = told.chronicle;
    let run = &chronicle.run;
    let (passed, total) = (run.records().filter(|(_, r)| r.state.passed()).count(), run.records().count());
    let how = match run.activity() {
        Activity::Ended(outcome) => outcome_text(outcome),
        _ => "it is going on".to_owned(),
    };
    let goals = run.records().filter(|(_, record)| record.selected).map(|(story, _)| chronicle.title(&story.id));
    let done = chronicle.done.iter().map(|done| {
        let checks = if done.checks.is_empty() { "nothing could check it".to_owned() } else { done.checks.join(", ") };
        format!("**{}**: landed after {}; checked by: {checks}", done.title, span(done.took))
    });
    let challenges = chronicle.failures.iter().map(|failure| {
        let what = failure.verification.as_ref().map_or_else(String::new, |what| format!("`{}`: ", one_line(what)));
        let action = failure.action.as_deref().unwrap_or("not answered yet");
        format!("{} (attempt {}): {what}{}. {action}", failure.title, failure.attempt, failure.result)
    });
    let commits = chronicle.done.iter().map(|done| format!("{} {}", short(&done.commit), done.title));
    format!(
        "# Session Log {}\n\n{}\n\n## Session Goals\n\n{}\n## Related Specs\n\n- {}\n\n## Summary\n\n{passed} of {total} done. {}\n\n\
         ## Implementation Details\n\n{}\n## Key Decisions\n\n- None noted\n\n## Challenges & Solutions\n\n{}\n\
         ## Code Areas Touched\n\n{}\n## Spec Updates Needed\n\n- None noted\n\n## Next Steps\n\n{}\n## Learnings\n\n{}",
        minute(run.started_at()),
        super::mark_of(run.id()),
        items(goals),
        one_line(&run.plan().work.to_string()),
        one_line(&how),
        items(done),
        items(challenges),
        items(commits),
        next_steps(told),
        items(told.learnings().map(one_line)),
    )
}

fn items(lines: impl Iterator<Item = String>) -> String {
    let text: String = lines.map(|line| format!("- {line}\n")).collect();
    if text.is_empty() { "- None\n".to_owned() } else { text }
}

/// What is left, in the order in which it would be worked on.
fn next_steps(told: Telling<'_>) -> String {
    let open: Vec<&Story> = told.open().collect();
    if open.is_empty() {
        return "- None\n".to_owned();
    }
    open.iter().enumerate().map(|(at, story)| step(told, at + 1, story)).collect()
}

fn step(told: Telling<'_>, number: usize, story: &Story) -> String {
    let mut line = format!("{number}. {}", told.chronicle.title(&story.id));
    let record = told.chronicle.run.record(&story.id);
    let reason = record.and_then(|record| record.reason.as_deref());
    if record.is_some_and(|record| record.state == StoryState::Blocked) {
        line.push_str(&format!(" [BLOCKED: {}]", balanced(reason.unwrap_or("it waits for a person"))));
    }
    let (mut timeout, mut verified) = (None, false);
    if let Some(Check::Shell { command, timeout: its, .. }) = story.checks.first()
        && is_balanced(command)
        && !command.contains(['`', '\n'])
    {
        line.push_str(&format!(" [VERIFY: `{command}`]"));
        (timeout, verified) = (*its, true);
    }
    if !verified {
        line.push_str(" [NO-VERIFY]");
    }
    if let Some(priority) = story.priority.filter(|priority| (1.0..=9.0).contains(&priority.0)) {
        line.push_str(&format!(" [PRIORITY: {}]", priority.0));
    }
    line.push('\n');
    if let Some(timeout) = timeout {
        line.push_str(&format!("   Timeout: {}s\n", timeout.as_secs()));
    }
    if let Some(failure) = told.chronicle.last_failure(&story.id) {
        // As a point of its own: a line that only goes on would be part of the title.
        line.push_str(&format!("   - Last Attempt: {}\n", failure.result));
    }
    line
}

/// A tag ends at its bracket.
fn is_balanced(text: &str) -> bool {
    let mut depth = 0_i32;
    let never_below = text.chars().all(|c| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        depth >= 0
    });
    never_below && depth == 0
}

fn balanced(text: &str) -> String {
    one_line(text).replace('[', "(").replace(']', ")")
}
