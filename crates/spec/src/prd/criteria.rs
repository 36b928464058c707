//! The criteria of a story as items: texts that follow their story, or objects with a state of their own.

use std::collections::HashMap;

use jsonc_parser::ast::{Object, Value};
use ralphloop_core::ids::{StoryId, TaskId};
use ralphloop_core::plan::{Task, WorkState};

use crate::document::ItemMarks;
use crate::error::{Code, ErrorClass, SpecError};
use crate::json;
use crate::markdown::boxes;
use crate::markdown::stories::unused;
use crate::prd::done::{self, Level};
use crate::prd::story::Reader;

/// Names of the list of criteria; the first one that is there counts.
const KEYS: &[&str] = &["acceptanceCriteria", "acceptance_criteria", "acceptance", "criteria", "subtasks", "steps"];

/// Those of them that say what must hold, not what to do.
const HOLDS: &[&str] = &["acceptanceCriteria", "acceptance_criteria", "acceptance", "criteria"];

/// What an object's text may be called.
const TEXTS: &[&str] = &["text", "title", "description", "name", "criterion", "criteria", "step", "task"];

/// The members of the list that are objects.
pub(crate) fn objects<'v, 'a>(story: &'v Object<'a>) -> Vec<&'v Object<'a>> {
    match json::first(story, KEYS) {
        Some((_, Value::Array(array))) => array.elements.iter().filter_map(Value::as_object).collect(),
        Some((_, Value::Object(map))) => map.properties.iter().filter_map(|p| p.value.as_object()).collect(),
        _ => Vec::new(),
    }
}

/// Items of a story, and the same in words.
#[derive(Debug, Default)]
pub(crate) struct Criteria {
    pub tasks: Vec<Task>,
    pub marks: Vec<ItemMarks>,
    pub words: Vec<String>,
    /// What further lists of the story say.
    pub more: Vec<(String, Vec<String>)>,
}

/// Reads the criteria of a story whose own state is known.
pub(crate) fn read(
    reader: &mut Reader<'_, '_>,
    story: &Object<'_>,
    id: &StoryId,
    state: WorkState,
) -> Result<Criteria, SpecError> {
    let mut out = Criteria::default();
    let Some((name, value)) = json::first(story, KEYS) else { return Ok(out) };
    let follow = if state == WorkState::Done { WorkState::Done } else { WorkState::Todo };
    let mut used = HashMap::new();
    for item in items(reader, name, value)? {
        let position = out.tasks.len() + 1;
        let (mut task, marks) = task(reader, &item, id, position, follow)?;
        let wanted = task.id.clone();
        task.id = TaskId(unused(&mut used, wanted.as_str()));
        if task.id != wanted {
            let message = format!("there is a criterion {wanted} above; this one is called {}", task.id);
            reader.warn(Code::DuplicateId, task.line.unwrap_or_default(), message);
        }
        out.tasks.push(task);
        out.marks.push(marks);
    }
    if HOLDS.contains(&name) {
        out.words = out.tasks.iter().map(|task| task.text.clone()).filter(|text| !text.is_empty()).collect();
    }
    for other in KEYS.iter().filter(|other| **other != name) {
        let texts = json::get(story, other).map(plain_texts).unwrap_or_default();
        if !texts.is_empty() {
            out.more.push(((*other).to_owned(), texts));
        }
    }
    Ok(out)
}

/// A criterion as it stands in the file.
struct Item<'v, 'a> {
    key: Option<&'v str>,
    content: Content<'v, 'a>,
    offset: usize,
}

enum Content<'v, 'a> {
    Text(String),
    Object(&'v Object<'a>),
}

