//! What is written once a work is finished, beyond the marks of its stories: history, statistics, dates.

use jsonc_parser::ast::{Array, Object, Value};
use jsonc_parser::common::Ranged;
use ralphloop_core::ids::StoryId;

use crate::edit::Edit;
use crate::error::SpecError;
use crate::json::{self, Flavour};
use crate::text::Text;

/// The edits with which the state of a PRD of Flight Rules (`prd-status.json`) takes note of what has passed: an entry in
/// the history of each story that passes and says so nowhere yet, the statistics, and the dates. None if it says all that.
/// `now` is a time as RFC 3339.
///
/// # Errors
/// The file is no JSON.
pub fn prd_history(file: &str, bytes: &[u8], now: &str) -> Result<Vec<Edit>, SpecError> {
    let text = Text::decode(file, bytes)?;
    let root = json::parse(&text, Flavour::Strict)?;
    let Some(root) = root.as_object() else { return Ok(Vec::new()) };
    let stories: Vec<&Object<'_>> = match json::get(root, "stories") {
        Some(Value::Array(list)) => list.elements.iter().filter_map(Value::as_object).collect(),
        _ => Vec::new(),
    };
    let mut edits = Vec::new();
    for story in stories.iter().filter(|story| json::is_true(story, "passes")) {
        if last_result(story).as_deref() == Some("pass") {
            continue;
        }
        edits.extend(set(&text, story, "lastVerified", &format!("\"{now}\"")));
        let entry = format!(r#"{{"date": "{now}", "result": "pass", "notes": "verified by ralphloop"}}"#);
        match json::get(story, "history") {
            Some(Value::Array(history)) => edits.push(push(&text, history, &entry)),
            _ => edits.extend(set(&text, story, "history", &format!("[{entry}]"))),
        }
    }
    if let Some(statistics) = json::get(root, "statistics").and_then(Value::as_object) {
        let passed = stories.iter().filter(|story| json::is_true(story, "passes")).count();
        let has_failed = |story: &&&Object<'_>| last_result(story).as_deref() == Some("fail");
        let failed = stories.iter().filter(|story| !json::is_true(story, "passes")).filter(has_failed).count();
        let counts = [
            ("total", stories.len()),
            ("passed", passed),
            ("failed", failed),
            ("pending", stories.len() - passed - failed),
        ];
        for (key, count) in counts {
            if json::get(statistics, key).is_some() {
                edits.extend(set(&text, statistics, key, &count.to_string()));
            }
        }
    }
    if !edits.is_empty() {
        edits.extend(set(&text, root, "lastUpdated", &format!("\"{now}\"")));
    }
    Ok(edits)
}

fn last_result(story: &Object<'_>) -> Option<String> {
    let Some(Value::Array(history)) = json::get(story, "history") else { return None };
    json::first_text(history.elements.last()?.as_object()?, &["result"])
}

/// The edits that close these issues of a Beads file, as its own program would write them; those that are closed already
/// need none. `now` is a time as RFC 3339.
///
/// # Errors
/// A line is no JSON.
pub fn close_issues(file: &str, bytes: &[u8], issues: &[StoryId], now: &str) -> Result<Vec<Edit>, SpecError> {
    let text = Text::decode(file, bytes)?;
    let mut edits = Vec::new();
    for (_, offset, line) in text.numbered().filter(|(_, _, line)| !line.trim().is_empty()) {
        let inner = Text::decode(file, line.as_bytes())?;
        let root = json::parse(&inner, Flavour::Strict)?;
        let Some(issue) = root.as_object() else { continue };
        let id = json::get(issue, "id").and_then(json::word_of).unwrap_or_default();
        let status = json::first_text(issue, &["status"]).unwrap_or_default();
        if !issues.iter().any(|issue| issue.as_str() == id) || matches!(status.as_str(), "closed" | "tombstone") {
            continue;
        }
        let time = format!("\"{now}\"");
        let values = [("status", "\"closed\""), ("updated_at", time.as_str()), ("closed_at", time.as_str())];
        let wanted = values.iter().filter_map(|(key, value)| set(&inner, issue, key, value));
        edits.extend(wanted.map(|edit| Edit { offset: text.base + offset + edit.offset - inner.base, ..edit }));
    }
    Ok(edits)
}

