//! The way of a request through the queue-proxy, its stages in the order in which it meets them:
//! [`PodStack::begin`] up to the queue, which needs no waiting, [`PodStack::finish`] from there on.

pub(crate) mod app;
mod expect;
mod in_flight;
pub(crate) mod logging;
pub(crate) mod probes;
mod refusals;
mod sender;
mod terms;

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use dataplane::{
    Abort, AppRefusals, AsyncBreaker, Body, ClientUpgrade, Connection, Drain, ForwardingTerms, Gate,
    GuardedBody, HEAD_SIZE_SETTING, HeadLimits, Hop, HopFailure, NextHop, NotStartedMark, Permit, Protocol,
    Refusal, RefusalReason, Request, RequestKind, Response, SecondAttempt, SendError, SendErrorKind, Service,
    Timers, Tracer, UnservedRequest, set_host, strip_refusal, strip_shadowing, translate,
};
use futures_util::future::Either;
use http::{Method, StatusCode};
use runtime::Clock;
use vocabulary::{IgnoredUserAgents, PodName, PodState, RequestTimeouts, Routing, Timestamp};

use crate::app_life::AppLife;
use crate::config::{QueueProxyPlace, ShadowingHeaders};
use crate::health::Health;
use crate::load::{CountedRequest, LoadBook};
use crate::metrics::QueueProxyMetrics;
use crate::settings::OwnerSettings;
use app::AppEnd;
use in_flight::{InFlight, ProxyResponse, without_guard};
use logging::RequestLogging;
use terms::{RequestSender, RequestTerms};

/// How often a connection to the app is tried for a client's request, a second each time. The kernel of a
/// machine that has too much to do drops packets, within a pod too, and says again after a second what got no
/// answer; and an app's queue of connections may be full for a while.
const CONNECTS_MAX: u32 = 10;

/// Everything that a request meets on its way to the app.
pub(crate) struct PodStack {
    pub(crate) place: QueueProxyPlace,
    pub(crate) pod: PodName,
    pub(crate) clock: Clock,
    pub(crate) timeouts: RequestTimeouts,
    pub(crate) container_concurrency: u32,
    pub(crate) shadowing: ShadowingHeaders,
    pub(crate) ignored_user_agents: IgnoredUserAgents,
    /// `None` when the app takes any number of requests at once.
    pub(crate) breaker: Option<AsyncBreaker>,
    pub(crate) load: Rc<LoadBook>,
    pub(crate) health: Rc<Health>,
    pub(crate) settings: Rc<OwnerSettings>,
    pub(crate) metrics: Rc<QueueProxyMetrics>,
    pub(crate) drain: Drain,
    pub(crate) app: AppEnd,
    pub(crate) life: Rc<AppLife>,
    /// `None` where there is no request log.
    pub(crate) logging: Option<Rc<RequestLogging>>,
    pub(crate) tracer: Tracer,
}

/// A request that was let in, on its way to a slot and to the app.
struct AdmittedRequest {
    protocol: Protocol,
    upgrade: Option<ClientUpgrade>,
    admission: RequestTerms,
    in_flight: InFlight,
    timers: Timers,
    /// Holds a body back that the app has to ask for.
    body_gate: Option<Gate>,
}

/// What a request waits for before anything is decided about it.
enum FirstWait {
    /// It shows a hop key, and no settings have named the valid keys yet.
    Settings,
    /// It asks about an app that has not been ready yet, and is answered after so long at the latest.
    AppStart(Duration),
}

/// A request to which the app gave no answer.
struct FailedRequest {
    failure: HopFailure,
    in_flight: InFlight,
    kind: RequestKind,
}

impl Service for PodStack {
    type Body = GuardedBody<Option<InFlight>>;

