//! The socket of one client, shared by the connection's task and the body of the request that is being
//! answered.
//!
//! The body may be read by another task than the connection's: an upload can outlast the head of its
//! response. The runtime wakes one reader of a socket only, so it must be clear which task that is. While a
//! task waits for more of the body it is that task, and that task finds out when the client has gone.
//! Otherwise it is the connection's task, which reads ahead until some bytes wait unread, for no other reason
//! than to see the end. What a read cannot tell, the socket's errors do (see [`watch`]).

pub(super) mod body;
mod memory;
mod watch;

use std::cell::{Cell, Ref, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::Version;
use protocol::http1::{BodyDecoder, BodyFraming, DecodedPiece, OutgoingMessage};
use protocol::http2::{MemoryBudget, MemoryShare};
use tokio::io::AsyncWrite;

use crate::connection::Connection;
use crate::connection::drain::Drain;
use crate::http1::{READ_BYTES, poll_flush, poll_read, poll_read_head};
use crate::server::limits::{HalfClosedLimits, ServerLimits};
use crate::socket::Socket;
use crate::socket::stream::ReadAheadStream;
use watch::{HalfClosedClient, SocketWatch};

/// The interim response that tells a client to send the body that it holds back.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// How many bytes are read ahead at most, before a body or the next request is read.
const AHEAD_BYTES_MAX: usize = 8 * 1024;

/// How many bytes of an unwanted body are read to keep the connection, if they are there already.
const UNWANTED_BYTES_MAX: usize = 64 * 1024;

/// The socket of one client's connection; see the module's documentation.
pub(crate) struct ServerWire {
    /// `None` once the connection is over, even if a body still holds the wire.
    stream: RefCell<Option<Socket>>,
    /// Bytes that were read and not yet handed on.
    unread: RefCell<Bytes>,
    /// Where in the body of the present request we are.
    decoder: RefCell<BodyDecoder>,
    /// How many bodies there were. One that is over may be held for longer than its request lasts, and has no
    /// say in the next.
    bodies: Cell<u64>,
    reader: Cell<BodyReader>,
    /// Whether it is the connection's task that calls.
    is_own_turn: Cell<bool>,
    interim: Cell<Interim>,
    /// The memory of the piece that was handed out of the present body last: a reader that asks for more has
    /// passed that piece on. An app that does not read keeps its pieces here, and a process has limited
    /// memory for such pieces.
    held: RefCell<MemoryShare>,
    /// How much memory the head of the present request takes, or what is here of the next one, if that is
    /// much.
    head_bytes: Cell<usize>,
    /// Tells the end of a client from which nothing is read while its request is under way.
    watch: RefCell<Option<SocketWatch>>,
    /// Set once the client has ended its sending side behind a whole request.
    half_closed: RefCell<Option<Box<HalfClosedClient>>>,
    half_closed_limits: HalfClosedLimits,
    memory: &'static MemoryBudget,
    connection: Rc<Connection>,
    drain: Drain,
}

/// Which task reads the body of the present request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyReader {
    /// No task: the request has no body, or the body was dropped.
    Gone,
    /// The body has a reader, which waits for nothing now.
    Elsewhere,
    /// The reader waits, as a part of the connection's task.
    WaitsHere,
    /// The reader waits in a task of its own.
    WaitsElsewhere,
}

/// How far `100 Continue` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interim {
    NotAwaited,
    /// The client waits for it.
    Awaited,
    /// So many bytes of the interim response are written.
    Written(usize),
}

impl ServerWire {
    pub(super) fn new(
        stream: Socket,
        connection: Rc<Connection>,
        drain: &Drain,
        limits: ServerLimits,
    ) -> Self {
        Self {
            stream: RefCell::new(Some(stream)),
            unread: RefCell::default(),
            decoder: RefCell::new(BodyDecoder::new(BodyFraming::Length(0))),
            bodies: Cell::new(0),
            reader: Cell::new(BodyReader::Gone),
            is_own_turn: Cell::new(false),
            interim: Cell::new(Interim::NotAwaited),
            held: RefCell::new(MemoryShare::new(limits.memory)),
            head_bytes: Cell::new(0),
            watch: RefCell::default(),
            half_closed: RefCell::default(),
            half_closed_limits: limits.half_closed,
            memory: limits.memory,
            connection,
            drain: drain.clone(),
        }
    }

