//! What a client is told when one of our programs, not the app, answers.
//!
//! Every refusal goes through here, so each has a status, one line of text, and `ebb-error: REASON;
//! detail="…"`. A gRPC client cannot read a status line of 503: it gets 200 with a `grpc-status`.

mod reason;

use std::borrow::Cow;
use std::fmt::Write;
use std::time::Duration;

use http::StatusCode;
use http::header::{ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};

use protocol::http1::UnreadableRequest;
use protocol::{Ambiguity, Request, Response, TargetProblem, names};

use crate::body::Body;
use crate::plain_text::plain_text;

pub use reason::RefusalReason;

/// What of a request decides how a refusal looks. Taken before the request is sent away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// The client reads the status line of an answer.
    Plain,
    /// The client reads the `grpc-status` of an answer.
    Grpc,
}

impl RequestKind {
    /// Tells gRPC from other requests by their content type.
    pub fn of<B>(request: &Request<B>) -> Self {
        match request.fields().content_type() {
            Some(kind) if kind.starts_with(b"application/grpc") => Self::Grpc,
            Some(_) | None => Self::Plain,
        }
    }
}

/// An answer of one of our programs in place of the app's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason as a word of `ebb-error`.
    pub reason: RefusalReason,
    /// The status, by default that of the reason.
    pub status: StatusCode,
    /// The explanation for people: what happened, which limit, where it was set. No addresses and no errors
    /// of the operating system.
    pub detail: Cow<'static, str>,
    /// The body, when it is not the detail and a newline.
    pub body: Option<Cow<'static, str>>,
    /// When trying again may help.
    pub retry_after: Option<Duration>,
    /// Whether this program is sure that no app saw the request.
    pub never_started: NotStartedMark,
}

/// Which setting bounds the size of heads at the front, for people.
pub const HEAD_SIZE_SETTING: &str = "the size is head-size-limit of ConfigMap config-autoscaler, or less by annotation ebb.dev/head-size-limit";

/// Whether a refusal says `ebb-not-started: 1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NotStartedMark {
    /// The header is absent: an app may have seen the request.
    #[default]
    Unsaid,
    /// No app saw the request, and the hop that sent it may send it elsewhere.
    Said,
}

impl Refusal {
    /// A refusal with the reason's own status, and its `Retry-After`.
    pub fn new(reason: RefusalReason, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            reason,
            status: reason.status(),
            detail: detail.into(),
            body: None,
            retry_after: reason.retry_after(),
            never_started: NotStartedMark::Unsaid,
        }
    }

    /// Replaces the status, which is that of the reason otherwise.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Replaces the text of the answer's body with exactly this one.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Cow<'static, str>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Marks the refusal with `ebb-not-started: 1`: no app saw the request.
    #[must_use]
    pub fn never_started(mut self) -> Self {
        self.never_started = NotStartedMark::Said;
        self
    }

    /// The answer to a request of that kind.
    pub fn into_response(self, kind: RequestKind) -> Response<Body> {
        let mut response = match kind {
            RequestKind::Plain => self.plain_response(),
            RequestKind::Grpc => self.grpc_response(),
        };
        let headers = response.headers_mut();
        headers.insert(names::EBB_ERROR, self.explanation());
        if let Some(wait) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
        }
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            // RFC 9110 §15.5.6 asks for it. Where a tunnel would lead to, no other method leads either.
            headers.insert(ALLOW, HeaderValue::from_static(""));
        }
        if self.never_started == NotStartedMark::Said {
            headers.insert(names::EBB_NOT_STARTED, HeaderValue::from_static("1"));
        }
        response
    }

    fn plain_response(&self) -> Response<Body> {
        let body = match &self.body {
            Some(Cow::Borrowed(text)) => Body::full(*text),
            Some(Cow::Owned(text)) => Body::full(text.clone()),
            None => Body::full(format!("{}\n", self.detail)),
        };
        plain_text(self.status, body)
    }

    /// A "trailers-only" response: status and explanation stand in the head, and nothing follows.
    fn grpc_response(&self) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        let headers: &mut HeaderMap = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(names::GRPC_STATUS, HeaderValue::from_static(self.reason.grpc_status()));
        let message = format!("{}: {}", self.reason, self.detail);
        headers.insert(names::GRPC_MESSAGE, percent_encoded(&message));
        response
    }

    fn explanation(&self) -> HeaderValue {
        let mut text = format!("{}; detail=\"", self.reason);
        for letter in self.detail.chars() {
            match letter {
                '"' | '\\' => {
                    text.push('\\');
                    text.push(letter);
                }
                ' '..='~' => text.push(letter),
                _ => text.push('?'),
            }
        }
        text.push('"');
        HeaderValue::try_from(text).expect("only visible ASCII was written")
    }
}

