//! A contestant of the benchmark `hop`: a reverse proxy of hyper, as small as one can be, on one thread and
//! with the allocator that ours has.
//!
//! It answers what our own protocols have to be worth: how much of a hop's cost is the library under it. It
//! does what every proxy must (connections kept on both sides, headers that end at a hop removed, bodies
//! streamed) and nothing of what a queue-proxy does besides: no limit, no timer, no count, no check of what
//! is doubtful. `--to PORT` is the app's; `--h2c` speaks HTTP/2 on both sides. Says where it listens on its
//! first line.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Context;
use bytes::Bytes;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tests::hop_by_hop::end_hop;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// As the app behind it.
const BACKLOG: u32 = 4096;

/// Streams that one client may have open: more than any cell of the benchmark has on a connection.
const STREAMS: u32 = 250;

/// Which protocol is spoken on both sides.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spoken {
    Http1,
    Http2,
}

/// Everything that a request needs.
#[derive(Clone)]
struct Proxy {
    client: Client<HttpConnector, Incoming>,
    app: Authority,
    spoken: Spoken,
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let port = arguments.iter().skip_while(|argument| *argument != "--to").nth(1);
    let port: u16 = port.context("--to PORT is missing")?.parse().context("--to PORT")?;
    let spoken =
        if arguments.iter().any(|argument| argument == "--h2c") { Spoken::Http2 } else { Spoken::Http1 };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(port, spoken))
}

async fn serve(app: u16, spoken: Spoken) -> anyhow::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let listener: TcpListener = socket.listen(BACKLOG)?;
    println!("{}", serde_json::json!({ "requests": listener.local_addr()?.port() }));
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new())
        .http2_only(spoken == Spoken::Http2)
        .pool_timer(TokioTimer::new())
        .build(connector);
    let proxy = Proxy { client, app: format!("127.0.0.1:{app}").parse()?, spoken };
    loop {
        let (stream, _) = listener.accept().await?;
        // Without it only latency is lost.
        let _ = stream.set_nodelay(true);
        tokio::spawn(proxy.clone().connection(stream));
    }
}

impl Proxy {
    /// One client. One that goes away in the middle of a request is its own affair.
    async fn connection(self, stream: TcpStream) {
        let spoken = self.spoken;
        let service = service_fn(move |request| {
            let proxy = self.clone();
            async move { Ok::<_, Infallible>(proxy.forward(request).await) }
        });
        let stream = TokioIo::new(stream);
        let _ = match spoken {
            Spoken::Http1 => {
                hyper::server::conn::http1::Builder::new()
                    .timer(TokioTimer::new())
                    .serve_connection(stream, service)
                    .await
            }
            Spoken::Http2 => {
                hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .timer(TokioTimer::new())
                    .max_concurrent_streams(STREAMS)
                    .serve_connection(stream, service)
                    .await
            }
        };
    }

    async fn forward(self, mut request: Request<Incoming>) -> Response<BoxBody<Bytes, hyper::Error>> {
        let path = request.uri().path_and_query().cloned();
        *request.uri_mut() = self.target(path);
        end_hop(request.headers_mut());
        match self.client.request(request).await {
            Ok(mut response) => {
                end_hop(response.headers_mut());
                response.map(BodyExt::boxed)
            }
            Err(error) => {
                eprintln!("the app did not answer: {error}");
                let empty = Empty::new().map_err(|never| match never {});
                let mut response = Response::new(empty.boxed());
                *response.status_mut() = StatusCode::BAD_GATEWAY;
                response
            }
        }
    }

    fn target(&self, path: Option<PathAndQuery>) -> Uri {
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(Scheme::HTTP);
        parts.authority = Some(self.app.clone());
        parts.path_and_query = Some(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
        Uri::from_parts(parts).expect("scheme, authority and path make a target")
    }
}
