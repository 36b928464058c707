//! The workspace: the only files that the file tools reach, however they are named.
//!
//! Every path is opened below the descriptor of the workspace's top, by a call of the system that refuses to leave it: by
//! `..`, by an absolute path, by a link, or by a folder that is swapped for a link meanwhile.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use thiserror::Error;

/// The largest file that is read or changed, in bytes.
const LARGEST: u64 = 16 << 20;

/// Why a file tool does not do what it was asked for, in words for the model.
#[derive(Debug, Error)]
pub(crate) enum PathError {
    /// It is, or leads, outside.
    #[error("{0} is outside of the workspace; only files below {1} can be used")]
    Outside(String, String),
    /// It is git's.
    #[error("{0} is git's own; it cannot be changed")]
    Git(String),
    /// There is nothing.
    #[error("{0} does not exist")]
    Missing(String),
    /// A folder, a pipe, a device.
    #[error("{0} is no ordinary file")]
    NoFile(String),
    /// A file where a folder is wanted.
    #[error("{0} is no folder")]
    NoFolder(String),
    /// Beyond [`LARGEST`].
    #[error("{path} has {size} bytes; more than {LARGEST} cannot be used with this tool")]
    TooLarge {
        /// The file.
        path: String,
        /// Its size in bytes.
        size: u64,
    },
    /// It holds bytes that are no UTF-8.
    #[error("{0} is no text")]
    NoText(String),
    /// What the system says.
    #[error("{path}: {why}")]
    System {
        /// The file.
        path: String,
        /// In the system's words.
        why: String,
    },
}

/// The folder that the agent works in, and the top of the repository around it.
#[derive(Debug)]
pub(crate) struct Workspace {
    top: PathBuf,
    /// Where relative paths count from, below the top.
    below: PathBuf,
    descriptor: OwnedFd,
}

impl Workspace {
    /// Of the folder `current`: the nearest folder at or above it that has a `.git`, else itself.
    ///
    /// # Errors
    /// The folder cannot be opened.
    pub(crate) fn around(current: &Path) -> Result<Self, PathError> {
        let failed = |path: &Path, why: String| PathError::System { path: path.display().to_string(), why };
        let current = current.canonicalize().map_err(|error| failed(current, error.to_string()))?;
        let top = current.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(&current).to_owned();
        let below = current.strip_prefix(&top).unwrap_or(Path::new("")).to_owned();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor =
            rustix::fs::open(&top, flags, Mode::empty()).map_err(|error| failed(&top, error.to_string()))?;
        Ok(Self { top, below, descriptor })
    }

    /// The top, absolute and without links.
    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    /// Where relative paths count from, absolute.
    pub(crate) fn current(&self) -> PathBuf {
        self.top.join(&self.below)
    }

    /// How a path below the top is written for the model: from the current folder if it is below that, else absolute.
    pub(crate) fn shown(&self, path: &Path) -> String {
        let absolute = self.top.join(path);
        absolute.strip_prefix(self.current()).unwrap_or(&absolute).display().to_string()
    }

    /// A path from the top, without `.` and `..`.
    fn within(&self, path: &str) -> Result<PathBuf, PathError> {
        let outside = || PathError::Outside(path.to_owned(), self.top.display().to_string());
        let asked = Path::new(path);
        let from_top = if asked.is_absolute() {
            asked.strip_prefix(&self.top).map_err(|_| outside())?.to_owned()
        } else {
            self.below.join(asked)
        };
        let mut clean = PathBuf::new();
        for component in from_top.components() {
            match component {
                Component::Normal(name) => clean.push(name),
                Component::CurDir => {}
                Component::ParentDir => {
                    if !clean.pop() {
                        return Err(outside());
                    }
                }
                Component::RootDir | Component::Prefix(_) => return Err(outside()),
            }
        }
        Ok(clean)
    }

    fn open(&self, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, PathError> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        // What is only looked at is not opened, and the system takes no more flags then.
        let waiting = if flags.contains(OFlags::PATH) { OFlags::empty() } else { OFlags::NOCTTY | OFlags::NONBLOCK };
        let flags = flags | waiting | OFlags::CLOEXEC;
        loop {
            return match rustix::fs::openat2(&self.descriptor, path, flags, mode, resolve) {
                Ok(descriptor) => Ok(descriptor),
                // A folder was moved meanwhile: the system asks to be asked again.
                Err(Errno::AGAIN | Errno::INTR) => continue,
                Err(error) => Err(self.refusal(path, error)),
            };
        }
    }

