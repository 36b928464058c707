//! From the start of the program to its first spawn of an agent, and to its version.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::table::{Table, median, ms};
use crate::world;

const ROUNDS: usize = 11;

pub(crate) fn measure(table: &mut Table) {
    let (mut versions, mut trues, mut spawns) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let scene = world::scene(1000, 1);
        let began = Instant::now();
        assert!(scene.command("true").status().unwrap().success());
        trues.push(ms(began.elapsed()));
        let began = Instant::now();
        assert!(scene.command(world::binary()).arg("--version").output().unwrap().status.success());
        versions.push(ms(began.elapsed()));
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as f64;
        assert!(world::command(&scene, "work", "text", world::NO_GATES).status().unwrap().success());
        spawns.push((world::noted(&scene, "agent")[0][0] - began) / 1e6);
    }
    table.note("`true`, for comparison", median(trues), "ms");
    table.at_most("--version", median(versions), 10.0, "ms");
    table.at_most("start to the first spawn", median(spawns), 80.0, "ms");
}
