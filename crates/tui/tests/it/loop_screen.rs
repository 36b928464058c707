//! The screen of a run at many sizes, with all that it can show, and what its keys ask for.

use std::time::Duration;

use ralphloop_core::event::{CheckRef, CheckStage, Fact, StopCause, StopLevel};
use ralphloop_core::evidence::{AgentEnd, AgentReport, CheckResult, Claim, TreeReport, Usage};
use ralphloop_core::ids::{AttemptId, CallNumber, StoryId, TreeId};
use ralphloop_core::outcome::Outcome;
use ralphloop_core::units::Usd;
use ralphloop_tui::port::{Entry, EntryKind, Leave};
use ralphloop_tui::{Msg, Request};

use crate::snapshot::holds;
use crate::{START, Scene, attempt, call};

const SIZES: [(u16, u16); 5] = [(1, 1), (20, 5), (80, 24), (120, 40), (200, 60)];

/// What an agent says and does, in every kind, in several scripts.
fn talk() -> Vec<Entry> {
    let entry = |kind, text: &str| Entry { at: START, kind, text: text.to_owned() };
    vec![
        entry(EntryKind::Note, "model claude-opus"),
        entry(EntryKind::Thought, "The basket must keep its order.\nA list will do.\nSo a test for that first."),
        entry(EntryKind::Agent, "I look at the basket first. 界面 测试 🧪 e\u{301}: a list keeps the order."),
        entry(EntryKind::Plan, "[x] Look at the basket\n[>] Write a test for its order\n[ ] Keep the order"),
        entry(EntryKind::Tool, "Bash  {\"command\": \"cargo test basket\"}"),
        entry(EntryKind::ToolOutput, "running 3 tests\ntest basket::adds ... ok\ntest basket::keeps_order ... FAILED"),
        entry(EntryKind::ToolFailed, "exit code 101\nerror: test failed"),
        entry(EntryKind::SubAgent, "שלום עולם, مرحبا بالعالم: words that run from right to left."),
        entry(EntryKind::Output, "plain \x1b[31moutput\x1b[0m with\ttabs and \u{202e}turned\u{202c} text"),
        entry(EntryKind::Agent, "<promise>COMPLETE</promise>"),
    ]
}

fn report(end: AgentEnd, claim: Claim) -> Box<AgentReport> {
    Box::new(AgentReport {
        end,
        claim,
        last_words: String::new(),
        handover: String::new(),
        usage: Usage {
            input_tokens: Some(12_345),
            output_tokens: Some(678),
            cost: Some(Usd(1_230_000)),
            ..Usage::default()
        },
        took: Duration::from_secs(95),
        learnings: Vec::new(),
        model: None,
    })
}

fn checked(id: AttemptId, stage: CheckStage, result: CheckResult) -> Fact {
    let took = Duration::from_secs(4);
    Fact::CheckFinished { attempt: id, stage, check: CheckRef::Gate(0), result, cached: false, took }
}

fn red(output: &str) -> CheckResult {
    CheckResult::Failed { why: "exit code 1".to_owned(), output: output.to_owned() }
}

/// A story whose first attempt failed, while the agent of its second works.
fn second_attempt(size: (u16, u16)) -> Scene {
    let mut scene = Scene::new(true, size);
    let second = AttemptId { number: 2, ..attempt() };
    scene.fact(Fact::AttemptStarted { attempt: attempt(), notes: Vec::new() });
    scene.fact(Fact::CheckStarted { attempt: attempt(), stage: CheckStage::Baseline, check: CheckRef::Gate(0) });
    scene.fact(checked(attempt(), CheckStage::Baseline, red("1 test failed: old::one")));
    scene.fact(Fact::CheckpointTaken { attempt: attempt(), notes: Vec::new() });
    scene.fact(Fact::AgentStarted { attempt: attempt(), call: CallNumber(0), agent: None });
    scene.tell(Msg::Extent { call: call(), entries: 10, reading: false });
    scene.tell(Msg::Entries { call: call(), chunk: 0, entries: talk() });
    scene.wait(Duration::from_secs(95));
    let report = report(AgentEnd::Finished, Claim::Failed { reason: "the basket has no owner".to_owned() });
    scene.fact(Fact::AgentEnded { attempt: attempt(), call: CallNumber(0), agent: None, report });
    let tree = TreeReport {
        tree: TreeId("t".to_owned()),
        files_changed: 3,
        shown: Vec::new(),
        had_open_boxes: true,
        all_boxes_ticked: false,
        notes: Vec::new(),
        unresolved: Vec::new(),
        strayed: Vec::new(),
    };
    scene.fact(Fact::TreeInspected { attempt: attempt(), call: CallNumber(0), report: tree });
    let kept = Some("refs/ralphloop/20260117-140000-000/S-1/1".to_owned());
    scene.fact(Fact::Reverted { attempt: attempt(), kept, notes: Vec::new() });
    scene.fact(Fact::PlanChecked { spec: ralphloop_core::event::PlanChange::Same });
    scene.fact(Fact::AttemptStarted { attempt: second.clone(), notes: Vec::new() });
    scene.fact(Fact::CheckpointTaken { attempt: second.clone(), notes: Vec::new() });
    scene.fact(Fact::AgentStarted { attempt: second, call: CallNumber(0), agent: None });
    scene
}

/// A story whose agent works, with all kinds of entries.
fn talking(size: (u16, u16)) -> Scene {
    let mut scene = Scene::new(true, size).agent_works();
    scene.tell(Msg::Extent { call: call(), entries: 10, reading: false });
    scene.tell(Msg::Entries { call: call(), chunk: 0, entries: talk() });
    scene.wait(Duration::from_secs(83));
    scene
}

