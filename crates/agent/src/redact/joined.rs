//! Text without its line breaks, so that what was wrapped is found in one piece. A break is a line end with the
//! indentation after it, also as JSON writes one (`\n`), however often that was written as JSON again.

use std::borrow::Cow;

/// The text, and where breaks were taken out of it.
pub(super) struct Joined<'t> {
    /// Without breaks.
    pub(super) bytes: Cow<'t, [u8]>,
    /// For each break the index in `bytes` before which it stood, and the bytes taken out up to and with it.
    breaks: Vec<(usize, usize)>,
}

impl<'t> Joined<'t> {
    /// Takes the breaks out of `text`.
    pub(super) fn of(text: &'t [u8]) -> Self {
        let mut bytes: Vec<u8> = Vec::new();
        let mut breaks = Vec::new();
        let (mut at, mut kept_from, mut taken) = (0, 0, 0);
        while let Some(found) = memchr::memchr3(b'\n', b'\r', b'\\', &text[at..]) {
            let start = at + found;
            // Nearly all escapes are of quotes.
            if let [b'\\', next, ..] = text[start..]
                && !matches!(next, b'n' | b'r' | b'\\' | b'\n' | b'\r')
            {
                at = start + 2;
                continue;
            }
            let end = end_of_break(text, start);
            if end == start {
                at = start + backslashes(&text[start..]);
                continue;
            }
            if breaks.is_empty() {
                bytes.reserve(text.len());
            }
            bytes.extend_from_slice(&text[kept_from..start]);
            taken += end - start;
            breaks.push((bytes.len(), taken));
            (at, kept_from) = (end, end);
        }
        if breaks.is_empty() {
            return Self { bytes: Cow::Borrowed(text), breaks };
        }
        bytes.extend_from_slice(&text[kept_from..]);
        Self { bytes: Cow::Owned(bytes), breaks }
    }

    /// Where a byte stands in the text.
    pub(super) fn original(&self, at: usize) -> usize {
        let before = self.breaks.partition_point(|(index, _)| *index <= at);
        at + before.checked_sub(1).and_then(|last| self.breaks.get(last)).map_or(0, |(_, taken)| *taken)
    }

    /// Whether a break stood right before this byte, or the text ends or begins here.
    pub(super) fn is_break(&self, at: usize) -> bool {
        at == 0 || at >= self.bytes.len() || self.breaks.binary_search_by_key(&at, |(index, _)| *index).is_ok()
    }

    /// The breaks inside a range, by the index before which they stood.
    pub(super) fn breaks_within(&self, start: usize, end: usize) -> impl Iterator<Item = usize> {
        let first = self.breaks.partition_point(|(index, _)| *index <= start);
        self.breaks[first..].iter().map(|(index, _)| *index).take_while(move |index| *index < end)
    }
}

/// Behind the break that begins at `start`, or `start` if none does.
fn end_of_break(text: &[u8], start: usize) -> usize {
    let mut end = start;
    while let Some(byte) = text.get(end) {
        match byte {
            b'\n' | b'\r' => end += 1,
            b' ' | b'\t' if end > start => end += 1,
            b'\\' => match text.get(end + backslashes(&text[end..])) {
                Some(b'n' | b'r' | b'\n' | b'\r') => end += backslashes(&text[end..]) + 1,
                _ => break,
            },
            _ => break,
        }
    }
    end
}

fn backslashes(text: &[u8]) -> usize {
    text.iter().take_while(|byte| **byte == b'\\').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaks_of_every_writing_are_taken_out_and_every_byte_is_found_again() {
        for text in ["ab\ncd", "ab\r\n  cd", r"ab\ncd", r"ab\\r\\ncd", "ab\\\n\tcd"] {
            let joined = Joined::of(text.as_bytes());
            assert_eq!(&*joined.bytes, b"abcd", "{text:?}");
            assert_eq!(text.as_bytes()[joined.original(2)], b'c', "{text:?}");
            assert_eq!(joined.original(1), 1, "{text:?}");
            assert!(joined.is_break(2) && !joined.is_break(1), "{text:?}");
            assert_eq!(joined.breaks_within(0, 4).collect::<Vec<_>>(), [2], "{text:?}");
        }
        for text in ["plain", r"C:\tmp", r"a\\", "\\"] {
            assert_eq!(&*Joined::of(text.as_bytes()).bytes, text.as_bytes());
        }
    }
}