    /// Whether the connection was asked to go because nothing came.
    pub(super) fn is_dismissed(&self) -> bool {
        self.connection.is_dismissed()
    }

    /// Whether a client that speaks this version keeps to the protocol that TLS agreed on.
    pub(super) fn may_speak(&self, version: Version) -> bool {
        self.connection.may_speak(version)
    }

    pub(super) fn take_unread(&self) -> Bytes {
        self.unread.take()
    }

    pub(super) fn put_unread(&self, bytes: Bytes) {
        self.unread.replace(bytes);
    }

    /// Begins to read the body of a request, if it is not here already.
    pub(super) fn begin_body(&self, framing: BodyFraming, expects_continue: bool) -> BegunBody {
        let mut unread = self.unread.borrow_mut();
        if let BodyFraming::Length(length) = framing
            && length <= unread.len() as u64
        {
            let whole = unread.split_to(usize::try_from(length).unwrap_or(usize::MAX));
            return BegunBody::Whole(whole);
        }
        self.hold(0);
        self.decoder.replace(BodyDecoder::new(framing));
        self.bodies.set(self.bodies.get() + 1);
        self.reader.set(BodyReader::Elsewhere);
        let is_awaited = expects_continue && unread.is_empty();
        self.interim.set(if is_awaited { Interim::Awaited } else { Interim::NotAwaited });
        BegunBody::Streamed
    }

    /// A turn of the connection's task, in which the body may be read.
    pub(super) fn during<Output>(&self, turn: impl FnOnce() -> Output) -> Output {
        if self.reader.get() == BodyReader::WaitsHere {
            // A reader that still waits registers again in the turn.
            self.reader.set(BodyReader::Elsewhere);
        }
        self.is_own_turn.set(true);
        let output = turn();
        self.is_own_turn.set(false);
        output
    }

