//! A relay: every role has its turn, with a baton; it is bounded; and what it comes to is judged as ever.

use ralphloop_core::effect::Effect;
use ralphloop_core::event::CheckRef;
use ralphloop_core::evidence::Usage;
use ralphloop_core::ids::AgentId;
use ralphloop_core::outcome::Outcome;
use ralphloop_core::policy::{Budget, Policy};
use ralphloop_core::relay::{Relay, Role};
use ralphloop_core::units::Usd;

use crate::support::*;

fn role(name: &str, agent: Option<&str>) -> Role {
    Role { name: name.to_owned(), agent: agent.map(AgentId::from), instructions: None }
}

fn relay(roles: &[(&str, Option<&str>)], rounds: u32) -> Policy {
    let roles = roles.iter().map(|(name, agent)| role(name, *agent)).collect();
    Policy { relay: Some(Relay { roles, rounds }), agents: vec!["claude".into(), "codex".into()], ..gated() }
}

fn three(rounds: u32) -> Policy {
    relay(&[("planner", Some("opus")), ("coder", None), ("reviewer", Some("codex"))], rounds)
}

fn says(call: Call, text: &str) -> Call {
    let mut call = call;
    text.clone_into(&mut call.report.handover);
    call
}

fn turns(play: &Play) -> Vec<String> {
    let of = |brief: &ralphloop_core::effect::Brief| {
        brief.leg.as_ref().map_or_else(|| "repair".to_owned(), |leg| format!("{} {}", leg.role.name, leg.round))
    };
    play.briefs.iter().map(of).collect()
}

#[test]
fn every_role_has_its_turn_with_its_agent_and_what_the_one_before_said() {
    let mut play = Play::new(vec![story("S1")], three(2)).agents([
        says(no_signal(), "the plan"),
        says(complete(), "I have done it"),
        says(complete(), "it is right"),
    ]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(turns(&play), ["planner 1", "coder 1", "reviewer 1"]);
    assert_eq!(play.callers, ["opus".into(), "claude".into(), "codex".into()] as [AgentId; 3]);
    let baton = |n: usize| -> Vec<String> {
        play.briefs[n].leg.as_ref().unwrap().baton.iter().map(|note| note.text.clone()).collect()
    };
    assert_eq!((baton(0), baton(1)), (Vec::new(), vec!["the plan".to_owned()]));
    assert_eq!(baton(2), ["the plan", "I have done it"]);
    assert_eq!(play.count("check Gate(0)"), 1, "only what the last one left is checked");
    assert_eq!(play.run.calls(), 3);
}

#[test]
fn a_round_that_its_last_role_does_not_close_is_followed_by_another_until_they_are_used_up() {
    let calls = (0..9).map(|n| says(no_signal(), &format!("note {n}")));
    let mut play = Play::new(vec![story("S1")], Policy { max_retries: 0, ..three(2) }).agents(calls);
    assert_eq!(play.end(), Outcome::Failed);
    assert_eq!(turns(&play), ["planner 1", "coder 1", "reviewer 1", "planner 2", "coder 2", "reviewer 2"]);
    assert_eq!(play.record("S1").charged, 1, "a relay without a claim is an attempt without a signal");
}

#[test]
fn the_word_of_a_role_in_the_middle_does_not_end_the_relay_but_a_blocked_story_does() {
    let mut play = Play::new(vec![story("S1")], three(1))
        .agents([says(complete(), "a"), claims_blocked("no access to the registry")]);
    assert_eq!(play.end(), Outcome::Failed);
    assert_eq!(turns(&play), ["planner 1", "coder 1"]);
    assert!(play.record("S1").reason.as_ref().unwrap().contains("no access"));
}

#[test]
fn three_that_say_the_same_and_change_nothing_end_the_relay() {
    let calls = ["Done.", "done", "DONE!"].map(|text| says(complete().tree("t"), text));
    let mut play = Play::new(vec![story("S1")], relay(&[("a", None), ("b", None)], 9))
        .agents([says(no_signal().tree("t"), "first"), says(no_signal().tree("t"), "second")]);
    play = play.agents(calls);
    // The second round is closed by its claim before the third one could agree.
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(turns(&play), ["a 1", "b 1", "a 2", "b 2"]);
    let calls = ["Nothing left.", "nothing left", "*Nothing left*"].map(|text| says(complete().tree("t"), text));
    let roles = [("a", None), ("b", None), ("c", None), ("d", None)];
    let mut play = Play::new(vec![story("S1")], relay(&roles, 9)).agents(calls);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(turns(&play), ["a 1", "b 1", "c 1"]);
}

#[test]
fn a_red_check_after_a_relay_is_mended_by_one_repair_and_not_by_another_relay() {
    let calls = ["plan", "code", "fine", "mended"].map(|text| says(complete(), text));
    let mut play = Play::new(vec![story("S1")], three(2)).agents(calls).check(CheckRef::Gate(0), [red("exit code 1")]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(turns(&play), ["planner 1", "coder 1", "reviewer 1", "repair"]);
    assert_eq!(play.callers[3], "claude".into(), "it is the chain's");
    assert_eq!(play.record("S1").attempts, 1);
}

#[test]
fn what_the_user_says_reaches_every_role() {
    let calls = ["plan", "code", "fine"].map(|text| says(complete(), text));
    let mut play = Play::new(vec![story("S1")], three(1)).agents(calls);
    play.tell(guide("use tabs"));
    play.until(|effect| matches!(effect, Effect::StartAgent { call, .. } if call.0 == 1));
    play.tell(guide("and no globals"));
    play.end();
    let told: Vec<_> = play.briefs.iter().map(|brief| brief.guidance.join("; ")).collect();
    assert_eq!(told, ["use tabs", "use tabs", "use tabs; and no globals"]);
}

#[test]
fn a_role_whose_agent_is_away_is_taken_by_the_chain_and_the_limit_costs_nothing() {
    let calls = [limit(None), says(complete(), "plan"), says(complete(), "code"), says(complete(), "fine")];
    let mut play = Play::new(vec![story("S1")], three(1)).agents(calls);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.callers, ["opus".into(), "claude".into(), "claude".into(), "codex".into()] as [AgentId; 4]);
    assert_eq!((play.record("S1").attempts, play.record("S1").charged), (2, 0));
}

#[test]
fn every_leg_counts_against_the_budgets_which_end_a_relay_in_its_middle() {
    let used = |dollars| Usage { cost: Some(Usd::from_dollars(dollars)), ..Usage::default() };
    let calls = || [0.1, 0.2, 0.4].map(|dollars| says(complete().uses(used(dollars)), &dollars.to_string()));
    let mut play = Play::new(vec![story("S1")], three(1)).agents(calls());
    play.end();
    assert_eq!(play.record("S1").usage.cost, used(0.7).cost);
    let budget = Budget { cost: Some(Usd::from_dollars(0.25)), ..Budget::default() };
    let mut play = Play::new(vec![story("S1")], Policy { budget, ..three(1) }).agents(calls());
    assert!(matches!(play.end(), Outcome::BoundReached { .. }));
    assert_eq!(turns(&play), ["planner 1", "coder 1"]);
    assert_eq!(play.count("revert S1#1"), 1);
}
