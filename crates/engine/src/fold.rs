//! A run as its journal makes it, without taking in again what was taken in before.
//!
//! Beside the journal lies the state that its first events make, kept while the run goes on. It is only derived: it
//! counts if this very program wrote it and the journal is byte for byte what it was folded from, and whoever deletes it
//! loses time alone.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

use ralphloop_core::run::Run;
use serde::{Deserialize, Serialize};

use crate::files::{self, Access};
use crate::journal::{self, JournalError, Place};

/// So many events are taken in again at most, while the run goes on.
const KEEP_EVERY: u64 = 1000;

/// A run, and where the journal that made it ends.
#[derive(Debug)]
pub struct Folded {
    /// The run.
    pub run: Run,
    /// Behind the last whole line.
    pub place: Place,
}

/// The first line of a kept state; the state is the second.
#[derive(Serialize, Deserialize)]
struct Heading {
    program: String,
    /// The events that made it, and their bytes in the journal.
    events: u64,
    bytes: u64,
    /// Of these bytes.
    journal: String,
    /// Of the second line.
    state: String,
}

/// Folds the journal at `journal`, from the state kept at `kept` on if that is one of it.
pub(crate) fn fold(journal: &Path, kept: &Path) -> Result<Folded, JournalError> {
    let no_start = || JournalError::Damaged {
        path: journal.to_owned(),
        line: 1,
        why: "it does not begin with the start of a run".to_owned(),
    };
    let known = read(kept, journal);
    let mut place = known.as_ref().map_or_else(Place::default, |known| known.place.clone());
    let from = place.events;
    let mut events = journal::read_after(journal, &mut place)?.into_iter();
    let mut run = if let Some(known) = known {
        known.run
    } else {
        let first = events.next().ok_or_else(|| JournalError::Empty { path: journal.to_owned() })?;
        Run::start(&first).map_err(|_| no_start())?.0
    };
    for event in events {
        drop(run.step(&event));
    }
    let folded = Folded { run, place };
    if folded.place.events - from > KEEP_EVERY {
        keep(kept, &folded.run, &folded.place);
    }
    Ok(folded)
}

/// Keeps the state of a run that has just taken in the event before `place`, from time to time.
pub(crate) fn keep_now_and_then(kept: &Path, run: &Run, place: &Place) {
    if place.events.is_multiple_of(KEEP_EVERY) {
        keep(kept, run, place);
    }
}

fn keep(path: &Path, run: &Run, place: &Place) {
    let Some(program) = this_program() else { return };
    let Ok(state) = serde_json::to_vec(run) else { return };
    let heading = Heading {
        program,
        events: place.events,
        bytes: place.bytes,
        journal: place.hash.finalize().to_string(),
        state: blake3::hash(&state).to_string(),
    };
    let Ok(mut text) = serde_json::to_vec(&heading) else { return };
    text.push(b'\n');
    text.extend_from_slice(&state);
    // What cannot be kept costs the next reader time.
    drop(files::write_derived(path, &text, Access::Private));
}

/// The state kept at `path`, if it is one of this journal.
fn read(path: &Path, journal: &Path) -> Option<Folded> {
    let text = fs::read(path).ok()?;
    let (heading, state) = text.split_at(memchr::memchr(b'\n', &text)?);
    let heading: Heading = serde_json::from_slice(heading).ok()?;
    let state = &state[1..];
    if Some(heading.program) != this_program() || blake3::hash(state).to_string() != heading.state {
        return None;
    }
    let mut hash = blake3::Hasher::new();
    hash.update_reader(fs::File::open(journal).ok()?.take(heading.bytes)).ok()?;
    if hash.finalize().to_string() != heading.journal {
        return None;
    }
    let place = Place { events: heading.events, bytes: heading.bytes, hash };
    Some(Folded { run: serde_json::from_slice(state).ok()?, place })
}

