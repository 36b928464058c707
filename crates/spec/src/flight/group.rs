//! A task group, `docs/implementation/<N>-<area>/<N>.<M>-<topic>.md`: the file is a story, its numbered headings are the
//! tasks, and a Status line below each says how far it is.

use std::collections::HashMap;
use std::time::Duration;

use ralphloop_core::plan::{Check, Story, Task, WorkState};

use super::fix_task;
use super::status::{self, Field, field};
use super::verification::{self, Block};
use crate::document::{ItemMarks, Mark, Slot, StoryMarks};
use crate::error::{Code, Diagnostic, ErrorClass, SpecError};
use crate::label;
use crate::markdown::outline::{heading_start, without_closing_hashes};
use crate::markdown::scan::{Kind, Line, scan};
use crate::markdown::stories::{Stories, state_of, unused};
use crate::text::Text;

/// The number and the topic of a task group, if its first heading names one: `2.3`, never `2` or `2.3.1`.
pub(super) fn heading(title: &str) -> Option<(String, String)> {
    const WORDS: &str = "task group";
    let bare = title.get(..WORDS.len()).filter(|head| head.eq_ignore_ascii_case(WORDS)).map(|_| &title[WORDS.len()..]);
    let found = label::heading(bare.map_or(title, |rest| rest.trim_start_matches([':', ' '])))?;
    let mut parts = found.id.split('.');
    let number = |part: Option<&str>| part.is_some_and(|part| part.starts_with(|c: char| c.is_ascii_digit()));
    (number(parts.next()) && number(parts.next()) && parts.next().is_none()).then_some((found.id, found.text))
}

/// A numbered heading with the lines below it.
pub(super) struct Draft<'l, 'a> {
    pub id: String,
    declared: bool,
    pub text: String,
    line: u32,
    /// Hashes before it.
    pub level: usize,
    pub body: Vec<&'l Line<'a>>,
}

/// The story of the file.
pub(super) fn read(text: &Text<'_>, id: &str, topic: &str) -> Result<Stories, SpecError> {
    let lines = scan(text).lines;
    let mut warnings = Vec::new();
    let (title_line, above, drafts) = split(text, &lines, id, &mut warnings);
    let own = status_of(text, &above);
    if drafts.is_empty() && own.is_none() {
        let message = format!("the task group {id} has neither tasks nor a status");
        return Err(SpecError::new(ErrorClass::NoTasks, text.file, message)
            .with_help(format!("write ## {id}.1. What is to be done, and below it **Status**: 🔵 Planned")));
    }
    let like = drafts.iter().find_map(|draft| status_line(&draft.body)).map(|(line, _)| line.raw);
    let (mut tasks, mut marks, mut checks, mut sign_off) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for draft in &drafts {
        let found = status_of(text, &draft.body);
        if found.is_none() {
            let message = format!("the task {} has no Status line; it is open", draft.id);
            warnings.push(Diagnostic::warning(Code::MissingStatus, text.file, Some(draft.line), message));
        }
        let block = verification::block(&draft.body);
        let mark = found.as_ref().map_or_else(|| missing_line(text, draft, like), |(_, mark)| mark.clone());
        let mut own = vec![mark];
        let mut verified_by = None;
        if let Block::Command { check } = &block {
            own.extend(verification::verified(text, &draft.body, check.label()));
            verified_by = Some(check.clone());
        }
        match block {
            Block::Command { check } if !checks.contains(&check) => checks.push(check),
            Block::Manual { criteria } => sign_off.extend(looked_at(&draft.id, &draft.text, criteria)),
            Block::Command { .. } | Block::None => {}
        }
        let state = found.map_or(WorkState::Todo, |(state, _)| state);
        tasks.push(Task { verified_by, mends: fix_task::mended_by(draft, &drafts), ..task(draft, state) });
        marks.push(ItemMarks { marks: own, declared: draft.declared });
    }
    let state = match own.as_ref() {
        Some((state, _)) if tasks.is_empty() => *state,
        _ => state_of_group(&tasks),
    };
    match verification::block(&above) {
        Block::Command { check } if !checks.contains(&check) => checks.push(check),
        Block::Manual { criteria } => sign_off.extend(looked_at(id, topic, criteria)),
        Block::Command { .. } | Block::None => {}
    }
    let story = Story {
        description: description(&above, &drafts),
        state,
        line: Some(title_line),
        tasks,
        checks,
        sign_off,
        ..Story::new(id.to_owned(), topic)
    };
    let own = ItemMarks { marks: own.into_iter().map(|(_, mark)| mark).collect(), declared: true };
    Ok(Stories { list: vec![story], marks: vec![StoryMarks { own, tasks: marks }], warnings })
}

/// What a person looks at: the criteria, or else the thing as a whole.
fn looked_at(id: &str, title: &str, criteria: Vec<String>) -> Vec<String> {
    if criteria.is_empty() {
        return vec![format!("{id} {title}")];
    }
    criteria.into_iter().map(|criterion| format!("{id}: {criterion}")).collect()
}

/// The group is blocked where nothing but blocked tasks is left.
fn state_of_group(tasks: &[Task]) -> WorkState {
    let mut open = tasks.iter().filter(|task| task.state != WorkState::Done).peekable();
    if open.peek().is_some() && open.all(|task| task.state == WorkState::Blocked) {
        return WorkState::Blocked;
    }
    state_of(tasks)
}

