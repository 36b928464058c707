//! An agent that writes more than anybody reads: how fast it gets into the transcript, and in how much memory.

use ralphloop_core::event::Fact;

use crate::table::{Table, median};
use crate::world;

const GIB: usize = 1 << 30;

pub(crate) fn measure(table: &mut Table) {
    for (what, kind, format, bytes) in [
        ("1 GB of text", "lines", "text", GIB),
        ("1 GB of messages", "claude", "claude", GIB),
        ("one line of 200 MB", "endless", "text", 200 << 20),
        ("1 GB without a newline", "endless", "text", GIB),
        ("1 GB without a newline, as messages", "endless", "claude", GIB),
        ("50 MB on stderr", "stderr", "text", 50 << 20),
    ] {
        let mut speeds = Vec::new();
        let mut peak = 0.0_f64;
        for _ in 0..3 {
            let scene = world::scene(10, 1);
            let mut child =
                world::command(&scene, &format!("write {kind} {bytes}"), format, world::NO_GATES).spawn().unwrap();
            peak = peak.max(world::peak_memory(&mut child));
            let events = world::events(&scene);
            let took = world::between(
                &events,
                |fact| matches!(fact, Fact::AgentStarted { .. }),
                |fact| matches!(fact, Fact::AgentEnded { .. }),
            );
            speeds.push(bytes as f64 / 1e6 / (took / 1000.0));
        }
        if bytes == GIB {
            table.at_least(what, median(speeds), 150.0, "MB/s");
        } else {
            table.note(what, median(speeds), "MB/s");
        }
        table.at_most(&format!("{what}: peak memory"), peak, 64.0, "MiB");
    }
}
