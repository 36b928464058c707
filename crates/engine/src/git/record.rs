//! What a checkpoint knows of every path, and how it is written down.
use serde::{Deserialize, Serialize};

use super::oid::Oid;
use super::settings::Settings;
use crate::attributes::Attributes;

/// Changes of a file that happen within the file system's clock tick leave its times alone. Ticks are 1 to 10 ms.
pub(super) const TICK: i64 = 20_000_000;

/// A path relative to the root that was walked, as bytes, `/` between components; empty for the root itself.
pub(crate) type RelPath = Vec<u8>;

/// What `lstat` says of a path, as far as it tells whether something changed. Times in nanoseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stat {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    pub(crate) size: u64,
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
    /// Names that the file has.
    pub(crate) links: u64,
}

impl Stat {
    /// The same file, not written since. The number of links is no sign of a change of content.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        (self.dev, self.ino, self.size, self.mtime, self.ctime)
            == (other.dev, other.ino, other.size, other.mtime, other.ctime)
    }
}

/// Where the content of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Content {
    /// Not looked at yet.
    Unknown,
    /// Equal to this blob of the repository, byte for byte.
    Blob(Oid),
    /// In the store's pack, at `offset`.
    Packed {
        /// The name that the bytes have as a blob.
        oid: Oid,
        /// Which pack.
        pack: u32,
        /// Where it begins in the pack; its length is the file's size.
        offset: u64,
    },
    /// Hashed for a comparison and kept nowhere.
    Hashed(Oid),
    /// Too large to be read: protected by size and times, not kept.
    StatOnly,
}

impl Content {
    /// The name that the content has as a blob, where it is known.
    pub(crate) fn oid(&self) -> Option<Oid> {
        match self {
            Self::Blob(oid) | Self::Packed { oid, .. } | Self::Hashed(oid) => Some(*oid),
            Self::Unknown | Self::StatOnly => None,
        }
    }
}

/// What a path is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Node {
    Directory,
    File(Content),
    Link(Vec<u8>),
    Fifo,
    Socket,
    Device { block: bool, rdev: u64 },
}

impl Node {
    pub(crate) fn is_directory(&self) -> bool {
        matches!(self, Self::Directory)
    }

    /// The same kind of thing, content aside.
    pub(crate) fn same_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// How git sees a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Class {
    /// In the index.
    Tracked,
    /// Neither in the index nor ignored.
    Untracked,
    /// Ignored, or below something ignored.
    Ignored,
    /// Inside a submodule or another repository.
    Nested,
    /// Git's own.
    Internal,
}

/// One path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) path: RelPath,
    pub(crate) class: Class,
    /// Permission bits, `07777`.
    pub(crate) mode: u32,
    /// User and group.
    pub(crate) owner: (u32, u32),
    /// Those that are kept. Only found out where the content is saved too.
    pub(crate) attributes: Attributes,
    pub(crate) stat: Stat,
    pub(crate) node: Node,
}

impl Entry {
    pub(crate) fn name(&self) -> &[u8] {
        file_name(&self.path)
    }

    /// Whether a look at `clock` could have missed a change: the times can't tell it.
    pub(crate) fn is_racy(&self, clock: i64) -> bool {
        self.stat.ctime.max(self.stat.mtime) >= clock - TICK
    }

    /// Proof without reading that nothing happened to this path, seen at `clock`, until `now` was seen.
    pub(crate) fn is_untouched(&self, clock: i64, now: &Self) -> bool {
        self.mode == now.mode
            && self.owner == now.owner
            && self.node.same_kind(&now.node)
            && match (&self.node, &now.node) {
                (Node::Link(before), Node::Link(after)) => before == after && self.stat.mtime == now.stat.mtime,
                (Node::Directory, _) => self.stat.mtime == now.stat.mtime,
                (Node::Device { .. }, _) => self.node == now.node,
                _ => self.stat.agrees(&now.stat) && !self.is_racy(clock),
            }
    }
}

/// The last component of a path.
pub(crate) fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Whether `path` is `directory` or below it.
pub(crate) fn is_within(path: &[u8], directory: &[u8]) -> bool {
    directory.is_empty()
        || path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.first() == Some(&b'/'))
}

/// A tree of files as it was found: entries sorted by path, bytewise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Listing {
    /// The file system's clock before the first look.
    pub(crate) clock: i64,
    pub(crate) entries: Vec<Entry>,
    /// Directories that were not looked into, and whose content is neither kept nor put back.
    pub(crate) left_alone: Vec<RelPath>,
}

impl Listing {
    pub(crate) fn get(&self, path: &[u8]) -> Option<&Entry> {
        self.entries.binary_search_by(|entry| entry.path.as_slice().cmp(path)).ok().and_then(|at| self.entries.get(at))
    }

    /// The entries of a directory and below, itself included, when nothing sorts between: `a` and `a/…` are separated
    /// by `a-b`, so this filters.
    pub(crate) fn within<'a>(&'a self, directory: &'a [u8]) -> impl Iterator<Item = &'a Entry> + 'a {
        let from = self.entries.partition_point(|entry| entry.path.as_slice() < directory);
        self.entries
            .get(from..)
            .unwrap_or_default()
            .iter()
            .take_while(move |entry| entry.path.starts_with(directory))
            .filter(move |entry| is_within(&entry.path, directory))
    }
}

/// Pairs two sorted lists by path.
pub(crate) struct Pairs<'a> {
    left: std::iter::Peekable<std::slice::Iter<'a, Entry>>,
    right: std::iter::Peekable<std::slice::Iter<'a, Entry>>,
}

impl<'a> Pairs<'a> {
    pub(crate) fn new(left: &'a [Entry], right: &'a [Entry]) -> Self {
        Self { left: left.iter().peekable(), right: right.iter().peekable() }
    }
}

/// A path that is in one list or in both.
pub(crate) enum Pair<'a> {
    Left(&'a Entry),
    Right(&'a Entry),
    Both(&'a Entry, &'a Entry),
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Pair<'a>;

    fn next(&mut self) -> Option<Pair<'a>> {
        let order = match (self.left.peek(), self.right.peek()) {
            (Some(left), Some(right)) => left.path.cmp(&right.path),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => return None,
        };
        match order {
            std::cmp::Ordering::Less => self.left.next().map(Pair::Left),
            std::cmp::Ordering::Greater => self.right.next().map(Pair::Right),
            std::cmp::Ordering::Equal => Some(Pair::Both(self.left.next()?, self.right.next()?)),
        }
    }
}

/// Where HEAD pointed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// The full name of the branch; `None` when detached.
    pub(crate) branch: Option<String>,
    /// The commit; `None` on a branch without commits.
    pub(crate) commit: Option<Oid>,
}

/// Everything that a checkpoint brings back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) head: Head,
    /// The working tree.
    pub(crate) work: Listing,
    /// The common git directory, and after it the linked worktree's own, if there is one.
    pub(crate) git: Vec<Listing>,
    /// Submodules and the commits that are checked out in them.
    pub(crate) submodules: Vec<(RelPath, Option<Oid>)>,
    /// The user's settings, which hold for landing too.
    pub(crate) settings: Settings,
    /// What a person should know of this checkpoint.
    pub(crate) notes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sibling_with_the_same_beginning_is_not_within() {
        assert!(is_within(b"a/b", b"a") && is_within(b"a", b"a") && is_within(b"a", b""));
        assert!(!is_within(b"a-b", b"a") && !is_within(b"ab/c", b"a"));
    }
}
