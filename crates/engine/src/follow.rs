//! Waiting for what another process does: to files, or to a run.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::runs::RunFolder;

/// Where the system tells nobody of changes, or has no more watches to give, files are looked at this often.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Tells that files have changed.
#[derive(Debug)]
pub struct Changes(Option<platform::Told>);

impl Changes {
    /// Watches nothing yet. Has to be called in a runtime.
    pub fn new() -> Self {
        Self(platform::Told::new().ok())
    }

    /// Watches a file, or the files in a folder, too; what is watched already stays so.
    ///
    /// # Errors
    /// There is no such file.
    pub fn watch(&mut self, path: &Path) -> io::Result<()> {
        match self.0.as_ref().map(|told| told.watch(path)) {
            Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => Err(error),
            Some(Err(_)) => {
                self.0 = None;
                Ok(())
            }
            Some(Ok(())) | None => Ok(()),
        }
    }

    /// Waits until something has changed, or until it is time to look; any number of changes is one. Can be dropped and
    /// called again.
    pub async fn next(&self) -> io::Result<()> {
        if let Some(told) = &self.0 {
            return told.next().await;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
        Ok(())
    }
}

impl Default for Changes {
    fn default() -> Self {
        Self::new()
    }
}

/// Watches a run. What happens after it was made is not missed.
#[derive(Debug)]
pub struct Follower {
    folder: RunFolder,
    journal: Changes,
    /// The process that works on the run, once there is one.
    process: Option<platform::Process>,
}

impl Follower {
    /// Begins to watch. Has to be called in a runtime.
    pub fn of(folder: &RunFolder) -> io::Result<Self> {
        let mut journal = Changes::new();
        journal.watch(&folder.journal())?;
        Ok(Self { folder: folder.clone(), journal, process: platform::Process::of(folder) })
    }

    /// Waits until the journal has changed or the process has ended. Can be dropped and called again.
    pub async fn wait(&mut self) -> io::Result<()> {
        if self.process.is_none() {
            self.process = platform::Process::of(&self.folder);
        }
        let Some(process) = &self.process else { return self.journal.next().await };
        tokio::select! {
            changed = self.journal.next() => changed,
            ended = process.end() => {
                self.process = None;
                ended
            }
        }
    }
}

#[cfg(target_os = "linux")]
mod platform {
    use std::io;
    use std::os::fd::AsFd as _;
    use std::path::Path;

    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use tokio::net::unix::pipe::Receiver;

    use crate::runs::RunFolder;

    /// What the system tells of changes. What it is told by is read like a pipe.
    #[derive(Debug)]
    pub(super) struct Told(Receiver);

    impl Told {
        pub(super) fn new() -> io::Result<Self> {
            let told = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
            Receiver::from_owned_fd_unchecked(told).map(Self)
        }

        pub(super) fn watch(&self, path: &Path) -> io::Result<()> {
            let what = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO;
            inotify::add_watch(self.0.as_fd(), path, what)?;
            Ok(())
        }

        pub(super) async fn next(&self) -> io::Result<()> {
            let mut buffer = [0; 4096];
            let mut told = false;
            loop {
                match self.0.try_read(&mut buffer) {
                    Ok(count) if count > 0 => told = true,
                    Ok(_) => return Ok(()),
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                    Err(_) if told => return Ok(()),
                    Err(_) => self.0.readable().await?,
                }
            }
        }
    }

    /// A process whose end can be waited for: from then on it can be read from, though nothing is there.
    #[derive(Debug)]
    pub(super) struct Process(Receiver);

    impl Process {
        /// The one that works on a run, if there is one.
        pub(super) fn of(folder: &RunFolder) -> Option<Self> {
            let pid = i32::try_from(folder.live_process()?.pid).ok()?;
            let process = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
            Receiver::from_owned_fd_unchecked(process).ok().map(Self)
        }

        pub(super) async fn end(&self) -> io::Result<()> {
            self.0.readable().await
        }
    }
}

/// Weaker than on Linux: nobody is told, and the end of a process is seen with the next look.
#[cfg(not(target_os = "linux"))]
mod platform {
    use std::io;
    use std::path::Path;

    use crate::runs::RunFolder;

    #[derive(Debug)]
    pub(super) enum Told {}

    impl Told {
        pub(super) fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) fn watch(&self, _path: &Path) -> io::Result<()> {
            match *self {}
        }

        pub(super) async fn next(&self) -> io::Result<()> {
            match *self {}
        }
    }

    #[derive(Debug)]
    pub(super) enum Process {}

    impl Process {
        pub(super) fn of(_folder: &RunFolder) -> Option<Self> {
            None
        }

        pub(super) async fn end(&self) -> io::Result<()> {
            match *self {}
        }
    }
}
