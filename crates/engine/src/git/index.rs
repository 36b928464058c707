//! Git's index, read to learn which files need not be read: those whose times and size it vouches for.
use std::path::{Path, PathBuf};

use gix_index::entry::{Flags, Mode, Stage};

use super::oid::{HashKind, Oid};
use super::record::{Entry, RelPath};

/// The index can't be read.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// It is damaged, or the system refuses.
    #[error("can't read the index {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// It names whole folders instead of files.
    #[error("{} is a sparse index, which does not name every file", path.display())]
    Sparse {
        /// The file.
        path: PathBuf,
    },
}

impl IndexError {
    /// What mends it.
    pub(super) fn remedy(&self) -> String {
        match self {
            Self::Unreadable { path, .. } => {
                format!("git status says more; rm '{}' and git reset make a new one", path.display())
            }
            Self::Sparse { .. } => "git sparse-checkout reapply --no-sparse-index".to_owned(),
        }
    }
}

/// The index as it is on disk.
pub(super) struct Index {
    file: Option<gix_index::File>,
    /// Nanoseconds since the epoch: what was written at or after it may have changed within a tick.
    written: i64,
}

/// What the index has under one path.
pub(super) struct Indexed {
    /// The blob, or a submodule's commit.
    pub(super) oid: Oid,
    pub(super) is_submodule: bool,
    stat: gix_index::entry::Stat,
    /// Its stat says something about the working tree.
    speaks: bool,
}

impl Index {
    /// Reads `git_dir/index`; none is an empty one.
    pub(super) fn read(git_dir: &Path, hash: HashKind) -> Result<Self, IndexError> {
        let path = git_dir.join("index");
        let written = match std::fs::symlink_metadata(&path) {
            Ok(metadata) => {
                use std::os::unix::fs::MetadataExt as _;
                metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec())
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self { file: None, written: 0 }),
            Err(error) => return Err(IndexError::Unreadable { path, reason: error.to_string() }),
        };
        let options = gix_index::decode::Options::default();
        let file = gix_index::File::at(&path, hash.gix(), true, options)
            .map_err(|error| IndexError::Unreadable { path: path.clone(), reason: error.to_string() })?;
        if file.is_sparse() {
            return Err(IndexError::Sparse { path });
        }
        Ok(Self { file: Some(file), written })
    }

    /// Every path, sorted bytewise, conflicting stages once; `None` where there is no one version.
    pub(super) fn paths(&self) -> impl Iterator<Item = (&[u8], Option<Indexed>)> {
        self.entries().map(|(path, entry)| {
            let whole = entry.stage() == Stage::Unconflicted;
            let silent = Flags::ASSUME_VALID | Flags::SKIP_WORKTREE | Flags::INTENT_TO_ADD;
            let indexed = Oid::new(entry.id.as_slice()).filter(|_| whole).map(|oid| Indexed {
                oid,
                is_submodule: entry.mode.contains(Mode::COMMIT),
                stat: entry.stat,
                speaks: !entry.flags.intersects(silent)
                    && (entry.mode == Mode::FILE || entry.mode == Mode::FILE_EXECUTABLE),
            });
            (path, indexed)
        })
    }

    /// Every path, sorted bytewise.
    pub(super) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.entries().map(|(path, _)| path)
    }

    /// The first entry of every path.
    fn entries(&self) -> impl Iterator<Item = (&[u8], &gix_index::Entry)> {
        self.file.iter().flat_map(|file| {
            let mut last: Option<&[u8]> = None;
            file.entries().iter().filter_map(move |entry| {
                let path: &[u8] = entry.path(file);
                (last.replace(path) != Some(path)).then_some((path, entry))
            })
        })
    }

    /// Whether a path is in it.
    pub(super) fn has(&self, path: &[u8]) -> bool {
        self.entry(path).is_some()
    }

    /// Whether a path is in it, and the working tree is to be without it, as where only a part is checked out.
    pub(super) fn leaves_out(&self, path: &[u8]) -> bool {
        self.entry(path).is_some_and(|entry| entry.flags.contains(Flags::SKIP_WORKTREE))
    }

    fn entry(&self, path: &[u8]) -> Option<&gix_index::Entry> {
        let file = self.file.as_ref()?;
        let found = file.entries().binary_search_by(|entry| {
            let there: &[u8] = entry.path(file);
            there.cmp(path)
        });
        file.entries().get(found.ok()?)
    }

    /// Bytes of all files in it, each as far as its size fits into the index.
    pub(super) fn bytes(&self) -> u64 {
        self.file.iter().flat_map(|file| file.entries()).map(|entry| u64::from(entry.stat.size)).sum()
    }

    /// Paths of submodules.
    pub(super) fn submodules(&self) -> Vec<RelPath> {
        self.entries()
            .filter(|(_, entry)| entry.stage() == Stage::Unconflicted && entry.mode.contains(Mode::COMMIT))
            .map(|(path, _)| path.to_vec())
            .collect()
    }

    /// The tree that the whole index equals, where it says so itself.
    pub(super) fn known_tree(&self) -> Option<Oid> {
        let tree = self.file.as_ref()?.tree()?;
        tree.num_entries?;
        Oid::new(tree.id.as_slice())
    }

    /// The blob whose bytes, converted as git converts them, the file has: by the index's own word, which is taken only
    /// where neither a flag nor a race makes it doubtful.
    pub(super) fn vouches(&self, indexed: &Indexed, file: &Entry) -> bool {
        let low = |number: u64| u32::try_from(number & u64::from(u32::MAX)).unwrap_or(0);
        let time = |time: gix_index::entry::stat::Time| {
            i64::from(time.secs).saturating_mul(1_000_000_000).saturating_add(i64::from(time.nsecs))
        };
        indexed.speaks
            && indexed.stat.size == low(file.stat.size)
            && u64::from(indexed.stat.size) == file.stat.size
            && indexed.stat.ino == low(file.stat.ino)
            && time(indexed.stat.mtime) == file.stat.mtime
            && time(indexed.stat.ctime) == file.stat.ctime
            && file.stat.mtime < self.written
            && file.stat.size > 0
    }
}
