//! Clients in a pod's network that connect once and use that connection until they are told to end.

use std::net::SocketAddr;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use nix::sched::{CloneFlags, setns};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};

use crate::protocols::{EchoCall, EchoSocket};

/// The pause of a client between two exchanges.
const PAUSE: Duration = Duration::from_millis(500);

/// A client without an answer after so long is cut: nothing that it asks takes long.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// The protocol that a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientKind {
    Http1,
    Http2,
    Grpc,
    WebSocket,
}

impl ClientKind {
    pub(super) const ALL: [Self; 4] = [Self::Http1, Self::Http2, Self::Grpc, Self::WebSocket];
}

/// A client whose connection ended before the client did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CutClient {
    kind: ClientKind,
    how: String,
}

/// Clients on a thread of their own, which stays in the network of a pod.
pub(super) struct KeptClients {
    is_over: watch::Sender<bool>,
    thread: JoinHandle<Vec<CutClient>>,
}

impl KeptClients {
    /// Returns once each client has had its first answer.
    pub(super) async fn connect(kinds: &[ClientKind], network: &Path, at: SocketAddr) -> Self {
        let network = std::fs::File::open(network).expect("there is such a network");
        let (is_over, over) = watch::channel(false);
        let (answered, mut first_answers) = mpsc::channel(kinds.len());
        let kinds = kinds.to_vec();
        let wanted = kinds.len();
        let thread = std::thread::spawn(move || {
            setns(network, CloneFlags::CLONE_NEWNET).expect("root may enter it");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime starts").block_on(async {
                let started = kinds
                    .into_iter()
                    .map(|kind| (kind, tokio::spawn(keep_asking(kind, at, answered.clone(), over.clone()))));
                let started: Vec<_> = started.collect();
                // So that a client that ends without a first answer is seen.
                drop(answered);
                let mut cut = Vec::new();
                for (kind, client) in started {
                    // A client that panics had another answer than it waited for: none.
                    let ended = client.await.unwrap_or_else(|error| Err(error.to_string()));
                    cut.extend(ended.err().map(|how| CutClient { kind, how }));
                }
                cut
            })
        });
        for _ in 0..wanted {
            first_answers.recv().await.expect("each client is answered");
        }
        Self { is_over, thread }
    }

    /// Ends the clients; returns those whose connection had ended before.
    pub(super) async fn end(self) -> Vec<CutClient> {
        // No client listens if each of them was cut.
        let _ = self.is_over.send(true);
        let joined = tokio::task::spawn_blocking(|| self.thread.join()).await;
        joined.expect("it is awaited").expect("the thread of the clients does not panic")
    }
}

async fn keep_asking(
    kind: ClientKind,
    at: SocketAddr,
    answered: mpsc::Sender<()>,
    mut over: watch::Receiver<bool>,
) -> Result<(), String> {
    let mut conversation = Conversation::begin(kind, at).await?;
    conversation.exchange().await?;
    answered.send(()).await.map_err(|error| error.to_string())?;
    drop(answered);
    loop {
        tokio::select! {
            _over = over.changed() => return Ok(()),
            () = tokio::time::sleep(PAUSE) => conversation.exchange().await?,
        }
    }
}

/// One connection, however it is used.
enum Conversation {
    Http1(http1::SendRequest<Empty<Bytes>>),
    Http2(http2::SendRequest<Empty<Bytes>>),
    Grpc(EchoCall),
    WebSocket(Box<EchoSocket>),
}

impl Conversation {
    async fn begin(kind: ClientKind, at: SocketAddr) -> Result<Self, String> {
        let connect =
            async || TcpStream::connect(at).await.map(TokioIo::new).map_err(|error| error.to_string());
        Ok(match kind {
            ClientKind::Http1 => {
                let shaken = http1::handshake(connect().await?).await;
                let (sender, connection) = shaken.map_err(|error| error.to_string())?;
                // How a connection ends shows at the request that waits on it.
                tokio::spawn(async { connection.await.unwrap_or_default() });
                Self::Http1(sender)
            }
            ClientKind::Http2 => {
                let shaken = http2::handshake(TokioExecutor::new(), connect().await?).await;
                let (sender, connection) = shaken.map_err(|error| error.to_string())?;
                tokio::spawn(async { connection.await.unwrap_or_default() });
                Self::Http2(sender)
            }
            ClientKind::Grpc => Self::Grpc(EchoCall::begin(at).await),
            ClientKind::WebSocket => Self::WebSocket(Box::new(EchoSocket::open(at).await)),
        })
    }

    async fn exchange(&mut self) -> Result<(), String> {
        let answered = tokio::time::timeout(ANSWERED_WITHIN, self.ask()).await;
        answered.unwrap_or_else(|_| Err(format!("no answer within {ANSWERED_WITHIN:?}")))
    }

    async fn ask(&mut self) -> Result<(), String> {
        let answer = match self {
            Self::Http1(sender) => sender.send_request(request("/")).await,
            Self::Http2(sender) => sender.send_request(request("http://hello/")).await,
            Self::Grpc(call) => {
                call.echoes("again").await;
                return Ok(());
            }
            Self::WebSocket(socket) => {
                socket.echoes("again").await;
                return Ok(());
            }
        };
        let answer = answer.map_err(|error| error.to_string())?;
        if answer.status() != 200 {
            return Err(format!("{}", answer.status()));
        }
        answer.into_body().collect().await.map(|_| ()).map_err(|error| error.to_string())
    }
}

fn request(target: &str) -> Request<Empty<Bytes>> {
    Request::get(target).header("host", "hello").body(Empty::new()).expect("it is well-formed")
}
