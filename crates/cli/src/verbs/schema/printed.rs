//! The shape of what `show --json` and `check --json` print. The values are made in a crate that knows no schemas, so that a
//! test holds them together.
#![expect(dead_code, reason = "only their schemas are asked for")]

use schemars::JsonSchema;
use serde_json::Value;

/// What `show --json` prints: a piece of work as it was read, or why it cannot be read.
#[derive(JsonSchema)]
#[serde(untagged)]
pub(super) enum Shown {
    Read(Box<Work>),
    Unreadable(Unreadable),
}

/// A piece of work, the same for every format.
#[derive(JsonSchema)]
pub(super) struct Work {
    /// `scheme:id`.
    work: String,
    /// The scheme.
    format: String,
    outcome: Ok,
    /// Its title.
    title: Option<String>,
    /// The project that the file names.
    project: Option<String>,
    /// The branch that it wants its commits on.
    branch: Option<String>,
    /// Whether its state can be written.
    writable: bool,
    /// The stories, in the order of the file.
    stories: Vec<Story>,
    /// The story that is to be done first.
    next: Option<String>,
    /// Nothing required is left.
    all_done: bool,
    /// The gates that it names.
    gates: Vec<Gate>,
    /// Its requirements with their scenarios.
    requirements: Vec<Requirement>,
    /// What is worth saying about the file.
    warnings: Vec<Finding>,
    /// Nothing.
    error: Option<Fault>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Ok {
    Ok,
}

/// Work that cannot be read.
#[derive(JsonSchema)]
pub(super) struct Unreadable {
    outcome: Failed,
    /// Why.
    error: Fault,
}

#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Failed {
    Error,
}

/// Why work cannot be read.
#[derive(JsonSchema)]
struct Fault {
    /// The class of the error.
    class: String,
    /// The file.
    file: String,
    /// The line, from 1.
    line: Option<u32>,
    /// The column in characters, from 1.
    column: Option<u32>,
    /// What is wrong.
    message: String,
    /// What to do about it; may be empty.
    help: String,
}

/// How far a story or a task is, by its file.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
enum State {
    Todo,
    Doing,
    Done,
    Blocked,
    Skipped,
    Other,
}

/// Whether a story is worked on or only groups others.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Story,
    Epic,
}

/// The unit that lands.
#[derive(JsonSchema)]
struct Story {
    /// Its id.
    id: String,
    /// Its title.
    title: String,
    /// Worked on, or a group.
    kind: Kind,
    /// Its rank: lower comes first.
    priority: Option<f64>,
    /// Whether it is done.
    done: bool,
    /// How far it is.
    state: State,
    /// Not needed for the work to be done.
    optional: bool,
    /// The epic or phase that it is part of.
    parent: Option<String>,
    /// Stories that come before it.
    deps: Vec<String>,
    /// Phase, gate, milestone.
    group: Option<String>,
    /// Labels.
    tags: Vec<String>,
    /// Requirement numbers.
    refs: Vec<String>,
    /// The file that it stands in, where the work has several.
    file: Option<String>,
    /// Where it stands, from 1.
    line: Option<u32>,
    /// Its boxes.
    tasks: Vec<Task>,
    /// Its text beyond the title.
    description: String,
    /// What must hold, in words.
    criteria: Vec<String>,
    /// Its own verification steps: `type` is `shell`, `file_exists` or `url`.
    checks: Vec<Check>,
    /// What a person has to look at and sign.
    sign_off: Vec<String>,
    /// 1 (easy) to 5.
    complexity: Option<u8>,
    /// It may be complete without any change of files.
    needs_no_change: bool,
    /// Free notes.
    notes: String,
}

/// A box inside a story.
#[derive(JsonSchema)]
struct Task {
    /// Its id.
    id: String,
    /// What is to be done.
    text: String,
    /// Whether it is done.
    done: bool,
    /// How far it is.
    state: State,
    /// Not needed for the story to be done.
    optional: bool,
    /// The task that it is part of.
    parent: Option<String>,
    /// Tasks that come before it.
    deps: Vec<String>,
    /// Labels.
    tags: Vec<String>,
    /// Requirement numbers.
    refs: Vec<String>,
    /// Where it stands, from 1.
    line: Option<u32>,
}

/// A verification step.
#[derive(JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Check {
    Shell {
        name: Option<String>,
        command: String,
        cwd: Option<String>,
        expect_output_contains: Vec<String>,
        expect_files_glob: Vec<String>,
        timeout: Option<Span>,
    },
    FileExists {
        name: Option<String>,
        path: String,
        glob: bool,
    },
    Url {
        name: Option<String>,
        url: String,
        method: String,
        expect_status: u16,
        expect_body_contains: Vec<String>,
        timeout: Span,
    },
}

/// A span of time.
#[derive(JsonSchema)]
struct Span {
    /// Whole seconds.
    secs: u64,
    /// And billionths of one.
    nanos: u32,
}

/// A quality gate.
#[derive(JsonSchema)]
struct Gate {
    /// How it is shown.
    name: String,
    /// The command.
    command: String,
}

/// A requirement of a capability.
#[derive(JsonSchema)]
struct Requirement {
    /// The capability's path.
    capability: String,
    /// The heading as an id.
    id: String,
    /// The heading.
    title: String,
    /// `kind` is `added`, `modified`, `removed` or `renamed`, the last with `from`.
    delta: Value,
    /// Its text, without scenarios.
    text: String,
    /// Its scenarios, in order.
    scenarios: Vec<Scenario>,
}

/// A scenario, step by step.
#[derive(JsonSchema)]
struct Scenario {
    /// Its name.
    name: String,
    /// Preconditions.
    given: Vec<String>,
    /// What happens.
    when: Vec<String>,
    /// What must follow.
    then: Vec<String>,
    /// Lines that are no step.
    other: Vec<String>,
}

/// What `check` finds.
#[derive(JsonSchema)]
pub(crate) struct Finding {
    /// The rule.
    code: String,
    severity: Severity,
    /// The file.
    file: String,
    /// The line, from 1.
    line: Option<u32>,
    /// The column in characters, from 1.
    column: Option<u32>,
    /// What is so.
    message: String,
    /// What to do about it; may be empty.
    help: String,
}

/// How much a finding matters.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Severity {
    /// Worth knowing; the work can run.
    Warning,
    /// The work cannot run.
    Error,
}
