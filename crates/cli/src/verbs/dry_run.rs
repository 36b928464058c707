//! `run --dry-run`: what a run would do, without a byte written or a program started.

use std::fmt::Write as _;

use ralphloop_core::graph;
use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::Plan;
use ralphloop_engine::start::WorkReading;

use super::launch::Prepared;
use super::{prompt, spec};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{self, HEAD, harmless, one_line, styled};

pub(super) fn dry_run(prepared: &Prepared) -> Result<Exit, CliError> {
    let Prepared { work, settings, .. } = prepared;
    let (plan, warnings) = WorkReading::of(work)
        .and_then(|read| read.checked(&settings.only))
        .map_err(|error| spec::not_started(&error, work))?;
    for warning in prepared.warnings.iter().cloned().chain(warnings.iter().map(ToString::to_string)) {
        output::warn(&warning);
    }
    let stages = selected(&plan, &settings.only);
    let mut text = format!("{}  {}\n", styled(HEAD, "Work"), one_line(&plan.work.to_string()));
    if stages.is_empty() {
        text.push_str("Nothing to do.\n");
        output::data(&text)?;
        return Ok(Exit::DONE);
    }
    let gates = settings.gates(&plan, &work.project);
    let _ = writeln!(text, "{}", styled(HEAD, "Gates"));
    if gates.is_empty() {
        text.push_str("  none\n");
    }
    for gate in &gates {
        let _ = writeln!(text, "  {}", one_line(&gate.command));
    }
    let _ = writeln!(text, "{}", styled(HEAD, "Order"));
    for (number, stage) in stages.iter().enumerate() {
        for story in stage.iter().filter_map(|id| plan.story(id)) {
            let _ =
                writeln!(text, "  stage {}: {}  {}", number + 1, one_line(story.id.as_str()), one_line(&story.title));
        }
    }
    for story in stages.iter().flatten().filter_map(|id| plan.story(id)) {
        let prompt = prompt::first(&plan, story, settings, &work.project)?;
        let _ = write!(
            text,
            "\n{}\n{}\n",
            styled(HEAD, &format!("Prompt of {}", one_line(story.id.as_str()))),
            harmless(&prompt)
        );
    }
    output::data(&text)?;
    Ok(Exit::DONE)
}

/// The stages, of the stories that were named only these.
pub(crate) fn selected(plan: &Plan, only: &[StoryId]) -> Vec<Vec<StoryId>> {
    let mut stages = graph::stages(plan);
    if !only.is_empty() {
        for stage in &mut stages {
            stage.retain(|story| only.contains(story));
        }
        stages.retain(|stage| !stage.is_empty());
    }
    stages
}
