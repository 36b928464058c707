//! `tasks.md` of Kiro: a numbered box is a story with a box of its own, and numbers below it are its tasks.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use ralphloop_core::ids::TaskId;
use ralphloop_core::plan::{Context, Plan, Scheme, Story, Task, WorkId, WorkState};

use crate::companions::{self, folder_name};
use crate::document::{Document, ItemMarks, Reading, StoryMarks};
use crate::error::{Code, Diagnostic, SpecError};
use crate::label;
use crate::markdown::outline::{Item, Outline, outline};
use crate::markdown::stories::{self, Grammar, PLAIN, Stories, TaskText, box_mark, note, state_of, unused};
use crate::markdown::verification;
use crate::prompt;
use crate::source::SpecText;
use crate::text::Text;

/// For files whose boxes carry no numbers.
const GRAMMAR: Grammar = Grammar { task: task_text, ..PLAIN };

/// Words before the numbers of requirements.
const REQUIREMENT_WORDS: &[&str] = &["requirement", "requirements", "requisitos", "需求", "要件", "要求"];

/// The stories of `tasks.md`.
pub(crate) fn document(text: &Text<'_>) -> Result<Document, SpecError> {
    let outline = outline(text);
    let numbered = outline.sections.iter().flat_map(|s| &s.items).any(|item| task_text(&item.text).id.is_some());
    let Stories { list: mut stories, marks, warnings } =
        if numbered { by_number(text, &outline) } else { stories::stories(text, &outline, GRAMMAR)? };
    for story in &mut stories {
        story.checks = verification::checks(story);
    }
    let plan = Plan {
        title: outline.title.clone(),
        context: Context { tool_prompt: tool_prompt(text.file), ..Context::default() },
        ..Plan::new(WorkId { scheme: Scheme::Kiro, id: folder_name(text.file).to_owned() }, stories)
    };
    Ok(Document { reading: Reading::new(plan, outline.title, warnings), marks })
}

/// The stories with the requirements and the design.
pub(crate) fn read(text: &Text<'_>, beside: &[SpecText]) -> Result<Reading, SpecError> {
    let mut reading = document(text)?.reading;
    companions::take(&mut reading, beside, "requirements.md", "design.md");
    Ok(reading)
}

fn tool_prompt(file: &str) -> String {
    format!(
        "This work is a spec of Kiro. Its tasks are in {file}: a numbered box is a story, the numbers below it are its \
         tasks, a star behind a box means optional. The requirements (requirements.md), to which the numbers behind \
         `_Requirements:` belong, and the design (design.md) stand beside it.\n\n{}",
        prompt::boxes('x')
    )
}

/// `* 1.2 (P) text`: the star means optional, `(P)` that it may be done in parallel.
fn task_text(text: &str) -> TaskText {
    let starred = text.trim_start_matches('\\').strip_prefix('*');
    let starred = starred.filter(|rest| rest.starts_with(|c: char| c.is_whitespace() || c.is_ascii_digit()));
    let optional = starred.is_some();
    let text = starred.unwrap_or(text).trim_start();
    let labelled = label::task(text);
    let (id, text) = match labelled {
        Some(labelled) => (Some(labelled.id), labelled.text),
        None => (None, text.to_owned()),
    };
    match text.strip_prefix("(P)").filter(|rest| rest.starts_with(char::is_whitespace)) {
        Some(rest) => {
            TaskText { id, text: rest.trim_start().to_owned(), tags: vec!["P".into()], optional, ..TaskText::default() }
        }
        None => TaskText { id, text, optional, ..TaskText::default() },
    }
}

/// The number decides what a box is part of, not the indent; headings only group.
fn by_number(text: &Text<'_>, outline: &Outline) -> Stories {
    let mut reader = Reader {
        text,
        tick: stories::tick(outline, PLAIN.usual_tick).to_string(),
        story_ids: HashMap::new(),
        task_ids: HashMap::new(),
        drafts: Vec::new(),
        numbers: HashMap::new(),
        warnings: Vec::new(),
    };
    for (code, line) in &outline.notes {
        reader.warn(*code, *line, note(*code));
    }
    for section in &outline.sections {
        let mut places = Vec::new();
        for item in &section.items {
            let above = item.parent.and_then(|parent| places.get(parent)).copied();
            places.push(reader.take(item, section.heading.as_ref().map(|heading| heading.text.as_str()), above));
        }
    }
    reader.finish()
}

/// Where a box went: a story, and a task of it unless it is the story's own.
type Place = (usize, Option<usize>);

struct Draft {
    story: Story,
    /// The ids of its tasks.
    known: HashSet<String>,
    own: WorkState,
    marks: StoryMarks,
}

