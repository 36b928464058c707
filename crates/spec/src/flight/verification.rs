//! How a task says that it is verified: a `Verification:` line or block, and the `Verified:` line that follows from it.

use std::time::Duration;

use ralphloop_core::plan::Check;

use super::group::shell;
use super::status::{Field, field};
use crate::document::{Mark, Slot};
use crate::markdown::boxes;
use crate::markdown::outline::heading_start;
use crate::markdown::scan::{Kind, Line};
use crate::text::Text;
use crate::words;

/// What stands behind `Verification:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Block {
    /// Nothing, or nothing that can be run.
    None,
    /// A command.
    Command { check: Check },
    /// A person looks at these.
    Manual { criteria: Vec<String> },
}

/// The verification that these lines name: on the line itself, or as `command:` in the list below it, which may stand in
/// a code fence.
pub(super) fn block(body: &[&Line<'_>]) -> Block {
    let mut lines = body.iter().filter(|line| line.kind != Kind::Comment).map(|line| (line.kind, line.raw));
    let found = lines.by_ref().find_map(|(kind, line)| {
        let found = field(line).filter(|found| kind == Kind::Text && found.is("verification"))?;
        Some(line[found.value].to_owned())
    });
    let Some(inline) = found else { return Block::None };
    if let Some(command) = command_in(&inline) {
        return Block::Command { check: shell(&command, None) };
    }
    let (mut command, mut timeout, mut manual) = (None, None, is_manual(&inline));
    let mut criteria: Vec<String> = Vec::new();
    // "manual" alone names nothing to look at.
    criteria.extend(behind_manual(&inline).filter(|_| manual));
    let mut is_list = manual;
    for (_, line) in lines {
        if heading_start(line).is_some() {
            break;
        }
        let Some(found) = field(line) else {
            criteria.extend(item(line).filter(|_| is_list));
            continue;
        };
        let value = &line[found.value.clone()];
        is_list &= !is_ours(&found);
        if found.is("command") {
            command = command.or_else(|| command_in(value)).or_else(|| Some(unquoted(value)).filter(|v| !v.is_empty()));
        } else if found.is("timeout") {
            timeout = duration(value);
        } else if found.is("type") {
            manual = is_manual(value);
        } else if found.is("criteria") {
            criteria.extend(Some(unquoted(value)).filter(|value| !value.is_empty()));
            is_list = true;
        } else if line.starts_with("**") {
            // The next thing that is said about the task.
            break;
        }
    }
    match command {
        Some(command) => Block::Command { check: shell(&command, timeout) },
        None if manual => Block::Manual { criteria },
        None => Block::None,
    }
}

/// A line of the block that says something else than what to look at.
fn is_ours(found: &Field<'_>) -> bool {
    ["command", "timeout", "type", "expected", "retries"].iter().any(|name| found.is(name))
}

/// An item of a list, its box left out.
fn item(line: &str) -> Option<String> {
    let line = line.trim();
    let item = line.get(boxes::list_marker(line)?..)?.trim_start();
    let item = ["[ ]", "[x]", "[X]"].iter().find_map(|mark| item.strip_prefix(mark)).unwrap_or(item);
    Some(item.trim().to_owned()).filter(|item| !item.is_empty())
}

/// `look at the colour` of `Manual: look at the colour`.
pub(super) fn behind_manual(value: &str) -> Option<String> {
    let rest = value.trim().get("manual".len()..)?;
    let rest = rest.trim_matches(|c: char| c.is_whitespace() || matches!(c, ':' | '-' | '–' | '—' | ',' | '(' | ')'));
    Some(rest.to_owned()).filter(|rest| !rest.is_empty())
}

pub(super) fn is_manual(value: &str) -> bool {
    value.trim().to_lowercase().starts_with("manual")
}

/// A command in backquotes, or one that is a command beyond doubt.
fn command_in(value: &str) -> Option<String> {
    if let Some((command, _)) = value.strip_prefix('`').and_then(|inner| inner.split_once('`')) {
        return Some(command.trim().to_owned()).filter(|command| !command.is_empty());
    }
    words::is_command(value).then(|| value.trim().to_owned())
}

fn unquoted(value: &str) -> String {
    let value = value.trim();
    let inner = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    inner.unwrap_or(value).to_owned()
}

/// `120s`, `2m`, `90`.
pub(super) fn duration(value: &str) -> Option<Duration> {
    let value = value.trim();
    let end = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let number: u64 = value[..end].parse().ok()?;
    let seconds = match value[end..].trim().to_lowercase().as_str() {
        "" | "s" | "sec" | "secs" | "second" | "seconds" => number,
        "m" | "min" | "mins" | "minute" | "minutes" => number.checked_mul(60)?,
        _ => return None,
    };
    Some(Duration::from_secs(seconds))
}

/// The `Verified:` line of a task, which a landing sets since it has seen the command succeed.
pub(super) fn verified(text: &Text<'_>, body: &[&Line<'_>], command: &str) -> Option<Mark> {
    body.iter().filter(|line| line.kind == Kind::Text).find_map(|line| {
        let found = field(line.raw).filter(|found| found.is("verified"))?;
        let now = line.raw[found.value.clone()].to_owned();
        let is_done = now.trim_start_matches(['*', '`', '✅', ' ']).to_lowercase().starts_with("true");
        let gap = if line.raw[..found.value.start].ends_with([' ', '\t']) { "" } else { " " };
        Some(Mark {
            slot: Slot::Verified,
            offset: text.base + line.offset + found.value.start,
            done: format!("{gap}true (`{command}`)"),
            open: "false",
            is_done,
            now,
        })
    })
}
