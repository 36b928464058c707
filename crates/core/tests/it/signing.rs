//! Stories that are done only when a person has signed them.

use ralphloop_core::effect::Ground;
use ralphloop_core::event::{Fact, PlanChange};
use ralphloop_core::ids::{CommitId, StoryId};
use ralphloop_core::outcome::Outcome;
use ralphloop_core::policy::Policy;
use ralphloop_core::run::StoryState;

use crate::support::*;

fn stories() -> Vec<ralphloop_core::plan::Story> {
    vec![signed(story("S1")), story("S2"), after(story("S3"), &["S1"])]
}

fn awaits(play: &Play, id: &str) -> bool {
    matches!(play.state(id), StoryState::AwaitsSignOff { ground: Ground::Verified, .. })
}

#[test]
fn f30_what_a_person_signs_lands_is_not_done_and_holds_back_what_depends_on_it_alone() {
    let mut play = Play::new(stories(), gated()).agents([complete(), complete()]);
    let Outcome::Paused { reason } = play.end() else { panic!("{:#?}", play.log) };
    assert!(reason.starts_with("S1 awaits a sign-off") && reason.contains("`ralphloop sign S1`"), "{reason}");
    assert!(awaits(&play, "S1") && !play.state("S1").passed());
    assert_eq!(play.reason("S1"), "awaits a sign-off: it shines");
    assert!(play.state("S2").passed(), "the others go on");
    assert_eq!((play.state("S3"), play.count("begin S3")), (&StoryState::Blocked, 0));
    assert_eq!(play.reason("S3"), "it depends on S1, which awaits a sign-off");
}

#[test]
fn once_it_is_signed_a_resumed_run_goes_on_and_counts_it_as_landed() {
    let mut play = Play::new(stories(), gated()).agents([complete(), complete()]);
    play.end();
    let mut now = stories();
    now[0] = done(now[0].clone());
    let policy = play.run.policy().clone();
    let mut play = play.agents([complete()]);
    play.restart_with(&[("S1", "c1")], PlanChange::Changed { plan: Box::new(plan(now)) }, policy);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.ground("S1"), Some(Ground::Verified));
    assert_eq!((play.count("begin S1"), play.count("begin S3")), (1, 1));
}

#[test]
fn resuming_without_a_signature_changes_nothing_and_calls_nobody() {
    let mut play = Play::new(stories(), gated()).agents([complete(), complete()]);
    play.end();
    play.restart_landed(&[("S1", "c1")]);
    assert!(matches!(play.end(), Outcome::Paused { .. }));
    assert!(awaits(&play, "S1"));
}

#[test]
fn one_that_is_sent_back_is_done_again_and_its_old_commit_is_no_landing_any_more() {
    let mut play = Play::new(vec![signed(story("S1"))], gated()).agents([complete()]);
    play.end();
    let StoryState::AwaitsSignOff { commit, .. } = play.state("S1").clone() else { panic!("{:#?}", play.log) };
    let mut play = play.agents([complete()]);
    play.retry = vec![StoryId::from("S1")];
    play.restart_landed(&[("S1", commit.as_str())]);
    play.until_agent();
    // The process dies with the old commit on the branch.
    play.restart_landed(&[("S1", commit.as_str())]);
    assert!(matches!(play.end(), Outcome::Paused { .. }));
    assert!(awaits(&play, "S1"));
    assert_ne!(play.state("S1").commit(), Some(&commit), "{:#?}", play.log);
}

#[test]
fn one_that_is_sent_back_twice_is_not_taken_for_done_by_its_first_commit() {
    let mut play = Play::new(vec![signed(story("S1"))], gated()).agents([complete(), complete(), complete()]);
    play.end();
    let mut commits = Vec::new();
    for _ in 0..2 {
        commits.push(play.state("S1").commit().cloned().expect("it has landed"));
        play.retry = vec![StoryId::from("S1")];
        let landed: Vec<(&str, &str)> = commits.iter().map(|commit| ("S1", commit.as_str())).collect();
        play.restart_landed(&landed);
        if commits.len() == 1 {
            play.end();
        }
    }
    play.until_agent();
    // The process dies with both commits on the branch.
    let landed: Vec<(&str, &str)> = commits.iter().map(|commit| ("S1", commit.as_str())).collect();
    play.restart_landed(&landed);
    assert!(!play.state("S1").is_on_branch(), "{:?}", play.state("S1"));
    assert!(matches!(play.end(), Outcome::Paused { .. }));
    assert!(!commits.contains(play.state("S1").commit().expect("it has landed")));
}

#[test]
fn with_another_failure_the_run_has_failed_rather_than_paused() {
    let mut play = Play::new(stories(), retries(0, ralphloop_core::policy::OnExhausted::Skip))
        .agents([complete(), claims_failure("no glass")]);
    assert_eq!(play.end(), Outcome::Failed);
    assert!(awaits(&play, "S1"));
}

#[test]
fn f29_skip_manual_leaves_them_aside_until_a_resume_wants_them() {
    let policy = Policy { skip_manual: true, ..gated() };
    let mut play = Play::new(vec![signed(story("S1")), story("S2")], policy).agents([complete()]);
    assert_eq!(play.end(), Outcome::Complete, "what was left aside is not what the run was to do");
    assert_eq!((play.state("S1"), play.count("begin S1")), (&StoryState::Skipped, 0));
    assert!(play.reason("S1").contains("--skip-manual"), "{}", play.reason("S1"));
    let mut play = play.agents([complete()]);
    play.restart_with(&[], PlanChange::Same, gated());
    assert!(matches!(play.end(), Outcome::Paused { .. }));
    assert!(awaits(&play, "S1"));
}

#[test]
fn what_an_earlier_run_landed_unsigned_is_not_begun_again() {
    let mut play = Play::unsigned(vec![signed(story("S1"))], gated(), &[("S1", "c0")]);
    assert!(matches!(play.end(), Outcome::Paused { .. }));
    assert_eq!(play.count("begin"), 0);
    assert_eq!(play.state("S1").commit(), Some(&CommitId::from("c0")));
    let named = Policy { only: vec!["S1".into()], ..gated() };
    let mut play = Play::unsigned(vec![signed(story("S1"))], named, &[("S1", "c0")]).agents([complete()]);
    play.end();
    assert_eq!(play.count("begin S1"), 1, "unless it is named");
}

#[test]
fn it_is_not_skipped_once_it_has_landed() {
    let mut play = Play::new(stories(), gated()).agents([complete(), complete()]);
    play.until_agent();
    play.until(|effect| matches!(effect, ralphloop_core::effect::Effect::StartAgent { attempt, .. } if attempt.story.as_str() == "S2"));
    play.tell(Fact::SkipRequested { story: "S1".into() });
    assert!(awaits(&play, "S1"));
    assert!(play.run.came_of_skip(&"S1".into()).contains("awaits a sign-off"));
}
