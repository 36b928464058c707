//! The queue of Flight Rules: the next steps of a session, each a story with the tags that it carries.
//!
//! `[VERIFY: cmd]`, `[NO-VERIFY]`, `[BLOCKED: reason]`, `[PRIORITY: 1-3]`; indented below the item, `Timeout: 120s`.

use std::collections::HashMap;
use std::time::Duration;

use ralphloop_core::plan::{Check, Priority, Story, WorkState};

use super::group::shell;
use super::session::{Step, next_steps, unknown_tag};
use super::status::field;
use super::verification::duration;
use crate::document::{ItemMarks, StoryMarks};
use crate::error::{Diagnostic, SpecError};
use crate::markdown::stories::{Stories, no_tasks, unused};
use crate::text::Text;

/// How long a verification may take, where the item does not say it.
const TIMEOUT: Duration = Duration::from_mins(2);

/// The rank of an item that names none.
const USUAL_PRIORITY: f64 = 1.0;

/// The next steps of the log. They are only read: what has landed is known from its commit, and the next session's log
/// says what comes then.
pub(super) fn read(text: &Text<'_>) -> Result<Stories, SpecError> {
    let next = next_steps(text).map(|next| next.items).unwrap_or_default();
    let mut out = Stories { list: Vec::new(), marks: Vec::new(), warnings: Vec::new() };
    let mut used = HashMap::new();
    for step in next.iter().filter(|step| step.parent.is_none()) {
        let (title, tags, warnings) = tags(text, step);
        out.warnings.extend(warnings);
        out.list.push(story(step, &unused(&mut used, &slug(&title)), &title, tags));
        out.marks.push(StoryMarks { own: ItemMarks::default(), tasks: Vec::new() });
    }
    if out.list.is_empty() {
        return Err(no_tasks(text.file, None).with_help("the session left no next steps"));
    }
    Ok(out)
}

fn story(step: &Step, id: &str, title: &str, tags: Vec<Tag>) -> Story {
    let timeout = step.details.iter().find_map(|line| {
        let found = field(line).filter(|found| found.is("timeout"))?;
        duration(&line[found.value])
    });
    let mut story = Story {
        description: step.details.join("\n"),
        state: step.state.unwrap_or(WorkState::Todo),
        priority: Some(Priority(USUAL_PRIORITY)),
        line: Some(step.line),
        ..Story::new(id, title)
    };
    for tag in tags {
        match tag {
            Tag::Verify(command) => story.checks.push(check(&command, timeout)),
            Tag::NoVerify => {}
            Tag::Blocked(reason) => {
                story.state = WorkState::Blocked;
                story.notes = format!("Blocked: {reason}");
            }
            Tag::Priority(rank) => story.priority = Some(Priority(rank)),
        }
    }
    story
}

fn check(command: &str, timeout: Option<Duration>) -> Check {
    shell(command, Some(timeout.unwrap_or(TIMEOUT)))
}

#[derive(Debug, Clone, PartialEq)]
enum Tag {
    Verify(String),
    NoVerify,
    Blocked(String),
    Priority(f64),
}

/// The item's text without its tags, and the tags. One that cannot be understood stays in the text.
fn tags(text: &Text<'_>, step: &Step) -> (String, Vec<Tag>, Vec<Diagnostic>) {
    let (mut title, mut tags, mut warnings) = (String::new(), Vec::new(), Vec::new());
    let mut rest = step.text.as_str();
    while let Some(at) = rest.find('[') {
        title.push_str(&rest[..at]);
        let inner = &rest[at + 1..];
        let known = ["VERIFY", "NO-VERIFY", "BLOCKED", "PRIORITY"].iter().find(|word| {
            let head = inner.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word));
            head && inner[word.len()..].trim_start().starts_with([':', ']'])
        });
        if let Some((tag, end)) = known.and_then(|word| Some((tag(word, inner)?, closing(inner)?))) {
            tags.push(tag);
            rest = &inner[end + 1..];
            continue;
        }
        if let Some(word) = known {
            let message = format!("the tag [{word}…] cannot be understood; it is read as text");
            warnings.push(unknown_tag(text, step.line, message));
        }
        title.push('[');
        rest = inner;
    }
    title.push_str(rest);
    (title.split_whitespace().collect::<Vec<_>>().join(" "), tags, warnings)
}

