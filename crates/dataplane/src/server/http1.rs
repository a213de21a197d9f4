//! Serves HTTP/1.1: a connection is one task that reads a head, has it answered, writes the answer, and
//! begins again.
//!
//! Nothing lies between the service and the socket. What waits for its next request holds a socket and no
//! buffer; a body is read from the socket by its reader, when the reader asks.

mod failure;
mod heads;
mod sending;
mod wire;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use http::StatusCode;
use protocol::Response;
use protocol::http1::{OutgoingMessage, RequestHead, ResponseForm, spare_buffer, write_response};

use super::limits::ServerLimits;
use super::service::{Abort, Service};
use super::unserved;
use crate::body::upgrade::{ClientUpgrade, SwitchedTo};
use crate::body::{Body, ResponseBody};
use crate::connection::Connection;
use crate::connection::drain::Drain;
use crate::http1::LINGER_LIMIT;
use crate::refusal::{Refusal, RequestKind};
use crate::server::date;
use crate::socket::Socket;
use crate::socket::stream::ReadAheadStream;
use heads::{COUNTED_BYTES, ClientStart, HeadReader};
use sending::SendingResponse;
use wire::body::RequestBody;
use wire::{BegunBody, ServerWire};

pub(super) use failure::ConnectionError;

/// The form of an answer to what is no request.
const PLAIN_ANSWER: ResponseForm = ResponseForm { is_http10: false, is_head: false, keeps_alive: false };

/// What becomes of a connection after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionFate {
    Kept,
    Over,
}

/// The response of a service, or its wish to abort the connection.
type ServiceAnswer<S> = Result<Response<<S as Service>::Body>, Abort>;

/// A connection of HTTP/1.1 with all that serves it.
struct ServedConnection<'d, S> {
    wire: Rc<ServerWire>,
    connection: Rc<Connection>,
    service: Rc<S>,
    drain: &'d Drain,
}

impl<S> Drop for ServedConnection<'_, S> {
    fn drop(&mut self) {
        if self.connection.is_lost() {
            // The kernel would try on for minutes to deliver what it has.
            self.wire.reset();
        }
        // A body in another task may outlive us, and must not keep the socket open.
        self.wire.close();
    }
}

/// Serves a connection to its end, or until it turns out that HTTP/2 is spoken on it: then it is returned. A
/// block and not an async function, which would hold its arguments twice.
pub(super) fn serve<S: Service>(
    stream: Socket,
    connection: Rc<Connection>,
    service: Rc<S>,
    drain: &Drain,
    limits: ServerLimits,
) -> impl Future<Output = Result<Option<ReadAheadStream>, ConnectionError>> {
    let wire = Rc::new(ServerWire::new(stream, Rc::clone(&connection), drain, limits));
    let served = ServedConnection { wire, connection, service, drain };
    let mut heads = HeadReader::new(limits);
    async move {
        loop {
            let next = poll_fn(|context| {
                // Each time: the limit can change while a connection waits for its next request.
                heads.allow(&*served.service);
                let next = heads.poll_next(&served.wire, served.drain, context);
                if next.is_pending() {
                    served.rest(&heads);
                }
                next
            });
            let next = next.await;
            served.drain.work(&served.connection);
            match next {
                Ok(ClientStart::Request) => {
                    if let Some(refusal) = served.oversize(&heads) {
                        let head = heads.take_head();
                        Box::pin(served.refuse(refusal, head)).await?;
                        return Ok(None);
                    }
                    match served.exchange(&mut heads).await? {
                        ConnectionFate::Kept => served.wire.let_go_of_head(),
                        ConnectionFate::Over => return Ok(None),
                    }
                }
                Ok(ClientStart::Preface) => return Ok(served.wire.take_stream()),
                Ok(ClientStart::End) => return Ok(None),
                // Boxed, because every connection would have room for it.
                Ok(ClientStart::Ambiguous(ambiguity)) => {
                    let head = heads.take_head();
                    Box::pin(served.refuse(ambiguity.into(), head)).await?;
                    return Ok(None);
                }
                Err(why) => {
                    let refusal = unserved::unreadable(&*served.service, why);
                    Box::pin(served.refuse(refusal, None)).await?;
                    return Ok(None);
                }
            }
        }
    }
}

impl<S> ServedConnection<'_, S> {
    /// Nothing has come, or the beginning of a head, which has a time limit of its own.
    fn rest(&self, heads: &HeadReader) {
        if heads.has_begun() { self.drain.work(&self.connection) } else { self.drain.rest(&self.connection) }
    }
}

