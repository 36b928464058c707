//! The task that mends one which failed for good: `1.4.1a. Fix: …` below `1.4.1`, with what went wrong, and verified by the
//! same command.

use ralphloop_core::effect::FixTask;
use ralphloop_core::ids::{StoryId, TaskId};
use ralphloop_core::plan::{Check, Scheme, Story, Task, WorkState};

use super::group::{self, Draft, behind, is_rule, status_line};
use super::status::planned_line;
use super::verification::{self, Block};
use crate::edit::{Edit, apply};
use crate::mark::MarkError;
use crate::markdown::outline::outline;
use crate::markdown::scan::scan;
use crate::text::Text;

/// How the title of such a task begins.
const FIX: &str = "Fix: ";
/// Lines of output in it: the end says what is wrong.
const OUTPUT_LINES: usize = 20;
/// Letters of a line.
const LINE: usize = 200;

/// The task that this one mends, if it is called so.
pub(super) fn mended_by(draft: &Draft<'_, '_>, all: &[Draft<'_, '_>]) -> Option<TaskId> {
    let number = draft.id.strip_suffix(|letter: char| letter.is_ascii_lowercase())?;
    let is_there = draft.text.starts_with(FIX.trim_end()) && all.iter().any(|other| other.id == number);
    is_there.then(|| TaskId(number.to_owned()))
}

/// The edit that adds it to a task group, with its id; no edit if one is there and open.
///
/// # Errors
/// The file cannot be read or has no such task, or would not say what it said before besides.
pub(crate) fn add(bytes: &[u8], fix: &FixTask) -> Result<(TaskId, Vec<Edit>), MarkError> {
    let text = Text::decode(Scheme::Flight.as_str(), bytes)?;
    let before = the_story(&text)?;
    if let Some(task) = before.tasks.iter().find(|task| is_open_fix(task, fix)) {
        return Ok((task.id.clone(), Vec::new()));
    }
    let lines = scan(&text).lines;
    let (_, _, drafts) = group::split(&text, &lines, before.id.as_str(), &mut Vec::new());
    let refuse = |why: &str| MarkError::NotWritable { id: fix.of.to_string(), why: why.to_owned() };
    let Some(failed) = drafts.iter().find(|draft| draft.id == fix.of.as_str()) else {
        return Err(MarkError::Unknown { id: fix.of.to_string(), known: format!("it is no task of {}", before.id) });
    };
    let is_taken = |id: &String| drafts.iter().any(|draft| draft.id == *id);
    let letters = ('a'..='z').map(|letter| format!("{}{letter}", failed.id));
    let Some(id) = letters.into_iter().find(|id| !is_taken(id)) else {
        return Err(refuse("it has as many fix tasks as there are letters"));
    };
    // Behind the last one that mends the same.
    let family = |draft: &&Draft<'_, '_>| mended_by(draft, &drafts).as_ref() == Some(&fix.of);
    let after = drafts.iter().rfind(family).unwrap_or(failed);
    let (at, line_end) = behind(&text, after);
    let section =
        section(&id, failed, fix, drafts.iter().find_map(|draft| status_line(&draft.body)).map(|(l, _)| l.raw));
    let edit = Edit { offset: text.base + at, remove: String::new(), insert: section.replace('\n', line_end) };
    let id = TaskId(id);
    let changed = apply(bytes, std::slice::from_ref(&edit)).map_err(|stale| refuse(&stale.to_string()))?;
    let after = the_story(&Text::decode(Scheme::Flight.as_str(), &changed)?)?;
    if !is_the_same_but_for(&before, &after, &id) {
        return Err(MarkError::Unproven { id: id.to_string(), what: "the task group reads differently".to_owned() });
    }
    Ok((id, vec![edit]))
}

fn is_open_fix(task: &Task, fix: &FixTask) -> bool {
    task.mends.as_ref() == Some(&fix.of) && task.state != WorkState::Done
}

/// The group that the file is.
fn the_story(text: &Text<'_>) -> Result<Story, MarkError> {
    let unknown = || MarkError::Unknown { id: text.file.to_owned(), known: "it is no task group".to_owned() };
    let (id, topic) = outline(text).title.as_deref().and_then(group::heading).ok_or_else(unknown)?;
    group::read(text, &id, &topic)?.list.into_iter().next().ok_or_else(unknown)
}

/// Whether the group has that one task more, open, and is what it was otherwise.
fn is_the_same_but_for(before: &Story, after: &Story, added: &TaskId) -> bool {
    let is_new = |task: &&Task| task.id == *added;
    let mut tasks = after.tasks.iter().filter(|task| !is_new(task));
    let all_there = before
        .tasks
        .iter()
        .all(|old| tasks.next().is_some_and(|new| (&old.id, &old.text, old.state) == (&new.id, &new.text, new.state)));
    let new = after.tasks.iter().find(is_new);
    let is_open = new.is_some_and(|task| task.state == WorkState::Todo && task.mends.is_some());
    let same_group = (&before.id, &before.title, &before.checks, &before.sign_off, &before.deps)
        == (&after.id, &after.title, &after.checks, &after.sign_off, &after.deps);
    all_there && tasks.next().is_none() && is_open && same_group
}

