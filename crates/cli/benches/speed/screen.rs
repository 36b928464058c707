//! The screen of a run on a real terminal: its memory with a million lines, an answer to a key while much arrives, what it
//! costs the run that it watches, and what it costs when nothing happens.

use std::fs;
use std::time::{Duration, Instant};

use ralphloop_core::event::Fact;
use ralphloop_testkit::scene::{OnScreen, Scene, alive_with_mark, eventually};

use crate::table::{Table, median, ms};
use crate::world;

const LINES: &str = "1000000";
/// What an agent that writes 10,000 lines a second writes.
const STREAM: &str = "60000";
const KEYS: usize = 20;
const ROUNDS: usize = 3;
const IDLE: Duration = Duration::from_secs(5);

pub(crate) fn measure(table: &mut Table) {
    let scene = world::scene(10, 1);
    let write = format!("lines {LINES} 0");
    assert!(world::command(&scene, &write, "text", world::NO_GATES).status().unwrap().code().is_some());
    let mut screen = scene.on_screen("status --follow");
    // What came of a run that is over is shown first; the agent's words are two tabs further.
    screen.sees("The run has ended");
    screen.types("\t\t");
    screen.sees("line 999999");
    screen.types("\x1b[H");
    screen.sees("line 0");
    screen.types("\x1b[F");
    screen.sees("line 999999");
    let pid = pid_of(&scene);
    table.at_most("memory of a screen with 1,000,000 lines", resident(pid), 80.0, "MB");
    let (before, began) = (ticks(pid), Instant::now());
    std::thread::sleep(IDLE);
    let used = (ticks(pid) - before) / 100.0 / began.elapsed().as_secs_f64();
    table.at_most("an idle screen, of a core", used * 100.0, 1.0, "%");
    screen.types("q");
    screen.ends();

    let (mut answered, mut ratios) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let alone = streamed(&mut |_| {});
        let watched = streamed(&mut |scene| answered.extend(answers(scene)));
        ratios.push(watched / alone);
    }
    table.at_most("a key, with 10,000 lines a second arriving", median(answered), 50.0, "ms");
    table.at_most("a run that is watched to one that is not", median(ratios), 1.02, "times");
}

/// Milliseconds that an agent takes which writes 10,000 lines a second, while somebody does something.
fn streamed(meanwhile: &mut dyn FnMut(&Scene)) -> f64 {
    let scene = world::scene(10, 1);
    let mut run = world::command(&scene, &format!("lines {STREAM} 10000"), "text", world::NO_GATES).spawn().unwrap();
    eventually("a run", || !scene.journals().is_empty());
    meanwhile(&scene);
    assert!(run.wait().unwrap().code().is_some());
    let events = world::events(&scene);
    world::between(
        &events,
        |fact| matches!(fact, Fact::AgentStarted { .. }),
        |fact| matches!(fact, Fact::AgentEnded { .. }),
    )
}

/// Milliseconds from a key to what it shows.
fn answers(scene: &Scene) -> Vec<f64> {
    let mut screen = scene.on_screen("status --follow");
    screen.sees("line ");
    let times = (0..KEYS).map(|n| answer(&mut screen, n % 2 == 0)).collect();
    screen.types("q");
    screen.ends();
    times
}

fn answer(screen: &mut OnScreen, opens: bool) -> f64 {
    let began = Instant::now();
    screen.types("?");
    while screen.text().contains("Stop the run and leave") != opens {
        assert!(began.elapsed() < Duration::from_secs(10), "the help does not come or go");
        std::thread::yield_now();
    }
    ms(began.elapsed())
}

/// The screen's own process.
fn pid_of(scene: &Scene) -> u32 {
    let is_ours = |pid: &u32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == world::binary());
    alive_with_mark(&scene.root()).into_iter().find(is_ours).expect("the screen is there")
}

/// The most memory that the process had, in megabytes.
fn resident(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1.024 / 1000.0
}

/// The processor time of the process, in hundredths of a second.
fn ticks(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = text.rsplit_once(')').unwrap();
    fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap()).sum()
}
