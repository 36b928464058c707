//! The one way to start a program: bounded in time and output, owned until it is confirmed gone.
//!
//! A [`Call`] says what to start and within which limits; a [`Spawner`] starts it. Every child has its standard input
//! closed (or fed and then closed), no controlling terminal, both outputs as pipes, and only the environment that was
//! decided for it. The exit of the process, the end of its output and the end of everything it left behind are three
//! facts and are kept apart.
//!
//! Nothing here runs by itself: a [`Running`] makes progress while it is asked for the next chunk, and dropping it ends
//! what it owns.
mod call;
mod capture;
mod clock;
mod cradle;
mod environment;
mod error;
mod group;
mod leftover;
mod lowlevel;
mod nursery;
mod outcome;
mod outlet;
mod owner;
mod resources;
mod running;
mod stdin;
mod supervisor;
mod tree;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

pub use call::{Call, Capture, Limits, Ownership, Stdin, SupervisorProgram};
pub use capture::Captured;
pub use environment::{Environment, Passing};
pub use error::SpawnError;
pub use leftover::{Ended, Leftover, end_leftovers, parent};
pub(crate) use leftover::{boot_id, start_time};
pub use nursery::supervise_main;
pub use outcome::{Chunk, Condition, Ending, Exit, StopLevel, Stream};
pub use resources::{Excess, Resource, Resources};
pub use running::Running;

use capture::Collector;
use cradle::Cradle;

/// Starts programs. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Spawner {
    cradle: Arc<Cradle>,
}

/// What a program did, from start to end.
#[derive(Debug)]
pub struct Output {
    /// How it ended, or which limit ended it.
    pub exit: Exit,
    /// What was kept of its standard output.
    pub stdout: Captured,
    /// What was kept of its standard error.
    pub stderr: Captured,
    /// From the start until everything was gone.
    pub took: Duration,
    /// The program ended and left others behind that had to be ended.
    pub leaked: bool,
}

impl Output {
    /// Whether the program ended by itself with code 0.
    pub fn success(&self) -> bool {
        self.exit.success()
    }
}

impl Spawner {
    /// A spawner whose calls are held by copies of `supervisor`.
    pub fn new(supervisor: SupervisorProgram) -> Self {
        Self { cradle: Arc::new(Cradle::new(supervisor)) }
    }

    /// Runs a program to its end and returns what it wrote, as far as the call's capture keeps it.
    ///
    /// A limit, a cancellation and a bad exit code are outcomes, not errors; errors are a program that could not be
    /// started and, with [`Capture::Full`], one that wrote more than was allowed.
    pub async fn run(&self, call: Call) -> Result<Output, SpawnError> {
        let began = Instant::now();
        let mut stdout = Collector::new(call.capture);
        let mut stderr = Collector::new(call.capture);
        let program = call.program.clone();
        let mut running = self.start(call).await?;
        let mut overflow = None;
        while let Some(chunk) = running.next().await {
            let collector = match chunk.stream {
                Stream::Stdout => &mut stdout,
                Stream::Stderr => &mut stderr,
            };
            if collector.push(&chunk.bytes).is_err() && overflow.is_none() {
                overflow = Some(chunk.stream);
                running.stop(StopLevel::Now);
            }
        }
        let ending = running.wait().await?;
        if let (Some(stream), Capture::Full { max }) = (overflow, stdout.capture()) {
            return Err(SpawnError::TooMuchOutput { program, stream, max });
        }
        Ok(Output {
            exit: ending.exit,
            stdout: stdout.finish(),
            stderr: stderr.finish(),
            took: began.elapsed(),
            leaked: ending.leaked,
        })
    }

    /// Starts a program and returns when it runs, or with the reason why it can't.
    pub async fn start(&self, call: Call) -> Result<Running, SpawnError> {
        Running::start(call, Arc::clone(&self.cradle)).await
    }
}
