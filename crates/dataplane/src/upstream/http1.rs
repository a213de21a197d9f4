//! HTTP/1.1 connections: one request at a time, kept for the next one.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::client::conn::http1;
use tokio::task::JoinHandle;
use vocabulary::Timestamp;

use super::{
    Lease, LostRequests, Opened, Pool, SendError, SendErrorKind, Started, copy_of, dial, is_repeatable,
    with_lease,
};
use crate::body::{Body, BodyError};

/// A connection that was idle for longer than this is looked at once more before it is used: the peer may have closed it while this thread was
/// busy elsewhere and had not asked the kernel.
const TRUSTED_IDLE: Duration = Duration::from_millis(5);

/// How long the rest of an exchange (a request body that the app did not wait for) may take before its connection is given up.
const SETTLE_LIMIT: Duration = Duration::from_secs(1);

/// A connection that is not in use.
pub(super) struct Http1Connection {
    sender: http1::SendRequest<SentBody>,
    task: AbortOnDrop,
    pub(super) idle_since: Timestamp,
    /// See the host's.
    pub(super) generation: u64,
}

impl Http1Connection {
    pub(super) fn is_usable(&self) -> bool {
        self.sender.is_ready() && !self.sender.is_closed()
    }
}

/// The task that moves a connection's bytes. Dropping this closes the socket at once, whatever it is doing.
struct AbortOnDrop(Option<JoinHandle<()>>);

impl AbortOnDrop {
    fn detach(mut self) {
        self.0 = None;
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.abort();
        }
    }
}

/// A connection in use. It returns to the pool when it is dropped and the exchange was completed; else it is closed.
pub(crate) struct Http1Lease {
    pool: Weak<Pool>,
    address: SocketAddr,
    connection: Option<Http1Connection>,
}

impl Http1Lease {
    /// The connection was upgraded: its task ends by handing the socket over.
    pub(super) fn detach(mut self) {
        if let Some(connection) = self.connection.take() {
            connection.task.detach();
        }
    }
}

impl Drop for Http1Lease {
    fn drop(&mut self) {
        let (Some(pool), Some(connection)) = (self.pool.upgrade(), self.connection.take()) else { return };
        if connection.is_usable() {
            pool.put_idle(self.address, connection);
        } else if !connection.sender.is_closed() {
            tokio::task::spawn_local(settle(self.pool.clone(), self.address, connection));
        }
    }
}

impl fmt::Debug for Http1Lease {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Http1Lease").field("address", &self.address).finish_non_exhaustive()
    }
}

/// The response is done, the exchange is not quite: waits for the rest, then keeps the connection.
async fn settle(pool: Weak<Pool>, address: SocketAddr, mut connection: Http1Connection) {
    let settled = tokio::time::timeout(SETTLE_LIMIT, connection.sender.ready()).await;
    if let (Ok(Ok(())), Some(pool)) = (settled, pool.upgrade()) {
        pool.put_idle(address, connection);
    }
}

pub(super) async fn send(
    pool: &Rc<Pool>,
    to: SocketAddr,
    mut request: Box<Request<Body>>,
) -> Result<Response<Body>, SendError> {
    *request.version_mut() = Version::HTTP_11;
    while let Some(connection) = take_live(pool, to).await {
        let may_repeat = pool.limits.lost_requests == LostRequests::Repeat && is_repeatable(&request);
        let copy = may_repeat.then(|| copy_of(&request));
        match send_on(pool, to, connection, request).await {
            Err(SendError { request: Some(unsent), .. }) => request = unsent,
            Err(error) => match copy {
                Some(copy) if error.is_lost_connection() => return repeat(pool, to, copy).await,
                Some(_) | None => return Err(error),
            },
            answered => return answered,
        }
    }
    match connect(pool, to).await {
        Ok(connection) => send_on(pool, to, connection, request).await,
        Err(kind) => Err(SendError::not_started(kind, request)),
    }
}

/// Sends a request that a connection lost once more, on a connection that nobody can have been about to close. Whatever comes of it, the request may have
/// been begun before, so it is never said to be unstarted: the next hop would repeat it in turn.
async fn repeat(
    pool: &Rc<Pool>,
    to: SocketAddr,
    request: Box<Request<Body>>,
) -> Result<Response<Body>, SendError> {
    let sent = match connect(pool, to).await {
        Ok(connection) => send_on(pool, to, connection, request).await,
        Err(kind) => Err(SendError::not_started(kind, request)),
    };
    sent.map_err(|error| SendError { started: Started::Perhaps, request: None, ..error })
}

/// An idle connection that the peer has not closed, as far as the kernel knows.
async fn take_live(pool: &Rc<Pool>, to: SocketAddr) -> Option<Http1Connection> {
    let now = pool.clock.now();
    loop {
        let connection = pool.take_idle(to, now)?;
        if now.saturating_since(connection.idle_since) <= TRUSTED_IDLE {
            return Some(connection);
        }
        // Yielding lets the runtime ask the kernel for news and the connection's task hear of them.
        tokio::task::yield_now().await;
        if connection.is_usable() {
            return Some(connection);
        }
    }
}

async fn connect(pool: &Rc<Pool>, to: SocketAddr) -> Result<Http1Connection, SendErrorKind> {
    let (opened, generation) = pool.open(to)?;
    let io = dial::dial(to, pool.limits.connect).await?;
    let handshake = http1::Builder::new().max_buf_size(256 * 1024).handshake(io).await;
    let (sender, connection) = handshake.map_err(|_| SendErrorKind::Closed)?;
    let task = tokio::task::spawn_local(run(connection, opened));
    Ok(Http1Connection { sender, task: AbortOnDrop(Some(task)), idle_since: Timestamp::ZERO, generation })
}

/// Moves the bytes of one connection. What fails is told to the request that it fails for.
async fn run(connection: http1::Connection<dial::Io, SentBody>, opened: Opened) {
    let _opened = opened;
    if let Err(error) = connection.with_upgrades().await {
        tracing::trace!(%error, "an upstream connection ended");
    }
}

async fn send_on(
    pool: &Rc<Pool>,
    to: SocketAddr,
    mut connection: Http1Connection,
    request: Box<Request<Body>>,
) -> Result<Response<Body>, SendError> {
    match connection.sender.try_send_request(request.map(SentBody::from)).await {
        Ok(response) => {
            let lease = Http1Lease { pool: Rc::downgrade(pool), address: to, connection: Some(connection) };
            Ok(with_lease(response, Lease::Http1(lease)))
        }
        Err(mut error) => {
            let unsent = error.take_message().map(|request| request.map(Body::from));
            Err(SendError::from_hyper(error.error(), unsent))
        }
    }
}

/// The body of a request on its way into a connection. hyper keeps room for 32 requests for each of its connections, whether they come or not, so
/// every byte here counts 32 times.
struct SentBody(Option<Box<Body>>);

impl From<Body> for SentBody {
    fn from(body: Body) -> Self {
        Self((!body.is_empty()).then(|| Box::new(body)))
    }
}

impl From<SentBody> for Body {
    fn from(sent: SentBody) -> Self {
        sent.0.map(|body| *body).unwrap_or_default()
    }
}

impl HttpBody for SentBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.0 {
            Some(body) => Pin::new(&mut **body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or(SizeHint::with_exact(0), HttpBody::size_hint)
    }
}
