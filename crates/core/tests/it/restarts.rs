//! Taking a run up again: after a death in any phase, a stop, a pause, a bound.

use ralphloop_core::effect::{Effect, Ground};
use ralphloop_core::event::{CheckStage, CutOff, Fact, PlanChange, StopLevel};
use ralphloop_core::evidence::Usage;
use ralphloop_core::ids::CallNumber;
use ralphloop_core::outcome::Outcome;
use ralphloop_core::policy::{Budget, OnExhausted, Policy};
use ralphloop_core::run::StoryState;
use ralphloop_core::units::Usd;

use crate::support::*;

fn at(phase: impl Fn(&Effect) -> bool) -> Play {
    let mut play = Play::new(vec![story("S1")], gated()).agents([complete()]);
    play.until(phase);
    play
}

#[test]
fn a_death_before_the_checkpoint_needs_no_revert() {
    for phase in [(|e| matches!(e, Effect::Begin { .. })) as fn(&Effect) -> bool, |e| {
        matches!(e, Effect::RunCheck { stage: CheckStage::Baseline, .. })
    }] {
        let mut play = at(phase);
        play.restart();
        assert_eq!(play.end(), Outcome::Complete);
        assert_eq!(play.count("revert"), 0);
        assert!(play.asked_for("begin S1#2"), "a number is never used twice");
        assert_eq!(play.record("S1").charged, 0);
    }
}

#[test]
fn a_death_after_the_checkpoint_is_reverted_before_anything_else() {
    for phase in [
        (|e| matches!(e, Effect::Checkpoint { .. })) as fn(&Effect) -> bool,
        |e| matches!(e, Effect::StartAgent { .. }),
        |e| matches!(e, Effect::Inspect { .. }),
        |e| matches!(e, Effect::RunCheck { stage: CheckStage::Call(_), .. }),
        |e| matches!(e, Effect::Land { .. }),
    ] {
        let mut play = Play::new(vec![story("S1")], gated()).agents([complete(), complete()]);
        play.until(phase);
        let asked = play.log.len();
        play.restart();
        assert_eq!(play.log[asked..], ["revert S1#1"]);
        assert!(play.asked_for("revert S1#1"));
        play.until(|e| matches!(e, Effect::StartAgent { attempt, .. } if attempt.number == 2));
        assert_eq!(play.record("S1").charged, 0, "killed costs no attempt");
        assert_eq!(play.end(), Outcome::Complete);
    }
}

#[test]
fn a_landing_that_the_crash_cut_short_is_known_by_its_commit_and_never_repeated() {
    let mut play = at(|e| matches!(e, Effect::Land { .. }));
    play.restart_landed(&[("S1", "c9")]);
    assert_eq!(play.open[0], Effect::Settle { attempt: attempt("S1", 1) });
    // Dying again in the middle of it changes nothing.
    play.restart_landed(&[("S1", "c9")]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(*play.state("S1"), StoryState::Landed { commit: "c9".into(), ground: Ground::Verified });
    assert_eq!((play.count("land"), play.count("revert"), play.run.calls()), (1, 0, 1));
}

#[test]
fn a_landing_that_cannot_be_finished_pauses_the_run_and_is_finished_when_it_is_taken_up() {
    let mut play = at(|e| matches!(e, Effect::Land { .. }));
    play.restart_landed(&[("S1", "c9")]);
    play.tell(Fact::RevertFailed { attempt: attempt("S1", 1), why: "no space left".to_owned() });
    let Outcome::Paused { reason } = play.end() else { panic!("{:?}", play.run.activity()) };
    assert!(reason.contains("S1 has landed") && reason.contains("no space left"), "{reason}");
    play.restart_landed(&[("S1", "c9")]);
    assert_eq!(play.open[0], Effect::Settle { attempt: attempt("S1", 1) });
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!((play.count("land"), play.run.calls()), (1, 1));
}

#[test]
fn a_landing_known_by_its_commit_keeps_the_ground_on_which_it_stood() {
    let mut play = Play::new(vec![story("S1")], Policy::default()).agents([complete()]);
    play.until(|e| matches!(e, Effect::Land { .. }));
    play.restart_landed(&[("S1", "c9")]);
    play.end();
    assert_eq!(play.ground("S1"), Some(Ground::Unverified), "it must not look better than it is");
}

#[test]
fn the_spec_is_not_believed_while_an_interrupted_attempt_lies_in_the_tree() {
    let mut play =
        Play::new(vec![checked(story("S1"), "out.txt"), story("S2")], gated()).agents([complete(), complete()]);
    play.until_agent();
    // The agent ticked the other story and took its own checks out before everything died.
    let dirty = PlanChange::Changed { plan: Box::new(plan(vec![story("S1"), done(story("S2"))])) };
    play.restart_with(&[], dirty, gated());
    assert_eq!(*play.state("S2"), StoryState::Pending);
    assert_eq!(play.run.plan().stories[0].checks.len(), 1);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.count("agent S2"), 1);
}

