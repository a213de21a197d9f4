//! Activator and queue-proxy, one behind the other: what the outer lets through, the inner takes, and what an
//! app refuses is asked for with patience.

#[path = "../../../../tests/src/queue_proxy.rs"]
mod environment;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Empty, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use queue_proxy::Config;
use runtime::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};
use vocabulary::{
    Assignment, HeadSizeLimit, HopKey, PodSettings, PodState, PodWord, RequestTimeouts, Routing,
};

use crate::world::{Autoscaler, HOP_KEY, HOST, World, assignment, within};

/// The limits of the head of a message, as documented.
const HEADERS_MAX: usize = 100;
const HEAD_BYTES_MAX: usize = 128 * 1024;

/// Activator, queue-proxy and the links of both.
struct Hops {
    world: World,
    autoscaler: Autoscaler,
    assigned: Assignment,
    link: (::link::Reader<PodWord>, ::link::Writer<::link::PodOrder>),
    _queue_proxy: DropGuard,
}

impl Hops {
    async fn before(app: SocketAddr) -> Self {
        Self::with_timeouts(app, RequestTimeouts::default()).await
    }

    async fn with_timeouts(app: SocketAddr, timeouts: RequestTimeouts) -> Self {
        Self::told_of("a", app, timeouts).await
    }

    /// The activator is told that this pod is where in truth pod a is.
    async fn told_of(pod: &str, app: SocketAddr, timeouts: RequestTimeouts) -> Self {
        let (ports, stop) = start_queue_proxy(app);
        let (reader, mut writer) = ::link::dial(vocabulary::LinkAddress {
            token: ports.link_token,
            ..SocketAddr::from(([127, 0, 0, 1], ports.link)).into()
        })
        .await
        .unwrap();
        let hop_keys = vec![HopKey::new(HOP_KEY.to_owned())];
        let settings = ::link::PodOrder::Settings(
            PodSettings {
                surge_threshold: None,
                routing: Routing::ThroughActivator,
                hop_keys,
                ..PodSettings::default()
            }
            .into(),
        );
        writer.send(&settings).await.unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], ports.requests));
        within("the hop key is believed", async { while !is_believed(address).await {} }).await;
        let world = World::start();
        let mut assigned = assignment(1, &[(pod, address, PodState::Ready)]);
        assigned.timeouts = timeouts;
        let autoscaler = world.synced(std::slice::from_ref(&assigned)).await;
        Self { world, autoscaler, assigned, link: (reader, writer), _queue_proxy: stop }
    }

    /// Both are told how large heads may be from now on.
    async fn limit_heads(&mut self, limit: HeadSizeLimit) {
        self.assigned.version.counter += 1;
        let version = self.assigned.version;
        let hop_keys = vec![HopKey::new(HOP_KEY.to_owned())];
        let settings = PodSettings { version, hop_keys, head_size_limit: limit, ..PodSettings::default() };
        self.link.1.send(&::link::PodOrder::Settings(settings.into())).await.unwrap();
        let taken_over = async {
            while self.link.0.next().await.unwrap() != Some(PodWord::SettingsAcknowledged(version)) {}
        };
        within("the pod has the limit", taken_over).await;
        self.assigned.head_size_limit = limit;
        self.autoscaler.assign(&self.assigned).await;
    }

    /// What a client gets for these bytes, to the end of the connection.
    async fn raw(&self, request: &str) -> String {
        raw(self.world.address, request).await
    }
}

async fn raw(to: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(to).await.unwrap();
    let exchange = async {
        // Who is refused may be told so before everything is sent.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    };
    within("the answer", exchange).await
}

/// A queue-proxy in a thread of its own, as its tasks cannot leave theirs.
fn start_queue_proxy(app: SocketAddr) -> (vocabulary::QueueProxyAnnouncement, DropGuard) {
    let mut environment = environment::environment(app.port());
    environment.insert("SERVING_POD".to_owned(), "a".to_owned());
    let config = Config::read(&environment).unwrap().value;
    let leaving = CancellationToken::new();
    let stop = leaving.clone().drop_guard();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let bound = queue_proxy::bind(config, Clock::start()).unwrap();
            sender.send(bound.announcement()).unwrap();
            bound.run_until(leaving).await
        })
    });
    (receiver.recv().unwrap(), stop)
}

/// Whether a queue-proxy has heard of the hop key.
async fn is_believed(address: SocketAddr) -> bool {
    let probe = format!(
        "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nK-Network-Probe: probe\r\nK-Network-Hash: x\r\nebb-hop-key: {HOP_KEY}\r\n\r\n"
    );
    raw(address, &probe).await.contains("k-network-hash: x")
}

