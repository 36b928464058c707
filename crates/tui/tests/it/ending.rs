//! The end of a run on its screen: what came of it, what can be done with it, and what it changed.

use ralphloop_core::event::Fact;
use ralphloop_core::outcome::Outcome;
use ralphloop_tui::port::{CHUNK, Gesture, Leave, Offer, SheetId, SheetMark};
use ralphloop_tui::{Msg, Request};

use crate::snapshot::holds;
use crate::{Scene, attempt};

fn over() -> Scene {
    let mut scene = Scene::new(true, (100, 30)).agent_works();
    scene.fact(Fact::RunEnded { outcome: Outcome::Failed });
    scene
}

fn offers() -> Vec<Offer> {
    vec![
        Offer {
            gesture: Gesture::Squash,
            what: Ok("2 commits on main become one:\n  abc feat(S-1): A\n  def feat(S-2): B".to_owned()),
            command: "ralphloop squash 20260117-140000-000".to_owned(),
        },
        Offer {
            gesture: Gesture::PullRequest,
            what: Err("the repository has no remote to push to: `git remote add origin ADDRESS` names one".to_owned()),
            command: "ralphloop pr 20260117-140000-000".to_owned(),
        },
    ]
}

#[test]
fn the_end_says_why_and_what_can_be_done_and_does_it_only_when_told_twice() {
    let mut scene = over();
    assert!(scene.asked.contains(&Request::Offers), "{:?}", scene.asked);
    scene.tell(Msg::Offers(offers()));
    for size in [(60, 15), (100, 30)] {
        let screen = scene.screen(size);
        holds(&format!("ending-{}x{}", size.0, size.1), &screen);
    }
    scene.asked.clear();
    scene.keys(&["down", "down", "enter"]);
    assert_eq!(scene.asked, [], "it is shown first");
    let screen = scene.screen((100, 30));
    assert!(screen.contains("become one") && screen.contains("ralphloop squash 20260117"), "{screen}");
    scene.keys(&["enter"]);
    assert_eq!(scene.asked, [Request::Do(Gesture::Squash)]);
    scene.tell(Msg::Done { gesture: Gesture::Squash, said: Ok("2 commits are one now: 0123".to_owned()) });
    assert_eq!(scene.asked.last(), Some(&Request::Offers), "what is possible may have changed");
    assert!(scene.screen((100, 30)).contains("2 commits are one now"));
    scene.keys(&["enter", "enter"]);
    assert_eq!(scene.asked.last(), Some(&Request::Leave(Leave::Done)));
}

#[test]
fn what_is_not_possible_says_why_and_a_change_of_mind_does_nothing() {
    let mut scene = over();
    scene.tell(Msg::Offers(offers()));
    scene.asked.clear();
    scene.keys(&["down", "down", "down", "enter"]);
    assert!(scene.screen((120, 30)).contains("has no remote to push to"));
    scene.keys(&["up", "enter", "esc", "esc"]);
    assert_eq!(scene.asked, []);
    assert!(!scene.screen((100, 30)).contains("The run has ended: "), "it is closed");
    scene.keys(&["E"]);
    assert_eq!(scene.asked, [Request::Offers]);
    assert!(scene.screen((100, 30)).contains("The run has ended"));
}

#[test]
fn somebody_elses_run_asks_nothing_when_it_ends_but_can_be_asked() {
    let mut scene = Scene::new(false, (100, 30)).agent_works();
    scene.fact(Fact::RunEnded { outcome: Outcome::Failed });
    assert!(!scene.asked.contains(&Request::Offers));
    scene.keys(&["E"]);
    assert_eq!(scene.asked.last(), Some(&Request::Offers));
}

fn files(scene: &mut Scene, lines: u64) {
    scene.keys(&["shift-tab"]);
    assert_eq!(scene.asked.pop(), Some(Request::MakeSheet(SheetId::Landed)));
    let mark = |line, path: &str| SheetMark { line, path: path.to_owned() };
    let made = Ok((lines, 3, vec![mark(3, "src/lib.rs"), mark(600, "src/界.rs")]));
    scene.tell(Msg::Sheet { id: SheetId::Landed, version: 1, made });
    answer(scene, lines);
}

/// Reads what is asked for.
fn answer(scene: &mut Scene, lines: u64) {
    for request in std::mem::take(&mut scene.asked) {
        let Request::ReadSheet { id, version, chunk } = request else { continue };
        let line = |n: u64| match n {
            0 => "M src/lib.rs  +5 -1".to_owned(),
            1 => "A src/界.rs  +900 -0".to_owned(),
            2 => String::new(),
            3 => "diff --git a/src/lib.rs b/src/lib.rs".to_owned(),
            600 => "diff --git a/src/界.rs b/src/界.rs".to_owned(),
            n => format!("+line {n} \x1b[2J"),
        };
        let lines = (chunk * CHUNK..((chunk + 1) * CHUNK).min(lines)).map(line).collect();
        scene.tell(Msg::SheetLines { id, version, chunk, lines });
    }
}

