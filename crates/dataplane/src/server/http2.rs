//! The end of a connection that answers.
//!
//! The connection and the answers to its requests are one task: what an answer has to say when its request
//! was read, or when its app has answered, goes to the kernel in the same turn. No stream is a task of its
//! own, which would have to be made, woken and taken apart for each request.

mod answered;

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Buf;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use http::{Method, StatusCode};
use protocol::ambiguity;
use protocol::http1::{HeadLimits, UnreadableRequest};
use protocol::http2::{
    ArrivedRequest, ErrorCode, PREFACE, Receiver, RefusedHead, Role, Sender, Session, SessionLimits,
};
use runtime::Clock;
use tokio::task::coop::unconstrained;

use super::service::Service;
use super::unserved;
use crate::body::Body;
use crate::connection::Connection;
use crate::connection::drain::{Drain, Phase};
use crate::http1::LINGER_LIMIT;
use crate::http2::{ConnectionEnd, PeerWatchdog, Transport, UnfinishedInputWatch};
use crate::refusal::{Refusal, RefusalReason};
use crate::socket::stream::ReadAheadStream;
use answered::{AnswerForm, AnswerSender, AnsweredStream};

/// How often a client that is silent while it waits for answers is asked whether it is still there, and how
/// long it has to answer: one that is gone is noticed within two minutes, and what was begun for it is
/// stopped. Longer than for an app, since clients sleep and their networks stall.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// Serves a connection that begins with the preface to its end.
pub(super) async fn serve<S: Service>(
    stream: ReadAheadStream,
    connection: Rc<Connection>,
    service: Rc<S>,
    drain: &Drain,
    (limits, head_time): (SessionLimits, Duration),
) -> Result<(), ConnectionEnd> {
    connection.mark_as_of_streams();
    let clock = Clock::start();
    let usual_heads = HeadLimits { bytes: limits.head_bytes, headers: limits.headers };
    let HeadLimits { bytes, headers } = service.head_limits_max(usual_heads);
    let limits = SessionLimits { head_bytes: bytes, headers, ..limits };
    let session = Rc::new(Session::new(Role::Server, limits, clock.now()));
    let (socket, mut ahead) = stream.into_parts();
    ahead.advance(PREFACE.len());
    let mut transport = Transport::new(socket, ahead, Rc::clone(&session), clock);
    let answerer = Answerer {
        service,
        connection: Rc::clone(&connection),
        session: Rc::clone(&session),
        usual_heads,
        clock,
    };
    let mut watch = PeerWatchdog::new(PING_INTERVAL, clock);
    let mut unfinished = UnfinishedInputWatch::new(head_time, clock);
    let mut farewell = None;
    let streams = RefCell::new(FuturesUnordered::new());
    let end = poll_fn(|context| {
        answerer.limit_heads();
        let end = transport.poll_turn(
            context,
            |arrived| streams.borrow_mut().extend(answerer.answer(arrived)),
            |session, context| {
                poll_streams(&mut streams.borrow_mut(), context);
                follow_drain(session, &connection, drain);
            },
        );
        if end.is_ready() {
            return end;
        }
        let has_heard = std::mem::take(&mut transport.has_heard);
        if watch.poll_dead(&session, has_heard, context).is_ready() {
            tracing::debug!("a client is silent, and does not answer a ping");
            return Poll::Ready(ConnectionEnd::Closed);
        }
        // One of our own hops is not slow on purpose, and streams of many clients would end with it.
        if !connection.is_from_hop() && unfinished.poll_late(&session, has_heard, context).is_ready() {
            session.refuse(ErrorCode::ENHANCE_YOUR_CALM);
            let what = "a head, or a frame, that did not come to its end in time";
            return Poll::Ready(ConnectionEnd::Fault(ErrorCode::ENHANCE_YOUR_CALM, what));
        }
        if !connection.is_dismissed() {
            farewell = None;
            return Poll::Pending;
        }
        // A client that does not even read our GOAWAY is not waited for.
        let farewell = farewell.get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER_LIMIT)));
        farewell.as_mut().poll(context).map(|()| ConnectionEnd::Closed)
    })
    .await;
    // Whatever works on answers ends here: none of them can be sent any more.
    drop(streams);
    if matches!(&end, ConnectionEnd::Left | ConnectionEnd::Fault(..)) {
        transport.close().await;
    }
    match end {
        ConnectionEnd::Left | ConnectionEnd::Closed => Ok(()),
        ConnectionEnd::Fault(..) | ConnectionEnd::Io(_) => Err(end),
    }
}

