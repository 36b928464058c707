//! Text without its line breaks, so that what was wrapped is found in one piece. A break is a line end with the
//! indentation after it, also as JSON writes one (`\n`), however often that was written as JSON again.
//!
//! A text is joined only where somebody looks: in nearly all of it no secret can stand.

use std::ops::Range;

use memchr::{memchr3, memrchr3};

/// Who looks beyond what is joined gets so much more of the text at once, in bytes.
const STEP: usize = 128;

/// A part of a text without its breaks. It goes on as far as somebody looks. *Places* are those of the text, *indices*
/// those of what was joined.
pub(super) struct Joined<'t> {
    text: &'t [u8],
    /// The place of the first byte.
    from: usize,
    /// The place behind the last one.
    next: usize,
    bytes: Vec<u8>,
    /// For each break the index before which it stood, and the bytes taken out up to and with it.
    breaks: Vec<(usize, usize)>,
}

impl<'t> Joined<'t> {
    /// Nothing yet of `text`, from its beginning on.
    pub(super) fn of(text: &'t [u8]) -> Self {
        Self { text, from: 0, next: 0, bytes: Vec::new(), breaks: Vec::new() }
    }

    /// Goes to another part, which begins at least `before` bytes ahead of `place` if there are so many; the index of
    /// `place`.
    pub(super) fn go_to(&mut self, place: usize, before: usize) -> usize {
        self.from = back(self.text, place, before);
        self.next = self.from;
        self.bytes.clear();
        self.breaks.clear();
        self.take_until(place)
    }

    /// Joins the text up to `place`, and all of a break that `place` is in; the index of what comes then.
    pub(super) fn take_until(&mut self, place: usize) -> usize {
        while self.next < place {
            let found = next_break(self.text, self.next, place);
            let end = found.as_ref().map_or(place, |found| found.start);
            self.bytes.extend_from_slice(&self.text[self.next..end]);
            self.next = end;
            if let Some(found) = found {
                self.next = found.end;
                self.breaks.push((self.bytes.len(), self.next - self.from - self.bytes.len()));
            }
        }
        self.bytes.len()
    }

    /// So many bytes, if the text has them.
    pub(super) fn reach(&mut self, length: usize) -> &[u8] {
        while self.bytes.len() < length && self.grow() {}
        &self.bytes[..length.min(self.bytes.len())]
    }

    /// All of the text, as it is.
    pub(super) fn text(&self) -> &'t [u8] {
        self.text
    }

    /// All that is joined by now.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The byte at an index; `None` behind the end of the text.
    pub(super) fn byte(&mut self, at: usize) -> Option<u8> {
        self.reach(at + 1).get(at).copied()
    }

    /// Where the bytes end that `may` be, from `start` on and at most so many.
    pub(super) fn run(&mut self, start: usize, most: usize, may: impl Fn(u8) -> bool) -> usize {
        let mut end = start;
        while end < start + most && self.byte(end).is_some_and(&may) {
            end += 1;
        }
        end
    }

    /// Joins some more; false at the end of the text.
    fn grow(&mut self) -> bool {
        let is_more = self.next < self.text.len();
        self.take_until(self.text.len().min(self.next + STEP));
        is_more
    }

    /// Where a byte stands in the text.
    pub(super) fn place(&self, at: usize) -> usize {
        let before = self.breaks.partition_point(|(index, _)| *index <= at);
        let taken = before.checked_sub(1).and_then(|last| self.breaks.get(last)).map_or(0, |(_, taken)| *taken);
        self.from + at + taken
    }

    /// Whether a break stood right before this byte, or the text ends or begins here.
    pub(super) fn is_break(&mut self, at: usize) -> bool {
        at == 0 || self.byte(at).is_none() || self.breaks.binary_search_by_key(&at, |(index, _)| *index).is_ok()
    }

    /// The breaks inside a range, by the index before which they stood.
    pub(super) fn breaks_within(&self, start: usize, end: usize) -> impl Iterator<Item = usize> {
        let first = self.breaks.partition_point(|(index, _)| *index <= start);
        self.breaks[first..].iter().map(|(index, _)| *index).take_while(move |index| *index < end)
    }
}

