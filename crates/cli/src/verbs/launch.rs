//! How a run was called: kept beside its journal, so that `resume` goes on with the same flags.

use std::path::PathBuf;

use ralphloop_core::ids::StoryId;
use ralphloop_engine::runs::RunFolder;
use ralphloop_engine::settings::{OnDirty, Settings};
use ralphloop_engine::start::WorkReading;
use ralphloop_engine::work::{self, WorkRef};
use serde::{Deserialize, Serialize};

use super::spec::not_usable;
use super::{settings, tracker};
use crate::config::{self, Config, Layer};
use crate::error::CliError;
use crate::host::Host;

/// The parts of a call of `run` that decide what it does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Launch {
    /// The folder that it was called in.
    cwd: PathBuf,
    /// The work as it was named.
    work: Option<String>,
    /// The stories that were named.
    stories: Vec<String>,
    /// The settings that were given as flags.
    flags: Vec<(String, Vec<String>)>,
}

/// A call with everything that follows from it.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The call, the work named in full.
    pub(crate) launch: Launch,
    /// The work.
    pub(crate) work: WorkRef,
    /// The settings.
    pub(crate) settings: Settings,
    /// What the settings were decided from.
    pub(crate) config: Config,
    /// What is worth a warning.
    pub(crate) warnings: Vec<String>,
    /// The work as it was read when the commands that it brings were judged, once they were.
    pub(crate) judged: Option<WorkReading>,
}

impl Launch {
    /// A call from `host`.
    pub(crate) fn new(work: Option<String>, stories: Vec<String>, flags: &Layer, host: &Host) -> Self {
        let flags = flags.texts().into_iter().map(|(name, texts)| (name.to_owned(), texts)).collect();
        Self { cwd: host.cwd.clone(), work, stories, flags }
    }

    /// What was answered about changes in the checkout, after the call, holds as if it had been a flag.
    pub(crate) fn keep_answer(&mut self, on_dirty: OnDirty) {
        if on_dirty == OnDirty::Worktree {
            self.flags.retain(|(name, _)| name != "dirty");
            self.flags.push(("dirty".to_owned(), vec!["worktree".to_owned()]));
        }
    }

    /// The call that began the run in `folder`, if it is still known.
    pub(crate) fn of_run(folder: &RunFolder) -> Option<Self> {
        serde_json::from_slice(&folder.launch()?).ok()
    }

    /// If only some stories were named, this one is named too.
    pub(crate) fn with_story(mut self, story: &StoryId) -> Self {
        if !self.stories.is_empty() && !self.stories.iter().any(|named| named == story.as_str()) {
            self.stories.push(story.to_string());
        }
        self
    }

    /// As it is kept in the folder of its run.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, CliError> {
        serde_json::to_vec(self)
            .map_err(|error| CliError::environment("could not note how it was called").cause(&error))
    }

    /// Finds the work and decides the settings; `flags` of a later call go before those of this one.
    pub(crate) fn prepare(mut self, flags: Layer, host: &Host) -> Result<Prepared, CliError> {
        let work = work::resolve(self.work.as_deref(), &self.cwd).map_err(|error| not_usable(&error))?;
        tracker::refresh(&work)?;
        let (kept, lost) = config::from_texts(&self.flags);
        let lost = lost
            .into_iter()
            .map(|name| format!("the run was started with a setting that is not known any more: {name}"));
        let flags = config::over(kept, flags);
        let again = Self::new(self.work.take(), Vec::new(), &flags, host);
        let (config, found) = config::load(&work.project, &host.environment, flags)?;
        let only = self.stories.iter().map(|id| StoryId::from(id.as_str())).collect();
        let settings = settings::decide(&config, &work.project, only)?;
        let launch =
            Self { work: Some(work.named_in_full()), cwd: self.cwd, stories: self.stories, flags: again.flags };
        Ok(Prepared { launch, work, settings, config, warnings: lost.chain(found).collect(), judged: None })
    }
}
