//! The socket of one connection to an app or queue-proxy.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::Shutdown;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use socket2::SockRef;
use tokio::net::TcpStream;

use super::super::Opened;
use crate::http1::{Outgoing, READ_BYTES, poll_read};

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
        poll_read(&mut self.stream.borrow_mut(), READ_BYTES, context)
    }

    /// Writes what is there of a request.
    pub(super) fn poll_flush(
        &self,
        outgoing: &mut Outgoing,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        outgoing.poll_flush(&mut self.stream.borrow_mut(), context)
    }

    /// Whether the peer has neither closed an idle connection nor said anything on it, as far as the kernel has told the runtime.
    pub(super) fn is_quiet(&self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        // To ask whether a read is worth it is cheaper than a read. That it is may be left from the read before.
        self.stream.borrow().poll_read_ready(&mut context).is_pending()
            || self.poll_read(&mut context).is_pending()
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
