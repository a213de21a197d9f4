//! A port at which the app speaks TLS itself, with a certificate that its start names.

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::{State, serve_http};

/// What `--tls-port` and `--tls-identity` say.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnTls {
    pub(crate) port: u16,
    /// Certificate and key, in PEM.
    pub(crate) identity: String,
}

/// Accepts connections for as long as the app runs.
pub(crate) async fn accept(listener: TcpListener, tls: OwnTls, state: Arc<State>) {
    let identity = tls.identity.as_bytes();
    let chain = CertificateDer::pem_slice_iter(identity).collect::<Result<Vec<_>, _>>();
    let key = PrivateKeyDer::from_pem_slice(identity).expect("there is a key");
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(chain.expect("there is a certificate"), key);
    let acceptor = TlsAcceptor::from(Arc::new(config.expect("they fit each other")));
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (acceptor, state) = (acceptor.clone(), Arc::clone(&state));
        // How a connection ends is its client's to judge.
        tokio::spawn(async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                serve_http(stream, tls.port, state).await;
            }
        });
    }
}
