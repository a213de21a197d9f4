//! What came of a simulated load?

use std::time::Duration;

use vocabulary::RevisionName;

use crate::tally::RecordedCount;

/// The outcome of one scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulationReport {
    /// The Services in the order of the scenario.
    pub services: Vec<ServiceReport>,
    /// How many events happened in the world.
    pub events: u64,
    /// A hash of the first 1,000 events: the same for the same scenario, on every machine.
    pub fingerprint: u64,
}

/// The outcome for one Service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceReport {
    /// The name of the Service, `namespace/service/name`.
    pub name: RevisionName,
    /// Requests that arrived while the load lasted.
    pub requests: u64,
    /// The requests that were answered before the end of the load.
    pub answered: u64,
    /// The requests that were refused.
    pub refused: u64,
    /// Requests that had to wait because no pod was ready.
    pub waited_from_zero: u64,
    /// Requests that had to wait because every slot of the ready pods was taken.
    pub waited_for_growth: u64,
    /// How long the answered requests waited, in the activator's queue and in their pod's.
    pub wait: WaitPercentiles,
    /// The time of all pods together, from their order to their end.
    pub pod_time: Duration,
    /// The part of it in which a pod was ready and held no request.
    pub idle_time: Duration,
    /// How often in an hour another count was ordered.
    pub changes_per_hour: f64,
    /// The counts that were ordered, oldest first; the first one is the count of the deployment.
    pub counts: Vec<RecordedCount>,
}

/// How long requests waited; zero for those that did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitPercentiles {
    /// Half of all waits are at most this long.
    pub p50: Duration,
    /// 95 of 100 waits are at most this long.
    pub p95: Duration,
    /// 99 of 100 waits are at most this long.
    pub p99: Duration,
    /// The longest of all waits.
    pub longest: Duration,
    /// The mean of all waits.
    pub mean: Duration,
}

impl ServiceReport {
    /// The time of all pods together, in hours.
    pub fn pod_hours(&self) -> f64 {
        self.pod_time.as_secs_f64() / 3_600.0
    }

    /// The share of pod time in which a pod was ready and held no request, from 0 to 1.
    pub fn share_idle(&self) -> f64 {
        if self.pod_time.is_zero() {
            return 0.0;
        }
        self.idle_time.as_secs_f64() / self.pod_time.as_secs_f64()
    }
}
