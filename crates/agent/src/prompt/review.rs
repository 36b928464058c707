//! What a reviewer is told: the story, the change and what passed, and nothing else.

use minijinja::value::Serde;
use ralphloop_core::plan::Story;
use serde::Serialize;

use super::view::{Fenced, StoryView};
use super::{PromptError, environment, template_error};

const NAME: &str = "review";
const REVIEW: &str = include_str!("templates/review.md");
/// How much of a change a reviewer sees, in bytes; the rest is left out, and said to be.
const DIFF: usize = 256 << 10;

/// Everything that the prompt of a review is made of.
#[derive(Debug, Clone, Copy)]
pub struct ReviewInput<'a> {
    /// The story that was worked on.
    pub story: &'a Story,
    /// What changed, as a patch.
    pub diff: &'a str,
    /// The gates and checks that passed.
    pub passed: &'a [String],
    /// What earlier reviews of the story found.
    pub earlier: &'a [String],
}

#[derive(Serialize)]
struct View<'a> {
    story: StoryView<'a>,
    diff: Fenced<'a>,
    passed: &'a [String],
    earlier: &'a [String],
}

/// The prompt of a review.
///
/// # Errors
/// None that a caller can bring about: the template is the program's own.
pub fn build(input: &ReviewInput<'_>) -> Result<String, PromptError> {
    let view = View {
        story: StoryView::new(input.story, false),
        diff: Fenced::cut(input.diff, DIFF),
        passed: input.passed,
        earlier: input.earlier,
    };
    render(&view).map_err(|error| template_error(NAME, &error))
}

fn render(view: &View<'_>) -> Result<String, minijinja::Error> {
    let mut templates = environment()?;
    templates.add_template(NAME, REVIEW)?;
    templates.get_template(NAME)?.render(Serde(view))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_sees_the_story_the_change_what_passed_and_what_was_found_before_and_how_to_answer() {
        let mut story = Story::new("S-1", "Sign in");
        story.description = "Users sign in.".to_owned();
        story.criteria.push("A wrong password is refused.".to_owned());
        let passed = ["cargo test".to_owned()];
        let earlier = ["src/a.rs: no check of the length".to_owned()];
        let diff = "--- a/src/a.rs\n+++ b/src/a.rs\n+```\n+{{ not_a_template }}\n";
        let text = build(&ReviewInput { story: &story, diff, passed: &passed, earlier: &earlier }).unwrap();
        for part in [
            "# Review of story S-1: Sign in",
            "Users sign in.",
            "- A wrong password is refused.",
            "- cargo test",
            "- src/a.rs: no check of the length",
            "+{{ not_a_template }}",
            "````\n",
            "    REVIEW: APPROVED",
            "    REVIEW: CHANGES",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }

    #[test]
    fn a_change_that_is_too_large_is_cut_and_says_so() {
        let story = Story::new("S-1", "Sign in");
        let diff = "+x\n".repeat(DIFF);
        let text = build(&ReviewInput { story: &story, diff: &diff, passed: &[], earlier: &[] }).unwrap();
        assert!(text.len() < DIFF + 4096 && text.contains("bytes left out here"));
        assert!(!text.contains("What was found before") && !text.contains("What has been checked"));
    }
}
