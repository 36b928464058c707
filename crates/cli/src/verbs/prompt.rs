//! `show --prompt`: what the agent would be told first.

use ralphloop_agent::prompt::{self, PromptInput};
use ralphloop_core::effect::Brief;
use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Plan, Story};
use ralphloop_engine::settings::Settings;
use ralphloop_spec::Reading;

use super::settings;
use super::spec::Opened;
use crate::config::{self, Layer};
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output;

pub(super) fn show(opened: &Opened, reading: &Reading, story: &str, host: &Host) -> Result<Exit, CliError> {
    let Some(story) = reading.plan.story(&StoryId::from(story)) else {
        return Err(opened.no_story(story, reading));
    };
    let (config, _) = config::load(&opened.work.project, &host.environment, Layer::default())?;
    let settings = settings::decide(&config, &opened.work.project, Vec::new())?;
    let text = first(&reading.plan, story, &settings, &opened.work.project)?;
    output::data(&output::harmless(&text))?;
    Ok(Exit::DONE)
}

/// The prompt of a story's first attempt.
pub(crate) fn first(
    plan: &Plan,
    story: &Story,
    settings: &Settings,
    project: &std::path::Path,
) -> Result<String, CliError> {
    prompt::build(&PromptInput {
        plan,
        story,
        brief: &Brief::default(),
        attempt: 1,
        max_attempts: settings.max_retries.saturating_add(1),
        grammar: &settings.grammar,
        gates: &settings.gates(plan, project),
        learnings_budget: settings.prompts.learnings,
        template: settings.prompts.template.as_ref().map(|(name, text)| (name.as_str(), text.as_str())),
    })
    .map_err(|error| CliError::usage(format!("the prompt of {} cannot be made", story.id)).cause(&error))
}
