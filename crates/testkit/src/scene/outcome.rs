//! A run of the binary: while it goes on, and what it came to.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

/// How long anything may take before a test gives up on it: generous, for busy machines.
const PATIENCE: Duration = Duration::from_mins(2);
/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Waits for a condition.
///
/// # Panics
/// If it does not come true within two minutes.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        thread::sleep(LOOK);
    }
}

/// The binary while it runs. Dropped while running, it is killed with its group.
pub struct Running {
    child: Child,
    line: String,
    capture: PathBuf,
    begun: Instant,
}

impl Running {
    pub(super) fn new(child: Child, arguments: &[&str], capture: PathBuf) -> Self {
        Self { child, line: arguments.join(" "), capture, begun: Instant::now() }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// Sends a signal to the process alone.
    ///
    /// # Panics
    /// If it is gone already.
    pub fn signal(&self, signal: Signal) {
        let pid = self.pid().expect("a child has a process id");
        kill_process(pid, signal).unwrap_or_else(|e| panic!("cannot signal `{}`: {e}", self.line));
    }

    /// Sends a signal to its whole group, as a terminal's Ctrl-C does.
    ///
    /// # Panics
    /// If it is gone already.
    pub fn signal_group(&self, signal: Signal) {
        let pid = self.pid().expect("a child has a process id");
        kill_process_group(pid, signal).unwrap_or_else(|e| panic!("cannot signal `{}`: {e}", self.line));
    }

    /// Kills the process alone, and waits until it is gone.
    ///
    /// # Panics
    /// If it had ended before.
    pub fn crash(self) -> Outcome {
        self.signal(Signal::KILL);
        self.wait()
    }

    /// What it has written to stderr so far.
    pub fn stderr(&self) -> String {
        text(&self.capture.join("stderr"))
    }

    /// What it has written to stdout so far.
    pub fn stdout(&self) -> String {
        text(&self.capture.join("stdout"))
    }

    /// Whether it has not ended yet.
    ///
    /// # Panics
    /// If it cannot be waited for.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("our own child").is_none()
    }

    /// How much it has written.
    fn said(&self) -> u64 {
        let length = |name: &str| fs::metadata(self.capture.join(name)).map_or(0, |meta| meta.len());
        length("stdout") + length("stderr")
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it neither ends nor says anything for two minutes; what it wrote is shown.
    pub fn wait(mut self) -> Outcome {
        let mut said = self.said();
        let mut quiet_since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("our own child") {
                return Outcome {
                    line: std::mem::take(&mut self.line),
                    status,
                    took: self.begun.elapsed(),
                    stdout: self.stdout(),
                    stderr: self.stderr(),
                };
            }
            let now = self.said();
            if now != said {
                said = now;
                quiet_since = Instant::now();
            }
            if quiet_since.elapsed() > PATIENCE {
                let (stdout, stderr) = (self.stdout(), self.stderr());
                panic!("`{}` did not end\n--- stdout\n{stdout}\n--- stderr\n{stderr}", self.line);
            }
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            if let Some(pid) = self.pid() {
                let _gone_already = kill_process_group(pid, Signal::KILL);
            }
            drop(self.child.wait());
        }
    }
}

fn text(path: &std::path::Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// What a run of the binary came to.
#[derive(Debug, Clone)]
pub struct Outcome {
    line: String,
    status: ExitStatus,
    /// From start to end.
    pub took: Duration,
    /// All of it.
    pub stdout: String,
    /// All of it.
    pub stderr: String,
}

impl Outcome {
    /// The exit code; none if a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Both streams.
    pub fn output(&self) -> String {
        format!("{}\n{}", self.stdout, self.stderr)
    }

    /// Asserts the exit code.
    ///
    /// # Panics
    /// If it differs.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "assertions are chained or not")]
    pub fn exits(self, code: i32) -> Self {
        assert!(self.code() == Some(code), "expected exit {code}\n{self}");
        self
    }

    /// Asserts that either stream contains a text, upper and lower case alike.
    ///
    /// # Panics
    /// If neither does.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "assertions are chained or not")]
    pub fn says(self, wanted: &str) -> Self {
        let found = self.output().to_lowercase().contains(&wanted.to_lowercase());
        assert!(found, "expected it to say {wanted:?}\n{self}");
        self
    }

    /// Asserts that one of several texts is said.
    ///
    /// # Panics
    /// If none is.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "assertions are chained or not")]
    pub fn says_any(self, wanted: &[&str]) -> Self {
        let output = self.output().to_lowercase();
        let found = wanted.iter().any(|w| output.contains(&w.to_lowercase()));
        assert!(found, "expected it to say one of {wanted:?}\n{self}");
        self
    }

    /// Asserts that neither stream contains a text.
    ///
    /// # Panics
    /// If one does.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "assertions are chained or not")]
    pub fn never_says(self, unwanted: &str) -> Self {
        assert!(!self.output().contains(unwanted), "expected it not to say {unwanted:?}\n{self}");
        self
    }

    /// Stdout as one JSON value.
    ///
    /// # Panics
    /// If it is none.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("stdout is no JSON: {e}\n{self}"))
    }

    /// Stdout as one JSON object a line.
    ///
    /// # Panics
    /// If a line is none.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        let parse = |line: &str| match serde_json::from_str::<Value>(line) {
            Ok(value) if value.is_object() => value,
            other => panic!("a line of stdout is no JSON object: {line:?} ({other:?})\n{self}"),
        };
        self.stdout.lines().map(parse).collect()
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "unknown end".to_owned(),
        };
        write!(
            f,
            "`ralphloop {}`: {how} after {:?}\n--- stdout\n{}\n--- stderr\n{}",
            self.line, self.took, self.stdout, self.stderr
        )
    }
}
