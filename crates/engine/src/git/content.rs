//! The content of files: taken from the index's or an earlier look's word where that is proof, read otherwise.
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use ralphloop_core::ids::TreeId;
use rustix::fs::{Mode, OFlags};

use super::index::Index;
use super::oid::{HashKind, Oid};
use super::record::{Class, Content, Entry, Listing, Node, Stat};
use super::scan::ScanError;
use super::store::{PackWriter, StoreError};
use super::walk::lstat_numbers;
use super::{SnapshotLimits, path};
use crate::attributes;

/// How often a file that changes while it is read is read again.
const TRIES: usize = 3;

/// What is to be known of each file.
pub(super) enum Purpose<'a> {
    /// Its name as a blob, for comparing.
    Compare,
    /// Its bytes, so that they can be put back.
    Save(&'a mut PackWriter),
}

/// Finds out contents.
pub(super) struct Filler<'a> {
    pub(super) root: &'a Path,
    pub(super) hash: HashKind,
    pub(super) limits: SnapshotLimits,
    /// The index, and whether git may convert what it checks out.
    pub(super) index: Option<(&'a Index, bool)>,
    /// Earlier looks at the same root.
    pub(super) earlier: Vec<&'a Listing>,
}

/// What was done to find the contents out.
#[derive(Debug, Default)]
pub(super) struct Filled {
    /// Files that were not read, by this look or an earlier one, and are protected by size and times only.
    pub(super) not_kept: Vec<PathBuf>,
    /// Positions of the entries that were read.
    pub(super) read: Vec<usize>,
}

/// A file whose content nobody vouches for.
struct Unknown {
    at: usize,
    size: u64,
    /// What the index has under its path.
    indexed: Option<Oid>,
}

impl Filler<'_> {
    /// Fills in the content of every file of `listing`.
    pub(super) fn fill(&self, listing: &mut Listing, mut purpose: Purpose<'_>) -> Result<Filled, ScanError> {
        let mut filled = Filled::default();
        if matches!(purpose, Purpose::Save(_)) {
            self.fill_attributes(listing)?;
        }
        let mut unknown = self.ask_others(listing, &purpose, &mut filled);
        unknown.sort_unstable_by_key(|file| file.size);
        let mut total = 0_u64;
        for file in unknown {
            let Some(entry) = listing.entries.get_mut(file.at) else { continue };
            total = total.saturating_add(file.size);
            if file.size > self.limits.file || total > self.limits.total {
                entry.node = Node::File(Content::StatOnly);
                filled.not_kept.push(path(&entry.path));
                continue;
            }
            let content = match self.read(entry)? {
                None => {
                    filled.not_kept.push(path(&entry.path));
                    Content::StatOnly
                }
                Some(bytes) => {
                    filled.read.push(file.at);
                    let oid = self.hash.blob(&bytes).map_err(|source| self.failed(entry, source))?;
                    match &mut purpose {
                        Purpose::Compare => Content::Hashed(oid),
                        // The empty blob is in the index also where no object of that name exists.
                        Purpose::Save(_) if file.indexed == Some(oid) && !bytes.is_empty() => Content::Blob(oid),
                        Purpose::Save(pack) => {
                            Content::Packed { oid, pack: pack.number(), offset: pack.append(&bytes)? }
                        }
                    }
                }
            };
            entry.node = Node::File(content);
        }
        Ok(filled)
    }

    /// Finds out the attributes of everything but links, which have none of a person's. A path that is as it was had them as
    /// they were: a change of them gives it another time of change.
    fn fill_attributes(&self, listing: &mut Listing) -> Result<(), ScanError> {
        let mut earlier = self.earlier.first().map(|list| (list.entries.iter().peekable(), list.clock));
        for entry in listing.entries.iter_mut().filter(|entry| !matches!(entry.node, Node::Link(_))) {
            if let Some((entries, clock)) = &mut earlier {
                while entries.next_if(|before| before.path < entry.path).is_some() {}
                if let Some(before) = entries.peek().filter(|before| before.path == entry.path)
                    && before.stat.agrees(&entry.stat)
                    && !before.is_racy(*clock)
                {
                    entry.attributes.clone_from(&before.attributes);
                    continue;
                }
            }
            let full = self.root.join(std::ffi::OsStr::from_bytes(&entry.path));
            entry.attributes = attributes::read(&full).map_err(|source| self.failed(entry, source))?;
        }
        Ok(())
    }

    /// Takes the word of the index and of earlier looks; returns the files of which neither knows.
    fn ask_others(&self, listing: &mut Listing, purpose: &Purpose<'_>, filled: &mut Filled) -> Vec<Unknown> {
        let saving = matches!(purpose, Purpose::Save(_));
        let mut indexed = self.index.map(|(index, converts)| (index.paths().peekable(), index, converts));
        let mut earlier: Vec<_> =
            self.earlier.iter().map(|list| (list.entries.iter().peekable(), list.clock)).collect();
        let mut unknown = Vec::new();
        for (at, entry) in listing.entries.iter_mut().enumerate() {
            if !matches!(entry.node, Node::File(_)) {
                continue;
            }
            let mut known = None;
            let mut blob = None;
            if let Some((paths, index, converts)) = &mut indexed {
                while paths.next_if(|(path, _)| *path < entry.path.as_slice()).is_some() {}
                if let Some((_, Some(there))) = paths.peek().filter(|(path, _)| *path == entry.path) {
                    blob = (!there.is_submodule).then_some(there.oid);
                    if !*converts && index.vouches(there, entry) {
                        known = Some(Content::Blob(there.oid));
                    }
                }
            }
            for (entries, clock) in &mut earlier {
                while entries.next_if(|before| before.path < entry.path).is_some() {}
                let Some(before) = entries.peek().filter(|before| before.path == entry.path) else { continue };
                let Node::File(content) = before.node else { continue };
                let usable = match content {
                    Content::Unknown => false,
                    Content::Hashed(_) => !saving,
                    _ => true,
                };
                if known.is_none() && usable && before.stat.agrees(&entry.stat) && !before.is_racy(*clock) {
                    known = Some(content);
                }
            }
            match known {
                Some(content) => {
                    if content == Content::StatOnly {
                        filled.not_kept.push(path(&entry.path));
                    }
                    entry.node = Node::File(content);
                }
                None => unknown.push(Unknown { at, size: entry.stat.size, indexed: blob }),
            }
        }
        unknown
    }

    /// Reads a file as it was listed; one that changed since is listed anew. `None` if it must not be read.
    fn read(&self, entry: &mut Entry) -> Result<Option<Vec<u8>>, ScanError> {
        let full = self.root.join(std::ffi::OsStr::from_bytes(&entry.path));
        for _ in 0..TRIES {
            match read_whole(&full) {
                Ok((bytes, stat, mode)) => {
                    (entry.stat, entry.mode) = (stat, mode);
                    return Ok(Some(bytes));
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(self.failed(entry, source)),
            }
        }
        Err(ScanError::Changing { path: full })
    }

    fn failed(&self, entry: &Entry, source: io::Error) -> ScanError {
        ScanError::Read { path: self.root.join(std::ffi::OsStr::from_bytes(&entry.path)), source }
    }
}

