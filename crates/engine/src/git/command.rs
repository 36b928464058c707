//! The one way in which this project calls git: no prompt, no pager, no editor, machine-readable output, bounded in time
//! and size.
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::hooks::Walls;
use crate::process::{Call, Capture, Environment, Exit, Limits, Ownership, SpawnError, Spawner};

/// The oldest git that knows everything that is asked of it (`rev-parse --path-format`).
pub const MINIMUM_VERSION: (u32, u32) = (2, 31);

/// For what compares the working tree after an agent was in it: otherwise git would call itself in each submodule, and do
/// there what the configuration says that it finds.
pub(super) const OF_SUBMODULES_COMMITS_ONLY: &str = "--ignore-submodules=dirty";

/// Bytes of output that a call may make, per stream, unless it says otherwise.
const MAX_OUTPUT: usize = 256 * 1024 * 1024;

/// By how much longer a command may take that writes every file of a working tree.
const WRITING_A_TREE: u32 = 10;

/// Waits between tries when another git holds a lock: one and a half seconds in all.
const LOCK_RETRIES: [Duration; 5] = [
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
];

/// A git command that did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The program is missing, can't be started, or wrote more than can be right.
    #[error("can't run `{argv}`: {source}")]
    Start {
        /// The command.
        argv: String,
        /// What happened.
        source: SpawnError,
    },
    /// It ended with an error.
    #[error("`{argv}` {status}: {stderr}")]
    Failed {
        /// The command.
        argv: String,
        /// `exited with code 128` …
        status: String,
        /// What it wrote to stderr, trimmed.
        stderr: String,
    },
    /// It did not end in time and was ended.
    #[error(
        "`{argv}` did not end within {after:?} and was stopped; raise --command-timeout if the repository is that slow"
    )]
    TimedOut {
        /// The command.
        argv: String,
        /// The limit.
        after: Duration,
    },
    /// It was ended on request.
    #[error("`{argv}` was stopped")]
    Stopped {
        /// The command.
        argv: String,
    },
    /// It answered something else than its documentation says.
    #[error("`{argv}` answered something unexpected: {answer}")]
    Unexpected {
        /// The command.
        argv: String,
        /// The answer, shortened.
        answer: String,
    },
}

/// The git program and how long it may take.
#[derive(Debug, Clone)]
pub struct Git {
    spawner: Spawner,
    timeout: Duration,
    environment: Vec<(OsString, OsString)>,
}

impl Git {
    /// The `git` of the search path; `timeout` is for one command.
    pub fn new(spawner: Spawner, timeout: Duration) -> Self {
        Self { spawner, timeout, environment: Vec::new() }
    }

    /// Sets a variable for every command.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The value that a variable has for every command.
    pub fn variable(&self, name: &str) -> Option<OsString> {
        let ours = self.environment.iter().rev().find(|(set, _)| set == name).map(|(_, value)| value.clone());
        ours.or_else(|| std::env::var_os(name)).filter(|value| !value.is_empty())
    }

    /// The same, but git and whatever it starts find no program in the folder `top`: of the search path, what lies in it is
    /// left out, and what is relative to wherever a command runs.
    #[must_use]
    pub(super) fn without_programs_in(self, top: &Path) -> Self {
        let Some(path) = self.variable("PATH") else { return self };
        let lies_in = |folder: &Path| {
            folder.starts_with(top) || std::fs::canonicalize(folder).is_ok_and(|real| real.starts_with(top))
        };
        let others = std::env::split_paths(&path).filter(|folder| folder.is_absolute() && !lies_in(folder));
        // What was split at colons has none.
        match std::env::join_paths(others) {
            Ok(path) => self.env("PATH", path),
            Err(_) => self,
        }
    }

    /// How long one command may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// A command that only reads, in `cwd`. It takes no lock and refreshes no index.
    pub fn read(&self, cwd: &Path) -> Command<'_> {
        self.command(cwd).env("GIT_OPTIONAL_LOCKS", "0").option("core.fsmonitor=false")
    }

    /// A command that may write, in `cwd`. No hook runs.
    pub fn write(&self, cwd: &Path) -> Command<'_> {
        self.command(cwd).option("core.hooksPath=/dev/null").option("core.fsmonitor=false")
    }

    /// A command that makes a commit as the user would, hooks included, in `cwd`.
    pub fn commit(&self, cwd: &Path) -> Command<'_> {
        let mut command = self.command(cwd);
        command.runs_programs = true;
        command
    }

    fn command(&self, cwd: &Path) -> Command<'_> {
        Command {
            git: self,
            cwd: cwd.to_owned(),
            options: Vec::new(),
            args: Vec::new(),
            environment: Vec::new(),
            stdin: Vec::new(),
            max_output: MAX_OUTPUT,
            timeout: self.timeout,
            runs_programs: false,
            walls: None,
            stop: CancellationToken::new(),
        }
        .option("gc.auto=0")
        .option("maintenance.auto=false")
        .option("submodule.recurse=false")
        .option("core.quotePath=false")
        .option("color.ui=false")
        // Without this a loss of power leaves a branch that names an empty commit.
        .option("core.fsync=committed")
    }
}

/// One call of git, being put together.
#[derive(Debug, Clone)]
pub struct Command<'git> {
    git: &'git Git,
    cwd: PathBuf,
    options: Vec<OsString>,
    args: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    stdin: Vec<u8>,
    max_output: usize,
    timeout: Duration,
    runs_programs: bool,
    walls: Option<Walls>,
    stop: CancellationToken,
}

/// What a command wrote and how it ended.
#[derive(Debug)]
pub struct Answer {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// The whole standard output.
    pub stdout: Vec<u8>,
    /// The whole standard error.
    pub stderr: Vec<u8>,
    status: String,
    argv: String,
}

