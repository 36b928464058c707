//! `status`, `runs` and `log`: what the journals tell.

use ralphloop_core::event::{Event, Fact};
use ralphloop_core::run::{Activity, Run};
use ralphloop_engine::follow::Follower;
use ralphloop_engine::journal::{self, Place};
use ralphloop_engine::runs::RunFolder;
use serde::Serialize;

use super::repository::{damaged, find_run, runtime, state};
use super::talk;
use crate::arguments::{LogArguments, RunsArguments, StatusArguments};
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output;
use crate::view::status::{RunState, Status};
use crate::view::{audit, lines, public};

fn status_of(folder: &RunFolder) -> Result<(Run, Status), CliError> {
    let run = folder.fold().map_err(|error| damaged(&error))?.run;
    let pid = folder.live_process().map(|process| process.pid);
    let status = Status::of(&run, pid);
    Ok((run, status))
}

/// How the newest run stands.
pub(crate) fn latest(host: &Host) -> Result<Status, CliError> {
    status_of(&find_run(None, host)?).map(|(_, status)| status)
}

pub(super) fn status(arguments: &StatusArguments, host: &Host) -> Result<Exit, CliError> {
    let folder = find_run(arguments.run.as_deref(), host)?;
    if arguments.follow && !arguments.json && crate::screen::possible() {
        return crate::screen::attach(&folder, host);
    }
    let mut follower = Following::of(&folder, arguments.follow)?;
    let mut shown = String::new();
    loop {
        let (run, status) = status_of(&folder)?;
        let text = if arguments.json { pretty(&status)? } else { status.text() };
        if text != shown {
            output::data(&text)?;
            shown = text;
        }
        match &mut follower {
            Some(follower) if status.pid.is_some() && !matches!(run.activity(), Activity::Ended(_)) => {
                follower.wait()?;
            }
            _ => return Ok(Exit::DONE),
        }
    }
}

/// A run that is watched by a verb that only waits.
struct Following {
    runtime: tokio::runtime::Runtime,
    follower: Follower,
}

impl Following {
    /// Watches the run from now on, if that is asked for.
    fn of(folder: &RunFolder, wanted: bool) -> Result<Option<Self>, CliError> {
        if !wanted {
            return Ok(None);
        }
        let runtime = runtime()?;
        let follower = runtime.block_on(async { Follower::of(folder) }).map_err(|error| cannot_follow(&error))?;
        Ok(Some(Self { runtime, follower }))
    }

    fn wait(&mut self) -> Result<(), CliError> {
        self.runtime.block_on(self.follower.wait()).map_err(|error| cannot_follow(&error))
    }
}

fn cannot_follow(error: &std::io::Error) -> CliError {
    CliError::environment("the run cannot be followed").cause(error)
}

fn pretty(status: &Status) -> Result<String, CliError> {
    let text = serde_json::to_string_pretty(status);
    text.map(|text| text + "\n").map_err(|error| CliError::environment("could not write the status").cause(&error))
}

pub(super) fn runs(arguments: &RunsArguments, host: &Host) -> Result<Exit, CliError> {
    let folders = state(host)?.runs().map_err(|error| CliError::environment(error.to_string()))?;
    let read: Vec<(&RunFolder, Result<Status, CliError>)> =
        folders.iter().map(|folder| (folder, status_of(folder).map(|(_, status)| status))).collect();
    if arguments.json {
        let listed: Vec<ListedRun> = read.iter().map(|(folder, status)| listed(folder, status)).collect();
        output::json(&output::value(&listed)?)?;
    } else if read.is_empty() {
        output::talk("no run has been made in this repository yet\n");
    } else {
        let rows: Vec<Vec<String>> = read.iter().map(|(folder, status)| run_row(folder, status)).collect();
        output::data(&output::table(&["RUN", "STATE", "PASSED", "STARTED", "WORK", ""], &rows))?;
    }
    Ok(Exit::DONE)
}

/// A run, as `runs --json` prints it.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub(crate) enum ListedRun {
    Read(Box<ReadRun>),
    Damaged(DamagedRun),
}

/// A run whose journal can be read; its fields are those of `status --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ReadRun {
    /// Its id.
    run: String,
    /// The work: `scheme:id`.
    work: String,
    /// How it stands.
    state: RunState,
    /// Why, in one line.
    reason: Option<String>,
    /// When it began.
    started_at: String,
    /// When it ended.
    ended_at: Option<String>,
    /// The branch on which stories land.
    branch: String,
    /// Stories that have passed.
    passed: usize,
    /// All of them.
    total: usize,
    /// What its agents cost.
    cost_usd: Option<f64>,
}

