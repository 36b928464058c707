//! `stop`, `pause`, `guide`, `skip` and `retry`: requests to a run that is at work, from another terminal.

use ralphloop_core::ids::StoryId;
use ralphloop_core::run::{Run, StoryState};
use ralphloop_engine::control::{self, Request};
use ralphloop_engine::runs::RunFolder;

use super::repository::{damaged, find_run, no_run, runtime, state};
use super::run;
use crate::arguments::{GuideArguments, PauseArguments, RetryArguments, SkipArguments, StopArguments};
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

pub(super) fn skip(arguments: &SkipArguments, host: &Host) -> Result<Exit, CliError> {
    let folder = running(arguments.run.as_deref(), host)?;
    let run = folder.fold().map_err(|error| damaged(&error))?.run;
    let story = known(&arguments.story, &run)?;
    let then = match run.record(&story).map(|record| &record.state) {
        Some(state) if state.passed() => return Err(CliError::usage(format!("{story} has passed already"))),
        Some(StoryState::AwaitsSignOff { .. }) => {
            return Err(CliError::usage(format!(
                "{story} has landed, and awaits a sign-off: `ralphloop sign {story}`"
            )));
        }
        Some(StoryState::Skipped) => return Err(CliError::usage(format!("{story} is skipped already"))),
        Some(StoryState::Running) => "; its attempt is ended, kept and put back",
        _ => "",
    };
    ask(&folder, &Request::Skip { story: story.clone() })?;
    output::talk(&format!("run {} skips {story}{then}; `ralphloop retry {story}` takes it up again\n", folder.id));
    Ok(Exit::DONE)
}

pub(super) fn retry(arguments: RetryArguments, host: &Host) -> Result<Exit, CliError> {
    let RetryArguments { story, run: wanted, view, settings } = arguments;
    let folder = match (&wanted, at_work(host)?.as_slice()) {
        (None, [folder]) => folder.clone(),
        (None, [_, _, ..]) => running(None, host)?,
        (wanted, _) => find_run(wanted.as_deref(), host)?,
    };
    let run = folder.fold().map_err(|error| damaged(&error))?.run;
    let story = known(&story, &run)?;
    let record = run.record(&story);
    match record.map(|record| &record.state) {
        Some(state) if state.passed() => return Err(CliError::usage(format!("{story} has passed already"))),
        Some(StoryState::Pending) if folder.live_process().is_some() => {
            return Err(CliError::usage(format!("{story} is waiting for its turn")));
        }
        Some(StoryState::Running) if folder.live_process().is_some() && record.is_some_and(|r| !r.is_put_aside()) => {
            return Err(CliError::usage(format!("{story} is being worked on")));
        }
        _ => {}
    }
    if folder.live_process().is_none() {
        return run::retry(folder, story, settings, view, host);
    }
    ask(&folder, &Request::Retry { story: story.clone() })?;
    output::talk(&format!("run {} tries {story} again, with all its attempts\n", folder.id));
    Ok(Exit::DONE)
}

/// The story of that name.
fn known(story: &str, run: &Run) -> Result<StoryId, CliError> {
    let id = StoryId::from(story);
    if run.record(&id).is_some() {
        return Ok(id);
    }
    let ids: Vec<String> = run.records().map(|(story, _)| output::one_line(story.id.as_str())).collect();
    Err(CliError::usage(format!("run {} has no story {}", run.id(), output::one_line(story)))
        .hint(format!("it has {}", ids.join(", "))))
}

pub(super) fn at_work(host: &Host) -> Result<Vec<RunFolder>, CliError> {
    let runs = state(host)?.runs().map_err(|error| no_run(&error.into()))?;
    Ok(runs.into_iter().filter(|folder| folder.live_process().is_some()).collect())
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
    match at_work(host)?.as_slice() {
        [folder] => Ok(folder.clone()),
        [one, two, ..] => Err(CliError::usage("several runs are at work here, name one of them")
            .hint(format!("{}, {} …; `ralphloop runs` lists them", one.id, two.id))),
        [] => Err(CliError::usage("no run is at work in this repository")
            .hint("`ralphloop status` shows how the latest one ended")),
    }
}

pub(super) fn ask(folder: &RunFolder, request: &Request) -> Result<(), CliError> {
    runtime()?
        .block_on(control::ask(&folder.id, folder.path(), request))
        .map_err(|error| CliError::environment(error.to_string()))
}
