//! The way of a request through the queue-proxy, its stages in the order in which it meets them: [`Stack::begin`] up to the queue, which needs no
//! waiting, [`Stack::finish`] from there on.

pub(crate) mod app;
mod expect;
pub(crate) mod gate;
pub(crate) mod logging;
mod refusals;

use std::cell::Cell;
use std::future::{Future, ready};
use std::rc::Rc;

use dataplane::{
    Abort, AppRefusals, AsyncBreaker, Body, BodyGuard, ClientUpgrade, Connection, Drain, Forwarded, Held,
    Hop, HopFailure, NextHop, Permit, Protocol, Refusal, RequestKind, SecondAttempt, SendError,
    SendErrorKind, Service, Span, Timers, Tracer, UnservedRequest, has_internal, names, set_forwarded_for,
    set_host, strip_internal, strip_refusal, strip_shadowing, translate,
};
use futures_util::future::Either;
use http::header::HeaderValue;
use http::{Method, Request, Response, StatusCode};
use runtime::Clock;
use throttling::Origin;
use vocabulary::{RequestTimeouts, Routing, Timestamp};

use crate::config::ShadowingHeaders;
use crate::health::Health;
use crate::load::{Counted, LoadBook};
use crate::metrics::{Metrics, Outcome};
use crate::settings::Settings;
use app::AppEnd;
use logging::{Line, Logging};

/// Everything that a request meets on its way to the app.
pub(crate) struct Stack {
    pub(crate) clock: Clock,
    pub(crate) timeouts: RequestTimeouts,
    pub(crate) container_concurrency: u32,
    pub(crate) shadowing: ShadowingHeaders,
    /// `None` when the app takes any number of requests at once.
    pub(crate) breaker: Option<AsyncBreaker>,
    pub(crate) load: Rc<LoadBook>,
    pub(crate) health: Rc<Health>,
    pub(crate) settings: Rc<Settings>,
    pub(crate) metrics: Rc<Metrics>,
    pub(crate) drain: Drain,
    pub(crate) app: AppEnd,
    /// `None` where there is no request log.
    pub(crate) logging: Option<Rc<Logging>>,
    pub(crate) tracer: Tracer,
}

/// Where a request comes from, as far as it was proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    /// One of our own hops: its internal headers are believed.
    Hop,
    /// Anybody.
    Client,
}

/// A request that counts, from its arrival to the end of its response.
pub(crate) struct InFlight {
    /// Dropped first: the slot goes on before the request stops to count.
    permit: Option<Permit>,
    /// `None` for a kubelet's probe that a mesh has rewritten: it is no load (P9).
    counted: Option<Counted>,
    metrics: Rc<Metrics>,
    outcome: Outcome,
    line: Option<Box<Line>>,
    /// `None` for nearly all: without settings, and for those whose trace is not kept.
    span: Option<Box<Span>>,
}

impl InFlight {
    /// It has its slot, and goes to the app.
    fn admitted(&mut self, permit: Option<Permit>) {
        self.permit = permit;
        if let Some(span) = &mut self.span {
            let queued = span.event("admitted");
            span.note("ebb.queue_seconds", queued);
        }
    }

    /// The app's answer begins.
    fn answered(&mut self, status: StatusCode) {
        self.outcome = Outcome::Answered(status);
        if let Some(span) = &mut self.span {
            let took = span.event("answered");
            span.note("ebb.app_seconds", took);
            span.answered(status);
        }
    }

    /// There is no answer but ours.
    fn refused(&mut self, refusal: &Refusal) {
        self.outcome = Outcome::Refused(refusal.reason);
        if let Some(span) = &mut self.span {
            span.refused(refusal);
        }
    }
}

impl BodyGuard for InFlight {
    fn sent(&mut self, bytes: usize) {
        if let Some(line) = &mut self.line {
            line.sent(bytes);
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        drop(self.permit.take());
        if let Some(counted) = self.counted.take() {
            self.metrics.ended(self.outcome, counted.end());
        }
        if let Some(line) = &mut self.line {
            match self.outcome {
                Outcome::Answered(status) => line.answered(status),
                Outcome::Refused(reason) => line.answered(reason.status()),
                Outcome::Cancelled => {}
            }
        }
    }
}

/// What of a request is decided before it is sent to the app.
struct Admission {
    sender: Sender,
    origin: Origin,
    /// `ebb-no-queue`: now or never.
    is_impatient: bool,
    /// A kubelet's probe that a mesh has rewritten: neither load nor limited (P9).
    is_kubelet: bool,
    kind: RequestKind,
}

type Answer = Response<Held<Option<InFlight>>>;

/// A request that was let in, on its way to a slot and to the app.
struct Begun {
    request: Box<Request<Body>>,
    protocol: Protocol,
    upgrade: Option<ClientUpgrade>,
    admission: Admission,
    in_flight: InFlight,
    timers: Timers,
    /// While a body is held back: there is no response yet.
    expecting: Option<Rc<()>>,
}

impl Service for Stack {
    type Body = Held<Option<InFlight>>;

