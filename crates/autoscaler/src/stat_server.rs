//! Takes the load that Knative's activators push, where ebb's autoscaler stands in the place of Knative's.
//!
//! An activator of Knative's holds a WebSocket to its autoscaler: without one it is unready after 25 s and
//! restarted after two minutes. It sends binary frames, and pings every 3.3 s; nothing is sent to it but
//! pongs, and 1012 at the end, upon which it connects again. What it says waits on a bounded desk: while that
//! is full, the connection is not read.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONNECTION, HOST, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE, USER_AGENT};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use link::{STAT_FRAME_BYTES_MAX, read_stat_frame};
use runtime::is_of_one_connection;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_util::sync::CancellationToken;
use vocabulary::ReplicaName;

use crate::stat_desk::StatDesk;

/// Connections at once: there are at most 20 activators, and kubelet's probes.
const CONNECTIONS_MAX: usize = 256;
/// How long the head of a request may take, as in Knative.
const HEAD_WITHIN: Duration = Duration::from_secs(60);
/// The pause after a connection that could not be accepted, as when there are no descriptors left.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// An activator pings every 3.3 s; one that is silent for three pings is gone.
const SILENT_MAX: Duration = Duration::from_secs(10);
/// How long an activator may take to close a connection, once it is asked to.
const CLOSE_MAX: Duration = Duration::from_secs(5);
/// How hosts begin to which Knative's autoscalers connect when they pass load on to each other.
const BUCKET_HOST: &str = "autoscaler-bucket";
const KUBELET_PROBE: HeaderName = HeaderName::from_static("k-kubelet-probe");

