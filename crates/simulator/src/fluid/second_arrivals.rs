//! What arrives in a second?
//!
//! A load that is sparse, irregular or listed is followed request by request, as in the exact world. Of one
//! that is known by its rate, or by a number for each bin, only the number in each second is drawn, and some
//! parts of the second have each their share.

use std::sync::Arc;
use std::time::Duration;

use super::occupancy::OccupancyProfile;
use crate::arrivals::ArrivalProcess;
use crate::fleet_load::member_load;
use crate::load_file::LoadFile;
use crate::load_shape::LoadShape;
use crate::measured_load::SECOND;
use crate::random::RandomStream;
use crate::rate_curve::RateCurve;
use crate::rounding::whole_part;
use crate::scenario::{Scenario, ServiceScenario};
use crate::time_distribution::TimeDistribution;

/// Up to so many requests in a second are followed one by one.
const FOLLOWED_MAX: u32 = 4;
/// More requests in a second are so many groups.
const GROUPS: u32 = 4;
/// No second has more than so many times the work that its number of requests has on average.
const SCALE_MAX: f64 = 4.0;

/// Requests that arrive together, or one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ArrivalGroup {
    /// Seconds since the load began, until the first arrives.
    pub(crate) at: f64,
    /// The seconds over which the requests are spread.
    pub(crate) span: f64,
    pub(crate) requests: u32,
    pub(crate) work: GroupWork,
}

impl ArrivalGroup {
    /// When the middle one arrives of the first so many requests.
    pub(crate) fn middle_of(&self, count: u32) -> f64 {
        self.at + self.span * self.part_of(count) / 2.0
    }

    /// How many requests have arrived by a time.
    pub(crate) fn arrived_by(&self, now: f64) -> f64 {
        if now < self.at {
            return 0.0;
        }
        let part = if self.span > 0.0 { ((now - self.at) / self.span).min(1.0) } else { 1.0 };
        f64::from(self.requests) * part
    }

    /// Takes the first so many requests away.
    pub(crate) fn take(&mut self, count: u32) {
        let part = self.part_of(count);
        self.at += self.span * part;
        self.span *= 1.0 - part;
        self.requests = self.requests.saturating_sub(count);
    }

    fn part_of(&self, count: u32) -> f64 {
        f64::from(count) / f64::from(self.requests.max(1))
    }
}

/// How much work each request of a group is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum GroupWork {
    /// So many seconds for each.
    Known(f64),
    /// So many times that of the Service's profile.
    Typical(f64),
}

/// How many clients of a closed load may send a request in a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientRoom {
    /// Requests that wait for a slot.
    pub(crate) waiting: f64,
    /// Requests that run at present.
    pub(crate) running: f64,
    /// Slots of the pods that are ready; infinite without a limit.
    pub(crate) slots: f64,
}

/// The arrivals of one Service, second by second.
#[derive(Debug)]
pub(crate) struct SecondArrivals {
    source: ArrivalSource,
    service_time: TimeDistribution,
    /// The standard deviation of service times as a part of their mean.
    variation: f64,
    works: RandomStream,
    counts: RandomStream,
}

/// Where the arrivals of a second come from.
#[derive(Debug)]
enum ArrivalSource {
    Nothing,
    Single { process: Box<ArrivalProcess>, next: Option<TimedArrival> },
    Rate(RateCurve),
    Bins(BinnedCounts),
    Clients(ClientLoop),
}

/// One arrival of a load that is followed.
#[derive(Clone, Copy, Debug)]
struct TimedArrival {
    at: Duration,
    work: Option<Duration>,
}

impl TimedArrival {
    fn next_of(process: &mut ArrivalProcess) -> Option<Self> {
        let at = process.next()?;
        Some(Self { at, work: process.service_time() })
    }
}

impl SecondArrivals {
    pub(crate) fn new(service: &ServiceScenario, scenario: &Scenario, profile: &OccupancyProfile) -> Self {
        let entity = service.facts.name.as_str();
        let source = match &service.load {
            Some(LoadShape::Fleet { most }) => {
                let load = member_load(scenario.seed, entity, *most);
                ArrivalSource::new(&load, entity, scenario, profile)
            }
            Some(load) => ArrivalSource::new(load, entity, scenario, profile),
            None => ArrivalSource::Nothing,
        };
        Self {
            source,
            service_time: service.service_time.clone(),
            variation: profile.variation(),
            // The stream of the exact world, so that requests that are followed have the work of there.
            works: RandomStream::of(scenario.seed, entity, "service-time"),
            counts: RandomStream::of(scenario.seed, entity, "fluid-arrivals"),
        }
    }

