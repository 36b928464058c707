//! The reviewer: asked once work is proven, heard only in its form, and bounded.

use ralphloop_core::effect::Effect;
use ralphloop_core::event::{CheckRef, Fact};
use ralphloop_core::evidence::{AgentEnd, Usage};
use ralphloop_core::outcome::Outcome;
use ralphloop_core::policy::{Budget, Policy};
use ralphloop_core::review::{Opinion, Reviewed};
use ralphloop_core::units::Usd;

use crate::support::*;

fn reviewed_by(reviewer: &str) -> Policy {
    Policy { reviewer: Some(reviewer.into()), ..gated() }
}

fn objection(finding: &str) -> Opinion {
    Opinion::Objects { findings: vec![finding.to_owned()] }
}

fn play(policy: Policy, opinions: impl IntoIterator<Item = Opinion>) -> Play {
    let mut play = Play::new(vec![story("S1")], policy).agents(std::iter::repeat_with(complete).take(9));
    play.reviews.extend(opinions.into_iter().map(reviewed));
    play
}

fn review_of(play: &Play) -> String {
    play.record("S1").reviewed.as_ref().map(ToString::to_string).unwrap_or_default()
}

#[test]
fn proven_work_is_reviewed_before_it_lands_and_red_work_is_not() {
    let mut play = play(reviewed_by("opus"), [Opinion::Approves]).check(CheckRef::Gate(0), [red("exit code 1")]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.count("review"), 1, "{:#?}", play.log);
    assert!(play.asked_for("review S1#1 round 1 by opus"));
    assert_eq!(review_of(&play), "approved by opus");
    assert_eq!(play.run.calls(), 3, "a review is a call like any other");
}

#[test]
fn findings_send_the_work_back_as_a_repair_that_counts_as_none() {
    let policy = Policy { max_repairs: 0, ..reviewed_by("opus") };
    let mut play = play(policy, [objection("src/a.rs: no test"), Opinion::Approves]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.briefs[1].findings, ["src/a.rs: no test"]);
    assert!(play.briefs[1].repair.is_empty());
    assert_eq!((play.record("S1").attempts, play.record("S1").charged), (1, 0));
    assert_eq!(play.count("check Gate(0)"), 2, "what was mended is proven again");
    assert!(matches!(play.record("S1").reviewed, Some(Reviewed::Approved { .. })));
}

#[test]
fn a_later_review_is_told_what_earlier_ones_of_the_story_found() {
    let mut play = play(reviewed_by("opus"), [objection("first"), objection("second")]);
    let told = |play: &mut Play| match play.until(|e| matches!(e, Effect::Review { .. })) {
        Effect::Review { earlier, passed, .. } => {
            play.answer();
            (earlier, passed)
        }
        _ => unreachable!(),
    };
    assert_eq!(told(&mut play), (Vec::new(), vec!["test".to_owned()]));
    assert_eq!(told(&mut play).0, ["first"]);
}

#[test]
fn work_is_sent_back_so_often_and_lands_then_without_a_further_look() {
    let mut play = play(reviewed_by("opus"), [objection("a"), objection("b"), objection("c")]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.count("review"), 2, "a review that can change nothing is not paid for");
    assert_eq!(review_of(&play), "sent back 2 times by opus, and not looked at again");
}

#[test]
fn what_is_no_clear_objection_is_none() {
    let crashed = || AgentEnd::Crashed { status: "signal 11".to_owned(), message: String::new() };
    for (end, said) in [
        (AgentEnd::Finished, "no form of an opinion"),
        (crashed(), "crashed"),
        (AgentEnd::Limit { resets_at: None, message: "usage limit".to_owned() }, "limit"),
    ] {
        let mut play = play(reviewed_by("opus"), []);
        let mut report = reviewed(Opinion::Unclear { said: "well".to_owned() });
        report.end = end;
        play.reviews.push_back(report);
        assert_eq!(play.end(), Outcome::Complete);
        assert!(matches!(play.record("S1").reviewed, Some(Reviewed::Not { .. })));
        assert!(review_of(&play).contains(said), "{}", review_of(&play));
        assert_eq!(play.record("S1").charged, 0);
    }
}

#[test]
fn a_reviewer_that_cannot_be_called_holds_nothing_up_and_that_is_noted() {
    let mut play = Play::new(vec![story("S1"), story("S2")], reviewed_by("opus")).agents([complete(), complete()]);
    let mut report = reviewed(Opinion::Unclear { said: String::new() });
    report.end = AgentEnd::SignIn { message: "expired".to_owned(), remedy: Some("run `opus login`".to_owned()) };
    play.reviews.push_back(report);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.count("review"), 1);
    let second = play.record("S2").reviewed.as_ref().unwrap().to_string();
    assert!(second.contains("cannot be called") && second.contains("opus login"), "{second}");
}

#[test]
fn a_reviewer_that_writes_has_the_attempt_put_back_uncharged_and_is_not_asked_again() {
    let mut play = play(reviewed_by("opus"), []);
    let mut report = reviewed(Opinion::Approves);
    report.touched = true;
    play.reviews.push_back(report);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!((play.count("revert S1#1"), play.count("review")), (1, 1), "{:#?}", play.log);
    assert_eq!((play.record("S1").attempts, play.record("S1").charged), (2, 0));
    assert!(review_of(&play).contains("changed the tree"), "{}", review_of(&play));
}

#[test]
fn a_review_is_charged_to_its_story_and_a_budget_that_is_used_up_lands_what_is_proven() {
    let used = |dollars| Usage { cost: Some(Usd::from_dollars(dollars)), ..Usage::default() };
    let mut play = Play::new(vec![story("S1")], reviewed_by("opus")).agents([complete().uses(used(0.5))]);
    let mut report = reviewed(Opinion::Approves);
    report.usage = used(0.25);
    play.reviews.push_back(report);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!((play.record("S1").usage.cost, play.run.usage().cost), (used(0.75).cost, used(0.75).cost));
    let budget = Budget { iterations: Some(1), ..Budget::default() };
    let mut play = Play::new(vec![story("S1")], Policy { budget, ..reviewed_by("opus") }).agents([complete()]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.count("review"), 0);
    assert!(review_of(&play).contains("iterations"), "{}", review_of(&play));
}

#[test]
fn a_stop_ends_a_review_and_a_late_word_of_it_changes_nothing() {
    let mut play = play(reviewed_by("opus"), [Opinion::Approves]);
    let Effect::Review { attempt, agent, .. } = play.until(|e| matches!(e, Effect::Review { .. })) else {
        unreachable!()
    };
    play.tell(Fact::ReviewEnded {
        attempt: attempt.clone(),
        round: 7,
        agent,
        report: Box::new(reviewed(objection("another round"))),
    });
    assert_eq!(play.count("agent S1#1 call 1"), 0);
    play.tell(stop(ralphloop_core::event::StopLevel::Now));
    assert!(play.asked_for("stop S1#1"));
    play.end();
    assert_eq!((play.count("land"), play.count("revert S1#1")), (0, 1));
}
