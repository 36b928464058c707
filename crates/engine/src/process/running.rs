//! A child that is followed: its output as it comes, its limits, its end.
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::clock::{LONGEST_STEP, ObservedClock};
use super::cradle::Cradle;
use super::leftover::Leftover;
use super::outcome::{Chunk, Condition, Ending, Exit, StopLevel, Stream};
use super::outlet::Outlet;
use super::owner::{Happening, Owner};
use super::stdin::Feed;
use super::{Call, Excess, Limits, Resource, SpawnError};

/// How long a pipe that others still hold may be silent after the end before it is given up.
const DRAIN: Duration = Duration::from_millis(300);
/// How long a program that was asked to end by its own word for that may take, before it is sent signals.
const PARTING: Duration = Duration::from_secs(3);
/// How long after KILL, or after the program's own exit, the end of everything may take to be confirmed.
const CONFIRM: Duration = Duration::from_secs(10);

/// A program that runs.
///
/// It makes progress, and its limits are watched, while [`next`](Self::next) or [`wait`](Self::wait) is awaited; both
/// can be dropped and called again. Who does not read slows the program down, as a full pipe does, and memory use does
/// not depend on how much it writes. Limits are observed time: time in which nobody awaited, or in which this process
/// or the machine stood still, counts for at most a second. Dropping it ends the program and, if it is supervised, all
/// that descends from it.
pub struct Running {
    program: OsString,
    cradle: Arc<Cradle>,
    owner: Owner,
    stdout: Outlet<pipe::Receiver>,
    stderr: Outlet<pipe::Receiver>,
    stdin: Feed,
    limits: Limits,
    /// Bytes of output that it may make, and those that it has made.
    most_output: Option<u64>,
    said: u64,
    cancel: CancellationToken,
    clock: ObservedClock,
    /// When the last byte came, on `clock`.
    spoke: Option<Duration>,
    /// When the final event was seen, on `clock`.
    finished: Option<Duration>,
    stop: Option<Stop>,
    /// What is said to the program before any signal; empty if it knows no such word just now.
    farewell: Vec<u8>,
    exit: Option<(ExitStatus, Duration)>,
    /// Set when nobody is left who could be ended.
    drain: Option<Drain>,
    leaked: bool,
    trouble: Option<Trouble>,
    condition: watch::Sender<Condition>,
}

/// An end that has been asked for.
#[derive(Debug, Clone, Copy)]
struct Stop {
    /// Why; `None` for a child that stayed after its final event.
    reason: Option<Exit>,
    step: Step,
    /// When the next, harder step is due, on the clock.
    next: Duration,
}

/// How far an end has come. Only ever goes forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The program was told its own word for the end.
    Parting,
    /// It was sent TERM.
    Terminating,
    /// It was killed.
    Killing,
}

/// The time after the end in which pipes may still bring something.
#[derive(Debug, Clone, Copy)]
struct Drain {
    silent_since: Duration,
    killed: bool,
}

/// Why nobody can vouch for the end.
#[derive(Debug)]
enum Trouble {
    /// The owner can't tell what happens to the child any more, and a search has ended what it found.
    Lost(String),
    /// Some resist even KILL.
    NotGone(usize),
}

/// A limit and when it strikes, on the clock.
struct Due {
    at: Duration,
    reason: Option<Exit>,
}

enum Happened {
    Cancelled,
    Owner(io::Result<Happening>),
    Fed,
    Read(Stream, usize),
    Tick,
}

impl Running {
    pub(super) async fn start(call: Call, cradle: Arc<Cradle>) -> Result<Self, SpawnError> {
        let (owner, pipes) = Owner::start(&call, &cradle).await?;
        Ok(Self {
            program: call.program,
            cradle,
            owner,
            stdout: Outlet::new(pipes.stdout),
            stderr: Outlet::new(pipes.stderr),
            stdin: Feed::new(pipes.stdin, call.stdin),
            limits: call.limits,
            most_output: call.resources.output,
            said: 0,
            cancel: call.cancel,
            clock: ObservedClock::started(Instant::now()),
            spoke: None,
            finished: None,
            stop: None,
            farewell: Vec::new(),
            exit: None,
            drain: None,
            leaked: false,
            trouble: None,
            condition: watch::channel(Condition::Running).0,
        })
    }

