//! A load of an exact number of requests, for what is counted and not timed.
//!
//! `wrk` sends for a time and gives up what is under way at its end, and no generator asks many hosts in turn
//! over both protocols. Here each connection sends its next request when the former is answered, all
//! connections send as many, and every answer is looked at. Heads have what a request needs and no more (a
//! Host, and the length of a body), so that counts are the proxy's and not those of a generator's version.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::proxies::Protocol;

/// For a whole load: a proxy under callgrind answers some thousand requests a second where the machine is
/// idle, and a tenth of that where it is busy.
const PATIENCE: Duration = Duration::from_secs(300);

/// A closed loop over connections with one request at a time on each.
#[derive(Clone, Debug)]
pub struct ClosedLoop {
    /// The protocol of every connection.
    pub protocol: Protocol,
    /// The number of connections at the same time.
    pub connections: usize,
    /// The hosts that each connection asks in turn.
    pub hosts: Vec<String>,
    /// The path that every request asks for.
    pub path: String,
    /// The bytes that each request posts; none for GET.
    pub upload: usize,
}

impl ClosedLoop {
    /// Sends this many requests, which the connections share equally. Fails unless each is answered with 200
    /// and a whole body.
    pub fn run(&self, address: SocketAddr, requests: usize) -> anyhow::Result<()> {
        ensure!(
            self.connections > 0 && requests.is_multiple_of(self.connections) && !self.hosts.is_empty(),
            "{requests} requests cannot be shared by {} connections to {} hosts",
            self.connections,
            self.hosts.len()
        );
        let each = requests / self.connections;
        let load = Arc::new(self.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async move {
            let mut connections = JoinSet::new();
            for number in 0..load.connections {
                connections.spawn(Arc::clone(&load).connection(address, number, each));
            }
            let ended = async {
                while let Some(connection) = connections.join_next().await {
                    connection.context("a connection's task panicked")??;
                }
                anyhow::Ok(())
            };
            tokio::time::timeout(PATIENCE, ended)
                .await
                .with_context(|| format!("{requests} requests were not answered within {PATIENCE:?}"))?
        })
    }

    /// All requests of one connection. Its first host is another than its neighbours'.
    async fn connection(
        self: Arc<Self>,
        address: SocketAddr,
        number: usize,
        each: usize,
    ) -> anyhow::Result<()> {
        let mut client = Client::connect(self.protocol, address).await?;
        let body = Bytes::from(vec![b'x'; self.upload]);
        for turn in 0..each {
            let host = &self.hosts[(number + turn) % self.hosts.len()];
            let asked = async {
                let response = client.send(self.request(host, body.clone())?).await?;
                ensure!(response.status() == StatusCode::OK, "it was answered {}", response.status());
                response.into_body().collect().await.context("the answer broke off")?;
                anyhow::Ok(())
            };
            asked.await.with_context(|| format!("request {turn} of connection {number} to {host}"))?;
        }
        Ok(())
    }

    fn request(&self, host: &str, body: Bytes) -> anyhow::Result<Request<Full<Bytes>>> {
        let method = if self.upload > 0 { Method::POST } else { Method::GET };
        let request = Request::builder().method(method);
        // HTTP/2 has the host in the target and no header for it.
        let request = match self.protocol {
            Protocol::Http1 => request.uri(self.path.as_str()).header(http::header::HOST, host),
            Protocol::H2c => request.uri(format!("http://{host}{}", self.path)),
        };
        Ok(request.body(Full::new(body))?)
    }
}

