//! The one place that reads the wall clock.

use ralphloop_core::units::Timestamp;

/// Now.
pub fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond())
}
