//! The repository that the program was called in, its runs, and what is needed to start programs in it.

use std::path::{Path, PathBuf};

use ralphloop_engine::journal::JournalError;
use ralphloop_engine::process::{Spawner, SupervisorProgram};
use ralphloop_engine::runs::{RunFolder, RunsError, StateFolder};
use ralphloop_engine::start::{self, Place};

use crate::config::Settings;
use crate::error::CliError;
use crate::host::Host;
use crate::output;

/// The hidden word that makes this program a supervisor.
pub(crate) const SUPERVISE: &str = "__supervise";

/// A runtime for the verbs that start programs.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::environment("could not start the threads that the program needs").cause(&error))
}

/// Starts programs under supervision by this very program.
pub(crate) fn spawner() -> Result<Spawner, CliError> {
    let program: PathBuf = std::env::current_exe()
        .map_err(|error| CliError::environment("could not find out where ralphloop itself is").cause(&error))?;
    Ok(Spawner::new(SupervisorProgram { program, args: vec![SUPERVISE.into()] }))
}

/// The repository that `host` is in.
pub(crate) async fn open(host: &Host) -> Result<Place, CliError> {
    start::open(&host.cwd, spawner()?, Settings::default().command_timeout)
        .await
        .map_err(|error| CliError::environment(error.to_string()))
}

/// Puts back what dead runs left in the working tree that `project` is in.
pub(crate) fn put_back_leftovers(project: &Path) -> Result<(), CliError> {
    if !start::has_leftovers(project) {
        return Ok(());
    }
    let put_back = async {
        let place = start::open(project, spawner()?, Settings::default().command_timeout).await;
        put_back_leftovers_in(place.map_err(|error| CliError::environment(error.to_string()))?).await
    };
    runtime()?.block_on(put_back)
}

/// The same in this place.
pub(crate) async fn put_back_leftovers_in(place: Place) -> Result<(), CliError> {
    let said = start::put_back_leftovers(place).await.map_err(|error| CliError::environment(error.to_string()))?;
    for line in &said {
        output::warn(line);
    }
    Ok(())
}

/// What runs have left in the repository that `host` is in.
pub(crate) fn state(host: &Host) -> Result<StateFolder, CliError> {
    let place = runtime()?.block_on(open(host))?;
    Ok(StateFolder::of(&place.repository.places().common_dir))
}

/// The run of that name; the newest without one.
pub(crate) fn find_run(wanted: Option<&str>, host: &Host) -> Result<RunFolder, CliError> {
    state(host)?.find(wanted).map_err(|error| no_run(&error))
}

pub(crate) fn no_run(error: &RunsError) -> CliError {
    match error {
        RunsError::File(error) => CliError::environment(error.to_string()),
        RunsError::Unknown { .. } | RunsError::Ambiguous { .. } | RunsError::None => CliError::usage(error.to_string()),
    }
}

pub(crate) fn damaged(error: &JournalError) -> CliError {
    let said = CliError::environment(error.to_string());
    match error {
        JournalError::Damaged { .. } | JournalError::Empty { .. } => said.hint(
            "`ralphloop runs` lists the others; `ralphloop run` begins a new run of the same work, and what has landed stays",
        ),
        JournalError::File(_) | JournalError::Newer { .. } => said,
    }
}
