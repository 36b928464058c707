//! The core's rules, each by a table of events and effects, and the simulation of whole runs.
#![expect(clippy::expect_used, reason = "a helper of a test may fail it")]

#[path = "../sim/mod.rs"]
mod sim;

mod ahead;
mod attempts;
mod chain;
mod edits;
mod facts;
mod fence;
mod lanes;
mod limits;
mod mending;
mod relaying;
mod restarts;
mod retrying;
mod reviewing;
mod signing;
mod simulation;
mod steering;
mod stops;
mod support;
mod verdicts;
