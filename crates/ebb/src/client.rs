//! Asks the API of a running autoscaler.

use std::time::Duration;

use anyhow::{Context, bail};
use autoscaler::api_types::ApiError;
use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// An API that does not answer within this time is given up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// `GET path`, read as JSON.
pub(crate) async fn get<Answer: DeserializeOwned>(api: &str, path: &str) -> anyhow::Result<Answer> {
    let body = ask(api, Method::GET, path).await?;
    serde_json::from_slice(&body)
        .with_context(|| format!("{api}{path} answered something else than this version of ebb expects"))
}

/// One request; anything but success is an error with the text of the answer.
pub(crate) async fn ask(api: &str, method: Method, path: &str) -> anyhow::Result<Bytes> {
    tokio::time::timeout(PATIENCE, attempt(api, method, path))
        .await
        .with_context(|| format!("{api}{path} did not answer within {PATIENCE:?}"))?
}

/// What is wrong, in words: the API's own errors are JSON.
fn complaint(body: &[u8]) -> String {
    let said = serde_json::from_slice::<ApiError>(body).map(|said| said.error);
    said.unwrap_or_else(|_| String::from_utf8_lossy(body).trim().to_owned())
}

/// `GET path`, handed out line by line as it comes, however long that takes.
pub(crate) async fn lines(
    api: &str,
    path: &str,
    mut take: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut begun = Vec::new();
    let mut body = open(api, Method::GET, path).await?;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.with_context(|| format!("reading {api}{path}"))?.into_data() else { continue };
        begun.extend_from_slice(&data);
        while let Some(end) = begun.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = begun.drain(..=end).collect();
            take(String::from_utf8_lossy(&line[..end]).as_ref())?;
        }
    }
    Ok(())
}

async fn attempt(api: &str, method: Method, path: &str) -> anyhow::Result<Bytes> {
    let body = open(api, method, path).await?;
    whole(body).await.with_context(|| format!("asking {api}{path}"))
}

/// The body of a successful answer.
async fn open(api: &str, method: Method, path: &str) -> anyhow::Result<Incoming> {
    let url = if api.contains("://") { api.to_owned() } else { format!("http://{api}") };
    let uri: Uri = url
        .parse()
        .with_context(|| format!("{api:?} is not a URL; write something like http://127.0.0.1:9000"))?;
    if uri.scheme_str() != Some("http") {
        bail!("{api:?} does not begin with http://; write something like http://127.0.0.1:9000");
    }
    let host = uri.host().with_context(|| format!("{api:?} names no host"))?;
    let port = uri.port_u16().unwrap_or(80);
    // A URL has IPv6 addresses in brackets, which are no part of them.
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((address, port)).await.with_context(|| {
        format!("nothing answers at {api}; is `ebb up` running, or another address meant (--api)?")
    })?;
    exchange(stream, &format!("{host}:{port}"), (method, path)).await
}

/// One request over a connection of its own; anything but success is an error with the text of the answer.
pub(crate) async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    host: &str,
    (method, path): (Method, &str),
) -> anyhow::Result<Incoming> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::HOST, host)
        .body(Empty::<Bytes>::new())?;
    // It ends with the body, or with this process, whichever comes first.
    // After a panic in it there is no answer, which is an error below.
    tokio::spawn(connection);
    let response = sender.send_request(request).await.with_context(|| format!("asking {host}{path}"))?;
    let status = response.status();
    let body = response.into_body();
    if status == StatusCode::OK {
        return Ok(body);
    }
    bail!("{}", complaint(&whole(body).await?))
}

/// All of a body.
pub(crate) async fn whole(body: Incoming) -> anyhow::Result<Bytes> {
    Ok(body.collect().await?.to_bytes())
}
