//! The other program: the parent of one child, which ends all that descends from it and dies last.
//!
//! It is a copy of the [cradle](super::nursery), in a session of its own; it has the control socket and the child's streams,
//! and keeps none of these open. On Linux it is a *subreaper*: whoever loses their parent below it becomes its child, so
//! that "there is nobody to wait for" means that nobody is left, `setsid` or not. It is single threaded; only it waits for
//! its children, so a number it signals is never another's. On other systems it holds the child's group only: descendants
//! that leave the group escape.
use std::collections::BTreeSet;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process_group, wait};

use super::Resources;
use super::lowlevel::before_start;
use super::nursery::empty;
use super::resources::FIRST_LOOK;
use super::tree::{self, Row};
use super::wire::{self, Command, Ends, Status};
use crate::sandbox::{self, Confinement, Way};

/// How long those who outlive the program may go on before they are asked to end: time for the last lines of a `tee`.
const LEFTOVER_DRAIN: Duration = Duration::from_millis(250);
/// How long they have from TERM to KILL.
const LEFTOVER_GRACE: Duration = Duration::from_secs(1);
/// The same for everybody once the orchestrator is gone: its successor must find nobody.
const ORPHAN_GRACE: Duration = Duration::from_millis(400);
/// Between two rounds of KILL, for who was forked during the last one.
const SWEEP: Duration = Duration::from_millis(5);
/// After this long in KILL the rounds get rarer and the orchestrator is told that some can't be ended.
const STUCK: Duration = Duration::from_secs(3);
/// Between two rounds then.
const STUCK_SWEEP: Duration = Duration::from_millis(200);
/// How much sooner the system's memory killer takes the child than us, on its scale of 0 to 1000.
const CHILD_OOM_BONUS: i32 = 200;

/// Starts what is asked for, and watches until it and all that it started are gone.
pub(super) fn supervise(ends: Ends) -> io::Result<()> {
    rustix::process::setsid()?;
    let (child_ended, woken) = UnixStream::pair()?;
    child_ended.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, woken)?;

    let Ends { control, stdout, stderr, stdin, doors, .. } = ends;
    let mut socket = UnixStream::from(control);
    socket.write_all(&wire::line(&Status::Here { pid: getpid().as_raw_nonzero().get() })?)?;
    let Some(request) = wire::receive(&mut socket)? else { return Ok(()) };
    let mut command = request.command();
    command.stdin(stdin.map_or_else(Stdio::null, Stdio::from)).stdout(stdout);
    let (mut objection, objecting) = io::pipe()?;
    let is_put_in = request.way == Way::PutIn;
    match request.way {
        Way::Free => {
            drop(objecting);
            command.stderr(stderr);
            before_start(&mut command, lead)?;
        }
        Way::GoesIn(confinement) => {
            command.stderr(stderr);
            go_in(&mut command, confinement, request.cwd, doors, objecting)?;
        }
        Way::PutIn => be_put_in(&mut command, stderr, doors, objecting)?,
    }
    let started = become_subreaper().and_then(|()| spawn_to_be_killed_first(&mut command));
    // The streams are the child's alone from here on: we must not hold them open.
    drop(command);
    let child = match started.map(|child| Pid::from_raw(child.id().cast_signed())) {
        Ok(Some(child)) if is_put_in => match wait_until_put_in(&mut objection)? {
            Ok(()) => child,
            Err(why) => {
                // The one expected error is that they are gone.
                let _ = kill_process_group(child, Signal::KILL);
                socket.write_all(&wire::line(&Status::NotConfined { why })?)?;
                return Ok(());
            }
        },
        Ok(Some(child)) => child,
        Ok(None) => return Err(io::Error::other("the child has no process id")),
        Err(error) => {
            let mut why = String::new();
            if objection.read_to_string(&mut why).is_ok() && !why.is_empty() {
                socket.write_all(&wire::line(&Status::NotConfined { why })?)?;
                return Ok(());
            }
            socket.write_all(&wire::line(&Status::failed(&error))?)?;
            return Ok(());
        }
    };
    socket.set_nonblocking(true)?;
    let mut supervision = Supervision {
        socket: Some(socket),
        inbox: Vec::new(),
        child_ended,
        child,
        child_lives: true,
        phase: Phase::Watching,
        ended: BTreeSet::new(),
        told_stuck: false,
        resources: request.resources,
        look_at: Instant::now() + FIRST_LOOK,
        exceeded: false,
    };
    supervision.tell(&Status::started(child));
    supervision.run()
}

/// What every child does before it becomes the program: it leads a session and group of its own, with no terminal and out of
/// reach of Ctrl-C, whose number is its own.
fn lead() -> io::Result<()> {
    Ok(rustix::process::setsid().map(drop)?)
}

