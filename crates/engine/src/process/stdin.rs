//! What a child reads, written piece by piece while its output is read.
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;

use super::Stdin;

/// Bytes that are still to be written, and where to.
pub(super) struct Feed {
    pipe: Option<pipe::Sender>,
    bytes: Vec<u8>,
    written: usize,
    /// There may be more to write later.
    stays: bool,
}

impl Feed {
    pub(super) fn new(pipe: Option<pipe::Sender>, stdin: Stdin) -> Self {
        match stdin {
            Stdin::Null => Self { pipe: None, bytes: Vec::new(), written: 0, stays: false },
            Stdin::Bytes(bytes) => Self { pipe: pipe.filter(|_| !bytes.is_empty()), bytes, written: 0, stays: false },
            Stdin::Talk => Self { pipe, bytes: Vec::new(), written: 0, stays: true },
        }
    }

    /// Whether there is something to write and somebody who may read it.
    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some() && !self.bytes.is_empty()
    }

    /// Adds something to write; nobody may be there to read it.
    pub(super) fn say(&mut self, bytes: &[u8]) {
        if self.pipe.is_some() {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Nothing will be added: the pipe is closed after the last byte.
    pub(super) fn hang_up(&mut self) {
        self.stays = false;
        if self.bytes.is_empty() {
            self.pipe = None;
        }
    }

    /// Writes one piece; closes the pipe after the last one, unless more may come, and also when nobody reads any more. Can
    /// be dropped and called again without a byte lost or doubled.
    pub(super) async fn feed(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.write(&self.bytes[self.written..]).await {
            Ok(count) if count > 0 && self.written + count < self.bytes.len() => self.written += count,
            Ok(count) if count > 0 && self.stays => {
                self.bytes = Vec::new();
                self.written = 0;
            }
            // All is written, or the child has closed its end: either way nothing more can be said to it.
            Ok(_) | Err(_) => {
                self.pipe = None;
                self.bytes = Vec::new();
                self.written = 0;
            }
        }
    }
}
