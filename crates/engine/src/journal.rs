//! A run's journal: one event a line, durable before anything is done about it. The journal is the recovery.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};

use ralphloop_core::event::{Event, Fact};
use serde::{Deserialize, Serialize};

use crate::files::FileError;

/// The format of the lines. A journal with a higher one is refused, never guessed at.
pub const VERSION: u32 = 1;

/// A journal shorter than this is read in one piece, in bytes.
const PART: usize = 1 << 20;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    /// The format's version.
    v: u32,
    /// From 0, without gaps.
    seq: u64,
    /// Milliseconds since the epoch.
    at: ralphloop_core::units::Timestamp,
    /// The fact.
    fact: Fact,
    /// The hash of all lines before it. Older versions did not chain them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prev: Option<String>,
}

/// The same line, by reference.
#[derive(Serialize)]
struct LineRef<'a> {
    v: u32,
    seq: u64,
    at: ralphloop_core::units::Timestamp,
    fact: &'a Fact,
    prev: String,
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A line that is not the last one is damaged.
    #[error("{}:{line}: the journal is damaged here ({why})", .path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// It was written by a newer program.
    #[error(
        "{}: the journal has format {found} and this program knows {VERSION}: use the newer ralphloop that wrote it",
        .path.display()
    )]
    Newer {
        /// The journal.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// It holds no whole event.
    #[error("{}: the journal holds no event", .path.display())]
    Empty {
        /// The journal.
        path: PathBuf,
    },
}

/// Appends to a journal. One writer at a time: the holder of the run's lock.
#[derive(Debug)]
pub struct Journal {
    file: File,
    /// Says how the journal ends, so that a cut is found; none if it cannot be written.
    head: Option<File>,
    path: PathBuf,
    /// Behind the last whole line.
    place: Place,
}

/// A place between two lines of a journal, and what tells whether a journal is the same up to there.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// The events before it.
    pub(crate) events: u64,
    /// The bytes before it.
    pub(crate) bytes: u64,
    /// The hash of these bytes.
    pub(crate) hash: blake3::Hasher,
}

impl Place {
    /// What the next line carries of those before it.
    pub(crate) fn link(&self) -> String {
        self.hash.finalize().to_hex().to_string()
    }

    pub(crate) fn pass(&mut self, events: u64, bytes: &[u8]) {
        self.events += events;
        self.bytes += bytes.len() as u64;
        self.hash.update(bytes);
    }
}

impl Journal {
    /// A new journal; it must not exist.
    pub fn create(path: &Path) -> Result<Self, JournalError> {
        let file = crate::files::create_private(path)?;
        Ok(Self { file, head: open_head(path), path: path.to_owned(), place: Place::default() })
    }

    /// Goes on with a journal whose whole lines end at `place`; a torn last line is cut off.
    pub fn reopen(path: &Path, place: Place) -> Result<Self, JournalError> {
        let fail = |e| FileError::new("append to", path, e);
        let mut file = OpenOptions::new().write(true).mode(0o600).open(path).map_err(fail)?;
        file.set_len(place.bytes).map_err(fail)?;
        file.seek(SeekFrom::Start(place.bytes)).map_err(fail)?;
        Ok(Self { file, head: open_head(path), path: path.to_owned(), place })
    }

    /// Where its last whole line ends.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Appends one event; when this returns, an event that decides something is on the disk.
    ///
    /// A failed write leaves the journal as it was before.
    pub fn append(&mut self, event: &Event) -> Result<(), JournalError> {
        let line =
            LineRef { v: VERSION, seq: self.place.events, at: event.at, fact: &event.fact, prev: self.place.link() };
        let mut bytes = serde_json::to_vec(&line)
            .map_err(|e| FileError::new("encode an event for", &self.path, std::io::Error::other(e)))?;
        bytes.push(b'\n');
        let written = self
            .file
            .write_all(&bytes)
            .and_then(|()| if decides(&event.fact) { self.file.sync_data() } else { Ok(()) });
        if let Err(e) = written {
            // Whatever part of the line was written must not precede a later one.
            let cut = self.file.set_len(self.place.bytes);
            let cut = cut.and_then(|()| self.file.seek(SeekFrom::Start(self.place.bytes)).map(drop));
            let source = cut.err().unwrap_or(e);
            return Err(FileError::new("append to", &self.path, source).into());
        }
        self.place.pass(1, &bytes);
        self.note_head();
        Ok(())
    }

