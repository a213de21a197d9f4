//! A clock that all processes of a machine share, so that what one noted can be compared with what another
//! did.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// The time since the machine started (`CLOCK_MONOTONIC`).
pub fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has a monotonic clock").into()
}

/// The time since the beginning of 1970, as records have it.
pub fn since_epoch() -> Duration {
    clock_gettime(ClockId::CLOCK_REALTIME).expect("every Linux has a wall clock").into()
}

/// How long this process has kept cores busy.
pub fn worked() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("every Linux counts it").into()
}

/// How long `before` is ago; nothing if it is yet to come.
pub fn since(before: Duration) -> Duration {
    now().saturating_sub(before)
}

/// A duration in milliseconds, as reports show it.
pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// A duration in microseconds, as reports show it.
pub fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
