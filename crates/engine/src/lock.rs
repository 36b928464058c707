//! One run per repository and branch: a lock of the operating system, which dies with the process that holds it.
//!
//! The file stays when the lock is gone; only the lock counts, never the file, its age or the process id in it. What
//! stands in it is for people, and for the message of whoever is refused.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ralphloop_core::ids::RunId;
use serde::{Deserialize, Serialize};

use crate::files::{self, FileError};

/// More than a holder's text can be; bounds what is read of a file that is not ours.
const MAX_TEXT: u64 = 4096;
/// How often a lock that others only look at is tried.
const MAX_TRIES: u32 = 10_000;

/// What a run takes for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKey<'a> {
    /// The branch on which stories land, without `refs/heads/`.
    Branch(&'a str),
    /// A working tree, as an absolute path: where the agent works, or where HEAD is detached.
    Worktree(&'a Path),
}

impl LockKey<'_> {
    /// The lock's file name; different keys never share one.
    fn file_name(self) -> String {
        match self {
            Self::Branch(name) => format!("branch-{}.lock", files::safe_name(name)),
            // A path is shown by its last part and told apart by all its bytes.
            Self::Worktree(path) => {
                let last = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
                let hash = blake3::hash(path.as_os_str().as_bytes()).to_hex();
                format!("worktree-{}-{}.lock", files::safe_name(&last), &hash.as_str()[..32])
            }
        }
    }
}

impl std::fmt::Display for LockKey<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Branch(name) => write!(f, "branch {name}"),
            Self::Worktree(path) => write!(f, "working tree {}", path.display()),
        }
    }
}

/// Who holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// The run.
    pub run: RunId,
    /// Since when, RFC 3339 in UTC.
    pub since: String,
    /// The machine.
    pub host: String,
}

impl Holder {
    /// This process, working on `run`, from now.
    pub fn this_process(run: RunId) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let since = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        Self { pid: std::process::id(), run, since, host }
    }
}

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another live process has it.
    #[error("another run works on {what}{}: wait for it, or stop it with `ralphloop stop`", of_holder(.holder.as_ref()))]
    Held {
        /// The branch or working tree.
        what: String,
        /// Who, if that could be read.
        holder: Option<Holder>,
    },
    /// The file system does not lock.
    #[error("the file system of {} cannot lock files ({source}): move the repository to a local disk", .path.display())]
    Unsupported {
        /// The lock's file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The lock's file could not be made.
    #[error(transparent)]
    File(#[from] FileError),
}

fn of_holder(holder: Option<&Holder>) -> String {
    holder.map_or_else(String::new, |h| format!(" (run {}, pid {} on {}, since {})", h.run, h.pid, h.host, h.since))
}

/// A lock that is held until this is dropped or the process dies.
#[derive(Debug)]
pub struct RunLock {
    file: File,
}

impl RunLock {
    /// Takes the lock of `key` in the repository with that common git directory, or says at once who has it.
    pub fn acquire(common_dir: &Path, key: LockKey<'_>, holder: &Holder) -> Result<Self, LockError> {
        let folder = common_dir.join("ralphloop/locks");
        files::create_private_dir(&folder)?;
        let path = folder.join(key.file_name());
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&path).map_err(|e| FileError::new("open the lock", &path, e))?;
        if !lock_exclusively(&file).map_err(|source| LockError::Unsupported { path: path.clone(), source })? {
            return Err(LockError::Held { what: key.to_string(), holder: read_holder(&mut file) });
        }
        write_holder(&mut file, holder).map_err(|e| FileError::new("write the lock", &path, e))?;
        Ok(Self { file })
    }

    /// Says who holds the lock from now on: the run's name is known only after the lock is taken.
    pub fn name(&mut self, holder: &Holder) {
        // What stands in the file is for people; the lock counts without it.
        drop(write_holder(&mut self.file, holder));
    }

    /// Who holds the lock of `key` now; `None` if nobody does.
    pub fn held_by(common_dir: &Path, key: LockKey<'_>) -> Option<Holder> {
        let path = common_dir.join("ralphloop/locks").join(key.file_name());
        let mut file = File::open(path).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => read_holder(&mut file),
            _ => None,
        }
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // A name left behind would be shown to one who is refused before the next holder has written his own.
        self.file.set_len(0).ok();
        // Closing the file is not enough while a child that is just being started still has a copy of it.
        self.file.unlock().ok();
    }
}

/// Whether the lock was free. Who only looks ([`RunLock::held_by`]) shares it for an instant, which must not look like
/// a run at work: where the lock can be shared, nobody holds it for himself, and it is tried again.
fn lock_exclusively(file: &File) -> io::Result<bool> {
    for _ in 0..MAX_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        match file.try_lock_shared() {
            Ok(()) => file.unlock()?,
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        std::thread::yield_now();
    }
    Ok(false)
}

