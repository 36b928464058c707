//! `tasks.md` of Spec Kit: phases are stories, their boxes carry ids, tags and dependencies in words.

use ralphloop_core::ids::TaskId;
use ralphloop_core::plan::{Context, Plan, Scheme, WorkId};

use crate::companions::{self, folder_name};
use crate::document::{Document, Reading};
use crate::error::SpecError;
use crate::label;
use crate::markdown::outline::{Item, Outline, Section, outline};
use crate::markdown::stories::{Grammar, Stories, TaskText, stories};
use crate::markdown::verification;
use crate::prompt;
use crate::source::SpecText;
use crate::text::Text;

/// Deeper headings stay inside the phase that they stand in.
const PHASE_LEVEL: usize = 2;

/// The format ticks with a capital letter.
const GRAMMAR: Grammar = Grammar { usual_tick: 'X', task: task_text };

/// Tasks that one range of ids may stand for.
const MAX_RANGE: u32 = 200;

/// The stories of `tasks.md`.
pub(crate) fn document(text: &Text<'_>) -> Result<Document, SpecError> {
    let outline = by_phase(outline(text));
    let Stories { list: mut stories, marks, warnings } = stories(text, &outline, GRAMMAR)?;
    for story in &mut stories {
        story.checks = verification::checks(story);
    }
    let plan = Plan {
        title: outline.title.clone(),
        context: Context { tool_prompt: tool_prompt(text.file), ..Context::default() },
        ..Plan::new(WorkId { scheme: Scheme::SpecKit, id: folder_name(text.file).to_owned() }, stories)
    };
    Ok(Document { reading: Reading::new(plan, outline.title, warnings), marks })
}

/// The stories with the feature's specification and plan.
pub(crate) fn read(text: &Text<'_>, beside: &[SpecText]) -> Result<Reading, SpecError> {
    let mut reading = document(text)?.reading;
    companions::take(&mut reading, beside, "spec.md", "plan.md");
    Ok(reading)
}

fn tool_prompt(file: &str) -> String {
    format!(
        "This work is a feature of Spec Kit. Its tasks are in {file}: a phase is a story, a box below it is a task, `[P]` \
         marks what may be done in parallel. The specification (spec.md), the plan (plan.md) and what else was planned \
         stand beside it.\n\n{}",
        prompt::boxes('X')
    )
}

/// Sections below a phase become part of it.
fn by_phase(outline: Outline) -> Outline {
    let mut phases: Vec<Section> = Vec::new();
    for section in outline.sections {
        let deeper = section.heading.as_ref().filter(|heading| heading.level > PHASE_LEVEL);
        let phase = phases.last_mut().filter(|phase| phase.heading.as_ref().is_some_and(|h| h.level == PHASE_LEVEL));
        let (Some(heading), Some(phase)) = (deeper, phase) else {
            phases.push(section);
            continue;
        };
        phase.prose.extend([String::new(), format!("{} {}", "#".repeat(heading.level), heading.text)]);
        phase.prose.extend(section.prose);
        let before = phase.items.len();
        let moved = section.items.into_iter().map(|item| Item { parent: item.parent.map(|at| at + before), ..item });
        phase.items.extend(moved);
    }
    Outline { sections: phases, ..outline }
}

/// `T001 [P] [US1] text (depends on T000)`.
fn task_text(text: &str) -> TaskText {
    let labelled = label::task(text);
    let placeholder = if labelled.is_none() { behind_placeholder(text) } else { None };
    let Some(rest) = labelled.as_ref().map(|labelled| labelled.text.as_str()).or(placeholder) else {
        return TaskText { text: text.to_owned(), deps: deps(text), ..TaskText::default() };
    };
    let (tags, rest) = tags(rest);
    TaskText {
        deps: deps(rest),
        text: rest.to_owned(),
        optional: tags.iter().any(|tag| tag.eq_ignore_ascii_case("optional")),
        tags,
        placeholder: placeholder.is_some(),
        id: labelled.map(|labelled| labelled.id),
    }
}

/// The text behind `TXXX`.
fn behind_placeholder(text: &str) -> Option<&str> {
    let (word, rest) = text.split_once(char::is_whitespace)?;
    let xs = word
        .trim_matches('*')
        .trim_end_matches(':')
        .strip_prefix('T')?
        .trim_start_matches(|c: char| c.is_ascii_digit());
    (xs.len() >= 2 && xs.chars().all(|c| matches!(c, 'X' | 'x'))).then(|| rest.trim_start())
}

/// Tags in brackets, and the text behind them. A link is no tag.
fn tags(text: &str) -> (Vec<String>, &str) {
    let (mut tags, mut rest) = (Vec::new(), text);
    while let Some((tag, behind)) = rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        if tag.trim().is_empty() || tag.contains('[') || behind.starts_with('(') {
            break;
        }
        tags.push(tag.trim().to_owned());
        rest = behind.trim_start();
    }
    (tags, rest)
}

/// Ids in a bracket that speaks of a dependency: lists, and ranges such as `T001-T003`.
fn deps(text: &str) -> Vec<TaskId> {
    let brackets = text.split(['(', '（']).skip(1).filter_map(|part| part.split([')', '）']).next());
    let speaks = |part: &&str| {
        let part = part.to_lowercase();
        ["depends on", "depend on", "依存", "依赖"].iter().any(|words| part.contains(words))
    };
    let mut found: Vec<TaskId> = Vec::new();
    for part in brackets.filter(speaks) {
        let words = part.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '–');
        for id in words.flat_map(ids) {
            if !found.contains(&id) {
                found.push(id);
            }
        }
    }
    found
}

/// The ids that a word stands for: one, those of a range, or none.
fn ids(word: &str) -> Vec<TaskId> {
    let number = |id: &str| -> Option<u32> { id.strip_prefix('T')?.parse().ok() };
    if let Some((first, last)) = word.split_once(['-', '–'])
        && let (Some(from), Some(to)) = (number(first), number(last))
    {
        let width = first.len() - 1;
        return (from..=to.min(from.saturating_add(MAX_RANGE))).map(|n| TaskId(format!("T{n:0width$}"))).collect();
    }
    let digits = word.strip_prefix('T').map(|rest| rest.trim_end_matches(|c: char| c.is_ascii_lowercase()));
    let is_id = digits.is_some_and(|digits| !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()));
    if is_id { vec![TaskId(word.to_owned())] } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_stand_in_brackets_in_words() {
        let of = |text| deps(text).iter().map(|id| id.0.clone()).collect::<Vec<_>>();
        assert_eq!(of("Queue (depends on T001, T002b)"), ["T001", "T002b"]);
        assert_eq!(of("Test (Depends on T008-T010)"), ["T008", "T009", "T010"]);
        assert_eq!(of("保存 (T003 に依存)"), ["T003"]);
        assert!(of("after T001 (see T002)").is_empty());
        assert_eq!(of("x (depends on T1-T4000000000)").len(), 201);
    }

    #[test]
    fn tags_stand_right_behind_the_id() {
        let read = task_text("**T002** [P][US1] Ask [why](x) [later]");
        assert_eq!((read.tags, read.text.as_str()), (vec!["P".to_owned(), "US1".to_owned()], "Ask [why](x) [later]"));
        assert_eq!(task_text("[P] loose").text, "[P] loose");
        assert!(task_text("TXXX [P] Tidy").placeholder);
    }
}