    /// What needs no waiting happens in this call and not in the future: a request counts, and has its line
    /// in the log, even if its stream is reset before the future is polled for the first time. The request is
    /// large: it is boxed for its whole way, so that no stage moves it.
    fn call(
        self: Rc<Self>,
        request: Request<Body>,
        connection: Rc<Connection>,
    ) -> impl Future<Output = Result<ProxyResponse, Abort>> + 'static {
        let request = Box::new(request);
        if let Some(wait) = self.first_wait(&request) {
            return Either::Right(Either::Left(Box::pin(self.call_after(wait, request, connection))));
        }
        match self.begin(request, &connection) {
            Ok((request, begun)) => Either::Left(Box::pin(self.finish(request, begun))),
            Err(answer) => Either::Right(Either::Right(async move { Ok(*answer) })),
        }
    }

    fn head_limits(&self, request: &Request<()>) -> HeadLimits {
        self.settings.head_limits(request.headers())
    }

    fn head_limits_max(&self, _usual: HeadLimits) -> HeadLimits {
        self.settings.head_limits_max()
    }

    fn head_size_setting(&self) -> Option<&'static str> {
        Some(HEAD_SIZE_SETTING)
    }

    fn note_unserved(&self, unserved: &UnservedRequest<'_>) {
        self.metrics.refuse(unserved.reason);
        if let Some(logging) = &self.logging {
            logging.note_unserved(unserved);
        }
    }
}

impl PodStack {
    fn first_wait(&self, request: &Request<Body>) -> Option<FirstWait> {
        let headers = request.fields().of_hops()?;
        if self.settings.hop_keys_still_pending(headers) {
            return Some(FirstWait::Settings);
        }
        let is_asked = self.place == QueueProxyPlace::Knative && self.health.state() == PodState::Starting;
        is_asked.then(|| probes::patience(headers))?.map(FirstWait::AppStart)
    }

    /// As [`PodStack::call`], for a request that has to wait first. It counts at the hop that sent it, or as
    /// nothing, while it waits here.
    async fn call_after(
        self: Rc<Self>,
        wait: FirstWait,
        request: Box<Request<Body>>,
        connection: Rc<Connection>,
    ) -> Result<ProxyResponse, Abort> {
        match wait {
            FirstWait::Settings => self.settings.await_first_settings(self.clock).await,
            FirstWait::AppStart(at_most) => self.health.started(at_most, self.clock).await,
        }
        match self.begin(request, &connection) {
            Ok((request, begun)) => self.finish(request, begun).await,
            Err(answer) => Ok(*answer),
        }
    }

    /// The stages up to the queue. An error is the answer to a request that goes no further. It is boxed,
    /// because the result and the future of every request would have room for an answer.
    fn begin(
        &self,
        mut request: Box<Request<Body>>,
        connection: &Connection,
    ) -> Result<(Box<Request<Body>>, AdmittedRequest), Box<ProxyResponse>> {
        let sender = sender::sender_of(&mut request, connection, self.place, &self.pod, &self.settings);
        let Some(sender) = sender else {
            return Err(Box::new(self.refuse_misdirected(&request, connection)));
        };
        match (self.shadowing, request.fields_mut().of_hops_mut()) {
            (ShadowingHeaders::Drop, Some(headers)) => strip_shadowing(headers),
            (ShadowingHeaders::Drop, None) | (ShadowingHeaders::Keep, _) => {}
        }
        // Only of a sender that is believed: a client that could pass for a probe would be answered by us,
        // without its app ever seeing it.
        let is_probe = sender != RequestSender::Client && probes::is_probe(request.headers());
        // Before the line in the log, which names the trace.
        let span = if is_probe { None } else { self.tracer.begin(&mut request, connection) };
        let line = self.logging.as_ref().and_then(|logging| logging.begin(sender, &request, connection));
        // A probe is answered from what is known, before anything else is made for it.
        if is_probe {
            let answer = probes::answer(request.headers(), self.health.state()).map(without_guard);
            return Err(Box::new(logging::at_once(line, answer)));
        }
        if *request.method() == Method::OPTIONS && request.uri().path() == "*" {
            if let Some(mut span) = span {
                span.answered(StatusCode::OK);
            }
            let answer = Response::new(without_guard(Body::empty()));
            return Err(Box::new(logging::at_once(line, answer)));
        }
        let is_keyed = self.settings.has_hop_keys();
        let admission = RequestTerms::of(&request, sender, &self.ignored_user_agents, is_keyed);
        // The path has moved to the activators: tell clients, on this and every later answer.
        if !admission.is_of_activator && self.settings.routing() == Routing::ThroughActivator {
            connection.retire();
        }
        // From here on it counts, and its clocks run.
        let timeouts = self.settings.timeouts(self.timeouts);
        let timers = connection.start_timers(timeouts, self.clock.now(), self.clock);
        let mut in_flight =
            InFlight::new(self.count(&admission, timers.started_at()), Rc::clone(&self.metrics));
        (in_flight.line, in_flight.span) = (line, span);
        // Its hop ends, the app's begins.
        sender::end_hop(sender, &mut request, connection);
        let ForwardingTerms { protocol, upgrade } = ForwardingTerms::prepare(&mut request);
        let protocol = self.app.protocol_for(protocol, upgrade.as_ref());
        translate(&mut request, protocol);
        let host = sender::noted_host(sender, &mut request);
        set_host(&mut request, host, self.app.host());
        let body_gate = expect::hold_body(&mut request);
        request.body_mut().note_activity(timers.activity());
        let begun = AdmittedRequest { protocol, upgrade, admission, in_flight, timers, body_gate };
        Ok((request, begun))
    }

