//! Bytes into lines, in bounded memory.

use memchr::memchr;

/// How much of a line that is too long is kept, in bytes.
const HEAD: usize = 4096;
/// A buffer larger than this is given back after use, in bytes.
const KEEP: usize = 1 << 20;

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    Whole(&'a [u8]),
    TooLong { head: &'a [u8] },
}

/// Splits a stream at newlines, however it is cut into pieces. A line above the cap is skipped but for its head.
#[derive(Debug)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
    cap: usize,
    skipping: bool,
}

impl Lines {
    pub(crate) fn new(cap: usize) -> Self {
        Self { buffer: Vec::new(), cap, skipping: false }
    }

    pub(crate) fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
        while let Some(at) = memchr(b'\n', bytes) {
            let line = &bytes[..at];
            bytes = &bytes[at + 1..];
            if self.buffer.is_empty() && !self.skipping && line.len() <= self.cap {
                each(Line::Whole(without_return(line)));
            } else {
                self.take(line);
                self.give(&mut each);
            }
        }
        self.take(bytes);
    }

    /// The last line, if it has no newline.
    pub(crate) fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        if self.skipping || !self.buffer.is_empty() {
            self.give(&mut each);
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        if self.skipping {
            return;
        }
        if self.buffer.len() + bytes.len() <= self.cap {
            self.buffer.extend_from_slice(bytes);
            return;
        }
        let missing = HEAD.min(self.cap).saturating_sub(self.buffer.len()).min(bytes.len());
        self.buffer.extend_from_slice(&bytes[..missing]);
        self.buffer.truncate(HEAD.min(self.cap));
        self.buffer.shrink_to(KEEP);
        self.skipping = true;
    }

    fn give(&mut self, each: &mut impl FnMut(Line<'_>)) {
        if self.skipping {
            each(Line::TooLong { head: &self.buffer });
        } else {
            each(Line::Whole(without_return(&self.buffer)));
        }
        self.skipping = false;
        self.buffer.clear();
        self.buffer.shrink_to(KEEP);
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(pieces: &[&[u8]], cap: usize) -> Vec<(bool, Vec<u8>)> {
        let mut lines = Lines::new(cap);
        let mut seen = Vec::new();
        let mut each = |line: Line<'_>| match line {
            Line::Whole(line) => seen.push((true, line.to_vec())),
            Line::TooLong { head } => seen.push((false, head.to_vec())),
        };
        for piece in pieces {
            lines.push(piece, &mut each);
        }
        lines.finish(&mut each);
        seen
    }

    #[test]
    fn a_line_above_the_cap_is_skipped_and_the_next_one_is_read() {
        let seen = split(&[b"aaaaaaaaaa", b"aaaa\nok\r\nlast"], 8);
        assert_eq!(seen, [(false, b"aaaaaaaa".to_vec()), (true, b"ok".to_vec()), (true, b"last".to_vec())]);
    }

    #[test]
    fn a_line_without_end_takes_no_more_memory_than_the_cap() {
        let mut lines = Lines::new(1 << 16);
        for _ in 0..1000 {
            lines.push(&[b'x'; 4096], |_| panic!("no line has ended"));
        }
        assert!(lines.buffer.capacity() <= 1 << 18, "{}", lines.buffer.capacity());
    }

    proptest! {
        #[test]
        fn the_lines_are_the_same_however_the_bytes_are_split(
            bytes in prop::collection::vec(prop::sample::select(b"ab\n\r".to_vec()), 0..60),
            cuts in prop::collection::vec(0usize..60, 0..6),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
            prop_assert_eq!(split(&pieces, 5), split(&[&bytes], 5));
        }
    }
}
