//! Preparing ahead: what is done for the next in the queue while one is checked on its merged tree.

use std::num::NonZeroU32;
use std::time::Duration;

use ralphloop_core::effect::Effect;
use ralphloop_core::event::{CheckRef, CheckStage, Fact, StopLevel};
use ralphloop_core::evidence::{CheckResult, Merge};
use ralphloop_core::outcome::Outcome;
use ralphloop_core::policy::{Place, Policy};
use ralphloop_core::run::StoryState;

use crate::support::*;

fn lanes(jobs: u32) -> Policy {
    Policy { place: Place::Worktrees, jobs: NonZeroU32::new(jobs).expect("at least one"), ..gated() }
}

fn merged(tree: &str) -> Merge {
    Merge::Merged { report: Box::new(complete().tree(tree).tree) }
}

fn conflicts() -> Merge {
    Merge::Conflicts { files: vec!["src/lib.rs".to_owned()], notes: Vec::new() }
}

fn agent(e: &Effect) -> bool {
    matches!(e, Effect::StartAgent { .. })
}

fn checks_merged(e: &Effect) -> bool {
    matches!(e, Effect::RunCheck { stage: CheckStage::Merged(_), .. })
}

/// Three stories, of which S1 is merged and about to be checked as such, and the others are proven.
fn three(merges: [Vec<Merge>; 3]) -> Play {
    let stories = vec![story("S1"), story("S2"), story("S3")];
    let calls = ["a", "b", "c", "d", "e", "f"].map(|tree| complete().tree(tree));
    let mut play = Play::new(stories, lanes(3)).agents(calls);
    for (story, merges) in ["S1", "S2", "S3"].iter().zip(merges) {
        play = play.merges(story, merges);
    }
    for story in ["S1", "S2", "S3"] {
        play.until_of(story, agent);
    }
    play.until_of("S1", checks_merged);
    for story in ["S2", "S3"] {
        play.until_of(story, |e| matches!(e, Effect::RunCheck { stage: CheckStage::Call(_), .. }));
        play.answer();
    }
    play
}

/// The gate of what is checked as merged for that story comes to this.
fn gate_says(play: &mut Play, story: &str, result: CheckResult) {
    let effect = play.until_of(story, checks_merged);
    let Effect::RunCheck { attempt, stage, check, .. } = effect else { unreachable!() };
    let took = Duration::from_secs(1);
    play.answer_with(Fact::CheckFinished { attempt, stage, check, result, cached: false, took });
}

#[test]
fn while_one_is_checked_the_next_are_checked_on_top_of_it_and_land_without_further_checks() {
    let mut play = three([vec![merged("1")], vec![merged("12"), merged("12")], vec![merged("123"), merged("123")]]);
    play.until_of("S2", checks_merged);
    play.until_of("S3", checks_merged);
    assert!(play.asked_for("prepare S2#1 on S1#1") && play.asked_for("prepare S3#1 on S2#1"), "{:#?}", play.log);
    assert_eq!(play.end(), Outcome::Complete);
    // Three of what the agents left, three of what was merged.
    assert_eq!(play.count("check Gate(0)"), 6, "{:#?}", play.log);
}

#[test]
fn nothing_lands_before_what_it_was_prepared_on() {
    let mut play = three([vec![merged("1")], vec![merged("12"), merged("12")], Vec::new()]);
    gate_says(&mut play, "S2", CheckResult::Passed);
    assert_eq!(play.count("land"), 0, "{:#?}", play.log);
    gate_says(&mut play, "S1", CheckResult::Passed);
    assert_eq!((play.count("land S1"), play.count("land S2")), (1, 0), "{:#?}", play.log);
    assert_eq!(play.end(), Outcome::Complete);
}

#[test]
fn what_stands_on_one_that_fails_is_stopped_and_prepared_anew() {
    let mut play = three([
        vec![merged("1"), merged("321")],
        vec![merged("12"), merged("2")],
        vec![merged("123"), merged("23"), merged("23")],
    ]);
    play.until_of("S2", checks_merged);
    play.until_of("S3", checks_merged);
    gate_says(&mut play, "S1", red("exit code 1"));
    assert!(play.asked_for("stop the check of S2#1") && play.asked_for("stop the check of S3#1"), "{:#?}", play.log);
    gate_says(&mut play, "S2", CheckResult::Stopped);
    assert_eq!(play.count("merge S2"), 0, "the other comes back to its turn first: {:#?}", play.log);
    gate_says(&mut play, "S3", CheckResult::Stopped);
    assert_eq!(play.count("merge S2"), 1, "{:#?}", play.log);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.record("S2").charged + play.record("S3").charged, 0);
    assert!(play.asked_for("prepare S3#1 on S2#1"));
}

