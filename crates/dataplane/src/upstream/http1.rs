//! HTTP/1.1 connections: one request at a time, kept for the next one.
//!
//! A connection has no task of its own. The task that waits for a response reads it, so a request wakes one
//! task only, and a connection that waits costs its socket and nothing else. Only a request body that
//! outlasts the head of its response gets a task of its own.

mod exchange;
mod incoming;
mod late_body_record;
mod lease;
mod upload;
mod wire;

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use http::header::{HeaderMap, UPGRADE};
use http::{Method, StatusCode};
use protocol::http1::{BodyDecoder, BodyFraming};
use protocol::{Request, Response};
use vocabulary::Timestamp;

use super::dial;
use super::error::{PeerStart, SendError, SendErrorKind};
use super::limits::LostRequests;
use super::pool::{CountedConnection, Http1Connection, Pool};
use crate::body::Body;
use crate::socket::stream::ReadAheadStream;
use exchange::{FailedExchange, UnreadResponse, exchange};
use incoming::IncomingBody;
use lease::{Http1Lease, UploadTask};
use upload::{Progress, Repeats, Upload, UploadRest};

pub(super) use late_body_record::LateBodyRecord;
pub(super) use wire::UpstreamWire;

/// A connection that was idle for longer than this is looked at once more before it is used: the peer may
/// have closed it while this thread was busy elsewhere and had not asked the kernel. An app is not trusted
/// for a moment with a request that cannot be repeated: one that answers without reading the body of a
/// request often closes its connection then, and has not said so.
const TRUSTED_IDLE: Duration = Duration::from_millis(5);

pub(super) async fn send(
    pool: &Rc<Pool>,
    to: SocketAddr,
    mut request: Box<Request<Body>>,
) -> Result<Response<Body>, SendError> {
    // A body that was sent is as empty afterwards as one that never was.
    let is_bodiless = request.body().is_empty();
    let can_be_repeated = is_bodiless && is_idempotent(&request);
    let is_repeating = pool.limits.lost_requests == LostRequests::Repeat;
    let is_trusting = can_be_repeated || !is_repeating;
    let repeats = if can_be_repeated && is_repeating { Repeats::IfLost } else { Repeats::Never };
    while let Some(mut connection) = take_live(pool, to, is_trusting) {
        let is_after_bodiless = std::mem::take(&mut connection.is_after_bodiless);
        let failed = match exchange(Rc::clone(&connection.wire), request, repeats, pool).await {
            Ok(answered) => return Ok(respond(pool, to, connection, answered)),
            Err(failed) => failed,
        };
        // What came was no answer to this request, but what the app had left to say to the one before.
        let is_late_body = is_after_bodiless && matches!(failed.kind, SendErrorKind::MalformedAnswer(_));
        if is_late_body {
            pool.note_late_body(to);
        }
        let is_lost = is_late_body || (failed.is_silent && failed.kind == SendErrorKind::Closed);
        // Nothing of the request left this process. Another idle connection is tried, as often as there are
        // any, and then a new one.
        if failed.progress == Progress::Whole {
            request = failed.request;
        } else if is_lost && is_repeating && can_be_repeated {
            return Box::pin(repeat(pool, to, failed.request)).await;
        } else {
            return Err(failed.into());
        }
    }
    // Boxed, because it is needed seldom and every request would have room for it.
    Box::pin(send_on_new(pool, to, request)).await
}

/// Whether a request without a body can be sent again without doing anything twice: its method says so.
fn is_idempotent(request: &Request<Body>) -> bool {
    let method = request.method();
    let is_promised = *method == Method::GET
        || *method == Method::HEAD
        || *method == Method::OPTIONS
        || *method == Method::TRACE
        || *method == Method::PUT
        || *method == Method::DELETE;
    let upgrades = |headers: &HeaderMap| headers.contains_key(UPGRADE);
    is_promised && !request.fields().of_hops().is_some_and(upgrades)
}

/// Sends a request that a connection lost once more, on a new connection, which the peer cannot have been
/// about to close. The request may have been begun before, so a failure never says that it was not started:
/// the next hop would repeat it in turn.
async fn repeat(
    pool: &Rc<Pool>,
    to: SocketAddr,
    request: Box<Request<Body>>,
) -> Result<Response<Body>, SendError> {
    let sent = send_on_new(pool, to, request).await;
    sent.map_err(|error| SendError { started: PeerStart::Perhaps, request: None, ..error })
}

async fn send_on_new(
    pool: &Rc<Pool>,
    to: SocketAddr,
    request: Box<Request<Body>>,
) -> Result<Response<Body>, SendError> {
    let connection = match connect(pool, to).await {
        Ok(connection) => connection,
        Err(kind) => return Err(SendError::not_started(kind, request)),
    };
    match exchange(Rc::clone(&connection.wire), request, Repeats::Never, pool).await {
        Ok(answered) => Ok(respond(pool, to, connection, answered)),
        Err(failed) => Err(failed.into()),
    }
}

