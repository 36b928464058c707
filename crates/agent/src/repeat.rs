//! Finds an agent that turns in a circle: the same call with the same result, over and over.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

/// How many calls may be open at once; more are forgotten, oldest first.
const OPEN_CALLS: usize = 64;

#[derive(Debug)]
struct Open {
    id: String,
    label: String,
    print: u64,
}

/// Counts equal calls in a row, by fingerprint.
#[derive(Debug)]
pub(crate) struct Repeats {
    every: u32,
    open: VecDeque<Open>,
    last: Option<u64>,
    times: u32,
}

impl Repeats {
    /// Reports at every `every`th repetition; 0 never.
    pub(crate) fn new(every: u32) -> Self {
        Self { every, open: VecDeque::new(), last: None, times: 0 }
    }

    pub(crate) fn started(&mut self, id: &str, name: &str, input: &str, label: String) {
        self.open.retain(|open| open.id != id);
        if self.open.len() >= OPEN_CALLS {
            self.open.pop_front();
        }
        self.open.push_back(Open { id: id.to_owned(), label, print: fingerprint(&(name, input)) });
    }

    /// The call and how often it came, if that is worth a report now.
    pub(crate) fn finished(&mut self, id: &str, ok: bool, result: u64) -> Option<(String, u32)> {
        let at = self.open.iter().position(|open| open.id == id)?;
        let call = self.open.remove(at)?;
        let print = fingerprint(&(call.print, ok, result));
        self.times = if self.last == Some(print) { self.times.saturating_add(1) } else { 1 };
        self.last = Some(print);
        (self.every > 0 && self.times.is_multiple_of(self.every)).then_some((call.label, self.times))
    }

    /// What an open call was.
    pub(crate) fn label(&self, id: &str) -> Option<&str> {
        self.open.iter().find(|open| open.id == id).map(|open| open.label.as_str())
    }
}

/// Equal for equal values within one run; never stored.
pub(crate) fn fingerprint(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(repeats: &mut Repeats, input: &str, result: u64) -> Option<(String, u32)> {
        repeats.started("t1", "Grep", input, format!("Grep {input}"));
        repeats.finished("t1", true, result)
    }

    #[test]
    fn the_same_call_with_the_same_result_is_reported_at_the_limit_and_at_its_multiples() {
        let mut repeats = Repeats::new(3);
        let reports: Vec<_> = (0..7).filter_map(|_| call(&mut repeats, "a", 1)).collect();
        assert_eq!(reports, [("Grep a".into(), 3), ("Grep a".into(), 6)]);
    }

    #[test]
    fn another_result_or_another_call_starts_the_count_anew() {
        let mut repeats = Repeats::new(3);
        let steps = [("a", 1), ("a", 1), ("a", 2), ("a", 2), ("b", 2), ("b", 2)];
        assert!(steps.iter().all(|(input, result)| call(&mut repeats, input, *result).is_none()));
    }

    #[test]
    fn a_result_without_its_call_counts_for_nothing() {
        let mut repeats = Repeats::new(1);
        assert_eq!(repeats.finished("unknown", true, 0), None);
    }
}
