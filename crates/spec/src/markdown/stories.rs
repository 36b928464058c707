//! Stories from headings and boxes: ids, titles, states and marks, the same in every Markdown format.

use std::collections::HashMap;
use std::fmt::Write as _;

use ralphloop_core::ids::{StoryId, TaskId};
use ralphloop_core::plan::{Story, StoryKind, Task, WorkState};

use crate::document::{ItemMarks, Mark, Slot, StoryMarks};
use crate::error::{Code, Diagnostic, ErrorClass, SpecError};
use crate::label;
use crate::markdown::outline::{Item, Outline, Section};
use crate::text::Text;

/// The stories of a file, with their marks in the same order.
#[derive(Debug)]
pub(crate) struct Stories {
    pub list: Vec<Story>,
    pub marks: Vec<StoryMarks>,
    pub warnings: Vec<Diagnostic>,
}

/// What the text of a box says.
#[derive(Debug, Default)]
pub(crate) struct TaskText {
    /// The number or key at its start.
    pub id: Option<String>,
    /// The rest.
    pub text: String,
    pub tags: Vec<String>,
    pub deps: Vec<TaskId>,
    pub optional: bool,
    /// A template left something to be filled in.
    pub placeholder: bool,
}

/// How a format writes its boxes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grammar {
    /// The letter for a file that has not ticked anything yet.
    pub usual_tick: char,
    /// Takes the text of a box apart.
    pub task: fn(&str) -> TaskText,
}

/// Boxes with an id and a text.
pub(crate) const PLAIN: Grammar = Grammar { usual_tick: 'x', task: plain_task };

fn plain_task(text: &str) -> TaskText {
    match label::task(text) {
        Some(labelled) => TaskText { id: Some(labelled.id), text: labelled.text, ..TaskText::default() },
        None => TaskText { text: text.to_owned(), ..TaskText::default() },
    }
}

/// The letter that ticks a box: the one that the file uses more.
pub(crate) fn tick(outline: &Outline, usual: char) -> char {
    match outline.ticks {
        [0, 0] => usual,
        [small, large] if large > small => 'X',
        _ => 'x',
    }
}

/// Every heading that directly owns a box is a story.
pub(crate) fn stories(text: &Text<'_>, outline: &Outline, grammar: Grammar) -> Result<Stories, SpecError> {
    let mut builder = Builder {
        text,
        read_task: grammar.task,
        tick: tick(outline, grammar.usual_tick).to_string(),
        story_ids: HashMap::new(),
        task_ids: HashMap::new(),
        out: Stories { list: Vec::new(), marks: Vec::new(), warnings: Vec::new() },
    };
    for (code, line) in &outline.notes {
        builder.warn(*code, *line, note(*code));
    }
    for section in outline.sections.iter().filter(|section| !section.items.is_empty()) {
        builder.take(section);
    }
    if builder.out.list.is_empty() {
        return Err(no_tasks(text.file, outline.hidden_box));
    }
    Ok(builder.out)
}

pub(crate) fn no_tasks(file: &str, hidden_box: Option<u32>) -> SpecError {
    let error = SpecError::new(ErrorClass::NoTasks, file, "there is no task in this file");
    match hidden_box {
        Some(line) => error
            .at_line(line)
            .with_help("all boxes stand in code fences, comments or quotations, which are not read; move them out"),
        None => error.with_help("write tasks as boxes: - [ ] 1.1 What is to be done"),
    }
}

struct Builder<'t, 'a> {
    text: &'t Text<'a>,
    read_task: fn(&str) -> TaskText,
    tick: String,
    story_ids: HashMap<String, usize>,
    task_ids: HashMap<String, usize>,
    out: Stories,
}

impl Builder<'_, '_> {
    fn take(&mut self, section: &Section) {
        let position = self.out.list.len() + 1;
        let heading = section.heading.as_ref();
        let labelled = heading.and_then(|heading| label::heading(&heading.text));
        let line = heading.map(|h| h.line).or_else(|| section.items.first().map(|item| item.line));
        let title = match (&labelled, heading) {
            (Some(labelled), _) => labelled.text.clone(),
            (None, Some(heading)) => heading.text.clone(),
            (None, None) => String::new(),
        };
        let wanted = labelled.as_ref().map_or_else(|| format!("s{position}"), |labelled| labelled.id.clone());
        let id = unused(&mut self.story_ids, &wanted);
        if id != wanted
            && let Some(line) = line
        {
            self.warn(Code::DuplicateId, line, format!("there is a story {wanted} above; this one is called {id}"));
        }

        let (mut tasks, mut marks) = (Vec::new(), Vec::new());
        for item in &section.items {
            let parent = item.parent.and_then(|parent| tasks.get(parent)).map(|parent: &Task| parent.id.clone());
            let (task, mark) = self.task(item, &id, tasks.len() + 1, parent);
            tasks.push(task);
            marks.push(mark);
        }
        self.warn_of_open_children(section);
        let declared = labelled.is_some() && id == wanted;
        self.out.marks.push(StoryMarks { own: ItemMarks { marks: Vec::new(), declared }, tasks: marks });
        self.out.list.push(Story {
            id: StoryId(id),
            title,
            description: description(section, &tasks),
            kind: StoryKind::Story,
            state: state_of(&tasks),
            optional: false,
            priority: None,
            complexity: None,
            parent: None,
            deps: Vec::new(),
            group: None,
            tags: Vec::new(),
            refs: Vec::new(),
            file: None,
            line,
            tasks,
            criteria: Vec::new(),
            checks: Vec::new(),
            needs_no_change: false,
            notes: String::new(),
        });
    }

