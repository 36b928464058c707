//! Several agents: who is called, who takes over, who returns, and how a story moves up.

use std::time::Duration;

use ralphloop_core::effect::Effect;
use ralphloop_core::event::{CheckRef, Fact};
use ralphloop_core::evidence::AgentEnd;
use ralphloop_core::ids::AgentId;
use ralphloop_core::outcome::{Bound, Outcome};
use ralphloop_core::policy::{OnExhausted, Policy};
use ralphloop_core::run::{Activity, Away, StoryState};

use crate::support::*;

fn chain(agents: &[&str]) -> Policy {
    Policy { agents: agents.iter().map(|agent| AgentId::from(*agent)).collect(), ..gated() }
}

fn both() -> Policy {
    chain(&["claude:opus", "codex"])
}

fn in_hours(hours: u64) -> Call {
    limit(Some(START.after(Duration::from_hours(hours))))
}

fn sign_in() -> Call {
    ended(AgentEnd::SignIn { message: "expired".to_owned(), remedy: Some("run `claude /login`".to_owned()) })
}

/// The agents that were called, in order.
fn called(play: &Play) -> Vec<String> {
    play.callers.iter().map(ToString::to_string).collect()
}

#[test]
fn a_limit_moves_the_story_to_the_next_agent_at_once_and_is_not_charged() {
    for end in [in_hours(3), limit(None), ended(AgentEnd::NoCredit { message: "0".to_owned() })] {
        let mut play = Play::new(vec![story("S1")], both()).agents([end, complete()]);
        assert_eq!(play.end(), Outcome::Complete, "{:#?}", play.log);
        assert_eq!(called(&play), ["claude:opus", "codex"]);
        assert_eq!(play.count("sleep"), 0, "nobody waits while another agent is there");
        assert_eq!((play.record("S1").charged, play.record("S1").agent.as_ref().unwrap().as_str()), (0, "codex"));
    }
}