/// What tells this build from any other: another one may fold otherwise.
fn this_program() -> Option<String> {
    let file = fs::metadata(std::env::current_exe().ok()?).ok()?;
    let modified = file.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(format!("{} {} {}", env!("CARGO_PKG_VERSION"), file.len(), modified.as_nanos()))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use ralphloop_core::event::{Event, Fact};
    use ralphloop_core::plan::{Plan, Scheme, WorkId};
    use ralphloop_core::policy::Policy;
    use ralphloop_core::units::Timestamp;

    use super::*;
    use crate::journal::Journal;

    fn event(n: u64) -> Event {
        let fact = match n {
            0 => Fact::RunStarted {
                run: "20260117-140000-000".into(),
                plan: Box::new(plan()),
                policy: Box::new(Policy::default()),
                branch: "refs/heads/main".to_owned(),
                base: "0".repeat(40).as_str().into(),
                agent: "scripted".to_owned(),
                unsigned: Vec::new(),
            },
            n => Fact::LearningAdded { text: format!("sentence {n} of them") },
        };
        Event { at: Timestamp(n.try_into().unwrap()), fact }
    }

    fn plan() -> Plan {
        Plan::new(WorkId { scheme: Scheme::Prd, id: "prd.json".to_owned() }, Vec::new())
    }

    struct World {
        _dir: tempfile::TempDir,
        journal: PathBuf,
        kept: PathBuf,
    }

    /// A journal of so many events, as a run writes it; the state is kept on the way.
    fn world(events: u64) -> World {
        let dir = tempfile::tempdir().unwrap();
        let world = World { journal: dir.path().join("journal.jsonl"), kept: dir.path().join("state.json"), _dir: dir };
        let mut journal = Journal::create(&world.journal).unwrap();
        let (mut run, _) = Run::start(&event(0)).unwrap();
        for event in (0..events).map(event) {
            journal.append(&event).unwrap();
            drop(run.step(&event));
            keep_now_and_then(&world.kept, &run, journal.place());
        }
        world
    }

    impl World {
        /// Folded from the kept state on, and how many events that had taken in; checked against a fold of everything.
        #[track_caller]
        fn is_the_same(&self) -> Option<u64> {
            let known = read(&self.kept, &self.journal).map(|known| known.place.events);
            let folded = fold(&self.journal, &self.kept).unwrap();
            let replay = journal::read(&self.journal).unwrap();
            assert_eq!(folded.run, Run::replay(&replay.events).unwrap());
            assert_eq!((folded.place.events, folded.place.bytes), (replay.place.events, replay.place.bytes));
            assert_eq!(folded.place.hash.finalize(), replay.place.hash.finalize());
            known
        }
    }

    #[test]
    fn a_long_journal_is_taken_in_from_the_kept_state_on() {
        assert_eq!(world(2 * KEEP_EVERY + 5).is_the_same(), Some(2 * KEEP_EVERY));
        assert_eq!(world(KEEP_EVERY - 1).is_the_same(), None);
    }

    #[test]
    fn a_reader_of_a_long_journal_without_a_kept_state_keeps_one() {
        let world = world(KEEP_EVERY + 5);
        fs::remove_file(&world.kept).unwrap();
        assert_eq!(world.is_the_same(), None);
        assert_eq!(world.is_the_same(), Some(KEEP_EVERY + 5));
    }

    #[test]
    fn a_journal_that_was_changed_under_its_kept_state_is_read_from_its_beginning() {
        let world = world(KEEP_EVERY + 5);
        let text = fs::read_to_string(&world.journal).unwrap();
        fs::write(&world.journal, text.replacen("sentence 7 of them", "sentence 7 of mine", 1)).unwrap();
        assert_eq!(world.is_the_same(), None);
        let cut: String = text.lines().take(20).map(|line| line.to_owned() + "\n").collect();
        fs::write(&world.journal, cut).unwrap();
        assert_eq!(world.is_the_same(), None);
    }

    #[test]
    fn a_state_that_was_changed_torn_or_kept_by_another_program_is_not_believed() {
        let world = world(KEEP_EVERY + 5);
        let text = fs::read_to_string(&world.kept).unwrap();
        for other in [
            text.replacen("sentence 990 of them", "sentence 990 of mine", 1),
            text[..text.len() - 9].to_owned(),
            text.replacen("\"program\":\"", "\"program\":\"9", 1),
            String::new(),
        ] {
            assert_ne!(other, text);
            fs::write(&world.kept, other).unwrap();
            assert_eq!(world.is_the_same(), None);
        }
    }

    #[test]
    fn a_damaged_line_after_the_kept_state_is_told_with_its_number() {
        let world = world(KEEP_EVERY + 5);
        let text = fs::read_to_string(&world.journal).unwrap();
        fs::write(&world.journal, text.replacen("\"seq\":1002,", "\"seq\":1002;", 1)).unwrap();
        assert!(matches!(fold(&world.journal, &world.kept), Err(JournalError::Damaged { line: 1003, .. })));
    }
}
