//! Moves the bytes of one connection.
//!
//! In turns, so that no connection waits for long behind a connection that has much to say: a turn ends after
//! so many reads, or so many frames, whichever comes first, and the rest waits for the next one. And a peer
//! that does not take what it made us write is not listened to until it does.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use protocol::http2::{ArrivedRequest, ErrorCode, MEMORY_PAUSE, Session, SessionEvent};
use runtime::Clock;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::Sleep;

use crate::http1::{LINGER_LIMIT, poll_read_in_place};
use crate::socket::Socket;

/// How many times a connection reads before others get their turn.
const READS_PER_TURN: usize = 4;

/// A peer that does not read what it made us write is not read either while more than this waits.
const UNREAD_OUTPUT_BYTES_MAX: usize = 256 * 1024;

/// Why the transport of a connection stopped.
#[derive(Debug, Error)]
pub(crate) enum ConnectionEnd {
    /// Both sides are done with it.
    #[error("it was left")]
    Left,
    /// The peer closed the connection in order.
    #[error("the peer closed it")]
    Closed,
    #[error("reading failed")]
    Io(#[source] io::Error),
    /// The peer broke the protocol.
    #[error("{0}: {1}")]
    Fault(ErrorCode, &'static str),
}

/// The socket of a session. When it is dropped the session ends.
#[derive(Debug)]
pub(crate) struct Transport {
    socket: Socket,
    /// What was read and not looked at yet: before it was known to be HTTP/2, or because the turn was
    /// over.
    ahead: BytesMut,
    session: Rc<Session>,
    clock: Clock,
    /// Nothing is read until it is over, or there is memory again where that was the reason.
    pause: Option<Pin<Box<Sleep>>>,
    /// The peer reads no more. Reading has the last word: what it wrote before is still to come.
    has_peer_stopped_reading: bool,
    /// Whether something was read since this was last looked at.
    pub(crate) has_heard: bool,
}

impl Transport {
    pub(crate) fn new(socket: impl Into<Socket>, ahead: Bytes, session: Rc<Session>, clock: Clock) -> Self {
        let (socket, ahead) = (socket.into(), BytesMut::from(ahead));
        Self { socket, ahead, session, clock, pause: None, has_peer_stopped_reading: false, has_heard: false }
    }

    /// One turn: reads, lets `control` act on what was read, writes. Ready when the connection is over.
    pub(crate) fn poll_turn(
        &mut self,
        context: &mut Context<'_>,
        arrived: impl FnMut(ArrivedRequest),
        control: impl FnOnce(&Session),
    ) -> Poll<ConnectionEnd> {
        // From here to `end_turn` this task need not be woken: whatever a stream writes goes out at the end.
        self.session.begin_turn(context);
        let received = self.poll_receive(context, arrived);
        let was_crowded = self.is_crowded();
        control(&self.session);
        // Last, so that what was read and what streams answered to it goes to the kernel together.
        self.send(context);
        if was_crowded && !self.is_crowded() {
            // Reading stopped because of output that is gone now, and only this task can go on with it.
            context.waker().wake_by_ref();
        }
        match received {
            Poll::Ready(end) => Poll::Ready(end),
            Poll::Pending if self.session.is_finished() => Poll::Ready(ConnectionEnd::Left),
            Poll::Pending => Poll::Pending,
        }
    }

    fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        mut arrived: impl FnMut(ArrivedRequest),
    ) -> Poll<ConnectionEnd> {
        for _ in 0..READS_PER_TURN {
            if self.is_crowded() {
                return Poll::Pending;
            }
            let mut read = if self.pause.is_some() {
                ready!(self.poll_pause(context));
                std::mem::take(&mut self.ahead)
            } else {
                match ready!(self.poll_read(context)) {
                    Ok(read) if read.is_empty() => return Poll::Ready(ConnectionEnd::Closed),
                    Ok(read) => read,
                    Err(error) => return Poll::Ready(ConnectionEnd::Io(error)),
                }
            };
            self.has_heard = true;
            loop {
                match self.session.receive(&mut read, &|| self.clock.now()) {
                    Ok(SessionEvent::Request(request)) => arrived(request),
                    Ok(SessionEvent::Farewell { code, why }) => {
                        tracing::debug!(%code, why = %why.escape_debug(), "a peer goes away");
                    }
                    Ok(SessionEvent::All) => break,
                    Ok(SessionEvent::TurnOver) => {
                        self.ahead = read;
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    Ok(SessionEvent::Paused) => {
                        self.ahead = read;
                        self.pause = Some(Box::pin(tokio::time::sleep(MEMORY_PAUSE)));
                        // What is left of the turn asks for the pause, and so for its end.
                        break;
                    }
                    Err((code, what)) => {
                        // What was read behind the fault is not looked at: nothing that a peer says after one
                        // can be relied on.
                        self.session.refuse(code);
                        return Poll::Ready(ConnectionEnd::Fault(code, what));
                    }
                }
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Ready when the connection is to be read again.
    fn poll_pause(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(pause) = &mut self.pause
            && !self.session.has_memory_again()
        {
            ready!(pause.as_mut().poll(context));
        }
        self.pause = None;
        self.session.resume();
        Poll::Ready(())
    }

    /// Whether more waits for the peer than may, while we go on listening to it.
    fn is_crowded(&self) -> bool {
        self.session.output_bytes() > UNREAD_OUTPUT_BYTES_MAX
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<BytesMut>> {
        if !self.ahead.is_empty() {
            return Poll::Ready(Ok(std::mem::take(&mut self.ahead)));
        }
        // To ask whether a read is worth it is cheaper than a read, and of two turns one has only to write.
        ready!(self.socket.poll_read_ready(context))?;
        poll_read_in_place(&mut self.socket, context)
    }

    fn send(&mut self, context: &mut Context<'_>) {
        if let Poll::Ready(Err(error)) = poll_write(&self.session, &mut self.socket, context) {
            tracing::debug!(%error, "a peer reads no more");
            self.has_peer_stopped_reading = true;
        }
        if self.has_peer_stopped_reading {
            self.session.forget_output();
        }
    }

    /// Writes the last frames and waits a little for the peer to read them.
    pub(crate) async fn close(mut self) {
        let farewell = async {
            std::future::poll_fn(|context| poll_write(&self.session, &mut self.socket, context)).await?;
            self.socket.shutdown().await?;
            let mut unwanted = [0; 1024];
            // One piece in a turn, or a peer that sends as fast as it can would have the thread to itself.
            while self.socket.read(&mut unwanted).await? > 0 {
                tokio::task::yield_now().await;
            }
            io::Result::Ok(())
        };
        // Whether it reads them is its own affair.
        let _ = tokio::time::timeout(LINGER_LIMIT, farewell).await;
    }
}

/// Writes what can be written.
fn poll_write(
    session: &Session,
    socket: &mut (impl AsyncWrite + Unpin),
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    ready!(session.end_turn(|pieces| {
        let socket = Pin::new(&mut *socket);
        match pieces {
            [piece] => socket.poll_write(context, piece),
            _ => socket.poll_write_vectored(context, pieces),
        }
    }))?;
    // Without TLS the kernel has everything that is not here.
    Pin::new(socket).poll_flush(context)
}

impl Drop for Transport {
    fn drop(&mut self) {
        self.session.close();
    }
}
