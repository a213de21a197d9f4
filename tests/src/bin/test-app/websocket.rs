//! A WebSocket that sends every message back.

use futures_util::{SinkExt, StreamExt};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::{Body, status};

/// Switches protocols and echoes until the client closes; 400 for a request that does not ask for it.
pub(crate) fn accept(mut request: Request<Incoming>) -> Response<Body> {
    let Some(key) = request.headers().get("sec-websocket-key") else {
        return status(StatusCode::BAD_REQUEST);
    };
    let accepted = derive_accept_key(key.as_bytes());
    tokio::spawn(echo(hyper::upgrade::on(&mut request)));
    let mut response = status(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers_mut();
    headers.insert("connection", HeaderValue::from_static("Upgrade"));
    headers.insert("upgrade", HeaderValue::from_static("websocket"));
    headers.insert("sec-websocket-accept", HeaderValue::try_from(accepted).expect("base64 is header text"));
    response
}

async fn echo(upgrade: OnUpgrade) {
    let Ok(upgraded) = upgrade.await else { return };
    let mut socket: WebSocketStream<TokioIo<Upgraded>> =
        WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
    while let Some(Ok(message)) = socket.next().await {
        let is_for_us = message.is_text() || message.is_binary();
        if is_for_us && socket.send(message).await.is_err() {
            return;
        }
    }
}
