//! Is a revision active, activating or inactive when it appears?
//!
//! A *new* one is as Knative makes it: its initial scale is what the platform starts it with, and a bound
//! only until that many pods were ready once. A revision that is *found* existed before this process: a
//! restart must not take pods from it that it may need, nor raise it again to a scale that it had reached.

use settings::ScalingSpec;
use vocabulary::{PodCount, Timestamp};

use super::RevisionOrigin;
use crate::bounds::Initialization;
use crate::scale_to_zero::{InactiveBecause, RevisionActivity};

/// A revision at the moment when it appears.
#[derive(Clone, Copy, Debug)]
pub(super) struct RevisionBeginning {
    /// The replica count that the platform was last asked for.
    pub(super) wanted: PodCount,
    pub(super) origin: RevisionOrigin,
    pub(super) now: Timestamp,
}

impl RevisionBeginning {
    /// One that was there with this many pods.
    pub(super) fn found_with(wanted: PodCount, now: Timestamp) -> Self {
        Self { wanted, origin: RevisionOrigin::Found, now }
    }

    /// The count that is held as in panic while nothing is known of the load.
    pub(super) fn held_count(self) -> PodCount {
        match self.origin {
            // Knative counts ready pods here, and none is.
            RevisionOrigin::New => PodCount::ZERO,
            RevisionOrigin::Found => self.wanted,
        }
    }

    pub(super) fn initial_state(self, spec: &ScalingSpec) -> (RevisionActivity, Initialization) {
        match self.origin {
            RevisionOrigin::New => {
                (RevisionActivity::Activating { since: self.now }, Initialization::Pending)
            }
            RevisionOrigin::Found => self.found(spec),
        }
    }

    /// One without pods was scaled to zero and rests there, unless its lower bound has come to ask for pods
    /// since. One with pods is taken as starting: it becomes active as soon as they are ready. If it has
    /// fewer than its initial scale, that was reached before.
    fn found(self, spec: &ScalingSpec) -> (RevisionActivity, Initialization) {
        let was_ready = self.wanted < spec.initial_scale || self.wanted == PodCount::ZERO;
        let initialization = if was_ready { Initialization::Done } else { Initialization::Pending };
        let needs_none =
            self.wanted == PodCount::ZERO && (spec.min_scale == PodCount::ZERO || !spec.reachable);
        let activity = if needs_none {
            RevisionActivity::Inactive { since: self.now, because: InactiveBecause::NoTraffic }
        } else {
            RevisionActivity::Activating { since: self.now }
        };
        (activity, initialization)
    }
}