/// What is written, from the end of the text before it.
fn section(id: &str, failed: &Draft<'_, '_>, fix: &FixTask, sibling: Option<&str>) -> String {
    let rule = if failed.body.iter().any(|line| is_rule(line.raw.trim())) { "\n\n---" } else { "" };
    let hashes = "#".repeat(failed.level);
    let title = failed.text.strip_prefix(FIX).unwrap_or(&failed.text);
    let mut out = format!("{rule}\n\n{hashes} {id}. {FIX}{title}\n\n{}\n\n", planned_line(sibling));
    out.push_str(&format!(
        "{} failed for good: {}. When this is mended, it is done too.\n",
        fix.of,
        one_line(&fix.why)
    ));
    let shown: Vec<String> = fix.output.lines().map(one_line).filter(|line| !line.is_empty()).collect();
    let shown = &shown[shown.len().saturating_sub(OUTPUT_LINES)..];
    if !shown.is_empty() {
        let fence = fence(shown);
        out.push_str(&format!("\n{fence}text\n"));
        // Indented, so that no line of it is anything to those who read this file line by line.
        for line in shown {
            out.push_str(&format!("  {line}\n"));
        }
        out.push_str(&format!("{fence}\n"));
    }
    if let Block::Command { check: Check::Shell { command, timeout, .. } } = verification::block(&failed.body) {
        let quote = if command.contains('`') { "" } else { "`" };
        out.push_str(&format!("\n**Verification**:\n- command: {quote}{command}{quote}"));
        if let Some(timeout) = timeout {
            out.push_str(&format!("\n- timeout: {}s", timeout.as_secs()));
        }
    }
    out.trim_end().to_owned()
}

fn one_line(text: &str) -> String {
    let words: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LINE).collect();
    words.trim_end().to_owned()
}

/// Longer than any that the lines hold.
fn fence(lines: &[String]) -> String {
    let longest = lines.iter().flat_map(|line| line.split(|c| c != '`')).map(str::len).max().unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

/// Whether a file of Flight Rules is a task group, to which tasks can be added that mend others.
pub fn is_task_group(bytes: &[u8]) -> bool {
    let text = Text::decode(Scheme::Flight.as_str(), bytes);
    text.is_ok_and(|text| the_story(&text).is_ok())
}

/// Which of the groups it is that has the task.
pub(crate) fn is_of(bytes: &[u8], story: &StoryId) -> bool {
    let text = Text::decode(Scheme::Flight.as_str(), bytes);
    text.is_ok_and(|text| the_story(&text).is_ok_and(|found| found.id == *story))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: &str = "# 1.4. Lamps\n\n## 1.4.1. Lamp\n\n**Status**: 🟡 In Progress\n**Verification**:\n- command: `make lamp`\n\
        - timeout: 2m\n\n---\n\n## 1.4.2. Cord\n\n**Status**: 🔵 Planned\n";

    fn fix(output: &str) -> FixTask {
        FixTask { of: "1.4.1".into(), check: "make lamp".into(), why: "exit code 2".into(), output: output.into() }
    }

    fn added(source: &str, output: &str) -> (String, String) {
        let (id, edits) = add(source.as_bytes(), &fix(output)).unwrap_or_else(|e| panic!("{e}"));
        (id.to_string(), String::from_utf8(apply(source.as_bytes(), &edits).unwrap()).unwrap())
    }

    #[test]
    fn f20_a_fix_task_follows_the_one_that_failed_with_what_went_wrong_and_the_same_command() {
        let (id, out) = added(GROUP, "no bulb\n");
        assert_eq!(id, "1.4.1a");
        let section = "\n---\n\n## 1.4.1a. Fix: Lamp\n\n**Status**: 🔵 Planned\n\n1.4.1 failed for good: exit code 2. When this \
            is mended, it is done too.\n\n```text\n  no bulb\n```\n\n**Verification**:\n- command: `make lamp`\n- timeout: 120s\n";
        assert_eq!(out, GROUP.replace("- timeout: 2m\n", &format!("- timeout: 2m\n{section}")));
        let story = the_story(&Text::decode("t", out.as_bytes()).unwrap()).unwrap();
        assert_eq!(story.tasks[1].mends, Some("1.4.1".into()));
        assert_eq!(story.checks.len(), 1, "it is the same check");
        // One that is open is not added twice; one that is done gets the next letter.
        assert_eq!(added(&out, "").1, out);
        let done = out.replace(
            "## 1.4.1a. Fix: Lamp\n\n**Status**: 🔵 Planned",
            "## 1.4.1a. Fix: Lamp\n\n**Status**: ✅ Complete",
        );
        let (id, out) = added(&done, "");
        assert_eq!(id, "1.4.1b");
        assert!(out.find("1.4.1a. Fix").unwrap() < out.find("1.4.1b. Fix").unwrap());
    }

    #[test]
    fn f20_output_cannot_say_anything_in_the_file() {
        let hostile =
            "```\n## 1.4.3. Other\n**Status**: ✅ Complete\n<<<<<<< HEAD\n=======\n\u{0}<!--\nVerification: `rm`\n";
        let (_, out) = added(&GROUP.replace('\n', "\r\n"), hostile);
        let story = the_story(&Text::decode("t", out.as_bytes()).unwrap()).unwrap();
        assert_eq!(story.tasks.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), ["1.4.1", "1.4.1a", "1.4.2"]);
        assert_eq!(story.checks.len(), 1);
        assert!(!out.replace("\r\n", "").contains('\n'), "line ends stay what they are");
    }

    #[test]
    fn only_tasks_of_the_group_get_one() {
        assert!(add(GROUP.as_bytes(), &FixTask { of: "1.5.1".into(), ..fix("") }).is_err());
        assert!(is_of(GROUP.as_bytes(), &"1.4".into()) && !is_of(GROUP.as_bytes(), &"1.5".into()));
    }
}
