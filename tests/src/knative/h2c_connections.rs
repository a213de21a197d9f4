//! Connections of HTTP/2 without TLS to the next hop: one for each address, which all requests share.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

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
        loop {
            let (mut sender, is_kept) = self.sender(to).await?;
            match sender.try_send_request(request).await {
                Ok(response) => return Ok(response),
                Err(mut error) => match error.take_message() {
                    // Not a byte of it was sent: the next hop had closed the connection before.
                    Some(unsent) if is_kept => {
                        self.forget(to);
                        request = unsent;
                    }
                    Some(_) | None => return Err(error.into_error().into()),
                },
            }
        }
    }

    /// A connection, and whether it was there before.
    async fn sender(&self, to: SocketAddr) -> anyhow::Result<(SendRequest<Incoming>, bool)> {
        if let Some(kept) = self.kept(to) {
            return Ok((kept, true));
        }
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        // Requests that wait for an answer on it see how the connection ends.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(to, sender.clone());
        Ok((sender, false))
    }

    fn kept(&self, to: SocketAddr) -> Option<SendRequest<Incoming>> {
        let connections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        connections.get(&to).filter(|sender| !sender.is_closed()).cloned()
    }

    fn forget(&self, to: SocketAddr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&to);
    }
}