    /// Adds the arrivals of the second that begins then, in the order of time.
    pub(crate) fn draw(&mut self, begins: f64, room: ClientRoom, groups: &mut Vec<ArrivalGroup>) {
        let count = match &mut self.source {
            ArrivalSource::Nothing => 0,
            ArrivalSource::Single { process, next } => {
                while let Some(arrival) = next.filter(|arrival| arrival.at.as_secs_f64() < begins + 1.0) {
                    let work = arrival.work.unwrap_or_else(|| self.service_time.draw(&mut self.works));
                    add_single(arrival.at.as_secs_f64(), work, groups);
                    *next = TimedArrival::next_of(process);
                }
                0
            }
            ArrivalSource::Rate(curve) => self.counts.poisson_at_once(curve.rate_at(begins + 0.5)),
            ArrivalSource::Bins(bins) => bins.draw(begins, &mut self.counts),
            ArrivalSource::Clients(clients) => clients.count(room),
        };
        self.spread(count, begins, groups);
    }

    /// Whether each request is followed.
    pub(crate) fn are_followed(&self) -> bool {
        matches!(self.source, ArrivalSource::Single { .. })
    }

    /// The mean rate in the second that was drawn last, of a load that is known by its rate.
    pub(crate) fn rate(&self, begins: f64) -> Option<f64> {
        match &self.source {
            ArrivalSource::Rate(curve) => Some(curve.rate_at(begins + 0.5)),
            ArrivalSource::Bins(bins) => Some(bins.rate),
            ArrivalSource::Nothing | ArrivalSource::Single { .. } | ArrivalSource::Clients(_) => None,
        }
    }

    /// Spreads so many requests over a second.
    fn spread(&mut self, count: u32, begins: f64, groups: &mut Vec<ArrivalGroup>) {
        if count <= FOLLOWED_MAX {
            let first = groups.len();
            for _ in 0..count {
                let work = self.service_time.draw(&mut self.works);
                add_single(begins + self.counts.unit(), work, groups);
            }
            return groups[first..].sort_by(|one, other| one.at.total_cmp(&other.at));
        }
        // The mean of so many service times varies less than one of them, by the root of their number.
        let deviation = self.variation / libm::sqrt(f64::from(count));
        let scale = (1.0 + deviation * self.counts.normal()).clamp(0.0, SCALE_MAX);
        for place in 0..GROUPS {
            let span = 1.0 / f64::from(GROUPS);
            let requests = count / GROUPS + u32::from(place < count % GROUPS);
            let at = begins + f64::from(place) * span;
            groups.push(ArrivalGroup { at, span, requests, work: GroupWork::Typical(scale) });
        }
    }
}

/// Adds one request, to the last group if that has arrived at the same time with as much work.
fn add_single(at: f64, work: Duration, groups: &mut Vec<ArrivalGroup>) {
    let work = GroupWork::Known(work.as_secs_f64());
    match groups.last_mut() {
        Some(last) if last.at == at && last.work == work => last.requests = last.requests.saturating_add(1),
        Some(_) | None => groups.push(ArrivalGroup { at, span: 0.0, requests: 1, work }),
    }
}

impl ArrivalSource {
    fn new(load: &LoadShape, entity: &str, scenario: &Scenario, profile: &OccupancyProfile) -> Self {
        let followed_max = f64::from(FOLLOWED_MAX);
        match load {
            LoadShape::Curve(curve) if curve.most() > followed_max => Self::Rate(*curve),
            LoadShape::File(LoadFile::Counts { bin, counts })
                if *bin >= SECOND && busiest(*bin, counts) > followed_max =>
            {
                Self::Bins(BinnedCounts::new(*bin, counts))
            }
            LoadShape::Measured(load) if busiest(SECOND, &load.counts) > followed_max => {
                Self::Bins(BinnedCounts::new(SECOND, &load.counts))
            }
            LoadShape::Clients { clients, pause } => {
                // A request is two messages on its way there and two back, from client to activator to pod.
                let cycle =
                    profile.mean() + pause.as_secs_f64() + 4.0 * scenario.delays.request.as_secs_f64();
                Self::Clients(ClientLoop { clients: f64::from(*clients), cycle, rest: 0.0 })
            }
            LoadShape::Curve(_)
            | LoadShape::Bursty { .. }
            | LoadShape::Timer { .. }
            | LoadShape::Sparse { .. }
            | LoadShape::Fleet { .. }
            | LoadShape::File(_)
            | LoadShape::Measured(_) => match ArrivalProcess::new(load, scenario.seed, entity) {
                Some(mut process) => {
                    let next = TimedArrival::next_of(&mut process);
                    Self::Single { process: Box::new(process), next }
                }
                None => Self::Nothing,
            },
        }
    }
}

