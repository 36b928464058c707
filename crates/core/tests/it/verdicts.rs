//! The decision table, row by row: what is claimed, what the checks say, what follows.

use std::time::Duration;

use ralphloop_core::effect::{Effect, Ground};
use ralphloop_core::event::CheckRef;
use ralphloop_core::evidence::{AgentEnd, Claim};
use ralphloop_core::outcome::Outcome;
use ralphloop_core::policy::{OnExhausted, Policy};
use ralphloop_core::run::StoryState;

use crate::support::*;

const GATE: CheckRef = CheckRef::Gate(0);
const OWN: CheckRef = CheckRef::Story(0);

#[test]
fn complete_and_checks_pass_and_the_tree_changed_lands() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([complete()]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.ground("S1"), Some(Ground::Verified));
}

#[test]
fn complete_with_nothing_to_check_it_lands_as_unverified() {
    let mut play = Play::new(vec![story("S1")], Policy::default()).agents([complete()]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.ground("S1"), Some(Ground::Unverified));
}

#[test]
fn with_require_verify_a_story_that_nothing_checks_is_not_run() {
    let policy = Policy { require_verify: true, ..Policy::default() };
    let mut play = Play::new(vec![story("S1"), checked(story("S2"), "out.txt")], policy).agents([complete()]);
    assert_eq!(play.end(), Outcome::Failed);
    assert_eq!(play.count("agent S1"), 0);
    assert_eq!(*play.state("S1"), StoryState::Skipped);
    assert!(play.reason("S1").contains("--require-verify"));
    assert_eq!(play.ground("S2"), Some(Ground::Verified));
}

#[test]
fn complete_on_an_unchanged_tree_lands_if_a_check_that_failed_before_passes_now() {
    let mut play = Play::new(vec![checked(story("S1"), "out.txt")], gated())
        .at_base(OWN, red("no such file"))
        .agents([complete().unchanged()]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.ground("S1"), Some(Ground::NoChange));
    assert!(play.asked_for("check Gate(0) fresh"), "a known result says nothing here: {:#?}", play.log);
}

#[test]
fn complete_on_an_unchanged_tree_lands_if_the_story_needs_no_change() {
    let mut needs_none = story("S1");
    needs_none.needs_no_change = true;
    let mut play = Play::new(vec![needs_none], gated()).agents([complete().unchanged()]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.ground("S1"), Some(Ground::NoChange));
}

#[test]
fn complete_on_an_unchanged_tree_fails_otherwise_because_nothing_changed() {
    let mut play = Play::new(vec![story("S1")], retries(0, OnExhausted::Stop)).agents([complete().unchanged()]);
    assert_eq!(play.end(), Outcome::Failed);
    assert!(play.reason("S1").contains("nothing changed"), "{}", play.reason("S1"));
    assert_eq!(play.count("land"), 0);
}

#[test]
fn complete_with_boxes_still_open_lands() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([complete().boxes(false)]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.ground("S1"), Some(Ground::Verified));
}

#[test]
fn complete_and_checks_fail_is_repaired_with_the_output_and_then_fails() {
    let mut play = Play::new(vec![story("S1")], retries(0, OnExhausted::Stop))
        .agents([complete(), complete(), complete()])
        .check(GATE, [red("exit code 1"), red("exit code 2"), red("exit code 3")]);
    assert_eq!(play.end(), Outcome::Failed);
    assert_eq!(play.count("agent"), 3, "one call and two repairs: {:#?}", play.log);
    assert_eq!(play.count("revert"), 1, "repairs work on the tree as it is");
    assert_eq!(play.briefs[1].repair[0].reason, "`test`: exit code 1");
    assert_eq!(play.briefs[1].repair[0].output, "output of exit code 1");
    assert!(play.reason("S1").contains("exit code 3"));
}

#[test]
fn no_signal_with_all_boxes_ticked_and_checks_that_pass_lands_as_such() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([no_signal().boxes(true)]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.ground("S1"), Some(Ground::NoSignal));
}

