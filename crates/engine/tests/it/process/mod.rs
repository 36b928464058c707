//! Real processes: every test starts some, and looks whether any is left.
//!
//! Each test marks what it starts with a variable of its own, by which it finds all of it again, however it hid.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod leftovers;
mod light;
mod limits;
mod resources;
mod starting;
mod supervised;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ralphloop_engine::process::{Call, Ownership, Spawner, SupervisorProgram};

/// The variable by which a test finds what it started.
const TEST_MARK: &str = "RALPHLOOP_TEST_MARK";

/// A spawner whose supervisor is the one built for tests.
fn spawner() -> Spawner {
    Spawner::new(SupervisorProgram {
        program: PathBuf::from(env!("CARGO_BIN_EXE_ralphloop-supervise")),
        args: Vec::new(),
    })
}

/// A light shell command in the temporary folder.
fn light(script: &str) -> Call {
    Call::new("/bin/sh", std::env::temp_dir()).arg("-c").arg(script)
}

/// A supervised shell command in the temporary folder.
fn supervised(script: &str) -> Call {
    light(script).ownership(Ownership::Supervised)
}

/// A name for all that a test starts. What is left when the test ends is killed.
struct Mark(String);

impl Mark {
    fn new() -> Self {
        Self(uuid::Uuid::now_v7().to_string())
    }

    fn on(&self, call: Call) -> Call {
        call.env(TEST_MARK, &self.0)
    }

    /// All processes that carry the mark; zombies carry nothing.
    fn alive(&self) -> Vec<u32> {
        let wanted = format!("{TEST_MARK}={}", self.0);
        let all = std::fs::read_dir("/proc").unwrap();
        all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|pid| {
                std::fs::read(format!("/proc/{pid}/environ"))
                    .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()))
            })
            .collect()
    }

    #[track_caller]
    fn assert_none_alive(&self) {
        assert_eq!(self.alive(), Vec::<u32>::new(), "processes are left");
    }

    /// Time in which a busy machine did not let us look counts for little: they did not get to run either.
    #[track_caller]
    fn assert_none_alive_within(&self, limit: Duration) {
        const LOOK: Duration = Duration::from_millis(5);
        let mut waited = Duration::ZERO;
        while !self.alive().is_empty() {
            assert!(waited < limit, "still alive after {limit:?}: {:?}", self.alive());
            std::thread::sleep(LOOK);
            waited += LOOK;
        }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        for pid in self.alive() {
            drop(std::process::Command::new("kill").args(["-9", &pid.to_string()]).output());
        }
    }
}

/// Whether a process runs; a zombie does not.
fn alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().starts_with(" Z"))
}

/// Looks until `condition` holds, for ten seconds at most.
#[track_caller]
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed().as_secs() < 10, "not so after ten seconds: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
