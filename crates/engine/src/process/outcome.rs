//! What a followed child says and how it ends.
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use super::Excess;

/// Which output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl std::fmt::Display for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Stdout => "standard output",
            Self::Stderr => "standard error",
        })
    }
}

/// Bytes as they came: at most 64 KiB, cut anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Where they came from.
    pub stream: Stream,
    /// Never empty.
    pub bytes: Vec<u8>,
}

/// How a program ended, or what ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By a signal that was not ours.
    Signal(i32),
    /// It was ended: this was its time in all.
    TimedOut(Duration),
    /// It was ended: this was its time to the first byte of output.
    NeverSpoke(Duration),
    /// It was ended: this was its time between two bytes of output.
    Silent(Duration),
    /// It was ended: it used more of the machine than it may.
    Exceeded(Excess),
    /// It was ended on request.
    Cancelled,
}

impl Exit {
    /// Whether the program ended by itself with code 0.
    pub fn success(&self) -> bool {
        *self == Self::Code(0)
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => write!(f, "was killed by signal {signal}"),
            Self::TimedOut(limit) => write!(f, "was ended after its time limit of {}s", limit.as_secs_f32()),
            Self::NeverSpoke(limit) => {
                write!(f, "was ended after no output for {}s since its start", limit.as_secs_f32())
            }
            Self::Silent(limit) => write!(f, "was ended after no output for {}s", limit.as_secs_f32()),
            Self::Exceeded(excess) => excess.fmt(f),
            Self::Cancelled => f.write_str("was ended on request"),
        }
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        match status.code() {
            Some(code) => Self::Code(code),
            None => Self::Signal(status.signal().unwrap_or_default()),
        }
    }
}

/// How hard a stop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopLevel {
    /// The program's own word for the end, if it was given one, and some seconds; TERM, the grace of the call's limits, KILL.
    Gentle,
    /// KILL.
    Now,
}

/// What a watcher is told of a child. Only ever goes forward, but for slow and running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// It runs and speaks.
    Running,
    /// It runs and has been silent for half of what it may be.
    Slow,
    /// It has been asked to end.
    Ending,
    /// It has exited; others that it started live on, or hold its output.
    ExitedButLeaking,
    /// It and all that it started is gone.
    Gone,
}

/// The end of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// How it ended. A child that stayed after its final event has ended by itself, with code 0.
    pub exit: Exit,
    /// It left others behind, or its output in others' hands, and these had to be ended or given up.
    pub leaked: bool,
    /// It stayed after its final event and was ended.
    pub stayed: bool,
}
