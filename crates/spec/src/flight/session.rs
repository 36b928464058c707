//! Session logs, `docs/session_logs/<date>_session.md`: the items of *Next Steps* are open work, and boxes anywhere are.

use ralphloop_core::ids::{StoryId, TaskId};
use ralphloop_core::plan::{Story, Task, WorkState};

use super::status::field;
use crate::document::{ItemMarks, StoryMarks};
use crate::error::{Code, Diagnostic, SpecError};
use crate::markdown::boxes::{self, BoxLine};
use crate::markdown::outline::{Outline, Section, heading_start, outline, without_closing_hashes};
use crate::markdown::scan::{Kind, Line, scan};
use crate::markdown::stories::{self, PLAIN, Stories, box_mark, no_tasks, state_of};
use crate::text::Text;

/// An item of *Next Steps*.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// Its line, from 1.
    pub line: u32,
    /// Its text with the lines that go on with it; Markdown kept.
    pub text: String,
    /// Lines below it that are no item of their own.
    pub details: Vec<String>,
    /// How far its box says it is; none for a plain item.
    pub state: Option<WorkState>,
    /// A box inside another one: the index of that one.
    pub parent: Option<usize>,
}

/// *Next Steps* of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NextSteps {
    /// The line of the heading.
    pub line: u32,
    pub items: Vec<Step>,
}

fn is_next_steps(heading: &str) -> bool {
    let words = heading.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    words.split_whitespace().eq(["next", "steps"])
}

/// Whether the file is a session log.
pub(super) fn is_log(outline: &Outline) -> bool {
    let title = outline.title.as_deref().unwrap_or_default().to_lowercase();
    let headings = outline.sections.iter().filter_map(|section| section.heading.as_ref());
    title.starts_with("session") || headings.filter(|heading| heading.level > 1).any(|h| is_next_steps(&h.text))
}

/// The items below the heading, sub-headings included. Words such as "None" are none.
pub(super) fn next_steps(text: &Text<'_>) -> Option<NextSteps> {
    let lines = scan(text).lines;
    let heading = |line: &Line<'_>| {
        let (level, start) = (line.kind == Kind::Text).then(|| heading_start(&line.masked())).flatten()?;
        Some((level, without_closing_hashes(&line.clean(start)).to_owned()))
    };
    let at =
        lines.iter().position(|line| heading(line).is_some_and(|(level, text)| level > 1 && is_next_steps(&text)))?;
    let (level, _) = heading(&lines[at])?;
    let mut reader = StepReader::default();
    for line in &lines[at + 1..] {
        match heading(line) {
            Some((below, _)) if below <= level => break,
            Some(_) => reader.nest.clear(),
            None => reader.take(line),
        }
    }
    let mut items = reader.items;
    if items.iter().all(|step| step.state.is_none() && tells_of_nothing(&step.text)) {
        items.clear();
    } else if items.iter().all(|step| step.parent.is_none()) {
        items.retain(|step| step.state.is_some() || !step.details.is_empty() || !is_none(&step.text));
    }
    Some(NextSteps { line: lines[at].number, items })
}

/// "None", "N/A".
fn is_none(text: &str) -> bool {
    let words = text.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    matches!(words.as_str(), "none" | "n/a" | "na" | "nothing")
}

/// "None at this time", "Nothing planned for the next session".
fn tells_of_nothing(text: &str) -> bool {
    let words = text.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let words: Vec<&str> = words.split_whitespace().collect();
    match words.as_slice() {
        ["nothing", "planned" | "pending" | "left" | "remaining" | "further" | "else" | "more" | "open", ..] => true,
        [first, ..] => matches!(*first, "none" | "n/a" | "na" | "nothing") && words.len() <= 4,
        [] => false,
    }
}

/// `Timeout: 120s`, `Retry: 2`, `On-fail: pause`, `Tasks: 2.1.1`.
fn is_metadata(line: &str) -> bool {
    const NAMES: &[&str] = &["timeout", "retry", "retries", "on-fail", "tasks"];
    field(line).is_some_and(|found| NAMES.iter().any(|name| found.is(name)))
}

#[derive(Default)]
struct StepReader {
    items: Vec<Step>,
    /// Columns of the list items that are open; the index if it is an item of ours.
    nest: Vec<(usize, Option<usize>)>,
    /// The next line may go on with the text of the last item.
    continues: bool,
}

impl StepReader {
    fn take(&mut self, line: &Line<'_>) {
        if matches!(line.kind, Kind::FrontMatter | Kind::Comment) {
            return;
        }
        let masked = line.masked();
        let (indent, start) = boxes::indentation(&masked);
        let blank = masked.trim().is_empty();
        let marker = boxes::list_marker(&masked[start..])
            .filter(|marker| line.kind == Kind::Text && masked[start + marker..].starts_with([' ', '\t']));
        if let Some(found) = boxes::parse(&masked).filter(|_| line.kind == Kind::Text) {
            self.nest.retain(|(outer, _)| *outer < indent);
            self.box_item(line, &found);
        } else if let Some(marker) = marker {
            self.nest.retain(|(outer, _)| *outer < indent);
            if self.nest.is_empty() {
                self.push(line, line.clean(start + marker), None, None);
                self.nest.push((indent, Some(self.items.len() - 1)));
            } else {
                self.nest.push((indent, None));
                self.detail(line);
            }
        } else if self.continues && !blank && indent > 0 && line.kind == Kind::Text && !is_metadata(&masked) {
            if let Some(item) = self.items.last_mut() {
                item.text.push(' ');
                item.text.push_str(&line.clean(0));
            }
        } else {
            self.continues = false;
            if !blank && indent == 0 {
                self.nest.clear();
            } else if !self.nest.is_empty() {
                self.detail(line);
            }
        }
    }

