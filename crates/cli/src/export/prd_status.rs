//! `prd-status.json`: which stories of a PRD pass, with their history.

use std::collections::BTreeMap;

use ralphloop_core::plan::{Check, Story};
use ralphloop_core::run::StoryState;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Telling;
use super::chronicle::FailureClass;
use super::progress::day;
use crate::view::rfc3339;

/// The file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PrdStatus {
    /// The version of the format.
    pub(crate) version: u32,
    /// When it last changed.
    pub(crate) last_updated: String,
    /// What the stories were read from.
    pub(crate) prd_file: String,
    /// The stories, in order.
    pub(crate) stories: Vec<StoryStatus>,
    /// Sums.
    pub(crate) statistics: Statistics,
}

/// One story.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoryStatus {
    /// Its id.
    pub(crate) id: String,
    /// Its title.
    pub(crate) title: String,
    /// It is done.
    pub(crate) passes: bool,
    /// When a gate or a check last proved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_verified: Option<String>,
    /// How it is verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) verification: Option<How>,
    /// The tasks that make it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) implemented_by: Vec<String>,
    /// What became of it, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) history: Vec<Entry>,
}

/// How a story is verified.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct How {
    /// The kind.
    #[serde(rename = "type")]
    pub(crate) kind: Kind,
    /// The command of the kind `command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<String>,
    /// What must come of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expected: Option<String>,
    /// What a person looks at, of the kind `manual`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) criteria: Vec<String>,
    /// The parts of the kind `composite`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) checks: Vec<Self>,
}

/// Kinds of verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Command,
    Manual,
    Tasks,
    Composite,
}

/// One line of a story's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct Entry {
    /// When.
    pub(crate) date: String,
    /// Whether it passed.
    pub(crate) result: Verdict,
    /// What there is to say.
    pub(crate) notes: String,
}

/// How a try of a story ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Pass,
    Fail,
}

/// Sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct Statistics {
    /// All stories.
    pub(crate) total: usize,
    /// Those that pass.
    pub(crate) passed: usize,
    /// Those whose last try failed.
    pub(crate) failed: usize,
    /// The others.
    pub(crate) pending: usize,
}

impl PrdStatus {
    pub(super) fn of(told: Telling<'_>) -> Self {
        let run = &told.chronicle.run;
        let stories: Vec<StoryStatus> =
            run.records().map(|(story, record)| of_story(told, story, &record.state)).collect();
        let (mut failed, mut passed) = (0, 0);
        for (_, record) in run.records() {
            passed += usize::from(record.state.passed());
            failed += usize::from(matches!(record.state, StoryState::Failed | StoryState::Blocked));
        }
        let total = stories.len();
        Self {
            version: 1,
            last_updated: rfc3339(run.last_at()),
            prd_file: run.plan().work.id.clone(),
            stories,
            statistics: Statistics { total, passed, failed, pending: total - passed - failed },
        }
    }

    /// Laid over what a file holds already: stories that it alone has, keys that are not known here, and older history stay.
    pub(super) fn over(&self, old: &str) -> Result<Value, String> {
        let Value::Object(old) = serde_json::from_str(old).map_err(|error| error.to_string())? else {
            return Err("it is no object".to_owned());
        };
        let Ok(Value::Object(new)) = serde_json::to_value(self) else { return Err("it cannot be written".to_owned()) };
        let as_list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
        let mut stories = as_list(old.get("stories"));
        for story in as_list(new.get("stories")) {
            let known = stories.iter_mut().find(|known| known["id"] == story["id"]).and_then(Value::as_object_mut);
            match (known, story) {
                (Some(known), Value::Object(story)) => lay_over(known, story),
                (_, story) => stories.push(story),
            }
        }
        let statistics = count(&stories);
        let mut merged: Map<String, Value> = old;
        merged.extend(new);
        merged.insert("stories".to_owned(), Value::Array(stories));
        merged.insert("statistics".to_owned(), serde_json::to_value(statistics).map_err(|error| error.to_string())?);
        Ok(Value::Object(merged))
    }
}

