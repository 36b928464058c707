//! Whether an object says that it is done, and which bytes say so.

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use ralphloop_core::plan::WorkState;

use crate::document::{Mark, Slot};
use crate::error::{Code, ErrorClass, SpecError};
use crate::json;
use crate::prd::list::Entry;
use crate::text::Text;
use crate::{prd, words};

/// Names of the flag; the first one that is there decides.
const FLAGS: &[&str] = &["passes", "passed", "complete", "completed", "done"];

/// How this file writes "done".
#[derive(Debug, Default)]
pub(crate) struct Dialect {
    /// The name of the flag that most stories use.
    story_flag: Option<String>,
    /// The same for criteria.
    item_flag: Option<String>,
    /// The word for done that the file uses, quotes included.
    word: Option<String>,
}

impl Dialect {
    pub(crate) fn of(text: &Text<'_>, entries: &[Entry<'_, '_>]) -> Self {
        let stories = || entries.iter().map(|entry| entry.object);
        let items = || entries.iter().flat_map(|entry| prd::criteria::objects(entry.object));
        Self {
            story_flag: most_frequent(stories().filter_map(|o| flag(o).map(|(name, _)| name.to_owned()))),
            item_flag: most_frequent(items().filter_map(|o| flag(o).map(|(name, _)| name.to_owned()))),
            word: most_frequent(stories().filter_map(|o| done_word(text, o)))
                .or_else(|| most_frequent(items().filter_map(|o| done_word(text, o)))),
        }
    }
}

fn most_frequent(words: impl Iterator<Item = String>) -> Option<String> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for word in words {
        match counts.iter_mut().find(|(known, _)| *known == word) {
            Some((_, count)) => *count += 1,
            None => counts.push((word, 1)),
        }
    }
    // The first of the most frequent, so that the answer does not depend on chance.
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(word, _)| word)
}

fn done_word(text: &Text<'_>, object: &Object<'_>) -> Option<String> {
    let status = json::get(object, "status")?;
    let word = status.as_string_lit()?;
    (words::state(&word.value) == WorkState::Done).then(|| token(text, status).to_owned())
}

fn flag<'v, 'a>(object: &'v Object<'a>) -> Option<(&'static str, &'v Value<'a>)> {
    FLAGS.iter().find_map(|name| json::present(object, name).map(|value| (*name, value)))
}

/// What an object is: a story, or a criterion inside one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Story,
    Item,
}

/// State, marks, and warnings of an object.
#[derive(Debug)]
pub(crate) struct Done {
    pub state: WorkState,
    pub marks: Vec<Mark>,
    pub warnings: Vec<(Code, String)>,
    /// It has a flag or a status of its own.
    pub own: bool,
}

/// Reads the flag and the status of an object.
pub(crate) fn read(text: &Text<'_>, dialect: &Dialect, object: &Object<'_>, level: Level) -> Result<Done, SpecError> {
    let mut warnings = Vec::new();
    let flag = flag(object);
    let flagged = match flag {
        Some((name, value)) => Some(flag_state(text, name, value, &mut warnings)?),
        None => None,
    };
    let status = json::get(object, "status").and_then(Value::as_string_lit).map(|lit| words::state(&lit.value));
    let state = match (flagged, status) {
        (Some(WorkState::Done), _) => WorkState::Done,
        (Some(WorkState::Todo), Some(status)) if status != WorkState::Done => status,
        (Some(flagged), _) => flagged,
        (None, status) => status.unwrap_or(WorkState::Todo),
    };
    if let (Some(flagged), Some(status)) = (flagged, status)
        && (flagged == WorkState::Done) != (status == WorkState::Done)
    {
        let name = flag.map_or("flag", |(name, _)| name);
        warnings.push((Code::ConflictingDone, format!("{name} and status disagree; {name} holds")));
    }
    let marks = marks(text, dialect, object, level, flagged);
    Ok(Done { state: with_hints(object, state), marks, warnings, own: flagged.is_some() || status.is_some() })
}