/// An app that answers each HTTP/1.1 request with `head` and the number of headers that it saw.
async fn http1_app(head: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let head: Arc<str> = head.into();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let head = Arc::clone(&head);
            tokio::spawn(async move {
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                stream.write_all(head.as_bytes()).await.unwrap();
            });
        }
    });
    address
}

const PLAIN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

/// A request with so many headers, `Host` among them, that is no longer than need be.
fn request_with_headers(count: usize) -> String {
    format!("GET / HTTP/1.1\r\nHost:{HOST}\r\nConnection:close\r\n{}\r\n", "a:b\r\n".repeat(count - 2))
}

/// A request whose head has so many bytes, some of which our hops add to.
fn request_of_bytes(bytes: usize) -> String {
    let head = format!(
        "GET / HTTP/1.1\r\nHost:{HOST}\r\nConnection:close\r\nX-Forwarded-For:{}\r\nX-Forwarded-Proto:https\r\n",
        ",".repeat(4_000)
    );
    let filling = bytes - head.len() - "a:\r\n\r\n".len();
    format!("{head}a:{}\r\n\r\n", "b".repeat(filling))
}

/// Addresses of pods are given again: what was sent to the former must not meet the app of the next.
#[tokio::test]
async fn a_request_for_a_pod_whose_address_is_anothers_by_now_waits_for_its_own() {
    let timeouts =
        RequestTimeouts { request: Some(Duration::from_millis(300)), ..RequestTimeouts::default() };
    let hops = Hops::told_of("b", http1_app(PLAIN.to_owned()).await, timeouts).await;
    let request = format!("GET / HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n");
    let answer = hops.raw(&request).await;
    assert!(answer.starts_with("HTTP/1.1 504 ") && answer.contains("ebb-error: no-ready-pod"), "{answer}");
}

