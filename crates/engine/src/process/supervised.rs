//! A child under a supervisor: our end of the control socket.
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Pid;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::error::FailedStart;
use super::leftover::{self, Ended, Leftover, MARK};
use super::lowlevel::in_new_session;
use super::owner::{Happening, Pipes};
use super::wire::{self, Request, Status};
use super::{Call, SpawnError, Stdin, SupervisorProgram};

/// How long a supervisor may take to start the child. It takes milliseconds; a machine that swaps takes seconds.
const HANDSHAKE: Duration = Duration::from_mins(1);

/// The supervisor, and what it has told of the child.
#[derive(Debug)]
pub(super) struct Supervised {
    supervisor: Child,
    socket: UnixStream,
    inbox: Vec<u8>,
    record: Leftover,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The supervisor is to be listened to.
    Listening,
    /// It has said its last word and exits.
    Confirmed { leaked: bool },
    /// It is dead or silent, and a search without it is under way.
    Searching(JoinHandle<Vec<Ended>>),
}

impl Supervised {
    pub(super) async fn start(call: &Call, supervisor: &SupervisorProgram) -> Result<(Self, Pipes), SpawnError> {
        let mark = uuid::Uuid::now_v7().to_string();
        let mut env = call.env.resolve();
        env.insert(MARK.into(), OsString::from(&mark));
        let failed = FailedStart {
            program: &call.program,
            args: &call.args,
            cwd: &call.cwd,
            path: env.get(OsStr::new("PATH")).map(OsString::as_os_str),
        };
        let problem = |problem: String| SpawnError::Supervisor {
            program: call.program.clone(),
            supervisor: supervisor.program.clone(),
            problem,
        };
        let (mut this, pipes) = Self::launch(call, supervisor, mark)
            .map_err(|error| problem(format!("could not be started: {error}; reinstall ralphloop")))?;
        let request = Request {
            program: call.program.clone(),
            args: call.args.clone(),
            cwd: call.cwd.clone(),
            env: env.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        };
        match tokio::time::timeout(HANDSHAKE, this.hand_over(&request)).await {
            Err(_) => {
                this.end_unseen().await;
                Err(problem(format!("did not answer within {} s; what it started was ended", HANDSHAKE.as_secs())))
            }
            Ok(Err(error)) => {
                this.end_unseen().await;
                Err(problem(format!("ended before it said that the program runs: {error}; what it started was ended")))
            }
            Ok(Ok(Status::Started { pid, start_time })) => match Pid::from_raw(pid) {
                Some(_) => {
                    this.record.pid = pid.cast_unsigned();
                    this.record.start_time = start_time;
                    Ok((this, pipes))
                }
                None => Err(problem("named no process".to_owned())),
            },
            Ok(Ok(Status::Failed { errno })) => Err(failed.diagnose(io::Error::from_raw_os_error(errno))),
            Ok(Ok(other)) => Err(problem(format!("answered out of turn: {other:?}"))),
        }
    }

    /// Starts the supervisor itself, with the outputs that it will hand down.
    fn launch(call: &Call, program: &SupervisorProgram, mark: String) -> io::Result<(Self, Pipes)> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        let (reader, writer) = match call.stdin {
            Stdin::Null => (None, None),
            Stdin::Bytes(_) => {
                let (reader, writer) = io::pipe()?;
                (Some(OwnedFd::from(reader)), Some(OwnedFd::from(writer)))
            }
        };
        wire::send_stdin(ours.as_fd(), reader.as_ref().map(OwnedFd::as_fd))?;
        drop(reader);
        ours.set_nonblocking(true)?;
        let mut command = std::process::Command::new(&program.program);
        // In the root folder it keeps no worktree and no mount in use.
        command.args(&program.args).current_dir("/");
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::piped()).stderr(Stdio::piped());
        in_new_session(&mut command);
        let mut supervisor = Command::from(command).spawn()?;
        let pipes = Pipes::of(&mut supervisor)?;
        let pipes = match writer {
            None => pipes,
            Some(writer) => pipes.with_stdin(pipe::Sender::from_owned_fd(writer)?),
        };
        let socket = UnixStream::from_std(ours)?;
        let record = Leftover { pid: 0, start_time: 0, boot_id: leftover::boot_id(), mark: Some(mark) };
        Ok((Self { supervisor, socket, inbox: Vec::new(), record, state: State::Listening }, pipes))
    }

    /// The program may run although nobody has said so: it is found by its mark.
    async fn end_unseen(&mut self) {
        self.search_and_end();
        // Whatever comes of it, the start has failed, and that is what is reported.
        drop(self.event().await);
    }

    async fn hand_over(&mut self, request: &Request) -> io::Result<Status> {
        self.socket.write_all(&request.encode()).await?;
        self.status().await
    }

    /// The next message. Can be dropped and called again.
    async fn status(&mut self) -> io::Result<Status> {
        loop {
            if let Some(status) = wire::take_line(&mut self.inbox) {
                return status;
            }
            self.socket.readable().await?;
            match self.socket.try_read_buf(&mut self.inbox) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn record(&self) -> Leftover {
        self.record.clone()
    }

    pub(super) fn pid(&self) -> u32 {
        self.record.pid
    }

    /// What happens to the child next; an error means that the supervisor is gone before its time. Can be dropped and
    /// called again.
    pub(super) async fn event(&mut self) -> io::Result<Happening> {
        loop {
            match &mut self.state {
                State::Confirmed { leaked } => {
                    self.supervisor.wait().await?;
                    return Ok(Happening::Gone { leaked: *leaked });
                }
                State::Searching(search) => {
                    // A search that broke off has confirmed nothing.
                    let survived = search.await.map_or(1, |ended| ended.iter().map(|ended| ended.survived.len()).sum());
                    return Ok(match survived {
                        0 => Happening::Gone { leaked: true },
                        count => Happening::Stuck { count },
                    });
                }
                State::Listening => match self.status().await? {
                    Status::Exited { raw } => return Ok(Happening::Exited(ExitStatus::from_raw(raw))),
                    Status::Leaking { .. } => return Ok(Happening::Leaking),
                    Status::Gone { ended } => self.state = State::Confirmed { leaked: ended > 0 },
                    Status::Stuck { count } => return Ok(Happening::Stuck { count }),
                    Status::Ending | Status::Started { .. } | Status::Failed { .. } => {}
                },
            }
        }
    }

    /// TERM to all, KILL to who is left after `grace`.
    pub(super) fn terminate(&self, grace: Duration) {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.command(wire::Command::End { grace_ms });
    }

    /// KILL to all.
    pub(super) fn kill(&self) {
        self.command(wire::Command::Kill);
    }

    /// Ends what can be found without the supervisor, which is dead or does not answer.
    pub(super) fn search_and_end(&mut self) {
        // The error says that it is dead already.
        drop(self.supervisor.start_kill());
        let record = self.record.clone();
        self.state = State::Searching(tokio::task::spawn_blocking(move || leftover::end_leftovers(&[record])));
    }

    /// A few bytes into a socket that holds many of them; a supervisor that can't be told is found out by its silence.
    fn command(&self, command: wire::Command) {
        if let Ok(line) = wire::line(&command) {
            drop(self.socket.try_write(&line));
        }
    }
}
