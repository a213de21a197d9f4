//! What a pod or an activator measured (Knative: a stat).

use serde::{Deserialize, Serialize};

use crate::revision::{PodId, ReplicaId};
use crate::units::{Concurrency, RequestRate};

/// The program that measured a load: a queue-proxy or an activator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Reporter {
    /// A queue-proxy: what its pod holds. The part that came through an activator is that activator's.
    Pod(PodId),
    /// An activator: what waits there or is in flight through it.
    Activator(ReplicaId),
}

/// One reporter's measurement of one revision over one second of the reporter's own clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Requests in flight, waiting ones included, averaged over the second.
    pub concurrency: Concurrency,
    /// The part of `concurrency` that came through an activator; always zero in an activator's own report.
    pub proxied_concurrency: Concurrency,
    /// Requests that arrived in the second.
    pub request_rate: RequestRate,
    /// The part of `request_rate` that came through an activator.
    pub proxied_request_rate: RequestRate,
    /// Requests waiting for a slot at the end of the second.
    pub queued: u32,
}

/// What requests that are refused under a hold count as, all of a second together: enough for one pod at any
/// target, and too little for two, however many activators refuse. So a pod stays while a client asks, and is
/// started again and again by its platform: a workload whose database is back serves without a person's help.
/// They come and go at once, so by themselves they would be no concurrency, and by their rate far too many
/// pods.
const REFUSED_IN_ALL: f64 = 1.0 / 8192.0;

impl Load {
    /// The same second, in which requests were refused under a hold, too.
    #[must_use]
    pub fn with_refused_requests(self) -> Self {
        Self {
            concurrency: Concurrency::clamped(self.concurrency.value().max(REFUSED_IN_ALL)),
            request_rate: RequestRate::clamped(self.request_rate.value().max(REFUSED_IN_ALL)),
            ..self
        }
    }

    /// Whether there is nothing to say.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

/// A [`Load`] with the number of the reporter's second that it covers. Seconds count from the reporter's
/// start; together with its [`BootId`] a number names one period for ever, so that a repeat replaces and
/// never adds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Seconds since the reporter started.
    pub second: u64,
    /// What it measured in that second.
    pub load: Load,
}

/// Drawn at random at each start of a queue-proxy or an activator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BootId(pub u64);

/// How many requests a reporter holds at this instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresentCount {
    /// Requests being served or waiting, without those that came through an activator.
    pub in_flight: u32,
    /// Those of them that wait for a slot.
    pub waiting: u32,
}