/// A run whose journal cannot be read.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct DamagedRun {
    /// Its id.
    run: String,
    state: DamagedWord,
    /// What is wrong with it.
    reason: String,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum DamagedWord {
    Damaged,
}

fn listed(folder: &RunFolder, status: &Result<Status, CliError>) -> ListedRun {
    match status {
        Ok(status) => ListedRun::Read(Box::new(ReadRun {
            run: status.run.clone(),
            work: status.work.clone(),
            state: status.state,
            reason: status.reason.clone(),
            started_at: status.started_at.clone(),
            ended_at: status.ended_at.clone(),
            branch: status.branch.clone(),
            passed: status.passed,
            total: status.total,
            cost_usd: status.cost_usd,
        })),
        Err(error) => {
            let (run, reason) = (folder.id.to_string(), error.one_line());
            ListedRun::Damaged(DamagedRun { run, state: DamagedWord::Damaged, reason })
        }
    }
}

fn run_row(folder: &RunFolder, status: &Result<Status, CliError>) -> Vec<String> {
    match status {
        Ok(status) => vec![
            status.run.clone(),
            status.state.as_str().to_owned(),
            format!("{}/{}", status.passed, status.total),
            status.started_at.clone(),
            status.work.clone(),
            status.reason.as_deref().map(|reason| output::cut(&output::one_line(reason), 70)).unwrap_or_default(),
        ],
        Err(error) => {
            let empty = String::new;
            vec![folder.id.to_string(), "damaged".to_owned(), empty(), empty(), empty(), error.one_line()]
        }
    }
}

pub(super) fn log(arguments: &LogArguments, host: &Host) -> Result<Exit, CliError> {
    let folder = find_run(arguments.run.as_deref(), host)?;
    let mut teller = Teller { arguments, folder: &folder, run: None, line: 0 };
    let mut follower = Following::of(&folder, arguments.follow)?;
    let mut told = Place::default();
    loop {
        // Asked before the events are read: what a process wrote before it ended is not missed.
        let alive = folder.live_process().is_some();
        for event in journal::read_after(&folder.journal(), &mut told).map_err(|error| damaged(&error))? {
            teller.tell(&event)?;
        }
        match &mut follower {
            Some(follower) if alive && !teller.has_ended() => {
                follower.wait()?;
            }
            _ => return Ok(Exit::DONE),
        }
    }
}

/// Tells events one by one, each in the light of those before it.
struct Teller<'a> {
    arguments: &'a LogArguments,
    folder: &'a RunFolder,
    run: Option<Run>,
    /// Of the journal.
    line: u64,
}

impl Teller<'_> {
    fn tell(&mut self, event: &Event) -> Result<(), CliError> {
        self.line += 1;
        let run = match self.run.take() {
            Some(mut run) => {
                drop(run.step(event));
                run
            }
            None => match Run::start(event) {
                Ok((run, _)) => run,
                Err(_) => return Ok(()),
            },
        };
        let run = self.run.insert(run);
        if !concerns(self.arguments, &event.fact) {
            return Ok(());
        }
        if self.arguments.audit {
            let Some(record) = audit::record(self.line, event, run) else { return Ok(()) };
            return if self.arguments.json { output::json_line(&record) } else { output::data(&record.text()) };
        }
        if self.arguments.json {
            return public::of(event, run).iter().try_for_each(output::json_line);
        }
        output::data(&lines::printed(event, run))?;
        if self.arguments.story.is_some()
            && let Fact::AgentEnded { attempt, call, .. } = &event.fact
        {
            output::data(&talk::of_call(self.folder, attempt, *call))?;
        }
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.run.as_ref().is_some_and(|run| matches!(run.activity(), Activity::Ended(_)))
    }
}

/// Whether a fact is among those that were asked for.
fn concerns(arguments: &LogArguments, fact: &Fact) -> bool {
    let Some(story) = &arguments.story else { return true };
    let right_attempt = arguments.attempt.is_none_or(|number| fact.attempt().is_some_and(|a| a.number == number));
    right_attempt && fact.story().is_some_and(|about| about.as_str() == story)
}
