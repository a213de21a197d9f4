//! The webhook as its callers see it, over TLS; what it knows of the cluster is written down here.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use super::*;

const PLACES: usize = 3;

/// A webhook with few places.
struct Webhook {
    address: SocketAddr,
    registry: MetricsRegistry,
    state: Arc<WebhookState>,
    connector: TlsConnector,
    folder: tempfile::TempDir,
}

impl Webhook {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let roots = make_certificates(folder.path());
        let certificates = WebhookCertificates::keep(folder.path().to_owned(), None).expect("they are sound");
        let registry = MetricsRegistry::default();
        let metrics = InjectorMetrics::register(&registry);
        let limits = CallerLimits {
            places: PLACES,
            silence_min: Duration::from_millis(50),
            // Each of them asks a review here, and none is to be kept for that.
            known: 0,
            ..CallerLimits::WEBHOOK
        };
        let places = CallerPlaces::new(limits, Clock::start(), metrics.clone());
        let state = Arc::new(WebhookState {
            image: "ebb-queue-proxy".to_owned(),
            roots: certificates.roots(),
            cluster: config_maps::follow_cluster(None),
            observability: config_maps::follow_observability(None),
            is_known: watch::channel(true).1,
            metrics,
            turns: Semaphore::new(REVIEWS_MAX),
            large_turns: Semaphore::new(LARGE_REVIEWS_MAX),
            review_threads: ReviewThreads::start().expect("threads start"),
            proof: CallerProof::NotAsked,
            patience: Duration::from_secs(2),
        });
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = TcpListener::from_std(crate::listening::listen(any).expect("a port is free"));
        let listener = listener.expect("it is bound");
        let address = listener.local_addr().expect("it is bound");
        let server = WebhookServer { listener, certificates, places, router: router(&state) };
        // Ends with the test.
        tokio::spawn(server.serve(std::future::pending()));
        let provider = Arc::new(crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let client = client.expect("it has versions").with_root_certificates(roots).with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(client));
        Self { address, registry, state, connector, folder }
    }

    async fn call(&self) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(self.address).await.expect("it listens");
        let name = ServerName::try_from("injector.ebb-system.svc").expect("a name");
        self.connector.connect(name, stream).await.expect("both agree")
    }

    fn counts(&self, series: &str) -> u64 {
        let page = self.registry.encode();
        let value = page.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok());
        value.unwrap_or_default()
    }
}

/// Writes a certificate that signs itself, and returns it as the only root.
fn make_certificates(folder: &Path) -> RootCertStore {
    let made =
        rcgen::generate_simple_self_signed(["injector.ebb-system.svc".to_owned()]).expect("it is made");
    let chain = made.cert.pem();
    for (name, text) in
        [("tls.crt", &chain), ("ca.crt", &chain), ("tls.key", &made.signing_key.serialize_pem())]
    {
        std::fs::write(folder.join(name), text).expect("it can be written");
    }
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(chain.as_bytes()).expect("PEM");
    roots.add(certificate).expect("a certificate");
    roots
}

/// Asks over a connection that stays; returns the whole answer.
async fn ask(stream: &mut TlsStream<TcpStream>, head: &str, body: &str) -> String {
    let request = format!(
        "{head} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.expect("it is sent");
    let mut answer = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&answer).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0_usize) {
                return text;
            }
        }
        let read = stream.read_buf(&mut answer).await.expect("it answers");
        assert!(read > 0, "it ended after {text:?}");
    }
}

fn pod(annotations: &Value) -> Value {
    let container = json!({"name": "app", "image": "app", "ports": [{"containerPort": 8080}]});
    json!({
        "metadata": {"labels": {"ebb.dev/inject": "true"}, "annotations": annotations},
        "spec": {"containers": [container]},
    })
}

fn review(object: &Value) -> String {
    json!({"kind": "AdmissionReview", "request": {"uid": "u1", "object": object}}).to_string()
}