fn write_holder(file: &mut File, holder: &Holder) -> io::Result<()> {
    let text = serde_json::to_string(holder)?;
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")
}

fn read_holder(file: &mut File) -> Option<Holder> {
    let mut text = String::new();
    file.take(MAX_TEXT).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::process::{Command, Stdio};

    use super::*;

    fn holder(run: &str) -> Holder {
        Holder::this_process(RunId::from(run))
    }

    #[test]
    fn a_second_run_on_the_branch_is_refused_and_told_who_works_there() {
        let dir = tempfile::tempdir().unwrap();
        let first = RunLock::acquire(dir.path(), LockKey::Branch("main"), &holder("run-1")).unwrap();
        let refusal = RunLock::acquire(dir.path(), LockKey::Branch("main"), &holder("run-2")).unwrap_err().to_string();
        assert!(refusal.contains("run-1") && refusal.contains(&std::process::id().to_string()), "{refusal}");
        assert_eq!(RunLock::held_by(dir.path(), LockKey::Branch("main")).unwrap().run, RunId::from("run-1"));
        drop(first);
        assert_eq!(RunLock::held_by(dir.path(), LockKey::Branch("main")), None);
        RunLock::acquire(dir.path(), LockKey::Branch("main"), &holder("run-2")).unwrap();
    }

    #[test]
    fn who_is_refused_is_told_the_name_that_the_run_got_after_it_took_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let key = LockKey::Branch("main");
        let mut first = RunLock::acquire(dir.path(), key, &holder("a-long-name-that-comes-first")).unwrap();
        first.name(&holder("run-1"));
        let refusal = RunLock::acquire(dir.path(), key, &holder("run-2")).unwrap_err().to_string();
        assert!(refusal.contains("(run run-1, pid"), "{refusal}");
    }

    #[test]
    fn other_branches_and_working_trees_are_free() {
        let dir = tempfile::tempdir().unwrap();
        let keys = [LockKey::Branch("main"), LockKey::Branch("a/b"), LockKey::Worktree(Path::new("/a/b"))];
        let held: Vec<_> = keys.map(|k| RunLock::acquire(dir.path(), k, &holder("r")).unwrap()).into_iter().collect();
        assert_eq!(held.len(), 3);
    }

    #[test]
    fn keys_that_look_alike_have_files_of_their_own() {
        let branches = ["a/b", "a-b", "a_b", "A-B", "a--b", "ä", "-", "a~b"].map(LockKey::Branch);
        let trees = ["/x/a b", "/y/a b", "/x/a-b", "/"].map(|p| LockKey::Worktree(Path::new(p)));
        let names: HashSet<String> = branches.into_iter().chain(trees).map(LockKey::file_name).collect();
        assert_eq!(names.len(), 12, "{names:?}");
    }

    #[test]
    fn b19_a_file_left_by_a_crash_locks_nobody_out() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("ralphloop/locks");
        files::create_private_dir(&folder).unwrap();
        std::fs::write(folder.join("branch-main.lock"), r#"{"pid":1,"run":"dead","since":"","host":"here"}"#).unwrap();
        assert_eq!(RunLock::held_by(dir.path(), LockKey::Branch("main")), None);
        RunLock::acquire(dir.path(), LockKey::Branch("main"), &holder("r")).unwrap();
    }

    #[test]
    fn the_lock_is_not_inherited_by_programs_that_the_run_starts() {
        let dir = tempfile::tempdir().unwrap();
        let lock = RunLock::acquire(dir.path(), LockKey::Branch("main"), &holder("r")).unwrap();
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        drop(lock);
        let again = RunLock::acquire(dir.path(), LockKey::Branch("main"), &holder("r"));
        drop(child.stdin.take());
        child.wait().unwrap();
        again.unwrap();
    }

    #[test]
    fn looking_who_holds_it_never_keeps_a_run_from_its_lock() {
        let dir = tempfile::tempdir().unwrap();
        let key = LockKey::Branch("main");
        drop(RunLock::acquire(dir.path(), key, &holder("r")).unwrap());
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    RunLock::held_by(dir.path(), key);
                }
            });
            let refused = (0..2000).filter(|_| RunLock::acquire(dir.path(), key, &holder("r")).is_err()).count();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(refused, 0);
        });
    }

    #[test]
    fn a_holder_with_unreadable_text_still_holds() {
        let dir = tempfile::tempdir().unwrap();
        let mut lock = RunLock::acquire(dir.path(), LockKey::Branch("main"), &holder("r")).unwrap();
        lock.file.set_len(0).unwrap();
        lock.file.write_all(b"\xff\xff").unwrap();
        let refusal = RunLock::acquire(dir.path(), LockKey::Branch("main"), &holder("s")).unwrap_err();
        assert!(matches!(refusal, LockError::Held { holder: None, .. }), "{refusal}");
    }
}
