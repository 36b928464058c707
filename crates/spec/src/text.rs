//! Bytes of a spec file as text with positions: the checks that every format shares before its own grammar begins.

use crate::error::{ErrorClass, SpecError};

/// Length of the byte order mark in UTF-8.
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// A decoded file. Offsets into `body` plus `base` are offsets into the file's bytes.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    /// How the file is called in messages.
    pub file: &'a str,
    /// Bytes before `body`: 3 with a byte order mark, else 0.
    pub base: usize,
    /// The text without the byte order mark.
    pub body: &'a str,
    /// Offsets into `body` at which the lines start.
    starts: Vec<usize>,
}

/// A place in a file, both numbers from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub line: u32,
    pub column: u32,
}

impl<'a> Text<'a> {
    /// UTF-8 with at most one byte order mark, not blank, without the markers of an unfinished merge.
    pub(crate) fn decode(file: &'a str, bytes: &'a [u8]) -> Result<Self, SpecError> {
        let base = if bytes.starts_with(BOM) { BOM.len() } else { 0 };
        let raw = bytes.get(base..).unwrap_or_default();
        let body = std::str::from_utf8(raw).map_err(|error| {
            let line = 1 + raw.iter().take(error.valid_up_to()).filter(|b| **b == b'\n').count();
            SpecError::new(ErrorClass::NotUtf8, file, "the file is not UTF-8 text")
                .at_line(saturate(line))
                .with_help("save it as UTF-8 (UTF-16 and Latin-1 are not read)")
        })?;
        if let Some(at) = body.find('\0') {
            let line = 1 + body[..at].matches('\n').count();
            return Err(SpecError::new(ErrorClass::NotUtf8, file, "the file holds zero bytes, so it is no UTF-8 text")
                .at_line(saturate(line))
                .with_help("save it as UTF-8 (UTF-16 is not read), or restore it from version control"));
        }
        let text = Self { file, base, body, starts: line_starts(body) };
        text.refuse_blank()?;
        text.refuse_merge_conflict()?;
        Ok(text)
    }

    fn refuse_blank(&self) -> Result<(), SpecError> {
        if self.body.trim().is_empty() {
            return Err(SpecError::new(ErrorClass::EmptyFile, self.file, "the file is empty")
                .with_help("write the stories into it, or name another file"));
        }
        Ok(())
    }

    fn refuse_merge_conflict(&self) -> Result<(), SpecError> {
        let mut opened = None;
        for (number, line) in self.lines() {
            if opened.is_none() && (line.starts_with("<<<<<<< ") || line == "<<<<<<<") {
                opened = Some(number);
            } else if let Some(start) = opened
                && line == "======="
            {
                return Err(SpecError::new(ErrorClass::MergeConflict, self.file, "a merge was left unfinished here")
                    .at_line(start)
                    .with_help(
                        "choose one side, remove the lines that begin with <<<<<<<, ======= and >>>>>>>, then run again",
                    ));
            }
        }
        Ok(())
    }

    /// The lines without their ends, numbered from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (u32, &'a str)> {
        self.numbered().map(|(number, _, line)| (number, line))
    }

    /// The lines without their ends: number from 1, offset in `body`, text.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (u32, usize, &'a str)> {
        let body = self.body;
        self.starts.iter().enumerate().map(move |(index, start)| {
            let end = self.starts.get(index + 1).map_or(body.len(), |next| *next);
            let line = body.get(*start..end).unwrap_or_default();
            let line = line.strip_suffix('\n').unwrap_or(line);
            (saturate(index + 1), *start, line.strip_suffix('\r').unwrap_or(line))
        })
    }

    /// Where an offset into `body` stands.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let index = self.line_index(offset);
        let start = self.starts.get(index - 1).copied().unwrap_or(0);
        let column = self.body.get(start..offset).map_or(0, |before| before.chars().count());
        Position { line: saturate(index), column: saturate(column + 1) }
    }

    /// The line of an offset into `body`.
    pub(crate) fn line(&self, offset: usize) -> u32 {
        saturate(self.line_index(offset))
    }

    fn line_index(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).max(1)
    }

    /// The offset into `body` of a line (from 1) and a byte column (from 1).
    pub(crate) fn offset(&self, line: usize, byte_column: usize) -> usize {
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(self.body.len());
        (start + byte_column.saturating_sub(1)).min(self.body.len())
    }
}

fn line_starts(body: &str) -> Vec<usize> {
    let mut starts = vec![0];
    starts.extend(body.match_indices('\n').map(|(at, _)| at + 1).filter(|start| *start < body.len()));
    starts
}

/// Files with more than four thousand million lines are not met; a wrong number would be better than a panic.
pub(crate) fn saturate(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_skipped_but_counted_in_offsets() {
        let text = Text::decode("a", b"\xEF\xBB\xBFab\ncd").unwrap();
        assert_eq!((text.base, text.body), (3, "ab\ncd"));
        assert_eq!(text.position(4), Position { line: 2, column: 2 });
    }

    #[test]
    fn utf16_and_latin1_are_refused_with_their_line() {
        let error = Text::decode("a", b"ok\n\xE4").unwrap_err();
        assert_eq!((error.class, error.line), (ErrorClass::NotUtf8, Some(2)));
        assert_eq!(Text::decode("a", b"\xFF\xFEa\0").unwrap_err().class, ErrorClass::NotUtf8);
        let error = Text::decode("a", b"a\nb\0c\0").unwrap_err();
        assert_eq!((error.class, error.line), (ErrorClass::NotUtf8, Some(2)));
    }

    #[test]
    fn only_blanks_is_an_empty_file() {
        assert_eq!(Text::decode("a", b"\xEF\xBB\xBF \r\n").unwrap_err().class, ErrorClass::EmptyFile);
    }

    #[test]
    fn a_lone_marker_line_is_no_conflict() {
        assert!(Text::decode("a", b"<<<<<<< see the manual\ntext").is_ok());
        let error = Text::decode("a", b"x\r\n<<<<<<< HEAD\r\na\r\n=======\r\nb").unwrap_err();
        assert_eq!((error.class, error.line), (ErrorClass::MergeConflict, Some(2)));
    }

    #[test]
    fn carriage_returns_belong_to_the_line_end() {
        let text = Text::decode("a", b"a\r\nb\n\nc").unwrap();
        assert_eq!(text.lines().map(|(_, l)| l).collect::<Vec<_>>(), ["a", "b", "", "c"]);
    }
}
