//! What does a client hear when the next hop gave its request no answer?
//!
//! One table for both proxies, so that the same failure reads the same whichever of them saw it:
//!
//! | seen | status, `ebb-error` | text |
//! |---|---|---|
//! | no process listens, no connection in time, closed before an answer | 502 `upstream-closed` | the app (the pod) did not answer: what was seen |
//! | an answer that makes no sense, or a reset of its stream | 502 `upstream-reset` | the same |
//! | an app does not speak what its port is named for | 502 `upstream-reset` | what to name it |
//! | our own limit of connections | 503 `queue-full`, `Retry-After` | the same, with the limit |
//! | what the client sent is no body | 400 `bad-request` | what is wrong with it |
//! | the client broke off | none | there is no client to tell |
//! | the app refused it as often as it may | 502 `upstream-reset` | how often (`app_refusals.rs`) |
//! | a limit of time | 504, the limit's name | which one of which revision, and how long it is |
//!
//! Where it is certain that no app has begun, the refusal says so (`ebb-not-started`), and the sender of the
//! request may send it elsewhere.

use std::fmt::Display;

use vocabulary::{RequestTimeouts, format_duration};

use crate::proxy::app_refusals::text_of_refusals;
use crate::refusal::{Refusal, RefusalReason};
use crate::timers::ExceededLimit;
use crate::upstream::{PeerStart, SendError, SendErrorKind};

/// The kind of peer to which a proxy sends requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextHop {
    /// A queue-proxy asks the app beside it.
    App,
    /// An activator asks a pod.
    Pod,
}

/// Why there is no response of the app.
#[derive(Debug)]
pub enum HopFailure {
    /// The client gets this refusal as its answer.
    Refused(Refusal),
    /// The client broke its request off: no answer can reach it.
    ClientGone,
}

impl From<Refusal> for HopFailure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// For an app that is said to speak HTTP/2: an undeclared one is asked over HTTP/1.1 then.
const NOT_HTTP2: &str =
    "the app does not speak HTTP/2, but its port is named h2c; name it http1, or leave the name out";

impl NextHop {
    const fn name(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Pod => "pod",
        }
    }

    /// What to do about a request that got no answer.
    pub fn failed(self, error: &SendError) -> HopFailure {
        let Some(reason) = reason_of(&error.kind) else { return HopFailure::ClientGone };
        let refusal = match (&error.kind, self) {
            (SendErrorKind::MalformedRequest(_), Self::App | Self::Pod) => {
                Refusal::new(reason, error.kind.to_string())
            }
            (SendErrorKind::NotHttp2, Self::App) => Refusal::new(reason, NOT_HTTP2),
            (kind, Self::App | Self::Pod) => {
                Refusal::new(reason, format!("the {} did not answer: {kind}", self.name()))
            }
        };
        // Every pod of the revision has the same app: one that does not speak the protocol is not to be asked
        // again elsewhere.
        HopFailure::Refused(match (error.started, &error.kind) {
            (PeerStart::No, kind) if *kind != SendErrorKind::NotHttp2 => refusal.never_started(),
            (PeerStart::No | PeerStart::Perhaps, _) => refusal,
        })
    }

    /// A limit of time was reached before the response began, of the `revision` (its name, or "the
    /// revision"), after so many refusals of the app.
    pub fn timed_out(
        self,
        expired: ExceededLimit,
        timeouts: RequestTimeouts,
        revision: &dyn Display,
        app_refusals: u32,
    ) -> Refusal {
        let detail = limit_reached(expired, timeouts, revision) + &text_of_refusals(app_refusals);
        Refusal::new(expired.into(), detail).with_body(self.timeout_body(expired))
    }

    /// The body of an answer to a client whose time is up. Knative's texts, which its vectors have to the
    /// letter (O1, V11); its activator has one for all.
    pub const fn timeout_body(self, expired: ExceededLimit) -> &'static str {
        match (self, expired) {
            (Self::Pod, ExceededLimit::Request | ExceededLimit::ResponseStart | ExceededLimit::Idle) => {
                "activator request timeout"
            }
            (Self::App, ExceededLimit::Request) => "request timeout",
            (Self::App, ExceededLimit::ResponseStart) => "response start timeout",
            (Self::App, ExceededLimit::Idle) => "idle timeout",
        }
    }
}

/// The column of reasons. `None`: no client is there to hear one.
const fn reason_of(kind: &SendErrorKind) -> Option<RefusalReason> {
    Some(match kind {
        SendErrorKind::ConnectRefused
        | SendErrorKind::ConnectTimedOut
        | SendErrorKind::ConnectFailed(_)
        | SendErrorKind::Closed => RefusalReason::UpstreamClosed,
        SendErrorKind::StreamRefused
        | SendErrorKind::StreamReset(_)
        | SendErrorKind::MalformedAnswer(_)
        | SendErrorKind::Malformed
        | SendErrorKind::NotHttp2 => RefusalReason::UpstreamReset,
        SendErrorKind::TooManyConnections { .. } => RefusalReason::QueueFull,
        SendErrorKind::MalformedRequest(_) => RefusalReason::BadRequest,
        SendErrorKind::RequestBody => return None,
    })
}

