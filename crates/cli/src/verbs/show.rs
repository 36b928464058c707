//! `show`: a piece of work as it was read.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ralphloop_core::graph;
use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Plan, Story, StoryKind, Task, WorkState};
use ralphloop_spec::Reading;

use super::gates;
use super::spec::{Opened, Progress, open};
use crate::arguments::ShowArguments;
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output::{self, BAD, DIM, GOOD, HEAD, WARN, harmless, one_line, styled};

pub(super) fn show(arguments: &ShowArguments, host: &Host) -> Result<Exit, CliError> {
    let opened = open(arguments.work.as_deref(), host)?;
    if arguments.json {
        return json(&opened);
    }
    let reading = opened.reading()?;
    if let Some(story) = &arguments.prompt {
        return super::prompt::show(&opened, &reading, story, host);
    }
    let gates = gates::lines(&opened, &reading.plan, host)?;
    output::data(&text(&opened, &reading, &gates))?;
    Ok(Exit::DONE)
}

/// The reading of a piece of work, as JSON.
pub(crate) fn reading(work: Option<&str>, host: &Host) -> Result<serde_json::Value, CliError> {
    Ok(ralphloop_spec::to_json(&open(work, host)?.reading()?))
}

fn json(opened: &Opened) -> Result<Exit, CliError> {
    match opened.read() {
        Ok(reading) => {
            output::json(&ralphloop_spec::to_json(&reading))?;
            Ok(Exit::DONE)
        }
        Err(error) => {
            output::json(&ralphloop_spec::error_json(&error))?;
            Err(opened.unreadable(&error))
        }
    }
}

fn text(opened: &Opened, reading: &Reading, gates: &str) -> String {
    let plan = &reading.plan;
    let stages = stage_numbers(plan);
    let mut text = String::new();
    let title = plan.title.as_deref().or(reading.project.as_deref()).unwrap_or("");
    let _ = writeln!(text, "{}  {}", styled(HEAD, &one_line(&opened.work.id.to_string())), one_line(title));
    let progress = Progress::of(reading);
    let _ = writeln!(
        text,
        "{}: {} of {} stories done, {} of {} tasks",
        one_line(opened.files.name()),
        progress.stories.0,
        progress.stories.1,
        progress.tasks.0,
        progress.tasks.1
    );
    for story in &plan.stories {
        text.push('\n');
        text.push_str(&story_text(story, stages.get(&story.id).copied(), reading.next.as_ref()));
    }
    text.push('\n');
    text.push_str(&order(plan));
    text.push_str(gates);
    for warning in &reading.warnings {
        let _ = writeln!(text, "{}: {}", styled(WARN, "warning"), harmless(&warning.to_string()));
    }
    text
}

/// The stage of every story that is still to be done.
fn stage_numbers(plan: &Plan) -> BTreeMap<StoryId, usize> {
    let stages = graph::stages(plan).into_iter().enumerate();
    stages.flat_map(|(number, stage)| stage.into_iter().map(move |story| (story, number + 1))).collect()
}

fn story_text(story: &Story, stage: Option<usize>, next: Option<&StoryId>) -> String {
    let mut text = String::new();
    let notes = notes(story, stage, next);
    let notes = if notes.is_empty() { String::new() } else { styled(DIM, &format!("  ({})", notes.join(", "))) };
    let (style, mark) = mark(story.state);
    let id = one_line(story.id.as_str());
    let _ = writeln!(text, "{} {}  {}{notes}", styled(style, mark), styled(HEAD, &id), one_line(&story.title));
    for task in &story.tasks {
        let _ = writeln!(text, "    {}", task_text(task));
    }
    for check in &story.checks {
        let _ = writeln!(text, "    check: {}", one_line(check.label()));
    }
    for wanted in &story.sign_off {
        let _ = writeln!(text, "    sign-off: {}", one_line(wanted));
    }
    text
}

fn notes(story: &Story, stage: Option<usize>, next: Option<&StoryId>) -> Vec<String> {
    let mut notes = Vec::new();
    if next == Some(&story.id) {
        notes.push("next".to_owned());
    }
    match story.kind {
        StoryKind::Epic => notes.push("groups others".to_owned()),
        StoryKind::Story => notes.extend(stage.map(|number| format!("stage {number}"))),
    }
    if story.optional {
        notes.push("optional".to_owned());
    }
    if let Some(priority) = story.priority {
        notes.push(format!("priority {}", priority.0));
    }
    if !story.deps.is_empty() {
        let ids: Vec<String> = story.deps.iter().map(|id| one_line(id.as_str())).collect();
        notes.push(format!("after {}", ids.join(", ")));
    }
    match (&story.file, story.line) {
        (Some(file), Some(1)) => notes.push(one_line(file)),
        (Some(file), Some(line)) => notes.push(format!("{} line {line}", one_line(file))),
        (_, Some(line)) => notes.push(format!("line {line}")),
        (_, None) => {}
    }
    notes
}

fn mark(state: WorkState) -> (anstyle::Style, &'static str) {
    match state {
        WorkState::Done => (GOOD, "done   "),
        WorkState::Doing => (WARN, "begun  "),
        WorkState::Blocked => (BAD, "blocked"),
        WorkState::Skipped => (DIM, "skipped"),
        WorkState::Todo | WorkState::Other => (DIM, "open   "),
    }
}

fn task_text(task: &Task) -> String {
    let mark = match task.state {
        WorkState::Done => 'x',
        WorkState::Doing => '/',
        WorkState::Skipped | WorkState::Blocked => '-',
        WorkState::Other => '?',
        WorkState::Todo => ' ',
    };
    let depth = if task.parent.is_some() { "  " } else { "" };
    let optional = if task.optional { " (optional)" } else { "" };
    format!("{depth}[{mark}] {}  {}{optional}", one_line(task.id.as_str()), one_line(&task.text))
}

/// In which order the stories are taken, one stage a line.
fn order(plan: &Plan) -> String {
    let stages = graph::stages(plan);
    let mut text = styled(HEAD, "Order") + "\n";
    if stages.is_empty() {
        text.push_str("  nothing is left to do\n");
    }
    for (number, stage) in stages.iter().enumerate() {
        let ids: Vec<String> = stage.iter().map(|id| one_line(id.as_str())).collect();
        let _ = writeln!(text, "  stage {}: {}", number + 1, ids.join(", "));
    }
    text
}
