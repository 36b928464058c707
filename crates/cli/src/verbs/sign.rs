//! `sign`: a person's word that a story is done which no command can check.

use ralphloop_engine::own_commit::OwnCommitError;
use ralphloop_engine::sign_off::{self, SignError, Signed};
use ralphloop_engine::work;

use super::repository::{damaged, find_run, open, runtime};
use super::spec::not_usable;
use crate::arguments::SignArguments;
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output::{self, one_line};
use crate::view::short;

pub(super) fn sign(arguments: &SignArguments, host: &Host) -> Result<Exit, CliError> {
    let named = match &arguments.work {
        Some(work) => work.clone(),
        None => find_run(None, host)?.fold().map_err(|error| damaged(&error))?.run.plan().work.to_string(),
    };
    let work = work::resolve(Some(&named), &host.cwd).map_err(|error| not_usable(&error))?;
    let story = arguments.story.as_str().into();
    let signed = runtime()?.block_on(async {
        let place = open(host).await?;
        sign_off::sign(&place, &work, &story).await.map_err(|error| not_signed(&error))
    })?;
    let id = one_line(&arguments.story);
    output::talk(&(signed_text(&id, &signed) + "\n"));
    Ok(Exit::DONE)
}

/// What was done.
pub(crate) fn signed_text(id: &str, signed: &Signed) -> String {
    match signed {
        Signed::Before => format!("{id} is done already"),
        Signed::Marked { commit: None } => format!("{id} is signed off; `ralphloop run` goes on"),
        Signed::Marked { commit: Some(commit) } => {
            format!("{id} is signed off, committed as {}; `ralphloop run` goes on", short(commit.as_str()))
        }
    }
}

fn not_signed(error: &SignError) -> CliError {
    match error {
        SignError::Work(error) => not_usable(error),
        SignError::Spec(_)
        | SignError::Unknown { .. }
        | SignError::NotAsked { .. }
        | SignError::NotLanded { .. }
        | SignError::Mark(_) => CliError::usage(error.to_string()),
        SignError::Commit(OwnCommitError::Locked(_)) => CliError::environment(error.to_string())
            .hint("a run that is at work is not disturbed; sign once it has ended"),
        _ => CliError::environment(error.to_string()),
    }
}
