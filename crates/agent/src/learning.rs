//! Sentences that an agent wants carried into later prompts: `<learning>…</learning>`, alone on a line of what it says
//! itself. Nothing is guessed from words.

use crate::sanitize;

/// How many are taken from one call.
const MOST: usize = 20;
/// How long one may be, in bytes.
const LONGEST: usize = 500;

/// Adds the learnings in `text` to `learnings`, each once.
pub(crate) fn collect(text: &str, learnings: &mut Vec<String>) {
    if !text.contains("<learning>") {
        return;
    }
    let mut fenced = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("```") || line.starts_with("~~~") {
            fenced = !fenced;
        }
        let inside = line.strip_prefix("<learning>").and_then(|line| line.strip_suffix("</learning>"));
        let Some(learning) = inside.map(str::trim).filter(|l| !l.is_empty() && !fenced) else { continue };
        let learning = sanitize::head(learning, LONGEST).into_owned();
        if learnings.len() < MOST && !learnings.contains(&learning) {
            learnings.push(learning);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marked_lines_are_learnings_and_each_counts_once() {
        let mut learnings = Vec::new();
        let text = "I learned a lot.\n<learning>use make test</learning>\n```\n<learning>no</learning>\n```\n<learning> </learning>\nsee <learning>not alone</learning>";
        collect(text, &mut learnings);
        collect(text, &mut learnings);
        assert_eq!(learnings, ["use make test"]);
    }
}
