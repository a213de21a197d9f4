//! Honest clients beside an attack: each asks for 12 bytes a hundred times a second, whatever the attacker
//! does. Where pages are attacked, half of them ask for a page instead, as kubelet does: each time on a
//! connection of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::{Request, Version};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tests::bench::proxies::Protocol;
use tests::bench::{Samples, clock};
use tests::client::whole_answer;
use tokio::net::TcpStream;

/// How many there are, each on a connection of its own.
const CLIENTS: u32 = 4;
/// The time between two requests of one honest client.
const EVERY: Duration = Duration::from_millis(10);
/// A request without a whole answer after this long is lost.
const PATIENCE: Duration = Duration::from_secs(5);

/// The answers and latencies that the honest clients saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// In milliseconds, from the moment at which a request was to be sent.
    pub(crate) latency: Samples,
    pub(crate) lost: u32,
    pub(crate) asked: u32,
    /// Why the first lost one was lost.
    pub(crate) why: Option<String>,
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.latency.0.extend(other.latency.0);
        self.lost += other.lost;
        self.asked += other.asked;
        self.why = self.why.take().or(other.why);
    }
}

/// The addresses that honest clients ask, for requests and pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destinations {
    pub(crate) protocol: Protocol,
    /// The port at which the contestant takes requests.
    pub(crate) requests: u16,
    /// The port of pages, where these are attacked.
    pub(crate) pages: Option<u16>,
}

impl Destinations {
    /// Of the client with this number.
    fn of(self, number: u32) -> Destination {
        match self.pages {
            Some(pages) if number % 2 == 1 => Destination::Pages { port: pages },
            _ => Destination::Requests { protocol: self.protocol, port: self.requests },
        }
    }
}

/// The port and the protocol of one honest client.
#[derive(Clone, Copy, Debug)]
enum Destination {
    Requests { protocol: Protocol, port: u16 },
    Pages { port: u16 },
}

/// Asks for so long, and waits for the last answers.
pub(crate) fn ask(destinations: Destinations, time: Duration) -> anyhow::Result<Seen> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let client = Client { to: destinations.of(number), offset: EVERY / CLIENTS * number };
                tokio::spawn(client.ask(time))
            })
            .collect();
        let mut seen = Seen::default();
        for client in clients {
            seen.add(client.await?);
        }
        Ok(seen)
    })
}

struct Client {
    to: Destination,
    /// So that not all of them ask at once.
    offset: Duration,
}

impl Client {
    async fn ask(self, time: Duration) -> Seen {
        let mut seen = Seen::default();
        let mut connection = None;
        let begin = clock::now() + self.offset;
        let planned = (0..).map(|number| begin + EVERY * number).take_while(|at| *at < begin + time);
        for at in planned {
            seen.asked += 1;
            // Whoever is late asks at once, and the time counts from when it should have.
            tokio::time::sleep(at.saturating_sub(clock::now())).await;
            let left = (at + PATIENCE).saturating_sub(clock::now());
            let answer = tokio::time::timeout(left, self.once(&mut connection)).await;
            match answer.context("no answer in time").flatten() {
                Ok(()) => seen.latency.push(clock::millis(clock::since(at))),
                Err(error) => {
                    connection = None;
                    seen.lost += 1;
                    seen.why.get_or_insert_with(|| format!("{error:#}"));
                }
            }
        }
        seen
    }

    async fn once(&self, connection: &mut Option<Connection>) -> anyhow::Result<()> {
        match self.to {
            Destination::Pages { port } => ask_page(port).await,
            Destination::Requests { protocol, port } => {
                let sender = match connection {
                    Some(sender) => sender,
                    None => connection.insert(Connection::open(protocol, port).await?),
                };
                ask_app(sender).await
            }
        }
    }
}

async fn ask_page(port: u16) -> anyhow::Result<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let answer = whole_answer(address, "localhost", "/healthz").await?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "answered with {answer}");
    Ok(())
}

async fn ask_app(sender: &mut Connection) -> anyhow::Result<()> {
    let response = match sender {
        Connection::Http1(sender) => {
            sender.ready().await?;
            let request = Request::builder().uri("/bytes/12").header("host", "localhost");
            sender.send_request(request.body(Empty::new())?).await?
        }
        Connection::Http2(sender) => {
            sender.ready().await?;
            let request = Request::builder().uri("http://localhost/bytes/12").version(Version::HTTP_2);
            sender.send_request(request.body(Empty::new())?).await?
        }
    };
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    ensure!(status == 200 && body.len() == 12, "answered with {status} and {} bytes", body.len());
    Ok(())
}

enum Connection {
    Http1(http1::SendRequest<Empty<Bytes>>),
    Http2(http2::SendRequest<Empty<Bytes>>),
}

impl Connection {
    async fn open(protocol: Protocol, port: u16) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        stream.set_nodelay(true)?;
        let io = TokioIo::new(stream);
        // How a connection ends is seen by whoever waits for an answer on it.
        match protocol {
            Protocol::Http1 => {
                let (sender, connection) = http1::handshake(io).await?;
                tokio::spawn(async { connection.await.unwrap_or_default() });
                Ok(Self::Http1(sender))
            }
            Protocol::H2c => {
                let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
                tokio::spawn(async { connection.await.unwrap_or_default() });
                Ok(Self::Http2(sender))
            }
        }
    }
}
