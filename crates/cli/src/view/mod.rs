//! Views of a run: folds of its events. None can slow, change or break it.

pub(crate) mod audit;
pub(crate) mod lines;
pub(crate) mod live;
pub(crate) mod plans;
pub(crate) mod public;
pub(crate) mod status;
pub(crate) mod summary;

use ralphloop_core::units::Timestamp;
pub(crate) use ralphloop_core::units::{span, whole_span};

/// A time as RFC 3339 in UTC, to the second.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0)
        .map_or_else(|_| at.0.to_string(), |t| t.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// The time of the day where the user is, for people who look on.
pub(crate) fn clock(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(
        |_| at.0.to_string(),
        |t| t.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime("%H:%M:%S").to_string(),
    )
}

/// The first digits of a commit's name, enough for people.
pub(crate) fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

/// A branch without `refs/heads/`.
pub(crate) fn branch_name(reference: &str) -> &str {
    reference.strip_prefix("refs/heads/").unwrap_or(reference)
}

/// What a sum of costs leaves out, if anything: calls that were cut off, and calls of which nobody says what they cost.
pub(crate) fn without_uncounted(cut_off: u32, unpriced: u32) -> String {
    let calls = |number: u32, one: &str, many: &str| match number {
        0 => None,
        1 => Some(format!("one call that {one}")),
        number => Some(format!("{number} calls that {many}")),
    };
    let parts = [
        calls(cut_off, "was cut off", "were cut off"),
        calls(unpriced, "nobody knows the cost of", "nobody knows the cost of"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(" without {}", parts.join(" and ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc_to_the_second() {
        assert_eq!(rfc3339(Timestamp(1_768_658_400_999)), "2026-01-17T14:00:00Z");
    }
}
