//! The request log, where there is one: a line for each request, written when everything of its answer is on
//! its way.

use dataplane::{Body, Connection, Request, Response, UnservedRequest, effective_host, names};
use http::StatusCode;
use http_body::Body as HttpBody;
use runtime::{Clock, LoggedRequest, RequestLog, RequestLogLine};
use vocabulary::Timestamp;

use super::probes;
use super::terms::RequestSender;
use crate::config::LoggedProbes;

/// What a line says of a request whose client left before there was an answer; the number that proxies use
/// for it.
const CLIENT_GONE: u16 = 499;

/// The request log of one queue-proxy: begins the line of each request.
pub(crate) struct RequestLogging {
    log: RequestLog,
    probes: LoggedProbes,
    clock: Clock,
}

/// The line of a request on its way. Dropped, it is written.
pub(super) struct Line {
    text: RequestLogLine,
    clock: Clock,
    began_at: Timestamp,
}

impl RequestLogging {
    pub(crate) fn new(log: RequestLog, probes: LoggedProbes, clock: Clock) -> Self {
        Self { log, probes, clock }
    }

    /// Begins the line of a request; `None` for a probe that is not logged. The sender was proved, but for
    /// Knative's place: elsewhere no client hides by calling its request a probe.
    pub(super) fn begin(
        &self,
        sender: RequestSender,
        request: &Request<Body>,
        connection: &Connection,
    ) -> Option<Box<Line>> {
        let headers = request.headers();
        let is_believed = sender != RequestSender::Client;
        let is_probe =
            is_believed && (probes::is_probe(headers) || headers.contains_key(names::K_KUBELET_PROBE));
        if is_probe && self.probes == LoggedProbes::None {
            return None;
        }
        let length = request.body().size_hint().exact();
        Some(Box::new(self.line(sender, request, length, connection)))
    }

    /// Writes the line of a request that the server answered itself. A request that could not be read has
    /// none.
    pub(super) fn note_unserved(&self, unserved: &UnservedRequest<'_>) {
        let Some(request) = unserved.request else { return };
        let mut line = self.line(RequestSender::Client, request, None, unserved.connection);
        line.answered(unserved.answer.status());
        line.text.sent(unserved.answer.body().size_hint().exact().unwrap_or_default());
    }

    fn line<B>(
        &self,
        sender: RequestSender,
        request: &Request<B>,
        content_length: Option<u64>,
        connection: &Connection,
    ) -> Line {
        let headers = request.headers();
        let original = headers.get(names::K_ORIGINAL_HOST).filter(|_| sender != RequestSender::Client);
        let host = original.and_then(|host| host.to_str().ok()).or_else(|| effective_host(request));
        let mut text = self.log.begin(LoggedRequest {
            method: request.method(),
            uri: request.uri(),
            version: request.version(),
            headers,
            host: host.unwrap_or_default(),
            remote: connection.peer(),
            content_length,
        });
        text.answered(CLIENT_GONE);
        Line { text, clock: self.clock, began_at: self.clock.now() }
    }
}

impl Line {
    pub(super) fn answered(&mut self, status: StatusCode) {
        self.text.answered(status.as_u16());
    }

    pub(super) fn sent(&mut self, bytes: usize) {
        self.text.sent(u64::try_from(bytes).unwrap_or(u64::MAX));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.text.ended_after(self.clock.now().saturating_since(self.began_at));
    }
}

/// Writes the line of a request that is answered at once.
pub(super) fn at_once<B: HttpBody>(line: Option<Box<Line>>, answer: Response<B>) -> Response<B> {
    if let Some(mut line) = line {
        line.answered(answer.status());
        line.text.sent(answer.body().size_hint().exact().unwrap_or_default());
    }
    answer
}