#[test]
fn no_signal_otherwise_fails_and_the_next_prompt_quotes_the_last_words() {
    let cases = [
        ("no boxes", gated(), no_signal()),
        ("boxes left open", gated(), no_signal().boxes(false)),
        ("nothing changed", gated(), no_signal().boxes(true).unchanged()),
        ("no check exists", Policy::default(), no_signal().boxes(true)),
    ];
    for (case, policy, call) in cases {
        let mut play = Play::new(vec![story("S1")], policy).agents([call, complete()]);
        assert_eq!(play.end(), Outcome::Complete, "{case}");
        assert_eq!(play.count("begin"), 2, "{case}");
        assert_eq!(play.count("check Gate"), play.run.policy().gates.len(), "{case}: no check runs for nothing");
        assert_eq!(play.briefs[1].last_words.as_deref(), Some("Shall I go on?"), "{case}");
        assert!(play.briefs[1].previous[0].reason.contains("no completion signal"), "{case}");
    }
}

#[test]
fn no_signal_and_a_check_that_fails_is_not_repaired() {
    let mut play = Play::new(vec![story("S1")], gated())
        .agents([no_signal().boxes(true), complete()])
        .check(GATE, [red("exit code 1")]);
    assert_eq!(play.end(), Outcome::Complete);
    assert!(play.asked_for("agent S1#2 call 0"), "{:#?}", play.log);
    assert_eq!(play.briefs[1].last_words.as_deref(), Some("Shall I go on?"));
    assert!(play.briefs[1].previous[0].reason.contains("exit code 1"));
}

#[test]
fn a_near_miss_is_reported_as_such() {
    let seen = Claim::None { near_miss: Some("<promise>COMPLETE</promise> in a sentence".to_owned()) };
    let mut play = Play::new(vec![story("S1")], retries(0, OnExhausted::Stop)).agents([call(AgentEnd::Finished, seen)]);
    play.end();
    assert!(play.reason("S1").contains("in a sentence"), "{}", play.reason("S1"));
}

#[test]
fn r30_after_an_abnormal_end_the_next_prompt_has_nothing_added() {
    let last_output = "compiling".to_owned();
    let ends = [
        AgentEnd::NoFinalMessage,
        AgentEnd::Crashed { status: "signal 9".to_owned(), message: "killed".to_owned() },
        AgentEnd::Silent { after: Duration::from_mins(10), last_output },
        AgentEnd::NeverSpoke { after: Duration::from_mins(3) },
        AgentEnd::TimedOut { after: Duration::from_hours(1) },
    ];
    for end in ends {
        let mut play = Play::new(vec![story("S1")], gated()).agents([ended(end.clone()), complete()]);
        assert_eq!(play.end(), Outcome::Complete, "{end:?}");
        assert_eq!(play.record("S1").charged, 1, "{end:?}");
        assert_eq!(play.count("check Gate"), 1, "no check of the attempt that failed: {:#?}", play.log);
        assert_eq!(play.briefs[1], play.briefs[0], "{end:?}");
    }
}

#[test]
fn an_error_of_the_agent_fails_the_attempt_with_that_reason() {
    let cases = [
        (AgentEnd::Error { message: "context server died".to_owned() }, "context server died"),
        (AgentEnd::Crashed { status: "exit code 3".to_owned(), message: String::new() }, "exit code 3"),
        (AgentEnd::Silent { after: Duration::from_mins(10), last_output: "cc1plus".to_owned() }, "idle timeout"),
        (AgentEnd::NeverSpoke { after: Duration::from_mins(3) }, "within 180 s"),
        (AgentEnd::TimedOut { after: Duration::from_hours(1) }, "agent timeout"),
        (AgentEnd::Looped { call: "ls".to_owned(), times: 20 }, "20 times"),
    ];
    for (end, expected) in cases {
        let mut play = Play::new(vec![story("S1")], retries(0, OnExhausted::Stop)).agents([ended(end)]);
        assert_eq!(play.end(), Outcome::Failed, "{expected}");
        assert!(play.reason("S1").contains(expected), "{}", play.reason("S1"));
    }
}

