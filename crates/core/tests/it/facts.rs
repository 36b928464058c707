//! The shape of a journal's lines. What stands here is read by later versions.

use std::time::Duration;

use ralphloop_core::event::{CheckRef, CheckStage, CutOff, Event, Fact, PlanChange, StopCause, StopLevel};
use ralphloop_core::evidence::{AgentEnd, CheckResult, Claim, Usage};
use ralphloop_core::ids::CallNumber;
use ralphloop_core::outcome::{Bound, Outcome};
use ralphloop_core::policy::{Budget, Policy};
use ralphloop_core::review::Opinion;
use ralphloop_core::units::{Timestamp, Usd};

use crate::support::*;

/// Every kind of fact, and every variant inside it that has fields of its own.
fn samples() -> Vec<Fact> {
    let id = || attempt("S 1/ü", 2);
    let (text, took) = (|| "text \"quoted\"\nline".to_owned(), Duration::new(3, 500));
    let call = CallNumber(1);
    let (mut plan, mut policy) = (plan(vec![checked(after(story("S1"), &["S0"]), "out.txt")]), gated());
    plan.stories[0].priority = Some(ralphloop_core::plan::Priority(1.5));
    plan.stories[0].tasks.push(crate::sim::scenario::task("S1#1"));
    policy.budget = Budget {
        iterations: Some(3),
        stories: Some(2),
        duration: Some(took),
        cost: Some(Usd(5)),
        tokens: Some(7),
        margin: 10,
    };
    policy.provider_backoff = vec![took];
    policy.learnings = vec![ralphloop_core::learning::Learning { text: text(), times: 2, story: Some("S1".into()) }];
    let changed = || PlanChange::Changed { plan: Box::new(plan.clone()) };
    let mut facts = vec![
        Fact::RunStarted {
            run: "r".into(),
            plan: Box::new(plan.clone()),
            policy: Box::new(policy.clone()),
            branch: text(),
            base: "b".into(),
            agent: text(),
            unsigned: Vec::new(),
        },
        Fact::Restarted {
            policy: Box::new(Policy::default()),
            landed: vec![("S0".into(), "c0".into())],
            spec: PlanChange::Same,
            agent: text(),
            cut_off: vec![CutOff { attempt: id(), call, usage: Usage { cost: Some(Usd(5)), ..Usage::default() } }],
            retry: vec!["S0".into()],
        },
        Fact::PlanChecked { spec: changed() },
        Fact::PlanChecked { spec: PlanChange::Unreadable { message: text() } },
        Fact::AttemptStarted { attempt: id(), notes: Vec::new() },
        Fact::CheckStarted { attempt: id(), stage: CheckStage::Baseline, check: CheckRef::Gate(0) },
        Fact::CheckpointTaken { attempt: id(), notes: vec![text()] },
        Fact::CheckpointFailed { attempt: id(), why: text() },
        Fact::AgentStarted { attempt: id(), call, agent: Some("claude:opus".into()) },
        Fact::TreeInspected { attempt: id(), call, report: complete().tree },
        Fact::ReviewStarted { attempt: id(), round: 1, agent: "claude:opus".into() },
        Fact::ReviewEnded {
            attempt: id(),
            round: 1,
            agent: "claude:opus".into(),
            report: Box::new(reviewed(Opinion::Objects { findings: vec![text()] })),
        },
        Fact::RepositoryBroken { attempt: id(), why: text() },
        Fact::Landed { attempt: id(), commit: "c1".into(), notes: vec![text()] },
        Fact::LandingRefused { attempt: id(), call, by: text(), output: text() },
        Fact::FixTaskAdded {
            attempt: id(),
            task: "S1#1a".into(),
            story: Box::new(story("S1")),
            commit: Some("c".into()),
        },
        Fact::NoFixTask { attempt: id(), why: text() },
        Fact::LandingFailed { attempt: id(), why: text() },
        Fact::Reverted { attempt: id(), kept: Some(text()), notes: Vec::new() },
        Fact::RevertFailed { attempt: id(), why: text() },
        Fact::Settled { attempt: id() },
        Fact::Woke,
        Fact::StopRequested { cause: StopCause::Hup, level: StopLevel::AfterAttempt },
        Fact::PauseRequested,
        Fact::SkipRequested { story: "S 1/ü".into() },
        Fact::RetryRequested { story: "S 1/ü".into() },
        Fact::GuidanceAdded { text: text() },
        Fact::LearningAdded { text: text() },
    ];
    let results = [
        CheckResult::Passed,
        CheckResult::Failed { why: text(), output: text() },
        CheckResult::CouldNotRun { why: text() },
        CheckResult::NoRoom { why: text() },
        CheckResult::Stopped,
    ];
    facts.extend(results.map(|result| Fact::CheckFinished {
        attempt: id(),
        stage: CheckStage::Call(call),
        check: CheckRef::Story(1),
        result,
        cached: true,
        took,
    }));
    let used = Usage { input_tokens: Some(1), output_tokens: None, cost: Some(Usd(9)), ..Usage::default() };
    let report = |call: Call| Box::new(call.uses(used).learns("it is late").report);
    facts.extend(ends(&text()).into_iter().map(|end| Fact::AgentEnded {
        attempt: id(),
        call,
        agent: Some("claude:opus".into()),
        report: report(ended(end)),
    }));
    let claims = [
        Claim::Complete,
        Claim::Failed { reason: text() },
        Claim::Blocked { reason: text() },
        Claim::None { near_miss: Some(text()) },
    ];
    facts.extend(claims.map(|claim| Fact::AgentEnded {
        attempt: id(),
        call,
        agent: None,
        report: report(super::support::call(AgentEnd::Finished, claim)),
    }));
    let outcomes = [
        Outcome::Complete,
        Outcome::Failed,
        Outcome::NothingToDo { reason: text() },
        Outcome::Paused { reason: text() },
        Outcome::Stopped { cause: StopCause::Request },
        Outcome::BoundReached { bound: Bound::LimitWait, reason: text(), resume_at: Some(Timestamp(5)) },
        Outcome::Environment { reason: text() },
    ];
    facts.extend(outcomes.map(|outcome| Fact::RunEnded { outcome }));
    facts
}

