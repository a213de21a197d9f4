//! One pod: an app, and the breaker and the meter of its queue-proxy.
//!
//! The breaker and the meter are those of the queue-proxy. Restated here is how the queue-proxy uses them,
//! and when it says its present count before a second is over (`queue-proxy/src/load.rs`), because there they
//! hang on sockets and a clock.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use orchestration::{LinkId, PodFacts};
use scaling::PodPhase;
use throttling::{Arrival, Breaker, BreakerLimits, LoadMeter, Origin, ReporterSeconds, Ticket};
use vocabulary::{
    BootId, LinkVersion, PodExits, PodHello, PodName, PodSettings, PodState, PresentCount, RequestTimeouts,
    Sample, Slice, Timestamp, Version,
};

use crate::world_event::{PodNumber, SeatedRequest, ServiceNumber, SimulatedSeat};

/// How many requests may wait in a pod for each one that runs.
const DEPTH_PER_SLOT: u32 = 10;
/// A pod says so many of its latest seconds on a new link.
const HISTORY: usize = 60;
/// The least time between two present counts of a pod.
const PRESENT_EVERY: Duration = Duration::from_millis(100);

/// How far a pod's departure has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodDeparture {
    NotPlanned,
    /// The pod is not wanted any more, and the activator is being told.
    Announced,
    /// The pod ends as soon as it holds no request.
    Draining,
}

/// The way of a request that reaches a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodAdmission {
    Runs,
    Waits,
    /// The queue of the pod is full.
    Full,
    /// No slot is free, and the request must not wait.
    NoRoom,
}

/// One pod, from its order to its end.
#[derive(Debug)]
pub(crate) struct SimulatedPod {
    pub(crate) number: PodNumber,
    pub(crate) service: ServiceNumber,
    pub(crate) name: PodName,
    pub(crate) departure: PodDeparture,
    /// The link to the owner, once it stands.
    pub(crate) link: Option<LinkId>,
    /// Whether the report counts the pod as idle now.
    pub(crate) is_counted_idle: bool,
    container_concurrency: u32,
    timeouts: RequestTimeouts,
    has_started: bool,
    probe: ProbeOutcome,
    /// `None` where the app takes any number of requests at once.
    breaker: Option<Breaker>,
    waiting: BTreeMap<Ticket, SeatedRequest>,
    /// Of the requests that wait: those that came past the activator's queue.
    direct_waiting: u32,
    meter: LoadMeter,
    seconds: ReporterSeconds,
    open_second: u64,
    /// The latest seconds that are over, oldest first.
    history: VecDeque<Sample>,
    settings_version: Version,
    presence: PresenceReport,
}

/// What the probe of a started app says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeOutcome {
    Passes,
    Fails,
}

/// When the owner wants to hear of the present count before the second is over.
#[derive(Clone, Copy, Debug, Default)]
struct PresenceReport {
    threshold: Option<u32>,
    /// The count that was reported last; 0 once one below the threshold was.
    reported: u32,
    next_at: Timestamp,
    is_planned: bool,
}

impl PresenceReport {
    fn is_surge(&self, present: u32) -> bool {
        self.threshold.is_some_and(|threshold| present >= threshold.max(1))
    }

    fn is_due(&self, present: u32) -> bool {
        self.is_surge(present) || present < self.reported
    }
}

/// The settings with which the queue-proxy of a pod is started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PodTerms {
    /// The most requests that run at once; 0 means no limit.
    pub(crate) container_concurrency: u32,
    pub(crate) timeouts: RequestTimeouts,
}

impl SimulatedPod {
    /// A pod that was just ordered.
    pub(crate) fn new(
        number: PodNumber,
        service: ServiceNumber,
        name: PodName,
        terms: PodTerms,
        now: Timestamp,
    ) -> Self {
        let PodTerms { container_concurrency, timeouts } = terms;
        let breaker = (container_concurrency > 0).then(|| {
            let limits = BreakerLimits {
                depth: container_concurrency.saturating_mul(DEPTH_PER_SLOT),
                capacity_max: container_concurrency,
                capacity: container_concurrency,
            };
            Breaker::new(limits).expect("depth and capacity are above zero")
        });
        Self {
            number,
            service,
            name,
            departure: PodDeparture::NotPlanned,
            link: None,
            is_counted_idle: false,
            container_concurrency,
            timeouts,
            has_started: false,
            probe: ProbeOutcome::Passes,
            breaker,
            waiting: BTreeMap::new(),
            direct_waiting: 0,
            meter: LoadMeter::new(now),
            seconds: ReporterSeconds::since(now),
            open_second: 0,
            history: VecDeque::new(),
            settings_version: Version::default(),
            presence: PresenceReport::default(),
        }
    }

