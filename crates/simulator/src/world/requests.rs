//! The way of a request: from its arrival at the activator, over a pod, to its answer.
//!
//! ```text
//!   arrival ──► queue of the activator ──► on the way ──► queue of the pod ──► work ──► on the way ──► answer
//!                     │        ▲                               │
//!                     ▼        └───────── not started ─────────┘
//!                  refusal
//! ```

use std::time::Duration;

use throttling::{ActivatorCommand, ActivatorEvent, Dispatch, LinkNumber, RequestEvent, RequestWay, Ticket};
use vocabulary::Slice;

use super::{SECOND, World};
use crate::shared_cores::SharedCores;
use crate::simulated_pod::PodAdmission;
use crate::world_event::{
    ClientNumber, PodAnswer, PodNumber, SeatedRequest, ServiceNumber, SimulatedRequest, SimulatedSeat,
    WorldEvent,
};

impl World {
    pub(super) fn request_arrives(&mut self, service: ServiceNumber) {
        let request = self.traffic[service.0].request(self.now);
        self.plan_arrival(service);
        self.receive(request);
    }

    pub(super) fn client_sends(&mut self, service: ServiceNumber, client: ClientNumber) {
        if let Some(request) = self.traffic[service.0].request_of(client, self.now) {
            self.receive(request);
        }
    }

    /// A request arrived at the activator.
    fn receive(&mut self, request: SimulatedRequest) {
        let service = request.service;
        self.tallies[service.0].requests += 1;
        let ticket = match self.activator.end.way_of_request(&self.names[service.0], self.now) {
            Some(RequestWay::Queue(ticket)) => ticket,
            Some(RequestWay::Direct(pick)) => {
                return self.send_to_pod(SeatedRequest { request, seat: SimulatedSeat::Direct(pick) });
            }
            None => return self.refuse(&request),
        };
        self.enqueue(request, ticket);
        self.tell_activator_of_request(service, RequestEvent::Arrived { ticket });
        // Without a grant or a refusal by now the request waits.
        if self.activator.waiting.contains_key(&(service, ticket)) {
            let cause = self.activator.wait_cause(&self.names[service.0]);
            self.tallies[service.0].note_wait(cause);
            self.plan_end_of_wait(&request, ticket);
        }
    }

    fn enqueue(&mut self, mut request: SimulatedRequest, ticket: Ticket) {
        request.joins_queue(self.now);
        self.activator.waiting.insert((request.service, ticket), request);
    }

    fn plan_end_of_wait(&mut self, request: &SimulatedRequest, ticket: Ticket) {
        let limit = self.platform.facts(request.service).timeouts.request;
        if let Some(limit) = limit {
            let at = (request.arrived + limit).max(self.now);
            self.queue.push(at, WorldEvent::WaitEnds(request.service, ticket));
        }
    }

    pub(super) fn wait_ends(&mut self, service: ServiceNumber, ticket: Ticket) {
        let Some(request) = self.activator.waiting.remove(&(service, ticket)) else { return };
        self.tell_activator_of_request(service, RequestEvent::GaveUp { ticket });
        self.refuse(&request);
    }

    fn send_to_pod(&mut self, seated: SeatedRequest) {
        self.queue.push(self.now + self.delays.request, WorldEvent::RequestReachesPod(Box::new(seated)));
    }

    pub(super) fn request_reaches_pod(&mut self, seated: Box<SeatedRequest>) {
        let admission = seated.pod().and_then(|number| {
            let pod = self.platform.pod_mut(number)?;
            Some((number, pod.arrive(*seated, self.now)))
        });
        // A pod that is gone takes nothing.
        let Some((number, admission)) = admission else { return self.answer(PodAnswer::NotStarted, seated) };
        match admission {
            PodAdmission::Runs => self.begin_work(number, seated),
            PodAdmission::Waits => {}
            PodAdmission::Full => self.answer(PodAnswer::NotStarted, seated),
            PodAdmission::NoRoom => self.answer(PodAnswer::NoRoom, seated),
        }
        self.pod_changed(number);
    }

    fn begin_work(&mut self, pod: PodNumber, seated: Box<SeatedRequest>) {
        let Some(cores) = self.cores[seated.request.service.0] else {
            let at = self.now + seated.request.service_time;
            return self.queue.push(at, WorldEvent::WorkEnds(pod, seated));
        };
        let now = self.now;
        let shared = self.shared_cores.entry(pod).or_insert_with(|| SharedCores::new(cores, now));
        shared.begin(*seated, now);
        self.plan_look_at_work(pod);
    }

