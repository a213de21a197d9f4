//! Puts one question to the app.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::Stdio;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::Uri;
use http::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, LOCATION, TE, USER_AGENT};
use http_body_util::BodyExt;
use protocol::{Request, Response, names};
use runtime::Clock;
use thiserror::Error;
use tokio::process::Command;

use crate::body::Body;
use crate::upstream::{LostRequests, Protocol, SendErrorKind, UpstreamLimits, Upstreams, dial};

/// The `User-Agent` of probes. It begins as the kubelet's does, so that apps recognise a probe.
const AGENT: &str = "kube-probe/ebb";

/// How many redirects a probe follows: as many as the kubelet.
const REDIRECTS_MAX: u32 = 10;

/// The addresses of the pod on which apps listen; some apps listen on one of the two only.
const LOOPBACKS: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// How long a connection through an engine's forwarder has to stay open. The forwarder dials the container as
/// it accepts, on the same machine: without a listener there it closes within a millisecond or two.
const FORWARDED_STAYS: Duration = Duration::from_millis(20);

/// What a probe asks the app: one variant per kind of probe of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// The pod has no probe: the check always passes.
    None,
    /// The port accepts a connection.
    Tcp {
        /// The port of the app, on the loopback interface.
        port: u16,
    },
    /// The port, which a container engine forwards to the app, accepts a connection that stays open: the
    /// engine accepts each.
    ForwardedTcp {
        /// The port of the engine, on the loopback interface.
        port: u16,
    },
    /// A request is answered with a status from 200 to 399.
    Http(HttpCheck),
    /// The gRPC health service says that it serves.
    Grpc {
        /// The port of the app, on the loopback interface.
        port: u16,
        /// Which service is asked about; empty means the server.
        service: String,
    },
    /// A command ends with status 0.
    Exec {
        /// The program and its arguments, without a shell.
        command: Vec<String>,
    },
}

/// An HTTP request and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpCheck {
    /// The port of the app, on the loopback interface.
    pub port: u16,
    /// Path and query of the request.
    pub path: String,
    /// Headers to add, `Host` included.
    pub headers: Vec<(String, String)>,
    /// The protocol that the app speaks on the port.
    pub protocol: Protocol,
}

/// Why a check did not pass, for people.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ProbeFailure(pub String);

/// The settings with which one question is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prober {
    pub(super) clock: Clock,
    pub(super) timeout: Duration,
}

fn failure(what: impl std::fmt::Display) -> ProbeFailure {
    ProbeFailure(what.to_string())
}

impl Prober {
    pub(super) async fn ask(self, check: &Check) -> Result<(), ProbeFailure> {
        match check {
            Check::None => Ok(()),
            Check::Tcp { port } => self.connect(*port).await,
            Check::ForwardedTcp { port } => self.connect_through(*port).await,
            Check::Http(http) => self.ask_http(http).await,
            Check::Grpc { port, service } => self.ask_grpc(*port, service).await,
            Check::Exec { command } => run(command).await,
        }
    }

    async fn connect(self, port: u16) -> Result<(), ProbeFailure> {
        let mut first = None;
        for address in LOOPBACKS {
            match dial(SocketAddr::new(address, port), self.timeout).await {
                Ok(_stream) => return Ok(()),
                Err(kind) => first = first.or(Some(kind)),
            }
        }
        Err(not_connected(port, &first.expect("there are loopback addresses")))
    }

    async fn connect_through(self, port: u16) -> Result<(), ProbeFailure> {
        // Engines publish on this address alone.
        let forwarder = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
        let stream = dial(forwarder, self.timeout).await.map_err(|kind| not_connected(port, &kind))?;
        let mut first = [0];
        match tokio::time::timeout(FORWARDED_STAYS, stream.peek(&mut first)).await {
            // Some apps speak first.
            Err(_) | Ok(Ok(1..)) => Ok(()),
            Ok(Ok(0) | Err(_)) => {
                Err(failure(format_args!("port {port}: nothing listens in the container behind it")))
            }
        }
    }

