//! How do spans get to a collector? In batches over connections of our own, beside the requests and never in
//! their way.
//!
//! ```text
//! a span ends ─► queue (at most SPANS_MAX, else dropped) ─► batch (BATCH_MAX, or what came within BATCH_PATIENCE) ─► POST
//!                                                             ▲ again after a while, ATTEMPTS in all        │ no luck
//!                                                             └─────────────────────────────────────────────┘
//! ```

use std::time::Duration;

use http::StatusCode;
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http_body_util::{BodyExt, Limited};
use protocol::Request;
use runtime::TraceEndpoint;
use tokio::time::timeout;

use super::Tracer;
use super::otlp::{self, SpanRecord};
use crate::body::Body;
use crate::upstream::Protocol;

/// How long a span waits for others to be sent with it: a fifth of what OpenTelemetry waits, as people look
/// at what they have just done.
const BATCH_PATIENCE: Duration = Duration::from_secs(1);
/// How long a collector may take for one batch; OpenTelemetry's number.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// How often a batch is sent before it is given up.
const ATTEMPTS: u32 = 3;
/// Between two attempts, and twice as long before the third.
const BACKOFF: Duration = Duration::from_secs(1);
/// How much of an answer is read; it says hardly anything.
const ANSWER_LENGTH_MAX: usize = 64 * 1024;

/// Why a batch did not arrive.
struct DeliveryFailure {
    what: String,
    /// Whether it would arrive if it were sent again.
    is_passing: bool,
}

impl DeliveryFailure {
    fn passing(what: impl std::fmt::Display) -> Self {
        Self { what: what.to_string(), is_passing: true }
    }
}

impl Tracer {
    /// Sends what ends, for as long as it is polled. Must run where local tasks can be spawned.
    pub async fn deliver(self) {
        let queue = &self.0.queue;
        loop {
            queue.begun.notified().await;
            // Cancel-safe: neither a wait nor a notice holds a span.
            tokio::select! {
                () = tokio::time::sleep(BATCH_PATIENCE) => {}
                () = queue.full.notified() => {}
            }
            while let Some(batch) = queue.take_batch() {
                let count = batch.len();
                self.deliver_batch(batch).await;
                queue.delivered(count);
            }
        }
    }

    /// Waits until what has ended was sent, or could not be, at most so long.
    pub async fn flush(&self, at_most: Duration) {
        let queue = &self.0.queue;
        let all = async {
            while !queue.is_empty() {
                queue.full.notify_one();
                queue.emptied.notified().await;
            }
        };
        self.0.ending.cancel();
        // What is late is lost with the process.
        let _ = timeout(at_most, all).await;
    }

    async fn deliver_batch(&self, batch: Vec<SpanRecord>) {
        let Some(endpoint) = self.0.endpoint.borrow().clone() else { return };
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let message = bytes::Bytes::from(otlp::written(&self.0.program, batch));
        for attempt in 1..=ATTEMPTS {
            let sent = timeout(ANSWER_MAX, self.post(&endpoint, message.clone())).await;
            let failure = match sent.unwrap_or_else(|_| Err(DeliveryFailure::passing("no answer in 10 s"))) {
                Ok(()) => {
                    self.0.counts.delivered(count);
                    if self.0.is_failing.replace(false) {
                        tracing::info!(%endpoint, "traces are delivered again");
                    }
                    return;
                }
                Err(failure) => failure,
            };
            if !self.0.is_failing.replace(true) {
                tracing::warn!(%endpoint, error = failure.what, "traces cannot be delivered; requests do not wait for that");
            }
            if !failure.is_passing || self.0.ending.is_cancelled() || attempt == ATTEMPTS {
                break;
            }
            // Cancel-safe: both are waits, and the batch is held outside.
            tokio::select! {
                () = tokio::time::sleep(BACKOFF * attempt) => {}
                () = self.0.ending.cancelled() => {}
            }
        }
        self.0.counts.undelivered(count);
    }

    async fn post(&self, endpoint: &TraceEndpoint, message: bytes::Bytes) -> Result<(), DeliveryFailure> {
        let request = http::Request::post(&endpoint.path)
            .header(HOST, endpoint.authority())
            .header(CONTENT_TYPE, "application/x-protobuf")
            .header(USER_AGENT, concat!("ebb/", env!("CARGO_PKG_VERSION")))
            .body(Body::full(message));
        let request = Request::from(request.expect("what is read from a URL is legal"));
        let mut unsent = Some(Box::new(request));
        let addresses = tokio::net::lookup_host((endpoint.host.as_str(), endpoint.port)).await;
        let mut failure = DeliveryFailure::passing("the host has no address");
        for address in addresses.map_err(DeliveryFailure::passing)? {
            let Some(request) = unsent.take() else { break };
            match self.0.upstreams.send(address, Protocol::Http1, request).await {
                Ok(response) => {
                    let (head, body) = response.into_parts();
                    // Read to its end, so that the connection can be used again.
                    let _ = Limited::new(body, ANSWER_LENGTH_MAX).collect().await;
                    return judge(head.status);
                }
                Err(error) => {
                    failure = DeliveryFailure::passing(&error);
                    // Without a connection it comes back, and goes to the next address of the same host.
                    unsent = error.request.filter(|_| error.kind.is_without_connection());
                }
            }
        }
        Err(failure)
    }
}

/// OTLP's rules: these four may be tried again, nothing else.
fn judge(status: StatusCode) -> Result<(), DeliveryFailure> {
    match status.as_u16() {
        200..=299 => Ok(()),
        429 | 502..=504 => Err(DeliveryFailure::passing(format_args!("status {status}"))),
        _ => Err(DeliveryFailure { what: format!("status {status}"), is_passing: false }),
    }
}
