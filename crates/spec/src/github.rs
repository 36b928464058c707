//! Issues as `gh issue list --json …` or the REST interface answer them. They are read, never written.

use jsonc_parser::ast::{Object, Value};
use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Context, Plan, Priority, Scheme, Story, Task, WorkId, WorkState};

use crate::document::{Document, ItemMarks, Reading, StoryMarks};
use crate::error::{ErrorClass, SpecError};
use crate::json::{self, Flavour};
use crate::markdown::boxes;
use crate::markdown::outline::outline;
use crate::markdown::scan::{Kind, scan};
use crate::text::Text;
use crate::words::{self, Rank};
use crate::{graph, prd};

const TOOL_PROMPT: &str = "This story is an issue on GitHub; its text is given above. Do not close it and do not commit: \
    the tool that called you runs the checks and commits what has passed.\n";

/// The issues of the list; pull requests are none.
pub(crate) fn document(text: &Text<'_>) -> Result<Document, SpecError> {
    let root = json::parse(text, Flavour::Strict)?;
    let Value::Array(list) = &root else {
        let message = format!("the file holds {}, not a list of issues", json::kind_of(&root));
        return Err(SpecError::new(ErrorClass::UnrecognisedShape, text.file, message)
            .with_help("write it with gh issue list --json number,title,body,state,labels,milestone"));
    };
    let (mut stories, mut marks) = (Vec::new(), Vec::new());
    for value in &list.elements {
        let Value::Object(object) = value else {
            let message = format!("a member of the list is {}, not an issue", json::kind_of(value));
            return Err(at(SpecError::new(ErrorClass::WrongType, text.file, message), text, json::start(value)));
        };
        if json::get(object, "pull_request").is_none() {
            let (story, mark) = issue(text, object)?;
            stories.push(story);
            marks.push(mark);
        }
    }
    if stories.is_empty() {
        return Err(SpecError::new(ErrorClass::NoTasks, text.file, "there is no issue in this list")
            .with_help("ask for others; gh returns only open ones, and 30 at most, unless told otherwise"));
    }
    prd::settle_ids(text, &mut stories, &marks)?;
    graph::refuse_cycles(text.file, &stories)?;
    let warnings = graph::unknown_warnings(text.file, &stories);
    let plan = Plan {
        writable: false,
        context: Context { tool_prompt: TOOL_PROMPT.to_owned(), ..Context::default() },
        ..Plan::new(WorkId { scheme: Scheme::GitHub, id: text.file.to_owned() }, stories)
    };
    Ok(Document { reading: Reading::new(plan, None, warnings), marks })
}

fn at(error: SpecError, text: &Text<'_>, offset: usize) -> SpecError {
    error.at(text.position(offset)).with_help("write the file again with gh issue list --json …")
}

fn issue(text: &Text<'_>, object: &Object<'_>) -> Result<(Story, StoryMarks), SpecError> {
    let missing = |what: &str| {
        let message = format!("an issue has no {what}");
        at(SpecError::new(ErrorClass::MissingField, text.file, message), text, object.range.start)
    };
    let id = json::get(object, "number").and_then(json::word_of).ok_or_else(|| missing("number"))?;
    let title = json::first_text(object, &["title"]).ok_or_else(|| missing("title"))?;
    let body = json::first_text(object, &["body"]).unwrap_or_default();
    let tags = match json::get(object, "labels") {
        Some(Value::Array(labels)) => labels.elements.iter().filter_map(label).collect(),
        _ => Vec::new(),
    };
    let tasks = tasks(&id, &body);
    let marks = StoryMarks {
        own: ItemMarks { marks: Vec::new(), declared: true },
        tasks: tasks.iter().map(|_| ItemMarks::default()).collect(),
    };
    let story = Story {
        deps: deps(&body),
        description: body,
        state: match json::first_text(object, &["state"]) {
            Some(word) => words::state(&word),
            None if json::is_true(object, "closed") => WorkState::Done,
            None => WorkState::Todo,
        },
        priority: tags.iter().find_map(|tag: &String| priority(tag)),
        group: json::get(object, "milestone")
            .and_then(|milestone| json::first_text(milestone.as_object()?, &["title"])),
        tags,
        line: Some(text.line(object.range.start)),
        tasks,
        ..Story::new(id, title)
    };
    Ok((story, marks))
}

