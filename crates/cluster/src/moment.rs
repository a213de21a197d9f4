//! How do Kubernetes' times, which are of the wall clock, fit onto our axis?

use std::time::Duration;

use jiff::Timestamp as WallTime;
use vocabulary::Timestamp;

/// One moment by both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// By the wall clock, on which Kubernetes writes its times.
    pub wall: WallTime,
    /// On the monotonic axis of this process.
    pub axis: Timestamp,
}

impl Moment {
    /// A point of the wall clock on our axis; one from before the axis begins is its beginning.
    pub fn on_axis(self, at: WallTime) -> Timestamp {
        if at > self.wall {
            // Another machine's clock may be ahead.
            self.axis + Self::between(self.wall, at)
        } else {
            self.axis - Self::between(at, self.wall)
        }
    }

    /// How much later one point is; zero if it is not.
    pub(crate) fn between(earlier: WallTime, later: WallTime) -> Duration {
        Duration::try_from(later.duration_since(earlier)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_keep_their_distance_from_now() {
        let now =
            Moment { wall: "2026-11-22T10:00:00Z".parse().expect("a time"), axis: Timestamp::from_secs(100) };
        for (at, expected) in [
            ("2026-11-22T09:59:50.5Z", Timestamp::from_millis(90_500)),
            ("2026-11-22T10:00:02Z", Timestamp::from_secs(102)),
            ("2026-11-22T08:00:00Z", Timestamp::ZERO),
        ] {
            assert_eq!(now.on_axis(at.parse().expect("a time")), expected, "{at}");
        }
    }
}
