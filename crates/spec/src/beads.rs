//! `.beads/issues.jsonl`: an issue a line, exported from a database that wins. It is read, never written.

use std::collections::{HashMap, HashSet};

use jsonc_parser::ast::{Object, Value};
use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Context, Plan, Priority, Scheme, Story, StoryKind, WorkId, WorkState};

use crate::document::{Document, ItemMarks, Reading, StoryMarks};
use crate::error::{Code, Diagnostic, ErrorClass, SpecError};
use crate::graph;
use crate::json::{self, Flavour};
use crate::text::Text;
use crate::words::{self, Rank};

/// Dependencies that hold an issue up.
const GATES: &[&str] = &["blocks", "depends-on"];

/// Dependencies that name what an issue is part of.
const PARENTS: &[&str] = &["parent-child", "parent", "subtask-of"];

const TOOL_PROMPT: &str = "This story is an issue of Beads; its text is given above. Do not close it, do not edit \
    .beads/issues.jsonl and do not commit: the tool that called you runs the checks and commits what has passed.\n";

/// An issue, and when it was changed last.
struct Record {
    story: Story,
    updated: String,
}

/// The issues of the file; deleted ones and records of other kinds are left out.
pub(crate) fn document(text: &Text<'_>) -> Result<Document, SpecError> {
    let mut records: Vec<Record> = Vec::new();
    let mut warnings = Vec::new();
    let mut places: HashMap<StoryId, usize> = HashMap::new();
    for (number, line) in text.lines().filter(|(_, line)| !line.trim().is_empty()) {
        let Some(record) = record(text.file, number, line)? else { continue };
        match places.get(&record.story.id).and_then(|at| records.get_mut(*at)) {
            None => {
                places.insert(record.story.id.clone(), records.len());
                records.push(record);
            }
            Some(known) => {
                let message = format!("the issue {} stands here a second time; the newer one holds", known.story.id);
                warnings.push(Diagnostic::warning(Code::DuplicateId, text.file, Some(number), message));
                if record.updated >= known.updated {
                    *known = record;
                }
            }
        }
    }
    let mut stories: Vec<Story> = records.into_iter().map(|record| record.story).collect();
    if stories.is_empty() {
        return Err(SpecError::new(ErrorClass::NoTasks, text.file, "there is no issue in this file")
            .with_help("write one with bd create, then bd export"));
    }
    parents_by_id(&mut stories);
    graph::refuse_cycles(text.file, &stories)?;
    warnings.extend(graph::unknown_warnings(text.file, &stories));
    let own = ItemMarks { marks: Vec::new(), declared: true };
    let marks = stories.iter().map(|_| StoryMarks { own: own.clone(), tasks: Vec::new() }).collect();
    let plan = Plan {
        writable: false,
        context: Context { tool_prompt: TOOL_PROMPT.to_owned(), ..Context::default() },
        ..Plan::new(WorkId { scheme: Scheme::Beads, id: text.file.to_owned() }, stories)
    };
    Ok(Document { reading: Reading::new(plan, None, warnings), marks })
}

/// `owl-e.3` is part of `owl-e`, if there is one and nothing else was said.
fn parents_by_id(stories: &mut [Story]) {
    let known: HashSet<String> = stories.iter().map(|story| story.id.0.clone()).collect();
    for story in stories.iter_mut().filter(|story| story.parent.is_none()) {
        let above = story.id.as_str().rsplit_once('.').map(|(above, _)| above.to_owned());
        story.parent = above.filter(|above| known.contains(above));
    }
}

fn record(file: &str, number: u32, line: &str) -> Result<Option<Record>, SpecError> {
    let fault = |class, message: &str| {
        SpecError::new(class, file, message).at_line(number).with_help("write the file again with bd export")
    };
    let on_line = |error: SpecError| match error.class {
        ErrorClass::JsonSyntax => fault(ErrorClass::JsonlSyntax, &error.message),
        class => fault(class, &error.message),
    };
    let text = Text::decode(file, line.as_bytes()).map_err(on_line)?;
    let root = json::parse(&text, Flavour::Strict).map_err(on_line)?;
    let Value::Object(object) = &root else {
        return Err(fault(ErrorClass::WrongType, &format!("this line holds {}, not an issue", json::kind_of(&root))));
    };
    let kind = json::first_text(object, &["_type"]);
    let status = json::first_text(object, &["status"]).unwrap_or_default();
    if kind.is_some_and(|kind| kind != "issue") || status == "tombstone" {
        return Ok(None);
    }
    let id = json::get(object, "id").and_then(json::word_of);
    let id = id.ok_or_else(|| fault(ErrorClass::MissingField, "this issue has no id"))?;
    let title = json::first_text(object, &["title"]);
    let title = title.ok_or_else(|| fault(ErrorClass::MissingField, "this issue has no title"))?;
    let (deps, parent) = links(object);
    let parts = ["description", "design"].iter().filter_map(|key| json::first_text(object, &[key]));
    let story = Story {
        description: parts.collect::<Vec<_>>().join("\n\n"),
        kind: match json::first_text(object, &["issue_type"]).as_deref() {
            Some("epic") => StoryKind::Epic,
            _ => StoryKind::Story,
        },
        state: if status.is_empty() { WorkState::Todo } else { words::state(&status) },
        priority: json::get(object, "priority").and_then(json::word_of).and_then(|word| priority(&word)),
        parent: json::first_text(object, &["parent"]).or(parent),
        deps,
        tags: json::get(object, "labels").map(json::texts_of).unwrap_or_default(),
        line: Some(number),
        criteria: json::first_text(object, &["acceptance_criteria"]).into_iter().collect(),
        notes: json::first_text(object, &["notes"]).unwrap_or_default(),
        ..Story::new(id, title)
    };
    Ok(Some(Record { story, updated: json::first_text(object, &["updated_at"]).unwrap_or_default() }))
}

fn priority(word: &str) -> Option<Priority> {
    match words::rank(word) {
        Rank::Known(priority) => Some(priority),
        Rank::None | Rank::Unknown => None,
    }
}

/// What the issue waits for, and what it is part of.
fn links(object: &Object<'_>) -> (Vec<StoryId>, Option<String>) {
    let (mut deps, mut parent): (Vec<StoryId>, _) = (Vec::new(), None);
    let Some(Value::Array(list)) = json::get(object, "dependencies") else { return (deps, parent) };
    for link in list.elements.iter().filter_map(Value::as_object) {
        let Some(target) = json::first_text(link, &["depends_on_id"]) else { continue };
        let kind = json::first_text(link, &["type"]).unwrap_or_default();
        if PARENTS.contains(&kind.as_str()) {
            parent.get_or_insert(target);
        } else if GATES.contains(&kind.as_str()) && !deps.iter().any(|known| known.as_str() == target) {
            deps.push(target.into());
        }
    }
    (deps, parent)
}
