//! The decoders as the engine uses them: bytes in, events and a report out.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod acp;
mod recordings;
mod redaction;
mod scenes;
mod streams;
mod support;
