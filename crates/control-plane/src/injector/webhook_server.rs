//! How does the API server reach the webhook? By TLS, with certificates that an autoscaler renews and that
//! are mounted as files.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use runtime::{MountedCertificates, vital};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, watch};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, rustls};
use tower::ServiceExt as _;
use vocabulary::TLS_ROOTS;

use super::callers::{CallerPlace, CallerPlaces, CallerStream};
use super::reading::ReviewSize;

/// How long the webhook goes on serving after it was asked to stop: as long as a node may take to hear that
/// the pod's address is gone.
pub(super) const SERVES_AFTER_STOP: Duration = Duration::from_secs(5);
/// How long a TLS handshake may take: the API server gives up after as long. While other callers have no
/// place it is less ([`super::callers`]).
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
/// The wait after a connection could not be accepted (out of file descriptors, for one).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long the last answers may take once no new connection is accepted.
const LAST_ANSWERS_MAX: Duration = Duration::from_secs(5);

/// Limits of a request's head, and of what is read ahead of a body. An API server sends half a kilobyte of
/// heads.
const HEAD_BYTES_MAX: u32 = 16 << 10;
const READ_AHEAD_MAX: usize = 64 << 10;
/// How much of a body may arrive before it is read, by stream and by connection.
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;
/// One API server asks about so many objects at once over one connection; further ones wait there.
const STREAMS_MAX: u32 = 32;
/// How often a caller over HTTP/2 that is silent is asked whether it lives, and how long it has to answer.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// The certificate that the webhook shows, the roots by which callers verify it, and how callers prove what
/// they are.
#[derive(Clone)]
pub(super) struct WebhookCertificates {
    shown: Arc<ArcSwap<ServerConfig>>,
    roots: watch::Receiver<String>,
    pub(super) proof: CallerProof,
}

/// Whether callers have to prove that they are the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallerProof {
    NotAsked,
    /// By a certificate. Kubelet has none, and asks probes alone.
    Certificate,
}

impl WebhookCertificates {
    /// Shows what lies in the folder, as long as this process runs. Callers are known by the roots in the
    /// file `callers`, if there is one.
    pub(super) fn keep(folder: PathBuf, callers: Option<PathBuf>) -> anyhow::Result<Self> {
        let proof = if callers.is_some() { CallerProof::Certificate } else { CallerProof::NotAsked };
        let known = MountedCertificates::read(&folder)?;
        let config = config_of(&known, callers.as_deref())
            .with_context(|| format!("certificates in {}", folder.display()))?;
        let shown = Arc::new(ArcSwap::new(config));
        let (roots_in, roots) = watch::channel(roots_of(&known)?);
        let kept = Arc::clone(&shown);
        let following = known.follow(folder, "the webhook", move |files| {
            let roots = roots_of(files)?;
            kept.store(config_of(files, callers.as_deref())?);
            roots_in.send_replace(roots);
            Ok(())
        });
        tokio::spawn(vital("the webhook's certificates", following));
        Ok(Self { shown, roots, proof })
    }

    pub(super) fn roots(&self) -> watch::Receiver<String> {
        self.roots.clone()
    }
}

fn roots_of(files: &MountedCertificates) -> anyhow::Result<String> {
    String::from_utf8(files.roots.clone()).with_context(|| format!("{TLS_ROOTS} is no text"))
}