    fn refusal(&self, path: &Path, error: Errno) -> PathError {
        let shown = self.shown(path);
        match error {
            Errno::XDEV | Errno::LOOP => PathError::Outside(shown, self.top.display().to_string()),
            Errno::NOENT => PathError::Missing(shown),
            Errno::ISDIR | Errno::NXIO => PathError::NoFile(shown),
            Errno::NOTDIR => PathError::NoFolder(shown),
            error => PathError::System { path: shown, why: error.to_string() },
        }
    }

    fn file(&self, path: &Path, flags: OFlags, mode: Mode) -> Result<File, PathError> {
        let file = File::from(self.open(path, flags, mode)?);
        let kind = file.metadata().map_err(|error| self.system(path, &error))?;
        if !kind.is_file() {
            return Err(PathError::NoFile(self.shown(path)));
        }
        if kind.len() > LARGEST {
            return Err(PathError::TooLarge { path: self.shown(path), size: kind.len() });
        }
        Ok(file)
    }

    fn system(&self, path: &Path, error: &std::io::Error) -> PathError {
        PathError::System { path: self.shown(path), why: error.to_string() }
    }

    /// All bytes of a file.
    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>, PathError> {
        self.read_below(&self.within(path)?)
    }

    /// All bytes of a file whose path counts from the top.
    pub(crate) fn read_below(&self, path: &Path) -> Result<Vec<u8>, PathError> {
        let file = self.file(path, OFlags::RDONLY, Mode::empty())?;
        let mut bytes = Vec::new();
        file.take(LARGEST).read_to_end(&mut bytes).map_err(|error| self.system(path, &error))?;
        Ok(bytes)
    }

    /// All of a file that is text.
    pub(crate) fn read_text(&self, path: &str) -> Result<String, PathError> {
        String::from_utf8(self.read(path)?).map_err(|_| PathError::NoText(path.to_owned()))
    }

    /// Writes the whole of a file; makes it, and the folders above it, if they are not there. True if it is new.
    pub(crate) fn write(&self, path: &str, text: &str) -> Result<bool, PathError> {
        let path = self.within(path)?;
        self.refuse_git(&path)?;
        self.make_folders(path.parent().unwrap_or(Path::new("")))?;
        let is_new = matches!(self.open(&path, OFlags::PATH, Mode::empty()), Err(PathError::Missing(_)));
        // Not cut before it is known to be a file.
        let mut file = self.file(&path, OFlags::WRONLY | OFlags::CREATE, Mode::from_raw_mode(0o666))?;
        let written = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
        written.map_err(|error| self.system(&path, &error))?;
        Ok(is_new)
    }

    /// Git's own files are not written, by whatever way they are reached.
    fn refuse_git(&self, path: &Path) -> Result<(), PathError> {
        let is_gits = |path: &Path| path.components().any(|part| part.as_os_str() == ".git");
        let there =
            path.ancestors().find_map(|above| Some((above, self.open(above, OFlags::PATH, Mode::empty()).ok()?)));
        let real = there.map(|(above, descriptor)| self.real(above, &descriptor)).transpose()?;
        let below = real.as_deref().and_then(|real| real.strip_prefix(&self.top).ok());
        if is_gits(path) || below.is_some_and(is_gits) {
            return Err(PathError::Git(self.shown(path)));
        }
        Ok(())
    }

