//! HTTP/2 connections: shared by their streams; another one is opened when a peer's limit is reached.

mod outward;

use std::cell::Cell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use http::{Request, Response, Version};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Notify;

use super::{LocalExecutor, Opened, Pool, SendError, SendErrorKind, Started, copy_of, dial, is_repeatable};
use crate::body::Body;
use outward::Outward;

/// How often a silent peer is asked whether it is still there, and how long it has to answer (L40).
const PING_INTERVAL: Duration = Duration::from_secs(10);

/// How many times a request that a peer has certainly not begun is sent again on another connection.
const ATTEMPTS_MAX: u32 = 3;

/// What is known of one address.
#[derive(Default)]
pub(super) struct Http2Host {
    connections: Vec<Rc<Shared>>,
    /// Set while somebody is establishing a connection; others wait for it instead of doing the same.
    dialing: Option<Rc<Notify>>,
}

impl Http2Host {
    pub(super) fn is_unused(&self) -> bool {
        self.connections.is_empty() && self.dialing.is_none()
    }

    /// No further stream goes to these connections; they end with their last one.
    pub(super) fn retire(&mut self) {
        self.connections.clear();
    }

    /// A connection with room for one more stream.
    fn with_room(&mut self) -> Option<Rc<Shared>> {
        self.connections.retain(|shared| !shared.sender.is_closed());
        self.connections.iter().find(|shared| shared.has_room()).cloned()
    }
}

/// One connection. When the last clone is gone its task ends it.
struct Shared {
    sender: http2::SendRequest<Body>,
    streams: Cell<usize>,
    /// What the peer allows; read from its settings by the connection's task.
    streams_max: Rc<Cell<usize>>,
}

impl Shared {
    fn has_room(&self) -> bool {
        self.streams.get() < self.streams_max.get()
    }
}

/// One stream.
pub(crate) struct Http2Lease(Rc<Shared>);

impl Http2Lease {
    fn new(shared: Rc<Shared>) -> Self {
        shared.streams.set(shared.streams.get() + 1);
        Self(shared)
    }
}

impl Drop for Http2Lease {
    fn drop(&mut self) {
        self.0.streams.set(self.0.streams.get().saturating_sub(1));
    }
}

impl fmt::Debug for Http2Lease {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Http2Lease").field("streams", &self.0.streams).finish_non_exhaustive()
    }
}

pub(super) async fn send(
    pool: &Rc<Pool>,
    to: SocketAddr,
    mut request: Box<Request<Body>>,
) -> Result<Response<Body>, SendError> {
    *request.version_mut() = Version::HTTP_2;
    let mut attempt = 1;
    loop {
        let shared = match connection_with_room(pool, to).await {
            Ok(shared) => shared,
            Err(kind) => return Err(SendError::not_started(kind, request)),
        };
        let copy = is_repeatable(&request).then(|| copy_of(&request));
        let error = match send_on(shared, request).await {
            Ok(response) => return Ok(response),
            Err(error) => error,
        };
        if attempt == ATTEMPTS_MAX {
            return Err(error);
        }
        attempt += 1;
        request = match (error, copy) {
            (SendError { request: Some(unsent), .. }, _) => unsent,
            (error, Some(copy)) if error.started == Started::No => copy,
            (error, _) => return Err(error),
        };
    }
}

async fn send_on(shared: Rc<Shared>, request: Box<Request<Body>>) -> Result<Response<Body>, SendError> {
    let lease = Http2Lease::new(shared);
    let mut sender = lease.0.sender.clone();
    match sender.try_send_request(*request).await {
        Ok(response) => Ok(response.map(|incoming| Body::from(incoming).with_lease(lease))),
        Err(mut error) => {
            let unsent = error.take_message();
            Err(SendError::from_hyper(error.error(), unsent))
        }
    }
}

async fn connection_with_room(pool: &Rc<Pool>, to: SocketAddr) -> Result<Rc<Shared>, SendErrorKind> {
    loop {
        if let Some(shared) = pool.with_host(to, |host| host.http2.with_room()) {
            return Ok(shared);
        }
        let Some(dialing) = pool.with_host(to, |host| host.http2.dialing.clone()) else {
            return connect(pool, to).await;
        };
        dialing.notified().await;
    }
}

/// Lets others know that an attempt is over, however it ended.
struct Dialing<'a> {
    pool: &'a Rc<Pool>,
    to: SocketAddr,
    done: Rc<Notify>,
}

impl Drop for Dialing<'_> {
    fn drop(&mut self) {
        self.pool.with_host(self.to, |host| host.http2.dialing = None);
        self.done.notify_waiters();
        self.pool.forget_if_unused(self.to);
    }
}

async fn connect(pool: &Rc<Pool>, to: SocketAddr) -> Result<Rc<Shared>, SendErrorKind> {
    let (opened, _) = pool.open(to)?;
    let done = Rc::new(Notify::new());
    pool.with_host(to, |host| host.http2.dialing = Some(Rc::clone(&done)));
    let dialing = Dialing { pool, to, done };
    let io = TokioIo::new(Outward::new(dial::dial(to, pool.limits.connect).await?));
    let handshake = http2::Builder::new(LocalExecutor)
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_INTERVAL)
        .initial_stream_window_size(pool.limits.stream_window)
        .initial_connection_window_size(1024 * 1024)
        .max_send_buf_size(64 * 1024)
        .handshake(io)
        .await;
    let (sender, connection) = handshake.map_err(|_| SendErrorKind::Closed)?;
    let streams_max = Rc::new(Cell::new(connection.current_max_send_streams()));
    tokio::task::spawn_local(run(connection, Rc::clone(&streams_max), opened));
    let shared = Rc::new(Shared { sender, streams: Cell::new(0), streams_max });
    pool.with_host(to, |host| host.http2.connections.push(Rc::clone(&shared)));
    drop(dialing);
    Ok(shared)
}

/// Moves the bytes of one connection and keeps an eye on how many streams its peer allows.
async fn run(
    connection: http2::Connection<TokioIo<Outward>, Body, LocalExecutor>,
    streams_max: Rc<Cell<usize>>,
    opened: Opened,
) {
    let _opened = opened;
    let mut connection = pin!(connection);
    let ended = poll_fn(|context| {
        let polled = connection.as_mut().poll(context);
        streams_max.set(connection.current_max_send_streams());
        polled
    })
    .await;
    if let Err(error) = ended {
        tracing::trace!(%error, "an upstream connection ended");
    }
}
