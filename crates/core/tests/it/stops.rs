//! Stops and pauses, in every phase.

use ralphloop_core::effect::Effect;
use ralphloop_core::event::{CheckStage, Fact, StopCause, StopLevel};
use ralphloop_core::evidence::{AgentEnd, CheckResult};
use ralphloop_core::outcome::Outcome;
use ralphloop_core::run::{Run, StoryState};

use crate::support::*;

const INT: Outcome = Outcome::Stopped { cause: StopCause::Int };

/// Whether an effect is the one that stands for a phase.
type Phase = fn(&Effect) -> bool;

/// Effects that stand for the phases of an attempt, in order.
const PHASES: [(&str, Phase); 9] = [
    ("beginning", |e| matches!(e, Effect::Begin { .. })),
    ("base checks", |e| matches!(e, Effect::RunCheck { stage: CheckStage::Baseline, .. })),
    ("checkpoint", |e| matches!(e, Effect::Checkpoint { .. })),
    ("agent", |e| matches!(e, Effect::StartAgent { .. })),
    ("inspection", |e| matches!(e, Effect::Inspect { .. })),
    ("checks", |e| matches!(e, Effect::RunCheck { stage: CheckStage::Call(_), .. })),
    ("landing", |e| matches!(e, Effect::Land { .. })),
    ("looking at the spec", |e| matches!(e, Effect::CheckPlan)),
    ("end", |e| matches!(e, Effect::Finish { .. })),
];

fn at(phase: Phase) -> Play {
    let mut play = Play::new(vec![story("S1")], gated()).agents([complete()]);
    play.until(phase);
    play
}

#[test]
fn r48_a_stop_at_once_ends_what_runs_and_starts_nothing_new() {
    for (name, phase) in PHASES {
        let mut play = at(phase);
        let asked = play.log.len();
        play.tell(stop(StopLevel::Now));
        let runs = matches!(name, "base checks" | "agent" | "checks" | "landing");
        assert_eq!(play.count("stop S1#1"), usize::from(runs), "{name}: {:#?}", play.log);
        let outcome = play.end();
        let after = &play.log[asked..];
        let begins = |words: &str| after.iter().any(|l| l.starts_with(words));
        assert!(!begins("agent") && !begins("check ") && !begins("land") && !begins("begin"), "{name}: {after:#?}");
        match name {
            "landing" | "looking at the spec" => assert_eq!(outcome, INT, "{name}: what was proven has landed"),
            "end" => assert_eq!(outcome, Outcome::Complete),
            _ => {
                assert_eq!((outcome, play.state("S1"), play.record("S1").charged), (INT, &StoryState::Pending, 0));
            }
        }
        let reverts = usize::from(matches!(name, "checkpoint" | "agent" | "inspection" | "checks"));
        assert_eq!(play.count("revert"), reverts, "{name}");
    }
}

#[test]
fn an_agent_that_was_stopped_is_reverted_and_not_charged() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([ended(AgentEnd::Stopped)]);
    play.until_agent();
    play.tell(stop(StopLevel::Now));
    assert_eq!(play.end(), INT);
    assert_eq!((play.count("revert"), play.record("S1").charged), (1, 0));
}

#[test]
fn a_check_that_was_stopped_says_nothing() {
    let mut play = at(PHASES[5].1);
    let Effect::RunCheck { attempt, stage, check, .. } = play.open[0].clone() else { unreachable!() };
    play.tell(stop(StopLevel::Now));
    let took = std::time::Duration::ZERO;
    play.answer_with(Fact::CheckFinished { attempt, stage, check, result: CheckResult::Stopped, cached: false, took });
    assert_eq!(play.end(), INT);
    assert_eq!((play.count("revert"), play.record("S1").charged), (1, 0));
}

#[test]
fn a_stop_after_the_attempt_lets_it_come_to_its_end_and_begins_no_other() {
    let phases = PHASES.iter().take(8);
    for (name, phase) in phases {
        let mut play = Play::new(vec![story("S1"), story("S2")], gated()).agents([complete()]);
        play.until(phase);
        play.tell(stop(StopLevel::AfterAttempt));
        assert_eq!(play.end(), INT, "{name}");
        assert!(play.state("S1").passed(), "{name}");
        assert_eq!(play.count("begin S2") + play.count("stop"), 0, "{name}");
    }
}

#[test]
fn a_stop_after_the_attempt_allows_no_further_try_of_the_story() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([crash()]);
    play.until_agent();
    play.tell(stop(StopLevel::AfterAttempt));
    assert_eq!(play.end(), INT);
    assert_eq!((play.count("begin"), play.record("S1").charged), (1, 1));
}

#[test]
fn a_stop_is_only_ever_made_sooner() {
    let mut play = at(PHASES[3].1);
    play.tell(stop(StopLevel::AfterAttempt));
    play.tell(stop(StopLevel::Now));
    play.tell(stop(StopLevel::AfterAttempt));
    play.tell(stop(StopLevel::Now));
    assert_eq!(play.count("stop S1#1"), 1, "asked once is enough: {:#?}", play.log);
    assert_eq!(play.end(), INT);
    assert_eq!(play.count("land"), 0);
}

#[test]
fn a_stop_ends_a_wait_at_once() {
    for level in [StopLevel::AfterAttempt, StopLevel::Now] {
        let mut play = Play::new(vec![story("S1")], gated()).agents([limit(None)]);
        play.until(|e| matches!(e, Effect::Sleep { .. }));
        play.open.clear();
        play.tell(stop(level));
        assert_eq!(play.end(), INT);
    }
}

#[test]
fn a_stop_beats_a_spec_that_cannot_be_read() {
    let mut play = at(PHASES[7].1);
    play.tell(stop(StopLevel::AfterAttempt));
    let spec = ralphloop_core::event::PlanChange::Unreadable { message: "line 1".to_owned() };
    play.answer_with(Fact::PlanChecked { spec });
    assert_eq!(play.end(), INT);
}

#[test]
fn a_pause_lets_the_attempt_end_and_a_resume_goes_on() {
    let mut play = Play::new(vec![story("S1"), story("S2")], gated()).agents([complete(), complete()]);
    play.until_agent();
    play.tell(Fact::PauseRequested);
    assert!(play.run.stopping());
    let outcome = play.end();
    assert!(matches!(outcome, Outcome::Paused { .. }), "{outcome:?}");
    assert!(play.state("S1").passed());
    play.restart();
    assert_eq!(play.end(), Outcome::Complete);
}

#[test]
fn a_pause_ends_a_wait() {
    let mut play = Play::new(vec![story("S1")], gated()).agents([limit(None)]);
    play.until(|e| matches!(e, Effect::Sleep { .. }));
    play.open.clear();
    play.tell(Fact::PauseRequested);
    assert!(matches!(play.end(), Outcome::Paused { .. }));
}

#[test]
fn a_stopped_run_is_the_same_when_it_is_replayed() {
    let mut play = at(PHASES[3].1);
    play.tell(stop(StopLevel::Now));
    play.end();
    assert_eq!(Run::replay(&play.events), Ok(play.run));
}
