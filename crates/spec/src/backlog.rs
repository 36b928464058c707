//! Backlog.md: `backlog/tasks/<id> - <Title>.md`, where a file is a story: front matter, and criteria as boxes.

mod folder;
mod front;

use ralphloop_core::ids::TaskId;
use ralphloop_core::plan::{Context, Plan, Scheme, Story, Task, WorkId, WorkState};

pub(crate) use folder::{folder, natural};

use crate::backlog::front::Front;
use crate::document::{Document, ItemMarks, Mark, Reading, Slot, StoryMarks};
use crate::error::{Code, Diagnostic, ErrorClass, SpecError};
use crate::markdown::outline::{Heading, Item, Outline, heading_start, outline, without_closing_hashes};
use crate::markdown::scan::{Kind, scan};
use crate::markdown::stories::{self, box_mark, note, unused};
use crate::markdown::verification;
use crate::prompt;
use crate::tasks_yaml::marks::status_mark;
use crate::text::Text;
use crate::words::{self, Rank};
use crate::yaml::{Content, Node};

/// The word for done, where the file has none.
const DONE: &str = "Done";

/// The word for what is not begun.
const TO_DO: &str = "To Do";

/// The story of a task file, with its marks.
pub(crate) fn document(text: &Text<'_>) -> Result<Document, SpecError> {
    let front = front::read(text)?;
    let outline = outline(text);
    let mut warnings = Vec::new();
    let warn = |code, line, message: String| Diagnostic::warning(code, text.file, Some(line), message);
    if let Some(line) = front.unquoted_at {
        let message = "a bare @name is no YAML; it is read as if it stood in quotes".to_owned();
        warnings.push(warn(Code::UnquotedAt, line, message).with_help("write '@name'"));
    }
    let declared = front.root.first_word(&["id"]).map(str::to_owned);
    let id = declared.clone().unwrap_or_else(|| "s1".to_owned());
    let title = front.root.first_word(&["title"]).ok_or_else(|| {
        SpecError::new(ErrorClass::MissingField, text.file, format!("the task {id:?} has no title"))
            .at_line(front.root.line())
            .with_help("write title: … into the front matter")
    })?;
    let status = front.root.get("status");
    if let Some(status) = status.filter(|status| !status.is_one_line(text)) {
        return Err(goes_on_below(text, status, &id));
    }
    let status = status.and_then(Node::word);
    let state = status.map_or(WorkState::Todo, words::state);
    let criteria = Criteria::of(text, &outline, &id, front.end);
    warnings.extend(criteria.warnings);
    let open = criteria.tasks.iter().find(|task| task.state != WorkState::Done);
    if let (WorkState::Done, Some(open)) = (state, open) {
        let message = format!("the status is {}, but the criterion {} is open", status.unwrap_or_default(), open.id);
        warnings.push(warn(Code::ParentDoneChildOpen, 1, message));
    }
    let priority = match front.root.first_word(&["priority"]).map(|word| (word, words::rank(word))) {
        Some((_, Rank::Known(priority))) => Some(priority),
        Some((word, Rank::Unknown)) => {
            let message = format!("the priority {word:?} has no known meaning; it comes last");
            warnings.push(warn(Code::UnknownPriority, 1, message));
            None
        }
        _ => None,
    };
    let words = |keys: &[&str]| front.root.first(keys).map(Node::words).unwrap_or_default();
    let mut story = Story {
        description: description(text, front.end),
        state,
        priority,
        parent: front.root.first_word(&["parent_task_id", "parent"]).map(str::to_owned),
        deps: words(&["dependencies", "depends_on"]).into_iter().map(Into::into).collect(),
        group: front.root.first_word(&["milestone"]).map(str::to_owned),
        tags: words(&["labels"]),
        line: Some(1),
        tasks: criteria.tasks,
        notes: links(&front.root),
        ..Story::new(id, title)
    };
    story.checks = verification::checks(&story);
    let own = ItemMarks { marks: vec![own_mark(text, &front)], declared: declared.is_some() };
    let plan = Plan {
        context: Context { tool_prompt: tool_prompt(text.file), ..Context::default() },
        ..Plan::new(WorkId { scheme: Scheme::Backlog, id: text.file.to_owned() }, vec![story])
    };
    let marks = vec![StoryMarks { own, tasks: criteria.marks }];
    Ok(Document { reading: Reading::new(plan, None, warnings), marks })
}

fn tool_prompt(place: &str) -> String {
    format!(
        "This work is kept by Backlog.md in {place}, a file a task. The boxes below \"Acceptance Criteria\" and \
         \"Definition of Done\" in the task's file are what is listed as tasks here. Leave its status and its front matter \
         alone, do not move or rename the file, and do not call `backlog` to do so; the status is set for you.\n\n{}",
        prompt::boxes('x')
    )
}

