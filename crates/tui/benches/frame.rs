//! What the screen costs by itself: `cargo bench -p ralphloop-tui`. A bound that is missed makes it fail.
//!
//! The transcript has a million lines and is handed to the screen by chunk, as its host does. Each figure is the median of
//! many frames; the slowest one in a hundred beside it tells how busy the machine was.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "figures are for people")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use ralphloop_core::event::{Event, Fact};
use ralphloop_core::ids::{AttemptId, CallNumber, CommitId, RunId, StoryId};
use ralphloop_core::plan::{Context, Plan, Scheme, Story, WorkId};
use ralphloop_core::policy::Policy;
use ralphloop_core::units::Timestamp;
use ralphloop_tui::keys::Keymap;
use ralphloop_tui::model::Options;
use ralphloop_tui::port::{CHUNK, CallId, Entry, EntryKind};
use ralphloop_tui::theme::Theme;
use ralphloop_tui::{Model, Msg, Request};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

const LINES: u64 = 1_000_000;
const SIZE: (u16, u16) = (200, 60);
const START: Timestamp = Timestamp(1_768_658_400_000);

fn attempt() -> AttemptId {
    AttemptId { story: StoryId::from("S-1"), number: 1 }
}

fn call() -> CallId {
    CallId { attempt: attempt(), call: CallNumber(0) }
}

/// A line of a transcript, as agents write them: most are short, some have many rows, not all are ASCII.
fn entry(number: u64) -> Entry {
    let (kind, text) = match number % 5 {
        0 => (
            EntryKind::Agent,
            format!("{number}: I look at the tests first, then at what the parser makes of an empty line."),
        ),
        1 => (EntryKind::Tool, format!("Bash  cargo test -p shop basket::{number}")),
        2 => (EntryKind::ToolOutput, "test result: ok. 12 passed; 0 failed\n".repeat(20)),
        3 => (EntryKind::Thought, "The basket has to keep its order. 界面 测试 🧪 e\u{301} ".repeat(8)),
        _ => (EntryKind::Output, "    Compiling shop v0.1.0 (/home/user/shop) ".repeat(3)),
    };
    Entry { at: START, kind, text }
}

struct Bench {
    model: Model,
    terminal: Terminal<TestBackend>,
}

impl Bench {
    fn new() -> Self {
        let options = Options { keys: Keymap::default(), theme: Theme::default(), own: true, utc_offset: 0 };
        let mut model = Model::of_run(options, SIZE, START);
        let stories = (1..=40).map(|n| Story::new(format!("S-{n}").as_str(), "Put things into a basket")).collect();
        let work = WorkId { scheme: Scheme::Prd, id: "prd.json".to_owned() };
        let context = Context::default();
        let plan = Plan { work, title: None, branch: None, writable: true, stories, gates: Vec::new(), context };
        let facts = [
            Fact::RunStarted {
                run: RunId("20260117-140000-000".to_owned()),
                plan: Box::new(plan),
                policy: Box::new(Policy::default()),
                branch: "refs/heads/main".to_owned(),
                base: CommitId("0123456789abcdef".to_owned()),
                agent: "claude".to_owned(),
                unsigned: Vec::new(),
            },
            Fact::AttemptStarted { attempt: attempt(), notes: Vec::new() },
            Fact::CheckpointTaken { attempt: attempt(), notes: Vec::new() },
            Fact::AgentStarted { attempt: attempt(), call: CallNumber(0), agent: None },
        ];
        for fact in facts {
            model.update(Msg::Event(Box::new(Event { at: START, fact })));
        }
        let terminal = Terminal::new(TestBackend::new(SIZE.0, SIZE.1)).unwrap();
        let mut bench = Self { model, terminal };
        bench.model.settle();
        bench.tell(Msg::Extent { call: call(), entries: LINES, reading: false });
        bench
    }

    /// Takes a message in and draws, and then again with what the host answers; how long the slowest of these took. What
    /// the host does is not counted.
    fn tell(&mut self, msg: Msg) -> Duration {
        let mut slowest = Duration::ZERO;
        let mut msgs = vec![msg];
        while !msgs.is_empty() {
            let began = Instant::now();
            let mut asked: Vec<Request> = msgs.drain(..).flat_map(|msg| self.model.update(msg)).collect();
            asked.extend(self.model.settle());
            self.terminal.draw(|frame| self.model.draw(frame)).unwrap();
            slowest = slowest.max(began.elapsed());
            msgs.extend(asked.into_iter().filter_map(|request| match request {
                Request::Read { call, chunk } => {
                    let numbers = chunk * CHUNK..((chunk + 1) * CHUNK).min(LINES);
                    Some(Msg::Entries { call, chunk, entries: numbers.map(entry).collect() })
                }
                _ => None,
            }));
        }
        slowest
    }

    fn key(&mut self, key: &str) -> Duration {
        self.tell(Msg::Key(key.parse().unwrap()))
    }
}

/// The middle of the times, and the slowest but one in a hundred, in milliseconds.
fn middle(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort();
    let ms = |at: usize| times[at].as_secs_f64() * 1000.0;
    (ms(times.len() / 2), ms(times.len() * 99 / 100))
}

/// What the process holds in memory, in MB.
fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

fn main() -> ExitCode {
    // `cargo test --benches` and test runners that ask for a list start it without this word.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let mut holds = true;
    let mut row = |what: &str, (figure, slowest): (f64, f64), bound: f64, unit: &str| {
        let mark = if figure <= bound { "ok" } else { "MISSED" };
        holds &= figure <= bound;
        println!("{what:40} {figure:8.3} {unit} (99 of 100 within {slowest:.3})  at most {bound} {unit}  {mark}");
    };
    let mut bench = Bench::new();
    let follow =
        (1..=500).map(|more| bench.tell(Msg::Extent { call: call(), entries: LINES - 500 + more, reading: false }));
    row("a frame, following a million lines", middle(follow.collect()), 1.0, "ms");
    bench.key("home");
    row("a frame, scrolled down by a line", middle((0..500).map(|_| bench.key("down")).collect()), 1.0, "ms");
    row("a frame, scrolled down by a page", middle((0..500).map(|_| bench.key("pgdn")).collect()), 1.0, "ms");
    row("a frame, scrolled up by a page", middle((0..400).map(|_| bench.key("pgup")).collect()), 1.0, "ms");
    bench.key("o");
    row("a frame, all of it open", middle((0..500).map(|_| bench.key("pgdn")).collect()), 1.0, "ms");
    let jumps = (0..300_u64).map(|n| {
        bench.key("/");
        bench.key("x");
        bench.key("enter");
        // What was searched for is somewhere else each time.
        bench.tell(Msg::Found { call: call(), entry: Some(n * 7919 * 131 % LINES) })
    });
    row("a frame, somewhere else", middle(jumps.collect()), 1.0, "ms");
    bench.key("end");
    // Ten thousand events a second, in the portions that come between two frames of the screen's loop, and a key each time.
    let answered = (0..200_u64).map(|n| {
        let began = Instant::now();
        for more in 0..333 {
            bench.model.update(Msg::Extent { call: call(), entries: LINES - 100_000 + n * 333 + more, reading: true });
        }
        bench.key(if n % 2 == 0 { "up" } else { "end" });
        began.elapsed()
    });
    row("a key, among 10000 events a second", middle(answered.collect()), 50.0, "ms");
    row("memory", (memory(), memory()), 80.0, "MB");
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
