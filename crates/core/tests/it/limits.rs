//! Waits that are nobody's fault, and bounds of the run.

use std::time::Duration;

use ralphloop_core::effect::Effect;
use ralphloop_core::event::{CheckRef, Fact};
use ralphloop_core::evidence::{AgentEnd, CheckResult, Usage};
use ralphloop_core::outcome::{Bound, Outcome};
use ralphloop_core::policy::{Budget, Policy};
use ralphloop_core::run::{Activity, StoryState};
use ralphloop_core::units::Usd;

use crate::support::*;

fn waiting_for(play: &Play) -> String {
    match play.run.activity() {
        Activity::Waiting(wait) => wait.reason.clone(),
        other => panic!("the run does not wait: {other:?}"),
    }
}

fn sleeps(play: &Play) -> Vec<u64> {
    let seconds = |l: &String| l.strip_prefix("sleep ")?.strip_suffix(" s")?.parse().ok();
    play.log.iter().filter_map(seconds).collect()
}

#[test]
fn a_limit_with_a_time_is_waited_for_and_costs_no_attempt() {
    let reset = START.after(Duration::from_hours(2));
    let mut play = Play::new(vec![story("S1")], gated()).agents([limit(Some(reset)), complete()]);
    let Effect::Sleep { until } = play.until(|e| matches!(e, Effect::Sleep { .. })) else { unreachable!() };
    assert!(until > reset && until <= reset.after(Duration::from_secs(5)), "a little later than stated");
    assert!(waiting_for(&play).contains("usage limit"));
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!((play.record("S1").charged, play.record("S1").attempts), (0, 2));
    assert_eq!(play.count("revert S1#1"), 1, "nothing stays in the tree while the run waits");
}

#[test]
fn a_limit_without_a_time_is_guessed_growing_and_capped_and_says_so() {
    let policy = Policy { limit_wait: Duration::from_mins(30), ..gated() };
    let mut play =
        Play::new(vec![story("S1")], policy).agents(std::iter::repeat_n(limit(None), 5)).agents([complete()]);
    play.until(|e| matches!(e, Effect::Sleep { .. }));
    assert!(waiting_for(&play).contains("guess"), "{}", waiting_for(&play));
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(sleeps(&play), [300, 600, 1200, 1800, 1800]);
}

#[test]
fn a_stated_reset_that_has_passed_is_a_guess_too() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([limit(Some(START)), complete()]);
    play.until(|e| matches!(e, Effect::Sleep { .. }));
    assert!(waiting_for(&play).contains("has passed"), "{}", waiting_for(&play));
    play.end();
    assert_eq!(sleeps(&play), [300]);
}

#[test]
fn a_limit_that_resets_later_than_the_run_may_wait_ends_it_with_the_time() {
    let reset = START.after(Duration::from_hours(7));
    let mut play = Play::new(vec![story("S1")], gated()).agents([limit(Some(reset))]);
    let Outcome::BoundReached { bound: Bound::LimitWait, resume_at: Some(at), .. } = play.end() else {
        panic!("another end: {:#?}", play.log)
    };
    assert!(at >= reset);
}

#[test]
fn limits_that_no_wait_helps_against_pause_the_run() {
    let mut play = Play::new(vec![story("S1")], gated()).agents(std::iter::repeat_n(limit(None), 40));
    let outcome = play.end();
    assert!(matches!(outcome, Outcome::Paused { .. }), "{outcome:?}");
    assert_eq!(play.run.calls(), 13);
    assert_eq!(play.record("S1").charged, 0);
}

#[test]
fn a_provider_that_fails_is_tried_again_ever_more_slowly_and_then_the_run_pauses() {
    let network = || ended(AgentEnd::Network { message: "no route".to_owned() });
    let mut play = Play::new(vec![story("S1")], gated()).agents([overloaded(), network(), overloaded(), network()]);
    let outcome = play.end();
    assert!(matches!(outcome, Outcome::Paused { .. }) && reason_of(&outcome).contains("4 tries"), "{outcome:?}");
    let sleeps = sleeps(&play);
    assert_eq!(sleeps.len(), 3);
    for (slept, least) in sleeps.iter().zip([2, 6, 18]) {
        assert!((least..=least + least / 4).contains(slept), "{sleeps:?}");
    }
    assert_eq!(play.record("S1").charged, 0);
}

#[test]
fn backoff_never_exceeds_five_minutes_and_a_quarter() {
    let policy = Policy { provider_retries: 9, ..gated() };
    let mut play = Play::new(vec![story("S1")], policy).agents(std::iter::repeat_n(overloaded(), 9));
    play.end();
    assert!(sleeps(&play).iter().all(|s| *s <= 375), "{:?}", sleeps(&play));
}

#[test]
fn an_agent_that_gets_through_ends_the_count_of_troubles() {
    let troubles = [overloaded(), overloaded(), overloaded(), crash(), overloaded(), overloaded(), overloaded()];
    let mut play = Play::new(vec![story("S1")], gated()).agents(troubles).agents([complete()]);
    assert_eq!(play.end(), Outcome::Complete);
}

