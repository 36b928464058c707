//! What is to be done, as it was read from a spec: stories, their tasks, criteria, checks and context.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::{StoryId, TaskId};

/// The format of a piece of work, and the first half of its name (`openspec:add-login`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// A change of OpenSpec, `openspec/changes/<id>/`.
    OpenSpec,
    /// A `prd.json` in any of its dialects.
    Prd,
    /// A Markdown file with boxes (`PRD.md`, `TODO.md`).
    Markdown,
    /// A plan in `fix_plan.md` or `IMPLEMENTATION_PLAN.md`.
    FixPlan,
    /// A feature of Spec Kit, `specs/<id>/tasks.md`.
    SpecKit,
    /// A spec of Kiro, `.kiro/specs/<id>/tasks.md`.
    Kiro,
    /// A list of issues as `gh issue list --json` writes it.
    GitHub,
    /// Issues of Beads, `.beads/issues.jsonl`.
    Beads,
    /// A YAML list of tasks.
    Yaml,
    /// Flight Rules: `docs/implementation/`, the next steps of a session, `docs/prd.md`.
    Flight,
    /// Backlog.md: `backlog/tasks/`, a file a task.
    Backlog,
}

impl Scheme {
    /// All of them, in the order in which they are listed.
    pub const ALL: &[Self] = &[
        Self::OpenSpec,
        Self::Prd,
        Self::Markdown,
        Self::FixPlan,
        Self::SpecKit,
        Self::Kiro,
        Self::GitHub,
        Self::Beads,
        Self::Yaml,
        Self::Flight,
        Self::Backlog,
    ];

    /// As written before the colon.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenSpec => "openspec",
            Self::Prd => "prd",
            Self::Markdown => "markdown",
            Self::FixPlan => "fixplan",
            Self::SpecKit => "speckit",
            Self::Kiro => "kiro",
            Self::GitHub => "github",
            Self::Beads => "beads",
            Self::Yaml => "yaml",
            Self::Flight => "flight",
            Self::Backlog => "backlog",
        }
    }
}

/// A piece of work, as it is named on the command line: `scheme:id`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WorkId {
    /// The format.
    pub scheme: Scheme,
    /// Its name within the format: a change's name, or a path below the project.
    pub id: String,
}

impl std::fmt::Display for WorkId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.scheme.as_str(), self.id)
    }
}

/// How far a story or a task is, by its spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkState {
    /// Not begun.
    Todo,
    /// Begun.
    Doing,
    /// Done; the only state that counts as done.
    Done,
    /// Waits for something the spec names.
    Blocked,
    /// Not to be done: deferred, cancelled.
    Skipped,
    /// A word or mark that has no known meaning. Open.
    Other,
}

/// Whether a story is worked on or only groups others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoryKind {
    /// Worked on.
    Story,
    /// Groups stories; never picked.
    Epic,
}

/// A box inside a story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its id: declared, or `<story>#<k>`.
    pub id: TaskId,
    /// What is to be done, Markdown kept.
    pub text: String,
    /// How far it is.
    pub state: WorkState,
    /// Not needed for the story to be done.
    pub optional: bool,
    /// The task that it is part of.
    pub parent: Option<TaskId>,
    /// Tasks that come before it.
    pub deps: Vec<TaskId>,
    /// Labels (`[P]`, `[US1]`).
    pub tags: Vec<String>,
    /// Requirement numbers.
    pub refs: Vec<String>,
    /// Where it stands, 1-based.
    pub line: Option<u32>,
    /// The check of its story that is about this task, where the work says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_by: Option<Check>,
    /// The task that it mends: it was added because that one failed for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mends: Option<TaskId>,
}

impl Task {
    /// A task that wants to be done, and of which only id and text are known.
    pub fn new(id: impl Into<TaskId>, text: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            text: text.into(),
            state: WorkState::Todo,
            optional: false,
            parent: None,
            deps: Vec::new(),
            tags: Vec::new(),
            refs: Vec::new(),
            line: None,
            verified_by: None,
            mends: None,
        }
    }
}

/// The rank of a story: lower comes first; 1.5 and 0 occur in real files.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Priority(pub f64);

/// A verification step of one story, run by the tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Check {
    /// A command for `sh -c`.
    Shell {
        /// How it is shown; the command itself if absent.
        name: Option<String>,
        /// The command.
        command: String,
        /// Where it runs, relative to the project.
        cwd: Option<String>,
        /// Texts that its output (stdout and stderr) must contain.
        expect_output_contains: Vec<String>,
        /// Globs, from `cwd`, that must each match a file afterwards.
        expect_files_glob: Vec<String>,
        /// Its own time limit.
        timeout: Option<Duration>,
    },
    /// A file must exist.
    FileExists {
        /// How it is shown.
        name: Option<String>,
        /// The path, relative to the project.
        path: String,
        /// The path is a glob.
        glob: bool,
    },
    /// An HTTP request must be answered so.
    Url {
        /// How it is shown.
        name: Option<String>,
        /// The address.
        url: String,
        /// The method, upper case.
        method: String,
        /// The status that must come.
        expect_status: u16,
        /// Texts that the body must contain.
        expect_body_contains: Vec<String>,
        /// The time limit of the request.
        timeout: Duration,
    },
}