struct Reader<'t, 'a> {
    text: &'t Text<'a>,
    tick: String,
    story_ids: HashMap<String, usize>,
    task_ids: HashMap<String, usize>,
    drafts: Vec<Draft>,
    /// The last story of each number.
    numbers: HashMap<String, usize>,
    warnings: Vec<Diagnostic>,
}

impl Reader<'_, '_> {
    fn take(&mut self, item: &Item, heading: Option<&str>, above: Option<Place>) -> Place {
        let read = task_text(&item.text);
        if read.text.is_empty() {
            self.warn(Code::EmptyTask, item.line, "this box has no text".into());
        }
        let story = match &read.id {
            Some(number) => {
                let above = number.match_indices('.').filter_map(|(at, _)| self.numbers.get(&number[..at]).copied());
                above.max()
            }
            None => above.map(|(story, _)| story),
        };
        match story {
            Some(story) => (story, Some(self.task(story, item, read, above))),
            None => (self.story(item, read, heading), None),
        }
    }

    fn story(&mut self, item: &Item, read: TaskText, heading: Option<&str>) -> usize {
        let position = self.drafts.len() + 1;
        let wanted = read.id.clone().unwrap_or_else(|| format!("s{position}"));
        let id = unused(&mut self.story_ids, &wanted);
        if id != wanted {
            let message = format!("there is a story {wanted} above; this one is called {id}");
            self.warn(Code::DuplicateId, item.line, message);
        }
        let declared = read.id.is_some() && id == wanted;
        let own = ItemMarks { marks: vec![box_mark(self.text, item, &self.tick)], declared };
        let story = Story {
            description: details(item),
            state: item.state,
            optional: read.optional,
            group: heading.map(str::to_owned),
            tags: read.tags,
            refs: refs(item),
            line: Some(item.line),
            ..Story::new(id, read.text)
        };
        let marks = StoryMarks { own, tasks: Vec::new() };
        if let Some(number) = read.id {
            self.numbers.insert(number, position - 1);
        }
        self.drafts.push(Draft { story, known: HashSet::new(), own: item.state, marks });
        position - 1
    }

    fn task(&mut self, story: usize, item: &Item, read: TaskText, above: Option<Place>) -> usize {
        let position = self.drafts[story].story.tasks.len() + 1;
        let wanted = read.id.clone().unwrap_or_else(|| format!("{}#{position}", self.drafts[story].story.id));
        let id = unused(&mut self.task_ids, &wanted);
        if id != wanted {
            let message = format!("there is a task {wanted} above; this one is called {id}");
            self.warn(Code::DuplicateId, item.line, message);
        }
        let declared = read.id.is_some() && id == wanted;
        let mark = box_mark(self.text, item, &self.tick);
        let draft = &mut self.drafts[story];
        let by_number = read.id.as_deref().and_then(|number| number.rsplit_once('.')).map(|(parent, _)| parent);
        let by_indent = above.filter(|(other, _)| *other == story && read.id.is_none()).and_then(|(_, task)| task);
        let parent = match by_number {
            Some(number) => draft.known.contains(number).then(|| TaskId(number.to_owned())),
            None => by_indent.and_then(|task| draft.story.tasks.get(task)).map(|task| task.id.clone()),
        };
        draft.known.insert(id.clone());
        let task = Task {
            state: item.state,
            optional: read.optional,
            parent,
            tags: read.tags,
            refs: refs(item),
            line: Some(item.line),
            ..Task::new(id, read.text)
        };
        let details = details(item);
        if !details.is_empty() {
            let lead = if draft.story.description.is_empty() { "" } else { "\n\n" };
            let _infallible = write!(draft.story.description, "{lead}To {}:\n{details}", task.id);
        }
        draft.story.tasks.push(task);
        draft.marks.tasks.push(ItemMarks { marks: vec![mark], declared });
        position - 1
    }

    fn finish(mut self) -> Stories {
        let mut out = Stories { list: Vec::new(), marks: Vec::new(), warnings: Vec::new() };
        for draft in std::mem::take(&mut self.drafts) {
            let Draft { mut story, own, marks, .. } = draft;
            let open = |task: &&Task| !task.optional && task.state != WorkState::Done;
            let first_open = story.tasks.iter().find(open).map(|task| task.id.clone());
            let begun = matches!(state_of(&story.tasks), WorkState::Done | WorkState::Doing);
            story.state = match (own, &first_open) {
                (WorkState::Done, None) => WorkState::Done,
                (WorkState::Done, Some(_)) => WorkState::Doing,
                (_, _) if begun => WorkState::Doing,
                (own, _) => own,
            };
            if let (WorkState::Done, Some(open), Some(line)) = (own, first_open, story.line) {
                let message = format!("this box is ticked, but the task {open} below it is open");
                self.warn(Code::ParentDoneChildOpen, line, message);
            }
            let mut first_open_below: HashMap<&TaskId, &Task> = HashMap::new();
            for child in story.tasks.iter().filter(open) {
                if let Some(parent) = &child.parent {
                    first_open_below.entry(parent).or_insert(child);
                }
            }
            for task in story.tasks.iter().filter(|task| task.state == WorkState::Done) {
                if let (Some(child), Some(line)) = (first_open_below.get(&task.id), task.line) {
                    let message = format!("this box is ticked, but the task {} below it is open", child.id);
                    self.warn(Code::ParentDoneChildOpen, line, message);
                }
            }
            out.list.push(story);
            out.marks.push(marks);
        }
        out.warnings = self.warnings;
        out
    }

