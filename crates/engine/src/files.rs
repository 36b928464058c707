//! Files that must never be half written: replaced in one step, synced, private where they are ours.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::attributes;

/// How many links are followed before a path counts as a loop; the kernel's own bound.
const MAX_LINKS: usize = 40;
/// How much of a name is kept as it is before a hash takes over; file systems allow 255 bytes.
const MAX_PLAIN_NAME: usize = 100;

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The disk or the quota is full. Not the story's fault; nothing was changed.
    #[error("no space left on the disk to {doing} {}: make room, then go on", .path.display())]
    NoSpace {
        /// What was done, as an infinitive: `write`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Anything else.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        /// What was done, as an infinitive: `write`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl FileError {
    /// Sorts an error of the system; `doing` is an infinitive (`write`).
    pub fn new(doing: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace { doing, path, source },
            _ => Self::Io { doing, path, source },
        }
    }

    /// The disk or the quota is full.
    pub fn is_no_space(&self) -> bool {
        matches!(self, Self::NoSpace { .. })
    }
}

/// Whom a new file is for. A file that exists keeps its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The user alone: mode 0600.
    Private,
    /// As the user's umask has it.
    Usual,
}

impl Access {
    fn file_mode(self) -> u32 {
        match self {
            Self::Private => 0o600,
            Self::Usual => 0o666,
        }
    }
}

/// Replaces the content of `path` in one step: whoever reads sees the old or the new content, also after a crash.
///
/// The new content is written beside the file, synced, given the file's mode and renamed over it; then the folder is
/// synced. If `path` is a link, what it points at is replaced, and the link stays. Hard links to the old content keep
/// the old content.
pub fn write_atomic(path: &Path, bytes: &[u8], access: Access) -> Result<(), FileError> {
    replace(path, bytes, access, true)
}

/// The same for what can be made again: not synced, so that after a loss of power it may be empty or gone.
pub fn write_derived(path: &Path, bytes: &[u8], access: Access) -> Result<(), FileError> {
    replace(path, bytes, access, false)
}

/// Makes a new file, with the folders above it that are missing, in one step. A file that is there already, be it made
/// while this one was written, stays as it is and is an error.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let fail = |source| FileError::new("write", path, source);
    let folder = folder_of(path);
    fs::create_dir_all(folder).map_err(fail)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".ralphloop-").suffix(".tmp").permissions(Permissions::from_mode(Access::Usual.file_mode()));
    let mut temp = builder.tempfile_in(folder).map_err(fail)?;
    temp.write_all(bytes).map_err(fail)?;
    temp.as_file().sync_all().map_err(fail)?;
    temp.persist_noclobber(path).map_err(|e| fail(e.error))?;
    sync_folder(folder).map_err(fail)
}

/// Makes a new folder with files by their paths in it, all or nothing.
///
/// # Errors
/// Something is there, or cannot be written.
pub fn write_new_folder<'f>(
    folder: &Path,
    files: impl IntoIterator<Item = (&'f Path, &'f [u8])>,
) -> Result<(), FileError> {
    let fail = |source| FileError::new("write", folder, source);
    let above = folder_of(folder);
    fs::create_dir_all(above).map_err(fail)?;
    let mut builder = tempfile::Builder::new();
    // The umask narrows this mode, as for any new folder.
    builder.prefix(".ralphloop-").suffix(".tmp").permissions(Permissions::from_mode(0o777));
    let made = builder.tempdir_in(above).map_err(fail)?;
    for (path, bytes) in files {
        write_new(&made.path().join(path), bytes)?;
    }
    // Of what may have come meanwhile, the system replaces an empty folder alone.
    fs::rename(made.path(), folder).map_err(fail)?;
    let _moved = made.keep();
    sync_folder(above).map_err(fail)
}

