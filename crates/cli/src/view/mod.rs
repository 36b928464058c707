//! Views of a run: folds of its events. None can slow, change or break it.

pub(crate) mod lines;
pub(crate) mod live;
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

/// What a sum of costs leaves out, if anything.
pub(crate) fn without_uncounted(calls: u32) -> String {
    match calls {
        0 => String::new(),
        1 => " without one call that was cut off".to_owned(),
        calls => format!(" without {calls} calls that were cut off"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc_to_the_second() {
        assert_eq!(rfc3339(Timestamp(1_768_658_400_999)), "2026-01-17T14:00:00Z");
    }
}
