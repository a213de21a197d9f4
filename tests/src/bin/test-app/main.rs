//! The app that the suites put behind ebb: well-behaved by default, badly on request.
//!
//! It listens on `$PORT` (several with commas between them; `--bind` says at which address) and answers `/`
//! (`?sleep=MS` waits first, `?burn=MS` uses that much CPU time) with its process id and the requests it
//! holds in headers; a request body comes back as it was; `/times` says when it listened and was asked.
//! `/fail-probes` and `/die` make it misbehave at run time; flags do so from the start.
//!
//! What goes on while a response is under way is in [`streams`] and [`websocket`]; what no HTTP library would
//! send is in [`raw`], which is the whole app when it is started with `--raw`; what arrived to the letter,
//! with `--record FILE`, is in [`recorded`]; when requests began and ended, with `--journal FOLDER`, in
//! [`journal`]. `?until=FILE` waits until there is such a file.

mod journal;
mod raw;
mod recorded;
mod streams;
mod tls;
mod websocket;

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use journal::Journal;
use nix::time::{ClockId, clock_gettime};
use tests::bench::clock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

/// The body of an answer, whatever it comes from. An error breaks the answer off.
type Body = UnsyncBoxBody<Bytes, hyper::Error>;

/// The ways in which the app misbehaves on request.
#[derive(Clone, Debug, Default)]
struct Behaviour {
    start_delay: Duration,
    /// What it costs a core before it listens.
    start_work: Duration,
    exit_at_once: Option<u8>,
    /// Waits and does nothing else, as hooks do.
    pause: Option<Duration>,
    /// Says whether something listens on this port of its own, and does nothing else, as probes do.
    connects_to: Option<u16>,
    on_term: Ending,
    never_ready: bool,
    hang_after: Option<usize>,
    /// Answers with prepared bytes only.
    raw: bool,
    /// Notes every request in this file
    record: Option<PathBuf>,
    /// Writes down there when requests begin and end.
    journal: Option<PathBuf>,
    /// Speaks this protocol and refuses every other
    only: Option<Spoken>,
    /// Speaks TLS at one more port.
    tls: Option<tls::OwnTls>,
    /// Loopback, where nothing else is said.
    bind: Option<IpAddr>,
}

#[derive(Clone, Copy, Debug)]
enum Spoken {
    Http1,
    Http2,
}

/// What becomes of it when it is told to end.
#[derive(Clone, Copy, Debug, Default)]
enum Ending {
    #[default]
    AtOnce,
    /// What it has begun is answered first.
    Finished,
    /// The app ignores TERM and must be killed.
    Never,
}

/// Requests that are not answered yet.
static IN_FLIGHT: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug, Default)]
struct State {
    behaviour: Behaviour,
    served: AtomicUsize,
    probes_fail: AtomicBool,
    events: streams::Streams,
    journal: Option<Journal>,
    /// When it began to listen.
    listening: Duration,
}

fn main() -> ExitCode {
    let behaviour = Behaviour::from_args(std::env::args().skip(1));
    if let Some(code) = behaviour.exit_at_once {
        eprintln!("told to exit with {code}");
        return ExitCode::from(code);
    }
    if let Some(pause) = behaviour.pause {
        std::thread::sleep(pause);
        return ExitCode::SUCCESS;
    }
    if let Some(port) = behaviour.connects_to {
        let connected = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port));
        return if connected.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let enough = clock::worked() + behaviour.start_work;
    while clock::worked() < enough {}
    let ports = std::env::var("PORT").unwrap_or_default();
    let ports: Vec<u16> =
        ports.split(',').map(|port| port.parse().expect("$PORT is a port number, or several")).collect();
    let address = behaviour.bind.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let end = end(&behaviour);
        // Cancelling the service is how this app ends.
        tokio::select! {
            () = serve(address, &ports, behaviour) => {}
            () = end => {}
        }
    });
    ExitCode::SUCCESS
}

