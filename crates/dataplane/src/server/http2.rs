//! The end of a connection that answers.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Buf;
use http::header::{CONTENT_LENGTH, DATE, HeaderValue};
use http::{Method, StatusCode};
use pin_project_lite::pin_project;
use protocol::http1::{HeadLimits, UnreadableRequest};
use protocol::http2::hpack::{encode_field, encode_text};
use protocol::http2::{
    ArrivedRequest, ErrorCode, HasBody, PREFACE, Receiver, RefusedHead, Role, Sender, Session, SessionLimits,
};
use protocol::{Response, ambiguity};
use runtime::Clock;

use super::service::{Abort, Service};
use super::unserved;
use crate::body::{Body, ResponseBody};
use crate::connection::Connection;
use crate::connection::drain::{Drain, Phase};
use crate::http1::LINGER_LIMIT;
use crate::http2::{ConnectionEnd, PeerWatchdog, Pump, Transport, UnfinishedInputWatch};
use crate::refusal::{Refusal, RefusalReason};
use crate::server::date;
use crate::socket::stream::ReadAheadStream;

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
    let end = poll_fn(|context| {
        answerer.limit_heads();
        let end = transport.poll_turn(
            context,
            |arrived| answerer.answer(arrived),
            |session| follow_drain(session, &connection, drain),
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
    if matches!(&end, ConnectionEnd::Left | ConnectionEnd::Fault(..)) {
        transport.close().await;
    }
    match end {
        ConnectionEnd::Left | ConnectionEnd::Closed => Ok(()),
        ConnectionEnd::Fault(..) | ConnectionEnd::Io(_) => Err(end),
    }
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

    fn answer(&self, ArrivedRequest { stream, request, head_bytes }: ArrivedRequest) {
        let sender = Sender::new(Rc::clone(&self.session), Rc::clone(&stream));
        let receiver = Receiver::new(Rc::clone(&self.session), stream);
        let answer_sender = AnswerSender { sender, clock: self.clock };
        let request = match request {
            Ok(request) => request,
            Err(refused) => {
                let (refusal, form) = self.refused_head(refused);
                let answer = unserved::refuse(&*self.service, &self.connection, None, refusal);
                return answer_sender.answer(answer, form);
            }
        };
        let asked = AnswerForm { is_head: request.method() == Method::HEAD };
        if let Some(refusal) = unserved::oversize(&*self.service, &request, head_bytes) {
            self.session.note_oversize_head(head_bytes, &|| self.clock.now());
            let answer = unserved::refuse(&*self.service, &self.connection, Some(&request), refusal);
            return answer_sender.answer(answer, asked);
        }
        if let Some(ambiguity) = ambiguity(&request) {
            self.connection.retire();
            let answer = unserved::refuse(&*self.service, &self.connection, Some(&request), ambiguity.into());
            return answer_sender.answer(answer, asked);
        }
        let request = request.map(|()| Body::from(receiver));
        let call = Rc::clone(&self.service).call(request, Rc::clone(&self.connection));
        // A panic drops the answer_sender, and so the stream is reset: its client hears, and others go on.
        tokio::task::spawn_local(AnsweredStream::new(call, answer_sender, asked));
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

/// The sending half of a stream, with the clock by which small pieces are sent.
#[derive(Debug)]
struct AnswerSender {
    sender: Sender,
    clock: Clock,
}

impl AnswerSender {
    /// Sends an answer of the server itself, in place of a service's.
    fn answer(self, answer: Response<Body>, asked: AnswerForm) {
        // The same as for a service's answer if it should panic.
        tokio::task::spawn_local(AnsweredStream::new(std::future::ready(Ok(answer)), self, asked));
    }
}

/// The properties of a request that decide over the form of its answer.
#[derive(Clone, Copy, Debug)]
struct AnswerForm {
    /// Its answer has no body (RFC 9110 §9.3.2).
    is_head: bool,
}

pin_project! {
    /// One stream, from its request to the end of its response. Ends early when the stream does, and with it
    /// whatever works on the answer.
    struct AnsweredStream<Call, B> {
        #[pin]
        stage: AnswerStage<Call, B>,
        // Taken by the pump once there is something to send.
        answer_sender: Option<AnswerSender>,
        asked: AnswerForm,
    }
}

pin_project! {
    #[project = StageProjected]
    enum AnswerStage<Call, B> {
        Calling { #[pin] call: Call },
        Sending { body: B, pump: Pump },
    }
}

impl<Call, B> AnsweredStream<Call, B>
where
    Call: Future<Output = Result<Response<B>, Abort>>,
    B: ResponseBody,
{
    fn new(call: Call, answer_sender: AnswerSender, asked: AnswerForm) -> Self {
        Self { stage: AnswerStage::Calling { call }, answer_sender: Some(answer_sender), asked }
    }
}

impl<Call, B> Future for AnsweredStream<Call, B>
where
    Call: Future<Output = Result<Response<B>, Abort>>,
    B: ResponseBody,
{
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        loop {
            match this.stage.as_mut().project() {
                StageProjected::Calling { call } => {
                    let Some(answer_sender) = this.answer_sender.as_ref() else { return Poll::Ready(()) };
                    // Before the service is asked again: its client has broken the stream off, and dropping
                    // the call stops all that works on it.
                    if answer_sender.sender.poll_error(context).is_ready() {
                        return Poll::Ready(());
                    }
                    let Poll::Ready(answer) = call.poll(context) else {
                        return Poll::Pending;
                    };
                    let Some(answer_sender) = this.answer_sender.take() else { return Poll::Ready(()) };
                    let Ok(response) = answer else {
                        answer_sender.sender.reset(ErrorCode::INTERNAL_ERROR);
                        return Poll::Ready(());
                    };
                    let Some(stage) = begin(response, answer_sender, *this.asked) else {
                        return Poll::Ready(());
                    };
                    this.stage.set(stage);
                }
                StageProjected::Sending { body, pump } => {
                    if pump.poll(body, context).is_ready() {
                        return Poll::Ready(());
                    }
                    // A client that takes nothing keeps the pump waiting for room, so the body itself is
                    // never asked and cannot say that its time is over.
                    return body.poll_expired(context).map(drop);
                }
            }
        }
    }
}

/// Sends the head of a response. `None` if that was all.
fn begin<Call, B>(
    response: Response<B>,
    answer_sender: AnswerSender,
    asked: AnswerForm,
) -> Option<AnswerStage<Call, B>>
where
    B: ResponseBody,
{
    let (head, body) = response.split_body();
    let is_empty = body.is_end_stream();
    let has_body = if is_empty || asked.is_head { HasBody::No } else { HasBody::Yes };
    let length = body.size_hint().exact().filter(|_| !is_empty);
    // Both headers are written behind those of the service and not put among them: its map need not grow.
    answer_sender.sender.respond(&head, has_body, |out| {
        if head.fields().first(&DATE).is_none() {
            encode_text(&DATE, &date::now(), out);
        }
        if let Some(length) = length
            && head.fields().first(&CONTENT_LENGTH).is_none()
        {
            encode_field(&CONTENT_LENGTH, &HeaderValue::from(length), out);
        }
    });
    (has_body == HasBody::Yes)
        .then(|| AnswerStage::Sending { body, pump: Pump::new(answer_sender.sender, answer_sender.clock) })
}
