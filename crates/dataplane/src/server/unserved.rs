//! What does the server answer itself, before any service sees it?
//!
//! What cannot be read as a request, what two readers could read as two different ones, and what is larger
//! than it may be. Every port of every program asks here, because no service is called before: a service that
//! forgot to ask would be a way in for smuggled requests.

use http::StatusCode;
use protocol::http1::{HeadLimits, UnreadableRequest};
use protocol::{Request, Response};

use super::service::{Service, UnservedRequest};
use crate::body::Body;
use crate::connection::Connection;
use crate::refusal::{Refusal, RefusalReason, RequestKind};

/// A head up to this size is within the limits of every service, and no service is asked about it.
const UNASKED: HeadLimits = HeadLimits { bytes: 4 * 1024, headers: HeadLimits::OUTER.headers };

/// The refusal of a head of so many bytes, if the service allows its sender no such head.
pub(super) fn oversize<S: Service>(service: &S, request: &Request<()>, bytes: usize) -> Option<Refusal> {
    let headers = request.fields().count();
    if UNASKED.allow(bytes, headers) {
        return None;
    }
    let limits = service.head_limits(request);
    (!limits.allow(bytes, headers)).then(|| too_large(service, limits))
}

/// The refusal of a head that is larger than these limits, which its text names.
pub(super) fn too_large<S: Service>(service: &S, limits: HeadLimits) -> Refusal {
    let HeadLimits { bytes, headers } = limits;
    let detail =
        format!("the head of the request is larger than {bytes} bytes or has more than {headers} headers");
    let refusal = Refusal::new(RefusalReason::BadRequest, detail);
    with_setting(service, refusal.with_status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE))
}

/// The app has answered, and there is no memory for the head of its answer.
pub(super) fn no_memory_for_answer() -> Refusal {
    let detail = "the head of the answer is large, and the heads that wait here take as much memory as they may; ask again later";
    Refusal::new(RefusalReason::UpstreamReset, detail)
}

/// The refusal of a head that cannot be read, with the reason as its text.
pub(super) fn unreadable<S: Service>(service: &S, why: UnreadableRequest) -> Refusal {
    let is_too_large = matches!(why, UnreadableRequest::TooLong { .. });
    if is_too_large { with_setting(service, why.into()) } else { why.into() }
}

/// Names the setting of the limit.
fn with_setting<S: Service>(service: &S, refusal: Refusal) -> Refusal {
    let Some(setting) = service.head_size_setting() else { return refusal };
    Refusal { detail: format!("{}; {setting}", refusal.detail).into(), ..refusal }
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
