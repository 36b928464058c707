//! A stream under redaction.

use super::Redactor;

/// A stream of pieces: what is not yet a whole line, or may be the beginning of a secret, is held back until it is known.
#[derive(Debug)]
pub struct Stream {
    redactor: Redactor,
    pub(super) held: Vec<u8>,
}

/// So much is held back at most, in bytes.
pub(super) const HELD: usize = 256 << 10;
/// When a line is longer, so much of its end stays behind, in bytes: no known secret is longer.
const OVERLAP: usize = 16 << 10;

impl Stream {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self { redactor, held: Vec::new() }
    }

    /// Takes the next piece and adds what is safe to pass on to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.held.extend_from_slice(bytes);
        if let Some(last) = memchr::memrchr(b'\n', bytes) {
            let whole = self.held.len() - bytes.len() + last + 1;
            let (clean, settled) = self.redactor.redact_settled(&self.held[..whole]);
            out.extend_from_slice(&clean);
            self.held.drain(..settled);
        }
        if self.held.len() > HELD {
            let ready = self.end_between_words();
            out.extend_from_slice(&self.redactor.redact(&self.held[..ready]));
            self.held.drain(..ready);
        }
    }

    /// Adds the rest of the stream to `out`.
    pub fn finish(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.redactor.redact(&self.held));
    }

    /// A place to cut an endless line at, where most likely no secret stands.
    fn end_between_words(&self) -> usize {
        let limit = self.held.len() - OVERLAP;
        let blank = self.held[limit..].iter().position(|byte| matches!(byte, b' ' | b'\t' | b',' | b'"' | b'\n'));
        blank.map_or(limit, |at| limit + at)
    }
}