#[test]
fn what_needs_a_person_ends_the_run_and_is_not_charged() {
    let message = "so it says".to_owned();
    let ends = [
        (AgentEnd::SignIn { message: message.clone(), remedy: Some("claude /login".to_owned()) }, "claude /login"),
        (AgentEnd::NoCredit { message: message.clone() }, "no credit"),
        (AgentEnd::ModelUnknown { message: message.clone() }, "--agent"),
        (AgentEnd::CannotStart { message: message.clone() }, "cannot start"),
        (AgentEnd::Internal { message }, "could not watch"),
    ];
    for (end, expected) in ends {
        let mut play = Play::new(vec![story("S1")], gated()).agents([ended(end)]);
        let outcome = play.end();
        assert!(matches!(outcome, Outcome::Environment { .. }), "{outcome:?}");
        assert!(reason_of(&outcome).contains(expected), "{outcome:?}");
        assert_eq!((play.record("S1").charged, play.state("S1")), (0, &StoryState::Pending));
        assert_eq!(play.count("revert"), 1);
    }
}

#[test]
fn a_clock_that_is_set_back_makes_no_wait_longer() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([overloaded()]);
    play.until(|e| matches!(e, Effect::Sleep { .. }));
    play.now.0 -= 36_000_000;
    play.answer_with(Fact::Woke);
    let Effect::Sleep { until } = play.open[0] else { panic!("{:?}", play.open) };
    assert!(until.since(play.now) <= Duration::from_secs(3), "{:#?}", play.log);
}

#[test]
fn waking_twice_starts_nothing_twice() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([overloaded(), complete()]);
    play.until(|e| matches!(e, Effect::Sleep { .. }));
    play.answer();
    play.tell(Fact::Woke);
    assert_eq!(play.count("look at the spec"), 1, "{:#?}", play.log);
    assert_eq!(play.end(), Outcome::Complete);
}

fn bounded(budget: Budget) -> Policy {
    Policy { budget, ..gated() }
}

#[test]
fn iterations_are_spawns_and_a_repair_is_one() {
    let policy = bounded(Budget { iterations: Some(2), ..Budget::default() });
    let mut play = Play::new(vec![story("S1")], policy)
        .agents([complete(), complete()])
        .check(CheckRef::Gate(0), [red("exit code 1"), red("exit code 1")]);
    let outcome = play.end();
    assert!(matches!(outcome, Outcome::BoundReached { bound: Bound::Iterations, .. }), "{outcome:?}");
    assert!(reason_of(&outcome).contains("2 of 2"));
    assert_eq!((play.run.calls(), play.record("S1").charged), (2, 0));
    assert_eq!(play.count("revert"), 1);
}

#[test]
fn stories_are_bounded_however_many_attempts_each_needs() {
    let policy = bounded(Budget { stories: Some(2), ..Budget::default() });
    let policy = Policy { max_retries: 1, max_repairs: 0, ..policy };
    let mut play = Play::new(vec![story("S1"), story("S2"), story("S3")], policy)
        .agents([complete(), complete(), complete()])
        .check(CheckRef::Gate(0), [red("exit code 1"), CheckResult::Passed]);
    let outcome = play.end();
    assert!(matches!(outcome, Outcome::BoundReached { bound: Bound::Stories, .. }), "{outcome:?}");
    assert_eq!((play.run.calls(), play.record("S3").attempts), (3, 0));
    assert!(play.record("S1").state.passed() && play.record("S2").state.passed());
}

#[test]
fn f39_waits_for_a_failing_provider_are_those_that_were_named_and_the_last_holds_for_all_further_ones() {
    let named = [1, 5, 15].map(Duration::from_secs).to_vec();
    let policy = Policy { provider_retries: 6, provider_backoff: named, ..gated() };
    let mut play =
        Play::new(vec![story("S1")], policy).agents(std::iter::repeat_n(overloaded(), 5)).agents([complete()]);
    assert_eq!(play.end(), Outcome::Complete);
    let slept = sleeps(&play);
    assert_eq!(slept.len(), 5);
    for (slept, least) in slept.iter().zip([1, 5, 15, 15, 15]) {
        assert!((least..=least + least / 4 + 1).contains(slept), "{slept:?}");
    }
}

#[test]
fn a_bound_is_no_matter_when_nothing_is_left_to_do() {
    let policy = bounded(Budget { iterations: Some(1), ..Budget::default() });
    let mut play = Play::new(vec![story("S1")], policy).agents([complete()]);
    assert_eq!(play.end(), Outcome::Complete);
}