fn name(of: &str, (columns, rows): (u16, u16)) -> String {
    format!("loop-{of}-{columns}x{rows}")
}

#[test]
fn the_agent_is_seen_at_every_size() {
    for size in SIZES {
        holds(&name("agent", size), &talking(size).screen(size));
        let mut open = talking(size);
        open.keys(&["o"]);
        holds(&name("agent-open", size), &open.screen(size));
    }
}

#[test]
fn checks_attempts_and_the_story_are_seen_at_every_size() {
    for (tab, turns) in [("checks", 2), ("attempts", 3), ("info", 4)] {
        for size in SIZES {
            let mut scene = second_attempt(size);
            scene.keys(&vec!["tab"; turns]);
            holds(&name(tab, size), &scene.screen(size));
        }
    }
}

#[test]
fn a_gate_that_was_red_before_the_story_is_marked_so() {
    let mut scene = Scene::new(true, (100, 30));
    scene.fact(Fact::AttemptStarted { attempt: attempt(), notes: Vec::new() });
    scene.fact(checked(attempt(), CheckStage::Baseline, red("old::one")));
    scene.fact(Fact::CheckpointTaken { attempt: attempt(), notes: Vec::new() });
    scene.fact(checked(attempt(), CheckStage::Call(CallNumber(0)), red("old::one")));
    scene.keys(&["tab", "tab"]);
    let screen = scene.screen((100, 30));
    assert!(screen.contains("✗ before the attempt: tests: exit code 1"), "{screen}");
    assert!(screen.contains("✗ tests: exit code 1 (4 s, red before the story too)"), "{screen}");
}

#[test]
fn a_wait_counts_down_and_says_for_what() {
    let size = (120, 40);
    let mut scene = talking(size);
    let resets_at = Some(scene.at.after(Duration::from_secs(3723)));
    let end = AgentEnd::Limit { resets_at, message: "5-hour limit reached".to_owned() };
    scene.fact(Fact::AgentEnded {
        attempt: attempt(),
        agent: None,
        call: CallNumber(0),
        report: report(end, Claim::None { near_miss: None }),
    });
    let tree = TreeReport {
        tree: TreeId("t".to_owned()),
        files_changed: 0,
        shown: Vec::new(),
        had_open_boxes: true,
        all_boxes_ticked: false,
        notes: Vec::new(),
        unresolved: Vec::new(),
        strayed: Vec::new(),
    };
    scene.fact(Fact::TreeInspected { attempt: attempt(), call: CallNumber(0), report: tree });
    scene.fact(Fact::Reverted { attempt: attempt(), kept: None, notes: Vec::new() });
    let screen = scene.screen(size);
    assert!(screen.contains("for another 1 h 2 min") && screen.contains("5-hour limit reached"), "{screen}");
    scene.wait(Duration::from_hours(1));
    assert!(scene.screen(size).contains("for another 2 min 5 s"), "{}", scene.screen(size));
    holds(&name("wait", size), &scene.screen(size));
}

#[test]
fn a_stop_and_the_help_are_seen_at_every_size() {
    for size in SIZES {
        let mut scene = talking(size);
        scene.keys(&["q"]);
        scene.fact(Fact::StopRequested { cause: StopCause::Request, level: StopLevel::Now });
        scene.wait(Duration::from_secs(6));
        holds(&name("stopping", size), &scene.screen(size));
        let mut scene = talking(size);
        scene.keys(&["?"]);
        holds(&name("help", size), &scene.screen(size));
    }
}

#[test]
fn a_story_that_is_worked_on_is_skipped_at_the_second_press_and_a_waiting_one_at_the_first() {
    let mut scene = talking((100, 30));
    scene.asked.clear();
    scene.keys(&["s"]);
    assert_eq!(scene.asked, []);
    assert!(scene.screen((100, 30)).contains("s once more skips S-1: its attempt is ended, kept and put back"));
    scene.wait(Duration::from_secs(4));
    scene.keys(&["s"]);
    assert_eq!(scene.asked, [], "the first press was too long ago");
    scene.keys(&["s"]);
    assert_eq!(scene.asked, [Request::Skip(StoryId::from("S-1"))]);
    scene.fact(Fact::SkipRequested { story: StoryId::from("S-1") });
    assert!(scene.screen((100, 30)).contains("Skipping story S-1: its attempt is ended"));
    scene.asked.clear();
    scene.keys(&["right", "s"]);
    assert_eq!(scene.asked, [Request::Skip(StoryId::from("S-2"))]);
    scene.fact(Fact::SkipRequested { story: StoryId::from("S-2") });
    assert!(scene.screen((100, 30)).contains("- S-2"), "{}", scene.screen((100, 30)));
    scene.asked.clear();
    scene.keys(&["r"]);
    assert_eq!(scene.asked, [Request::Retry(StoryId::from("S-2"))]);
    scene.fact(Fact::RetryRequested { story: StoryId::from("S-2") });
    assert!(scene.screen((100, 30)).contains("Story S-2 is tried again"));
}

#[test]
fn a_story_of_a_run_that_is_over_is_tried_again_by_going_on_with_the_run() {
    let mut scene = talking((100, 30));
    scene.fact(Fact::RunEnded { outcome: Outcome::Failed });
    scene.keys(&["r"]);
    assert_eq!(scene.asked.last(), Some(&Request::Leave(Leave::Retry(StoryId::from("S-1")))));
}
