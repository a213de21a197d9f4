//! The way of a request through the queue-proxy: one function, [`Stack::call`], with its stages in the order in which a request meets them.

mod expect;
pub(crate) mod gate;
mod refusals;

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

use dataplane::{
    Abort, AsyncBreaker, Body, ClientAddress, Connection, Drain, Forwarded, Held, Hop, Permit, Protocol,
    Refusal, RequestKind, SendErrorKind, Service, Timers, Upstreams, framing_problem, names, set_forwarded,
    set_host, strip_internal,
};
use http::header::HeaderValue;
use http::{Method, Request, Response};
use hyper::body::Incoming;
use runtime::Clock;
use throttling::Origin;
use vocabulary::{RequestTimeouts, Routing};

use crate::health::Health;
use crate::load::{Counted, LoadBook};
use crate::metrics::{Metrics, Outcome};
use crate::settings::Settings;

/// Everything that a request meets on its way to the app.
pub(crate) struct Stack {
    pub(crate) clock: Clock,
    pub(crate) timeouts: RequestTimeouts,
    pub(crate) container_concurrency: u32,
    /// `None` when the app takes any number of requests at once.
    pub(crate) breaker: Option<AsyncBreaker>,
    pub(crate) load: Rc<LoadBook>,
    pub(crate) health: Rc<Health>,
    pub(crate) settings: Rc<Settings>,
    pub(crate) metrics: Rc<Metrics>,
    pub(crate) drain: Drain,
    pub(crate) app: App,
}

/// Where the app is, and the connections to it.
pub(crate) struct App {
    pub(crate) upstreams: Upstreams,
    /// The loopback address on which it answered last (L47): some apps listen on one of the two only.
    address: Cell<SocketAddr>,
    /// What an HTTP/1.0 client without a `Host` is taken to mean.
    host: String,
}

impl App {
    pub(crate) fn new(upstreams: Upstreams, port: u16) -> Self {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        Self { upstreams, address: Cell::new(address), host: address.to_string() }
    }