    /// Asks on a connection of its own, as the kubelet does: that the app still accepts one is part of the
    /// answer. Without a connection the request comes back, and goes to the other address.
    async fn send(
        self,
        port: u16,
        protocol: Protocol,
        request: Request<Body>,
    ) -> Result<Response<Body>, SendErrorKind> {
        let limits = UpstreamLimits {
            connect: self.timeout,
            lost_requests: LostRequests::Report,
            ..UpstreamLimits::default()
        };
        let upstreams = Upstreams::new(self.clock, limits);
        let (mut unsent, mut first) = (Some(Box::new(request)), None);
        for address in LOOPBACKS {
            let Some(request) = unsent.take() else { break };
            let error = match upstreams.send(SocketAddr::new(address, port), protocol, request).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            if error.kind.is_without_connection() {
                unsent = error.request;
            }
            first = first.or(Some(error.kind));
        }
        Err(first.expect("there are loopback addresses"))
    }

    async fn ask_http(self, check: &HttpCheck) -> Result<(), ProbeFailure> {
        let mut path = check.path.clone();
        for _ in 0..=REDIRECTS_MAX {
            let response = self.get(check, &path).await?;
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

    async fn get(self, check: &HttpCheck, path: &str) -> Result<Response<Body>, ProbeFailure> {
        let request = question(check, path)?;
        self.send(check.port, check.protocol, request).await.map_err(|kind| match check.protocol {
            _ if kind.is_without_connection() => not_connected(check.port, &kind),
            Protocol::Http1 => failure(format_args!("GET {path}: no answer")),
            Protocol::Http2 => failure(format_args!(
                "GET {path}: no answer over HTTP/2, which the name of its port (h2c) promises"
            )),
        })
    }

    /// Asks `grpc.health.v1.Health/Check`. Its two messages have one field each, so they are written and read
    /// by hand.
    async fn ask_grpc(self, port: u16, service: &str) -> Result<(), ProbeFailure> {
        let answered = self.send(port, Protocol::Http2, grpc_question(port, service)).await;
        let response = answered.map_err(|kind| {
            if kind.is_without_connection() {
                not_connected(port, &kind)
            } else if kind == SendErrorKind::NotHttp2 {
                failure("the app does not speak gRPC")
            } else {
                failure("the app does not answer gRPC health checks")
            }
        })?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(|_| failure("the gRPC health answer broke off"))?;
        let trailers = body.trailers().cloned().unwrap_or_default();
        let status = trailers.get(names::GRPC_STATUS).or_else(|| head.fields.map().get(names::GRPC_STATUS));
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
}

fn not_connected(port: u16, why: &SendErrorKind) -> ProbeFailure {
    failure(format_args!("port {port}: {why}"))
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

fn question(check: &HttpCheck, path: &str) -> Result<Request<Body>, ProbeFailure> {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = path.parse().map_err(|_| failure(format_args!("the path {path:?} is malformed")))?;
    let headers = request.headers_mut();
    let host = format!("127.0.0.1:{}", check.port);
    headers.insert(HOST, HeaderValue::try_from(host).expect("an address is header text"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
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
    match check.protocol {
        Protocol::Http1 => {
            request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Protocol::Http2 => {
            let host = request.headers_mut().remove(HOST).expect("it was set above");
            let uri = Uri::builder().scheme("http").authority(host.as_bytes()).path_and_query(path).build();
            *request.uri_mut() = uri.map_err(|_| failure(format_args!("the path {path:?} is malformed")))?;
        }
    }
    Ok(request)
}

fn grpc_question(port: u16, service: &str) -> Request<Body> {
    let request = http::Request::post(format!("http://127.0.0.1:{port}/grpc.health.v1.Health/Check"))
        .body(Body::full(grpc_message(service)))
        .expect("well-formed");
    let mut request = Request::from(request);
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(TE, HeaderValue::from_static("trailers"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    request
}

fn grpc_message(service: &str) -> Bytes {
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
