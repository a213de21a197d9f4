//! How is the API server reached?
//!
//! Whether and when a request is sent again is decided where its outcome matters: a count that was to be
//! written may be another by then, and the lease another's. So kube's client, which by itself repeats what is
//! answered 429, 503 or 504 up to 15 times, is told not to, and how long the server wants to be left alone,
//! which it says in a header that kube drops (`Retry-After`), is put where errors have room for it.

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::response::Parts;
use http::{HeaderMap, Response};
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use kube::client::ClientBuilder;
use kube::{Client, Config};
use serde_json::{Value, json};
use tower::BoxError;
use tower::util::AndThenLayer;

type AnyBody = UnsyncBoxBody<Bytes, BoxError>;

/// As a pod's service account or a kubeconfig says.
pub(crate) async fn connect() -> Result<Client, kube::Error> {
    client(Config::infer().await.map_err(kube::Error::InferConfig)?)
}

pub(crate) fn client(mut config: Config) -> Result<Client, kube::Error> {
    config.default_retry = false;
    let builder = ClientBuilder::try_from(config)?;
    Ok(builder.with_layer(&AndThenLayer::new(with_the_wait)).build())
}

/// A refusal says in its `Status` how long to wait, wherever the server wrote it.
async fn with_the_wait<Answer>(response: Response<Answer>) -> Result<Response<AnyBody>, BoxError>
where
    Answer: Body<Data = Bytes> + Send + 'static,
    Answer::Error: Into<BoxError>,
{
    let (parts, body) = response.into_parts();
    let body = body.map_err(Into::into).boxed_unsync();
    let Some(seconds) = wait(&parts.headers).filter(|_| !parts.status.is_success()) else {
        return Ok(Response::from_parts(parts, body));
    };
    let text = body.collect().await?.to_bytes();
    let status = serde_json::to_vec(&status(&text, &parts, seconds))?;
    let body = Full::new(Bytes::from(status)).map_err(|never| match never {});
    Ok(Response::from_parts(parts, body.boxed_unsync()))
}

/// Others than seconds (a date) no API server writes.
fn wait(headers: &HeaderMap) -> Option<u32> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}

/// A request that the server turns away unread gets a line of text.
fn status(text: &[u8], parts: &Parts, seconds: u32) -> Value {
    let written = serde_json::from_slice(text).ok().filter(|status: &Value| status["kind"] == "Status");
    let mut status = written.unwrap_or_else(|| {
        let message = String::from_utf8_lossy(text);
        json!({"kind": "Status", "status": "Failure", "message": message.trim(), "code": parts.status.as_u16()})
    });
    if !status["details"].is_object() {
        status["details"] = json!({});
    }
    status["details"]["retryAfterSeconds"] = json!(seconds);
    status
}
