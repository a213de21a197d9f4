//! A request in the form its pod expects, as often as it has to be sent.

use std::sync::Arc;

use dataplane::{
    Body, Connection, Fields, Gate, Protocol, RawTarget, Request, RequestParts, names, set_forwarded_for,
    set_host, strip_forwarded,
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
    /// Whether the client sent `Expect: 100-continue`.
    is_expecting: bool,
    /// Whether pods may have queue-proxies of Knative's.
    is_in_knatives_place: bool,
    /// The host that such a pod is told.
    plain_host: Option<HeaderValue>,
}

/// One attempt to send the request to a pod.
pub(crate) struct PodAttempt {
    pub(crate) request: Box<Request<Body>>,
    /// Opened when the pod has taken the request, if it was not opened before.
    pub(crate) gate: Option<Gate>,
    /// The pod's queue-proxy is Knative's, which says no word of ours: one in its answer is the app's.
    pub(crate) is_plain: bool,
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
        let place = &context.place;
        let plain_host = place.host_for_plain_pods(&request);
        let noted_host = place.noted_host(request.fields());
        set_host(&mut request, noted_host, "localhost");
        let body = std::mem::take(request.body_mut());
        let is_trusted = context.forwarders.trusts(connection.peer().ip());
        let mut is_expecting = false;
        if let Some(headers) = request.fields_mut().of_hops_mut() {
            place.strip(headers);
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
        Self {
            protocol,
            head: request,
            departure: match protocol {
                Protocol::Http2 => BodyDeparture::AtOnce,
                Protocol::Http1 if is_expecting => BodyDeparture::OnDemand,
                Protocol::Http1 => BodyDeparture::IfKept,
            },
            body: (!body.is_empty()).then(|| Replay::new(body, context)),
            is_expecting,
            is_in_knatives_place: place.is_knatives(),
            plain_host,
        }
    }

    /// The next attempt. `None` if the beginning of the body was not kept.
    pub(crate) fn attempt(&self, way: Way, hop: HopHeaders<'_>) -> Option<PodAttempt> {
        let is_plain = self.is_in_knatives_place && hop.may_be_plain();
        let is_held = self.body.as_ref().is_some_and(|body| match self.departure {
            BodyDeparture::AtOnce => false,
            // A queue-proxy of Knative's does not ask for it.
            BodyDeparture::IfKept => !body.reserve() && !is_plain,
            BodyDeparture::OnDemand => !is_plain,
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
        let mut fields = self.head.fields().clone();
        if is_plain {
            self.say_plainly(&mut fields, way);
        } else {
            self.say(&mut fields, way, hop);
        }
        if is_held {
            fields.add_of_hops(EXPECT, HeaderValue::from_static("100-continue"));
        }
        let head = RequestParts {
            method: self.head.method().clone(),
            target: self.head.target().clone(),
            version: self.head.version(),
            fields,
            extensions,
        };
        Some(PodAttempt { request: Box::new(Request::from_parts(head, body)), gate, is_plain })
    }

    /// Says to a queue-proxy of ours who sends, and which way the request goes.
    fn say(&self, fields: &mut Fields, way: Way, hop: HopHeaders<'_>) {
        if self.is_expecting {
            fields.add_of_hops(names::EBB_EXPECT, HeaderValue::from_static("1"));
        }
        for (name, value) in [(names::EBB_HOP_KEY, hop.key), (names::EBB_POD, hop.pod)] {
            if let Some(value) = value {
                fields.add_of_hops(name, value.clone());
            }
        }
        match way {
            Way::Queue | Way::QueueAtOnce => {
                fields.add_of_hops(names::K_PROXY_REQUEST, HeaderValue::from_static("activator"));
            }
            // Said, because a pod was told when it started which requests are not measured, and the activator
            // is told as that changes.
            Way::Unmeasured => {
                fields.add_of_hops(names::EBB_UNMEASURED, HeaderValue::from_static("1"));
            }
            Way::Direct => {}
        }
        if way == Way::QueueAtOnce {
            fields.add_of_hops(names::EBB_NO_QUEUE, HeaderValue::from_static("1"));
        }
    }

    /// Says the same to a queue-proxy of Knative's, in Knative's words: it passes others on to the app.
    fn say_plainly(&self, fields: &mut Fields, way: Way) {
        if let Some(host) = &self.plain_host {
            fields.add_of_hops(names::K_ORIGINAL_HOST, host.clone());
        }
        match way {
            // An unmeasured request counts nowhere, and what came through an activator does not count there.
            Way::Queue | Way::QueueAtOnce | Way::Unmeasured => {
                fields.add_of_hops(names::K_PROXY_REQUEST, HeaderValue::from_static("activator"));
            }
            Way::Direct => {}
        }
    }

    /// A pod has taken the request: there will be no other attempt.
    pub(crate) fn started(&self) {
        if let Some(body) = &self.body {
            body.started();
        }
    }
}