impl From<FailedExchange> for SendError {
    fn from(failed: FailedExchange) -> Self {
        let FailedExchange { kind, progress, request, .. } = failed;
        if matches!(kind, SendErrorKind::RequestBody | SendErrorKind::MalformedRequest(_)) {
            // The request may not be sent again: the rest of its body would be taken for the whole.
            return Self { kind, started: PeerStart::Perhaps, request: None };
        }
        match progress {
            Progress::Whole => Self::not_started(kind, request),
            Progress::Read => Self { kind, started: PeerStart::No, request: None },
            Progress::Written => Self { kind, started: PeerStart::Perhaps, request: None },
        }
    }
}

/// An idle connection that the peer has not closed, as far as the kernel knows; with `is_trusting`, as far as
/// the kernel knew a moment ago.
fn take_live(pool: &Rc<Pool>, to: SocketAddr, is_trusting: bool) -> Option<Http1Connection> {
    let now = pool.clock.now();
    loop {
        let connection = pool.take_idle(to, now)?;
        let is_fresh = now.saturating_since(connection.idle_since) <= TRUSTED_IDLE;
        let is_trusted = is_fresh && is_trusting && !connection.is_after_bodiless;
        // A look of our own costs less than to let the runtime ask the kernel about all sockets.
        if is_trusted || connection.wire.is_quiet_in_kernel() {
            return Some(connection);
        }
        connection.discard(pool, to);
    }
}

async fn connect(pool: &Rc<Pool>, to: SocketAddr) -> Result<Http1Connection, SendErrorKind> {
    let (opened, generation) = pool.open(to)?;
    let stream = dial(to, pool.limits.connect).await?;
    let (wire, opened) = (Rc::new(UpstreamWire::new(stream)), Rc::new(opened));
    Ok(Http1Connection { wire, idle_since: Timestamp::ZERO, generation, is_after_bodiless: false, opened })
}

/// Sends the rest of a request body. Its connection counts as open for as long as this holds the socket.
/// Returns whether the connection can be used again.
async fn send_rest(upload: Box<Upload>, _opened: Rc<CountedConnection>) -> bool {
    UploadRest(upload).await
}

/// The response with what its body is read from. A body that is here already frees its connection at once.
fn respond(
    pool: &Rc<Pool>,
    address: SocketAddr,
    connection: Http1Connection,
    answered: UnreadResponse,
) -> Response<Body> {
    let UnreadResponse { head, rest, upload, mut unfinished } = answered;
    if head.response.status() == StatusCode::SWITCHING_PROTOCOLS {
        unfinished.end();
        drop(upload);
        // No other task may hold the socket: one that still sent the request's body would write into the
        // other protocol.
        let stream = Rc::into_inner(connection.wire).map(UpstreamWire::into_stream);
        let body =
            stream.map_or_else(Body::empty, |stream| Body::switched(ReadAheadStream::new(stream, rest)));
        return head.response.map(|()| body);
    }
    // Most responses are here with their heads, and nothing else is. Their connection is free before the
    // client has got a byte, so that its next request finds it; a lease would be made and ended at once.
    let is_whole = head.framing == BodyFraming::Length(rest.len() as u64);
    if is_whole && head.is_kept_alive && head.bodiless.is_none() && upload.is_none() {
        unfinished.end();
        pool.put_idle(address, connection);
        return head.response.map(|()| Body::full(rest));
    }
    let upload = upload.map(|upload| {
        // After a panic the connection is not kept either: waiting for the task gives an error.
        UploadTask(tokio::task::spawn_local(send_rest(upload, Rc::clone(&connection.opened))))
    });
    let lease = Http1Lease {
        pool: Rc::downgrade(pool),
        address,
        connection,
        is_kept_alive: head.is_kept_alive,
        bodiless: head.bodiless,
        upload,
        unfinished,
    };
    let body = match head.framing {
        // Its connection, if it is kept, is free as early as that of a response with nothing beside it.
        BodyFraming::Length(length) if length <= rest.len() as u64 => {
            let mut rest = rest;
            let body = rest.split_to(usize::try_from(length).unwrap_or(usize::MAX));
            lease.end(&rest);
            Body::full(body)
        }
        framing @ (BodyFraming::Length(_) | BodyFraming::Chunked | BodyFraming::UntilClose) => {
            Body::from(IncomingBody::new(rest, BodyDecoder::new(framing), lease))
        }
    };
    head.response.map(|()| body)
}
