//! The way of a request through the activator, in the order it meets the steps.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use dataplane::{
    Abort, AppRefusals, Body, Connection, Drain, ForwardingTerms, GuardedBody, HEAD_SIZE_SETTING, HeadLimits,
    HopFailure, Refusal, RefusalReason, Request, RequestKind, Response, SecondAttempt, Service, Span,
    UnservedRequest, Upstreams, effective_host, note_tls, written_host,
};
use http::StatusCode;
use vocabulary::{Timestamp, WaitingPage};

use crate::assignments::Assignments;
use crate::context::Context;
use crate::forward::{AnswerBody, RequestForwarder, RequestMeasure, activator_queue_full};
use crate::outgoing::RepeatableRequest;
use crate::recent_hosts::RecentHosts;
use crate::reporting::RequestReporter;
use crate::shared_revision::SharedRevision;
use crate::stream_refusals::StreamRefusals;
use crate::waiting_page::is_navigation;

/// How long a request for an unknown host waits for an activator that has not heard everything yet: Knative's
/// default request timeout, since the revision's own is not known.
const UNKNOWN_WAIT_MAX: Duration = Duration::from_secs(300);

/// The service of one worker, at its usual listeners or at one revision's port.
pub(crate) struct ActivatorStack {
    pub(crate) context: Arc<Context>,
    pub(crate) assignments: Arc<Assignments>,
    pub(crate) upstreams: Upstreams,
    pub(crate) drain: Drain,
    /// Where it takes requests of one revision alone.
    pub(crate) port: Option<RevisionPort>,
    pub(crate) reporter: RequestReporter,
    pub(crate) recent_hosts: RecentHosts<SharedRevision>,
}

/// A port at which requests of one revision alone come in. Its number also finds the port of the revision's
/// pods to which they go.
#[derive(Clone)]
pub(crate) struct RevisionPort {
    pub(crate) revision: Arc<SharedRevision>,
    pub(crate) port: u16,
}

impl Service for ActivatorStack {
    type Body = AnswerBody;

    /// Boxed, because a connection that waits for its next request has room for this future too. And so is
    /// the request, for its whole way: the future would have room for it more than once, and each stage would
    /// move it.
    fn call(
        self: Rc<Self>,
        request: Request<Body>,
        connection: Rc<Connection>,
    ) -> impl Future<Output = Result<Response<AnswerBody>, Abort>> + 'static {
        let mut request = Box::new(request);
        Box::pin(async move {
            if let Some(answer) = self.probed(&request) {
                return Ok(answer);
            }
            let kind = RequestKind::of(&request);
            let arrived = self.context.clock.now();
            let mut span = self.reporter.tracer.begin(&mut request, &connection);
            if connection.is_encrypted() {
                note_tls(&mut request);
            }
            let revision = match self.destination(&request) {
                Destination::Known(revision) => Ok(revision),
                // Boxed, because hardly any request has to wait here, and each would have room for it.
                Destination::Unknown(host) => Box::pin(self.await_revision(&host)).await,
            };
            let revision = revision.and_then(|revision| match misdirected(&request, &connection) {
                Some(refusal) => Err(refusal),
                None => Ok(revision),
            });
            let name = revision.as_ref().ok().map(|revision| &revision.name);
            let line = self.reporter.begin(&request, &connection, name, arrived);
            let answer = match revision {
                Ok(revision) => {
                    let arrival = RequestArrival { at: arrived, kind, span: &mut span };
                    self.forwarding(request, revision, &connection, arrival).run().await
                }
                Err(refusal) => Err(HopFailure::Refused(refusal)),
            };
            match answer {
                Ok(answer) => Ok(answer),
                Err(HopFailure::Refused(refusal)) => {
                    if let Some(span) = &mut span {
                        span.refused(&refusal);
                    }
                    let answer = self.refuse(refusal, kind);
                    if let Some(line) = line {
                        line.refused(&answer);
                    }
                    Ok(answer)
                }
                Err(HopFailure::ClientGone) => Err(Abort),
            }
        })
    }

    fn head_limits(&self, request: &Request<()>) -> HeadLimits {
        HeadLimits::outer(match self.destination(request) {
            Destination::Known(revision) => revision.head_size(),
            Destination::Unknown(_) => self.assignments.head_size_max(),
        })
    }

    fn head_limits_max(&self, _usual: HeadLimits) -> HeadLimits {
        HeadLimits::outer(match &self.port {
            Some(port) => port.revision.head_size(),
            None => self.assignments.head_size_max(),
        })
    }

    fn head_size_setting(&self) -> Option<&'static str> {
        Some(HEAD_SIZE_SETTING)
    }

    fn note_unserved(&self, unserved: &UnservedRequest<'_>) {
        self.context.metrics.count_refusal(unserved.reason);
        self.reporter.note_unserved(unserved);
    }
}