    /// The pod as its platform states it.
    pub(crate) fn facts(&self) -> PodFacts {
        let leaving = self.is_leaving();
        PodFacts {
            name: self.name.clone(),
            phase: if leaving { PodPhase::Terminating } else { PodPhase::Running },
            leaving,
            ends_in: None,
            platform_ready: None,
            requests: Some(self.number.address()),
            exits: PodExits::default(),
            link: Some(self.number.address().into()),
            adoption: None,
            outdated: false,
            awaits_core: false,
            trouble: None,
            trouble_without_output: None,
            hold: None,
            details: BTreeMap::new(),
        }
    }

    /// The first word of the pod on a link, with its latest seconds: an owner that begins has none of them.
    pub(crate) fn hello(&self) -> PodHello {
        PodHello {
            speaks: LinkVersion::CURRENT,
            pod: self.name.clone(),
            boot: BootId(u64::from(self.number.0)),
            state: self.state(),
            detail: String::new(),
            container_concurrency: self.container_concurrency,
            timeouts: self.timeouts,
            current_second: self.open_second,
            history: self.history.iter().copied().collect(),
        }
    }

    pub(crate) fn state(&self) -> PodState {
        match (self.departure, self.has_started, self.probe) {
            (PodDeparture::Draining, _, _) => PodState::Draining,
            (PodDeparture::NotPlanned | PodDeparture::Announced, false, _) => PodState::Starting,
            (PodDeparture::NotPlanned | PodDeparture::Announced, true, ProbeOutcome::Passes) => {
                PodState::Ready
            }
            (PodDeparture::NotPlanned | PodDeparture::Announced, true, ProbeOutcome::Fails) => {
                PodState::Unready
            }
        }
    }

    /// From now on the probe of the app says so.
    pub(crate) fn probed(&mut self, probe: ProbeOutcome) {
        self.probe = probe;
    }

    /// The version of the settings that are in force.
    pub(crate) fn settings_version(&self) -> Version {
        self.settings_version
    }

    /// Whether the platform wants the pod gone.
    pub(crate) fn is_leaving(&self) -> bool {
        self.departure != PodDeparture::NotPlanned
    }

    pub(crate) fn start(&mut self) {
        self.has_started = true;
    }

    pub(crate) fn has_started(&self) -> bool {
        self.has_started
    }

    /// Whether the pod could serve and holds no request.
    pub(crate) fn is_idle(&self) -> bool {
        self.has_started && self.holds_nothing()
    }

    pub(crate) fn holds_nothing(&self) -> bool {
        self.meter.present().in_flight == 0
    }

    /// A request came from the activator.
    pub(crate) fn arrive(&mut self, mut seated: SeatedRequest, now: Timestamp) -> PodAdmission {
        let origin = seated.origin();
        self.meter.arrived(origin, now);
        let Some(breaker) = &mut self.breaker else { return PodAdmission::Runs };
        let must_not_wait = match seated.seat {
            SimulatedSeat::Queue(dispatch) => dispatch.slice != Slice::Undivided,
            SimulatedSeat::Direct(_) => false,
        };
        if must_not_wait {
            if breaker.try_admit() {
                return PodAdmission::Runs;
            }
            self.meter.finished(origin, now);
            return PodAdmission::NoRoom;
        }
        match breaker.arrive() {
            Arrival::Admitted => PodAdmission::Runs,
            Arrival::Queued(ticket) => {
                seated.request.joins_queue(now);
                self.waiting.insert(ticket, seated);
                self.direct_waiting += u32::from(origin == Origin::Direct);
                PodAdmission::Waits
            }
            Arrival::Refused => {
                self.meter.finished(origin, now);
                PodAdmission::Full
            }
        }
    }

    /// A request that ran is over. Its slot goes to the returned request, which runs from now on.
    pub(crate) fn finish(&mut self, origin: Origin, now: Timestamp) -> Option<SeatedRequest> {
        self.meter.finished(origin, now);
        let ticket = self.breaker.as_mut()?.release()?;
        let mut next = self.waiting.remove(&ticket)?;
        next.request.leaves_queue(now);
        self.direct_waiting -= u32::from(next.origin() == Origin::Direct);
        Some(next)
    }

    /// The requests that waited in the pod when it was killed.
    pub(crate) fn into_waiting(self) -> impl Iterator<Item = SeatedRequest> {
        self.waiting.into_values()
    }

    /// Ends the second that is open.
    pub(crate) fn close_second(&mut self, now: Timestamp) -> Sample {
        let ended = self.seconds.ended(self.open_second, now);
        let mut load = self.meter.close_seconds(ended.count(), now);
        load.queued = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        let sample = Sample { second: self.open_second, load };
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(sample);
        self.open_second = ended.next();
        sample
    }

    /// When the second that is open ends.
    pub(crate) fn second_ends_at(&self) -> Timestamp {
        self.seconds.beginning_of(self.open_second + 1)
    }

