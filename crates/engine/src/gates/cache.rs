//! Results by tree, and how long each gate takes. Derived data: a lost or damaged file only costs time.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ralphloop_core::evidence::CheckResult;
use ralphloop_core::ids::TreeId;
use serde::{Deserialize, Serialize};

use super::Gate;
use super::run::Ran;
use crate::files::{self, Access, FileError};

const VERSION: u32 = 1;
/// The oldest results beyond this go; with the bound of an output that keeps the file below about 8 MiB.
const MAX_RESULTS: usize = 256;
const MAX_FILE: u64 = 32 << 20;

/// What gates have said of trees before.
#[derive(Debug)]
pub struct Cache {
    path: PathBuf,
    place: String,
    stored: Stored,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    version: u32,
    /// Oldest first.
    results: VecDeque<Entry>,
    /// Milliseconds of the last run of each command, by place and command.
    took: BTreeMap<String, u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    tree: TreeId,
    place: String,
    command: String,
    #[serde(rename = "outcome")]
    result: CheckResult,
    /// Milliseconds.
    took: u64,
}

impl Cache {
    /// Opens the cache in that file, which need not exist; one that can't be read or understood counts as empty.
    /// `place` is the project's folder within its repository: a command may mean something else in another one.
    pub fn open(path: PathBuf, place: impl Into<String>) -> Self {
        let stored = read(&path).filter(|stored| stored.version == VERSION);
        Self { path, place: place.into(), stored: stored.unwrap_or_default() }
    }

    /// What the gate said of that tree, and how long that took.
    pub fn get(&self, tree: &TreeId, gate: &Gate) -> Option<(&CheckResult, Duration)> {
        let same = |e: &&Entry| e.tree == *tree && e.place == self.place && e.command == gate.command;
        self.stored.results.iter().find(same).map(|entry| (&entry.result, Duration::from_millis(entry.took)))
    }

    /// Remembers what the gate said of that tree and how long it took. A result that another run might not repeat
    /// (the gate could not run, ran out of time or was killed) is not remembered.
    pub fn put(&mut self, tree: &TreeId, gate: &Gate, ran: &Ran) -> Result<(), FileError> {
        if !ran.repeatable {
            return Ok(());
        }
        let (place, command) = (self.place.clone(), gate.command.clone());
        self.stored.results.retain(|e| e.tree != *tree || e.place != place || e.command != command);
        let millis = u64::try_from(ran.took.as_millis()).unwrap_or(u64::MAX);
        self.stored.took.insert(self.took_key(gate), millis);
        self.stored.results.push_back(Entry {
            tree: tree.clone(),
            place,
            command,
            result: ran.result.clone(),
            took: millis,
        });
        while self.stored.results.len() > MAX_RESULTS {
            self.stored.results.pop_front();
        }
        self.save()
    }

    /// What is known of one tree holds for another: what tells them apart is nothing that gates judge.
    pub fn carry_over(&mut self, from: &TreeId, to: &TreeId) -> Result<(), FileError> {
        if from == to {
            return Ok(());
        }
        let of_tree = |e: &&Entry| e.tree == *from && e.place == self.place;
        let known: Vec<Entry> = self.stored.results.iter().filter(of_tree).cloned().collect();
        if known.is_empty() {
            return Ok(());
        }
        self.stored.results.retain(|e| e.tree != *to || e.place != self.place);
        self.stored.results.extend(known.into_iter().map(|entry| Entry { tree: to.clone(), ..entry }));
        self.save()
    }

    /// How long the gate took when it last ran to its end.
    pub fn took(&self, gate: &Gate) -> Option<Duration> {
        self.stored.took.get(&self.took_key(gate)).copied().map(Duration::from_millis)
    }

    /// Puts the fastest gate first, if it is known of each how long it takes; else the order stays.
    pub fn fastest_first(&self, gates: &mut [Gate]) {
        if gates.iter().all(|gate| self.took(gate).is_some()) {
            gates.sort_by_key(|gate| self.took(gate));
        }
    }

    fn took_key(&self, gate: &Gate) -> String {
        format!("{}\n{}", self.place, gate.command)
    }

    fn save(&mut self) -> Result<(), FileError> {
        self.stored.version = VERSION;
        if let Some(folder) = self.path.parent() {
            files::create_private_dir(folder)?;
        }
        let json =
            serde_json::to_vec(&self.stored).map_err(|e| FileError::new("write", &self.path, io::Error::other(e)))?;
        files::write_derived(&self.path, &json, Access::Private)
    }
}

