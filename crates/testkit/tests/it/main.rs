//! The test world itself: it must do what the tests that live in it believe.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod architecture;
mod real_client;
mod scripted_agent;
