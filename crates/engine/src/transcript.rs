//! All that an agent said in one call, byte for byte, with times: JSON lines in zstd frames.
//!
//! `transcripts/<story>-<attempt>-<call>.jsonl.zst` in the run's folder, mode 0600. A line is `{"t", "s", "d"}`:
//! milliseconds since the Unix epoch, the stream (`out`, `err`, or `note` for words of ours) and the text; bytes that
//! are not UTF-8 stand as base64 in `b` instead of `d`. A record holds whole lines of the stream, so that the
//! redaction sees a secret in one piece however the bytes were split on their way.
//!
//! Each frame is complete in itself and is written at once: what a killed process leaves is readable up to its last
//! complete frame. `zstdcat FILE` shows it without this program.

pub mod frames;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ralphloop_agent::client::Format;
use ralphloop_agent::redact::Redactor;
use ralphloop_core::ids::{AttemptId, CallNumber};
use ralphloop_core::units::Timestamp;
use serde::{Deserialize, Serialize};

use crate::files::{self, FileError};

/// The default bound of a transcript's file, in bytes.
pub const DEFAULT_MAX_BYTES: u64 = 256 << 20;

/// So much of a line without an end is held back; a longer one is split there.
const MAX_HELD: usize = 1 << 20;
/// A frame is closed at so many bytes of JSON …
const FRAME_BYTES: usize = 1 << 20;
/// … or at the first write after so long.
const FRAME_TIME: Duration = Duration::from_secs(1);
/// So much of a stream tells how it reads.
const BEGINNING: usize = 16 << 10;
/// More than any line that the writer makes: [`MAX_HELD`] bytes and a chunk, each escaped as `\u0000`.
const MAX_JSON_LINE: u64 = 64 << 20;
const LEVEL: i32 = 1;
/// After so many bytes nobody reads it any more …
const FLOOD: u64 = 16 << 20;
/// … and it is packed quickly rather than small.
const FLOOD_LEVEL: i32 = -1;

/// Where a record comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// The agent's stdout.
    Out,
    /// The agent's stderr.
    Err,
    /// A remark of ours about the transcript itself.
    Note,
}

/// A piece of what was said: one or more whole lines, the end of a stream, or a part of an overlong line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// When its last byte came.
    pub at: Timestamp,
    /// From which stream.
    pub stream: Stream,
    /// The bytes, line ends included.
    pub bytes: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Wire<'a> {
    t: i64,
    s: Stream,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    d: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    b: Option<Cow<'a, str>>,
}

/// Why a transcript could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptError {
    /// The file itself.
    #[error(transparent)]
    File(#[from] FileError),
    /// A record makes no sense.
    #[error("{}, record {number}: {problem}", .path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Which record, from 1.
        number: u64,
        /// What is wrong.
        problem: String,
    },
}

/// Where a run's transcripts are kept in its folder; it is made with the first of them.
pub fn folder_of(run_folder: &Path) -> PathBuf {
    run_folder.join("transcripts")
}

/// Where the transcript of a call is kept in a run's folder.
pub fn path_of(run_folder: &Path, attempt: &AttemptId, call: CallNumber) -> PathBuf {
    let story = files::safe_name(attempt.story.as_str());
    folder_of(run_folder).join(format!("{story}-{}-{}.jsonl.zst", attempt.number, call.0))
}

/// Where the transcript of a review is kept in a run's folder.
pub fn path_of_review(run_folder: &Path, attempt: &AttemptId, round: u32) -> PathBuf {
    let story = files::safe_name(attempt.story.as_str());
    folder_of(run_folder).join(format!("{story}-{}-review-{round}.jsonl.zst", attempt.number))
}

/// How the output in a transcript reads: that is not kept beside it, and its beginning tells. None if there is no
/// transcript.
pub fn format_of(path: &Path) -> Option<Format> {
    let mut beginning = Vec::new();
    for record in Reader::open(path).ok()?.map_while(Result::ok) {
        if matches!(record.stream, Stream::Out) {
            beginning.extend_from_slice(&record.bytes);
        }
        if beginning.len() > BEGINNING {
            break;
        }
    }
    Some(Format::of_stream(&beginning))
}

