//! What the checks see of the world at its end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use vocabulary::{Assignment, PodName, PodState, ReplicaName, Slice};

use super::TrialWorld;
use crate::proof::checks::{EndLink, EndScene, EndService, WaitingAtEnd};
use crate::proof::fault::OwnerNumber;
use crate::proof::trial_parts::{FarEnd, RequestPosition, TrialActivator};
use crate::world_event::ServiceNumber;

/// A request that has just come may wait for the next free slot.
const MOMENT: Duration = Duration::from_secs(1);

impl TrialWorld<'_> {
    pub(super) fn end_scene(&self) -> EndScene {
        let mut activators: Vec<ReplicaName> =
            self.activators.iter().map(|known| known.name.clone()).collect();
        activators.sort();
        EndScene {
            links: self.end_links(),
            services: self.services().map(|service| self.end_service(service)).collect(),
            activators,
            late_refusals: self.tally.late_refusals,
        }
    }

    /// The links that the owners need, and whether each stands.
    fn end_links(&self) -> Vec<EndLink> {
        let mut needed: Vec<(OwnerNumber, FarEnd)> = Vec::new();
        for owner in (0..self.owners.len()).map(OwnerNumber) {
            let holds_any = !self.leases.ownership(owner).epochs.is_empty();
            let activators = self.activators.iter().filter(|_| holds_any);
            needed.extend(activators.map(|known| (owner, FarEnd::Activator(known.process.activator))));
        }
        for pod in self.platform.pods() {
            let holder = self.leases.holder(self.bucket_of(pod.service));
            needed.extend(holder.map(|owner| (owner, FarEnd::Pod(pod.number))));
        }
        let stands = |owner: OwnerNumber, far_end: FarEnd| {
            let mut all = self.connections.values();
            all.any(|connection| connection.process.owner == owner && connection.far_end == far_end)
        };
        needed
            .into_iter()
            .map(|(owner, far_end)| EndLink {
                name: format!("owner {} to {far_end:?}", owner.0),
                stands: stands(owner, far_end),
            })
            .collect()
    }

    fn end_service(&self, service: ServiceNumber) -> EndService {
        let pods = self.platform.pods_of(service);
        let ready = pods.filter(|pod| pod.state() == PodState::Ready && !pod.is_leaving());
        let known = self.activators.iter().map(|activator| self.known_ready(activator, service));
        EndService {
            name: self.names[service.0].clone(),
            wanted: self.platform.facts(service).wanted,
            expected: self.expected.as_ref().and_then(|counts| counts.get(service.0)).copied(),
            ready: ready.map(|pod| pod.name.clone()).collect(),
            known: known.collect(),
            route: self.routes.get(&service).cloned(),
            waiting: self.activators.iter().filter_map(|known| self.waiting_at(known, service)).collect(),
        }
    }

    fn known_ready(&self, activator: &TrialActivator, service: ServiceNumber) -> BTreeSet<PodName> {
        let known = activator.core.revision(&self.names[service.0]);
        let pods = known.into_iter().flat_map(|known| &known.assignment().pods);
        pods.filter(|pod| pod.state == PodState::Ready).map(|pod| pod.pod.clone()).collect()
    }

    fn waiting_at(&self, activator: &TrialActivator, service: ServiceNumber) -> Option<WaitingAtEnd> {
        let numbers = activator.waiting.iter().filter(|(place, _)| place.service == service);
        let arrived = numbers.filter_map(|(_, number)| Some(self.requests.get(number)?.arrived));
        let oldest = self.now.saturating_since(arrived.min()?);
        let assignment = activator.core.revision(&self.names[service.0])?.assignment();
        let has_free_slot = oldest > MOMENT && self.has_free_slot(activator, assignment);
        Some(WaitingAtEnd { activator: activator.name.clone(), oldest, has_free_slot })
    }

    fn has_free_slot(&self, activator: &TrialActivator, assignment: &Assignment) -> bool {
        let mut running: BTreeMap<PodName, u32> = BTreeMap::new();
        for request in self.requests.values() {
            if let RequestPosition::InPod { activator: sender, pod, .. } = request.place
                && sender == activator.process.activator
                && let Some(pod) = self.platform.pod(pod)
            {
                *running.entry(pod.name.clone()).or_default() += 1;
            }
        }
        let mut own =
            assignment.pods.iter().filter(|pod| pod.state == PodState::Ready && pod.slice != Slice::Outside);
        own.any(|pod| pod.slots == 0 || running.get(&pod.pod).copied().unwrap_or_default() < pod.slots)
    }
}
