//! What happens in a second, when its requests are too many to follow each?
//!
//! Per Service and second the arrivals are drawn at once, and what runs and waits follows as a fluid: a
//! request occupies its pods in the second of its beginning and in those after by the profile of all service
//! times, and requests begin in the order of arrival as far as the slots of the ready pods go. Requests that
//! come one by one are followed one by one, with the arrivals and service times of the exact world.
//!
//! ```text
//!   arrivals ──► backlog ──► begin, as slots are free ──► running, second by second
//! ```
//!
//! The control loop, the links, the platform and the activator's dealing with assignments are those of the
//! exact world: what the fluid says takes the place of the numbers that pods and the activator would have
//! measured. Left out are surges that pods see past the activator, and that a pod ends only with its last
//! request.

pub(crate) mod capacity;
mod occupancy;
mod second_arrivals;
mod service;
mod surge;

pub(crate) use service::{FluidService, MeasuredSecond};

use crate::random::RandomStream;
use crate::scenario::Scenario;
use occupancy::OccupancyProfile;

/// The fluids of all Services of a scenario, in its order.
pub(crate) fn services(scenario: &Scenario) -> Vec<FluidService> {
    let mut services: Vec<FluidService> = Vec::with_capacity(scenario.services.len());
    let mut last: Option<OccupancyProfile> = None;
    for (place, service) in scenario.services.iter().enumerate() {
        // Most scenarios have one service time for all Services, and its profile takes thousands of draws.
        let is_as_before = place > 0 && scenario.services[place - 1].service_time == service.service_time;
        let profile = last.take().filter(|_| is_as_before).unwrap_or_else(|| {
            let mut draws = RandomStream::of(scenario.seed, "fluid", "occupancy");
            OccupancyProfile::of(&service.service_time, &mut draws)
        });
        services.push(FluidService::new(service, scenario, profile.clone()));
        last = Some(profile);
    }
    services
}
