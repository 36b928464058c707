//! The binary from outside: every test runs `ralphloop` in a scene of its own with a scripted agent.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod branches;
mod cleaning;
mod closing;
mod crash;
mod dialects;
mod doctor;
mod exit_codes;
mod folders;
mod following;
mod formats;
mod journal;
mod locks;
mod loop_rules;
mod notifications;
mod openspec_change;
mod printing;
mod readme;
mod real_claude;
mod real_formats;
mod recovery;
mod refusals;
mod regressions_loop;
mod regressions_tree;
mod secrets;
mod shell;
mod side_by_side;
mod stopping;
mod stopping_elsewhere;
mod stress;
mod taking_up;
mod trackers;
mod verbs;
mod verdicts;
mod waiting;
mod world;