/// It also goes where it is confined, or says why it cannot.
fn go_in(
    command: &mut std::process::Command,
    confinement: Confinement,
    cwd: std::path::PathBuf,
    doors: Option<OwnedFd>,
    mut objecting: io::PipeWriter,
) -> io::Result<()> {
    before_start(command, move || {
        lead()?;
        sandbox::enter(&confinement, &cwd, doors.as_ref().map(OwnedFd::as_fd)).map_err(|refused| {
            // The parent is told of an error by its number alone.
            drop(objecting.write_all(refused.to_string().as_bytes()));
            io::Error::from(io::ErrorKind::PermissionDenied)
        })
    })
}

/// Another program is started, which makes the sandbox and starts ours in there: that one hands out the doors, and gives the
/// program its standard error when its turn has come. What is said before is an objection.
fn be_put_in(
    command: &mut std::process::Command,
    stderr: OwnedFd,
    doors: Option<OwnedFd>,
    objecting: io::PipeWriter,
) -> io::Result<()> {
    command.stderr(objecting).env(sandbox::STDERR, stderr.as_raw_fd().to_string());
    if let Some(doors) = &doors {
        command.env(sandbox::DOORS, doors.as_raw_fd().to_string());
    }
    before_start(command, move || {
        lead()?;
        for inherited in std::iter::once(&stderr).chain(&doors) {
            rustix::io::fcntl_setfd(inherited, rustix::io::FdFlags::empty())?;
        }
        Ok(())
    })
}

/// Listens until the program's turn has come; otherwise why the sandbox could not be made.
fn wait_until_put_in(saying: &mut io::PipeReader) -> io::Result<Result<(), String>> {
    let mut said = Vec::new();
    io::BufReader::with_capacity(1, saying).read_until(sandbox::PUT_IN, &mut said)?;
    Ok(match said.last() {
        Some(&sandbox::PUT_IN) => Ok(()),
        _ => Err(String::from_utf8_lossy(&said).trim().to_owned()),
    })
}

#[cfg(target_os = "linux")]
fn become_subreaper() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(getpid()))?)
}

#[cfg(not(target_os = "linux"))]
fn become_subreaper() -> io::Result<()> {
    Ok(())
}

/// Starts it so that the memory killer takes it before us.
fn spawn_to_be_killed_first(command: &mut std::process::Command) -> io::Result<std::process::Child> {
    let own = oom_score();
    if let Some(own) = own {
        set_oom_score((own + CHILD_OOM_BONUS).min(1000));
    }
    let child = command.spawn();
    if let Some(own) = own {
        set_oom_score(own);
    }
    child
}

/// How soon the memory killer takes us. The child inherits it; there is none outside Linux.
fn oom_score() -> Option<i32> {
    std::fs::read_to_string("/proc/self/oom_score_adj").ok()?.trim().parse().ok()
}

fn set_oom_score(score: i32) {
    // Being taken sooner or later is a wish; a system that refuses it runs the child all the same.
    drop(std::fs::write("/proc/self/oom_score_adj", score.to_string()));
}

/// How far the end has come. Only ever goes forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The program runs.
    Watching,
    /// It has ended and others live on.
    Draining { until: Instant },
    /// All have been sent TERM.
    Terminating { until: Instant },
    /// All are being killed.
    Killing { since: Instant },
}

struct Supervision {
    /// `None` once the orchestrator is gone.
    socket: Option<UnixStream>,
    inbox: Vec<u8>,
    child_ended: UnixStream,
    child: Pid,
    /// Not yet waited for: its number, and its group's, are its own.
    child_lives: bool,
    phase: Phase,
    /// Who had to be ended after the program itself was gone.
    ended: BTreeSet<i32>,
    told_stuck: bool,
    resources: Resources,
    /// When what is used is looked at next.
    look_at: Instant,
    exceeded: bool,
}

impl Supervision {
    fn run(&mut self) -> io::Result<()> {
        loop {
            match self.round() {
                Ok(false) => {}
                Ok(true) => return Ok(()),
                Err(error) => {
                    // We can't go on watching, so nobody may go on running.
                    self.signal_all(Signal::KILL);
                    return Err(error);
                }
            }
        }
    }

    /// Whether it was the last one.
    fn round(&mut self) -> io::Result<bool> {
        if self.reap()? {
            self.tell(&Status::Gone { ended: self.ended.len() });
            return Ok(true);
        }
        self.advance(Instant::now());
        self.look_at_use(Instant::now());
        self.sleep()?;
        self.listen();
        Ok(false)
    }

    /// Waits for all who have ended; whether nobody is left.
    fn reap(&mut self) -> io::Result<bool> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.child => {
                    self.child_lives = false;
                    self.tell(&Status::Exited { raw: status.as_raw() });
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => break,
                Err(rustix::io::Errno::CHILD) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
        if !self.child_lives {
            let now = Instant::now();
            match &mut self.phase {
                Phase::Watching => {
                    self.phase = Phase::Draining { until: now + LEFTOVER_DRAIN };
                    self.tell(&Status::Leaking { count: descendants().len() });
                }
                Phase::Terminating { until } => *until = (*until).min(now + LEFTOVER_GRACE),
                Phase::Draining { .. } | Phase::Killing { .. } => {}
            }
        }
        Ok(false)
    }

