//! Where checkpoints are kept: `ralphloop/snapshots/<tree>/` in the common git directory, one folder a working tree.
//!
//! - `<slug>.checkpoint`: a record: a line with the format's version, the BLAKE3 hash of the rest, the record (postcard).
//! - `latest`: the record that was dropped last; it only saves reading files again.
//! - `pack-<n>`: the bytes of files, one after the other, appended only; records say where each begins.
//! - `parked/<slug>/`: what was too large for git's object store and had to leave the tree.
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::record::{Content, Listing, Node, Record};

const VERSION_LINE: &[u8] = b"ralphloop checkpoint 2\n";

/// A pack of which less than half is still needed is left behind when it is larger than this.
const WASTEFUL_PACK: u64 = 256 * 1024 * 1024;

/// The store can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refused.
    #[error("can't {what} {}: {source}", path.display())]
    Io {
        /// `read`, `write` …
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no checkpoint of that name.
    #[error("there is no checkpoint `{name}` in {}", store.display())]
    Missing {
        /// The name.
        name: String,
        /// The folder.
        store: PathBuf,
    },
    /// A file of the store is not what was written.
    #[error("the checkpoint file {} is damaged: {why}; nothing was changed", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

fn io_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    move |source| StoreError::Io { what, path: path.to_owned(), source }
}

/// The folder of one working tree.
#[derive(Debug, Clone)]
pub(super) struct Store {
    root: PathBuf,
}

impl Store {
    /// The store for the working tree at `top`. Nothing is made until something is written.
    pub(super) fn new(common_dir: &Path, top: &Path) -> Self {
        let key = blake3::hash(top.as_os_str().as_bytes()).to_hex();
        Self { root: common_dir.join("ralphloop/snapshots").join(&key.as_str()[..16]) }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Makes the folder, for its owner alone.
    pub(super) fn prepare(&self) -> Result<(), StoreError> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.root).map_err(io_error("make", &self.root))
    }

    /// The clock by which the file system dates changes, in nanoseconds since the epoch.
    pub(super) fn clock(&self) -> Result<i64, StoreError> {
        self.prepare()?;
        let path = self.root.join("clock");
        let tick = || -> io::Result<i64> {
            // Written over in place: a file that is cut off and written anew costs the disk a round.
            let mut file = private().write(true).create(true).truncate(false).open(&path)?;
            file.write_all(b".")?;
            Ok(super::walk::lstat_numbers(&rustix::fs::fstat(&file)?).mtime)
        };
        tick().map_err(io_error("write", &path))
    }

    fn record_path(&self, slug: &str) -> PathBuf {
        self.root.join(format!("{slug}.checkpoint"))
    }

    /// Writes a record, durably and at once.
    pub(super) fn write_record(&self, slug: &str, record: &Record) -> Result<(), StoreError> {
        let path = self.record_path(slug);
        let body = postcard::to_stdvec(record)
            .map_err(|error| StoreError::Damaged { path: path.clone(), why: error.to_string() })?;
        let mut bytes = Vec::with_capacity(body.len() + 64);
        bytes.extend_from_slice(VERSION_LINE);
        bytes.extend_from_slice(blake3::hash(&body).as_bytes());
        bytes.extend_from_slice(&body);
        self.write_durably(&path, &bytes)
    }

    /// Replaces a file so that after any crash the old or the new one is there, whole.
    fn write_durably(&self, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        let temporary = path.with_extension("new");
        let write = || -> io::Result<()> {
            let mut file = private().write(true).create(true).truncate(true).open(&temporary)?;
            file.write_all(bytes)?;
            file.sync_data()?;
            fs::rename(&temporary, path)?;
            File::open(&self.root)?.sync_data()
        };
        write().map_err(io_error("write", path))
    }

    /// Reads a record back.
    pub(super) fn read_record(&self, slug: &str, name: &str) -> Result<Record, StoreError> {
        let path = self.record_path(slug);
        match read_record(&path)? {
            Some(record) => Ok(record),
            None => Err(StoreError::Missing { name: name.to_owned(), store: self.root.clone() }),
        }
    }

    /// The newest record there is, dropped or not; damaged ones are passed over, since it only saves work.
    pub(super) fn newest_record(&self) -> Option<Record> {
        let files = fs::read_dir(&self.root).ok()?;
        let newest = files
            .filter_map(Result::ok)
            .map(|file| file.path())
            .filter(|path| {
                path.extension().is_some_and(|e| e == "checkpoint") || path.file_name().is_some_and(|n| n == "latest")
            })
            .filter_map(|path| Some((fs::symlink_metadata(&path).ok()?.modified().ok()?, path)))
            .max()?;
        read_record(&newest.1).ok()?
    }

    /// Forgets a record. Its knowledge of unchanged files stays as `latest`.
    pub(super) fn drop_record(&self, slug: &str) -> Result<(), StoreError> {
        let path = self.record_path(slug);
        match fs::rename(&path, self.root.join("latest")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("drop", &path)(error)),
            _ => Ok(()),
        }
    }

    fn slugs(&self) -> Vec<String> {
        let Ok(files) = fs::read_dir(&self.root) else { return Vec::new() };
        let name = |file: fs::DirEntry| file.file_name().to_str()?.strip_suffix(".checkpoint").map(str::to_owned);
        files.filter_map(Result::ok).filter_map(name).collect()
    }

    /// No checkpoint is kept.
    pub(super) fn is_idle(&self) -> bool {
        self.slugs().is_empty()
    }

    /// No checkpoint of another working tree of the repository is kept.
    pub(super) fn others_are_idle(&self) -> bool {
        let beside = self.root.parent().map(fs::read_dir).into_iter().flatten().flatten().filter_map(Result::ok);
        beside.map(|folder| Self { root: folder.path() }).all(|other| other.is_idle())
    }

    fn pack_path(&self, pack: u32) -> PathBuf {
        self.root.join(format!("pack-{pack}"))
    }

    fn packs(&self) -> Vec<u32> {
        let Ok(files) = fs::read_dir(&self.root) else { return Vec::new() };
        let number = |file: fs::DirEntry| file.file_name().to_str()?.strip_prefix("pack-")?.parse().ok();
        let mut packs: Vec<u32> = files.filter_map(Result::ok).filter_map(number).collect();
        packs.sort_unstable();
        packs
    }

    /// Opens the pack to which bytes go now. A new one is begun when most of the old one is not needed by `previous` and no
    /// checkpoint is kept.
    pub(super) fn open_pack(&self, previous: Option<&Record>) -> Result<PackWriter, StoreError> {
        self.prepare()?;
        let mut number = self.packs().last().copied().unwrap_or(0);
        let size = |number| fs::symlink_metadata(self.pack_path(number)).map_or(0, |metadata| metadata.len());
        if size(number) > WASTEFUL_PACK
            && self.is_idle()
            && previous.map_or(0, |record| needed(record, number)) < size(number) / 2
        {
            number += 1;
        }
        let path = self.pack_path(number);
        let open = || -> io::Result<(File, u64)> {
            let mut file = private().append(true).create(true).open(&path)?;
            let end = file.seek(SeekFrom::End(0))?;
            Ok((file, end))
        };
        let (file, end) = open().map_err(io_error("open", &path))?;
        Ok(PackWriter { file: io::BufWriter::with_capacity(1 << 20, file), path, number, end, written: 0 })
    }

    /// Removes packs that nothing refers to.
    pub(super) fn remove_old_packs(&self, keep: &Record) {
        if self.slugs().len() > 1 {
            return;
        }
        for pack in self.packs() {
            if needed(keep, pack) == 0 && self.packs().last() != Some(&pack) {
                // A pack that can't be removed only takes room.
                drop(fs::remove_file(self.pack_path(pack)));
            }
        }
    }

    /// Reads bytes back.
    pub(super) fn read_packed(&self, pack: u32, offset: u64, length: u64) -> Result<Vec<u8>, StoreError> {
        let path = self.pack_path(pack);
        let read = || -> io::Result<Vec<u8>> {
            let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
            File::open(&path)?.read_exact_at(&mut bytes, offset)?;
            Ok(bytes)
        };
        read().map_err(io_error("read", &path))
    }

    /// A folder for what leaves the tree of this checkpoint and is too large for git.
    pub(super) fn parking(&self, slug: &str) -> PathBuf {
        self.root.join("parked").join(slug)
    }
}