/// When a request arrived, and what is told of it.
struct RequestArrival<'s> {
    at: Timestamp,
    kind: RequestKind,
    span: &'s mut Option<Box<Span>>,
}

/// The revision of a request, or the host that is not known yet.
enum Destination {
    Known(Arc<SharedRevision>),
    /// A host of which nothing has been heard so far.
    Unknown(String),
}

impl ActivatorStack {
    /// The answer to a probe of Knative's kind, which is no request of a revision.
    fn probed(&self, request: &Request<Body>) -> Option<Response<AnswerBody>> {
        let takes_requests = || self.assignments.is_synced() && !self.context.leaving.is_cancelled();
        let answer = self.context.place.probe_answer(request.fields(), takes_requests)?;
        Some(answer.map(|body: Body| GuardedBody::new(body, None)))
    }

    fn destination<B>(&self, request: &Request<B>) -> Destination {
        if let Some(port) = &self.port {
            return Destination::Known(Arc::clone(&port.revision));
        }
        let named = self.context.place.named_host(request.fields());
        let changes = self.assignments.host_changes();
        // What is remembered is text: a host that is the same need not be looked at for that.
        let bytes = named.as_deref().map(str::as_bytes).or_else(|| written_host(request)).unwrap_or_default();
        if let Some(revision) = self.recent_hosts.find(bytes, changes) {
            return Destination::Known(revision);
        }
        let written = named.as_deref().or_else(|| effective_host(request)).unwrap_or_default();
        let host = normalised(written);
        let Some(revision) = self.assignments.find(&host) else {
            return Destination::Unknown(host.into_owned());
        };
        self.recent_hosts.note(written, changes, &revision);
        Destination::Known(revision)
    }

