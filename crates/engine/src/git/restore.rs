//! Single steps on a tree: remove, make, write, adjust. Each is safe to repeat; none follows a link.
use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, Timespec, Timestamps, UTIME_OMIT, Uid, chownat};

use super::path;
use super::record::{Entry, Listing, Node, RelPath};
use super::scan::parent;
use super::walk::look_at;
use crate::attributes;

/// A step that failed.
#[derive(Debug)]
pub(super) struct TreeError {
    pub(super) path: PathBuf,
    pub(super) source: io::Error,
}

/// A tree that is being put back.
pub(super) struct Tree<'a> {
    root: &'a Path,
    /// Directories that got write permission for a step.
    opened: RefCell<HashSet<RelPath>>,
    /// What the system does not let us give its owner or its attributes back.
    unfit: RefCell<BTreeSet<RelPath>>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(root: &'a Path) -> Self {
        Self { root, opened: RefCell::default(), unfit: RefCell::default() }
    }

    fn full(&self, relative: &[u8]) -> PathBuf {
        if relative.is_empty() { self.root.to_owned() } else { self.root.join(path(relative)) }
    }

    /// Does something in a directory; where its mode forbids that, the mode is widened first. `settle_directories`
    /// narrows it again.
    fn inside<T>(&self, entry: &[u8], step: impl Fn(&Path) -> io::Result<T>) -> Result<T, TreeError> {
        let full = self.full(entry);
        let failed = |source| TreeError { path: full.clone(), source };
        match step(&full) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !entry.is_empty() => {
                let folder = parent(entry);
                let above = self.full(folder);
                let found = look_at(&above).map_err(failed)?;
                if let Some(found) = found.filter(|found| found.node.is_directory()) {
                    fs::set_permissions(&above, fs::Permissions::from_mode(found.mode | 0o700)).map_err(failed)?;
                    self.opened.borrow_mut().insert(folder.to_vec());
                }
                step(&full).map_err(failed)
            }
            other => other.map_err(failed),
        }
    }

    /// Removes one path; a directory has to be empty by now.
    pub(super) fn remove(&self, entry: &Entry) -> Result<(), TreeError> {
        let is_directory = entry.node.is_directory();
        self.inside(&entry.path, |full| match if is_directory { fs::remove_dir(full) } else { fs::remove_file(full) } {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        })
    }

    /// Moves a path as it is out of the tree.
    pub(super) fn park(&self, relative: &[u8], parking: &Path) -> Result<PathBuf, TreeError> {
        let mut to = parking.join(path(relative));
        for number in 1_u32.. {
            if look_at(&to).is_ok_and(|there| there.is_none()) {
                break;
            }
            to = parking.join(format!("{}.{number}", path(relative).display()));
        }
        self.inside(relative, |full| {
            if let Some(folder) = to.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::rename(full, &to)
        })?;
        Ok(to)
    }

    /// Makes a directory; its mode and times are settled at the end.
    pub(super) fn make_directory(&self, entry: &Entry) -> Result<(), TreeError> {
        self.inside(&entry.path, |full| match fs::create_dir(full) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        })?;
        let full = self.full(&entry.path);
        fs::set_permissions(&full, fs::Permissions::from_mode(entry.mode | 0o700))
            .map_err(|source| TreeError { path: full, source })?;
        self.opened.borrow_mut().insert(entry.path.clone());
        Ok(())
    }

    /// Puts a file, link, fifo … in its place in one step. A file needs its bytes.
    pub(super) fn write(&self, entry: &Entry, bytes: Option<&[u8]>) -> Result<(), TreeError> {
        self.inside(&entry.path, |full| {
            let temporary = temporary_beside(full);
            let made = match &entry.node {
                Node::File(_) => {
                    let bytes = bytes.ok_or_else(|| io::Error::other("its content is not in the store"))?;
                    write_file(&temporary, bytes)
                }
                Node::Link(target) => std::os::unix::fs::symlink(path(target), &temporary),
                Node::Fifo => make_node(&temporary, FileType::Fifo, entry.mode, 0),
                Node::Socket => make_node(&temporary, FileType::Socket, entry.mode, 0),
                Node::Device { block, rdev } => {
                    let kind = if *block { FileType::BlockDevice } else { FileType::CharacterDevice };
                    make_node(&temporary, kind, entry.mode, *rdev)
                }
                Node::Directory => return Err(io::Error::other("a directory is made, not written")),
            };
            let placed = made
                .and_then(|()| self.fit(&temporary, entry))
                .and_then(|()| set_mtime(&temporary, entry.stat.mtime))
                .and_then(|()| fs::rename(&temporary, full));
            if placed.is_err() {
                // The error that is told is the one that mattered.
                drop(fs::remove_file(&temporary));
            }
            placed
        })
    }

    /// Gives a file that had several names in the tree its name again, where one of the others is still that file.
    pub(super) fn link_to_sibling(&self, entry: &Entry, base: &Listing) -> Result<bool, TreeError> {
        let same = |other: &&Entry| {
            other.path != entry.path
                && other.stat.links > 1
                && (other.stat.dev, other.stat.ino) == (entry.stat.dev, entry.stat.ino)
        };
        for other in base.entries.iter().filter(same) {
            let sibling = self.full(&other.path);
            let intact = look_at(&sibling).ok().flatten().is_some_and(|now| {
                now.stat.size == other.stat.size && now.stat.mtime == other.stat.mtime && now.mode == other.mode
            });
            if intact && other.path < entry.path {
                self.inside(&entry.path, |full| {
                    let temporary = temporary_beside(full);
                    fs::hard_link(&sibling, &temporary)?;
                    fs::rename(&temporary, full)?;
                    // Renaming one name of a file over another of the same file leaves both.
                    match fs::remove_file(&temporary) {
                        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                        _ => Ok(()),
                    }
                })?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives what has the right content its mode, time, owner and attributes; whether one of them was another.
    pub(super) fn adjust(&self, entry: &Entry) -> Result<bool, TreeError> {
        if entry.node.is_directory() {
            // Settled at the end, when nothing happens in it any more.
            self.opened.borrow_mut().insert(entry.path.clone());
            return Ok(true);
        }
        self.inside(&entry.path, |full| {
            let now = look_at(full)?.ok_or(io::ErrorKind::NotFound)?;
            let fits = (now.mode, now.owner, now.stat.mtime) == (entry.mode, entry.owner, entry.stat.mtime)
                && (matches!(entry.node, Node::Link(_)) || attributes::read(full)? == entry.attributes);
            if !fits {
                self.fit(full, entry)?;
                set_mtime(full, entry.stat.mtime)?;
            }
            Ok(!fits)
        })
    }

    /// Gives a path the owner, attributes and mode of `entry`. Where the system refuses the first two, it is noted.
    fn fit(&self, full: &Path, entry: &Entry) -> io::Result<()> {
        let is_link = matches!(entry.node, Node::Link(_));
        let now = look_at(full)?.ok_or(io::ErrorKind::NotFound)?;
        let mut refused = false;
        if now.owner != entry.owner {
            let (user, group) = (Uid::from_raw(entry.owner.0), Gid::from_raw(entry.owner.1));
            let given = chownat(CWD, full, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW);
            // The group alone is often allowed.
            refused |= given.is_err();
            if given.is_err() {
                let _given = chownat(CWD, full, None, Some(group), AtFlags::SYMLINK_NOFOLLOW);
            }
        }
        if !is_link {
            refused |= attributes::set(full, &entry.attributes).is_err();
            // Last: a new owner takes bits away, and an access list sets some.
            fs::set_permissions(full, fs::Permissions::from_mode(entry.mode))?;
        }
        if refused {
            self.unfit.borrow_mut().insert(entry.path.clone());
        }
        Ok(())
    }

    /// What the system did not let us give its owner or attributes back, so far.
    pub(super) fn unfit(&self) -> Vec<RelPath> {
        self.unfit.borrow().iter().cloned().collect()
    }

    /// Gives every directory of the record its mode and time back, children first.
    pub(super) fn settle_directories(&self, base: &Listing) -> Result<(), TreeError> {
        for entry in base.entries.iter().rev().filter(|entry| entry.node.is_directory()) {
            let full = self.full(&entry.path);
            let failed = |source| TreeError { path: full.clone(), source };
            let Some(now) = look_at(&full).map_err(failed)?.filter(|now| now.node.is_directory()) else { continue };
            let same_attributes =
                now.stat.ctime == entry.stat.ctime || attributes::read(&full).map_err(failed)? == entry.attributes;
            if (now.mode, now.owner) != (entry.mode, entry.owner) || !same_attributes {
                self.fit(&full, entry).map_err(failed)?;
            }
            if now.stat.mtime != entry.stat.mtime {
                set_mtime(&full, entry.stat.mtime).map_err(failed)?;
            }
        }
        Ok(())
    }
}

fn temporary_beside(full: &Path) -> PathBuf {
    full.with_file_name(format!(".ralphloop-{}.tmp", uuid::Uuid::now_v7().simple()))
}

fn write_file(temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(temporary)?.write_all(bytes)
}

fn make_node(temporary: &Path, kind: FileType, mode: u32, rdev: u64) -> io::Result<()> {
    Ok(rustix::fs::mknodat(CWD, temporary, kind, Mode::from_raw_mode(mode), rdev)?)
}

/// Sets the time of the last change, of a link itself too; the time of the last reading is left as it is.
fn set_mtime(full: &Path, mtime: i64) -> io::Result<()> {
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec {
            tv_sec: mtime.div_euclid(1_000_000_000),
            tv_nsec: mtime.rem_euclid(1_000_000_000),
        },
    };
    Ok(rustix::fs::utimensat(CWD, full, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}
