//! What a child reads, written piece by piece while its output is read.
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;

use super::Stdin;

/// Bytes that are still to be written, and where to.
pub(super) struct Feed {
    pipe: Option<pipe::Sender>,
    bytes: Vec<u8>,
    written: usize,
}

impl Feed {
    pub(super) fn new(pipe: Option<pipe::Sender>, stdin: Stdin) -> Self {
        match stdin {
            Stdin::Null => Self { pipe: None, bytes: Vec::new(), written: 0 },
            Stdin::Bytes(bytes) => Self { pipe: pipe.filter(|_| !bytes.is_empty()), bytes, written: 0 },
        }
    }

    /// Whether there is something to write and somebody who may read it.
    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Writes one piece; closes the pipe after the last one, and also when nobody reads any more. Can be dropped and
    /// called again without a byte lost or doubled.
    pub(super) async fn feed(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.write(&self.bytes[self.written..]).await {
            Ok(count) if count > 0 && self.written + count < self.bytes.len() => self.written += count,
            // All is written, or the child has closed its end: either way nothing more can be said to it.
            Ok(_) | Err(_) => {
                self.pipe = None;
                self.bytes = Vec::new();
                self.written = 0;
            }
        }
    }
}