/// What the front matter points at.
fn links(front: &Node) -> String {
    let line = |(key, name): (&str, &str)| {
        let words = front.get(key).map(Node::words).filter(|words| !words.is_empty())?;
        Some(format!("{name}: {}", words.join(", ")))
    };
    let known = [("references", "References"), ("documentation", "Documentation"), ("modified_files", "Files")];
    known.into_iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

/// A status of several lines is a list, or has mostly swallowed what stands below it, which a mark would take away.
fn goes_on_below(text: &Text<'_>, status: &Node, id: &str) -> SpecError {
    let (what, help) = match status.content {
        Content::Scalar { .. } => ("goes on over several lines".to_owned(), "close its quotes on the same line"),
        _ => (format!("is {}", status.kind()), "write one status behind it, as in `status: To Do`"),
    };
    let message = format!("the status of {id:?} {what}");
    SpecError::new(ErrorClass::WrongType, text.file, message).at_line(status.line()).with_help(help)
}

/// The status; where there is none, the place for it, in a line of its own at the end of the front matter.
fn own_mark(text: &Text<'_>, front: &Front) -> Mark {
    match front.root.entry("status") {
        Some((_, value)) if value.word().is_some() => Mark { open: TO_DO, ..status_mark(text, value, DONE) },
        Some((key, _)) => {
            let key = key.offset();
            let colon = text.body.get(key..).and_then(|rest| rest.find(':')).unwrap_or_default();
            insertion(text, key + colon + 1, format!(" {DONE}"))
        }
        None => {
            let line_end = if front.crlf { "\r\n" } else { "\n" };
            insertion(text, front.close, format!("status: {DONE}{line_end}"))
        }
    }
}

fn insertion(text: &Text<'_>, offset: usize, done: String) -> Mark {
    let offset = text.base + offset;
    Mark { slot: Slot::Flag, offset, now: String::new(), done, open: TO_DO, is_done: false }
}

/// The boxes below the two headings that count.
#[derive(Debug, Default)]
struct Criteria {
    tasks: Vec<Task>,
    marks: Vec<ItemMarks>,
    warnings: Vec<Diagnostic>,
}

/// A heading whose boxes count, and what stands between the task's id and their numbers.
fn prefix_of(heading: &str) -> Option<&'static str> {
    let words: Vec<String> = heading.split_whitespace().map(str::to_lowercase).collect();
    match words.join(" ").trim_end_matches(':') {
        "acceptance criteria" => Some("#"),
        "definition of done" => Some("#dod"),
        _ => None,
    }
}

