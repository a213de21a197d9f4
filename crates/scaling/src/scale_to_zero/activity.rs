//! Is the revision serving, starting, or at rest (Knative: the condition Active)?

use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::{PodCount, Timestamp};

/// Where a revision stands, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RevisionActivity {
    /// It has the ready pods that it needs.
    Active {
        /// The time at which it became active.
        since: Timestamp,
    },
    /// It waits for ready pods.
    Activating {
        /// The time at which it began to wait for pods.
        since: Timestamp,
    },
    /// It needs no pod: it is at zero, or on the way there.
    Inactive {
        /// The time at which it became inactive.
        since: Timestamp,
        /// How it came to that.
        because: InactiveBecause,
    },
}

/// How a revision came to need no pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum InactiveBecause {
    /// No load needed a pod any more.
    NoTraffic,
    /// Its pods did not get ready in time. Unlike in Knative this is remembered until the next activation,
    /// for people to see.
    TimedOut,
}

impl RevisionActivity {
    /// The words of all activities, as [`RevisionActivity::name`] gives them.
    pub(crate) const NAMES: [&str; 3] = ["active", "activating", "inactive"];

    /// Whether it waits for ready pods.
    pub(crate) fn is_activating(self) -> bool {
        matches!(self, Self::Activating { .. })
    }

    /// For how long this has been so.
    pub(crate) fn age(self, now: Timestamp) -> Duration {
        let (Self::Active { since } | Self::Activating { since } | Self::Inactive { since, .. }) = self;
        now.saturating_since(since)
    }

    /// The word for people and programs.
    pub(crate) fn name(self) -> &'static str {
        let [active, activating, inactive] = Self::NAMES;
        match self {
            Self::Active { .. } => active,
            Self::Activating { .. } => activating,
            Self::Inactive { .. } => inactive,
        }
    }

    /// What follows from the count that is wanted (`None`: not known) and the pods that are `ready` out of
    /// those `needed`. The time starts anew only when the state changes.
    #[must_use]
    pub(crate) fn next(
        self,
        want: Option<PodCount>,
        ready: PodCount,
        needed: PodCount,
        now: Timestamp,
    ) -> Self {
        if want == Some(PodCount::ZERO) || needed == PodCount::ZERO {
            return self.rest(needed, now);
        }
        let enough = ready >= needed;
        match (self, want) {
            // At rest with nothing known, as after a restart: no pod is wanted that could be waited for.
            (Self::Inactive { .. }, None) => self,
            (Self::Active { .. }, _) if enough => self,
            (Self::Activating { .. } | Self::Inactive { .. }, _) if enough => Self::Active { since: now },
            (Self::Activating { .. }, _) => self,
            // Also from active, as in Knative: one that lacks a pod that it needs is starting again.
            (Self::Active { .. } | Self::Inactive { .. }, _) => Self::Activating { since: now },
        }
    }

    fn rest(self, needed: PodCount, now: Timestamp) -> Self {
        match self {
            Self::Inactive { .. } => self,
            // While a revision that needs pods is starting, only the timeout wants zero.
            Self::Activating { .. } if needed > PodCount::ZERO => {
                Self::Inactive { since: now, because: InactiveBecause::TimedOut }
            }
            Self::Activating { .. } | Self::Active { .. } => {
                Self::Inactive { since: now, because: InactiveBecause::NoTraffic }
            }
        }
    }
}
