//! The end of a connection that asks.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use protocol::http2::{Role, Session, SessionLimits};
use runtime::Clock;
use tokio::net::TcpStream;
use tokio::time::Sleep;
use vocabulary::Timestamp;

use crate::http2::{ConnectionEnd, Transport};

/// How often a peer that is silent while streams are open is asked whether it is still there, and how long it has to answer (L40).
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
    let mut watch = Watchdog { clock, last_heard: clock.now(), timer: None, is_asked: false };
    let end = poll_fn(|context| {
        // Nobody sends us requests.
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

/// Notices a peer that is gone without a word.
struct Watchdog {
    clock: Clock,
    last_heard: Timestamp,
    /// Runs while streams are open, and is looked at only when it has fired: what is heard costs no timer operation.
    timer: Option<Pin<Box<Sleep>>>,
    /// Whether the peer was asked and has not been heard since.
    is_asked: bool,
}

impl Watchdog {
    /// Ready when the peer is dead.
    fn poll_dead(&mut self, session: &Session, has_heard: bool, context: &mut Context<'_>) -> Poll<()> {
        if has_heard {
            self.last_heard = self.clock.now();
            self.is_asked = false;
        }
        let is_idle = session.streams() == 0;
        let mut timer = match self.timer.take() {
            Some(timer) if !timer.is_elapsed() => {
                self.timer = Some(timer);
                return Poll::Pending;
            }
            Some(_) | None if is_idle => return Poll::Pending,
            Some(timer) => timer,
            None => {
                // Silence begins with the first stream.
                self.last_heard = self.clock.now();
                self.is_asked = false;
                Box::pin(tokio::time::sleep_until(self.clock.instant(self.last_heard + PING_INTERVAL)))
            }
        };
        while timer.as_mut().poll(context).is_ready() {
            let now = self.clock.now();
            let mut next = self.last_heard + PING_INTERVAL;
            if next <= now {
                if self.is_asked {
                    return Poll::Ready(());
                }
                self.is_asked = true;
                session.ping();
                next = now + PING_INTERVAL;
            }
            timer.as_mut().reset(self.clock.instant(next));
        }
        self.timer = Some(timer);
        Poll::Pending
    }
}