impl<S: Service> ServedConnection<'_, S> {
    /// The refusal of the head that was read, if it is too large for its sender's limits.
    fn oversize(&self, heads: &HeadReader) -> Option<Refusal> {
        let head = heads.head()?;
        unserved::oversize(&*self.service, &head.request, head.bytes)
    }

    /// Has the request that was read answered. What is large is moved as seldom as can be: neither request
    /// nor response is handed to another future.
    async fn exchange(&self, heads: &mut HeadReader) -> Result<ConnectionFate, ConnectionError> {
        let Some((answer, asked, switched_to)) = self.begin(heads) else { return Ok(ConnectionFate::Over) };
        let mut sending = None;
        {
            let mut answer = pin!(answer);
            poll_fn(|context| match self.wire.during(|| answer.as_mut().poll(context)) {
                Poll::Ready(Ok(response)) => {
                    sending = Some(self.respond(response, asked));
                    Poll::Ready(())
                }
                Poll::Ready(Err(Abort)) => Poll::Ready(()),
                // Only while the service has nothing to say. An answer that is ready goes out even if the
                // client looks gone.
                Poll::Pending => self.wire.poll_gone(context),
            })
            .await;
        }
        let (is_last, is_switched) = match &mut sending {
            Some(sending) => {
                poll_fn(|context| sending.poll(context)).await?;
                (sending.announced.is_last, sending.is_switched)
            }
            // The exchange was broken off, by the service or by the client.
            None => return Ok(ConnectionFate::Over),
        };
        // What the response holds is free before anything else is waited for.
        drop(sending);
        self.wire.end_watch();
        if is_switched {
            if let (Some(to), Some(stream)) = (switched_to, self.wire.take_stream()) {
                to.switch(stream);
            }
            return Ok(ConnectionFate::Over);
        }
        if !is_last && self.wire.is_body_over() {
            Ok(ConnectionFate::Kept)
        } else {
            Ok(self.settle(is_last).await)
        }
    }

    /// Hands the request that was read to the service, and says where its connection goes if it switches
    /// protocols.
    fn begin(
        &self,
        heads: &mut HeadReader,
    ) -> Option<(impl Future<Output = ServiceAnswer<S>> + use<S>, ResponseForm, Option<SwitchedTo>)> {
        let head = heads.take_head()?;
        let (asked, (body, switched_to)) = (head.asked, self.body_of(&head));
        let request = head.request.map(|()| body);
        let answer = self.wire.during(|| Rc::clone(&self.service).call(request, Rc::clone(&self.connection)));
        Some((answer, asked, switched_to))
    }

    fn body_of(&self, head: &RequestHead) -> (Body, Option<SwitchedTo>) {
        if head.offers_upgrade {
            let (to, upgrade) = ClientUpgrade::offer();
            return (Body::upgradable(upgrade), Some(to));
        }
        let body = match self.wire.begin_body(head.framing, head.expects_continue) {
            BegunBody::Whole(bytes) => Body::full(bytes),
            BegunBody::Streamed => Body::custom(RequestBody::new(Rc::clone(&self.wire))),
        };
        (body, None)
    }

    /// Writes the head of a response, and says what remains to be done.
    fn respond<B: ResponseBody>(&self, response: Response<B>, asked: ResponseForm) -> SendingResponse<'_, B> {
        // Decided when the head is written and not before: a drain that began while the service worked
        // counts.
        let is_ending = self.connection.is_retired() || self.drain.is_draining();
        let asked =
            ResponseForm { keeps_alive: asked.keeps_alive && !is_ending && self.wire.can_go_on(), ..asked };
        let mut head = spare_buffer();
        let exact = response.body().size_hint().exact();
        let announced = write_response(response.parts(), exact, asked, date::now, &mut head);
        // The part that a client does not take waits here, in a buffer that grows by doubling.
        if head.len() > COUNTED_BYTES && self.wire.hold_answer(2 * head.len()).is_err() {
            return self.respond_without_memory(asked);
        }
        SendingResponse {
            wire: &self.wire,
            outgoing: OutgoingMessage::new(head, announced.framing),
            announced,
            is_switched: response.status() == StatusCode::SWITCHING_PROTOCOLS,
            body: Some(response.into_body()),
            failure: None,
        }
    }

    /// Answers with a head without a body that there is no memory for the head of the app's answer.
    fn respond_without_memory<B: ResponseBody>(&self, asked: ResponseForm) -> SendingResponse<'_, B> {
        let refusal = unserved::no_memory_for_answer().into_response(RequestKind::Plain);
        let asked = ResponseForm { keeps_alive: false, ..asked };
        let mut head = spare_buffer();
        let announced = write_response(refusal.parts(), Some(0), asked, date::now, &mut head);
        SendingResponse {
            wire: &self.wire,
            outgoing: OutgoingMessage::new(head, announced.framing),
            body: None,
            announced,
            is_switched: false,
            failure: None,
        }
    }

    /// The response is out. What becomes of the connection depends on the rest of the request, which a reader
    /// may still be reading.
    async fn settle(&self, is_last: bool) -> ConnectionFate {
        // The client may wait for the end of the connection to know that the response is whole. It gets that
        // before the rest of its own request is waited for.
        if is_last {
            self.wire.shut_down();
        }
        poll_fn(|_| self.wire.poll_body_left()).await;
        if !is_last && self.wire.can_go_on() {
            return ConnectionFate::Kept;
        }
        if self.wire.may_be_sending() {
            Box::pin(self.linger()).await;
        }
        ConnectionFate::Over
    }

    /// Lets a client that still sends read its answer.
    async fn linger(&self) {
        // Closing now would reset the connection as soon as more of the request arrives, and a reset can
        // overtake the response that the client has not read yet.
        self.wire.shut_down();
        // Whether it closes in time or not, nothing is left to do.
        let _ = tokio::time::timeout(LINGER_LIMIT, poll_fn(|context| self.wire.poll_discard(context))).await;
    }

    /// Answers a request that is not served, which may have no head that can be read. It is the last on its
    /// connection.
    async fn refuse(&self, refusal: Refusal, head: Option<RequestHead>) -> Result<(), ConnectionError> {
        let request = head.as_ref().map(|head| &head.request);
        let response = unserved::refuse(&*self.service, &self.connection, request, refusal);
        let asked = head.map_or(PLAIN_ANSWER, |head| ResponseForm { keeps_alive: false, ..head.asked });
        let mut sending = self.respond(response, asked);
        poll_fn(|context| sending.poll(context)).await?;
        self.linger().await;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
