//! HTTP/2 connections: shared by their streams; another one is opened when a peer's limit is reached, or when
//! one has so many streams that they wait for one another.

mod connection;
mod host;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use http::Version;
use protocol::http2::{HasBody, PeerPreface, Session, SessionLimits, StreamError};
use protocol::{Request, Response};
use runtime::Clock;

use super::limits::PriorKnowledge;
use super::pool::{CountedConnection, Pool};
use super::{PeerStart, SendError, SendErrorKind, dial};
use crate::body::Body;
use crate::http2::{Pump, SendFailure};
use host::{PendingDial, is_comfortable};

pub(super) use host::Http2Host;

/// How many times a request that a peer has certainly not begun is sent, on one connection after the other.
const ATTEMPTS_MAX: u32 = 3;

/// How many times a request is sent to a peer that refuses it and stays. A second time at once may find the
/// obstacle gone; whether to try more often is for the caller to decide, which can wait.
const REFUSALS_MAX: u32 = 2;

/// How many connections are tried before a peer that says nothing on any is taken not to speak HTTP/2.
const GREETINGS_AWAITED: u32 = 2;

/// How long its first words may take once it has accepted a connection: as long as a silent peer may take for
/// an answer to a ping.
const GREETING_PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn send(
    pool: &Rc<Pool>,
    to: SocketAddr,
    mut request: Box<Request<Body>>,
) -> Result<Response<Body>, SendError> {
    *request.version_mut() = Version::HTTP_2;
    let body = if request.body().is_empty() { HasBody::No } else { HasBody::Yes };
    let (mut attempt, mut refusals) = (1, 0);
    loop {
        let session = match connection_with_room(pool, to, body).await {
            Ok(session) => session,
            Err(kind) => return Err(SendError::not_started(kind, request)),
        };
        request = match exchange(&session, request, body, pool.clock).await {
            Ok(response) => return Ok(response),
            Err(error) => {
                refusals += u32::from(error.kind == SendErrorKind::StreamRefused && !session.is_closed());
                match error {
                    SendError { request: Some(unsent), .. }
                        if attempt < ATTEMPTS_MAX && refusals < REFUSALS_MAX =>
                    {
                        unsent
                    }
                    error => return Err(error),
                }
            }
        };
        attempt += 1;
    }
}

/// One request and the head of its response, on one stream.
async fn exchange(
    session: &Rc<Session>,
    mut request: Box<Request<Body>>,
    body: HasBody,
    clock: Clock,
) -> Result<Response<Body>, SendError> {
    let (sender, receiver) = session.open(&request, body);
    let mut upload = (body == HasBody::Yes).then(|| Pump::new(sender, clock));
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
    // Asked after the failure. A refused stream may have taken a part of the body before the refusal came,
    // and that part is gone.
    let is_whole = !upload.as_ref().is_some_and(Pump::has_begun);
    match answered {
        Ok(response) => {
            if let Some(pump) = upload.filter(|pump| !pump.is_done()) {
                // A panic drops the pump's sender, which breaks the stream off; the reader of the answer sees
                // that.
                tokio::task::spawn_local(send_rest(pump, request));
            }
            let whole = receiver.take_whole();
            Ok(response.map(|()| whole.map_or_else(|| Body::from(receiver), Body::full)))
        }
        Err(error) if error.started == PeerStart::No && is_whole => {
            Err(SendError { request: Some(request), ..error })
        }
        Err(error) => Err(error),
    }
}

/// Sends what is left of a request whose answer has begun. Any failure ends the stream, which the reader of
/// the answer sees.
async fn send_rest(mut pump: Pump, mut request: Box<Request<Body>>) {
    let sent = poll_fn(|context| pump.poll(request.body_mut(), context)).await;
    if let Err(error) = sent {
        tracing::debug!(?error, "the rest of a request was not sent");
    }
}

impl From<SendErrorKind> for SendError {
    /// A failure after which the request may not be sent again.
    fn from(kind: SendErrorKind) -> Self {
        Self { kind, started: PeerStart::Perhaps, request: None }
    }
}

impl From<StreamError> for SendError {
    fn from(error: StreamError) -> Self {
        let (kind, started) = match error {
            // A promise of HTTP/2 (RFC 9113 §8.7).
            StreamError::Refused => (SendErrorKind::StreamRefused, PeerStart::No),
            StreamError::Unsent => (SendErrorKind::Closed, PeerStart::No),
            StreamError::Closed => (SendErrorKind::Closed, PeerStart::Perhaps),
            StreamError::Reset(code) => (SendErrorKind::StreamReset(code.to_string()), PeerStart::Perhaps),
            StreamError::Aborted(_) => (SendErrorKind::Malformed, PeerStart::Perhaps),
        };
        Self { kind, started, request: None }
    }
}

