//! A task that fails for good, and the task that mends it.

use ralphloop_core::effect::Effect;
use ralphloop_core::event::{CheckRef, Fact};
use ralphloop_core::outcome::Outcome;
use ralphloop_core::plan::{Story, Task};
use ralphloop_core::policy::{OnExhausted, Place, Policy};
use ralphloop_core::run::StoryState;

use crate::sim::scenario::task;
use crate::support::*;

const CHECK: CheckRef = CheckRef::Story(0);

/// A story with two tasks, the first of which has a check of its own.
fn verified(id: &str) -> Story {
    let mut story = checked(story(id), "lamp.txt");
    let verified_by = story.checks.first().cloned();
    story.tasks = vec![Task { verified_by, ..task("1.1.1") }, task("1.1.2")];
    story
}

fn policy() -> Policy {
    Policy { create_tasks: true, max_repairs: 0, ..retries(0, OnExhausted::Skip) }
}

#[test]
fn f20_a_task_whose_check_fails_for_good_is_mended_once_and_then_its_story_ends_as_the_policy_says() {
    let mut play = Play::new(vec![verified("S1"), story("S2")], policy())
        .agents([complete(), complete(), complete()])
        .check(CHECK, [red("exit code 1"), red("exit code 2")]);
    assert_eq!(play.end(), Outcome::Failed);
    assert!(play.asked_for("mend 1.1.1 in S1#2"), "{:#?}", play.log);
    assert_eq!((play.count("mend"), play.count("agent S1#3"), play.count("begin S1")), (1, 1, 3));
    assert_eq!(play.state("S1"), &StoryState::Failed);
    assert!(play.state("S2").passed());
    assert_eq!(play.briefs[1].previous[0].reason, "`lamp.txt`: exit code 1", "the next prompt tells what failed");
}

#[test]
fn f20_only_a_check_of_a_task_earns_one() {
    let fails = |play: Play| {
        let mut play = play;
        play.end();
        play.count("mend")
    };
    let one = || Play::new(vec![verified("S1")], policy());
    assert_eq!(fails(one().agents([complete()]).check(CheckRef::Gate(0), [red("a gate")])), 0);
    assert_eq!(fails(one().agents([claims_failure("no glass")])), 0);
    let off = Policy { create_tasks: false, ..policy() };
    let play = Play::new(vec![verified("S1")], off).agents([complete()]).check(CHECK, [red("exit code 1")]);
    assert_eq!(fails(play), 0);
    // One that an earlier run has added is open.
    let mut open = verified("S1");
    open.tasks.push(Task { mends: Some("1.1.1".into()), ..task("1.1.1a") });
    let play = Play::new(vec![open], policy()).agents([complete()]).check(CHECK, [red("exit code 1")]);
    assert_eq!(fails(play), 0);
}

#[test]
fn f20_where_none_can_be_added_the_story_has_failed_and_says_why() {
    let mut play = Play::new(vec![verified("S1")], policy()).agents([complete()]).check(CHECK, [red("exit code 1")]);
    let Effect::AddFixTask { attempt, .. } = play.until(|e| matches!(e, Effect::AddFixTask { .. })) else { panic!() };
    play.answer_with(Fact::NoFixTask { attempt, why: "no letter is left".to_owned() });
    assert_eq!(play.end(), Outcome::Failed);
    assert_eq!(play.state("S1"), &StoryState::Failed);
    assert_eq!(play.reason("S1"), "`lamp.txt`: exit code 1 (no fix task was added: no letter is left)");
}

#[test]
fn after_a_crash_while_it_is_added_it_is_added_and_no_agent_is_called_before() {
    let mut play =
        Play::new(vec![verified("S1")], policy()).agents([complete(), complete()]).check(CHECK, [red("exit code 1")]);
    play.until(|e| matches!(e, Effect::AddFixTask { .. }));
    play.restart();
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!((play.count("mend"), play.count("agent")), (2, 2), "{:#?}", play.log);
}

#[test]
fn side_by_side_it_waits_for_its_turn_to_land_and_is_not_checked_as_merged() {
    let jobs = std::num::NonZeroU32::MIN.saturating_add(1);
    let policy = Policy { place: Place::Worktrees, jobs, ..policy() };
    let mut play = Play::new(vec![verified("S1"), story("S2")], policy)
        .agents([complete(), complete(), complete()])
        .check(CHECK, [red("exit code 1")]);
    // The other one is landing.
    play.until_of("S2", |e| matches!(e, Effect::Land { .. }));
    play.until_of("S1", |e| matches!(e, Effect::Checkpoint { attempt } if attempt.number == 2));
    let second = play.open.front().cloned();
    assert!(matches!(second, Some(Effect::Checkpoint { .. })));
    play.answer();
    assert_eq!(play.count("merge S1#2"), 0, "{:#?}", play.log);
    assert_eq!(play.end(), Outcome::Complete);
    assert!(play.asked_for("merge S1#2") && play.count("mend") == 1, "{:#?}", play.log);
}