impl Behaviour {
    fn from_args(mut args: impl Iterator<Item = String>) -> Self {
        let mut behaviour = Self::default();
        while let Some(flag) = args.next() {
            let mut number =
                || args.next().and_then(|value| value.parse::<u32>().ok()).expect("the flag takes a number");
            match flag.as_str() {
                "--start-delay-ms" => behaviour.start_delay = Duration::from_millis(number().into()),
                "--start-work-ms" => behaviour.start_work = Duration::from_millis(number().into()),
                "--exit" => behaviour.exit_at_once = u8::try_from(number()).ok(),
                "--pause-ms" => behaviour.pause = Some(Duration::from_millis(number().into())),
                "--connects-to" => behaviour.connects_to = u16::try_from(number()).ok(),
                "--ignore-term" => behaviour.on_term = Ending::Never,
                "--finish" => behaviour.on_term = Ending::Finished,
                "--never-ready" => behaviour.never_ready = true,
                "--raw" => behaviour.raw = true,
                "--only" => behaviour.only = Some(Spoken::named(&args.next().unwrap_or_default())),
                "--bind" => behaviour.bind = args.next().and_then(|address| address.parse().ok()),
                "--tls-port" => {
                    behaviour.tls.get_or_insert_default().port =
                        number().try_into().expect("it is a port's number");
                }
                "--tls-identity" => {
                    behaviour.tls.get_or_insert_default().identity = args.next().unwrap_or_default();
                }
                "--record" => behaviour.record = args.next().map(PathBuf::from),
                "--journal" => behaviour.journal = args.next().map(PathBuf::from),
                "--hang-after" => behaviour.hang_after = usize::try_from(number()).ok(),
                unknown => panic!("unknown flag {unknown}"),
            }
        }
        behaviour
    }
}

impl Spoken {
    fn named(name: &str) -> Self {
        match name {
            "http1" => Self::Http1,
            "h2c" => Self::Http2,
            other => panic!("unknown protocol {other:?}"),
        }
    }
}

/// Returns once the app is to end.
fn end(behaviour: &Behaviour) -> impl Future<Output = ()> + use<> {
    let mut signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .expect("SIGTERM can be awaited");
    let ending = behaviour.on_term;
    async move {
        signal.recv().await;
        match ending {
            Ending::AtOnce => {}
            Ending::Finished => {
                while IN_FLIGHT.load(Ordering::SeqCst) > 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
            Ending::Never => std::future::pending().await,
        }
    }
}

async fn serve(address: IpAddr, ports: &[u16], behaviour: Behaviour) {
    tokio::time::sleep(behaviour.start_delay).await;
    let mut listeners = Vec::new();
    for &port in ports {
        listeners.push((port, TcpListener::bind((address, port)).await.expect("the port is free")));
    }
    let journal = behaviour.journal.as_deref().map(Journal::begin);
    let tls = behaviour.tls.clone();
    let state = Arc::new(State { behaviour, journal, listening: clock::now(), ..State::default() });
    let accepting = listeners.into_iter().map(|(port, listener)| accept(listener, port, Arc::clone(&state)));
    let accepting_tls = async {
        if let Some(tls) = tls {
            let listener = TcpListener::bind((address, tls.port)).await.expect("the port is free");
            tls::accept(listener, tls, Arc::clone(&state)).await;
        }
    };
    futures_util::future::join(futures_util::future::join_all(accepting), accepting_tls).await;
}

async fn accept(listener: TcpListener, port: u16, state: Arc<State>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let _ = stream.set_nodelay(true);
        if let Some(file) = state.behaviour.record.clone() {
            tokio::spawn(async move { recorded::serve(stream, &file).await });
        } else if state.behaviour.raw {
            tokio::spawn(raw::serve(stream));
        } else {
            tokio::spawn(serve_http(stream, port, Arc::clone(&state)));
        }
    }
}

async fn serve_http<Stream>(stream: Stream, port: u16, state: Arc<State>)
where
    Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| {
        let answering = answer(request, Arc::clone(&state));
        async move {
            let mut response = answering.await?;
            response.headers_mut().insert("x-port", HeaderValue::from(port));
            Ok::<_, Infallible>(response)
        }
    });
    let io = TokioIo::new(stream);
    // How a connection ends is its client's to judge.
    match state.behaviour.only {
        None => {
            let builder = auto::Builder::new(TokioExecutor::new());
            let _ = builder.serve_connection_with_upgrades(io, service).await;
        }
        Some(Spoken::Http1) => {
            let _ = http1::Builder::new().serve_connection(io, service).with_upgrades().await;
        }
        Some(Spoken::Http2) => {
            let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await;
        }
    }
}

/// Counts a request for as long as it lives, also if its client goes away.
struct Counted(usize);

