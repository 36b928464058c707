//! Stories side by side: many at once beside the ideal, a landing, and a worktree that is used again.

use std::time::Instant;

use ralphloop_core::event::{Event, Fact};
use ralphloop_core::ids::AttemptId;
use ralphloop_testkit::scene::Scene;

use crate::table::{Table, median, ms};
use crate::world;

const STORIES: usize = 64;
const JOBS: usize = 8;
/// Seconds that the agent of [`many`] works.
const AGENT: f64 = 1.0;
/// Stories of a scene that is looked at for its landings.
const FEW: usize = 8;

pub(crate) fn measure(table: &mut Table) {
    many(table);
    let landing = few(table, 1_000);
    table.at_most("a landing on 1,000 files", landing, 30.0, "ms");
    let landing = few(table, 100_000);
    table.at_most("a landing on 100,000 files", landing, 300.0, "ms");
    line(table);
}

fn run(scene: &Scene, work: &str, gates: &[&str], jobs: usize) -> Vec<Event> {
    let mut command = world::command(scene, work, "text", gates);
    command.args(["--worktree", "--jobs", &jobs.to_string(), "--max-repairs", "0"]);
    assert!(command.status().unwrap().success());
    world::events(scene)
}

/// Stories that do not meet, eight at a time.
fn many(table: &mut Table) {
    let scene = world::scene(1_000, STORIES);
    let events = run(&scene, "second", world::NO_GATES, JOBS);
    let took = world::between(&events, |_| true, |fact| matches!(fact, Fact::RunEnded { .. })) / 1000.0;
    let landing = median(landings(&events, |fact| matches!(fact, Fact::Merged { .. }))) / 1000.0;
    let ideal = STORIES as f64 / JOBS as f64 * AGENT + landing;
    table.note("64 stories of a second, 8 at a time", took, "s");
    table.at_most("the same to the ideal", took / ideal, 1.15, "times");
}

/// Milliseconds from the last fact of that kind about each attempt to its commit on the branch.
fn landings(events: &[Event], from: fn(&Fact) -> bool) -> Vec<f64> {
    let landed = events.iter().filter_map(|event| match &event.fact {
        Fact::Landed { attempt, .. } => Some((attempt, event.at)),
        _ => None,
    });
    let before = |attempt: &AttemptId, at| {
        let earlier = events.iter().filter(|event| event.at <= at && event.fact.attempt() == Some(attempt));
        earlier.filter(|event| from(&event.fact)).map(|event| event.at).next_back()
    };
    landed.filter_map(|(attempt, at)| Some(ms(at.since(before(attempt, at)?)))).collect()
}

/// The median of landings on a tree of so many files, of which each story changes two; and what the worktree costs.
fn few(table: &mut Table, files: usize) -> f64 {
    let scene = world::scene(files, FEW);
    let start = Instant::now();
    let top = scene.outside("added");
    scene.git(&["worktree", "add", "--quiet", "--detach", top.to_str().unwrap()]);
    let added = ms(start.elapsed());
    scene.git(&["worktree", "remove", "--force", top.to_str().unwrap()]);
    let events = run(&scene, "work", world::TRIVIAL_GATE, 1);
    let begun: Vec<f64> = events
        .windows(2)
        .filter(|pair| matches!(pair[1].fact, Fact::AttemptStarted { .. }))
        .map(|pair| ms(pair[1].at.since(pair[0].at)))
        .collect();
    let warm = median(begun[1..].to_vec());
    table.note(&format!("git worktree add, {files} files"), added, "ms");
    table.note(&format!("the first worktree, {files} files"), begun[0], "ms");
    table.at_most(&format!("a warm worktree, {files} files"), warm, 500.0_f64.min(added / 3.0).max(30.0), "ms");
    median(landings(&events, |fact| matches!(fact, Fact::CheckFinished { .. })))
}

/// A slow gate, which each story has to pass on what was merged: one after the other, or in a line.
fn line(table: &mut Table) {
    const GATE: f64 = 2.0;
    let scene = world::scene(100, JOBS);
    let events = run(&scene, "second", &["--gate", "sleep 2"], JOBS);
    let took = world::between(&events, |_| true, |fact| matches!(fact, Fact::RunEnded { .. })) / 1000.0;
    // The base, what the agents left, and each but the first as merged.
    let one_by_one = GATE * (2.0 + (JOBS as f64 - 1.0)) + AGENT;
    table.note("8 stories with a gate of 2 s", took, "s");
    table.at_most("the same to checking them one after the other", took / one_by_one, 0.6, "times");
}