#[test]
fn money_and_tokens_are_summed_over_calls() {
    let used = Usage {
        input_tokens: Some(800),
        output_tokens: Some(200),
        cost: Some(Usd::from_dollars(0.6)),
        ..Usage::default()
    };
    let cases = [
        (Bound::Cost, Budget { cost: Some(Usd::from_dollars(1.2)), ..Budget::default() }),
        (Bound::Tokens, Budget { tokens: Some(2000), ..Budget::default() }),
    ];
    for (expected, budget) in cases {
        let mut play = Play::new(vec![story("S1"), story("S2"), story("S3")], bounded(budget))
            .agents([complete().uses(used), complete().uses(used)]);
        let outcome = play.end();
        assert!(matches!(outcome, Outcome::BoundReached { bound, .. } if bound == expected), "{outcome:?}");
        assert_eq!(play.run.calls(), 2);
        assert_eq!(play.record("S1").usage, used);
    }
}

#[test]
fn the_time_of_a_run_is_bounded_and_waits_belong_to_it() {
    let policy = bounded(Budget { duration: Some(Duration::from_mins(20)), ..Budget::default() });
    let mut play = Play::new(vec![story("S1"), story("S2")], policy.clone()).agents([complete()]);
    play.until_agent();
    play.now = play.now.after(Duration::from_mins(30));
    let outcome = play.end();
    assert!(matches!(outcome, Outcome::BoundReached { bound: Bound::Duration, .. }), "{outcome:?}");
    // A wait that would outlast it is not begun.
    let reset = START.after(Duration::from_hours(2));
    let mut play = Play::new(vec![story("S1")], policy).agents([limit(Some(reset))]);
    let Outcome::BoundReached { bound: Bound::Duration, resume_at: Some(at), .. } = play.end() else {
        panic!("another end: {:#?}", play.log)
    };
    assert!(at >= reset);
}

#[test]
fn time_between_an_end_and_a_resume_does_not_count() {
    let policy = bounded(Budget { duration: Some(Duration::from_mins(20)), ..Budget::default() });
    let mut play = Play::new(vec![story("S1")], policy).agents([complete()]);
    play.until_agent();
    play.tell(stop(ralphloop_core::event::StopLevel::AfterAttempt));
    play.agents_first(crash());
    play.end();
    play.now = play.now.after(Duration::from_hours(9));
    play.restart();
    assert_eq!(play.end(), Outcome::Complete);
}

#[test]
fn a_call_that_overran_the_budget_ends_the_run_and_is_not_charged() {
    let message = "it had used 2300 tokens".to_owned();
    let over = ended(AgentEnd::OverBudget { bound: Bound::Tokens, message });
    let policy = bounded(Budget { tokens: Some(2000), margin: 10, ..Budget::default() });
    let mut play = Play::new(vec![story("S1")], policy).agents([over]);
    let outcome = play.end();
    assert!(matches!(outcome, Outcome::BoundReached { bound: Bound::Tokens, .. }), "{outcome:?}");
    assert!(reason_of(&outcome).contains("2300"));
    assert_eq!((play.record("S1").charged, play.count("revert S1#1")), (0, 1));
}

#[test]
fn a_call_may_use_what_is_left_of_the_budget_and_its_margin() {
    let used = Usage { input_tokens: Some(800), output_tokens: Some(200), ..Usage::default() };
    let used = Usage { estimate: Some(Usd::from_dollars(0.6)), ..used };
    let budget = Budget { cost: Some(Usd::from_dollars(1.0)), tokens: Some(5000), margin: 10, ..Budget::default() };
    let mut play = Play::new(vec![story("S1"), story("S2")], bounded(budget)).agents([complete().uses(used)]);
    let allowance = play.run.allowance();
    assert_eq!((allowance.cost, allowance.tokens), (Some(Usd(1_100_000)), Some(5500)));
    play.until(|e| matches!(e, Effect::Begin { attempt, .. } if attempt.story.as_str() == "S2"));
    let allowance = play.run.allowance();
    assert_eq!((allowance.cost, allowance.tokens), (Some(Usd(500_000)), Some(4500)));
    assert_eq!(Policy::default().budget.cost, None);
}

#[test]
fn a_cost_by_list_prices_counts_for_the_budget_and_an_unknown_one_is_counted_as_unknown() {
    let priced = Usage { input_tokens: Some(1), estimate: Some(Usd::from_dollars(2.0)), ..Usage::default() };
    let policy = bounded(Budget { cost: Some(Usd::from_dollars(1.0)), ..Budget::default() });
    let mut play = Play::new(vec![story("S1"), story("S2")], policy.clone()).agents([complete().uses(priced)]);
    assert!(matches!(play.end(), Outcome::BoundReached { bound: Bound::Cost, .. }));
    let unknown = Usage { input_tokens: Some(1), ..Usage::default() };
    let calls = [limit(None), complete().uses(unknown), complete().uses(priced)];
    let mut play = Play::new(vec![story("S1"), story("S2")], policy).agents(calls);
    play.end();
    assert_eq!(play.run.unpriced_calls(), 1, "a call that its provider refused costs nothing");
    assert_eq!(play.run.usage().money_in_words().as_deref(), Some("$2.00 by list prices"));
}
