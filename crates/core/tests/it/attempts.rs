//! Attempts one after the other: order, retries, what they are told, how a story is exhausted.

use ralphloop_core::effect::{Effect, Ground};
use ralphloop_core::event::{CheckRef, Fact};
use ralphloop_core::evidence::AgentEnd;
use ralphloop_core::outcome::Outcome;
use ralphloop_core::plan::Priority;
use ralphloop_core::policy::{OnExhausted, Policy};
use ralphloop_core::run::StoryState;

use crate::support::*;

#[test]
fn r31_one_agent_a_story_until_none_is_left() {
    let mut play =
        Play::new(vec![done(story("S0")), story("S1"), story("S2")], gated()).agents([complete(), complete()]);
    assert_eq!(play.end(), Outcome::Complete);
    let agents: Vec<&String> = play.log.iter().filter(|l| l.starts_with("agent")).collect();
    assert_eq!(agents, ["agent S1#1 call 0", "agent S2#1 call 0"]);
}

#[test]
fn r32_a_story_that_is_complete_lands_and_the_spec_is_read_again() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([complete()]);
    play.end();
    let tail: Vec<&str> = play.log.iter().rev().take(3).rev().map(String::as_str).collect();
    assert_eq!(tail, ["land S1#1 Verified", "look at the spec", "finish Complete"]);
}

#[test]
fn r34_without_a_signal_the_attempt_is_reverted_and_tried_again() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([ended(AgentEnd::NoFinalMessage), complete()]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.count("revert S1#1"), 1);
    assert!(play.briefs[1].previous.is_empty());
}

#[test]
fn r35_when_attempts_are_exhausted_the_loop_stops_and_never_goes_to_the_next_story() {
    let mut play = Play::new(vec![story("S1"), story("S2")], retries(2, OnExhausted::Stop))
        .agents(["first", "second", "third"].map(claims_failure));
    assert_eq!(play.end(), Outcome::Failed);
    assert_eq!(play.count("agent S1"), 3, "the first attempt and two retries");
    assert_eq!(play.count("begin S2"), 0);
    assert!(play.reason("S1").contains("third"), "the last attempt's words");
}

#[test]
fn r36_a_check_that_times_out_goes_the_way_of_a_failure() {
    let mut play = Play::new(vec![story("S1")], Policy { max_repairs: 0, ..gated() })
        .agents([complete(), complete()])
        .check(CheckRef::Gate(0), [red("timed out after 10m")]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.record("S1").charged, 1);
    assert!(play.briefs[1].previous[0].reason.contains("timed out"));
}

#[test]
fn r46_an_exhausted_story_pauses_the_run_if_that_is_wanted() {
    let mut play = Play::new(vec![story("S1"), story("S2")], retries(0, OnExhausted::Pause)).agents([crash()]);
    let outcome = play.end();
    assert!(matches!(outcome, Outcome::Paused { .. }) && reason_of(&outcome).contains("S1"), "{outcome:?}");
}

#[test]
fn a_skipped_story_blocks_only_those_that_depend_on_it() {
    let stories = vec![story("S1"), after(story("S2"), &["S1"]), after(story("S3"), &["S2"]), story("S4")];
    let mut play = Play::new(stories, retries(0, OnExhausted::Skip)).agents([crash(), complete()]);
    assert_eq!(play.end(), Outcome::Failed);
    assert_eq!(*play.state("S1"), StoryState::Failed);
    assert_eq!(
        (play.reason("S2"), play.reason("S3")),
        ("it depends on S1, which has not landed", "it depends on S2, which has not landed",)
    );
    assert_eq!(play.ground("S4"), Some(Ground::Verified));
    assert_eq!(play.count("begin S2") + play.count("begin S3"), 0);
}

#[test]
fn order_is_by_priority_then_complexity_then_place_in_the_file_and_dependencies_come_first() {
    let mut urgent = after(story("urgent"), &["base"]);
    urgent.priority = Some(Priority(0.0));
    let (mut second, mut easy, mut hard) = (story("second"), story("easy"), story("hard"));
    second.priority = Some(Priority(1.5));
    easy.complexity = Some(1);
    hard.complexity = Some(5);
    let mut play =
        Play::new(vec![hard, story("base"), easy, urgent, second], gated()).agents(std::iter::repeat_n(complete(), 5));
    assert_eq!(play.end(), Outcome::Complete);
    let order: Vec<&str> = play.log.iter().filter_map(|l| l.strip_prefix("begin ")).collect();
    assert_eq!(order, ["second#1", "easy#1", "base#1", "urgent#1", "hard#1"]);
}

#[test]
fn only_named_stories_are_run_and_one_that_needs_another_is_blocked() {
    let policy = Policy { only: vec!["S2".into(), "S3".into()], ..gated() };
    let mut play = Play::new(vec![story("S1"), after(story("S2"), &["S1"]), story("S3")], policy).agents([complete()]);
    assert_eq!(play.end(), Outcome::Failed);
    assert_eq!(*play.state("S1"), StoryState::Pending);
    assert!(play.reason("S2").contains("S1"));
    assert_eq!(play.ground("S3"), Some(Ground::Verified));
}

#[test]
fn work_that_is_all_done_calls_no_agent() {
    let mut play = Play::new(vec![done(story("S1"))], gated());
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.run.calls(), 0);
}

