//! What to start, where, with what, and within which limits.
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Environment, Passing, Resources};
use crate::sandbox::Confined;

/// The program that supervises others: normally our own binary with a hidden argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupervisorProgram {
    /// Absolute path.
    pub program: PathBuf,
    /// What makes it a supervisor; it is given no further arguments.
    pub args: Vec<OsString>,
}

/// One program to start. There is no call without limits.
#[derive(Debug, Clone)]
pub struct Call {
    /// A path, or a name that is looked up in the child's `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Where it runs. A relative `program` with a slash is relative to this.
    pub cwd: PathBuf,
    /// What it is given of the environment.
    pub env: Environment,
    /// What it reads.
    pub stdin: Stdin,
    /// How long it may take.
    pub limits: Limits,
    /// How much of the machine it may use, with all that it starts. Only what is supervised is looked at.
    pub resources: Resources,
    /// What [`Spawner::run`](super::Spawner::run) keeps of its output.
    pub capture: Capture,
    /// How firmly it is held.
    pub ownership: Ownership,
    /// Asks for the end of the program: TERM, the grace, KILL.
    pub cancel: CancellationToken,
    /// What keeps it inside, if something does.
    pub(crate) confined: Option<Box<Confined>>,
}

/// What a program reads. Never the terminal, and no pipe that stays open but for one that is talked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing: `/dev/null`.
    Null,
    /// These bytes, then the end. A program that does not read them is no error.
    Bytes(Vec<u8>),
    /// What it is told while it runs: see [`Running::say`](super::Running::say).
    Talk,
}

/// How long a program may take. All are observed time: see [`Running`](super::Running).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From the start to the end.
    pub total: Duration,
    /// From the start to the first byte on either output.
    pub first_output: Option<Duration>,
    /// Between two bytes on either output; from the start where `first_output` is not set.
    pub idle: Option<Duration>,
    /// From the final event ([`Running::saw_final_event`](super::Running::saw_final_event)) to the exit.
    pub exit_grace: Duration,
    /// From TERM to KILL.
    pub grace: Duration,
}

impl Limits {
    /// `total` and nothing else; ten seconds to exit after the final event, five from TERM to KILL.
    pub fn total(total: Duration) -> Self {
        Self {
            total,
            first_output: None,
            idle: None,
            exit_grace: Duration::from_secs(10),
            grace: Duration::from_secs(5),
        }
    }
}

/// What is kept of a program's output; each stream is counted by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capture {
    /// All of it; more than `max` bytes ends the program and is an error.
    Full {
        /// Bytes.
        max: usize,
    },
    /// The first `head` and the last `tail` bytes.
    HeadTail {
        /// Bytes.
        head: usize,
        /// Bytes.
        tail: usize,
    },
}

/// How firmly a program is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// A group of its own that is ended as a group, also when this process is killed. For short plumbing that leaves nothing
    /// behind: a descendant that leaves the group escapes.
    Light,
    /// Under a supervisor that ends every descendant, also when this process is killed.
    Supervised,
}

impl Call {
    /// A light call with nothing on standard input, 30 seconds in all and at most 16 MiB of output a stream.
    pub fn new(program: impl Into<OsString>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: cwd.into(),
            env: Environment::inherited(),
            stdin: Stdin::Null,
            limits: Limits::total(Duration::from_secs(30)),
            resources: Resources::default(),
            capture: Capture::Full { max: 16 * 1024 * 1024 },
            ownership: Ownership::Light,
            cancel: CancellationToken::new(),
            confined: None,
        }
    }

    /// `command` as `/bin/sh -c` reads it, supervised.
    pub fn shell(command: impl AsRef<OsStr>, cwd: impl Into<PathBuf>) -> Self {
        Self::new("/bin/sh", cwd).arg("-c").arg(command).ownership(Ownership::Supervised)
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

    /// Sets a variable for the program.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env = self.env.set(name, value);
        self
    }

    /// Takes a variable away from the program.
    #[must_use]
    pub fn env_remove(mut self, name: impl Into<OsString>) -> Self {
        self.env = self.env.remove(name);
        self
    }

    /// Replaces the whole decision about the environment.
    #[must_use]
    pub fn environment(mut self, env: Environment) -> Self {
        self.env = env;
        self
    }

    /// Of our variables it gets only those that may pass.
    #[must_use]
    pub fn seeing(mut self, passing: Passing) -> Self {
        self.env = self.env.only(passing);
        self
    }

    /// Feeds `bytes` to the program's standard input.
    #[must_use]
    pub fn stdin_bytes(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Stdin::Bytes(bytes.into());
        self
    }

    /// Keeps the program's standard input open, to talk with it.
    #[must_use]
    pub fn stdin_talk(mut self) -> Self {
        self.stdin = Stdin::Talk;
        self
    }

    /// Sets all limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how much of the machine it may use.
    #[must_use]
    pub fn resources(mut self, resources: Resources) -> Self {
        self.resources = resources;
        self
    }

    /// Sets the total limit only.
    #[must_use]
    pub fn timeout(mut self, total: Duration) -> Self {
        self.limits.total = total;
        self
    }

    /// Sets what is kept of the output.
    #[must_use]
    pub fn capture(mut self, capture: Capture) -> Self {
        self.capture = capture;
        self
    }

    /// Sets how firmly the program is held.
    #[must_use]
    pub fn ownership(mut self, ownership: Ownership) -> Self {
        self.ownership = ownership;
        self
    }

    /// Ends the program when `cancel` is cancelled.
    #[must_use]
    pub fn cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Confines the program.
    #[must_use]
    pub(crate) fn confined(mut self, confined: Confined) -> Self {
        self.confined = Some(Box::new(confined));
        self
    }
}
