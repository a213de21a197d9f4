//! Strangers at an injector: what any program of the cluster may send to it ends neither the injector nor the
//! injection of others' pods.

use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tests::bench::process::{open_files, peak_memory};
use tests::client::whole_answer;
use tests::ebb::cluster_executable;
use tests::eventually;
use tests::ports::unused_address;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

const NAME: &str = "injector.ebb-system.svc";
/// The most that an injector may ever have had resident, in MB: half of what its container has.
const MEMORY_MAX: f64 = 128.0;
/// An API server waits as long for its answer.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(5);
const START_MAX: Duration = Duration::from_secs(60);

/// An authority, and certificates of its own.
struct TestAuthority {
    params: CertificateParams,
    key: KeyPair,
    pem: String,
}

impl TestAuthority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names are legal");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("it is made");
        let pem = params.self_signed(&key).expect("it is made").pem();
        Self { params, key, pem }
    }

    /// A certificate and its key, in PEM.
    fn issue(&self, name: &str) -> (String, String) {
        let issuer = Issuer::from_params(&self.params, &self.key);
        let key = KeyPair::generate().expect("it is made");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        (params.signed_by(&key, &issuer).expect("it is made").pem(), key.serialize_pem())
    }
}

/// A running `ebb-injector` whose API server does not answer.
struct Injector {
    process: Child,
    webhook: SocketAddr,
    pages: SocketAddr,
    authority: TestAuthority,
    _folder: tempfile::TempDir,
}

impl Drop for Injector {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Injector {
    async fn start(callers: Option<&TestAuthority>) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let authority = TestAuthority::new();
        let (chain, key) = authority.issue(NAME);
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("it can be written");
        };
        for (name, text) in [("tls.crt", &chain), ("tls.key", &key), ("ca.crt", &authority.pem)] {
            write(name, text);
        }
        write("kubeconfig", &kubeconfig().to_string());
        let [webhook, pages] = [unused_address(), unused_address()];
        let mut command = Command::new(cluster_executable());
        command.arg0("ebb-injector").env_clear().stdin(Stdio::null()).stderr(Stdio::null());
        command.env("KUBECONFIG", folder.path().join("kubeconfig")).env("INJECTOR_TLS", folder.path());
        command.env("INJECTOR_ADDRESS", webhook.to_string());
        command.env("INJECTOR_METRICS_ADDRESS", pages.to_string()).env("QUEUE_PROXY_IMAGE", "queue-proxy");
        if let Some(callers) = callers {
            write("callers.crt", &callers.pem);
            command.env("INJECTOR_CLIENT_CA", folder.path().join("callers.crt"));
        }
        let process = command.spawn().expect("it starts");
        let injector = Self { process, webhook, pages, authority, _folder: folder };
        eventually("it answers", START_MAX, || injector.answers("/healthz")).await;
        injector
    }

    /// Whether a plain page is there.
    async fn answers(&self, page: &str) -> Result<(), String> {
        let answer = whole_answer(self.pages, "localhost", page).await.map_err(|error| error.to_string())?;
        if answer.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(answer) }
    }

    /// A caller that shows no certificate, or this one.
    async fn call(&self, shown: Option<&(String, String)>) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(self.authority.pem.as_bytes()).expect("PEM");
        roots.add(root).expect("a certificate");
        let provider = Arc::new(crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let client = client.expect("it has versions").with_root_certificates(roots);
        let client = match shown {
            None => client.with_no_client_auth(),
            Some((chain, key)) => {
                let chain = CertificateDer::from_pem_slice(chain.as_bytes()).expect("PEM");
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
                client.with_client_auth_cert(vec![chain], key).expect("they fit")
            }
        };
        let stream = TcpStream::connect(self.webhook).await?;
        let name = ServerName::try_from(NAME).expect("a name");
        TlsConnector::from(Arc::new(client)).connect(name, stream).await
    }

    /// What a new caller is answered, however that ends.
    async fn ask(&self, head: &str, body: &str) -> std::io::Result<String> {
        ask(&mut self.call(None).await?, head, body).await
    }

    /// An honest review of this pod, on a connection of its own; its patch is there.
    async fn is_injected(&self, pod: &Value) -> Result<(), String> {
        let answer = self.ask("POST /inject", &review(pod)).await.map_err(|error| error.to_string())?;
        let is_patched = answer.starts_with("HTTP/1.1 200") && answer.contains("\"patch\":");
        if is_patched { Ok(()) } else { Err(format!("{answer:.400}")) }
    }

    /// The same, however long that takes here.
    async fn inject(&self, pod: &Value) {
        eventually("a pod is injected", START_MAX, || self.is_injected(pod)).await;
    }

    /// The same in an API server's time.
    async fn inject_in_time(&self, pod: &Value) {
        let injected = timeout(WEBHOOK_TIMEOUT, self.is_injected(pod)).await.expect("in time");
        injected.expect("it is injected");
    }

    fn peak(&self) -> f64 {
        peak_memory(self.process.id()).expect("it runs")
    }
}

