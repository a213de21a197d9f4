//! HTTP/2: a session that asks and one that answers, several streams at once, each answered with what it
//! said.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Request};
use http_body::Body;
use proptest::prelude::*;
use protocol::Response;
use protocol::http2::{
    ArrivedRequest, HasBody, MemoryBudget, PREFACE, Receiver, Role, Sender, Session, SessionEvent,
    SessionLimits,
};
use vocabulary::Timestamp;

use super::messages::{Message, lines, message, sizes};

/// More turns than any exchange here takes.
const TURNS_MAX: usize = 100_000;

fn now() -> Timestamp {
    Timestamp::ZERO
}

fn session(role: Role) -> Rc<Session> {
    let limits = SessionLimits {
        streams: 100,
        stream_window: 65_535,
        proven_window: 65_535,
        read_window: 65_535,
        head_bytes: 64 * 1024,
        headers: 100,
        memory: <&MemoryBudget>::default(),
    };
    Rc::new(Session::new(role, limits, now()))
}

/// What is still to be sent on a stream.
struct Outbox {
    sender: Sender,
    pieces: Vec<Bytes>,
    trailers: HeaderMap,
    is_done: bool,
}

impl Outbox {
    fn new(sender: Sender, mut pieces: Vec<Bytes>, trailers: HeaderMap) -> Self {
        pieces.reverse();
        let is_done = pieces.is_empty() && trailers.is_empty();
        Self { sender, pieces, trailers, is_done }
    }

    fn go_on(&mut self, context: &mut Context<'_>) {
        while !self.is_done {
            let Some(mut piece) = self.pieces.pop() else {
                self.sender.trailers(&self.trailers, &now);
                self.is_done = true;
                return;
            };
            let Poll::Ready(room) = self.sender.poll_room(piece.len(), context) else {
                self.pieces.push(piece);
                return;
            };
            let now_sent = piece.split_to(room.expect("nobody breaks it off"));
            if !piece.is_empty() {
                self.pieces.push(piece);
            }
            self.is_done = self.pieces.is_empty() && self.trailers.is_empty();
            self.sender.data(now_sent, self.is_done, &now);
        }
    }
}

/// What has come on a stream.
#[derive(Default)]
struct Inbox {
    headers: HeaderMap,
    body: Vec<u8>,
    trailers: HeaderMap,
    is_done: bool,
}

impl Inbox {
    fn go_on(&mut self, receiver: &mut Receiver, context: &mut Context<'_>) {
        while let Poll::Ready(frame) = Pin::new(&mut *receiver).poll_frame(context) {
            let Some(frame) = frame else {
                self.is_done = true;
                return;
            };
            match frame.expect("nobody breaks it off").into_data() {
                Ok(data) => self.body.extend_from_slice(&data),
                Err(frame) => self.trailers = frame.into_trailers().expect("one or the other"),
            }
        }
    }
}

/// Carries what one end has written to the other, in pieces.
fn carry(from: &Session, to: &Session, sizes: &mut impl Iterator<Item = usize>) -> Vec<ArrivedRequest> {
    let mut bytes = Vec::new();
    let written = from.end_turn(|pieces| {
        let length =
            pieces.iter().map(|piece| piece.len()).sum::<usize>().min(sizes.next().expect("for ever"));
        bytes.extend(pieces.iter().flat_map(|piece| piece.iter()).take(length));
        Poll::Ready(Ok(length))
    });
    assert!(matches!(written, Poll::Ready(Ok(()))));
    let mut rest = bytes.strip_prefix(&PREFACE[..]).unwrap_or(&bytes);
    let mut arrived = Vec::new();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.len().min(sizes.next().expect("for ever")));
        let mut read = BytesMut::from(piece);
        loop {
            match to.receive(&mut read, &now).expect("we break no rule") {
                SessionEvent::Request(request) => arrived.push(request),
                SessionEvent::Farewell { code, why } => panic!("somebody leaves: {code} {why}"),
                SessionEvent::All => break,
                SessionEvent::TurnOver => to.begin_turn(&Context::from_waker(Waker::noop())),
                SessionEvent::Paused => panic!("there is memory"),
            }
        }
        rest = after;
    }
    arrived
}

/// One stream as its client sees it.
struct Exchange {
    message: Message,
    outbox: Outbox,
    receiver: Receiver,
    answer: Option<Inbox>,
}

