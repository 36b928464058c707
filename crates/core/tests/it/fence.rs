//! What a dead attempt, or a phase that is over, still says changes nothing.

use std::time::Duration;

use ralphloop_core::effect::Effect;
use ralphloop_core::event::{CheckRef, CheckStage, Event, Fact};
use ralphloop_core::evidence::CheckResult;
use ralphloop_core::ids::{AttemptId, CallNumber};
use ralphloop_core::outcome::Outcome;
use ralphloop_core::run::Run;

use crate::support::*;

/// One of every fact that carries an attempt.
fn facts_of(attempt: &AttemptId, call: CallNumber) -> Vec<Fact> {
    let id = || attempt.clone();
    let (why, took) = (|| "why".to_owned(), Duration::from_secs(1));
    let finished = |stage, check| Fact::CheckFinished {
        attempt: id(),
        stage,
        check,
        result: CheckResult::Passed,
        cached: false,
        took,
    };
    let Call { report, tree } = complete();
    vec![
        Fact::AttemptStarted { attempt: id(), notes: Vec::new() },
        Fact::CheckStarted { attempt: id(), stage: CheckStage::Baseline, check: CheckRef::Gate(0) },
        finished(CheckStage::Baseline, CheckRef::Gate(0)),
        finished(CheckStage::Call(call), CheckRef::Gate(0)),
        finished(CheckStage::Call(call), CheckRef::Story(0)),
        Fact::CheckpointTaken { attempt: id(), notes: Vec::new() },
        Fact::CheckpointFailed { attempt: id(), why: why() },
        Fact::AgentStarted { attempt: id(), call, agent: None },
        Fact::AgentEnded { attempt: id(), call, agent: None, report: Box::new(report) },
        Fact::TreeInspected { attempt: id(), call, report: tree },
        Fact::ReviewEnded {
            attempt: id(),
            round: 1,
            agent: "reviewer".into(),
            report: Box::new(reviewed(ralphloop_core::review::Opinion::Approves)),
        },
        Fact::RepositoryBroken { attempt: id(), why: why() },
        Fact::Landed { attempt: id(), commit: "c".into(), notes: Vec::new() },
        Fact::LandingRefused { attempt: id(), call, by: why(), output: why() },
        Fact::FixTaskAdded {
            attempt: id(),
            task: "S1#1a".into(),
            story: Box::new(story("S1")),
            commit: Some("c".into()),
        },
        Fact::NoFixTask { attempt: id(), why: why() },
        Fact::LandingFailed { attempt: id(), why: why() },
        Fact::Reverted { attempt: id(), kept: None, notes: Vec::new() },
        Fact::RevertFailed { attempt: id(), why: why() },
        Fact::Settled { attempt: id() },
    ]
}

/// The run after the fact, and what it asked for. The time stands still, so that only the fact can matter.
fn told(run: &Run, fact: Fact) -> (Run, Vec<Effect>) {
    let mut after = run.clone();
    let effects = after.step(&Event { at: run.last_at(), fact });
    (after, effects)
}

/// A run that fails once, repairs once, and lands, seen after every one of its steps.
fn all_states() -> Vec<Run> {
    let mut play = Play::new(vec![checked(story("S1"), "out.txt"), story("S2")], gated())
        .agents([crash(), limit(None), complete(), complete(), complete()])
        .check(CheckRef::Gate(0), [red("exit code 1")]);
    let mut states = Vec::new();
    while !matches!(play.open.front(), Some(Effect::Finish { .. })) {
        states.push(play.run.clone());
        play.answer();
    }
    states.push(play.run.clone());
    assert_eq!(play.end(), Outcome::Complete);
    states.push(play.run);
    states
}

#[test]
fn a_fact_of_another_attempt_changes_nothing_in_any_state() {
    let states = all_states();
    assert!(states.len() > 30);
    for run in states {
        let mut others = vec![attempt("S1", 99), attempt("S2", 99), attempt("gone", 1)];
        if let Some(now) = run.attempts().next() {
            let before = AttemptId { number: now.id.number - 1, ..now.id.clone() };
            others.push(before);
        }
        for other in others {
            for fact in facts_of(&other, CallNumber(0)) {
                let (after, effects) = told(&run, fact.clone());
                assert_eq!(effects, [], "{fact:?} in {:?}", run.activity());
                assert_eq!(after, run, "{fact:?} in {:?}", run.activity());
            }
        }
    }
}

#[test]
fn a_fact_of_another_call_changes_nothing_in_any_state() {
    for run in all_states() {
        let Some(now) = run.attempts().next() else { continue };
        for fact in facts_of(&now.id, CallNumber(7)) {
            let of_a_call = matches!(
                fact,
                Fact::AgentEnded { .. }
                    | Fact::TreeInspected { .. }
                    | Fact::CheckFinished { stage: CheckStage::Call(_), .. }
            );
            if of_a_call {
                assert_eq!(told(&run, fact), (run.clone(), Vec::new()));
            }
        }
    }
}

#[test]
fn a_fact_that_was_answered_changes_nothing_when_it_comes_again() {
    let mut play = Play::new(vec![checked(story("S1"), "out.txt"), story("S2")], gated())
        .agents([crash(), complete(), complete(), complete()])
        .check(CheckRef::Gate(0), [red("exit code 1")]);
    while !matches!(play.open.front(), Some(Effect::Finish { .. })) {
        play.answer();
        let again = play.events.last().expect("it was told").fact.clone();
        if again.attempt().is_some() {
            let (after, effects) = told(&play.run, again.clone());
            assert_eq!((after, effects), (play.run.clone(), Vec::new()), "{again:?}");
        }
    }
}

#[test]
fn a_fact_that_changes_nothing_asks_for_nothing() {
    for run in all_states() {
        let Some(now) = run.attempts().next() else { continue };
        for fact in facts_of(&now.id, CallNumber(0)) {
            let answers_what_was_asked = told(&run, fact.clone()).0 != run;
            let (_, effects) = told(&run, fact.clone());
            if !answers_what_was_asked {
                assert_eq!(effects, [], "{fact:?} in {:?}", run.activity());
            }
        }
    }
}

#[test]
fn any_fact_in_any_state_has_an_answer_and_a_journal_replays_to_the_same_state() {
    let states = all_states();
    for run in &states {
        for fact in facts_of(&attempt("S1", 1), CallNumber(0)) {
            drop(told(run, fact));
        }
    }
    let mut play = Play::new(vec![story("S1")], gated()).agents([crash(), complete()]);
    play.end();
    assert_eq!(Run::replay(&play.events), Ok(play.run));
}