impl Answer {
    /// The command ended with code 0.
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }

    /// Standard error as text, trimmed.
    pub fn message(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim().to_owned()
    }

    /// The error that this answer is, for a command that had to succeed.
    pub fn into_error(self) -> GitError {
        let stderr = self.message();
        GitError::Failed { argv: self.argv, status: self.status, stderr }
    }

    /// The error for an answer that can't be read.
    pub fn unexpected(&self) -> GitError {
        let text = String::from_utf8_lossy(&self.stdout);
        GitError::Unexpected { argv: self.argv.clone(), answer: text.chars().take(200).collect() }
    }

    /// Standard output as text without its last line end.
    pub fn line(&self) -> Result<&str, GitError> {
        std::str::from_utf8(&self.stdout).map(|text| text.trim_end_matches('\n')).map_err(|_| self.unexpected())
    }

    /// Standard output, split where the command ended its items with NUL.
    pub fn items(&self) -> impl Iterator<Item = &[u8]> {
        self.stdout.split(|byte| *byte == 0).filter(|item| !item.is_empty())
    }
}

impl Command<'_> {
    /// Adds a configuration value (`name=value`).
    #[must_use]
    pub fn option(mut self, option: impl AsRef<OsStr>) -> Self {
        self.options.push("-c".into());
        self.options.push(option.as_ref().to_owned());
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Says that the command starts no program that could outlive it.
    #[must_use]
    pub fn unsupervised(mut self) -> Self {
        self.runs_programs = false;
        self
    }

    /// Has the command, with all that it starts, run inside.
    #[must_use]
    pub(super) fn within(mut self, walls: &Walls) -> Self {
        self.runs_programs = true;
        self.walls = Some(walls.clone());
        self
    }

    /// Ends the command when `stop` is cancelled.
    #[must_use]
    pub fn stopped_by(mut self, stop: &CancellationToken) -> Self {
        self.stop = stop.clone();
        self
    }

    /// Says that the command may write many objects: they are synced together, which costs more for a few.
    #[must_use]
    pub fn of_many_objects(self) -> Self {
        self.option("core.fsyncMethod=batch")
    }

    /// What the command reads.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// It writes every file of a working tree: it may take ten times as long as other commands.
    #[must_use]
    pub fn writes_a_tree(mut self) -> Self {
        self.timeout = self.timeout.saturating_mul(WRITING_A_TREE);
        self
    }

    /// How many bytes it may write on either stream.
    #[must_use]
    pub fn max_output(mut self, bytes: usize) -> Self {
        self.max_output = bytes;
        self
    }

    /// Runs the command; an error code is an answer, not an error. While another git holds a lock it is tried again, for
    /// a short time.
    pub async fn answer(self) -> Result<Answer, GitError> {
        let mut waits = LOCK_RETRIES.iter();
        loop {
            let answer = self.once().await?;
            if answer.success() || !is_lock_contention(&answer.stderr) {
                return Ok(answer);
            }
            match waits.next() {
                Some(wait) => tokio::time::sleep(*wait).await,
                None => return Ok(answer),
            }
        }
    }

    /// Runs the command, which has to succeed.
    pub async fn run(self) -> Result<Answer, GitError> {
        let answer = self.answer().await?;
        if answer.success() { Ok(answer) } else { Err(answer.into_error()) }
    }

    async fn once(&self) -> Result<Answer, GitError> {
        let argv = self.to_string();
        let mut environment = Environment::inherited()
            .remove("GIT_ASKPASS")
            .remove("SSH_ASKPASS")
            .set("LC_ALL", "C.UTF-8")
            .set("GIT_TERMINAL_PROMPT", "0")
            .set("GIT_EDITOR", ":")
            .set("GIT_SEQUENCE_EDITOR", ":")
            .set("GIT_PAGER", "cat")
            .set("GIT_LITERAL_PATHSPECS", "1");
        for (name, value) in self.git.environment.iter().chain(&self.environment) {
            environment = environment.set(name.clone(), value.clone());
        }
        let mut call = Call::new("git", &self.cwd)
            .args(&self.options)
            .args(&self.args)
            .environment(environment)
            .limits(Limits::total(self.timeout))
            .capture(Capture::Full { max: self.max_output })
            .cancel(self.stop.clone())
            .ownership(if self.runs_programs { Ownership::Supervised } else { Ownership::Light });
        if !self.stdin.is_empty() {
            call = call.stdin_bytes(self.stdin.clone());
        }
        if let Some(walls) = &self.walls {
            call = walls.confine(call);
        }
        let output =
            self.git.spawner.run(call).await.map_err(|source| GitError::Start { argv: argv.clone(), source })?;
        let code = match output.exit {
            Exit::Code(code) => Some(code),
            Exit::TimedOut(after) => return Err(GitError::TimedOut { argv, after }),
            Exit::Cancelled => return Err(GitError::Stopped { argv }),
            _ => None,
        };
        Ok(Answer {
            code,
            stdout: output.stdout.bytes().to_vec(),
            stderr: output.stderr.bytes().to_vec(),
            status: output.exit.to_string(),
            argv,
        })
    }
}

/// The command as a person would type it; the settings that every command has are left out.
impl fmt::Display for Command<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("git")?;
        for arg in &self.args {
            write!(f, " {}", String::from_utf8_lossy(arg.as_bytes()))?;
        }
        Ok(())
    }
}

/// Git's words for a lock that another process holds (`Unable to create '….lock': File exists`).
fn is_lock_contention(stderr: &[u8]) -> bool {
    let text = String::from_utf8_lossy(stderr);
    (text.contains(".lock'") && text.contains("File exists"))
        || text.contains("cannot lock ref") && text.contains(".lock")
}
