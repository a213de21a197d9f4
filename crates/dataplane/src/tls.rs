//! TLS towards clients: the identity that we show, and how a connection begins.
//!
//! A handshake is all that is different: from then on a connection is a [`Socket`] like any other, on which
//! HTTP/1.1 or HTTP/2 is found by its first bytes. The handshake belongs to the connection's own task, so a
//! slow client delays no other, and it counts as one of the connections that clients may have. Certificates
//! can be replaced at any time; connections that stand keep theirs.

mod failures;

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use http::uri::Scheme;
use http::{Uri, Version};
use protocol::Request;
use rustls::ServerConfig;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, rustls};

pub use failures::FailedHandshakes;
pub(crate) use failures::HandshakeError;

use crate::certificates::{Certificates, PresentedCertificate};
use crate::connection::Connection;
use crate::connection::drain::{Drain, Phase};
use crate::socket::{Socket, has_more_in_kernel};

/// How long a handshake may take, from the accepted connection on: it is two round trips, to a client that
/// may be busy.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// The protocols that a client may ask for (ALPN), the better one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// TLS 1.2 and 1.3 with these certificates. Clones share it.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    certificates: Arc<Certificates>,
    failed: FailedHandshakes,
}

impl Tls {
    /// Presents `certificates`, whichever they are at the time, and counts the handshakes that come to
    /// nothing.
    pub fn new(certificates: Arc<Certificates>, failed: FailedHandshakes) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.expect("ring speaks the versions that rustls thinks safe");
        let mut config =
            builder.with_no_client_auth().with_cert_resolver(Arc::<Certificates>::clone(&certificates));
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
        Self { acceptor: TlsAcceptor::from(Arc::new(config)), certificates, failed }
    }

    /// Shakes hands with a client.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
        connection: &Connection,
        drain: &Drain,
    ) -> Result<Socket, HandshakeError> {
        let shaking = async {
            await_first_byte(&stream, connection, drain).await.map_err(|error| (error, None))?;
            drain.work(connection);
            let shaken = self.acceptor.accept(stream).into_fallible().await;
            shaken.map_err(|(error, stream)| (HandshakeError::from(error), Some(stream)))
        };
        let shaken = tokio::time::timeout(HANDSHAKE_LIMIT, shaking).await;
        match shaken.unwrap_or(Err((HandshakeError::TooSlow, None))) {
            Ok(stream) => {
                let (_, session) = stream.get_ref();
                let presented = PresentedCertificate::to(session.server_name(), &self.certificates);
                connection.mark_as_encrypted(agreed_protocol(session.alpn_protocol()), presented);
                Ok(Socket::from(stream))
            }
            // The connection stays open until its failure is counted: the numbers are right when the client
            // sees the end.
            Err((error, _stream)) => {
                self.failed.count(&error);
                Err(error)
            }
        }
    }
}

/// The protocol that a client agreed on in its handshake (ALPN), and has to keep to.
fn agreed_protocol(name: Option<&[u8]>) -> Option<Version> {
    match name? {
        b"h2" => Some(Version::HTTP_2),
        _ => Some(Version::HTTP_11),
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Tls")
    }
}

/// Ready when the client's first byte is here. Until then its connection holds nothing, and goes like any
/// other of that kind when there is no room, or everything ends.
async fn await_first_byte(
    stream: &TcpStream,
    connection: &Connection,
    drain: &Drain,
) -> Result<(), HandshakeError> {
    poll_fn(|context| {
        connection.register(context);
        // A look at the byte itself: the runtime may think a socket readable that is not.
        if stream.poll_peek(context, &mut ReadBuf::new(&mut [0]))?.is_ready() {
            return Poll::Ready(Ok(()));
        }
        let is_unwanted = drain.phase() == Phase::Closing || connection.is_dismissed();
        if is_unwanted && !has_more_in_kernel(stream) {
            return Poll::Ready(Err(HandshakeError::Dismissed));
        }
        drain.rest(connection);
        Poll::Pending
    })
    .await
}

/// Marks a request as one that came over TLS, whatever its sender says of that. Its target gets the scheme
/// `http`, because it travels on without TLS.
pub fn note_tls<B>(request: &mut Request<B>) {
    request.fields_mut().set_of_hops(X_FORWARDED_PROTO, HeaderValue::from_static("https"));
    // A target with a scheme names a host, and of one without there are no parts to be read.
    if request.target().authority().is_some() && request.uri().scheme() == Some(&Scheme::HTTPS) {
        let mut parts = request.uri().clone().into_parts();
        parts.scheme = Some(Scheme::HTTP);
        *request.uri_mut() = Uri::from_parts(parts).expect("another scheme leaves a target whole");
    }
}

#[cfg(test)]
mod tests;
