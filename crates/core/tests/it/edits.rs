//! What a person does to the spec while the run is under way.

use ralphloop_core::effect::Effect;
use ralphloop_core::event::{Fact, PlanChange};
use ralphloop_core::outcome::Outcome;
use ralphloop_core::policy::OnExhausted;
use ralphloop_core::run::StoryState;

use crate::support::*;

#[test]
fn a_story_that_a_person_ticks_is_not_begun() {
    let mut play = Play::new(vec![story("S1"), story("S2"), story("S3")], gated()).agents([complete(), complete()]);
    play.edit(vec![done(story("S1")), done(story("S2")), story("S3")]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(*play.state("S2"), StoryState::DoneBefore);
    assert_eq!(play.count("begin S2"), 0);
}

#[test]
fn a_story_that_is_taken_out_is_not_begun_and_does_not_make_the_run_fail() {
    let mut play = Play::new(vec![story("S1"), story("S2")], gated()).agents([complete()]);
    play.edit(vec![done(story("S1"))]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(*play.state("S2"), StoryState::Skipped);
    assert!(play.reason("S2").contains("taken out"));
}

#[test]
fn a_story_that_comes_back_is_done_after_all() {
    let mut play =
        Play::new(vec![story("S1"), story("S2"), story("S3")], gated()).agents([complete(), complete(), complete()]);
    play.edit(vec![done(story("S1")), story("S3")]);
    play.edit(vec![done(story("S1")), story("S2"), done(story("S3"))]);
    assert_eq!(play.end(), Outcome::Complete);
    assert!(play.ground("S2").is_some(), "{:?}", play.record("S2"));
}

#[test]
fn what_depends_on_a_story_that_was_taken_out_is_blocked_and_says_why() {
    let stories = || vec![story("S1"), story("S2"), after(story("S3"), &["S2"])];
    let mut play = Play::new(stories(), gated()).agents([complete()]);
    play.edit(vec![done(story("S1")), after(story("S3"), &["S2"])]);
    assert_eq!(play.end(), Outcome::Failed);
    assert_eq!(play.reason("S3"), "it depends on S2, which is not in the spec");
}

#[test]
fn a_dependency_that_the_work_never_held_holds_nothing_up() {
    let mut play = Play::new(vec![after(story("S1"), &["elsewhere-7"])], gated()).agents([complete()]);
    assert_eq!(play.end(), Outcome::Complete);
}

#[test]
fn a_new_story_is_taken_in_and_waits_for_what_it_depends_on() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([complete(), complete(), complete()]);
    play.edit(vec![done(story("S1")), after(story("N1"), &["N2"]), story("N2")]);
    assert_eq!(play.end(), Outcome::Complete);
    let begun: Vec<&str> = play.log.iter().filter_map(|l| l.strip_prefix("begin ")).collect();
    assert_eq!(begun, ["S1#1", "N2#1", "N1#1"]);
}

#[test]
fn a_cycle_that_an_edit_makes_ends_the_run_with_the_way_around_it() {
    let mut play = Play::new(vec![story("S1"), story("S2"), story("S3")], gated()).agents([complete()]);
    play.edit(vec![done(story("S1")), after(story("S2"), &["S3"]), after(story("S3"), &["S2"])]);
    assert_eq!(play.end(), Outcome::Failed);
    assert!(play.reason("S2").contains("S2 → S3 → S2"), "{}", play.reason("S2"));
}

#[test]
fn what_waited_for_a_failed_story_is_free_when_a_person_finishes_that_story() {
    let stories = vec![story("S1"), after(story("S2"), &["S1"]), story("S3")];
    let mut play = Play::new(stories, retries(0, OnExhausted::Skip)).agents([crash(), complete(), complete()]);
    play.until(|e| matches!(e, Effect::Begin { attempt, .. } if attempt.story.as_str() == "S3"));
    assert_eq!(*play.state("S2"), StoryState::Blocked);
    play.edit(vec![done(story("S1")), after(story("S2"), &["S1"]), done(story("S3"))]);
    assert_eq!(play.end(), Outcome::Complete);
    assert!(play.ground("S2").is_some());
}

#[test]
fn the_checks_of_a_known_story_are_those_read_at_the_start() {
    let mut play =
        Play::new(vec![story("S1"), checked(story("S2"), "out.txt")], gated()).agents([complete(), complete()]);
    play.edit(vec![done(story("S1")), checked(story("S2"), "/dev/null")]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.run.plan().stories[1].checks, checked(story("S2"), "out.txt").checks);
    assert_eq!(play.count("check Story(0)"), 1);
}

#[test]
fn commands_that_a_person_changed_hold_once_the_run_is_taken_up_again() {
    let mut play = Play::new(vec![checked(story("S1"), "old.txt")], gated());
    play.until_agent();
    let edited = || PlanChange::Changed { plan: Box::new(plan(vec![checked(story("S1"), "new.txt")])) };
    play.restart_with(&[], edited(), gated());
    assert_eq!(play.run.plan().stories[0].checks, checked(story("S1"), "old.txt").checks, "the tree is not clean yet");
    play.until(|e| *e == Effect::CheckPlan);
    play.answer_with(Fact::PlanChecked { spec: edited() });
    assert_eq!(play.run.plan().stories[0].checks, checked(story("S1"), "new.txt").checks);
}

#[test]
fn a_spec_that_can_no_longer_be_read_pauses_the_run_with_the_place() {
    let mut play = Play::new(vec![story("S1"), story("S2")], gated()).agents([complete(), complete()]);
    play.until(|e| *e == Effect::CheckPlan);
    let spec = PlanChange::Unreadable { message: "prd.json:7: expected a comma".to_owned() };
    play.answer_with(Fact::PlanChecked { spec });
    let outcome = play.end();
    assert!(matches!(outcome, Outcome::Paused { .. }) && reason_of(&outcome).contains("prd.json:7"), "{outcome:?}");
    play.restart();
    assert_eq!(play.end(), Outcome::Complete);
}
