//! Several stories at once, each in a worktree: who begins when, what lands in which order, and how it all ends.

use std::num::NonZeroU32;
use std::time::Duration;

use ralphloop_core::effect::Effect;
use ralphloop_core::event::{CheckRef, CheckStage, Fact, PlanChange, StopCause, StopLevel};
use ralphloop_core::evidence::{CheckResult, Merge};
use ralphloop_core::ids::{CallNumber, LaneId};
use ralphloop_core::outcome::{Bound, Outcome};
use ralphloop_core::policy::{Budget, OnExhausted, Place, Policy};
use ralphloop_core::run::{Activity, StoryState};

use crate::support::*;

fn lanes(jobs: u32) -> Policy {
    Policy { place: Place::Worktrees, jobs: NonZeroU32::new(jobs).expect("at least one"), ..gated() }
}

fn two() -> Play {
    Play::new(vec![story("S1"), story("S2")], lanes(2))
}

fn merged(tree: &str) -> Merge {
    Merge::Merged { report: Box::new(complete().tree(tree).tree) }
}

fn conflicts() -> Merge {
    Merge::Conflicts { files: vec!["src/lib.rs".to_owned()], notes: Vec::new() }
}

/// A call that leaves conflicts marked.
fn marks_left() -> Call {
    let mut call = complete();
    call.tree.unresolved = vec!["src/lib.rs".to_owned()];
    call
}

fn agent(e: &Effect) -> bool {
    matches!(e, Effect::StartAgent { .. })
}

fn merge(e: &Effect) -> bool {
    matches!(e, Effect::Merge { .. })
}

fn land(e: &Effect) -> bool {
    matches!(e, Effect::Land { .. })
}

fn revert(e: &Effect) -> bool {
    matches!(e, Effect::Revert { .. })
}

/// Where the words stand in what was asked for.
fn place_of(play: &Play, words: &str) -> usize {
    play.log.iter().position(|l| l.starts_with(words)).unwrap_or_else(|| panic!("`{words}`: {:#?}", play.log))
}

#[test]
fn as_many_stories_begin_as_there_are_jobs_each_in_a_lane_of_its_own() {
    let stories = ["S1", "S2", "S3", "S4"].map(story).to_vec();
    let mut play = Play::new(stories, lanes(2)).agents([complete(), complete(), complete()]);
    assert_eq!(
        play.open,
        [0, 1].map(|n| Effect::Begin { attempt: attempt(&format!("S{}", n + 1), 1), lane: LaneId(n) })
    );
    let begins = |play: &mut Play, story: &str| match play.until_of(story, |e| matches!(e, Effect::Begin { .. })) {
        Effect::Begin { lane, .. } => lane,
        _ => unreachable!(),
    };
    // One that lands does not count.
    play.until_of("S2", land);
    assert_eq!(begins(&mut play, "S3"), LaneId(2));
    play.until_of("S2", land);
    play.answer();
    // The lane that becomes free is used again.
    assert_eq!(play.count("begin S4"), 0, "{:#?}", play.log);
    play.until_of("S1", land);
    assert_eq!(begins(&mut play, "S4"), LaneId(1));
}

#[test]
fn an_agent_that_is_to_resolve_conflicts_waits_until_one_of_the_others_is_through() {
    let mut play = Play::new(["S1", "S2", "S3"].map(story).to_vec(), lanes(2)).merges("S2", [conflicts()]);
    play = play.agents([complete(), complete(), complete(), complete()]);
    play.until_of("S1", agent);
    play.until_of("S2", merge);
    play.until_of("S3", agent);
    play.until_of("S2", |e| matches!(e, Effect::Merge { .. }));
    play.answer();
    assert_eq!(play.count("agent S2#1 call 1"), 0, "S1 and S3 are at work: {:#?}", play.log);
    play.until_of("S1", merge);
    assert_eq!(play.count("agent S2#1 call 1"), 1, "S1 has its turn to land: {:#?}", play.log);
    assert_eq!(play.end(), Outcome::Complete);
}

