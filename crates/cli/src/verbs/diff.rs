//! `diff`: what an attempt changed.

use ralphloop_core::ids::StoryId;
use ralphloop_core::run::{Run, StoryRecord};
use ralphloop_engine::runs::StateFolder;

use super::repository::{damaged, no_run, open, runtime};
use crate::arguments::DiffArguments;
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output;

/// A diff beyond this many bytes is an error that names the command to look at it with.
const MAX_DIFF: usize = 64 * 1024 * 1024;

pub(super) fn diff(arguments: &DiffArguments, host: &Host) -> Result<Exit, CliError> {
    let text = runtime()?.block_on(async {
        let place = open(host).await?;
        let state = StateFolder::of(&place.repository.places().common_dir);
        let folder = state.find(arguments.run.as_deref()).map_err(|error| no_run(&error))?;
        let run = folder.fold().map_err(|error| damaged(&error))?.run;
        let commit = commit_of(&arguments.attempt, &run)?;
        let git = place.repository.git();
        let command = git.read(&place.repository.places().top).max_output(MAX_DIFF);
        let answer = command
            .args(["diff", "--no-ext-diff", "--no-textconv", "--stat", "--patch"])
            .arg(format!("{commit}^"))
            .arg(&commit)
            .arg("--")
            .run()
            .await;
        answer.map(|answer| answer.stdout).map_err(|error| {
            CliError::environment(format!("could not compare {commit} with what was before it")).cause(&error)
        })
    })?;
    output::data(&output::harmless(&String::from_utf8_lossy(&text)))?;
    Ok(Exit::DONE)
}

/// The commit or ref that holds what `attempt` (`STORY#2`, `STORY`) changed.
fn commit_of(attempt: &str, run: &Run) -> Result<String, CliError> {
    // An id may hold a `#` itself, so the whole is tried as an id first.
    let whole = run.record(&StoryId::from(attempt)).map(|record| (attempt, record, None));
    let found = whole.or_else(|| {
        let (story, number) = attempt.rsplit_once('#')?;
        Some((story, run.record(&StoryId::from(story))?, Some(number.parse::<u32>().ok()?)))
    });
    let Some((story, record, number)) = found else {
        let known: Vec<&str> = run.records().map(|(story, _)| story.id.as_str()).collect();
        return Err(CliError::usage(format!("run {} has no story {attempt}", run.id()))
            .hint(format!("its stories are: {}", known.join(", "))));
    };
    let Some(number) = number.or_else(|| latest(record)) else {
        return Err(CliError::usage(format!("no attempt of {story} in run {} has changed anything", run.id())));
    };
    if let Some(commit) = record.state.commit()
        && number == record.attempts
    {
        return Ok(commit.to_string());
    }
    record.kept.iter().find(|(kept, _)| *kept == number).map(|(_, reference)| reference.clone()).ok_or_else(|| {
        CliError::usage(format!("nothing is kept of {story}#{number} in run {}", run.id()))
            .hint("an attempt that changed nothing leaves nothing; `ralphloop log` tells what happened")
    })
}

fn latest(record: &StoryRecord) -> Option<u32> {
    match record.state.commit() {
        Some(_) => Some(record.attempts),
        None => record.kept.last().map(|(number, _)| *number),
    }
}