#[test]
fn work_without_an_open_story_is_nothing_to_do() {
    let mut optional = story("S1");
    optional.optional = true;
    assert!(matches!(Play::new(vec![optional], gated()).end(), Outcome::NothingToDo { .. }));
}

#[test]
fn a_prompt_that_is_too_long_is_tried_once_more_shorter() {
    let long = || ended(AgentEnd::PromptTooLong { message: "200k tokens".to_owned() });
    let mut play = Play::new(vec![story("S1")], gated()).agents([long(), long()]);
    assert_eq!(play.end(), Outcome::Failed);
    assert!(!play.briefs[0].shorter && play.briefs[1].shorter);
    assert_eq!(play.count("agent"), 2, "not a third time");
}

#[test]
fn what_needs_a_permission_is_not_tried_again_blindly() {
    let denied = ended(AgentEnd::PermissionDenied { tools: vec!["Bash".to_owned()] }).unchanged();
    let mut play = Play::new(vec![story("S1")], gated()).agents([denied]);
    assert_eq!(play.end(), Outcome::Failed);
    assert_eq!(play.count("agent"), 1);
    assert!(play.reason("S1").contains("Bash"));
}

#[test]
fn guidance_goes_into_one_prompt_only() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([crash(), complete()]);
    play.tell(guide("use sqlite"));
    assert_eq!(play.run.guidance(), ["use sqlite"]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!((&play.briefs[0].guidance[..], &play.briefs[1].guidance[..]), (&["use sqlite".to_owned()][..], &[][..]));
}

#[test]
fn guidance_reaches_a_repair() {
    let mut play = Play::new(vec![story("S1")], gated())
        .agents([complete(), complete()])
        .check(CheckRef::Gate(0), [red("exit code 1")]);
    play.until(|e| matches!(e, Effect::Inspect { .. }));
    play.tell(guide("the port is 5433"));
    play.end();
    assert_eq!(play.briefs[1].guidance, ["the port is 5433"]);
}

#[test]
fn guidance_of_an_attempt_that_came_to_nothing_is_given_again() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([limit(None), complete()]);
    play.tell(guide("use sqlite"));
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.briefs[1].guidance, ["use sqlite"]);
    assert!(play.run.guidance().is_empty(), "it landed, so it is used up");
}

#[test]
fn a_limit_between_two_attempts_does_not_hide_why_the_first_one_failed() {
    let mut play =
        Play::new(vec![story("S1")], gated()).agents([claims_failure("the API is gone"), limit(None), complete()]);
    assert_eq!(play.end(), Outcome::Complete);
    assert!(play.briefs[2].previous[0].reason.contains("the API is gone"), "{:?}", play.briefs[2]);
}

#[test]
fn learnings_are_carried_to_all_later_prompts_once_each() {
    let mut play = Play::new(vec![story("S1"), story("S2")], gated())
        .agents([complete().learns("tests need redis"), complete().learns(" tests need redis ")]);
    play.tell(Fact::LearningAdded { text: "be brief".to_owned() });
    play.end();
    assert_eq!(play.briefs[1].learnings, ["tests need redis", "be brief"], "the newest first");
    let kept: Vec<_> = play.run.learnings().iter().map(|learning| (learning.text.as_str(), learning.times)).collect();
    assert_eq!(kept, [("be brief", 1), ("tests need redis", 2)]);
}

#[test]
fn what_was_reverted_is_known_by_its_ref() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([crash(), complete()]);
    play.end();
    assert_eq!(play.record("S1").kept, [(1, "refs/ralphloop/r/S1/1".to_owned())]);
}

#[test]
fn r40_every_first_call_is_preceded_by_a_checkpoint() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([crash(), crash(), complete()]);
    play.end();
    for n in 1..=3 {
        let at = |words: String| play.log.iter().position(|l| *l == words).expect("it was asked for");
        assert!(at(format!("checkpoint S1#{n}")) < at(format!("agent S1#{n} call 0")));
    }
}

#[test]
fn without_a_checkpoint_no_agent_starts() {
    let mut play = Play::new(vec![story("S1")], gated());
    let Effect::Checkpoint { attempt } = play.until(|e| matches!(e, Effect::Checkpoint { .. })) else { unreachable!() };
    play.answer_with(Fact::CheckpointFailed { attempt, why: "index.lock exists; remove it".to_owned() });
    let outcome = play.end();
    assert!(reason_of(&outcome).contains("index.lock"), "{outcome:?}");
    assert!(matches!(outcome, Outcome::Environment { .. }));
    assert_eq!((play.run.calls(), play.state("S1")), (0, &StoryState::Pending));
}

#[test]
fn a_commit_that_cannot_be_made_is_the_environments_fault() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([complete()]);
    let Effect::Land { attempt, .. } = play.until(|e| matches!(e, Effect::Land { .. })) else { unreachable!() };
    play.answer_with(Fact::LandingFailed { attempt, why: "gpg: no secret key".to_owned() });
    let outcome = play.end();
    assert!(matches!(outcome, Outcome::Environment { .. }) && reason_of(&outcome).contains("gpg"), "{outcome:?}");
    assert_eq!(play.record("S1").charged, 0);
    assert_eq!(play.count("revert"), 1);
}