/// Takes secrets out of bytes before they are stored.
pub type Redact<'a> = &'a (dyn Fn(&[u8]) -> Cow<'_, [u8]> + Send + Sync);

/// The same for a stream: the beginning that can be stored, clean, and its length; all of it if the second value is set.
type OwnRedact = Box<dyn Fn(&[u8], bool) -> (Cow<'_, [u8]>, usize) + Send>;

fn own(redact: impl Fn(&[u8], bool) -> (Cow<'_, [u8]>, usize) + Send + 'static) -> OwnRedact {
    Box::new(redact)
}

/// What a transcript came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Bytes that the agent wrote.
    pub seen: u64,
    /// Of these, bytes that were dropped because the file had reached its bound.
    pub dropped: u64,
    /// The size of the file.
    pub stored: u64,
}

/// Writes a transcript. Memory is bounded, whatever comes.
pub struct Writer {
    path: PathBuf,
    file: File,
    redact: OwnRedact,
    max_bytes: u64,
    compressor: zstd::bulk::Compressor<'static>,
    held_out: Vec<u8>,
    held_err: Vec<u8>,
    frame: Vec<u8>,
    frame_began: Option<Timestamp>,
    full: bool,
    ended: bool,
    last: Timestamp,
    totals: Totals,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("path", &self.path).field("totals", &self.totals).finish_non_exhaustive()
    }
}

impl Writer {
    /// Begins the transcript at `path` (see [`path_of`]), which must not exist; its folder is made.
    pub fn create(
        path: PathBuf,
        redact: impl Fn(&[u8]) -> Cow<'_, [u8]> + Send + 'static,
        max_bytes: u64,
    ) -> Result<Self, TranscriptError> {
        Self::begin(path, own(move |bytes, _| (redact(bytes), bytes.len())), max_bytes)
    }

    /// The same with secrets masked, also those that are wrapped over lines: a line that may hold the beginning of one waits
    /// for the next.
    pub fn masked(path: PathBuf, redactor: Redactor, max_bytes: u64) -> Result<Self, TranscriptError> {
        let redact = own(
            move |bytes, all| {
                if all { (redactor.redact(bytes), bytes.len()) } else { redactor.redact_settled(bytes) }
            },
        );
        Self::begin(path, redact, max_bytes)
    }

    fn begin(path: PathBuf, redact: OwnRedact, max_bytes: u64) -> Result<Self, TranscriptError> {
        if let Some(folder) = path.parent() {
            files::create_private_dir(folder)?;
        }
        let file = files::create_private(&path)?;
        let mut compressor = zstd::bulk::Compressor::new(LEVEL).map_err(|e| FileError::new("compress", &path, e))?;
        compressor.include_checksum(true).map_err(|e| FileError::new("compress", &path, e))?;
        Ok(Self {
            path,
            file,
            redact,
            max_bytes,
            compressor,
            held_out: Vec::new(),
            held_err: Vec::new(),
            frame: Vec::new(),
            frame_began: None,
            full: false,
            ended: false,
            last: Timestamp::default(),
            totals: Totals::default(),
        })
    }

    /// Adds what came on a stream, at that time.
    pub fn write(&mut self, stream: Stream, bytes: &[u8], at: Timestamp) -> Result<(), TranscriptError> {
        // In steps, so that one huge chunk takes no more memory than many small ones.
        for piece in bytes.chunks(MAX_HELD) {
            self.write_piece(stream, piece, at)?;
        }
        Ok(())
    }

    fn write_piece(&mut self, stream: Stream, piece: &[u8], at: Timestamp) -> Result<(), TranscriptError> {
        self.last = at;
        let before = self.totals.seen;
        self.totals.seen += piece.len() as u64;
        if before < FLOOD && self.totals.seen >= FLOOD {
            self.compressor
                .set_compression_level(FLOOD_LEVEL)
                .map_err(|e| FileError::new("compress", &self.path, e))?;
        }
        if self.full {
            self.totals.dropped += piece.len() as u64;
            return Ok(());
        }
        let mut held = std::mem::take(self.held(stream));
        match piece.iter().rposition(|&b| b == b'\n') {
            Some(end) => {
                let (lines, rest) = piece.split_at(end + 1);
                if held.is_empty() {
                    let stored = self.record(stream, lines, at, false);
                    held.extend_from_slice(&lines[stored..]);
                } else {
                    held.extend_from_slice(lines);
                    let stored = self.record(stream, &held, at, false);
                    held.drain(..stored);
                }
                held.extend_from_slice(rest);
            }
            None => held.extend_from_slice(piece),
        }
        if held.len() >= MAX_HELD {
            self.record(stream, &held, at, true);
            held.clear();
        }
        *self.held(stream) = held;
        let due = self.frame_began.is_some_and(|began| at.since(began) >= FRAME_TIME);
        if due || self.frame.len() >= FRAME_BYTES { self.close_frame(at) } else { Ok(()) }
    }

    /// Writes out every whole line that came so far. For whoever waits while the agent is quiet, about once a second.
    pub fn flush(&mut self, at: Timestamp) -> Result<(), TranscriptError> {
        self.close_frame(at)
    }

    /// Ends the transcript: what is held back is written. Nothing is synced: a transcript decides nothing, and a loss of
    /// power takes its last seconds at most.
    pub fn finish(mut self, at: Timestamp) -> Result<Totals, TranscriptError> {
        self.end(at)?;
        Ok(self.totals)
    }

    fn end(&mut self, at: Timestamp) -> Result<(), TranscriptError> {
        self.ended = true;
        for stream in [Stream::Out, Stream::Err] {
            let held = std::mem::take(self.held(stream));
            if !held.is_empty() && !self.full {
                self.record(stream, &held, at, true);
            }
        }
        self.close_frame(at)
    }

    /// What it has come to so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    fn held(&mut self, stream: Stream) -> &mut Vec<u8> {
        if stream == Stream::Err { &mut self.held_err } else { &mut self.held_out }
    }

    /// Adds what can be stored of `bytes`, all of it if `all` is set, and returns how much that was.
    fn record(&mut self, stream: Stream, bytes: &[u8], at: Timestamp, all: bool) -> usize {
        let (bytes, stored) = (self.redact)(bytes, all);
        if stored == 0 {
            return 0;
        }
        let mut wire = Wire { t: at.0, s: stream, d: None, b: None };
        match std::str::from_utf8(&bytes) {
            Ok(text) => wire.d = Some(Cow::Borrowed(text)),
            Err(_) => wire.b = Some(Cow::Owned(BASE64.encode(&bytes))),
        }
        self.frame_began.get_or_insert(at);
        let before = self.frame.len();
        // Writing to a `Vec` and serializing strings and numbers have no way to fail.
        if serde_json::to_writer(&mut self.frame, &wire).is_ok() {
            self.frame.push(b'\n');
        } else {
            self.frame.truncate(before);
        }
        stored
    }

    fn close_frame(&mut self, at: Timestamp) -> Result<(), TranscriptError> {
        self.frame_began = None;
        if self.frame.is_empty() || self.full {
            self.frame.clear();
            return Ok(());
        }
        let mut compressed = self.compress()?;
        if self.totals.stored + compressed.len() as u64 > self.max_bytes {
            self.full = true;
            let note =
                format!("the transcript has reached its bound of {} bytes; the rest is dropped\n", self.max_bytes);
            self.frame.clear();
            self.record(Stream::Note, note.as_bytes(), at, true);
            compressed = self.compress()?;
            self.held_out = Vec::new();
            self.held_err = Vec::new();
        }
        self.frame.clear();
        self.frame_began = None;
        self.file.write_all(&compressed).map_err(|e| FileError::new("write", &self.path, e))?;
        self.totals.stored += compressed.len() as u64;
        Ok(())
    }

    fn compress(&mut self) -> Result<Vec<u8>, FileError> {
        self.compressor.compress(&self.frame).map_err(|e| FileError::new("compress", &self.path, e))
    }
}