fn lay_over(known: &mut Map<String, Value>, story: Map<String, Value>) {
    let mut history = known.get("history").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(entries) = story.get("history").and_then(Value::as_array) {
        history.extend(entries.iter().filter(|entry| !history.contains(entry)).cloned().collect::<Vec<_>>());
    }
    // What a person wrote about the verification says more than what was read of it.
    let kept = known.get("verification").cloned();
    known.extend(story);
    if let Some(kept) = kept {
        known.insert("verification".to_owned(), kept);
    }
    if !history.is_empty() {
        known.insert("history".to_owned(), Value::Array(history));
    }
}

fn count(stories: &[Value]) -> Statistics {
    let mut sums: BTreeMap<bool, usize> = BTreeMap::new();
    let mut failed = 0;
    for story in stories {
        let passes = story["passes"] == true;
        *sums.entry(passes).or_default() += 1;
        let last = story["history"].as_array().and_then(|history| history.last());
        failed += usize::from(!passes && last.is_some_and(|entry| entry["result"] == "fail"));
    }
    let (passed, open) = (sums.get(&true).copied().unwrap_or(0), sums.get(&false).copied().unwrap_or(0));
    Statistics { total: stories.len(), passed, failed, pending: open - failed }
}

fn of_story(told: Telling<'_>, story: &Story, state: &StoryState) -> StoryStatus {
    let chronicle = told.chronicle;
    let landed = chronicle.done.iter().rev().find(|done| done.story == story.id);
    let mut history: Vec<(String, Entry)> = chronicle
        .failures
        .iter()
        // What is nobody's fault is no verdict about the story.
        .filter(|failure| failure.story == story.id.as_str() && counts(failure.class))
        .map(|failure| {
            let what = failure.verification.as_ref().map_or_else(String::new, |what| format!("{what}: "));
            let notes = format!("attempt {}: {what}{}", failure.attempt, failure.result);
            (failure.time.clone(), Entry { date: day(&failure.time), result: Verdict::Fail, notes })
        })
        .collect();
    if let Some(done) = landed {
        let how = if done.verified { "verified" } else { "not verified" };
        let notes = format!("{how}, commit {}", crate::view::short(&done.commit));
        let time = rfc3339(done.at);
        history.push((time.clone(), Entry { date: day(&time), result: Verdict::Pass, notes }));
    }
    history.sort_by(|(one, _), (other, _)| one.cmp(other));
    StoryStatus {
        id: story.id.to_string(),
        title: chronicle.title(&story.id),
        passes: state.passed(),
        last_verified: landed.filter(|done| done.verified).map(|done| rfc3339(done.at)),
        verification: how(story),
        implemented_by: story.tasks.iter().map(|task| task.id.to_string()).collect(),
        history: history.into_iter().map(|(_, entry)| entry).collect(),
    }
}

fn counts(class: FailureClass) -> bool {
    matches!(class, FailureClass::Verification | FailureClass::Implementation | FailureClass::Timeout)
}

fn how(story: &Story) -> Option<How> {
    let command = |command: String| How {
        kind: Kind::Command,
        command: Some(command),
        expected: Some("exit 0".to_owned()),
        criteria: Vec::new(),
        checks: Vec::new(),
    };
    let one = |check: &Check| match check {
        Check::Shell { command: line, .. } => command(line.clone()),
        Check::FileExists { path, glob: false, .. } => command(format!("test -e {}", quoted(path))),
        Check::FileExists { path, glob: true, .. } => command(format!("ls -- {path}")),
        Check::Url { url, .. } => command(format!("curl -fsS {}", quoted(url))),
    };
    let mut checks: Vec<How> = story.checks.iter().map(one).collect();
    if story.needs_sign_off() {
        checks.push(How {
            kind: Kind::Manual,
            command: None,
            expected: None,
            criteria: story.sign_off.clone(),
            checks: Vec::new(),
        });
    }
    match checks.len() {
        0 => None,
        1 => checks.pop(),
        _ => Some(How { kind: Kind::Composite, command: None, expected: None, criteria: Vec::new(), checks }),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
