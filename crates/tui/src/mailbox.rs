//! How a screen is spoken to: a channel whose messages wake it, though it waits for keys and not for a channel.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

/// A channel to a screen.
///
/// # Errors
/// The system gives no more descriptors.
pub fn mailbox<M>() -> io::Result<(Sender<M>, Mailbox<M>)> {
    let (heard, rope) = UnixStream::pair()?;
    heard.set_nonblocking(true)?;
    rope.set_nonblocking(true)?;
    let (to, messages) = mpsc::channel();
    let bell = Arc::new(Bell { rope, rung: AtomicBool::new(false) });
    Ok((Sender { to, bell: Arc::clone(&bell) }, Mailbox { messages, heard, bell }))
}

/// Rung once for all messages that have not been looked for.
#[derive(Debug)]
struct Bell {
    rope: UnixStream,
    rung: AtomicBool,
}

impl Bell {
    fn ring(&self) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            // Full: it has been rung. Closed: nobody is there, as the channel tells.
            drop((&self.rope).write(&[1]));
        }
    }
}

/// The end of whoever has something to tell.
#[derive(Debug)]
pub struct Sender<M> {
    to: mpsc::Sender<M>,
    bell: Arc<Bell>,
}

impl<M> Clone for Sender<M> {
    fn clone(&self) -> Self {
        Self { to: self.to.clone(), bell: Arc::clone(&self.bell) }
    }
}

impl<M> Sender<M> {
    /// Tells it.
    ///
    /// # Errors
    /// The screen is gone; the message comes back.
    pub fn send(&self, message: M) -> Result<(), mpsc::SendError<M>> {
        self.to.send(message)?;
        self.bell.ring();
        Ok(())
    }
}

/// The end of the screen.
#[derive(Debug)]
pub struct Mailbox<M> {
    messages: mpsc::Receiver<M>,
    heard: UnixStream,
    bell: Arc<Bell>,
}

impl<M> Mailbox<M> {
    /// The next message, if one is there; once there is none, the next that comes rings.
    pub fn take(&self) -> Option<M> {
        if let Ok(message) = self.messages.try_recv() {
            return Some(message);
        }
        let mut scrap = [0; 16];
        while matches!((&self.heard).read(&mut scrap), Ok(count) if count > 0) {}
        self.bell.rung.store(false, Ordering::SeqCst);
        // What came before that did not ring, and more than one may have come.
        let message = self.messages.try_recv().ok();
        if message.is_some() {
            self.bell.ring();
        }
        message
    }
}

/// What can be read from once there are messages.
impl<M> AsFd for Mailbox<M> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.heard.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    fn rings<M>(mailbox: &Mailbox<M>) -> bool {
        poll(&mut [PollFd::new(mailbox, PollFlags::IN)], Some(&Timespec::default())).unwrap() == 1
    }

    #[test]
    fn it_rings_until_all_was_taken_and_again_for_the_next() {
        let (sender, mailbox) = mailbox().unwrap();
        assert!(!rings(&mailbox));
        sender.send(1).unwrap();
        sender.clone().send(2).unwrap();
        assert!(rings(&mailbox));
        assert_eq!(mailbox.take(), Some(1));
        assert!(rings(&mailbox));
        assert_eq!((mailbox.take(), mailbox.take()), (Some(2), None));
        assert!(!rings(&mailbox));
        sender.send(3).unwrap();
        assert!(rings(&mailbox));
        assert_eq!((mailbox.take(), mailbox.take()), (Some(3), None));
        assert!(!rings(&mailbox));
    }

    #[test]
    fn no_message_of_many_is_slept_over() {
        const MESSAGES: usize = 20_000;
        let (sender, mailbox) = mailbox().unwrap();
        let telling = std::thread::spawn(move || (0..MESSAGES).for_each(|number| sender.send(number).unwrap()));
        let mut next = 0;
        while next < MESSAGES {
            let wait = Timespec { tv_sec: 20, tv_nsec: 0 };
            assert_eq!(poll(&mut [PollFd::new(&mailbox, PollFlags::IN)], Some(&wait)).unwrap(), 1, "after {next}");
            while let Some(number) = mailbox.take() {
                assert_eq!(number, next);
                next += 1;
            }
        }
        telling.join().unwrap();
    }
}
