//! The way of a request: from its client over an activator and a pod to its answer.

use std::time::Duration;

use throttling::{ActivatorEvent, ActivatorRevision, Dispatch, RequestEvent, RequestWay};
use vocabulary::{RevisionName, Slice};

use super::{TrialWorld, request_of};
use crate::proof::check_failure::RequestEnd;
use crate::proof::fault::ActivatorNumber;
use crate::proof::reached_state::ReachedState;
use crate::proof::trial_event::{ActivatorProcess, PodReply, RequestNumber, TrialEvent};
use crate::proof::trial_parts::{QueuePlace, RequestPosition, TrialRequest};
use crate::simulated_pod::PodAdmission;
use crate::world_event::{
    ClientNumber, PodNumber, SeatedRequest, ServiceNumber, SimulatedRequest, SimulatedSeat,
};

/// How soon a client tries again that found no activator.
const TRY_AGAIN: Duration = Duration::from_millis(200);
/// A request may end later than its time limit: by the longest stall of a process, by its time in the queue
/// of a pod and by its work, which the limit does not end.
const ANSWER_SLACK: Duration = Duration::from_secs(60);
/// Requests that are refused in this last part of a world are counted.
const LAST_PART: Duration = Duration::from_secs(60);

impl TrialWorld<'_> {
    pub(super) fn plan_arrival(&mut self, service: ServiceNumber) {
        if let Some(at) = self.traffic[service.0].next_after(self.now) {
            self.at(at, TrialEvent::RequestArrives(service));
        }
    }

    pub(super) fn request_arrives(&mut self, service: ServiceNumber) {
        self.requests_made += 1;
        self.tally.requests += 1;
        let number = RequestNumber(self.requests_made);
        let traffic = &mut self.traffic[service.0];
        let (of_service, limit_at) = (traffic.arrive(), self.now + traffic.limit);
        let place = RequestPosition::Client;
        let request = TrialRequest { service, of_service, arrived: self.now, limit_at, place };
        self.requests.insert(number, request);
        self.checks.request_arrived(number, limit_at + ANSWER_SLACK);
        self.plan_arrival(service);
        self.request_is_sent(number);
    }

    /// The client of a request looks for an activator.
    pub(super) fn request_is_sent(&mut self, number: RequestNumber) {
        let Some(request) = self.requests.get(&number).copied() else { return };
        if self.now >= request.limit_at {
            return self.end_request(number, RequestEnd::NoActivator);
        }
        match self.receiver(&request) {
            Some(activator) => {
                let process = self.activators[activator.0].process;
                let event = TrialEvent::RequestReachesActivator(process, number);
                self.at(self.now + self.delays.request, event);
            }
            None => self.at(self.now + TRY_AGAIN, TrialEvent::RequestIsSent(number)),
        }
    }

    pub(super) fn request_reaches_activator(&mut self, process: ActivatorProcess, number: RequestNumber) {
        let Some(request) = self.requests.get(&number).copied() else { return };
        if self.has_ended(process) {
            return self.at(self.now + TRY_AGAIN, TrialEvent::RequestIsSent(number));
        }
        let (activator, service) = (process.activator, request.service);
        let name = self.names[service.0].clone();
        let known = &mut self.activators[activator.0];
        let shown = known.clock.read(self.now);
        let ticket = match known.core.way_of_request(&name, shown) {
            Some(RequestWay::Queue(ticket)) => ticket,
            Some(RequestWay::Direct(pick)) => {
                return self.send_to_pod(activator, number, SimulatedSeat::Direct(pick));
            }
            None => {
                if known.is_synced && self.is_named(service, activator) {
                    self.checks.revision_unknown(process, &name);
                }
                return self.at(self.now + TRY_AGAIN, TrialEvent::RequestIsSent(number));
            }
        };
        let has_ready_pod = known.core.revision(&name).is_some_and(ActivatorRevision::has_ready_pod);
        let cause = if has_ready_pod { ReachedState::WaitedForSlot } else { ReachedState::WaitedFromZero };
        self.enqueue(process, number, QueuePlace { service, ticket });
        self.tell_of_request(process, service, RequestEvent::Arrived { ticket });
        self.note_wait(number, cause);
    }

    /// Without a grant or a refusal by now the request waits.
    fn note_wait(&mut self, number: RequestNumber, cause: ReachedState) {
        let place = self.requests.get(&number).map(|request| request.place);
        if matches!(place, Some(RequestPosition::Waits { .. })) {
            self.checks.reached(cause);
        }
    }

    fn enqueue(&mut self, process: ActivatorProcess, number: RequestNumber, place: QueuePlace) {
        let activator = process.activator;
        self.activators[activator.0].waiting.insert(place, number);
        let Some(request) = self.requests.get_mut(&number) else { return };
        request.place = RequestPosition::Waits { activator, ticket: place.ticket };
        let at = request.limit_at;
        self.at(at, TrialEvent::WaitEnds(process, number));
    }

    pub(super) fn wait_ends(&mut self, process: ActivatorProcess, number: RequestNumber) {
        let Some(request) = self.requests.get(&number).copied() else { return };
        let RequestPosition::Waits { activator, ticket } = request.place else { return };
        if self.has_ended(process) || activator != process.activator {
            return;
        }
        let place = QueuePlace { service: request.service, ticket };
        self.activators[activator.0].waiting.remove(&place);
        self.tell_of_request(process, request.service, RequestEvent::GaveUp { ticket });
        self.end_request(number, RequestEnd::WaitedTooLong);
    }

    pub(super) fn grant(&mut self, process: ActivatorProcess, revision: &RevisionName, dispatch: Dispatch) {
        let Some(service) = self.platform.service(revision) else { return };
        let place = QueuePlace { service, ticket: dispatch.ticket };
        match self.activators[process.activator.0].waiting.remove(&place) {
            Some(number) => self.send_to_pod(process.activator, number, SimulatedSeat::Queue(dispatch)),
            None => self.checks.granted_without_wait(process),
        }
    }

    fn send_to_pod(&mut self, activator: ActivatorNumber, number: RequestNumber, seat: SimulatedSeat) {
        let Some(known) = self.requests.get_mut(&number) else { return };
        known.place = RequestPosition::OnTheWay { activator };
        let request = SimulatedRequest {
            service: known.service,
            client: Some(ClientNumber(number.0)),
            arrived: known.arrived,
            service_time: self.traffic[known.service.0].service_time,
            queued_since: self.now,
            waited: Duration::ZERO,
        };
        let event = TrialEvent::RequestReachesPod(Box::new(SeatedRequest { request, seat }));
        self.at(self.now + self.delays.request, event);
    }

    pub(super) fn request_reaches_pod(&mut self, seated: Box<SeatedRequest>) {
        if self.is_lost(&seated) {
            return;
        }
        let admission = seated.pod().and_then(|number| {
            let shown = self.pods.get(&number)?.clock.read(self.now);
            // A pod that has not started takes no connection, as one that is gone.
            let pod = self.platform.pod_mut(number).filter(|pod| pod.has_started())?;
            Some((number, pod.arrive(*seated, shown)))
        });
        let Some((pod, admission)) = admission else {
            return self.answer(PodReply::NotStarted, seated);
        };
        match admission {
            PodAdmission::Runs => {
                self.note_in_pod(pod, &seated);
                self.begin_work(pod, seated);
            }
            PodAdmission::Waits => self.note_in_pod(pod, &seated),
            PodAdmission::Full => self.answer(PodReply::NotStarted, seated),
            PodAdmission::NoRoom => self.answer(PodReply::NoRoom, seated),
        }
        self.pod_changed(pod);
    }

    fn note_in_pod(&mut self, pod: PodNumber, seated: &SeatedRequest) {
        let known = request_of(seated).and_then(|number| self.requests.get_mut(&number));
        if let Some(request) = known
            && let Some(activator) = request.place.activator()
        {
            request.place = RequestPosition::InPod { activator, pod, seat: seated.seat };
        }
    }

    fn begin_work(&mut self, pod: PodNumber, seated: Box<SeatedRequest>) {
        let at = self.now + seated.request.service_time;
        self.at(at, TrialEvent::WorkEnds(pod, seated));
    }

    pub(super) fn work_ends(&mut self, number: PodNumber, seated: Box<SeatedRequest>) {
        let Some(shown) = self.pods.get(&number).map(|known| known.clock.read(self.now)) else { return };
        let Some(pod) = self.platform.pod_mut(number) else { return };
        let next = pod.finish(seated.origin(), shown);
        if !self.is_lost(&seated) {
            self.answer(PodReply::Served, seated);
        }
        if let Some(next) = next {
            self.begin_work(number, Box::new(next));
        }
        self.pod_changed(number);
        self.end_if_drained(number);
    }

    pub(super) fn answer(&mut self, outcome: PodReply, seated: Box<SeatedRequest>) {
        let number = request_of(&seated);
        if let Some(request) = number.and_then(|number| self.requests.get_mut(&number))
            && let Some(activator) = request.place.activator()
        {
            request.place = RequestPosition::OnTheWay { activator };
        }
        let event = TrialEvent::AnswerReachesActivator(outcome, seated);
        self.at(self.now + self.delays.request, event);
    }

    pub(super) fn answer_reaches_activator(&mut self, outcome: PodReply, seated: SeatedRequest) {
        let Some(number) = request_of(&seated) else { return };
        let Some(request) = self.requests.get(&number).copied() else { return };
        let Some(activator) = request.place.activator() else { return };
        let process = self.activators[activator.0].process;
        match seated.seat {
            SimulatedSeat::Queue(dispatch) => self.queued_ended(process, number, outcome, dispatch),
            SimulatedSeat::Direct(pick) => {
                let service = request.service;
                match outcome {
                    PodReply::Served => {
                        if pick.is_trial {
                            self.tell_of_request(process, service, RequestEvent::DirectStarted { pick });
                        }
                        self.tell_of_request(process, service, RequestEvent::DirectEnded { pick });
                        self.checks.reached(ReachedState::ServedDirect);
                        self.end_request(number, RequestEnd::Served);
                    }
                    PodReply::Broken => {
                        self.tell_of_request(process, service, RequestEvent::DirectEnded { pick });
                        self.end_request(number, RequestEnd::LostWithPod);
                    }
                    PodReply::NotStarted | PodReply::NoRoom => {
                        self.checks.reached(ReachedState::RequestNotStarted);
                        self.tell_of_request(process, service, RequestEvent::DirectNotStarted { pick });
                        self.tell_of_request(process, service, RequestEvent::DirectEnded { pick });
                        self.rejoin(process, number, request);
                    }
                }
            }
        }
    }

    /// A request that went past the queue joins it, because its pod did not start it.
    fn rejoin(&mut self, process: ActivatorProcess, number: RequestNumber, request: TrialRequest) {
        let name = self.names[request.service.0].clone();
        let known = &mut self.activators[process.activator.0];
        let arrived = known.clock.read(request.arrived);
        let Some(ticket) = known.core.draw_ticket(&name) else {
            // The revision was forgotten meanwhile: another activator serves it.
            if let Some(known) = self.requests.get_mut(&number) {
                known.place = RequestPosition::Client;
            }
            return self.at(self.now + TRY_AGAIN, TrialEvent::RequestIsSent(number));
        };
        self.enqueue(process, number, QueuePlace { service: request.service, ticket });
        self.tell_of_request(process, request.service, RequestEvent::Rejoined { ticket, arrived });
    }

    fn queued_ended(
        &mut self,
        process: ActivatorProcess,
        number: RequestNumber,
        outcome: PodReply,
        dispatch: Dispatch,
    ) {
        let Some(service) = self.requests.get(&number).map(|request| request.service) else { return };
        let wait_again = match outcome {
            PodReply::Served => {
                // As the program does: that a pod of its own has started an ordinary request is no news.
                if dispatch.is_trial || dispatch.slice != Slice::Undivided {
                    self.tell_of_request(process, service, RequestEvent::Started { dispatch });
                }
                self.tell_of_request(process, service, RequestEvent::Ended { dispatch });
                return self.end_request(number, RequestEnd::Served);
            }
            PodReply::Broken => {
                self.tell_of_request(process, service, RequestEvent::Ended { dispatch });
                return self.end_request(number, RequestEnd::LostWithPod);
            }
            PodReply::NotStarted => {
                self.checks.reached(ReachedState::RequestNotStarted);
                RequestEvent::NotStarted { dispatch }
            }
            PodReply::NoRoom => {
                self.checks.reached(ReachedState::FoundNoRoom);
                RequestEvent::FoundNoRoom { dispatch }
            }
        };
        self.enqueue(process, number, QueuePlace { service, ticket: dispatch.ticket });
        self.tell_of_request(process, service, wait_again);
    }

    fn tell_of_request(&mut self, process: ActivatorProcess, service: ServiceNumber, event: RequestEvent) {
        let revision = self.names[service.0].clone();
        self.tell_of_service(process, service, ActivatorEvent::Request { revision, event });
    }

    pub(super) fn end_request(&mut self, number: RequestNumber, end: RequestEnd) {
        let is_known = self.requests.remove(&number).is_some();
        debug_assert!(is_known, "a request ends while it is known");
        let is_refused = match end {
            RequestEnd::Served | RequestEnd::LostWithActivator | RequestEnd::LostWithPod => false,
            RequestEnd::NoActivator | RequestEnd::WaitedTooLong | RequestEnd::Refused(_) => true,
        };
        if is_refused && self.now + LAST_PART > self.ends {
            self.tally.late_refusals += 1;
        }
        self.checks.request_ended(number, end);
    }
}
