//! A parallel look at every path below a directory, by `lstat` alone: nothing is opened but directories, no link is
//! followed, and no time changes.
use std::collections::HashMap;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use crate::attributes::Attributes;

use super::record::{Class, Content, Entry, Node, RelPath, Stat, is_within};

/// What to do with a directory, and with a file, that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Record it and look into it.
    Enter,
    /// Record it and look into it as long as it and everything below stays small; else leave it alone.
    EnterIfSmall,
    /// Record it, but neither look into it nor answer for what is in it.
    LeaveAlone,
    /// Pass it as if it were not there.
    Omit,
}

/// How much a directory may hold that is looked into only if it is small.
#[derive(Debug, Clone, Copy)]
pub(super) struct Small {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Sorted by path, bytewise; the root itself is the first.
    pub(super) entries: Vec<Entry>,
    /// Directories that were left alone, sorted.
    pub(super) left_alone: Vec<RelPath>,
}

/// So many directories that wait are worth the start of further threads.
const WORTH_WORKERS: usize = 100;

/// A directory that can't be read, or a tree that can't be walked.
#[derive(Debug, thiserror::Error)]
#[error("can't look into {}: {source}", path.display())]
pub struct WalkError {
    /// The path.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// Walks the tree at `root`. `step` decides about each path, given relative to the root; it is asked for directories
/// and files alike, and for files everything but [`Step::Omit`] means the same. A directory that can't be opened for lack of
/// permission is left alone.
pub(super) fn walk(root: &Path, small: Small, step: &(dyn Fn(&[u8], bool) -> Step + Sync)) -> Result<Found, WalkError> {
    let metadata =
        stat_of(rustix::fs::CWD, root, RelPath::new()).map_err(|source| WalkError { path: root.to_owned(), source })?;
    let walk = Walk { root, small, step, queue: Mutex::default(), wake: Condvar::new() };
    walk.queue.lock().unwrap_or_else(PoisonError::into_inner).waiting.push(Job { path: Vec::new(), group: None });
    let mut parts = vec![walk.alone()];
    if !walk.is_done() {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (1..threads).map(|_| scope.spawn(|| walk.work())).collect();
            parts.push(walk.work());
            // What a worker that broke had found must not be missing in silence.
            parts.extend(workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic))));
        });
    }
    let mut found = Found { entries: metadata.into_iter().collect(), left_alone: Vec::new() };
    let mut folders = Folders::new();
    let mut groups: Vec<std::sync::Arc<Group>> = Vec::new();
    for part in parts {
        let part = part?;
        folders.extend(part.folders);
        found.left_alone.extend(part.left_alone);
        groups.extend(part.groups);
    }
    let large: Vec<_> = groups.iter().filter(|group| group.is_large(small)).map(|group| group.path.clone()).collect();
    if !large.is_empty() {
        let inside = |path: &[u8]| large.iter().any(|group| path != group.as_slice() && is_within(path, group));
        found.left_alone.retain(|path| !inside(path));
        for group in &large {
            // What is below it is reached through it alone.
            folders.remove(group);
        }
        found.left_alone.extend(large);
    }
    found.entries.reserve(folders.values().map(Vec::len).sum());
    assemble(b"", &mut folders, &mut found.entries);
    found.left_alone.sort_unstable();
    Ok(found)
}

/// What is directly in each directory, sorted.
type Folders = HashMap<RelPath, Vec<Entry>>;

/// Puts what is in a directory, and below, into one bytewise order. Sorting all at once takes longer than all the looking.
fn assemble(directory: &[u8], folders: &mut Folders, sorted: &mut Vec<Entry>) {
    // Directories whose content is still to come: `a/…` stands behind `a-b` and `a.c`.
    let mut open: Vec<RelPath> = Vec::new();
    for entry in folders.remove(directory).unwrap_or_default() {
        while let Some(earlier) = open.pop_if(|open| open.iter().chain(b"/").lt(&entry.path)) {
            assemble(&earlier, folders, sorted);
        }
        if entry.node.is_directory() {
            open.push(entry.path.clone());
        }
        sorted.push(entry);
    }
    while let Some(last) = open.pop() {
        assemble(&last, folders, sorted);
    }
}

