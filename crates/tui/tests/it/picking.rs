//! The screens before a run from outside: messages and keys go in, cells and requests come out.

use ralphloop_core::ids::{RunId, StoryId};
use ralphloop_core::plan::{
    Check, Context, Delta, Plan, Requirement, Scenario, Scheme, Story, Task, WorkId, WorkState,
};
use ralphloop_core::units::Timestamp;
use ralphloop_tui::app::{Input, Screen as _};
use ralphloop_tui::keys::{Keymap, Press};
use ralphloop_tui::model::Options;
use ralphloop_tui::pick::Picker;
use ralphloop_tui::pick::port::{
    AgentRow, Choices, Count, Found, GateRow, Left, Msg, Preview, Problem, Question, Readiness, Request, RunRow,
    WorkRow,
};
use ralphloop_tui::port::Mouse;
use ralphloop_tui::theme::Theme;

use crate::snapshot::{frame, holds};

const START: Timestamp = Timestamp(1_768_658_400_000);
const SIZES: &[(u16, u16)] =
    &[(1, 1), (2, 7), (7, 3), (200, 1), (1, 200), (20, 5), (40, 10), (60, 15), (80, 24), (120, 40), (300, 90)];

fn work(scheme: Scheme, id: &str) -> WorkId {
    WorkId { scheme, id: id.to_owned() }
}

fn row(scheme: Scheme, id: &str, title: &str, stories: (usize, usize)) -> WorkRow {
    WorkRow {
        id: work(scheme, id),
        title: Some(title.to_owned()),
        stories: Some(Count { done: stories.0, total: stories.1 }),
        tasks: Some(Count { done: stories.0 * 3, total: stories.1 * 3 }),
        readiness: Readiness::Ready,
        problems: (0, 0),
        run: None,
    }
}

fn run(id: &str, work: &str, state: &str, live: bool) -> RunRow {
    RunRow {
        id: RunId(id.to_owned()),
        work: work.to_owned(),
        state: state.to_owned(),
        stories: Some(Count { done: 1, total: 3 }),
        reason: "S-2: exit code 1".to_owned(),
        began: "2026-01-17 14:00".to_owned(),
        live,
        unfinished: state != "complete",
    }
}

fn everything() -> Found {
    let unreadable = WorkRow {
        readiness: Readiness::Unreadable("line 3 is no JSON".to_owned()),
        stories: None,
        tasks: None,
        title: None,
        problems: (1, 0),
        ..row(Scheme::Prd, "tasks/prd-broken.json", "", (0, 0))
    };
    let draft = WorkRow {
        readiness: Readiness::NotReady("tasks.md".to_owned()),
        stories: None,
        tasks: None,
        ..row(Scheme::OpenSpec, "add-theme", "界面 themes 🧪", (0, 0))
    };
    let running = WorkRow {
        run: Some(run("20260117-140000-000", "openspec:add-login", "running", true)),
        ..row(Scheme::OpenSpec, "add-login", "Log in with a passkey", (1, 3))
    };
    let paused = WorkRow {
        run: Some(run("20260117-130000-000", "prd:prd.json", "paused", false)),
        problems: (0, 2),
        ..row(Scheme::Prd, "prd.json", "A shop", (2, 7))
    };
    let old = WorkRow { readiness: Readiness::Archived, ..row(Scheme::Prd, "archive/2025/prd.json", "Old", (4, 4)) };
    Found {
        place: "/home/ada/shop".to_owned(),
        works: vec![draft, running, paused, unreadable, row(Scheme::Kiro, "cart", "Cart", (5, 5)), old],
        runs: vec![
            run("20260117-140000-000", "openspec:add-login", "running", true),
            run("20260116-090000-000", "prd:prd.json", "complete", false),
        ],
        warnings: Vec::new(),
    }
}

