//! What an agent is told. One template per format of work, which a user's own may extend or replace; what stands in the
//! spec, in failures and in learnings is only ever data to it.

pub mod relay;
pub mod review;
mod view;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use ralphloop_core::effect::Brief;
use ralphloop_core::plan::{Plan, Scheme, Story};
use ralphloop_core::policy::Gate;
use ralphloop_core::signal::SignalGrammar;
use thiserror::Error;

use self::view::View;

const BASE: &str = include_str!("templates/base.md");
const OPENSPEC: &str = include_str!("templates/openspec.md");
const PRD: &str = include_str!("templates/prd.md");

/// Everything that a prompt is made of. The prompt needs no environment variable: all ids stand in it.
#[derive(Debug, Clone, Copy)]
pub struct PromptInput<'a> {
    /// The whole work.
    pub plan: &'a Plan,
    /// The story of it that is to be done.
    pub story: &'a Story,
    /// What went before. With failures to repair, the prompt is that of a repair.
    pub brief: &'a Brief,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// How many there can be.
    pub max_attempts: u32,
    /// How the agent shall signal.
    pub grammar: &'a SignalGrammar,
    /// The gates that run afterwards.
    pub gates: &'a [Gate],
    /// How many bytes of learnings go in; the first win.
    pub learnings_budget: usize,
    /// The user's own template: its name for messages, and its text. It may extend `base`, `openspec` or `prd`.
    pub template: Option<(&'a str, &'a str)>,
}

/// A prompt that cannot be made. The fault is in the template.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PromptError {
    /// The template is wrong in itself or asks for a value that does not exist.
    #[error("prompt template {name}, line {line}: {why}")]
    Template {
        /// The template.
        name: String,
        /// Where, 1-based; 0 if not known.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// The template renders, but the agent would not know what to do.
    #[error("prompt template {name} does not name the story; put {{{{ story.id }}}} into it")]
    WithoutStory {
        /// The template.
        name: String,
    },
}

/// The prompt for a story: a first attempt, a further one, or a repair.
pub fn build(input: &PromptInput<'_>) -> Result<String, PromptError> {
    let own = match input.plan.work.scheme {
        Scheme::OpenSpec => "openspec",
        // Says nothing that holds for a prd.json alone.
        _ => "prd",
    };
    let name = input.template.map_or(own, |(name, _)| name);
    let view = View::new(input);
    let prompt = render(name, input.template, &view).map_err(|error| template_error(name, &error))?;
    if !prompt.contains(&view.story.id) {
        return Err(PromptError::WithoutStory { name: name.to_owned() });
    }
    match &input.brief.leg {
        Some(leg) => Ok(relay::part(leg)? + &prompt),
        None => Ok(prompt),
    }
}

fn environment<'t>() -> Result<Environment<'t>, minijinja::Error> {
    let mut templates = Environment::new();
    templates.set_auto_escape_callback(|_| AutoEscape::None);
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    templates.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    Ok(templates)
}

fn render(name: &str, own: Option<(&str, &str)>, view: &View<'_>) -> Result<String, minijinja::Error> {
    let mut templates = environment()?;
    templates.add_template("base", BASE)?;
    templates.add_template("openspec", OPENSPEC)?;
    templates.add_template("prd", PRD)?;
    if let Some((name, text)) = own {
        templates.add_template(name, text)?;
    }
    templates.get_template(name)?.render(Serde(view))
}

fn template_error(name: &str, error: &minijinja::Error) -> PromptError {
    let detail =
        error.detail().map_or_else(|| error.kind().to_string(), |detail| format!("{}: {detail}", error.kind()));
    PromptError::Template {
        name: error.name().unwrap_or(name).to_owned(),
        line: error.line().unwrap_or(0),
        why: detail,
    }
}

#[cfg(test)]
mod tests;