/// Where the bracket of the tag closes; a command may hold brackets of its own (`[ -f a ]`).
fn closing(inner: &str) -> Option<usize> {
    let mut depth = 1_u32;
    inner.char_indices().find_map(|(at, c)| {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

fn tag(word: &str, inner: &str) -> Option<Tag> {
    let content = inner[word.len()..closing(inner)?].trim();
    let value = content.strip_prefix(':').map(|value| value.trim().trim_matches('`').trim());
    match (word, value) {
        ("NO-VERIFY", None) => Some(Tag::NoVerify),
        ("VERIFY", Some(command)) if !command.is_empty() => Some(Tag::Verify(command.to_owned())),
        ("BLOCKED", reason) => Some(Tag::Blocked(reason.unwrap_or_default().to_owned())),
        ("PRIORITY", Some(rank)) => rank.parse().ok().filter(|rank| (1.0..=9.0).contains(rank)).map(Tag::Priority),
        _ => None,
    }
}

/// `add-a-legend`: it stays the same when items above it go.
fn slug(title: &str) -> String {
    const LONGEST: usize = 48;
    let words = title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase);
    let mut out = String::new();
    for word in words {
        if out.len() + word.len() > LONGEST && !out.is_empty() {
            break;
        }
        if !out.is_empty() {
            out.push('-');
        }
        out.push_str(&word);
    }
    if out.is_empty() { "step".to_owned() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(source: &str) -> Stories {
        read(&Text::decode("t", source.as_bytes()).unwrap_or_else(|e| panic!("{e}"))).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn items_are_stories_with_their_tags() {
        let out = queue(
            "# Session Log\n\n## Next steps\n\n1. Add a legend [VERIFY: `[ -s legend.svg ]`] [PRIORITY: 2]\n   Timeout: 5s\n\
             2. Ask for a key [BLOCKED: no account]\n- **Export** as SVG [NO-VERIFY]\n  - keep fonts\n- See [the plan](x) [VERIFY]\n",
        );
        let ids: Vec<_> = out.list.iter().map(|story| (story.id.as_str(), story.state)).collect();
        assert_eq!(
            ids,
            [
                ("add-a-legend", WorkState::Todo),
                ("ask-for-a-key", WorkState::Blocked),
                ("export-as-svg", WorkState::Todo),
                ("see-the-plan-x-verify", WorkState::Todo)
            ]
        );
        let Check::Shell { command, timeout, .. } = &out.list[0].checks[0] else { panic!() };
        assert_eq!((command.as_str(), *timeout), ("[ -s legend.svg ]", Some(Duration::from_secs(5))));
        assert_eq!(out.list[0].priority, Some(Priority(2.0)));
        assert_eq!(out.list[1].notes, "Blocked: no account");
        assert_eq!(out.list[2].description, "  - keep fonts");
        assert_eq!(out.warnings.iter().map(|w| w.line).collect::<Vec<_>>(), [Some(10)]);
    }

    #[test]
    fn a_none_below_one_of_several_headings_is_no_step() {
        let out = queue("# Session\n\n## Next Steps\n\n### Now\n- Mend it\n### Later\n- None\n");
        assert_eq!(out.list.iter().map(|story| story.id.as_str()).collect::<Vec<_>>(), ["mend-it"]);
    }

    #[test]
    fn a_log_without_next_steps_has_no_queue() {
        for source in [
            "# Session\n\n## Next Steps\n\n- Nothing planned for the next session\n",
            "# Session\n\n## Next Steps\n\n- None\n",
            "# Session\n\n## Next Steps\n\nNone.\n",
            "# Session\n\nx\n",
        ] {
            assert!(read(&Text::decode("t", source.as_bytes()).unwrap()).is_err(), "{source}");
        }
    }
}
