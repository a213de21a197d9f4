//! When do the requests of one Service come?

use std::time::Duration;

use vocabulary::Timestamp;

use super::revision_plan::{LoadStretch, RevisionPlan};
use crate::random::{RandomStream, span_of};

/// The requests of one Service, as they come.
#[derive(Debug)]
pub(crate) struct TrialTraffic {
    began: Timestamp,
    quiet_from: Timestamp,
    stretches: Vec<LoadStretch>,
    steady_gap: Option<Duration>,
    steady_sent: u32,
    arrived: usize,
    pub(crate) service_time: Duration,
    pub(crate) limit: Duration,
    random: RandomStream,
}

impl TrialTraffic {
    pub(crate) fn new(plan: &RevisionPlan, seed: u64, began: Timestamp, quiet_from: Timestamp) -> Self {
        let facts = &plan.scenario.facts;
        Self {
            began,
            quiet_from,
            stretches: plan.stretches.clone(),
            steady_gap: plan.steady_gap,
            steady_sent: 0,
            arrived: 0,
            service_time: plan.service_time,
            limit: facts.timeouts.request.unwrap_or(Duration::from_secs(60)),
            random: RandomStream::of(seed, facts.name.as_str(), "arrivals"),
        }
    }

    /// The next arrival after one that comes now; `None` if there is none any more.
    pub(crate) fn next_after(&mut self, now: Timestamp) -> Option<Timestamp> {
        let mut at = now;
        while at < self.quiet_from {
            let stretch = self.stretch_at(at);
            if stretch.rate > 0.0 {
                let candidate = at + span_of(self.random.exponential(1.0 / stretch.rate));
                if candidate < stretch.ends {
                    return Some(candidate);
                }
            }
            // The gap to the next arrival has no memory, so it is drawn anew where the rate changes.
            at = stretch.ends;
        }
        let at = self.quiet_from + self.steady_gap? * self.steady_sent;
        self.steady_sent += 1;
        Some(at)
    }

    /// A request arrives. Returns which one of its Service it is.
    pub(crate) fn arrive(&mut self) -> usize {
        self.arrived += 1;
        self.arrived
    }

    fn stretch_at(&self, at: Timestamp) -> RunningStretch {
        let since = at.saturating_since(self.began);
        let next = self.stretches.partition_point(|stretch| stretch.from <= since);
        let ends = self.stretches.get(next).map(|stretch| self.began + stretch.from);
        let rate = next.checked_sub(1).and_then(|present| self.stretches.get(present));
        RunningStretch {
            rate: rate.map_or(0.0, |stretch| stretch.rate),
            ends: ends.unwrap_or(self.quiet_from).min(self.quiet_from),
        }
    }
}

/// The stretch of a load that runs at some time.
struct RunningStretch {
    rate: f64,
    ends: Timestamp,
}
