//! Connections of HTTP/2 without TLS to the next hop: one for each address, which all requests share.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{Either, Empty};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

/// How many connections one request is given to, none of which takes it.
const ATTEMPTS_MAX: usize = 10;

/// The words of the library of HTTP/2 for a request that was sent, and that the next hop leaves out as it
/// says by a GOAWAY without an error that it leaves: nobody has begun it.
const LEFT_OUT: &str = "connection error received: not a result of an error";

/// The body of a client, or that of a request which is made again.
type OnwardBody = Either<Incoming, Empty<Bytes>>;

/// Connections that are kept as long as the next hop likes them.
#[derive(Clone, Default)]
pub(super) struct H2cConnections(Arc<Mutex<BTreeMap<SocketAddr, SendRequest<OnwardBody>>>>);

impl H2cConnections {
    /// Sends a request, whose target is whole: its authority is the host that the next hop sees.
    pub(super) async fn send(
        &self,
        request: Request<Incoming>,
        to: SocketAddr,
    ) -> anyhow::Result<Response<Incoming>> {
        let (head, body) = request.into_parts();
        // A request without a body can be made again.
        let again = body.is_end_stream().then(|| head.clone());
        let mut request = Request::from_parts(head, Either::Left(body));
        let mut attempts = 1;
        loop {
            let mut sender = self.sender(to).await?;
            let mut error = match sender.try_send_request(request).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            // Not a byte of it was sent: the next hop has said before that it leaves. One that drains says so
            // of a new connection, too, and serves what comes in the same moment.
            let unsent = error.take_message();
            let unbegun = again.clone().filter(|_| is_left_out(error.error()));
            let unbegun = unbegun.map(|head| Request::from_parts(head, Either::Right(Empty::new())));
            match unsent.or(unbegun) {
                Some(next) if attempts < ATTEMPTS_MAX => {
                    self.forget(to);
                    attempts += 1;
                    request = next;
                }
                Some(_) | None => return Err(error.into_error().into()),
            }
        }
    }

    /// A connection that is there, or a new one.
    async fn sender(&self, to: SocketAddr) -> anyhow::Result<SendRequest<OnwardBody>> {
        if let Some(kept) = self.kept(to) {
            return Ok(kept);
        }
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        // Requests that wait for an answer on it see how the connection ends.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(to, sender.clone());
        Ok(sender)
    }

    fn kept(&self, to: SocketAddr) -> Option<SendRequest<OnwardBody>> {
        let connections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        connections.get(&to).filter(|sender| !sender.is_closed()).cloned()
    }

    fn forget(&self, to: SocketAddr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&to);
    }
}

/// Whether the next hop has read nothing of a request that was sent to it, by its own word.
fn is_left_out(error: &hyper::Error) -> bool {
    error.source().is_some_and(|cause| cause.to_string() == LEFT_OUT)
}