    /// Only the search for tampering needs it, so that nothing fails without it.
    fn note_head(&mut self) {
        use std::os::unix::fs::FileExt as _;
        let text = format!("{:>20} {}\n", self.place.events, self.place.link());
        if self.head.as_ref().is_some_and(|head| head.write_all_at(text.as_bytes(), 0).is_err()) {
            self.head = None;
        }
    }
}

/// Where the head of a journal is.
pub(crate) fn head_of(journal: &Path) -> PathBuf {
    journal.with_extension("head")
}

fn open_head(journal: &Path) -> Option<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(head_of(journal)).ok()
}

/// Whether something is done about the fact that a power loss must not make undone in secret. Others can be lost with
/// the work that they tell of.
fn decides(fact: &Fact) -> bool {
    match fact {
        Fact::RunStarted { .. }
        | Fact::Restarted { .. }
        | Fact::CheckpointTaken { .. }
        | Fact::AgentEnded { .. }
        | Fact::ReviewEnded { .. }
        | Fact::Landed { .. }
        | Fact::FixTaskAdded { .. }
        | Fact::Reverted { .. }
        | Fact::RevertFailed { .. }
        | Fact::RepositoryBroken { .. }
        | Fact::Trespassed { .. }
        | Fact::StopRequested { .. }
        | Fact::PauseRequested
        | Fact::SkipRequested { .. }
        | Fact::RetryRequested { .. }
        | Fact::GuidanceAdded { .. }
        | Fact::LearningAdded { .. }
        | Fact::RunEnded { .. } => true,
        Fact::PlanChecked { .. }
        | Fact::AttemptStarted { .. }
        | Fact::CheckStarted { .. }
        | Fact::CheckFinished { .. }
        | Fact::CheckpointFailed { .. }
        | Fact::AgentStarted { .. }
        | Fact::TreeInspected { .. }
        | Fact::ReviewStarted { .. }
        | Fact::LandingRefused { .. }
        | Fact::NoFixTask { .. }
        | Fact::LandingFailed { .. }
        | Fact::LandingBlocked { .. }
        | Fact::LaneFailed { .. }
        | Fact::Merged { .. }
        | Fact::MergeFailed { .. }
        | Fact::Settled { .. }
        | Fact::Woke => false,
    }
}

/// What was read of a journal.
#[derive(Debug)]
pub struct Replay {
    /// Its events, oldest first; at least one.
    pub events: Vec<Event>,
    /// Where the last whole line ends.
    pub place: Place,
    /// A torn last line was left out.
    pub torn: bool,
}

/// Reads a journal. A torn last line is left out; a damaged one before it is an error with its number.
pub fn read(path: &Path) -> Result<Replay, JournalError> {
    let bytes = std::fs::read(path).map_err(|e| FileError::new("read", path, e))?;
    let mut place = Place::default();
    let events = read_on(path, &bytes, &mut place)?;
    if events.is_empty() {
        return Err(JournalError::Empty { path: path.to_owned() });
    }
    let torn = place.bytes < bytes.len() as u64;
    Ok(Replay { events, place, torn })
}

/// Reads what a journal holds after `place`, which moves behind the last whole line.
pub fn read_after(path: &Path, place: &mut Place) -> Result<Vec<Event>, JournalError> {
    let fail = |e| FileError::new("read", path, e);
    let mut file = File::open(path).map_err(fail)?;
    let mut rest = Vec::new();
    file.seek(SeekFrom::Start(place.bytes)).and_then(|_| file.read_to_end(&mut rest)).map_err(fail)?;
    let events = read_on(path, &rest, place)?;
    if place.events == 0 { Err(JournalError::Empty { path: path.to_owned() }) } else { Ok(events) }
}

/// The events of `rest`, which follows on `place`; that moves behind the last whole line.
fn read_on(path: &Path, rest: &[u8], place: &mut Place) -> Result<Vec<Event>, JournalError> {
    let first = place.events;
    let mut events = Vec::new();
    let mut end = 0;
    for part in parse(rest) {
        for line in part.lines {
            let expected = first + events.len() as u64;
            if line.seq != expected {
                let why = format!("event {} stands where {expected} should", line.seq);
                return Err(JournalError::Damaged { path: path.to_owned(), line: expected + 1, why });
            }
            events.push(Event { at: line.at, fact: line.fact });
        }
        end += part.read;
        let Some(Unread { line, why }) = part.unread else { continue };
        match version_of(line) {
            Some(found) if found > VERSION => return Err(JournalError::Newer { path: path.to_owned(), found }),
            _ if end + line.len() + 1 >= rest.len() => break,
            _ => {
                let (line, why) = (first + events.len() as u64 + 1, why.to_string());
                return Err(JournalError::Damaged { path: path.to_owned(), line, why });
            }
        }
    }
    place.pass(events.len() as u64, &rest[..end]);
    Ok(events)
}