#[test]
fn what_is_proven_first_lands_first_and_one_at_a_time() {
    let mut play = Play::new(vec![story("S1"), story("S2"), story("S3")], lanes(3));
    play = play.agents([complete(), complete(), complete()]);
    play.until_of("S3", land);
    for story in ["S2", "S1"] {
        play.until_of(story, agent);
        let proven = play.run.attempts().filter(|a| matches!(a.phase, ralphloop_core::run::Phase::Queued(_))).count();
        while play.open.iter().any(|e| e.attempt().is_some_and(|a| a.story.as_str() == story)) {
            play.until_of(story, |_| true);
            play.answer();
        }
        assert_eq!(play.count("merge"), 1, "{proven} wait, and S3 lands: {:#?}", play.log);
    }
    assert_eq!(play.end(), Outcome::Complete);
    assert!(place_of(&play, "land S3") < place_of(&play, "merge S2"));
    assert!(place_of(&play, "land S2") < place_of(&play, "merge S1"));
}

#[test]
fn what_was_merged_is_checked_again_before_it_lands() {
    let mut play = two().agents([complete(), complete()]).merges("S2", [merged("both")]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.count("check Gate(0)"), 3);
    assert!(play.run.attempts().len() == 0 && play.state("S2").passed());
}

#[test]
fn what_is_merged_without_any_check_keeps_its_turn() {
    let policy = Policy { gates: Vec::new(), ..lanes(2) };
    let mut play =
        Play::new(vec![story("S1"), story("S2")], policy).agents([complete(), complete()]).merges("S1", [merged("m")]);
    play.until_of("S1", merge);
    play.until_of("S2", agent);
    play.answer();
    play.until_of("S1", land);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.count("merge S1"), 1, "{:#?}", play.log);
}

#[test]
fn what_is_red_together_is_repaired_on_the_merged_tree_and_gives_its_turn_to_the_next() {
    let mut play = two().agents([complete(), complete(), complete()]).merges("S1", [merged("both")]);
    play.until_of("S2", agent);
    let Effect::RunCheck { attempt, stage, check, .. } =
        play.until_of("S1", |e| matches!(e, Effect::RunCheck { stage: CheckStage::Merged(_), .. }))
    else {
        unreachable!()
    };
    while !matches!(play.run.attempts().nth(1).map(|a| &a.phase), Some(ralphloop_core::run::Phase::Queued(_))) {
        play.until_of("S2", |_| true);
        play.answer();
    }
    assert_eq!(play.count("merge S2"), 0);
    play.until_of("S1", |_| true);
    let took = Duration::from_secs(1);
    play.answer_with(Fact::CheckFinished { attempt, stage, check, result: red("exit code 1"), cached: false, took });
    assert_eq!(play.count("merge S2"), 1, "{:#?}", play.log);
    assert!(play.briefs[2].repair[0].reason.contains("exit code 1"));
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.count("merge S1"), 2, "what was repaired is brought onto the branch again");
}

#[test]
fn what_stays_red_after_a_merge_is_charged() {
    let policy = Policy { max_retries: 0, max_repairs: 0, on_exhausted: OnExhausted::Skip, ..lanes(1) };
    let mut play = Play::new(vec![story("S1")], policy)
        .agents([complete()])
        .merges("S1", [merged("m")])
        .check(CheckRef::Gate(0), [CheckResult::Passed, red("exit code 1")]);
    assert_eq!(play.end(), Outcome::Failed);
    assert_eq!((play.state("S1"), play.record("S1").charged), (&StoryState::Failed, 1));
    assert_eq!(play.count("land"), 0);
}

#[test]
fn conflicts_are_resolved_by_a_call_that_is_told_the_files_and_checked_as_any_other() {
    let policy = Policy { max_repairs: 0, ..lanes(1) };
    let mut play = Play::new(vec![story("S1")], policy).agents([complete(), complete()]).merges("S1", [conflicts()]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.briefs[1].conflicts, ["src/lib.rs"]);
    assert_eq!((play.count("merge"), play.count("check Gate(0)"), play.count("land")), (2, 2, 1));
}

#[test]
fn a_call_that_resolves_is_no_repair() {
    let policy = Policy { max_repairs: 1, ..lanes(1) };
    let mut play = Play::new(vec![story("S1")], policy)
        .agents([complete(), complete(), complete()])
        .merges("S1", [conflicts()])
        .check(CheckRef::Gate(0), [CheckResult::Passed, red("exit code 1")]);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!((play.record("S1").charged, play.briefs[2].repair.len()), (0, 1));
}

