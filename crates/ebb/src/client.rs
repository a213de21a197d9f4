//! Asks the API of a running autoscaler.

use std::time::Duration;

use anyhow::{Context, bail};
use autoscaler::api_types::ApiError;
use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;

/// An API that does not answer within this time is given up.
const PATIENCE: Duration = Duration::from_secs(60);

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

async fn attempt(api: &str, method: Method, path: &str) -> anyhow::Result<Bytes> {
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
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::HOST, format!("{host}:{port}"))
        .body(Empty::<Bytes>::new())?;
    let connection = tokio::spawn(connection);
    let exchange = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        anyhow::Ok((status, response.into_body().collect().await?.to_bytes()))
    };
    let (status, body) = exchange.await.with_context(|| format!("asking {api}{path}"))?;
    connection.abort();
    if status != StatusCode::OK {
        bail!("{}", complaint(&body));
    }
    Ok(body)
}
