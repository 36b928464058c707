//! How long the steps take beside `git status`. Run by hand: `cargo test --release -- --ignored figures --nocapture`.
use std::time::{Duration, Instant};

use crate::landing::landing;
use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints figures; the machine has to be quiet"]
async fn figures_of_checkpoint_inspection_landing_and_revert() {
    for files in [1_000_u32, 10_000, 100_000] {
        let world =
            World::with("git init -q -b main .; git config user.name T; git config user.email t@example.invalid");
        world.sh(&format!(
            "python3 -c \"
import os
for i in range({files}):
    d = 'd%d/e%d' % (i % 50, i % 7)
    os.makedirs(d, exist_ok=True)
    open('%s/f%d.txt' % (d, i), 'w').write('content %d' % i * 30)
\"; git add .; git commit -qm all"
        ));
        world.settle();
        world.sh("git status >/dev/null");
        let repository = world.open().await;
        let mut rows: Vec<(&str, Vec<Duration>)> =
            ["git status", "checkpoint", "inspect", "land", "keep", "revert", "drop"]
                .map(|name| (name, Vec::new()))
                .to_vec();
        for round in 0..7 {
            let mut note = |row: usize, begun: Instant| rows[row].1.push(begun.elapsed());
            let begun = Instant::now();
            world.sh("git status --porcelain >/dev/null");
            note(0, begun);
            let begun = Instant::now();
            let checkpoint = repository.checkpoint("c").await.unwrap();
            note(1, begun);
            world.sh(&format!("echo {round} >>d1/e1/f1.txt; echo {round} >new{round}.txt"));
            let begun = Instant::now();
            repository.inspect(&checkpoint).await.unwrap();
            note(2, begun);
            if round % 2 == 0 {
                let begun = Instant::now();
                repository.land(&checkpoint, &landing()).await.unwrap();
                note(3, begun);
            } else {
                let begun = Instant::now();
                repository.keep(&checkpoint, &format!("refs/ralphloop/r/s/{round}"), "kept").await.unwrap();
                note(4, begun);
                let begun = Instant::now();
                repository.revert(&checkpoint).await.unwrap();
                note(5, begun);
            }
            let begun = Instant::now();
            repository.drop_checkpoint(&checkpoint).await.unwrap();
            note(6, begun);
        }
        for (name, mut times) in rows {
            times.sort();
            println!("{files} files: {name}: {:?} (first of all excluded: {:?})", times[times.len() / 2], times.last());
        }
    }
}