#[test]
fn a_plateau_moves_a_story_up_by_effort_and_a_limit_moves_it_past_every_effort_of_the_model() {
    let efforts = || chain(&["claude:opus:low", "claude:opus:max", "codex"]);
    let alike = ["a", "a", "a"].map(claims_failure).map(|call| call.tree("t"));
    let mut play = Play::new(vec![story("S1")], efforts()).agents(alike).agents([complete()]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(called(&play), ["claude:opus:low", "claude:opus:low", "claude:opus:low", "claude:opus:max"]);

    let mut play = Play::new(vec![story("S1")], efforts()).agents([in_hours(3), complete()]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(called(&play), ["claude:opus:low", "codex"], "the account is the same for both");
}

#[test]
fn an_overloaded_provider_is_not_waited_for_and_is_asked_again_after_its_pause() {
    let mut play = Play::new(vec![story("S1")], both()).agents([overloaded(), overloaded(), overloaded(), complete()]);
    assert_eq!(play.end(), Outcome::Complete, "{:#?}", play.log);
    // Two seconds of a pause go by while the next attempt is made ready, six do not.
    assert_eq!(called(&play), ["claude:opus", "claude:opus", "codex", "claude:opus"]);
    assert_eq!(play.record("S1").charged, 0);
}

#[test]
fn the_first_agent_is_returned_to_once_its_reset_has_passed_and_not_before() {
    let stories = vec![story("S1"), story("S2"), story("S3")];
    let mut play = Play::new(stories, both()).agents([in_hours(3), complete(), complete(), complete()]);
    play.until(|e| matches!(e, Effect::Land { attempt, .. } if attempt.story.as_str() == "S1"));
    play.answer();
    play.until(|e| matches!(e, Effect::Land { attempt, .. } if attempt.story.as_str() == "S2"));
    play.now = START.after(Duration::from_hours(3)).after(Duration::from_secs(3));
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(called(&play), ["claude:opus", "codex", "codex", "claude:opus"]);
}

#[test]
fn a_repair_is_made_by_whoever_is_there() {
    let mut play = Play::new(vec![story("S1")], both())
        .agents([complete(), complete()])
        .check(CheckRef::Gate(0), [red("exit code 1")]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(called(&play), ["claude:opus", "claude:opus"]);
}

#[test]
fn only_when_all_wait_the_run_waits_for_the_earliest_reset() {
    let mut play = Play::new(vec![story("S1")], both()).agents([in_hours(5), in_hours(2), complete()]);
    let Effect::Sleep { until } = play.until(|e| matches!(e, Effect::Sleep { .. })) else { unreachable!() };
    assert!(until.since(START) < Duration::from_hours(3), "{:#?}", play.log);
    let Activity::Waiting(wait) = play.run.activity() else { panic!("{:?}", play.run.activity()) };
    assert!(wait.reason.contains("codex"), "{}", wait.reason);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(called(&play), ["claude:opus", "codex", "codex"]);
}

#[test]
fn the_run_ends_if_the_earliest_reset_is_too_late() {
    let mut play = Play::new(vec![story("S1")], both()).agents([in_hours(9), in_hours(8)]);
    let Outcome::BoundReached { bound: Bound::LimitWait, resume_at: Some(at), reason } = play.end() else {
        panic!("{:#?}", play.log)
    };
    assert_eq!(at.since(START).as_secs() / 3600, 8);
    assert!(reason.contains("codex"), "{reason}");
}

#[test]
fn an_expired_sign_in_leaves_the_work_to_the_others_and_is_told_with_its_remedy() {
    let mut play = Play::new(vec![story("S1"), story("S2")], both()).agents([sign_in(), complete(), complete()]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(called(&play), ["claude:opus", "codex", "codex"]);
    let Some(Away::Unusable { reason, .. }) = play.run.away(&"claude:opus".into()) else { panic!() };
    assert!(reason.contains("claude /login"), "{reason}");
}

#[test]
fn if_nobody_can_be_used_the_run_ends_and_says_why_for_each() {
    let gone = ended(AgentEnd::CannotStart { message: "no such file".to_owned() });
    let mut play = Play::new(vec![story("S1")], both()).agents([sign_in(), gone]);
    let outcome = play.end();
    assert!(matches!(outcome, Outcome::Environment { .. }), "{outcome:?}");
    let reason = reason_of(&outcome);
    assert!(reason.contains("claude:opus") && reason.contains("/login") && reason.contains("codex"), "{reason}");
    assert_eq!(play.record("S1").charged, 0);
}

#[test]
fn an_agent_that_is_silent_twice_is_left_for_the_next() {
    let silent = || ended(AgentEnd::NoOutput);
    let mut play = Play::new(vec![story("S1")], both()).agents([silent(), silent(), complete()]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(called(&play), ["claude:opus", "claude:opus", "codex"]);
}

#[test]
fn a_story_that_fails_in_the_same_way_moves_up_the_chain_before_it_is_exhausted() {
    let same = || claims_failure("cannot find the module").tree("t");
    let policy = Policy { max_retries: 6, ..both() };
    let calls = std::iter::repeat_with(same).take(6).chain([complete()]);
    let mut play = Play::new(vec![story("S1")], policy).agents(calls);
    play.until(|e| matches!(e, Effect::Begin { attempt, .. } if attempt.number == 4));
    let reason = play.record("S1").reason.clone().unwrap();
    assert!(reason.contains("3 times in a row") && reason.contains("codex tries next"), "{reason}");
    assert_eq!(play.end(), Outcome::Failed);
    assert_eq!(called(&play), [["claude:opus"; 3], ["codex"; 3]].concat());
    assert!(play.record("S1").reason.as_ref().unwrap().contains("not tried again"));
}

#[test]
fn the_last_attempt_of_a_story_is_spent_on_an_agent_that_has_not_failed_at_it() {
    let calls = ["a", "b", "c"].map(claims_failure).into_iter().chain([complete()]);
    let mut play = Play::new(vec![story("S1"), story("S2")], both()).agents(calls).agents([complete()]);
    assert_eq!(play.end(), Outcome::Complete);
    // The next story begins with the first agent again.
    assert_eq!(called(&play), ["claude:opus", "claude:opus", "claude:opus", "codex", "claude:opus"]);
}

#[test]
fn no_chain_gives_a_story_more_attempts_than_it_has() {
    for (max_retries, spawns) in [(0, 1), (1, 2), (3, 4)] {
        let policy = Policy { max_retries, on_exhausted: OnExhausted::Skip, ..both() };
        let calls = std::iter::repeat_with(|| claims_failure("no").tree("t")).take(9);
        let mut play = Play::new(vec![story("S1")], policy).agents(calls);
        assert_eq!(play.end(), Outcome::Failed);
        assert_eq!(play.run.calls(), spawns);
    }
}

#[test]
fn a_story_that_has_moved_up_waits_for_its_agent_while_others_go_on() {
    let denied = ended(AgentEnd::PermissionDenied { tools: vec!["Bash".to_owned()] });
    let calls = [denied, in_hours(1), complete(), complete()];
    let mut play = Play::new(vec![story("S1"), story("S2")], both()).agents(calls);
    assert_eq!(play.end(), Outcome::Complete);
    // S1 with codex, which is limited; S2 with claude meanwhile; then S1 with codex.
    assert_eq!(called(&play), ["claude:opus", "codex", "claude:opus", "codex"]);
    assert_eq!(play.count("sleep"), 1);
}

#[test]
fn a_story_that_moved_up_to_an_agent_nobody_can_use_has_failed_and_says_both() {
    let denied = ended(AgentEnd::PermissionDenied { tools: vec!["Bash".to_owned()] });
    let mut play = Play::new(vec![story("S1")], both()).agents([denied, sign_in()]);
    assert_eq!(play.end(), Outcome::Failed);
    assert_eq!(play.state("S1"), &StoryState::Failed);
    let reason = play.record("S1").reason.clone().unwrap();
    assert!(reason.contains("Bash") && reason.contains("codex") && reason.contains("/login"), "{reason}");
}

#[test]
fn a_limit_that_one_story_meets_holds_the_others_that_would_use_that_agent() {
    let policy = Policy { place: ralphloop_core::policy::Place::Worktrees, jobs: 2.try_into().unwrap(), ..both() };
    let mut play = Play::new(vec![story("S1"), story("S2")], policy).agents([in_hours(3), complete(), complete()]);
    play.until_of("S1", |e| matches!(e, Effect::Inspect { .. }));
    // Its tree is not even put back, and the other story already begins with the next agent.
    play.until_of("S2", |e| matches!(e, Effect::StartAgent { .. }));
    assert_eq!(called(&play), ["claude:opus", "codex"]);
    assert_eq!(play.end(), Outcome::Complete);
}

#[test]
fn what_a_fact_says_of_the_agent_is_so_whatever_would_be_decided_today() {
    let mut play = Play::new(vec![story("S1")], both()).agents([complete()]);
    let (attempt, call) = play.until_agent();
    play.tell(Fact::AgentStarted { attempt: attempt.clone(), call, agent: Some("gemini".into()) });
    assert_eq!(play.run.attempt(&attempt).unwrap().agent.as_ref().unwrap().as_str(), "gemini");
}

#[test]
fn a_limit_is_remembered_over_a_crash_and_forgotten_when_a_person_takes_the_run_up() {
    let mut play = Play::new(vec![story("S1"), story("S2")], both()).agents([in_hours(3), complete(), complete()]);
    play.until(|e| matches!(e, Effect::Land { .. }));
    play.restart();
    assert!(play.run.away(&"claude:opus".into()).is_some());
    play.until_agent();
    play.tell(stop(ralphloop_core::event::StopLevel::AfterAttempt));
    play.end();
    play.restart();
    assert_eq!(play.run.away(&"claude:opus".into()), None);
}

#[test]
fn a_story_moves_up_past_the_agent_that_failed_at_it_also_if_that_one_stood_in_for_another() {
    let same = || claims_failure("cannot find the module").tree("t");
    let calls = [in_hours(3), same(), same(), same(), complete()];
    let policy = Policy { max_retries: 5, ..chain(&["claude:opus", "codex", "gemini"]) };
    let mut play = Play::new(vec![story("S1")], policy).agents(calls);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(called(&play), ["claude:opus", "codex", "codex", "codex", "gemini"]);
    // With nobody above the one that failed, it has failed.
    let calls = [in_hours(3), same(), same(), same()];
    let mut play = Play::new(vec![story("S1")], Policy { max_retries: 5, ..both() }).agents(calls);
    assert_eq!(play.end(), Outcome::Failed);
    assert!(play.record("S1").reason.as_ref().unwrap().contains("not tried again"));
}