    fn other_address(&self) -> SocketAddr {
        let other = match self.address.get().ip() {
            IpAddr::V4(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        SocketAddr::new(other, self.address.get().port())
    }
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
}

impl Drop for InFlight {
    fn drop(&mut self) {
        drop(self.permit.take());
        if let Some(counted) = &self.counted {
            self.metrics.ended(self.outcome, counted.age());
        }
    }
}

/// What of a request is decided before it is sent to the app.
struct Admission {
    sender: Sender,
    origin: Origin,
    /// `ebb-no-queue`: now or never.
    is_impatient: bool,
    kind: RequestKind,
}

type Answer = Response<Held<Option<InFlight>>>;

impl Service for Stack {
    type Body = Held<Option<InFlight>>;

    async fn call(
        self: Rc<Self>,
        mut request: Request<Incoming>,
        connection: Rc<Connection>,
    ) -> Result<Answer, Abort> {
        // Who sent this? Without proof, headers that only our hops may set are removed before anything looks at them (L12).
        let sender = self.sender_of(&mut request, &connection);
        // A probe is answered from what is known, before anything is allocated for it.
        if sender == Sender::Hop && gate::is_probe(request.headers()) {
            return Ok(gate::answer(request.headers(), self.health.state()).map(Self::without_guard));
        }
        // What two servers could read in two ways goes no further, and neither does the connection.
        if let Some(refusal) = framing_problem(&request) {
            connection.retire();
            self.metrics.refuse(refusal.reason);
            return Ok(refusal.into_response(RequestKind::of(&request)).map(Self::without_guard));
        }
        if *request.method() == Method::OPTIONS && request.uri().path() == "*" {
            return Ok(Response::new(Self::without_guard(Body::empty())));
        }
        // The path has moved to the activators: tell clients, on this and every later answer.
        if sender == Sender::Client && self.settings.routing() == Routing::ThroughActivator {
            connection.retire();
        }
        self.serve(sender, request, &connection).await
    }
}

impl Stack {
    fn sender_of(&self, request: &mut Request<Incoming>, connection: &Connection) -> Sender {
        if self.settings.is_vouched_for(request.headers()) {
            connection.mark_as_hop();
            request.headers_mut().remove(names::EBB_HOP_KEY);
            Sender::Hop
        } else {
            strip_internal(request.headers_mut());
            Sender::Client
        }
    }

    /// Counts the request, starts its clocks, and sees it through.
    async fn serve(
        &self,
        sender: Sender,
        mut request: Request<Incoming>,
        connection: &Connection,
    ) -> Result<Answer, Abort> {
        let mut timers = Timers::start(self.timeouts, self.clock);
        let admission = admission_of(sender, &request);
        let is_kubelet = request.headers().get(names::K_KUBELET_PROBE).is_some_and(|value| !value.is_empty());
        let mut in_flight = InFlight {
            permit: None,
            counted: (!is_kubelet).then(|| self.load.arrive(admission.origin)),
            metrics: Rc::clone(&self.metrics),
            outcome: Outcome::Cancelled,
        };
        prepare_headers(sender, &mut request, ClientAddress(connection.peer().ip()));
        let mut forwarded = Forwarded::new(request);
        let host = original_host(&mut forwarded.request);
        set_host(&mut forwarded.request, host, &self.app.host);
        let expecting = expect::hold_body(&mut forwarded.request);
        let activity = timers.activity();
        let request = forwarded.request.map(|body| body.with_activity(activity));
        let exchange = async {
            if !is_kubelet {
                in_flight.permit = self.admit(&admission).await?;
            }
            self.send(forwarded.protocol, request).await
        };
        let answered = match timers.limit(exchange).await {
            Ok(answered) => answered,
            Err(expired) => Err(Failure::Refused(refusals::expired(expired, self.timeouts))),
        };
        drop(expecting);
        let answered = match answered {
            Ok(mut response) => {
                in_flight.outcome = Outcome::Answered;
                // Only we say these: an app that said "not started" would have its request sent elsewhere again and again.
                for ours in [names::EBB_NOT_STARTED, names::EBB_ERROR] {
                    response.headers_mut().remove(ours);
                }
                let hop = Hop { upgrade: forwarded.upgrade, timers, drain: &self.drain };
                hop.respond(response, in_flight).map_err(Failure::Refused)
            }
            Err(failure) => {
                if let Failure::Refused(refusal) = &failure {
                    in_flight.outcome = Outcome::Refused(refusal.reason);
                }
                Err(failure)
            }
        };
        match answered {
            Ok(response) => Ok(response),
            Err(Failure::ClientGone) => Err(Abort),
            Err(Failure::Refused(refusal)) => {
                Ok(refusal.into_response(admission.kind).map(Self::without_guard))
            }
        }
    }

    /// A slot of the app, after a wait if need be. `None` when the app has no limit.
    async fn admit(&self, admission: &Admission) -> Result<Option<Permit>, Failure> {
        let Some(breaker) = &self.breaker else { return Ok(None) };
        if let Some(permit) = breaker.try_admit() {
            return Ok(Some(permit));
        }
        let refusal = || Failure::Refused(refusals::queue_full(self.container_concurrency, admission.sender));
        if admission.is_impatient {
            return Err(refusal());
        }
        let _waiting = self.load.wait(admission.origin);
        breaker.admit().await.map(Some).map_err(|_full| refusal())
    }

    /// Sends the request to the app, on whichever loopback address it listens.
    async fn send(&self, protocol: Protocol, request: Request<Body>) -> Result<Response<Body>, Failure> {
        let App { upstreams, address, .. } = &self.app;
        let error = match upstreams.send(address.get(), protocol, request).await {
            Ok(response) => return Ok(response),
            Err(error) => error,
        };
        let error = match (error.kind.clone(), error.request) {
            (SendErrorKind::ConnectRefused, Some(unsent)) => {
                let other = self.app.other_address();
                match upstreams.send(other, protocol, *unsent).await {
                    Ok(response) => {
                        address.set(other);
                        return Ok(response);
                    }
                    // What the usual address said is what people want to read, unless this one heard the request.
                    Err(second) if second.started == dataplane::Started::No => (error.kind, error.started),
                    Err(second) => (second.kind, second.started),
                }
            }
            (kind, _) => (kind, error.started),
        };
        Err(match error {
            (SendErrorKind::RequestBody, _) => Failure::ClientGone,
            (kind, started) => Failure::Refused(refusals::unanswered(&kind, started)),
        })
    }

    fn without_guard(body: Body) -> Held<Option<InFlight>> {
        Held::new(body, None)
    }
}

/// Why there is no response of the app.
enum Failure {
    Refused(Refusal),
    /// The client broke its request off; there is nobody to answer.
    ClientGone,
}

fn admission_of(sender: Sender, request: &Request<Incoming>) -> Admission {
    let headers = request.headers();
    let is_proxied = headers.get(names::K_PROXY_REQUEST).is_some_and(|value| value == "activator");
    Admission {
        sender,
        origin: if is_proxied { Origin::Proxied } else { Origin::Direct },
        is_impatient: headers.contains_key(names::EBB_NO_QUEUE),
        kind: RequestKind::of(request),
    }
}

/// Knative's order: `Forwarded` is built before the sender is appended; then what ends here is removed.
fn prepare_headers(sender: Sender, request: &mut Request<Incoming>, address: ClientAddress) {
    let headers = request.headers_mut();
    set_forwarded(headers, address);
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