    /// Takes over settings, unless newer ones are in force. Returns whether it did.
    pub(crate) fn set(&mut self, settings: &PodSettings) -> bool {
        let is_newer = settings.version > self.settings_version;
        if is_newer {
            self.settings_version = settings.version;
            self.presence.threshold = settings.surge_threshold;
            self.presence.reported = 0;
        }
        is_newer
    }

    /// When the present count is to be said, if that is not planned yet; it is planned from now on.
    pub(crate) fn plan_present(&mut self, now: Timestamp) -> Option<Timestamp> {
        let is_wanted = self.link.is_some() && self.presence.is_due(self.present_count().in_flight);
        if !is_wanted || self.presence.is_planned {
            return None;
        }
        self.presence.is_planned = true;
        Some(now.max(self.presence.next_at))
    }

    /// The present count, if it is to be said now; the plan for it is over.
    pub(crate) fn take_present(&mut self, now: Timestamp) -> Option<PresentCount> {
        self.presence.is_planned = false;
        let count = self.present_count();
        if !self.presence.is_due(count.in_flight) {
            return None;
        }
        self.presence.reported = if self.presence.is_surge(count.in_flight) { count.in_flight } else { 0 };
        self.presence.next_at = now + PRESENT_EVERY;
        Some(count)
    }

    /// The present count without requests that the activator counts.
    fn present_count(&self) -> PresentCount {
        let present = self.meter.present();
        let in_flight = present.in_flight.saturating_sub(present.proxied);
        PresentCount { in_flight, waiting: self.direct_waiting }
    }
}

#[cfg(test)]
mod tests {
    use throttling::DirectPick;
    use vocabulary::PodId;

    use super::*;
    use crate::world_event::SimulatedRequest;

    fn pod(container_concurrency: u32) -> SimulatedPod {
        let limits = PodTerms { container_concurrency, timeouts: RequestTimeouts::default() };
        let mut pod =
            SimulatedPod::new(PodNumber(1), ServiceNumber(0), PodName::new("p"), limits, Timestamp::ZERO);
        pod.link = Some(LinkId(1));
        pod
    }

    fn direct() -> SeatedRequest {
        let request = SimulatedRequest {
            service: ServiceNumber(0),
            client: None,
            arrived: Timestamp::ZERO,
            service_time: Duration::from_secs(1),
            queued_since: Timestamp::ZERO,
            waited: Duration::ZERO,
        };
        let pick = DirectPick { pod: PodId(0), address: PodNumber(1).address(), is_trial: false };
        SeatedRequest { request, seat: SimulatedSeat::Direct(pick) }
    }

    #[test]
    fn requests_beyond_the_limit_wait_and_those_beyond_the_queue_are_refused() {
        let mut pod = pod(1);
        let admissions: Vec<PodAdmission> = (0..12).map(|_| pod.arrive(direct(), Timestamp::ZERO)).collect();
        assert_eq!(admissions[0], PodAdmission::Runs);
        assert!(admissions[1..11].iter().all(|admission| *admission == PodAdmission::Waits));
        assert_eq!(admissions[11], PodAdmission::Full);
        let next = pod.finish(Origin::Direct, Timestamp::from_secs(2)).expect("one waits");
        assert_eq!(next.request.waited, Duration::from_secs(2));
        assert!(!pod.holds_nothing());
    }

    #[test]
    fn a_second_has_the_average_of_its_requests() {
        let mut pod = pod(0);
        assert_eq!(pod.second_ends_at(), Timestamp::from_secs(1));
        assert_eq!(pod.arrive(direct(), Timestamp::from_millis(500)), PodAdmission::Runs);
        let sample = pod.close_second(Timestamp::from_secs(1));
        assert_eq!((sample.second, sample.load.concurrency.value()), (0, 0.5));
        assert_eq!(sample.load.request_rate.value(), 1.0);
        assert_eq!(pod.second_ends_at(), Timestamp::from_secs(2));
    }

    #[test]
    fn a_surge_is_said_at_once_and_again_until_it_is_over() {
        let mut pod = pod(0);
        let settings = PodSettings {
            version: Version { counter: 1, ..Version::default() },
            surge_threshold: Some(2),
            ..PodSettings::default()
        };
        assert!(pod.set(&settings) && !pod.set(&settings));
        let now = Timestamp::from_secs(1);
        pod.arrive(direct(), now);
        assert_eq!(pod.plan_present(now), None);
        pod.arrive(direct(), now);
        assert_eq!(pod.plan_present(now), Some(now));
        assert_eq!(pod.plan_present(now), None, "it is planned");
        assert_eq!(pod.take_present(now).map(|count| count.in_flight), Some(2));
        let again = now + PRESENT_EVERY;
        assert_eq!(pod.plan_present(now), Some(again));
        pod.finish(Origin::Direct, now);
        assert_eq!(pod.take_present(again).map(|count| count.in_flight), Some(1), "it fell below");
        assert_eq!(pod.plan_present(again), None);
    }
}
