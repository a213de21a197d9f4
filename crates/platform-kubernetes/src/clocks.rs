//! What do the clocks say? Everything else takes the time as a parameter.

use cluster::{Moment, WallSeconds};
use jiff::Timestamp as WallTime;
use runtime::Clock;

/// The present moment by both clocks.
pub(crate) fn moment(clock: Clock) -> Moment {
    Moment { wall: wall_time(), axis: clock.now() }
}

/// The present second by the wall clock.
pub(crate) fn wall_seconds() -> WallSeconds {
    WallSeconds::of(wall_time())
}

fn wall_time() -> WallTime {
    WallTime::try_from(runtime::wall_time()).unwrap_or_default()
}