#[test]
fn what_cannot_be_merged_is_tried_again_once_uncharged_and_then_left_with_its_ref_named() {
    let strays = || {
        let mut call = complete();
        call.tree.strayed = vec!["src/other.rs".to_owned()];
        call
    };
    for last in [marks_left(), strays(), crash(), claims_failure("too hard"), claims_blocked("ask Ann")] {
        let policy = Policy { on_exhausted: OnExhausted::Skip, ..lanes(1) };
        let mut play = Play::new(vec![story("S1")], policy)
            .agents([complete(), marks_left(), complete(), last])
            .merges("S1", [conflicts(), conflicts()]);
        assert_eq!(play.end(), Outcome::Failed);
        assert!(play.briefs[2].previous[0].reason.contains("still marked in src/lib.rs"));
        assert_eq!((play.state("S1"), play.record("S1").charged), (&StoryState::Failed, 0));
        let reason = play.reason("S1");
        assert!(reason.starts_with("not merged") && reason.contains("refs/ralphloop/r/S1/2"), "{reason}");
    }
}

#[test]
fn a_result_of_an_earlier_merge_is_not_that_of_the_one_under_way() {
    let mut play = Play::new(vec![story("S1")], lanes(1)).agents([complete(), complete()]).merges("S1", [conflicts()]);
    play.until(|e| matches!(e, Effect::Merge { call: CallNumber(1), .. }));
    let before = play.run.clone();
    let late = Fact::Merged { attempt: attempt("S1", 1), call: CallNumber(0), number: 1, merge: Merge::Current };
    play.tell_now(late);
    assert_eq!(play.run.attempts().collect::<Vec<_>>(), before.attempts().collect::<Vec<_>>());
    assert_eq!(play.count("land"), 0);
}

#[test]
fn a_limit_met_by_two_is_one_trouble_and_the_third_goes_on_to_land() {
    let mut play = Play::new(vec![story("S1"), story("S2"), story("S3")], lanes(3)).agents([
        limit(None),
        limit(None),
        complete(),
        complete(),
        complete(),
    ]);
    for story in ["S3", "S1", "S2"] {
        play.until_of(story, agent);
    }
    for story in ["S1", "S2"] {
        play.until_of(story, revert);
        play.answer();
    }
    let sleeps: Vec<String> = play.log.iter().filter(|l| l.starts_with("sleep")).cloned().collect();
    assert!(sleeps.iter().all(|l| l == "sleep 300 s"), "not doubled: {sleeps:?}");
    assert!(!sleeps.is_empty());
    assert!(matches!(play.run.activity(), Activity::Waiting(_)));
    play.until_of("S3", land);
    play.answer();
    assert_eq!(play.end(), Outcome::Complete);
    assert!(place_of(&play, "land S3") < place_of(&play, "begin S1#2"));
}

#[test]
fn a_bound_on_iterations_counts_calls_that_attempts_under_way_will_make() {
    let policy = Policy { budget: Budget { iterations: Some(2), ..Budget::default() }, ..lanes(4) };
    let stories = vec![story("S1"), story("S2"), story("S3")];
    let mut play = Play::new(stories, policy).agents([complete(), complete()]);
    assert_eq!(play.open.len(), 2, "{:?}", play.open);
    let outcome = play.end();
    assert!(matches!(outcome, Outcome::BoundReached { .. }), "{outcome:?}");
    assert_eq!((play.run.calls(), play.count("land")), (2, 2));
}

#[test]
fn when_a_story_is_exhausted_those_under_way_still_come_to_their_end() {
    for (on_exhausted, begins_third) in
        [(OnExhausted::Stop, false), (OnExhausted::Pause, false), (OnExhausted::Skip, true)]
    {
        let policy = Policy { max_retries: 0, on_exhausted, ..lanes(2) };
        let mut play =
            Play::new(vec![story("S1"), story("S2"), story("S3")], policy).agents([crash(), complete(), complete()]);
        play.until_of("S2", agent);
        play.until_of("S1", revert);
        play.answer();
        let outcome = play.end();
        assert!(play.state("S2").passed(), "{on_exhausted:?}");
        assert_eq!(play.count("begin S3") == 1, begins_third, "{on_exhausted:?}");
        assert_eq!(matches!(outcome, Outcome::Paused { .. }), on_exhausted == OnExhausted::Pause, "{outcome:?}");
    }
}