#[test]
fn r33_a_claim_of_failure_is_reverted_and_its_reason_is_in_the_next_prompt() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([claims_failure("the API is gone"), complete()]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.count("revert S1#1"), 1);
    assert_eq!(play.count("check Gate"), 1, "nothing is checked after a claim of failure");
    assert!(play.briefs[1].previous[0].reason.contains("the API is gone"));
}

#[test]
fn blocked_shows_the_reason_and_others_go_on_and_dependants_wait() {
    let stories = vec![story("S1"), after(story("S2"), &["S1"]), story("S3")];
    let mut play = Play::new(stories, gated()).agents([claims_blocked("which database?"), complete()]);
    assert_eq!(play.end(), Outcome::Failed);
    assert_eq!(*play.state("S1"), StoryState::Blocked);
    assert_eq!(play.reason("S1"), "which database?");
    assert_eq!(*play.state("S2"), StoryState::Blocked);
    assert!(play.reason("S2").contains("S1"));
    assert_eq!(play.ground("S3"), Some(Ground::Verified));
    assert_eq!(play.count("begin S1"), 1, "a blocked story is not tried again");
}

#[test]
fn two_attempts_in_a_row_with_no_output_pause_the_run() {
    let mut play = Play::new(vec![story("S1")], gated())
        .agents([ended(AgentEnd::NoOutput).unchanged(), ended(AgentEnd::NoOutput).unchanged()]);
    let outcome = play.end();
    assert!(
        matches!(outcome, Outcome::Paused { .. }) && reason_of(&outcome).contains("client is broken"),
        "{outcome:?}"
    );
}

#[test]
fn silence_between_attempts_that_speak_is_a_failure_like_any_other() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([
        ended(AgentEnd::NoOutput),
        crash(),
        ended(AgentEnd::NoOutput),
        complete(),
    ]);
    assert_eq!(play.end(), Outcome::Complete);
}

#[test]
fn the_same_failure_three_times_in_a_row_is_not_tried_again() {
    let stubborn = || claims_failure("cannot find x after 3.5 s").tree("same");
    let policy = Policy { max_retries: 9, ..gated() };
    let mut play = Play::new(vec![story("S1")], policy.clone()).agents([stubborn(), stubborn(), stubborn()]);
    assert_eq!(play.end(), Outcome::Failed);
    assert!(play.reason("S1").contains("no progress"), "{}", play.reason("S1"));
    // On another tree it is another failure.
    let calls = ["a", "b", "c"].map(|tree| claims_failure("cannot find x").tree(tree));
    let mut play = Play::new(vec![story("S1")], policy).agents(calls).agents([complete()]);
    assert_eq!(play.end(), Outcome::Complete);
}

#[test]
fn a_gate_that_failed_before_the_story_is_told_apart_but_still_counts() {
    let mut play = Play::new(vec![story("S1")], Policy { max_repairs: 1, ..retries(0, OnExhausted::Stop) })
        .at_base(GATE, red("exit code 1"))
        .agents([complete(), complete()])
        .check(GATE, [red("exit code 1"), red("exit code 1")]);
    assert_eq!(play.end(), Outcome::Failed);
    assert!(play.briefs[1].repair[0].at_baseline);
    assert!(play.reason("S1").contains("failed before the story too"), "{}", play.reason("S1"));
}

#[test]
fn a_gate_that_cannot_run_at_the_base_ends_the_run_before_any_call() {
    let mut play = Play::new(vec![story("S1")], gated()).at_base(GATE, cannot_run());
    let outcome = play.end();
    assert!(matches!(outcome, Outcome::Environment { .. }), "{outcome:?}");
    assert!(reason_of(&outcome).contains("`test`"), "{outcome:?}");
    assert_eq!(play.run.calls(), 0);
    assert_eq!(*play.state("S1"), StoryState::Pending);
}

#[test]
fn a_check_of_the_story_that_cannot_run_at_the_base_does_not_end_the_run() {
    let mut play =
        Play::new(vec![checked(story("S1"), "bin/new")], gated()).at_base(OWN, cannot_run()).agents([complete()]);
    assert_eq!(play.end(), Outcome::Complete);
}

