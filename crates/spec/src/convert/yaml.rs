//! The plan as a YAML list of tasks. Texts stand in double quotes, in which YAML reads what JSON writes.

use std::fmt::Write as _;

use ralphloop_core::plan::WorkState;
use serde_json::Value;

use super::draft::{Draft, Drafted, flat};
use super::prd::status;

/// The file.
pub(super) fn text(draft: &Draft<'_>) -> String {
    let mut out = String::new();
    let top = [("project", draft.project.or(draft.title)), ("branch", draft.branch)];
    for (key, value) in top {
        if let Some(value) = value {
            put(&mut out, "", key, &quoted(value));
        }
    }
    if !draft.context.proposal.is_empty() {
        put(&mut out, "", "description", &quoted(&draft.context.proposal));
    }
    out.push_str("tasks:\n");
    draft.stories.iter().for_each(|drafted| task(&mut out, drafted));
    out
}

fn put(out: &mut String, lead: &str, key: &str, value: &str) {
    let _infallible = writeln!(out, "{lead}{key}: {value}");
}

pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

pub(super) fn list<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    format!("[{}]", texts.map(quoted).collect::<Vec<_>>().join(", "))
}

fn task(out: &mut String, drafted: &Drafted<'_>) {
    let story = &drafted.story;
    put(out, "  - ", "id", &quoted(story.id.as_str()));
    let mut field = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            put(out, "    ", key, &value);
        }
    };
    field("title", Some(quoted(&story.title)));
    let description = description(drafted);
    field("description", (!description.is_empty()).then(|| quoted(&description)));
    field("completed", Some((story.state == WorkState::Done).to_string()));
    field("status", status(story.state).map(str::to_owned));
    field("optional", story.optional.then(|| "true".to_owned()));
    field("priority", story.priority.map(|priority| priority.0.to_string()));
    field("complexity", story.complexity.map(|complexity| complexity.to_string()));
    let deps = story.deps.iter().map(ralphloop_core::ids::StoryId::as_str);
    field("deps", (!story.deps.is_empty()).then(|| list(deps)));
    field("group", story.group.as_deref().map(quoted));
    field("labels", (!story.tags.is_empty()).then(|| list(story.tags.iter().map(String::as_str))));
    field("notes", (!story.notes.is_empty()).then(|| quoted(&story.notes)));
    if story.tasks.is_empty() && story.criteria.is_empty() {
        return;
    }
    out.push_str("    acceptance:\n");
    let mut items: Vec<String> = story.tasks.iter().map(|task| flat(&task.text)).collect();
    if items.is_empty() {
        items = story.criteria.iter().map(|criterion| flat(criterion)).collect();
    }
    for item in items {
        let _infallible = writeln!(out, "      - {}", quoted(&item));
    }
}

/// The description with what the format has no key for.
fn description(drafted: &Drafted<'_>) -> String {
    let story = &drafted.story;
    let mut parts = vec![story.description.trim().to_owned()];
    if !story.tasks.is_empty() {
        let further = story.criteria.iter().filter(|text| !story.tasks.iter().any(|task| task.text == **text));
        parts.extend(further.map(|text| format!("- {text}")));
    }
    if !story.refs.is_empty() {
        parts.push(format!("Requirements: {}", story.refs.join(", ")));
    }
    parts.extend(story.checks.iter().map(|check| format!("Verify: `{}`", check.label())));
    if story.needs_no_change {
        parts.push("No file has to change.".to_owned());
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}