fn ends(text: &str) -> Vec<AgentEnd> {
    let (message, after) = (|| text.to_owned(), Duration::from_mins(10));
    vec![
        AgentEnd::NoFinalMessage,
        AgentEnd::NoOutput,
        AgentEnd::Error { message: message() },
        AgentEnd::Crashed { status: message(), message: message() },
        AgentEnd::NeverSpoke { after },
        AgentEnd::Silent { after, last_output: message() },
        AgentEnd::TimedOut { after },
        AgentEnd::Looped { call: message(), times: 4 },
        AgentEnd::PermissionDenied { tools: vec![message()] },
        AgentEnd::PromptTooLong { message: message() },
        AgentEnd::Limit { resets_at: Some(Timestamp(-1)), message: message() },
        AgentEnd::Overloaded { message: message() },
        AgentEnd::Network { message: message() },
        AgentEnd::SignIn { message: message(), remedy: None },
        AgentEnd::NoCredit { message: message() },
        AgentEnd::ModelUnknown { message: message() },
        AgentEnd::CannotStart { message: message() },
        AgentEnd::OverBudget { bound: Bound::Cost, message: message() },
        AgentEnd::Stopped,
        AgentEnd::Internal { message: message() },
    ]
}

#[test]
fn every_fact_is_one_line_and_reads_back_as_itself() {
    let facts = samples();
    for fact in &facts {
        let event = Event { at: Timestamp(1_750_000_000_123), fact: fact.clone() };
        let line = serde_json::to_string(&event).expect("a fact can be written");
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(serde_json::from_str::<Event>(&line).expect(&line), event);
    }
    // A kind that is added must be added here too; the compiler cannot say so, the count of kinds does.
    let kinds: std::collections::BTreeSet<String> = facts.iter().map(kind).collect();
    assert_eq!(kinds.len(), 30, "{kinds:?}");
}

fn kind(fact: &Fact) -> String {
    serde_json::to_value(fact).expect("a fact can be written")["kind"].as_str().expect("it has a kind").to_owned()
}

#[test]
fn the_names_in_the_journal_stay_what_they_are() {
    let line = |fact| serde_json::to_string(&Event { at: Timestamp(7), fact }).expect("a fact can be written");
    let (attempt, stage, took) = (attempt("S-3", 2), CheckStage::Call(CallNumber(1)), Duration::new(1, 2));
    let result = CheckResult::Failed { why: "exit code 1".to_owned(), output: String::new() };
    assert_eq!(
        line(Fact::CheckFinished { attempt, stage, check: CheckRef::Gate(0), result, cached: false, took }),
        "{\"at\":7,\"fact\":{\"kind\":\"check_finished\",\"attempt\":{\"story\":\"S-3\",\"number\":2},\
         \"stage\":{\"call\":1},\"check\":{\"gate\":0},\"result\":{\"result\":\"failed\",\"why\":\"exit code 1\",\
         \"output\":\"\"},\"cached\":false,\"took\":{\"secs\":1,\"nanos\":2}}}"
    );
    assert_eq!(
        line(Fact::StopRequested { cause: StopCause::Int, level: StopLevel::Now }),
        "{\"at\":7,\"fact\":{\"kind\":\"stop_requested\",\"cause\":\"int\",\"level\":\"now\"}}"
    );
    let outcome = Outcome::BoundReached { bound: Bound::Cost, reason: "r".to_owned(), resume_at: None };
    assert_eq!(
        line(Fact::RunEnded { outcome }),
        "{\"at\":7,\"fact\":{\"kind\":\"run_ended\",\"outcome\":{\"outcome\":\"bound_reached\",\"bound\":\"cost\",\
         \"reason\":\"r\",\"resume_at\":null}}}"
    );
    let before =
        r#"{"at":7,"fact":{"kind":"restarted","policy":POLICY,"landed":[],"spec":{"change":"same"},"agent":"a"}}"#;
    let before = before.replace("POLICY", &serde_json::to_string(&Policy::default()).expect("a policy can be written"));
    let read: Event = serde_json::from_str(&before).expect("a journal without the calls that were cut off");
    assert_eq!(serde_json::to_string(&read).expect("it can be written"), before);
    assert_eq!(line(Fact::Woke), "{\"at\":7,\"fact\":{\"kind\":\"woke\"}}");
}
