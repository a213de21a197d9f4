//! What does a worker tell about each request? What the settings say at the moment: a span of its trace, and
//! a line in the request log where the activator itself answers. What reaches a pod has its line there.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use dataplane::{Body, Connection, Request, Response, Tracer, UnservedRequest, effective_host};
use http_body::Body as _;
use runtime::{Clock, LoggedRequest, LoggedRevision, RequestLog, RequestLogLine};
use vocabulary::{RevisionName, Timestamp};

use crate::context::Context;

/// Tells about the requests of one worker. Clones share everything.
#[derive(Clone)]
pub(crate) struct RequestReporter {
    pub(crate) tracer: Tracer,
    /// `None` where there is no request log.
    log: Rc<RefCell<Option<RequestLog>>>,
    clock: Clock,
}

/// The line of a request on its way, written if no pod answers it.
pub(crate) struct RefusalLine {
    text: Option<RequestLogLine>,
    clock: Clock,
    arrived: Timestamp,
}

impl RequestReporter {
    pub(crate) fn new(context: &Context) -> Self {
        let program = [
            ("service.name", "activator"),
            ("service.version", env!("CARGO_PKG_VERSION")),
            ("service.instance.id", context.name.as_str()),
        ];
        let tracer = Tracer::new(context.clock, &program, context.metrics.spans.clone());
        let reporter = Self { tracer, log: Rc::default(), clock: context.clock };
        reporter.follow(context);
        reporter
    }

    /// Follows the settings until their source ends.
    pub(crate) async fn follow_settings(self, context: Arc<Context>) {
        let mut reporting = context.reporting.clone();
        while reporting.changed().await.is_ok() {
            self.follow(&context);
        }
    }

    fn follow(&self, context: &Context) {
        let reporting = context.reporting.borrow();
        self.tracer.follow(reporting.traces.as_ref());
        let log = reporting.log.clone().map(|template| {
            let program = LoggedRevision { pod_name: context.name.to_string(), ..LoggedRevision::default() };
            let dropped = context.metrics.dropped_log_lines.clone();
            RequestLog::new(template, program, context.log_format, dropped)
        });
        *self.log.borrow_mut() = log;
    }

    /// Begins the line of a request for this revision, if one is known under its host.
    pub(crate) fn begin(
        &self,
        request: &Request<Body>,
        connection: &Connection,
        revision: Option<&RevisionName>,
        arrived: Timestamp,
    ) -> Option<Box<RefusalLine>> {
        let log = self.log.borrow();
        let length = request.body().size_hint().exact();
        let text = line(log.as_ref()?, request, length, connection, revision);
        Some(Box::new(RefusalLine { text: Some(text), clock: self.clock, arrived }))
    }

    /// Writes the line of a request that the server answered itself. What could not be read has none.
    pub(crate) fn note_unserved(&self, unserved: &UnservedRequest<'_>) {
        let (log, arrived) = (self.log.borrow(), self.clock.now());
        let Some((log, request)) = log.as_ref().zip(unserved.request) else { return };
        let text = line(log, request, None, unserved.connection, None);
        RefusalLine { text: Some(text), clock: self.clock, arrived }.refused(unserved.answer);
    }
}

impl RefusalLine {
    /// This is what its client is told.
    pub(crate) fn refused<B: http_body::Body>(mut self, answer: &Response<B>) {
        if let Some(mut text) = self.text.take() {
            text.answered(answer.status().as_u16());
            text.sent(answer.body().size_hint().exact().unwrap_or_default());
            text.ended_after(self.clock.now().saturating_since(self.arrived));
        }
    }
}

impl Drop for RefusalLine {
    /// A pod has written it, or will.
    fn drop(&mut self) {
        if let Some(text) = self.text.take() {
            text.forget();
        }
    }
}

fn line<B>(
    log: &RequestLog,
    request: &Request<B>,
    content_length: Option<u64>,
    connection: &Connection,
    revision: Option<&RevisionName>,
) -> RequestLogLine {
    let request = LoggedRequest {
        method: request.method(),
        uri: request.uri(),
        version: request.version(),
        headers: request.headers(),
        host: effective_host(request).unwrap_or_default(),
        remote: connection.peer(),
        content_length,
    };
    match revision {
        Some(revision) => log.begin_for(&logged(revision), request),
        None => log.begin_for(&LoggedRevision::default(), request),
    }
}

/// A request that reaches no pod is no particular template's.
fn logged(revision: &RevisionName) -> LoggedRevision {
    let name = revision.name().to_owned();
    LoggedRevision {
        namespace: revision.namespace().to_owned(),
        service: name.clone(),
        configuration: name.clone(),
        name,
        ..LoggedRevision::default()
    }
}
