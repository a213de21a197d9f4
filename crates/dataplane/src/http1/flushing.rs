//! What is to be written of a message, into its socket.

use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use protocol::http1::OutgoingMessage;
use tokio::io::AsyncWrite;

use crate::socket::small_writes::poll_write_pieces;

/// Writes all pieces of a message that are there; ready when none is left.
pub(crate) fn poll_flush(
    outgoing: &mut OutgoingMessage,
    stream: &mut (impl AsyncWrite + Unpin),
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while !outgoing.is_written() {
        let [before, data, after] = outgoing.pieces();
        let pieces = [before, data, after].map(IoSlice::new);
        // Usually it is one piece, which is cheaper to write than a list of one.
        let pieces = match (before.is_empty(), data.is_empty()) {
            (false, true) if after.is_empty() => &pieces[..1],
            (true, false) if after.is_empty() => &pieces[1..2],
            (_, _) => &pieces[..],
        };
        let written = ready!(poll_write_pieces(stream, context, pieces))?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        outgoing.advance(written);
    }
    Poll::Ready(Ok(()))
}