#[tokio::test]
async fn every_review_is_counted_by_its_verdict() {
    let webhook = Webhook::start();
    let mut stream = webhook.call().await;
    let config =
        |data: Value| json!({"kind": "ConfigMap", "metadata": {"name": "config-autoscaler"}, "data": data});
    for (head, body, status, question, verdict) in [
        ("POST /inject", review(&pod(&json!({}))), 200, "inject", "injected"),
        ("POST /inject", review(&json!({"spec": {}})), 200, "inject", "accepted"),
        ("POST /inject", review(&pod(&json!({"ebb.dev/timeout": "soon"}))), 200, "inject", "refused"),
        ("POST /inject", "{}".to_owned(), 400, "inject", "unreadable"),
        ("POST /validate", review(&config(json!({}))), 200, "validate", "accepted"),
        ("POST /validate", review(&config(json!({"x": "y"}))), 200, "validate", "refused"),
    ] {
        let answer = ask(&mut stream, head, &body).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        let series = format!("injector_reviews_total{{question=\"{question}\",verdict=\"{verdict}\"}}");
        assert_eq!(webhook.counts(&series), 1, "{series}");
    }
}

/// Kubelet asks where it needs no TLS, and hears the same.
#[tokio::test]
async fn it_is_ready_beside_the_webhook_once_the_api_server_knows_it() {
    let webhook = Webhook::start();
    let (is_known_in, is_known) = watch::channel(false);
    let known = WebhookCertificates::keep(webhook.folder.path().to_owned(), None).expect("they are sound");
    let state = Arc::new(WebhookState {
        image: String::new(),
        roots: known.roots(),
        cluster: config_maps::follow_cluster(None),
        observability: config_maps::follow_observability(None),
        is_known,
        metrics: webhook.state.metrics.clone(),
        turns: Semaphore::new(1),
        large_turns: Semaphore::new(LARGE_REVIEWS_MAX),
        review_threads: ReviewThreads::start().expect("threads start"),
        proof: CallerProof::NotAsked,
        patience: Duration::from_secs(2),
    });
    let status = async |path: &str| {
        let request = Request::builder().uri(path).body(axum::body::Body::empty()).expect("legal");
        let answer = tower::ServiceExt::oneshot(probe_router(&state), request).await;
        answer.expect("it answers").status()
    };
    assert_eq!(status("/ready").await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(status("/healthz").await, StatusCode::OK);
    is_known_in.send_replace(true);
    assert_eq!(status("/ready").await, StatusCode::OK);
}

#[tokio::test]
async fn silent_callers_make_room_for_who_asks() {
    let webhook = Webhook::start();
    let mut silent = Vec::new();
    for _ in 0..PLACES {
        silent.push(webhook.call().await);
    }
    // More than there are places, and each is answered.
    for _ in 0..PLACES {
        let mut stream = webhook.call().await;
        let answer = ask(&mut stream, "POST /inject", &review(&pod(&json!({})))).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        silent.push(stream);
    }
    assert!(webhook.counts("injector_closed_idle_connections_total") >= PLACES as u64);
    assert!(webhook.counts("injector_open_connections") <= PLACES as u64);
    assert_eq!(webhook.counts("injector_connections_max"), PLACES as u64);
    // The first of them was told.
    let mut first = silent.swap_remove(0);
    assert_eq!(first.read(&mut [0; 1]).await.unwrap_or_default(), 0);
}

#[tokio::test]
async fn a_review_for_which_there_is_no_room_is_answered_when_there_is_and_probes_at_once() {
    let webhook = Webhook::start();
    let turns = u32::try_from(REVIEWS_MAX).expect("it is small");
    let all = webhook.state.turns.acquire_many(turns).await.expect("it is open");
    let mut stream = webhook.call().await;
    assert!(ask(&mut stream, "GET /ready", "").await.starts_with("HTTP/1.1 200"));
    let late = ask(&mut stream, "POST /inject", &review(&pod(&json!({})))).await;
    assert!(late.starts_with("HTTP/1.1 503"), "{late}");
    assert_eq!(webhook.counts("injector_reviews_total{question=\"inject\",verdict=\"late\"}"), 1);
    drop(all);
    let answer = ask(&mut stream, "POST /inject", &review(&pod(&json!({})))).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