impl Check {
    /// How the check is called in messages.
    pub fn label(&self) -> &str {
        match self {
            Self::Shell { name, command, .. } => name.as_deref().unwrap_or(command),
            Self::FileExists { name, path, .. } => name.as_deref().unwrap_or(path),
            Self::Url { name, url, .. } => name.as_deref().unwrap_or(url),
        }
    }
}

/// The unit that lands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Story {
    /// Its id.
    pub id: StoryId,
    /// Its title, one or more lines as written, trimmed.
    pub title: String,
    /// Its text beyond the title; empty if there is none.
    pub description: String,
    /// Worked on, or a group.
    pub kind: StoryKind,
    /// How far it is.
    pub state: WorkState,
    /// Not needed for the work to be done, and never picked unless named.
    pub optional: bool,
    /// The rank.
    pub priority: Option<Priority>,
    /// 1 (easy) to 5; breaks ties of the rank.
    pub complexity: Option<u8>,
    /// The epic or phase that it is part of.
    pub parent: Option<String>,
    /// Stories that must have landed before it starts.
    pub deps: Vec<StoryId>,
    /// Phase, gate, milestone.
    pub group: Option<String>,
    /// Labels.
    pub tags: Vec<String>,
    /// Requirement numbers.
    pub refs: Vec<String>,
    /// The file that it stands in, where the work has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Where it stands, 1-based.
    pub line: Option<u32>,
    /// Its boxes, or its criteria where the format tracks them as items.
    pub tasks: Vec<Task>,
    /// What must hold, in words.
    pub criteria: Vec<String>,
    /// Its own verification steps.
    pub checks: Vec<Check>,
    /// What a person has to look at and sign before it is done, in words: what no command can check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sign_off: Vec<String>,
    /// It may be complete without any change of files.
    pub needs_no_change: bool,
    /// Free notes of the spec.
    pub notes: String,
}

impl Story {
    /// A story that wants to be done, and of which only id and title are known.
    pub fn new(id: impl Into<StoryId>, title: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            description: String::new(),
            kind: StoryKind::Story,
            state: WorkState::Todo,
            optional: false,
            priority: None,
            complexity: None,
            parent: None,
            deps: Vec::new(),
            group: None,
            tags: Vec::new(),
            refs: Vec::new(),
            file: None,
            line: None,
            tasks: Vec::new(),
            criteria: Vec::new(),
            checks: Vec::new(),
            sign_off: Vec::new(),
            needs_no_change: false,
            notes: String::new(),
        }
    }

    /// It is not done before a person has signed it, whatever an agent says and whatever checks say.
    pub fn needs_sign_off(&self) -> bool {
        !self.sign_off.is_empty()
    }
}

/// What a capability's requirement is to become.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Delta {
    /// New.
    Added,
    /// Its text changes.
    Modified,
    /// It goes away.
    Removed,
    /// Its heading changes.
    Renamed {
        /// The heading it had.
        from: String,
    },
}

/// One step line of a scenario group, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Preconditions.
    pub given: Vec<String>,
    /// What happens.
    pub when: Vec<String>,
    /// What must follow.
    pub then: Vec<String>,
    /// Lines that are no step.
    pub other: Vec<String>,
}

/// A requirement of a capability, as the work wants it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requirement {
    /// The capability's path (`identity/tokens`).
    pub capability: String,
    /// The heading, lower case, blanks as `-`, other punctuation dropped.
    pub id: String,
    /// The heading.
    pub title: String,
    /// Added, modified, removed or renamed.
    pub delta: Delta,
    /// Its text, without scenarios.
    pub text: String,
    /// Its scenarios, in order.
    pub scenarios: Vec<Scenario>,
}

/// What a story's agent is told about the whole work.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Context {
    /// Text that the project gives to everything (`context` of `openspec/config.yaml`).
    pub project: String,
    /// Why and what.
    pub proposal: String,
    /// How.
    pub design: String,
    /// Requirements that hold for the whole work (`technical_requirements`).
    pub constraints: Vec<String>,
    /// Requirements with scenarios.
    pub requirements: Vec<Requirement>,
    /// How the files of this format work, and what the agent may do with them.
    pub tool_prompt: String,
}

/// A quality gate that the spec itself names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecGate {
    /// How it is shown (`test`, `lint`).
    pub name: String,
    /// The command for `sh -c`.
    pub command: String,
}

/// Stories and gates read from one piece of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What it was read from.
    pub work: WorkId,
    /// The title of the work, if it has one.
    pub title: Option<String>,
    /// The branch that the spec wants its commits on.
    pub branch: Option<String>,
    /// False if the format's state is changed through another tool.
    pub writable: bool,
    /// The stories, in file order.
    pub stories: Vec<Story>,
    /// Gates named by the spec.
    pub gates: Vec<SpecGate>,
    /// What every story's agent is told.
    pub context: Context,
}

impl Plan {
    /// A plan of which only the stories are known, and that is written by us.
    pub fn new(work: WorkId, stories: Vec<Story>) -> Self {
        Self {
            work,
            title: None,
            branch: None,
            writable: true,
            stories,
            gates: Vec::new(),
            context: Context::default(),
        }
    }

    /// The story of that id.
    pub fn story(&self, id: &StoryId) -> Option<&Story> {
        self.stories.iter().find(|s| s.id == *id)
    }
}
