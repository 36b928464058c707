//! `export`: the state files that other tools read, anew from the journal.

use std::path::PathBuf;

use ralphloop_engine::journal::{self, Place};
use ralphloop_engine::runs::RunFolder;
use ralphloop_engine::work::{self, WorkRef};

use super::repository::{damaged, find_run};
use crate::arguments::ExportArguments;
use crate::config::{self, Layer};
use crate::error::CliError;
use crate::exit::Exit;
use crate::export::chronicle::Chronicle;
use crate::export::{write, write_design};
use crate::host::Host;
use crate::output;

pub(super) fn export(arguments: &ExportArguments, host: &Host) -> Result<Exit, CliError> {
    let folder = find_run(arguments.run.as_deref(), host)?;
    let events = journal::read_after(&folder.journal(), &mut Place::default()).map_err(|error| damaged(&error))?;
    let chronicle = Chronicle::of(&events)
        .map_err(|_| CliError::environment(format!("the journal of run {} does not begin a run", folder.id)))?;
    let work = work::resolve(Some(&chronicle.run.plan().work.to_string()), &host.cwd).ok();
    if arguments.design {
        return design(&chronicle, work.as_ref());
    }
    let to = match &arguments.to {
        Some(to) => host.cwd.join(to),
        None => usual_place(&folder, work.as_ref(), host)?,
    };
    // A PRD that the run itself works on is kept by its landings.
    let own = work.map(|work| work.story_files()).unwrap_or_default();
    let (written, left) = write(&chronicle, &to, |path| !own.contains(&to.join(path)))
        .map_err(|error| CliError::environment(error.to_string()))?;
    let lines: String = written.iter().map(|path| format!("{}\n", path.display())).collect();
    output::data(&output::harmless(&lines))?;
    for why in &left {
        output::warn(why);
    }
    Ok(if left.is_empty() { Exit::DONE } else { Exit::FAILED })
}

/// What was learned goes where the work's own format has it.
fn design(chronicle: &Chronicle, work: Option<&WorkRef>) -> Result<Exit, CliError> {
    let name = output::one_line(&chronicle.run.plan().work.to_string());
    let Some((work, folder)) = work.and_then(|work| Some((work, work.change.as_ref()?))) else {
        return Err(CliError::usage(format!("{name} has no design.md"))
            .hint("an OpenSpec change has, and so have specs of Spec Kit and Kiro")
            .hint("without --design, progress.txt and critical-learnings.md tell what was learned"));
    };
    let path = folder.join("design.md");
    let written = write_design(chronicle, &path).map_err(|error| CliError::environment(error.to_string()))?;
    if written {
        output::data(&format!("{}\n", output::harmless(&work.shown(&path))))?;
    } else {
        output::talk("nothing was learned in this run\n");
    }
    Ok(Exit::DONE)
}

/// Where they go that name no folder: where the settings say, else beside the journal.
fn usual_place(folder: &RunFolder, work: Option<&WorkRef>, host: &Host) -> Result<PathBuf, CliError> {
    let project = work.map_or(&host.cwd, |work| &work.project);
    let (config, _) = config::load(project, &host.environment, Layer::default())?;
    Ok(match config.settings.state_files {
        Some(named) => project.join(named),
        None => folder.path().join("export"),
    })
}