/// Whether there is anything that a break begins with.
pub(super) fn may_hold_a_break(text: &[u8]) -> bool {
    memchr3(b'\n', b'\r', b'\\', text).is_some()
}

/// All of a text.
pub(super) fn without_breaks(text: &[u8]) -> Vec<u8> {
    let mut joined = Joined::of(text);
    joined.take_until(text.len());
    joined.bytes
}

/// The first break that begins from `at` to `until`.
fn next_break(text: &[u8], mut at: usize, until: usize) -> Option<Range<usize>> {
    loop {
        let start = at + memchr3(b'\n', b'\r', b'\\', text.get(at..until)?)?;
        // Nearly all escapes are of quotes.
        if let [b'\\', next, ..] = text[start..]
            && !matches!(next, b'n' | b'r' | b'\\' | b'\n' | b'\r')
        {
            at = start + 2;
            continue;
        }
        let end = end_of_break(text, start);
        if end > start {
            return Some(start..end);
        }
        at = start + backslashes(&text[start..]);
    }
}

/// The place `count` bytes ahead of another, or the beginning. Breaks count for nothing, and it is in none.
pub(super) fn back(text: &[u8], mut at: usize, mut count: usize) -> usize {
    while count > 0 && at > 0 {
        let all = at.saturating_sub(count);
        let last = memrchr3(b'\n', b'\r', b'\\', &text[all..at]);
        let start = last.map_or_else(|| start_of_break(text, all), |last| all + last);
        count = count.saturating_sub(at - end_of_break(text, start).min(at));
        at = start;
    }
    start_of_break(text, at)
}

/// The beginning of the break that `at` is in or behind; `at` where there is none.
pub(super) fn start_of_break(text: &[u8], at: usize) -> usize {
    let without_backslashes = |end: usize| end - text[..end].iter().rev().take_while(|byte| **byte == b'\\').count();
    let is_in_escape = matches!(text.get(at), Some(b'n' | b'r' | b'\n' | b'\r' | b'\\'));
    let mut start = if is_in_escape { without_backslashes(at) } else { at };
    loop {
        let blanks = text[..start].iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        match &text[..start - blanks] {
            [before @ .., b'\n' | b'\r'] | [before @ .., b'\\', b'n' | b'r'] => {
                start = without_backslashes(before.len());
            }
            _ => return start,
        }
    }
}

/// Behind the break that begins at `start`, or `start` if none does.
pub(super) fn end_of_break(text: &[u8], start: usize) -> usize {
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn breaks_of_every_writing_are_taken_out_and_every_byte_is_found_again() {
        for text in ["ab\ncd", "ab\r\n  cd", r"ab\ncd", r"ab\\r\\ncd", "ab\\\n\tcd"] {
            let mut joined = Joined::of(text.as_bytes());
            assert_eq!(joined.reach(10), b"abcd", "{text:?}");
            assert_eq!(text.as_bytes()[joined.place(2)], b'c', "{text:?}");
            assert_eq!(joined.place(1), 1, "{text:?}");
            assert!(joined.is_break(2) && !joined.is_break(1), "{text:?}");
            assert_eq!(joined.breaks_within(0, 4).collect::<Vec<_>>(), [2], "{text:?}");
        }
        for text in ["plain", r"C:\tmp", r"a\\", "\\"] {
            assert_eq!(without_breaks(text.as_bytes()), text.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn a_part_is_what_it_is_in_the_whole(text in "[ab n\\\\\n\r\"]{0,40}", place in 0usize..40, before in 0usize..12) {
            let text = text.as_bytes();
            let mut whole = Joined::of(text);
            let index = whole.take_until(place.min(text.len()));
            let place = whole.next;
            whole.take_until(text.len());
            let mut part = Joined::of(text);
            let at = part.go_to(place, before);
            prop_assert!(at >= before.min(index), "{at} of {index}");
            part.take_until(text.len());
            prop_assert_eq!(part.bytes(), &whole.bytes()[index - at..]);
            for more in 0..part.bytes().len() {
                prop_assert_eq!(part.place(more), whole.place(index - at + more));
            }
        }
    }
}
