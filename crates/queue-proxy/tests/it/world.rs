//! The world around a queue-proxy under test.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use link::{PodOrder, Reader, Writer};
use queue_proxy::{Config, ProcessEnd};
use runtime::{Clock, Environment};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, LocalSet};
use tokio_util::sync::CancellationToken;
use vocabulary::{
    Departure, HopKey, LinkAddress, LinkVersion, PodHello, PodSettings, PodWord, QueueProxyAnnouncement,
    Routing, Timestamp,
};

use crate::environment;

/// The proof that the world's activator has.
pub(crate) const HOP_KEY: &str = "the-hop-key";

/// Runs a test on one thread, with an end to its patience.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let patient = async { tokio::time::timeout(Duration::from_secs(60), test).await };
    LocalSet::new().block_on(&runtime, patient).expect("the test hangs");
}

/// Where the autoscaler calls it.
pub(crate) fn link_address(ports: &QueueProxyAnnouncement) -> LinkAddress {
    LinkAddress { token: ports.link_token, ..SocketAddr::from(([127, 0, 0, 1], ports.link)).into() }
}

/// A queue-proxy with its link.
pub(crate) struct Proxy {
    pub(crate) clock: Clock,
    /// The time just before the queue-proxy was started.
    pub(crate) started_at: Timestamp,
    pub(crate) ports: QueueProxyAnnouncement,
    pub(crate) leaving: CancellationToken,
    pub(crate) ended: JoinHandle<ProcessEnd>,
    pub(crate) reader: Reader<PodWord>,
    pub(crate) writer: Writer<PodOrder>,
    pub(crate) hello: PodHello,
}

pub(crate) fn environment(app: u16, changes: &[(&str, &str)]) -> Environment {
    let mut environment = environment::environment(app);
    environment.extend(changes.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())));
    environment
}

/// A queue-proxy that no autoscaler has called yet.
pub(crate) struct UnlinkedProxy {
    clock: Clock,
    started_at: Timestamp,
    pub(crate) ports: QueueProxyAnnouncement,
    leaving: CancellationToken,
    ended: JoinHandle<ProcessEnd>,
}

impl UnlinkedProxy {
    /// Starts it before the app on port `app`.
    pub(crate) fn start(app: u16, changes: &[(&str, &str)]) -> Self {
        let config = Config::read(&environment(app, changes)).expect("legal").value;
        let clock = Clock::start();
        let started_at = clock.now();
        let bound = queue_proxy::bind(config, clock).expect("free ports");
        let ports = bound.announcement();
        let leaving = CancellationToken::new();
        let ended = tokio::task::spawn_local(bound.run_until(leaving.clone()));
        Self { clock, started_at, ports, leaving, ended }
    }

    /// Calls it as the autoscaler would.
    pub(crate) async fn linked(self) -> Proxy {
        let Self { clock, started_at, ports, leaving, ended } = self;
        let (reader, writer) = link::dial(link_address(&ports)).await.expect("it listens");
        let mut proxy = Proxy {
            clock,
            started_at,
            ports,
            leaving,
            ended,
            reader,
            writer,
            hello: PodHello {
                speaks: LinkVersion::CURRENT,
                pod: vocabulary::PodName::new(""),
                boot: vocabulary::BootId(0),
                state: vocabulary::PodState::Unheard,
                detail: String::new(),
                container_concurrency: 0,
                timeouts: vocabulary::RequestTimeouts::default(),
                current_second: 0,
                history: Vec::new(),
            },
        };
        proxy.order(Routing::Direct, None).await;
        proxy.hello = loop {
            if let PodWord::Hello(hello) = proxy.heard().await {
                break hello;
            }
        };
        proxy
    }
}

impl Proxy {
    /// Starts a queue-proxy before the app on port `app`, and calls it as the autoscaler would.
    pub(crate) async fn start(app: u16, changes: &[(&str, &str)]) -> Self {
        UnlinkedProxy::start(app, changes).linked().await
    }

    /// Tells it what an autoscaler tells.
    pub(crate) async fn order(&mut self, routing: Routing, surge_threshold: Option<u32>) {
        self.tell(PodSettings { surge_threshold, routing, ..PodSettings::default() }).await;
    }

    /// Tells it what becomes of its pod.
    pub(crate) async fn departs(&mut self, departure: Departure) {
        self.tell(PodSettings { departure, ..PodSettings::default() }).await;
    }

    async fn tell(&mut self, settings: PodSettings) {
        let hop_keys = vec![HopKey::new(HOP_KEY.to_owned())];
        let order = PodOrder::Settings(PodSettings { hop_keys, ..settings }.into());
        self.writer.send(&order).await.expect("the link is up");
    }

    /// The next message of the queue-proxy on its link.
    pub(crate) async fn heard(&mut self) -> PodWord {
        self.reader.next().await.expect("the link is up").expect("the link is open")
    }

    /// One request on a connection of its own, to the request port.
    pub(crate) async fn get(&self, target: &str, headers: &[(&str, &str)]) -> Answer {
        ask(self.ports.requests, "GET", target, headers, b"").await
    }

