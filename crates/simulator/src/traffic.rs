//! Which requests come for one Service, and how much work is each?
//!
//! A request of an open load has its work from the stream of the Service, in the order of arrivals, unless a
//! file says it; a request of a client from the client's own stream. So the n-th request has the same work in
//! every variant.

use std::time::Duration;

use vocabulary::{RevisionName, Timestamp};

use crate::arrivals::ArrivalProcess;
use crate::load_shape::LoadShape;
use crate::random::RandomStream;
use crate::scenario::ServiceScenario;
use crate::time_distribution::TimeDistribution;
use crate::world_event::{ClientNumber, ServiceNumber, SimulatedRequest};

/// How long a client rests after a refusal, if it would ask again at once.
const REST_AFTER_REFUSAL: Duration = Duration::from_millis(10);

/// The requests of one Service, as they come.
#[derive(Debug)]
pub(crate) struct ServiceTraffic {
    service: ServiceNumber,
    arrivals: Option<ArrivalProcess>,
    /// The work of the next arrival, if the load says it.
    listed_service_time: Option<Duration>,
    service_time: TimeDistribution,
    of_arrivals: RandomStream,
    of_clients: Vec<RandomStream>,
    pause: Duration,
    start_up: TimeDistribution,
    seed: u64,
    name: RevisionName,
}

impl ServiceTraffic {
    pub(crate) fn new(service: ServiceNumber, scenario: &ServiceScenario, seed: u64) -> Self {
        let name = scenario.facts.name.clone();
        let (clients, pause) = match scenario.load {
            Some(LoadShape::Clients { clients, pause }) => (clients, pause),
            Some(
                LoadShape::Curve(_)
                | LoadShape::Bursty { .. }
                | LoadShape::Timer { .. }
                | LoadShape::Sparse { .. }
                | LoadShape::Fleet { .. }
                | LoadShape::File(_)
                | LoadShape::Measured(_),
            )
            | None => (0, Duration::ZERO),
        };
        let of_client =
            |client: u32| RandomStream::of(seed, &format!("{name}/client/{client}"), "service-time");
        Self {
            service,
            arrivals: scenario.load.as_ref().and_then(|load| ArrivalProcess::new(load, seed, name.as_str())),
            listed_service_time: None,
            service_time: scenario.service_time.clone(),
            of_arrivals: RandomStream::of(seed, name.as_str(), "service-time"),
            of_clients: (0..clients).map(of_client).collect(),
            pause,
            start_up: scenario.start_up.clone(),
            seed,
            name,
        }
    }

    /// The next arrival of an open load, as a time since the load began.
    pub(crate) fn next_arrival(&mut self) -> Option<Duration> {
        let arrivals = self.arrivals.as_mut()?;
        let at = arrivals.next()?;
        self.listed_service_time = arrivals.service_time();
        Some(at)
    }

    /// The request that arrives now, before the next arrival is asked for.
    pub(crate) fn request(&mut self, now: Timestamp) -> SimulatedRequest {
        let listed = self.listed_service_time.take();
        let service_time = listed.unwrap_or_else(|| self.service_time.draw(&mut self.of_arrivals));
        self.arrived(None, service_time, now)
    }

    /// A request of a client; `None` if there is no such client.
    pub(crate) fn request_of(&mut self, client: ClientNumber, now: Timestamp) -> Option<SimulatedRequest> {
        let service_time = self.service_time.draw(self.of_clients.get_mut(client.0)?);
        Some(self.arrived(Some(client), service_time, now))
    }

    fn arrived(
        &self,
        client: Option<ClientNumber>,
        service_time: Duration,
        now: Timestamp,
    ) -> SimulatedRequest {
        SimulatedRequest {
            service: self.service,
            client,
            arrived: now,
            service_time,
            queued_since: now,
            waited: Duration::ZERO,
        }
    }

    /// All clients of a closed load.
    pub(crate) fn clients(&self) -> impl Iterator<Item = ClientNumber> + use<> {
        (0..self.of_clients.len()).map(ClientNumber)
    }

    /// How long a client waits after an answer.
    pub(crate) fn pause_after_answer(&self) -> Duration {
        self.pause
    }

    /// How long a client waits after a refusal.
    pub(crate) fn pause_after_refusal(&self) -> Duration {
        self.pause.max(REST_AFTER_REFUSAL)
    }

    /// How long the start of a pod takes, which is the n-th of its Service: the same in every variant.
    pub(crate) fn start_up(&self, of_service: u32) -> Duration {
        let entity = format!("{}/pod/{of_service}", self.name);
        self.start_up.draw(&mut RandomStream::of(self.seed, &entity, "start-up"))
    }
}
