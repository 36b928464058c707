//! Everything that a run depends on, looked at without changing anything: what is well, what is doubtful, what would stop a
//! run, and the command that mends it.
mod agents;
mod machine;
mod repository;
mod sandbox;

use std::path::PathBuf;
use std::time::Duration;

use ralphloop_agent::chain::Chain;

use crate::process::Spawner;
use crate::sandbox::{Choice, Terms};
use crate::start;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Ok,
    /// A run starts all the same.
    Warn,
    /// No run starts.
    Error,
}

impl Level {
    /// As it is shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// What was found about one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at: `git`, `identity`, `agent` …
    pub area: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What was found.
    pub message: String,
    /// What mends it, a command where there is one.
    pub remedy: Option<String>,
}

impl Finding {
    fn ok(area: &'static str, message: impl Into<String>) -> Self {
        Self { area, level: Level::Ok, message: message.into(), remedy: None }
    }

    fn warn(area: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { area, level: Level::Warn, message: message.into(), remedy: Some(remedy.into()) }
    }

    fn error(area: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { area, level: Level::Error, message: message.into(), remedy: Some(remedy.into()) }
    }
}

/// What is looked at.
#[derive(Debug)]
pub struct Subject {
    /// The project's folder.
    pub project: PathBuf,
    /// Starts the programs that are asked.
    pub spawner: Spawner,
    /// How long each may take.
    pub timeout: Duration,
    /// The agents that a run would use.
    pub agents: Chain,
    /// What is to keep agents and gates inside.
    pub sandbox: Choice,
    /// What the user says of that beside its level.
    pub sandbox_terms: Terms,
}

/// Looks at everything.
pub async fn examine(subject: &Subject) -> Vec<Finding> {
    let mut findings = Vec::new();
    match start::open(&subject.project, subject.spawner.clone(), subject.timeout).await {
        Ok(place) => {
            findings.extend(repository::look(&place.repository).await);
            findings.extend(machine::leftovers(&place.repository));
            findings.extend(machine::disk(&place.repository.places().common_dir));
            findings.push(machine::clock(&place.repository).await);
        }
        Err(error) => findings.extend(repository::none(&error)),
    }
    findings.extend(agents::look(subject).await);
    findings.push(sandbox::look(subject).await);
    findings.extend(machine::temporary_folder());
    findings.push(machine::openspec(subject).await);
    findings
}

impl Subject {
    /// The first line of what a program says to `--version`, if it says something in time.
    async fn version(&self, program: &str) -> Option<String> {
        crate::agents::version(&self.spawner, self.project.clone(), self.timeout, program).await
    }
}
