//! `verify-log`: whether what is written of a run is what was written, and whether its commits are those it tells of.

use std::collections::BTreeSet;

use ralphloop_core::event::Fact;
use ralphloop_engine::audit::{self, Checked};
use ralphloop_engine::git::{Seal, Sealed};
use ralphloop_engine::journal;
use ralphloop_engine::runs::{RunFolder, StateFolder};
use ralphloop_engine::start::Place;
use serde_json::json;

use super::{commit_key, repository};
use crate::arguments::VerifyLogArguments;
use crate::config::{self, Layer};
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output::{self, BAD, GOOD, count, one_line, styled};

/// Something that does not fit, and where.
struct Fault {
    line: Option<u64>,
    why: String,
}

/// What became of the commits of a run.
#[derive(Default)]
struct Commits {
    told: usize,
    signed: usize,
    faults: Vec<Fault>,
    notes: Vec<String>,
}

pub(super) fn verify_log(arguments: &VerifyLogArguments, host: &Host) -> Result<Exit, CliError> {
    let runtime = repository::runtime()?;
    let place = runtime.block_on(repository::open(host))?;
    let state = StateFolder::of(&place.repository.places().common_dir);
    let folder = state.find(arguments.run.as_deref()).map_err(|error| repository::no_run(&error))?;
    let checked = audit::check(&folder.journal()).map_err(|error| CliError::environment(error.to_string()))?;
    let (config, _) = config::load(&host.cwd, &host.environment, Layer::default())?;
    let commits = runtime.block_on(async {
        let seal = commit_key::seal(&config, &host.cwd, &place.spawner).await?;
        commits(&folder, &place, seal.as_ref()).await
    })?;
    let mut faults: Vec<Fault> =
        checked.faults.iter().map(|fault| Fault { line: Some(fault.line), why: fault.why.clone() }).collect();
    faults.extend(commits.faults);
    let notes = notes(&checked, &folder, commits.notes);
    let exit = if faults.is_empty() { Exit::DONE } else { Exit::FAILED };
    if arguments.json {
        let faults: Vec<_> = faults.iter().map(|fault| json!({ "line": fault.line, "why": fault.why })).collect();
        output::json(&json!({
            "run": folder.id.as_str(), "journal": folder.journal(), "lines": checked.lines, "hash": checked.hash,
            "commits": commits.told, "signed": commits.signed, "intact": faults.is_empty(), "faults": faults, "notes": notes,
        }))?;
        return Ok(exit);
    }
    let mut text = String::new();
    for fault in &faults {
        let at = fault.line.map_or_else(String::new, |line| format!("{}:{line}: ", folder.journal().display()));
        text.push_str(&format!("{} {}\n", styled(BAD, "✗"), one_line(&format!("{at}{}", fault.why))));
    }
    for note in &notes {
        text.push_str(&format!("note: {}\n", one_line(note)));
    }
    let (lines, told) = (checked.lines, commits.told);
    let lines = count(usize::try_from(lines).unwrap_or(usize::MAX), "line", "lines");
    let commits_text = format!("{}, {} of them signed with the key", count(told, "commit", "commits"), commits.signed);
    text.push_str(&if faults.is_empty() {
        format!(
            "{} run {}: {lines} as they were written, {commits_text}\n  {}\n",
            styled(GOOD, "✓"),
            folder.id,
            checked.hash
        )
    } else {
        format!(
            "run {}: {}, in {lines} and {commits_text}\n",
            folder.id,
            count(faults.len(), "thing does not fit", "things do not fit")
        )
    });
    output::data(&text)?;
    Ok(exit)
}

fn notes(checked: &Checked, folder: &RunFolder, more: Vec<String>) -> Vec<String> {
    let mut notes = more;
    if checked.unchained > 0 {
        notes.push(format!(
            "{} of an older version carry no hash: a change of them would not be seen",
            count(usize::try_from(checked.unchained).unwrap_or(usize::MAX), "line", "lines")
        ));
    }
    if checked.headless {
        notes.push(
            "there is no head beside the journal: whether lines were cut off at its end cannot be told".to_owned(),
        );
    }
    if checked.torn {
        notes.push(
            "its last line was not written to the end: the run was killed then, and the line counts for nothing"
                .to_owned(),
        );
    }
    if folder.live_process().is_some() {
        notes.push("the run is at work; more is being written".to_owned());
    }
    notes
}

/// Compares what the journal tells of landings with the commits that there are.
async fn commits(folder: &RunFolder, place: &Place, seal: Option<&Seal>) -> Result<Commits, CliError> {
    let failed = |error: &dyn std::error::Error| CliError::environment(error.to_string());
    let mut found = Commits::default();
    // A damaged journal is told of by its lines.
    let Ok(replay) = journal::read(&folder.journal()) else { return Ok(found) };
    let repository = &place.repository;
    let mut told: BTreeSet<String> = BTreeSet::new();
    let mut branch = None;
    let mut restarted = false;
    for (line, event) in (1..).zip(&replay.events) {
        match &event.fact {
            Fact::RunStarted { branch: on, base, .. } => branch = Some((on.clone(), base.clone())),
            Fact::Restarted { landed, .. } => {
                restarted = true;
                told.extend(landed.iter().map(|(_, commit)| commit.to_string()));
            }
            Fact::Landed { attempt, commit, .. } => {
                told.insert(commit.to_string());
                found.told += 1;
                let why = match (repository.sealed(commit, seal).await, seal) {
                    (Err(_), _) => Some(format!("the commit {commit} of {attempt} is not there any more")),
                    (Ok(Sealed::Fits), _) => {
                        found.signed += 1;
                        None
                    }
                    (Ok(Sealed::Differs), _) => Some(format!(
                        "the signature of {commit} ({attempt}) does not fit: its tree, parent or message, or the key, is another"
                    )),
                    (Ok(Sealed::Unchecked), _) => {
                        found.notes.push(format!(
                            "{commit} is signed; without the key (RALPHLOOP_COMMIT_KEY, or commit_key_command) that is not checked"
                        ));
                        None
                    }
                    (Ok(Sealed::None), Some(_)) => {
                        found.notes.push(format!("{commit} of {attempt} is not signed"));
                        None
                    }
                    (Ok(Sealed::None), None) => None,
                };
                found.faults.extend(why.map(|why| Fault { line: Some(line), why }));
            }
            _ => {}
        }
    }
    let Some((branch, base)) = branch else { return Ok(found) };
    // A branch that is gone has none.
    let on_branch = repository.landed_on(&branch, Some(&base)).await.unwrap_or_default();
    for landed in on_branch.into_iter().filter(|one| one.run == folder.id) {
        let commit = landed.commit.to_string();
        if !told.contains(&commit)
            && repository.sealed(&landed.commit, seal).await.map_err(|e| failed(&e))? == Sealed::Differs
        {
            found.faults.push(Fault { line: None, why: format!("the signature of {commit} does not fit") });
        }
        if !told.contains(&commit) {
            let why = format!(
                "the branch has {commit} of {} ({}), and the journal tells of no such landing",
                landed.story, landed.attempt
            );
            if restarted || folder.live_process().is_some() {
                found.notes.push(why);
            } else {
                found.faults.push(Fault {
                    line: None,
                    why: format!("{why}: it was cut, or the commit was made by somebody else, or changed since"),
                });
            }
        }
    }
    Ok(found)
}
