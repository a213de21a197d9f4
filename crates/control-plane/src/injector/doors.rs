//! Where the API server calls: TLS, with certificates that somebody else renews as files.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use arc_swap::ArcSwap;
use axum::serve::Listener;
use runtime::{MountedCertificates, vital};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, rustls};
use vocabulary::TLS_ROOTS;

use super::callers::{CallerPlaces, CallerStream};

/// How long it answers on after it was asked to stop: as long as a node may take to hear that its address is
/// gone.
pub(super) const LINGER: Duration = Duration::from_secs(5);
/// How long a caller may take to agree on a channel: the API server gives up after as long.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
/// Callers that have not agreed yet. One more waits.
const HANDSHAKES_MAX: usize = 64;
/// The wait after a caller could not be taken (out of file descriptors, for one).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What is shown, and by which roots others know it.
#[derive(Clone)]
pub(super) struct WebhookCertificates {
    shown: Arc<ArcSwap<ServerConfig>>,
    roots: watch::Receiver<String>,
}

impl WebhookCertificates {
    /// Shows what lies in the folder, as long as this process runs.
    pub(super) fn keep(folder: PathBuf) -> anyhow::Result<Self> {
        let known = MountedCertificates::read(&folder)?;
        let config = config_of(&known).with_context(|| format!("certificates in {}", folder.display()))?;
        let shown = Arc::new(ArcSwap::new(config));
        let (roots_in, roots) = watch::channel(roots_of(&known)?);
        let kept = Arc::clone(&shown);
        let following = known.follow(folder, "the webhook", move |files| {
            let roots = roots_of(files)?;
            kept.store(config_of(files)?);
            roots_in.send_replace(roots);
            Ok(())
        });
        tokio::spawn(vital("the webhook's certificates", following));
        Ok(Self { shown, roots })
    }

    pub(super) fn roots(&self) -> watch::Receiver<String> {
        self.roots.clone()
    }
}

fn roots_of(files: &MountedCertificates) -> anyhow::Result<String> {
    String::from_utf8(files.roots.clone()).with_context(|| format!("{TLS_ROOTS} is no text"))
}

fn config_of(files: &MountedCertificates) -> anyhow::Result<Arc<ServerConfig>> {
    let chain = CertificateDer::pem_slice_iter(&files.chain).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(&files.key)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Callers with whom a channel is agreed on. Each agrees beside the others, so one that is slow keeps nobody
/// waiting.
pub(super) struct WebhookListener {
    address: SocketAddr,
    agreed: mpsc::Receiver<AgreedCaller>,
}

/// With whom a channel is agreed on, at his place.
type AgreedCaller = (CallerStream<TlsStream<TcpStream>>, SocketAddr);

impl WebhookListener {
    pub(super) fn new(
        listener: TcpListener,
        certificates: WebhookCertificates,
        places: Arc<CallerPlaces>,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (agreed_in, agreed) = mpsc::channel(1);
        let taking = take_callers(listener, certificates, places, agreed_in);
        tokio::spawn(vital("the webhook's listener", taking));
        Ok(Self { address, agreed })
    }
}

async fn take_callers(
    listener: TcpListener,
    certificates: WebhookCertificates,
    places: Arc<CallerPlaces>,
    agreed: mpsc::Sender<AgreedCaller>,
) {
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    loop {
        let Ok(handshake) = Arc::clone(&handshakes).acquire_owned().await else { return };
        let (stream, peer) = match listener.accept().await {
            Ok(caller) => caller,
            Err(error) => {
                tracing::warn!(%error, "the webhook cannot take a caller");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if agreed.is_closed() {
            return;
        }
        // Whoever came first has made room by the time that one more is looked at.
        let place = places.take().await;
        let (acceptor, agreed) = (TlsAcceptor::from(certificates.shown.load_full()), agreed.clone());
        // A panic ends this caller's handshake alone.
        tokio::spawn(async move {
            let _handshake = handshake;
            match tokio::time::timeout(HANDSHAKE_MAX, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => {
                    // Nobody takes it any more if the server has ended.
                    let _ = agreed.send((place.seat(stream), peer)).await;
                }
                Ok(Err(error)) => tracing::debug!(%peer, %error, "a caller and the webhook did not agree"),
                Err(_) => tracing::debug!(%peer, "a caller took too long"),
            }
        });
    }
}

impl Listener for WebhookListener {
    type Io = CallerStream<TlsStream<TcpStream>>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.agreed.recv().await {
            Some(agreed) => agreed,
            // The task that takes callers ends after this, or the process has ended.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(self.address)
    }
}
