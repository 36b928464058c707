//! How a run was called: kept beside its journal, so that `resume` goes on with the same flags.

use std::path::PathBuf;

use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Scheme, Story, WorkState};
use ralphloop_engine::runs::RunFolder;
use ralphloop_engine::settings::{OnDirty, Settings};
use ralphloop_engine::start::{self, Place, WorkReading};
use ralphloop_engine::work::{self, WorkRef};
use serde::{Deserialize, Serialize};

use super::spec::{not_started, not_usable};
use super::{repository, settings, tracker};
use crate::config::{self, Config, Layer, Origin};
use crate::error::CliError;
use crate::host::Host;
use crate::output::one_line;

/// The parts of a call of `run` that decide what it does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Launch {
    /// The folder that it was called in.
    cwd: PathBuf,
    /// The work as it was named.
    work: Option<String>,
    /// The stories that were named.
    stories: Vec<String>,
    /// Tasks that were named; their stories are, once the work is read.
    #[serde(skip)]
    tasks: Vec<String>,
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
        Self { cwd: host.cwd.clone(), work, stories, tasks: Vec::new(), flags }
    }

    /// Of the stories of these tasks, too.
    pub(crate) fn of_tasks(self, tasks: &[String]) -> Self {
        Self { tasks: tasks.to_vec(), ..self }
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

    /// The same as [`Self::prepare`], for a run that is to begin: what a dead one left in the tree is put back first, so that
    /// nobody reads what its agent made of the settings, the gates and the work. If somebody is `asked` whether it begins at
    /// all, that waits for the answer, unless there is nothing to ask about as the tree is.
    pub(crate) fn prepare_to_run(self, flags: Layer, asked: bool, host: &Host) -> Result<Prepared, CliError> {
        if asked {
            match self.clone().prepare(flags.clone(), host) {
                Err(_) if start::has_leftovers(&self.cwd) => {}
                prepared => return prepared,
            }
        }
        repository::put_back_leftovers(&self.cwd)?;
        self.prepare(flags, host)
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
        refuse_tasks_of_nothing(&config, &work)?;
        let of_tasks = self.take_stories_of_tasks(&work)?;
        let only = self.stories.iter().map(|id| StoryId::from(id.as_str())).collect();
        let settings = settings::decide(&config, &work.project, only)?;
        let launch = Self { work: Some(work.named_in_full()), flags: again.flags, ..self };
        let warnings = lost.chain(found).chain(of_tasks).collect();
        Ok(Prepared { launch, work, settings, config, warnings, judged: None })
    }

    /// Names the stories of the tasks that were named. Says where that is more than was asked for.
    fn take_stories_of_tasks(&mut self, work: &WorkRef) -> Result<Vec<String>, CliError> {
        let mut said = Vec::new();
        let tasks = std::mem::take(&mut self.tasks);
        if tasks.is_empty() {
            return Ok(said);
        }
        let reading = WorkReading::of(work).map_err(|error| not_started(&error, work))?;
        for task in tasks {
            let has = |story: &&Story| story.tasks.iter().any(|known| known.id.as_str() == task);
            let Some(story) = reading.plan().stories.iter().find(has) else {
                let message = format!("{} has no task {}", work.id, one_line(&task));
                return Err(CliError::usage(message).hint("`ralphloop show` lists them; --story ID names a story"));
            };
            let open = story.tasks.iter().filter(|other| other.state != WorkState::Done && other.id.as_str() != task);
            let others: Vec<String> = open.map(|other| one_line(other.id.as_str())).collect();
            if !others.is_empty() {
                let (task, id) = (one_line(&task), one_line(story.id.as_str()));
                said.push(format!("{task} lands with its story {id} as a whole, with {} too", others.join(", ")));
            }
            if !self.stories.iter().any(|known| known == story.id.as_str()) {
                self.stories.push(story.id.to_string());
            }
        }
        Ok(said)
    }
}

impl Prepared {
    /// The same, read again once what dead runs left in the tree has been put back; what was answered holds.
    pub(crate) async fn on_clean_ground(mut self, place: Place) -> Result<Self, CliError> {
        repository::put_back_leftovers_in(place).await?;
        self.launch.keep_answer(self.settings.on_dirty);
        self.launch.prepare(Layer::default(), &Host::of_this_process()?)
    }
}

/// Whoever asks for fix tasks in this very call is told if the work cannot have any.
fn refuse_tasks_of_nothing(config: &Config, work: &WorkRef) -> Result<(), CliError> {
    let Origin::Flag(_) = config.origin("create_tasks") else { return Ok(()) };
    if !config.settings.create_tasks || work.may_have_fix_tasks() {
        return Ok(());
    }
    let message = format!("--create-tasks adds tasks to task groups of Flight Rules, and {} has none", work.id);
    let error = CliError::usage(message);
    Err(if work.id.scheme == Scheme::Flight {
        error.hint(
            "leave it out: stories and next steps are worked on from what they say, with or without tasks; \
             `ralphloop run flight --create-tasks` works on the task groups",
        )
    } else {
        error.hint("leave it out, or set create_tasks in ralphloop.toml for the works that can have them")
    })
}
