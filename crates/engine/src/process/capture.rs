//! What is kept of a program's output, in bounded memory.
use std::collections::VecDeque;

use super::Capture;

/// What was kept of one output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captured {
    kept: Vec<u8>,
    gap: Option<Gap>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gap {
    /// Where in `kept` bytes are missing.
    at: usize,
    left_out: u64,
}

impl Captured {
    /// What was kept, without a mark where bytes were left out. With [`Capture::Full`] that is all of it.
    pub fn bytes(&self) -> &[u8] {
        &self.kept
    }

    /// How many bytes were left out.
    pub fn left_out(&self) -> u64 {
        self.gap.map_or(0, |gap| gap.left_out)
    }

    /// As text for a person or a prompt: bytes that are no UTF-8 replaced, a gap marked with its size.
    pub fn text(&self) -> String {
        match self.gap {
            None => String::from_utf8_lossy(&self.kept).into_owned(),
            Some(Gap { at, left_out }) => {
                let (head, tail) = self.kept.split_at(at);
                let head = String::from_utf8_lossy(whole_characters_before(head));
                let tail = String::from_utf8_lossy(whole_characters_after(tail));
                format!("{head}\n… {left_out} bytes left out …\n{tail}")
            }
        }
    }
}

/// Without the beginning of a character that the cut went through.
fn whole_characters_before(bytes: &[u8]) -> &[u8] {
    match bytes.utf8_chunks().last() {
        Some(last) if last.invalid().len() < 4 && is_cut_character(last.invalid()) => {
            &bytes[..bytes.len() - last.invalid().len()]
        }
        _ => bytes,
    }
}

/// Whether `bytes` could be the beginning of a character.
fn is_cut_character(bytes: &[u8]) -> bool {
    matches!(std::str::from_utf8(bytes), Err(error) if error.error_len().is_none())
}

/// Without the end of a character that the cut went through: at most three continuation bytes.
fn whole_characters_after(bytes: &[u8]) -> &[u8] {
    let cut = bytes.iter().take(3).take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000).count();
    &bytes[cut..]
}

/// Keeps what a [`Capture`] asks for.
#[derive(Debug)]
pub(super) struct Collector {
    capture: Capture,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

/// More came than [`Capture::Full`] allows.
#[derive(Debug)]
pub(super) struct Overflow;

impl Collector {
    pub(super) fn new(capture: Capture) -> Self {
        Self { capture, head: Vec::new(), tail: VecDeque::new(), left_out: 0 }
    }

    pub(super) fn capture(&self) -> Capture {
        self.capture
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), Overflow> {
        match self.capture {
            Capture::Full { max } => {
                if self.head.len() + bytes.len() > max {
                    return Err(Overflow);
                }
                self.head.extend_from_slice(bytes);
            }
            Capture::HeadTail { head, tail } => {
                let (first, rest) = bytes.split_at(bytes.len().min(head.saturating_sub(self.head.len())));
                self.head.extend_from_slice(first);
                let surplus = (self.tail.len() + rest.len()).saturating_sub(tail);
                let from_tail = surplus.min(self.tail.len());
                self.tail.drain(..from_tail);
                self.tail.extend(&rest[surplus - from_tail..]);
                self.left_out += surplus as u64;
            }
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Captured {
        let gap = (self.left_out > 0).then_some(Gap { at: self.head.len(), left_out: self.left_out });
        let mut kept = self.head;
        kept.extend(self.tail);
        Captured { kept, gap }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(capture: Capture, chunks: &[&[u8]]) -> Captured {
        let mut collector = Collector::new(capture);
        for chunk in chunks {
            collector.push(chunk).unwrap();
        }
        collector.finish()
    }

    #[test]
    fn head_and_tail_are_the_same_however_the_bytes_arrive() {
        let capture = Capture::HeadTail { head: 3, tail: 4 };
        let all = b"0123456789";
        for size in 1..=all.len() {
            let captured = kept(capture, &all.chunks(size).collect::<Vec<_>>());
            assert_eq!(captured.bytes(), b"0126789", "in chunks of {size}");
            assert_eq!(captured.left_out(), 3);
            assert_eq!(captured.text(), "012\n… 3 bytes left out …\n6789");
        }
    }

    #[test]
    fn nothing_is_marked_when_nothing_was_left_out() {
        let captured = kept(Capture::HeadTail { head: 3, tail: 4 }, &[b"01", b"23456"]);
        assert_eq!((captured.text().as_str(), captured.left_out()), ("0123456", 0));
    }

    #[test]
    fn a_cut_through_a_character_shows_no_half_of_it() {
        let captured = kept(Capture::HeadTail { head: 4, tail: 4 }, &["é…éé…é".as_bytes()]);
        assert_eq!(captured.text(), "é\n… 6 bytes left out …\né");
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_kept() {
        let captured = kept(Capture::Full { max: 10 }, &[b"a\xffb\0"]);
        assert_eq!((captured.bytes(), captured.text().as_str()), (b"a\xffb\0".as_slice(), "a\u{fffd}b\0"));
    }

    #[test]
    fn more_than_the_full_capture_allows_is_refused() {
        let mut collector = Collector::new(Capture::Full { max: 4 });
        assert!(collector.push(b"1234").is_ok());
        assert!(collector.push(b"5").is_err());
    }
}
