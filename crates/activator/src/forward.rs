//! Finds a pod for a request, sends it there, and begins again while no pod has started it.
//!
//! Health checks and scrapes, which come for ever, are to keep no pod awake. So the autoscaler may not see
//! them: they join neither queue nor load. While a pod is ready they go there past both, to wait in the pod's
//! own queue if need be, which is short, so that a long queue here does not make a load balancer give up on
//! all of it. While none is ready they are answered here.

mod guard;

use std::net::SocketAddr;
use std::sync::Arc;

use dataplane::{
    AppRefusals, Body, ClientUpgrade, Connection, Drain, ExceededLimit, GuardedBody, Hop, HopFailure,
    NextHop, PeerStart, Refusal, RefusalReason, RequestKind, Response, SendErrorKind, Span, Timers,
    Upstreams, limit_reached, names, strip_refusal, text_of_refusals,
};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use runtime::Clock;
use throttling::{RequestRefusal, UnmeasuredChoice};
use vocabulary::{Routing, Slice, Timestamp, WaitingPage};

use crate::outgoing::{PodAttempt, RepeatableRequest, Way};
use crate::shared_revision::{RequestSeat, SharedRevision};
use crate::stream_refusals::StreamRefusals;
use crate::waiting_page::{self, PATIENCE};
pub(crate) use guard::AnswerBody;
use guard::Guard;

/// One request on its way to a pod.
pub(crate) struct RequestForwarder<'a> {
    /// The connections of this worker to pods.
    pub(crate) upstreams: &'a Upstreams,
    /// Counts what the request's connection is upgraded to.
    pub(crate) drain: &'a Drain,
    pub(crate) clock: Clock,
    /// The revision's port at which the request came in; `None` at the usual listener.
    pub(crate) entrance: Option<u16>,
    /// The client's connection, on which the request came.
    pub(crate) connection: &'a Connection,
    pub(crate) revision: Arc<SharedRevision>,
    /// The path of the revision's requests, as it was when this one came.
    pub(crate) routing: Routing,
    pub(crate) outgoing: RepeatableRequest,
    pub(crate) upgrade: Option<ClientUpgrade>,
    pub(crate) timers: Timers,
    pub(crate) arrived: Timestamp,
    pub(crate) measure: RequestMeasure,
    /// The span of the request, until its answer begins; `None` for requests without a trace.
    pub(crate) span: &'a mut Option<Box<Span>>,
    pub(crate) has_waited: bool,
    /// The page that is shown in the place of a long wait: the revision's, as it was when the request came,
    /// if a browser asks for a page; [`WaitingPage::Off`] for every other request.
    pub(crate) waiting_page: WaitingPage,
    pub(crate) app_refusals: AppRefusals,
    pub(crate) stream_refusals: StreamRefusals,
}

/// What a request counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestMeasure {
    /// The request is part of the revision's load.
    Load,
    /// Nothing; where no pod is ready it is answered in the way in which its client reads answers.
    Unmeasured(RequestKind),
}

/// What became of one attempt.
enum AttemptOutcome {
    Answer(Response<Body>),
    /// The pod never started the request.
    NotStarted,
    /// The pod did not start the request because other activators have filled it.
    NoRoom,
    /// The pod's app got the request and refused it.
    RefusedByApp,
}

/// How the wait for a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TurnEnd {
    /// The request has a slot in a pod.
    Granted,
    /// It waits still, and the browser that sent it is to be shown a page.
    PageIsDue,
}

/// Where a request stands before an attempt.
enum RequestPlace {
    /// The request has a pod, or waits for one in the queue.
    Seat(RequestSeat),
    /// An unmeasured request has no place in the queue: it goes to a ready pod.
    Unmeasured(RequestKind),
}

