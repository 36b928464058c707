//! The message of a story's commit: subject, and trailers by which the commit is recognised.

use ralphloop_agent::sanitize;
use ralphloop_core::effect::Ground;
use ralphloop_core::ids::{AgentId, AttemptId, RunId, StoryId};
use ralphloop_core::plan::Story;
use ralphloop_core::run::Run;

use crate::runs::RunFolder;
use crate::settings::Settings;

/// Columns of a commit's subject.
const SUBJECT: usize = 120;

/// A story's id as its trailer has it: on one line, whole, so that it is found again.
pub(crate) fn trailer_id(story: &StoryId) -> String {
    sanitize::one_line(story.as_str(), usize::MAX)
}

/// A commit to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    /// The run.
    pub(super) run: RunId,
    /// Subject, blank line, trailers.
    pub(super) text: String,
}

impl Message {
    /// With the end of the journal at this moment, where commits are signed: it holds all that led to the commit.
    pub(super) fn with_head(self, settings: &Settings, folder: &RunFolder) -> String {
        match crate::audit::head_in(folder.path()).filter(|_| settings.seal.is_some()) {
            Some(head) => format!("{}\nRalphloop-Journal: {} {}\n", self.text.trim_end(), head.lines, head.hash),
            None => self.text,
        }
    }
}

/// That of a story that is proven so. Secrets in it are masked by `redact`, but for the names by which it is found again.
pub(super) fn of(run: &Run, attempt: &AttemptId, ground: Ground, redact: &dyn Fn(&str) -> String) -> Message {
    let record = run.record(&attempt.story);
    let title = run.plan().story(&attempt.story).map(|s| s.title.as_str()).unwrap_or_default();
    let first = title.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or_default();
    let one = |text: &str| sanitize::one_line(text, SUBJECT);
    let story = one(attempt.story.as_str());
    let title = if first.is_empty() { "as specified".to_owned() } else { redact(first) };
    let checks = match ground {
        Ground::Verified => "passed",
        Ground::Unverified => "none exist",
        Ground::NoSignal => "passed, without a signal of the agent",
        Ground::NoChange => "passed, without a change of files",
    };
    let mut trailers = vec![
        ("Run", one(run.id().as_str())),
        ("Story", trailer_id(&attempt.story)),
        ("Attempt", attempt.number.to_string()),
        ("Work", one(&run.plan().work.to_string())),
        ("Agent", one(&redact(record.and_then(|r| r.agent.as_ref()).map_or(run.agent(), AgentId::as_str)))),
        ("Checks", checks.to_owned()),
    ];
    if run.plan().story(&attempt.story).is_some_and(Story::needs_sign_off) {
        trailers.push(("Sign-Off", "awaited".to_owned()));
    }
    if let Some(model) = record.and_then(|r| r.model.as_deref()) {
        trailers.push(("Model", one(&redact(model))));
    }
    if let Some(reviewed) = record.and_then(|r| r.reviewed.as_ref()) {
        trailers.push(("Review", one(&redact(&reviewed.to_string()))));
    }
    if let Some((usage, cost)) = record.and_then(|r| Some((r.usage, r.usage.money()?))) {
        let list = if usage.estimate.is_some() { " by list prices" } else { "" };
        trailers.push(("Cost", format!("{:.4} USD{list}", cost.dollars())));
    }
    let subject = one(&format!("feat({story}): {title}"));
    let trailers: Vec<String> = trailers.iter().map(|(key, value)| format!("Ralphloop-{key}: {value}")).collect();
    let text = format!("{subject}\n\n{}\n", trailers.join("\n"));
    Message { run: run.id().clone(), text }
}