fn private() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.mode(0o600);
    options
}

fn read_record(path: &Path) -> Result<Option<Record>, StoreError> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Ok(mut file) => file.read_to_end(&mut bytes).map_err(io_error("read", path))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("read", path)(error)),
    };
    let damaged = |why: &str| StoreError::Damaged { path: path.to_owned(), why: why.to_owned() };
    let rest = bytes.strip_prefix(VERSION_LINE).ok_or_else(|| damaged("it is of another version, or cut"))?;
    let (hash, body) = rest.split_at_checked(32).ok_or_else(|| damaged("it is cut"))?;
    if blake3::hash(body).as_bytes() != hash {
        return Err(damaged("its hash does not match"));
    }
    postcard::from_bytes(body).map(Some).map_err(|error| damaged(&error.to_string()))
}

/// How many bytes of a pack a record refers to.
fn needed(record: &Record, number: u32) -> u64 {
    let of_listing = |listing: &Listing| -> u64 {
        listing
            .entries
            .iter()
            .filter(|entry| matches!(entry.node, Node::File(Content::Packed { pack, .. }) if pack == number))
            .map(|entry| entry.stat.size)
            .sum()
    };
    record.git.iter().chain([&record.work]).map(of_listing).sum()
}

/// Appends to a pack.
#[derive(Debug)]
pub(super) struct PackWriter {
    file: io::BufWriter<File>,
    path: PathBuf,
    number: u32,
    end: u64,
    written: u64,
}

impl PackWriter {
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Appends and returns where the bytes begin.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<u64, StoreError> {
        let begin = self.end;
        self.file.write_all(bytes).map_err(io_error("write", &self.path))?;
        self.end += bytes.len() as u64;
        self.written += bytes.len() as u64;
        Ok(begin)
    }

    /// Makes what was appended durable.
    pub(super) fn finish(mut self) -> Result<(), StoreError> {
        self.file.flush().map_err(io_error("write", &self.path))?;
        if self.written > 0 {
            self.file.get_ref().sync_data().map_err(io_error("sync", &self.path))?;
        }
        Ok(())
    }
}
