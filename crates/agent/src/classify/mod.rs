//! Exit status, final event, typed events and the client's own last words, made into the one closed value that decides
//! who pays and what happens next.
//!
//! The order of trust: what we did to the process ourselves; the client's final event with its typed fields; the
//! client's known wordings, at the start of a line of its final event, of its stderr, or where it has no events, of its
//! last lines. Prose of an attempt that succeeded, and results of tools, are never looked at.

mod reset;
mod words;

use std::time::Duration;

use jiff::tz::TimeZone;
use ralphloop_core::evidence::{AgentEnd, Claim};
use ralphloop_core::units::Timestamp;
use serde::{Deserialize, Serialize};

pub(crate) use self::words::class_of_failure;
pub use self::words::{Class, class_of_answer};
use crate::notes::Notes;
use crate::sanitize;
use crate::text;
use crate::trace::{Seen, Terminal};

/// How much of a client's message is kept in the reason of a failure, in bytes.
const MESSAGE: usize = 2000;
/// How many of the last lines of stderr are read for a known wording.
const STDERR_LINES: usize = 20;
/// How many of the last lines of stdout are read for a known wording when a client without events has failed.
const STDOUT_LINES: usize = 3;

/// How an agent's process came to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "process", rename_all = "snake_case")]
pub enum ProcessEnd {
    /// It exited by itself.
    Exited {
        /// The exit code.
        code: i32,
    },
    /// It died by a signal that was not ours.
    Signalled {
        /// The signal's number.
        signal: i32,
    },
    /// Ended by us because it stayed after its final event.
    Lingered,
    /// Ended by us: no byte came within the time to the first one.
    NeverSpoke {
        /// The limit that was reached.
        after: Duration,
    },
    /// Ended by us: no byte came for so long.
    Silent {
        /// The limit that was reached.
        after: Duration,
    },
    /// Ended by us: the attempt's time was up.
    TimedOut {
        /// The limit that was reached.
        after: Duration,
    },
    /// Ended by us: it made the same call with the same result over and over.
    Looped {
        /// The call.
        call: String,
        /// How often.
        times: u32,
    },
    /// Ended by us because the run is stopping.
    Stopped,
    /// It could not be started at all.
    CannotStart {
        /// What happened, with the program's path.
        message: String,
    },
    /// A fault of our own.
    Internal {
        /// What happened.
        message: String,
    },
}

/// The moment and the place in which clock times of a client's message are read.
#[derive(Debug, Clone)]
pub struct Clock {
    /// The moment at which the call ended.
    pub now: Timestamp,
    /// The user's time zone, for times without one.
    pub zone: TimeZone,
}

/// The end of a call of a client that writes events.
pub(crate) fn with_events(process: ProcessEnd, seen: &Seen, notes: &Notes, clock: &Clock) -> AgentEnd {
    let exit = match exit_status(process, notes) {
        Ok(exit) => exit,
        Err(end) => return end,
    };
    match &seen.terminal {
        Some(terminal) if terminal.is_error => failure(terminal, clock),
        // Without a final event the exit status has its word too.
        Some(terminal) if terminal.inferred && matches!(exit, Exit::Failure(_)) => {
            without_final_event(exit, "", notes, clock)
        }
        Some(terminal) if !terminal.denials.is_empty() && !seen.worked => {
            AgentEnd::PermissionDenied { tools: distinct(&terminal.denials) }
        }
        Some(terminal) if terminal.text.trim().is_empty() => AgentEnd::NoFinalMessage,
        Some(_) => AgentEnd::Finished,
        None => without_final_event(exit, &last_lines(notes.strays.text(), STDOUT_LINES), notes, clock),
    }
}