/// The greatest mean rate of a bin.
fn busiest(bin: Duration, counts: &[u32]) -> f64 {
    f64::from(counts.iter().copied().max().unwrap_or_default()) / bin.as_secs_f64()
}

/// The numbers of bins, of which each second takes its part.
#[derive(Debug)]
struct BinnedCounts {
    bin: f64,
    counts: Arc<[u32]>,
    /// The place of the bin after the present one.
    next: usize,
    ends: f64,
    left: u32,
    /// Requests a second, in the second that was drawn last.
    rate: f64,
}

impl BinnedCounts {
    fn new(bin: Duration, counts: &Arc<[u32]>) -> Self {
        Self { bin: bin.as_secs_f64(), counts: Arc::clone(counts), next: 0, ends: 0.0, left: 0, rate: 0.0 }
    }

    /// The requests of the second that begins then. Each bin has its number in all: its last second has what
    /// is left.
    fn draw(&mut self, begins: f64, draws: &mut RandomStream) -> u32 {
        let mut requests = 0_u32;
        while begins >= self.ends {
            requests = requests.saturating_add(self.left);
            let Some(&count) = self.counts.get(self.next) else {
                (self.left, self.rate) = (0, 0.0);
                return requests;
            };
            self.left = count;
            self.next += 1;
            self.ends += self.bin;
        }
        let seconds = self.ends - begins;
        self.rate = f64::from(self.left) / seconds.max(1.0);
        let part = if seconds <= 1.0 { self.left } else { draws.poisson_at_once(self.rate).min(self.left) };
        self.left -= part;
        requests.saturating_add(part)
    }
}

/// Clients that wait for each answer.
#[derive(Debug)]
struct ClientLoop {
    clients: f64,
    /// The seconds from a request of a client to the next, without waits.
    cycle: f64,
    /// The part of a request that earlier seconds have left.
    rest: f64,
}

impl ClientLoop {
    /// How many requests the clients send in a second: each that does not wait sends one in each cycle. Where
    /// slots are lacking, all clients wait that have none, and each slot that becomes free lets one go on.
    fn count(&mut self, room: ClientRoom) -> u32 {
        let active = (self.clients - room.waiting).max(0.0);
        let by_cycle = active / self.cycle.max(1e-6);
        let limit = if room.slots <= 0.0 {
            (active - room.running).max(0.0)
        } else {
            (active - room.slots).max(0.0) + room.slots / self.cycle.max(1e-6)
        };
        let exact = by_cycle.min(limit) + self.rest;
        let count = whole_part(exact);
        self.rest = exact - f64::from(count);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bin_has_its_number_in_its_seconds() {
        let counts: Arc<[u32]> = [600, 0, 90].into();
        let mut bins = BinnedCounts::new(Duration::from_secs(10), &counts);
        let mut draws = RandomStream::of(7, "hello", "counts");
        let found: Vec<u32> = (0..35_u32).map(|second| bins.draw(f64::from(second), &mut draws)).collect();
        let sum = |seconds: std::ops::Range<usize>| found[seconds].iter().sum::<u32>();
        assert_eq!((sum(0..10), sum(10..20), sum(20..30), sum(30..35)), (600, 0, 90, 0));
        assert!(found[..10].iter().all(|count| (20..=100).contains(count)), "{found:?}");
    }

    #[test]
    fn clients_keep_their_number_of_requests_under_way() {
        let mut clients = ClientLoop { clients: 50.0, cycle: 0.1, rest: 0.0 };
        let unlimited = ClientRoom { waiting: 0.0, running: 50.0, slots: f64::INFINITY };
        assert_eq!(clients.count(unlimited), 500);
        // Eight slots: 42 wait, and each slot serves ten requests a second.
        assert_eq!(clients.count(ClientRoom { waiting: 42.0, running: 8.0, slots: 8.0 }), 80);
        assert_eq!(clients.count(ClientRoom { waiting: 50.0, running: 0.0, slots: 0.0 }), 0);
        assert_eq!(clients.count(ClientRoom { waiting: 0.0, running: 0.0, slots: 0.0 }), 50);
    }
}