    /// The stages from the queue on. No answer is held while anything is waited for: the future of every
    /// request would have room for it.
    #[expect(clippy::manual_async_fn, reason = "an async function would hold what was begun twice")]
    fn finish(
        self: Rc<Self>,
        request: Box<Request<Body>>,
        mut begun: AdmittedRequest,
    ) -> impl Future<Output = Result<ProxyResponse, Abort>> {
        async move {
            let refusals = Cell::new(0);
            let exchange = async {
                begun.in_flight.admitted(self.admit(&begun.admission).await?);
                self.app.limit_heads(self.settings.head_limits_of_app());
                let (request, kind) = match self.app.send(begun.protocol, request).await {
                    Err(SendError {
                        request: Some(request),
                        kind: kind @ (SendErrorKind::StreamRefused | SendErrorKind::ConnectTimedOut),
                        ..
                    }) if begun.admission.sender != RequestSender::Hop => (request, kind),
                    answered => return answered.map_err(|error| NextHop::App.failed(&error)),
                };
                if kind == SendErrorKind::StreamRefused {
                    Box::pin(self.ask_again(begun.protocol, request, &refusals)).await
                } else {
                    Box::pin(self.connect_again(begun.protocol, request, &refusals)).await
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
            match self.conclude(begun, answered) {
                Ok(response) => Ok(response),
                Err(failed) => Box::pin(self.refuse(failed)).await,
            }
        }
    }

    /// The response for the client. An error is a request to which the app gave no answer.
    fn conclude(
        &self,
        begun: AdmittedRequest,
        answered: Result<Response<Body>, HopFailure>,
    ) -> Result<ProxyResponse, Box<FailedRequest>> {
        let AdmittedRequest { upgrade, timers, mut in_flight, body_gate, admission, .. } = begun;
        let kind = admission.kind;
        let mut response = match answered {
            Ok(response) => response,
            Err(failure) => return Err(Box::new(FailedRequest { failure, in_flight, kind })),
        };
        // An app may answer first and read then. The body is not polled before this head is on its way to the
        // client, so the client is not asked for a body that the head may refuse.
        if let Some(gate) = body_gate {
            gate.open();
        }
        in_flight.answered(response.status());
        self.life.note_answer();
        // An app that said "not started" would have its request sent elsewhere again and again.
        if let Some(headers) = response.fields_mut().of_hops_mut() {
            strip_refusal(headers);
        }
        let hop = Hop { upgrade, timers, drain: &self.drain };
        let response = hop.respond(response, in_flight);
        Ok(response.unwrap_or_else(|refusal| refusal.into_response(kind).map(without_guard)))
    }

    /// Answers a request to which the app gave no answer, unless its client is gone.
    async fn refuse(&self, failed: Box<FailedRequest>) -> Result<ProxyResponse, Abort> {
        let FailedRequest { failure, mut in_flight, kind } = *failed;
        let refusal = match failure {
            HopFailure::ClientGone => return Err(Abort),
            HopFailure::Refused(refusal) if is_unanswered(&refusal) => self.with_end_of_app(refusal).await,
            HopFailure::Refused(refusal) => refusal,
        };
        in_flight.refused(&refusal);
        Ok(refusal.into_response(kind).map(without_guard))
    }

    /// Refuses a request that was sent to another pod. The app never sees it, and it is no load of this pod.
    fn refuse_misdirected(&self, request: &Request<Body>, connection: &Connection) -> ProxyResponse {
        let line = self
            .logging
            .as_ref()
            .and_then(|logging| logging.begin(RequestSender::Client, request, connection));
        let refusal = refusals::misdirected();
        self.metrics.refuse(refusal.reason);
        let response = refusal.into_response(RequestKind::of(request));
        logging::at_once(line, response.map(without_guard))
    }

    /// `None` for a kubelet's probe that a mesh has rewritten: it is no load (P9).
    fn count(&self, admission: &RequestTerms, arrived_at: Timestamp) -> Option<CountedRequest> {
        (!admission.is_kubelet).then(|| self.load.arrive(admission.counts_as, arrived_at))
    }

    /// A slot of the app, after a wait if need be. `None` when the app has no limit.
    async fn admit(&self, admission: &RequestTerms) -> Result<Option<Permit>, HopFailure> {
        let Some(breaker) = self.breaker.as_ref().filter(|_| !admission.is_kubelet) else { return Ok(None) };
        if let Some(permit) = breaker.try_admit() {
            return Ok(Some(permit));
        }
        let refusal =
            || HopFailure::Refused(refusals::queue_full(self.container_concurrency, admission.sender));
        if admission.is_impatient {
            return Err(refusal());
        }
        let _waiting = self.load.wait(admission.counts_as);
        breaker.admit().await.map(Some).map_err(|_full| refusal())
    }

    /// Repeats the attempt to connect after one that timed out, up to [`CONNECTS_MAX`] attempts in all. Only
    /// for requests of clients: an activator's request can go to another pod.
    async fn connect_again(
        &self,
        protocol: Protocol,
        mut request: Box<Request<Body>>,
        refusals: &Cell<u32>,
    ) -> Result<Response<Body>, HopFailure> {
        let mut attempts = 1;
        loop {
            attempts += 1;
            request =
                match self.app.send(protocol, request).await {
                    Err(SendError {
                        request: Some(request), kind: SendErrorKind::ConnectTimedOut, ..
                    }) if attempts < CONNECTS_MAX => request,
                    Err(SendError { request: Some(request), kind: SendErrorKind::StreamRefused, .. }) => {
                        return self.ask_again(protocol, request, refusals).await;
                    }
                    answered => return answered.map_err(|error| NextHop::App.failed(&error)),
                };
        }
    }

    /// Sends a request again that the app refused, with growing waits, until the app takes it or the attempts
    /// are used up.
    async fn ask_again(
        &self,
        protocol: Protocol,
        mut request: Box<Request<Body>>,
        count: &Cell<u32>,
    ) -> Result<Response<Body>, HopFailure> {
        let mut refusals = AppRefusals::none(SecondAttempt::AfterAWait);
        loop {
            let wait = refusals.next_wait();
            // The refusal reads the count, also when a timer ends the wait.
            count.set(refusals.count());
            self.clock.sleep_until(self.clock.now() + wait?).await;
            request = match self.app.send(protocol, request).await {
                Err(SendError { request: Some(request), kind: SendErrorKind::StreamRefused, .. }) => request,
                answered => return answered.map_err(|error| NextHop::App.failed(&error)),
            };
        }
    }

    /// Adds to a refusal how the app ended, if it has: a client that reads only of a closed connection cannot
    /// tell an app that crashes from one that refuses.
    async fn with_end_of_app(&self, refusal: Refusal) -> Refusal {
        match self.life.reason_of_end(self.app.is_listening(), self.clock).await {
            Some(how) => Refusal { detail: format!("{}; {how}", refusal.detail).into(), ..refusal },
            None => refusal,
        }
    }
}

/// Whether the app had the request and gave no answer.
fn is_unanswered(refusal: &Refusal) -> bool {
    let is_broken_off =
        matches!(refusal.reason, RefusalReason::UpstreamClosed | RefusalReason::UpstreamReset);
    is_broken_off && refusal.never_started == NotStartedMark::Unsaid
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What mimalloc gives out without a look at its pages. Beyond that a request pays some 240 instructions
    /// more for its memory, besides the moves of a larger future.
    const FAST_BYTES_MAX: usize = 1024;

    fn size_of_future<Work: Future>(
        _: impl FnOnce(Rc<PodStack>, Box<Request<Body>>, AdmittedRequest) -> Work,
    ) -> usize {
        size_of::<Work>()
    }

    #[test]
    fn the_future_of_a_request_is_small() {
        let size = size_of_future(PodStack::finish);
        assert!(size <= FAST_BYTES_MAX, "{size} bytes");
    }
}
