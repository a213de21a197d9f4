//! What is told of one request at one hop, from its arrival to the last byte of its answer?

use std::time::{Duration, UNIX_EPOCH};

use http::{StatusCode, Version};
use protocol::{Request, effective_host};
use rand::RngExt;
use runtime::wall_time;
use vocabulary::Timestamp;

use super::Tracer;
use super::context::{self, TraceContext};
use super::otlp::{self, AttributeValue, KeyValue, SpanKind, SpanRecord, Status};
use crate::body::Body;
use crate::connection::Connection;
use crate::refusal::Refusal;

/// How many bytes of a text a span keeps: clients write some of them, and a queue full of spans must stay
/// small.
const TEXT_MAX: usize = 512;
/// How many events a span keeps. A request that no pod starts may be tried for minutes.
const EVENTS_MAX: usize = 16;

impl Tracer {
    /// Begins the span of a request that has arrived, if it has one, and puts its place in the trace into its
    /// headers.
    pub fn begin(&self, request: &mut Request<Body>, connection: &Connection) -> Option<Box<Span>> {
        let sampling = self.0.sampling.get()?;
        let (context, parent) = match TraceContext::read(request.headers()) {
            // The client has decided, and the app gets the client's header as it came.
            Some(context) if !context.is_sampled() => return None,
            Some(context) => (context.behind(self.new_span()), Some(context.span)),
            None => {
                let trace = self.0.random.borrow_mut().random_range(1..=u128::MAX);
                context::forget_state(request.headers_mut());
                (TraceContext::new(trace, self.new_span(), sampling.takes(trace)), None)
            }
        };
        context.write(request.headers_mut());
        // Later hops do not decide again.
        context.is_sampled().then(|| Box::new(Span::begin(self, request, connection, context, parent)))
    }

    fn new_span(&self) -> u64 {
        self.0.random.borrow_mut().random_range(1..=u64::MAX)
    }
}

/// The span of one request at one hop. Dropping it ends the span, which then waits to be sent.
pub struct Span {
    tracer: Tracer,
    pub(super) record: SpanRecord,
    began_at: Timestamp,
    last_event_at: Timestamp,
    is_answered: bool,
}

/// The value of an attribute: a text, a number or a truth value.
pub struct Attribute(AttributeValue);

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Self(AttributeValue::Text(cut(text).to_owned()))
    }
}

impl From<bool> for Attribute {
    fn from(truth: bool) -> Self {
        Self(AttributeValue::Truth(truth))
    }
}

impl From<u16> for Attribute {
    fn from(number: u16) -> Self {
        Self(AttributeValue::Whole(number.into()))
    }
}

impl From<Duration> for Attribute {
    fn from(duration: Duration) -> Self {
        Self(AttributeValue::Number(duration.as_secs_f64()))
    }
}

impl Span {
    /// Begins the span of a request that has just arrived, with its place in the trace and its parent.
    pub(super) fn begin(
        tracer: &Tracer,
        request: &Request<Body>,
        connection: &Connection,
        context: TraceContext,
        parent: Option<u64>,
    ) -> Self {
        let now = tracer.now();
        let since_epoch = wall_time().duration_since(UNIX_EPOCH).unwrap_or_default();
        let record = SpanRecord {
            trace: context.trace.to_be_bytes().to_vec(),
            span: context.span.to_be_bytes().to_vec(),
            parent: parent.map(|parent| parent.to_be_bytes().to_vec()).unwrap_or_default(),
            trace_state: Some(context::state(request.headers()))
                .filter(|state| state.len() <= TEXT_MAX)
                .unwrap_or_default(),
            name: cut(request.method().as_str()).to_owned(),
            kind: SpanKind::Server.into(),
            began: nanoseconds(since_epoch),
            ..SpanRecord::default()
        };
        let mut span =
            Self { tracer: tracer.clone(), record, began_at: now, last_event_at: now, is_answered: false };
        span.note("http.request.method", request.method().as_str());
        span.note("url.path", request.uri().path());
        span.note("url.scheme", if connection.is_encrypted() { "https" } else { "http" });
        span.note("server.address", effective_host(request).unwrap_or_default());
        span.note("network.protocol.version", version(request.version()));
        span.note("client.address", connection.peer().ip().to_string().as_str());
        span
    }

    /// Adds an attribute to the span.
    pub fn note(&mut self, key: &'static str, value: impl Into<Attribute>) {
        self.record.attributes.push(KeyValue::new(key, value.into().0));
    }

    /// Adds an event with the present time. Returns the time since the event before, or since the beginning.
    pub fn event(&mut self, name: &'static str) -> Duration {
        self.event_about(name, None)
    }

    /// Adds an event like [`Self::event`], with a detail in the attribute `ebb.detail`.
    pub fn event_about(&mut self, name: &'static str, about: Option<&str>) -> Duration {
        let now = self.tracer.now();
        let since = now.saturating_since(self.last_event_at);
        self.last_event_at = now;
        if self.record.events.len() < EVENTS_MAX {
            let about = about.map(|about| KeyValue::new("ebb.detail", Attribute::from(about).0));
            let (at, attributes) = (self.at(now), about.into_iter().collect());
            self.record.events.push(otlp::SpanEvent { at, name: name.to_owned(), attributes });
        } else {
            self.record.dropped_events += 1;
        }
        since
    }

    /// An answer of the app begins; its status decides whether the span is an error.
    pub fn answered(&mut self, status: StatusCode) {
        self.is_answered = true;
        self.note("http.response.status_code", status.as_u16());
        if status.is_server_error() {
            self.note("error.type", status.as_str());
            self.failed(String::new());
        }
    }

    /// The request gets this refusal, and no answer of the app.
    pub fn refused(&mut self, refusal: &Refusal) {
        self.is_answered = true;
        self.note("http.response.status_code", refusal.status.as_u16());
        self.note("error.type", refusal.reason.as_str());
        // By OpenTelemetry's rules a fault of the client is no error of a server's span.
        if refusal.status.is_server_error() {
            self.failed(cut(&refusal.detail).to_owned());
        }
    }

    fn failed(&mut self, message: String) {
        self.record.status = Some(Status { message, code: otlp::StatusCode::Error.into() });
    }

    /// The wall time of `now`, in nanoseconds since 1970: the wall clock is read once, at the beginning,
    /// because it may jump.
    fn at(&self, now: Timestamp) -> u64 {
        self.record.began.saturating_add(nanoseconds(now.saturating_since(self.began_at)))
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if !self.is_answered {
            self.note("error.type", "cancelled");
        }
        self.record.ended = self.at(self.tracer.now());
        self.tracer.keep(std::mem::take(&mut self.record));
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The beginning of a text, of whole characters.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_MAX)]
}

fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_2 => "2",
        Version::HTTP_10 => "1.0",
        _ => "1.1",
    }
}
