//! Quantities with their units: points in time, spans, money.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time: milliseconds since the Unix epoch, UTC. The core never reads a clock; times come with events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The point `span` later; saturates at the end of time.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Money in millionths of a US dollar, the unit in which agents report cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Usd(pub u64);

impl Usd {
    /// From dollars as a number; negative and not-a-number become zero, too much saturates.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
    pub fn from_dollars(dollars: f64) -> Self {
        Self((dollars * 1_000_000.0).round() as u64)
    }

    /// In dollars, for showing.
    #[expect(clippy::cast_precision_loss, reason = "for showing only")]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1_000_000.0
    }

    /// The sum; saturates.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${:.2}", self.dollars())
    }
}

/// A span for people: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 4 min`.
pub fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", span.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// [`span`], to the second: what counts up while somebody looks.
pub fn whole_span(whole: Duration) -> String {
    match whole.as_secs() {
        seconds @ 0..10 => format!("{seconds} s"),
        _ => span(whole),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_as_people_say_them() {
        let texts: Vec<String> = [400, 12_000, 185_000, 7_440_000].map(|ms| span(Duration::from_millis(ms))).to_vec();
        assert_eq!(texts, ["0.4 s", "12 s", "3 min 5 s", "2 h 4 min"]);
    }
}
