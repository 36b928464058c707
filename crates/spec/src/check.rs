//! What is wrong with a piece of work, beyond what a reading needs to know.

use ralphloop_core::plan::{Plan, Scheme, WorkState};

use crate::error::{Code, Diagnostic};
use crate::json::Flavour;
use crate::openspec::{Companion, deltas};
use crate::prd;
use crate::source::{SpecFiles, read};
use crate::text::Text;

/// Every finding about the work. A file that cannot be read is one finding, an error with its place.
pub fn check(files: &SpecFiles) -> Vec<Diagnostic> {
    let reading = match read(files) {
        Ok(reading) => reading,
        Err(error) => return vec![error.into()],
    };
    let mut findings = reading.warnings;
    let file = &files.main.path;
    findings.extend(boxes_outside_stories(file, &reading.plan));
    findings.extend(stories_without_checks(file, &reading.plan));
    match files.scheme {
        Scheme::OpenSpec => findings.extend(delta_findings(files)),
        Scheme::Prd => {
            if let Ok(text) = Text::decode(file, &files.main.bytes) {
                findings.extend(prd::findings(&text, Flavour::of(file)));
            }
        }
        _ => {}
    }
    findings
}

fn boxes_outside_stories(file: &str, plan: &Plan) -> Option<Diagnostic> {
    let story = plan.stories.iter().find(|story| story.title.is_empty())?;
    let message = "these boxes stand before any heading and make up a story without a title";
    let finding = Diagnostic::warning(Code::BoxOutsideStory, file, story.line, message);
    Some(finding.with_help("put a heading above them: ## 1. What this part is about"))
}

fn stories_without_checks(file: &str, plan: &Plan) -> Option<Diagnostic> {
    let bare = |story: &&ralphloop_core::plan::Story| story.checks.is_empty() && story.state != WorkState::Done;
    let without: Vec<_> = plan.stories.iter().filter(bare).collect();
    let first = without.first()?;
    let ids: Vec<&str> = without.iter().map(|story| story.id.as_str()).collect();
    let message = format!("no check of their own verifies these stories, only the gates do: {}", ids.join(", "));
    let help = match plan.work.scheme {
        Scheme::Prd => r#"add "verification_steps": [{"type": "shell", "command": "…"}]"#,
        _ => "name a command below the heading: Story verification: `cargo test jar`",
    };
    Some(Diagnostic::warning(Code::StoryWithoutCheck, file, first.line, message).with_help(help))
}

fn delta_findings(files: &SpecFiles) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    for file in &files.beside {
        let Companion::Delta(capability) = Companion::of(&file.path, &files.main.path) else { continue };
        if let Ok(text) = Text::decode(&file.path, &file.bytes) {
            findings.extend(deltas::read(&text, capability).findings);
        }
    }
    findings
}
