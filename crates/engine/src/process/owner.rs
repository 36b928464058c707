//! A child and who holds it: our end of the control socket.
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;

use super::cradle::Cradle;
use super::error::FailedStart;
use super::leftover::{self, Ended, Leftover, MARK};
use super::wire::{self, Ends, Request, Status};
use super::{Call, Excess, Ownership, SpawnError, Stdin};
use crate::sandbox::{Confined, Porter, Way};

/// How long a supervisor may take to start the child. It takes milliseconds; a machine that swaps takes seconds.
const HANDSHAKE: Duration = Duration::from_mins(1);

/// What an owner has to tell.
#[derive(Debug, Clone, Copy)]
pub(super) enum Happening {
    /// The program itself has ended.
    Exited(ExitStatus),
    /// Others that it started live on, and are being ended.
    Leaking,
    /// It uses too much, and is being ended.
    Exceeded(Excess),
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
    pub(super) stdout: pipe::Receiver,
    pub(super) stderr: pipe::Receiver,
    pub(super) stdin: Option<pipe::Sender>,
}

/// The supervisor or, of a light call, the cradle; and what it has told of the child.
#[derive(Debug)]
pub(super) struct Owner {
    /// `None` once nothing more is to be said.
    socket: Option<UnixStream>,
    inbox: Vec<u8>,
    /// Pins the supervisor, so that the last resort kills nobody else. The cradle holds others, too.
    supervisor: Option<OwnedFd>,
    ownership: Ownership,
    record: Leftover,
    state: State,
    /// At the doors of the child's network, if that has any.
    porter: Option<Porter>,
}

#[derive(Debug)]
enum State {
    /// The supervisor is to be listened to.
    Listening,
    /// It has said that nobody is left.
    Confirmed { leaked: bool },
    /// It is dead or silent, and a search without it is under way.
    Searching(JoinHandle<Vec<Ended>>),
}

impl Owner {
    pub(super) async fn start(call: &Call, cradle: &Cradle) -> Result<(Self, Pipes), SpawnError> {
        let mut confined = call.confined.clone();
        // A socket that its owner has closed can be covered no more, and need not be. There are fewer each time.
        let are_fewer =
            |confined: &mut Option<Box<Confined>>| confined.as_mut().is_some_and(|it| it.forget_what_is_gone());
        are_fewer(&mut confined);
        loop {
            let started = Self::start_in(call, confined.as_deref(), cradle).await;
            let was_refused = matches!(started, Err(SpawnError::NotConfined { .. }));
            if !was_refused || !are_fewer(&mut confined) {
                return started;
            }
        }
    }