fn read(path: &Path) -> Option<Stored> {
    if fs::metadata(path).ok()?.len() > MAX_FILE {
        return None;
    }
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(command: &str) -> Gate {
        Gate { name: "g".into(), command: command.into() }
    }

    fn ran(result: CheckResult, ms: u64) -> Ran {
        Ran { result, took: Duration::from_millis(ms), repeatable: true }
    }

    fn failed(why: &str) -> CheckResult {
        CheckResult::Failed { why: why.into(), output: "out".into() }
    }

    #[test]
    fn a_result_is_remembered_for_its_tree_command_and_place_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cache/gates.json");
        let mut cache = Cache::open(path.clone(), "app");
        cache.put(&"t1".into(), &gate("test"), &ran(failed("exit code 3"), 5)).unwrap();
        cache.put(&"t2".into(), &gate("test"), &ran(CheckResult::Passed, 5)).unwrap();
        let again = Cache::open(path.clone(), "app");
        assert_eq!(again.get(&"t1".into(), &gate("test")), Some((&failed("exit code 3"), Duration::from_millis(5))));
        assert_eq!(again.get(&"t2".into(), &gate("test")).map(|(result, _)| result), Some(&CheckResult::Passed));
        assert_eq!(again.get(&"t1".into(), &gate("lint")), None);
        assert_eq!(again.get(&"t3".into(), &gate("test")), None);
        assert_eq!(Cache::open(path, "lib").get(&"t1".into(), &gate("test")), None);
    }

    #[test]
    fn what_another_run_might_not_repeat_is_not_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let mut cache = Cache::open(dir.path().join("c"), "");
        let ran = Ran { repeatable: false, ..ran(failed("timed out after 4s"), 4000) };
        cache.put(&"t".into(), &gate("test"), &ran).unwrap();
        assert_eq!(cache.get(&"t".into(), &gate("test")), None);
        assert_eq!(cache.took(&gate("test")), None);
    }

    #[test]
    fn the_fastest_gate_comes_first_once_all_are_known() {
        let dir = tempfile::tempdir().unwrap();
        let mut cache = Cache::open(dir.path().join("c"), "");
        let names = |gates: &[Gate]| gates.iter().map(|g| g.command.clone()).collect::<Vec<_>>();
        let mut gates = [gate("slow"), gate("fast"), gate("new")];
        cache.put(&"t".into(), &gate("slow"), &ran(CheckResult::Passed, 900)).unwrap();
        cache.put(&"t".into(), &gate("fast"), &ran(CheckResult::Passed, 20)).unwrap();
        cache.fastest_first(&mut gates);
        assert_eq!(names(&gates), ["slow", "fast", "new"]);
        cache.put(&"t".into(), &gate("new"), &ran(failed("x"), 50)).unwrap();
        cache.fastest_first(&mut gates);
        assert_eq!(names(&gates), ["fast", "new", "slow"]);
    }

    #[test]
    fn a_damaged_file_or_one_of_another_version_counts_as_empty() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c");
        for text in ["{", "[]", r#"{"version":99,"results":[],"took":{}}"#] {
            fs::write(&path, text).unwrap();
            let mut cache = Cache::open(path.clone(), "");
            assert_eq!(cache.get(&"t".into(), &gate("test")), None);
            cache.put(&"t".into(), &gate("test"), &ran(CheckResult::Passed, 1)).unwrap();
            assert!(Cache::open(path.clone(), "").get(&"t".into(), &gate("test")).is_some());
        }
    }

    #[test]
    fn the_oldest_results_make_room() {
        let dir = tempfile::tempdir().unwrap();
        let mut cache = Cache::open(dir.path().join("c"), "");
        for i in 0..=MAX_RESULTS {
            cache.stored.results.push_back(Entry {
                tree: format!("t{i}").into(),
                place: String::new(),
                command: "test".into(),
                result: CheckResult::Passed,
                took: 1,
            });
        }
        cache.put(&"last".into(), &gate("test"), &ran(CheckResult::Passed, 1)).unwrap();
        assert_eq!(cache.stored.results.len(), MAX_RESULTS);
        assert!(cache.get(&"t0".into(), &gate("test")).is_none());
        assert!(cache.get(&"last".into(), &gate("test")).is_some());
    }
}
