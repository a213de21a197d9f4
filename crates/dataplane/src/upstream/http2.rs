//! HTTP/2 connections: shared by their streams; another one is opened when a peer's limit is reached.

use std::cell::OnceCell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;

use http::{Request, Response, Version};
use tokio::sync::Notify;

use super::{Pool, SendError, SendErrorKind, Started, dial};
use crate::body::Body;
use crate::http1::HEAD_BYTES_MAX;
use crate::http2::{self, HasBody, Pump, SendFailure, Session, SessionLimits, StreamError};

/// How many times a request that a peer has certainly not begun is sent again on another connection.
const ATTEMPTS_MAX: u32 = 3;

/// What is known of one address.
#[derive(Default)]
pub(super) struct Http2Host {
    connections: Vec<Rc<Session>>,
    /// Set while somebody is establishing a connection; others wait for it instead of doing the same.
    dialing: Option<Rc<Dial>>,
}

/// An attempt to connect.
#[derive(Default)]
struct Dial {
    is_over: Notify,
    /// Why it failed. Empty as well if whoever made it gave up.
    failure: OnceCell<SendErrorKind>,
}

impl Http2Host {
    pub(super) fn is_unused(&self) -> bool {
        self.connections.is_empty() && self.dialing.is_none()
    }

    /// No further stream goes to these connections; they end with their last one.
    pub(super) fn retire(&mut self) {
        for session in self.connections.drain(..) {
            session.leave_now();
        }
    }

    /// A connection with room for one more stream.
    fn with_room(&mut self) -> Option<Rc<Session>> {
        self.connections.retain(|session| !session.is_closed());
        self.connections.iter().find(|session| session.has_room()).cloned()
    }
}

impl Drop for Http2Host {
    fn drop(&mut self) {
        self.retire();
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
        let session = match connection_with_room(pool, to).await {
            Ok(session) => session,
            Err(kind) => return Err(SendError::not_started(kind, request)),
        };
        request = match exchange(&session, request).await {
            Ok(response) => return Ok(response),
            Err(SendError { request: Some(unsent), .. }) if attempt < ATTEMPTS_MAX => unsent,
            Err(error) => return Err(error),
        };
        attempt += 1;
    }
}

/// One request and the head of its response, on one stream.
async fn exchange(
    session: &Rc<Session>,
    mut request: Box<Request<Body>>,
) -> Result<Response<Body>, SendError> {
    let body = if request.body().is_empty() { HasBody::No } else { HasBody::Yes };
    let (sender, receiver) = session.open(&request, body);
    let mut upload = (body == HasBody::Yes).then(|| Pump::new(sender));
    let answered = poll_fn(|context| {
        if let Some(pump) = &mut upload
            && !pump.is_done()
            && let Poll::Ready(Err(SendFailure::Body(error))) = pump.poll(request.body_mut(), context)
        {
            tracing::debug!(%error, "the body of a request broke off");
            return Poll::Ready(Err(SendErrorKind::RequestBody.into()));
        }
        receiver.poll_response(context).map_err(SendError::from)
    })
    .await;
    let is_whole = !upload.as_ref().is_some_and(Pump::has_begun);
    match answered {
        Ok(response) => {
            if let Some(pump) = upload.filter(|pump| !pump.is_done()) {
                tokio::task::spawn_local(send_rest(pump, request));
            }
            let whole = receiver.take_whole();
            Ok(response.map(|()| whole.map_or_else(|| Body::from(receiver), Body::full)))
        }
        Err(error) if error.started == Started::No && is_whole => {
            Err(SendError { request: Some(request), ..error })
        }
        Err(error) => Err(error),
    }
}

/// Sends what is left of a request whose answer has begun. Whatever goes wrong ends the stream, and who reads the answer sees it.
async fn send_rest(mut pump: Pump, mut request: Box<Request<Body>>) {
    let sent = poll_fn(|context| pump.poll(request.body_mut(), context)).await;
    if let Err(error) = sent {
        tracing::debug!(?error, "the rest of a request was not sent");
    }
}

impl From<SendErrorKind> for SendError {
    /// A failure after which nobody may send the request again.
    fn from(kind: SendErrorKind) -> Self {
        Self { kind, started: Started::Perhaps, request: None }
    }
}

impl From<StreamError> for SendError {
    fn from(error: StreamError) -> Self {
        let (kind, started) = match error {
            // A promise of HTTP/2 (RFC 9113 §8.7).
            StreamError::Refused => (SendErrorKind::StreamRefused, Started::No),
            StreamError::Unsent => (SendErrorKind::Closed, Started::No),
            StreamError::Closed => (SendErrorKind::Closed, Started::Perhaps),
            StreamError::Reset(code) => (SendErrorKind::StreamReset(code.to_string()), Started::Perhaps),
            StreamError::Aborted(_) => (SendErrorKind::Malformed, Started::Perhaps),
        };
        Self { kind, started, request: None }
    }
}

async fn connection_with_room(pool: &Rc<Pool>, to: SocketAddr) -> Result<Rc<Session>, SendErrorKind> {
    loop {
        if let Some(session) = pool.with_host(to, |host| host.http2.with_room()) {
            return Ok(session);
        }
        let Some(dialing) = pool.with_host(to, |host| host.http2.dialing.clone()) else {
            return connect(pool, to).await;
        };
        dialing.is_over.notified().await;
        if let Some(failure) = dialing.failure.get() {
            // The next attempt would fail no sooner than this one; who waited for this one has waited long enough.
            return Err(failure.clone());
        }
    }
}

/// Lets others know that an attempt is over, however it ended.
struct Dialing<'a> {
    pool: &'a Rc<Pool>,
    to: SocketAddr,
    dial: Rc<Dial>,
}

impl Drop for Dialing<'_> {
    fn drop(&mut self) {
        self.pool.with_host(self.to, |host| host.http2.dialing = None);
        self.dial.is_over.notify_waiters();
        self.pool.forget_if_unused(self.to);
    }
}

async fn connect(pool: &Rc<Pool>, to: SocketAddr) -> Result<Rc<Session>, SendErrorKind> {
    let (opened, _) = pool.open(to)?;
    let dial = Rc::new(Dial::default());
    pool.with_host(to, |host| host.http2.dialing = Some(Rc::clone(&dial)));
    let dialing = Dialing { pool, to, dial };
    let dialed = dial::dial(to, pool.limits.connect).await;
    let socket = dialed.inspect_err(|kind| {
        let first = dialing.dial.failure.set(kind.clone());
        debug_assert!(first.is_ok(), "an attempt fails once");
    })?;
    let limits =
        SessionLimits { streams: 0, stream_window: pool.limits.stream_window, head_bytes: HEAD_BYTES_MAX };
    let (session, running) = http2::connect(socket, limits, pool.clock);
    tokio::task::spawn_local(async move {
        let _opened = opened;
        running.await;
    });
    pool.with_host(to, |host| host.http2.connections.push(Rc::clone(&session)));
    drop(dialing);
    Ok(session)
}