fn plan() -> Plan {
    let mut first = Story::new("S-1", "Put things into a basket");
    first.state = WorkState::Done;
    let mut second = Story::new("S-2", "Pay 界面");
    second.deps = vec![StoryId::from("S-1")];
    "With a card.".clone_into(&mut second.description);
    second.tasks = vec![Task { line: Some(7), ..Task::new("2.1", "Ask the bank") }];
    second.criteria = vec!["A card that is refused is told".to_owned()];
    second.checks =
        vec![Check::FileExists { name: Some("bank".to_owned()), path: "src/bank.rs".to_owned(), glob: false }];
    let mut third = Story::new("S-3", "Thank the buyer");
    third.deps = vec![StoryId::from("S-2")];
    let scenario = Scenario {
        name: "A refused card".to_owned(),
        given: vec!["a card without money".to_owned()],
        when: vec!["it is used".to_owned()],
        then: vec!["the buyer is told".to_owned()],
        other: Vec::new(),
    };
    let requirement = Requirement {
        capability: "pay".to_owned(),
        id: "cards".to_owned(),
        title: "Cards".to_owned(),
        delta: Delta::Added,
        text: "Cards are taken.".to_owned(),
        scenarios: vec![scenario],
    };
    Plan {
        title: Some("A shop".to_owned()),
        context: Context {
            proposal: "People want to buy.".to_owned(),
            design: "A table of orders.".to_owned(),
            requirements: vec![requirement],
            ..Context::default()
        },
        ..Plan::new(work(Scheme::Prd, "prd.json"), vec![first, second, third])
    }
}

fn preview() -> Preview {
    let agent = |name: &str, here| AgentRow {
        name: name.to_owned(),
        title: name.to_uppercase(),
        here,
        install: format!("npm install -g {name}"),
    };
    Preview {
        work: work(Scheme::Prd, "prd.json"),
        file: "prd.json".to_owned(),
        plan: Some(Box::new(plan())),
        stages: vec![vec![StoryId::from("S-2")], vec![StoryId::from("S-3")]],
        problems: vec![Problem {
            error: false,
            place: "prd.json:12:5".to_owned(),
            message: "the priority `soon` has no known meaning".to_owned(),
            help: "write a number".to_owned(),
        }],
        gates: vec![GateRow { command: "cargo test".to_owned(), from: "found in Cargo.toml".to_owned() }],
        warnings: Vec::new(),
        agents: vec![agent("claude", true), agent("codex", true), agent("gemini", false)],
        choices: Choices {
            agent: "claude".to_owned(),
            model: String::new(),
            jobs: "1".to_owned(),
            retries: "3".to_owned(),
        },
        command: false,
        branch: "main".to_owned(),
        unfinished: Some(run("20260117-130000-000", "prd:prd.json", "paused", false)),
    }
}

/// The screens before a run, and what they asked for.
struct Scene {
    model: Picker,
    asked: Vec<Request>,
}

impl Scene {
    fn new() -> Self {
        let options = Options { keys: Keymap::default(), theme: Theme::default(), own: false, utc_offset: 0 };
        let mut scene = Self { model: Picker::new(options, (80, 24), START), asked: Vec::new() };
        scene.asked = scene.model.settle();
        scene
    }

    fn of(found: Found) -> Self {
        let mut scene = Self::new();
        scene.tell(Msg::Found(Box::new(found)));
        scene
    }

    /// The preview of the shop is open.
    fn opened() -> Self {
        let mut scene = Self::of(everything());
        scene.keys(&["s", "h", "o", "p", "enter"]);
        scene.tell(Msg::Preview(Box::new(preview())));
        scene.asked.clear();
        scene
    }

    fn tell(&mut self, msg: Msg) {
        self.asked.extend(self.model.update(msg));
        self.asked.extend(self.model.settle());
    }

    fn keys(&mut self, keys: &[&str]) {
        for key in keys {
            let press: Press = key.parse().unwrap_or_else(|_| panic!("no key: {key}"));
            self.tell(Msg::Input(Input::Key(press)));
        }
    }

    fn screen(&mut self, size: (u16, u16)) -> String {
        self.tell(Msg::Input(Input::Resize(size.0, size.1)));
        frame(size, |frame| self.model.draw(frame))
    }