    fn make_folders(&self, folder: &Path) -> Result<(), PathError> {
        let mut made = PathBuf::new();
        for name in folder.components() {
            let parent = made.clone();
            made.push(name);
            let flags = OFlags::PATH | OFlags::DIRECTORY;
            match self.open(&made, flags, Mode::empty()) {
                Ok(_) => {}
                Err(PathError::Missing(_)) => {
                    let above = self.open(&parent, flags, Mode::empty())?;
                    match rustix::fs::mkdirat(&above, name.as_os_str(), Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(self.refusal(&made, error)),
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Where a folder really is, absolute; it is inside. Without a path, the current folder.
    pub(crate) fn folder(&self, path: Option<&str>) -> Result<PathBuf, PathError> {
        let path = self.within(path.unwrap_or("."))?;
        let descriptor = self.open(&path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
        self.real(&path, &descriptor)
    }

    /// Where a file or folder really is, absolute; it is inside.
    pub(crate) fn place(&self, path: &str) -> Result<PathBuf, PathError> {
        let path = self.within(path)?;
        let descriptor = self.open(&path, OFlags::PATH, Mode::empty())?;
        self.real(&path, &descriptor)
    }

    fn real(&self, path: &Path, descriptor: &OwnedFd) -> Result<PathBuf, PathError> {
        use std::os::fd::AsRawFd as _;
        let link = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
        std::fs::read_link(link).map_err(|error| self.system(path, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A workspace beside a folder with a secret.
    fn world() -> (tempfile::TempDir, Workspace) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("work/sub")).unwrap();
        std::fs::create_dir_all(root.path().join("work/.git")).unwrap();
        std::fs::create_dir_all(root.path().join("out")).unwrap();
        std::fs::write(root.path().join("out/secret"), "secret").unwrap();
        std::fs::write(root.path().join("work/in"), "inside").unwrap();
        let workspace = Workspace::around(&root.path().join("work/sub")).unwrap();
        (root, workspace)
    }

    #[test]
    fn paths_count_from_the_current_folder_and_reach_all_of_the_repository() {
        let (root, workspace) = world();
        assert_eq!(workspace.read("../in").unwrap(), b"inside");
        let absolute = root.path().canonicalize().unwrap().join("work/in");
        assert_eq!(workspace.read(absolute.to_str().unwrap()).unwrap(), b"inside");
        assert!(workspace.write("new/deep/file", "x").unwrap());
        assert!(!workspace.write("new/deep/file", "y").unwrap());
        assert_eq!(std::fs::read_to_string(root.path().join("work/sub/new/deep/file")).unwrap(), "y");
        assert_eq!(workspace.shown(Path::new("sub/new")), "new");
    }

    #[test]
    fn no_way_of_naming_it_reaches_a_file_outside() {
        let (root, workspace) = world();
        let out = root.path().join("out");
        symlink(&out, root.path().join("work/link")).unwrap();
        symlink(out.join("secret"), root.path().join("work/sub/file-link")).unwrap();
        symlink("../../out", root.path().join("work/sub/relative")).unwrap();
        symlink("/proc/self/root", root.path().join("work/sub/magic")).unwrap();
        let absolute = out.join("secret").display().to_string();
        let ways = [
            "../../out/secret",
            "x/../../../out/secret",
            "../link/secret",
            "file-link",
            "relative/secret",
            "magic/etc/passwd",
            "/etc/passwd",
            absolute.as_str(),
        ];
        for way in ways {
            assert!(matches!(workspace.read(way), Err(PathError::Outside(..))), "read {way}");
            assert!(matches!(workspace.write(way, "broken"), Err(PathError::Outside(..))), "write {way}");
            assert!(matches!(workspace.place(way), Err(PathError::Outside(..))), "place {way}");
        }
        assert!(workspace.write("../link/new", "broken").is_err());
        assert!(workspace.write("relative/deep/new", "broken").is_err());
        assert!(matches!(workspace.folder(Some("../link")), Err(PathError::Outside(..))));
        assert_eq!(std::fs::read_to_string(out.join("secret")).unwrap(), "secret");
        assert_eq!(std::fs::read_dir(&out).unwrap().count(), 1);
    }

    #[test]
    fn a_link_that_stays_inside_is_followed() {
        let (root, workspace) = world();
        symlink("../in", root.path().join("work/sub/link")).unwrap();
        assert_eq!(workspace.read("link").unwrap(), b"inside");
    }

    #[test]
    fn what_is_gits_or_no_file_is_not_written_and_never_waited_for() {
        let (root, workspace) = world();
        std::fs::write(root.path().join("work/.git/config"), "").unwrap();
        symlink("../.git", root.path().join("work/sub/folder-link")).unwrap();
        symlink("../.git/config", root.path().join("work/sub/file-link")).unwrap();
        let linked = ["folder-link/config", "folder-link/hooks/deep/new", "file-link"];
        let named = ["../.git/hooks/pre-commit", "../.git/config", "../a/.git/x"];
        for path in named.into_iter().chain(linked) {
            assert!(matches!(workspace.write(path, "x"), Err(PathError::Git(_))), "{path}");
        }
        let pipe = root.path().join("work/sub/pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert!(matches!(workspace.read("pipe"), Err(PathError::NoFile(_))));
        assert!(matches!(workspace.write("pipe", "x"), Err(PathError::NoFile(_))));
        assert!(matches!(workspace.read(".."), Err(PathError::NoFile(_))));
        assert!(matches!(workspace.read("nothing"), Err(PathError::Missing(_))));
        assert!(matches!(workspace.folder(Some("../in")), Err(PathError::NoFolder(_))));
    }
}
