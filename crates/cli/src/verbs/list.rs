//! `list`: the work that is written down here.

use ralphloop_tui::pick::port::Readiness;
use serde::Serialize;
use serde_json::Value;

use super::inventory::{self, Row};
use super::spec::Progress;
use crate::arguments::ListArguments;
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output::{self, count};

pub(super) fn list(arguments: &ListArguments, host: &Host) -> Result<Exit, CliError> {
    if arguments.json {
        output::json(&rows(host)?)?;
        return Ok(Exit::DONE);
    }
    let rows = inventory::works(host, &inventory::runs_here(host));
    if rows.is_empty() {
        output::talk(&format!("no work found here; it could be {}\n", super::spec::KINDS));
    } else {
        let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
        output::data(&output::table(&["WORK", "STORIES", "TASKS", "STATE", "TITLE"], &cells))?;
    }
    Ok(Exit::DONE)
}

/// The work that is found here, as JSON.
pub(crate) fn rows(host: &Host) -> Result<Value, CliError> {
    let works = inventory::works(host, &inventory::runs_here(host));
    output::value(&works.iter().map(listed).collect::<Vec<_>>())
}

/// How it stands, in one line.
fn state(row: &Row) -> String {
    let mut said = match row.readiness() {
        Readiness::Archived => "archived".to_owned(),
        Readiness::Complete => "complete".to_owned(),
        Readiness::Ready => "ready".to_owned(),
        Readiness::Unreadable(reason) => return format!("unreadable: {reason}"),
        Readiness::NotReady(reason) => format!("not ready: {reason}"),
    };
    if let Some(run) = &row.run {
        said.push_str(&format!(", a run is {}", run.state));
    }
    let (errors, warnings) = row.problems;
    for (number, one, many) in [(errors, "error", "errors"), (warnings, "warning", "warnings")] {
        if number > 0 {
            said.push_str(&format!(", {}", count(number, one, many)));
        }
    }
    said
}

fn cells(row: &Row) -> Vec<String> {
    let fraction = |(done, total): (usize, usize)| format!("{done}/{total}");
    let progress = row.progress();
    let count = |part: fn(Progress) -> (usize, usize)| progress.map_or("–".to_owned(), |p| fraction(part(p)));
    vec![
        row.found.work.id.to_string(),
        count(|progress| progress.stories),
        count(|progress| progress.tasks),
        output::cut(&output::one_line(&state(row)), 60),
        output::cut(&output::one_line(row.title().unwrap_or("")), 60),
    ]
}

/// A piece of work, as `list --json` prints it.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ListedWork {
    /// Its name, as `run` takes it: `scheme:id`.
    work: String,
    /// Its format.
    scheme: String,
    /// Its name within the format.
    id: String,
    /// Its title.
    title: Option<String>,
    /// Where it is.
    path: String,
    /// Stories that are done, if it can be read.
    done: Option<usize>,
    /// Stories that have to be.
    total: Option<usize>,
    /// Tasks that are done, if it can be read.
    tasks_done: Option<usize>,
    /// Tasks that have to be.
    tasks_total: Option<usize>,
    /// It can be run.
    ready: bool,
    /// Nothing required is left.
    complete: bool,
    /// It was put aside.
    archived: bool,
    /// Why it cannot be run.
    reason: Option<String>,
    /// Errors that `check` would report.
    errors: usize,
    /// Warnings that `check` would report.
    warnings: usize,
    /// The newest run of it, if that is going on or can be gone on with.
    run: Option<OpenRun>,
}

/// A run of a work that is going on or can be gone on with.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct OpenRun {
    /// Its id.
    run: String,
    /// How it stands, in the words of `status`.
    state: String,
    /// Stories that have passed.
    passed: Option<usize>,
    /// All of them.
    total: Option<usize>,
}

fn listed(row: &Row) -> ListedWork {
    let work = &row.found.work;
    let progress = row.progress();
    ListedWork {
        work: work.id.to_string(),
        scheme: work.id.scheme.as_str().to_owned(),
        id: work.id.id.clone(),
        title: row.title().map(str::to_owned),
        path: row.path().display().to_string(),
        done: progress.map(|progress| progress.stories.0),
        total: progress.map(|progress| progress.stories.1),
        tasks_done: progress.map(|progress| progress.tasks.0),
        tasks_total: progress.map(|progress| progress.tasks.1),
        ready: row.reason().is_none() && !row.found.archived,
        complete: row.reading.as_ref().is_ok_and(|reading| reading.all_done),
        archived: row.found.archived,
        reason: row.reason(),
        errors: row.problems.0,
        warnings: row.problems.1,
        run: row.run.as_ref().map(|run| OpenRun {
            run: run.id.to_string(),
            state: run.state.clone(),
            passed: run.stories.map(|count| count.done),
            total: run.stories.map(|count| count.total),
        }),
    }
}
