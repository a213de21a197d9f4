//! One stream of a client's connection, from its request to the end of its response.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::header::{CONTENT_LENGTH, DATE, HeaderValue};
use pin_project_lite::pin_project;
use protocol::Response;
use protocol::http2::hpack::{encode_field, encode_text};
use protocol::http2::{ErrorCode, HasBody, Sender};
use runtime::Clock;

use crate::body::{Body, ResponseBody};
use crate::http2::Pump;
use crate::server::date;
use crate::server::service::Abort;

/// The sending half of a stream, with the clock by which small pieces are sent.
#[derive(Debug)]
pub(super) struct AnswerSender {
    pub(super) sender: Sender,
    pub(super) clock: Clock,
}

impl AnswerSender {
    /// Sends an answer of the server itself, in place of a service's.
    pub(super) fn answer(self, answer: Response<Body>, asked: AnswerForm) {
        // A panic drops the sender, and so the stream is reset: its client hears, and others go on.
        tokio::task::spawn_local(AnsweredStream::new(std::future::ready(Ok(answer)), self, asked));
    }
}

/// The properties of a request that decide over the form of its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerForm {
    /// Its answer has no body (RFC 9110 §9.3.2).
    pub(super) is_head: bool,
}

pin_project! {
    /// One stream, from its request to the end of its response. Ends early when the stream does, and with it
    /// whatever works on the answer.
    pub(super) struct AnsweredStream<Call, B> {
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
    pub(super) fn new(call: Call, answer_sender: AnswerSender, asked: AnswerForm) -> Self {
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
