//! Finds a pod for a request, sends it there, and begins again while no pod has started it.

use std::net::SocketAddr;
use std::sync::Arc;

use dataplane::{
    AppRefusals, Body, BodyGuard, ClientUpgrade, Expired, Hop, HopFailure, NextHop, Reason, Refusal, Span,
    Started, Timers, Upstreams, limit_reached, names, text_of_refusals,
};
use http::{HeaderValue, Response, StatusCode};
use vocabulary::{Routing, Slice, Timestamp};

use crate::outgoing::{Outgoing, Sending, Way};
use crate::revision::{Counted, Direct, Grant, Refused, Revision, Turn};
use crate::stack::{AnswerBody, Stack};

/// One request on its way to a pod.
pub(crate) struct Forwarding<'a> {
    pub(crate) stack: &'a Stack,
    pub(crate) revision: Arc<Revision>,
    pub(crate) outgoing: Outgoing,
    pub(crate) upgrade: Option<ClientUpgrade>,
    pub(crate) timers: Timers,
    pub(crate) arrived: Timestamp,
    /// What is told of it, until its answer begins; `None` for nearly all.
    pub(crate) span: &'a mut Option<Box<Span>>,
    pub(crate) has_waited: bool,
    pub(crate) app_refusals: AppRefusals,
}

/// A pod that takes the next attempt.
enum Seat {
    Queue(Grant, Counted),
    Direct(Direct),
}

/// What became of one attempt.
#[expect(
    clippy::large_enum_variant,
    reason = "it is moved once, and boxing it would cost every answer an allocation"
)]
enum AttemptOutcome {
    Answer(Response<Body>),
    /// The pod never started the request.
    NotStarted,
    /// Nor did this one, which is well: others have filled it.
    NoRoom,
    /// Nor did this one, whose app has it and does not want it.
    RefusedByApp,
}

/// Where a request stands before an attempt.
enum Place {
    Seated(Seat),
    Waits(Turn, Counted),
}

impl Seat {
    fn address(&self) -> SocketAddr {
        match self {
            Self::Queue(grant, _) => grant.address(),
            Self::Direct(direct) => direct.address(),
        }
    }

    fn way(&self) -> Way {
        match self {
            Self::Queue(grant, _) => match grant.slice() {
                Slice::Undivided => Way::Queue,
                // Who waited in its queue would not see a slot that becomes free elsewhere.
                Slice::Inside | Slice::Outside => Way::QueueAtOnce,
            },
            Self::Direct(_) => Way::Direct,
        }
    }

    fn started(&self) {
        match self {
            Self::Queue(grant, _) => grant.started(),
            Self::Direct(direct) => direct.started(),
        }
    }
}