fn items<'v, 'a>(reader: &Reader<'_, '_>, name: &str, value: &'v Value<'a>) -> Result<Vec<Item<'v, 'a>>, SpecError> {
    let one = |key: Option<&'v str>, value: &'v Value<'a>| {
        let content = match value {
            Value::Object(object) => Content::Object(object),
            Value::StringLit(lit) => Content::Text(lit.value.trim().to_owned()),
            Value::NumberLit(number) => Content::Text(number.value.to_owned()),
            other => {
                let message = format!("a member of {name} is {}, not a text or an object", json::kind_of(other));
                return Err(wrong(reader, other, message));
            }
        };
        Ok(Item { key, content, offset: json::start(value) })
    };
    match value {
        Value::Array(array) => array.elements.iter().map(|element| one(None, element)).collect(),
        Value::Object(map) => map.properties.iter().map(|p| one(Some(p.name.as_str()), &p.value)).collect(),
        Value::StringLit(lit) => {
            let offset = json::start(value);
            let item = |text| Item { key: None, content: Content::Text(text), offset };
            Ok(split_at_bullets(&lit.value).into_iter().map(item).collect())
        }
        other => Err(wrong(reader, other, format!("{name} is {}, not a list", json::kind_of(other)))),
    }
}

fn wrong(reader: &Reader<'_, '_>, value: &Value<'_>, message: String) -> SpecError {
    SpecError::new(ErrorClass::WrongType, reader.text.file, message)
        .at(reader.text.position(json::start(value)))
        .with_help(r#"write a list of texts, or of objects like {"text": "…", "passes": false}"#)
}

fn task(
    reader: &mut Reader<'_, '_>,
    item: &Item<'_, '_>,
    story: &StoryId,
    position: usize,
    follow: WorkState,
) -> Result<(Task, ItemMarks), SpecError> {
    let line = reader.text.line(item.offset);
    let mut own_id = item.key.map(str::to_owned);
    let mut optional = false;
    let (text, state, marks) = match &item.content {
        Content::Text(text) => (text.clone(), follow, Vec::new()),
        Content::Object(object) => {
            own_id = own_id.or_else(|| json::get(object, "id").and_then(json::word_of));
            optional = json::is_true(object, "optional");
            let done = done::read(reader.text, reader.dialect, object, Level::Item)?;
            for (code, message) in done.warnings {
                reader.warn(code, line, message);
            }
            let state = if done.own { done.state } else { follow };
            (json::first_text(object, TEXTS).unwrap_or_default(), state, done.marks)
        }
    };
    if text.is_empty() {
        reader.warn(Code::EmptyTask, line, "this criterion has no text".into());
    }
    let id = own_id.as_ref().map_or_else(|| format!("{story}#{position}"), |own| format!("{story}/{own}"));
    let task = Task { state, optional, line: Some(line), ..Task::new(id, text) };
    Ok((task, ItemMarks { marks, declared: own_id.is_some() }))
}

/// The items of a text with bullets; the whole text if it has none.
fn split_at_bullets(text: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    let bulleted = text.lines().any(|line| bullet(line).is_some());
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match (bullet(line), items.last_mut()) {
            (Some(item), _) => items.push(item.to_owned()),
            (None, Some(last)) if bulleted => {
                last.push(' ');
                last.push_str(line);
            }
            (None, _) => items.push(line.to_owned()),
        }
    }
    items
}

fn bullet(line: &str) -> Option<&str> {
    let line = line.trim();
    if let Some(found) = boxes::parse(line) {
        return Some(line[found.text..].trim());
    }
    let rest = match line.strip_prefix('•') {
        Some(rest) => rest,
        None => &line[boxes::list_marker(line)?..],
    };
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim())
}

fn plain_texts(value: &Value<'_>) -> Vec<String> {
    match value {
        Value::Array(array) => array
            .elements
            .iter()
            .filter_map(|element| match element {
                Value::Object(object) => json::first_text(object, TEXTS),
                other => json::word_of(other),
            })
            .collect(),
        Value::StringLit(lit) => split_at_bullets(&lit.value),
        _ => Vec::new(),
    }
}

/// Commands that criteria name for themselves.
pub(crate) fn test_commands(story: &Object<'_>) -> Vec<(Option<String>, String)> {
    let command = |object: &&Object<'_>| {
        let command = json::first_text(object, &["testCommand", "test_command", "verifyCommand", "verify_command"])?;
        Some((json::first_text(object, TEXTS), command))
    };
    objects(story).iter().filter_map(command).collect()
}
