//! A person skips stories, and wants some tried again.

use ralphloop_core::effect::Effect;
use ralphloop_core::event::{CheckStage, Fact, PlanChange};
use ralphloop_core::outcome::Outcome;
use ralphloop_core::policy::{OnExhausted, Policy};
use ralphloop_core::run::StoryState;

use crate::support::*;

fn skip(story: &str) -> Fact {
    Fact::SkipRequested { story: story.into() }
}

fn retry(story: &str) -> Fact {
    Fact::RetryRequested { story: story.into() }
}

/// Whether an effect is the one that stands for a phase.
type Phase = fn(&Effect) -> bool;

#[test]
fn a_pending_story_that_is_skipped_is_not_begun_and_what_depends_on_it_is_blocked() {
    let stories = vec![story("S1"), story("S2"), after(story("S3"), &["S2"])];
    let mut play = Play::new(stories, gated()).agents([complete()]);
    play.until_agent();
    play.tell(skip("S2"));
    assert_eq!(play.end(), Outcome::Failed);
    assert!(play.state("S1").passed());
    assert_eq!((play.state("S2"), play.reason("S2")), (&StoryState::Skipped, "skipped by you"));
    assert_eq!(*play.state("S3"), StoryState::Blocked);
    assert!(play.reason("S3").contains("depends on S2"), "{}", play.reason("S3"));
    assert_eq!(play.count("begin S2") + play.count("begin S3"), 0);
}

#[test]
fn a_running_story_that_is_skipped_is_ended_kept_and_put_back_in_every_phase() {
    let phases: [(&str, Phase, bool); 6] = [
        ("beginning", |e| matches!(e, Effect::Begin { .. }), false),
        ("base checks", |e| matches!(e, Effect::RunCheck { stage: CheckStage::Baseline, .. }), true),
        ("checkpoint", |e| matches!(e, Effect::Checkpoint { .. }), false),
        ("agent", |e| matches!(e, Effect::StartAgent { .. }), true),
        ("inspection", |e| matches!(e, Effect::Inspect { .. }), false),
        ("checks", |e| matches!(e, Effect::RunCheck { stage: CheckStage::Call(_), .. }), true),
    ];
    for (name, phase, stops) in phases {
        let mut play = Play::new(vec![story("S1"), story("S2")], gated()).agents([complete(), complete()]);
        if matches!(name, "beginning" | "base checks" | "checkpoint") {
            play = Play::new(vec![story("S1"), story("S2")], gated()).agents([complete()]);
        }
        play.until(phase);
        play.tell(skip("S1"));
        play.tell(skip("S1"));
        assert_eq!(play.count("stop S1#1"), usize::from(stops), "{name}: once is enough: {:#?}", play.log);
        assert_eq!(play.end(), Outcome::Failed, "{name}");
        assert_eq!((play.state("S1"), play.reason("S1")), (&StoryState::Skipped, "skipped by you"), "{name}");
        assert_eq!((play.record("S1").charged, play.count("land S1"), play.count("begin S1")), (0, 0, 1), "{name}");
        let reverted = !matches!(name, "beginning" | "base checks");
        assert_eq!(play.record("S1").kept.len(), usize::from(reverted), "{name}");
        assert!(play.state("S2").passed(), "{name}: the others go on");
    }
}

#[test]
fn a_story_that_is_being_committed_when_it_is_skipped_stays_landed() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([complete()]);
    play.until(|e| matches!(e, Effect::Land { .. }));
    play.tell(skip("S1"));
    assert_eq!(play.end(), Outcome::Complete);
    let mut play = Play::new(vec![story("S1")], gated()).agents([complete()]);
    play.until(|e| matches!(e, Effect::Land { .. }));
    play.tell(skip("S1"));
    play.answer_with(Fact::LandingFailed { attempt: attempt("S1", 1), why: "ended".to_owned() });
    assert_eq!(play.end(), Outcome::Failed, "a commit that was ended is no fault of the repository");
    assert_eq!(*play.state("S1"), StoryState::Skipped);
}

#[test]
fn what_an_attempt_had_come_to_no_longer_matters_once_its_story_is_skipped() {
    let policy = Policy { on_exhausted: OnExhausted::Stop, max_retries: 0, ..gated() };
    let mut play = Play::new(vec![story("S1"), story("S2")], policy).agents([crash(), complete()]);
    play.until(|e| matches!(e, Effect::Revert { .. }));
    play.tell(skip("S1"));
    assert_eq!(play.end(), Outcome::Failed);
    assert_eq!((play.state("S1"), play.record("S1").charged), (&StoryState::Skipped, 0));
    assert!(play.state("S2").passed(), "its failure does not end the run");
}

#[test]
fn guidance_that_a_skipped_attempt_carried_goes_to_the_next() {
    let mut play = Play::new(vec![story("S1"), story("S2")], gated()).agents([complete(), complete()]);
    play.tell(Fact::GuidanceAdded { text: "use tabs".to_owned() });
    play.until_agent();
    play.tell(skip("S1"));
    play.until(|e| matches!(e, Effect::StartAgent { attempt, .. } if attempt.story == "S2".into()));
    let Some(Effect::StartAgent { brief, .. }) = play.open.front() else { panic!("{:?}", play.open) };
    assert_eq!(brief.guidance, ["use tabs"]);
}