#[test]
fn a_verdict_reached_before_the_crash_holds_after_it() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([claims_failure("no API"), complete()]);
    play.until(|e| matches!(e, Effect::Revert { .. }));
    play.restart();
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.record("S1").charged, 1);
    assert!(play.briefs[1].previous[0].reason.contains("no API"));
}

#[test]
fn guidance_in_the_prompt_of_an_interrupted_attempt_is_given_again() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([complete()]);
    play.tell(guide("use sqlite"));
    play.until_agent();
    play.restart();
    play.until_agent();
    assert_eq!(play.briefs[1].guidance, ["use sqlite"]);
}

#[test]
fn a_lane_that_could_not_be_put_back_pauses_the_run_and_comes_first_on_resume() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([crash(), complete()]);
    play.until(|e| matches!(e, Effect::Revert { .. }));
    play.answer_with(Fact::RevertFailed { attempt: attempt("S1", 1), why: "permission denied: build/".to_owned() });
    let outcome = play.end();
    assert!(matches!(outcome, Outcome::Paused { .. }) && reason_of(&outcome).contains("build/"), "{outcome:?}");
    play.restart();
    assert_eq!(
        play.open,
        [Effect::Revert {
            attempt: attempt("S1", 1),
            reason: "the run was interrupted, and the attempt's work was left in the tree".to_owned(),
        }]
    );
    assert_eq!(play.end(), Outcome::Complete);
}

#[test]
fn a_broken_repository_pauses_the_run_in_each_phase_that_may_see_it() {
    for phase in [
        (|e| matches!(e, Effect::Inspect { .. })) as fn(&Effect) -> bool,
        |e| matches!(e, Effect::Land { .. }),
        |e| matches!(e, Effect::Revert { .. }),
    ] {
        let mut play =
            Play::new(vec![story("S1")], retries(0, OnExhausted::Stop)).agents([claims_failure("x"), complete()]);
        if phase(&Effect::Land { attempt: attempt("S1", 1), call: CallNumber(0), ground: Ground::Verified }) {
            play = Play::new(vec![story("S1")], gated()).agents([complete(), complete()]);
        }
        play.until(phase);
        play.answer_with(Fact::RepositoryBroken { attempt: attempt("S1", 1), why: ".git is gone".to_owned() });
        let outcome = play.end();
        assert!(matches!(outcome, Outcome::Paused { .. }) && reason_of(&outcome).contains(".git is gone"));
        play.restart();
        assert!(matches!(play.open[0], Effect::Revert { .. }), "{:?}", play.open);
    }
}

#[test]
fn a_landing_seen_after_the_repository_was_broken_is_not_put_back() {
    let mut play = at(|e| matches!(e, Effect::Land { .. }));
    play.answer_with(Fact::RepositoryBroken { attempt: attempt("S1", 1), why: "HEAD moved".to_owned() });
    play.end();
    play.restart_landed(&[("S1", "c9")]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.count("revert"), 0);
}

