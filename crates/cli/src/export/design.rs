//! What was learned, in the `design.md` of a change: below `## Learnings` an entry a story, below `## Patterns` what holds for all.

use super::progress::{day, list};
use super::{LEARNINGS, Telling, marked, replaced};
use crate::output::one_line;
use crate::view::rfc3339;

/// The text of a `design.md` with what the run has learned; nothing if it has learned nothing. All that is not between
/// ralphloop's marks stays as it is.
pub(super) fn with_learnings(old: &str, told: Telling<'_>) -> Option<String> {
    let chronicle = told.chronicle;
    let mut entries = String::new();
    for done in chronicle.done.iter().filter(|done| !done.learnings.is_empty()) {
        let date = day(&rfc3339(done.at));
        entries.push_str(&format!("### {date} - Story {}\n\n", one_line(done.story.as_str())));
        entries.extend(done.learnings.iter().map(|learning| format!("- {}\n", one_line(learning))));
        entries.push('\n');
    }
    let patterns = list(told);
    if entries.is_empty() && patterns.is_empty() {
        return None;
    }
    let mut text = if old.trim().is_empty() { "# Design\n".to_owned() } else { old.to_owned() };
    for (heading, part, content) in [
        ("## Learnings", chronicle.run.id().as_str(), entries.trim_end()),
        ("## Patterns", LEARNINGS, patterns.trim_end()),
    ] {
        if !content.is_empty() {
            text = in_section(&text, heading, part, &format!("{content}\n"));
        }
    }
    Some(text)
}

/// The text with our part at the end of that section, which is made if there is none.
fn in_section(text: &str, heading: &str, part: &str, content: &str) -> String {
    if let Some(text) = replaced(text, part, content) {
        return text;
    }
    let part = marked(part, content);
    let Some(end) = end_of_section(text, heading) else {
        return format!("{}\n\n{heading}\n\n{part}", text.trim_end());
    };
    let (before, after) = text.split_at(end);
    let gap = if after.is_empty() { "" } else { "\n" };
    format!("{}\n\n{part}{gap}{after}", before.trim_end())
}

/// Where the section of that heading ends: at the next of its level or above, code aside.
fn end_of_section(text: &str, heading: &str) -> Option<usize> {
    let (mut at, mut inside, mut fenced) = (0, false, false);
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end();
        if bare.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if !fenced && inside && (bare.starts_with("# ") || bare.starts_with("## ")) {
            return Some(at);
        }
        inside |= !fenced && bare.eq_ignore_ascii_case(heading);
        at += line.len();
    }
    inside.then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r53_a_part_goes_to_the_end_of_its_section_and_is_replaced_there() {
        let old = "# Design\n\n## Learnings\n\n- by hand\n\n```\n## no heading\n```\n\n## Risks\n\nnone\n";
        let once = in_section(old, "## Learnings", "r1", "- brass\n");
        assert!(
            once.contains(
                "## no heading\n```\n\n<!-- ralphloop: r1 -->\n- brass\n<!-- ralphloop: end of r1 -->\n\n## Risks\n"
            ),
            "{once}"
        );
        let again = in_section(&once, "## Learnings", "r1", "- iron\n");
        assert_eq!(again, once.replace("brass", "iron"));
        let other = in_section("# Design\n", "## Patterns", "learnings", "- x\n");
        assert_eq!(
            other,
            "# Design\n\n## Patterns\n\n<!-- ralphloop: learnings -->\n- x\n<!-- ralphloop: end of learnings -->\n"
        );
    }
}
