//! Knative's settings of traces: which collector gets them, and which requests have one.
//!
//! There is one protocol: OTLP over HTTP without TLS, which every collector takes. Anything else is refused
//! with a word on what to write, and nothing is replaced silently.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use vocabulary::shown;

/// The protocol that is spoken, as Knative names it.
pub(crate) const TRACING_PROTOCOL: &str = "http/protobuf";
/// The default port of OTLP over HTTP.
const OTLP_PORT: u16 = 4318;
/// The default path of OTLP over HTTP.
const OTLP_PATH: &str = "/v1/traces";

/// The settings of traces, as they were written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TracingSettings {
    /// Over what: nothing, or `none`, means that there are none.
    pub protocol: String,
    /// The URL of the collector that takes traces.
    pub endpoint: String,
    /// Which part of the requests has one, of those whose client does not say: 0 to 1.
    #[serde(alias = "samplingRate")]
    pub sampling_rate: f64,
}

/// The checked settings of traces.
#[derive(Clone, Debug, PartialEq)]
pub struct TracePlan {
    /// The collector to which traces are sent.
    pub endpoint: TraceEndpoint,
    /// The part of the requests that have a trace.
    pub sampling: SampleRate,
}

/// The address of a collector of OpenTelemetry, over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEndpoint {
    /// Its name or address, an IPv6 one without brackets.
    pub host: String,
    /// The port of the collector.
    pub port: u16,
    /// The path that takes traces.
    pub path: String,
}

/// A part of all requests: 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct SampleRate(f64);

/// The part of the settings of traces that is invalid, and why.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TracingProblem {
    /// The protocol is none that is spoken.
    #[error("{0}")]
    Protocol(String),
    /// The endpoint is missing, or is no URL that can be used.
    #[error("{0}")]
    Endpoint(String),
    /// The sampling rate is no number from 0 to 1.
    #[error("{0}")]
    SamplingRate(String),
}

impl TracingProblem {
    /// In which part of the settings it is.
    pub fn field(&self) -> &'static str {
        match self {
            Self::Protocol(_) => "protocol",
            Self::Endpoint(_) => "endpoint",
            Self::SamplingRate(_) => "sampling_rate",
        }
    }
}

impl TracingSettings {
    /// Checks the settings; `None` means no traces.
    pub fn plan(&self) -> Result<Option<TracePlan>, TracingProblem> {
        match self.protocol.as_str() {
            "" | "none" => return Ok(None),
            TRACING_PROTOCOL => {}
            other => {
                return Err(TracingProblem::Protocol(format!(
                    "is {other:?}; write \"{TRACING_PROTOCOL}\" (OTLP over HTTP, which collectors take at port {OTLP_PORT}) or \"none\""
                )));
            }
        }
        let endpoint = TraceEndpoint::parse(&self.endpoint).map_err(TracingProblem::Endpoint)?;
        let sampling = SampleRate::new(self.sampling_rate).ok_or_else(|| {
            TracingProblem::SamplingRate(format!(
                "is {}; write a number from 0 to 1, such as \"0.1\" for a tenth of the requests",
                self.sampling_rate
            ))
        })?;
        Ok(Some(TracePlan { endpoint, sampling }))
    }
}

impl TraceEndpoint {
    /// Reads a URL; without a scheme, as Knative's examples have it, it is one of HTTP.
    fn parse(text: &str) -> Result<Self, String> {
        let example = format!("\"http://127.0.0.1:{OTLP_PORT}{OTLP_PATH}\"");
        if text.is_empty() {
            return Err(format!("is missing; write the collector's URL, such as {example}"));
        }
        let rest = match text.split_once("://") {
            None => text,
            Some(("http", rest)) => rest,
            Some(_) => {
                return Err(format!(
                    "is {}; traces are sent over HTTP without TLS, so write a URL such as {example} (a collector on this machine or in this cluster can \
                     send them on over TLS)",
                    shown(text)
                ));
            }
        };
        let malformed = || format!("is {}, which is no URL; write one such as {example}", shown(text));
        let uri: http::Uri = format!("http://{rest}").parse().map_err(|_| malformed())?;
        let host = uri.host().map(|host| host.trim_start_matches('[').trim_end_matches(']'));
        let host = host.filter(|host| !host.is_empty() && !rest.contains('@')).ok_or_else(malformed)?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(OTLP_PORT),
            path: if path == "/" { OTLP_PATH } else { path }.to_owned(),
        })
    }

    /// The host and port of the collector, as a request names them.
    pub fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