    /// What needs no waiting happens before there is a future: a future is copied about, and all that it holds with it.
    fn call(
        self: Rc<Self>,
        request: Request<Body>,
        connection: Rc<Connection>,
    ) -> impl Future<Output = Result<Answer, Abort>> + 'static {
        match self.begin(request, &connection) {
            Ok(begun) => Either::Left(Box::pin(self.finish(begun))),
            Err(answer) => Either::Right(ready(Ok(answer))),
        }
    }

    fn note_unserved(&self, unserved: &UnservedRequest<'_>) {
        self.metrics.refuse(unserved.reason);
        if let Some(logging) = &self.logging {
            logging.note_unserved(unserved);
        }
    }
}

impl Stack {
    /// The stages up to the queue. An error is the answer.
    #[expect(
        clippy::result_large_err,
        reason = "it is moved once, and boxing it would cost every refusal an allocation"
    )]
    fn begin(&self, mut request: Request<Body>, connection: &Connection) -> Result<Begun, Answer> {
        // Who sent this? Without proof, headers that only our hops may set are removed before anything looks at them (L12).
        let sender = self.sender_of(&mut request, connection);
        match self.shadowing {
            ShadowingHeaders::Drop => strip_shadowing(request.headers_mut()),
            ShadowingHeaders::Keep => {}
        }
        let is_probe = sender == Sender::Hop && gate::is_probe(request.headers());
        // Before the line in the log, which names the trace.
        let span = if is_probe { None } else { self.tracer.begin(&mut request, connection) };
        let line = self.logging.as_ref().and_then(|logging| logging.begin(sender, &request, connection));
        // A probe is answered from what is known, before anything is allocated for it.
        if is_probe {
            let answer = gate::answer(request.headers(), self.health.state()).map(Self::without_guard);
            return Err(logging::at_once(line, answer));
        }
        if *request.method() == Method::OPTIONS && request.uri().path() == "*" {
            if let Some(mut span) = span {
                span.answered(StatusCode::OK);
            }
            return Err(logging::at_once(line, Response::new(Self::without_guard(Body::empty()))));
        }
        // The path has moved to the activators: tell clients, on this and every later answer.
        if sender == Sender::Client && self.settings.routing() == Routing::ThroughActivator {
            connection.retire();
        }
        // From here on it is load, and its clocks run.
        let timers = Timers::start(self.timeouts, self.clock);
        let admission = admission_of(sender, &request);
        let mut in_flight = self.count(&admission, timers.started_at());
        (in_flight.line, in_flight.span) = (line, span);
        // Its hop ends, the app's begins.
        prepare_headers(sender, &mut request, connection);
        let Forwarded { request, protocol, upgrade, .. } = Forwarded::new(request);
        let mut request = Box::new(request);
        let protocol = self.app.protocol_for(protocol, upgrade.as_ref());
        translate(&mut request, protocol);
        let host = if sender == Sender::Hop { original_host(&mut request) } else { None };
        set_host(&mut request, host, self.app.host());
        let expecting = expect::hold_body(&mut request);
        request.body_mut().note_activity(timers.activity());
        Ok(Begun { request, protocol, upgrade, admission, in_flight, timers, expecting })
    }

    /// The stages from the queue on.
    #[expect(clippy::manual_async_fn, reason = "an async function would hold what was begun twice")]
    fn finish(self: Rc<Self>, mut begun: Begun) -> impl Future<Output = Result<Answer, Abort>> {
        async move {
            let refusals = Cell::new(0);
            let exchange = async {
                begun.in_flight.admitted(self.admit(&begun.admission).await?);
                match self.app.send(begun.protocol, begun.request).await {
                    Err(SendError { request: Some(request), kind: SendErrorKind::StreamRefused, .. })
                        if begun.admission.sender == Sender::Client =>
                    {
                        Box::pin(self.ask_again(begun.protocol, request, &refusals)).await
                    }
                    answered => answered.map_err(|error| NextHop::App.failed(&error)),
                }
            };
            let answered = match begun.timers.limit(exchange).await {
                Ok(answered) => answered,
                Err(expired) => {
                    // The sidecar is not told its revision's name.
                    let (timeouts, refusals) = (self.timeouts, refusals.get());
                    Err(NextHop::App.timed_out(expired, timeouts, &"the revision", refusals).into())
                }
            };
            drop(begun.expecting);
            let (upgrade, timers, mut in_flight) = (begun.upgrade, begun.timers, begun.in_flight);
            let failure = match answered {
                Ok(mut response) => {
                    in_flight.answered(response.status());
                    // An app that said "not started" would have its request sent elsewhere again and again.
                    strip_refusal(response.headers_mut());
                    match (Hop { upgrade, timers, drain: &self.drain }).respond(response, in_flight) {
                        Ok(response) => return Ok(response),
                        Err(refusal) => HopFailure::Refused(refusal),
                    }
                }
                Err(failure) => {
                    if let HopFailure::Refused(refusal) = &failure {
                        in_flight.refused(refusal);
                    }
                    failure
                }
            };
            match failure {
                HopFailure::ClientGone => Err(Abort),
                HopFailure::Refused(refusal) => {
                    Ok(refusal.into_response(begun.admission.kind).map(Self::without_guard))
                }
            }
        }
    }

    fn sender_of(&self, request: &mut Request<Body>, connection: &Connection) -> Sender {
        if !has_internal(request.headers()) {
            return Sender::Client;
        }
        if self.settings.is_vouched_for(request.headers()) {
            connection.mark_as_hop();
            request.headers_mut().remove(names::EBB_HOP_KEY);
            Sender::Hop
        } else {
            strip_internal(request.headers_mut());
            Sender::Client
        }
    }

    fn count(&self, admission: &Admission, arrived_at: Timestamp) -> InFlight {
        InFlight {
            permit: None,
            counted: (!admission.is_kubelet).then(|| self.load.arrive(admission.origin, arrived_at)),
            metrics: Rc::clone(&self.metrics),
            outcome: Outcome::Cancelled,
            line: None,
            span: None,
        }
    }

    /// A slot of the app, after a wait if need be. `None` when the app has no limit.
    async fn admit(&self, admission: &Admission) -> Result<Option<Permit>, HopFailure> {
        let Some(breaker) = self.breaker.as_ref().filter(|_| !admission.is_kubelet) else { return Ok(None) };
        if let Some(permit) = breaker.try_admit() {
            return Ok(Some(permit));
        }
        let refusal =
            || HopFailure::Refused(refusals::queue_full(self.container_concurrency, admission.sender));
        if admission.is_impatient {
            return Err(refusal());
        }
        let _waiting = self.load.wait(admission.origin);
        breaker.admit().await.map(Some).map_err(|_full| refusal())
    }

    /// Asks an app again that refused a request, until it does not, or for as often as it may be asked.
    async fn ask_again(
        &self,
        protocol: Protocol,
        mut request: Box<Request<Body>>,
        count: &Cell<u32>,
    ) -> Result<Response<Body>, HopFailure> {
        let mut refusals = AppRefusals::none(SecondAttempt::AfterAWait);
        loop {
            let wait = refusals.next_wait();
            // Whoever tells the client what happened reads it, also when a timer ends the waiting.
            count.set(refusals.count());
            self.clock.sleep_until(self.clock.now() + wait?).await;
            request = match self.app.send(protocol, request).await {
                Err(SendError { request: Some(request), kind: SendErrorKind::StreamRefused, .. }) => request,
                answered => return answered.map_err(|error| NextHop::App.failed(&error)),
            };
        }
    }

    fn without_guard(body: Body) -> Held<Option<InFlight>> {
        Held::new(body, None)
    }
}