/// A part of a journal, as far as it could be read.
struct Part<'a> {
    lines: Vec<Line>,
    /// Bytes of these lines.
    read: usize,
    /// The line after them, where there is one.
    unread: Option<Unread<'a>>,
}

struct Unread<'a> {
    /// Without its end.
    line: &'a [u8],
    why: serde_json::Error,
}

/// Parses a journal, a long one in parts at once: `status` is not to be waited for.
fn parse(bytes: &[u8]) -> Vec<Part<'_>> {
    let whole = memchr::memrchr(b'\n', bytes).map_or(0, |last| last + 1);
    let mut rest = &bytes[..whole];
    let share = if rest.len() <= PART { PART } else { rest.len().div_ceil(threads()).max(PART) };
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let from = share.min(rest.len()) - 1;
        let end = memchr::memchr(b'\n', &rest[from..]).map_or(rest.len(), |at| from + at + 1);
        let (part, after) = rest.split_at(end);
        parts.push(part);
        rest = after;
    }
    std::thread::scope(|scope| {
        let others: Vec<_> = parts.iter().skip(1).map(|part| scope.spawn(|| parse_part(part))).collect();
        let mut read: Vec<Part<'_>> = parts.first().map(|part| parse_part(part)).into_iter().collect();
        read.extend(others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic))));
        read
    })
}

/// Parsed at once. The system is asked several things for this, so only a long journal is worth it.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Parses whole lines up to the first that is none.
fn parse_part(bytes: &[u8]) -> Part<'_> {
    let mut part = Part { lines: Vec::new(), read: 0, unread: None };
    while let Some(length) = memchr::memchr(b'\n', &bytes[part.read..]) {
        let line = &bytes[part.read..part.read + length];
        match serde_json::from_slice(line) {
            Ok(read) => part.lines.push(read),
            Err(why) => {
                part.unread = Some(Unread { line, why });
                break;
            }
        }
        part.read += length + 1;
    }
    part
}

