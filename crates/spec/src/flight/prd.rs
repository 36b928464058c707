//! `docs/prd.md` with user stories, and `docs/prd-status.json`, which says which of them are verified.

use jsonc_parser::ast::{Object, Value};
use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Check, Plan, Scheme, Story, WorkId, WorkState};

use super::folder::left_out;
use super::group::shell;
use super::status::field;
use super::verification::{behind_manual, is_manual};
use crate::checklist;
use crate::document::{Document, Reading};
use crate::error::{Code, Diagnostic, SpecError};
use crate::json::{self, Flavour};
use crate::label;
use crate::markdown::outline::{Outline, Section, outline};
use crate::prd::{self, checks};
use crate::source::SpecText;
use crate::text::Text;
use crate::words;

/// Whether a heading names a user story.
pub(super) fn is_prd(outline: &Outline) -> bool {
    outline.sections.iter().any(|section| id_of(section).is_some())
}

/// `US-3` of `### US-3: Title`.
fn id_of(section: &Section) -> Option<String> {
    let found = label::heading(&section.heading.as_ref()?.text)?;
    found.id.starts_with("US-").then_some(found.id)
}

/// A PRD by itself: its boxes say how far it is.
pub(super) fn document(text: &Text<'_>) -> Result<Document, SpecError> {
    let mut document = checklist::document(text)?;
    ours(&mut document.reading.plan, text.file);
    for story in &mut document.reading.plan.stories {
        story.sign_off = named_by_hand(story);
    }
    Ok(document)
}

/// The file with the state by itself.
pub(super) fn status(text: &Text<'_>) -> Result<Document, SpecError> {
    let mut document = prd::document(text, Flavour::Strict)?;
    let root = json::parse(text, Flavour::Strict)?;
    let entries = match root.as_object().and_then(|root| json::get(root, "stories")) {
        Some(Value::Array(list)) => list.elements.iter().filter_map(Value::as_object).collect(),
        _ => Vec::new(),
    };
    let mut warnings = Vec::new();
    for (story, entry) in document.reading.plan.stories.iter_mut().zip(entries) {
        story.checks.extend(commands(entry));
        story.checks.dedup();
        story.sign_off = by_hand(entry);
        add_notes(story, &links(entry));
        if lacks_tasks(entry) && story.state != WorkState::Done {
            let message = format!(
                "{} is to be verified by its tasks, and none is named: name them in implementedBy, or give it a command or \
                 criteria; as it is, nothing of its own verifies it",
                story.id
            );
            warnings.push(Diagnostic::warning(Code::StoryWithoutTasks, text.file, story.line, message));
        }
    }
    document.reading.warnings.extend(warnings);
    ours(&mut document.reading.plan, text.file);
    Ok(document)
}

fn ours(plan: &mut Plan, file: &str) {
    plan.work = WorkId { scheme: Scheme::Flight, id: file.to_owned() };
    plan.context.tool_prompt = format!(
        "This work is the PRD of a project that uses Flight Rules ({file}); docs/prd-status.json, where it exists, says which \
         user stories are verified. You may tick an acceptance criterion of this story in the PRD when it holds; change \
         nothing else there, and leave docs/prd-status.json alone.\n\n{}",
        super::COMMON
    );
}

fn add_notes(story: &mut Story, notes: &str) {
    let all = [story.notes.as_str(), notes].join("\n");
    all.trim().clone_into(&mut story.notes);
}

/// `"verification": {"type": "command", "command": "…"}`, and all parts of one that is composite.
fn commands(entry: &Object<'_>) -> Vec<Check> {
    let parts = json::get(entry, "verification").map(parts_of).unwrap_or_default();
    parts
        .into_iter()
        .filter_map(|part| json::first_text(part, &["command"]).map(|command| shell(&command, None)))
        .collect()
}

/// A verification, or the parts of one that is composite, which may be composite themselves.
fn parts_of<'v, 'a>(verification: &'v Value<'a>) -> Vec<&'v Object<'a>> {
    // Deeper than anybody writes; a file that is made to be deep is no reason to overflow.
    const DEEPEST: usize = 8;
    let mut level: Vec<&Object<'a>> = verification.as_object().into_iter().collect();
    let mut parts = Vec::new();
    for _ in 0..DEEPEST {
        let mut below = Vec::new();
        for one in level {
            match json::get(one, "checks") {
                Some(Value::Array(list)) => below.extend(list.elements.iter().filter_map(Value::as_object)),
                _ => parts.push(one),
            }
        }
        level = below;
    }
    parts
}

/// What a person has to look at.
fn by_hand(entry: &Object<'_>) -> Vec<String> {
    let parts = json::get(entry, "verification").map(parts_of).unwrap_or_default();
    parts.into_iter().filter_map(checks::looked_at).flatten().collect()
}

/// Its tasks are to verify it, and it has none (F29).
fn lacks_tasks(entry: &Object<'_>) -> bool {
    let parts = json::get(entry, "verification").map(parts_of).unwrap_or_default();
    let is_tasks = |part: &&Object<'_>| json::first_text(part, &["type"]).is_some_and(|kind| kind == "tasks");
    parts.iter().any(is_tasks) && json::get(entry, "implementedBy").map(json::texts_of).unwrap_or_default().is_empty()
}

/// The tasks that make up the story.
fn links(entry: &Object<'_>) -> String {
    let tasks = json::get(entry, "implementedBy").map(json::texts_of).unwrap_or_default();
    if tasks.is_empty() { String::new() } else { format!("Implemented by the tasks {}", tasks.join(", ")) }
}