/// The edit that gives a member of an object this value; none if it has it.
fn set(text: &Text<'_>, object: &Object<'_>, key: &str, value: &str) -> Option<Edit> {
    if let Some(property) = object.properties.iter().find(|property| property.name.as_str() == key) {
        let token = text.body.get(property.value.start()..property.value.end())?;
        let edit =
            Edit { offset: text.base + property.value.start(), remove: token.to_owned(), insert: value.to_owned() };
        return (token != value).then_some(edit);
    }
    // Commas and colons as the object has them already.
    let between = |from: usize, to: usize| text.body.get(from..to);
    let last = object.properties.last()?;
    let before = object.properties.len().checked_sub(2).and_then(|at| object.properties.get(at));
    let comma = before.and_then(|before| between(before.range.end, last.range.start)).unwrap_or(", ");
    let colon = between(last.name.end(), last.value.start()).unwrap_or(": ");
    let insert = format!("{comma}\"{key}\"{colon}{value}");
    Some(Edit { offset: text.base + last.range.end, remove: String::new(), insert })
}

/// The edit that puts an element at the end of an array.
fn push(text: &Text<'_>, array: &Array<'_>, element: &str) -> Edit {
    let (offset, insert) = match array.elements.last() {
        None => (array.range.start + 1, element.to_owned()),
        Some(last) => {
            let lead = lead(text, last.start());
            (last.end(), format!(",{}{element}", if lead.is_empty() { " " } else { lead.as_str() }))
        }
    };
    Edit { offset: text.base + offset, remove: String::new(), insert }
}

/// The line end and the indentation before what stands first on its line; empty if something else stands there.
fn lead(text: &Text<'_>, at: usize) -> String {
    let before = text.body.get(..at).unwrap_or_default();
    let Some(start) = before.rfind('\n').map(|at| at + 1) else { return String::new() };
    let indent = &before[start..];
    if !indent.trim().is_empty() {
        return String::new();
    }
    let end = if before[..start].ends_with("\r\n") { "\r\n" } else { "\n" };
    format!("{end}{indent}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::apply;

    const NOW: &str = "2026-02-11T09:00:00Z";

    fn history(source: &str) -> String {
        let edits = prd_history("t", source.as_bytes(), NOW).unwrap();
        String::from_utf8(apply(source.as_bytes(), &edits).unwrap()).unwrap()
    }

    #[test]
    fn a_prd_takes_note_once_of_what_has_passed() {
        let source = "{\n  \"lastUpdated\": \"x\",\n  \"stories\": [\n    {\"id\": \"US-1\", \"passes\": true, \"history\": []},\n    \
                      {\n      \"id\": \"US-2\",\n      \"passes\": true\n    },\n    {\"id\": \"US-3\", \"passes\": false, \
                      \"history\": [{\"result\": \"fail\"}]}\n  ],\n  \"statistics\": {\"total\": 3, \"passed\": 0, \"pending\": 3}\n}\n";
        let entry = r#"{"date": "2026-02-11T09:00:00Z", "result": "pass", "notes": "verified by ralphloop"}"#;
        let once = history(source);
        assert_eq!(
            once,
            format!(
                "{{\n  \"lastUpdated\": \"{NOW}\",\n  \"stories\": [\n    {{\"id\": \"US-1\", \"passes\": true, \"history\": [{entry}], \
                 \"lastVerified\": \"{NOW}\"}},\n    {{\n      \"id\": \"US-2\",\n      \"passes\": true,\n      \"lastVerified\": \
                 \"{NOW}\",\n      \"history\": [{entry}]\n    }},\n    {{\"id\": \"US-3\", \"passes\": false, \"history\": \
                 [{{\"result\": \"fail\"}}]}}\n  ],\n  \"statistics\": {{\"total\": 3, \"passed\": 2, \"pending\": 0}}\n}}\n"
            )
        );
        assert_eq!(history(&once), once);
    }

    #[test]
    fn an_issue_is_closed_with_its_dates_and_no_other_byte_changes() {
        let source =
            "{\"id\":\"a-1\",\"status\":\"open\",\"updated_at\":\"x\"}\n{\"id\":\"a-2\",\"status\":\"open\"}\r\n";
        let edits = close_issues("t", source.as_bytes(), &["a-1".into()], NOW).unwrap();
        let out = String::from_utf8(apply(source.as_bytes(), &edits).unwrap()).unwrap();
        assert_eq!(
            out,
            format!(
                "{{\"id\":\"a-1\",\"status\":\"closed\",\"updated_at\":\"{NOW}\",\"closed_at\":\"{NOW}\"}}\n\
                 {{\"id\":\"a-2\",\"status\":\"open\"}}\r\n"
            )
        );
        assert_eq!(close_issues("t", out.as_bytes(), &["a-1".into()], NOW).unwrap(), []);
    }
}