async fn connection_with_room(
    pool: &Rc<Pool>,
    to: SocketAddr,
    body: HasBody,
) -> Result<Rc<Session>, SendErrorKind> {
    // If there can be no other, a body may wait behind others: they may be read yet.
    let or_choked = |kind| pool.with_host(to, |host| host.http2.with_room(HasBody::No)).ok_or(kind);
    loop {
        let (session, dialing) =
            pool.with_host(to, |host| (host.http2.with_room(body), host.http2.dialing.clone()));
        let dialing = match (session, dialing) {
            (Some(session), dialing) => {
                // A further connection for later requests. If it fails, the present one serves them as well.
                if !is_comfortable(&session)
                    && dialing.is_none()
                    && let Ok(dialing) = DialAttempt::begin(pool, to)
                {
                    // A panic drops `dialing`, which lets others know that the attempt is over.
                    tokio::task::spawn_local(async { dialing.connect().await.map(drop) });
                }
                return Ok(session);
            }
            (None, None) => {
                let connected = match DialAttempt::begin(pool, to) {
                    // Boxed, because it is needed seldom and every request would have room for it.
                    Ok(dialing) => Box::pin(dialing.connect()).await,
                    Err(kind) => Err(kind),
                };
                return connected.or_else(or_choked);
            }
            (None, Some(dialing)) => dialing,
        };
        // Nothing between the look and this can end the attempt: all of it is on this thread, and nothing is
        // awaited in between.
        dialing.is_over.notified().await;
        if let Some(failure) = dialing.failure.get() {
            // The next attempt would fail no sooner than this one; a request that waited for this one has
            // waited long enough.
            return or_choked(failure.clone());
        }
    }
}

/// An attempt to connect, held by the request that makes it. Dropping it tells the waiting requests that the
/// attempt is over, however it ended.
struct DialAttempt {
    pool: Rc<Pool>,
    to: SocketAddr,
    dial: Rc<PendingDial>,
    /// Passed on to the connection.
    opened: Option<CountedConnection>,
}

impl DialAttempt {
    /// Others know of the attempt from now on. Fails if there are too many connections.
    fn begin(pool: &Rc<Pool>, to: SocketAddr) -> Result<Self, SendErrorKind> {
        let (opened, _) = pool.open(to)?;
        let dial = Rc::new(PendingDial::default());
        pool.with_host(to, |host| host.http2.dialing = Some(Rc::clone(&dial)));
        Ok(Self { pool: Rc::clone(pool), to, dial, opened: Some(opened) })
    }

    async fn connect(mut self) -> Result<Rc<Session>, SendErrorKind> {
        let connected = self.session().await;
        let session = connected.inspect_err(|kind| {
            tracing::debug!(to = %self.to, %kind, "no HTTP/2 connection was opened");
            let first = self.dial.failure.set(kind.clone());
            debug_assert!(first.is_ok(), "an attempt fails once");
        })?;
        // Before the attempt counts as over, which is when it is dropped: those that wait for it then look
        // here.
        self.pool.with_host(self.to, |host| host.http2.connections.push(Rc::clone(&session)));
        Ok(session)
    }

    /// A session with a peer that speaks HTTP/2: known before, or confirmed by its first frame.
    async fn session(&mut self) -> Result<Rc<Session>, SendErrorKind> {
        // An app that once spoke HTTP/2 goes on speaking it, behind the same address, for as long as its pool
        // lives.
        let is_known = self.pool.limits.prior_knowledge == PriorKnowledge::Certain
            || self.pool.with_host(self.to, |host| host.http2.has_greeted);
        if is_known {
            return self.dial().await;
        }
        // An app that was just going to end may have closed the first connection; one that closes two without
        // a frame of HTTP/2 does not speak it.
        for _ in 0..GREETINGS_AWAITED {
            let session = self.dial().await?;
            let greeting = poll_fn(|context| session.poll_greeting(context));
            match tokio::time::timeout(GREETING_PATIENCE, greeting).await {
                Ok(PeerPreface::Http2) => {
                    self.pool.with_host(self.to, |host| host.http2.has_greeted = true);
                    return Ok(session);
                }
                Ok(PeerPreface::Other) => {}
                Err(_elapsed) => {
                    session.leave_now();
                    return Err(SendErrorKind::NotHttp2);
                }
            }
        }
        Err(SendErrorKind::NotHttp2)
    }

    async fn dial(&mut self) -> Result<Rc<Session>, SendErrorKind> {
        let opened = match self.opened.take() {
            Some(opened) => opened,
            None => self.pool.open(self.to)?.0,
        };
        let socket = dial(self.to, self.pool.limits.connect).await?;
        let head = self.pool.limits().head;
        let limits = SessionLimits {
            streams: 0,
            stream_window: self.pool.limits.unread_window,
            proven_window: self.pool.limits.proven_window,
            read_window: self.pool.limits.stream_window,
            head_bytes: head.bytes,
            headers: head.headers,
            memory: self.pool.limits.memory,
        };
        let (session, running) = connection::connect(socket, limits, self.pool.clock);
        // A panic drops the transport, and with it the session ends for all its streams.
        tokio::task::spawn_local(async move {
            let _opened = opened;
            running.await;
        });
        Ok(session)
    }
}

impl Drop for DialAttempt {
    fn drop(&mut self) {
        self.pool.with_host(self.to, |host| host.http2.dialing = None);
        self.dial.is_over.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::super::http1;
    use super::*;

    fn size_of_future<'p, Work: Future>(
        _: impl FnOnce(&'p Rc<Pool>, SocketAddr, Box<Request<Body>>) -> Work,
    ) -> usize {
        size_of::<Work>()
    }

    /// Every request has room for the larger one of the two.
    #[test]
    fn the_future_of_a_request_is_no_larger_than_over_http1() {
        let (http1, http2) = (size_of_future(http1::send), size_of_future(send));
        assert!(http2 <= http1, "{http2} bytes instead of {http1}");
    }
}