    fn plan_look_at_work(&mut self, pod: PodNumber) {
        let shared = self.shared_cores.get_mut(&pod);
        if let Some(at) = shared.and_then(|shared| shared.plan_look(self.now)) {
            self.queue.push(at, WorldEvent::PodWorkIsDue(pod));
        }
    }

    pub(super) fn pod_work_is_due(&mut self, pod: PodNumber) {
        if !self.shared_cores.get_mut(&pod).is_some_and(|shared| shared.look_comes(self.now)) {
            return;
        }
        while let Some(done) = self.shared_cores.get_mut(&pod).and_then(|shared| shared.take_done(self.now)) {
            self.work_ends(pod, Box::new(done));
        }
        self.plan_look_at_work(pod);
    }

    pub(super) fn work_ends(&mut self, number: PodNumber, seated: Box<SeatedRequest>) {
        // A pod that holds a request is gone only if it was killed.
        let Some(pod) = self.platform.pod_mut(number) else { return self.lose(&seated) };
        let next = pod.finish(seated.origin(), self.now);
        self.answer(PodAnswer::Served, seated);
        if let Some(next) = next {
            self.begin_work(number, Box::new(next));
        }
        self.pod_changed(number);
        self.end_if_drained(number);
    }

    fn answer(&mut self, answer: PodAnswer, seated: Box<SeatedRequest>) {
        self.queue.push(self.now + self.delays.request, WorldEvent::PodAnswers(answer, seated));
    }

    /// The answer of a pod is at the activator.
    pub(super) fn pod_answers(&mut self, answer: PodAnswer, seated: SeatedRequest) {
        let SeatedRequest { request, seat } = seated;
        let service = request.service;
        match (answer, seat) {
            (PodAnswer::Served, SimulatedSeat::Queue(dispatch)) => {
                // As the program does: that a pod of its own has started an ordinary request is no news.
                if dispatch.is_trial || dispatch.slice != Slice::Undivided {
                    self.tell_activator_of_request(service, RequestEvent::Started { dispatch });
                }
                self.tell_activator_of_request(service, RequestEvent::Ended { dispatch });
                self.note_served(&request);
            }
            (PodAnswer::Served, SimulatedSeat::Direct(pick)) => {
                if pick.is_trial {
                    self.tell_activator_of_request(service, RequestEvent::DirectStarted { pick });
                }
                self.tell_activator_of_request(service, RequestEvent::DirectEnded { pick });
                self.note_served(&request);
            }
            (PodAnswer::NotStarted, SimulatedSeat::Queue(dispatch)) => {
                self.wait_again(request, dispatch, RequestEvent::NotStarted { dispatch });
            }
            (PodAnswer::NoRoom, SimulatedSeat::Queue(dispatch)) => {
                self.wait_again(request, dispatch, RequestEvent::FoundNoRoom { dispatch });
            }
            (PodAnswer::NotStarted | PodAnswer::NoRoom, SimulatedSeat::Direct(pick)) => {
                self.tell_activator_of_request(service, RequestEvent::DirectNotStarted { pick });
                self.tell_activator_of_request(service, RequestEvent::DirectEnded { pick });
                let ticket = self.activator.end.draw_ticket(&self.names[service.0]);
                let Some(ticket) = ticket else { return self.refuse(&request) };
                self.enqueue(request, ticket);
                let rejoined = RequestEvent::Rejoined { ticket, arrived: request.arrived };
                self.tell_activator_of_request(service, rejoined);
                self.plan_end_of_wait(&request, ticket);
            }
        }
    }

    /// A request of the queue waits again, under its former ticket.
    fn wait_again(&mut self, request: SimulatedRequest, dispatch: Dispatch, event: RequestEvent) {
        self.enqueue(request, dispatch.ticket);
        self.tell_activator_of_request(request.service, event);
        self.plan_end_of_wait(&request, dispatch.ticket);
    }

    fn note_served(&mut self, request: &SimulatedRequest) {
        let traffic = &self.traffic[request.service.0];
        self.tallies[request.service.0].waits.add(request.waited);
        let pause = traffic.pause_after_answer();
        self.plan_next_of_client(request, pause);
    }

    pub(super) fn refuse(&mut self, request: &SimulatedRequest) {
        self.tallies[request.service.0].refused += 1;
        let pause = self.traffic[request.service.0].pause_after_refusal();
        self.plan_next_of_client(request, pause);
    }