    fn task(&mut self, item: &Item, story: &str, position: usize, parent: Option<TaskId>) -> (Task, ItemMarks) {
        let read = (self.read_task)(&item.text);
        let wanted = read.id.clone().unwrap_or_else(|| format!("{story}#{position}"));
        let id = unused(&mut self.task_ids, &wanted);
        if id != wanted {
            self.warn(Code::DuplicateId, item.line, format!("there is a task {wanted} above; this one is called {id}"));
        }
        if item.text.is_empty() {
            self.warn(Code::EmptyTask, item.line, "this box has no text".into());
        }
        if read.placeholder {
            self.warn(Code::TemplatePlaceholder, item.line, "this id was never filled in; it is read as none".into());
        }
        let declared = read.id.is_some() && id == wanted;
        let task = Task {
            id: TaskId(id),
            text: read.text,
            state: item.state,
            optional: read.optional,
            parent,
            deps: read.deps,
            tags: read.tags,
            refs: Vec::new(),
            line: Some(item.line),
        };
        (task, ItemMarks { marks: vec![box_mark(self.text, item, &self.tick)], declared })
    }

    fn warn_of_open_children(&mut self, section: &Section) {
        let mut first_open_below: HashMap<usize, &Item> = HashMap::new();
        for child in section.items.iter().filter(|child| child.state != WorkState::Done) {
            if let Some(parent) = child.parent {
                first_open_below.entry(parent).or_insert(child);
            }
        }
        for (index, item) in section.items.iter().enumerate() {
            if item.state == WorkState::Done
                && let Some(child) = first_open_below.get(&index)
            {
                let message = format!("this box is ticked, but the one in line {} below it is open", child.line);
                self.warn(Code::ParentDoneChildOpen, item.line, message);
            }
        }
    }

    fn warn(&mut self, code: Code, line: u32, message: String) {
        self.out.warnings.push(Diagnostic::warning(code, self.text.file, Some(line), message));
    }
}

/// The mark of a box.
pub(crate) fn box_mark(text: &Text<'_>, item: &Item, tick: &str) -> Mark {
    Mark {
        slot: Slot::Box,
        offset: text.base + item.mark.start,
        now: text.body.get(item.mark.clone()).unwrap_or_default().to_owned(),
        done: tick.to_owned(),
        open: " ",
        is_done: item.state == WorkState::Done,
    }
}

/// Done with all its tasks, or with all that are required; doing as soon as one of them is begun.
pub(crate) fn state_of(tasks: &[Task]) -> WorkState {
    let all_optional = tasks.iter().all(|task| task.optional);
    let mut needed = tasks.iter().filter(|task| all_optional || !task.optional).peekable();
    if needed.peek().is_some() && needed.all(|task| task.state == WorkState::Done) {
        WorkState::Done
    } else if tasks.iter().any(|task| matches!(task.state, WorkState::Done | WorkState::Doing)) {
        WorkState::Doing
    } else {
        WorkState::Todo
    }
}

/// The id, or the id with the first free suffix `~2`, `~3` …; `used` counts how often each was wanted.
pub(crate) fn unused(used: &mut HashMap<String, usize>, wanted: &str) -> String {
    let mut count = used.get(wanted).copied().unwrap_or(0);
    loop {
        count += 1;
        let id = if count == 1 { wanted.to_owned() } else { format!("{wanted}~{count}") };
        if count == 1 || !used.contains_key(&id) {
            used.insert(wanted.to_owned(), count);
            used.entry(id.clone()).or_insert(1);
            return id;
        }
    }
}

/// The section's own text, then what stands below single tasks.
fn description(section: &Section, tasks: &[Task]) -> String {
    let mut out = section.prose.join("\n").trim().to_owned();
    for (item, task) in section.items.iter().zip(tasks) {
        let details = item.details.join("\n");
        let details = details.trim_matches('\n').trim_end();
        if !details.is_empty() {
            if !out.is_empty() {
                out.push_str("\n\n");
            }
            let _infallible = write!(out, "To {}:\n{details}", task.id);
        }
    }
    out
}

pub(crate) fn note(code: Code) -> String {
    match code {
        Code::MalformedCheckbox => "this box has blanks missing or to spare; it is read as a task".into(),
        Code::NonstandardMark => {
            "this mark is neither blank nor x; the task counts as open unless it is a check mark".into()
        }
        Code::CheckboxInFence => {
            "boxes inside a code fence are examples and not read as tasks; this is the first".into()
        }
        Code::CheckboxInComment => "boxes inside a comment are not read as tasks; this is the first".into(),
        Code::CheckboxInQuote => "boxes inside a quotation are not read as tasks; this is the first".into(),
        Code::UnclosedFence => "this code fence is never closed; it is read as text".into(),
        Code::UnclosedComment => "this comment is never closed; it is read as text".into(),
        other => other.as_str().replace('_', " "),
    }
}
