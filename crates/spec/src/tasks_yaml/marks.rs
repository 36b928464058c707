//! Whether a task says that it is done, and which bytes say so.

use ralphloop_core::plan::WorkState;

use crate::document::{Mark, Slot};
use crate::error::Code;
use crate::text::Text;
use crate::words;
use crate::yaml::{Content, Node};

/// Names of the flag; the first one that is there decides.
const FLAGS: &[&str] = &["passes", "passed", "complete", "completed", "done"];

/// How this file writes "done".
#[derive(Debug)]
pub(super) struct Dialect {
    flag: &'static str,
    word: Option<String>,
}

impl Dialect {
    pub(super) fn of(text: &Text<'_>, list: &[Node]) -> Self {
        let is_flagged_by = |node: &Node, name: &str| flag(text, node).is_some_and(|(key, _)| key == name);
        let used = |name: &&&str| list.iter().filter(|node| is_flagged_by(node, name)).count();
        let flag = FLAGS.iter().max_by_key(|name| used(name)).filter(|name| used(name) > 0);
        let words = || list.iter().filter_map(|node| node.first_word(&["status"]));
        let word = words().find(|word| words::state(word) == WorkState::Done);
        Self { flag: flag.unwrap_or(&"completed"), word: word.map(str::to_owned) }
    }
}

/// The flag of a task. Prose and lists under such a name are none.
fn flag<'a>(text: &Text<'_>, node: &'a Node) -> Option<(&'static str, &'a Node)> {
    named_like_a_flag(node).find(|(_, value)| is_flag(text, value))
}

fn named_like_a_flag(node: &Node) -> impl Iterator<Item = (&'static str, &Node)> {
    FLAGS.iter().filter_map(|name| Some((*name, node.entry(name)?.1)))
}

fn is_flag(text: &Text<'_>, value: &Node) -> bool {
    matches!(value.content, Content::Scalar { .. }) && value.is_one_line(text)
}

/// State, marks and warnings of a task.
pub(super) struct Done {
    pub state: WorkState,
    pub marks: Vec<Mark>,
    pub warnings: Vec<(Code, String)>,
}

pub(super) fn read(text: &Text<'_>, dialect: &Dialect, node: &Node) -> Done {
    let mut warnings = Vec::new();
    let flag = flag(text, node);
    for (name, value) in named_like_a_flag(node).filter(|(_, value)| !is_flag(text, value)) {
        let kind =
            if matches!(value.content, Content::Scalar { .. }) { "a text of several lines" } else { value.kind() };
        warnings.push((Code::NonbooleanPasses, format!("{name} is {kind}, not true or false, and counts for nothing")));
    }
    let flagged = flag.and_then(|(name, value)| match &value.content {
        Content::Scalar { .. } if value.is_null() => Some(WorkState::Todo),
        Content::Scalar { text, plain } => Some(flag_state(name, text, *plain, &mut warnings)),
        _ => None,
    });
    let status_node =
        node.get("status").filter(|status| status.word().is_some()).filter(|status| status.is_one_line(text));
    let status = status_node.and_then(Node::word).map(words::state);
    let state = match (flagged, status) {
        (Some(WorkState::Done), _) => WorkState::Done,
        (Some(_), Some(status)) if status != WorkState::Done => status,
        (Some(flagged), _) => flagged,
        (None, status) => status.unwrap_or(WorkState::Todo),
    };
    if let (Some(flagged), Some(status), Some((name, _))) = (flagged, status, flag)
        && (flagged == WorkState::Done) != (status == WorkState::Done)
    {
        warnings.push((Code::ConflictingDone, format!("{name} and status disagree; {name} holds")));
    }
    let state = match state {
        WorkState::Done => WorkState::Done,
        _ if node.is_true("blocked") => WorkState::Blocked,
        WorkState::Todo if ["inProgress", "in_progress", "started"].iter().any(|key| node.is_true(key)) => {
            WorkState::Doing
        }
        other => other,
    };
    let mut marks = Vec::new();
    if let (Some((name, value)), Some(flagged)) = (flag, flagged) {
        marks.extend(flag_mark(text, node, name, value, flagged == WorkState::Done));
    }
    match (status_node, &dialect.word) {
        (Some(node), Some(word)) => marks.push(status_mark(text, node, word)),
        (Some(node), None) if flag.is_none() => marks.push(status_mark(text, node, "done")),
        (None, _) if flag.is_none() => marks.extend(insertion(text, dialect, node)),
        _ => {}
    }
    Done { state, marks, warnings }
}

