use std::future::Future;
use std::net::{Shutdown, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::time::SystemTime;

use bytes::Bytes;
use http::Version;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use protocol::Response;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use socket2::SockRef;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::LocalSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;
use crate::body::Body;
use crate::certificates::CertificateFiles;
use crate::connection::Connection;
use crate::connection::drain::Drain;
use crate::server::{Abort, ServerLimits, Service, serve_tls};

/// More than everything on the way holds.
const LONG: usize = 8 << 20;

struct LongAnswers;

impl Service for LongAnswers {
    type Body = Body;

    fn call(
        self: Rc<Self>,
        _request: Request<Body>,
        connection: Rc<Connection>,
    ) -> impl Future<Output = Result<Response<Body>, Abort>> + 'static {
        assert!(connection.is_encrypted());
        std::future::ready(Ok(Response::new(Body::full(vec![b'x'; LONG]))))
    }
}

fn files(folder: &Path) -> CertificateFiles {
    CertificateFiles { certificate: folder.join("certificate.pem"), key: folder.join("key.pem") }
}

fn identity(folder: &Path) -> CertificateFiles {
    let files = files(folder);
    write_identity(&files, &["localhost"]);
    files
}

fn write_identity(files: &CertificateFiles, hosts: &[&str]) {
    let key = KeyPair::generate().expect("a key");
    let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
    let parameters = CertificateParams::new(hosts).expect("names");
    let certificate = parameters.self_signed(&key).expect("a certificate");
    std::fs::write(&files.certificate, certificate.pem()).expect("the folder can be written");
    std::fs::write(&files.key, key.serialize_pem()).expect("the folder can be written");
}

#[expect(clippy::disallowed_methods, reason = "certificates are checked against the real time")]
fn now() -> SystemTime {
    SystemTime::now()
}

/// A server with long answers, what it presents, and its life.
struct Server {
    folder: TempDir,
    address: SocketAddr,
    drain: Drain,
}

fn serve() -> Server {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let files = identity(folder.path());
    let now = now();
    let certificates = Certificates::read(std::slice::from_ref(&files), now).expect("a pair");
    assert!(certificates.cover("localhost") && !certificates.cover("other") && certificates.expires() > now);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let tls = Tls::new(Arc::new(certificates), FailedHandshakes::default());
    let drain = Drain::default();
    let serving = serve_tls(listener, Rc::new(LongAnswers), drain.clone(), ServerLimits::default(), tls);
    tokio::task::spawn_local(serving);
    Server { folder, address, drain }
}

/// A client of such a server that speaks this within TLS.
async fn connect(protocol: &[u8]) -> TlsStream<TcpStream> {
    let Server { folder, address, .. } = serve();
    let files = files(folder.path());
    let mut roots = RootCertStore::empty();
    let own = CertificateDer::from_pem_file(&files.certificate).expect("it was written");
    roots.add(own).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.expect("ring speaks them");
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(address).await.expect("it listens");
    let name = "localhost".try_into().expect("a name");
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("hands are shaken");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol));
    stream
}