#[test]
fn a_skip_outlives_the_death_of_the_process_until_somebody_names_the_story() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([complete(), complete()]);
    play.until_agent();
    play.tell(skip("S1"));
    play.restart();
    let outcome = play.end();
    assert_eq!(*play.state("S1"), StoryState::Skipped);
    assert_ne!(outcome, Outcome::Complete);
    play.restart();
    play.end();
    assert_eq!(*play.state("S1"), StoryState::Skipped, "going on is no wish to have it done");
    let named = Policy { only: vec!["S1".into()], ..gated() };
    play.restart_with(&[], PlanChange::Same, named);
    assert_eq!(play.end(), Outcome::Complete);
}

#[test]
fn a_wait_ends_when_nothing_is_left_to_wait_for() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([limit(None)]);
    play.until(|e| matches!(e, Effect::Sleep { .. }));
    play.open.clear();
    play.tell(skip("S1"));
    assert_eq!(play.end(), Outcome::Failed);
}

#[test]
fn a_failed_story_that_is_tried_again_has_all_its_attempts_and_keeps_the_earlier_ones() {
    let policy = Policy { on_exhausted: OnExhausted::Skip, max_retries: 0, ..gated() };
    let agents = [claims_failure("no idea"), complete(), complete()];
    let mut play = Play::new(vec![story("S1"), story("S2"), after(story("S3"), &["S1"])], policy).agents(agents);
    play.until(|e| matches!(e, Effect::StartAgent { attempt, .. } if attempt.story == "S2".into()));
    assert_eq!(*play.state("S1"), StoryState::Failed);
    assert_eq!(*play.state("S3"), StoryState::Blocked);
    play.tell(retry("S1"));
    assert_eq!((play.state("S1"), play.record("S1").charged), (&StoryState::Pending, 0));
    assert_eq!(play.record("S1").kept.len(), 1, "what the earlier attempt left is kept");
    play = play.agents([complete()]);
    assert_eq!(play.end(), Outcome::Complete, "{:#?}", play.log);
    assert!(play.asked_for("begin S1#2"));
}

#[test]
fn a_blocked_or_skipped_story_is_taken_up_again_while_the_run_goes_on() {
    let blocked = claims_blocked("no key");
    let mut play = Play::new(vec![story("S1"), story("S2"), story("S3")], gated()).agents([blocked, complete()]);
    play.tell(skip("S3"));
    play.until(|e| matches!(e, Effect::StartAgent { attempt, .. } if attempt.story == "S2".into()));
    play.tell(retry("S1"));
    play.tell(retry("S3"));
    play.tell(retry("S2"));
    play = play.agents([complete(), complete()]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.count("begin S2"), 1, "one under way is not begun again");
}

#[test]
fn a_skip_that_is_taken_back_in_time_costs_the_attempt_and_not_the_story() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([complete(), complete()]);
    play.until_agent();
    play.tell(skip("S1"));
    play.tell(retry("S1"));
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!((play.count("revert S1#1"), play.count("land S1#2")), (1, 1));
}

#[test]
fn an_ended_run_is_taken_up_for_the_story_that_is_to_be_tried_again() {
    let policy = Policy { only: vec!["S1".into()], ..gated() };
    let mut play = Play::new(vec![story("S1"), story("S2")], policy.clone()).agents([complete()]);
    play.tell(skip("S1"));
    play.end();
    play.retry = vec!["S1".into()];
    play.restart();
    assert_eq!(play.end(), Outcome::Complete);
    assert!(play.state("S1").passed());
}

#[test]
fn a_story_that_a_selection_left_out_is_worked_on_when_it_is_asked_for() {
    let policy = Policy { only: vec!["S1".into()], ..gated() };
    let mut play = Play::new(vec![story("S1"), story("S2")], policy).agents([complete(), complete()]);
    play.tell(retry("S2"));
    play.restart();
    assert!(!play.run.tries_again(&"S2".into()), "the selection of the run that was taken up holds");
    play.tell(retry("S2"));
    assert!(play.run.tries_again(&"S2".into()));
    assert_eq!(play.end(), Outcome::Complete);
    assert!(play.state("S1").passed() && play.state("S2").passed());
}

#[test]
fn a_story_that_is_still_open_and_is_asked_for_is_worked_on_although_others_are_selected_now() {
    let mut play = Play::new(vec![story("S1"), story("S2")], gated()).agents([complete(), complete()]);
    play.retry = vec!["S2".into()];
    play.restart_with(&[], PlanChange::Same, Policy { only: vec!["S1".into()], ..gated() });
    assert_eq!(play.end(), Outcome::Complete);
    assert!(play.state("S1").passed() && play.state("S2").passed());
}