/// Lets each stream go on that was woken. Those that do not end wake the connection's task when they can go
/// on.
fn poll_streams<Stream: Future<Output = ()>>(
    streams: &mut FuturesUnordered<Stream>,
    context: &mut Context<'_>,
) {
    while let Poll::Ready(Some(())) = streams.poll_next_unpin(context) {}
}

/// Tells the drain whether the connection has streams, and the session whether to leave.
fn follow_drain(session: &Session, connection: &Rc<Connection>, drain: &Drain) {
    // Known only once a request has proved it, so it is looked at in each turn.
    if connection.is_from_hop() {
        session.share();
    }
    if session.has_streams() {
        drain.work(connection);
    } else {
        drain.rest(connection);
    }
    // A stream that is on its way is named in no GOAWAY, so its client knows that it may send it again.
    if drain.phase() == Phase::Closing || connection.is_dismissed() {
        session.leave_now();
    } else if connection.is_retired() || drain.is_draining() {
        session.leave();
    }
}

/// Answers the requests of one connection with its service.
struct Answerer<S> {
    service: Rc<S>,
    connection: Rc<Connection>,
    session: Rc<Session>,
    usual_heads: HeadLimits,
    clock: Clock,
}

impl<S: Service> Answerer<S> {
    fn head_limits_max(&self) -> HeadLimits {
        self.service.head_limits_max(self.usual_heads)
    }

    /// Takes over the present limit of the service, which can change while the connection is open.
    fn limit_heads(&self) {
        let HeadLimits { bytes, headers } = self.head_limits_max();
        self.session.limit_heads(bytes, headers);
    }

    /// The stream of a request that the service answers, to be polled by the connection; `None` of any other,
    /// which has its answer.
    fn answer(
        &self,
        ArrivedRequest { stream, request, head_bytes }: ArrivedRequest,
    ) -> Option<impl Future<Output = ()> + use<S>> {
        let sender = Sender::new(Rc::clone(&self.session), Rc::clone(&stream));
        let receiver = Receiver::new(Rc::clone(&self.session), stream);
        let answer_sender = AnswerSender { sender, clock: self.clock };
        let request = match request {
            Ok(request) => request,
            Err(refused) => {
                let (refusal, form) = self.refused_head(refused);
                let answer = unserved::refuse(&*self.service, &self.connection, None, refusal);
                answer_sender.answer(answer, form);
                return None;
            }
        };
        let asked = AnswerForm { is_head: request.method() == Method::HEAD };
        if let Some(refusal) = unserved::oversize(&*self.service, &request, head_bytes) {
            self.session.note_oversize_head(head_bytes, &|| self.clock.now());
            let answer = unserved::refuse(&*self.service, &self.connection, Some(&request), refusal);
            answer_sender.answer(answer, asked);
            return None;
        }
        if let Some(ambiguity) = ambiguity(&request) {
            self.connection.retire();
            let answer = unserved::refuse(&*self.service, &self.connection, Some(&request), ambiguity.into());
            answer_sender.answer(answer, asked);
            return None;
        }
        let request = request.map(|()| Body::from(receiver));
        let call = Rc::clone(&self.service).call(request, Rc::clone(&self.connection));
        // A stream has as much to do in a turn as there is room for, and must not use up what the runtime
        // allows this task: its connection could write nothing then.
        let answered = unconstrained(AnsweredStream::new(call, answer_sender, asked));
        // A panic drops the answer_sender, and so the stream is reset: its client hears, and others go on.
        Some(AssertUnwindSafe(answered).catch_unwind().map(drop))
    }

    /// Why a request is not served whose head was not kept, and the form of the answer.
    fn refused_head(&self, refused: RefusedHead) -> (Refusal, AnswerForm) {
        match refused {
            RefusedHead::TooLarge => {
                let refusal = unserved::too_large(&*self.service, self.head_limits_max());
                (refusal, AnswerForm { is_head: false })
            }
            RefusedHead::NoMemory => (no_memory(), AnswerForm { is_head: false }),
            RefusedHead::Target { problem, method } => {
                let is_head = method == Some(Method::HEAD);
                (UnreadableRequest::from(problem).into(), AnswerForm { is_head })
            }
        }
    }
}

/// Why a request is not served for whose head there is no memory.
fn no_memory() -> Refusal {
    let detail = "the heads of requests on this connection take as much memory as they may; send it again later, or a shorter one";
    Refusal::new(RefusalReason::BadRequest, detail).with_status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
}
