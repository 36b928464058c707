//! Whether a run's journal is the one that was written: every line carries the hash of all that stands before it, and the
//! head beside it that of the whole.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::files::FileError;
use crate::journal::{Place, head_of};

/// What a journal came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Whole lines.
    pub lines: u64,
    /// Lines of a version that did not chain them yet.
    pub unchained: u64,
    /// The hash of the whole.
    pub hash: String,
    /// A last line that was not written to its end, by a crash.
    pub torn: bool,
    /// There is no head to compare the end with.
    pub headless: bool,
    /// What is wrong, by line.
    pub faults: Vec<Fault>,
}

/// A place where the journal is not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub why: String,
}

/// What of a line is looked at.
#[derive(Debug, Deserialize)]
struct Link {
    seq: u64,
    #[serde(default)]
    prev: Option<String>,
}

/// Reads a journal from its beginning and compares every link of its chain.
pub fn check(journal: &Path) -> Result<Checked, FileError> {
    let bytes = std::fs::read(journal).map_err(|e| FileError::new("read", journal, e))?;
    let mut place = Place::default();
    let (mut faults, mut unchained, mut torn) = (Vec::new(), 0, false);
    // Behind a break every later link differs too.
    let (mut chained, mut broken) = (false, false);
    let mut expected = 0;
    let mut rest = bytes.as_slice();
    // What the head said when it was last written.
    let head = Head::read(&head_of(journal));
    let mut at_head = None;
    while !rest.is_empty() {
        if head.as_ref().is_some_and(|head| head.lines == place.events) {
            at_head = Some(place.link());
        }
        let number = place.events + 1;
        let Some(end) = memchr::memchr(b'\n', rest) else {
            torn = true;
            break;
        };
        let (line, after) = rest.split_at(end + 1);
        let mut report = |line: u64, why: String| faults.push(Fault { line, why });
        match serde_json::from_slice::<Link>(&line[..end]) {
            Err(error) => report(number, format!("it is no event any more: {error}")),
            Ok(read) => {
                match read.prev {
                    Some(prev) if prev == place.link() => chained = true,
                    // A break says that what stands before the line is another than when it was written. Once is enough.
                    Some(_) if read.seq == expected && !broken => {
                        report(number.saturating_sub(1).max(1), "it was changed after it was written".to_owned());
                        (chained, broken) = (true, true);
                    }
                    Some(_) => {}
                    None if chained => report(number, "it has no link to the line before it: it was put in".to_owned()),
                    None => unchained += 1,
                }
                if read.seq != expected {
                    let why = format!(
                        "it is event {} where event {expected} should be: lines were taken out, put in or moved",
                        read.seq
                    );
                    report(number, why);
                }
                expected = read.seq + 1;
            }
        }
        place.pass(1, line);
        rest = after;
    }
    if head.as_ref().is_some_and(|head| head.lines == place.events) {
        at_head = Some(place.link());
    }
    if let Some(head) = &head {
        if head.lines > place.events {
            let missing = head.lines - place.events;
            faults.push(Fault {
                line: place.events + 1,
                why: format!(
                    "{missing} more {} written from here on: they were cut off, or lost with the machine's power",
                    if missing == 1 { "line was" } else { "lines were" }
                ),
            });
        } else if at_head.is_some_and(|hash| hash != head.hash) && faults.is_empty() {
            faults.push(Fault { line: head.lines, why: "it was changed after it was written".to_owned() });
        }
    }
    let headless = head.is_none();
    Ok(Checked { lines: place.events, unchained, hash: place.link(), torn, headless, faults })
}

/// The end of a journal as its writer knew it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Its lines.
    pub lines: u64,
    /// The hash of them.
    pub hash: String,
}

impl Head {
    /// Reads it.
    pub fn read(path: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(path).ok()?;
        let (lines, hash) = text.trim().split_once(' ')?;
        Some(Self { lines: lines.parse().ok()?, hash: hash.to_owned() })
    }
}

/// The head of the journal in a run's folder.
pub fn head_in(folder: &Path) -> Option<Head> {
    let journal: PathBuf = folder.join("journal.jsonl");
    Head::read(&head_of(&journal))
}

#[cfg(test)]
mod tests {
    use ralphloop_core::event::{Event, Fact};
    use ralphloop_core::units::Timestamp;

    use super::*;
    use crate::journal::Journal;

    fn journal(events: i64) -> (tempfile::TempDir, PathBuf, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        for n in 0..events {
            let fact = Fact::GuidanceAdded { text: format!("sentence {n}") };
            journal.append(&Event { at: Timestamp(n), fact }).unwrap();
        }
        let lines = std::fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
        (dir, path, lines)
    }

    fn faults_of(path: &Path, lines: &[String]) -> Vec<u64> {
        std::fs::write(path, lines.join("\n") + "\n").unwrap();
        check(path).unwrap().faults.into_iter().map(|fault| fault.line).collect()
    }

    #[test]
    fn what_was_written_is_found_to_be_so() {
        let (_dir, path, lines) = journal(9);
        let checked = check(&path).unwrap();
        assert_eq!((checked.lines, checked.unchained, checked.torn, checked.headless), (9, 0, false, false));
        assert_eq!(checked.faults, []);
        assert_eq!(faults_of(&path, &lines), [0_u64; 0]);
    }

    #[test]
    fn every_change_of_a_line_is_named_by_that_line() {
        let (_dir, path, lines) = journal(6);
        for changed in 0..6 {
            let mut other = lines.clone();
            other[changed] = other[changed].replace("sentence", "sEntence");
            assert_eq!(faults_of(&path, &other), [changed as u64 + 1], "line {}", changed + 1);
        }
    }

    #[test]
    fn lines_that_were_cut_moved_taken_out_or_put_in_are_found_where_that_begins() {
        let (_dir, path, lines) = journal(6);
        assert_eq!(faults_of(&path, &lines[..4]), [5], "cut");
        let mut moved = lines.clone();
        moved.swap(2, 3);
        assert_eq!(faults_of(&path, &moved)[0], 3, "moved");
        let mut out = lines.clone();
        out.remove(2);
        assert_eq!(faults_of(&path, &out)[0], 3, "taken out");
        let mut twice = lines.clone();
        twice.insert(2, lines[1].clone());
        assert_eq!(faults_of(&path, &twice)[0], 3, "put in");
        let mut bare = lines.clone();
        bare[3] = r#"{"v":1,"seq":3,"at":3,"fact":{"kind":"woke"}}"#.to_owned();
        assert_eq!(faults_of(&path, &bare)[0], 4, "put in without a link");
        let mut begun = lines;
        begun.remove(0);
        assert_eq!(faults_of(&path, &begun)[0], 1, "the beginning");
    }

    #[test]
    fn a_journal_of_an_older_version_says_how_many_lines_nothing_holds() {
        let (_dir, path, lines) = journal(3);
        let old: Vec<String> =
            lines.iter().map(|line| line.split(",\"prev\"").next().unwrap().to_owned() + "}").collect();
        std::fs::remove_file(head_of(&path)).unwrap();
        std::fs::write(&path, old.join("\n") + "\n").unwrap();
        let checked = check(&path).unwrap();
        assert_eq!((checked.unchained, checked.headless, checked.faults), (3, true, Vec::new()));
    }
}
