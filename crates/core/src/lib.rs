//! The decisions of ralphloop, pure: no clock, no input or output, no threads, no randomness.
//!
//! A run is a fold of [`event::Event`]s; [`run::Run::step`] is the only mutation and answers with
//! [`effect::Effect`]s for the engine to carry out.
#![forbid(unsafe_code)]

pub mod agent_name;
pub mod choice;
pub mod effect;
pub mod event;
pub mod evidence;
pub mod fingerprint;
pub mod graph;
pub mod ids;
pub mod learning;
pub mod outcome;
pub mod plan;
pub mod policy;
pub mod relay;
pub mod review;
pub mod run;
pub mod signal;
#[cfg(test)]
mod testing;
pub mod units;
pub mod verdict;
pub mod worktree;