    fn box_item(&mut self, line: &Line<'_>, found: &BoxLine) {
        let parent = self.nest.iter().rev().find_map(|(_, index)| *index);
        self.push(line, line.clean(found.text), Some(found.state), parent);
        self.nest.push((found.indent, Some(self.items.len() - 1)));
    }

    fn push(&mut self, line: &Line<'_>, text: String, state: Option<WorkState>, parent: Option<usize>) {
        self.items.push(Step { line: line.number, text, details: Vec::new(), state, parent });
        self.continues = true;
    }

    fn detail(&mut self, line: &Line<'_>) {
        self.continues = false;
        if let Some(item) = self.items.last_mut() {
            item.details.push(line.raw.trim_end().to_owned());
        }
    }
}

/// The log as it stands: a section with boxes is a story, and *Next Steps* is one whose plain items are open tasks.
pub(super) fn read(text: &Text<'_>) -> Result<Stories, SpecError> {
    let outline = outline(text);
    let next = next_steps(text).filter(|next| !next.items.is_empty());
    let begins = next.as_ref().map_or(u32::MAX, |next| next.line);
    let level_of = |line: u32| {
        let heading = outline.sections.iter().filter_map(|section| section.heading.as_ref());
        heading.into_iter().find(|heading| heading.line == line).map_or(2, |heading| heading.level)
    };
    let level = level_of(begins);
    let boxed = |section: &&Section| !section.items.is_empty();
    let line_of = |section: &Section| section.heading.as_ref().map_or(0, |heading| heading.line);
    // Headings below Next Steps are part of it.
    let end = outline
        .sections
        .iter()
        .filter_map(|section| section.heading.as_ref())
        .find(|heading| heading.line > begins && heading.level <= level)
        .map_or(u32::MAX, |heading| heading.line);
    let is_inside = |section: &&Section| (begins..end).contains(&line_of(section));
    let others = Outline {
        title: outline.title.clone(),
        sections: Vec::new(),
        notes: outline.notes.clone(),
        hidden_box: outline.hidden_box,
        ticks: outline.ticks,
    };
    let steps = next.map(|next| story(text, &outline, &next, begins..end));
    let wanted = |section: &&Section| boxed(section) && !(steps.is_some() && is_inside(section));
    let mut out = if outline.sections.iter().any(|section| wanted(&section)) {
        let sections = outline.sections.into_iter().filter(|section| wanted(&section)).collect();
        stories::stories(text, &Outline { sections, ..others }, PLAIN)?
    } else if steps.is_some() {
        let warnings = others
            .notes
            .iter()
            .map(|(code, line)| Diagnostic::warning(*code, text.file, Some(*line), stories::note(*code)));
        Stories { list: Vec::new(), marks: Vec::new(), warnings: warnings.collect() }
    } else {
        return Err(no_tasks(text.file, others.hidden_box).with_help("the session left no next steps"));
    };
    if let Some((story, marks)) = steps {
        let at = out.list.iter().position(|other| other.line > story.line).unwrap_or(out.list.len());
        out.list.insert(at, story);
        out.marks.insert(at, marks);
        renumber(&mut out);
    }
    Ok(out)
}

/// Ids that come from the position follow it.
fn renumber(stories: &mut Stories) {
    for (position, (story, marks)) in stories.list.iter_mut().zip(&mut stories.marks).enumerate() {
        if marks.own.declared {
            continue;
        }
        let old = std::mem::replace(&mut story.id, StoryId(format!("s{}", position + 1)));
        for task in &mut story.tasks {
            for id in std::iter::once(&mut task.id).chain(task.parent.as_mut()) {
                if let Some(rest) = id.0.strip_prefix(old.as_str()).filter(|rest| rest.starts_with('#')) {
                    *id = TaskId(format!("{}{rest}", story.id));
                }
            }
        }
    }
}

fn story(text: &Text<'_>, outline: &Outline, next: &NextSteps, lines: std::ops::Range<u32>) -> (Story, StoryMarks) {
    let tick = stories::tick(outline, PLAIN.usual_tick).to_string();
    let items = outline.sections.iter().flat_map(|section| &section.items).filter(|item| lines.contains(&item.line));
    let boxes: Vec<_> = items.collect();
    let (mut tasks, mut marks): (Vec<Task>, Vec<ItemMarks>) = (Vec::new(), Vec::new());
    for step in &next.items {
        let mark = boxes.iter().find(|item| item.line == step.line).map(|item| box_mark(text, item, &tick));
        let parent = step.parent.and_then(|at| tasks.get(at)).map(|task| task.id.clone());
        tasks.push(Task {
            id: TaskId(format!("s0#{}", tasks.len() + 1)),
            text: step.text.clone(),
            state: step.state.unwrap_or(WorkState::Todo),
            optional: false,
            parent,
            deps: Vec::new(),
            tags: Vec::new(),
            refs: Vec::new(),
            line: Some(step.line),
        });
        marks.push(ItemMarks { marks: mark.into_iter().collect(), declared: false });
    }
    let details = next.items.iter().zip(&tasks).filter(|(step, _)| !step.details.is_empty());
    let details = details.map(|(step, task)| format!("To \"{}\":\n{}", task.text, step.details.join("\n")));
    let story = Story {
        description: details.collect::<Vec<_>>().join("\n\n"),
        state: state_of(&tasks),
        line: Some(next.line),
        tasks,
        ..Story::new("s0", "Next Steps")
    };
    (story, StoryMarks { own: ItemMarks::default(), tasks: marks })
}

/// A tag that cannot be understood.
pub(super) fn unknown_tag(text: &Text<'_>, line: u32, message: String) -> Diagnostic {
    Diagnostic::warning(Code::MalformedTag, text.file, Some(line), message)
}
