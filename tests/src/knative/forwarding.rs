//! What both proxies share: a server of HTTP/1.1 and h2c on one port, and requests to the next hop.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::HOST;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, Version};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};

use super::h2c_connections::H2cConnections;
use super::request_gate::{NETWORK_HASH, ProbeAnswer, text};
use super::upgrades::AskedUpgrade;
use crate::hop_by_hop::end_hop;

/// The body of an answer, whatever it comes from.
pub(super) type StandInBody = UnsyncBoxBody<Bytes, hyper::Error>;

pub(super) const ORIGINAL_HOST: &str = "k-original-host";
pub(super) const PROXY_REQUEST: &str = "k-proxy-request";
pub(super) const REVISION_HEADER: &str = "knative-serving-revision";
pub(super) const NAMESPACE_HEADER: &str = "knative-serving-namespace";

/// A body that keeps something alive until it has been read, or is given up.
pub(super) struct KeptBody<Guard> {
    body: Incoming,
    _guard: Guard,
}

impl<Guard: Unpin> Body for KeptBody<Guard> {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Requests to the next hop, over connections that are kept.
#[derive(Clone)]
pub(super) struct HopClient {
    http1: Client<HttpConnector, Incoming>,
    h2c: H2cConnections,
}

impl HopClient {
    pub(super) fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let http1 = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        Self { http1, h2c: H2cConnections::default() }
    }

    /// Sends a request on, with the Host that its header names; `guard` lives until the answer has been read,
    /// or until a connection that has switched protocols ends.
    pub(super) async fn forward<Guard>(
        &self,
        mut request: Request<Incoming>,
        to: SocketAddr,
        speaks_h2c: bool,
        guard: Guard,
    ) -> Response<StandInBody>
    where
        Guard: Unpin + Send + 'static,
    {
        let upgrade = if speaks_h2c { None } else { AskedUpgrade::take(&mut request) };
        end_hop(request.headers_mut());
        if let Some(upgrade) = &upgrade {
            upgrade.ask_onward(request.headers_mut());
        }
        let answered = if speaks_h2c {
            let host = host_over_http2(&request, to);
            request.headers_mut().remove(HOST);
            self.h2c.send(aimed(request, host, Version::HTTP_2), to).await
        } else {
            let request = aimed(request, address_as_host(to), Version::HTTP_11);
            self.http1.request(request).await.map_err(anyhow::Error::from)
        };
        match (answered, upgrade) {
            (Ok(answer), Some(upgrade)) if answer.status() == StatusCode::SWITCHING_PROTOCOLS => {
                upgrade.switch(answer, guard).map(|()| own_body(Bytes::new()))
            }
            (Ok(mut answer), _) => {
                end_hop(answer.headers_mut());
                answer.map(|body| KeptBody { body, _guard: guard }.boxed_unsync())
            }
            (Err(error), _) => plain(StatusCode::BAD_GATEWAY, format!("{error:#}\n")),
        }
    }
}

/// The request with a whole target of this host.
fn aimed(mut request: Request<Incoming>, host: Authority, version: Version) -> Request<Incoming> {
    let path = request.uri().path_and_query().cloned();
    let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::builder()
        .scheme("http")
        .authority(host)
        .path_and_query(path)
        .build()
        .expect("a scheme, a host and a path make a target");
    *request.version_mut() = version;
    request
}

/// The host of a request that goes on over HTTP/2, where no header names it: that of the header, else the one
/// that it came with over HTTP/2, else the address.
fn host_over_http2(request: &Request<Incoming>, to: SocketAddr) -> Authority {
    let header = text(request.headers(), HOST.as_str()).parse::<Authority>().ok();
    header.or_else(|| request.uri().authority().cloned()).unwrap_or_else(|| address_as_host(to))
}

fn address_as_host(address: SocketAddr) -> Authority {
    address.to_string().parse().expect("an address and a port are a host")
}

/// A new connection of HTTP/1.1 for probes, which have no body. It ends with the sender.
pub(super) async fn probe_connection(to: SocketAddr) -> anyhow::Result<http1::SendRequest<Empty<Bytes>>> {
    let stream = TcpStream::connect(to).await?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the connection, which ends with the sender.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

/// The host that a request is to, in either version of HTTP.
pub(super) fn host_of(request: &Request<Incoming>) -> String {
    let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
    authority.unwrap_or_else(|| text(request.headers(), HOST.as_str()).to_owned())
}

/// A header that is set, whatever was there before. A text that is no header text is left out.
pub(super) fn set(headers: &mut HeaderMap, name: &'static str, value: &str) {
    headers.remove(name);
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

/// An answer of the proxy's own.
pub(super) fn plain(status: StatusCode, body: impl Into<Bytes>) -> Response<StandInBody> {
    let mut response = Response::new(own_body(body.into()));
    *response.status_mut() = status;
    response
}

fn own_body(bytes: Bytes) -> StandInBody {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

/// An answer to a probe.
pub(super) fn probed(answer: ProbeAnswer) -> Response<StandInBody> {
    let mut response = plain(answer.status, answer.body);
    if let Some(hash) = answer.hash {
        response.headers_mut().insert(NETWORK_HASH, hash);
    }
    response
}

/// Serves a port for ever, each request by `answer`.
pub(super) async fn serve<Answer, Answering>(port: u16, answer: Answer) -> anyhow::Result<()>
where
    Answer: Fn(Request<Incoming>) -> Answering + Clone + Send + 'static,
    Answering: Future<Output = Response<StandInBody>> + Send + 'static,
{
    serve_listener(TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await?, answer).await
}

async fn serve_listener<Answer, Answering>(listener: TcpListener, answer: Answer) -> anyhow::Result<()>
where
    Answer: Fn(Request<Incoming>) -> Answering + Clone + Send + 'static,
    Answering: Future<Output = Response<StandInBody>> + Send + 'static,
{
    loop {
        let (stream, _) = listener.accept().await?;
        // Without it only latency is lost.
        let _ = stream.set_nodelay(true);
        let answer = answer.clone();
        let service = service_fn(move |request| {
            let answering = answer(request);
            async move { Ok::<_, Infallible>(answering.await) }
        });
        // How a connection ends is its client's to judge.
        tokio::spawn(async move {
            let server = auto::Builder::new(TokioExecutor::new());
            let _ = server.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
        });
    }
}

#[cfg(test)]
mod tests;