#[test]
fn changed_files_are_listed_and_their_diffs_read_by_window() {
    let mut scene = over();
    scene.keys(&["esc"]);
    scene.screen((100, 20));
    scene.asked.clear();
    files(&mut scene, 2_000_000);
    let screen = scene.screen((100, 20));
    holds("files-100x20", &screen);
    assert!(!screen.contains('\x1b'));
    scene.asked.clear();
    scene.keys(&["]", "]"]);
    answer(&mut scene, 2_000_000);
    let screen = scene.screen((100, 20));
    assert!(
        screen.contains("diff --git a/src/界.rs") && screen.contains("file 2 of 2, [ and ] for others: src/界.rs"),
        "{screen}"
    );
    scene.keys(&["end"]);
    answer(&mut scene, 2_000_000);
    assert!(scene.screen((100, 20)).contains("+line 1999999"));
    scene.keys(&["["]);
    answer(&mut scene, 2_000_000);
    assert!(scene.screen((100, 20)).contains("diff --git a/src/界.rs"));
}

#[test]
fn the_changes_of_an_attempt_under_way_are_looked_at_again_and_keep_their_place() {
    let mut scene = Scene::new(true, (100, 20)).agent_works();
    scene.asked.clear();
    scene.keys(&["tab"]);
    let id = SheetId::Attempt(attempt());
    assert_eq!(scene.asked, [Request::MakeSheet(id.clone())]);
    scene.tell(Msg::Sheet { id: id.clone(), version: 1, made: Ok((500, 0, Vec::new())) });
    answer(&mut scene, 500);
    scene.keys(&["pgdn"]);
    let before = scene.screen((100, 20));
    scene.wait(std::time::Duration::from_secs(4));
    assert!(scene.asked.contains(&Request::MakeSheet(id.clone())), "{:?}", scene.asked);
    scene.asked.clear();
    scene.tell(Msg::Sheet { id: id.clone(), version: 2, made: Ok((501, 0, Vec::new())) });
    answer(&mut scene, 501);
    let after = scene.screen((100, 20));
    let first = |screen: &str| screen.lines().nth(4).map(str::to_owned);
    assert_eq!(first(&before), first(&after));
    // What an older one said does not come back.
    scene.tell(Msg::SheetLines { id: id.clone(), version: 1, chunk: 0, lines: vec!["old".to_owned(); 256] });
    assert!(!scene.screen((100, 20)).contains("old"));
    scene.tell(Msg::Sheet { id, version: 3, made: Err("the checkpoint is gone".to_owned()) });
    assert!(scene.screen((100, 20)).contains("the checkpoint is gone"));
}

#[test]
fn the_end_and_the_files_draw_at_every_size() {
    let mut scene = over();
    for step in ["", "esc", "shift-tab", "E", "down", "enter", "enter"] {
        if !step.is_empty() {
            scene.keys(&[step]);
        }
        scene.tell(Msg::Offers(offers()));
        scene.tell(Msg::Sheet { id: SheetId::Landed, version: 1, made: Ok((10, 1, Vec::new())) });
        for size in [(1, 1), (2, 7), (7, 3), (200, 1), (1, 200), (60, 15), (80, 24), (300, 90)] {
            scene.screen(size);
        }
    }
}

#[test]
fn a_story_that_waits_for_a_signature_is_offered_shown_and_signed() {
    let mut scene = over();
    let sign = || Gesture::Sign("S-1".into());
    let what = "S-1: Lamp\nLook at it: the light is warm".to_owned();
    let offer = Offer { gesture: sign(), what: Ok(what), command: "ralphloop sign S-1".to_owned() };
    scene.tell(Msg::Offers(vec![offer]));
    assert!(scene.screen((100, 30)).contains("Sign S-1: it has landed, and waits for you"));
    scene.asked.clear();
    scene.keys(&["down", "down", "enter"]);
    let screen = scene.screen((100, 30));
    assert!(screen.contains("the light is warm") && screen.contains("ralphloop sign S-1"), "{screen}");
    assert_eq!(scene.asked, [], "it is shown first");
    scene.keys(&["enter"]);
    assert_eq!(scene.asked, [Request::Do(sign())]);
    scene.tell(Msg::Done { gesture: sign(), said: Ok("S-1 is signed off".to_owned()) });
    assert!(scene.screen((100, 30)).contains("S-1 is signed off"));
}