fn label(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Object(object) => json::first_text(object, &["name"]),
        other => json::text_of(other),
    }
}

/// `P0`, `priority: high`, `priority/high`, `high`.
fn priority(tag: &str) -> Option<Priority> {
    let tag = tag.to_lowercase();
    let named = tag.strip_prefix("priority").map(|rest| rest.trim_start_matches([':', '/', '-', '_', ' ']));
    let word = named.unwrap_or(&tag);
    match words::rank(word) {
        Rank::Known(priority) if named.is_some() || !word.starts_with(|c: char| c.is_ascii_digit()) => Some(priority),
        _ => None,
    }
}

/// The boxes of an issue's text; what is odd about them is the concern of those who wrote it.
fn tasks(issue: &str, body: &str) -> Vec<Task> {
    let Ok(text) = Text::decode("", body.as_bytes()) else { return Vec::new() };
    let mut tasks: Vec<Task> = Vec::new();
    for section in outline(&text).sections {
        let first = tasks.len();
        for item in section.items {
            tasks.push(Task {
                state: item.state,
                parent: item.parent.and_then(|at| tasks.get(first + at)).map(|task| task.id.clone()),
                ..Task::new(format!("{issue}#{}", tasks.len() + 1), item.text)
            });
        }
    }
    tasks
}

/// The numbers directly behind `Depends on` and `Blocked by`, on their line or in the list below it. Templates in
/// comments, examples in code and what is quoted say nothing.
fn deps(body: &str) -> Vec<StoryId> {
    let Ok(text) = Text::decode("", body.as_bytes()) else { return Vec::new() };
    let mut found: Vec<StoryId> = Vec::new();
    let mut lists = false;
    for line in scan(&text).lines.iter().filter(|line| line.kind == Kind::Text) {
        let line = line.masked().to_lowercase();
        let mut rests: Vec<&str> = ["depends on", "blocked by"].iter().flat_map(|words| behind(&line, words)).collect();
        if lists && let Some(item) = item(&line) {
            rests.push(item);
        } else {
            lists = rests.iter().any(|rest| rest.trim().is_empty());
        }
        for number in rests.into_iter().flat_map(numbers) {
            if !found.iter().any(|known| known.as_str() == number) {
                found.push(number.into());
            }
        }
    }
    found
}

/// What stands behind the words, wherever they stand by themselves.
fn behind<'l>(line: &'l str, words: &str) -> Vec<&'l str> {
    let alone = |at: &usize| !line[..*at].ends_with(char::is_alphanumeric);
    let places = line.match_indices(words).map(|(at, _)| at).filter(alone);
    places.map(|at| line[at + words.len()..].trim_start_matches([':', '*', '_', ' '])).collect()
}

/// The text of a list item that begins with a number.
fn item(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = match boxes::parse(line) {
        Some(found) => &line[found.text..],
        None => &line[boxes::list_marker(line)?..],
    };
    Some(text.trim_start()).filter(|text| text.starts_with('#'))
}

/// `#12, #13 and #14`.
fn numbers(mut rest: &str) -> Vec<&str> {
    let mut found = Vec::new();
    while let Some(digits) = rest.strip_prefix('#') {
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        if end > 0 {
            found.push(&digits[..end]);
        }
        rest = digits[end..].trim_start_matches([',', ' ']);
        rest = ["and ", "& "].iter().find_map(|joint| rest.strip_prefix(joint)).unwrap_or(rest).trim_start();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_directly_behind_the_words_are_dependencies() {
        let of = |body| deps(body).iter().map(|id| id.as_str().to_owned()).collect::<Vec<_>>();
        assert_eq!(of("Depends on #12, #13 and #14.\r\n**Blocked by:** #7, see #20"), ["12", "13", "14", "7"]);
        assert!(of("depends on nothing; #3").is_empty());
        assert!(of("<!-- Depends on #3 -->\n```\nBlocked by #4\n```\n> Depends on #5\n\nunblocked by #6").is_empty());
        assert_eq!(of("**Blocked by:**\n- #7 the lamp\n- [ ] #8\n\n## Plan\n- #9"), ["7", "8"]);
    }

    #[test]
    fn a_label_that_is_a_mere_number_is_no_priority() {
        assert_eq!((priority("2"), priority("ready")), (None, None));
        assert_eq!((priority("priority/2"), priority("P0")), (Some(Priority(2.0)), Some(Priority(0.0))));
    }
}