/// The version that a line states, whatever else it holds.
fn version_of(line: &[u8]) -> Option<u32> {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    serde_json::from_slice::<Version>(line).ok().map(|v| v.v)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralphloop_core::units::Timestamp;

    fn event(n: i64) -> Event {
        Event { at: Timestamp(n), fact: Fact::GuidanceAdded { text: format!("sentence {n}") } }
    }

    fn journal(events: i64) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        for n in 0..events {
            journal.append(&event(n)).unwrap();
        }
        (dir, path)
    }

    #[test]
    fn what_was_appended_is_read_back() {
        let (_dir, path) = journal(3);
        let replay = read(&path).unwrap();
        assert_eq!(replay.events, [event(0), event(1), event(2)]);
        assert!(!replay.torn);
    }

    #[test]
    fn a_torn_last_line_is_left_out_and_cut_off_before_the_next() {
        let (_dir, path) = journal(3);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 7]).unwrap();
        let replay = read(&path).unwrap();
        assert_eq!(replay.events, [event(0), event(1)]);
        assert!(replay.torn);
        Journal::reopen(&path, replay.place.clone()).unwrap().append(&event(9)).unwrap();
        assert_eq!(read(&path).unwrap().events, [event(0), event(1), event(9)]);
    }

    /// Whatever a crash leaves of the last two lines: what is whole counts, what is not is dropped, and the next event
    /// follows on what counts.
    #[test]
    fn cut_at_every_byte_of_its_last_two_lines_it_holds_exactly_the_whole_lines() {
        let (_dir, path) = journal(4);
        let whole = std::fs::read(&path).unwrap();
        let ends: Vec<usize> = whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
        for cut in ends[1]..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let left = ends.iter().filter(|end| **end <= cut).count();
            let replay = read(&path).unwrap();
            assert_eq!(replay.events, (0..4).map(event).take(left).collect::<Vec<_>>(), "cut at {cut}");
            assert_eq!(replay.torn, !ends.contains(&cut), "cut at {cut}");
            Journal::reopen(&path, replay.place.clone()).unwrap().append(&event(9)).unwrap();
            let again = read(&path).unwrap();
            assert!(!again.torn && again.events.len() == left + 1, "cut at {cut}");
        }
    }

    #[test]
    fn nul_bytes_where_a_line_was_to_be_are_dropped_with_it() {
        let (_dir, path) = journal(3);
        let whole = std::fs::read(&path).unwrap();
        let last = whole[..whole.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
        for from in [last, last + 5, whole.len()] {
            let mut bytes = whole.clone();
            bytes.resize(whole.len() + 100, 0);
            bytes[from..].fill(0);
            std::fs::write(&path, &bytes).unwrap();
            let replay = read(&path).unwrap();
            assert!(replay.torn);
            assert_eq!(replay.events.len(), if from == whole.len() { 3 } else { 2 });
            Journal::reopen(&path, replay.place.clone()).unwrap().append(&event(9)).unwrap();
            assert!(!read(&path).unwrap().torn);
        }
    }

    #[test]
    fn nul_bytes_between_lines_are_damage_with_its_line() {
        let (_dir, path) = journal(4);
        let mut bytes = std::fs::read(&path).unwrap();
        let second = bytes.iter().position(|b| *b == b'\n').unwrap() + 1;
        bytes[second..second + 20].fill(0);
        std::fs::write(&path, &bytes).unwrap();
        assert!(matches!(read(&path), Err(JournalError::Damaged { line: 2, .. })));
    }

    #[test]
    fn a_write_that_finds_no_space_names_the_file_and_leaves_the_journal_as_it_was() {
        let (_dir, path) = journal(2);
        let before = std::fs::read(&path).unwrap();
        let replay = read(&path).unwrap();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut journal = Journal::reopen(&path, replay.place.clone()).unwrap();
        journal.file = full;
        let error = journal.append(&event(2)).unwrap_err().to_string();
        assert!(error.contains(&path.display().to_string()), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_missing_journal_is_an_error_that_names_it() {
        let (_dir, path) = journal(1);
        std::fs::remove_file(&path).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains(&path.display().to_string()));
    }

    #[test]
    fn a_damaged_line_in_the_middle_is_an_error_with_its_number() {
        let (_dir, path) = journal(3);
        let text = std::fs::read_to_string(&path).unwrap().replacen("sentence 1\"", "sentence 1", 1);
        std::fs::write(&path, text).unwrap();
        assert!(matches!(read(&path), Err(JournalError::Damaged { line: 2, .. })));
    }

    #[test]
    fn a_lost_line_is_noticed() {
        let (_dir, path) = journal(3);
        let text = std::fs::read_to_string(&path).unwrap();
        let without: Vec<&str> = text.lines().enumerate().filter(|(n, _)| *n != 1).map(|(_, l)| l).collect();
        std::fs::write(&path, without.join("\n") + "\n").unwrap();
        assert!(matches!(read(&path), Err(JournalError::Damaged { line: 2, .. })));
    }

    #[test]
    fn a_long_journal_is_read_in_parts_and_is_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let line = |seq: i64| {
            let fact = Fact::GuidanceAdded { text: "x".repeat(1000) };
            serde_json::to_string(&LineRef {
                v: VERSION,
                seq: seq.cast_unsigned(),
                at: Timestamp(seq),
                fact: &fact,
                prev: String::new(),
            })
            .unwrap()
                + "\n"
        };
        let whole: String = (0..5000).map(line).collect();
        std::fs::write(&path, &whole).unwrap();
        let replay = read(&path).unwrap();
        assert_eq!((replay.events.len(), replay.place.bytes, replay.torn), (5000, whole.len() as u64, false));
        assert!(replay.events.iter().zip(0..).all(|(event, seq)| event.at == Timestamp(seq)));
        std::fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        let replay = read(&path).unwrap();
        assert_eq!((replay.events.len(), replay.torn), (4999, true));
        std::fs::write(&path, whole.replacen("\"seq\":4321,", "\"seq\":4321;", 1)).unwrap();
        assert!(matches!(read(&path), Err(JournalError::Damaged { line: 4322, .. })));
    }

    #[test]
    fn nothing_and_nothing_but_nul_is_empty() {
        let (_dir, path) = journal(0);
        assert!(matches!(read(&path), Err(JournalError::Empty { .. })));
        std::fs::write(&path, [0; 64]).unwrap();
        assert!(matches!(read(&path), Err(JournalError::Empty { .. })));
    }

    #[test]
    fn a_newer_format_is_refused() {
        let (_dir, path) = journal(1);
        let line = r#"{"v":99,"seq":1,"at":0,"fact":{"kind":"telepathy"}}"#;
        std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + line + "\n").unwrap();
        assert!(matches!(read(&path), Err(JournalError::Newer { found: 99, .. })));
    }
}