/// Encodes a text for `grpc-message`: visible ASCII but `%` stays, the rest becomes `%XX`.
fn percent_encoded(text: &str) -> HeaderValue {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'$' | b'&'..=b'~' => encoded.push(char::from(byte)),
            _ => write!(encoded, "%{byte:02X}").expect("writing to a string does not fail"),
        }
    }
    HeaderValue::try_from(encoded).expect("only visible ASCII was written")
}

/// What a client is told whose request cannot be read, before its connection closes.
impl From<UnreadableRequest> for Refusal {
    fn from(unreadable: UnreadableRequest) -> Self {
        let status = match unreadable {
            UnreadableRequest::Target(TargetProblem::TooLong) => StatusCode::URI_TOO_LONG,
            UnreadableRequest::TooManyHeaders { .. }
            | UnreadableRequest::TooLong { .. }
            | UnreadableRequest::NoMemory { .. } => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            UnreadableRequest::TooSlow => StatusCode::REQUEST_TIMEOUT,
            UnreadableRequest::RequestLine
            | UnreadableRequest::Version
            | UnreadableRequest::Target(
                TargetProblem::Form | TargetProblem::Byte(_) | TargetProblem::Host(_),
            )
            | UnreadableRequest::NotAgreed
            | UnreadableRequest::HeaderName
            | UnreadableRequest::HeaderValue
            | UnreadableRequest::LineEnd
            | UnreadableRequest::ContentLength
            | UnreadableRequest::TransferEncoding
            | UnreadableRequest::OldTransferEncoding => StatusCode::BAD_REQUEST,
        };
        Self::new(RefusalReason::BadRequest, unreadable.to_string()).with_status(status)
    }
}

/// The same, of a request that can be read in two ways.
impl From<Ambiguity> for Refusal {
    fn from(ambiguity: Ambiguity) -> Self {
        let refusal = Self::new(RefusalReason::BadRequest, ambiguity.to_string());
        match ambiguity {
            // The client's mistake, and none of an app.
            Ambiguity::Connect => refusal.with_status(StatusCode::METHOD_NOT_ALLOWED),
            Ambiguity::TransferEncoding
            | Ambiguity::Lengths
            | Ambiguity::Hosts
            | Ambiguity::LengthBesideChunks
            | Ambiguity::User
            | Ambiguity::NoHost
            | Ambiguity::MalformedHost => refusal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_client_gets_status_line_and_reason() {
        let response = Refusal::new(RefusalReason::QueueFull, "10 requests wait, the limit of \"hello\"")
            .never_started()
            .into_response(RequestKind::Plain);
        assert_eq!(response.status(), 503);
        let header = |name: &str| response.headers()[name].to_str().expect("ASCII");
        assert_eq!(
            header("ebb-error"),
            "queue-full; detail=\"10 requests wait, the limit of \\\"hello\\\"\""
        );
        assert_eq!((header("retry-after"), header("ebb-not-started")), ("1", "1"));
    }

    #[test]
    fn limits_of_a_head_have_a_status_of_their_own() {
        for (unreadable, status) in [
            (UnreadableRequest::TooManyHeaders { limit: 100 }, 431),
            (UnreadableRequest::TooLong { limit: 100 }, 431),
            (UnreadableRequest::NoMemory { bytes: 100 }, 431),
            (UnreadableRequest::Target(TargetProblem::TooLong), 414),
            (UnreadableRequest::Target(TargetProblem::Form), 400),
            (UnreadableRequest::TooSlow, 408),
            (UnreadableRequest::Version, 400),
        ] {
            assert_eq!(Refusal::from(unreadable).status, status, "{unreadable}");
        }
        assert_eq!(Refusal::from(Ambiguity::Connect).status, 405);
        let connect = Refusal::from(Ambiguity::Connect).into_response(RequestKind::Plain);
        assert_eq!(connect.headers()["allow"], "");
        assert_eq!(Refusal::from(Ambiguity::NoHost).status, 400);
    }

    #[test]
    fn a_grpc_client_gets_200_and_a_grpc_status() {
        for (reason, status) in [
            (RefusalReason::QueueFull, "14"),
            (RefusalReason::UpstreamClosed, "14"),
            (RefusalReason::RequestTimeout, "4"),
            (RefusalReason::IdleTimeout, "4"),
        ] {
            let response = Refusal::new(reason, "100 % gone\n").into_response(RequestKind::Grpc);
            assert_eq!(response.status(), 200);
            assert_eq!(response.headers()["grpc-status"], status, "{reason}");
            assert_eq!(response.headers()["grpc-message"], format!("{reason}: 100 %25 gone%0A"));
            assert!(response.body().is_empty());
        }
    }

    #[test]
    fn the_kind_of_a_request_is_its_content_type() {
        let kind = |content_type: &str| {
            let request = http::Request::builder().header("content-type", content_type).body(());
            RequestKind::of(&Request::from(request.expect("legal")))
        };
        assert_eq!(kind("application/grpc+proto"), RequestKind::Grpc);
        assert_eq!(kind("application/json"), RequestKind::Plain);
    }
}
