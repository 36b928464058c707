//! A wait until a point in time, by a clock that may be set meanwhile, on a machine that may sleep.

use std::time::Duration;

use ralphloop_core::units::Timestamp;
use tokio::time::Instant;

/// The wall clock is looked at this often: a machine that slept wakes up late, not early.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// By so much the two clocks may differ without the wall clock having been set.
const SLACK: Duration = Duration::from_secs(5);

/// Waits until a point in time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timer {
    until: Timestamp,
    /// When that is by the clock that nobody sets. It stands still while the machine sleeps.
    steady: Instant,
}

impl Timer {
    /// A wait from now on, by both clocks.
    pub(crate) fn new(until: Timestamp, now: Timestamp, steady: Instant) -> Self {
        Self { until, steady: steady + until.since(now) }
    }

    /// How long to wait before the next look; nothing if the wait is over, or its end has to be decided anew because the
    /// wall clock was set back.
    pub(crate) fn left(&self, now: Timestamp, steady: Instant) -> Option<Duration> {
        let left = self.until.since(now);
        let steadily_left = self.steady.saturating_duration_since(steady);
        if left.is_zero() || left > steadily_left + SLACK {
            return None;
        }
        Some(left.min(LOOK_AGAIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);
    const BEGAN: Timestamp = Timestamp(1_000_000_000);

    fn wait_of_an_hour() -> (Timer, Instant) {
        let steady = Instant::now();
        (Timer::new(BEGAN.after(HOUR), BEGAN, steady), steady)
    }

    #[test]
    fn a_wait_is_over_at_its_time_and_looked_at_until_then() {
        let (timer, began) = wait_of_an_hour();
        assert_eq!(timer.left(BEGAN, began), Some(LOOK_AGAIN));
        let almost = HOUR.checked_sub(Duration::from_secs(2)).unwrap();
        assert_eq!(timer.left(BEGAN.after(almost), began + almost), Some(Duration::from_secs(2)));
        assert_eq!(timer.left(BEGAN.after(HOUR), began + HOUR), None);
    }

    #[test]
    fn a_clock_that_is_set_forward_past_the_end_ends_the_wait_with_the_next_look() {
        let (timer, began) = wait_of_an_hour();
        assert_eq!(timer.left(BEGAN.after(2 * HOUR), began + LOOK_AGAIN), None);
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_make_the_wait_longer_in_silence() {
        let (timer, began) = wait_of_an_hour();
        assert_eq!(timer.left(Timestamp(BEGAN.0 - 3_600_000), began + LOOK_AGAIN), None);
        let drift = Timestamp(BEGAN.after(LOOK_AGAIN).0 - 3_000);
        assert_eq!(timer.left(drift, began + LOOK_AGAIN), Some(LOOK_AGAIN), "clocks drift, and that is no jump");
    }

    #[test]
    fn a_machine_that_slept_over_the_end_is_awake_in_time() {
        let (timer, began) = wait_of_an_hour();
        assert_eq!(timer.left(BEGAN.after(8 * HOUR), began + Duration::from_secs(1)), None);
        let nap = Duration::from_mins(10);
        assert_eq!(timer.left(BEGAN.after(nap), began + Duration::from_secs(1)), Some(LOOK_AGAIN));
    }
}
