//! The platform of the world: it keeps as many pods as it was ordered, as `platform-local` does.
//!
//! A pod that is not wanted any more is ended once the owner says that the activator sends nothing to it.
//! Left out: rollouts, limits of the machine, failures but those that a scenario names. A pod is ready after
//! its start-up, however many start.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use orchestration::{PlatformFact, RevisionFacts};
use scaling::RevisionOrigin;
use vocabulary::{PodCount, PodName, RevisionName, Timestamp};

use crate::scenario::ServiceScenario;
use crate::simulated_pod::{PodDeparture, PodTerms, SimulatedPod};
use crate::world_event::{PodNumber, ServiceNumber};

/// All pods, and the counts that were ordered.
#[derive(Debug)]
pub(crate) struct WorldPlatform {
    services: Vec<PlatformService>,
    numbers: BTreeMap<RevisionName, ServiceNumber>,
    pods: BTreeMap<PodNumber, SimulatedPod>,
    names: BTreeMap<PodName, PodNumber>,
    /// The number of the pod that was started last.
    started: u32,
}

/// A Service with the count that was ordered last.
#[derive(Debug)]
struct PlatformService {
    facts: RevisionFacts,
    /// How many pods of the Service were started so far.
    started: u32,
}

/// A pod that was started, and which one of its Service it is, from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartedPod {
    pub(crate) pod: PodNumber,
    pub(crate) of_service: u32,
}

impl WorldPlatform {
    /// The Services of a scenario, without pods.
    pub(crate) fn new(services: &[ServiceScenario]) -> Self {
        let numbers = services.iter().enumerate();
        let numbers = numbers.map(|(place, service)| (service.facts.name.clone(), ServiceNumber(place)));
        Self {
            services: services
                .iter()
                .map(|service| PlatformService { facts: service.facts.clone(), started: 0 })
                .collect(),
            numbers: numbers.collect(),
            pods: BTreeMap::new(),
            names: BTreeMap::new(),
            started: 0,
        }
    }

    pub(crate) fn service(&self, name: &RevisionName) -> Option<ServiceNumber> {
        self.numbers.get(name).copied()
    }

    pub(crate) fn facts(&self, service: ServiceNumber) -> &RevisionFacts {
        &self.services[service.0].facts
    }

    /// A pod of the Service was ready: the Service is new no more.
    pub(crate) fn note_ready(&mut self, service: ServiceNumber) {
        self.services[service.0].facts.origin = RevisionOrigin::Found;
    }

    pub(crate) fn pod(&self, pod: PodNumber) -> Option<&SimulatedPod> {
        self.pods.get(&pod)
    }

    pub(crate) fn pod_mut(&mut self, pod: PodNumber) -> Option<&mut SimulatedPod> {
        self.pods.get_mut(&pod)
    }

    pub(crate) fn pod_named(&self, name: &PodName) -> Option<PodNumber> {
        self.names.get(name).copied()
    }

    /// The fact by which the owner hears of a Service.
    pub(crate) fn fact_of_service(&self, service: ServiceNumber) -> PlatformFact {
        PlatformFact::RevisionChanged(Arc::new(self.facts(service).clone()))
    }

    /// The fact by which the owner hears of the pods of a Service.
    pub(crate) fn fact_of_pods(&self, service: ServiceNumber) -> PlatformFact {
        let mut pods: Vec<_> = self.pods_of(service).map(SimulatedPod::facts).collect();
        pods.sort_by(|one, other| one.name.cmp(&other.name));
        PlatformFact::PodsChanged { revision: self.facts(service).name.clone(), pods }
    }

    /// Takes the order of a count, and gives the pods that start for it. Which pods end first is the order's
    /// to say, of those that are ready.
    pub(crate) fn scale(
        &mut self,
        service: ServiceNumber,
        count: PodCount,
        end_first: &[PodName],
        now: Timestamp,
    ) -> Vec<StartedPod> {
        self.services[service.0].facts.wanted = count;
        let mut wanted: Vec<&mut SimulatedPod> = self
            .pods
            .values_mut()
            .filter(|pod| pod.service == service && pod.departure == PodDeparture::NotPlanned)
            .collect();
        let surplus = wanted.len().saturating_sub(count.as_usize());
        let missing = count.as_usize().saturating_sub(wanted.len());
        let place = |name: &PodName| end_first.iter().position(|first| first == name).unwrap_or(usize::MAX);
        wanted.sort_by_key(|pod| (pod.has_started(), place(&pod.name), Reverse(pod.number)));
        for pod in wanted.into_iter().take(surplus) {
            pod.departure = PodDeparture::Announced;
        }
        (0..missing).map(|_| self.start(service, now)).collect()
    }

    fn start(&mut self, service: ServiceNumber, now: Timestamp) -> StartedPod {
        self.started += 1;
        let pod = PodNumber(self.started);
        let PlatformService { facts, started } = &mut self.services[service.0];
        *started += 1;
        let of_service = *started;
        let name = PodName::new(&format!("{}-{:06}", facts.name.name(), pod.0));
        let terms = PodTerms { container_concurrency: facts.container_concurrency, timeouts: facts.timeouts };
        self.names.insert(name.clone(), pod);
        self.pods.insert(pod, SimulatedPod::new(pod, service, name, terms, now));
        StartedPod { pod, of_service }
    }

    /// The owner says that a pod may end, which drains from now on. `None` if the pod is gone, or is wanted.
    pub(crate) fn release(&mut self, name: &PodName) -> Option<&mut SimulatedPod> {
        let number = self.names.get(name)?;
        let pod = self.pods.get_mut(number)?;
        if pod.departure != PodDeparture::Announced {
            return None;
        }
        pod.departure = PodDeparture::Draining;
        Some(pod)
    }

    /// A pod is gone for ever.
    pub(crate) fn remove(&mut self, pod: PodNumber) -> Option<SimulatedPod> {
        let removed = self.pods.remove(&pod)?;
        self.names.remove(&removed.name);
        Some(removed)
    }

    /// All pods in the order of their numbers, those that leave too.
    pub(crate) fn pods(&self) -> impl Iterator<Item = &SimulatedPod> {
        self.pods.values()
    }

    /// The pods of a Service, those that leave too.
    pub(crate) fn pods_of(&self, service: ServiceNumber) -> impl Iterator<Item = &SimulatedPod> {
        self.pods.values().filter(move |pod| pod.service == service)
    }
}
