//! The orders of a revision besides its count: the route, the number of activators, and the count from which
//! a pod reports at once.

use std::time::Duration;

use vocabulary::{PodCount, Timestamp};

use super::{Commands, ScaledRevision};
use crate::burst;
use crate::hpa::routing_without_own;
use crate::multiscaler::Command;
use crate::surge;

impl ScaledRevision {
    /// Orders the route and the number of activators. Before the first valid decision both stay as they are.
    pub(super) fn choose_route(&mut self, wanted: Option<PodCount>, now: Timestamp, commands: &mut Commands) {
        let ready = self.pods.ready_count();
        let next = match self.shadow {
            Some(_) => Some(routing_without_own(ready)),
            None => self.algorithm.routing(wanted, ready),
        };
        let Some(next) = next else { return };
        let before = self.route.current();
        if let Some(routing) = self.route.follow(next, self.routing_dwell(), now) {
            if before.is_some() {
                // The acknowledgement was for the former assignment.
                self.acknowledged_since = None;
            }
            commands.push_back(Command::SetRouting { revision: self.id, routing });
        }
        let count = burst::activator_count(&self.spec, self.pods.ready_count());
        if self.activators != Some(count) {
            self.activators = Some(count);
            commands.push_back(Command::SetActivatorCount { revision: self.id, count });
        }
    }

    /// How long there must be room before activators leave the path. Zero where requests are not measured:
    /// pods serve while one is ready. Zero also before a revision with a target burst capacity of zero is
    /// served directly for the first time: activators are in its path at zero pods alone, as in Knative.
    pub(super) fn routing_dwell(&self) -> Duration {
        let is_first = self.spec.target_burst_capacity.value() == 0.0 && !self.route.was_direct();
        if self.algorithm.counts_requests() && self.shadow.is_none() && !is_first {
            self.spec.routing_dwell
        } else {
            Duration::ZERO
        }
    }

    pub(super) fn set_surge_threshold(&mut self, commands: &mut Commands) {
        let threshold = surge::pod_threshold(&self.spec, self.pods.ready_count());
        if threshold != self.surge_threshold {
            self.surge_threshold = threshold;
            commands.push_back(Command::SetSurgeThreshold { revision: self.id, threshold });
        }
    }
}
