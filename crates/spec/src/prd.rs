//! `prd.json` in all its dialects: the list of stories is found, whatever it is called, and every field is read.

pub(crate) mod checks;
mod criteria;
mod done;
mod list;
pub(crate) mod story;

use std::collections::HashMap;

use jsonc_parser::ast::Value;
use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Context, Plan, Scheme, Story, WorkId};

use crate::document::{Document, Reading, StoryMarks};
use crate::error::{Code, Diagnostic, ErrorClass, SpecError};
use crate::graph;
use crate::json::{self, Flavour};
use crate::text::Text;

/// What the agent is told about the file.
const TOOL_PROMPT: &str = "This work is described in a prd.json. Its stories, criteria and notes are given above as far as \
    they matter here. Do not edit that file: the tool that called you verifies the work and sets the story's `passes` \
    itself. Do not commit; the tool commits what it has verified.\n";

/// The stories of the file, with their marks.
pub(crate) fn document(text: &Text<'_>, flavour: Flavour) -> Result<Document, SpecError> {
    let root = json::parse(text, flavour)?;
    let entries = list::entries(text, &root)?;
    if entries.is_empty() {
        return Err(SpecError::new(ErrorClass::NoTasks, text.file, "the list of stories is empty")
            .with_help("write at least one story with a title; an empty list is not the same as finished work"));
    }
    let dialect = done::Dialect::of(text, &entries);
    let mut reader = story::Reader { text, dialect: &dialect, warnings: Vec::new() };
    let (mut stories, mut marks) = (Vec::new(), Vec::new());
    for (index, entry) in entries.iter().enumerate() {
        let (story, mark) = reader.read(entry, index + 1)?;
        stories.push(story);
        marks.push(mark);
    }
    let warnings = reader.warnings;
    settle_ids(text, &mut stories, &marks)?;
    resolve_dependencies(&mut stories);
    refuse_bad_graph(text, &stories)?;

    let top = root.as_object();
    let project = top.and_then(|top| {
        json::first_text(
            top,
            &["project", "projectName", "project_name", "name", "productName", "product_name", "title"],
        )
    });
    let feature = top.and_then(|top| json::first_text(top, &["feature", "title"]));
    let plan = Plan {
        title: feature.or_else(|| project.clone()),
        branch: top.and_then(|top| json::first_text(top, &["branchName", "branch_name", "branch"])),
        gates: top.map(checks::gates).unwrap_or_default(),
        context: context(top.map(|_| &root)),
        ..Plan::new(WorkId { scheme: Scheme::Prd, id: text.file.to_owned() }, stories)
    };
    Ok(Document { reading: Reading::new(plan, project, warnings), marks })
}

fn context(root: Option<&Value<'_>>) -> Context {
    let top = root.and_then(Value::as_object);
    let list = |keys: &[&str]| top.and_then(|top| json::first(top, keys)).map(|(_, value)| json::texts_of(value));
    let text = |keys: &[&str]| top.and_then(|top| json::first_text(top, keys)).unwrap_or_default();
    Context {
        proposal: text(&["description", "overview", "summary"]),
        constraints: list(&["technical_requirements", "technicalRequirements", "constraints"]).unwrap_or_default(),
        tool_prompt: TOOL_PROMPT.to_owned(),
        ..Context::default()
    }
}

