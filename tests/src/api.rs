//! What the API of `ebb up` says, asked by the suite's own process.
//!
//! A wait asks every 50 ms. An executable that is started for each of these questions takes more of the
//! machine than the event that is waited for. A test of `ebb get` or `ebb explain` runs that command.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// As long as the commands of `ebb` wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A revision as `ebb explain -o json` shows it: asked with the token, so that what apps printed is part of
/// it.
pub(crate) async fn revision(api: SocketAddr, service: &str) -> Result<Value, String> {
    let answer = tokio::time::timeout(PATIENCE, asked(api, service)).await;
    answer.unwrap_or_else(|_| Err(format!("{api} did not answer within {PATIENCE:?}")))
}

async fn asked(api: SocketAddr, service: &str) -> Result<Value, String> {
    let stream = TcpStream::connect(api).await.map_err(|error| format!("connecting to {api}: {error}"))?;
    let (mut connection, driver) =
        handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    // It ends with `connection`.
    tokio::spawn(driver);
    let (_, location) = exchange(&mut connection, api, "/v1/token", None).await?;
    let file = location["token_file"].as_str().map(PathBuf::from);
    let token = file.and_then(|file| std::fs::read_to_string(file).ok());
    let page = format!("/v1/revisions/default/service/{service}");
    match exchange(&mut connection, api, &page, token.as_deref()).await? {
        (StatusCode::OK, detail) => Ok(detail),
        (status, complaint) => Err(format!("{page}: {status}: {complaint}")),
    }
}

async fn exchange(
    connection: &mut SendRequest<Empty<Bytes>>,
    api: SocketAddr,
    page: &str,
    token: Option<&str>,
) -> Result<(StatusCode, Value), String> {
    let asking = |error: &dyn std::fmt::Display| format!("asking {api}{page}: {error}");
    let mut request = Request::get(page).header(HOST, api.to_string());
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {}", token.trim()));
    }
    let request = request.body(Empty::new()).map_err(|error| asking(&error))?;
    connection.ready().await.map_err(|error| asking(&error))?;
    let answer = connection.send_request(request).await.map_err(|error| asking(&error))?;
    let status = answer.status();
    let body = answer.into_body().collect().await.map_err(|error| asking(&error))?.to_bytes();
    Ok((status, serde_json::from_slice(&body).map_err(|error| asking(&error))?))
}
