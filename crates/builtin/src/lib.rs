//! The built-in agent: a loop of tools over the programming interfaces of model providers.
//!
//! It is a program like every other agent: it reads a prompt, works in a folder, and prints what it does as lines of the
//! format `stream-json`, the last of which says how it ended. Whoever starts it supervises it; nothing of it outlives its
//! process but what its tools changed in the workspace.
#![forbid(unsafe_code)]

mod conversation;
mod failure;
mod instructions;
mod key;
mod model;
mod stream;
mod tools;
mod turns;
mod workspace;

pub use turns::{Work, WorkError, work};
