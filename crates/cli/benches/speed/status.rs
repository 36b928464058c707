//! `status` of a run with a long journal.

use std::fs;
use std::io::Write as _;
use std::time::Instant;

use ralphloop_core::event::Fact;
use serde_json::{Value, json};

use crate::table::{Table, median, ms};
use crate::world;

const EVENTS: usize = 100_000;
const ROUNDS: usize = 7;

pub(crate) fn measure(table: &mut Table) {
    let scene = world::scene(40, 2);
    assert!(world::command(&scene, "work", "text", world::TRIVIAL_GATE).status().unwrap().success());
    let path = scene.journals().pop().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // The run's own events between its first and its last, again and again.
    let events = world::events(&scene);
    let repeated: Vec<&Value> = lines
        .iter()
        .zip(&events)
        .filter(|(_, event)| !matches!(event.fact, Fact::RunStarted { .. } | Fact::RunEnded { .. }))
        .map(|(line, _)| line)
        .collect();
    let mut file = std::io::BufWriter::new(fs::OpenOptions::new().append(true).open(&path).unwrap());
    for seq in lines.len()..EVENTS {
        let mut line = repeated[seq % repeated.len()].clone();
        line["seq"] = json!(seq);
        serde_json::to_writer(&mut file, &line).unwrap();
        file.write_all(b"\n").unwrap();
    }
    file.flush().unwrap();
    drop(file);
    table.note("a journal of 100,000 events", fs::metadata(&path).unwrap().len() as f64 / f64::from(1 << 20), "MiB");
    let times = (0..ROUNDS).map(|_| {
        let began = Instant::now();
        assert!(scene.command(world::binary()).args(["status", "--json"]).output().unwrap().status.success());
        ms(began.elapsed())
    });
    table.at_most("status with 100,000 events", median(times.collect()), 100.0, "ms");
}