    /// A request on its way. No async function, which would keep what this one consumes.
    fn forwarding<'s>(
        &'s self,
        mut request: Box<Request<Body>>,
        revision: Arc<SharedRevision>,
        connection: &'s Connection,
        arrival: RequestArrival<'s>,
    ) -> RequestForwarder<'s> {
        let RequestArrival { at: arrived, kind, span } = arrival;
        let settings = revision.settings();
        let shows_page =
            settings.waiting_page != WaitingPage::Off && is_navigation(request.method(), request.fields());
        let waiting_page = if shows_page { settings.waiting_page.clone() } else { WaitingPage::Off };
        let measure = if settings.ignores(request.fields()) {
            RequestMeasure::Unmeasured(kind)
        } else {
            let peer = connection.peer().ip();
            let trusts = || self.context.forwarders.trusts(peer);
            revision.callers.note(arrived, request.fields(), peer, trusts);
            RequestMeasure::Load
        };
        // The timers run from arrival: time in a queue counts.
        let timers = connection.start_timers(settings.timeouts, arrived, self.context.clock);
        if let Some(span) = span {
            span.note("ebb.revision", revision.name.to_string().as_str());
        }
        self.upstreams.limit_heads(HeadLimits::hop(self.assignments.head_size_max()));
        let ForwardingTerms { protocol, upgrade } = ForwardingTerms::prepare(&mut request);
        request.body_mut().note_activity(timers.activity());
        let outgoing = RepeatableRequest::new(request, protocol, connection, &self.context);
        RequestForwarder {
            upstreams: &self.upstreams,
            drain: &self.drain,
            clock: self.context.clock,
            entrance: self.port.as_ref().map(|port| port.port),
            connection,
            routing: settings.routing,
            revision,
            outgoing,
            upgrade,
            timers,
            arrived,
            measure,
            span,
            has_waited: false,
            waiting_page,
            app_refusals: AppRefusals::none(SecondAttempt::AtOnce),
            stream_refusals: StreamRefusals::default(),
        }
    }

    /// Waits for the revision of an unknown host: the host is refused only once the autoscaler has named
    /// every revision.
    async fn await_revision(&self, host: &str) -> Result<Arc<SharedRevision>, Refusal> {
        // Subscribed before the look: what is assigned between the two would be missed otherwise.
        let mut news = self.assignments.news();
        let unknown = || {
            Refusal::new(
                RefusalReason::NoSuchRevision,
                format!("no revision is known under the host {host:?}"),
            )
        };
        if news.borrow().is_synced {
            return self.assignments.find(host).ok_or_else(unknown);
        }
        let Some(_place) = self.context.take_waiting_place() else {
            return Err(activator_queue_full(self.context.limits.waiting_in_all));
        };
        let waiting = async {
            loop {
                // Read before the host is looked up. The other way round a sync that ends in between would
                // make an assignment that it brought look unknown.
                let is_synced = news.borrow_and_update().is_synced;
                if let Some(revision) = self.assignments.find(host) {
                    return Ok(revision);
                }
                if is_synced || news.changed().await.is_err() {
                    return Err(unknown());
                }
            }
        };
        tokio::time::timeout(UNKNOWN_WAIT_MAX, waiting).await.unwrap_or_else(|_| {
            Err(Refusal::new(
                RefusalReason::NoReadyPod,
                format!("the activator has not heard from the autoscaler yet, and does not know {host:?}"),
            ))
        })
    }

    fn refuse(&self, refusal: Refusal, kind: RequestKind) -> Response<AnswerBody> {
        self.context.metrics.count_refusal(refusal.reason);
        tracing::debug!(reason = %refusal.reason, detail = %refusal.detail, "refused a request");
        refusal.into_response(kind).map(|body: Body| GuardedBody::new(body, None))
    }
}

/// A client may share one connection among all names that lead to one address. What it asks of a name that
/// the certificate here does not cover, and another one does, is refused: on a connection of its own it is
/// shown that other one (RFC 9110 §15.5.20).
fn misdirected(request: &Request<Body>, connection: &Connection) -> Option<Refusal> {
    if !connection.is_encrypted() {
        return None;
    }
    let host = normalised(effective_host(request)?);
    connection.misdirects(&host).then(|| {
        let detail = format!(
            "the certificate of this connection does not cover the host {host:?}, and another certificate here does; send the request on a connection that names the host in its handshake (SNI)"
        );
        Refusal::new(RefusalReason::BadRequest, detail).with_status(StatusCode::MISDIRECTED_REQUEST)
    })
}

/// A host as assignments name it: lower case, without port and without a final dot.
fn normalised(host: &str) -> Cow<'_, str> {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        Some(_) | None => host,
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V2, V4 of the data-plane vectors, by our routing: hosts are names of the DNS, in which case does not
    /// matter.
    #[test]
    fn a_host_is_compared_without_port_case_and_final_dot() {
        for (given, expected) in [
            ("hello.default.example.com", "hello.default.example.com"),
            ("hello.default.example.com:80", "hello.default.example.com"),
            ("Hello.Default.Example.COM.", "hello.default.example.com"),
            ("localhost:8080", "localhost"),
            ("[::1]:8080", "[::1]"),
            ("[::1]", "[::1]"),
            ("", ""),
        ] {
            assert_eq!(normalised(given), expected, "{given}");
        }
    }
}