fn replace(path: &Path, bytes: &[u8], access: Access, durably: bool) -> Result<(), FileError> {
    let fail = |source| FileError::new("write", path, source);
    let target = behind_links(path).map_err(fail)?;
    let folder = folder_of(&target);
    let mut builder = tempfile::Builder::new();
    // The umask narrows this mode, as for any new file.
    builder.prefix(".ralphloop-").suffix(".tmp").permissions(Permissions::from_mode(access.file_mode()));
    let mut temp = builder.tempfile_in(folder).map_err(fail)?;
    temp.write_all(bytes).map_err(fail)?;
    match fs::metadata(&target) {
        Ok(old) => be_as(temp.as_file(), temp.path(), &target, &old).map_err(fail)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(fail(e)),
    }
    if durably {
        temp.as_file().sync_all().map_err(fail)?;
    }
    temp.persist(&target).map_err(|e| fail(e.error))?;
    if durably { sync_folder(folder).map_err(fail) } else { Ok(()) }
}

/// Adds `bytes` at the end of `path`, made if it is missing. Not synced: for logs, not for decisions.
pub fn append(path: &Path, bytes: &[u8], access: Access) -> Result<(), FileError> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(access.file_mode());
    options.open(path).and_then(|mut f| f.write_all(bytes)).map_err(|e| FileError::new("append to", path, e))
}

/// Makes a new file of the user's own (mode 0600), ready to be written. An existing file is an error.
pub fn create_private(path: &Path) -> Result<File, FileError> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(Access::Private.file_mode())
        .open(path)
        .map_err(|e| FileError::new("create", path, e))
}

/// Makes a folder, and those above it that are missing, for the user alone (mode 0700). A folder that exists is left
/// as it is.
pub fn create_private_dir(path: &Path) -> Result<(), FileError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|e| FileError::new("create the folder", path, e))
}

/// The path with the links on the way to it followed. What it names need not be there.
pub fn real(path: &Path) -> PathBuf {
    let below = |folder: &Path| Some(fs::canonicalize(folder).ok()?.join(path.file_name()?));
    fs::canonicalize(path).ok().or_else(|| path.parent().and_then(below)).unwrap_or_else(|| path.to_owned())
}

/// Bytes that an unprivileged process may still write on the file system of `path`, which must exist.
pub fn free_space(path: &Path) -> Result<u64, FileError> {
    let stat = rustix::fs::statvfs(path).map_err(|e| FileError::new("ask for the free space of", path, e.into()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Bytes that have to be free for work to go on: what a checkpoint, a journal and a commit of a small project need.
pub const LEAST_ROOM: u64 = 4 * 1024 * 1024;

/// Says [`FileError::NoSpace`] if fewer than `needed` bytes are free where `path` is.
pub fn require_space(path: &Path, needed: u64) -> Result<(), FileError> {
    let free = free_space(path)?;
    if free >= needed {
        return Ok(());
    }
    let source = io::Error::new(io::ErrorKind::StorageFull, format!("{free} bytes free, {needed} needed"));
    Err(FileError::NoSpace { doing: "write in", path: path.to_owned(), source })
}

/// A file name for any text: two texts never share one, and a plain one stays as it is.
///
/// Letters, digits, `.`, `_` and `-` are plain. Anything else becomes `-`, and `~` with a hash of the whole text is
/// put behind; `~` is not plain, so no other text can have that name. So do texts that are empty, long or begin with
/// a dot.
pub fn safe_name(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !text.is_empty() && text.len() <= MAX_PLAIN_NAME && !text.starts_with('.') && text.chars().all(plain) {
        return text.to_owned();
    }
    let readable: String = text.chars().take(40).map(|c| if plain(c) { c } else { '-' }).collect();
    let hash = blake3::hash(text.as_bytes()).to_hex();
    format!("{}~{}", readable.trim_start_matches('.'), &hash.as_str()[..24])
}

/// What `path` is in the end, if it is a link; the end need not exist.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_symlink() => {
                let to = fs::read_link(&path)?;
                path = folder_of(&path).join(to);
            }
            Ok(_) => return Ok(path),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(path),
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "too many links"))
}

