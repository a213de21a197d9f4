//! Connections that stop speaking HTTP (WebSocket): from then on we only carry bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::header::{HeaderMap, HeaderValue};
use protocol::switches_as_offered;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional_with_sizes};
use tokio::sync::oneshot;

use crate::connection::drain::Drain;
use crate::socket::stream::ReadAheadStream;
use crate::timers::{Activity, Timers};

/// Frames of a WebSocket are mostly small; what is larger takes several turns.
const BUFFER_BYTES: usize = 8 * 1024;

/// The client's side of a switch of protocols that it asked for. It comes in the place of its request's body.
#[derive(Debug)]
pub struct ClientUpgrade {
    stream: oneshot::Receiver<ReadAheadStream>,
    /// Which protocols the app was offered; `None` before it was offered any. Boxed, because each body has
    /// room for an offer, and hardly any has one.
    offered: Option<Box<HeaderValue>>,
}

/// Where a connection goes that switches.
#[derive(Debug)]
pub(crate) struct SwitchedTo(oneshot::Sender<ReadAheadStream>);

impl ClientUpgrade {
    /// An offer, and where to go if it is taken.
    pub(crate) fn offer() -> (SwitchedTo, Self) {
        let (sender, receiver) = oneshot::channel();
        (SwitchedTo(sender), Self { stream: receiver, offered: None })
    }

    /// Remembers what the app is offered.
    pub(crate) fn offering(self, protocols: HeaderValue) -> Self {
        Self { offered: Some(Box::new(protocols)), ..self }
    }

    /// Whether a response switches to something that was offered.
    pub(crate) fn is_answered_by(&self, response: &HeaderMap) -> bool {
        self.offered.as_ref().is_some_and(|offered| switches_as_offered(response, offered))
    }
}

impl SwitchedTo {
    /// Hands the connection over to the task that took the offer; without one, the connection is closed.
    pub(crate) fn switch(self, stream: ReadAheadStream) {
        drop(self.0.send(stream));
    }
}

/// Carries bytes both ways once both sides have switched, until both directions end, one side fails, or a
/// timer fires (which closes both). `guard` is held as long. The stream counts as open in `drain`.
pub(crate) fn relay<Guard: 'static>(
    sides: (ClientUpgrade, ReadAheadStream),
    timers: Timers,
    guard: Guard,
    drain: &Drain,
) {
    let entered = drain.enter_upgraded();
    let drain = drain.clone();
    // A panic drops both sides, which closes them, and with them what is held.
    tokio::task::spawn_local(async move {
        // The slot of the request and the drain's count last as long as the stream: a WebSocket is a request
        // in flight to the meters of load and to drains that wait for the end.
        let _held = (guard, entered);
        let mut timers = timers;
        let activity = timers.activity();
        match timers.limit(carry(sides, activity, &drain)).await {
            Ok(Ok((inward, outward))) => tracing::trace!(inward, outward, "an upgraded stream ended"),
            Ok(Err(error)) => tracing::debug!(%error, "an upgraded stream failed"),
            Err(expired) => tracing::debug!(%expired, "an upgraded stream was closed"),
        }
    });
}

async fn carry(
    (client, mut app): (ClientUpgrade, ReadAheadStream),
    activity: Option<Activity>,
    drain: &Drain,
) -> io::Result<(u64, u64)> {
    // The client's side comes once the server has written the 101; until then what the app says waits in the
    // kernel. If the client has gone instead, the sender is dropped, and this is the error.
    let client = client.stream.await.map_err(io::Error::other)?;
    let ends = drain.watch([client.tcp(), app.tcp()]);
    let mut client = ActiveStream { stream: client, activity };
    // Cancel-safe: whichever ends first, nothing is carried any further.
    tokio::select! {
        carried = copy_bidirectional_with_sizes(&mut client, &mut app, BUFFER_BYTES, BUFFER_BYTES) => carried,
        () = ends.lost() => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// A stream whose bytes count as activity, in both directions.
struct ActiveStream {
    stream: ReadAheadStream,
    activity: Option<Activity>,
}

impl ActiveStream {
    fn note<T>(&self, polled: &Poll<T>) {
        if polled.is_ready()
            && let Some(activity) = &self.activity
        {
            activity.mark();
        }
    }
}

impl AsyncRead for ActiveStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.note(&polled);
        polled
    }
}

impl AsyncWrite for ActiveStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(&polled);
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
