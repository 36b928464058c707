//! `progress.md` and `critical-learnings.md` of Flight Rules, and the `progress.txt` that Ralph loops keep: patterns on
//! top, an entry a story below.

use ralphloop_core::units::Timestamp;

use super::Telling;
use super::chronicle::Done;
use crate::output::one_line;
use crate::view::{rfc3339, short, span};

/// `2026-01-17` of a time.
pub(super) fn day(time: &str) -> String {
    time.get(..10).unwrap_or(time).to_owned()
}

/// `2026-01-17 14:00`.
pub(super) fn minute(at: Timestamp) -> String {
    let time = rfc3339(at);
    match (time.get(..10), time.get(11..16)) {
        (Some(day), Some(clock)) => format!("{day} {clock}"),
        _ => time,
    }
}

fn verified(done: &Done) -> String {
    match (done.verified, done.checks.is_empty()) {
        (false, _) => "not verified: nothing could check it".to_owned(),
        (true, true) => "passed".to_owned(),
        (true, false) => format!("passed ({})", done.checks.join(", ")),
    }
}

/// The part of `progress.md` that tells of this run, newest first.
pub(super) fn markdown(told: Telling<'_>) -> String {
    let (chronicle, log) = (told.chronicle, told.session_log());
    let total = chronicle.run.records().count();
    let mut text = String::new();
    for (at, done) in chronicle.done.iter().enumerate().rev() {
        text.push_str(&format!(
            "### {} (Continuous Session {}/{total})\n\n- {} ({})\n- Verification: {}\n- Commit {}, after {}\n- See: [{log}]({log})\n\n",
            minute(done.at),
            at + 1,
            done.title,
            one_line(done.story.as_str()),
            verified(done),
            short(&done.commit),
            span(done.took),
        ));
    }
    text.push_str(&format!(
        "### {}\n\n- Began to work on {}\n- See: [{log}]({log})\n",
        minute(chronicle.run.started_at()),
        one_line(&chronicle.run.plan().work.to_string()),
    ));
    text
}

/// The patterns that stand on top of `progress.txt`.
pub(super) fn patterns(told: Telling<'_>) -> String {
    format!("## Codebase Patterns\n\n{}", list(told))
}

/// The learnings, one a line.
pub(super) fn list(told: Telling<'_>) -> String {
    told.learnings().map(|learning| format!("- {}\n", one_line(learning))).collect()
}

/// The part of `progress.txt` that tells of this run.
pub(super) fn text(told: Telling<'_>) -> String {
    let chronicle = told.chronicle;
    let mut text = format!("Started: {}\n---\n", minute(chronicle.run.started_at()));
    for done in &chronicle.done {
        text.push_str(&format!(
            "\n## {} - {}\n\n- {}\n- Verification: {}\n- Commit: {}\n",
            minute(done.at),
            one_line(done.story.as_str()),
            done.title,
            verified(done),
            short(&done.commit),
        ));
        if !done.learnings.is_empty() {
            text.push_str("- **Learnings for future iterations:**\n");
            text.extend(done.learnings.iter().map(|learning| format!("  - {}\n", one_line(learning))));
        }
        text.push_str("---\n");
    }
    for (story, error, attempts) in super::states::failed(&chronicle.run) {
        text.push_str(&format!(
            "\n## Not done - {}\n\n- {}\n- {} attempts: {}\n---\n",
            one_line(story.as_str()),
            chronicle.title(story),
            attempts,
            one_line(&error),
        ));
    }
    text
}