/// Gives a file that is to replace another the mode of that one; its owner and attributes where we may: root working in a
/// user's checkout.
pub(crate) fn be_as(new: &File, new_path: &Path, old_path: &Path, old: &fs::Metadata) -> io::Result<()> {
    let ours = new.metadata()?;
    if (ours.uid(), ours.gid()) != (old.uid(), old.gid()) {
        fchown(new, Some(old.uid()), Some(old.gid())).ok();
    }
    attributes::set(new_path, &attributes::read(old_path)?).ok();
    // After the owner: changing that takes away some bits of the mode.
    new.set_permissions(old.permissions())
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_file_is_replaced_and_keeps_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("prd.json");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o754)).unwrap();
        write_atomic(&file, b"new", Access::Private).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(mode(&file), 0o754);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file stays");
    }

    #[test]
    fn a_link_stays_a_link_and_its_target_gets_the_content() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("real")).unwrap();
        fs::write(dir.path().join("real/tasks.md"), "old").unwrap();
        symlink("real/tasks.md", dir.path().join("one")).unwrap();
        symlink("one", dir.path().join("two")).unwrap();
        write_atomic(&dir.path().join("two"), b"new", Access::Usual).unwrap();
        assert!(fs::symlink_metadata(dir.path().join("two")).unwrap().is_symlink());
        assert!(fs::symlink_metadata(dir.path().join("one")).unwrap().is_symlink());
        assert_eq!(fs::read(dir.path().join("real/tasks.md")).unwrap(), b"new");
    }

    #[test]
    fn a_dangling_link_gets_its_target_made() {
        let dir = tempfile::tempdir().unwrap();
        symlink("later.md", dir.path().join("link")).unwrap();
        write_atomic(&dir.path().join("link"), b"x", Access::Usual).unwrap();
        assert_eq!(fs::read(dir.path().join("later.md")).unwrap(), b"x");
    }

    #[test]
    fn links_in_a_circle_are_an_error_that_names_the_path() {
        let dir = tempfile::tempdir().unwrap();
        symlink("b", dir.path().join("a")).unwrap();
        symlink("a", dir.path().join("b")).unwrap();
        let error = write_atomic(&dir.path().join("a"), b"x", Access::Usual).unwrap_err();
        assert!(error.to_string().contains(&dir.path().join("a").display().to_string()), "{error}");
    }

    #[test]
    fn private_files_and_folders_are_for_the_user_alone() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/b");
        create_private_dir(&folder).unwrap();
        create_private_dir(&folder).unwrap();
        assert_eq!((mode(&folder), mode(&dir.path().join("a"))), (0o700, 0o700));
        write_atomic(&folder.join("state"), b"", Access::Private).unwrap();
        append(&folder.join("log"), b"1\n", Access::Private).unwrap();
        append(&folder.join("log"), b"2\n", Access::Private).unwrap();
        drop(create_private(&folder.join("new")).unwrap());
        for name in ["state", "log", "new"] {
            assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
        }
        assert_eq!(fs::read(folder.join("log")).unwrap(), b"1\n2\n");
        create_private(&folder.join("new")).unwrap_err();
    }

    #[test]
    fn a_full_disk_is_told_apart() {
        let error = append(Path::new("/dev/full"), b"x", Access::Usual).unwrap_err();
        assert!(error.is_no_space(), "{error}");
        assert!(error.to_string().contains("/dev/full"));
        let missing = append(Path::new("/nowhere/at/all"), b"x", Access::Usual).unwrap_err();
        assert!(!missing.is_no_space());
    }

    #[test]
    fn more_room_than_there_is_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        require_space(dir.path(), 1).unwrap();
        assert!(require_space(dir.path(), u64::MAX).unwrap_err().is_no_space());
    }

    #[test]
    fn b6_and_b37_every_id_has_a_file_name_of_its_own() {
        let long_a = format!("{}a", "x".repeat(300));
        let long_b = format!("{}b", "x".repeat(300));
        let texts = ["a-b", "a_b", "A-B", "a/b", "a b", "ä", "", ".", "..", ".a", "a", "a.b", "-", &long_a, &long_b];
        let names: HashSet<String> = texts.iter().map(|t| safe_name(t)).collect();
        assert_eq!(names.len(), texts.len(), "{names:?}");
        for name in &names {
            assert!(name.len() < 120 && !name.starts_with('.') && !name.contains('/') && !name.is_empty(), "{name}");
        }
        assert_eq!(safe_name("US-001"), "US-001");
    }
}
