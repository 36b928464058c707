//! A run in a process of its own, and the screen that holds it by a leash: two pipes. The process takes its order on
//! the standard input and says where its run is kept on the standard output. When the leash is cut, since the screen
//! died or its terminal went away, the run ends as by HUP; when it is let go, the run goes on without anybody.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;

use ralphloop_core::ids::StoryId;
use ralphloop_engine::runs::RunFolder;
use ralphloop_engine::start::{Ready, TakingUp};
use rustix::process::{Pid, Signal, getpid, kill_process, setsid};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStderr, ChildStdin, Command};

use crate::config::Layer;
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output;
use crate::verbs::launch::Launch;
use crate::verbs::repository;
use crate::verbs::run::{Eyes, ended, go_with};
use crate::verbs::take_up::Wish;

/// The word that lets the run go.
const LET_GO: &str = "go";

/// What the process is to run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) launch: Launch,
    pub(super) taking_up: Wanted,
    /// Settings are not taken from the environment.
    pub(super) apart: bool,
}

/// [`TakingUp`] as it is written.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Wanted {
    Unfinished,
    Never,
    Run(String),
    Retry(String, String),
}

impl From<&TakingUp> for Wanted {
    fn from(taking_up: &TakingUp) -> Self {
        match taking_up {
            TakingUp::Unfinished => Self::Unfinished,
            TakingUp::Never => Self::Never,
            TakingUp::Run(folder) => Self::Run(folder.id.to_string()),
            TakingUp::Retry(folder, story) => Self::Retry(folder.id.to_string(), story.to_string()),
        }
    }
}

/// The side of the run: does what it is told.
pub(crate) fn obey() -> Result<Exit, CliError> {
    let unfit = |error: &io::Error| CliError::usage("this verb is for the screen alone").cause(error);
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(|error| unfit(&error))?;
    let order: Order = serde_json::from_str(&line).map_err(|error| unfit(&error.into()))?;
    // The terminal's signals are the screen's. It fails only if this process leads a session already.
    let _session = setsid();
    let mut host = Host::of_this_process()?;
    if order.apart {
        host.environment.clear();
    }
    let wish = match order.taking_up {
        Wanted::Unfinished => Wish::Open,
        Wanted::Never => Wish::Fresh,
        Wanted::Run(id) => Wish::Run(repository::find_run(Some(&id), &host)?),
        Wanted::Retry(id, story) => Wish::Retry(repository::find_run(Some(&id), &host)?, StoryId::from(story.as_str())),
    };
    // Who was to be asked was asked by the screen's process.
    go_with(order.launch.prepare_to_run(Layer::default(), false, &host)?, wish, false, Eyes::Screen, None)
}

/// Drives a run that a screen holds.
pub(crate) async fn drive(mut ready: Ready) -> Result<Exit, CliError> {
    for warning in &ready.warnings {
        output::warn(warning);
    }
    output::data(&format!("{}\n", ready.folder().path().display()))?;
    let mut watch = std::mem::replace(&mut ready.watch, ralphloop_engine::notice::channel().1);
    let stdin = rustix::io::dup(rustix::stdio::stdin())
        .map_err(io::Error::from)
        .and_then(pipe::Receiver::from_owned_fd)
        .map_err(|error| CliError::environment("the screen cannot be listened to").cause(&error))?;
    // The screen reads the journal and the transcripts; here only what stands in neither is passed on.
    let noting = async {
        while let Some(note) = watch.notes.recv().await {
            output::warn(&note);
        }
    };
    watch.state.close();
    watch.talk.close();
    let driving = async {
        tokio::select! {
            result = ready.drive() => result,
            never = held(stdin) => match never {},
        }
    };
    let ((_, result), ()) = tokio::join!(driving, noting);
    ended(result)
}

/// Ends the run when the leash is cut without a word.
async fn held(leash: pipe::Receiver) -> std::convert::Infallible {
    let mut said = String::new();
    // An error is a cut like any other.
    let read = BufReader::new(leash).read_to_string(&mut said).await;
    if read.is_err() || said.trim() != LET_GO {
        let _sent = kill_process(getpid(), Signal::HUP);
    }
    std::future::pending().await
}

/// The side of the screen.
#[derive(Debug)]
pub(super) struct Leashed {
    child: Child,
    leash: ChildStdin,
    pub(super) complaints: Option<ChildStderr>,
    /// Where the run is kept.
    pub(super) folder: RunFolder,
}

/// What came of an order.
#[derive(Debug)]
pub(super) enum Begun {
    /// The run is going on.
    Running(Box<Leashed>),
    /// It ended before it began.
    Ended {
        /// How.
        exit: Exit,
        /// What it said.
        said: String,
    },
}

impl Leashed {
    /// Starts a process for this order, and waits until its run has begun.
    pub(super) async fn start(order: &Order, cwd: &std::path::Path) -> io::Result<Begun> {
        let mut bytes = serde_json::to_vec(order)?;
        bytes.push(b'\n');
        let mut child = Command::new(std::env::current_exe()?)
            .arg("__leashed")
            .current_dir(cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let gone = || io::Error::other("a pipe to the run is missing");
        let mut leash = child.stdin.take().ok_or_else(gone)?;
        let mut stdout = BufReader::new(child.stdout.take().ok_or_else(gone)?);
        let mut stderr = child.stderr.take().ok_or_else(gone)?;
        leash.write_all(&bytes).await?;
        let mut line = String::new();
        stdout.read_line(&mut line).await?;
        let path = PathBuf::from(line.trim_end_matches('\n'));
        if path.is_absolute() {
            let folder = RunFolder::at(&path);
            return Ok(Begun::Running(Box::new(Self { child, leash, complaints: Some(stderr), folder })));
        }
        let mut said = Vec::new();
        stderr.read_to_end(&mut said).await?;
        let said = format!("{}{line}", String::from_utf8_lossy(&said));
        Ok(Begun::Ended { exit: exit_of(child.wait().await?), said })
    }

    /// Sends the process a signal.
    pub(super) fn signal(&self, signal: Signal) {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // If it is gone, that is what was wanted.
            let _sent = kill_process(pid, signal);
        }
    }

    /// Waits for its end.
    pub(super) async fn wait(&mut self) -> io::Result<Exit> {
        Ok(exit_of(self.child.wait().await?))
    }

    /// Lets the run go on without the screen.
    pub(super) async fn let_go(mut self) -> io::Result<()> {
        self.leash.write_all(LET_GO.as_bytes()).await?;
        self.leash.shutdown().await
    }
}

fn exit_of(status: std::process::ExitStatus) -> Exit {
    match status.code().and_then(|code| u8::try_from(code).ok()) {
        Some(code) => Exit { code, means: "as the run's own process ended" },
        None => Exit::FAILED,
    }
}