    #[track_caller]
    fn shows(&mut self, seen: &str) {
        let screen = self.screen((110, 40));
        assert!(screen.contains(seen), "{seen:?} is not in\n{screen}");
    }

    /// Compares what is seen with the file of that name, at three sizes.
    #[track_caller]
    fn holds(&mut self, name: &str) {
        for size in [(40, 12), (80, 24), (120, 40)] {
            let screen = self.screen(size);
            holds(&format!("{name}-{}x{}", size.0, size.1), &screen);
        }
    }
}

#[test]
fn what_is_here_is_looked_for_once_and_shown_by_format() {
    let mut scene = Scene::new();
    assert_eq!(scene.asked, [Request::Find]);
    scene.shows("Looking for work");
    scene.tell(Msg::Found(Box::new(everything())));
    assert_eq!(scene.asked.len(), 1, "it is not looked for again");
    scene.holds("choose");
}

#[test]
fn nothing_here_says_what_work_could_be() {
    Scene::of(Found::default()).shows("`ralphloop new prd` writes a starter");
}

#[test]
fn typing_filters_and_escape_gives_all_back_with_the_same_row() {
    let mut scene = Scene::of(everything());
    scene.keys(&["c", "a", "r", "t"]);
    let screen = scene.screen((100, 30));
    assert!(screen.contains("Filter: cart") && screen.contains("▸ cart"), "{screen}");
    assert!(!screen.contains("add-login"), "{screen}");
    scene.keys(&["esc"]);
    let screen = scene.screen((100, 30));
    assert!(screen.contains("add-login") && screen.contains("▸ cart"), "{screen}");
    scene.keys(&["x", "x", "x"]);
    scene.shows("Nothing that is here fits");
    scene.keys(&["backspace", "backspace", "backspace", "enter"]);
    assert!(matches!(scene.asked.last(), Some(Request::Preview { .. })), "{:?}", scene.asked);
}

#[test]
fn letters_that_leave_belong_to_the_filter_once_it_was_begun() {
    let mut scene = Scene::of(everything());
    scene.keys(&["/", "q", "?"]);
    scene.shows("Filter: q?");
    assert_eq!(scene.asked, [Request::Find]);
    let mut scene = Scene::of(everything());
    scene.keys(&["q"]);
    assert_eq!(scene.asked.last(), Some(&Request::Leave(Left::Away)));
}

#[test]
fn the_selection_goes_round_and_opens_with_the_same_row_after_the_way_back() {
    let mut scene = Scene::of(everything());
    scene.keys(&["up"]);
    scene.shows("▸ 2026-01-17 14:00");
    scene.keys(&["down", "down", "down"]);
    scene.keys(&["enter"]);
    let asked = Request::Preview { work: work(Scheme::Prd, "prd.json"), choices: None };
    assert_eq!(scene.asked.last(), Some(&asked));
    scene.keys(&["esc"]);
    scene.shows("▸ prd.json");
}

#[test]
fn work_that_is_being_run_is_attached_to_and_an_old_run_looked_at() {
    let mut scene = Scene::of(everything());
    scene.keys(&["l", "o", "g", "i", "n", "enter"]);
    assert_eq!(scene.asked.last(), Some(&Request::Leave(Left::Look(RunId("20260117-140000-000".to_owned())))));
    let mut scene = Scene::of(everything());
    scene.keys(&["end", "enter"]);
    assert_eq!(scene.asked.last(), Some(&Request::Leave(Left::Look(RunId("20260116-090000-000".to_owned())))));
}

#[test]
fn a_click_selects_and_a_second_opens() {
    let mut scene = Scene::of(everything());
    let screen = scene.screen((100, 30));
    let y = u16::try_from(screen.lines().position(|line| line.contains("  cart")).unwrap()).unwrap();
    for _ in 0..2 {
        scene.tell(Msg::Input(Input::Mouse(Mouse::Click { x: 5, y })));
    }
    let asked = Request::Preview { work: work(Scheme::Kiro, "cart"), choices: None };
    assert_eq!(scene.asked.last(), Some(&asked));
}