fn admission_of(sender: Sender, request: &Request<Body>) -> Admission {
    let headers = request.headers();
    let is_hop = sender == Sender::Hop;
    let is_proxied = is_hop && headers.get(names::K_PROXY_REQUEST).is_some_and(|value| value == "activator");
    Admission {
        sender,
        origin: if is_proxied { Origin::Proxied } else { Origin::Direct },
        is_impatient: is_hop && headers.contains_key(names::EBB_NO_QUEUE),
        is_kubelet: is_hop && headers.get(names::K_KUBELET_PROBE).is_some_and(|value| !value.is_empty()),
        kind: RequestKind::of(request),
    }
}

/// Knative's order: `Forwarded` is built before the sender is appended; then what ends here is removed.
fn prepare_headers(sender: Sender, request: &mut Request<Body>, connection: &Connection) {
    let headers = request.headers_mut();
    set_forwarded_for(headers, connection.forwarded_for());
    if sender == Sender::Hop {
        for ends_here in
            [names::KNATIVE_SERVING_REVISION, names::KNATIVE_SERVING_NAMESPACE, names::EBB_NO_QUEUE]
        {
            headers.remove(ends_here);
        }
        expect::restore(headers);
    }
}

fn original_host(request: &mut Request<Body>) -> Option<HeaderValue> {
    request.headers_mut().remove(names::K_ORIGINAL_HOST).filter(|host| !host.is_empty())
}