/// The PRD with the state of its stories: what is verified says the one, what is wanted the other.
pub(super) fn read(text: &Text<'_>, beside: &[SpecText]) -> Result<Reading, SpecError> {
    let mut warnings = Vec::new();
    let outline = outline(text);
    let by_boxes = match document(text) {
        Ok(document) => document.reading,
        // Criteria need not be boxes where the state stands elsewhere.
        Err(error) if error.class == crate::ErrorClass::NoTasks => return status_alone(text, &outline, beside),
        Err(error) => return Err(error),
    };
    warnings.extend(by_boxes.warnings);
    let mut plan = by_boxes.plan;
    plan.stories.retain(|story| story.id.as_str().starts_with("US-"));
    let mut stories = plan.stories;
    for (file, read) in beside.iter().map(|file| (file, status_of(file))) {
        match read {
            Ok(read) => {
                warnings.extend(read.warnings);
                for told in read.plan.stories {
                    match stories.iter_mut().find(|story| story.id == told.id) {
                        Some(story) => take_state(story, told),
                        None => stories.push(with_text(told, &outline)),
                    }
                }
            }
            Err(error) if beside.len() == 1 => return Err(error),
            Err(error) => warnings.push(left_out(&file.path, &error)),
        }
    }
    for story in &mut stories {
        take_verification(story);
    }
    let plan = Plan { stories, ..plan };
    Ok(Reading::new(plan, by_boxes.project, warnings))
}

/// Every story from the file with the state, its text from the PRD.
fn status_alone(text: &Text<'_>, outline: &Outline, beside: &[SpecText]) -> Result<Reading, SpecError> {
    let Some(file) = beside.first() else { return document(text).map(|document| document.reading) };
    let Reading { mut plan, warnings, .. } = status_of(file)?;
    ours(&mut plan, text.file);
    plan.title.clone_from(&outline.title);
    for story in &mut plan.stories {
        *story = with_text(story.clone(), outline);
        story.file = Some(file.path.clone());
        take_verification(story);
    }
    Ok(Reading::new(plan, outline.title.clone(), warnings))
}

fn status_of(file: &SpecText) -> Result<Reading, SpecError> {
    let text = Text::decode(&file.path, &file.bytes)?;
    status(&text).map(|document| document.reading)
}

/// The flag holds, whatever the boxes say.
fn take_state(story: &mut Story, told: Story) {
    story.state = told.state;
    story.checks.extend(told.checks);
    story.sign_off = told.sign_off;
    add_notes(story, &told.notes);
}

fn with_text(told: Story, outline: &Outline) -> Story {
    let section = outline.sections.iter().find(|section| id_of(section).is_some_and(|id| StoryId(id) == told.id));
    let Some(section) = section else { return told };
    let prose = section.prose.join("\n").trim().to_owned();
    Story { description: [prose, told.description].join("\n\n").trim().to_owned(), ..told }
}

/// What the text names behind "Verification:", beside what the file with the state says.
fn take_verification(story: &mut Story) {
    story.checks.extend(named_checks(&story.description));
    story.checks.dedup();
    if story.sign_off.is_empty() {
        story.sign_off = named_by_hand(story);
    }
}

/// What a person has to look at where the text says "Verification: manual".
fn named_by_hand(story: &Story) -> Vec<String> {
    let manual = story.description.lines().filter_map(|line| {
        let found = field(line).filter(|found| found.is("verification"))?;
        is_manual(&line[found.value.clone()]).then(|| behind_manual(&line[found.value]))
    });
    manual.map(|named| named.unwrap_or_else(|| story.title.clone())).collect()
}

/// The commands that the text names behind "Verification:".
fn named_checks(description: &str) -> Vec<Check> {
    let commands = description.lines().filter_map(|line| {
        let found = field(line).filter(|found| found.is("verification"))?;
        let value = line[found.value].trim();
        let quoted = value.strip_prefix('`').and_then(|inner| inner.split_once('`')).map(|(command, _)| command);
        let command = quoted.unwrap_or(value);
        words::is_command(command).then(|| shell(command.trim(), None))
    });
    commands.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f29_a_story_that_its_tasks_are_to_verify_and_that_names_none_is_told_what_to_do() {
        let of = |tasks: &str| {
            let file = format!(
                r#"{{"version": 1, "stories": [{{"id": "US-1", "title": "Lamp", "passes": false,
                "verification": {{"type": "tasks"}}, "implementedBy": [{tasks}]}}]}}"#
            );
            let text = Text::decode("docs/prd-status.json", file.as_bytes()).unwrap();
            status(&text).unwrap().reading.warnings
        };
        assert!(of(r#""1.4.1""#).is_empty());
        let warnings = of("");
        assert_eq!(warnings.len(), 1);
        assert_eq!(warnings[0].code.as_str(), "story_without_tasks");
        assert!(warnings[0].message.contains("implementedBy"));
    }

    #[test]
    fn f30_every_part_of_a_composite_verification_counts() {
        let file = r#"{"version": 1, "stories": [{"id": "US-1", "title": "Lamp", "passes": false, "verification":
            {"type": "composite", "checks": [{"type": "command", "command": "make lamp"},
             {"type": "composite", "checks": [{"type": "command", "command": "make cord"}]},
             {"type": "manual", "criteria": ["it shines", "it is warm"]}]}}]}"#;
        let text = Text::decode("docs/prd-status.json", file.as_bytes()).unwrap();
        let story = &status(&text).unwrap().reading.plan.stories[0];
        assert_eq!(story.checks, [shell("make lamp", None), shell("make cord", None)]);
        assert_eq!(story.sign_off, ["it shines", "it is warm"]);
    }
}
