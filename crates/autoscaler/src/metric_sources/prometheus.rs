//! One question to a Prometheus server: an instant query, and its one number or what the server says instead.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use scaling::ClusterConfig;
use serde::Deserialize;
use tokio::net::TcpStream;
use vocabulary::{MilliValue, parse_quantity};

/// A server that does not answer within this time is given up for this round, which has a little longer.
const PATIENCE: Duration = Duration::from_secs(8);
/// The answer to a sum is one number; an error has a few lines.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Where to ask, and as whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PrometheusServer {
    /// Such as `http://127.0.0.1:9090`, or with a path before `/api/v1`.
    pub(super) url: String,
    /// Read at each question, because tokens are renewed.
    pub(super) bearer_token_file: Option<String>,
}

/// What a server answers, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Answer {
    status: String,
    #[serde(default)]
    error: String,
    data: Option<Data>,
}

#[derive(Debug, Deserialize)]
struct Data {
    #[serde(default)]
    result: Vec<Series>,
}

#[derive(Debug, Deserialize)]
struct Series {
    /// A time, and the number as text.
    value: (f64, String),
}

impl PrometheusServer {
    /// The one that is configured.
    pub(super) fn of(config: &ClusterConfig) -> Option<Self> {
        let url = config.prometheus_url.clone()?;
        Some(Self { url, bearer_token_file: config.prometheus_bearer_token_file.clone() })
    }

    /// Asks; the error is in the server's words where it has some.
    pub(super) async fn ask(&self, query: &str) -> Result<MilliValue, String> {
        let asked = tokio::time::timeout(PATIENCE, self.attempt(query)).await;
        asked.unwrap_or_else(|_| Err(format!("{} did not answer within {PATIENCE:?}", self.url)))
    }

    async fn attempt(&self, query: &str) -> Result<MilliValue, String> {
        let uri: Uri = self.url.parse().map_err(|error| format!("{}: {error}", self.url))?;
        let host = uri.host().ok_or_else(|| format!("{} names no host", self.url))?;
        let port = uri.port_u16().unwrap_or(80);
        // A URL has IPv6 addresses in brackets, which are no part of them.
        let address = (host.trim_start_matches('[').trim_end_matches(']'), port);
        let said = |error: &dyn std::fmt::Display| format!("{}: {error}", self.url);
        let stream = TcpStream::connect(address).await.map_err(|error| said(&error))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| said(&error))?;
        let prefix = uri.path().trim_end_matches('/');
        let mut request = Request::builder()
            .uri(format!("{prefix}/api/v1/query?query={}", runtime::percent_encoded(query)))
            .header(header::HOST, format!("{host}:{port}"));
        if let Some(file) = &self.bearer_token_file {
            let token = tokio::fs::read_to_string(file).await.map_err(|error| format!("{file}: {error}"))?;
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", token.trim()));
        }
        let request = request.body(Empty::<Bytes>::new()).map_err(|error| said(&error))?;
        let exchange = async {
            let response = sender.send_request(request).await.map_err(|error| said(&error))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
            let body = body.collect().await.map_err(|error| said(&error))?;
            Ok::<_, String>((status, body.to_bytes()))
        };
        // The connection is driven here, so that it ends with the question, however that ends.
        tokio::pin!(exchange);
        // The exchange is pinned outside, so it is not cancelled when the connection ends first; the
        // connection may be, once there is an answer.
        let (status, body) = tokio::select! {
            answered = &mut exchange => answered?,
            ended = connection => match ended {
                Ok(()) => exchange.await?,
                Err(error) => return Err(said(&error)),
            },
        };
        number_of(&body).unwrap_or_else(|| Err(format!("{} answered {status}", self.url)))
    }
}

/// The one number of an answer, or why there is none; `None` if it is no answer of Prometheus.
fn number_of(body: &[u8]) -> Option<Result<MilliValue, String>> {
    let answer: Answer = serde_json::from_slice(body).ok()?;
    if answer.status != "success" {
        return Some(Err(answer.error));
    }
    let series = answer.data?.result;
    let Some(Series { value: (_, text) }) = series.first() else {
        return Some(Err("no series".to_owned()));
    };
    // As text, so that 0.07 stays 70 thousandths. NaN and infinities are no quantities.
    Some(parse_quantity(text).map_err(|_| format!("the value is {text}, which says nothing")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_one_number_or_says_why_not() {
        let vector = |value: &str| {
            format!(
                r#"{{"status":"success","data":{{"resultType":"vector","result":[{{"metric":{{}},"value":[1.5,"{value}"]}}]}}}}"#
            )
        };
        for (body, expected) in [
            (vector("0.07"), Some(Ok(MilliValue::new(70)))),
            (vector("1e+06"), Some(Ok(MilliValue::new(1_000_000_000)))),
            (vector("-3"), Some(Ok(MilliValue::new(-3000)))),
            (vector("NaN"), Some(Err("the value is NaN, which says nothing".to_owned()))),
            (vector("+Inf"), Some(Err("the value is +Inf, which says nothing".to_owned()))),
            (
                r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#.to_owned(),
                Some(Err("no series".to_owned())),
            ),
            (
                r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#.to_owned(),
                Some(Err("parse error".to_owned())),
            ),
            ("<html>".to_owned(), None),
        ] {
            assert_eq!(number_of(body.as_bytes()), expected, "{body}");
        }
    }
}
