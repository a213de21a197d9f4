//! One accepted connection, from its first byte to its last.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use http::Request;
use http::header::HeaderValue;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;

use super::{ServerLimits, Service, http1};
use crate::body::Body;
use crate::drain::Drain;
use crate::headers::ClientAddress;
use crate::stream::Stream;
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

    /// Whether [`Connection::retire`] was called.
    pub(super) fn is_retired(&self) -> bool {
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
    pub(super) fn register(&self, context: &Context<'_>) {
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
    stream.set_nodelay(true)?;
    let spoken = http1::serve(stream, Rc::clone(&connection), Rc::clone(&service), drain, limits).await?;
    match spoken {
        // Boxed, because every connection would have room for it.
        Some(stream) => Box::pin(run_http2(stream, connection, service, (drain, limits))).await,
        None => Ok(()),
    }
}

async fn run_http2<S: Service>(
    stream: Stream,
    connection: Rc<Connection>,
    service: Rc<S>,
    (drain, limits): (&Drain, ServerLimits),
) -> Result<(), ConnectionError> {
    let answering = {
        let connection = Rc::clone(&connection);
        service_fn(move |request: Request<Incoming>| {
            Rc::clone(&service).call(request.map(Body::from), Rc::clone(&connection))
        })
    };
    let mut serving = pin!(
        http2::Builder::new(StreamExecutor)
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.streams_per_connection)
            .initial_stream_window_size(limits.stream_window)
            .initial_connection_window_size(1024 * 1024)
            .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
            .max_send_buf_size(64 * 1024)
            .serve_connection(TokioIo::new(stream), answering)
    );
    let mut is_told = false;
    poll_fn(|context| {
        connection.register(context);
        if !is_told && (connection.is_retired() || drain.is_draining()) {
            is_told = true;
            serving.as_mut().graceful_shutdown();
        }
        serving.as_mut().poll(context)
    })
    .await?;
    Ok(())
}

/// Runs the streams of a connection, each as a task that ends when a timer of its response fires; dropping it resets the stream.
#[derive(Clone, Copy, Debug)]
struct StreamExecutor;

impl<Stream: Future<Output = ()> + 'static> hyper::rt::Executor<Stream> for StreamExecutor {
    fn execute(&self, stream: Stream) {
        tokio::task::spawn_local(async move {
            let mut stream = pin!(stream);
            let watch = Watch::default();
            poll_fn(|context| match watch.during(|| stream.as_mut().poll(context)) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => watch.poll_expired(context).map(drop),
            })
            .await;
        });
    }
}