    /// Ready once the client has gone, unless the reader of the body waits for the client and so finds that
    /// out. An end behind a whole request says that no further request comes: its client waits for the
    /// answer.
    pub(super) fn poll_gone(&self, context: &mut Context<'_>) -> Poll<()> {
        match self.reader.get() {
            BodyReader::WaitsHere | BodyReader::WaitsElsewhere => return Poll::Pending,
            BodyReader::Gone | BodyReader::Elsewhere => {}
        }
        if self.is_half_closed() || !self.unread.borrow().is_empty() {
            return self.poll_broken(context);
        }
        ready!(self.poll_worth_reading(context));
        match ready!(self.poll_read(AHEAD_BYTES_MAX, context)) {
            Ok(bytes) if !bytes.is_empty() => self.put_unread(bytes),
            Ok(_) if self.may_be_half_closed() => self.note_half_closed(),
            // With TLS: an end of the connection that was not announced. The request is whole all the same.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && self.may_be_half_closed() => {
                self.note_half_closed();
            }
            Ok(_) | Err(_) => return Poll::Ready(()),
        }
        self.poll_broken(context)
    }

    /// Ready once a read may be worth it. To ask is cheaper than a read, and usually enough.
    pub(super) fn poll_worth_reading(&self, context: &mut Context<'_>) -> Poll<()> {
        match self.stream().as_ref() {
            Some(stream) => stream.poll_read_ready(context).map(drop),
            None => Poll::Ready(()),
        }
    }

    /// Whether the end of what the client sends is no more than that. Our own hops end nothing by half: one
    /// that says no more was killed.
    fn may_be_half_closed(&self) -> bool {
        self.is_body_over() && !self.connection.is_from_hop()
    }

    /// Whether the client has ended its sending side behind a whole request.
    fn is_half_closed(&self) -> bool {
        self.half_closed.borrow().is_some()
    }

    fn note_half_closed(&self) {
        let client = self.stream().as_ref().map(|stream| {
            let counted = self.drain.enter_watch();
            Box::new(HalfClosedClient::new(stream.tcp(), self.half_closed_limits, counted))
        });
        self.half_closed.replace(client);
    }

    /// Ready once the socket is broken, and with it the way of the answer.
    fn poll_broken(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut watch = self.watch.borrow_mut();
        if watch.is_none() {
            let begun = self.stream().as_ref().map(|stream| SocketWatch::begin(stream.tcp()));
            *watch = begun.and_then(Result::ok);
        }
        match &mut *watch {
            Some(watch) => watch.poll_broken(context),
            // Without a descriptor for that, a client that has ended its side counts as gone: it might be
            // waited for in vain. One that has not is found once its bytes are read.
            None if self.is_half_closed() => Poll::Ready(()),
            None => Poll::Pending,
        }
    }

    /// Ready when a client that has ended its sending side has got no byte of its response for too long.
    pub(super) fn poll_silent(&self, context: &mut Context<'_>) -> Poll<()> {
        match &mut *self.half_closed.borrow_mut() {
            Some(client) => client.poll_silent(context),
            None => Poll::Pending,
        }
    }

    /// The response is out: the end of the client is found by reading the next request.
    pub(super) fn end_watch(&self) {
        self.watch.take();
    }

    /// Whether the body of the present request is over, so that what follows is the next one.
    pub(super) fn is_body_over(&self) -> bool {
        self.decoder.borrow().is_ended()
    }

    /// Ready once the body has no reader any more, be the body over or not.
    pub(super) fn poll_body_left(&self) -> Poll<()> {
        // A reader that comes to the end of the body, or drops it, wakes the connection.
        let is_left = self.is_body_over() || self.reader.get() == BodyReader::Gone;
        if is_left { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Whether another request can follow the present one. What is left of its body and here already is
    /// thrown away for that, unless the body still has a reader.
    pub(super) fn can_go_on(&self) -> bool {
        if self.is_half_closed() {
            return false;
        }
        if self.interim.get() == Interim::Awaited {
            // The client was never asked for its body, and may send it all the same.
            return false;
        }
        if self.is_body_over() || self.reader.get() != BodyReader::Gone {
            return true;
        }
        let mut decoder = self.decoder.borrow_mut();
        let mut unread = self.take_unread();
        let mut seen = unread.len();
        let is_over = loop {
            match decoder.decode(&mut unread) {
                Ok(DecodedPiece::Data(_)) => {}
                Ok(DecodedPiece::Trailers(_) | DecodedPiece::End) => break true,
                Ok(DecodedPiece::More) if decoder.is_ended() => break true,
                Ok(DecodedPiece::More) if seen < UNWANTED_BYTES_MAX => {
                    match self.poll_read(READ_BYTES, &mut Context::from_waker(Waker::noop())) {
                        Poll::Ready(Ok(bytes)) if !bytes.is_empty() => unread = bytes,
                        Poll::Ready(Ok(_) | Err(_)) | Poll::Pending => break false,
                    }
                    seen += unread.len();
                }
                Ok(DecodedPiece::More) | Err(_) => break false,
            }
        };
        self.put_unread(unread);
        is_over
    }

    /// Whether the client may still be sending.
    pub(super) fn may_be_sending(&self) -> bool {
        !self.is_body_over() || !self.unread.borrow().is_empty()
    }

    pub(super) fn poll_read(&self, limit: usize, context: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        let mut stream = self.stream.borrow_mut();
        let Some(stream) = stream.as_mut() else { return Poll::Ready(Err(closed())) };
        poll_read(stream, limit, context)
    }

    /// The next bytes, at most `limit`, while a head is awaited; none at the end.
    pub(super) fn poll_read_head(&self, limit: usize, context: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        let mut stream = self.stream.borrow_mut();
        let Some(stream) = stream.as_mut() else { return Poll::Ready(Err(closed())) };
        poll_read_head(stream, limit, context)
    }

    /// Whether the client has sent what the runtime has not heard of yet. It will hear of it.
    pub(super) fn has_more_in_kernel(&self) -> bool {
        self.stream().as_ref().is_some_and(Socket::has_more_in_kernel)
    }

    /// The response begins: it is too late to ask for the body. Ready when what was begun is written.
    pub(super) fn poll_end_interim(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.interim.get() == Interim::Awaited {
            self.interim.set(Interim::NotAwaited);
        }
        self.poll_interim(context)
    }

    fn poll_interim(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let written = match self.interim.get() {
                Interim::NotAwaited => return Poll::Ready(Ok(())),
                Interim::Awaited => 0,
                Interim::Written(written) => written,
            };
            let mut stream = self.stream.borrow_mut();
            let Some(stream) = stream.as_mut() else { return Poll::Ready(Err(closed())) };
            let written = written + ready!(Pin::new(stream).poll_write(context, &CONTINUE[written..]))?;
            let is_whole = written == CONTINUE.len();
            self.interim.set(if is_whole { Interim::NotAwaited } else { Interim::Written(written) });
        }
    }

    /// Writes what is there of a response.
    pub(super) fn poll_flush(
        &self,
        outgoing: &mut OutgoingMessage,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut stream = self.stream.borrow_mut();
        let Some(stream) = stream.as_mut() else { return Poll::Ready(Err(closed())) };
        let mut half_closed = self.half_closed.borrow_mut();
        let Some(client) = &mut *half_closed else { return poll_flush(outgoing, stream, context) };
        let left = |outgoing: &OutgoingMessage| outgoing.pieces().map(<[u8]>::len);
        let before = left(outgoing);
        let flushed = poll_flush(outgoing, stream, context);
        if left(outgoing) != before {
            client.note_written();
        }
        flushed
    }

    /// Ready when the kernel has all that was written. Without TLS it has had it since.
    pub(super) fn poll_sent(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut stream = self.stream.borrow_mut();
        let Some(stream) = stream.as_mut() else { return Poll::Ready(Err(closed())) };
        Pin::new(stream).poll_flush(context)
    }

    /// Tells the client that nothing more will come.
    pub(super) fn shut_down(&self) {
        if let Some(stream) = &mut *self.stream.borrow_mut() {
            stream.shut_down();
        }
    }

    /// Reads and forgets what the client still sends. Ready at the end of the connection. After each piece
    /// others have their turn: a client that sends as fast as it can would have the thread to itself.
    pub(super) fn poll_discard(&self, context: &mut Context<'_>) -> Poll<()> {
        match ready!(self.poll_read(READ_BYTES, context)) {
            Ok(bytes) if !bytes.is_empty() => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Ok(_) | Err(_) => Poll::Ready(()),
        }
    }

    /// Breaks the connection instead of closing it: a plain close would look like the end of a body that has
    /// no length.
    pub(super) fn reset(&self) {
        if let Some(stream) = self.take_socket() {
            stream.break_on_close();
        }
    }

    /// Closes the connection. A task that still waits for more of a body learns that from its own timers, or
    /// is about to be stopped.
    pub(super) fn close(&self) {
        if let Some(mut stream) = self.take_socket() {
            stream.send_close_notify();
        }
    }

    /// The connection with what was read of it, for another protocol.
    pub(super) fn take_stream(&self) -> Option<ReadAheadStream> {
        self.take_socket().map(|stream| ReadAheadStream::new(stream, self.take_unread()))
    }

    /// The socket without its second descriptor, which would keep it open.
    fn take_socket(&self) -> Option<Socket> {
        self.end_watch();
        self.half_closed.take();
        self.stream.take()
    }

    fn stream(&self) -> Ref<'_, Option<Socket>> {
        self.stream.borrow()
    }
}

fn closed() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

/// The body of a request.
pub(super) enum BegunBody {
    /// The body is here whole, with the head.
    Whole(Bytes),
    /// The body is read as it comes.
    Streamed,
}
