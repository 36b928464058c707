//! `__agent`: the built-in agent, as a run starts it.

use std::io::Read as _;

use ralphloop_agent::builtin::Setup;
use ralphloop_builtin::Work;

use super::repository::{runtime, spawner};
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;

pub(super) fn work(setup: &str, host: &Host) -> Result<Exit, CliError> {
    let setup: Setup = serde_json::from_str(setup)
        .map_err(|error| CliError::usage("the built-in agent is started by runs only").cause(&error))?;
    let mut prompt = String::new();
    std::io::stdin()
        .read_to_string(&mut prompt)
        .map_err(|error| CliError::environment("the prompt could not be read").cause(&error))?;
    let work = Work { setup, prompt, folder: host.cwd.clone(), spawner: spawner()? };
    let done = runtime()?.block_on(ralphloop_builtin::work(work, std::io::stdout()));
    // The last line says how it ended, also badly.
    done.map(|()| Exit::DONE).map_err(|error| CliError::environment(error.to_string()))
}
