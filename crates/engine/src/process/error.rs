//! Why a program could not be started or followed, with its path and what to do.
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::Stream;

/// A program that could not be started, or whose run can't be vouched for.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// There is no such program.
    #[error("program `{}` not found{}; install it or give its path", program.display(), looked_in(.path.as_deref()))]
    NotFound {
        /// As it was called.
        program: OsString,
        /// The search path of the child, where the program was a bare name.
        path: Option<OsString>,
    },
    /// The sandbox could not be made around it, so it was not started.
    #[error(
        "`{}` was not started, since it could not be put into the sandbox: {why}; `ralphloop doctor` shows what the sandbox needs",
        program.display()
    )]
    NotConfined {
        /// As it was called.
        program: OsString,
        /// What the system refused.
        why: String,
    },
    /// The file is there and the system refuses to run it.
    #[error("`{}` can't be executed: {source}; check its permissions and its format", program.display())]
    NotExecutable {
        /// The file.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A script whose first line names an interpreter that is missing.
    #[error("script `{}` asks for the interpreter `{}`, which is not there", program.display(), interpreter.display())]
    BadInterpreter {
        /// The script.
        program: PathBuf,
        /// What its first line names.
        interpreter: PathBuf,
    },
    /// The folder in which it should run is missing or closed.
    #[error("can't run `{}` in {}: {source}", program.display(), cwd.display())]
    BadDirectory {
        /// As it was called.
        program: OsString,
        /// The folder.
        cwd: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Its arguments or environment are longer than the system takes.
    #[error("the arguments of `{}` are too long for the system ({bytes} bytes); pass long text through standard input", program.display())]
    TooLong {
        /// As it was called.
        program: OsString,
        /// All arguments together.
        bytes: usize,
    },
    /// Anything else the system refused.
    #[error("`{}` failed to start or be followed: {source}", program.display())]
    Io {
        /// As it was called.
        program: OsString,
        /// What the system said.
        source: io::Error,
    },
    /// It wrote more than the call keeps, and was ended.
    #[error("`{}` wrote more than {max} bytes to its {stream} and was ended", program.display())]
    TooMuchOutput {
        /// As it was called.
        program: OsString,
        /// Where.
        stream: Stream,
        /// The limit of [`Capture::Full`](super::Capture::Full), in bytes.
        max: usize,
    },
    /// Some of it resist even KILL: they wait uninterruptibly in the system, or belong to another user.
    #[error("`{}` (process {pid}) could not be ended: {count} of its processes are still there; end them by hand", program.display())]
    NotGone {
        /// As it was called.
        program: OsString,
        /// Its process id, which is also its group and its session.
        pid: u32,
        /// How many are left.
        count: usize,
    },
    /// The supervisor did not do its part; what could be found of the program was ended.
    #[error("the supervisor {} of `{}` {problem}", supervisor.display(), program.display())]
    Supervisor {
        /// As the program was called.
        program: OsString,
        /// Its supervisor.
        supervisor: PathBuf,
        /// What went wrong.
        problem: String,
    },
}

fn looked_in(path: Option<&OsStr>) -> String {
    path.map(|path| format!(" in PATH ({})", path.display())).unwrap_or_default()
}

/// What is known of a start that failed.
pub(super) struct FailedStart<'a> {
    pub(super) program: &'a OsStr,
    pub(super) args: &'a [OsString],
    pub(super) cwd: &'a Path,
    /// The child's search path.
    pub(super) path: Option<&'a OsStr>,
}

impl FailedStart<'_> {
    /// Finds out what the system's error number means here: `ENOENT` alone stands for a missing program, a missing
    /// interpreter and a missing folder.
    pub(super) fn diagnose(&self, source: io::Error) -> SpawnError {
        let program = self.program.to_owned();
        if let Err(source) = std::fs::read_dir(self.cwd) {
            return SpawnError::BadDirectory { program, cwd: self.cwd.to_owned(), source };
        }
        match source.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            Some(rustix::io::Errno::TOOBIG) => {
                SpawnError::TooLong { program, bytes: self.args.iter().map(|arg| arg.len() + 1).sum() }
            }
            Some(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => match self.find() {
                Some(file) => match interpreter(&file) {
                    Some(interpreter) if !self.cwd.join(&interpreter).exists() => {
                        SpawnError::BadInterpreter { program: file, interpreter }
                    }
                    _ => SpawnError::NotExecutable { program: file, source },
                },
                None => SpawnError::NotFound {
                    program,
                    path: if self.is_bare_name() { self.path.map(OsStr::to_owned) } else { None },
                },
            },
            Some(rustix::io::Errno::ACCESS | rustix::io::Errno::NOEXEC) => {
                SpawnError::NotExecutable { program: self.find().unwrap_or_else(|| self.program.into()), source }
            }
            _ => SpawnError::Io { program, source },
        }
    }

    fn is_bare_name(&self) -> bool {
        !self.program.as_bytes().contains(&b'/')
    }

    /// The file that the system tried, if there is one.
    fn find(&self) -> Option<PathBuf> {
        if !self.is_bare_name() {
            return Some(self.cwd.join(self.program)).filter(|file| file.exists());
        }
        std::env::split_paths(self.path?)
            .map(|folder| self.cwd.join(folder).join(self.program))
            .find(|file| file.is_file())
    }
}

/// The interpreter on a script's first line (`#! /path argument`), of which the kernel reads 256 bytes.
fn interpreter(file: &Path) -> Option<PathBuf> {
    use io::Read as _;
    let mut head = Vec::new();
    std::fs::File::open(file).ok()?.take(256).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let path = line.trim_ascii().split(|byte| *byte == b' ' || *byte == b'\t').next()?;
    (!path.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(path)))
}
