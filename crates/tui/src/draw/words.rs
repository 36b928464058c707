//! Facts in words.

use ralphloop_core::effect::Ground;
use ralphloop_core::evidence::Usage;
use ralphloop_core::run::StoryState;
use ralphloop_core::units::Timestamp;
pub(crate) use ralphloop_core::units::whole_span as span;

use crate::model::Tone;

/// `1 file`, `2 files`.
pub(crate) fn count(number: u32, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// The time of the day where the user is.
pub(crate) fn clock(at: Timestamp, utc_offset: i32) -> String {
    let seconds = (at.0.div_euclid(1000) + i64::from(utc_offset)).rem_euclid(24 * 3600);
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// A branch without `refs/heads/`.
pub(crate) fn branch(reference: &str) -> &str {
    reference.strip_prefix("refs/heads/").unwrap_or(reference)
}

/// `950`, `12.3k`, `4.5M`.
fn short(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        1000..1_000_000 => format!("{}.{}k", number / 1000, number % 1000 / 100),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

/// Tokens and cost.
pub(crate) fn usage(usage: &Usage) -> String {
    let tokens = match (usage.input_tokens, usage.output_tokens) {
        (None, None) => "tokens unknown".to_owned(),
        (input, output) => {
            format!("{} tokens in, {} out", short(input.unwrap_or(0)), short(output.unwrap_or(0)))
        }
    };
    match usage.money_in_words() {
        Some(cost) => format!("{tokens}, {cost}"),
        None => tokens,
    }
}

/// How a story stands: its tone, its mark, a word.
pub(crate) fn story(state: &StoryState) -> (Tone, &'static str, &'static str) {
    match state {
        StoryState::Pending => (Tone::Dim, "·", "waiting"),
        StoryState::Running => (Tone::Active, "▶", "running"),
        StoryState::Landed { ground: Ground::Unverified, .. } => (Tone::Warn, "✓", "landed unverified"),
        StoryState::Landed { .. } => (Tone::Good, "✓", "landed"),
        StoryState::AwaitsSignOff { .. } => (Tone::Warn, "?", "awaits a sign-off"),
        StoryState::DoneBefore => (Tone::Good, "✓", "done before"),
        StoryState::Failed => (Tone::Bad, "✗", "failed"),
        StoryState::Blocked => (Tone::Warn, "■", "blocked"),
        StoryState::Skipped => (Tone::Dim, "-", "skipped"),
    }
}