#[test]
fn a_stop_after_the_attempt_lets_all_under_way_land_and_a_stop_now_puts_all_back() {
    let mut play = two().agents([complete(), complete()]);
    play.until_of("S1", land);
    play.tell(stop(StopLevel::AfterAttempt));
    assert_eq!(play.end(), Outcome::Stopped { cause: StopCause::Int });
    assert_eq!(play.count("land"), 2);

    let stories = (1..=4).map(|n| story(&format!("S{n}"))).collect();
    let mut play = Play::new(stories, lanes(4)).agents([complete(), complete(), complete(), complete()]);
    play.until_of("S1", merge);
    play.until_of("S3", agent);
    play.until_of("S4", |e| matches!(e, Effect::Begin { .. }));
    while play.open.iter().any(|e| e.attempt().is_some_and(|a| a.story.as_str() == "S2")) {
        play.until_of("S2", |_| true);
        play.answer();
    }
    play.tell(stop(StopLevel::Now));
    assert!(play.asked_for("revert S2#1"), "it only waited for its turn: {:#?}", play.log);
    assert!(play.asked_for("stop S3#1"));
    assert_eq!(play.end(), Outcome::Stopped { cause: StopCause::Int });
    assert_eq!((play.count("land"), play.count("revert")), (0, 3));
    for story in ["S1", "S2", "S3", "S4"] {
        assert_eq!((play.state(story), play.record(story).charged), (&StoryState::Pending, 0), "{story}");
    }
}

fn trespassed(story: &str) -> Fact {
    Fact::Trespassed { attempt: attempt(story, 1), why: "main is at c9".to_owned() }
}

#[test]
fn what_an_agent_moved_is_charged_to_it_alone_and_nothing_lands_on_top() {
    let mut play = two().agents([complete(), complete()]);
    for story in ["S1", "S2"] {
        play.until_of(story, |e| matches!(e, Effect::Inspect { .. }));
    }
    for story in ["S1", "S2"] {
        play.until_of(story, |e| matches!(e, Effect::Inspect { .. }));
        play.answer_with(trespassed(story));
    }
    let outcome = play.end();
    assert!(matches!(outcome, Outcome::Paused { .. }) && reason_of(&outcome).contains("main is at c9"), "{outcome:?}");
    assert_eq!((play.record("S1").charged, play.record("S2").charged), (1, 0));
    assert_eq!((play.count("land"), play.count("revert")), (0, 2));
}

#[test]
fn what_was_moved_when_a_story_is_to_land_is_charged_to_nobody() {
    for phase in [merge as fn(&Effect) -> bool, land] {
        let mut play = two().agents([complete(), complete()]);
        play.until_of("S1", phase);
        play.answer_with(trespassed("S1"));
        let outcome = play.end();
        assert!(matches!(outcome, Outcome::Paused { .. }), "{outcome:?}");
        assert_eq!((play.record("S1").charged, play.record("S2").charged, play.count("land S2")), (0, 0, 0));
    }
}

#[test]
fn what_a_person_has_to_look_at_is_named_whatever_else_ends_the_run() {
    let policy = Policy { max_retries: 0, ..lanes(2) };
    let mut play = Play::new(vec![story("S1"), story("S2")], policy).agents([crash(), complete()]);
    play.until_of("S1", revert);
    play.answer();
    play.until_of("S2", merge);
    play.answer_with(trespassed("S2"));
    let outcome = play.end();
    assert!(reason_of(&outcome).contains("main is at c9"), "{outcome:?}");
}

#[test]
fn a_landing_that_a_local_change_blocks_blocks_its_story_and_no_other() {
    let mut play = two().agents([complete(), complete()]);
    play.until_of("S1", land);
    play.answer_with(Fact::LandingBlocked { attempt: attempt("S1", 1), why: "src/lib.rs".to_owned() });
    assert_eq!(play.end(), Outcome::Failed);
    assert_eq!(*play.state("S1"), StoryState::Blocked);
    assert!(play.reason("S1").contains("src/lib.rs") && play.state("S2").passed());
}

