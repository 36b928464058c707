//! The repository is sacred: checkpoints, reverts and landings against real git.
#![expect(
    clippy::unwrap_used,
    clippy::format_push_string,
    clippy::unnecessary_debug_formatting,
    reason = "helpers of tests fail by panicking"
)]

mod answers;
mod figures;
mod fingerprint;
mod frame;
mod landing;
mod states;
mod world;
