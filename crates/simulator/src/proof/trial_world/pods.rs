//! Pods start, report, fail their probe, drain and end.

use std::time::Duration;

use orchestration::PlatformFact;
use vocabulary::{PodCount, PodName, PodSettings, PodState, PodWord};

use super::{TrialWorld, request_of};
use crate::proof::drifting_clock::DriftingClock;
use crate::proof::fault::PodChoice;
use crate::proof::reached_state::ReachedState;
use crate::proof::trial_event::{ConnectionNumber, PodReply, TrialEvent, WordToOwner};
use crate::proof::trial_parts::{FarEnd, RequestPosition, TrialPod};
use crate::random::RandomStream;
use crate::simulated_pod::{PodDeparture, ProbeOutcome, SimulatedPod};
use crate::world_event::{ClientNumber, PodNumber, SeatedRequest, ServiceNumber, SimulatedRequest};
use crate::world_platform::StartedPod;

/// The pauses before pods are started in place of such that failed, each longer than the one before.
const REPLACED_AFTER: [Duration; 3] =
    [Duration::from_millis(500), Duration::from_secs(2), Duration::from_secs(8)];

impl TrialWorld<'_> {
    /// Starts and ends pods so that there are as many as wanted.
    pub(super) fn scale(&mut self, service: ServiceNumber, count: PodCount, end_first: &[PodName]) {
        for started in self.platform.scale(service, count, end_first, self.now) {
            self.start(service, started);
        }
    }

    fn start(&mut self, service: ServiceNumber, started: StartedPod) {
        let StartedPod { pod, of_service } = started;
        let drifts = &self.plan.drifts.pods;
        let place = usize::try_from(pod.0).unwrap_or_default() % drifts.len();
        let clock = DriftingClock::new(self.now, drifts[place]);
        self.pods.insert(pod, TrialPod::new(clock));
        let scenario = &self.plan.revisions[service.0].scenario;
        let entity = format!("{}/pod/{of_service}", scenario.facts.name);
        let mut random = RandomStream::of(self.plan.seed, &entity, "start-up");
        let factor = if self.slow_starts.until > self.now { self.slow_starts.factor } else { 1 };
        let at = self.now + scenario.start_up.draw(&mut random) * factor;
        let trouble = &mut self.troubles[service.0];
        if trouble.failing_starts > 0 {
            trouble.failing_starts -= 1;
            self.at(at, TrialEvent::PodStartFails(pod));
        } else {
            self.at(at, TrialEvent::PodStarts(pod));
        }
        self.plan_second(pod);
    }

    fn plan_second(&mut self, number: PodNumber) {
        let (Some(pod), Some(known)) = (self.platform.pod(number), self.pods.get(&number)) else { return };
        let at = known.clock.moment_of(pod.second_ends_at());
        self.at(at, TrialEvent::PodSecondEnds(number));
    }

    /// A pod says something, if its link stands.
    pub(super) fn pod_says(&mut self, number: PodNumber, word: PodWord) {
        if let Some(connection) = self.pods.get(&number).and_then(|known| known.connection) {
            self.say_to_owner(connection, WordToOwner::OfPod(word));
        }
    }

    pub(super) fn pod_says_its_state(&mut self, number: PodNumber) {
        if let Some(state) = self.platform.pod(number).map(SimulatedPod::state) {
            self.pod_says(number, PodWord::State { state, detail: String::new() });
        }
    }

    pub(super) fn pod_starts(&mut self, number: PodNumber) {
        let Some(pod) = self.platform.pod_mut(number) else { return };
        pod.start();
        let service = pod.service;
        self.troubles[service.0].replacements = 0;
        self.platform.note_ready(service);
        self.pod_says_its_state(number);
    }

    pub(super) fn pod_start_fails(&mut self, number: PodNumber) {
        if self.platform.pod(number).is_some() {
            self.checks.reached(ReachedState::PodStartFailed);
            self.pod_ends(number);
        }
    }

    /// The n-th pod of a Service, counted round.
    pub(super) fn chosen(&self, choice: PodChoice) -> Option<PodNumber> {
        let pods: Vec<PodNumber> = self.platform.pods_of(choice.service).map(|pod| pod.number).collect();
        pods.get(choice.nth % pods.len().max(1)).copied()
    }

    pub(super) fn pod_turns_unready(&mut self, number: PodNumber, length: Duration) {
        let Some(pod) = self.platform.pod_mut(number) else { return };
        if pod.state() != PodState::Ready {
            return;
        }
        pod.probed(ProbeOutcome::Fails);
        self.checks.reached(ReachedState::PodTurnedUnready);
        self.pod_says_its_state(number);
        self.at(self.now + length, TrialEvent::ProbePasses(number));
    }

    pub(super) fn probe_passes(&mut self, number: PodNumber) {
        let Some(pod) = self.platform.pod_mut(number) else { return };
        pod.probed(ProbeOutcome::Passes);
        self.pod_says_its_state(number);
    }

    pub(super) fn pod_crashes(&mut self, number: PodNumber) {
        if self.platform.pod(number).is_some() {
            self.checks.reached(ReachedState::PodCrashed);
            self.pod_ends(number);
        }
    }

    /// A pod ends by itself, with all that it holds; the platform starts others if they are missing.
    fn pod_ends(&mut self, number: PodNumber) {
        let Some(pod) = self.platform.pod(number) else { return };
        let service = pod.service;
        let held: Vec<SeatedRequest> = self
            .requests
            .iter()
            .filter_map(|(request, known)| match known.place {
                RequestPosition::InPod { pod, seat, .. } if pod == number => {
                    let request = SimulatedRequest {
                        service: known.service,
                        client: Some(ClientNumber(request.0)),
                        arrived: known.arrived,
                        service_time: Duration::ZERO,
                        queued_since: known.arrived,
                        waited: Duration::ZERO,
                    };
                    Some(SeatedRequest { request, seat })
                }
                RequestPosition::InPod { .. }
                | RequestPosition::Client
                | RequestPosition::Waits { .. }
                | RequestPosition::OnTheWay { .. } => None,
            })
            .collect();
        for seated in held {
            self.answer(PodReply::Broken, Box::new(seated));
        }
        self.remove_pod(number);
        let trouble = &mut self.troubles[service.0];
        let place = usize::try_from(trouble.replacements).unwrap_or_default().min(REPLACED_AFTER.len() - 1);
        trouble.replacements += 1;
        self.at(self.now + REPLACED_AFTER[place], TrialEvent::PodsAreReplaced(service));
    }

    pub(super) fn pods_are_replaced(&mut self, service: ServiceNumber) {
        let wanted = self.platform.facts(service).wanted;
        self.scale(service, wanted, &[]);
        self.state_pods(service);
    }

    /// A pod that was told to end is gone once it holds nothing.
    pub(super) fn end_if_drained(&mut self, number: PodNumber) {
        let pod = self.platform.pod(number);
        if pod.is_some_and(|pod| pod.departure == PodDeparture::Draining && pod.holds_nothing()) {
            self.remove_pod(number);
        }
    }

    fn remove_pod(&mut self, number: PodNumber) {
        let Some(pod) = self.platform.remove(number) else { return };
        self.lose_connections(|connection| connection.far_end == FarEnd::Pod(number));
        self.pods.remove(&number);
        self.state_pods(pod.service);
    }

    pub(super) fn state_pods(&mut self, service: ServiceNumber) {
        let fact: PlatformFact = self.platform.fact_of_pods(service);
        self.state(&fact);
    }

    pub(super) fn pod_second_ends(&mut self, number: PodNumber) {
        let Some(known) = self.pods.get(&number) else { return };
        let Some(pod) = self.platform.pod_mut(number) else { return };
        let sample = pod.close_second(known.clock.read(self.now));
        self.tally.pod_seconds += 1;
        self.pod_says(number, PodWord::Load { sample, usage: None, late_bytes: None });
        self.plan_second(number);
    }

    pub(super) fn present_is_due(&mut self, number: PodNumber) {
        let Some(known) = self.pods.get(&number) else { return };
        let Some(pod) = self.platform.pod_mut(number) else { return };
        if let Some(count) = pod.take_present(known.clock.read(self.now)) {
            self.pod_says(number, PodWord::Present(count));
        }
        self.pod_changed(number);
    }

    /// A pod holds more or less than before: says its present count if that is due.
    pub(super) fn pod_changed(&mut self, number: PodNumber) {
        let Some(known) = self.pods.get(&number) else { return };
        let Some(pod) = self.platform.pod_mut(number) else { return };
        if let Some(due) = pod.plan_present(known.clock.read(self.now)) {
            let at = known.clock.moment_of(due);
            self.at(at, TrialEvent::PresentIsDue(number));
        }
    }

    /// The first settings on a connection take the link of the pod, unless they are of an earlier owner.
    pub(super) fn pod_hears(&mut self, connection: ConnectionNumber, settings: &PodSettings) {
        let far_end = self.connections.get(&connection).map(|known| known.far_end);
        let Some(FarEnd::Pod(number)) = far_end else { return };
        let Some(pod) = self.platform.pod(number) else { return };
        if settings.version.epoch < pod.settings_version().epoch {
            self.checks.reached(ReachedState::StaleSettingsIgnored);
            return self.lose(connection);
        }
        let Some(known) = self.pods.get_mut(&number) else { return };
        if known.connection != Some(connection) {
            let former = known.connection.replace(connection);
            if let Some(former) = former {
                self.lose(former);
            }
            self.pod_says_hello(number, connection);
        }
        let Some(pod) = self.platform.pod_mut(number) else { return };
        if pod.set(settings) {
            self.pod_says(number, PodWord::SettingsAcknowledged(settings.version));
        }
        self.pod_changed(number);
    }

    fn pod_says_hello(&mut self, number: PodNumber, connection: ConnectionNumber) {
        let link = self.connections.get(&connection).map(|known| known.link);
        let Some(pod) = self.platform.pod_mut(number) else { return };
        pod.link = link;
        let hello = pod.hello();
        self.pod_says(number, PodWord::Hello(hello));
    }

    pub(super) fn is_lost(&self, seated: &SeatedRequest) -> bool {
        request_of(seated).is_none_or(|number| !self.requests.contains_key(&number))
    }
}
