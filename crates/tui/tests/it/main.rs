//! The screen from outside: events and keys go in, cells and requests come out.

mod ending;
mod loop_screen;
mod picking;
mod snapshot;

use std::time::Duration;

use ralphloop_core::event::{CheckRef, CheckStage, Event, Fact, StopCause};
use ralphloop_core::evidence::CheckResult;
use ralphloop_core::ids::{AttemptId, CallNumber, CommitId, RunId, StoryId};
use ralphloop_core::outcome::Outcome;
use ralphloop_core::plan::{Plan, Scheme, Story, WorkId};
use ralphloop_core::policy::{Gate, Policy};
use ralphloop_core::units::Timestamp;
use ralphloop_tui::keys::{Keymap, Press};
use ralphloop_tui::model::Options;
use ralphloop_tui::port::{CHUNK, CallId, Entry, EntryKind, Leave};
use ralphloop_tui::theme::Theme;
use ralphloop_tui::{Model, Msg, Request};

const START: Timestamp = Timestamp(1_768_658_400_000);

fn story(id: &str, title: &str) -> Story {
    Story::new(id, title)
}

fn attempt() -> AttemptId {
    AttemptId { story: StoryId::from("S-1"), number: 1 }
}

fn call() -> CallId {
    CallId { attempt: attempt(), call: CallNumber(0) }
}

/// A screen, and what it asked for.
struct Scene {
    model: Model,
    asked: Vec<Request>,
    at: Timestamp,
}

impl Scene {
    fn new(own: bool, size: (u16, u16)) -> Self {
        let options = Options { keys: Keymap::default(), theme: Theme::default(), own, utc_offset: 0 };
        let mut scene = Self { model: Model::of_run(options, size, START), asked: Vec::new(), at: START };
        let plan = Plan {
            title: Some("A shop".to_owned()),
            ..Plan::new(
                WorkId { scheme: Scheme::Prd, id: "prd.json".to_owned() },
                vec![story("S-1", "Put things into a basket"), story("S-2", "界面 测试 🧪 e\u{301}")],
            )
        };
        let policy = Policy {
            gates: vec![Gate { name: "tests".to_owned(), command: "make test".to_owned() }],
            ..Policy::default()
        };
        scene.fact(Fact::RunStarted {
            run: RunId("20260117-140000-000".to_owned()),
            plan: Box::new(plan),
            policy: Box::new(policy),
            branch: "refs/heads/main".to_owned(),
            base: CommitId("0123456789abcdef".to_owned()),
            agent: "claude".to_owned(),
            unsigned: Vec::new(),
        });
        scene
    }

    fn fact(&mut self, fact: Fact) {
        let event = Event { at: self.at, fact };
        self.tell(Msg::Event(Box::new(event)));
    }

    fn tell(&mut self, msg: Msg) {
        self.asked.extend(self.model.update(msg));
        self.asked.extend(self.model.settle());
    }

    fn wait(&mut self, span: Duration) {
        self.at = self.at.after(span);
        self.tell(Msg::Tick(self.at));
    }

    fn keys(&mut self, keys: &[&str]) {
        for key in keys {
            let press: Press = key.parse().unwrap_or_else(|_| panic!("no key: {key}"));
            self.tell(Msg::Key(press));
        }
    }

    /// A story whose agent works.
    fn agent_works(mut self) -> Self {
        self.fact(Fact::AttemptStarted { attempt: attempt(), notes: Vec::new() });
        let (attempt, stage, check) = (attempt(), CheckStage::Baseline, CheckRef::Gate(0));
        self.fact(Fact::CheckStarted { attempt: attempt.clone(), stage, check });
        let (result, took) = (CheckResult::Passed, Duration::from_secs(2));
        self.fact(Fact::CheckFinished { attempt: attempt.clone(), stage, check, result, cached: false, took });
        self.fact(Fact::CheckpointTaken { attempt: attempt.clone(), notes: Vec::new() });
        self.fact(Fact::AgentStarted { attempt, call: CallNumber(0), agent: None });
        self
    }

    /// The transcript has so many lines; what is asked of it is answered.
    fn says(&mut self, entries: u64) {
        self.tell(Msg::Extent { call: call(), entries, reading: false });
        self.answer(entries);
    }

    fn answer(&mut self, entries: u64) {
        for _ in 0..3 {
            for request in std::mem::take(&mut self.asked) {
                if let Request::Read { call, chunk } = request {
                    let numbers = chunk * CHUNK..((chunk + 1) * CHUNK).min(entries);
                    let entry = |n: u64| Entry { at: START, kind: EntryKind::Output, text: format!("line {n}") };
                    self.tell(Msg::Entries { call, chunk, entries: numbers.map(entry).collect() });
                } else {
                    self.asked.push(request);
                }
            }
        }
    }

    fn screen(&mut self, size: (u16, u16)) -> String {
        self.tell(Msg::Resize(size.0, size.1));
        snapshot::frame(size, |frame| self.model.draw(frame))
    }
}

#[test]
fn one_glance_tells_what_runs_and_what_it_says() {
    let mut scene = Scene::new(true, (100, 14)).agent_works();
    scene.says(3);
    let screen = scene.screen((100, 14));
    for seen in [
        "RUNNING  prd:prd.json  A shop",
        "0 of 2 passed",
        "S-1 (attempt 1 of 4): the agent works",
        "▶ S-1  Put things",
        "· S-2",
        "line 2",
        "q stop and leave",
    ] {
        assert!(screen.contains(seen), "{seen}\n{screen}");
    }
}