impl Counted {
    fn new() -> Self {
        Self(IN_FLIGHT.fetch_add(1, Ordering::SeqCst) + 1)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        IN_FLIGHT.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn answer(request: Request<Incoming>, state: Arc<State>) -> Result<Response<Body>, Infallible> {
    match request.uri().path() {
        "/ready" => return Ok(probe(&state)),
        "/grpc.health.v1.Health/Check" => return Ok(streams::grpc_health(!state.fails_probes())),
        "/times" => return Ok(times(&state)),
        "/release" => return Ok(state.events.release(&request).await),
        "/fail-probes" => state.probes_fail.store(true, Ordering::SeqCst),
        "/die" => std::process::exit(3),
        _ => {}
    }
    let counted = Counted::new();
    let target = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    let _noted = state.journal.as_ref().map(|journal| journal.note(target));
    let served = state.served.fetch_add(1, Ordering::SeqCst);
    if state.behaviour.hang_after.is_some_and(|limit| served >= limit) {
        std::future::pending::<()>().await;
    }
    if let Some(sleep) = query(&request, "sleep").and_then(|milliseconds| milliseconds.parse().ok()) {
        tokio::time::sleep(Duration::from_millis(sleep)).await;
    }
    while query(&request, "until").is_some_and(|file| !Path::new(file).exists()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    if let Some(burn) = query(&request, "burn").and_then(|milliseconds| milliseconds.parse().ok()) {
        burn_cpu(Duration::from_millis(burn));
    }
    let number = counted.0;
    let version = format!("{:?}", request.version());
    let proto = request.headers().get("x-forwarded-proto").cloned();
    let cookies = request.headers().get_all("cookie").iter().count();
    let mut response = match request.uri().path() {
        "/events" => state.events.open(&request, counted),
        "/drip" => streams::drip(&request, counted),
        "/stream" => streams::echo(request, counted),
        "/refuse" => status(StatusCode::PAYLOAD_TOO_LARGE),
        "/grpc-not-found" => streams::grpc_error("5"),
        "/websocket" => websocket::accept(request),
        _ => whole(request).await,
    };
    response.headers_mut().insert("x-process", HeaderValue::from(std::process::id()));
    response.headers_mut().insert("x-in-flight", HeaderValue::from(number));
    response.headers_mut().insert("x-version", HeaderValue::try_from(version).expect("ASCII"));
    // Where it is a pod: its name.
    if let Some(pod) = std::env::var("HOSTNAME").ok().and_then(|name| HeaderValue::try_from(name).ok()) {
        response.headers_mut().insert("x-pod", pod);
    }
    if let Some(proto) = proto {
        response.headers_mut().insert("x-proto", proto);
    }
    response.headers_mut().insert("x-cookies", HeaderValue::from(cookies));
    Ok(response)
}

/// Uses CPU time, however long that takes on a busy machine.
fn burn_cpu(time: Duration) {
    let used = || {
        let used = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every thread has this clock");
        Duration::from(used)
    };
    let until = used() + time;
    while used() < until {
        std::hint::black_box((0..10_000_u32).fold(0, u32::wrapping_add));
    }
}

/// Sends the body back once all of it is there; to HEAD, only its length.
async fn whole(request: Request<Incoming>) -> Response<Body> {
    let is_head = request.method() == Method::HEAD;
    let body = match request.into_body().collect().await.map(http_body_util::Collected::to_bytes) {
        Ok(body) if body.is_empty() => Bytes::from_static(b"ok\n"),
        Ok(body) => body,
        Err(_) => return status(StatusCode::BAD_REQUEST),
    };
    let length = HeaderValue::from(body.len());
    let mut response = Response::new(full(if is_head { Bytes::new() } else { body }));
    response.headers_mut().insert("content-length", length);
    response
}

impl State {
    fn fails_probes(&self) -> bool {
        self.behaviour.never_ready || self.probes_fail.load(Ordering::SeqCst)
    }
}

/// On the clock that all processes of the machine share, in nanoseconds.
fn times(state: &State) -> Response<Body> {
    let [listening, asked] = [state.listening, clock::now()].map(|time| time.as_nanos());
    Response::new(full(format!(r#"{{"listening": {listening}, "asked": {asked}}}"#)))
}

fn probe(state: &State) -> Response<Body> {
    status(if state.fails_probes() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK })
}

fn status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(full(Bytes::new()));
    *response.status_mut() = status;
    response
}

fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A parameter of the query, as it was written.
fn query<'a>(request: &'a Request<Incoming>, name: &str) -> Option<&'a str> {
    let pairs = request.uri().query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}
