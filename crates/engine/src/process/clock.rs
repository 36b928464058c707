//! Limits in observed time.
//!
//! A clock that was not looked at did not run: each look adds what has passed since the last one, but never more than
//! [`LONGEST_STEP`]. A suspended machine (where Linux' monotonic clock stands still anyway), a stopped or starved process of ours and a reader that is
//! busy elsewhere therefore shoot nobody. The price is that a limit may come late by the time nobody looked.
use std::time::Duration;

use tokio::time::Instant;

/// The most that one look may add; looks are made at least this often while a child is followed.
pub(super) const LONGEST_STEP: Duration = Duration::from_secs(1);

/// Time that passed while somebody looked.
#[derive(Debug)]
pub(super) struct ObservedClock {
    last: Instant,
    elapsed: Duration,
}

impl ObservedClock {
    /// A clock at zero.
    pub(super) fn started(now: Instant) -> Self {
        Self { last: now, elapsed: Duration::ZERO }
    }

    /// Looks at the clock.
    pub(super) fn observe(&mut self, now: Instant) -> Duration {
        self.elapsed += now.saturating_duration_since(self.last).min(LONGEST_STEP);
        self.last = now;
        self.elapsed
    }

    /// What the last look said.
    pub(super) fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// How long to sleep so as to look again at `deadline`, or one step from now if that is sooner.
    pub(super) fn until(&self, deadline: Duration) -> Duration {
        deadline.saturating_sub(self.elapsed).min(LONGEST_STEP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_slept_for_eight_hours_has_seen_one_step() {
        let start = Instant::now();
        let mut clock = ObservedClock::started(start);
        clock.observe(start + Duration::from_millis(400));
        clock.observe(start + Duration::from_hours(8));
        assert_eq!(clock.elapsed(), Duration::from_millis(1400));
    }

    #[test]
    fn looking_often_loses_nothing() {
        let start = Instant::now();
        let mut clock = ObservedClock::started(start);
        for tenth in 1..=100 {
            clock.observe(start + Duration::from_millis(100) * tenth);
        }
        assert_eq!(clock.elapsed(), Duration::from_secs(10));
        assert_eq!(clock.until(Duration::from_secs(12)), LONGEST_STEP);
        assert_eq!(clock.until(Duration::from_millis(10_250)), Duration::from_millis(250));
        assert_eq!(clock.until(Duration::from_secs(3)), Duration::ZERO);
    }
}
