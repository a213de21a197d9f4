//! The client's end of an HTTP/2 connection: a session, and the future that moves its bytes.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use protocol::http2::{Role, Session, SessionLimits};
use runtime::Clock;
use tokio::net::TcpStream;

use crate::http2::{ConnectionEnd, PeerWatchdog, Transport};

/// How long a peer may be silent while streams are open before a PING asks whether it lives, and how long it
/// has to answer (L40).
const PING_INTERVAL: Duration = Duration::from_secs(10);

/// A session on a connection that was just opened, and the future that moves its bytes until it ends.
pub(super) fn connect(
    socket: TcpStream,
    limits: SessionLimits,
    clock: Clock,
) -> (Rc<Session>, impl Future<Output = ()> + 'static) {
    let session = Rc::new(Session::new(Role::Client, limits, clock.now()));
    let running =
        run(Transport::new(socket, Bytes::new(), Rc::clone(&session), clock), Rc::clone(&session), clock);
    (session, running)
}

async fn run(mut transport: Transport, session: Rc<Session>, clock: Clock) {
    let mut watch = PeerWatchdog::new(PING_INTERVAL, clock);
    let end = poll_fn(|context| {
        // A peer sends no requests to the client's end.
        if let Poll::Ready(end) = transport.poll_turn(context, drop, |_| {}) {
            return Poll::Ready(Some(end));
        }
        let has_heard = std::mem::take(&mut transport.has_heard);
        watch.poll_dead(&session, has_heard, context).map(|()| None)
    })
    .await;
    match end {
        Some(end @ (ConnectionEnd::Left | ConnectionEnd::Fault(..))) => {
            tracing::debug!(%end, "an upstream connection ends");
            transport.close().await;
        }
        Some(end @ (ConnectionEnd::Closed | ConnectionEnd::Io(_))) => {
            tracing::trace!(%end, "an upstream connection ended");
        }
        None => tracing::debug!("an upstream is silent, and does not answer a ping"),
    }
}