impl RequestForwarder<'_> {
    /// The answer of the first pod that starts the request.
    #[expect(clippy::manual_async_fn, reason = "an async function would hold the request twice")]
    pub(crate) fn run(mut self) -> impl Future<Output = Result<Response<AnswerBody>, HopFailure>> {
        async move {
            let mut place = self.first_place()?;
            loop {
                let mut seat = match place {
                    RequestPlace::Seat(seat) => seat,
                    // Boxed, because hardly any request comes here, and each would have room for it.
                    RequestPlace::Unmeasured(kind) => match Box::pin(self.find_pod_for_unmeasured()).await? {
                        Some(seat) => seat,
                        None => return Ok(self.answer_without_pod(kind)),
                    },
                };
                if seat.is_waiting() && self.await_turn(&mut seat).await? == TurnEnd::PageIsDue {
                    return Ok(self.answer_with_page(seat));
                }
                let address = self.pod_address(seat.address());
                let mut guard = Guard::new(seat, address, &self.revision, self.upstreams);
                guard.granted_at = self.has_waited.then(|| self.revision.now());
                let outcome = self.attempt(address, &guard).await?;
                self.trace_outcome(&outcome, address);
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
    }

    /// The address at which the pod that usually takes requests at `usual` takes this request.
    fn pod_address(&self, usual: SocketAddr) -> SocketAddr {
        match self.entrance {
            None => usual,
            Some(port) => self.revision.settings().pod_address_for(usual, port),
        }
    }

    /// Past the queue while a pod is ready and the routing says so, else into it.
    fn first_place(&self) -> Result<RequestPlace, Refusal> {
        if let RequestMeasure::Unmeasured(kind) = self.measure {
            return Ok(RequestPlace::Unmeasured(kind));
        }
        if self.routing == Routing::Direct
            && let Some(pick) = self.revision.pick_direct()
        {
            let seat = RequestSeat::direct(&self.revision, pick);
            // Clients come to a revision's own port only while no pod is ready, or while the path moves: a
            // client that keeps this connection would stay on the former path. For requests by host the
            // activator is the only path.
            if self.entrance.is_some() {
                self.connection.retire();
            }
            return Ok(RequestPlace::Seat(seat));
        }
        self.seated(RequestSeat::arrived(&self.revision))
    }

    /// The next place of a request that no pod started: the head of the queue, whether it went through the
    /// queue or past it before.
    fn next_place(&self, seat: RequestSeat) -> Result<RequestPlace, Refusal> {
        if seat.is_direct() {
            seat.note_not_started();
            return self.place_after_direct();
        }
        self.seated(seat.queue_again())
    }

    fn seated(&self, seat: Result<RequestSeat, RequestRefusal>) -> Result<RequestPlace, Refusal> {
        seat.map(RequestPlace::Seat).map_err(|refused| self.refusal(refused))
    }

    /// The next place of a request that went past the queue and was not started: the queue, if it is load.
    fn place_after_direct(&self) -> Result<RequestPlace, Refusal> {
        match self.measure {
            RequestMeasure::Load => self.seated(RequestSeat::rejoined(&self.revision, self.arrived)),
            RequestMeasure::Unmeasured(kind) => {
                self.revision.repeats_unmeasured();
                Ok(RequestPlace::Unmeasured(kind))
            }
        }
    }

    /// The next place of a request that found no room in a pod: its former place in the queue. Unmeasured
    /// requests may wait in the pod's own queue; if that is full they are refused, because they cannot wait
    /// here, and repeated attempts would be more load.
    fn place_after_no_room(&self, seat: RequestSeat) -> Result<RequestPlace, Refusal> {
        if matches!(self.measure, RequestMeasure::Unmeasured(_)) {
            let detail = "as many requests wait in the pod as may; a health check waits nowhere else";
            return Err(Refusal::new(RefusalReason::QueueFull, detail));
        }
        if seat.is_direct() {
            self.next_place(seat)
        } else {
            self.seated(seat.queue_again_for_want_of_room())
        }
    }

    /// The next place of a request that the app refused: it leaves its slot to others while it waits, and
    /// then takes its turn again. It stays part of the load.
    async fn place_after_app_refusal(&mut self, mut seat: RequestSeat) -> Result<RequestPlace, Refusal> {
        let wait = self.app_refusals.next_wait()?;
        if wait.is_zero() {
            return self.next_place(seat);
        }
        seat.rest();
        let clock = self.clock;
        let resting = self.timers.limit(clock.sleep_until(clock.now() + wait)).await;
        resting.map_err(|expired| self.no_ready_pod(expired))?;
        if seat.is_direct() {
            return self.place_after_direct();
        }
        self.seated(seat.rest_ended(self.arrived))
    }

    /// A pod for an unmeasured request; `None` if no pod is ready.
    async fn find_pod_for_unmeasured(&mut self) -> Result<Option<RequestSeat>, Refusal> {
        let clock = self.clock;
        loop {
            let until = match self.revision.pick_unmeasured().map_err(|refused| self.refusal(refused))? {
                UnmeasuredChoice::Pod(pick) => return Ok(Some(RequestSeat::direct(&self.revision, pick))),
                UnmeasuredChoice::NoPod => return Ok(None),
                UnmeasuredChoice::AllRest { until } => until,
            };
            // Half a second at most, after which one may be tried, or is not ready any more.
            let resting = self.timers.limit(clock.sleep_until(until)).await;
            resting.map_err(|expired| self.no_ready_pod(expired))?;
        }
    }

    /// Answers an unmeasured request that all is well while no pod is ready: the next ordinary request will
    /// be served. The answer has no body, which to a scrape is a page without any metric.
    fn answer_without_pod(self, kind: RequestKind) -> Response<AnswerBody> {
        self.revision.answered_health_check();
        if let Some(mut span) = self.span.take() {
            span.answered(StatusCode::OK);
        }
        let mut response = Response::new(GuardedBody::new(Body::empty(), None));
        let headers = response.headers_mut();
        match kind {
            RequestKind::Plain => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
            }
            RequestKind::Grpc => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
                headers.insert(names::GRPC_STATUS, HeaderValue::from_static("0"));
            }
        }
        response
    }

    /// Waits for the turn of a request; a browser's only for as long as a person looks at an empty page.
    async fn await_turn(&mut self, seat: &mut RequestSeat) -> Result<TurnEnd, Refusal> {
        self.has_waited = true;
        if let Some(span) = self.span {
            span.event_about("waiting", Some(&self.revision.waits_for()));
            span.note("ebb.cold_start", !self.revision.has_ready_pod());
        }
        if self.waiting_page == WaitingPage::Off {
            match self.timers.limit(seat.granted()).await {
                Ok(granted) => granted.map_err(|refused| self.refusal(refused))?,
                Err(expired) => return Err(self.no_ready_pod(expired)),
            }
        } else {
            let clock = self.clock;
            // Cancel-safe: the place in the queue is the seat's. A turn that has come wins over the page.
            tokio::select! {
                biased;
                granted = seat.granted() => granted.map_err(|refused| self.refusal(refused))?,
                () = clock.sleep_until(self.arrived + PATIENCE) => return Ok(TurnEnd::PageIsDue),
            }
        }
        if let Some(span) = self.span {
            let waited = span.event("granted");
            span.note("ebb.wait_seconds", waited);
        }
        Ok(TurnEnd::Granted)
    }

    /// Answers a browser with the page. The place of its request in the queue is kept until its turn, unless
    /// the place of an earlier request is kept already.
    fn answer_with_page(self, mut seat: RequestSeat) -> Response<AnswerBody> {
        let revision = Arc::clone(&self.revision);
        let answer = waiting_page::answer(&self.waiting_page, &revision.name, &revision.waits_for());
        revision.showed_page();
        if let Some(kept) = revision.kept_place.take() {
            let mut timers = self.timers;
            // It ends with the pod that is ready, with the time that the request had, or with the revision. A
            // panic in it frees the place as well, and another browser takes it.
            tokio::task::spawn_local(async move {
                // How it ended is the next browser's answer.
                let _ = timers.limit(seat.granted()).await;
                drop((seat, kept));
            });
        }
        // A request without a page waits until its turn, and does not come here.
        let response = answer.unwrap_or_else(|| Response::new(Body::empty()));
        if let Some(mut span) = self.span.take() {
            span.answered(response.status());
        }
        response.map(|body| GuardedBody::new(body, None))
    }

    fn way(&self, seat: &RequestSeat) -> Way {
        match (self.measure, seat.slice()) {
            (RequestMeasure::Unmeasured(_), _) => Way::Unmeasured,
            (RequestMeasure::Load, None) => Way::Direct,
            (RequestMeasure::Load, Some(Slice::Undivided)) => Way::Queue,
            // A request that waited in the pod's queue would not see a slot that becomes free in another pod.
            (RequestMeasure::Load, Some(Slice::Inside | Slice::Outside)) => Way::QueueAtOnce,
        }
    }

    /// Notes the outcome of an attempt in the span, if the request has one.
    fn trace_outcome(&mut self, outcome: &AttemptOutcome, address: SocketAddr) {
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

    /// Sends the request once, to the pod's address, and says how that ended.
    async fn attempt(&mut self, address: SocketAddr, guard: &Guard) -> Result<AttemptOutcome, HopFailure> {
        let (settings, seat) = (self.revision.settings(), guard.seat());
        let (way, hop) = (self.way(seat), settings.hop(seat.address()));
        let Some(PodAttempt { request, gate, is_plain }) = self.outgoing.attempt(way, hop) else {
            let detail = "the pod did not take the request, and its body is too long to be sent again";
            return Err(Refusal::new(RefusalReason::UpstreamClosed, detail).into());
        };
        let sending = self.upstreams.send(address, self.outgoing.protocol, request);
        let answered = self.timers.limit(sending).await.map_err(|expired| self.timed_out(expired))?;
        match answered {
            Ok(response) if !is_plain && says(&response, names::EBB_NOT_STARTED).is_some() => {
                let may_find_no_room = matches!(way, Way::QueueAtOnce | Way::Unmeasured);
                Ok(if may_find_no_room && names_reason(&response, RefusalReason::QueueFull) {
                    AttemptOutcome::NoRoom
                } else if names_reason(&response, RefusalReason::UpstreamReset) {
                    AttemptOutcome::RefusedByApp
                } else {
                    AttemptOutcome::NotStarted
                })
            }
            Ok(mut response) => {
                // A queue-proxy of ours removes what its app says in our name; one of Knative's passes it on.
                if is_plain && let Some(headers) = response.fields_mut().of_hops_mut() {
                    strip_refusal(headers);
                }
                // The pod has admitted it, so there will be no other attempt. Slot and kept body hear of that
                // before the client gets a byte.
                guard.seat().started();
                self.revision.acceptance.note();
                self.outgoing.started();
                // A pod that answers early may still read on.
                if let Some(gate) = gate {
                    gate.open();
                }
                Ok(AttemptOutcome::Answer(response))
            }
            Err(error) if error.started == PeerStart::No => {
                if error.kind == SendErrorKind::StreamRefused {
                    self.stream_refusals.note(&self.revision.acceptance)?;
                }
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
        if let Some(granted_at) = guard.granted_at {
            let waited = granted_at.saturating_since(self.arrived);
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
        let hop = Hop { upgrade: self.upgrade, timers: self.timers, drain: self.drain };
        hop.respond(response, guard)
    }

    fn refusal(&self, refused: RequestRefusal) -> Refusal {
        let name = &self.revision.name;
        match refused {
            RequestRefusal::RevisionQueueFull { limit } => Refusal::new(
                RefusalReason::QueueFull,
                format!("{limit} requests wait for {name}, which is the activator's limit per revision"),
            ),
            RequestRefusal::ActivatorQueueFull => activator_queue_full(self.revision.waiting_max()),
            RequestRefusal::Held => Refusal::new(RefusalReason::NoReadyPod, self.revision.held_because()),
            RequestRefusal::Gone => {
                Refusal::new(RefusalReason::NoSuchRevision, format!("{name} was removed"))
            }
        }
    }

    /// The refusal of a request that no pod took in time.
    fn no_ready_pod(&self, expired: ExceededLimit) -> Refusal {
        let timeouts = self.revision.settings().timeouts;
        let limit = limit_reached(expired, timeouts, &self.revision.name);
        let refusals = text_of_refusals(self.app_refusals.count());
        let detail = format!("{limit}; {}{refusals}", self.revision.waits_for());
        Refusal::new(RefusalReason::NoReadyPod, detail).with_body(NextHop::Pod.timeout_body(expired))
    }

    /// The refusal of a request that a pod has and does not answer in time.
    fn timed_out(&self, expired: ExceededLimit) -> Refusal {
        let timeouts = self.revision.settings().timeouts;
        NextHop::Pod.timed_out(expired, timeouts, &self.revision.name, self.app_refusals.count())
    }
}

/// The whole activator holds as many waiting requests as it may.
pub(crate) fn activator_queue_full(limit: u32) -> Refusal {
    let detail = format!("{limit} requests wait in this activator, which is its limit");
    Refusal::new(RefusalReason::QueueFull, detail)
}

/// What one of our own hops says in a header of a response.
fn says(response: &Response<Body>, name: HeaderName) -> Option<&HeaderValue> {
    response.fields().of_hops().and_then(|headers| headers.get(name))
}

/// Whether a refusal of one of our own hops is for that reason.
fn names_reason(response: &Response<Body>, reason: RefusalReason) -> bool {
    let error = says(response, names::EBB_ERROR).map(HeaderValue::as_bytes).unwrap_or_default();
    error.split(|&byte| byte == b';').next() == Some(reason.as_str().as_bytes())
}
