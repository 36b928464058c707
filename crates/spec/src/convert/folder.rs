//! The plan as a folder with a file a story: a backlog, or an area of Flight Rules.

use std::fmt::Write as _;

use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Check, Scheme, Story, WorkState};

use super::draft::{Draft, Drafted, flat};
use super::markdown::{Writer, unhashed};
use super::yaml::{list, quoted};
use crate::flight;
use crate::source::SpecText;
use crate::words;

/// How far apart the places on the board are, so that others fit between them.
const ORDINAL: usize = 1000;

/// Characters of a title in the name of a file.
const LONGEST: usize = 60;

/// A backlog: its settings, and a file a task.
pub(super) fn backlog(draft: &Draft<'_>) -> Vec<SpecText> {
    let blocked = draft.stories.iter().any(|drafted| drafted.story.state == WorkState::Blocked);
    let statuses = ["To Do", "In Progress"].into_iter().chain(blocked.then_some("Blocked")).chain(["Done"]);
    let name = draft.project.or(draft.title).unwrap_or("Backlog");
    let config = format!(
        "project_name: {}\ndefault_status: \"To Do\"\nstatuses: {}\nlabels: []\ndate_format: yyyy-mm-dd\n",
        quoted(&flat(name)),
        list(statuses)
    );
    let tasks = draft.stories.iter().enumerate().map(|(at, drafted)| {
        let path = format!("tasks/{} - {}.md", drafted.story.id.as_str().to_lowercase(), name_of(&drafted.story.title));
        SpecText::new(path, task(draft, drafted, (at + 1) * ORDINAL))
    });
    std::iter::once(SpecText::new("config.yml", config)).chain(tasks).collect()
}

fn task(draft: &Draft<'_>, drafted: &Drafted<'_>, ordinal: usize) -> String {
    let story = &drafted.story;
    let status = match story.state {
        WorkState::Done => "Done",
        WorkState::Doing => "In Progress",
        WorkState::Blocked => "Blocked",
        WorkState::Todo | WorkState::Skipped | WorkState::Other => "To Do",
    };
    let mut writer = Writer::new(draft, Scheme::Backlog);
    let mut put = |key: &str, value: String| {
        let _infallible = writeln!(writer.out, "{key}: {value}");
    };
    put("---\nid", story.id.as_str().to_owned());
    put("title", quoted(&story.title));
    put("status", status.to_owned());
    put("assignee", "[]".to_owned());
    put("labels", list(story.tags.iter().map(String::as_str)));
    if let Some(group) = &story.group {
        put("milestone", quoted(&flat(group)));
    }
    put("dependencies", list(story.deps.iter().map(StoryId::as_str)));
    if let Some(word) = story.priority.and_then(words::three) {
        put("priority", word.to_owned());
    }
    put("ordinal", ordinal.to_string());
    writer.out.push_str("---\n\n## Description\n\n<!-- SECTION:DESCRIPTION:BEGIN -->");
    writer.paragraph(&story.description);
    writer.remarks(&Story { group: None, tags: Vec::new(), ..story.clone() }, &drafted.asides, "");
    writer.out.push_str("<!-- SECTION:DESCRIPTION:END -->\n");
    if !story.tasks.is_empty() {
        writer.out.push_str("\n## Acceptance Criteria\n<!-- AC:BEGIN -->\n");
        for (at, task) in story.tasks.iter().enumerate() {
            let tick = if task.state == WorkState::Done { 'x' } else { ' ' };
            let _infallible = writeln!(writer.out, "- [{tick}] #{} {}", at + 1, flat(&task.text));
        }
        writer.out.push_str("<!-- AC:END -->\n");
    }
    writer.out
}

/// An area of Flight Rules: a file a task group.
pub(super) fn groups(draft: &Draft<'_>) -> Vec<SpecText> {
    let file = |drafted: &Drafted<'_>| {
        let story = &drafted.story;
        let path = format!("{}-{}.md", story.id, name_of(&story.title).to_lowercase());
        SpecText::new(path, group(draft, drafted))
    };
    draft.stories.iter().map(file).collect()
}

fn group(draft: &Draft<'_>, drafted: &Drafted<'_>) -> String {
    let mut writer = Writer::new(draft, Scheme::Flight);
    let mut story = drafted.story.clone();
    let _infallible = writeln!(writer.out, "# {}. {}", story.id, unhashed(&story.title));
    let said = story.checks.iter().enumerate().find_map(|(at, check)| Some((at, verification(check)?)));
    if let Some((at, _)) = said {
        story.checks.remove(at);
    }
    writer.paragraph(&story.description);
    writer.remarks(&story, &drafted.asides, "");
    if !story.deps.is_empty() {
        let deps: Vec<&str> = story.deps.iter().map(StoryId::as_str).collect();
        let _infallible = write!(writer.out, "\n**Requires**: {}\n", deps.join(", "));
    }
    if let Some((_, lines)) = said {
        let _infallible = write!(writer.out, "\n{lines}\n");
    }
    for (at, task) in story.tasks.iter().enumerate() {
        let state = if story.state == WorkState::Blocked && task.state != WorkState::Done {
            WorkState::Blocked
        } else {
            task.state
        };
        let heading = format!("{}.{}. {}", story.id, at + 1, unhashed(&flat(&task.text)));
        let _infallible = write!(writer.out, "\n## {heading}\n\n{}\n", flight::status_line(state));
    }
    writer.out
}

/// The lines that say a check which the format can run.
fn verification(check: &Check) -> Option<String> {
    let Check::Shell { name: None, command, cwd: None, expect_output_contains, expect_files_glob, timeout } = check
    else {
        return None;
    };
    if !expect_output_contains.is_empty() || !expect_files_glob.is_empty() || command.contains(['`', '\n']) {
        return None;
    }
    Some(match timeout {
        None => format!("**Verification**: `{command}`"),
        Some(timeout) => format!("**Verification**:\n- command: `{command}`\n- timeout: {}s", timeout.as_secs()),
    })
}

/// A title as a part of a file's name.
fn name_of(title: &str) -> String {
    let words = title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut name = String::new();
    for word in words {
        if !name.is_empty() && name.chars().count() + word.chars().count() >= LONGEST {
            break;
        }
        if !name.is_empty() {
            name.push('-');
        }
        name.extend(word.chars().take(LONGEST));
    }
    if name.is_empty() { "untitled".to_owned() } else { name }
}