/// The end of a call of a client that only prints. An honest failure or blockage holds whatever the exit code.
pub(crate) fn without_events(
    process: ProcessEnd,
    seen: &text::Seen,
    claim: &Claim,
    notes: &Notes,
    clock: &Clock,
) -> AgentEnd {
    let exit = match exit_status(process, notes) {
        Ok(exit) => exit,
        Err(end) => return end,
    };
    match (claim, &exit) {
        (Claim::Failed { .. } | Claim::Blocked { .. }, _) | (Claim::Complete, Exit::Success) => AgentEnd::Finished,
        (Claim::None { .. }, Exit::Success) if !seen.message.trim().is_empty() => {
            let words = [last_lines(&seen.message, 1), last_lines(notes.stderr.text(), STDERR_LINES)];
            words.iter().find_map(|words| known(words, clock)).unwrap_or(AgentEnd::Finished)
        }
        _ => without_final_event(exit, &last_lines(&seen.message, STDOUT_LINES), notes, clock),
    }
}

enum Exit {
    Success,
    Failure(String),
}

/// The exit status, or the end itself where we brought it about.
fn exit_status(process: ProcessEnd, notes: &Notes) -> Result<Exit, AgentEnd> {
    Err(match process {
        ProcessEnd::Exited { code: 0 } | ProcessEnd::Lingered => return Ok(Exit::Success),
        ProcessEnd::Exited { code } => return Ok(Exit::Failure(format!("exit code {code}"))),
        ProcessEnd::Signalled { signal } => return Ok(Exit::Failure(format!("signal {signal}"))),
        ProcessEnd::NeverSpoke { after } => AgentEnd::NeverSpoke { after },
        ProcessEnd::Silent { after } => AgentEnd::Silent { after, last_output: notes.last_output.clone() },
        ProcessEnd::TimedOut { after } => AgentEnd::TimedOut { after },
        ProcessEnd::Looped { call, times } => AgentEnd::Looped { call, times },
        ProcessEnd::Stopped => AgentEnd::Stopped,
        ProcessEnd::CannotStart { message } => AgentEnd::CannotStart { message },
        ProcessEnd::Internal { message } => AgentEnd::Internal { message },
    })
}

fn without_final_event(exit: Exit, last_stdout: &str, notes: &Notes, clock: &Clock) -> AgentEnd {
    let stderr = last_lines(notes.stderr.text(), STDERR_LINES);
    if let Some(end) = known(&stderr, clock).or_else(|| known(last_stdout, clock)) {
        return end;
    }
    match exit {
        Exit::Failure(status) => {
            let message = if stderr.is_empty() { last_stdout } else { stderr.as_str() };
            AgentEnd::Crashed { status, message: sanitize::tail(message, MESSAGE).into_owned() }
        }
        Exit::Success if notes.spoke => AgentEnd::NoFinalMessage,
        Exit::Success => AgentEnd::NoOutput,
    }
}

/// A client that reports an error itself.
fn failure(terminal: &Terminal, clock: &Clock) -> AgentEnd {
    let message = sanitize::head(terminal.text.trim(), MESSAGE).into_owned();
    match terminal.class {
        Some(Class::Limit) => AgentEnd::Limit {
            resets_at: terminal
                .resets_at
                .or_else(|| reset::reset_time(&message, clock))
                .or_else(|| terminal.retry_after.map(|span| clock.now.after(span))),
            message,
        },
        Some(class) => class.end(message, clock),
        None => AgentEnd::Error { message },
    }
}

fn known(words: &str, clock: &Clock) -> Option<AgentEnd> {
    let class = words::class(words)?;
    Some(class.end(sanitize::tail(words.trim(), MESSAGE).into_owned(), clock))
}

/// The last lines that are not blank.
fn last_lines(text: &str, count: usize) -> String {
    let mut lines: Vec<&str> = text.lines().rev().filter(|line| !line.trim().is_empty()).take(count).collect();
    lines.reverse();
    lines.join("\n")
}

fn distinct(names: &[String]) -> Vec<String> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(name) {
            seen.push(name.clone());
        }
    }
    seen
}
