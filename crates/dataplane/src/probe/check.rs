//! Puts one question to the app.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::Stdio;

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, LOCATION, TE, USER_AGENT};
use http::{Method, Request, Response, Uri, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::process::Command;

use super::{Check, HttpCheck, ProbeFailure};
use crate::headers::names;
use crate::upstream::{LocalExecutor, Protocol};

/// As the kubelet calls itself, so that apps recognise a probe.
const AGENT: &str = "kube-probe/ebb";

/// As many as the kubelet follows.
const REDIRECTS_MAX: u32 = 10;

/// Where apps listen.
const LOOPBACKS: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

pub(super) async fn ask(check: &Check) -> Result<(), ProbeFailure> {
    match check {
        Check::None => Ok(()),
        Check::Tcp { port } => connect(*port).await.map(drop),
        Check::Http(http) => ask_http(http).await,
        Check::Grpc { port, service } => ask_grpc(*port, service).await,
        Check::Exec { command } => run(command).await,
    }
}

fn failure(what: impl std::fmt::Display) -> ProbeFailure {
    ProbeFailure(what.to_string())
}

async fn connect(port: u16) -> Result<TcpStream, ProbeFailure> {
    let mut first = None;
    for address in LOOPBACKS {
        match TcpStream::connect(SocketAddr::new(address, port)).await {
            Ok(stream) if !is_own(&stream) => return Ok(stream),
            Ok(_own) => first = first.or(Some(io::ErrorKind::ConnectionRefused.into())),
            Err(error) => first = first.or(Some(error)),
        }
    }
    let error = first.unwrap_or_else(|| io::ErrorKind::NotFound.into());
    Err(failure(format_args!("port {port}: {}", error.kind())))
}

/// Whether a connection leads to itself: the kernel may choose, as our end of it, the very port that nobody listens on.
fn is_own(stream: &TcpStream) -> bool {
    matches!((stream.local_addr(), stream.peer_addr()), (Ok(local), Ok(peer)) if local == peer)
}

async fn ask_http(check: &HttpCheck) -> Result<(), ProbeFailure> {
    let mut path = check.path.clone();
    for _ in 0..=REDIRECTS_MAX {
        let response = get(check, &path).await?;
        let status = response.status();
        match response.headers().get(LOCATION).filter(|_| status.is_redirection()) {
            Some(location) => match within_app(location, &path) {
                Some(next) => path = next,
                // The app answered and points elsewhere; what is there says nothing about the app.
                None => return Ok(()),
            },
            None if (200..400).contains(&status.as_u16()) => return Ok(()),
            None => return Err(failure(format_args!("GET {path}: status {}", status.as_u16()))),
        }
    }
    Err(failure(format_args!("GET {}: more than {REDIRECTS_MAX} redirects", check.path)))
}

/// The path that a redirect leads to, unless it leads away from the app.
fn within_app(location: &HeaderValue, from: &str) -> Option<String> {
    let location = location.to_str().ok()?;
    let target: Uri = location.parse().ok()?;
    let is_here = target.host().is_none_or(|host| ["127.0.0.1", "localhost", "[::1]"].contains(&host));
    if !is_here {
        return None;
    }
    let path = target.path_and_query().map_or("/", |path| path.as_str());
    if path.starts_with('/') {
        return Some(path.to_owned());
    }
    let directory =
        from.split('?').next().and_then(|path| path.rsplit_once('/')).map_or("", |(before, _)| before);
    Some(format!("{directory}/{path}"))
}

async fn get(check: &HttpCheck, path: &str) -> Result<Response<Incoming>, ProbeFailure> {
    let stream = connect(check.port).await?;
    let request = request(check, path)?;
    match check.protocol {
        Protocol::Http1 => get_http1(stream, request, path).await,
        Protocol::Http2 => get_http2(stream, request, path).await,
    }
}

async fn get_http1(
    stream: TcpStream,
    request: Request<Full<Bytes>>,
    path: &str,
) -> Result<Response<Incoming>, ProbeFailure> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(failure)?;
    // Ends by itself: the request says that it is the last one, and dropping the sender closes the connection.
    tokio::task::spawn_local(async move {
        let _ = connection.await;
    });
    sender.send_request(request).await.map_err(|_| failure(format_args!("GET {path}: no answer")))
}