#[test]
fn every_tab_draws_at_every_size() {
    for own in [true, false] {
        let mut scene = Scene::new(own, (80, 24)).agent_works();
        scene.says(1000);
        for key in ["tab", "tab", "tab", "tab", "tab", "tab", "?", "?", "g", "esc"] {
            for size in [(1, 1), (2, 7), (7, 3), (200, 1), (1, 200), (60, 15), (80, 24), (120, 40), (300, 90)] {
                scene.screen(size);
            }
            scene.keys(&[key]);
        }
        scene.fact(Fact::RunEnded { outcome: Outcome::Failed });
        for size in [(1, 1), (20, 5), (80, 24)] {
            scene.screen(size);
        }
    }
}

#[test]
fn a_million_lines_are_seen_through_a_window() {
    let mut scene = Scene::new(true, (80, 24)).agent_works();
    let all = 1_000_000;
    scene.says(all);
    assert!(scene.screen((80, 24)).contains("line 999999"));
    scene.keys(&["home"]);
    scene.answer(all);
    let screen = scene.screen((80, 24));
    assert!(screen.contains("line 0\n") && screen.contains("0 %"), "{screen}");
    scene.keys(&["down", "pgdn"]);
    scene.answer(all);
    assert!(!scene.screen((80, 24)).contains("line 0\n"));
    scene.keys(&["end"]);
    scene.answer(all);
    assert!(scene.screen((80, 24)).contains("line 999999"));
    scene.says(all + 1);
    assert!(scene.screen((80, 24)).contains("line 1000000"), "the end is followed");
}

#[test]
fn what_an_agent_writes_does_nothing_to_the_terminal() {
    let mut scene = Scene::new(true, (80, 24)).agent_works();
    scene.tell(Msg::Extent { call: call(), entries: 1, reading: false });
    let text = "before \x1b[2J\x1b]52;c;aGk=\x07 \u{202e}after".to_owned();
    let entries = vec![Entry { at: START, kind: EntryKind::Agent, text }];
    scene.tell(Msg::Entries { call: call(), chunk: 0, entries });
    let screen = scene.screen((80, 24));
    assert!(screen.contains("before ␛[2J") && !screen.contains(['\x1b', '\x07', '\u{202e}']), "{screen}");
}

#[test]
fn one_press_stops_a_second_hurries_and_a_third_leaves_at_once() {
    let mut scene = Scene::new(true, (80, 24)).agent_works();
    scene.asked.clear();
    scene.keys(&["q"]);
    assert_eq!(scene.asked, [Request::Stop(StopCause::Request)]);
    assert!(scene.screen((120, 24)).contains("Stopping: the agent was asked to end"));
    scene.wait(Duration::from_secs(5));
    assert!(scene.screen((120, 24)).contains("q three times within 3 s"));
    scene.asked.clear();
    // The first press was long ago, so these are counted anew; the run was asked to stop already.
    scene.keys(&["q", "q", "ctrl-c"]);
    assert_eq!(scene.asked, [Request::Hurry, Request::Leave(Leave::Force)]);
}

#[test]
fn a_run_that_was_told_to_stop_leaves_when_it_has_ended() {
    let mut scene = Scene::new(true, (80, 24)).agent_works();
    scene.keys(&["ctrl-c"]);
    assert!(scene.asked.contains(&Request::Stop(StopCause::Int)));
    scene.fact(Fact::RunEnded { outcome: Outcome::Stopped { cause: StopCause::Int } });
    assert_eq!(scene.asked.last(), Some(&Request::Leave(Leave::Done)));
}

#[test]
fn a_run_that_ends_by_itself_says_why_and_asks_what_then() {
    let mut scene = Scene::new(true, (80, 24)).agent_works();
    scene.fact(Fact::RunEnded { outcome: Outcome::Failed });
    assert!(scene.screen((80, 24)).contains("The run has ended: not every story passed"));
    scene.keys(&["down", "enter"]);
    assert!(scene.screen((80, 24)).contains("The run has ended: not every story passed\n"));
    scene.keys(&["q"]);
    assert_eq!(scene.asked.last(), Some(&Request::Leave(Leave::Done)));
}

#[test]
fn closing_the_view_of_somebody_elses_run_touches_nothing() {
    for key in ["q", "ctrl-c", "d"] {
        let mut scene = Scene::new(false, (80, 24)).agent_works();
        scene.asked.clear();
        scene.keys(&[key]);
        assert_eq!(scene.asked, [Request::Leave(Leave::Done)], "{key}");
    }
}

#[test]
fn guidance_is_typed_with_whatever_keys_and_shown_until_a_prompt_carries_it() {
    let mut scene = Scene::new(true, (80, 24)).agent_works();
    scene.asked.clear();
    scene.keys(&["g", "q", "u", "x", "backspace", "i", "t", "enter"]);
    assert_eq!(scene.asked, [Request::Guide("quit".to_owned())]);
    scene.fact(Fact::GuidanceAdded { text: "quit".to_owned() });
    assert!(scene.screen((80, 24)).contains("The next prompt will carry: quit"));
}