struct Walk<'a> {
    root: &'a Path,
    small: Small,
    step: &'a (dyn Fn(&[u8], bool) -> Step + Sync),
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Job>,
    /// Workers that may still add jobs.
    busy: usize,
    failed: bool,
}

struct Job {
    path: RelPath,
    group: Option<std::sync::Arc<Group>>,
}

/// A directory that is looked into only if it is small, and what was found below it so far.
struct Group {
    path: RelPath,
    files: AtomicU64,
    bytes: AtomicU64,
}

impl Group {
    fn count(&self, bytes: u64) {
        self.files.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn is_large(&self, small: Small) -> bool {
        self.files.load(Ordering::Relaxed) > small.files || self.bytes.load(Ordering::Relaxed) > small.bytes
    }
}

#[derive(Default)]
struct Part {
    folders: Vec<(RelPath, Vec<Entry>)>,
    left_alone: Vec<RelPath>,
    groups: Vec<std::sync::Arc<Group>>,
}

impl Walk<'_> {
    /// Looks into directories until so many wait that further workers are worth their start.
    fn alone(&self) -> Result<Part, WalkError> {
        let mut part = Part::default();
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        while queue.waiting.len() < WORTH_WORKERS
            && let Some(job) = queue.waiting.pop()
        {
            let looked = self.directory(&job, &mut part, &mut queue.waiting);
            queue.failed |= looked.is_err();
            looked?;
        }
        Ok(part)
    }

    fn is_done(&self) -> bool {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.failed || queue.waiting.is_empty()
    }

    fn work(&self) -> Result<Part, WalkError> {
        let mut part = Part::default();
        while let Some(job) = self.next() {
            let mut found = Vec::new();
            let result = self.directory(&job, &mut part, &mut found);
            // One more for this worker itself; the others wait for nothing if there is no more.
            let news = found.len() > 1 || result.is_err();
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.busy -= 1;
            queue.waiting.append(&mut found);
            queue.failed |= result.is_err();
            let over = queue.busy == 0 && queue.waiting.is_empty();
            drop(queue);
            if news || over {
                self.wake.notify_all();
            }
            result?;
        }
        Ok(part)
    }

    fn next(&self) -> Option<Job> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if queue.failed {
                return None;
            }
            if let Some(job) = queue.waiting.pop() {
                queue.busy += 1;
                return Some(job);
            }
            if queue.busy == 0 {
                return None;
            }
            queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn directory(&self, job: &Job, part: &mut Part, found: &mut Vec<Job>) -> Result<(), WalkError> {
        if job.group.as_ref().is_some_and(|group| group.is_large(self.small)) {
            return Ok(());
        }
        let path = self.root.join(std::ffi::OsStr::from_bytes(&job.path));
        let failed = |errno: rustix::io::Errno| WalkError { path: path.clone(), source: errno.into() };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&path, flags | OFlags::NOATIME, Mode::empty()).or_else(|error| {
            if error == rustix::io::Errno::PERM { rustix::fs::open(&path, flags, Mode::empty()) } else { Err(error) }
        });
        let directory = match opened {
            Ok(directory) => directory,
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP) => return Ok(()),
            Err(rustix::io::Errno::ACCESS) if !job.path.is_empty() => {
                part.left_alone.push(job.path.clone());
                return Ok(());
            }
            Err(error) => return Err(failed(error)),
        };
        let mut entries = Vec::new();
        let mut directory = rustix::fs::Dir::new(directory).map_err(failed)?;
        while let Some(item) = directory.read() {
            let item = item.map_err(failed)?;
            let name = item.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let path = below(&job.path, name.to_bytes());
            let found_there = stat_of(directory.fd().map_err(failed)?, name, path);
            let Some(entry) = found_there.map_err(|source| WalkError {
                path: self.root.join(std::ffi::OsStr::from_bytes(&below(&job.path, name.to_bytes()))),
                source,
            })?
            else {
                continue;
            };
            if self.take(&entry, job, part, found) {
                entries.push(entry);
            }
        }
        entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        part.folders.push((job.path.clone(), entries));
        Ok(())
    }

    /// Decides about a path; whether it is recorded.
    fn take(&self, entry: &Entry, job: &Job, part: &mut Part, found: &mut Vec<Job>) -> bool {
        let is_directory = entry.node.is_directory();
        let step = (self.step)(&entry.path, is_directory);
        if step == Step::Omit {
            return false;
        }
        if let Some(group) = &job.group {
            group.count(entry.stat.size);
        }
        if is_directory {
            match step {
                Step::LeaveAlone => part.left_alone.push(entry.path.clone()),
                Step::EnterIfSmall if job.group.is_none() => {
                    let group = std::sync::Arc::new(Group {
                        path: entry.path.clone(),
                        files: AtomicU64::new(0),
                        bytes: AtomicU64::new(0),
                    });
                    part.groups.push(std::sync::Arc::clone(&group));
                    found.push(Job { path: entry.path.clone(), group: Some(group) });
                }
                _ => found.push(Job { path: entry.path.clone(), group: job.group.clone() }),
            }
        }
        true
    }
}

