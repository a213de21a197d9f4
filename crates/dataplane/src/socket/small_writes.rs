//! Writes what is there in pieces.
//!
//! A small message is a head and a few bytes of body. Two pieces cost the kernel noticeably more than one
//! that is twice as long, so they are joined on the stack; large ones go out as they are.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;

/// Copying this much costs less than handing over a second piece.
const JOINED_BYTES_MAX: usize = 1024;

pub(crate) fn poll_write_pieces(
    stream: &mut (impl AsyncWrite + Unpin),
    context: &mut Context<'_>,
    pieces: &[IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    let stream = Pin::new(stream);
    if let [piece] = pieces {
        return stream.poll_write(context, piece);
    }
    let mut joined = [0; JOINED_BYTES_MAX];
    let mut length = 0;
    for piece in pieces {
        let Some(room) = joined.get_mut(length..length + piece.len()) else {
            return stream.poll_write_vectored(context, pieces);
        };
        room.copy_from_slice(piece);
        length += piece.len();
    }
    stream.poll_write(context, &joined[..length])
}
