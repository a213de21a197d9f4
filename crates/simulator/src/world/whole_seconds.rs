//! The world by whole seconds: what clients, queues and apps would have done is a fluid, and all else goes on
//! as in the exact world.
//!
//! A second ends with the activator's. The words of pods and of the activator are theirs, with the loads of
//! the fluid in place of what they have measured, which is nothing.

use std::time::Duration;

use throttling::ActivatorEvent;
use vocabulary::{
    ActivatorWord, Concurrency, Load, PodState, PresentCount, RequestRate, RevisionLoad, Routing, Timestamp,
};

use super::{LOAD_BEGINS, World};
use crate::fluid::MeasuredSecond;
use crate::world_event::{FluidSurge, ServiceNumber, WorldEvent};

impl World {
    /// The second of every fluid ends, and the next one begins.
    pub(super) fn fluid_second_ends(&mut self) {
        if self.now > LOAD_BEGINS {
            for (fluid, tally) in self.fluids.iter_mut().zip(&mut self.tallies) {
                fluid.close_second(tally);
            }
        }
        if self.now < LOAD_BEGINS || self.now >= self.ends {
            return;
        }
        let begins = seconds_of_load(self.now);
        for (service, fluid) in (0..).map(ServiceNumber).zip(&mut self.fluids) {
            for surge in fluid.begin_second(begins) {
                let after = Duration::try_from_secs_f64(surge.at).unwrap_or(Duration::MAX);
                self.queue.push(LOAD_BEGINS + after, WorldEvent::SurgeComes(service, surge));
            }
        }
    }

    /// The activator holds more than its pods can take: as the program does, it says so at once.
    pub(super) fn surge_comes(&mut self, service: ServiceNumber, surge: FluidSurge) {
        let Some(fluid) = self.fluids.get(service.0) else { return };
        let through = self.routing_of(service.0) == Routing::ThroughActivator;
        if fluid.pods() != surge.pods || !(through || surge.pods == 0) {
            return;
        }
        let word = ActivatorWord::Present {
            revision: self.names[service.0].clone(),
            count: PresentCount { in_flight: surge.held, waiting: surge.waiting },
            oldest_wait: Duration::ZERO,
        };
        if let Some(link) = self.owner.link_of_activator() {
            self.send_to_owner(link, word);
        }
    }

    /// The activator has been told something of a revision: its fluid knows its pods as the activator does.
    pub(super) fn refresh_pods(&mut self, service: ServiceNumber) {
        let Some(fluid) = self.fluids.get_mut(service.0) else { return };
        let Some(known) = self.activator.end.cell(&self.names[service.0]) else { return };
        let pods = &known.assignment().pods;
        let mut ready = pods.iter().filter(|pod| pod.state == PodState::Ready).peekable();
        let slots_of_each = ready.peek().map_or(0, |pod| pod.slots);
        let count = u32::try_from(ready.count()).unwrap_or(u32::MAX);
        fluid.set_pods(count, slots_of_each, seconds_of_load(self.now));
    }

    /// A word of the activator, with the loads of the fluids.
    pub(super) fn with_fluid_loads(&self, word: ActivatorWord) -> ActivatorWord {
        match word {
            ActivatorWord::Loads { second, .. } if !self.fluids.is_empty() => {
                let mut loads: Vec<RevisionLoad> =
                    (0..self.fluids.len()).filter_map(|place| self.activator_load(place)).collect();
                loads.sort_by(|one, other| one.revision.cmp(&other.revision));
                ActivatorWord::Loads { second, loads }
            }
            ActivatorWord::Hello(_)
            | ActivatorWord::Loads { .. }
            | ActivatorWord::Present { .. }
            | ActivatorWord::Acknowledged { .. }
            | ActivatorWord::Emptied { .. }
            | ActivatorWord::Draining => word,
        }
    }

    /// What the activator measured of a revision; `None` if that is nothing.
    fn activator_load(&self, place: usize) -> Option<RevisionLoad> {
        let second = self.fluids[place].measured();
        let on_the_way = match self.routing_of(place) {
            Routing::ThroughActivator => {
                let messages = 2.0 * self.delays.request.as_secs_f64();
                second.running + f64::from(second.arrived) * messages
            }
            Routing::Direct => 0.0,
        };
        let arrived = match self.routing_of(place) {
            Routing::ThroughActivator => second.arrived,
            // Past a queue in which nothing waits requests go without the activator's counting them.
            Routing::Direct if second.waiting > 0.0 => second.arrived,
            Routing::Direct => 0,
        };
        let load = Load {
            concurrency: Concurrency::clamped(second.waiting + on_the_way),
            request_rate: RequestRate::clamped(f64::from(arrived)),
            queued: second.queued,
            ..Load::default()
        };
        let revision = self.names[place].clone();
        let (oldest_wait, callers) = (second.oldest_wait, Vec::new());
        (!load.is_zero()).then_some(RevisionLoad { revision, load, oldest_wait, callers })
    }

    fn routing_of(&self, place: usize) -> Routing {
        let known = self.activator.end.cell(&self.names[place]);
        known.map_or(Routing::ThroughActivator, |known| known.assignment().routing)
    }

    /// What a pod of a fluid measured; `None` in the exact world.
    pub(super) fn fluid_load_of_pod(&self, service: ServiceNumber, state: PodState) -> Option<Load> {
        let second = self.fluids.get(service.0)?.measured();
        let load = match state {
            PodState::Ready => load_of_one_pod(second, self.routing_of(service.0)),
            PodState::Unheard | PodState::Starting | PodState::Unready | PodState::Draining => {
                Load::default()
            }
        };
        Some(load)
    }

    /// The Service that a word for the activator is about, if the word names pods.
    pub(super) fn service_assigned_by(&self, event: &ActivatorEvent) -> Option<ServiceNumber> {
        if let ActivatorEvent::Assigned { assignment, .. } = event {
            self.platform.service(&assignment.revision)
        } else {
            None
        }
    }
}

/// The pods share what runs evenly.
fn load_of_one_pod(second: &MeasuredSecond, routing: Routing) -> Load {
    let pods = f64::from(second.pods.max(1));
    let concurrency = Concurrency::clamped(second.running / pods);
    let request_rate = RequestRate::clamped(f64::from(second.arrived) / pods);
    let direct = Load { concurrency, request_rate, ..Load::default() };
    match routing {
        Routing::Direct => direct,
        Routing::ThroughActivator => {
            Load { proxied_concurrency: concurrency, proxied_request_rate: request_rate, ..direct }
        }
    }
}

fn seconds_of_load(now: Timestamp) -> f64 {
    now.saturating_since(LOAD_BEGINS).as_secs_f64()
}
