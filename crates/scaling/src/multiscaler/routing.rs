//! Are activators in the request path? Yes, unless there is room for a burst without them.
//!
//! Knative decides by the sign of the excess burst capacity at every look, so a load near the boundary
//! rewrites the route every few seconds. Here the activators come in at once, but leave only after there has
//! been room for a while (`routing-dwell`; zero is Knative's behaviour). What is not known is not touched:
//! after a restart the route stays as it is until there is a decision. Where no address serves yet there is
//! nothing to dwell on: the first decision holds at once.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::{ExcessBurstCapacity, PodCount, Routing, Timestamp};

/// The route that should hold, were there no dwell (spec kpa §7.6): direct to the pods, while some are wanted
/// and there is room.
pub(super) fn without_dwell(want: Option<PodCount>, room: ExcessBurstCapacity) -> Routing {
    if want.is_some_and(|want| want > PodCount::ZERO) && !room.is_negative() {
        Routing::Direct
    } else {
        Routing::ThroughActivator
    }
}

/// The route of one revision.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Route {
    /// The route that was last ordered or observed, if any.
    current: Option<Routing>,
    since: Timestamp,
    /// Since when there has been room without a break.
    room_since: Option<Timestamp>,
    /// Whether the pods have ever been in the path without activators, as far as it is known.
    was_direct: bool,
}

impl Route {
    /// The route in force, as far as it is known.
    pub(super) fn current(&self) -> Option<Routing> {
        self.current
    }

    /// Since when, as far as is known.
    pub(super) fn since(&self) -> Timestamp {
        self.since
    }

    /// Whether the route has ever led past the activators, as far as it is known.
    pub(super) fn was_direct(&self) -> bool {
        self.was_direct
    }

    /// Takes over what is in force from an earlier owner of the revision. What we ordered ourselves is known
    /// better.
    pub(super) fn observe(&mut self, routing: Routing, now: Timestamp) {
        if self.current.is_none() {
            let was_direct = routing == Routing::Direct;
            *self = Self { current: Some(routing), since: now, room_since: None, was_direct };
        }
    }

    /// Follows a decision; returns the new route if it changes.
    pub(super) fn follow(&mut self, next: Routing, dwell: Duration, now: Timestamp) -> Option<Routing> {
        let due = match next {
            Routing::ThroughActivator => {
                // One look without room, and the dwell begins anew: room that comes and goes is no room.
                self.room_since = None;
                true
            }
            Routing::Direct => {
                let since = *self.room_since.get_or_insert(now);
                // Until a first route is ordered no request of this revision is taken.
                self.current.is_none() || now.saturating_since(since) >= dwell
            }
        };
        if !due || self.current == Some(next) {
            return None;
        }
        self.current = Some(next);
        self.since = now;
        self.was_direct |= next == Routing::Direct;
        Some(next)
    }

    /// When the activators may leave the path if room remains.
    pub(super) fn deadline(&self, dwell: Duration) -> Option<Timestamp> {
        if self.current == Some(Routing::Direct) { None } else { self.room_since.map(|since| since + dwell) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_follows_the_count_and_the_room() {
        let rows = [
            ("M1", Some(3), 0, Routing::Direct),
            ("M1", Some(3), 1, Routing::Direct),
            ("M1", Some(3), -1, Routing::ThroughActivator),
            ("M2", Some(0), 50, Routing::ThroughActivator),
            ("M2", None, 50, Routing::ThroughActivator),
        ];
        for (id, want, room, expected) in rows {
            let want = want.map(PodCount::new);
            assert_eq!(without_dwell(want, ExcessBurstCapacity::new(room)), expected, "{id}");
        }
    }

    #[test]
    fn activators_enter_at_once_and_leave_after_thirty_seconds_of_room() {
        let dwell = Duration::from_secs(30);
        let mut route = Route::default();
        let at = Timestamp::from_secs;
        let steps = [
            (0, Routing::ThroughActivator, Some(Routing::ThroughActivator)),
            (2, Routing::Direct, None),
            (30, Routing::Direct, None),
            (31, Routing::ThroughActivator, None),
            (32, Routing::Direct, None),
            (61, Routing::Direct, None),
            (62, Routing::Direct, Some(Routing::Direct)),
            (64, Routing::Direct, None),
            (66, Routing::ThroughActivator, Some(Routing::ThroughActivator)),
        ];
        for (second, next, expected) in steps {
            assert_eq!(route.follow(next, dwell, at(second)), expected, "at {second}");
        }
    }

    #[test]
    fn the_first_route_waits_for_nothing() {
        let dwell = Duration::from_secs(30);
        for first in [Routing::Direct, Routing::ThroughActivator] {
            assert_eq!(Route::default().follow(first, dwell, Timestamp::from_secs(1)), Some(first));
        }
        // Room from then on is no dwell for a later one.
        let mut route = Route::default();
        let at = Timestamp::from_secs;
        assert!(route.follow(Routing::Direct, dwell, at(1)).is_some());
        assert!(route.follow(Routing::ThroughActivator, dwell, at(40)).is_some());
        assert_eq!(route.follow(Routing::Direct, dwell, at(41)), None);
        assert_eq!(route.follow(Routing::Direct, dwell, at(71)), Some(Routing::Direct));
    }

    #[test]
    fn without_dwell_the_route_follows_every_change_of_sign() {
        let mut route = Route::default();
        for second in 0..4 {
            let next = if second % 2 == 0 { Routing::Direct } else { Routing::ThroughActivator };
            assert_eq!(route.follow(next, Duration::ZERO, Timestamp::from_secs(second)), Some(next));
        }
    }

    #[test]
    fn an_observed_route_is_kept_and_never_overrides_our_own() {
        let mut route = Route::default();
        route.observe(Routing::Direct, Timestamp::from_secs(1));
        assert_eq!(route.follow(Routing::Direct, Duration::from_secs(30), Timestamp::from_secs(2)), None);
        assert_eq!(route.current(), Some(Routing::Direct));
        route.observe(Routing::ThroughActivator, Timestamp::from_secs(3));
        assert_eq!(route.current(), Some(Routing::Direct));
    }

    #[test]
    fn the_deadline_is_the_end_of_the_dwell() {
        let dwell = Duration::from_secs(30);
        let mut route = Route::default();
        assert_eq!(route.deadline(dwell), None);
        route.follow(Routing::ThroughActivator, dwell, Timestamp::from_secs(1));
        assert_eq!(route.deadline(dwell), None);
        route.follow(Routing::Direct, dwell, Timestamp::from_secs(5));
        assert_eq!(route.deadline(dwell), Some(Timestamp::from_secs(35)));
        route.follow(Routing::Direct, dwell, Timestamp::from_secs(35));
        assert_eq!(route.deadline(dwell), None);
    }
}