    /// A connection to the request port.
    pub(crate) async fn connect(&self) -> TcpStream {
        connect(self.ports.requests).await
    }
}

/// The answer that a client of the queue-proxy got.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    /// The body as it came.
    pub(crate) bytes: Vec<u8>,
    /// The trailers that followed the body.
    pub(crate) trailers: HeaderMap,
    /// Whether the message ended as it said it would.
    pub(crate) is_whole: bool,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("-", |value| value.to_str().expect("ASCII"))
    }

    /// The reason of our own refusals.
    pub(crate) fn reason(&self) -> &str {
        self.header("ebb-error").split(';').next().unwrap_or_default()
    }
}

/// A connection whose end breaks off what is under way: a plain close behind a whole request looks like the
/// end of the sending side, whose client may still read its answer.
async fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
    stream.set_zero_linger().expect("open");
    stream
}

/// One HTTP/1.1 exchange on a connection of its own, read to its end.
pub(crate) async fn ask(
    port: u16,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut stream = connect(port).await;
    // Names other than a program's own get no metrics.
    let host = if target == "/metrics" { "localhost" } else { "h" };
    let mut request = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for (name, value) in headers {
        for part in [name, ": ", value, "\r\n"] {
            request.push_str(part);
        }
    }
    if !body.is_empty() {
        request.push_str("Content-Length: ");
        request.push_str(&body.len().to_string());
        request.push_str("\r\n");
    }
    request += "\r\n";
    stream.write_all(request.as_bytes()).await.expect("open");
    stream.write_all(body).await.expect("open");
    answer(&mut stream).await
}

/// Reads one answer up to the end of the connection.
pub(crate) async fn answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let ended = stream.read_to_end(&mut bytes).await;
    parse(&bytes, ended.is_ok())
}

/// Takes an answer apart; interim ones are skipped.
pub(crate) fn parse(bytes: &[u8], is_closed_cleanly: bool) -> Answer {
    let split = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let Some(split) = split else { panic!("no answer but {:?}", String::from_utf8_lossy(bytes)) };
    let (head, rest) = (String::from_utf8_lossy(&bytes[..split]).into_owned(), &bytes[split + 4..]);
    let mut lines = head.split("\r\n");
    let status: u16 =
        lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status").parse().expect("a number");
    if (100..200).contains(&status) && status != 101 {
        return parse(rest, is_closed_cleanly);
    }
    let headers = header_map(lines);
    let is_chunked = headers.get("transfer-encoding").is_some_and(|value| value == "chunked");
    let length = headers
        .get("content-length")
        .map(|value| value.to_str().expect("ASCII").parse::<usize>().expect("a number"));
    let (body, trailers, is_whole) = match (is_chunked, length) {
        (true, _) => chunks(rest),
        (false, Some(length)) => (rest.to_vec(), HeaderMap::new(), rest.len() == length),
        (false, None) => (rest.to_vec(), HeaderMap::new(), is_closed_cleanly),
    };
    let text = String::from_utf8_lossy(&body).into_owned();
    Answer { status, headers, body: text, bytes: body, trailers, is_whole }
}

fn header_map<'l>(lines: impl Iterator<Item = &'l str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let name = HeaderName::try_from(name).expect("legal");
        headers.append(name, HeaderValue::try_from(value.trim()).expect("legal"));
    }
    headers
}

fn chunks(mut rest: &[u8]) -> (Vec<u8>, HeaderMap, bool) {
    let mut body = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|window| window == b"\r\n") else {
            return (body, HeaderMap::new(), false);
        };
        let size = std::str::from_utf8(&rest[..end]).expect("ASCII");
        let size = usize::from_str_radix(size, 16).expect("a size");
        rest = &rest[end + 2..];
        if size == 0 {
            let trailers = String::from_utf8_lossy(rest).into_owned();
            return (body, header_map(trailers.split("\r\n")), trailers.ends_with("\r\n"));
        }
        if rest.len() < size + 2 {
            body.extend_from_slice(&rest[..rest.len().min(size)]);
            return (body, HeaderMap::new(), false);
        }
        body.extend_from_slice(&rest[..size]);
        rest = &rest[size + 2..];
    }
}

/// What the app answers with.
pub(crate) type AppBody = UnsyncBoxBody<Bytes, std::io::Error>;
/// What the app does with a request.
pub(crate) type AppAnswer = std::pin::Pin<Box<dyn Future<Output = Response<AppBody>>>>;

/// A small app that speaks HTTP/1.1 and HTTP/2, counts what it does and remembers what it saw.
pub(crate) struct App {
    pub(crate) port: u16,
    pub(crate) state: Rc<AppState>,
}

#[derive(Default)]
pub(crate) struct AppState {
    /// The number of requests that the app has seen so far.
    pub(crate) seen: Cell<u32>,
    /// Requests right now, and the most there ever were.
    pub(crate) running: Cell<u32>,
    pub(crate) running_max: Cell<u32>,
    /// The head of the last request.
    pub(crate) last: RefCell<Option<http::request::Parts>>,
}