#[test]
fn the_preview_shows_each_tab() {
    for name in ["tasks", "scenarios", "design", "order", "gates"] {
        let mut scene = Scene::opened();
        let tabs = ["tasks", "scenarios", "design", "order", "gates"].iter().position(|tab| *tab == name).unwrap();
        scene.keys(&vec!["tab"; tabs]);
        scene.holds(&format!("preview-{name}"));
    }
}

#[test]
fn the_prompt_is_asked_for_story_by_story_and_copied_whole() {
    let mut scene = Scene::opened();
    scene.keys(&["shift-tab"]);
    assert_eq!(scene.asked, [Request::Prompt(StoryId::from("S-2"))], "the first story that is open");
    let text = "# Story S-2\n".to_owned() + &"a long line of it ".repeat(20);
    scene.tell(Msg::Prompt { story: StoryId::from("S-2"), text: Ok(text.clone()) });
    scene.shows("# Story S-2");
    scene.keys(&["y"]);
    assert_eq!(scene.asked.last(), Some(&Request::Copy(text)));
    scene.keys(&["]"]);
    assert_eq!(scene.asked.last(), Some(&Request::Prompt(StoryId::from("S-3"))));
    scene.tell(Msg::Prompt { story: StoryId::from("S-3"), text: Err("the template is broken".to_owned()) });
    scene.shows("the template is broken");
}

#[test]
fn what_it_is_run_with_is_changed_checked_and_only_then_taken() {
    let mut scene = Scene::opened();
    scene.keys(&["c"]);
    scene.holds("change");
    scene.keys(&["right", "down", "o", "3", "down", "right", "right", "down", "0", "enter"]);
    let wanted =
        Choices { agent: "codex".to_owned(), model: "o3".to_owned(), jobs: "3".to_owned(), retries: "0".to_owned() };
    let asked = Request::Preview { work: work(Scheme::Prd, "prd.json"), choices: Some(wanted.clone()) };
    assert_eq!(scene.asked, [asked]);
    scene.tell(Msg::Refused("unknown agent \"codecs\"; known: claude, codex".to_owned()));
    scene.shows("unknown agent \"codecs\"; known: claude, codex");
    scene.keys(&["enter"]);
    scene.tell(Msg::Preview(Box::new(Preview { choices: wanted, ..preview() })));
    scene.shows("agent codex · model o3 · at once 3 · retries 0");
    scene.keys(&["R"]);
    assert_eq!(scene.asked.last(), Some(&Request::Start));
}

#[test]
fn an_agent_that_is_not_here_is_said_with_the_way_to_get_it() {
    let mut scene = Scene::opened();
    scene.keys(&["c", "left"]);
    scene.shows("GEMINI is not here: npm install -g gemini");
    scene.keys(&["esc"]);
    scene.shows("agent claude");
}

#[test]
fn nothing_is_answered_by_itself_before_a_run() {
    let mut scene = Scene::opened();
    scene.keys(&["R"]);
    let question = Question {
        facts: "run 20260117-130000-000 of prd:prd.json (paused): asked to pause\n  1 of 3 stories passed".to_owned(),
        question: "Go on?".to_owned(),
        answers: vec![('r', "resume: go on with it".to_owned()), ('q', "quit, and leave everything".to_owned())],
    };
    scene.asked.clear();
    scene.tell(Msg::Ask(question.clone()));
    scene.holds("question");
    scene.keys(&["x", "R"]);
    assert_eq!(scene.asked, []);
    scene.keys(&["esc"]);
    assert_eq!(scene.asked, [Request::Answer('q')], "who turns away wants nothing");
    scene.tell(Msg::Ask(question));
    scene.keys(&["enter"]);
    assert_eq!(scene.asked.last(), Some(&Request::Answer('r')));
    scene.tell(Msg::Begun);
    assert_eq!(scene.asked.last(), Some(&Request::Leave(Left::Begun)));
}