/// `blocked`, `started` and `inProgress` say more about what is not done.
fn with_hints(object: &Object<'_>, state: WorkState) -> WorkState {
    let is_true = |key| json::is_true(object, key);
    match state {
        WorkState::Done => WorkState::Done,
        _ if is_true("blocked") => WorkState::Blocked,
        WorkState::Todo if ["inProgress", "in_progress", "started"].into_iter().any(is_true) => WorkState::Doing,
        other => other,
    }
}

fn flag_state(
    text: &Text<'_>,
    name: &str,
    value: &Value<'_>,
    warnings: &mut Vec<(Code, String)>,
) -> Result<WorkState, SpecError> {
    match value {
        Value::BooleanLit(lit) if lit.value => Ok(WorkState::Done),
        Value::BooleanLit(_) | Value::NullKeyword(_) => Ok(WorkState::Todo),
        Value::StringLit(lit) => {
            let message = format!("{name} is the text {:?}, not true or false", lit.value);
            warnings.push((Code::NonbooleanPasses, message));
            Ok(match lit.value.trim().to_lowercase().as_str() {
                "true" => WorkState::Done,
                "false" => WorkState::Todo,
                // A word is no flag: it can say how a story is open, never that it is done.
                word => match words::state(word) {
                    WorkState::Done => WorkState::Other,
                    open => open,
                },
            })
        }
        other => Err(SpecError::new(
            ErrorClass::WrongType,
            text.file,
            format!("{name} is {}, not true or false", json::kind_of(other)),
        )
        .at(text.position(json::start(other)))
        .with_help("write true or false without quotes")),
    }
}

fn marks(
    text: &Text<'_>,
    dialect: &Dialect,
    object: &Object<'_>,
    level: Level,
    flagged: Option<WorkState>,
) -> Vec<Mark> {
    let status = json::present(object, "status");
    let status_is_word = matches!(status, Some(Value::StringLit(_)));
    let mut marks = Vec::new();
    if let (Some((_, value)), Some(state)) = (flag(object), flagged) {
        marks.push(mark(text, Slot::Flag, value, "true", state == WorkState::Done));
        if let (Some(value), true, Some(word)) = (status, status_is_word, &dialect.word) {
            marks.push(status_mark(text, value, word));
        }
    } else if let Some(value) = status.filter(|value| matches!(value, Value::StringLit(_) | Value::NullKeyword(_))) {
        marks.push(status_mark(text, value, dialect.word.as_deref().unwrap_or("\"done\"")));
    } else {
        let name = match level {
            Level::Story => dialect.story_flag.as_deref(),
            Level::Item => dialect.item_flag.as_deref(),
        };
        marks.extend(insertion(text, object, name.unwrap_or("passes")));
    }
    marks
}

fn status_mark(text: &Text<'_>, value: &Value<'_>, word: &str) -> Mark {
    let is_done = value.as_string_lit().is_some_and(|lit| words::state(&lit.value) == WorkState::Done);
    mark(text, Slot::Status, value, word, is_done)
}

fn mark(text: &Text<'_>, slot: Slot, value: &Value<'_>, done: &str, is_done: bool) -> Mark {
    let now = token(text, value).to_owned();
    let open = if slot == Slot::Status { "\"todo\"" } else { "false" };
    Mark { slot, offset: text.base + value.start(), now, done: done.to_owned(), open, is_done }
}

fn token<'a>(text: &Text<'a>, value: &Value<'_>) -> &'a str {
    text.body.get(value.start()..value.end()).unwrap_or_default()
}

/// The flag as a new last member: on a line of its own like the last key, or on its line.
fn insertion(text: &Text<'_>, object: &Object<'_>, name: &str) -> Option<Mark> {
    let last = object.properties.last()?;
    let before = text.body.get(..last.range.start)?;
    let line_start = before.rfind('\n').map(|at| at + 1);
    let indent = line_start.and_then(|start| before.get(start..)).filter(|lead| lead.trim().is_empty());
    let lead = match indent {
        Some(indent) => {
            let end = if line_start.is_some_and(|start| before[..start].ends_with("\r\n")) { "\r\n" } else { "\n" };
            format!(",{end}{indent}")
        }
        None => ", ".to_owned(),
    };
    Some(Mark {
        slot: Slot::Flag,
        offset: text.base + last.range.end,
        now: String::new(),
        done: format!("{lead}\"{name}\": true"),
        open: "false",
        is_done: false,
    })
}
