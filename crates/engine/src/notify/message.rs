//! What is told: from a run's state to words and to JSON.

use std::fmt::Write as _;

use ralphloop_agent::redact::Redactor;
use ralphloop_agent::sanitize::one_line;
use ralphloop_core::run::{Activity, Run, StoryState};
use ralphloop_core::units::{Timestamp, Usd};
use serde::Serialize;

/// A shorter wait is not worth a notification: the provider was overloaded for a moment.
const SHORT_WAIT: std::time::Duration = std::time::Duration::from_mins(1);
/// Stories that are named.
const NAMED: usize = 5;
/// Columns of a reason or title.
const COLUMNS: usize = 400;

/// What happened. The words are those of the public events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Kind {
    /// The run ended, was paused or stopped, or broke off: `state` tells which.
    #[serde(rename = "run.ended")]
    Ended,
    /// The run waits for the provider.
    #[serde(rename = "run.waiting")]
    Waiting,
}

/// A notification. As JSON it is the body of a web hook; names are those of `status --json`, and fields are only ever
/// added.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Message {
    pub(super) event: Kind,
    time: String,
    run: String,
    work: String,
    /// `complete`, `failed`, `paused`, `stopped`, `limit`, `waiting`, or `interrupted` for a run that broke off.
    pub(super) state: &'static str,
    pub(super) reason: String,
    /// The story under way, else the first that did not pass.
    story: Option<String>,
    branch: String,
    agent: String,
    passed: usize,
    total: usize,
    iterations: u32,
    cost_usd: Option<f64>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    duration_ms: u64,
    /// When it makes sense, or is planned, to go on.
    resume_at: Option<String>,
    /// Stories that did not pass.
    stories: Vec<Story>,
}

/// A story that did not pass.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Story {
    id: String,
    title: String,
    state: &'static str,
    reason: Option<String>,
}

impl Message {
    /// What there is to tell of `run`, which did `before` until its latest event.
    pub(super) fn about(run: &Run, before: &Activity) -> Option<Self> {
        match (run.activity(), before) {
            (Activity::Ended(_), Activity::Ended(_)) => None,
            (Activity::Ended(outcome), _) => {
                let at = run.ended_at().unwrap_or_else(|| run.last_at());
                let mut message = Self::of(run, Kind::Ended, outcome.state(), outcome.to_string(), at);
                if let ralphloop_core::outcome::Outcome::BoundReached { resume_at, .. } = outcome {
                    message.resume_at = resume_at.map(rfc3339);
                }
                Some(message)
            }
            (Activity::Waiting(wait), Activity::Waiting(known)) if wait.until <= known.until => None,
            (Activity::Waiting(wait), _) if wait.until.since(run.last_at()) >= SHORT_WAIT => {
                let mut message = Self::of(run, Kind::Waiting, "waiting", wait.reason.clone(), run.last_at());
                message.resume_at = Some(rfc3339(wait.until));
                Some(message)
            }
            _ => None,
        }
    }

    /// That the run broke off at `at`, for a reason that no event tells of.
    pub(super) fn broke_off(run: &Run, why: String, at: Timestamp) -> Self {
        Self::of(run, Kind::Ended, "interrupted", why, at)
    }

    fn of(run: &Run, event: Kind, state: &'static str, reason: String, at: Timestamp) -> Self {
        let usage = run.usage();
        let stories: Vec<Story> = run
            .records()
            .filter_map(|(story, record)| {
                let state = match record.state {
                    StoryState::Failed => "failed",
                    StoryState::Blocked => "blocked",
                    _ => return None,
                };
                let (id, title) = (story.id.to_string(), story.title.clone());
                Some(Story { id, title, state, reason: record.reason.clone() })
            })
            .collect();
        let under_way = run.attempts().next().map(|attempt| attempt.id.story.to_string());
        Self {
            event,
            time: rfc3339(at),
            run: run.id().to_string(),
            work: run.plan().work.to_string(),
            state,
            reason,
            story: under_way.or_else(|| stories.first().map(|story| story.id.clone())),
            branch: run.branch().strip_prefix("refs/heads/").unwrap_or(run.branch()).to_owned(),
            agent: run.agent().to_owned(),
            passed: run.records().filter(|(_, record)| record.state.passed()).count(),
            total: run.records().count(),
            iterations: run.calls(),
            cost_usd: usage.money().map(Usd::dollars),
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            duration_ms: u64::try_from(run.active_time().as_millis()).unwrap_or(u64::MAX),
            resume_at: None,
            stories,
        }
    }

    /// The same with secrets masked, and every text on one line and harmless.
    pub(super) fn redacted(mut self, redactor: &Redactor) -> Self {
        let clean = |text: &mut String| *text = one_line(&redactor.redact_text(text), COLUMNS);
        for text in [&mut self.work, &mut self.reason, &mut self.branch, &mut self.agent] {
            clean(text);
        }
        self.story.iter_mut().for_each(clean);
        for story in &mut self.stories {
            clean(&mut story.id);
            clean(&mut story.title);
            story.reason.iter_mut().for_each(clean);
        }
        self
    }

    /// One line that says what happened.
    pub(super) fn title(&self) -> String {
        let what = match self.state {
            "complete" => "is done",
            "failed" => "failed",
            "paused" => "is paused",
            "stopped" => "was stopped",
            "limit" => "reached a limit",
            "waiting" => "waits",
            _ => "broke off",
        };
        format!("ralphloop: {} {what}", self.work)
    }

    /// The lines that say more.
    pub(super) fn details(&self) -> String {
        let cost = self.cost_usd.map_or_else(String::new, |cost| format!(", ${cost:.2}"));
        let mut text = format!(
            "{}\n{} of {} stories passed, {} iterations{cost}; run {} on branch {}\n",
            self.reason, self.passed, self.total, self.iterations, self.run, self.branch
        );
        for story in self.stories.iter().take(NAMED) {
            let reason = story.reason.as_deref().unwrap_or("no reason is known");
            let _ = writeln!(text, "{} {} ({}): {reason}", story.id, story.state, story.title);
        }
        if self.stories.len() > NAMED {
            let _ = writeln!(text, "and {} more", self.stories.len() - NAMED);
        }
        if let Some(at) = &self.resume_at {
            let _ = writeln!(text, "It makes sense to go on at {at}.");
        }
        text
    }

    /// All of it, for people.
    pub(super) fn text(&self) -> String {
        format!("{}\n{}", self.title(), self.details())
    }

    /// Whether a person should look soon.
    pub(super) fn is_urgent(&self) -> bool {
        !matches!(self.state, "complete" | "stopped" | "waiting")
    }
}

fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0)
        .map_or_else(|_| at.0.to_string(), |time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}