impl Forwarding<'_> {
    pub(crate) async fn run(mut self) -> Result<Response<AnswerBody>, HopFailure> {
        let mut place = self.first_place()?;
        loop {
            let seat = match place {
                Place::Seated(seat) => seat,
                Place::Waits(turn, counted) => Seat::Queue(self.await_turn(turn).await?, counted),
            };
            let (address, way) = (self.exit(seat.address()), seat.way());
            let guard = Guard::new(seat, address, &self.revision, &self.stack.upstreams);
            let outcome = self.attempt(address, way, &guard).await?;
            self.tell(&outcome, address);
            place = match outcome {
                AttemptOutcome::Answer(response) => return Ok(self.respond(response, guard)?),
                AttemptOutcome::NotStarted => self.next_place(guard.into_seat())?,
                AttemptOutcome::NoRoom => self.place_after_no_room(guard.into_seat())?,
                AttemptOutcome::RefusedByApp => {
                    Box::pin(self.place_after_app_refusal(guard.into_seat())).await?
                }
            }
        }
    }

    /// Where in the pod that takes requests at `usual` this one goes.
    fn exit(&self, usual: SocketAddr) -> SocketAddr {
        match &self.stack.port {
            None => usual,
            Some(port) => self.revision.settings().exit(usual, port.port),
        }
    }

    /// Past the queue while a pod is ready and the routing says so, else into it.
    fn first_place(&self) -> Result<Place, Refusal> {
        if self.revision.settings().routing == Routing::Direct
            && let Some(direct) = self.revision.pick_direct()
        {
            return Ok(Place::Seated(Seat::Direct(direct)));
        }
        let (counted, turn) = self.revision.enter().map_err(|refused| self.refusal(refused))?;
        Ok(Place::Waits(turn, counted))
    }

    /// What no pod started waits again, at the head of the queue, whichever way it went before.
    fn next_place(&self, seat: Seat) -> Result<Place, Refusal> {
        let again = match seat {
            Seat::Queue(grant, counted) => grant.requeue().map(|turn| (counted, turn)),
            Seat::Direct(direct) => {
                direct.not_started();
                self.revision.rejoin(self.arrived)
            }
        };
        let (counted, turn) = again.map_err(|refused| self.refusal(refused))?;
        Ok(Place::Waits(turn, counted))
    }

    /// What found no room waits again where it was. Requests past the queue are not asked to go at once, so they find room or wait there.
    fn place_after_no_room(&self, seat: Seat) -> Result<Place, Refusal> {
        match seat {
            Seat::Queue(grant, counted) => {
                let turn = grant.requeue_for_want_of_room().map_err(|refused| self.refusal(refused))?;
                Ok(Place::Waits(turn, counted))
            }
            Seat::Direct(_) => self.next_place(seat),
        }
    }

    /// What an app refused leaves its slot to others while it waits, and then takes its turn again. It stays part of the load.
    async fn place_after_app_refusal(&mut self, seat: Seat) -> Result<Place, Refusal> {
        let wait = self.app_refusals.next_wait()?;
        if wait.is_zero() {
            return self.next_place(seat);
        }
        let held = match seat {
            Seat::Queue(grant, counted) => {
                grant.not_started();
                Ok(counted)
            }
            Seat::Direct(direct) => {
                direct.not_started();
                Err(direct)
            }
        };
        let clock = self.stack.context.clock;
        let resting = self.timers.limit(clock.sleep_until(clock.now() + wait)).await;
        resting.map_err(|expired| self.no_ready_pod(expired))?;
        let again = match held {
            Ok(counted) => self.revision.wait_again(self.arrived).map(|turn| (counted, turn)),
            Err(_direct) => self.revision.rejoin(self.arrived),
        };
        let (counted, turn) = again.map_err(|refused| self.refusal(refused))?;
        Ok(Place::Waits(turn, counted))
    }

    async fn await_turn(&mut self, turn: Turn) -> Result<Grant, Refusal> {
        let waiting = match turn {
            Turn::Now(grant) => return Ok(grant),
            Turn::Later(waiting) => waiting,
        };
        self.has_waited = true;
        if let Some(span) = self.span {
            span.event_about("waiting", Some(&self.revision.waits_for()));
            span.note("ebb.cold_start", !self.revision.has_ready_pod());
        }
        let grant = match self.timers.limit(waiting.granted()).await {
            Ok(granted) => granted.map_err(|refused| self.refusal(refused))?,
            Err(expired) => return Err(self.no_ready_pod(expired)),
        };
        if let Some(span) = self.span {
            let waited = span.event("granted");
            span.note("ebb.wait_seconds", waited);
        }
        Ok(grant)
    }

    /// Notes what became of an attempt.
    fn tell(&mut self, outcome: &AttemptOutcome, address: SocketAddr) {
        let Some(span) = self.span else { return };
        let (event, address) = (
            match outcome {
                AttemptOutcome::Answer(_) => "answered",
                AttemptOutcome::NotStarted => "not started",
                AttemptOutcome::NoRoom => "no room",
                AttemptOutcome::RefusedByApp => "refused by the app",
            },
            address.to_string(),
        );
        span.event_about(event, Some(&address));
    }

    /// Sends the request once.
    async fn attempt(
        &mut self,
        address: SocketAddr,
        way: Way,
        guard: &Guard,
    ) -> Result<AttemptOutcome, HopFailure> {
        let settings = self.revision.settings();
        let Some(Sending { request, gate }) = self.outgoing.attempt(way, settings.hop_key.as_ref()) else {
            let detail = "the pod did not take the request, and its body is too long to be sent again";
            return Err(Refusal::new(Reason::UpstreamClosed, detail).into());
        };
        let sending = self.stack.upstreams.send(address, self.outgoing.protocol, request);
        let answered = self.timers.limit(sending).await.map_err(|expired| self.timed_out(expired))?;
        match answered {
            Ok(response) if response.headers().contains_key(names::EBB_NOT_STARTED) => {
                Ok(if way == Way::QueueAtOnce && names_reason(&response, Reason::QueueFull) {
                    AttemptOutcome::NoRoom
                } else if names_reason(&response, Reason::UpstreamReset) {
                    AttemptOutcome::RefusedByApp
                } else {
                    AttemptOutcome::NotStarted
                })
            }
            Ok(response) => {
                guard.started();
                self.outgoing.started();
                // A pod that answers early may still read on.
                if let Some(gate) = gate {
                    gate.open();
                }
                Ok(AttemptOutcome::Answer(response))
            }
            Err(error) if error.started == Started::No => {
                tracing::debug!(revision = %self.revision.name, %address, %error, "a pod did not start a request");
                Ok(AttemptOutcome::NotStarted)
            }
            // A pod may have begun with it, and no answer came.
            Err(error) => Err(NextHop::Pod.failed(&error)),
        }
    }

    fn respond(
        self,
        mut response: Response<Body>,
        mut guard: Guard,
    ) -> Result<Response<AnswerBody>, Refusal> {
        if self.has_waited {
            let waited = guard.granted_at().saturating_since(self.arrived);
            let milliseconds = waited.as_secs_f64() * 1000.0;
            if let Ok(value) = HeaderValue::try_from(format!("ebb-wait;dur={milliseconds:.1}")) {
                response.headers_mut().append(names::SERVER_TIMING, value);
            }
        }
        guard.answer = Some((response.status(), self.arrived));
        guard.span = self.span.take();
        if let Some(span) = &mut guard.span {
            span.answered(response.status());
        }
        let hop = Hop { upgrade: self.upgrade, timers: self.timers, drain: &self.stack.drain };
        hop.respond(response, guard)
    }

    fn refusal(&self, refused: Refused) -> Refusal {
        let name = &self.revision.name;
        match refused {
            Refused::RevisionQueueFull { limit } => Refusal::new(
                Reason::QueueFull,
                format!("{limit} requests wait for {name}, which is the activator's limit per revision"),
            ),
            Refused::ActivatorQueueFull { .. } => self.stack.queue_full(),
            Refused::Held => Refusal::new(Reason::NoReadyPod, self.revision.held_because()),
            Refused::Gone => Refusal::new(Reason::NoSuchRevision, format!("{name} was removed")),
        }
    }

    /// No pod took the request in time.
    fn no_ready_pod(&self, expired: Expired) -> Refusal {
        let timeouts = self.revision.settings().timeouts;
        let limit = limit_reached(expired, timeouts, &self.revision.name);
        let refusals = text_of_refusals(self.app_refusals.count());
        let detail = format!("{limit}; {}{refusals}", self.revision.waits_for());
        Refusal::new(Reason::NoReadyPod, detail).with_body(NextHop::Pod.timeout_body(expired))
    }

    /// A pod has it and does not answer.
    fn timed_out(&self, expired: Expired) -> Refusal {
        let timeouts = self.revision.settings().timeouts;
        NextHop::Pod.timed_out(expired, timeouts, &self.revision.name, self.app_refusals.count())
    }
}

