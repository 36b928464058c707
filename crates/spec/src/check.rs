//! What is wrong with a piece of work, beyond what a reading needs to know.

use ralphloop_core::graph;
use ralphloop_core::plan::{Plan, Scenario, Scheme, WorkState};

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
    findings.extend(stories_too_large(file, &reading.plan));
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

/// So many tokens a story and what is told with it may have, by estimate: a tenth of a context of 200,000, so that most
/// of it is left for the work.
pub const LARGEST_STORY: usize = 20_000;

fn stories_too_large(file: &str, plan: &Plan) -> Vec<Diagnostic> {
    let context = &plan.context;
    let steps = |scenario: &Scenario| {
        let lines = [&scenario.given, &scenario.when, &scenario.then, &scenario.other];
        tokens(&scenario.name) + lines.iter().flat_map(|lines| lines.iter()).map(|line| tokens(line)).sum::<usize>()
    };
    let requirements = context.requirements.iter().map(|requirement| {
        tokens(&requirement.title) + tokens(&requirement.text) + requirement.scenarios.iter().map(steps).sum::<usize>()
    });
    let constraints = context.constraints.iter().map(|text| tokens(text)).sum::<usize>();
    let shared = tokens(&context.project)
        + tokens(&context.proposal)
        + tokens(&context.design)
        + constraints
        + requirements.sum::<usize>();
    let open = plan.stories.iter().filter(|story| graph::wanted(story));
    open.filter_map(|story| {
        let criteria = story.criteria.iter().filter(|text| !story.tasks.iter().any(|task| task.text == **text));
        let own = tokens(&story.title)
            + tokens(&story.description)
            + tokens(&story.notes)
            + story.tasks.iter().map(|task| tokens(&task.text)).sum::<usize>()
            + criteria.map(|text| tokens(text)).sum::<usize>();
        (own + shared > LARGEST_STORY).then(|| {
            let message = format!(
                "story {:?} is too large for one context: about {own} tokens of its own and {shared} told with it; more \
                 than {LARGEST_STORY} leave an agent little room to work",
                story.id.as_str()
            );
            let help = if own > shared { "split it into several stories" } else { "shorten what is told with every story" };
            Diagnostic::warning(Code::StoryTooLarge, file, story.line, message).with_help(help)
        })
    })
    .collect()
}

/// The tokens of a text, by estimate: four ASCII characters make one, any other character is one.
fn tokens(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    ascii.div_ceil(4) + text.chars().filter(|c| !c.is_ascii()).count()
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