#[test]
fn a_death_while_waiting_waits_on() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([limit(None), complete()]);
    let asked = play.until(|e| matches!(e, Effect::Sleep { .. }));
    play.restart();
    assert_eq!(play.open, [asked]);
    assert_eq!(play.end(), Outcome::Complete);
}

#[test]
fn a_death_just_before_the_end_ends_the_same_way() {
    let mut play = at(|e| matches!(e, Effect::Finish { .. }));
    play.restart();
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.run.calls(), 1);
}

#[test]
fn after_a_failure_or_a_pause_a_resume_gives_all_attempts_back() {
    for on_exhausted in [OnExhausted::Stop, OnExhausted::Pause, OnExhausted::Skip] {
        let stories = vec![story("S1"), after(story("S2"), &["S1"])];
        let mut play =
            Play::new(stories, retries(1, on_exhausted)).agents([crash(), crash(), crash(), complete(), complete()]);
        play.end();
        assert_eq!(*play.state("S1"), StoryState::Failed, "{on_exhausted:?}");
        play.restart();
        assert_eq!(play.end(), Outcome::Complete, "{on_exhausted:?}");
        assert!(play.asked_for("begin S1#4"), "numbers go on: {:#?}", play.log);
    }
}

#[test]
fn after_a_stop_or_a_bound_a_resume_gives_none_back() {
    let mut play = Play::new(vec![story("S1")], retries(1, OnExhausted::Stop)).agents([crash(), crash()]);
    play.until_agent();
    play.tell(stop(StopLevel::AfterAttempt));
    play.end();
    play.restart();
    assert_eq!(play.end(), Outcome::Failed);
    assert_eq!(play.run.calls(), 2);

    let budget = Budget { iterations: Some(1), ..Budget::default() };
    let mut play =
        Play::new(vec![story("S1")], Policy { budget, ..retries(1, OnExhausted::Stop) }).agents([crash(), crash()]);
    assert!(matches!(play.end(), Outcome::BoundReached { .. }));
    play.restart_with(&[], PlanChange::Same, retries(1, OnExhausted::Stop));
    assert_eq!(play.end(), Outcome::Failed);
    assert_eq!(play.run.calls(), 2);
}

#[test]
fn a_resume_may_select_further_stories() {
    let only = |ids: &[&str]| Policy { only: ids.iter().map(|id| (*id).into()).collect(), ..gated() };
    let mut play = Play::new(vec![story("S1"), story("S2")], only(&["S1"])).agents([complete(), complete()]);
    assert_eq!(play.end(), Outcome::Complete);
    play.restart_with(&[], PlanChange::Same, only(&["S2"]));
    assert_eq!(play.end(), Outcome::Complete);
    assert!(play.ground("S2").is_some());
}

#[test]
fn a_finished_run_that_is_taken_up_calls_nobody() {
    let mut play = at(|e| matches!(e, Effect::Finish { .. }));
    play.end();
    play.restart_landed(&[("S1", "c1")]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.run.calls(), 1);
}

#[test]
fn what_a_call_had_used_when_it_was_cut_off_counts_once_and_what_nobody_knows_is_said_so() {
    let cut_off = |call, cost| CutOff {
        attempt: attempt("S1", 1),
        call: CallNumber(call),
        usage: Usage { input_tokens: Some(70), output_tokens: None, cost, ..Usage::default() },
    };
    for (cost, unknown) in [(Some(Usd(5)), 0), (None, 1)] {
        let mut play = at(|e| matches!(e, Effect::StartAgent { .. }));
        // Another call of the attempt had its end noted, and so has this one once the run was taken up.
        play.cut_off = vec![cut_off(0, cost), cut_off(1, cost)];
        play.restart();
        play.cut_off = vec![cut_off(0, cost)];
        play.restart();
        let usage = Usage { input_tokens: Some(70), output_tokens: None, cost, ..Usage::default() };
        assert_eq!((play.run.usage(), play.run.uncounted_calls()), (usage, unknown));
        assert_eq!(play.record("S1").usage, usage);
    }
}