/// Whether a refusal of one of our own hops is for that reason.
fn names_reason(response: &Response<Body>, reason: Reason) -> bool {
    let error = response.headers().get(names::EBB_ERROR).map(HeaderValue::as_bytes).unwrap_or_default();
    error.split(|&byte| byte == b';').next() == Some(reason.as_str().as_bytes())
}

/// What a request holds from its grant to the last byte of its answer. When it lets go of a pod that the activator was told to leave, the connection
/// is closed too: nobody else will.
pub(crate) struct Guard {
    seat: Option<Seat>,
    address: SocketAddr,
    granted_at: Timestamp,
    /// The status of its answer, and when the request arrived.
    answer: Option<(StatusCode, Timestamp)>,
    /// Over with the last byte of the answer.
    span: Option<Box<Span>>,
    revision: Arc<Revision>,
    upstreams: Upstreams,
}

impl Guard {
    fn new(seat: Seat, address: SocketAddr, revision: &Arc<Revision>, upstreams: &Upstreams) -> Self {
        Self {
            address,
            granted_at: revision.now(),
            answer: None,
            span: None,
            seat: Some(seat),
            revision: Arc::clone(revision),
            upstreams: upstreams.clone(),
        }
    }

    fn started(&self) {
        if let Some(seat) = &self.seat {
            seat.started();
        }
    }

    fn granted_at(&self) -> Timestamp {
        self.granted_at
    }

    fn into_seat(mut self) -> Seat {
        self.seat.take().expect("a guard holds its seat until it ends")
    }
}

impl BodyGuard for Guard {}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.seat.take());
        if let Some((status, arrived)) = self.answer {
            self.revision.answered(status, arrived);
        }
        if !self.revision.keeps(self.address) {
            self.upstreams.close_idle(self.address);
        }
    }
}
