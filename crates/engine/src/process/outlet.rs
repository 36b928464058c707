//! One output of a child, read piece by piece.
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The largest piece, in bytes.
const PIECE: usize = 64 * 1024;
/// What is still read after everybody who mattered is gone: more than any pipe holds, so that nothing written before
/// the end is lost, and little enough that a stranger who goes on writing can't keep us.
const LAST_PIECES: usize = 4 * 1024 * 1024;

/// A pipe and its buffer.
#[derive(Debug)]
pub(super) struct Outlet<R> {
    pipe: Option<R>,
    buffer: Vec<u8>,
    drained: usize,
}

impl<R: AsyncRead + Unpin> Outlet<R> {
    pub(super) fn new(pipe: R) -> Self {
        Self { pipe: Some(pipe), buffer: vec![0; PIECE], drained: 0 }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.pipe.is_none()
    }

    pub(super) fn close(&mut self) {
        self.pipe = None;
    }

    /// Waits for bytes and says how many there are; none at the end. Never returns once it is closed. Can be dropped
    /// and called again.
    pub(super) async fn read(&mut self) -> usize {
        match &mut self.pipe {
            // A pipe that can't be read has nothing more to give.
            Some(pipe) => pipe.read(&mut self.buffer).await.unwrap_or(0),
            None => std::future::pending().await,
        }
    }

    /// The bytes of the last read; an empty one closes the pipe.
    pub(super) fn take(&mut self, count: usize, draining: bool) -> Vec<u8> {
        if draining {
            self.drained += count;
        }
        if count == 0 || self.drained > LAST_PIECES {
            self.close();
        }
        self.buffer[..count].to_vec()
    }
}
