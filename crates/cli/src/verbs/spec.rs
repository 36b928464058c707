//! Work that was named on the command line: found, read, and its mistakes told with their place.

use ralphloop_core::plan::{StoryKind, WorkState};
use ralphloop_engine::start::StartError;
use ralphloop_engine::work::{self, WorkError, WorkRef};
use ralphloop_spec::{Diagnostic, Reading, SpecError, SpecFiles};

use crate::error::{CliError, Excerpt};
use crate::host::Host;

/// What work can be, for a person who has none yet.
pub(crate) const KINDS: &str = "a change in openspec/changes/NAME/, a prd.json, or a PRD.md with boxes (`- [ ] …`)";

/// A piece of work with its files.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Where it is.
    pub(crate) work: WorkRef,
    /// What is in its files.
    pub(crate) files: SpecFiles,
}

/// Finds and loads the work that `argument` names.
pub(crate) fn open(argument: Option<&str>, host: &Host) -> Result<Opened, CliError> {
    let work = work::resolve(argument, &host.cwd).map_err(|error| not_usable(&error))?;
    super::tracker::refresh(&work)?;
    let files = work::load(&work).map_err(|error| not_usable(&error))?;
    Ok(Opened { work, files })
}

pub(crate) fn not_usable(error: &WorkError) -> CliError {
    let said = CliError::usage(error.to_string());
    match error {
        WorkError::NoneFound { .. } => said
            .hint(format!("write {KINDS}, or name a file as FORMAT:PATH"))
            .hint("`ralphloop demo` shows the loop at work"),
        WorkError::Several { .. } => said.hint("`ralphloop list` shows how far each of them is"),
        WorkError::NotFound { .. } => said.hint("`ralphloop list` shows what is here"),
        WorkError::Read { source, .. } => said.cause(source),
        _ => said,
    }
}

/// Why a run of `work` was not started, for people.
pub(crate) fn not_started(error: &StartError, work: &WorkRef) -> CliError {
    match error {
        StartError::Work(error) => not_usable(error),
        StartError::Spec(error) => match work::load(work) {
            Ok(files) => Opened { work: work.clone(), files }.unreadable(error),
            Err(_) => CliError::usage(error.to_string()),
        },
        StartError::UnknownStory { .. }
        | StartError::Cycle { .. }
        | StartError::Finished { .. }
        | StartError::OtherWork { .. }
        | StartError::SandboxInside
        | StartError::Protected { .. }
        | StartError::OtherCommands { .. } => CliError::usage(error.to_string()),
        StartError::Locked(_) => {
            CliError::environment(error.to_string()).hint("`ralphloop status` shows how far the running one is")
        }
        StartError::NoSandbox(why) => {
            why.remedies().into_iter().fold(CliError::environment(error.to_string()), CliError::hint)
        }
        _ => CliError::environment(error.to_string()),
    }
}

impl Opened {
    /// Reads it.
    pub(crate) fn read(&self) -> Result<Reading, SpecError> {
        ralphloop_spec::read(&self.files)
    }

    /// Reads it; what is wrong is told with the line it stands on.
    pub(crate) fn reading(&self) -> Result<Reading, CliError> {
        self.read().map_err(|error| self.unreadable(&error))
    }

    /// An error in one of its files, for people.
    pub(crate) fn unreadable(&self, error: &SpecError) -> CliError {
        let said = match self.excerpt(&error.file, error.line, error.column, error.class.as_str()) {
            Some(excerpt) => CliError::usage(format!("{}: {}", self.work.id, error.message)).excerpt(excerpt),
            None => CliError::usage(format!("{}: {}: {}", self.work.id, error.file, error.message)),
        };
        if error.help.is_empty() { said } else { said.hint(error.help.clone()) }
    }

    /// There is no such story.
    pub(crate) fn no_story(&self, story: &str, reading: &Reading) -> CliError {
        let known: Vec<&str> = reading.plan.stories.iter().map(|story| story.id.as_str()).collect();
        CliError::usage(format!("{} has no story {story}", self.work.id)).hint(format!("it has: {}", known.join(", ")))
    }

    /// The place of a finding.
    pub(crate) fn place(&self, finding: &Diagnostic) -> Option<Excerpt> {
        self.excerpt(&finding.file, finding.line, finding.column, finding.code.as_str())
    }

    fn excerpt(&self, file: &str, line: Option<u32>, column: Option<u32>, label: &str) -> Option<Excerpt> {
        let texts = self.files.stories().chain(&self.files.beside);
        let bytes = &texts.into_iter().find(|text| text.path == file)?.bytes;
        let text = String::from_utf8_lossy(bytes);
        let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Some(Excerpt::at(file, &text, number(line?), column.map(number), label))
    }
}

/// How far a piece of work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Stories that are done, and all that must be.
    pub(crate) stories: (usize, usize),
    /// Tasks that are done, and all that must be.
    pub(crate) tasks: (usize, usize),
}

impl Progress {
    /// Counted over what is required: no groups, nothing optional.
    pub(crate) fn of(reading: &Reading) -> Self {
        let required = || reading.plan.stories.iter().filter(|s| s.kind == StoryKind::Story && !s.optional);
        let tasks = || required().flat_map(|story| &story.tasks).filter(|task| !task.optional);
        Self {
            stories: (required().filter(|s| s.state == WorkState::Done).count(), required().count()),
            tasks: (tasks().filter(|t| t.state == WorkState::Done).count(), tasks().count()),
        }
    }
}
