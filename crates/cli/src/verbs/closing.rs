//! `squash` and `pr`: what becomes of the commits of a run. The screen offers the same, in the same words.

use ralphloop_engine::finish::Finished;
use ralphloop_engine::pull_request::{self, PullRequest, PullRequestError};
use ralphloop_engine::squash::{self, Squash, SquashError, Squashed};

use super::repository::{damaged, find_run, open, runtime};
use super::take_up::{self, Asker as _};
use crate::arguments::{PullRequestArguments, SquashArguments, ViewArguments};
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output::{self, harmless, one_line};
use crate::view::short;

pub(super) fn squash(arguments: &SquashArguments, host: &Host) -> Result<Exit, CliError> {
    let folder = find_run(arguments.run.as_deref(), host)?;
    let run = folder.fold().map_err(|error| damaged(&error))?.run;
    runtime()?.block_on(async {
        let place = open(host).await?;
        let planned = squash::plan(&place, &run, arguments.message.as_deref()).await;
        let planned = planned.map_err(|error| not_squashed(&error))?;
        output::data(&(squash_text(&planned) + "\n"))?;
        if !arguments.dry_run {
            let squashed = squash::squash(&place, &planned).await.map_err(|error| not_squashed(&error))?;
            output::data(&(squashed_text(&squashed) + "\n"))?;
        }
        Ok(Exit::DONE)
    })
}

fn not_squashed(error: &SquashError) -> CliError {
    match error {
        SquashError::TooFew { .. } | SquashError::OthersCommitted { .. } | SquashError::Published { .. } => {
            CliError::usage(error.to_string())
        }
        _ => CliError::environment(error.to_string()),
    }
}

/// What would be done.
pub(crate) fn squash_text(squash: &Squash) -> String {
    let mut text = format!("{} commits on {} become one:\n", squash.commits.len(), one_line(&squash.branch));
    for commit in &squash.commits {
        text.push_str(&format!("  {} {}\n", commit.name, one_line(&commit.subject)));
    }
    text.push_str(&format!("with the message\n{}", indented(&squash.message)));
    text.push_str("No file changes, and the old tip is kept under a ref of ralphloop's.");
    text
}

/// What was done.
pub(crate) fn squashed_text(squashed: &Squashed) -> String {
    format!(
        "{} commits are one now: {}\nthe old tip is kept under {}; `git update-ref -d {}` lets it go",
        squashed.commits,
        short(squashed.commit.as_str()),
        squashed.kept,
        squashed.kept
    )
}

/// What was done to close a work.
pub(crate) fn finished_text(finished: &Finished) -> String {
    let mut lines: Vec<String> = finished.said.iter().map(|line| one_line(line)).collect();
    if let Some(commit) = &finished.commit {
        lines.push(format!("committed as {}", short(commit.as_str())));
    }
    if lines.is_empty() { "there was nothing left to do".to_owned() } else { lines.join("\n") }
}

pub(super) fn pull_request(arguments: &PullRequestArguments, host: &Host) -> Result<Exit, CliError> {
    let folder = find_run(arguments.run.as_deref(), host)?;
    let run = folder.fold().map_err(|error| damaged(&error))?.run;
    runtime()?.block_on(async {
        let place = open(host).await?;
        let planned = pull_request::plan(&place, &run).await.map_err(|error| not_opened(&error))?;
        output::data(&(pull_request_text(&planned) + "\n"))?;
        if arguments.dry_run {
            return Ok(Exit::DONE);
        }
        if !arguments.yes && !agreed()? {
            output::talk("nothing was pushed; `--yes` does it without a question\n");
            return Ok(Exit::PERSON);
        }
        let opened = pull_request::open(&place, &planned).await.map_err(|error| not_opened(&error))?;
        output::data(&format!("{}\n", one_line(&opened)))?;
        Ok(Exit::DONE)
    })
}

/// Whether somebody says that it may be pushed; nobody does not.
fn agreed() -> Result<bool, CliError> {
    let view = ViewArguments { tui: false, headless: false, json: false };
    let Some(mut asker) = take_up::on_terminal(take_up::can_ask(view)) else { return Ok(false) };
    let answers = [('y', "yes, push and open it"), ('n', "no, leave everything as it is")];
    Ok(asker.ask("Do that?", &answers)? == 'y')
}

fn not_opened(error: &PullRequestError) -> CliError {
    match error {
        PullRequestError::NoCommits { .. } => CliError::usage(error.to_string()),
        _ => CliError::environment(error.to_string()),
    }
}

/// What would be done.
pub(crate) fn pull_request_text(planned: &PullRequest) -> String {
    let [push, create] = planned.commands();
    format!("This is run:\n  {push}\n  {create}\nwith the text\n{}", indented(planned.body.trim_end()).trim_end())
}

fn indented(text: &str) -> String {
    harmless(text).lines().map(|line| format!("  {line}").trim_end().to_owned() + "\n").collect()
}
