//! Connections of HTTP/2 without TLS to the next hop: one for each address, which all requests share.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

/// How many connections one request is given to, none of which takes a byte of it.
const ATTEMPTS_MAX: usize = 10;

/// Connections that are kept as long as the next hop likes them.
#[derive(Clone, Default)]
pub(super) struct H2cConnections(Arc<Mutex<BTreeMap<SocketAddr, SendRequest<Incoming>>>>);

impl H2cConnections {
    /// Sends a request, whose target is whole: its authority is the host that the next hop sees.
    pub(super) async fn send(
        &self,
        mut request: Request<Incoming>,
        to: SocketAddr,
    ) -> anyhow::Result<Response<Incoming>> {
        let mut attempts = 1;
        loop {
            let mut sender = self.sender(to).await?;
            match sender.try_send_request(request).await {
                Ok(response) => return Ok(response),
                Err(mut error) => match error.take_message() {
                    // Not a byte of it was sent: the next hop has said before that it leaves. One that drains
                    // says so of a new connection, too, and serves what comes in the same moment.
                    Some(unsent) if attempts < ATTEMPTS_MAX => {
                        self.forget(to);
                        attempts += 1;
                        request = unsent;
                    }
                    Some(_) | None => return Err(error.into_error().into()),
                },
            }
        }
    }

    /// A connection that is there, or a new one.
    async fn sender(&self, to: SocketAddr) -> anyhow::Result<SendRequest<Incoming>> {
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

    fn kept(&self, to: SocketAddr) -> Option<SendRequest<Incoming>> {
        let connections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        connections.get(&to).filter(|sender| !sender.is_closed()).cloned()
    }

    fn forget(&self, to: SocketAddr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&to);
    }
}
