//! `openspec`, the program, asked to validate a change. It is optional: everything else is read without it.
//!
//! `openspec validate NAME --strict --json` answers on stdout with
//! `{items: [{id, type, valid, issues: [{level, path, line?, message}]}], …}`, exit code 1 if anything is invalid; or,
//! if it refuses, with `{status: [{severity, code, message, fix?}], …}` (as of 1.13).

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::gates::output;
use crate::process::{Call, Exit, Output, Ownership, SpawnError, Spawner};

/// So much of an answer that is not understood is shown, in characters.
const MAX_SHOWN: usize = 400;

/// The program that is called: by default `openspec`, from the `PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program(pub PathBuf);

impl Default for Program {
    fn default() -> Self {
        Self(PathBuf::from("openspec"))
    }
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// Against the format.
    Error,
    /// Against good practice.
    Warning,
    /// A remark, or a level that is not known here.
    Info,
}

/// One thing that the validation found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// Where: a path of the change's files, or of the element (`requirements[0].text`); may be empty.
    pub path: String,
    /// The line, 1-based, if it is known.
    pub line: Option<u32>,
    /// What is wrong.
    pub message: String,
}

/// What the program says of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validation {
    /// It holds. With `--strict` a warning is enough for a no.
    pub valid: bool,
    /// What was found, in the program's order.
    pub findings: Vec<Finding>,
}

/// Why there is no validation.
#[derive(Debug, thiserror::Error)]
pub enum OpenSpecError {
    /// The program is not installed.
    #[error("`openspec` is not installed: `npm install -g @fission-ai/openspec` does that, or go on without it")]
    Absent,
    /// It did not end in time.
    #[error("`openspec validate` timed out after {}: raise --command-timeout", output::span(*.after))]
    TimedOut {
        /// The limit.
        after: Duration,
    },
    /// The change is where it was.
    #[error("`openspec archive` {exit} and did not archive the change: {said}")]
    NotArchived {
        /// How it ended.
        exit: String,
        /// What it said.
        said: String,
    },
    /// It said why it does not do it.
    #[error("`openspec validate` refused ({code}): {message}{}", fix_hint(.fix.as_deref()))]
    Refused {
        /// Its code (`unknown_item`).
        code: String,
        /// Its words.
        message: String,
        /// What it says to do.
        fix: Option<String>,
    },
    /// Its answer is not understood.
    #[error("`openspec validate` gave an answer that is not understood ({problem}): {answer}")]
    BadAnswer {
        /// What is wrong with it.
        problem: String,
        /// Its beginning.
        answer: String,
    },
    /// It could not be started for another reason.
    #[error(transparent)]
    Spawn(SpawnError),
}

fn fix_hint(fix: Option<&str>) -> String {
    fix.map(|fix| format!("; {fix}")).unwrap_or_default()
}

#[derive(Deserialize)]
struct Answer {
    items: Option<Vec<Item>>,
    #[serde(default)]
    status: Vec<Status>,
}

#[derive(Deserialize)]
struct Item {
    valid: bool,
    #[serde(default)]
    issues: Vec<Issue>,
}

#[derive(Deserialize)]
struct Issue {
    level: String,
    #[serde(default)]
    path: String,
    line: Option<u32>,
    message: String,
}

#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    code: String,
    message: String,
    fix: Option<String>,
}

/// Runs the program to its end, asking nobody and telling nobody.
async fn run(spawner: &Spawner, call: Call, timeout: Duration) -> Result<Output, OpenSpecError> {
    let call = call.env("OPENSPEC_TELEMETRY", "0").env("CI", "1").timeout(timeout);
    spawner.run(call).await.map_err(|error| match error {
        SpawnError::NotFound { .. } => OpenSpecError::Absent,
        other => OpenSpecError::Spawn(other),
    })
}

/// Validates the change of that name in the project, strictly.
pub async fn validate(
    spawner: &Spawner,
    program: &Program,
    project: &Path,
    change: &str,
    timeout: Duration,
) -> Result<Validation, OpenSpecError> {
    let call = Call::new(&program.0, project).args(["validate", change, "--strict", "--json"]);
    let output = run(spawner, call, timeout).await?;
    match output.exit {
        Exit::TimedOut(after) => Err(OpenSpecError::TimedOut { after }),
        Exit::Code(0 | 1) => validation(&output.stdout.text()),
        other => Err(bad_answer(&format!("it {other}"), &output.stderr.text())),
    }
}

/// Archives the change of that name in the project, without asking: its folder moves, its deltas go into the specs.
pub async fn archive(
    spawner: &Spawner,
    program: &Program,
    project: &Path,
    change: &str,
    timeout: Duration,
) -> Result<(), OpenSpecError> {
    let call = Call::new(&program.0, project)
        .args(["archive", change, "--yes"])
        // What it does to the tree ends with this process.
        .ownership(Ownership::Supervised);
    let output = run(spawner, call, timeout).await?;
    match output.exit {
        Exit::TimedOut(after) => Err(OpenSpecError::TimedOut { after }),
        // It leaves with success when it has refused, too; then the folder is where it was.
        Exit::Code(0) if !project.join("openspec/changes").join(change).is_dir() => Ok(()),
        exit => {
            let said = [output.stderr.text(), output.stdout.text()].join("\n");
            let said = output::clean(said.as_bytes()).trim().chars().take(MAX_SHOWN).collect();
            Err(OpenSpecError::NotArchived { exit: exit.to_string(), said })
        }
    }
}

fn validation(stdout: &str) -> Result<Validation, OpenSpecError> {
    // A notice of an update may stand before the JSON.
    let json = &stdout[stdout.find('{').unwrap_or_default()..];
    let answer: Answer = serde_json::from_str(json).map_err(|e| bad_answer(&e.to_string(), stdout))?;
    if let Some(items) = answer.items {
        let valid = items.iter().all(|item| item.valid);
        let findings = items.into_iter().flat_map(|item| item.issues).map(Finding::from).collect();
        return Ok(Validation { valid, findings });
    }
    match answer.status.into_iter().next() {
        Some(status) => Err(OpenSpecError::Refused { code: status.code, message: status.message, fix: status.fix }),
        None => Err(bad_answer("it has no items", stdout)),
    }
}

fn bad_answer(problem: &str, answer: &str) -> OpenSpecError {
    let answer = output::clean(answer.as_bytes()).trim().chars().take(MAX_SHOWN).collect();
    OpenSpecError::BadAnswer { problem: problem.to_owned(), answer }
}

impl From<Issue> for Finding {
    fn from(issue: Issue) -> Self {
        let level = match issue.level.to_ascii_uppercase().as_str() {
            "ERROR" => Level::Error,
            "WARNING" => Level::Warning,
            _ => Level::Info,
        };
        Self { level, path: issue.path, line: issue.line, message: issue.message }
    }
}