/// Which limit of time was reached, where it was set, and how long it is.
pub fn limit_reached(expired: ExceededLimit, timeouts: RequestTimeouts, revision: &dyn Display) -> String {
    let (limit, key) = match expired {
        ExceededLimit::Request => (timeouts.request, "timeoutSeconds"),
        ExceededLimit::ResponseStart => (timeouts.response_start, "responseStartTimeoutSeconds"),
        ExceededLimit::Idle => (timeouts.idle, "idleTimeoutSeconds"),
    };
    format!("{key} of {revision} is {}", format_duration(limit.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use protocol::http1::MalformedMessage;

    use super::*;

    /// What a client hears: status, reason, `ebb-not-started`, and the text without the name of the hop.
    type Row = Option<(u16, &'static str, bool, &'static str)>;

    fn heard(hop: NextHop, error: &SendError) -> Option<(u16, String, bool, String)> {
        let HopFailure::Refused(refusal) = hop.failed(error) else { return None };
        let response = refusal.clone().into_response(crate::RequestKind::Plain);
        let is_unstarted = response.headers().contains_key("ebb-not-started");
        assert_eq!(
            response.headers().contains_key("retry-after"),
            refusal.reason == RefusalReason::QueueFull
        );
        let detail = refusal.detail.replace(hop.name(), "hop");
        Some((response.status().as_u16(), refusal.reason.to_string(), is_unstarted, detail))
    }

    fn rows() -> Vec<(SendErrorKind, PeerStart, Row)> {
        use PeerStart::{No, Perhaps};
        use SendErrorKind as Kind;
        let row = |status, reason, is_unstarted, text| Some((status, reason, is_unstarted, text));
        let closed = "the hop did not answer: connection closed before an answer";
        let full = "the hop did not answer: 7 connections are open, which is the limit";
        let reset = "the hop did not answer: stream reset: CANCEL";
        let malformed = MalformedMessage::Interim;
        vec![
            (
                Kind::ConnectRefused,
                No,
                row(502, "upstream-closed", true, "the hop did not answer: connection refused"),
            ),
            (
                Kind::ConnectTimedOut,
                No,
                row(502, "upstream-closed", true, "the hop did not answer: no connection within the limit"),
            ),
            (Kind::Closed, Perhaps, row(502, "upstream-closed", false, closed)),
            (Kind::TooManyConnections { limit: 7 }, No, row(503, "queue-full", true, full)),
            (
                Kind::StreamRefused,
                No,
                row(502, "upstream-reset", true, "the hop did not answer: stream refused"),
            ),
            (Kind::StreamReset("CANCEL".to_owned()), Perhaps, row(502, "upstream-reset", false, reset)),
            (
                Kind::Malformed,
                Perhaps,
                row(502, "upstream-reset", false, "the hop did not answer: malformed answer"),
            ),
            (
                Kind::MalformedRequest(malformed),
                Perhaps,
                row(400, "bad-request", false, "the request's body is malformed: "),
            ),
            (Kind::RequestBody, Perhaps, None),
        ]
    }

    #[test]
    fn a_failed_hop_reads_the_same_whichever_proxy_saw_it() {
        for (kind, started, expected) in rows() {
            let error = SendError { kind, started, request: None };
            for hop in [NextHop::App, NextHop::Pod] {
                let heard = heard(hop, &error);
                let as_row = heard.as_ref().map(|(status, reason, unstarted, text)| {
                    (*status, reason.as_str(), *unstarted, text.as_str())
                });
                match (expected, as_row) {
                    (Some((400, .., prefix)), Some((400, "bad-request", false, text))) => {
                        assert!(text.starts_with(prefix), "{text}");
                    }
                    (expected, heard) => assert_eq!(heard, expected, "{hop:?} {error}"),
                }
            }
        }
    }

    #[test]
    fn an_app_that_speaks_another_protocol_than_its_ports_name_is_told_how_to_name_it() {
        for started in [PeerStart::No, PeerStart::Perhaps] {
            let error = SendError { kind: SendErrorKind::NotHttp2, started, request: None };
            let expected = (502, "upstream-reset".to_owned(), false, NOT_HTTP2.replace("app", "hop"));
            assert_eq!(heard(NextHop::App, &error), Some(expected), "no other pod is asked: {started:?}");
        }
    }

    #[test]
    fn a_timed_out_client_hears_the_limit_and_the_refusals_before_it() {
        let timeouts = RequestTimeouts {
            request: Some(Duration::from_secs(300)),
            response_start: Some(Duration::from_secs(2)),
            idle: Some(Duration::from_millis(500)),
            ..RequestTimeouts::default()
        };
        for (expired, reason, detail, body) in [
            (ExceededLimit::Request, "request-timeout", "timeoutSeconds of x is 5m", "request timeout"),
            (
                ExceededLimit::ResponseStart,
                "response-start-timeout",
                "responseStartTimeoutSeconds of x is 2s",
                "response start timeout",
            ),
            (ExceededLimit::Idle, "idle-timeout", "idleTimeoutSeconds of x is 500ms", "idle timeout"),
        ] {
            for (hop, body) in [(NextHop::App, body), (NextHop::Pod, "activator request timeout")] {
                let refusal = hop.timed_out(expired, timeouts, &"x", 0);
                assert_eq!((refusal.reason.as_str(), &*refusal.detail), (reason, detail));
                assert_eq!((refusal.status.as_u16(), refusal.body.as_deref()), (504, Some(body)));
            }
        }
        let refused = NextHop::App.timed_out(ExceededLimit::Idle, timeouts, &"x", 3);
        let expected = "idleTimeoutSeconds of x is 500ms; the app refused the request (REFUSED_STREAM) 3 times until then";
        assert_eq!(refused.detail, expected);
    }
}
