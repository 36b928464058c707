//! `stop`, `pause` and `guide`: requests to a run that is at work, from another terminal.

use ralphloop_engine::control::{self, Request};
use ralphloop_engine::runs::RunFolder;

use super::repository::{find_run, no_run, runtime, state};
use crate::arguments::{GuideArguments, PauseArguments, StopArguments};
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output;

pub(super) fn stop(arguments: &StopArguments, host: &Host) -> Result<Exit, CliError> {
    let folder = running(arguments.run.as_deref(), host)?;
    ask(&folder, &Request::Stop { now: arguments.now })?;
    let when = if arguments.now { "now; the attempt is reverted and kept" } else { "after the attempt" };
    output::talk(&format!("run {} stops {when}\n", folder.id));
    Ok(Exit::DONE)
}

pub(super) fn pause(arguments: &PauseArguments, host: &Host) -> Result<Exit, CliError> {
    let folder = running(arguments.run.as_deref(), host)?;
    ask(&folder, &Request::Pause)?;
    output::talk(&format!("run {} pauses after the attempt; `ralphloop resume` goes on\n", folder.id));
    Ok(Exit::DONE)
}

pub(super) fn guide(arguments: &GuideArguments, host: &Host) -> Result<Exit, CliError> {
    let (run, text) = match arguments.words.as_slice() {
        [run, text] => (Some(run.as_str()), text),
        [text] => (None, text),
        _ => return Err(CliError::usage("one sentence is needed, in quotes")),
    };
    if text.trim().is_empty() {
        return Err(CliError::usage("the guidance is empty"));
    }
    let folder = running(run, host)?;
    ask(&folder, &Request::Guide { text: text.clone() })?;
    output::talk(&format!("run {} takes it into the next prompt\n", folder.id));
    Ok(Exit::DONE)
}

/// The run of that name, or the one that is at work.
fn running(wanted: Option<&str>, host: &Host) -> Result<RunFolder, CliError> {
    if wanted.is_some() {
        let folder = find_run(wanted, host)?;
        return match folder.live_process() {
            Some(_) => Ok(folder),
            None => Err(CliError::usage(format!("run {} is not running", folder.id))
                .hint("`ralphloop status` shows how it ended")),
        };
    }
    let runs = state(host)?.runs().map_err(|error| no_run(&error.into()))?;
    let mut alive = runs.into_iter().filter(|folder| folder.live_process().is_some());
    match (alive.next(), alive.next()) {
        (Some(folder), None) => Ok(folder),
        (Some(one), Some(two)) => Err(CliError::usage("several runs are at work here, name one of them")
            .hint(format!("{}, {} …; `ralphloop runs` lists them", one.id, two.id))),
        (None, _) => Err(CliError::usage("no run is at work in this repository")
            .hint("`ralphloop status` shows how the latest one ended")),
    }
}

fn ask(folder: &RunFolder, request: &Request) -> Result<(), CliError> {
    runtime()?
        .block_on(control::ask(&folder.id, folder.path(), request))
        .map_err(|error| CliError::environment(error.to_string()))
}
