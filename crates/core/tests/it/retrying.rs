//! Attempts and waits of each kind of failure (F39).

use std::collections::BTreeMap;
use std::time::Duration;

use ralphloop_core::effect::Effect;
use ralphloop_core::event::Fact;
use ralphloop_core::evidence::AgentEnd;
use ralphloop_core::outcome::{Bound, Outcome};
use ralphloop_core::policy::{Budget, FailureKind, OnExhausted, Policy, Retry};
use ralphloop_core::run::StoryState;

use crate::support::*;

fn answering(kind: FailureKind, attempts: Option<u32>, waits: &[u64]) -> Policy {
    let backoff = waits.iter().copied().map(Duration::from_secs).collect();
    Policy { retries: BTreeMap::from([(kind, Retry { attempts, backoff })]), ..retries(5, OnExhausted::Skip) }
}

fn too_slow() -> Call {
    ended(AgentEnd::TimedOut { after: Duration::from_hours(1) })
}

#[test]
fn f39_a_kind_of_failure_has_its_own_attempts_and_others_keep_theirs() {
    let policy = answering(FailureKind::Timeout, Some(1), &[]);
    let mut play = Play::new(vec![story("S1")], policy.clone()).agents([too_slow(), too_slow().tree("other")]);
    assert_eq!(play.end(), Outcome::Failed);
    assert_eq!(play.record("S1").attempts, 2, "one more after the first");
    let mixed = [too_slow(), claims_failure("no wire"), claims_failure("no glass"), complete()];
    let mut play = Play::new(vec![story("S1")], policy).agents(mixed);
    assert_eq!(play.end(), Outcome::Complete, "{:#?}", play.log);
}

#[test]
fn f39_before_a_further_attempt_the_story_waits_as_named_while_others_go_on() {
    let policy = answering(FailureKind::Implementation, None, &[60, 300]);
    let calls = [claims_failure("a"), complete(), claims_failure("b"), claims_failure("c"), complete()];
    let mut play = Play::new(vec![story("S1"), story("S2")], policy).agents(calls);
    assert_eq!(play.end(), Outcome::Complete, "{:#?}", play.log);
    let log = play.log.join("\n");
    let at = |words: &str| log.find(words).unwrap_or_else(|| panic!("{words} in {log}"));
    assert!(at("begin S2#1") < at("begin S1#2"), "{log}");
    let waits: Vec<&String> = play.log.iter().filter(|line| line.starts_with("sleep")).collect();
    assert_eq!(waits.len(), 3, "{waits:?}");
    // A look at the spec comes between the end of the attempt and the wait, and takes a second here.
    assert_eq!(waits[1..], ["sleep 299 s", "sleep 299 s"], "the last wait holds for all further ones");
}

#[test]
fn a_story_that_waits_is_not_tried_before_however_often_the_run_wakes_and_a_clock_set_back_adds_nothing() {
    let policy = answering(FailureKind::Implementation, None, &[60]);
    let mut play = Play::new(vec![story("S1")], policy).agents([claims_failure("a"), complete()]);
    play.until(|effect| matches!(effect, Effect::Sleep { .. }));
    assert_eq!(play.run.wait().unwrap().reason, "waiting before S1 is tried again");
    let left = play.run.wait().unwrap().until.since(play.now);
    play.now = ralphloop_core::units::Timestamp(play.now.0 - 3_600_000);
    play.answer_with(Fact::Woke);
    let until = play.run.wait().unwrap().until;
    assert_eq!(until.since(play.now), left);
    assert_eq!((play.end(), play.count("begin S1")), (Outcome::Complete, 2));
}

#[test]
fn a_wait_that_would_outlast_the_run_ends_it_and_a_retry_waits_for_nothing() {
    let budget = Budget { duration: Some(Duration::from_mins(30)), ..Budget::default() };
    let policy = Policy { budget, ..answering(FailureKind::Implementation, None, &[7200]) };
    let mut play = Play::new(vec![story("S1")], policy.clone()).agents([claims_failure("a")]);
    assert!(matches!(play.end(), Outcome::BoundReached { bound: Bound::Duration, resume_at: Some(_), .. }));
    assert_eq!(*play.state("S1"), StoryState::Pending);
    let policy = Policy { budget: Budget::default(), ..policy };
    let mut play = Play::new(vec![story("S1")], policy).agents([claims_failure("a"), complete()]);
    play.until(|effect| matches!(effect, Effect::Sleep { .. }));
    play.tell(Fact::RetryRequested { story: "S1".into() });
    play.until_agent();
    assert_eq!(play.record("S1").attempts, 2);
}
