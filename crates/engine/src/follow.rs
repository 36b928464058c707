//! Waiting for what another process does to a run: an event in its journal, or the end of that process.

pub use platform::Follower;

#[cfg(target_os = "linux")]
mod platform {
    use std::io;
    use std::os::fd::OwnedFd;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::fs::inotify;
    use rustix::io::Errno;
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use crate::runs::RunFolder;

    /// Watches a run. What happens after it was made is not missed.
    #[derive(Debug)]
    pub struct Follower {
        folder: RunFolder,
        journal: OwnedFd,
        /// Of the process that works on the run, once there is one.
        process: Option<OwnedFd>,
    }

    impl Follower {
        /// Begins to watch.
        pub fn of(folder: &RunFolder) -> io::Result<Self> {
            let journal = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
            inotify::add_watch(&journal, folder.journal(), inotify::WatchFlags::MODIFY)?;
            Ok(Self { folder: folder.clone(), journal, process: process_of(folder) })
        }

        /// Waits until the journal has changed or the process has ended.
        pub fn wait(&mut self) -> io::Result<()> {
            if self.process.is_none() {
                self.process = process_of(&self.folder);
            }
            let mut watched = vec![PollFd::new(&self.journal, PollFlags::IN)];
            watched.extend(self.process.as_ref().map(|process| PollFd::new(process, PollFlags::IN)));
            while let Err(error) = poll(&mut watched, None) {
                if error != Errno::INTR {
                    return Err(error.into());
                }
            }
            self.forget_changes()
        }

        /// Any number of changes is one.
        fn forget_changes(&self) -> io::Result<()> {
            let mut buffer = [0; 4096];
            loop {
                match rustix::io::read(&self.journal, &mut buffer) {
                    Ok(0) | Err(Errno::AGAIN) => return Ok(()),
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    fn process_of(folder: &RunFolder) -> Option<OwnedFd> {
        let pid = i32::try_from(folder.live_process()?.pid).ok()?;
        pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use std::io;
    use std::time::Duration;

    use crate::runs::RunFolder;

    /// Watches a run. Weaker than on Linux: nobody is told, so that it is looked at again and again.
    #[derive(Debug)]
    pub struct Follower;

    impl Follower {
        /// Begins to watch.
        #[expect(clippy::unnecessary_wraps, reason = "the other platform's signature")]
        pub fn of(_folder: &RunFolder) -> io::Result<Self> {
            Ok(Self)
        }

        /// Waits until it is time to look again.
        #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "the other platform's signature")]
        pub fn wait(&mut self) -> io::Result<()> {
            std::thread::sleep(Duration::from_millis(250));
            Ok(())
        }
    }
}