async fn get_http2(
    stream: TcpStream,
    mut request: Request<Full<Bytes>>,
    path: &str,
) -> Result<Response<Incoming>, ProbeFailure> {
    let handshake = http2::handshake(LocalExecutor, TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|_| failure("the app does not speak HTTP/2"))?;
    // Ends by itself when the sender is dropped.
    tokio::task::spawn_local(async move {
        let _ = connection.await;
    });
    let headers = request.headers_mut();
    headers.remove(CONNECTION);
    let host = headers.remove(HOST).unwrap_or_else(|| HeaderValue::from_static("localhost"));
    let uri = Uri::builder().scheme("http").authority(host.as_bytes()).path_and_query(path).build();
    *request.uri_mut() = uri.map_err(|_| failure(format_args!("the path {path:?} is malformed")))?;
    *request.version_mut() = Version::HTTP_2;
    sender.send_request(request).await.map_err(|_| {
        failure(format_args!("GET {path}: no answer over HTTP/2, which the name of its port (h2c) promises"))
    })
}

fn request(check: &HttpCheck, path: &str) -> Result<Request<Full<Bytes>>, ProbeFailure> {
    let mut request = Request::new(Full::default());
    *request.uri_mut() = path.parse().map_err(|_| failure(format_args!("the path {path:?} is malformed")))?;
    let headers = request.headers_mut();
    let host = format!("127.0.0.1:{}", check.port);
    headers.insert(HOST, HeaderValue::try_from(host).expect("an address is header text"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    for (name, value) in &check.headers {
        let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) else {
            return Err(failure(format_args!("the header {name:?} is malformed")));
        };
        if name == HOST || name == USER_AGENT {
            headers.insert(name, value);
        } else {
            headers.append(name, value);
        }
    }
    Ok(request)
}

/// Asks `grpc.health.v1.Health/Check`. Its two messages have one field each, so they are written and read by hand.
async fn ask_grpc(port: u16, service: &str) -> Result<(), ProbeFailure> {
    let stream = connect(port).await?;
    let handshake = http2::handshake(LocalExecutor, TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|_| failure("the app does not speak gRPC"))?;
    tokio::task::spawn_local(async move {
        let _ = connection.await;
    });
    let mut request = Request::new(Full::new(grpc_question(service)));
    *request.method_mut() = Method::POST;
    *request.version_mut() = Version::HTTP_2;
    *request.uri_mut() =
        Uri::try_from(format!("http://127.0.0.1:{port}/grpc.health.v1.Health/Check")).expect("well-formed");
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(TE, HeaderValue::from_static("trailers"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    let response = sender
        .send_request(request)
        .await
        .map_err(|_| failure("the app does not answer gRPC health checks"))?;
    let (head, body) = response.into_parts();
    let body = body.collect().await.map_err(|_| failure("the gRPC health answer broke off"))?;
    let trailers = body.trailers().cloned().unwrap_or_default();
    let status = trailers.get(names::GRPC_STATUS).or_else(|| head.headers.get(names::GRPC_STATUS));
    match status.map(HeaderValue::as_bytes) {
        Some(b"0") => {}
        Some(b"12") => return Err(failure("the app does not implement the gRPC health service")),
        Some(code) => {
            return Err(failure(format_args!("gRPC health: status {}", String::from_utf8_lossy(code))));
        }
        None => return Err(failure("the app does not speak gRPC")),
    }
    // Flag, length, then field 1 (an enum) with the value SERVING.
    match body.to_bytes().get(5..) {
        Some([0x08, 0x01, ..]) => Ok(()),
        Some(_) | None => Err(failure("gRPC health: not serving")),
    }
}

fn grpc_question(service: &str) -> Bytes {
    let mut message = BytesMut::new();
    if !service.is_empty() {
        message.put_u8(0x0a);
        let mut length = service.len();
        while length >= 0x80 {
            message.put_u8(u8::try_from(length & 0x7f).expect("seven bits") | 0x80);
            length >>= 7;
        }
        message.put_u8(u8::try_from(length).expect("seven bits"));
        message.put_slice(service.as_bytes());
    }
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    frame.put(message);
    frame.freeze()
}

async fn run(command: &[String]) -> Result<(), ProbeFailure> {
    let Some((program, arguments)) = command.split_first() else { return Err(failure("no command")) };
    let status = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .status()
        .await
        .map_err(|error| failure(format_args!("cannot run {program:?}: {}", error.kind())))?;
    if status.success() { Ok(()) } else { Err(failure(format_args!("{program:?} ended with {status}"))) }
}
