//! The run that a start goes on with.

use ralphloop_core::ids::StoryId;
use ralphloop_core::outcome::Outcome;
use ralphloop_core::run::{Activity, Run};

use crate::fold::Folded;
use crate::journal::{JournalError, Place};
use crate::runs::{RunFolder, StateFolder, unfinished};
use crate::start::StartError;
use crate::work::WorkRef;

/// Whether an earlier run is gone on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TakingUp {
    /// The newest run of the same work, if it is unfinished; else a new one.
    Unfinished,
    /// Always a new one.
    Never,
    /// This one.
    Run(RunFolder),
    /// This one, to try a story of it again.
    Retry(RunFolder, StoryId),
}

/// A run that is gone on with.
pub(crate) struct Taken {
    pub(crate) folder: RunFolder,
    /// Where its journal ends.
    pub(crate) place: Place,
    pub(crate) run: Run,
    /// What is tried again.
    pub(crate) retry: Option<StoryId>,
}

/// What was found of earlier runs.
pub(crate) struct Earlier {
    pub(crate) run: Option<Taken>,
    pub(crate) warnings: Vec<String>,
}

/// The run that is gone on with, if one is.
pub(crate) fn earlier_run(state: &StateFolder, work: &WorkRef, taking_up: &TakingUp) -> Result<Earlier, StartError> {
    let none = |warnings| Ok(Earlier { run: None, warnings });
    match taking_up {
        TakingUp::Never => none(Vec::new()),
        TakingUp::Run(folder) | TakingUp::Retry(folder, _) => {
            let Folded { run, place } = folder.fold()?;
            if run.plan().work != work.id {
                let (run, its) = (run.id().to_string(), run.plan().work.to_string());
                return Err(StartError::OtherWork { run, its, asked: work.id.to_string() });
            }
            let retry = match taking_up {
                TakingUp::Retry(_, story) => Some(story.clone()),
                _ => None,
            };
            if retry.is_none() && matches!(run.activity(), Activity::Ended(Outcome::Complete)) {
                return Err(StartError::Finished { run: run.id().to_string() });
            }
            Ok(Earlier { run: Some(Taken { folder: folder.clone(), place, run, retry }), warnings: Vec::new() })
        }
        TakingUp::Unfinished => unfinished_of(state, work),
    }
}

/// The newest run of the work, if it can be gone on with.
pub fn unfinished_run(state: &StateFolder, work: &WorkRef) -> Result<Option<(RunFolder, Run)>, StartError> {
    Ok(unfinished_of(state, work)?.run.map(|taken| (taken.folder, taken.run)))
}

fn unfinished_of(state: &StateFolder, work: &WorkRef) -> Result<Earlier, StartError> {
    let mut warnings = Vec::new();
    for folder in state.runs()?.into_iter().filter(|folder| folder.is_of_project(&work.project)) {
        match folder.fold() {
            Ok(Folded { run, place }) if run.plan().work == work.id => {
                let run = unfinished(&run).then_some(Taken { folder, place, run, retry: None });
                return Ok(Earlier { run, warnings });
            }
            Ok(_) => {}
            Err(error @ JournalError::Newer { .. }) => return Err(error.into()),
            Err(error) => warnings.push(format!(
                "{error}; that run cannot be gone on with, what it landed is known from its commits and the spec"
            )),
        }
    }
    Ok(Earlier { run: None, warnings })
}