fn kubeconfig() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "none",
        "clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}],
        "users": [{"name": "none", "user": {}}],
    })
}

/// Asks over a connection that stays; returns the whole answer.
async fn ask(stream: &mut TlsStream<TcpStream>, head: &str, body: &str) -> std::io::Result<String> {
    let json = "content-type: application/json";
    let head = format!("{head} HTTP/1.1\r\nhost: x\r\n{json}\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await?;
    // It may be answered before it is read to its end.
    let _ = stream.write_all(body.as_bytes()).await;
    // What the kernel did not take at once waits in the stream until then.
    let _ = stream.flush().await;
    let mut answer = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&answer);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0_usize) {
                return Ok(text.into_owned());
            }
        }
        if stream.read_buf(&mut answer).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}

fn pod(variables: &Value) -> Value {
    let ports = json!([{"containerPort": 8080}]);
    json!({
        "metadata": {"labels": {"ebb.dev/inject": "true"}},
        "spec": {"containers": [{"name": "app", "image": "app", "ports": ports, "env": variables}]},
    })
}

fn review(object: &Value) -> String {
    json!({"kind": "AdmissionReview", "request": {"uid": "u1", "object": object}}).to_string()
}

/// Texts of this many bytes that would be a hundred times as much as values, wherever they stand.
fn small_maps(bytes: usize) -> Vec<String> {
    let places = [
        ("[", "{}]"),
        (
            r#"{"request":{"uid":"u","object":{"metadata":{"labels":{"ebb.dev/inject":"true"}},"spec":{"containers":["#,
            "{}]}}}}",
        ),
        (r#"{"request":{"uid":"u","object":{"kind":"ConfigMap","data":["#, "{}]}}}"),
        (r#"{"request":{"uid":"u","other":["#, "{}]}}"),
    ];
    let maps = |(before, after): (&str, &str)| {
        let count = (bytes - before.len() - after.len()) / 7;
        format!("{before}{}{after}", r#"{"":0},"#.repeat(count))
    };
    places.into_iter().map(maps).collect()
}

#[tokio::test]
async fn reviews_of_small_maps_do_not_fill_an_injectors_memory() {
    let injector = Injector::start(None).await;
    let injector = &injector;
    for bytes in [4 << 20, 256 << 10] {
        let texts = &small_maps(bytes);
        let attacks = (0..32).map(|number| async move {
            let question = if number % 2 == 0 { "POST /inject" } else { "POST /validate" };
            // Whatever it is answered: it must not be the end.
            let _ = injector.ask(question, &texts[number % texts.len()]).await;
        });
        let honest = async {
            for _ in 0..20 {
                injector.inject(&pod(&json!([]))).await;
            }
        };
        tokio::join!(join_all(attacks), honest);
        assert!(injector.peak() <= MEMORY_MAX, "{bytes}: {} MB", injector.peak());
    }
    injector.inject(&pod(&json!([]))).await;
}

#[tokio::test]
async fn pods_of_one_and_a_half_megabytes_are_injected_within_the_same_memory() {
    let injector = Injector::start(None).await;
    let injector = &injector;
    let one = |value: usize| json!({"name": "VARIABLE", "value": "x".repeat(value)});
    // One that is long, some dozens of ordinary ones, and as many short ones as there can be.
    for value in [1_500_000, 20_000, 200, 1] {
        let count = 1_500_000 / (value + 32);
        injector.inject(&pod(&vec![one(value); count.max(1)].into())).await;
    }
    let (large, small) = (pod(&vec![one(200); 6_000].into()), pod(&json!([one(3)])));
    join_all([&large, &small, &small, &large, &small].map(|pod| injector.inject(pod))).await;
    assert!(injector.peak() <= MEMORY_MAX, "{} MB", injector.peak());
}

#[tokio::test]
async fn silent_callers_make_no_review_late() {
    let injector = Injector::start(None).await;
    let mut silent = Vec::new();
    for _ in 0..3 {
        // More than there are places, all before the honest one.
        for number in 0..200 {
            let mut stream = TcpStream::connect(injector.webhook).await.expect("it listens");
            // The beginning of a handshake that never goes on.
            if number % 2 == 0 {
                let _ = stream.write_all(&[22, 3, 1, 2]).await;
            }
            silent.push(stream);
        }
        injector.inject_in_time(&pod(&json!([]))).await;
    }
    assert!(open_files(injector.process.id()) <= 64 + 64, "{}", open_files(injector.process.id()));
}

#[tokio::test]
async fn a_caller_that_has_sent_a_review_keeps_its_place_among_strangers() {
    let injector = Injector::start(None).await;
    let mut known = injector.call(None).await.expect("it agrees");
    let question = review(&pod(&json!([])));
    assert!(ask(&mut known, "POST /inject", &question).await.expect("open").starts_with("HTTP/1.1 200"));
    let mut strangers = Vec::new();
    for _ in 0..300 {
        let stranger = timeout(WEBHOOK_TIMEOUT, injector.call(None)).await.expect("in time");
        strangers.extend(stranger);
    }
    assert!(ask(&mut known, "POST /inject", &question).await.expect("open").starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn with_an_authority_of_callers_reviews_need_a_certificate_and_probes_none() {
    let callers = TestAuthority::new();
    let injector = Injector::start(Some(&callers)).await;
    let question = review(&pod(&json!([])));
    let refused = injector.ask("POST /inject", &question).await.expect("open");
    assert!(refused.starts_with("HTTP/1.1 403") && refused.contains("certificate"), "{refused}");
    assert!(injector.ask("GET /healthz", "").await.expect("open").starts_with("HTTP/1.1 200"));
    let mut proven = injector.call(Some(&callers.issue("kube-apiserver"))).await.expect("it agrees");
    let answer = ask(&mut proven, "POST /inject", &question).await.expect("open");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer:.400}");
    let stranger = TestAuthority::new().issue("kube-apiserver");
    let unknown = async { ask(&mut injector.call(Some(&stranger)).await?, "POST /inject", &question).await };
    assert!(unknown.await.is_err(), "another authority's is worth nothing");
}

#[tokio::test]
async fn idle_sockets_at_an_injectors_plain_pages_keep_no_probe_out() {
    let injector = Injector::start(None).await;
    let mut idle = Vec::new();
    for _ in 0..800 {
        idle.push(TcpStream::connect(injector.pages).await.expect("it listens"));
    }
    for _ in 0..5 {
        injector.answers("/healthz").await.expect("a probe is answered");
        injector.answers("/metrics").await.expect("a page is answered");
    }
    assert!(open_files(injector.process.id()) <= 64 + 64, "{}", open_files(injector.process.id()));
    injector.inject(&pod(&json!([]))).await;
}