impl Drop for Writer {
    /// A call that was given up in the middle keeps what was said until then, as far as the disk allows.
    fn drop(&mut self) {
        if !self.ended {
            self.end(self.last).ok();
        }
    }
}

/// Reads a transcript record by record, also while it is being written and after its writer was killed.
pub struct Reader {
    path: PathBuf,
    lines: BufReader<zstd::stream::read::Decoder<'static, BufReader<File>>>,
    number: u64,
    ended: bool,
    torn: bool,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("path", &self.path).field("number", &self.number).finish_non_exhaustive()
    }
}

impl Reader {
    /// Opens the transcript at `path`.
    pub fn open(path: &Path) -> Result<Self, TranscriptError> {
        let fail = |e| FileError::new("read", path, e);
        let file = File::open(path).map_err(fail)?;
        let decoder = zstd::stream::read::Decoder::new(file).map_err(fail)?;
        Ok(Self { path: path.to_owned(), lines: BufReader::new(decoder), number: 0, ended: false, torn: false })
    }

    /// The file ended inside a frame: its writer was killed, or is still at work.
    pub fn is_torn(&self) -> bool {
        self.torn
    }

    fn next_line(&mut self) -> Result<Option<Vec<u8>>, TranscriptError> {
        let mut line = Vec::new();
        match self.lines.by_ref().take(MAX_JSON_LINE).read_until(b'\n', &mut line) {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                self.torn = true;
                return Ok(None);
            }
            Err(e) => return Err(FileError::new("read", &self.path, e).into()),
        }
        if line.pop() == Some(b'\n') {
            return Ok(Some(line));
        }
        self.torn |= !line.is_empty();
        Ok(None)
    }
}