impl fmt::Display for TraceEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "http://{}{}", self.authority(), self.path)
    }
}

impl SampleRate {
    /// `None` if it is none.
    pub fn new(rate: f64) -> Option<Self> {
        (0.0..=1.0).contains(&rate).then_some(Self(rate))
    }

    /// Whether no request has a trace unless its client asks for one.
    pub fn is_zero(self) -> bool {
        self.0 == 0.0
    }

    /// Whether a trace with this id is among them: all who look at the id say the same, as OpenTelemetry's
    /// samplers do, which take its last 63 bits for a number.
    pub fn takes(self, trace: u128) -> bool {
        let drawn = u64::try_from((trace & u128::from(u64::MAX)) >> 1).expect("63 bits");
        // Both ends are exact, and between them the effect of rounding is not visible.
        #[expect(clippy::cast_precision_loss, reason = "a random number is compared with a share")]
        let share = drawn as f64 / (1_u64 << 63) as f64;
        self.0 == 1.0 || share < self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(protocol: &str, endpoint: &str, sampling_rate: f64) -> TracingSettings {
        TracingSettings { protocol: protocol.to_owned(), endpoint: endpoint.to_owned(), sampling_rate }
    }

    #[test]
    fn an_endpoint_is_a_url_with_or_without_scheme_and_path() {
        for (written, means) in [
            ("http://127.0.0.1:4318/v1/traces", "http://127.0.0.1:4318/v1/traces"),
            (
                "collector.observability.svc:4318/v1/traces",
                "http://collector.observability.svc:4318/v1/traces",
            ),
            ("http://collector", "http://collector:4318/v1/traces"),
            ("http://[::1]:9/otlp/v1/traces?tenant=a", "http://[::1]:9/otlp/v1/traces?tenant=a"),
        ] {
            let plan = settings("http/protobuf", written, 0.5).plan().expect(written).expect("traces");
            assert_eq!(plan.endpoint.to_string(), means);
        }
    }

    #[test]
    fn an_unsupported_trace_setting_is_refused_with_the_supported_ones() {
        for (settings, expected) in [
            (settings("grpc", "http://h", 1.0), "is \"grpc\"; write \"http/protobuf\""),
            (settings("http/protobuf", "", 1.0), "is missing; write the collector's URL"),
            (
                settings("http/protobuf", "https://h", 1.0),
                "is \"https://h\"; traces are sent over HTTP without TLS",
            ),
            (settings("http/protobuf", "http://:4318", 1.0), "is \"http://:4318\", which is no URL"),
            (settings("http/protobuf", "http://a b", 1.0), "is \"http://a b\", which is no URL"),
            (settings("http/protobuf", "http://h", 1.5), "is 1.5; write a number from 0 to 1"),
            (settings("http/protobuf", "http://h", f64::NAN), "is NaN; write a number from 0 to 1"),
        ] {
            let problem = settings.plan().expect_err(expected).to_string();
            assert!(problem.starts_with(expected), "{problem}");
        }
        assert_eq!(settings("none", "nonsense", 7.0).plan(), Ok(None));
        assert_eq!(TracingSettings::default().plan(), Ok(None));
    }

    #[test]
    fn a_rate_takes_its_part_of_all_ids() {
        let takes = |rate, trace| SampleRate::new(rate).expect("a rate").takes(trace);
        assert!(takes(1.0, u128::MAX) && takes(1.0, 1) && !takes(0.0, 0) && !takes(0.0, u128::MAX));
        // The last 63 bits, as OpenTelemetry's samplers take them.
        assert!(takes(0.5, 0xffff_ffff_ffff_ffff_7fff_0000_0000_0000));
        assert!(!takes(0.5, 0x8000_0000_0000_0000));
    }
}
