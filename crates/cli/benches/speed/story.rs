//! What a story costs beside the bare shell loop of the same steps.

use std::process::Command;
use std::time::Instant;

use ralphloop_core::event::Fact;
use ralphloop_testkit::scene::Scene;

use crate::table::{Table, median, ms};
use crate::world;

const FILES: usize = 1000;
const STORIES: usize = 10;
const ROUNDS: usize = 7;

pub(crate) fn measure(table: &mut Table) {
    let (mut ours, mut loops, mut ratios, mut overheads) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let bare = world::scene(FILES, STORIES);
        let began = Instant::now();
        assert!(shell_loop(&bare, STORIES).status().unwrap().success());
        let a_loop = ms(began.elapsed()) / STORIES as f64;

        let scene = world::scene(FILES, STORIES);
        assert!(world::command(&scene, "work", "text", world::TRIVIAL_GATE).status().unwrap().success());
        let events = world::events(&scene);
        let is_begin = |fact: &Fact| matches!(fact, Fact::AttemptStarted { .. });
        // The first story also asks the gate of the base, which belongs to the run.
        let second = events.iter().filter(|event| is_begin(&event.fact)).nth(1).expect("there are more stories").at;
        let rest: Vec<_> = events.iter().filter(|event| event.at >= second).cloned().collect();
        let landed = |fact: &Fact| matches!(fact, Fact::Landed { .. });
        let a_story = world::between(&rest, is_begin, landed) / (STORIES - 1) as f64;
        let agent = median(world::noted(&scene, "agent").iter().map(|call| call[1] / 1e6).collect());
        ours.push(a_story);
        loops.push(a_loop);
        ratios.push(a_story / a_loop);
        overheads.push(a_story - agent);
    }
    table.note("shell loop: a story, with the agent", median(loops), "ms");
    table.note("a story, with the agent", median(ours), "ms");
    table.at_most("a story, without the agent's own work", median(overheads), 60.0, "ms");
    table.at_most("a story to the shell loop's", median(ratios), 5.0, "times");
}

/// The same `git status`, `add`, `commit` and agent, as anybody would write it.
pub(crate) fn shell_loop(scene: &Scene, stories: usize) -> Command {
    let script = format!(
        "for story in $(seq {stories}); do
            git status --porcelain >/dev/null
            echo prompt | agent work >/dev/null
            git add --all
            git commit --quiet --message \"Story $story\"
        done"
    );
    let mut command = scene.command("sh");
    command.args(["-c", &script]);
    command
}