fn config_of(files: &MountedCertificates, callers: Option<&Path>) -> anyhow::Result<Arc<ServerConfig>> {
    let chain = CertificateDer::pem_slice_iter(&files.chain).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(&files.key)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let builder = match callers {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let pem = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
            let mut roots = RootCertStore::empty();
            for root in CertificateDer::pem_slice_iter(&pem) {
                roots.add(root?)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            // Kubelet's probes come without; what needs one is refused later.
            let verifier = verifier.allow_unauthenticated().build();
            builder.with_client_cert_verifier(
                verifier.with_context(|| format!("{} holds no authority", file.display()))?,
            )
        }
    };
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The caller of a request, as an extension of the request.
#[derive(Clone)]
pub(super) struct WebhookCaller {
    pub(super) place: CallerPlace,
    pub(super) is_proven: bool,
    lines: Arc<ReviewLines>,
}

/// Where the reviews of one caller wait until one of them is the foremost.
#[derive(Default)]
struct ReviewLines {
    ordinary: Mutex<()>,
    large: Mutex<()>,
}

impl WebhookCaller {
    pub(super) fn line(&self, size: ReviewSize) -> &Mutex<()> {
        match size {
            ReviewSize::Ordinary => &self.lines.ordinary,
            ReviewSize::Large => &self.lines.large,
        }
    }
}

/// Accepts connections and serves them. Handshakes run beside one another, so a slow caller keeps no other
/// waiting.
pub(super) struct WebhookServer {
    pub(super) listener: TcpListener,
    pub(super) certificates: WebhookCertificates,
    pub(super) places: Arc<CallerPlaces>,
    pub(super) router: Router,
}

impl WebhookServer {
    /// Serves until `stopped`, and then those that are being answered.
    pub(super) async fn serve(self, stopped: impl Future<Output = ()>) {
        let graceful = GracefulShutdown::new();
        // Cancelling loses at most a connection that was not answered yet.
        tokio::select! {
            () = self.take_callers(&graceful) => {}
            () = stopped => {}
        }
        let _ = tokio::time::timeout(LAST_ANSWERS_MAX, graceful.shutdown()).await;
    }

    async fn take_callers(&self, graceful: &GracefulShutdown) {
        loop {
            let (stream, peer) = match self.listener.accept().await {
                Ok(caller) => caller,
                Err(error) => {
                    tracing::warn!(%error, "the webhook could not accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let caller = ArrivedCaller { stream, peer, place: self.places.take().await };
            let acceptor = TlsAcceptor::from(self.certificates.shown.load_full());
            // A panic ends this caller alone.
            tokio::spawn(serve_connection(caller, acceptor, self.router.clone(), graceful.watcher()));
        }
    }
}

/// A caller that has a place, before its TLS handshake.
struct ArrivedCaller {
    stream: TcpStream,
    peer: SocketAddr,
    place: CallerPlace,
}

/// Runs the TLS handshake with a caller, and serves its requests.
async fn serve_connection(caller: ArrivedCaller, acceptor: TlsAcceptor, router: Router, watcher: Watcher) {
    let ArrivedCaller { stream, peer, place } = caller;
    let handshake = acceptor.accept(place.seat(stream));
    let stream = match tokio::time::timeout(HANDSHAKE_MAX, handshake).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%peer, %error, "the TLS handshake with a caller failed"),
        Err(_) => return tracing::debug!(%peer, "the TLS handshake with a caller took too long"),
    };
    place.agree();
    let is_proven = stream.get_ref().1.peer_certificates().is_some();
    answer(stream, WebhookCaller { place, is_proven, lines: Arc::default() }, router, watcher).await;
}

async fn answer(
    stream: TlsStream<CallerStream<TcpStream>>,
    caller: WebhookCaller,
    router: Router,
    watcher: Watcher,
) {
    let mut server = Builder::new(TokioExecutor::new());
    server.http1().max_buf_size(READ_AHEAD_MAX).header_read_timeout(None);
    server
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEAD_BYTES_MAX)
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .keep_alive_interval(PING_INTERVAL);
    let place = caller.place.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(caller.clone());
        router.clone().oneshot(request.map(Body::new))
    });
    let connection = server.serve_connection(TokioIo::new(stream), service).into_owned();
    // Cancelling is what a caller whose place is needed is for: it asks nothing.
    tokio::select! {
        biased;
        ended = watcher.watch(connection) => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a caller's connection ended early");
            }
        }
        () = place.must_go() => {}
    }
}
