//! Seeded simulation of whole runs: the real core, and around it a world that lies, crashes, doubles, delays and
//! forgets. After every step the invariants are looked at; a breach names its seed, which is all that is needed to see
//! it again.

mod agent;
mod disk;
mod executors;
mod landing;
mod lane;
mod mending;
mod neighbour;
mod planted;
mod providers;
mod relays;
mod reviewer;
mod rng;
pub(crate) mod scenario;
mod session;
mod watch;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};

use disk::Sights;
pub(crate) use planted::Planted;

/// What a simulated run came to.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) steps: u64,
    pub(crate) crashes: u64,
    pub(crate) calls: u64,
    pub(crate) landed: u64,
    /// Deaths with more than one attempt under way.
    pub(crate) crashes_among_many: u64,
    pub(crate) merges: u64,
    pub(crate) conflicts: u64,
    /// Landings after conflicts.
    pub(crate) resolved: u64,
    /// Merges onto what had not landed yet.
    pub(crate) ahead: u64,
    /// Tasks that were added to mend others.
    pub(crate) mended: u64,
    /// Stories that a person signed, and those that they sent back.
    pub(crate) signed: u64,
    pub(crate) sent_back: u64,
    pub(crate) disk: Sights,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Self) {
        self.steps += other.steps;
        self.crashes += other.crashes;
        self.calls += other.calls;
        self.landed += other.landed;
        self.crashes_among_many += other.crashes_among_many;
        self.merges += other.merges;
        self.conflicts += other.conflicts;
        self.resolved += other.resolved;
        self.ahead += other.ahead;
        self.mended += other.mended;
        self.signed += other.signed;
        self.sent_back += other.sent_back;
        self.disk.add(other.disk);
    }
}

/// An invariant that did not hold.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) seed: u64,
    pub(crate) breach: String,
    /// What happened until then, a line each.
    pub(crate) trace: Vec<String>,
}

/// Plays the world of that seed to its end.
pub(crate) fn simulate(seed: u64, planted: Option<Planted>) -> Result<Tally, Box<Broken>> {
    session::Session::new(seed, planted, false).play().map_err(|_| {
        // Tracing costs, so only a world that fails is played again with it.
        let mut session = session::Session::new(seed, planted, true);
        let breach = session
            .play_on()
            .err()
            .unwrap_or_else(|| "not seen again: the world is not a function of its seed".to_owned());
        Box::new(Broken { seed, breach, trace: session.into_trace() })
    })
}

/// Plays `seeds` worlds from `first` on every core of the machine; the lowest seed that fails, if one does.
pub(crate) fn simulate_many(first: u64, seeds: u64, planted: Option<Planted>) -> Result<Tally, Box<Broken>> {
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    // No world beyond the lowest that failed needs to be played.
    let end = AtomicU64::new(first.saturating_add(seeds));
    let play = &|worker: usize| {
        let mut tally = Tally::default();
        for seed in (first..first.saturating_add(seeds)).skip(worker).step_by(workers) {
            if seed >= end.load(Ordering::Relaxed) {
                break;
            }
            match simulate(seed, planted) {
                Ok(played) => tally.add(played),
                Err(broken) => {
                    end.fetch_min(seed, Ordering::Relaxed);
                    return Err(broken);
                }
            }
        }
        Ok(tally)
    };
    let parts: Vec<Result<Tally, Box<Broken>>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers).map(|worker| scope.spawn(move || play(worker))).collect();
        handles.into_iter().map(|handle| handle.join().expect("a simulated world does not panic")).collect()
    });
    let mut all = Tally::default();
    let mut lowest: Option<Box<Broken>> = None;
    for part in parts {
        match part {
            Ok(tally) => all.add(tally),
            Err(broken) if lowest.as_ref().is_none_or(|l| broken.seed < l.seed) => lowest = Some(broken),
            Err(_) => {}
        }
    }
    lowest.map_or(Ok(all), Err)
}