    /// The client of a request, if there is one, asks again after its pause and the way of answer and
    /// request.
    fn plan_next_of_client(&mut self, request: &SimulatedRequest, pause: Duration) {
        if let Some(client) = request.client {
            let at = self.now + pause + self.delays.request + self.delays.request;
            self.queue.push(at, WorldEvent::ClientSends(request.service, client));
        }
    }

    pub(super) fn tell_activator_of_request(&mut self, service: ServiceNumber, event: RequestEvent) {
        let revision = self.names[service.0].clone();
        self.activator.end.handle(ActivatorEvent::Request { revision, event }, self.now);
        while let Some(command) = self.activator.end.next_command() {
            // A slot that one request sets free goes to another one of its Service.
            if let ActivatorCommand::Grant { dispatch, .. } = command {
                self.grant(service, dispatch);
            } else {
                self.obey_activator(command);
            }
        }
        self.plan_look_at(service);
    }

    /// Something happened at the activator, which does what follows.
    pub(super) fn tell_activator(&mut self, event: ActivatorEvent) {
        let assigned = self.service_assigned_by(&event);
        self.hand_to_activator(event);
        if let Some(service) = assigned {
            self.refresh_pods(service);
        }
        for service in (0..self.names.len()).map(ServiceNumber) {
            self.plan_look_at(service);
        }
    }

    fn hand_to_activator(&mut self, event: ActivatorEvent) {
        self.activator.end.handle(event, self.now);
        while let Some(command) = self.activator.end.next_command() {
            self.obey_activator(command);
        }
    }

    fn plan_look_at(&mut self, service: ServiceNumber) {
        if let Some(at) = self.activator.plan_look(service, &self.names[service.0], self.now) {
            self.queue.push(at, WorldEvent::RevisionIsDue(service));
        }
    }

    pub(super) fn revision_is_due(&mut self, service: ServiceNumber) {
        if !self.activator.look_comes(service, self.now) {
            return;
        }
        let revision = self.names[service.0].clone();
        if self.activator.is_due(&revision, self.now) {
            self.hand_to_activator(ActivatorEvent::RevisionIsDue { revision });
        }
        self.plan_look_at(service);
    }

    pub(super) fn activator_second_ends(&mut self) {
        self.fluid_second_ends();
        self.tell_activator(ActivatorEvent::TimePassed);
        self.queue.push(self.now + SECOND, WorldEvent::ActivatorSecondEnds);
    }

    fn obey_activator(&mut self, command: ActivatorCommand) {
        match command {
            ActivatorCommand::Grant { revision, dispatch } => {
                if let Some(service) = self.platform.service(&revision) {
                    self.grant(service, dispatch);
                }
            }
            ActivatorCommand::Refuse { revision, ticket, .. } => {
                let service = self.platform.service(&revision);
                let refused = service.and_then(|service| self.activator.waiting.remove(&(service, ticket)));
                if let Some(request) = refused {
                    self.refuse(&request);
                }
            }
            ActivatorCommand::CarryOut { upkeep, .. } => {
                // There are neither idle connections nor ports to close. All commands are drained before
                // the next event, so this is one of its own.
                let ended = ActivatorEvent::UpkeepEnded { upkeep };
                self.queue.push(self.now, WorldEvent::ActivatorHears(Box::new(ended)));
            }
            ActivatorCommand::Write { link } => self.send_words(link),
            // The link of the only owner is never replaced, and requests name their Service and no host.
            ActivatorCommand::CloseLink { .. }
            | ActivatorCommand::LeadHost { .. }
            | ActivatorCommand::ReleaseHost { .. }
            | ActivatorCommand::LimitHeads { .. }
            | ActivatorCommand::NoteSynced
            | ActivatorCommand::NoteReleased
            | ActivatorCommand::CountStaleOrder => {}
        }
    }

    fn grant(&mut self, service: ServiceNumber, dispatch: Dispatch) {
        let granted = self.activator.waiting.remove(&(service, dispatch.ticket));
        debug_assert!(granted.is_some(), "only a request that waits is granted");
        if let Some(mut request) = granted {
            request.leaves_queue(self.now);
            self.send_to_pod(SeatedRequest { request, seat: SimulatedSeat::Queue(dispatch) });
        }
    }

    /// A link of the activator can always be written to.
    fn send_words(&mut self, link: LinkNumber) {
        loop {
            let words = self.activator.end.next_words(link, self.now);
            if words.is_empty() {
                return;
            }
            for word in words {
                let word = self.with_fluid_loads(word);
                self.send_to_owner(link, word);
            }
        }
    }
}
