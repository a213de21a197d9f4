//! What does the server answer itself, before any service sees it?
//!
//! What cannot be read as a request, what two readers could read as two different ones, and what is larger than it may be. Every port of every program asks
//! here, because no service is called before: a service that forgot to ask would be a way in for smuggled requests.

use http::{Request, Response};

use super::{Connection, Service};
use crate::body::Body;
use crate::refusal::{Reason, Refusal, RequestKind};

/// A request that no service sees, and what its client is told.
#[derive(Debug)]
pub struct UnservedRequest<'a> {
    /// Its head. `None` if that could not be read.
    pub request: Option<&'a Request<()>>,
    /// Why, for metrics.
    pub reason: Reason,
    /// The answer.
    pub answer: &'a Response<Body>,
    /// Where it came from.
    pub connection: &'a Connection,
}

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
