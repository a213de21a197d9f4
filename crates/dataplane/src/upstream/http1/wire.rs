//! The socket of one connection to an app or queue-proxy.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use protocol::http1::OutgoingMessage;
use socket2::SockRef;
use tokio::io::{AsyncWrite, Interest};
use tokio::net::TcpStream;

use super::super::limits::GivenUpRequests;
use crate::http1::{READ_BYTES, poll_flush, poll_read, poll_read_head};

/// A socket that is read by one task and, while a request body outlasts the head of its response, written by
/// another.
pub(in crate::upstream) struct UpstreamWire {
    stream: RefCell<TcpStream>,
    /// Whether nothing was written yet: the first write does not wait for news from the kernel.
    is_new: Cell<bool>,
    is_broken_off: Cell<bool>,
}

impl UpstreamWire {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream: RefCell::new(stream), is_new: Cell::new(true), is_broken_off: Cell::default() }
    }

    pub(super) fn into_stream(self) -> TcpStream {
        self.stream.into_inner()
    }

    /// The next bytes; none at the end.
    pub(super) fn poll_read(&self, context: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        poll_read(&mut *self.stream.borrow_mut(), READ_BYTES, context)
    }

    /// The next bytes while the head of a response is awaited; none at the end.
    pub(super) fn poll_read_head(&self, context: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        poll_read_head(&mut *self.stream.borrow_mut(), READ_BYTES, context)
    }

    /// Ready once a read may be worth it. To ask is cheaper than a read.
    pub(super) fn poll_worth_reading(&self, context: &mut Context<'_>) -> Poll<()> {
        self.stream.borrow().poll_read_ready(context).map(drop)
    }

    /// Writes what is there of a request.
    pub(super) fn poll_flush(
        &self,
        outgoing: &mut OutgoingMessage,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = &mut *self.stream.borrow_mut();
        if self.is_new.replace(false)
            && let Poll::Ready(flushed) = poll_flush(outgoing, &mut DirectWriter(stream), context)
        {
            return Poll::Ready(flushed);
        }
        poll_flush(outgoing, stream, context)
    }

    /// Whether the peer has neither closed an idle connection nor said anything on it, as far as the kernel
    /// has told the runtime.
    pub(in crate::upstream) fn is_quiet(&self) -> bool {
        // To ask the runtime whether a read is worth it is cheaper than a look. The runtime's answer may be
        // left from the read before; the byte that is looked at stays for the next read.
        let looked = self.stream.borrow().try_io(Interest::READABLE, || self.peek());
        looked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Like [`Self::is_quiet`], as the kernel sees the connection now.
    pub(super) fn is_quiet_in_kernel(&self) -> bool {
        self.peek().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Whether the peer said something that was not read, as the kernel sees it now.
    pub(in crate::upstream) fn has_unread_in_kernel(&self) -> bool {
        matches!(self.peek(), Ok(1..))
    }

    fn peek(&self) -> io::Result<usize> {
        SockRef::from(&*self.stream.borrow()).peek(&mut [MaybeUninit::uninit(); 1])
    }

    /// Tells the peer that no other request will come.
    pub(super) fn end_writing(&self) {
        // A failure means that it has ended already.
        let _ = SockRef::from(&*self.stream.borrow()).shutdown(Shutdown::Write);
    }

    /// Lets the coming close break the connection instead of ending it.
    fn break_on_close(&self) {
        // A failure only means that the peer sees a close instead of a reset.
        let _ = self.stream.borrow().set_zero_linger();
    }

    /// Ends both directions at once, for all tasks that still use the socket.
    pub(super) fn break_off(&self) {
        self.is_broken_off.set(true);
        // A failure means that it has ended already.
        let _ = SockRef::from(&*self.stream.borrow()).shutdown(Shutdown::Both);
    }

    /// Whether [`Self::break_off`] was called, so that the end of the connection may not be the end of a
    /// response.
    pub(super) fn is_broken_off(&self) -> bool {
        self.is_broken_off.get()
    }
}

/// An exchange that has not come to its end. If its peer is to hear of that by a reset, the connection is
/// closed with one when this is dropped.
pub(super) struct UnfinishedExchange(Option<Rc<UpstreamWire>>);

impl UnfinishedExchange {
    pub(super) fn begin(wire: &Rc<UpstreamWire>, given_up: GivenUpRequests) -> Self {
        Self((given_up == GivenUpRequests::Reset).then(|| Rc::clone(wire)))
    }

    /// Its connection may be used again, or closed in order.
    pub(super) fn end(&mut self) {
        self.0 = None;
    }
}

impl Drop for UnfinishedExchange {
    fn drop(&mut self) {
        if let Some(wire) = &self.0 {
            wire.break_on_close();
        }
    }
}

/// Writes to a new socket, which takes bytes although the runtime has not heard of it: the runtime hears with
/// the next news from the kernel, for which all requests at the same point would wait. Of a thousand requests
/// that come at once, all would be read before the first is sent. A task that gets "pending" from this is not
/// woken.
struct DirectWriter<'a>(&'a TcpStream);

impl DirectWriter<'_> {
    fn poll(written: io::Result<usize>) -> Poll<io::Result<usize>> {
        match written {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            Ok(_) | Err(_) => Poll::Ready(written),
        }
    }
}

impl AsyncWrite for DirectWriter<'_> {
    fn poll_write(self: Pin<&mut Self>, _context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Self::poll(SockRef::from(self.0).send(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Self::poll(SockRef::from(self.0).send_vectored(pieces))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(SockRef::from(self.0).shutdown(Shutdown::Write))
    }
}
