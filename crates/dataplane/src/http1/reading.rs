//! What is read goes into one buffer that the whole thread shares: a small piece is copied out of it, a large
//! one takes its part of the buffer along. So a connection that waits holds no buffer.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{BufMut, Bytes, BytesMut};
use protocol::COPIED_BYTES_MAX;
use tokio::io::AsyncRead;
use tokio_util::io::poll_read_buf;

/// How many bytes are read from a socket at once.
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// Less room than this is not worth a read.
const READ_BYTES_MIN: usize = 16 * 1024;

thread_local! {
    static BUFFER: RefCell<BytesMut> = RefCell::default();
}

/// The next bytes where they lie, for a reader that looks at them at once; none at the end.
pub(crate) fn poll_read_in_place(
    stream: &mut (impl AsyncRead + Unpin),
    context: &mut Context<'_>,
) -> Poll<io::Result<BytesMut>> {
    BUFFER.with_borrow_mut(|buffer| {
        make_room(buffer);
        ready!(poll_read_buf(Pin::new(stream), context, buffer))?;
        Poll::Ready(Ok(buffer.split()))
    })
}

/// The next bytes, at most `limit`; none at the end.
pub(crate) fn poll_read(
    stream: &mut (impl AsyncRead + Unpin),
    limit: usize,
    context: &mut Context<'_>,
) -> Poll<io::Result<Bytes>> {
    BUFFER.with_borrow_mut(|buffer| {
        make_room(buffer);
        let length = ready!(poll_read_buf(Pin::new(stream), context, &mut (&mut *buffer).limit(limit)))?;
        let bytes = if length <= COPIED_BYTES_MAX {
            let bytes = Bytes::copy_from_slice(buffer);
            buffer.clear();
            bytes
        } else {
            buffer.split().freeze()
        };
        Poll::Ready(Ok(bytes))
    })
}

fn make_room(buffer: &mut BytesMut) {
    if buffer.capacity() < READ_BYTES_MIN {
        buffer.reserve(READ_BYTES);
    }
}
