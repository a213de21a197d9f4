//! What the API of `ebb up` says, asked by the suite's own process.
//!
//! A wait asks every 50 ms. An executable that is started for each of these questions takes more of the
//! machine than the event that is waited for. A test of `ebb get` or `ebb explain` runs that command.
//!
//! The API shows what autoscalers published, which is up to 100 ms old. `/ready` is answered once readers
//! find everything that was known when it was asked, so a question behind it is answered with nothing older.

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

/// An autoscaler that was just rebuilt is not ready. On a busy machine that takes seconds.
const READY_MAX: Duration = Duration::from_secs(20);

/// How old an answer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// It shows everything that the autoscalers knew when they were asked.
    Present,
    /// It shows what was published last. An answer before it showed what was present.
    Published,
}

/// A revision as `ebb explain -o json` shows it: asked with the token, so that what apps printed is part of
/// it.
pub(crate) async fn revision(api: SocketAddr, service: &str, freshness: Freshness) -> Result<Value, String> {
    let answer = tokio::time::timeout(PATIENCE, asked(api, service, freshness)).await;
    answer.unwrap_or_else(|_| Err(format!("{api} did not answer within {PATIENCE:?}")))
}

async fn asked(api: SocketAddr, service: &str, freshness: Freshness) -> Result<Value, String> {
    let mut connection = AskingConnection::open(api).await?;
    let (_, location) = connection.json("/v1/token", None).await?;
    let file = location["token_file"].as_str().map(PathBuf::from);
    let token = file.and_then(|file| std::fs::read_to_string(file).ok());
    if freshness == Freshness::Present {
        connection.until_ready(token.as_deref()).await?;
    }
    let page = format!("/v1/revisions/default/service/{service}");
    match connection.json(&page, token.as_deref()).await? {
        (StatusCode::OK, detail) => Ok(detail),
        (status, complaint) => Err(format!("{page}: {status}: {complaint}")),
    }
}

/// A connection to the API.
struct AskingConnection {
    api: SocketAddr,
    sender: SendRequest<Empty<Bytes>>,
}

impl AskingConnection {
    async fn open(api: SocketAddr) -> Result<Self, String> {
        let asking = |error: &dyn std::fmt::Display| format!("connecting to {api}: {error}");
        let stream = TcpStream::connect(api).await.map_err(|error| asking(&error))?;
        let (sender, driver) = handshake(TokioIo::new(stream)).await.map_err(|error| asking(&error))?;
        // It moves the bytes of the connection. A question notices its end, and it ends with `sender`.
        tokio::spawn(driver);
        Ok(Self { api, sender })
    }

    /// Waits until an autoscaler knows everything that is there, and readers find all that it knows.
    async fn until_ready(&mut self, token: Option<&str>) -> Result<(), String> {
        let mut last = String::new();
        let attempts = async {
            loop {
                let (status, body) = self.get("/ready", token).await?;
                if status == StatusCode::OK {
                    return Ok::<(), String>(());
                }
                last = format!("/ready: {status}: {}", String::from_utf8_lossy(&body));
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let answer = tokio::time::timeout(READY_MAX, attempts).await;
        answer.unwrap_or(Err(last))
    }

    async fn json(&mut self, page: &str, token: Option<&str>) -> Result<(StatusCode, Value), String> {
        let (status, body) = self.get(page, token).await?;
        let value = serde_json::from_slice(&body);
        Ok((status, value.map_err(|error| format!("{page}: {status}: {error}"))?))
    }

    async fn get(&mut self, page: &str, token: Option<&str>) -> Result<(StatusCode, Bytes), String> {
        let api = self.api;
        let asking = |error: &dyn std::fmt::Display| format!("asking {api}{page}: {error}");
        let mut request = Request::get(page).header(HOST, api.to_string());
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {}", token.trim()));
        }
        let request = request.body(Empty::new()).map_err(|error| asking(&error))?;
        self.sender.ready().await.map_err(|error| asking(&error))?;
        let answer = self.sender.send_request(request).await.map_err(|error| asking(&error))?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(|error| asking(&error))?.to_bytes();
        Ok((status, body))
    }
}
