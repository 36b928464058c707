//! Facts in words.

use std::time::Duration;

use ralphloop_core::effect::Ground;
use ralphloop_core::evidence::{AgentEnd, Claim, Usage};
use ralphloop_core::run::StoryState;
use ralphloop_core::units::Timestamp;

use crate::model::Tone;
use crate::text::one_line;

/// `4 s`, `3 min 5 s`, `2 h 4 min`.
pub(crate) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

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
        StoryState::DoneBefore => (Tone::Good, "✓", "done before"),
        StoryState::Failed => (Tone::Bad, "✗", "failed"),
        StoryState::Blocked => (Tone::Warn, "■", "blocked"),
        StoryState::Skipped => (Tone::Dim, "-", "skipped"),
    }
}

/// How an agent ended.
pub(crate) fn agent_end(end: &AgentEnd, claim: &Claim) -> String {
    match end {
        AgentEnd::Finished => match claim {
            Claim::Complete => "says that the story is complete".to_owned(),
            Claim::Failed { reason } => format!("says that it failed: {}", one_line(reason)),
            Claim::Blocked { reason } => format!("says that it is blocked: {}", one_line(reason)),
            Claim::None { near_miss: Some(seen) } => {
                format!("no signal, but something like one in another form: {}", one_line(seen))
            }
            Claim::None { near_miss: None } => "ended without a signal".to_owned(),
        },
        AgentEnd::NoFinalMessage => "ended without a final message".to_owned(),
        AgentEnd::NoOutput => "ended without any output".to_owned(),
        AgentEnd::Error { message } => format!("error: {}", one_line(message)),
        AgentEnd::Crashed { status, message } => format!("crashed ({status}): {}", one_line(message)),
        AgentEnd::NeverSpoke { after } => format!("no output within {} of its start", span(*after)),
        AgentEnd::Silent { after, .. } => format!("no output for {}", span(*after)),
        AgentEnd::TimedOut { after } => format!("its time of {} was up", span(*after)),
        AgentEnd::Looped { call, times } => format!("the same call {times} times in a row: {}", one_line(call)),
        AgentEnd::PermissionDenied { tools } => format!("permission denied: {}", one_line(&tools.join(", "))),
        AgentEnd::PromptTooLong { message } => format!("prompt too long: {}", one_line(message)),
        AgentEnd::Limit { message, .. } => format!("limit of the account: {}", one_line(message)),
        AgentEnd::Overloaded { message } => format!("provider overloaded: {}", one_line(message)),
        AgentEnd::Network { message } => format!("network: {}", one_line(message)),
        AgentEnd::SignIn { message, .. } => format!("not signed in: {}", one_line(message)),
        AgentEnd::NoCredit { message } => format!("no credit: {}", one_line(message)),
        AgentEnd::ModelUnknown { message } => format!("model unknown: {}", one_line(message)),
        AgentEnd::CannotStart { message } => format!("could not start: {}", one_line(message)),
        AgentEnd::OverBudget { message, .. } => format!("over the budget: {}", one_line(message)),
        AgentEnd::Stopped => "stopped by us".to_owned(),
        AgentEnd::Internal { message } => format!("could not be watched: {}", one_line(message)),
    }
}