#[tokio::test(flavor = "current_thread")]
async fn a_long_answer_arrives_whole_and_its_end_is_told_from_a_cut() {
    for version in ["HTTP/1.1", "HTTP/1.0"] {
        let asking = async {
            let mut stream = connect(b"http/1.1").await;
            let request = format!("GET / {version}\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.expect("open");
            let (mut all, mut piece) = (Vec::new(), vec![0; 10_000]);
            // Without a word about its end this would fail.
            while let Ok(length @ 1..) = stream.read(&mut piece).await {
                all.extend_from_slice(&piece[..length]);
                tokio::task::yield_now().await;
            }
            let end = stream.read(&mut piece).await;
            assert_eq!(end.expect("it ended in order"), 0, "{version}");
            let head = all.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
            assert_eq!(all.len() - head, LONG, "{version}");
        };
        LocalSet::new().run_until(asking).await;
    }
}

/// The client announces its end within TLS (`close_notify`), or ends the sending side of the TCP connection
/// alone.
#[tokio::test(flavor = "current_thread")]
async fn a_client_that_ends_its_sending_side_gets_the_whole_answer() {
    for is_announced in [true, false] {
        let asking = async {
            let mut stream = connect(b"http/1.1").await;
            stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("open");
            if is_announced {
                stream.shutdown().await.expect("open");
            } else {
                stream.flush().await.expect("open");
                SockRef::from(stream.get_ref().0).shutdown(Shutdown::Write).expect("open");
            }
            let mut all = Vec::new();
            stream.read_to_end(&mut all).await.expect("the connection ends in order");
            assert!(
                all.starts_with(b"HTTP/1.1 200 OK\r\n") && all.len() > LONG,
                "{is_announced}: {}",
                all.len()
            );
        };
        LocalSet::new().run_until(asking).await;
    }
}

#[tokio::test(flavor = "current_thread")]
async fn http_2_is_spoken_within_tls() {
    let asking = async {
        let stream = connect(b"h2").await;
        let handshake =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.expect("HTTP/2 is spoken");
        tokio::task::spawn_local(connection);
        let request = http::Request::get("https://localhost/").version(Version::HTTP_2);
        let request = request.body(Empty::<Bytes>::new()).expect("legal");
        let response = sender.send_request(request).await.expect("an answer");
        let body = response.into_body().collect().await.expect("all of it");
        assert_eq!(body.to_bytes().len(), LONG);
    };
    LocalSet::new().run_until(asking).await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_silent_client_counts_as_resting_and_is_closed_on_demand() {
    let waiting = async {
        let server = serve();
        let mut silent = TcpStream::connect(server.address).await.expect("it listens");
        while server.drain.resting() == 0 {
            tokio::task::yield_now().await;
        }
        server.drain.close_idle();
        assert_eq!(silent.read(&mut [0]).await.expect("in order"), 0);
    };
    LocalSet::new().run_until(waiting).await;
}

#[test]
fn a_request_belongs_elsewhere_if_another_certificate_covers_its_host_and_the_shown_one_does_not() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let pair = |name: &str| CertificateFiles {
        certificate: folder.path().join(format!("{name}.pem")),
        key: folder.path().join(format!("{name}-key.pem")),
    };
    let files = [pair("name"), pair("addresses")];
    write_identity(&files[0], &["localhost"]);
    write_identity(&files[1], &["::1", "127.0.0.1"]);
    let certificates = Arc::new(Certificates::read(&files, now()).expect("pairs"));
    let shown = PresentedCertificate::to(None, &certificates);
    for (host, expected) in
        [("localhost", false), ("[::1]", true), ("127.0.0.1", true), ("other", false), ("", false)]
    {
        assert_eq!(shown.misdirects(host), expected, "{host}");
    }
    // What was shown stays; what another connection would be shown is looked at as it is by then.
    let single = Arc::new(Certificates::read(&files[..1], now()).expect("a pair"));
    let shown = PresentedCertificate::to(None, &single);
    assert!(!shown.misdirects("127.0.0.1"));
    write_identity(&files[0], &["localhost", "127.0.0.1"]);
    single.read_again(&files[..1], now()).expect("a pair");
    assert!(shown.misdirects("127.0.0.1") && !shown.misdirects("localhost"));
}

#[test]
fn a_request_over_tls_is_marked_and_travels_on_without_tls() {
    let request = http::Request::builder().uri("https://h:8443/a?b").header("x-forwarded-proto", "http");
    let mut request = Request::from(request.body(()).expect("legal"));
    note_tls(&mut request);
    assert_eq!(request.headers()["x-forwarded-proto"], "https");
    assert_eq!(request.uri(), "http://h:8443/a?b");
    let mut request = Request::from(http::Request::builder().uri("/a").body(()).expect("legal"));
    note_tls(&mut request);
    assert_eq!(request.uri(), "/a");
}

#[tokio::test(flavor = "current_thread")]
async fn a_client_keeps_to_the_protocol_that_it_agreed_on() {
    let http1 = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (agreed, other) in [(&b"h2"[..], http1), (b"http/1.1", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")] {
        let asking = async {
            let mut stream = connect(agreed).await;
            stream.write_all(other.as_bytes()).await.expect("open");
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.expect("it ends in order");
            let answer = String::from_utf8_lossy(&answer);
            assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("(ALPN)"), "{answer}");
        };
        LocalSet::new().run_until(asking).await;
    }
}
