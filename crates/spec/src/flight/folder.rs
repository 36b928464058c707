//! All task groups of `docs/implementation/`, or of one of its areas, as one piece of work.

use std::collections::HashMap;

use ralphloop_core::plan::{Context, Plan, Scheme, Story, WorkId};

use super::status::field;
use super::{group, group_prompt};
use crate::backlog::natural;
use crate::document::Reading;
use crate::error::{Code, Diagnostic, ErrorClass, SpecError};
use crate::graph;
use crate::label;
use crate::markdown::outline::outline;
use crate::source::{SpecFiles, SpecText};
use crate::text::Text;

/// The groups in the order of their numbers. Files that are no group are left out; those that ought to be one are not.
pub(super) fn read(files: &SpecFiles) -> Result<Reading, SpecError> {
    let (mut stories, mut warnings): (Vec<Story>, Vec<Diagnostic>) = (Vec::new(), Vec::new());
    for file in files.stories() {
        if let Some((story, said)) = story(file)? {
            stories.push(story);
            warnings.extend(said);
        }
    }
    stories.sort_by(|a, b| natural(a.id.as_str(), b.id.as_str()));
    if stories.is_empty() {
        return Err(SpecError::new(ErrorClass::NoTasks, files.name(), "there is no task group here")
            .with_help("a task group is a file whose first heading is numbered: # 1.1 Topic"));
    }
    refuse_double_ids(&stories)?;
    resolve_requirements(&mut stories);
    graph::refuse_cycles(files.name(), &stories)?;
    let plan = Plan {
        context: Context { tool_prompt: group_prompt(files.name()), ..Context::default() },
        ..Plan::new(WorkId { scheme: Scheme::Flight, id: files.name().to_owned() }, stories)
    };
    Ok(Reading::new(plan, None, warnings))
}

/// The group in a file; none in an overview. Prose without a task is no work either, but worth a word.
fn story(file: &SpecText) -> Result<Option<(Story, Vec<Diagnostic>)>, SpecError> {
    let text = match Text::decode(&file.path, &file.bytes) {
        Err(error) if error.class == ErrorClass::EmptyFile => return Ok(None),
        text => text?,
    };
    let outline = outline(&text);
    let Some((id, topic)) = outline.title.as_deref().and_then(group::heading) else { return Ok(None) };
    let read = match group::read(&text, &id, &topic) {
        Err(error) if error.class == ErrorClass::NoTasks => return Ok(None),
        read => read?,
    };
    let area = file.path.rsplit('/').nth(1).map(str::to_owned);
    let story = read.list.into_iter().next();
    Ok(story.map(|story| (Story { file: Some(file.path.clone()), group: area, ..story }, read.warnings)))
}

fn refuse_double_ids(stories: &[Story]) -> Result<(), SpecError> {
    let mut seen: HashMap<&str, &Story> = HashMap::new();
    for story in stories {
        if let Some(other) = seen.insert(story.id.as_str(), story) {
            let file = |story: &Story| story.file.clone().unwrap_or_default();
            let message = format!("the number {} is also that of {}", story.id, file(other));
            let mut error = SpecError::new(ErrorClass::DuplicateId, &file(story), message);
            error.line = story.line;
            return Err(error.with_help("give one of the task groups another number"));
        }
    }
    Ok(())
}

/// `**Requires**: 2.1, 2.2`, as far as these are groups of this work: prose is no promise that there are others.
fn resolve_requirements(stories: &mut [Story]) {
    let known: Vec<String> = stories.iter().map(|story| story.id.0.clone()).collect();
    for story in stories {
        let lines = story.description.lines().take_while(|line| !line.starts_with("To "));
        let required = lines.filter_map(|line| {
            let found = field(line).filter(|found| found.is("requires") || found.is("depends on"))?;
            Some(line[found.value].to_owned())
        });
        for part in required.collect::<Vec<_>>().iter().flat_map(|list| list.split([',', ';', '&'])) {
            let part = part.trim().trim_matches(['`', '[', ']', '*']);
            let Some(id) = label::heading(part).map(|found| found.id) else { continue };
            if known.contains(&id) && id != story.id.as_str() && !story.deps.iter().any(|dep| dep.as_str() == id) {
                story.deps.push(id.into());
            }
        }
    }
}

/// What is said of a file that was left out.
pub(super) fn left_out(file: &str, error: &SpecError) -> Diagnostic {
    let message = format!("{} (it is left out)", error.message);
    Diagnostic::warning(Code::UnreadableCompanion, file, error.line, message)
}