#[test]
fn a_run_that_could_not_begin_says_why_and_the_preview_is_there_again() {
    let mut scene = Scene::opened();
    scene.keys(&["R"]);
    scene.tell(Msg::NotBegun("error: the agent `claude` cannot be started: not on the PATH".to_owned()));
    scene.shows("the agent `claude` cannot be started");
    scene.keys(&["x"]);
    scene.shows("Tasks");
    scene.keys(&["R"]);
    assert_eq!(scene.asked.last(), Some(&Request::Start));
}

#[test]
fn work_that_cannot_be_read_shows_its_problems_and_does_not_start() {
    let mut scene = Scene::opened();
    let problem = Problem {
        error: true,
        place: "prd.json:3:1".to_owned(),
        message: "no JSON".to_owned(),
        help: "put a comma".to_owned(),
    };
    scene.tell(Msg::Preview(Box::new(Preview { plan: None, problems: vec![problem], ..preview() })));
    scene.shows("error: prd.json:3:1: no JSON");
    scene.shows("put a comma");
    scene.asked.clear();
    scene.keys(&["R"]);
    assert_eq!(scene.asked, []);
    scene.shows("the work cannot be read");
}

#[test]
fn every_one_of_these_screens_draws_at_every_size() {
    let mut scenes = vec![Scene::new(), Scene::of(everything()), Scene::of(Found::default())];
    for tab in 0..6 {
        let mut scene = Scene::opened();
        scene.keys(&vec!["tab"; tab]);
        scenes.push(scene);
    }
    let mut changing = Scene::opened();
    changing.keys(&["c", "left"]);
    changing.tell(Msg::Refused("界".repeat(200)));
    let mut helped = Scene::opened();
    helped.keys(&["?"]);
    let mut failed = Scene::opened();
    failed.tell(Msg::NotBegun("why ".repeat(300)));
    scenes.extend([changing, helped, failed]);
    for scene in &mut scenes {
        for size in SIZES {
            scene.screen(*size);
        }
        scene.keys(&["down", "pgdn", "end", "up", "home"]);
        scene.tell(Msg::Input(Input::Mouse(Mouse::Wheel { x: 0, y: 3, by: 1 })));
        scene.tell(Msg::Input(Input::Mouse(Mouse::Click { x: 0, y: 0 })));
    }
}

#[test]
fn the_answers_of_a_question_are_seen_however_long_its_facts_are() {
    let mut scene = Scene::opened();
    let answers = vec![('r', "resume".to_owned()), ('q', "quit".to_owned())];
    let facts = "a fact\n".repeat(100);
    scene.tell(Msg::Ask(Question { facts, question: "Go on?".to_owned(), answers }));
    let screen = scene.screen((80, 24));
    assert!(screen.contains("Go on?") && screen.contains("q  quit") && screen.contains("a fact"), "{screen}");
}

#[test]
fn what_a_spec_says_does_nothing_to_the_terminal() {
    let mut found = everything();
    found.works[0].title = Some("a\x1b[2J\u{202e}b".to_owned());
    found.place = "a\x1b[2Jb".to_owned();
    let mut scene = Scene::of(found);
    let screen = scene.screen((200, 30));
    assert!(screen.contains("a␛[2J") && !screen.contains(['\x1b', '\u{202e}']), "{screen}");
    let mut scene = Scene::opened();
    let mut preview = preview();
    let plan = preview.plan.as_mut().unwrap();
    plan.stories[1].title = "x\x1b[2Jy".to_owned();
    plan.context.proposal = "x\x1b[2Jy\u{202e}".to_owned();
    preview.gates[0].command = "x\x1b[2Jy".to_owned();
    preview.branch = "x\x1b[2Jy".to_owned();
    scene.tell(Msg::Preview(Box::new(preview)));
    for _ in 0..6 {
        let screen = scene.screen((150, 40));
        assert!(!screen.contains(['\x1b', '\u{202e}']), "{screen}");
        scene.keys(&["tab"]);
    }
}