    /// Takes the next step of the end when it is due.
    fn advance(&mut self, now: Instant) {
        match self.phase {
            Phase::Draining { until } if now >= until => self.terminate(LEFTOVER_GRACE),
            Phase::Terminating { until } if now >= until => self.kill(),
            Phase::Killing { since } => {
                let left = self.signal_all(Signal::KILL);
                if !self.told_stuck && now >= since + STUCK {
                    self.told_stuck = true;
                    self.tell(&Status::Stuck { count: left });
                }
            }
            _ => {}
        }
    }

    /// Whether what is used has to be looked at.
    fn looks(&self) -> bool {
        !self.exceeded && !self.resources.needs_no_look()
    }

    /// Ends all who use too much together.
    fn look_at_use(&mut self, now: Instant) {
        if self.phase != Phase::Watching || !self.looks() || now < self.look_at {
            return;
        }
        let rows = descendants();
        self.look_at = now + self.resources.next_look(u64::try_from(rows.len()).unwrap_or(u64::MAX));
        if let Some(excess) = self.resources.excess(&rows) {
            self.exceeded = true;
            self.tell(&Status::Exceeded { excess });
            // Stopped first: who is about to be killed must not make others meanwhile.
            self.signal_all(Signal::STOP);
            self.kill();
        }
    }

    /// Waits until a child ends, the orchestrator speaks, or the next step is due.
    fn sleep(&self) -> io::Result<()> {
        let now = Instant::now();
        let pause = match self.phase {
            Phase::Watching if self.looks() => Some(self.look_at.saturating_duration_since(now)),
            Phase::Watching => None,
            Phase::Draining { until } | Phase::Terminating { until } => Some(until.saturating_duration_since(now)),
            Phase::Killing { .. } if self.told_stuck => Some(STUCK_SWEEP),
            Phase::Killing { .. } => Some(SWEEP),
        };
        let mut fds = vec![PollFd::new(&self.child_ended, PollFlags::IN)];
        fds.extend(self.socket.as_ref().map(|socket| PollFd::new(socket, PollFlags::IN)));
        let pause = pause.and_then(|pause| rustix::event::Timespec::try_from(pause).ok());
        match poll(&mut fds, pause.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes in what has come.
    fn listen(&mut self) {
        empty(&mut self.child_ended);
        let mut scrap = [0; 512];
        while let Some(socket) = &mut self.socket {
            match socket.read(&mut scrap) {
                Ok(count) if count > 0 => self.inbox.extend_from_slice(&scrap[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => {
                    self.socket = None;
                    self.terminate(ORPHAN_GRACE);
                }
            }
        }
        while let Some(command) = wire::take_line::<Command>(&mut self.inbox) {
            match command {
                Ok(Command::End { grace_ms }) => self.terminate(Duration::from_millis(grace_ms)),
                // A command that can't be read was meant to change something: the safe reading is the end.
                Ok(Command::Kill) | Err(_) => self.kill(),
            }
        }
    }

    /// Asks all to end. Asked again, the shorter grace holds.
    fn terminate(&mut self, grace: Duration) {
        let until = Instant::now() + grace;
        match &mut self.phase {
            Phase::Killing { .. } => {}
            Phase::Terminating { until: earlier } => *earlier = until.min(*earlier),
            Phase::Watching | Phase::Draining { .. } => {
                self.phase = Phase::Terminating { until };
                self.tell(&Status::Ending);
                self.signal_all(Signal::TERM);
                // Who is stopped acts on TERM only when it goes on.
                self.signal_all(Signal::CONT);
            }
        }
    }

    /// Kills all, now and until nobody is left.
    fn kill(&mut self) {
        if !matches!(self.phase, Phase::Killing { .. }) {
            self.phase = Phase::Killing { since: Instant::now() };
            self.tell(&Status::Ending);
            self.signal_all(Signal::KILL);
        }
    }

    /// Signals the group at once, then everybody else, parents first so that nobody replaces a child we have ended.
    /// Returns how many there were.
    fn signal_all(&mut self, signal: Signal) -> usize {
        if self.child_lives {
            // The one expected error is that its members are dead and not yet waited for.
            let _ = kill_process_group(self.child, signal);
        }
        let group = if self.child_lives { self.child.as_raw_nonzero().get() } else { -1 };
        let all = descendants();
        for row in &all {
            if row.group != group {
                tree::signal(row, signal);
            }
            if !self.child_lives {
                self.ended.insert(row.pid.as_raw_nonzero().get());
            }
        }
        all.len()
    }

    /// Messages are small and few; one that can't be sent has no reader.
    fn tell(&mut self, status: &Status) {
        if let (Some(socket), Ok(line)) = (&mut self.socket, wire::line(status)) {
            drop(socket.write_all(&line));
        }
    }
}

/// All below us that live.
fn descendants() -> Vec<Row> {
    let mut all = tree::descendants(&tree::snapshot(), getpid());
    all.retain(|row| !row.zombie);
    all
}
