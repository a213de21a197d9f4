//! One accepted connection, from its first byte to its last, whichever protocol is spoken on it.

use std::rc::Rc;

use protocol::http2::SessionLimits;

use super::http1::{self, ConnectionError};
use super::http2;
use super::limits::ServerLimits;
use super::service::Service;
use crate::connection::Connection;
use crate::connection::drain::Drain;
use crate::socket::Socket;
use crate::socket::options::set_options;
use crate::socket::stream::ReadAheadStream;

/// Serves a connection to its end.
pub(super) async fn run<S: Service>(
    socket: Socket,
    connection: Rc<Connection>,
    service: Rc<S>,
    drain: &Drain,
    limits: ServerLimits,
) -> Result<(), ConnectionError> {
    set_options(socket.tcp())?;
    let spoken = http1::serve(socket, Rc::clone(&connection), Rc::clone(&service), drain, limits).await?;
    match spoken {
        // Boxed, because every connection would have room for it.
        Some(stream) => Box::pin(run_http2(stream, connection, service, (drain, limits))).await,
        None => Ok(()),
    }
}

async fn run_http2<S: Service>(
    stream: ReadAheadStream,
    connection: Rc<Connection>,
    service: Rc<S>,
    (drain, limits): (&Drain, ServerLimits),
) -> Result<(), ConnectionError> {
    let session_limits = SessionLimits {
        streams: limits.streams_per_connection,
        stream_window: limits.stream_window,
        proven_window: limits.stream_window,
        read_window: limits.stream_window,
        head_bytes: limits.head.bytes,
        headers: limits.head.headers,
        memory: limits.memory,
    };
    http2::serve(stream, connection, service, drain, (session_limits, limits.head_time)).await?;
    Ok(())
}