/// Booleans of both versions of YAML; a text in quotes is none, but understood.
fn flag_state(name: &str, text: &str, plain: bool, warnings: &mut Vec<(Code, String)>) -> WorkState {
    let word = text.trim().to_lowercase();
    let known = match word.as_str() {
        "true" | "yes" | "on" | "y" => Some(WorkState::Done),
        "false" | "no" | "off" | "n" => Some(WorkState::Todo),
        _ => None,
    };
    if !plain || known.is_none() {
        warnings.push((Code::NonbooleanPasses, format!("{name} is {word:?}, not true or false")));
    }
    match known {
        Some(WorkState::Done) if !plain && word != "true" => WorkState::Other,
        Some(state) => state,
        None => WorkState::Other,
    }
}

fn flag_mark(text: &Text<'_>, node: &Node, name: &str, value: &Node, is_done: bool) -> Option<Mark> {
    let (token, mut offset) = (value.token(text), value.offset());
    let done = match token {
        "no" | "n" => "yes",
        "No" | "N" => "Yes",
        "NO" => "YES",
        "off" => "on",
        "Off" => "On",
        "OFF" => "ON",
        "False" => "True",
        "FALSE" => "TRUE",
        "" => " true",
        _ => "true",
    };
    if token.is_empty() {
        // Nothing stands behind the colon of the key.
        let key = node.entry(name)?.0;
        let behind = key.offset() + key.token(text).len();
        offset = behind + text.body.get(behind..)?.find(':')? + 1;
    }
    let open = "false";
    Some(Mark {
        slot: Slot::Flag,
        offset: text.base + offset,
        now: token.to_owned(),
        done: done.to_owned(),
        open,
        is_done,
    })
}

/// The word in the quotes that stand there.
pub(crate) fn status_mark(text: &Text<'_>, value: &Node, word: &str) -> Mark {
    let now = value.token(text);
    let quote = now.chars().next().filter(|c| matches!(c, '"' | '\'')).map(String::from).unwrap_or_default();
    Mark {
        slot: Slot::Status,
        offset: text.base + value.offset(),
        now: now.to_owned(),
        done: format!("{quote}{word}{quote}"),
        open: "todo",
        is_done: value.word().is_some_and(|word| words::state(word) == WorkState::Done),
    }
}

/// The flag as a line below the title, or as a last member where the mapping stands on one line.
fn insertion(text: &Text<'_>, dialect: &Dialect, node: &Node) -> Option<Mark> {
    let mark = |offset: usize, done: String| Mark {
        slot: Slot::Flag,
        offset: text.base + offset,
        now: String::new(),
        done,
        open: "false",
        is_done: false,
    };
    // One under which prose stands is taken.
    let name = std::iter::once(&dialect.flag).chain(FLAGS).find(|name| node.entry(name).is_none())?;
    if text.body.get(node.offset()..)?.starts_with('{') {
        let Content::Map(entries) = &node.content else { return None };
        let (_, last) = entries.last()?;
        return Some(mark(last.offset() + last.token(text).len(), format!(", {name}: true")));
    }
    let (key, value) = ["title", "description"].iter().find_map(|name| node.entry(name))?;
    let indent = " ".repeat(key.column());
    let end = value.offset() + value.token(text).len();
    let behind = text.body.get(end..)?;
    match behind.find('\n') {
        Some(at) => {
            let line_end = if behind[..at].ends_with('\r') { "\r\n" } else { "\n" };
            Some(mark(end + at + 1, format!("{indent}{name}: true{line_end}")))
        }
        None => Some(mark(text.body.len(), format!("\n{indent}{name}: true"))),
    }
}