impl AppState {
    /// A header that the app saw on the last request.
    pub(crate) fn saw(&self, name: &str) -> String {
        let last = self.last.borrow();
        let head = last.as_ref().expect("the app saw a request");
        let values: Vec<&str> =
            head.headers.get_all(name).iter().map(|value| value.to_str().expect("ASCII")).collect();
        if values.is_empty() { "-".to_owned() } else { values.join(" | ") }
    }
}

struct Running(Rc<AppState>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.set(self.0.running.get() - 1);
    }
}

impl App {
    /// An app that answers as `answer` says.
    pub(crate) async fn start(answer: impl Fn(Request<Incoming>) -> AppAnswer + 'static) -> Self {
        Self::start_at("127.0.0.1:0", answer).await
    }

    /// The same on another address.
    pub(crate) async fn start_at(
        address: &str,
        answer: impl Fn(Request<Incoming>) -> AppAnswer + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.expect("a port of this machine");
        let port = listener.local_addr().expect("bound").port();
        let state = Rc::new(AppState::default());
        let answer = Rc::new(answer);
        let app_state = Rc::clone(&state);
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).expect("open");
                let (answer, state) = (Rc::clone(&answer), Rc::clone(&app_state));
                let service = service_fn(move |request: Request<Incoming>| {
                    state.seen.set(state.seen.get() + 1);
                    state.running.set(state.running.get() + 1);
                    state.running_max.set(state.running_max.get().max(state.running.get()));
                    let running = Running(Rc::clone(&state));
                    let (head, body) = request.into_parts();
                    let upgrade = head.extensions.get::<hyper::upgrade::OnUpgrade>().cloned();
                    let mut copy = Request::new(());
                    *copy.method_mut() = head.method.clone();
                    *copy.uri_mut() = head.uri.clone();
                    *copy.version_mut() = head.version;
                    *copy.headers_mut() = head.headers.clone();
                    state.last.replace(Some(copy.into_parts().0));
                    let mut request = Request::from_parts(head, body);
                    if let Some(upgrade) = upgrade {
                        request.extensions_mut().insert(upgrade);
                    }
                    let answering = answer(request);
                    async move {
                        let response = answering.await;
                        drop(running);
                        Ok::<_, std::convert::Infallible>(response)
                    }
                });
                tokio::task::spawn_local(async move {
                    let builder = hyper_util::server::conn::auto::Builder::new(LocalExecutor);
                    let _ = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { port, state }
    }

    /// An app that says hello.
    pub(crate) async fn hello() -> Self {
        Self::start(|_| Box::pin(async { text(200, "hello") })).await
    }
}

/// An executor that runs hyper's tasks on the test's thread.
#[derive(Clone, Copy)]
pub(crate) struct LocalExecutor;

impl<Task: Future<Output = ()> + 'static> hyper::rt::Executor<Task> for LocalExecutor {
    fn execute(&self, task: Task) {
        tokio::task::spawn_local(task);
    }
}

pub(crate) fn text(status: u16, body: &'static str) -> Response<AppBody> {
    let body = Full::new(Bytes::from_static(body.as_bytes())).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
    response
}

/// A body of these frames, each after its wait in milliseconds.
pub(crate) fn streamed(frames: &'static [(u64, &'static str)]) -> AppBody {
    let frames = futures_util::stream::unfold(frames.iter(), |mut frames| async {
        let (wait, text) = frames.next()?;
        tokio::time::sleep(Duration::from_millis(*wait)).await;
        let frame = http_body::Frame::data(Bytes::from_static(text.as_bytes()));
        Some((Ok(frame), frames))
    });
    http_body_util::StreamBody::new(frames).boxed_unsync()
}

/// An app that follows a script of bytes: for what no well-behaved server does. Each connection reads one
/// request head and then gets `script`.
pub(crate) async fn scripted<Script>(script: impl Fn(TcpStream, String) -> Script + 'static) -> u16
where
    Script: Future<Output = ()> + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    tokio::task::spawn_local(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let Some(head) = read_head(&mut stream).await else { continue };
            tokio::task::spawn_local(script(stream, head));
        }
    });
    port
}

/// Reads up to an empty line.
pub(crate) async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// Reads until `text` has come.
pub(crate) async fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut bytes = Vec::new();
    while !String::from_utf8_lossy(&bytes).contains(text) {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await.expect("open");
        assert!(read > 0, "closed after {:?}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&buffer[..read]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// An HTTP/2 client on a connection of its own.
pub(crate) async fn http2(port: u16) -> hyper::client::conn::http2::SendRequest<AppBody> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
    let (sender, connection) =
        hyper::client::conn::http2::handshake(LocalExecutor, TokioIo::new(stream)).await.expect("HTTP/2");
    tokio::task::spawn_local(async move {
        let _ = connection.await;
    });
    sender
}

/// Waits until `condition` holds; fails the test with `what` if it does not for too long.
pub(crate) async fn eventually(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..2000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never: {what}");
}

/// What the queue-proxy's page of metrics says in that line.
pub(crate) async fn metric(proxy: &Proxy, name: &str) -> String {
    let page = ask(proxy.ports.metrics, "GET", "/metrics", &[], b"").await.body;
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
    line.unwrap_or_else(|| panic!("{name} is not in {page}"))
}
