//! Control of a running run from another terminal: requests over a unix socket in the user's runtime folder, one JSON
//! object a line, each answered once it is on its way into the run.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ralphloop_core::event::{Fact, StopCause, StopLevel};
use ralphloop_core::ids::{RunId, StoryId};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::driver::Inbox;
use crate::files;

/// A request is no longer than this.
const MAX_REQUEST: u64 = 64 * 1024;
/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(5);

/// What may be asked of a running run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Stop.
    Stop {
        /// At once, not after the attempt.
        now: bool,
    },
    /// Pause after the attempt.
    Pause,
    /// A sentence for the next prompt.
    Guide {
        /// The sentence.
        text: String,
    },
    /// A sentence for all later prompts.
    Learn {
        /// The sentence.
        text: String,
    },
    /// Do not do this story in this run; an attempt of it is ended, kept and put back.
    Skip {
        /// Which.
        story: StoryId,
    },
    /// Try this story again, with all its attempts.
    Retry {
        /// Which.
        story: StoryId,
    },
    /// Do not wait for the agent that was asked to end: kill it.
    Hurry,
    /// End at once: what runs is killed, the tree is not put back.
    Force,
}

/// Where requests go.
#[derive(Debug, Clone)]
pub(crate) struct Hands {
    /// What changes the run is a fact.
    pub(crate) inbox: Inbox,
    /// Cancelled when agents are no longer waited for.
    pub(crate) hurry: CancellationToken,
    /// Cancelled when the run is to end at once.
    pub(crate) forced: CancellationToken,
}

impl Hands {
    /// Passes a request on; false if nobody is there any more.
    fn pass_on(&self, request: Request) -> bool {
        let fact = match request {
            Request::Hurry => {
                self.hurry.cancel();
                return true;
            }
            Request::Force => {
                self.forced.cancel();
                return true;
            }
            Request::Stop { now } => Fact::StopRequested {
                cause: StopCause::Request,
                level: if now { StopLevel::Now } else { StopLevel::AfterAttempt },
            },
            Request::Pause => Fact::PauseRequested,
            Request::Skip { story } => Fact::SkipRequested { story },
            Request::Retry { story } => Fact::RetryRequested { story },
            Request::Guide { text } => Fact::GuidanceAdded { text },
            Request::Learn { text } => Fact::LearningAdded { text },
        };
        self.inbox.send(fact).is_ok()
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Reply {
    ok: bool,
    message: String,
}

/// Why a request did not arrive.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The run does not listen.
    #[error("run {run} does not answer at {} ({source}): it may have ended just now, see `ralphloop status`", .path.display())]
    NotListening {
        /// The run.
        run: RunId,
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It answered that it will not.
    #[error("run {run} refused: {message}")]
    Refused {
        /// The run.
        run: RunId,
        /// Why.
        message: String,
    },
}

/// The user's runtime folder for sockets: paths of sockets must be short, so they cannot lie in the repository.
fn runtime_folder() -> PathBuf {
    let uid = rustix::process::getuid().as_raw();
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(dir) if dir.is_absolute() && dir.is_dir() => dir.join("ralphloop"),
        _ => PathBuf::from(format!("/tmp/ralphloop-{uid}")),
    }
}

/// The socket of a run: its id may occur in several repositories, so the folder of its journal tells them apart.
fn socket_of(run: &RunId, folder: &Path) -> PathBuf {
    let place = blake3::hash(folder.as_os_str().as_encoded_bytes()).to_hex();
    runtime_folder().join(format!("{run}-{}.sock", &place.as_str()[..8]))
}

/// Listens for requests to one run. The socket goes away with this.
#[derive(Debug)]
pub struct Control {
    listener: UnixListener,
    path: PathBuf,
}

impl Control {
    /// Opens the socket of a run. The folder must be the user's own, since what comes in is obeyed.
    pub fn open(run: &RunId, folder: &Path) -> io::Result<Self> {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let path = socket_of(run, folder);
        let runtime = runtime_folder();
        files::create_private_dir(&runtime).map_err(io::Error::other)?;
        let meta = std::fs::symlink_metadata(&runtime)?;
        if !meta.is_dir() || meta.uid() != rustix::process::getuid().as_raw() {
            return Err(io::Error::other(format!("{} is not a folder of this user", runtime.display())));
        }
        std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o700))?;
        // One process has the run's lock, so a socket that is there was left by one that died.
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        Ok(Self { listener: UnixListener::bind(&path)?, path })
    }

    /// Answers requests until `done`.
    pub(crate) async fn serve(self, hands: Hands, done: CancellationToken) {
        let mut clients = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => {
                    if let Ok((stream, _)) = accepted {
                        clients.spawn(answer(stream, hands.clone()));
                    }
                }
                Some(_) = clients.join_next() => {}
                () = done.cancelled() => break,
            }
        }
        clients.shutdown().await;
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // Another run of the same name cannot have opened it: we hold the lock.
        drop(std::fs::remove_file(&self.path));
    }
}

async fn answer(stream: UnixStream, hands: Hands) {
    let (read, mut write) = stream.into_split();
    let mut line = Vec::new();
    let mut reader = BufReader::new(read.take(MAX_REQUEST));
    let read = tokio::time::timeout(PATIENCE, reader.read_until(b'\n', &mut line)).await;
    let reply = match read.map(|r| r.map(|_| serde_json::from_slice::<Request>(&line))) {
        Ok(Ok(Ok(request))) => {
            let ok = hands.pass_on(request);
            let message = if ok { "noted" } else { "the run is ending" };
            Reply { ok, message: message.to_owned() }
        }
        Ok(Ok(Err(e))) => Reply { ok: false, message: format!("not a request: {e}") },
        Ok(Err(_)) | Err(_) => return,
    };
    let mut bytes = serde_json::to_vec(&reply).unwrap_or_default();
    bytes.push(b'\n');
    // Who asked may be gone; the request counts all the same.
    drop(tokio::time::timeout(PATIENCE, write.write_all(&bytes)).await);
}

/// Asks something of the run whose folder this is.
pub async fn ask(run: &RunId, folder: &Path, request: &Request) -> Result<(), ControlError> {
    let path = socket_of(run, folder);
    let reply = tokio::time::timeout(PATIENCE, exchange(&path, request))
        .await
        .unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut)))
        .map_err(|source| ControlError::NotListening { run: run.clone(), path, source })?;
    if reply.ok { Ok(()) } else { Err(ControlError::Refused { run: run.clone(), message: reply.message }) }
}

async fn exchange(path: &Path, request: &Request) -> io::Result<Reply> {
    let mut stream = UnixStream::connect(path).await?;
    let mut bytes = serde_json::to_vec(request)?;
    bytes.push(b'\n');
    stream.write_all(&bytes).await?;
    let mut line = Vec::new();
    BufReader::new(stream.take(MAX_REQUEST)).read_until(b'\n', &mut line).await?;
    Ok(serde_json::from_slice(&line)?)
}