#[test]
fn what_fails_on_a_full_disk_ends_the_run_and_is_no_failure_of_the_story() {
    let play = || Play::new(vec![checked(story("S1"), "out.txt")], gated());
    let at_base = |check| (play().at_base(check, no_room()), 0);
    let at_proof = |check| (play().agents([complete(), complete()]).check(check, [no_room()]), 1);
    for (mut play, calls) in [at_base(GATE), at_base(OWN), at_proof(GATE), at_proof(OWN)] {
        let outcome = play.end();
        assert!(matches!(outcome, Outcome::Environment { .. }), "{outcome:?}");
        assert!(reason_of(&outcome).contains("want of room: only 1 MiB"), "{outcome:?}");
        assert_eq!((play.run.calls(), play.state("S1")), (calls, &StoryState::Pending));
    }
    let (mut play, _) = at_proof(GATE);
    play.end();
    play.restart();
    assert_eq!(play.end(), Outcome::Complete, "the attempt was not charged");
}

#[test]
fn a_gate_that_the_attempt_broke_is_repaired() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([complete(), complete()]).check(GATE, [cannot_run()]);
    assert_eq!(play.end(), Outcome::Complete);
    assert!(play.briefs[1].repair[0].reason.contains("can no longer run"));
}

#[test]
fn the_first_red_gate_is_enough_but_the_storys_own_checks_run_all_the_same() {
    let policy = Policy { gates: vec![gate("lint"), gate("test")], ..Policy::default() };
    let mut play = Play::new(vec![checked(story("S1"), "out.txt")], policy)
        .agents([complete(), complete()])
        .check(GATE, [red("lint")])
        .check(OWN, [red("no file")]);
    assert_eq!(play.end(), Outcome::Complete);
    let reasons: Vec<&str> = play.briefs[1].repair.iter().map(|f| f.reason.as_str()).collect();
    assert_eq!(reasons, ["`lint`: lint", "`out.txt`: no file"]);
    assert_eq!(play.count("check Gate(1)"), 1, "only after the repair");
}

#[test]
fn the_fastest_known_gate_runs_first() {
    let policy = Policy { gates: vec![gate("slow"), gate("fast")], ..Policy::default() };
    let mut play = Play::new(vec![story("S1")], policy).agents([complete()]);
    for seconds in [60, 2] {
        let Effect::RunCheck { attempt, stage, check, .. } = play.until(|e| matches!(e, Effect::RunCheck { .. }))
        else {
            unreachable!()
        };
        let result = ralphloop_core::evidence::CheckResult::Passed;
        let took = Duration::from_secs(seconds);
        play.answer_with(ralphloop_core::event::Fact::CheckFinished {
            attempt,
            stage,
            check,
            result,
            cached: false,
            took,
        });
    }
    play.end();
    let ran: Vec<&String> = play.log.iter().filter(|l| l.starts_with("check ")).collect();
    assert_eq!(ran, ["check Gate(1)", "check Gate(0)"]);
}

#[test]
fn a_hook_that_refuses_is_repaired_and_then_fails() {
    let mut play = Play::new(vec![story("S1")], Policy { max_repairs: 1, ..retries(0, OnExhausted::Stop) })
        .agents([complete(), complete()]);
    for _ in 0..2 {
        let Effect::Land { attempt, call, .. } = play.until(|e| matches!(e, Effect::Land { .. })) else {
            unreachable!()
        };
        let (by, output) = ("the hook pre-commit".to_owned(), "line too long".to_owned());
        play.answer_with(ralphloop_core::event::Fact::LandingRefused { attempt, call, by, output });
    }
    assert_eq!(play.end(), Outcome::Failed);
    assert_eq!(play.briefs[1].repair[0].output, "line too long");
    assert_eq!(play.count("check Gate(0)"), 2, "what was repaired is checked again");
    assert!(play.reason("S1").contains("pre-commit"));
}