/// Ids that stand in the file must be unique; those made from the position give way.
pub(crate) fn settle_ids(text: &Text<'_>, stories: &mut [Story], marks: &[StoryMarks]) -> Result<(), SpecError> {
    let mut faults = Vec::new();
    let mut first_fault = None;
    let mut firsts: HashMap<&StoryId, usize> = HashMap::new();
    let declared = |index: &usize| marks[*index].own.declared;
    for index in (0..stories.len()).filter(declared) {
        let id = &stories[index].id;
        let earlier = *firsts.entry(id).or_insert(index);
        if earlier != index {
            first_fault = first_fault.or(stories[index].line);
            let line = |at: usize| stories[at].line.unwrap_or_default();
            faults.push(format!(
                "two stories have the id {id:?}, in lines {} and {}",
                line(earlier),
                line(index),
                id = id.as_str()
            ));
        }
    }
    if !faults.is_empty() {
        let mut error = SpecError::new(ErrorClass::DuplicateId, text.file, faults.join("; "));
        error.line = first_fault;
        return Err(error.with_help("give every story an id of its own"));
    }
    let mut taken: HashMap<StoryId, usize> = HashMap::new();
    for story in stories.iter() {
        *taken.entry(story.id.clone()).or_default() += 1;
    }
    for index in (0..stories.len()).filter(|index| !declared(index)) {
        let made = stories[index].id.clone();
        let mut id = made.clone();
        let mut count = 1;
        // Itself is one of those that have it.
        while taken.get(&id).copied().unwrap_or_default() > usize::from(id == made) {
            count += 1;
            id = format!("{made}~{count}").into();
        }
        if id != made {
            *taken.entry(made).or_default() -= 1;
            *taken.entry(id.clone()).or_default() += 1;
            stories[index].id = id;
        }
    }
    Ok(())
}

/// A bare text may name several stories (`1, 2`), unless a story is called just that.
pub(crate) fn resolve_dependencies(stories: &mut [Story]) {
    let known: std::collections::HashSet<String> = stories.iter().map(|story| story.id.0.clone()).collect();
    for story in stories {
        let mut resolved = Vec::new();
        for dep in &story.deps {
            let parts: Vec<&str> = match dep.as_str().strip_prefix(story::SEVERAL) {
                None => vec![dep.as_str()],
                Some(whole) if known.contains(whole.trim()) => vec![whole.trim()],
                Some(several) => several.split([',', ';']).map(str::trim).filter(|part| !part.is_empty()).collect(),
            };
            for part in parts {
                if !resolved.iter().any(|known: &StoryId| known.as_str() == part) {
                    resolved.push(part.into());
                }
            }
        }
        story.deps = resolved;
    }
}

pub(crate) fn refuse_bad_graph(text: &Text<'_>, stories: &[Story]) -> Result<(), SpecError> {
    let unknown = graph::unknown(stories);
    if let Some((first, _)) = unknown.first() {
        let each = unknown.iter().map(|(story, dep)| {
            let near = nearest(dep, stories).map(|id| format!(", did you mean {id:?}?")).unwrap_or_default();
            let line = story.line.map(|line| format!(" (line {line})")).unwrap_or_default();
            format!("story {:?}{line} depends on {dep:?}, which is not in this file{near}", story.id.as_str())
        });
        let message = each.collect::<Vec<_>>().join("; ");
        let mut error = SpecError::new(ErrorClass::UnknownDependency, text.file, message);
        error.line = first.line;
        return Err(error.with_help("correct the name, or remove the dependency"));
    }
    graph::refuse_cycles(text.file, stories)
}

/// The only id that differs in case or in what is no letter or number, leading zeros aside.
fn nearest<'s>(wanted: &str, stories: &'s [Story]) -> Option<&'s str> {
    let bare =
        |text: &str| -> String { text.to_lowercase().chars().filter(|c| c.is_alphanumeric() && *c != '0').collect() };
    let mut near = stories.iter().map(|story| story.id.as_str()).filter(|id| bare(id) == bare(wanted));
    match (near.next(), near.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// Findings of `check` beyond the reading: steps that nobody can run.
pub(crate) fn findings(text: &Text<'_>, flavour: Flavour) -> Vec<Diagnostic> {
    let Ok(root) = json::parse(text, flavour) else { return Vec::new() };
    let Ok(entries) = list::entries(text, &root) else { return Vec::new() };
    let steps = entries.iter().flat_map(|entry| checks::sentences(entry.object));
    let finding = |(offset, sentence): (usize, String)| {
        let message =
            format!("the verification step {sentence:?} is a sentence, not a command; it is only shown to the agent");
        Diagnostic::warning(Code::StepIsNoCommand, text.file, Some(text.line(offset)), message)
            .with_help(r#"write {"type": "shell", "command": "…"} to have it run"#)
    };
    steps.map(finding).collect()
}
