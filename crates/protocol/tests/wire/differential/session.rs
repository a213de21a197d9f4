//! A session against the crate `h2` at the other end, in both roles: random bodies, trailers and cancelled
//! streams over a pipe that is as narrow and as odd as it may be. A client gets back what it sent,
//! whatever becomes of other streams.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::BodyExt;
use proptest::prelude::*;
use protocol::http2::{
    ArrivedRequest, HasBody, MemoryBudget, PREFACE, Receiver, Role, Sender, Session, SessionEvent,
    SessionLimits,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, DuplexStream, ReadBuf};
use tokio::task::LocalSet;
use vocabulary::Timestamp;

/// What one stream carries, in both directions.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    bytes: usize,
    /// In pieces of this size.
    piece: usize,
    has_trailers: bool,
    /// The client breaks it off in the middle.
    is_cancelled: bool,
}

impl Exchange {
    fn body(self) -> Vec<u8> {
        (0..self.bytes).map(|at| at.to_le_bytes()[0] ^ at.to_le_bytes()[1]).collect()
    }

    fn has_body(self) -> HasBody {
        if self.bytes > 0 || self.has_trailers { HasBody::Yes } else { HasBody::No }
    }
}

/// The bytes between the two ends.
#[derive(Clone, Debug)]
struct Pipe {
    capacity: usize,
    /// How many bytes our end reads or writes at once, over and over.
    sizes: Vec<usize>,
}

fn now() -> Timestamp {
    Timestamp::ZERO
}

fn session(role: Role) -> Rc<Session> {
    let limits = SessionLimits {
        streams: 100,
        stream_window: 65_535,
        proven_window: 65_535,
        read_window: 256 * 1024,
        head_bytes: 64 * 1024,
        headers: 100,
        memory: <&MemoryBudget>::default(),
    };
    Rc::new(Session::new(role, limits, now()))
}

/// What moves the bytes of our end.
struct Driver<A> {
    session: Rc<Session>,
    stream: DuplexStream,
    sizes: Vec<usize>,
    at: usize,
    arrived: A,
}

impl<A: FnMut(ArrivedRequest)> Driver<A> {
    async fn run(mut self) {
        poll_fn(|context| self.poll_turn(context)).await;
        self.session.close();
    }

    fn next_size(&mut self) -> usize {
        self.at += 1;
        self.sizes[self.at % self.sizes.len()]
    }

    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.session.begin_turn(context);
        let is_over = self.poll_read(context).is_ready();
        self.write(context);
        if is_over || self.session.is_finished() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Reads whatever is there. Ready at the end.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let mut bytes = vec![0; self.next_size()];
            let mut read = ReadBuf::new(&mut bytes);
            match ready!(Pin::new(&mut self.stream).poll_read(context, &mut read)) {
                Ok(()) if !read.filled().is_empty() => self.take(BytesMut::from(read.filled()), context),
                Ok(()) | Err(_) => return Poll::Ready(()),
            }
        }
    }

    fn take(&mut self, mut read: BytesMut, context: &Context<'_>) {
        loop {
            match self.session.receive(&mut read, &now).expect("h2 breaks no rule") {
                SessionEvent::Request(arrived) => (self.arrived)(arrived),
                SessionEvent::Farewell { code, why } => panic!("h2 leaves: {code} {why}"),
                SessionEvent::All => return,
                SessionEvent::TurnOver => self.session.begin_turn(context),
                SessionEvent::Paused => panic!("there is memory"),
            }
        }
    }

    fn write(&mut self, context: &mut Context<'_>) {
        let (sizes, at) = (&self.sizes, Cell::new(self.at));
        let stream = &mut self.stream;
        let written = self.session.end_turn(|pieces| {
            at.set(at.get() + 1);
            let piece = pieces.iter().find(|piece| !piece.is_empty()).expect("there is something");
            let length = piece.len().min(sizes[at.get() % sizes.len()]);
            Pin::new(&mut *stream).poll_write(context, &piece[..length])
        });
        self.at = at.get();
        if let Poll::Ready(Err(error)) = written {
            assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe, "{error}");
            self.session.forget_output();
        }
    }
}

fn trailers() -> HeaderMap {
    HeaderMap::from_iter([(http::HeaderName::from_static("x-sum"), HeaderValue::from_static("7"))])
}

