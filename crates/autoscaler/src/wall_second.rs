//! Which second is it, for what outlives this process?

use std::time::UNIX_EPOCH;

use runtime::wall_time;

/// The seconds since 1970 by the wall clock; 0 while that is set before 1970.
pub(crate) fn wall_second() -> u64 {
    wall_time().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
