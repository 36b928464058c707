//! What is here: the work that is written down, how far it is and whether it can be run, and the runs that there were.

use std::path::PathBuf;

use ralphloop_core::run::Run;
use ralphloop_engine::runs::{RunFolder, StateFolder, unfinished};
use ralphloop_engine::work::{self, Found};
use ralphloop_spec::{Reading, Severity};
use ralphloop_tui::pick::port::{Count, Readiness, RunRow, WorkRow};

use super::repository;
use super::spec::Progress;
use crate::host::Host;
use crate::view::status::Status;

/// Runs that are looked at; what is older than so many others tells of no present work.
const NEWEST: usize = 200;

/// One piece of work, as far as it can be read.
pub(crate) struct Row {
    /// Where it is.
    pub(crate) found: Found,
    /// What it says, or why it cannot be read.
    pub(crate) reading: Result<Reading, String>,
    /// Errors and warnings that `check` finds in its files.
    pub(crate) problems: (usize, usize),
    /// Its newest run, if that is going on or unfinished.
    pub(crate) run: Option<RunRow>,
}

/// A run that is kept here.
pub(crate) struct Kept {
    folder: RunFolder,
    /// For lists.
    pub(crate) row: RunRow,
}

/// All work that is found from where the program was called.
pub(crate) fn works(host: &Host, runs: &[Kept]) -> Vec<Row> {
    work::find(&host.cwd).into_iter().map(|found| Row::read(found, runs)).collect()
}

/// The runs of the repository, newest first; none outside of one.
pub(crate) fn runs(state: &StateFolder) -> Vec<Kept> {
    let folders = state.runs().unwrap_or_default();
    folders.into_iter().take(NEWEST).map(|folder| Kept { row: row_of(&folder), folder }).collect()
}

/// The same, from where the program was called.
pub(crate) fn runs_here(host: &Host) -> Vec<Kept> {
    // `list` and the screen work outside of a repository too.
    repository::state(host).map(|state| runs(&state)).unwrap_or_default()
}

fn row_of(folder: &RunFolder) -> RunRow {
    let live = folder.live_process();
    match folder.fold() {
        Ok(read) => row(folder, &read.run, live.map(|process| process.pid)),
        Err(error) => RunRow {
            id: folder.id.clone(),
            work: String::new(),
            state: "damaged".to_owned(),
            stories: None,
            reason: error.to_string(),
            began: folder.id.to_string(),
            live: false,
            unfinished: false,
        },
    }
}

/// A run for lists.
pub(crate) fn row(folder: &RunFolder, run: &Run, pid: Option<u32>) -> RunRow {
    let status = Status::of(run, pid);
    RunRow {
        id: folder.id.clone(),
        work: status.work,
        state: status.state.as_str().to_owned(),
        stories: Some(Count { done: status.passed, total: status.total }),
        reason: status.reason.unwrap_or_default(),
        began: local(&status.started_at),
        live: pid.is_some(),
        unfinished: unfinished(run),
    }
}

/// A time of the contract (RFC 3339, UTC) as it is where the user is.
fn local(at: &str) -> String {
    let Ok(at) = at.parse::<jiff::Timestamp>() else { return at.to_owned() };
    jiff::tz::TimeZone::system().to_datetime(at).strftime("%Y-%m-%d %H:%M").to_string()
}

impl Row {
    fn read(found: Found, runs: &[Kept]) -> Self {
        let files = work::load(&found.work).map_err(|error| error.to_string());
        let problems = files.as_ref().map_or((1, 0), |files| {
            let findings = ralphloop_spec::check(files);
            let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
            (errors, findings.len() - errors)
        });
        let reading = files.and_then(|files| ralphloop_spec::read(&files).map_err(|error| error.to_string()));
        let name = found.work.id.to_string();
        let is_its = |kept: &&Kept| kept.row.work == name && kept.folder.is_of_project(&found.work.project);
        let newest = runs.iter().find(is_its).map(|kept| &kept.row);
        let run = newest.filter(|run| run.live || run.unfinished).cloned();
        Self { found, reading, problems, run }
    }

    /// Why it cannot be run, if it cannot.
    pub(crate) fn reason(&self) -> Option<String> {
        if !self.found.missing.is_empty() {
            return Some(self.found.missing.join(", "));
        }
        self.reading.as_ref().err().cloned()
    }

    /// Whether it can be run.
    pub(crate) fn readiness(&self) -> Readiness {
        match (&self.reading, self.reason()) {
            _ if self.found.archived => Readiness::Archived,
            (Ok(reading), _) if reading.all_done => Readiness::Complete,
            (_, None) => Readiness::Ready,
            (Err(_), Some(reason)) if self.found.missing.is_empty() => Readiness::Unreadable(reason),
            (_, Some(reason)) => Readiness::NotReady(reason),
        }
    }

    pub(crate) fn title(&self) -> Option<&str> {
        let reading = self.reading.as_ref().ok()?;
        reading.plan.title.as_deref().or(reading.project.as_deref())
    }

    /// How far it is, if it can be read.
    pub(crate) fn progress(&self) -> Option<Progress> {
        self.reading.as_ref().ok().map(Progress::of)
    }

    /// The file or folder that it stands in.
    pub(crate) fn path(&self) -> &PathBuf {
        &self.found.work.main
    }

    /// As the screen shows it.
    pub(crate) fn shown(&self) -> WorkRow {
        let count = |(done, total): (usize, usize)| Count { done, total };
        let progress = self.progress();
        WorkRow {
            id: self.found.work.id.clone(),
            title: self.title().map(str::to_owned),
            stories: progress.map(|progress| count(progress.stories)),
            tasks: progress.map(|progress| count(progress.tasks)),
            readiness: self.readiness(),
            problems: self.problems,
            run: self.run.clone(),
        }
    }
}