#[test]
fn a_tree_on_which_all_has_passed_before_is_not_checked_again() {
    // Without S1, what S2 merges to is what its agent left.
    let mut play = three([vec![merged("1"), merged("21")], vec![merged("12"), merged("b")], Vec::new()]);
    play.until_of("S2", checks_merged);
    gate_says(&mut play, "S1", red("exit code 1"));
    gate_says(&mut play, "S2", CheckResult::Stopped);
    play.until_of("S2", |e| matches!(e, Effect::Land { .. }));
    assert_eq!(play.end(), Outcome::Complete);
}

#[test]
fn conflicts_with_what_has_not_landed_wait_for_it_and_the_one_behind_goes_on() {
    let mut play = three([vec![merged("1")], vec![conflicts(), merged("12")], vec![merged("13"), merged("123")]]);
    play.until_of("S3", checks_merged);
    assert!(play.asked_for("prepare S3#1 on S1#1"), "{:#?}", play.log);
    assert_eq!(play.count("agent S2#1 call 1"), 0, "nobody resolves what may never be: {:#?}", play.log);
    assert_eq!(play.count("prepare S2"), 1);
    gate_says(&mut play, "S3", CheckResult::Passed);
    gate_says(&mut play, "S1", CheckResult::Passed);
    play.until_of("S1", |e| matches!(e, Effect::Land { .. }));
    play.answer();
    assert_eq!((play.count("merge S2"), play.count("merge S3")), (1, 0), "{:#?}", play.log);
    assert_eq!(play.end(), Outcome::Complete);
}

#[test]
fn what_is_red_on_top_of_another_is_repaired_only_once_that_has_landed() {
    let mut play = three([vec![merged("1")], vec![merged("12"), merged("12")], Vec::new()]);
    gate_says(&mut play, "S2", red("exit code 1"));
    assert_eq!(play.count("agent S2#1 call 1"), 0, "{:#?}", play.log);
    gate_says(&mut play, "S1", CheckResult::Passed);
    play.until_of("S2", checks_merged);
    gate_says(&mut play, "S2", red("exit code 1"));
    assert_eq!(play.count("agent S2#1 call 1"), 1, "{:#?}", play.log);
    assert_eq!(play.end(), Outcome::Complete);
}

#[test]
fn a_stop_and_a_restart_leave_nothing_of_what_was_prepared() {
    let mut play = three([vec![merged("1")], vec![merged("12")], vec![merged("123")]]);
    play.until_of("S3", checks_merged);
    play.restart();
    for story in ["S1", "S2", "S3"] {
        assert_eq!(play.count(&format!("revert {story}#1")), 1, "{:#?}", play.log);
    }
    assert_eq!(play.end(), Outcome::Complete);
    let mut play = three([vec![merged("1")], vec![merged("12")], vec![merged("123")]]);
    play.until_of("S3", checks_merged);
    play.tell(stop(StopLevel::Now));
    for story in ["S1", "S2", "S3"] {
        gate_says(&mut play, story, CheckResult::Stopped);
    }
    assert!(matches!(play.end(), Outcome::Stopped { .. }));
    assert_eq!(play.state("S2"), &StoryState::Pending);
}

#[test]
fn journals_of_versions_that_prepared_nothing_ahead_are_read_as_they_were_meant() {
    let mut play = three([vec![merged("1")], Vec::new(), Vec::new()]);
    gate_says(&mut play, "S1", CheckResult::Passed);
    play.until_of("S1", |e| matches!(e, Effect::Land { .. }));
    play.answer();
    // The version before merged with the branch now, and did not count.
    let call = ralphloop_core::ids::CallNumber(0);
    play.tell(Fact::Merged { attempt: attempt("S2", 1), call, number: 0, merge: merged("12") });
    let stage = CheckStage::Merged(1);
    let (check, result, took) = (CheckRef::Gate(0), CheckResult::Passed, Duration::from_secs(1));
    play.tell(Fact::CheckFinished { attempt: attempt("S2", 1), stage, check, result, cached: false, took });
    assert!(play.asked_for("land S2#1 Verified"), "{:#?}", play.log);
}
