//! What does the server answer itself, before any service sees it?
//!
//! What cannot be read as a request, what two readers could read as two different ones, and what is larger
//! than it may be. Every port of every program asks here, because no service is called before: a service that
//! forgot to ask would be a way in for smuggled requests.

use http::{Request, Response};

use super::service::{Service, UnservedRequest};
use crate::body::Body;
use crate::connection::Connection;
use crate::refusal::{Refusal, RequestKind};

/// The answer to a request that is not served; the service hears of it.
pub(super) fn refuse<S: Service>(
    service: &S,
    connection: &Connection,
    request: Option<&Request<()>>,
    refusal: Refusal,
) -> Response<Body> {
    let reason = refusal.reason;
    tracing::debug!(%reason, detail = %refusal.detail, "refused what no service sees");
    let kind = request.map_or(RequestKind::Plain, RequestKind::of);
    let answer = refusal.into_response(kind);
    service.note_unserved(&UnservedRequest { request, reason, answer: &answer, connection });
    answer
}