    /// What identifies the program to a later run: write it down before anything else.
    pub fn record(&self) -> Leftover {
        self.owner.record()
    }

    /// Hosts that the program asked for and that its sandbox does not let it reach, with their ports.
    pub fn turned_away(&self) -> Vec<String> {
        self.owner.turned_away()
    }

    /// Tells a watcher whether the program runs, is slow, is ending, leaks or is gone.
    pub fn condition(&self) -> watch::Receiver<Condition> {
        self.condition.subscribe()
    }

    /// The next piece of output; `None` when the program and all that it left are gone and nothing more will come.
    pub async fn next(&mut self) -> Option<Chunk> {
        loop {
            self.enforce();
            if self.is_over() {
                self.owner.release();
                self.tell(Condition::Gone);
                return None;
            }
            let pause = self.clock.until(self.next_deadline());
            let happened = tokio::select! {
                biased;
                () = self.cancel.cancelled(), if self.stop.is_none() && self.exit.is_none() => Happened::Cancelled,
                event = self.owner.event(), if self.drain.is_none() => Happened::Owner(event),
                () = self.stdin.feed(), if self.stdin.is_open() => Happened::Fed,
                (stream, count) = read_either(&mut self.stdout, &mut self.stderr) => Happened::Read(stream, count),
                () = tokio::time::sleep(pause) => Happened::Tick,
            };
            self.clock.observe(Instant::now());
            if let Some(chunk) = self.handle(happened) {
                return Some(chunk);
            }
        }
    }

    /// Waits for the end and throws away what is still written. An error means that the end could not be observed, or
    /// that somebody is still there.
    pub async fn wait(&mut self) -> Result<Ending, SpawnError> {
        while self.next().await.is_some() {}
        match &self.trouble {
            Some(Trouble::NotGone(count)) => {
                return Err(SpawnError::NotGone {
                    program: self.program.clone(),
                    pid: self.owner.pid(),
                    count: *count,
                });
            }
            Some(Trouble::Lost(problem)) => {
                return Err(SpawnError::Supervisor {
                    program: self.program.clone(),
                    supervisor: self.cradle.program().program.clone(),
                    problem: problem.clone(),
                });
            }
            None => {}
        }
        let stayed = self.stop.is_some_and(|stop| stop.reason.is_none());
        let exit = match (self.stop, self.exit) {
            (Some(Stop { reason: Some(reason), .. }), _) => reason,
            (None, Some((status, _))) => status.into(),
            (Some(Stop { reason: None, .. }), _) | (None, None) => Exit::Code(0),
        };
        Ok(Ending { exit, leaked: self.leaked, stayed })
    }

    /// Says something to a program whose standard input is open; one that does not read is no error.
    pub fn say(&mut self, bytes: &[u8]) {
        self.stdin.say(bytes);
    }

    /// What asks the program to end by itself, as things are now: it is said before the first signal, and the program given some
    /// seconds to report its result. Empty if it knows no such word.
    pub fn part_with(&mut self, farewell: &[u8]) {
        if self.farewell != farewell {
            farewell.clone_into(&mut self.farewell);
        }
    }

    /// Whether its end has been asked for.
    pub fn is_ending(&self) -> bool {
        self.stop.is_some()
    }

    /// Closes the program's standard input, once all that was said is written.
    pub fn hang_up(&mut self) {
        self.stdin.hang_up();
    }

    /// The program has reported its result and has to exit by itself within the limit for that. If it stays, it is
    /// ended and counts as having ended by itself.
    pub fn saw_final_event(&mut self) {
        self.finished.get_or_insert(self.clock.elapsed());
        if self.stop.is_some_and(|stop| stop.step == Step::Parting) {
            self.end(None, Step::Terminating);
        }
    }