    async fn start_in(call: &Call, confined: Option<&Confined>, cradle: &Cradle) -> Result<(Self, Pipes), SpawnError> {
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
            supervisor: cradle.program().program.clone(),
            problem,
        };
        let (doors, outside) = match confined.and_then(|confined| confined.reach.clone()) {
            None => (None, None),
            Some(reach) => {
                let pair = std::os::unix::net::UnixStream::pair();
                let (ours, theirs) =
                    pair.map_err(|error| problem(format!("has no socket for the network: {error}")))?;
                let porter = Porter::at(ours, reach);
                let porter = porter.map_err(|error| problem(format!("has no socket for the network: {error}")))?;
                (Some(porter), Some(OwnedFd::from(theirs)))
            }
        };
        let (mut this, pipes) = Self::launch(call, cradle, mark, outside)
            .map_err(|error| problem(format!("could not be started: {error}; reinstall ralphloop")))?;
        let (program, args) = (call.program.clone(), call.args.clone());
        let (program, args, way) = match confined.cloned() {
            Some(confined) => confined.applied(&call.cwd, program, args, cradle.program()),
            None => (program, args, Way::Free),
        };
        this.porter = doors;
        let request = Request {
            program,
            args,
            way,
            resources: call.resources,
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
            Ok(Ok(Status::NotConfined { why })) => Err(SpawnError::NotConfined { program: call.program.clone(), why }),
            Ok(Ok(other)) => Err(problem(format!("answered out of turn: {other:?}"))),
        }
    }

    /// Asks for the supervisor itself, with the streams that the child will have.
    fn launch(call: &Call, cradle: &Cradle, mark: String, doors: Option<OwnedFd>) -> io::Result<(Self, Pipes)> {
        let (ours, control) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (stdout, child_stdout) = io::pipe()?;
        let (stderr, child_stderr) = io::pipe()?;
        let (child_stdin, stdin) = match call.stdin {
            Stdin::Null => (None, None),
            Stdin::Bytes(_) | Stdin::Talk => {
                let (reader, writer) = io::pipe()?;
                (Some(OwnedFd::from(reader)), Some(OwnedFd::from(writer)))
            }
        };
        // Who is confined is prepared by a process of its own.
        let ownership = if call.confined.is_some() { Ownership::Supervised } else { call.ownership };
        let ends = Ends {
            ownership,
            control: control.into(),
            stdout: child_stdout.into(),
            stderr: child_stderr.into(),
            stdin: child_stdin,
            doors,
        };
        cradle.ask(&ends)?;
        drop(ends);
        let pipes = Pipes {
            stdout: pipe::Receiver::from_owned_fd(stdout.into())?,
            stderr: pipe::Receiver::from_owned_fd(stderr.into())?,
            stdin: stdin.map(pipe::Sender::from_owned_fd).transpose()?,
        };
        let record = Leftover { pid: 0, start_time: 0, boot_id: leftover::boot_id(), mark: Some(mark) };
        let socket = Some(UnixStream::from_std(ours)?);
        let (inbox, state) = (Vec::new(), State::Listening);
        Ok((Self { socket, inbox, supervisor: None, ownership, record, state, porter: None }, pipes))
    }

    /// The program may run although nobody has said so: it is found by its mark.
    async fn end_unseen(&mut self) {
        self.search_and_end();
        // Whatever comes of it, the start has failed, and that is what is reported.
        drop(self.event().await);
    }

    async fn hand_over(&mut self, request: &Request) -> io::Result<Status> {
        let socket = self.socket.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        socket.write_all(&request.encode()).await?;
        loop {
            match self.status().await? {
                Status::Here { pid } => {
                    self.supervisor = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
                }
                other => return Ok(other),
            }
        }
    }

    /// The next message. Can be dropped and called again.
    async fn status(&mut self) -> io::Result<Status> {
        loop {
            if let Some(status) = wire::take_line(&mut self.inbox) {
                return status;
            }
            let Some(socket) = &self.socket else { return Err(io::ErrorKind::NotConnected.into()) };
            socket.readable().await?;
            match socket.try_read_buf(&mut self.inbox) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Hosts that the child asked for and may not reach.
    pub(super) fn turned_away(&self) -> Vec<String> {
        self.porter.as_ref().map(Porter::turned_away).unwrap_or_default()
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
                    let leaked = *leaked;
                    // A supervisor dies last. Who holds a group stays until it is let go.
                    if self.ownership == Ownership::Supervised {
                        while self.status().await.is_ok() {}
                    }
                    return Ok(Happening::Gone { leaked });
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
                    Status::Exceeded { excess } => return Ok(Happening::Exceeded(excess)),
                    Status::Gone { ended } => self.state = State::Confirmed { leaked: ended > 0 },
                    Status::Stuck { count } => return Ok(Happening::Stuck { count }),
                    Status::Here { .. }
                    | Status::Ending
                    | Status::Started { .. }
                    | Status::Failed { .. }
                    | Status::NotConfined { .. } => {}
                },
            }
        }
    }

    /// Asks all whom it reaches to end, and kills who is left after `grace`.
    pub(super) fn terminate(&self, grace: Duration) {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.command(wire::Command::End { grace_ms });
    }

    /// Ends all whom it reaches.
    pub(super) fn kill(&self) {
        self.command(wire::Command::Kill);
    }

    /// The last resort: ends what can be found without the supervisor, which is dead or does not answer. The next event tells
    /// what came of it.
    pub(super) fn search_and_end(&mut self) {
        if let Some(supervisor) = &self.supervisor {
            // The error says that it is dead already.
            let _sent = pidfd_send_signal(supervisor, Signal::KILL);
        }
        let record = self.record.clone();
        self.state = State::Searching(tokio::task::spawn_blocking(move || leftover::end_leftovers(&[record])));
    }

    /// After the last signal: lets the supervisor go.
    pub(super) fn release(&mut self) {
        self.socket = None;
    }

    /// A few bytes into a socket that holds many of them; a supervisor that can't be told is found out by its silence.
    fn command(&self, command: wire::Command) {
        if let (Some(socket), Ok(line)) = (&self.socket, wire::line(&command)) {
            drop(socket.try_write(&line));
        }
    }
}

impl Drop for Owner {
    /// A supervisor ends everybody when its socket does; who holds a group lets those go that outlived the program.
    fn drop(&mut self) {
        if self.ownership == Ownership::Light {
            self.kill();
        }
    }
}
