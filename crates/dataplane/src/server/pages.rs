//! The small pages of a proxy: the same server, at the places that every program keeps for readers of pages.
//!
//! Which clients may connect, and for how long a connection may be idle, is decided by `runtime`
//! ([`runtime::PagePlaces`]). Here the decisions are carried out: a request begins once it has a place, and a
//! connection that must go is closed.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use http::StatusCode;
use protocol::http1::HeadLimits;
use protocol::http2::MemoryBudget;
use protocol::{Request, Response};
use runtime::{ErrorChain, PageConnection, PageKind, PageLimits, PageListener, PageSeat, PageTurn};
use tracing::debug;

use super::limits::{HalfClosedLimits, ServerLimits};
use super::protocols;
use super::service::{Abort, Service};
use crate::body::{Body, BodyGuard, GuardedBody};
use crate::connection::Connection;
use crate::connection::drain::Drain;
use crate::plain_text::plain_line;
use crate::socket::Socket;

/// Streams of one connection: readers of pages ask for one after the other.
const STREAMS_PER_CONNECTION: u32 = 16;

/// A service that answers requests for pages.
pub trait PageService: 'static {
    /// The page that a request asks for.
    fn page(self: Rc<Self>, request: Request<Body>) -> impl Future<Output = Response<Body>> + 'static;

    /// The kind of place that a request on this connection takes.
    fn kind_of(&self, request: &Request<Body>, connection: &Connection) -> PageKind {
        let _ = (request, connection);
        PageKind::Ordinary
    }
}

/// Serves pages until [`Drain::stop_accepting`], then to those who have connected by then, and returns;
/// connections live on as local tasks.
pub async fn serve_pages<Pages: PageService>(
    mut door: PageListener,
    pages: Rc<Pages>,
    drain: Drain,
    memory: &'static MemoryBudget,
) {
    let limits = server_limits(door.places().limits(), memory);
    let _entered = drain.enter_listener();
    loop {
        // Cancel-safe: a connection without a place stays with the door.
        let connection = tokio::select! {
            biased;
            connection = door.accept() => connection,
            () = drain.accepting_stopped() => break,
        };
        spawn(connection, &pages, &drain, limits);
    }
    for connection in door.close() {
        spawn(connection, &pages, &drain, limits);
    }
}

fn server_limits(limits: PageLimits, memory: &'static MemoryBudget) -> ServerLimits {
    ServerLimits {
        head: HeadLimits { bytes: limits.head_bytes, ..HeadLimits::OUTER },
        head_time: limits.head_time,
        streams_per_connection: STREAMS_PER_CONNECTION,
        idle_time: limits.idle_time,
        half_closed: HalfClosedLimits { silence: limits.idle_time, ..HalfClosedLimits::default() },
        memory,
        ..ServerLimits::default()
    }
}

fn spawn<Pages: PageService>(
    connection: PageConnection,
    pages: &Rc<Pages>,
    drain: &Drain,
    limits: ServerLimits,
) {
    let PageConnection { stream, peer, seat } = connection;
    let connection = Rc::new(Connection::accepted(&stream, peer));
    let entered = drain.enter(&connection);
    let pages = Rc::new(SeatedPages { pages: Rc::clone(pages), seat: seat.clone() });
    let drain = drain.clone();
    // Tokio keeps a panic to this one task. It drops the connection and its place.
    tokio::task::spawn_local(async move {
        let _entered = entered;
        let socket = Socket::from(stream);
        let mut served = pin!(protocols::run(socket, Rc::clone(&connection), pages, &drain, limits));
        let mut must_go = pin!(seat.must_go());
        let end = poll_fn(|context| {
            connection.register(context);
            // In this order: what has arrived by now counts.
            match served.as_mut().poll(context) {
                Poll::Ready(end) => Poll::Ready(Some(end)),
                Poll::Pending => must_go.as_mut().poll(context).map(|()| None),
            }
        });
        match end.await {
            Some(Ok(())) => {}
            Some(Err(error)) => debug!(error = %ErrorChain(&*error), "a connection to a page ended early"),
            None => debug!(%peer, "a connection to a page had to go"),
        }
    });
}

/// The pages, as one connection has them.
struct SeatedPages<Pages> {
    pages: Rc<Pages>,
    seat: PageSeat,
}

impl<Pages: PageService> Service for SeatedPages<Pages> {
    type Body = GuardedBody<Option<HeldTurn>>;

    async fn call(
        self: Rc<Self>,
        request: Request<Body>,
        connection: Rc<Connection>,
    ) -> Result<Response<Self::Body>, Abort> {
        let kind = self.pages.kind_of(&request, &connection);
        let turn = match self.seat.begin(kind).await {
            Ok(turn) => turn,
            Err(busy) => {
                connection.retire();
                let refused = plain_line(StatusCode::SERVICE_UNAVAILABLE, &busy.to_string());
                return Ok(refused.map(|body| GuardedBody::new(body, None)));
            }
        };
        match kind {
            PageKind::Probe | PageKind::Ordinary => {}
            // It would come back to the places of others, where there may be no room.
            PageKind::LongRead | PageKind::OwnLongRead => connection.retire(),
        }
        let response = Rc::clone(&self.pages).page(request).await;
        Ok(response.map(|body| GuardedBody::new(body, Some(HeldTurn(turn)))))
    }
}

/// A place, for as long as an answer is being sent.
struct HeldTurn(#[expect(dead_code, reason = "it is held, and nothing else")] PageTurn);

impl BodyGuard for HeldTurn {}