    /// Asks for the end. A harder level shortens a softer one; the first reason stands.
    pub fn stop(&mut self, level: StopLevel) {
        match level {
            StopLevel::Gentle => self.end_gently(Some(Exit::Cancelled)),
            StopLevel::Now => self.end(Some(Exit::Cancelled), Step::Killing),
        }
    }

    fn handle(&mut self, happened: Happened) -> Option<Chunk> {
        match happened {
            Happened::Cancelled => self.end_gently(Some(Exit::Cancelled)),
            Happened::Owner(Ok(happening)) => self.heard(happening),
            Happened::Owner(Err(error)) => self.lost(format!("was gone before the program was: {error}")),
            Happened::Read(Stream::Stdout, count) => {
                let bytes = self.stdout.take(count, self.drain.is_some());
                return self.received(Stream::Stdout, bytes);
            }
            Happened::Read(Stream::Stderr, count) => {
                let bytes = self.stderr.take(count, self.drain.is_some());
                return self.received(Stream::Stderr, bytes);
            }
            Happened::Tick => self.give_up_silent_pipes(),
            Happened::Fed => {}
        }
        None
    }

    fn heard(&mut self, happening: Happening) {
        let now = self.clock.elapsed();
        let nobody_left = Drain { silent_since: now, killed: false };
        match happening {
            Happening::Exited(status) => self.exit = Some((status, now)),
            Happening::Leaking => self.tell(Condition::ExitedButLeaking),
            Happening::Exceeded(excess) => self.end(Some(Exit::Exceeded(excess)), Step::Killing),
            Happening::Stuck { count } => {
                self.trouble.get_or_insert(Trouble::NotGone(count));
                self.drain = Some(nobody_left);
            }
            Happening::Gone { leaked } => {
                self.leaked |= leaked;
                self.drain = Some(nobody_left);
            }
        }
    }

    fn received(&mut self, stream: Stream, bytes: Vec<u8>) -> Option<Chunk> {
        if bytes.is_empty() {
            return None;
        }
        self.spoke = Some(self.clock.elapsed());
        self.said = self.said.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        if let Some(limit) = self.most_output.filter(|limit| self.said > *limit) {
            let excess = Excess { resource: Resource::Output, used: self.said, limit };
            self.end(Some(Exit::Exceeded(excess)), Step::Killing);
        }
        if let Some(drain) = &mut self.drain {
            drain.silent_since = self.clock.elapsed();
        }
        Some(Chunk { stream, bytes })
    }

    /// After the end, others may hold the pipes: the group is ended, and if that does not help the pipes are given up.
    /// Only looked at when no bytes were ready, so that none is lost.
    fn give_up_silent_pipes(&mut self) {
        let now = self.clock.elapsed();
        let Some(drain) = self.drain.as_mut().filter(|drain| now >= drain.silent_since + DRAIN) else { return };
        self.leaked = true;
        if drain.killed {
            self.stdout.close();
            self.stderr.close();
        } else {
            *drain = Drain { silent_since: now, killed: true };
            self.owner.kill();
            self.tell(Condition::ExitedButLeaking);
        }
    }

    /// Applies the limits to what the clock says.
    fn enforce(&mut self) {
        if self.drain.is_some() {
            return;
        }
        let now = self.clock.elapsed();
        match (self.exit, self.stop) {
            (Some((_, at)), _) => {
                if now >= at + CONFIRM {
                    self.lost("did not confirm the end of the program's descendants".to_owned());
                }
            }
            (None, Some(stop)) => match stop.step {
                _ if now < stop.next => {}
                Step::Parting => self.end(None, Step::Terminating),
                Step::Terminating => self.end(None, Step::Killing),
                Step::Killing => self.lost("did not confirm the end of the program".to_owned()),
            },
            (None, None) => match self.due() {
                due if now >= due.at => self.end_gently(due.reason),
                _ => self.tell_whether_slow(),
            },
        }
    }

    /// Asks for the end by the program's own word, if it was given one, and by TERM.
    fn end_gently(&mut self, reason: Option<Exit>) {
        let has_word = !self.farewell.is_empty() && self.stop.is_none() && self.finished.is_none();
        self.end(reason, if has_word { Step::Parting } else { Step::Terminating });
    }