/// One connection's end of either protocol.
enum Client {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Client {
    async fn connect(protocol: Protocol, address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("connecting to {address}"))?;
        stream.set_nodelay(true)?;
        let stream = TokioIo::new(stream);
        // What breaks a connection, a panic of its task among it, is an error of the request on it.
        Ok(match protocol {
            Protocol::Http1 => {
                let (sender, connection) = http1::handshake(stream).await?;
                tokio::spawn(connection);
                Self::Http1(sender)
            }
            Protocol::H2c => {
                let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
                tokio::spawn(connection);
                Self::Http2(sender)
            }
        })
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> anyhow::Result<Response<Incoming>> {
        Ok(match self {
            Self::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Self::Http2(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Mutex;

    use hyper::service::service_fn;

    use super::*;

    /// What a server was asked: the version, the method, the host and the length of the body.
    type AskedRequests = Arc<Mutex<Vec<String>>>;

    /// A server that runs until it is dropped.
    struct AskedServer {
        address: SocketAddr,
        asked: AskedRequests,
        _runtime: tokio::runtime::Runtime,
    }

    /// A server of either protocol that answers with this status.
    fn server(protocol: Protocol, status: StatusCode) -> AskedServer {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let asked = AskedRequests::default();
        let noted = Arc::clone(&asked);
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let service = service_fn(move |request: Request<Incoming>| {
            let noted = Arc::clone(&noted);
            async move {
                let (head, body) = request.into_parts();
                let length = body.collect().await.expect("a body").to_bytes().len();
                let of_header = head.headers.get("host").map(|host| host.to_str().expect("text").to_owned());
                let host = of_header.or_else(|| head.uri.host().map(str::to_owned)).expect("a host");
                let text = format!("{:?} {} {host} {length}", head.version, head.method);
                noted.lock().expect("no test panics with it").push(text);
                let mut response = Response::new(Full::new(Bytes::from_static(b"hello")));
                *response.status_mut() = status;
                Ok::<_, Infallible>(response)
            }
        });
        runtime.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let (stream, service) = (TokioIo::new(stream), service.clone());
                tokio::spawn(async move {
                    // A client that goes away is its own affair.
                    let _ = match protocol {
                        Protocol::Http1 => {
                            hyper::server::conn::http1::Builder::new().serve_connection(stream, service).await
                        }
                        Protocol::H2c => {
                            hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                                .serve_connection(stream, service)
                                .await
                        }
                    };
                });
            }
        });
        AskedServer { address, asked, _runtime: runtime }
    }

    fn load(protocol: Protocol, upload: usize) -> ClosedLoop {
        let hosts = ["a.example.com", "b.example.com"].map(str::to_owned).into();
        ClosedLoop { protocol, connections: 2, hosts, path: "/bytes/12".to_owned(), upload }
    }

    #[test]
    fn exactly_so_many_requests_are_sent_to_all_hosts_in_turn() {
        for (protocol, upload, expected) in [
            (Protocol::Http1, 0, "HTTP/1.1 GET HOST 0"),
            (Protocol::H2c, 100_000, "HTTP/2.0 POST HOST 100000"),
        ] {
            let server = server(protocol, StatusCode::OK);
            load(protocol, upload).run(server.address, 8).unwrap();
            let mut asked = server.asked.lock().unwrap().clone();
            asked.sort();
            let hosts = [["a.example.com"; 4], ["b.example.com"; 4]].concat();
            let all: Vec<String> = hosts.into_iter().map(|host| expected.replace("HOST", host)).collect();
            assert_eq!(asked, all);
        }
    }

    #[test]
    fn an_answer_other_than_200_fails_the_load() {
        let server = server(Protocol::Http1, StatusCode::SERVICE_UNAVAILABLE);
        let error = format!("{:#}", load(Protocol::Http1, 0).run(server.address, 2).unwrap_err());
        assert!(error.contains("request 0 of connection") && error.contains("answered 503"), "{error}");
    }

    #[test]
    fn requests_that_cannot_be_shared_are_refused() {
        let nothing_listens = SocketAddr::from(([127, 0, 0, 1], 9));
        let error = load(Protocol::Http1, 0).run(nothing_listens, 3).unwrap_err().to_string();
        assert!(error.contains("3 requests cannot be shared by 2 connections"), "{error}");
    }
}
