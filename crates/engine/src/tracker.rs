//! Issues that are read and closed through the program of their tracker: `gh` for GitHub, `bd` for Beads.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ralphloop_core::ids::{CommitId, StoryId};
use ralphloop_core::plan::Scheme;

use crate::files::{self, Access, FileError};
use crate::gates::{find::on_path, output};
use crate::git::common_dir_of;
use crate::process::{Call, Exit, Output, Ownership, SpawnError, Spawner};
use crate::work::WorkRef;

/// Issues that are asked for at most. `gh` asks for 30 unless told.
const MOST_ISSUES: &str = "1000";
/// What is asked about them.
const FIELDS: &str = "number,title,body,state,labels,milestone";
/// How many characters of what a program said are shown.
const MAX_SHOWN: usize = 400;
/// Exit code with which `gh` says that nobody is signed in.
const NOT_SIGNED_IN: i32 = 4;

/// The filters of `gh issue list` that a query can name, `key=value` with commas between.
pub(crate) const FILTERS: &[&str] = &["label", "assignee", "author", "milestone", "search", "mention", "app"];

/// Why a tracker could not be asked or told something.
#[derive(Debug, thiserror::Error)]
pub enum TrackerError {
    /// The program is not there.
    #[error("`{program}` is not installed: {remedy}")]
    Absent {
        /// The program.
        program: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// Nobody is signed in.
    #[error("`gh` is not signed in: run `gh auth login`, or set GH_TOKEN")]
    NotSignedIn,
    /// It said no.
    #[error("`{command}` failed: {message}")]
    Failed {
        /// The call.
        command: String,
        /// How it ended, and its words.
        message: String,
    },
    /// It could not be run.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// What it answered could not be kept.
    #[error(transparent)]
    File(#[from] FileError),
}

/// A tracker with a program of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracker {
    kind: Kind,
    project: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    GitHub,
    Beads,
}

impl Tracker {
    /// The tracker that keeps the state of this work: GitHub for issues that were asked for, Beads where its program is.
    pub fn of(work: &WorkRef) -> Option<Self> {
        let kind = match work.id.scheme {
            Scheme::GitHub if work.query().is_some() => Kind::GitHub,
            Scheme::Beads if work.main.ends_with(".beads/issues.jsonl") && on_path("bd") => Kind::Beads,
            _ => return None,
        };
        Some(Self { kind, project: work.project.clone() })
    }

    /// Its program.
    pub fn program(&self) -> &'static str {
        match self.kind {
            Kind::GitHub => "gh",
            Kind::Beads => "bd",
        }
    }

    /// Closes an issue. The commit with which it landed is named. One that is closed already is no error.
    pub async fn close(
        &self,
        spawner: &Spawner,
        issue: &StoryId,
        commit: Option<&CommitId>,
        timeout: Duration,
    ) -> Result<(), TrackerError> {
        let said = commit.map(|commit| format!("Landed as {commit}."));
        let id = issue.as_str();
        let mut arguments: Vec<&str> = match self.kind {
            Kind::GitHub => vec!["issue", "close", id],
            Kind::Beads => vec!["close", id],
        };
        if let Some(said) = &said {
            arguments.extend([if self.kind == Kind::GitHub { "--comment" } else { "--reason" }, said]);
        }
        match self.call(spawner, &arguments, timeout).await {
            Err(TrackerError::Failed { message, .. }) if message.contains("already closed") => Ok(()),
            other => other.map(drop),
        }
    }

    async fn call(&self, spawner: &Spawner, arguments: &[&str], timeout: Duration) -> Result<Output, TrackerError> {
        let program = self.program();
        let call = Call::new(program, &self.project)
            .args(arguments)
            .ownership(Ownership::Supervised)
            .env("GH_PROMPT_DISABLED", "1")
            .env("GH_NO_UPDATE_NOTIFIER", "1")
            .env("NO_COLOR", "1")
            .timeout(timeout);
        let output = spawner.run(call).await.map_err(|error| match (error, self.kind) {
            (SpawnError::NotFound { .. }, Kind::GitHub) => TrackerError::Absent {
                program,
                remedy: "install it (https://cli.github.com), or write the issues to a file with \
                         `gh issue list --json number,title,body,state,labels,milestone` elsewhere and name that file",
            },
            (SpawnError::NotFound { .. }, Kind::Beads) => {
                TrackerError::Absent { program, remedy: "put it on the PATH" }
            }
            (error, _) => error.into(),
        })?;
        let said = output.stderr.text();
        match output.exit {
            Exit::Code(0) => Ok(output),
            Exit::Code(code)
                if self.kind == Kind::GitHub && (code == NOT_SIGNED_IN || said.contains("gh auth login")) =>
            {
                Err(TrackerError::NotSignedIn)
            }
            exit => {
                let words = if said.trim().is_empty() { output.stdout.text() } else { said };
                let words: String = output::clean(words.as_bytes()).trim().chars().take(MAX_SHOWN).collect();
                let command = format!("{program} {}", arguments.first().copied().unwrap_or_default());
                Err(TrackerError::Failed { command, message: format!("it {exit}: {words}") })
            }
        }
    }
}

/// Asks GitHub for the issues of a query, and keeps the answer where the work is read from. Other work needs nothing.
pub async fn refresh(work: &WorkRef, spawner: &Spawner, timeout: Duration) -> Result<(), TrackerError> {
    let (Some(tracker), Some(query)) = (Tracker::of(work), work.query()) else { return Ok(()) };
    let filters: Vec<String> = query.iter().flat_map(|(key, value)| [format!("--{key}"), value.clone()]).collect();
    let mut arguments = vec!["issue", "list", "--state", "open", "--json", FIELDS, "--limit", MOST_ISSUES];
    arguments.extend(filters.iter().map(String::as_str));
    let output = tracker.call(spawner, &arguments, timeout).await?;
    if output.stdout.left_out() > 0 {
        let message = "its answer is too long; narrow the query".to_owned();
        return Err(TrackerError::Failed { command: "gh issue list".to_owned(), message });
    }
    if let Some(folder) = work.main.parent() {
        files::create_private_dir(folder)?;
    }
    Ok(files::write_derived(&work.main, output.stdout.bytes(), Access::Private)?)
}

/// Where the issues of a query are kept, in the git directory of the repository at `root`; none if it has none.
pub(crate) fn kept_at(root: &Path, query: &str) -> Option<PathBuf> {
    let name = format!("{}.json", files::safe_name(query));
    Some(common_dir_of(root)?.join("ralphloop").join("issues").join(name))
}

/// The filters that a query names, if it is one.
pub(crate) fn filters(query: &str) -> Option<Vec<(String, String)>> {
    let part = |part: &str| {
        let (key, value) = part.split_once('=')?;
        (FILTERS.contains(&key) && !value.is_empty()).then(|| (key.to_owned(), value.to_owned()))
    };
    // A search may hold commas of its own, and is alone then.
    match query.split_once('=') {
        Some(("search", words)) if !words.is_empty() => Some(vec![("search".to_owned(), words.to_owned())]),
        _ => query.split(',').map(part).collect(),
    }
}