#[tokio::test]
async fn a_request_head_within_the_limits_passes_both_hops() {
    let hops = Hops::before(http1_app(PLAIN.to_owned()).await).await;
    for (request, status) in [
        (request_with_headers(HEADERS_MAX), "200"),
        (request_with_headers(HEADERS_MAX + 1), "431"),
        (request_of_bytes(HEAD_BYTES_MAX), "200"),
        (request_of_bytes(HEAD_BYTES_MAX + 1), "431"),
    ] {
        let answer = hops.raw(&request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {answer}");
    }
}

#[tokio::test]
async fn an_answer_head_within_the_limits_passes_both_hops() {
    let counted = |count: usize| {
        format!(
            "HTTP/1.1 200 OK\r\nContent-Length:2\r\nConnection:close\r\n{}\r\nok",
            "a:b\r\n".repeat(count - 2)
        )
    };
    let long = |bytes: usize| {
        let around = "HTTP/1.1 200 OK\r\nContent-Length:2\r\nConnection:close\r\na:\r\n\r\n".len();
        format!(
            "HTTP/1.1 200 OK\r\nContent-Length:2\r\nConnection:close\r\na:{}\r\n\r\nok",
            "b".repeat(bytes - around)
        )
    };
    for (answer, status) in [
        (counted(HEADERS_MAX), "200"),
        (counted(HEADERS_MAX + 1), "502"),
        (long(HEAD_BYTES_MAX), "200"),
        (long(HEAD_BYTES_MAX + 1), "502"),
    ] {
        let hops = Hops::before(http1_app(answer).await).await;
        let request = format!("GET / HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n");
        let got = hops.raw(&request).await;
        assert!(got.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {}", &got[..got.len().min(500)]);
        if status == "200" {
            assert!(got.ends_with("\r\n\r\nok"));
        } else {
            assert!(
                got.contains("the head is longer than 131072 bytes or has more than 100 headers"),
                "{got}"
            );
        }
    }
}

/// An app that answers each HTTP/2 request with these headers.
async fn http2_app(headers: Vec<(&'static str, String)>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let headers = headers.clone();
            let service = hyper::service::service_fn(move |_request| {
                let mut response = Response::new(Full::<Bytes>::from("ok"));
                for (name, value) in &headers {
                    response.headers_mut().append(*name, value.parse().unwrap());
                }
                async { Ok::<_, std::convert::Infallible>(response) }
            });
            tokio::spawn(async move {
                let mut server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                server.max_header_list_size(1 << 20).auto_date_header(false);
                let _ = server.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    address
}

/// What a client gets over HTTP/2 for a request with these headers.
async fn http2_get(hops: &Hops, headers: &[(&'static str, String)]) -> (u16, usize) {
    let stream = TcpStream::connect(hops.world.address).await.unwrap();
    let mut client = http2::Builder::new(TokioExecutor::new());
    let shaken = client.max_header_list_size(1 << 20).handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.unwrap();
    tokio::spawn(connection);
    let uri = format!("http://{HOST}/");
    let mut request = Request::get(uri).version(Version::HTTP_2).body(Empty::<Bytes>::new()).unwrap();
    for (name, value) in headers {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    let response = within("the answer", sender.send_request(request)).await.unwrap();
    let (status, count) = (response.status().as_u16(), response.headers().len());
    within("the body", response.into_body().collect()).await.unwrap();
    (status, count)
}

/// What a field costs (RFC 9113 §10.5.1).
fn cost(name: &str, value: &str) -> usize {
    name.len() + value.len() + 32
}

#[tokio::test]
async fn over_http2_too_what_the_outer_hop_lets_through_the_inner_takes() {
    let hops = Hops::before(http2_app(Vec::new()).await).await;
    let target = [(":method", "GET"), (":scheme", "http"), (":authority", HOST), (":path", "/")];
    let target: usize = target.iter().map(|(name, value)| cost(name, value)).sum();
    let forwarded = ",".repeat(4_000);
    let room = HEAD_BYTES_MAX - target - cost("x-forwarded-for", &forwarded) - cost("a", "");
    for (more, status) in [(0, 200), (1, 431)] {
        let headers = [("x-forwarded-for", forwarded.clone()), ("a", "b".repeat(room + more))];
        assert_eq!(http2_get(&hops, &headers).await.0, status, "{more}");
    }
    for (count, status) in [(HEADERS_MAX, 200), (HEADERS_MAX + 1, 431)] {
        let headers = vec![("a", "b".to_owned()); count];
        assert_eq!(http2_get(&hops, &headers).await.0, status, "{count}");
    }
}

#[tokio::test]
async fn over_http2_too_what_the_inner_hop_lets_through_of_an_answer_the_outer_takes() {
    let fixed = cost(":status", "200") + cost("content-length", "2") + cost("a", "");
    for (more, status) in [(0, 200), (1, 502)] {
        let headers = vec![("a", "b".repeat(HEAD_BYTES_MAX - fixed + more))];
        let hops = Hops::before(http2_app(headers).await).await;
        assert_eq!(http2_get(&hops, &[]).await.0, status, "{more}");
    }
    // Its length is one more.
    for (count, status) in [(HEADERS_MAX - 1, 200), (HEADERS_MAX, 502)] {
        let hops = Hops::before(http2_app(vec![("a", "b".to_owned()); count]).await).await;
        assert_eq!(http2_get(&hops, &[]).await.0, status, "{count}");
    }
}

/// In both directions, over both protocols, on connections that were there before the change.
#[tokio::test]
async fn a_new_limit_of_heads_holds_at_both_hops_at_once() {
    let answer = |bytes: usize| {
        let head = "HTTP/1.1 200 OK\r\nContent-Length:2\r\nConnection:close\r\na:";
        format!("{head}{}\r\n\r\nok", "b".repeat(bytes - head.len() - 4))
    };
    let mut large = Hops::before(http1_app(answer(200_000)).await).await;
    let mut small = Hops::before(http1_app(PLAIN.to_owned()).await).await;
    let mut http2 = Hops::before(http2_app(vec![("a", "b".repeat(190_000))]).await).await;
    let get = format!("GET / HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n");
    let cookie = |bytes: usize| [("cookie", "c".repeat(bytes))];
    for (kib, has_room) in [(128, false), (256, true), (64, false)] {
        let limit = HeadSizeLimit::new(kib << 10).unwrap();
        for hops in [&mut large, &mut small, &mut http2] {
            hops.limit_heads(limit).await;
        }
        let status = |refusal: &'static str| if has_room { "200" } else { refusal };
        let answers = [
            (small.raw(&request_of_bytes(250_000)).await, status("431")),
            (large.raw(&get).await, status("502")),
        ];
        for (answer, status) in answers {
            let begin = &answer[..answer.len().min(500)];
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{kib}: {begin}");
            let bytes = limit.bytes();
            let names_all = begin.contains(&format!("er than {bytes} bytes"))
                && (status == "502" || begin.contains("head-size-limit of ConfigMap config-autoscaler"));
            assert_eq!(names_all, !has_room, "{begin}");
        }
        // The app's answers have a head of 190 KB.
        assert_eq!(http2_get(&http2, &cookie(100)).await.0, if has_room { 200 } else { 502 }, "{kib}");
        assert_eq!(http2_get(&http2, &cookie(260_000)).await.0, if has_room { 200 } else { 431 }, "{kib}");
    }
}

/// An app that refuses so many streams and answers the next ones; counts what it was asked.
async fn refusing_app(refusals: usize) -> (SocketAddr, Arc<AtomicUsize>) {
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    const ACK: u8 = 1;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let asked = Arc::clone(&counted);
            tokio::spawn(async move {
                let mut preface = [0; 24];
                stream.read_exact(&mut preface).await?;
                stream.write_all(&[0, 0, 0, SETTINGS, 0, 0, 0, 0, 0]).await?;
                loop {
                    let mut head = [0; 9];
                    stream.read_exact(&mut head).await?;
                    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
                    let mut payload = vec![0; usize::try_from(length).unwrap()];
                    stream.read_exact(&mut payload).await?;
                    let (kind, flags, id) = (head[3], head[4], &head[5..]);
                    if kind == SETTINGS && flags & ACK == 0 {
                        stream.write_all(&[0, 0, 0, SETTINGS, ACK, 0, 0, 0, 0]).await?;
                    } else if kind == HEADERS && asked.fetch_add(1, Ordering::SeqCst) < refusals {
                        // RST_STREAM with REFUSED_STREAM.
                        stream.write_all(&[&[0, 0, 4, 3, 0], id, &[0, 0, 0, 7]].concat()).await?;
                    } else if kind == HEADERS {
                        // `:status: 200`, and that is all.
                        stream.write_all(&[&[0, 0, 1, HEADERS, 5], id, &[0x88]].concat()).await?;
                    }
                }
                #[expect(unreachable_code, reason = "it says which errors end the connection")]
                Ok::<(), std::io::Error>(())
            });
        }
    });
    (address, asked)
}

#[tokio::test]
async fn an_app_that_refuses_for_a_while_is_asked_again() {
    let (app, asked) = refusing_app(9).await;
    let hops = Hops::before(app).await;
    assert_eq!(http2_get(&hops, &[]).await.0, 200);
    assert_eq!(asked.load(Ordering::SeqCst), 10);
}

#[tokio::test]
async fn an_app_that_always_refuses_is_asked_at_growing_distances_and_its_client_told() {
    let (app, asked) = refusing_app(usize::MAX).await;
    let hops = Hops::before(app).await;
    let caller = crate::world::Caller::http2(&hops.world);
    let got = caller.get("/").await;
    assert_eq!(got.status, 502);
    let expected =
        "upstream-reset; detail=\"the app refused the request (REFUSED_STREAM) in each of 12 attempts, ";
    assert!(got.header("ebb-error").starts_with(expected), "{got:?}");
    assert_eq!(got.header("ebb-not-started"), "");
    // The queue-proxy asks twice, in case that what was in the way has gone.
    assert_eq!(asked.load(Ordering::SeqCst), 24);
}

#[tokio::test]
async fn a_client_whose_time_is_up_hears_of_the_refusals_until_then() {
    let (app, _) = refusing_app(usize::MAX).await;
    let timeouts = RequestTimeouts { request: Some(Duration::from_millis(300)), ..Default::default() };
    let hops = Hops::with_timeouts(app, timeouts).await;
    let got = crate::world::Caller::http2(&hops.world).get("/").await;
    assert_eq!(got.status, 504);
    let error = got.header("ebb-error");
    assert!(
        error.starts_with("no-ready-pod; detail=\"timeoutSeconds of default/service/hello is 300ms"),
        "{error}"
    );
    assert!(error.contains("the app refused the request (REFUSED_STREAM)"), "{error}");
}

/// A queue-proxy refuses streams when it has as many as it takes. One that refuses every stream is no reason
/// to ask it for as long as a request may take.
#[tokio::test]
async fn pods_that_refuse_every_stream_are_asked_twenty_times() {
    let (pod, asked) = refusing_app(usize::MAX).await;
    let world = World::start();
    let _autoscaler = world.synced(&[assignment(1, &[("a", pod, PodState::Ready)])]).await;
    let got = crate::world::Caller::http2(&world).get("/").await;
    assert_eq!(got.status, 502);
    let expected = "upstream-reset; detail=\"pods refused the stream of the request (REFUSED_STREAM) in each of 20 attempts";
    assert!(got.header("ebb-error").starts_with(expected), "{got:?}");
    // Each attempt asks twice, in case that what was in the way has gone.
    assert_eq!(asked.load(Ordering::SeqCst), 40);
}

#[tokio::test]
async fn a_pod_that_refuses_streams_for_a_while_is_asked_until_it_accepts_one() {
    let (pod, asked) = refusing_app(20).await;
    let world = World::start();
    let _autoscaler = world.synced(&[assignment(1, &[("a", pod, PodState::Ready)])]).await;
    assert_eq!(crate::world::Caller::http2(&world).get("/").await.status, 200);
    assert_eq!(asked.load(Ordering::SeqCst), 21);
}