impl Criteria {
    fn of(text: &Text<'_>, outline: &Outline, story: &str, front_end: u32) -> Self {
        let tick = stories::tick(outline, 'x').to_string();
        let mut out = Self::default();
        let mut used = std::collections::HashMap::new();
        let mut inside: Option<(usize, &'static str)> = None;
        let mut counted: [u32; 2] = [0; 2];
        let mut ranges: Vec<std::ops::Range<u32>> = Vec::new();
        let sections = outline.sections.iter().filter_map(|section| Some((section.heading.as_ref()?, section)));
        for (heading, section) in sections.filter(|(heading, _)| heading.line > front_end) {
            inside = Self::inside(inside, heading);
            close(&mut ranges, heading.line);
            let Some((_, prefix)) = inside else { continue };
            ranges.push(heading.line..u32::MAX);
            let count = &mut counted[usize::from(prefix != "#")];
            let first = out.tasks.len();
            for item in &section.items {
                *count += 1;
                let parent = item.parent.and_then(|at| out.tasks.get(first + at)).map(|task| task.id.clone());
                let (number, words) = numbered(&item.text);
                let wanted = format!("{story}{prefix}{}", number.unwrap_or(*count));
                let id = unused(&mut used, &wanted);
                let mut warn = |code, message: String| {
                    out.warnings.push(Diagnostic::warning(code, text.file, Some(item.line), message));
                };
                if id != wanted {
                    warn(Code::DuplicateId, format!("there is a {wanted} above; this one is called {id}"));
                }
                if words.is_empty() {
                    warn(Code::EmptyTask, "this box has no text".into());
                }
                let declared = number.is_some() && id == wanted;
                out.tasks.push(task(item, id, words, parent));
                out.marks.push(ItemMarks { marks: vec![box_mark(text, item, &tick)], declared });
            }
        }
        let inside = |line: u32| ranges.iter().any(|range| range.contains(&line));
        let notes = outline.notes.iter().filter(|(_, line)| inside(*line));
        let notes = notes.map(|(code, line)| Diagnostic::warning(*code, text.file, Some(*line), note(*code)));
        out.warnings.splice(0..0, notes);
        out
    }

    /// Where a heading leads: deeper headings stay in the section that they stand in.
    fn inside(now: Option<(usize, &'static str)>, heading: &Heading) -> Option<(usize, &'static str)> {
        let found = prefix_of(&heading.text).map(|prefix| (heading.level, prefix));
        found.or(now.filter(|(level, _)| heading.level > *level))
    }
}

fn close(ranges: &mut [std::ops::Range<u32>], line: u32) {
    if let Some(range) = ranges.last_mut().filter(|range| range.end == u32::MAX) {
        range.end = line;
    }
}

fn task(item: &Item, id: String, text: &str, parent: Option<TaskId>) -> Task {
    Task { state: item.state, parent, line: Some(item.line), ..Task::new(id, text) }
}

/// `#2 Refuses bad magnitudes`.
fn numbered(text: &str) -> (Option<u32>, &str) {
    let number = text.strip_prefix('#').and_then(|rest| {
        let (digits, words) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        Some((digits.trim_end_matches(['.', ':', ')']).parse().ok()?, words.trim_start()))
    });
    number.map_or((None, text), |(number, words)| (Some(number), words))
}

/// The task's text but for its criteria and the tool's own comments.
fn description(text: &Text<'_>, front_end: u32) -> String {
    let mut out: Vec<&str> = Vec::new();
    let mut inside = None;
    for line in scan(text).lines.iter().filter(|line| line.number > front_end && line.kind != Kind::Comment) {
        let heading = (line.kind == Kind::Text).then(|| heading_start(line.raw)).flatten();
        if let Some((level, start)) = heading {
            let heading = without_closing_hashes(&line.clean(start)).to_owned();
            let heading = Heading { line: line.number, level, text: heading };
            inside = Criteria::inside(inside, &heading);
            if heading.text.eq_ignore_ascii_case("description") {
                continue;
            }
        }
        if inside.is_none() && !(line.raw.trim().is_empty() && out.last().is_none_or(|last| last.is_empty())) {
            out.push(line.raw.trim_end());
        }
    }
    out.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::apply;
    use crate::mark::{mark_done, tick_story};

    fn read(source: &str) -> Reading {
        document(&Text::decode("t", source.as_bytes()).unwrap_or_else(|e| panic!("{e}")))
            .unwrap_or_else(|e| panic!("{e}"))
            .reading
    }

    fn marked(source: &str, id: &str) -> String {
        let edits = mark_done(Scheme::Backlog, source.as_bytes(), id).unwrap_or_else(|e| panic!("{e}"));
        String::from_utf8(apply(source.as_bytes(), &edits).unwrap()).unwrap()
    }

    #[test]
    fn landing_sets_the_status_and_ticks_every_criterion() {
        let source = "---\nid: task-1\ntitle: A\nstatus: In Progress\n---\n## Acceptance Criteria\n- [ ] #1 a\n\n\
                      ## Notes\n- [ ] note\n\n## Definition of Done\n- [ ] #1 b\n";
        let edits = tick_story(Scheme::Backlog, source.as_bytes(), &"task-1".into()).unwrap();
        let out = String::from_utf8(apply(source.as_bytes(), &edits).unwrap()).unwrap();
        assert_eq!(
            out,
            "---\nid: task-1\ntitle: A\nstatus: Done\n---\n## Acceptance Criteria\n- [x] #1 a\n\n\
             ## Notes\n- [ ] note\n\n## Definition of Done\n- [x] #1 b\n"
        );
    }

    #[test]
    fn a_status_that_is_not_there_is_written() {
        assert_eq!(marked("---\nid: a-1\ntitle: A\n---\n", "a-1"), "---\nid: a-1\ntitle: A\nstatus: Done\n---\n");
        assert_eq!(
            marked("---\r\nid: a-1\r\nstatus:\r\ntitle: A\r\n---\r\n", "a-1"),
            "---\r\nid: a-1\r\nstatus: Done\r\ntitle: A\r\n---\r\n"
        );
    }

    #[test]
    fn a_status_whose_quotes_are_not_closed_is_refused_at_its_line() {
        let source = "---\nid: a-1\ntitle: A\nstatus: \"To Do\nlabels: [x]\nnote: b\"\n---\n";
        let error = mark_done(Scheme::Backlog, source.as_bytes(), "a-1").unwrap_err().to_string();
        assert!(error.contains("several lines") && error.contains(":4"), "{error}");
        let source = "---\nid: a-1\ntitle: A\nstatus:\n  - To Do\n  - Done\n---\n";
        let error = mark_done(Scheme::Backlog, source.as_bytes(), "a-1").unwrap_err().to_string();
        assert!(error.contains("is a list"), "{error}");
    }

    #[test]
    fn criteria_below_deeper_headings_count_and_keep_their_numbers() {
        let reading = read(
            "---\nid: T\ntitle: A\n---\n## Acceptance Criteria\n### One\n- [ ] #3 c\n### Two\n- [x] d\n## Plan\n- [ ] e\n",
        );
        let ids: Vec<_> = reading.plan.stories[0].tasks.iter().map(|task| task.id.as_str()).collect();
        assert_eq!(ids, ["T#3", "T#2"]);
        assert_eq!(reading.plan.stories[0].description, "## Plan\n- [ ] e");
    }

    #[test]
    fn names_with_a_bare_at_are_read_wherever_they_stand() {
        let reading = read("---\nid: T\ntitle: A\nassignee: [@a, '@b', @c]\nreporter:\n  - @d\nlabels: [x]\n---\n");
        assert_eq!(
            reading.warnings.iter().map(|w| (w.code.as_str(), w.line)).collect::<Vec<_>>(),
            [("unquoted_at", Some(4))]
        );
        assert_eq!(reading.plan.stories[0].tags, ["x"]);
    }
}
