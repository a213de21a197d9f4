//! One question to a Prometheus server: an instant query, and its one number; or a query over a range, and
//! its numbers; or what the server says instead.

use std::ops::RangeInclusive;
use std::time::Duration;

use bytes::Bytes;
use http::uri::Scheme;
use http::{Request, StatusCode, Uri, header};
use http_body_util::Empty;
use serde::Deserialize;
use settings::ClusterConfig;
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::ServerName;
use vocabulary::{MilliValue, parse_quantity};

use super::tls;
use crate::http_exchange::exchange;

/// A server that does not answer within this time is given up for this round, which has a little longer.
const PATIENCE: Duration = Duration::from_secs(8);
/// The answer to a sum is one number; an error has a few lines.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The answer to a query over a range: 11,000 points of one series, with room to spare.
const RANGE_BYTES_MAX: usize = 1024 * 1024;

/// The address of Prometheus, and the credentials to show there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PrometheusServer {
    /// Such as `http://127.0.0.1:9090` or `https://prometheus.example.com`, or with a path before `/api/v1`.
    pub(super) url: String,
    /// Read at each question, because tokens are renewed.
    pub(super) bearer_token_file: Option<String>,
    /// The authorities that vouch for a server over TLS; `None`: those that the machine trusts.
    pub(super) ca_file: Option<String>,
}

/// What a server answers, as far as it matters here.
#[derive(Debug, Deserialize)]
struct PrometheusAnswer<Series> {
    status: String,
    #[serde(default)]
    error: String,
    data: Option<PrometheusData<Series>>,
}

#[derive(Debug, Deserialize)]
struct PrometheusData<Series> {
    #[serde(default = "Vec::new")]
    result: Vec<Series>,
}

#[derive(Debug, Deserialize)]
struct PrometheusRange {
    /// Times, and the number at each as text.
    values: Vec<(f64, String)>,
}

#[derive(Debug, Deserialize)]
struct PrometheusSeries {
    /// A time, and the number as text.
    value: (f64, String),
}

impl PrometheusServer {
    /// The one that is configured.
    pub(super) fn of(config: &ClusterConfig) -> Option<Self> {
        let url = config.prometheus_url.clone()?;
        let bearer_token_file = config.prometheus_bearer_token_file.clone();
        Some(Self { url, bearer_token_file, ca_file: config.prometheus_ca_file.clone() })
    }

    /// Asks; the error is in the server's words where it has some.
    pub(super) async fn ask(&self, query: &str) -> Result<MilliValue, String> {
        let page = format!("query?query={}", runtime::percent_encoded(query));
        let (status, body) = self.fetch(&page, ANSWER_BYTES_MAX).await?;
        number_of(&body).unwrap_or_else(|| Err(format!("{} answered {status}", self.url)))
    }

    /// Asks for the numbers of one series at each of these seconds since 1970 that is a step from the first,
    /// each with its second. Seconds without a number are left out.
    pub(super) async fn ask_range(
        &self,
        query: &str,
        seconds: RangeInclusive<u64>,
        step: Duration,
    ) -> Result<Vec<(f64, f64)>, String> {
        let (query, start, end) = (runtime::percent_encoded(query), seconds.start(), seconds.end());
        let page = format!("query_range?query={query}&start={start}&end={end}&step={}", step.as_secs());
        let (status, body) = self.fetch(&page, RANGE_BYTES_MAX).await?;
        numbers_of(&body).unwrap_or_else(|| Err(format!("{} answered {status}", self.url)))
    }

    async fn fetch(&self, page: &str, bytes_max: usize) -> Result<(StatusCode, Bytes), String> {
        let asked = tokio::time::timeout(PATIENCE, self.attempt(page, bytes_max)).await;
        asked.unwrap_or_else(|_| Err(format!("{} did not answer within {PATIENCE:?}", self.url)))
    }

    async fn attempt(&self, page: &str, bytes_max: usize) -> Result<(StatusCode, Bytes), String> {
        let uri: Uri = self.url.parse().map_err(|error| format!("{}: {error}", self.url))?;
        let is_encrypted = uri.scheme() == Some(&Scheme::HTTPS);
        let host = uri.host().ok_or_else(|| format!("{} names no host", self.url))?;
        let port = uri.port_u16().unwrap_or(if is_encrypted { 443 } else { 80 });
        let prefix = uri.path().trim_end_matches('/');
        let mut request = Request::builder()
            .uri(format!("{prefix}/api/v1/{page}"))
            .header(header::HOST, format!("{host}:{port}"));
        if let Some(file) = &self.bearer_token_file {
            let token = tokio::fs::read_to_string(file).await.map_err(|error| format!("{file}: {error}"))?;
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", token.trim()));
        }
        let request = request.body(Empty::<Bytes>::new()).map_err(|error| self.said(&error))?;
        // A URL has IPv6 addresses in brackets, which are no part of them.
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((host, port)).await.map_err(|error| self.said(&error))?;
        let answered = if is_encrypted {
            let connector = tls::connector(self.ca_file.as_deref()).await?;
            let name = ServerName::try_from(host.to_owned()).map_err(|error| self.said(&error))?;
            let stream = connector.connect(name, stream).await.map_err(|error| self.said(&error))?;
            exchange(stream, request, bytes_max).await
        } else {
            exchange(stream, request, bytes_max).await
        };
        answered.map_err(|error| self.said(&error))
    }

    fn said(&self, error: &dyn std::fmt::Display) -> String {
        format!("{}: {error}", self.url)
    }
}

/// The one number of an answer, or why there is none; `None` if it is no answer of Prometheus.
fn number_of(body: &[u8]) -> Option<Result<MilliValue, String>> {
    let answer: PrometheusAnswer<PrometheusSeries> = serde_json::from_slice(body).ok()?;
    if answer.status != "success" {
        return Some(Err(answer.error));
    }
    let series = answer.data?.result;
    let Some(PrometheusSeries { value: (_, text) }) = series.first() else {
        return Some(Err("no series".to_owned()));
    };
    // As text, so that 0.07 stays 70 thousandths. NaN and infinities are no quantities.
    Some(parse_quantity(text).map_err(|_| format!("the value is {text}, which says nothing")))
}

/// The numbers of an answer, or why there is none; `None` if it is no answer of Prometheus.
fn numbers_of(body: &[u8]) -> Option<Result<Vec<(f64, f64)>, String>> {
    let answer: PrometheusAnswer<PrometheusRange> = serde_json::from_slice(body).ok()?;
    if answer.status != "success" {
        return Some(Err(answer.error));
    }
    let values = answer.data?.result.into_iter().flat_map(|series| series.values);
    Some(Ok(values.filter_map(|(at, text)| Some((at, text.parse().ok()?))).collect()))
}

#[cfg(test)]
mod tests;
