//! What goes in and out of the screens before a run: the work that is here, what a run of it would be, and what is wanted.

use ralphloop_core::event::StopCause;
use ralphloop_core::ids::{RunId, StoryId};
use ralphloop_core::plan::{Plan, WorkId};

use crate::app::Input;

/// Stories or tasks: how many are done, of how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Done.
    pub done: usize,
    /// All that must be.
    pub total: usize,
}

/// Whether work can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It can.
    Ready,
    /// Nothing is left to do.
    Complete,
    /// Something of it is missing: what.
    NotReady(String),
    /// It cannot be read: why.
    Unreadable(String),
    /// It was put aside as finished.
    Archived,
}

/// How a run stands, as far as a list of runs tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// The run.
    pub id: RunId,
    /// Its work, as `scheme:id`; empty if that is not known.
    pub work: String,
    /// `running`, `paused`, `complete` …
    pub state: String,
    /// Stories that have passed, and all.
    pub stories: Option<Count>,
    /// Why it stands so; empty if there is nothing to say.
    pub reason: String,
    /// When it began, for people.
    pub began: String,
    /// A process works on it.
    pub live: bool,
    /// It ended early, so that a new start of the same work would go on with it.
    pub unfinished: bool,
}

/// A piece of work that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkRow {
    /// The work.
    pub id: WorkId,
    /// Its title.
    pub title: Option<String>,
    /// How far its stories are, if it can be read.
    pub stories: Option<Count>,
    /// How far its tasks are, if it can be read.
    pub tasks: Option<Count>,
    /// Whether it can be run.
    pub readiness: Readiness,
    /// Errors and warnings that `check` would report.
    pub problems: (usize, usize),
    /// Its newest run, if that is going on or unfinished.
    pub run: Option<RunRow>,
}

/// All that was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// The folder that was looked in, for people.
    pub place: String,
    /// Work, in the order of formats and names, archived work last.
    pub works: Vec<WorkRow>,
    /// Runs, newest first.
    pub runs: Vec<RunRow>,
    /// What is worth a warning.
    pub warnings: Vec<String>,
}

/// Something wrong with the work, as `check` tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// It stops the work from being run.
    pub error: bool,
    /// `file:line:column`, as far as it is known.
    pub place: String,
    /// What is wrong.
    pub message: String,
    /// The way out; may be empty.
    pub help: String,
}

/// A gate, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateRow {
    /// The command.
    pub command: String,
    /// Where it comes from.
    pub from: String,
}

/// An agent that could be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRow {
    /// By which it is named.
    pub name: String,
    /// What it is called.
    pub title: String,
    /// Its program is here.
    pub here: bool,
    /// How to get it, if it is not here.
    pub install: String,
}

/// What can be changed before a run begins, as it would be written on the command line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choices {
    /// The agent's name, or a command line if `agent_command` is set.
    pub agent: String,
    /// The model; empty for the agent's own default.
    pub model: String,
    /// Stories at once.
    pub jobs: String,
    /// Attempts of a story after the first.
    pub retries: String,
}

/// What a run of a piece of work would be.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// The work.
    pub work: WorkId,
    /// The file or folder that it stands in, below the project.
    pub file: String,
    /// Its plan; if it cannot be read, `problems` say why.
    pub plan: Option<Box<Plan>>,
    /// The stages in which its open stories are taken.
    pub stages: Vec<Vec<StoryId>>,
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// The gates.
    pub gates: Vec<GateRow>,
    /// What is worth a warning: about gates and settings.
    pub warnings: Vec<String>,
    /// The agents that are known, the user's own first.
    pub agents: Vec<AgentRow>,
    /// What holds now.
    pub choices: Choices,
    /// The agent is a command of the user's own, so that it has no model that could be named.
    pub command: bool,
    /// Where the commits will go, in words.
    pub branch: String,
    /// A run that a start would ask about.
    pub unfinished: Option<RunRow>,
}

/// A question before a run begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What there is to know first.
    pub facts: String,
    /// The question.
    pub question: String,
    /// Its answers: a letter and what it means. The first is the usual one, the last leaves everything as it is.
    pub answers: Vec<(char, String)>,
}

/// Something that the screens are told.
#[derive(Debug)]
pub enum Msg {
    /// By the terminal.
    Input(Input),
    /// What was found.
    Found(Box<Found>),
    /// What a run would be with the choices that were made.
    Preview(Box<Preview>),
    /// The work or the choices cannot be used: why.
    Refused(String),
    /// The prompt of a story's first attempt, or why there is none.
    Prompt {
        /// The story.
        story: StoryId,
        /// The prompt.
        text: Result<String, String>,
    },
    /// Something is to be answered before the run begins.
    Ask(Question),
    /// No run was begun: why.
    NotBegun(String),
    /// The run has begun.
    Begun,
}

impl From<Input> for Msg {
    fn from(input: Input) -> Self {
        Self::Input(input)
    }
}

/// Something that the screens want done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Look what is here.
    Find,
    /// What would a run of this work be? Without choices: with what the settings say.
    Preview {
        /// The work.
        work: WorkId,
        /// What was chosen here.
        choices: Option<Choices>,
    },
    /// What is this story's agent told?
    Prompt(StoryId),
    /// Begin a run of the work that was last looked at, with its choices.
    Start,
    /// The answer to the question that was asked.
    Answer(char),
    /// Put a text into the clipboard.
    Copy(String),
    /// Stop the program until the shell goes on with it.
    Suspend,
    /// Close the screen.
    Leave(Left),
}

/// How the screens are left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// Nothing is wanted.
    Away,
    /// A signal ended the program.
    Signal(StopCause),
    /// A run has begun and is to be shown.
    Begun,
    /// This run is to be looked at.
    Look(RunId),
}
