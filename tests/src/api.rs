//! What the API of `ebb up` says of a revision, asked by the suite's own process.
//!
//! A wait asks again and again. An executable that is started for each of these questions takes more of the
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

/// A reader of one revision as `ebb explain -o json` shows it: it asks with the token, so that what apps
/// printed is part of it. No answer is older than the first question.
pub(crate) struct RevisionReader {
    api: SocketAddr,
    page: String,
    /// The connection that the last answer came over; none before the first answer, and after a failure.
    connection: Option<AskingConnection>,
}

impl RevisionReader {
    pub(crate) fn new(api: SocketAddr, service: &str) -> Self {
        Self { api, page: format!("/v1/revisions/default/service/{service}"), connection: None }
    }

    /// The state of the revision now.
    pub(crate) async fn read(&mut self) -> Result<Value, String> {
        let answer = tokio::time::timeout(PATIENCE, self.ask()).await;
        let answer = answer.unwrap_or_else(|_| Err(format!("{} took over {PATIENCE:?}", self.api)));
        if answer.is_err() {
            self.connection = None;
        }
        answer
    }

    async fn ask(&mut self) -> Result<Value, String> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            empty => empty.insert(AskingConnection::open(self.api).await?),
        };
        match connection.json(&self.page).await? {
            (StatusCode::OK, detail) => Ok(detail),
            (status, complaint) => Err(format!("{}: {status}: {complaint}", self.page)),
        }
    }
}

/// A connection to an API behind which autoscalers were ready.
struct AskingConnection {
    api: SocketAddr,
    sender: SendRequest<Empty<Bytes>>,
    token: Option<String>,
}

impl AskingConnection {
    async fn open(api: SocketAddr) -> Result<Self, String> {
        let connecting = |error: &dyn std::fmt::Display| format!("connecting to {api}: {error}");
        let stream = TcpStream::connect(api).await.map_err(|error| connecting(&error))?;
        let (sender, driver) = handshake(TokioIo::new(stream)).await.map_err(|error| connecting(&error))?;
        // It moves the bytes of the connection, and ends with `sender`. A question on it notices its end.
        tokio::spawn(driver);
        let mut connection = Self { api, sender, token: None };
        let (_, location) = connection.json("/v1/token").await?;
        let file = location["token_file"].as_str().map(PathBuf::from);
        connection.token = file.and_then(|file| std::fs::read_to_string(file).ok());
        connection.until_ready().await?;
        Ok(connection)
    }

    /// Waits until an autoscaler knows everything that is there, and readers find all that it knows.
    async fn until_ready(&mut self) -> Result<(), String> {
        let mut last = format!("/ready was not answered within {READY_MAX:?}");
        let attempts = async {
            loop {
                let (status, body) = self.get("/ready").await?;
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

    async fn json(&mut self, page: &str) -> Result<(StatusCode, Value), String> {
        let (status, body) = self.get(page).await?;
        let value = serde_json::from_slice(&body);
        Ok((status, value.map_err(|error| format!("{page}: {status}: {error}"))?))
    }

    async fn get(&mut self, page: &str) -> Result<(StatusCode, Bytes), String> {
        let api = self.api;
        let asking = |error: &dyn std::fmt::Display| format!("asking {api}{page}: {error}");
        let mut request = Request::get(page).header(HOST, api.to_string());
        if let Some(token) = &self.token {
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
