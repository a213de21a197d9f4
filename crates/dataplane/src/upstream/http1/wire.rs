//! The socket of one connection to an app or queue-proxy.
//!
//! While a connection waits it holds no buffer. What is read goes into one that the whole thread shares: a small piece is copied out of it, a large one
//! takes its part of the buffer along.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio_util::io::poll_read_buf;

use super::super::Opened;
use crate::small_writes::poll_write_pieces;

/// As much as is read at once.
const READ_BYTES: usize = 64 * 1024;

/// Less room than this is not worth a read.
const READ_BYTES_MIN: usize = 16 * 1024;

/// Pieces up to this size are copied. A larger one keeps the whole shared buffer alive, at most [`READ_BYTES`], for as long as it lives itself.
const COPIED_BYTES_MAX: usize = 8 * 1024;

thread_local! {
    static BUFFER: RefCell<BytesMut> = RefCell::default();
}

/// A socket that is read by one task and, while a request body outlasts the head of its response, written by another.
pub(super) struct Wire {
    stream: RefCell<TcpStream>,
    is_broken_off: Cell<bool>,
    _opened: Opened,
}

impl Wire {
    pub(super) fn new(stream: TcpStream, opened: Opened) -> Self {
        Self { stream: RefCell::new(stream), is_broken_off: Cell::default(), _opened: opened }
    }

    pub(super) fn into_stream(self) -> TcpStream {
        self.stream.into_inner()
    }

    /// The next bytes; none at the end.
    pub(super) fn poll_read(&self, context: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        BUFFER.with_borrow_mut(|buffer| {
            if buffer.capacity() < READ_BYTES_MIN {
                buffer.reserve(READ_BYTES);
            }
            let mut stream = self.stream.borrow_mut();
            let length = ready!(poll_read_buf(Pin::new(&mut *stream), context, buffer))?;
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

    pub(super) fn poll_write(
        &self,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        poll_write_pieces(&mut self.stream.borrow_mut(), context, pieces)
    }

    /// Whether the peer has neither closed an idle connection nor said anything on it, as far as the kernel has told the runtime.
    pub(super) fn is_quiet(&self) -> bool {
        self.poll_read(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    /// Ends both directions at once, for whoever still uses them.
    pub(super) fn break_off(&self) {
        self.is_broken_off.set(true);
        // A failure means that it has ended already.
        let _ = SockRef::from(&*self.stream.borrow()).shutdown(Shutdown::Both);
    }

    /// Whether that was done, so that what looks like the end of a response may not be one.
    pub(super) fn is_broken_off(&self) -> bool {
        self.is_broken_off.get()
    }
}