/// Cuts the file at the headings that carry the group's own number. Answers the line of the title, and what stands above
/// the first task.
pub(super) fn split<'l, 'a>(
    text: &Text<'_>,
    lines: &'l [Line<'a>],
    group: &str,
    warnings: &mut Vec<Diagnostic>,
) -> (u32, Vec<&'l Line<'a>>, Vec<Draft<'l, 'a>>) {
    let mut used = HashMap::new();
    let (mut title, mut above, mut drafts) = (None, Vec::new(), Vec::<Draft<'_, '_>>::new());
    for line in lines.iter().filter(|line| line.kind != Kind::FrontMatter) {
        let heading = (line.kind == Kind::Text).then(|| heading_start(&line.masked())).flatten();
        if let Some((level, start)) = heading {
            let words = without_closing_hashes(&line.clean(start)).to_owned();
            if level == 1 && title.is_none() {
                title = Some(line.number);
                continue;
            }
            let found = label::heading(&words).filter(|found| level > 1 && is_task_of(group, &found.id));
            if let Some(found) = found {
                let id = unused(&mut used, &found.id);
                if id != found.id {
                    let message = format!("there is a task {} above; this one is called {id}", found.id);
                    warnings.push(Diagnostic::warning(Code::DuplicateId, text.file, Some(line.number), message));
                }
                let declared = id == found.id;
                drafts.push(Draft { id, declared, text: found.text, line: line.number, level, body: Vec::new() });
                continue;
            }
        }
        drafts.last_mut().map_or(&mut above, |draft| &mut draft.body).push(line);
    }
    (title.unwrap_or(1), above, drafts)
}

/// `3.10.1` is a task of `3.10`, and none of `3.1`.
fn is_task_of(group: &str, id: &str) -> bool {
    id.strip_prefix(group).and_then(|rest| rest.strip_prefix('.')).is_some_and(|rest| !rest.is_empty())
}

/// The first Status line.
pub(super) fn status_line<'l, 'a>(body: &[&'l Line<'a>]) -> Option<(&'l Line<'a>, Field<'a>)> {
    body.iter().filter(|line| line.kind == Kind::Text).find_map(|line| {
        let found = field(line.raw).filter(|found| found.is("status"))?;
        Some((*line, found))
    })
}

fn status_of(text: &Text<'_>, body: &[&Line<'_>]) -> Option<(WorkState, Mark)> {
    let (line, found) = status_line(body)?;
    // A remark in a comment behind it is none of the status.
    let end = line.masked().trim_end().len().clamp(found.value.start, found.value.end.max(found.value.start));
    let status = status::status(line.raw, found.value.start..end);
    let mark = status.mark(text, line.raw, line.offset);
    Some((status.state, mark))
}

/// Behind the last words of a task, before the line that may end it, and the line end that is usual there.
pub(super) fn behind(text: &Text<'_>, draft: &Draft<'_, '_>) -> (usize, &'static str) {
    let last = draft.body.iter().rposition(|line| !line.raw.trim().is_empty() && !is_rule(line.raw.trim()));
    let heading_end = || {
        let start = text.offset(usize::try_from(draft.line).unwrap_or(usize::MAX), 1);
        let rest = text.body.get(start..).unwrap_or_default();
        start + rest.find(['\r', '\n']).unwrap_or(rest.len())
    };
    let at = last.map_or_else(heading_end, |at| draft.body[at].offset + draft.body[at].raw.len());
    (at, if text.body.get(at..).is_some_and(|rest| rest.starts_with('\r')) { "\r\n" } else { "\n" })
}

/// `---`
pub(super) fn is_rule(line: &str) -> bool {
    line.len() >= 3 && line.chars().all(|c| matches!(c, '-' | '*' | '_'))
}

/// The place for a Status line behind the text of a task that has none.
fn missing_line(text: &Text<'_>, draft: &Draft<'_, '_>, like: Option<&str>) -> Mark {
    let (at, line_end) = behind(text, draft);
    Mark {
        slot: Slot::NoLine,
        offset: text.base + at,
        now: String::new(),
        done: format!("{line_end}{line_end}{}", status::whole_line(like)),
        open: "",
        is_done: false,
    }
}

fn task(draft: &Draft<'_, '_>, state: WorkState) -> Task {
    Task { state, line: Some(draft.line), ..Task::new(draft.id.as_str(), draft.text.as_str()) }
}

/// What the group says of itself, then what stands below its tasks.
fn description(above: &[&Line<'_>], drafts: &[Draft<'_, '_>]) -> String {
    let words = |lines: &[&Line<'_>]| {
        let lines = lines.iter().filter(|line| line.kind != Kind::Comment && line.raw.trim() != "---");
        let mut lines: Vec<&str> = lines.map(|line| line.raw.trim_end()).collect();
        lines.dedup_by(|a, b| a.is_empty() && b.is_empty());
        lines.join("\n").trim().to_owned()
    };
    let below = drafts.iter().map(|draft| (draft, words(&draft.body))).filter(|(_, words)| !words.is_empty());
    let below = below.map(|(draft, words)| format!("To {}:\n{words}", draft.id));
    let above = Some(words(above)).filter(|words| !words.is_empty());
    above.into_iter().chain(below).collect::<Vec<_>>().join("\n\n")
}

/// A command as a check.
pub(super) fn shell(command: &str, timeout: Option<Duration>) -> Check {
    Check::Shell {
        name: None,
        command: command.to_owned(),
        cwd: None,
        expect_output_contains: Vec::new(),
        expect_files_glob: Vec::new(),
        timeout,
    }
}