/// Sends so many bytes of a body, and its end if that is all of it.
async fn send(sender: &Sender, exchange: Exchange, most: usize) {
    let mut rest = Bytes::from(exchange.body());
    let mut left = most;
    while !rest.is_empty() && left > 0 {
        let wanted = rest.len().min(exchange.piece).min(left);
        let Ok(room) = poll_fn(|context| sender.poll_room(wanted, context)).await else { return };
        left -= room;
        let piece = rest.split_to(room);
        sender.data(piece, rest.is_empty() && !exchange.has_trailers, &now);
        tokio::task::yield_now().await;
    }
    if rest.is_empty() && exchange.has_trailers {
        sender.trailers(&trailers(), &now);
    }
}

/// Sends one exchange with our session as the client.
async fn ask(session: Rc<Session>, exchange: Exchange) {
    while !session.has_room() {
        tokio::task::yield_now().await;
    }
    let request = protocol::Request::from(Request::post("http://h/echo").body(()).expect("legal"));
    let (sender, receiver) = session.open(&request, exchange.has_body());
    if exchange.is_cancelled {
        return send(&sender, exchange, exchange.bytes / 2).await;
    }
    // In both directions at once: the answer is read while the rest is sent.
    let reading = async {
        let response = poll_fn(|context| receiver.poll_response(context)).await.expect("an answer");
        assert_eq!(response.status(), 200);
        let body = receiver.collect().await.expect("a whole answer");
        assert_eq!(body.trailers().is_some(), exchange.has_trailers);
        assert!(body.to_bytes() == exchange.body(), "another body");
    };
    tokio::join!(send(&sender, exchange, usize::MAX), reading);
}

/// We answer: the same that came.
async fn answer(sender: Sender, receiver: Receiver) {
    let Ok(body) = receiver.collect().await else { return };
    let trailers = body.trailers().cloned();
    let mut rest = body.to_bytes();
    let has_body = if rest.is_empty() && trailers.is_none() { HasBody::No } else { HasBody::Yes };
    sender.respond(&protocol::Response::new(()), has_body, |_| {});
    while !rest.is_empty() {
        let Ok(room) = poll_fn(|context| sender.poll_room(rest.len(), context)).await else { return };
        let piece = rest.split_to(room);
        sender.data(piece, rest.is_empty() && trailers.is_none(), &now);
    }
    if let Some(trailers) = trailers {
        sender.trailers(&trailers, &now);
    }
}

/// The other end answers: the same that came.
async fn h2_answers(stream: DuplexStream) {
    let mut connection = h2::server::handshake(stream).await.expect("we begin as we must");
    while let Some(accepted) = connection.accept().await {
        let (request, mut respond) = accepted.expect("we break no rule");
        tokio::task::spawn_local(async move {
            let mut body = request.into_body();
            let mut all = BytesMut::new();
            while let Some(data) = body.data().await {
                let Ok(data) = data else { return };
                all.extend_from_slice(&data);
                body.flow_control().release_capacity(data.len()).expect("it was taken");
            }
            let Ok(trailers) = body.trailers().await else { return };
            let mut stream = respond.send_response(Response::new(()), false).expect("open");
            // That the stream is gone by then is its client's affair.
            let _ = stream.send_data(all.freeze(), trailers.is_none());
            if let Some(trailers) = trailers {
                let _ = stream.send_trailers(trailers);
            }
        });
    }
}

/// Sends one exchange with `h2` as the client.
async fn h2_asks(client: h2::client::SendRequest<Bytes>, exchange: Exchange) {
    let mut client = client.ready().await.expect("open");
    let request = Request::post("http://h/echo").body(()).expect("legal");
    let is_bodiless = exchange.has_body() == HasBody::No;
    let (response, mut stream) = client.send_request(request, is_bodiless).expect("open");
    let body = Bytes::from(exchange.body());
    if exchange.is_cancelled {
        let _ = stream.send_data(body.slice(..body.len() / 2), false);
        tokio::task::yield_now().await;
        return stream.send_reset(h2::Reason::CANCEL);
    }
    if !is_bodiless {
        let mut rest = body.clone();
        while !rest.is_empty() {
            let piece = rest.split_to(rest.len().min(exchange.piece));
            stream.send_data(piece, rest.is_empty() && !exchange.has_trailers).expect("open");
        }
        if exchange.has_trailers {
            stream.send_trailers(trailers()).expect("open");
        }
    }
    let mut answer = response.await.expect("an answer").into_body();
    let mut all = BytesMut::new();
    while let Some(data) = answer.data().await {
        let data = data.expect("a whole answer");
        all.extend_from_slice(&data);
        answer.flow_control().release_capacity(data.len()).expect("it was taken");
    }
    assert!(all == body, "another body");
    assert_eq!(answer.trailers().await.expect("open").is_some(), exchange.has_trailers);
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let patience = std::time::Duration::from_secs(30);
    LocalSet::new()
        .block_on(&runtime, async { tokio::time::timeout(patience, test).await.expect("nothing is stuck") });
}

