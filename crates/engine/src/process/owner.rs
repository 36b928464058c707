//! The two ways to own a child, behind one face.
use std::io;
use std::pin::Pin;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::AsyncWrite;
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStderr, ChildStdout};

use super::leftover::Leftover;
use super::light::Light;
use super::supervised::Supervised;
use super::{Call, Ownership, SpawnError, SupervisorProgram};

/// Who holds the child.
#[derive(Debug)]
pub(super) enum Owner {
    Light(Box<Light>),
    Supervised(Box<Supervised>),
}

/// What an owner has to tell.
#[derive(Debug, Clone, Copy)]
pub(super) enum Happening {
    /// The program itself has ended.
    Exited(ExitStatus),
    /// Others that it started live on, and are being ended.
    Leaking,
    /// So many can't be ended.
    Stuck { count: usize },
    /// Nobody is left whom the owner knows of.
    Gone {
        /// Somebody had to be ended after the program itself was gone.
        leaked: bool,
    },
}

/// The child's outputs, and its input where it is fed.
pub(super) struct Pipes {
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
    pub(super) stdin: Option<Pin<Box<dyn AsyncWrite + Send + Sync>>>,
}

impl Pipes {
    pub(super) fn of(child: &mut Child) -> io::Result<Self> {
        let missing = || io::Error::other("the child has no output pipes");
        Ok(Self {
            stdout: child.stdout.take().ok_or_else(missing)?,
            stderr: child.stderr.take().ok_or_else(missing)?,
            stdin: child.stdin.take().map(|stdin| Box::pin(stdin) as Pin<Box<dyn AsyncWrite + Send + Sync>>),
        })
    }

    pub(super) fn with_stdin(self, stdin: pipe::Sender) -> Self {
        Self { stdin: Some(Box::pin(stdin)), ..self }
    }
}

impl Owner {
    pub(super) async fn start(call: &Call, supervisor: &SupervisorProgram) -> Result<(Self, Pipes), SpawnError> {
        match call.ownership {
            Ownership::Light => Light::start(call).map(|(light, pipes)| (Self::Light(Box::new(light)), pipes)),
            Ownership::Supervised => Supervised::start(call, supervisor)
                .await
                .map(|(supervised, pipes)| (Self::Supervised(Box::new(supervised)), pipes)),
        }
    }

    pub(super) fn record(&self) -> Leftover {
        match self {
            Self::Light(light) => light.record(),
            Self::Supervised(supervised) => supervised.record(),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        match self {
            Self::Light(light) => light.pid(),
            Self::Supervised(supervised) => supervised.pid(),
        }
    }

    /// What happens next; an error means that the child can no longer be observed. Can be dropped and called again.
    pub(super) async fn event(&mut self) -> io::Result<Happening> {
        match self {
            Self::Light(light) => light.event().await,
            Self::Supervised(supervised) => supervised.event().await,
        }
    }

    /// Asks all whom it reaches to end.
    pub(super) fn terminate(&self, grace: Duration) {
        match self {
            Self::Light(light) => light.terminate(),
            Self::Supervised(supervised) => supervised.terminate(grace),
        }
    }

    /// Ends all whom it reaches.
    pub(super) fn kill(&self) {
        match self {
            Self::Light(light) => light.kill(),
            Self::Supervised(supervised) => supervised.kill(),
        }
    }

    /// The last resort, when the child can no longer be observed: the next event tells what came of it.
    pub(super) fn search_and_end(&mut self) {
        match self {
            Self::Light(light) => light.give_up(),
            Self::Supervised(supervised) => supervised.search_and_end(),
        }
    }

    /// After the last signal: lets the system forget the child.
    pub(super) fn release(&mut self) {
        if let Self::Light(light) = self {
            light.reap();
        }
    }
}