/// The path of what is in a directory.
fn below(directory: &[u8], name: &[u8]) -> RelPath {
    let mut path = Vec::with_capacity(directory.len() + 1 + name.len());
    path.extend_from_slice(directory);
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// One path by `lstat`; `None` if it is gone.
fn stat_of(
    directory: impl std::os::fd::AsFd,
    name: impl rustix::path::Arg + Copy,
    path: RelPath,
) -> io::Result<Option<Entry>> {
    let stat = match rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let node = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Node::Directory,
        FileType::RegularFile => Node::File(Content::Unknown),
        FileType::Symlink => match rustix::fs::readlinkat(&directory, name, Vec::new()) {
            Ok(target) => Node::Link(target.into_bytes()),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::INVAL) => return Ok(None),
            Err(error) => return Err(error.into()),
        },
        FileType::Fifo => Node::Fifo,
        FileType::Socket => Node::Socket,
        FileType::BlockDevice => Node::Device { block: true, rdev: stat.st_rdev },
        FileType::CharacterDevice => Node::Device { block: false, rdev: stat.st_rdev },
        FileType::Unknown => return Err(io::Error::other("a file of unknown type")),
    };
    Ok(Some(Entry {
        path,
        class: Class::Internal,
        mode: stat.st_mode & 0o7777,
        owner: (stat.st_uid, stat.st_gid),
        attributes: Attributes::new(),
        stat: lstat_numbers(&stat),
        node,
    }))
}

/// One path by `lstat`, named from the root of the file system or the current directory; `None` if it is gone.
pub(super) fn look_at(path: &Path) -> io::Result<Option<Entry>> {
    match stat_of(rustix::fs::CWD, path, RelPath::new()) {
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(None),
        other => other,
    }
}

pub(super) fn lstat_numbers(stat: &rustix::fs::Stat) -> Stat {
    let nanoseconds = |seconds: i64, rest: u64| {
        seconds.saturating_mul(1_000_000_000).saturating_add(i64::try_from(rest).unwrap_or(0))
    };
    Stat {
        dev: stat.st_dev,
        ino: stat.st_ino,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mtime: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
        ctime: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
        links: stat.st_nlink,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_in_bytewise_order_also_around_folders() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["a/x", "a-b/y", "a-b.c", "a.c", "a!", "a/-/z", "a/b/c", "a/b-", "b", "a0/q", "é/f", "-/g"] {
            let file = folder.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        let everything = Small { files: u64::MAX, bytes: u64::MAX };
        let found = walk(folder.path(), everything, &|_, _| Step::Enter).unwrap();
        let paths: Vec<_> = found.entries.iter().map(|entry| entry.path.clone()).collect();
        assert_eq!(paths.len(), 20);
        assert!(paths.is_sorted(), "{paths:?}");
    }

    #[test]
    fn of_a_folder_that_is_too_large_only_the_folder_is_recorded() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("large/deep")).unwrap();
        for file in ["large/1", "large/2", "large/deep/3", "other"] {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        let step = |path: &[u8], _| if path == b"large" { Step::EnterIfSmall } else { Step::Enter };
        let found = walk(folder.path(), Small { files: 2, bytes: u64::MAX }, &step).unwrap();
        let paths: Vec<_> = found.entries.iter().map(|entry| entry.path.as_slice()).collect();
        assert_eq!(paths, [b"".as_slice(), b"large", b"other"]);
        assert_eq!(found.left_alone, [b"large".to_vec()]);
    }
}