    /// Goes so far towards the end; nothing if it has come, or has come as far before.
    fn end(&mut self, reason: Option<Exit>, step: Step) {
        if self.exit.is_some() || self.stop.is_some_and(|stop| stop.step >= step) {
            return;
        }
        let reason = self.stop.map_or(reason, |stop| stop.reason);
        let patience = match step {
            Step::Parting => PARTING,
            Step::Terminating => self.limits.grace,
            Step::Killing => CONFIRM,
        };
        self.stop = Some(Stop { reason, step, next: self.clock.elapsed() + patience });
        self.tell(Condition::Ending);
        match step {
            Step::Parting => self.stdin.say(&std::mem::take(&mut self.farewell)),
            Step::Terminating => self.owner.terminate(self.limits.grace),
            Step::Killing => self.owner.kill(),
        }
    }

    /// The owner does not do its part: the last resort, which ends with a happening of its own.
    fn lost(&mut self, problem: String) {
        if self.trouble.is_none() {
            self.trouble = Some(Trouble::Lost(problem));
            self.owner.search_and_end();
        }
    }

    /// The next limit that ends the program, if nothing happens before.
    fn due(&self) -> Due {
        let Limits { total, first_output, idle, exit_grace, .. } = self.limits;
        if let Some(finished) = self.finished {
            return Due { at: finished + exit_grace, reason: None };
        }
        let silence = match (self.spoke, first_output, idle) {
            (None, Some(limit), _) => Some(Due { at: limit, reason: Some(Exit::NeverSpoke(limit)) }),
            (spoke, _, Some(limit)) => {
                Some(Due { at: spoke.unwrap_or_default() + limit, reason: Some(Exit::Silent(limit)) })
            }
            (_, _, None) => None,
        };
        let total = Due { at: total, reason: Some(Exit::TimedOut(total)) };
        silence.filter(|silence| silence.at < total.at).unwrap_or(total)
    }

    /// When to look next, on the clock.
    fn next_deadline(&self) -> Duration {
        match (self.drain, &self.trouble, self.exit, self.stop) {
            (Some(drain), _, _, _) => drain.silent_since + DRAIN,
            (None, Some(_), _, _) => self.clock.elapsed() + LONGEST_STEP,
            (None, None, Some((_, at)), _) => at + CONFIRM,
            (None, None, None, Some(stop)) => stop.next,
            (None, None, None, None) => {
                let slow = self.slow_at().filter(|slow| *slow > self.clock.elapsed());
                slow.map_or(self.due().at, |slow| slow.min(self.due().at))
            }
        }
    }

    fn is_over(&self) -> bool {
        self.drain.is_some() && self.stdout.is_closed() && self.stderr.is_closed()
    }

    fn tell_whether_slow(&self) {
        let slow = self.slow_at().is_some_and(|slow| self.clock.elapsed() >= slow);
        self.tell(if slow { Condition::Slow } else { Condition::Running });
    }

    /// When half of the silence that it may keep is over, on the clock.
    fn slow_at(&self) -> Option<Duration> {
        let patience = match self.spoke {
            Some(_) => self.limits.idle,
            None => self.limits.first_output.or(self.limits.idle),
        };
        Some(self.spoke.unwrap_or_default() + patience? / 2)
    }

    fn tell(&self, condition: Condition) {
        self.condition.send_if_modified(|told| std::mem::replace(told, condition) != condition);
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let condition = *self.condition.borrow();
        f.debug_struct("Running")
            .field("program", &self.program)
            .field("pid", &self.owner.pid())
            .field("condition", &condition)
            .finish_non_exhaustive()
    }
}

/// Waits for either output, in no fixed order: a flood on one must not starve the other.
async fn read_either(stdout: &mut Outlet<pipe::Receiver>, stderr: &mut Outlet<pipe::Receiver>) -> (Stream, usize) {
    tokio::select! {
        count = stdout.read() => (Stream::Stdout, count),
        count = stderr.read() => (Stream::Stderr, count),
    }
}
