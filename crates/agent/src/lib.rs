//! Pure adapters of coding agents: how each is started, how its output reads, what its failures mean, what it is told.
//!
//! Nothing here does input or output, reads a clock or waits: bytes go in, [`event::AgentEvent`]s and at last one
//! [`ralphloop_core::evidence::AgentReport`] come out of a [`decoder::Decoder`].
#![forbid(unsafe_code)]

mod acp;
pub mod builtin;
pub mod chain;
mod choice_error;
mod classify;
mod claude;
pub mod client;
mod clients;
mod codex;
mod copilot;
pub mod decoder;
mod echo;
pub mod event;
mod gemini;
mod learning;
mod lenient;
mod lines;
mod notes;
mod opencode;
mod pi;
pub mod plan;
pub mod prices;
pub mod prompt;
pub mod redact;
mod repeat;
pub mod sanitize;
mod text;
mod trace;

pub use classify::{Class, class_of_answer};