/// One line of the file; `number` is its place, for people.
fn parse(path: &Path, number: u64, line: &[u8]) -> Result<Record, TranscriptError> {
    let bad = |problem: String| TranscriptError::Record { path: path.to_owned(), number, problem };
    let wire: Wire<'_> = serde_json::from_slice(line).map_err(|e| bad(e.to_string()))?;
    let bytes = match (wire.d, wire.b) {
        (Some(text), None) => text.into_owned().into_bytes(),
        (None, Some(base64)) => BASE64.decode(base64.as_bytes()).map_err(|e| bad(e.to_string()))?,
        _ => return Err(bad("neither text nor bytes".to_owned())),
    };
    Ok(Record { at: Timestamp(wire.t), stream: wire.s, bytes })
}

impl Iterator for Reader {
    type Item = Result<Record, TranscriptError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        self.number += 1;
        let item = self.next_line().transpose().map(|line| line.and_then(|line| parse(&self.path, self.number, &line)));
        // After an error nothing that follows can be trusted to be in place.
        self.ended = !matches!(item, Some(Ok(_)));
        item
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use ralphloop_core::ids::StoryId;

    use super::*;

    const KEEP: Redact<'static> = &|bytes| Cow::Borrowed(bytes);

    fn at(ms: i64) -> Timestamp {
        Timestamp(ms)
    }

    fn said(records: &[Record], stream: Stream) -> Vec<u8> {
        records.iter().filter(|r| r.stream == stream).flat_map(|r| r.bytes.clone()).collect()
    }

    fn read(path: &Path) -> (Vec<Record>, bool) {
        let mut reader = Reader::open(path).unwrap();
        let records = reader.by_ref().map(Result::unwrap).collect();
        (records, reader.is_torn())
    }

    #[test]
    fn every_byte_comes_back_however_it_was_split() {
        let dir = tempfile::tempdir().unwrap();
        let all: Vec<u8> = (0..20_000_u32)
            .flat_map(|i| if i % 50 == 0 { vec![b'\n'] } else { vec![u8::try_from(i * 7 % 256).unwrap(), 0xc3] })
            .collect();
        for size in [1, 3, 17, 4096, 1 << 20] {
            let path = dir.path().join(format!("{size}.zst"));
            let mut writer = Writer::create(path.clone(), KEEP, DEFAULT_MAX_BYTES).unwrap();
            for (i, chunk) in all.chunks(size).enumerate() {
                writer.write(Stream::Out, chunk, at(i64::try_from(i).unwrap())).unwrap();
                writer.write(Stream::Err, b"e\xff", at(0)).unwrap();
            }
            let totals = writer.finish(at(99)).unwrap();
            let (records, torn) = read(&path);
            assert_eq!(said(&records, Stream::Out), all, "chunks of {size}");
            assert_eq!(totals.seen, (all.len() + 2 * all.chunks(size).count()) as u64);
            assert!(!torn);
        }
    }