/// The bytes of a regular file, and its `lstat` when they were read. `Interrupted` says that it changed meanwhile.
pub(super) fn read_whole(full: &Path) -> io::Result<(Vec<u8>, Stat, u32)> {
    let file = open_to_read(full)?;
    let before = rustix::fs::fstat(&file)?;
    let mut bytes = Vec::with_capacity(usize::try_from(before.st_size).unwrap_or(0));
    let mut file = File::from(file);
    file.read_to_end(&mut bytes)?;
    let after = rustix::fs::fstat(&file)?;
    let stat = lstat_numbers(&after);
    if !lstat_numbers(&before).agrees(&stat) || bytes.len() as u64 != stat.size {
        return Err(io::ErrorKind::Interrupted.into());
    }
    Ok((bytes, stat, after.st_mode & 0o7777))
}

/// Opens a regular file without following a link and, where the system lets us, without a trace in its access time.
fn open_to_read(full: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    match rustix::fs::open(full, flags | OFlags::NOATIME, Mode::empty()) {
        Err(rustix::io::Errno::PERM) => Ok(rustix::fs::open(full, flags, Mode::empty())?),
        other => Ok(other?),
    }
}

/// The bytes that a record has of a file, where they are in the store.
pub(super) fn packed_bytes(
    store: &super::store::Store,
    hash: HashKind,
    entry: &Entry,
) -> Result<Option<Vec<u8>>, StoreError> {
    let Node::File(Content::Packed { oid, pack, offset }) = entry.node else { return Ok(None) };
    let bytes = store.read_packed(pack, offset, entry.stat.size)?;
    match hash.blob(&bytes) {
        Ok(found) if found == oid => Ok(Some(bytes)),
        _ => Err(StoreError::Damaged {
            path: store.root().join(format!("pack-{pack}")),
            why: format!("the bytes of {} are not what was saved", path(&entry.path).display()),
        }),
    }
}

/// The content that gates could see: tracked and untracked files that are not ignored, by path, kind, executable bit and
/// bytes. Equal content has an equal id, whoever committed it.
pub(super) fn tree_id(listing: &Listing) -> TreeId {
    let mut hasher = blake3::Hasher::new();
    for entry in &listing.entries {
        let seen = match entry.class {
            Class::Tracked | Class::Untracked => true,
            Class::Nested => !entry.path.split(|byte| *byte == b'/').any(|part| part == b".git"),
            Class::Ignored | Class::Internal => false,
        };
        if !seen {
            continue;
        }
        let mut put = |kind: u8, content: &[u8]| {
            hasher.update(&(entry.path.len() as u64).to_le_bytes());
            hasher.update(&entry.path);
            hasher.update(&[kind, u8::from(entry.mode & 0o100 != 0)]);
            hasher.update(&(content.len() as u64).to_le_bytes());
            hasher.update(content);
        };
        match &entry.node {
            Node::File(content) => match content.oid() {
                Some(oid) => put(b'f', oid.as_bytes()),
                None => put(b's', format!("{} {}", entry.stat.size, entry.stat.mtime).as_bytes()),
            },
            Node::Link(target) => put(b'l', target),
            Node::Directory | Node::Fifo | Node::Socket | Node::Device { .. } => {}
        }
    }
    TreeId(hasher.finalize().to_hex().to_string())
}
