//! The queue-proxy's refusals, each in one place.

use std::time::Duration;

use dataplane::{Expired, Reason, Refusal, SendErrorKind, Started};
use vocabulary::{RequestTimeouts, format_duration};

use super::Sender;

/// Nothing more may wait, or this request would not.
pub(super) fn queue_full(container_concurrency: u32, sender: Sender) -> Refusal {
    let depth = u64::from(container_concurrency) * 10;
    let detail = format!(
        "{container_concurrency} requests run (containerConcurrency) and no more than {depth} may wait for them"
    );
    let refusal = Refusal::new(Reason::QueueFull, detail)
        .with_body("pending request queue full\n")
        .with_retry_after(Duration::from_secs(1));
    match sender {
        Sender::Hop => refusal.never_started(),
        Sender::Client => refusal,
    }
}

/// The app refused the request as often as it may.
pub(super) fn refused(attempts: u32) -> Refusal {
    let detail = format!("the app refused the request (REFUSED_STREAM) in each of {attempts} attempts");
    Refusal::new(Reason::UpstreamReset, detail)
}

/// A timer fired before the response began, after so many refusals of the app. The text for the request's own limit is Knative's.
pub(super) fn expired(expired: Expired, timeouts: RequestTimeouts, app_refusals: u32) -> Refusal {
    let (limit, field, body) = match expired {
        Expired::Request => (timeouts.request, "timeoutSeconds", "request timeout"),
        Expired::ResponseStart => {
            (timeouts.response_start, "responseStartTimeoutSeconds", "response start timeout")
        }
        Expired::Idle => (timeouts.idle, "idleTimeoutSeconds", "idle timeout"),
    };
    let limit = format_duration(limit.unwrap_or_default());
    let detail = format!("{body} after {limit}, set by {field} of the revision");
    let detail = match app_refusals {
        0 => detail,
        times => format!("{detail}; until then the app refused the request (REFUSED_STREAM) {times} times"),
    };
    Refusal::new(expired.into(), detail).with_body(body)
}

/// For an app that is said to speak HTTP/2: one of which nobody says so is asked over HTTP/1.1 then.
const NOT_HTTP2: &str =
    "the app does not speak HTTP/2, but its port is named h2c; name it http1, or leave the name out";

/// The app gave no answer.
pub(super) fn unanswered(kind: &SendErrorKind, started: Started) -> Refusal {
    let reason = match kind {
        // Nothing is wrong with the app; and what it got of the request is no request.
        SendErrorKind::MalformedRequest(_) => return Refusal::new(Reason::BadRequest, kind.to_string()),
        // Another pod's app speaks no other language.
        SendErrorKind::NotHttp2 => return Refusal::new(Reason::UpstreamReset, NOT_HTTP2),
        SendErrorKind::ConnectRefused
        | SendErrorKind::ConnectTimedOut
        | SendErrorKind::ConnectFailed(_)
        | SendErrorKind::Closed
        | SendErrorKind::RequestBody => Reason::UpstreamClosed,
        SendErrorKind::StreamRefused
        | SendErrorKind::StreamReset(_)
        | SendErrorKind::MalformedAnswer(_)
        | SendErrorKind::Malformed => Reason::UpstreamReset,
        SendErrorKind::TooManyConnections { .. } => Reason::QueueFull,
    };
    let refusal = Refusal::new(reason, format!("the app did not answer: {kind}"));
    match started {
        Started::No => refusal.never_started(),
        Started::Perhaps => refusal,
    }
}