    #[test]
    fn text_can_be_read_without_this_program_and_the_file_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let attempt = AttemptId { story: StoryId::from("a/b"), number: 2 };
        let path = path_of(dir.path(), &attempt, CallNumber(1));
        let mut writer = Writer::create(path.clone(), KEEP, DEFAULT_MAX_BYTES).unwrap();
        writer.write(Stream::Out, "häl".as_bytes(), at(5)).unwrap();
        writer.write(Stream::Out, "lo\nwo".as_bytes(), at(6)).unwrap();
        writer.finish(at(7)).unwrap();
        let json = zstd::stream::decode_all(File::open(&path).unwrap()).unwrap();
        let expected = "{\"t\":6,\"s\":\"out\",\"d\":\"hällo\\n\"}\n{\"t\":7,\"s\":\"out\",\"d\":\"wo\"}\n";
        assert_eq!(String::from_utf8(json).unwrap(), expected);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(path.to_string_lossy().ends_with("-2-1.jsonl.zst"));
    }

    #[test]
    fn a_secret_that_was_split_between_chunks_is_redacted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        let redact: Redact<'_> =
            &|bytes| Cow::Owned(String::from_utf8_lossy(bytes).replace("sk-secret", "[redacted]").into_bytes());
        let mut writer = Writer::create(path.clone(), redact, DEFAULT_MAX_BYTES).unwrap();
        writer.write(Stream::Out, b"key sk-se", at(0)).unwrap();
        writer.write(Stream::Out, b"cret end\n", at(0)).unwrap();
        writer.finish(at(0)).unwrap();
        assert_eq!(said(&read(&path).0, Stream::Out), b"key [redacted] end\n");
    }

    #[test]
    fn a_secret_that_is_wrapped_over_lines_is_redacted_and_nothing_else_waits() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        let redactor = Redactor::new([("LAMP_TOKEN", "a-lamp-that-nobody-sees")]);
        let mut writer = Writer::masked(path.clone(), redactor, DEFAULT_MAX_BYTES).unwrap();
        writer.write(Stream::Out, b"one\nthe key a-lamp-th\n", at(0)).unwrap();
        writer.flush(at(0)).unwrap();
        assert_eq!(said(&read(&path).0, Stream::Out), b"one\n");
        writer.write(Stream::Out, b"at-nobody-", at(0)).unwrap();
        writer.write(Stream::Out, b"sees end\nlast a-lamp", at(0)).unwrap();
        writer.finish(at(0)).unwrap();
        let expected = b"one\nthe key [redacted]\n[redacted] end\nlast a-lamp";
        assert_eq!(said(&read(&path).0, Stream::Out), expected);
    }

    #[test]
    fn what_a_killed_writer_left_is_readable_up_to_its_last_complete_frame() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        let mut writer = Writer::create(path.clone(), KEEP, DEFAULT_MAX_BYTES).unwrap();
        writer.write(Stream::Out, b"one\n", at(0)).unwrap();
        writer.write(Stream::Out, b"two\n", at(1500)).unwrap();
        let complete = std::fs::metadata(&path).unwrap().len();
        assert_eq!(said(&read(&path).0, Stream::Out), b"one\ntwo\n", "a second later they are on disk");
        writer.write(Stream::Out, b"three\n", at(1600)).unwrap();
        writer.finish(at(1700)).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for cut in usize::try_from(complete).unwrap() + 1..whole.len() {
            let torn_path = dir.path().join("torn");
            std::fs::write(&torn_path, &whole[..cut]).unwrap();
            let (records, torn) = read(&torn_path);
            assert!(torn, "cut at {cut}");
            assert!(said(&records, Stream::Out).starts_with(b"one\ntwo\n"), "cut at {cut}");
        }
    }

    #[test]
    fn a_writer_that_is_given_up_keeps_what_was_said() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        let mut writer = Writer::create(path.clone(), KEEP, DEFAULT_MAX_BYTES).unwrap();
        writer.write(Stream::Out, b"a line\nand half", at(0)).unwrap();
        drop(writer);
        assert_eq!(said(&read(&path).0, Stream::Out), b"a line\nand half");
    }

    #[test]
    fn beyond_its_bound_it_says_so_once_and_counts_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        let mut writer = Writer::create(path.clone(), KEEP, 20_000).unwrap();
        let mut noise = blake3::Hasher::new().finalize_xof();
        let mut chunk = [0; 4000];
        for i in 0..100 {
            noise.fill(&mut chunk);
            writer.write(Stream::Out, &chunk, at(i * 2000)).unwrap();
            writer.write(Stream::Out, b"\n", at(i * 2000)).unwrap();
        }
        let totals = writer.finish(at(0)).unwrap();
        assert_eq!(totals.seen, 400_100);
        assert!(totals.dropped > 300_000, "{totals:?}");
        assert!(totals.stored < 20_500, "{totals:?}");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), totals.stored);
        let (records, _) = read(&path);
        assert_eq!(records.iter().filter(|r| r.stream == Stream::Note).count(), 1);
    }

    #[test]
    fn b30_a_line_without_an_end_is_held_in_bounded_memory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        let mut writer = Writer::create(path.clone(), KEEP, DEFAULT_MAX_BYTES).unwrap();
        let chunk = vec![b'z'; 64 << 10];
        for _ in 0..160 {
            writer.write(Stream::Out, &chunk, at(0)).unwrap();
            assert!(writer.held_out.capacity() <= 2 * MAX_HELD && writer.frame.capacity() <= 4 * FRAME_BYTES);
        }
        writer.finish(at(0)).unwrap();
        assert_eq!(said(&read(&path).0, Stream::Out).len(), 160 * chunk.len());
    }
}