#[test]
fn a_death_with_attempts_in_every_phase_puts_each_right_in_its_own_lane_before_fewer_go_on() {
    let stories = (1..=5).map(|n| story(&format!("S{n}"))).collect();
    let mut play = Play::new(stories, lanes(5)).agents((0..12).map(|_| complete()));
    play.until_of("S1", land);
    play.until_of("S3", agent);
    play.until_of("S4", |e| matches!(e, Effect::Checkpoint { .. }));
    play.until_of("S5", |e| matches!(e, Effect::Begin { .. }));
    while play.open.iter().any(|e| e.attempt().is_some_and(|a| a.story.as_str() == "S2")) {
        play.until_of("S2", |_| true);
        play.answer();
    }
    let asked = play.log.len();
    // It is taken up in the checkout, but what lies in worktrees is put right there.
    play.restart_with(&[("S1", "c1")], PlanChange::Same, Policy { place: Place::Checkout, ..lanes(2) });
    assert_eq!(play.log[asked..], ["revert S2#1", "revert S3#1", "revert S4#1", "settle S1#1"]);
    assert_eq!(play.run.lane_of(&attempt("S3", 1)), Some(LaneId(2)));
    assert_eq!(play.run.policy().place, Place::Worktrees);
    assert_eq!(play.end(), Outcome::Complete);
    assert_eq!(play.count("begin S5#2"), 1);
}

#[test]
fn stories_that_name_the_same_file_are_kept_apart_when_another_is_ready() {
    let names = |id: &str| {
        let mut story = story(id);
        story.description = "change `src/lib.rs`".to_owned();
        story
    };
    let play = Play::new(vec![names("S1"), names("S2"), story("S3")], lanes(2));
    assert_eq!(play.count("begin S2") + play.count("begin S1"), 1);
    assert_eq!(play.count("begin S3"), 1);
    let play = Play::new(vec![names("S1"), names("S2")], lanes(2));
    assert_eq!(play.count("begin"), 2, "idle lanes help nobody");
}

#[test]
fn a_story_is_kept_apart_from_one_whose_agent_has_changed_what_it_names() {
    let mut third = story("S3");
    third.description = "change `src/lib.rs`".to_owned();
    let stories = vec![checked(story("S1"), "out.txt"), story("S2"), third, story("S4")];
    let mut play = Play::new(stories, lanes(2)).agents([complete().shows("src/lib.rs"), complete(), complete()]);
    play.until_of("S1", |e| matches!(e, Effect::RunCheck { stage: CheckStage::Call(_), .. }));
    play.until_of("S2", land);
    play.until_of("S4", |e| matches!(e, Effect::Begin { .. }));
    assert_eq!(play.count("begin S3"), 0, "{:#?}", play.log);
}

#[test]
fn a_story_that_is_taken_out_while_it_is_worked_on_keeps_its_checks_and_is_not_begun_again() {
    let stories = || vec![checked(story("S1"), "out.txt"), story("S2"), story("S3")];
    for (call, lands) in [(complete(), true), (crash(), false)] {
        let mut play = Play::new(stories(), lanes(2)).agents([complete(), call, complete()]);
        play.until_of("S1", agent);
        let edited = plan(vec![story("S2"), story("S3")]);
        play.until_of("S2", |e| *e == Effect::CheckPlan);
        play.answer_with(Fact::PlanChecked { spec: PlanChange::Changed { plan: Box::new(edited) } });
        play.until_of("S2", land);
        play.answer();
        play.until_of("S1", |e| if lands { land(e) } else { revert(e) });
        assert_eq!(play.count("check Story(0)") == 1, lands);
        play.answer();
        if !lands {
            play.until_of("S3", |e| *e == Effect::CheckPlan);
            play.answer_with(Fact::PlanChecked {
                spec: PlanChange::Changed { plan: Box::new(plan(vec![story("S2"), story("S3")])) },
            });
        }
        play.end();
        assert_eq!(play.count("begin S1"), 1, "{:#?}", play.log);
    }
}

