//! What a run may not touch: branches that are protected, and the sandbox that its agents and gates are in.

use super::StartError;
use crate::earlier::Taken;
use crate::git::{self, Repository};
use crate::process::Spawner;
use crate::runs::StateFolder;
use crate::sandbox::{self, Sandbox};
use crate::settings::Settings;

/// Nothing is committed to a branch that the settings protect.
pub(super) fn refuse_protected(
    repository: &Repository,
    settings: &Settings,
    branch: Option<&str>,
    taken: Option<&Taken>,
) -> Result<(), StartError> {
    let wanted = taken.map(|taken| taken.run.branch().to_owned()).or_else(|| branch.map(str::to_owned));
    let wanted = match wanted {
        Some(wanted) => Some(wanted),
        None => repository.current_branch().map_err(git::BranchError::from)?,
    };
    let Some(branch) = wanted.map(|name| name.trim_start_matches("refs/heads/").to_owned()) else { return Ok(()) };
    let names = |pattern: &str| globset::Glob::new(pattern).is_ok_and(|glob| glob.compile_matcher().is_match(&branch));
    match settings.protected_branches.iter().find(|pattern| **pattern == branch || names(pattern)) {
        Some(pattern) => Err(StartError::Protected { branch: branch.clone(), pattern: pattern.clone() }),
        None => Ok(()),
    }
}

/// The sandbox that was asked for by name; there is that one, or no run.
pub(super) async fn asked_sandbox(
    settings: &Settings,
    is_inside: bool,
    state: &StateFolder,
    spawner: &Spawner,
) -> Result<Option<Sandbox>, StartError> {
    let sandbox::Choice::Asked(level) = settings.sandbox else { return Ok(None) };
    if is_inside {
        return Err(StartError::SandboxInside);
    }
    let opened = Sandbox::open(level, settings.sandbox_terms.clone(), state.path(), spawner).await;
    opened.map(Some).map_err(|error| StartError::NoSandbox(Box::new(error)))
}

/// What git starts outside of the sandbox, on files that agents write.
pub(super) async fn drivers_outside(repository: &Repository) -> Result<Option<String>, StartError> {
    let drivers = repository.drivers().await?;
    Ok((!drivers.is_empty()).then(|| {
        format!(
            "git starts these in the working tree, outside of the sandbox: {}; one that loads code from there, as `python -m` \
             does, can be given the agent's",
            drivers.join(", ")
        )
    }))
}
