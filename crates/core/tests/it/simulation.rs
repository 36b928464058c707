//! Seeded worlds, and bugs planted to see that the worlds find them.

use crate::sim::{Planted, simulate_many};

const SEEDS: u64 = 20_000;

#[test]
fn no_world_breaks_an_invariant() {
    match simulate_many(1, SEEDS, None) {
        Ok(tally) => {
            println!("{SEEDS} seeds: {tally:?}");
            assert!(tally.crashes > SEEDS / 2 && tally.landed > SEEDS / 2, "the worlds are too quiet: {tally:?}");
            let enough = tally.crashes_among_many > SEEDS / 4
                && tally.merges > SEEDS / 5
                && tally.conflicts > SEEDS / 50
                && tally.resolved > SEEDS / 200
                && tally.ahead > SEEDS / 50;
            assert!(enough, "lanes meet too seldom: {tally:?}");
            assert!(tally.signed > SEEDS / 50 && tally.sent_back > SEEDS / 200, "too few are signed: {tally:?}");
            assert!(tally.mended > SEEDS / 200, "too few tasks are mended: {tally:?}");
            let disk = tally.disk;
            let enough = disk.adopted > SEEDS / 20
                && disk.partial > SEEDS / 50
                && disk.stayed > SEEDS / 500
                && disk.refused > SEEDS / 50;
            assert!(enough, "too little goes on on the disk: {disk:?}");
        }
        Err(broken) => panic!("seed {}: {}\n{}", broken.seed, broken.breach, broken.trace.join("\n")),
    }
}

#[test]
fn every_planted_bug_is_found() {
    let mut missed = Vec::new();
    for planted in Planted::ALL {
        match simulate_many(1, SEEDS, Some(planted)) {
            Ok(_) => missed.push(planted),
            Err(broken) => println!("{planted:?}: seed {}: {}", broken.seed, broken.breach),
        }
    }
    assert_eq!(missed, [], "bugs that no seed finds");
}