async fn we_ask(pipe: Pipe, exchanges: Vec<Exchange>) {
    let (stream, other) = tokio::io::duplex(pipe.capacity);
    let session = session(Role::Client);
    let arrived = |_: ArrivedRequest| panic!("nobody asks us");
    let driver = Driver { session: Rc::clone(&session), stream, sizes: pipe.sizes, at: 0, arrived };
    let driving = tokio::task::spawn_local(driver.run());
    let answering = tokio::task::spawn_local(h2_answers(other));
    let asking: Vec<_> = exchanges
        .iter()
        .map(|exchange| tokio::task::spawn_local(ask(Rc::clone(&session), *exchange)))
        .collect();
    for asked in asking {
        asked.await.expect("no panic");
    }
    session.leave_now();
    driving.await.expect("no panic");
    answering.await.expect("no panic");
}

async fn we_answer(pipe: Pipe, exchanges: Vec<Exchange>) {
    let (mut stream, other) = tokio::io::duplex(pipe.capacity);
    let session = session(Role::Server);
    let handshake = tokio::task::spawn_local(h2::client::handshake(other));
    // What tells the two protocols apart reads the preface.
    let mut preface = [0; PREFACE.len()];
    stream.read_exact(&mut preface).await.expect("open");
    assert_eq!(&preface, PREFACE);
    let answering = Rc::clone(&session);
    let arrived = move |arrived: ArrivedRequest| {
        let sender = Sender::new(Rc::clone(&answering), Rc::clone(&arrived.stream));
        let receiver = Receiver::new(Rc::clone(&answering), arrived.stream);
        assert!(arrived.request.is_ok(), "its head is small");
        tokio::task::spawn_local(answer(sender, receiver));
    };
    let driver = Driver { session, stream, sizes: pipe.sizes, at: 0, arrived };
    let driving = tokio::task::spawn_local(driver.run());
    let (client, connection) = handshake.await.expect("no panic").expect("open");
    let connection = tokio::task::spawn_local(connection);
    let asking: Vec<_> = exchanges
        .iter()
        .map(|exchange| tokio::task::spawn_local(h2_asks(client.clone(), *exchange)))
        .collect();
    for asked in asking {
        asked.await.expect("no panic");
    }
    drop(client);
    connection.await.expect("no panic").expect("we break no rule");
    driving.await.expect("no panic");
}

fn exchanges() -> impl Strategy<Value = Vec<Exchange>> {
    let bytes = prop_oneof![Just(0_usize), 1..300_usize, 10_000..150_000_usize];
    let exchange = (bytes, 1..20_000_usize, any::<bool>(), prop::bool::weighted(0.2));
    let exchange = exchange.prop_map(|(bytes, piece, has_trailers, is_cancelled)| Exchange {
        bytes,
        // A body in single bytes takes its time.
        piece: piece.max(bytes / 100),
        has_trailers,
        is_cancelled,
    });
    prop::collection::vec(exchange, 1..8)
}

fn pipe() -> impl Strategy<Value = Pipe> {
    let size = prop_oneof![1..40_usize, 1_000..40_000_usize];
    let capacity = prop_oneof![30..300_usize, 4_000..100_000_usize];
    (capacity, prop::collection::vec(size, 1..6)).prop_map(|(capacity, mut sizes)| {
        // Not all of them tiny, or a case takes seconds.
        sizes.push(5_000);
        Pipe { capacity, sizes }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn h2_answers_what_we_ask(pipe in pipe(), exchanges in exchanges()) {
        run(we_ask(pipe, exchanges));
    }

    #[test]
    fn we_answer_what_h2_asks(pipe in pipe(), exchanges in exchanges()) {
        run(we_answer(pipe, exchanges));
    }
}
