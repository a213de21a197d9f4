//! One accepted connection, from its first byte to its last.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use pin_project_lite::pin_project;
use tokio::net::TcpStream;

use super::head_rules::HeadRules;
use super::socket::{Beginning, Reset, Socket, Spoken};
use super::{Abort, ServerLimits, Service};
use crate::body::{Body, BodyError};
use crate::drain::{Drain, Phase};
use crate::headers::ClientAddress;
use crate::http2::{self, SessionLimits};
use crate::upgrade::ClientUpgrade;
use crate::watch::Watch;

/// What a service may know about the connection that a request came on, and ask of it.
#[derive(Debug)]
pub struct Connection {
    peer: SocketAddr,
    forwarded_for: HeaderValue,
    is_retired: Cell<bool>,
    is_from_hop: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// Anything that ends a connection early.
pub(super) type ConnectionError = Box<dyn std::error::Error + Send + Sync>;

impl Connection {
    pub(super) fn new(peer: SocketAddr) -> Self {
        Self {
            peer,
            forwarded_for: ClientAddress(peer.ip()).to_value(),
            is_retired: Cell::default(),
            is_from_hop: Cell::default(),
            waker: RefCell::default(),
        }
    }

    /// The other end.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The other end's address as it is added to `X-Forwarded-For`.
    pub fn forwarded_for(&self) -> &HeaderValue {
        &self.forwarded_for
    }

    /// Tell the peer to come back on another connection: the next HTTP/1.1 response says `Connection: close`, HTTP/2 gets GOAWAY. Nothing that
    /// runs is disturbed.
    pub fn retire(&self) {
        if !self.is_retired.replace(true) {
            self.wake();
        }
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired.get()
    }

    /// The peer is one of our own hops, which closes its idle connections itself.
    pub fn mark_as_hop(&self) {
        self.is_from_hop.set(true);
    }

    /// Whether [`Connection::mark_as_hop`] was called.
    pub fn is_from_hop(&self) -> bool {
        self.is_from_hop.get()
    }

    /// Makes the connection's task look at what is asked of it.
    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Remembers how to wake this connection's task. It is the same for the whole life of the task, so once is enough.
    pub(crate) fn register(&self, context: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        if waker.is_none() {
            *waker = Some(context.waker().clone());
        }
    }
}

/// Serves a connection to its end.
pub(super) async fn run<S: Service>(
    stream: TcpStream,
    connection: Rc<Connection>,
    service: Rc<S>,
    drain: &Drain,
    limits: ServerLimits,
) -> Result<(), ConnectionError> {
    let mut stream = stream;
    stream.set_nodelay(true)?;
    let mut beginning = Beginning::default();
    let spoken = {
        let mut detection = pin!(beginning.detect(&mut stream));
        // Who connected and said nothing yet holds nothing; a drain need not wait for it.
        poll_fn(|context| {
            connection.register(context);
            match detection.as_mut().poll(context) {
                Poll::Ready(spoken) => Poll::Ready(spoken.map(Some)),
                Poll::Pending if drain.phase() == Phase::Closing => Poll::Ready(Ok(None)),
                Poll::Pending => Poll::Pending,
            }
        })
        .await?
    };
    match spoken {
        Some(Spoken::Http1) => {
            let reset = Reset::default();
            let socket = Socket::new(stream, &beginning, reset.clone());
            run_http1(socket, reset, connection, service, (drain, limits)).await
        }
        Some(Spoken::Http2) => run_http2(stream, connection, service, (drain, limits)).await,
        Some(Spoken::Nothing) | None => Ok(()),
    }
}

async fn run_http1<S: Service>(
    socket: Socket,
    reset: Reset,
    connection: Rc<Connection>,
    service: Rc<S>,
    (drain, limits): (&Drain, ServerLimits),
) -> Result<(), ConnectionError> {
    let is_close_delimited = Rc::new(Cell::new(false));
    let rules = HeadRules::default();
    let socket = socket.obey(&rules);
    let answering = {
        let (connection, drain) = (Rc::clone(&connection), drain.clone());
        let is_close_delimited = Rc::clone(&is_close_delimited);
        service_fn(move |request: Request<Incoming>| {
            is_close_delimited.set(request.version() == Version::HTTP_10);
            let mut request = request.map(Body::from);
            if let Some(upgrade) = request.extensions_mut().remove::<OnUpgrade>() {
                request.extensions_mut().insert(ClientUpgrade::from(upgrade));
            }
            if rules.is_ambiguous(&request) {
                connection.retire();
            }
            let answer = Rc::clone(&service).call(request, Rc::clone(&connection));
            Answering {
                answer,
                connection: Rc::clone(&connection),
                drain: drain.clone(),
                rules: rules.clone(),
            }
        })
    };
    let mut serving = pin!(
        http1::Builder::new()
            .max_buf_size(limits.head_bytes)
            .serve_connection(TokioIo::new(socket), answering)
            .with_upgrades()
    );
    let watch = Watch::default();
    let served = poll_fn(|context| {
        connection.register(context);
        let mut polled = watch.during(|| serving.as_mut().poll(context));
        // What has arrived by now is still served; then an idle connection is closed.
        if polled.is_pending() && drain.phase() == Phase::Closing {
            serving.as_mut().graceful_shutdown();
            polled = watch.during(|| serving.as_mut().poll(context));
        }
        match polled {
            Poll::Ready(ended) => Poll::Ready(ended.map_err(ConnectionError::from)),
            Poll::Pending => {
                watch.poll_expired(context).map(|expired| Err(BodyError::Expired(expired).into()))
            }
        }
    })
    .await;
    if served.is_err() && is_close_delimited.get() {
        reset.request();
    }
    served
}

pin_project! {
    /// The answer to an HTTP/1.1 request, with what the connection has to say in it. A type of its own, because an async block would hold
    /// the service's future twice, and that is large.
    struct Answering<Answer> {
        #[pin]
        answer: Answer,
        connection: Rc<Connection>,
        drain: Drain,
        rules: HeadRules,
    }
}

impl<Answer, B> Future for Answering<Answer>
where
    Answer: Future<Output = Result<Response<B>, Abort>>,
{
    type Output = Result<Response<B>, Abort>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = ready!(this.answer.poll(context))?;
        if this.connection.is_retired.get() || this.drain.is_draining() {
            say_close(&mut response);
        }
        this.rules.responded(&response);
        Poll::Ready(Ok(response))
    }
}

/// The last response of a connection says so. A switch of protocols keeps its own `Connection`.
fn say_close<B>(response: &mut Response<B>) {
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
}

async fn run_http2<S: Service>(
    socket: TcpStream,
    connection: Rc<Connection>,
    service: Rc<S>,
    (drain, limits): (&Drain, ServerLimits),
) -> Result<(), ConnectionError> {
    let limits = SessionLimits {
        streams: limits.streams_per_connection,
        stream_window: limits.stream_window,
        head_bytes: limits.head_bytes,
    };
    http2::serve(socket, connection, service, drain, limits).await?;
    Ok(())
}
