//! Answers that are under way for a while: events that go out when a test says so, and an echo that does not
//! wait for the end.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Body as HttpBody, Frame, Incoming};
use tokio::sync::mpsc;

use crate::{Body, Counted, full, query, status};

/// Streams of events by name (`?stream=NAME`). `/events` opens one, `/release` sends `event=TEXT` on it or,
/// without a text, ends it.
#[derive(Debug, Default)]
pub(crate) struct Streams(Mutex<HashMap<String, mpsc::Sender<String>>>);

impl Streams {
    /// A stream of server-sent events; the first is `first=TEXT`, if that is given.
    pub(crate) fn open(&self, request: &Request<Incoming>, counted: Counted) -> Response<Body> {
        let (sender, receiver) = mpsc::channel(16);
        if let Some(first) = query(request, "first") {
            sender.try_send(first.to_owned()).expect("the channel is new");
        }
        let name = query(request, "stream").unwrap_or_default().to_owned();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name, sender);
        let events = stream::unfold((receiver, counted), |(mut receiver, counted)| async move {
            let event = receiver.recv().await?;
            let frame = Frame::data(Bytes::from(format!("data: {event}\n\n")));
            Some((Ok::<_, hyper::Error>(frame), (receiver, counted)))
        });
        let mut response = Response::new(StreamBody::new(events).boxed_unsync());
        response.headers_mut().insert("content-type", HeaderValue::from_static("text/event-stream"));
        response
    }

    /// Sends an event on a stream, or ends it.
    pub(crate) async fn release(&self, request: &Request<Incoming>) -> Response<Body> {
        let name = query(request, "stream").unwrap_or_default();
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        let Some(sender) = sender else { return status(StatusCode::NOT_FOUND) };
        let Some(event) = query(request, "event") else { return status(StatusCode::OK) };
        if sender.send(event.to_owned()).await.is_err() {
            return status(StatusCode::GONE);
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), sender);
        status(StatusCode::OK)
    }
}

/// How long a download waits before each of its pieces.
const DRIP_EVERY: Duration = Duration::from_millis(100);

/// A download of `pieces=NUMBER` pieces, which come one after the other.
pub(crate) fn drip(request: &Request<Incoming>, counted: Counted) -> Response<Body> {
    let pieces: u32 = query(request, "pieces").and_then(|pieces| pieces.parse().ok()).unwrap_or_default();
    let body = stream::unfold((pieces, counted), |(left, counted)| async move {
        let left = left.checked_sub(1)?;
        tokio::time::sleep(DRIP_EVERY).await;
        Some((Ok::<_, hyper::Error>(Frame::data(Bytes::from_static(b"drip\n"))), (left, counted)))
    });
    Response::new(StreamBody::new(body).boxed_unsync())
}

/// Sends every piece of the body back as it comes, and counts as in flight until that ends. The trailers are
/// `grpc-status: 0` and, as `x-echoed`, the request's own trailer `x-sent`, or its header of that name, for
/// not every client can send trailers; HTTP/1.1 must announce them, and over HTTP/2 no app does.
pub(crate) fn echo(request: Request<Incoming>, counted: Counted) -> Response<Body> {
    let content_type = request.headers().get("content-type").cloned();
    let is_http1 = request.version() == Version::HTTP_11;
    let sent = request.headers().get("x-sent").cloned();
    let trailers = sent.map(|sent| (HeaderName::from_static("x-echoed"), sent)).into_iter().collect();
    let echo = Echo { incoming: request.into_body(), trailers: Some(trailers), _counted: counted };
    let mut response = Response::new(echo.boxed_unsync());
    let headers = response.headers_mut();
    if is_http1 {
        headers.insert("trailer", HeaderValue::from_static("grpc-status, x-echoed"));
    }
    if let Some(content_type) = content_type {
        headers.insert("content-type", content_type);
    }
    response
}

struct Echo {
    incoming: Incoming,
    /// What to end with, until that was sent.
    trailers: Option<HeaderMap>,
    _counted: Counted,
}

impl HttpBody for Echo {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        loop {
            match ready!(Pin::new(&mut self.incoming).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_trailers() {
                    Ok(sent) => {
                        if let (Some(value), Some(trailers)) = (sent.get("x-sent"), &mut self.trailers) {
                            trailers.insert("x-echoed", value.clone());
                        }
                    }
                    Err(data) => return Poll::Ready(Some(Ok(data))),
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    return Poll::Ready(self.trailers.take().map(|mut trailers| {
                        trailers.insert("grpc-status", HeaderValue::from_static("0"));
                        Ok(Frame::trailers(trailers))
                    }));
                }
            }
        }
    }
}

/// What `grpc.health.v1.Health` answers: a message of one field, `SERVING` (1) or `NOT_SERVING` (2).
pub(crate) fn grpc_health(is_serving: bool) -> Response<Body> {
    let message = [0, 0, 0, 0, 2, 8, if is_serving { 1 } else { 2 }];
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let frames = [Frame::data(Bytes::copy_from_slice(&message)), Frame::trailers(trailers)];
    let frames = stream::iter(frames.map(Ok::<_, hyper::Error>));
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    response
}

/// A gRPC answer that is nothing but a status, which then stands in its head.
pub(crate) fn grpc_error(code: &'static str) -> Response<Body> {
    let mut response = Response::new(full(Bytes::new()));
    let headers = response.headers_mut();
    headers.insert("content-type", HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-status", HeaderValue::from_static(code));
    response
}
