//! One command of the project, run to its end under supervision.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::{Duration, Instant};

use ralphloop_agent::redact::Redactor;
use ralphloop_core::evidence::CheckResult;
use tokio_util::sync::CancellationToken;

use super::Gate;
use super::output::{self, Kept};
use super::room::Room;
use crate::process::{Call, Exit, Limits, Passing, Spawner, Stream};

/// The shell found the command and may not execute it.
const NOT_EXECUTABLE: i32 = 126;
/// The shell did not find the command.
const NOT_FOUND: i32 = 127;
/// A command of the shell that was killed, or ended by TERM: by the system, as far as we know, not by its own doing.
const KILLED: [i32; 2] = [128 + 9, 128 + 15];
/// A line of output in a message is cut there, in characters.
const MAX_LINE: usize = 300;

/// Runs the gates and checks of one project, one at a time.
pub struct Runner<'a> {
    /// Starts commands.
    pub spawner: &'a Spawner,
    /// Where gates run, and what no check may leave; absolute.
    pub project: &'a Path,
    /// The time limit of a gate, and of a check that names none.
    pub timeout: Duration,
    /// Ends what runs.
    pub cancel: CancellationToken,
    /// Variables that commands get beside ours.
    pub environment: &'a [(OsString, OsString)],
    /// What commands get of ours.
    pub sees: &'a Passing,
    /// Confines what is started, and bounds what it may use, where something does.
    pub inside: &'a (dyn Fn(Call) -> Call + Send + Sync),
    /// Takes secrets out of output before it is shown or stored.
    pub redactor: &'a Redactor,
}

/// What came of a gate or check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// The result.
    pub result: CheckResult,
    /// How long it took.
    pub took: Duration,
    /// Another run on the same tree would say the same. Not so if it could not run, ran out of time, was killed, or
    /// asked the world outside.
    pub repeatable: bool,
}

/// The run was cancelled before the result was there; there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cancelled before its end")]
pub struct Cancelled;

impl std::fmt::Debug for Runner<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner").field("project", &self.project).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl Runner<'_> {
    /// Runs a gate with `/bin/sh -c` in the project's folder: `CI=1`, stdin closed, no terminal.
    pub async fn run_gate(&self, gate: &Gate) -> Result<Ran, Cancelled> {
        let began = Instant::now();
        let (result, repeatable) = match self.shell(&gate.command, self.project, self.timeout, |_, _| {}).await? {
            Shell::Passed { .. } => (CheckResult::Passed, true),
            Shell::Failed { why, output, repeatable } => (CheckResult::Failed { why, output }, repeatable),
            Shell::CouldNotRun { why } => (CheckResult::CouldNotRun { why }, false),
            Shell::NoRoom { why } => (CheckResult::NoRoom { why }, false),
        };
        Ok(Ran { result, took: began.elapsed(), repeatable })
    }

    /// Runs a command to its end; `see` is shown every byte of its output.
    pub(super) async fn shell(
        &self,
        command: &str,
        cwd: &Path,
        timeout: Duration,
        mut see: impl FnMut(Stream, &[u8]) + Send,
    ) -> Result<Shell, Cancelled> {
        let call = Call::shell(command, cwd).seeing(self.sees.clone());
        let call = self.environment.iter().fold(call, |call, (name, value)| call.env(name, value));
        let call = call.env("CI", "1").limits(Limits::total(timeout)).cancel(self.cancel.clone());
        let call = (self.inside)(call);
        let mut kept = Kept::default();
        let (mut out, mut err) = (self.redactor.stream(), self.redactor.stream());
        let mut clean = Vec::new();
        let ending = async {
            let mut running = self.spawner.start(call).await?;
            while let Some(chunk) = running.next().await {
                let stream = if chunk.stream == Stream::Stdout { &mut out } else { &mut err };
                // Before anything is left out: half a secret is not known as one.
                stream.push(&chunk.bytes, &mut clean);
                kept.push(&clean);
                clean.clear();
                see(chunk.stream, &chunk.bytes);
            }
            running.wait().await
        };
        let mut room = Room::of([cwd, &self.temporary()]);
        let ended = {
            let mut ending = pin!(ending);
            loop {
                tokio::select! {
                    ended = &mut ending => break ended,
                    () = room.next_look() => room.look(),
                }
            }
        };
        room.look();
        let exit = match ended {
            Ok(ending) => ending.exit,
            Err(_) if self.cancel.is_cancelled() => return Err(Cancelled),
            Err(error) => return Ok(Shell::CouldNotRun { why: error.to_string() }),
        };
        out.finish(&mut clean);
        err.finish(&mut clean);
        kept.push(&clean);
        let output = output::clean(&kept.into_bytes());
        let ended = match exit {
            Exit::Code(0) => Shell::Passed { output },
            Exit::Code(code @ (NOT_EXECUTABLE | NOT_FOUND)) => {
                Shell::CouldNotRun { why: format!("{} (exit code {code})", complaint(&output, command)) }
            }
            Exit::Code(code) => {
                Shell::Failed { why: format!("exit code {code}"), output, repeatable: !KILLED.contains(&code) }
            }
            Exit::Signal(signal) => {
                Shell::Failed { why: format!("killed by signal {signal}"), output, repeatable: false }
            }
            Exit::Exceeded(excess) => Shell::Failed { why: excess.to_string(), output, repeatable: false },
            Exit::TimedOut(limit) | Exit::NeverSpoke(limit) | Exit::Silent(limit) => {
                Shell::Failed { why: timed_out(limit), output, repeatable: false }
            }
            Exit::Cancelled => return Err(Cancelled),
        };
        Ok(match room.want() {
            // Who used it up and was ended for that has done so by itself.
            Some(why) if matches!(ended, Shell::Failed { .. }) && !matches!(exit, Exit::Exceeded(_)) => {
                Shell::NoRoom { why }
            }
            _ => ended,
        })
    }

    /// Where commands put temporary files.
    fn temporary(&self) -> PathBuf {
        let own = self.environment.iter().find(|(name, _)| name == "TMPDIR");
        own.map_or_else(std::env::temp_dir, |(_, folder)| folder.into())
    }
}

/// How a command ended; its output is clean and bounded.
pub(super) enum Shell {
    Passed { output: String },
    Failed { why: String, output: String, repeatable: bool },
    CouldNotRun { why: String },
    NoRoom { why: String },
}

pub(super) fn timed_out(limit: Duration) -> String {
    format!("timed out after {}", output::span(limit))
}

/// The line in which the shell, or a tool it called, says what is missing; else the last one; else the command.
fn complaint(output: &str, command: &str) -> String {
    const WORDS: &[&str] = &["not found", "permission denied", "no such file", "cannot execute", "not executable"];
    let lines = || output.lines().map(str::trim).filter(|line| !line.is_empty()).rev();
    let says_it = |line: &&str| {
        let line = line.to_lowercase();
        WORDS.iter().any(|word| line.contains(word))
    };
    let line = lines().find(says_it).or_else(|| lines().next()).unwrap_or(command);
    line.chars().take(MAX_LINE).collect()
}
