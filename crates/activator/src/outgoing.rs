//! A request in the form its pod expects, as often as it has to be sent.

use std::sync::Arc;

use dataplane::{
    Body, Connection, Fields, Gate, Protocol, RawTarget, Request, RequestParts, names, set_forwarded_for,
    set_host, strip_forwarded, strip_internal,
};
use http::Extensions;
use http::header::{EXPECT, HeaderName, HeaderValue};

use crate::context::Context;
use crate::replay::Replay;
use crate::shared_revision::HopHeaders;

const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Which way a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Through the queue: the activator counts it.
    Queue,
    /// Through the queue, to a pod that other activators send to as well: it takes the request at once, or
    /// not at all.
    QueueAtOnce,
    /// Past it, as if a Service had sent it.
    Direct,
    /// Past the queue: an unmeasured request.
    Unmeasured,
}

/// When a body leaves for a pod that has not admitted its request yet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BodyDeparture {
    /// At once; HTTP/2's flow control holds it back.
    AtOnce,
    /// At once if all of it can be kept for another attempt, else when the queue-proxy asks for it.
    IfKept,
    /// When the queue-proxy asks for it.
    OnDemand,
}

/// One request, ready for any number of attempts.
pub(crate) struct RepeatableRequest {
    pub(crate) protocol: Protocol,
    /// The request without its body.
    head: Box<Request<Body>>,
    /// `None` if it has no body.
    body: Option<Replay>,
    /// When the body leaves for a pod that has not admitted the request.
    departure: BodyDeparture,
}

/// One attempt to send the request to a pod.
pub(crate) struct PodAttempt {
    pub(crate) request: Box<Request<Body>>,
    /// Opened when the pod has taken the request, if it was not opened before.
    pub(crate) gate: Option<Gate>,
}

impl RepeatableRequest {
    /// Ends the client's hop and begins ours: what only our own hops may say is removed, the trace of the way
    /// is extended, or begins here where the client's word about it is not believed. A client's `Expect`
    /// travels under another name, because on this hop the header is ours. Its `100 Continue` comes when the
    /// queue-proxy asks for the body, which it does when the app did: asking earlier would hide that the app
    /// refuses.
    pub(crate) fn new(
        mut request: Box<Request<Body>>,
        protocol: Protocol,
        connection: &Connection,
        context: &Arc<Context>,
    ) -> Self {
        set_host(&mut request, None, "localhost");
        let body = std::mem::take(request.body_mut());
        let is_trusted = context.forwarders.trusts(connection.peer().ip());
        let mut is_expecting = false;
        if let Some(headers) = request.fields_mut().of_hops_mut() {
            strip_internal(headers);
            if !is_trusted {
                strip_forwarded(headers);
            }
            is_expecting = headers.remove(EXPECT).is_some();
        }
        if !is_trusted && connection.is_encrypted() {
            // Before the next line, which builds `Forwarded` of it.
            request.fields_mut().set_of_hops(X_FORWARDED_PROTO, HeaderValue::from_static("https"));
        }
        set_forwarded_for(request.fields_mut(), connection.forwarded_for());
        if is_expecting {
            request.fields_mut().set_of_hops(names::EBB_EXPECT, HeaderValue::from_static("1"));
        }
        Self {
            protocol,
            head: request,
            departure: match protocol {
                Protocol::Http2 => BodyDeparture::AtOnce,
                Protocol::Http1 if is_expecting => BodyDeparture::OnDemand,
                Protocol::Http1 => BodyDeparture::IfKept,
            },
            body: (!body.is_empty()).then(|| Replay::new(body, context)),
        }
    }

    /// The next attempt. `None` if the beginning of the body was not kept.
    pub(crate) fn attempt(&self, way: Way, hop: HopHeaders<'_>) -> Option<PodAttempt> {
        let is_held = self.body.as_ref().is_some_and(|body| match self.departure {
            BodyDeparture::AtOnce => false,
            BodyDeparture::IfKept => !body.reserve(),
            BodyDeparture::OnDemand => true,
        });
        let mut extensions = Extensions::new();
        let gate = is_held.then(|| Gate::opened_by_continue(&mut extensions));
        let body = match &self.body {
            Some(body) => body.attempt(gate.clone())?,
            None => Body::empty(),
        };
        if let Some(raw) = self.head.extensions().get::<RawTarget>() {
            extensions.insert(raw.clone());
        }
        let mut fields = self.fields(way, hop);
        if is_held {
            fields.set_of_hops(EXPECT, HeaderValue::from_static("100-continue"));
        }
        let head = RequestParts {
            method: self.head.method().clone(),
            target: self.head.target().clone(),
            version: self.head.version(),
            fields,
            extensions,
        };
        Some(PodAttempt { request: Box::new(Request::from_parts(head, body)), gate })
    }

    /// The headers of an attempt, with those that only our own hops may say.
    fn fields(&self, way: Way, hop: HopHeaders<'_>) -> Fields {
        let mut fields = self.head.fields().clone();
        for (name, value) in [(names::EBB_HOP_KEY, hop.key), (names::EBB_POD, hop.pod)] {
            if let Some(value) = value {
                fields.set_of_hops(name, value.clone());
            }
        }
        match way {
            Way::Queue | Way::QueueAtOnce => {
                fields.set_of_hops(names::K_PROXY_REQUEST, HeaderValue::from_static("activator"));
            }
            // Said, because a pod was told when it started which requests are not measured, and the activator
            // is told as that changes.
            Way::Unmeasured => {
                fields.set_of_hops(names::EBB_UNMEASURED, HeaderValue::from_static("1"));
            }
            Way::Direct => {}
        }
        if way == Way::QueueAtOnce {
            fields.set_of_hops(names::EBB_NO_QUEUE, HeaderValue::from_static("1"));
        }
        fields
    }

    /// A pod has taken the request: there will be no other attempt.
    pub(crate) fn started(&self) {
        if let Some(body) = &self.body {
            body.started();
        }
    }
}