/// One stream as its server sees it.
struct Served {
    outbox: Option<Outbox>,
    sender: Option<Sender>,
    receiver: Receiver,
    inbox: Inbox,
}

fn ask(client: &Rc<Session>, message: Message) -> Exchange {
    let request = Request::post("http://h/some/path?query").body(()).expect("legal");
    let mut request = protocol::Request::from(request);
    *request.headers_mut() = message.headers.clone();
    let outbox = |sender| Outbox::new(sender, message.body.clone(), message.trailers.clone());
    let is_empty = message.body.is_empty() && message.trailers.is_empty();
    let (sender, receiver) = client.open(&request, if is_empty { HasBody::No } else { HasBody::Yes });
    Exchange { outbox: outbox(sender), message, receiver, answer: None }
}

impl Exchange {
    fn go_on(&mut self, context: &mut Context<'_>) {
        self.outbox.go_on(context);
        if self.answer.is_none()
            && let Poll::Ready(response) = self.receiver.poll_response(context)
        {
            let headers = response.expect("nobody breaks it off").headers().clone();
            self.answer = Some(Inbox { headers, ..Inbox::default() });
        }
        if let Some(answer) = &mut self.answer {
            answer.go_on(&mut self.receiver, context);
        }
    }

    fn is_done(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| answer.is_done)
    }
}

impl Served {
    fn of(server: &Rc<Session>, ArrivedRequest { stream, request, .. }: ArrivedRequest) -> Self {
        let request = request.expect("no head here is too large");
        assert_eq!((request.method(), request.uri().path()), (&Method::POST, "/some/path"));
        let sender = Sender::new(Rc::clone(server), Rc::clone(&stream));
        let receiver = Receiver::new(Rc::clone(server), stream);
        let inbox = Inbox { headers: request.headers().clone(), ..Inbox::default() };
        Self { outbox: None, sender: Some(sender), receiver, inbox }
    }

    /// Once all of it is there, all of it goes back.
    fn go_on(&mut self, context: &mut Context<'_>) {
        if !self.inbox.is_done {
            self.inbox.go_on(&mut self.receiver, context);
        }
        if self.inbox.is_done
            && let Some(sender) = self.sender.take()
        {
            let mut response = Response::new(());
            *response.headers_mut() = self.inbox.headers.clone();
            let body = Bytes::from(std::mem::take(&mut self.inbox.body));
            let pieces: Vec<Bytes> = if body.is_empty() { Vec::new() } else { vec![body] };
            let is_empty = pieces.is_empty() && self.inbox.trailers.is_empty();
            sender.respond(&response, if is_empty { HasBody::No } else { HasBody::Yes }, |_| {});
            self.outbox = Some(Outbox::new(sender, pieces, self.inbox.trailers.clone()));
        }
        if let Some(outbox) = &mut self.outbox {
            outbox.go_on(context);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_request_and_its_response_come_back_as_sent(messages in prop::collection::vec(message(), 1..6), sizes in sizes()) {
        let (client, server) = (session(Role::Client), session(Role::Server));
        let mut sizes = sizes.into_iter().cycle();
        let mut exchanges: Vec<Exchange> = messages.into_iter().map(|message| ask(&client, message)).collect();
        let mut served: BTreeMap<usize, Served> = BTreeMap::new();
        let mut context = Context::from_waker(Waker::noop());
        let mut turns = 0;
        while !exchanges.iter().all(Exchange::is_done) {
            for arrived in carry(&client, &server, &mut sizes) {
                served.insert(served.len(), Served::of(&server, arrived));
            }
            for served in served.values_mut() {
                served.go_on(&mut context);
            }
            carry(&server, &client, &mut sizes);
            for exchange in &mut exchanges {
                exchange.go_on(&mut context);
            }
            turns += 1;
            prop_assert!(turns < TURNS_MAX, "nothing moves any more");
        }
        for exchange in &exchanges {
            let (message, answer) = (&exchange.message, exchange.answer.as_ref().expect("it is done"));
            prop_assert_eq!(lines(&answer.headers), lines(&message.headers));
            prop_assert!(answer.body == message.bytes(), "{} bytes became {}", message.length(), answer.body.len());
            prop_assert_eq!(lines(&answer.trailers), lines(&message.trailers));
        }
    }
}
