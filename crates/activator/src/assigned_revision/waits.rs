//! What becomes of requests that no ready pod takes, and what do those that are refused count as?

use vocabulary::{Concurrency, Load, RequestRate};

/// What requests that are refused under a hold count as, all of a second together: enough for one pod at any
/// target, and too little for two, however many activators refuse. So a pod stays while somebody asks, and is
/// started again and again by its platform: a workload whose database is back serves with nobody's help. They
/// come and go at once, so by themselves they would be no concurrency, and by their rate far too many pods.
const REFUSED_IN_ALL: f64 = 1.0 / 8192.0;

/// What becomes of requests that no ready pod takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    Queued,
    Refused,
}

impl Waits {
    pub(super) fn under(hold: Option<&str>) -> Self {
        if hold.is_some() { Self::Refused } else { Self::Queued }
    }
}

/// Whether requests were refused under a hold in the second that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum HeldRefusals {
    #[default]
    None,
    Some,
}

impl HeldRefusals {
    /// Ends a second: what it held, with the requests that were refused in it.
    pub(super) fn added_to(&mut self, load: Load) -> Load {
        match std::mem::take(self) {
            Self::None => load,
            Self::Some => Load {
                concurrency: Concurrency::clamped(load.concurrency.value().max(REFUSED_IN_ALL)),
                request_rate: RequestRate::clamped(load.request_rate.value().max(REFUSED_IN_ALL)),
                ..load
            },
        }
    }
}
