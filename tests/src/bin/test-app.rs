//! The app that the suites put behind ebb: well-behaved by default, badly on request.
//!
//! It listens on `$PORT` and answers `/` (`?sleep=MS` waits first) with its process id and the requests it holds in headers; a request body comes
//! back as it was. `/fail-probes` and `/die` make it misbehave at run time; flags do so from the start.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;

/// How the app misbehaves.
#[derive(Clone, Copy, Debug, Default)]
struct Behaviour {
    start_delay: Duration,
    exit_at_once: Option<u8>,
    never_ready: bool,
    hang_after: Option<usize>,
}

#[derive(Debug, Default)]
struct State {
    behaviour: Behaviour,
    in_flight: AtomicUsize,
    served: AtomicUsize,
    probes_fail: AtomicBool,
}

fn main() -> ExitCode {
    let behaviour = Behaviour::from_args(std::env::args().skip(1));
    if let Some(code) = behaviour.exit_at_once {
        eprintln!("told to exit with {code}");
        return ExitCode::from(code);
    }
    let port = std::env::var("PORT").ok().and_then(|port| port.parse().ok()).expect("$PORT is a port number");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        tokio::select! {
            () = serve(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), behaviour) => {}
            () = terminated() => {}
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
                "--exit" => behaviour.exit_at_once = u8::try_from(number()).ok(),
                "--never-ready" => behaviour.never_ready = true,
                "--hang-after" => behaviour.hang_after = usize::try_from(number()).ok(),
                unknown => panic!("unknown flag {unknown}"),
            }
        }
        behaviour
    }
}

async fn terminated() {
    let mut signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .expect("SIGTERM can be awaited");
    signal.recv().await;
}

async fn serve(address: SocketAddr, behaviour: Behaviour) {
    tokio::time::sleep(behaviour.start_delay).await;
    let listener = tokio::net::TcpListener::bind(address).await.expect("the port is free");
    let state = Arc::new(State { behaviour, ..State::default() });
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            let service = service_fn(|request| answer(request, Arc::clone(&state)));
            let _ = auto::Builder::new(TokioExecutor::new())
                .serve_connection_with_upgrades(TokioIo::new(stream), service)
                .await;
        });
    }
}

/// Counts a request for as long as it lives, also if its client goes away.
struct Counted<'a>(&'a State, usize);

impl<'a> Counted<'a> {
    fn new(state: &'a State) -> Self {
        Self(state, state.in_flight.fetch_add(1, Ordering::SeqCst) + 1)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn answer(request: Request<Incoming>, state: Arc<State>) -> Result<Response<Full<Bytes>>, Infallible> {
    match request.uri().path() {
        "/ready" => return Ok(probe(&state)),
        "/fail-probes" => state.probes_fail.store(true, Ordering::SeqCst),
        "/die" => std::process::exit(3),
        _ => {}
    }
    let counted = Counted::new(&state);
    let served = state.served.fetch_add(1, Ordering::SeqCst);
    if state.behaviour.hang_after.is_some_and(|limit| served >= limit) {
        std::future::pending::<()>().await;
    }
    if let Some(sleep) = query_number(&request, "sleep") {
        tokio::time::sleep(Duration::from_millis(sleep)).await;
    }
    let body = match request.into_body().collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => return Ok(status(StatusCode::BAD_REQUEST)),
    };
    let body = if body.is_empty() { Bytes::from_static(b"ok\n") } else { body };
    let mut response = Response::new(Full::new(body));
    response.headers_mut().insert("x-process", HeaderValue::from(std::process::id()));
    response.headers_mut().insert("x-in-flight", HeaderValue::from(counted.1));
    Ok(response)
}

fn probe(state: &State) -> Response<Full<Bytes>> {
    let fails = state.behaviour.never_ready || state.probes_fail.load(Ordering::SeqCst);
    status(if fails { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK })
}

fn status(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

fn query_number(request: &Request<Incoming>, name: &str) -> Option<u64> {
    request
        .uri()
        .query()?
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name)?
        .1
        .parse()
        .ok()
}
