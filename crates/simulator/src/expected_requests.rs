//! How many requests does a scenario have, about?

use std::time::Duration;

use crate::fleet_load::member_load;
use crate::load_file::LoadFile;
use crate::load_shape::LoadShape;
use crate::measured_load::SECOND;
use crate::rate_curve::RateCurve;
use crate::rounding::real;
use crate::scenario::{Scenario, ServiceScenario};

/// More requests than these take hours to follow one by one.
pub const FOLLOWED_REQUESTS_MAX: f64 = 1e9;
/// The rate of a curve is looked at so many times.
const LOOKS: u32 = 1_000;

impl Scenario {
    /// The number of requests to expect: enough to tell whether following each would take hours.
    pub fn expected_requests(&self) -> f64 {
        self.services.iter().map(|service| self.of_service(service)).sum()
    }

    fn of_service(&self, service: &ServiceScenario) -> f64 {
        match &service.load {
            Some(LoadShape::Fleet { most }) => {
                let load = member_load(self.seed, service.facts.name.as_str(), *most);
                self.of_load(&load, service)
            }
            Some(load) => self.of_load(load, service),
            None => 0.0,
        }
    }

    fn of_load(&self, load: &LoadShape, service: &ServiceScenario) -> f64 {
        let length = self.length.as_secs_f64();
        match load {
            LoadShape::Curve(curve) => of_curve(curve, length),
            LoadShape::Bursty { rate, burst, every, length: burst_length } => {
                let burst_length = burst_length.as_secs_f64();
                let cycle = every.as_secs_f64() + burst_length;
                length * (rate.value() * every.as_secs_f64() + burst.value() * burst_length) / cycle
            }
            LoadShape::Timer { every, requests } | LoadShape::Sparse { every, requests } => {
                length / every.as_secs_f64() * f64::from(*requests)
            }
            LoadShape::Clients { clients, pause } => {
                let cycle = service.service_time.mean() + pause.as_secs_f64();
                length / (cycle + 4.0 * self.delays.request.as_secs_f64()) * f64::from(*clients)
            }
            LoadShape::File(file) => of_file(file, self.length),
            LoadShape::Measured(load) => of_bins(SECOND, &load.counts, self.length),
            // A fleet is resolved into the load of one Service before.
            LoadShape::Fleet { .. } => 0.0,
        }
    }
}

fn of_curve(curve: &RateCurve, length: f64) -> f64 {
    let step = length / f64::from(LOOKS);
    (0..LOOKS).map(|look| curve.rate_at((f64::from(look) + 0.5) * step) * step).sum()
}

fn of_file(file: &LoadFile, length: Duration) -> f64 {
    match file {
        LoadFile::Counts { bin, counts } => of_bins(*bin, counts, length),
        LoadFile::Requests(requests) => {
            let count = requests.partition_point(|request| request.at < length);
            real(u64::try_from(count).unwrap_or(u64::MAX))
        }
    }
}

fn of_bins(bin: Duration, counts: &[u32], length: Duration) -> f64 {
    let bins = (0_u32..).zip(counts).take_while(|(place, _)| bin.saturating_mul(*place) < length);
    bins.map(|(_, count)| f64::from(*count)).sum()
}