    fn warn(&mut self, code: Code, line: u32, message: String) {
        self.warnings.push(Diagnostic::warning(code, self.text.file, Some(line), message));
    }
}

fn details(item: &Item) -> String {
    let mut lines: Vec<&str> = item.details.iter().map(String::as_str).collect();
    // Editors leave runs of blank lines inside a task.
    lines.dedup_by(|a, b| a.trim().is_empty() && b.trim().is_empty());
    lines.join("\n").trim_matches('\n').trim_end().to_owned()
}

/// The numbers behind `_Requirements:`, in any of its languages, on a line of its own or at the end of the text.
fn refs(item: &Item) -> Vec<String> {
    let at_end = item.text.rsplit_once(" _").map(|(_, label)| label).filter(|label| label.ends_with('_'));
    let mut found: Vec<String> = Vec::new();
    for line in at_end.into_iter().chain(item.details.iter().map(String::as_str)) {
        let line =
            line.trim_start_matches(['-', '*', '+', '_', ' ', '\t']).trim_end_matches(['_', '*', ' ', '\t', '\r']);
        let Some((word, list)) = line.split_once([':', '：']) else { continue };
        if !REQUIREMENT_WORDS.contains(&word.trim().to_lowercase().as_str()) {
            continue;
        }
        for part in list.split([',', '，', '、', ';']) {
            let words = part.split_whitespace().map(|word| word.trim_matches(['_', '*', '`', '(', ')']));
            for number in words.filter(|word| is_requirement(word)).take(1) {
                if !found.iter().any(|known| known == number) {
                    found.push(number.to_owned());
                }
            }
        }
    }
    found
}

/// `2.3`, `R2`, `NFR-1`.
fn is_requirement(word: &str) -> bool {
    let key = word.trim_start_matches(|c: char| c.is_ascii_uppercase()).trim_start_matches('-');
    key.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(source: &str) -> Reading {
        document(&Text::decode("t", source.as_bytes()).unwrap_or_else(|e| panic!("{e}")))
            .unwrap_or_else(|e| panic!("{e}"))
            .reading
    }

    #[test]
    fn boxes_without_a_number_belong_to_what_they_are_indented_under() {
        let stories = read_all("- [ ] 1. A\n  - [ ] loose\n    - [ ] deeper\n- [ ] Alone\n").plan.stories;
        let ids: Vec<_> = stories.iter().map(|story| story.id.as_str()).collect();
        assert_eq!(ids, ["1", "s2"]);
        let tasks: Vec<_> =
            stories[0].tasks.iter().map(|t| (t.id.as_str(), t.parent.as_ref().map(TaskId::as_str))).collect();
        assert_eq!(tasks, [("1#1", None), ("1#2", Some("1#1"))]);
    }

    #[test]
    fn requirements_are_found_in_every_way_of_writing_them() {
        let story = &read_all(
            "- [ ] 1. A\n  - _Requirements: 1.1, NFR-2, all_\n  - *Requirements: 1.2 (part)*\n  - _Requirements:_ 1.3\n\
             - [ ] 1.1 b _Requirements: 1.4_\n- [ ]*1.2 c\n  _Requirements: Requirement 1.5_\n",
        )
        .plan
        .stories[0];
        assert_eq!(story.refs, ["1.1", "NFR-2", "1.2", "1.3"]);
        let tasks: Vec<_> = story.tasks.iter().map(|t| (t.id.as_str(), t.optional, t.refs.as_slice())).collect();
        assert_eq!(tasks, [("1.1", false, &["1.4".to_owned()][..]), ("1.2", true, &["1.5".to_owned()][..])]);
    }

    #[test]
    fn a_ticked_story_over_an_open_optional_task_is_done() {
        let reading = read_all("- [x] 1. A\n  - [ ]* 1.1 b\n  - [x] 1.2 c\n    - [ ] 1.2.1 d\n");
        assert_eq!(reading.plan.stories[0].state, WorkState::Doing);
        assert_eq!(reading.warnings.iter().map(|w| w.line).collect::<Vec<_>>(), [Some(1), Some(3)]);
        assert!(read_all("- [x] 1. A\n  - [ ]* 1.1 b\n").all_done);
    }
}
