//! `fix_plan.md` and `IMPLEMENTATION_PLAN.md`: boxes below headings that say how urgent they are.

use ralphloop_core::plan::{Context, Plan, Priority, Scheme, WorkId};

use crate::document::{Document, Reading};
use crate::error::SpecError;
use crate::markdown::outline::{Heading, outline};
use crate::markdown::stories::{PLAIN, Stories, stories};
use crate::markdown::verification;
use crate::prompt;
use crate::text::Text;
use crate::words::{self, Rank};

/// Headings below which nothing has to be done, as words.
const OPTIONAL: &[&str] = &["optional", "future", "future enhancements", "nice to have"];

/// The stories of the file, with their marks.
pub(crate) fn document(text: &Text<'_>) -> Result<Document, SpecError> {
    let outline = outline(text);
    let Stories { list: mut stories, marks, warnings } = stories(text, &outline, PLAIN)?;
    let mut above = Vec::new();
    let mut urgencies = Vec::new();
    for section in &outline.sections {
        let urgency =
            section.heading.as_ref().map_or(Urgency::default(), |heading| Urgency::below(heading, &mut above));
        if !section.items.is_empty() {
            urgencies.push(urgency);
        }
    }
    for (story, urgency) in stories.iter_mut().zip(urgencies) {
        story.priority = urgency.priority;
        story.optional = urgency.optional;
        story.tasks.iter_mut().for_each(|task| task.optional = urgency.optional);
        story.checks = verification::checks(story);
    }
    let plan = Plan {
        title: outline.title.clone(),
        context: Context { tool_prompt: tool_prompt(text.file), ..Context::default() },
        ..Plan::new(WorkId { scheme: Scheme::FixPlan, id: text.file.to_owned() }, stories)
    };
    Ok(Document { reading: Reading::new(plan, outline.title, warnings), marks })
}

fn tool_prompt(file: &str) -> String {
    format!(
        "This work is the plan in {file}: a heading is a story, a box below it is a task, and headings name the \
         priority. What else that file says may matter, so read it.\n\n{}",
        prompt::boxes('x')
    )
}

/// What headings say about the boxes below them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Urgency {
    priority: Option<Priority>,
    optional: bool,
}

impl Urgency {
    /// What a heading says, or where it says nothing, the one above it; `above` are the headings that it stands under.
    fn below(heading: &Heading, above: &mut Vec<(usize, Self)>) -> Self {
        above.retain(|(level, _)| *level < heading.level);
        let inherited = above.last().map(|(_, urgency)| *urgency).unwrap_or_default();
        let words = words_of(&heading.text);
        let urgency = Self {
            priority: priority(&words).or(inherited.priority),
            optional: inherited.optional || OPTIONAL.contains(&words.join(" ").as_str()),
        };
        above.push((heading.level, urgency));
        urgency
    }
}

/// The words of a heading in lower case, without symbols.
fn words_of(heading: &str) -> Vec<String> {
    let heading = heading.to_lowercase().replace('’', "'");
    let words = heading.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// `high priority`, `priority: high`, `priority 2`, a leading `P1`, or a word of rank alone.
fn priority(words: &[String]) -> Option<Priority> {
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    for at in words.iter().enumerate().filter(|(_, word)| *word == "priority").map(|(at, _)| at) {
        let before = at.checked_sub(1).and_then(|at| words.get(at)).filter(|word| !is_number(word));
        let found = before.and_then(|word| rank(word)).or_else(|| words.get(at + 1).and_then(|word| rank(word)));
        if found.is_some() {
            return found;
        }
    }
    let first = words.first()?;
    if first.len() == 2 && first.starts_with('p') {
        return rank(first);
    }
    let alone = words.join(" ");
    if is_number(&alone) { None } else { rank(&alone) }
}

fn rank(word: &str) -> Option<Priority> {
    match words::rank(word) {
        Rank::Known(priority) => Some(priority),
        Rank::None | Rank::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_name_a_priority_in_these_ways_and_no_others() {
        let of = |heading: &str| priority(&words_of(heading)).map(|priority| priority.0);
        for (heading, number) in [
            ("High Priority", 1.0),
            ("### Medium-priority (Docs)", 2.0),
            ("Priority: low", 3.0),
            ("Priority 2: Shelves", 2.0),
            ("Tasks (Priority: P1)", 1.0),
            ("P0 - Base ✅", 0.0),
            ("🔥 Critical", 0.0),
            ("Must have", 1.0),
        ] {
            assert_eq!(of(heading), Some(number), "{heading}");
        }
        for heading in
            ["High-level overview", "Phase 1: Harden", "2026", "P10 later", "Priority", "Top priority work", ""]
        {
            assert_eq!(of(heading), None, "{heading}");
        }
    }
}