/// Begins these stories; then S2 meets a limit, which is waited for, and the work of S1 is red.
fn hold_a_repair(play: &mut Play, stories: &[&str]) {
    for story in stories {
        play.until_of(story, agent);
    }
    play.until_of("S1", |e| matches!(e, Effect::RunCheck { .. }));
    play.until_of("S2", revert);
    play.answer();
    assert!(matches!(play.run.activity(), Activity::Waiting(_)));
    play.until_of("S1", |e| matches!(e, Effect::RunCheck { .. }));
    play.answer();
}

#[test]
fn repairs_are_held_while_the_provider_is_waited_for_and_made_when_that_is_over() {
    let mut play = two().agents([complete(), limit(None), complete(), complete()]);
    play = play.check(CheckRef::Gate(0), [red("exit code 1")]);
    hold_a_repair(&mut play, &["S1", "S2"]);
    assert_eq!(play.count("agent S1#1 call 1"), 0, "the same provider would refuse it: {:#?}", play.log);
    assert_eq!(play.end(), Outcome::Complete);
    assert!(place_of(&play, "agent S1#1 call 1") < place_of(&play, "begin S2#2"), "{:#?}", play.log);
}

#[test]
fn what_is_held_for_a_provider_that_then_says_it_is_away_for_too_long_is_put_back_and_the_run_ends() {
    let away = START.after(Duration::from_hours(24));
    let stories = vec![story("S1"), story("S2"), story("S3")];
    let calls = [complete(), limit(None), limit(Some(away))];
    let mut play = Play::new(stories, lanes(3)).agents(calls).check(CheckRef::Gate(0), [red("exit code 1")]);
    hold_a_repair(&mut play, &["S1", "S2", "S3"]);
    play.until_of("S3", revert);
    play.answer();
    assert_eq!(play.count("revert S1#1"), 1, "nobody would ever wake up for it: {:#?}", play.log);
    play.open.retain(|e| !matches!(e, Effect::Sleep { .. }));
    assert!(matches!(play.end(), Outcome::BoundReached { bound: Bound::LimitWait, .. }), "{:#?}", play.log);
    assert_eq!((play.state("S1"), play.record("S1").charged), (&StoryState::Pending, 0));
}

#[test]
fn what_is_held_when_the_run_ends_is_put_back_uncharged() {
    let mut play = two().agents([complete(), limit(None)]).check(CheckRef::Gate(0), [red("exit code 1")]);
    hold_a_repair(&mut play, &["S1", "S2"]);
    play.tell(Fact::PauseRequested);
    assert_eq!(play.count("revert S1#1"), 1, "{:#?}", play.log);
    play.open.retain(|e| !matches!(e, Effect::Sleep { .. }));
    assert!(matches!(play.end(), Outcome::Paused { .. }));
    assert_eq!((play.state("S1"), play.record("S1").charged), (&StoryState::Pending, 0));
}

#[test]
fn an_overload_that_calls_of_several_lanes_meet_one_after_the_other_is_counted_once() {
    let stories = vec![story("S1"), story("S2"), story("S3")];
    let policy = Policy { provider_retries: 3, ..lanes(3) };
    let calls = [overloaded(), overloaded(), overloaded(), complete(), complete(), complete()];
    let mut play = Play::new(stories, policy).agents(calls);
    for story in ["S1", "S2", "S3"] {
        play.until_of(story, agent);
    }
    // Each was called before the first wait began, and ends after another one was over.
    for story in ["S1", "S2", "S3"] {
        play.until_of(story, revert);
        play.answer();
        let at = play.open.iter().position(|e| matches!(e, Effect::Sleep { .. }));
        let sleep = play.open.remove(at.unwrap_or_else(|| panic!("no wait: {:#?}", play.log))).expect("it is there");
        // Counted twice, it would be six seconds; a wait may be met when a part of it is over.
        let counted_once = |l: &&String| l.as_str() == "sleep 2 s" || l.as_str() == "sleep 1 s";
        let sleeps: Vec<&String> = play.log.iter().filter(|l| l.starts_with("sleep")).collect();
        assert!(sleeps.iter().all(counted_once), "{:#?}", play.log);
        play.open.push_front(sleep);
        play.answer();
    }
    assert_eq!(play.end(), Outcome::Complete);
}