/// One of the places for connections, which is free again once the last clone is dropped.
#[derive(Clone, Debug)]
struct ConnectionPlace(#[expect(dead_code, reason = "it is held, and never read")] Arc<OwnedSemaphorePermit>);

/// The end of these WebSockets at the autoscaler.
#[derive(Clone, Debug)]
pub struct StatServer {
    desk: StatDesk,
    stop: CancellationToken,
}

impl StatServer {
    /// A server that lays what comes on this desk. Its connections end when `stop` is cancelled.
    pub fn new(desk: StatDesk, stop: CancellationToken) -> Self {
        Self { desk, stop }
    }

    /// Serves at a listener of its own until dropped: an upgraded connection must not be cut by the limits of
    /// pages. Connections live on as tasks of their own. Fails at once if the listener cannot be used.
    pub fn serve(
        self,
        listener: std::net::TcpListener,
    ) -> std::io::Result<impl Future<Output = Infallible> + use<>> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        Ok(async move {
            loop {
                let place = Arc::clone(&places).acquire_owned().await.expect("the places are never closed");
                match listener.accept().await {
                    Ok((stream, _)) => {
                        // A panic ends this connection alone: the activator dials again.
                        tokio::spawn(self.clone().serve_connection(stream, ConnectionPlace(Arc::new(place))));
                    }
                    // Only that peer has gone.
                    Err(error) if is_of_one_connection(&error) => {}
                    Err(error) => {
                        tracing::warn!(%error, "a connection of an activator could not be accepted");
                        tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
                    }
                }
            }
        })
    }

    async fn serve_connection(self, stream: TcpStream, place: ConnectionPlace) {
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            // It goes on with the connection, also after an upgrade.
            request.extensions_mut().insert(place.clone());
            let response = self.answer_any(request.map(Body::new));
            async move { Ok::<_, Infallible>(response) }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
        if let Err(error) = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await {
            tracing::debug!(%error, "a connection to the port of stats ended early");
        }
    }

    fn answer_any(&self, request: Request) -> Response {
        if Self::takes(request.headers()) {
            return self.answer(request);
        }
        let why = "this port takes the load of Knative's activators, by WebSocket; the API has a port of its own (AUTOSCALER_API_ADDRESS)\n";
        (StatusCode::NOT_FOUND, why).into_response()
    }

    /// Whether this server answers a request, whatever the path of that is: a probe of kubelet's, or an
    /// upgrade to a WebSocket.
    pub fn takes(headers: &HeaderMap) -> bool {
        is_kubelet(headers) || text(headers, &UPGRADE).eq_ignore_ascii_case("websocket")
    }

    /// Answers a request for which [`StatServer::takes`] holds.
    pub fn answer(&self, mut request: Request) -> Response {
        let headers = request.headers();
        if is_kubelet(headers) {
            return StatusCode::OK.into_response();
        }
        if text(headers, &HOST).starts_with(BUCKET_HOST) {
            let why = "this autoscaler takes no load that another autoscaler passes on; run one replica beside Knative's activators\n";
            return (StatusCode::MISDIRECTED_REQUEST, why).into_response();
        }
        let Some(key) = headers.get(SEC_WEBSOCKET_KEY) else {
            return (StatusCode::BAD_REQUEST, "sec-websocket-key is not set; send it with the upgrade\n")
                .into_response();
        };
        let accept = derive_accept_key(key.as_bytes());
        let accept = HeaderValue::try_from(accept).expect("base64 is the text of a header");
        let upgrade = hyper::upgrade::on(&mut request);
        let place = request.extensions_mut().remove::<ConnectionPlace>();
        // A panic ends this conversation alone: the activator dials again.
        tokio::spawn(self.clone().converse_once_upgraded(upgrade, place));
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        response
    }

    async fn converse_once_upgraded(self, upgrade: OnUpgrade, _place: Option<ConnectionPlace>) {
        let upgraded = match upgrade.await {
            Ok(upgraded) => TokioIo::new(upgraded),
            Err(error) => {
                return tracing::debug!(%error, "an activator's connection ended before its upgrade");
            }
        };
        let limit = Some(STAT_FRAME_BYTES_MAX);
        let config = WebSocketConfig::default().max_message_size(limit).max_frame_size(limit);
        let socket = WebSocketStream::from_raw_socket(upgraded, Role::Server, Some(config)).await;
        self.converse(socket).await;
    }

    /// Takes what comes, until the connection ends; then the activator is not heard any more.
    async fn converse<Stream>(self, socket: WebSocketStream<Stream>)
    where
        Stream: AsyncRead + AsyncWrite + Unpin,
    {
        let mut known = BTreeSet::new();
        self.read(socket, &mut known).await;
        self.desk.left(known);
    }

    /// Reads frames until the activator leaves, is silent, or this program stops.
    async fn read<Stream>(&self, mut socket: WebSocketStream<Stream>, known: &mut BTreeSet<ReplicaName>)
    where
        Stream: AsyncRead + AsyncWrite + Unpin,
    {
        loop {
            // Cancelled: the wait for a frame, of which no byte is lost, for the connection is closed. Pings
            // are answered by the socket, at its next look.
            let message = tokio::select! {
                () = self.stop.cancelled() => return close(socket).await,
                message = tokio::time::timeout(SILENT_MAX, socket.next()) => message,
            };
            match message {
                Ok(Some(Ok(Message::Binary(frame)))) => match read_stat_frame(&frame) {
                    // Cancelled: the wait for room on the desk. Nobody would read the frame any more.
                    Ok(reports) => tokio::select! {
                        () = self.stop.cancelled() => return close(socket).await,
                        () = self.desk.take(reports, known) => {}
                    },
                    // The next frame may be right again, and the activator needs its connection.
                    Err(error) => tracing::warn!(%error, "a frame of an activator is not read"),
                },
                Ok(Some(Ok(
                    Message::Text(_)
                    | Message::Ping(_)
                    | Message::Pong(_)
                    | Message::Close(_)
                    | Message::Frame(_),
                ))) => {}
                Ok(Some(Err(error))) => return tracing::debug!(%error, "an activator's connection broke"),
                Ok(None) => return,
                Err(_) => return tracing::debug!("an activator was silent for three pings"),
            }
        }
    }
}

/// Tells the activator to come back, to whichever autoscaler is there by then.
async fn close<Stream>(mut socket: WebSocketStream<Stream>)
where
    Stream: AsyncRead + AsyncWrite + Unpin,
{
    let frame = CloseFrame { code: CloseCode::Restart, reason: "the autoscaler stops".into() };
    let closing = async {
        if socket.close(Some(frame)).await.is_ok() {
            while let Some(Ok(_)) = socket.next().await {}
        }
    };
    // One that does not answer is dropped.
    let _ = tokio::time::timeout(CLOSE_MAX, closing).await;
}

fn is_kubelet(headers: &HeaderMap) -> bool {
    text(headers, &USER_AGENT).starts_with("kube-probe/") || !text(headers, &KUBELET_PROBE).is_empty()
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
