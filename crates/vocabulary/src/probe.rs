//! What does a probe ask of an app, as Kubernetes writes it?
//!
//! A manifest's reader and the injector write it, the queue-proxy reads it and asks: one type, so that what
//! one of them lets through another understands. It stands in the environment of a queue-proxy as JSON, as
//! Knative's does.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::findings::shown;

/// One probe. What it does not say, Kubernetes' defaults do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenProbe", into = "WrittenProbe")]
pub struct ProbeSpec {
    /// The request, connection or command that tells the app's state.
    pub question: ProbeQuestion,
    /// When, and what the answers mean.
    pub timing: ProbeTiming,
}

/// The kinds of question. A port that is not given is the app's. All go to the app's own machine: what
/// another one answers proves nothing about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeQuestion {
    /// A request is answered with a status from 200 to 399.
    Http(HttpQuestion),
    /// The port accepts a connection.
    Tcp {
        /// The port to connect to; `None` means the app's.
        port: Option<u16>,
    },
    /// The gRPC health service says that it serves.
    Grpc {
        /// The port of the health service; `None` means the app's.
        port: Option<u16>,
        /// Which service is asked about; `None` means the server.
        service: Option<String>,
    },
    /// A command ends with status 0.
    Exec {
        /// Program and arguments; not empty.
        command: Vec<String>,
    },
}

/// An HTTP request to the app; every part has a default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpQuestion {
    /// The port to send it to; `None` means the app's.
    pub port: Option<u16>,
    /// The path with its query, as the probe has it.
    pub path: Option<String>,
    /// With or without TLS; no certificate is checked.
    pub scheme: ProbeScheme,
    /// Headers to add, names before values.
    pub headers: Vec<(String, String)>,
}

/// What a request of a probe is sent over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProbeScheme {
    /// A connection without TLS, the default.
    #[default]
    Http,
    /// TLS, without a look at the certificate.
    Https,
}

/// When a probe asks, and what the answers mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeTiming {
    /// How long after the start of the app it is asked first.
    pub initial_delay_seconds: Option<u32>,
    /// How often it is asked; 0 is Knative's "as fast as is sensible".
    pub period_seconds: Option<u32>,
    /// How long one answer may take.
    pub timeout_seconds: Option<u32>,
    /// How many good answers in a row make it pass.
    pub success_threshold: Option<u32>,
    /// How many bad answers in a row make it fail.
    pub failure_threshold: Option<u32>,
}

/// Why something is no probe that can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProbeProblem {
    /// The probe has no question, or more than one.
    #[error("it has {0} of httpGet, tcpSocket, grpc and exec; it needs one")]
    Questions(usize),
    /// A host that is not this machine.
    #[error("it asks the host {}; remove the host, the app is on this machine", shown(.0))]
    ForeignHost(String),
    /// The command has no program.
    #[error("it has an empty command; write the program to run")]
    EmptyCommand,
}

impl ProbeSpec {
    /// Whether a connection is accepted: what a container without a readiness probe is asked, by Knative's
    /// rule.
    pub fn of_connection(port: Option<u16>) -> Self {
        let timing = ProbeTiming { success_threshold: Some(1), ..ProbeTiming::default() };
        Self { question: ProbeQuestion::Tcp { port }, timing }
    }

    /// The port that is asked, for a probe of an app that listens on `app`; `None` where a command is run.
    pub fn port(&self, app: u16) -> Option<u16> {
        match &self.question {
            ProbeQuestion::Http(HttpQuestion { port, .. })
            | ProbeQuestion::Tcp { port }
            | ProbeQuestion::Grpc { port, .. } => Some(port.unwrap_or(app)),
            ProbeQuestion::Exec { .. } => None,
        }
    }

    /// The same, which asks the app's port where it named none.
    #[must_use]
    pub fn of_app(mut self, app: u16) -> Self {
        match &mut self.question {
            ProbeQuestion::Http(HttpQuestion { port, .. })
            | ProbeQuestion::Tcp { port }
            | ProbeQuestion::Grpc { port, .. } => *port = Some(port.unwrap_or(app)),
            ProbeQuestion::Exec { .. } => {}
        }
        self
    }
}

/// Whether a host that a probe names is the app's own machine, on one machine.
pub fn is_own_host(host: &str) -> bool {
    matches!(host, "" | "localhost" | "127.0.0.1" | "::1")
}

/// A probe as it is written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenProbe {
    #[serde(skip_serializing_if = "Option::is_none")]
    http_get: Option<WrittenHttp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_socket: Option<WrittenTcp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grpc: Option<WrittenGrpc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exec: Option<WrittenExec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    initial_delay_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    period_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    success_threshold: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_threshold: Option<u32>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenHttp {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheme: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    http_headers: Option<Vec<WrittenHeader>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct WrittenHeader {
    name: String,
    #[serde(default)]
    value: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct WrittenTcp {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct WrittenGrpc {
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct WrittenExec {
    #[serde(default)]
    command: Vec<String>,
}

/// As Knative writes it for its queue-proxy, which asks where it is told to.
const OWN_HOST: &str = "127.0.0.1";

impl TryFrom<WrittenProbe> for ProbeSpec {
    type Error = ProbeProblem;

    fn try_from(written: WrittenProbe) -> Result<Self, ProbeProblem> {
        let timing = ProbeTiming {
            initial_delay_seconds: written.initial_delay_seconds,
            period_seconds: written.period_seconds,
            timeout_seconds: written.timeout_seconds,
            success_threshold: written.success_threshold,
            failure_threshold: written.failure_threshold,
        };
        let question = match (written.http_get, written.tcp_socket, written.grpc, written.exec) {
            (Some(http), None, None, None) => ProbeQuestion::Http(http.try_into()?),
            (None, Some(tcp), None, None) => {
                refuse_foreign(tcp.host)?;
                ProbeQuestion::Tcp { port: given(tcp.port) }
            }
            (None, None, Some(grpc), None) => {
                ProbeQuestion::Grpc { port: given(grpc.port), service: grpc.service }
            }
            (None, None, None, Some(exec)) if exec.command.is_empty() => {
                return Err(ProbeProblem::EmptyCommand);
            }
            (None, None, None, Some(exec)) => ProbeQuestion::Exec { command: exec.command },
            (http, tcp, grpc, exec) => {
                let given = [http.is_some(), tcp.is_some(), grpc.is_some(), exec.is_some()];
                return Err(ProbeProblem::Questions(given.into_iter().filter(|given| *given).count()));
            }
        };
        Ok(Self { question, timing })
    }
}

impl TryFrom<WrittenHttp> for HttpQuestion {
    type Error = ProbeProblem;

    fn try_from(written: WrittenHttp) -> Result<Self, ProbeProblem> {
        refuse_foreign(written.host)?;
        let is_https = written.scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
        let headers = written.http_headers.unwrap_or_default();
        Ok(Self {
            port: given(written.port),
            path: written.path,
            scheme: if is_https { ProbeScheme::Https } else { ProbeScheme::Http },
            headers: headers.into_iter().map(|header| (header.name, header.value)).collect(),
        })
    }
}

/// 0 means the app's, in Knative's JSON.
fn given(port: Option<u16>) -> Option<u16> {
    port.filter(|port| *port != 0)
}

fn refuse_foreign(host: Option<String>) -> Result<(), ProbeProblem> {
    match host {
        Some(host) if !is_own_host(&host) => Err(ProbeProblem::ForeignHost(host)),
        Some(_) | None => Ok(()),
    }
}

impl From<ProbeSpec> for WrittenProbe {
    fn from(probe: ProbeSpec) -> Self {
        let ProbeSpec { question, timing } = probe;
        let mut written = Self {
            initial_delay_seconds: timing.initial_delay_seconds,
            period_seconds: timing.period_seconds,
            timeout_seconds: timing.timeout_seconds,
            success_threshold: timing.success_threshold,
            failure_threshold: timing.failure_threshold,
            ..Self::default()
        };
        match question {
            ProbeQuestion::Http(http) => written.http_get = Some(http.into()),
            ProbeQuestion::Tcp { port } => {
                written.tcp_socket = Some(WrittenTcp { host: Some(OWN_HOST.to_owned()), port });
            }
            ProbeQuestion::Grpc { port, service } => written.grpc = Some(WrittenGrpc { port, service }),
            ProbeQuestion::Exec { command } => written.exec = Some(WrittenExec { command }),
        }
        written
    }
}

impl From<HttpQuestion> for WrittenHttp {
    fn from(question: HttpQuestion) -> Self {
        let headers = question.headers.into_iter();
        let headers: Vec<_> = headers.map(|(name, value)| WrittenHeader { name, value }).collect();
        let scheme = match question.scheme {
            ProbeScheme::Http => "HTTP",
            ProbeScheme::Https => "HTTPS",
        };
        Self {
            host: Some(OWN_HOST.to_owned()),
            port: question.port,
            path: question.path,
            scheme: Some(scheme.to_owned()),
            http_headers: (!headers.is_empty()).then_some(headers),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ProbeSpec, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_written_probe_reads_back_the_same() {
        let http = HttpQuestion {
            port: Some(9),
            path: Some("/ready?x".to_owned()),
            scheme: ProbeScheme::Https,
            headers: vec![("Host".to_owned(), "h".to_owned())],
        };
        let grpc = ProbeQuestion::Grpc { port: None, service: Some("s".to_owned()) };
        let exec = ProbeQuestion::Exec { command: vec!["check".to_owned()] };
        for question in [
            ProbeQuestion::Http(http),
            ProbeQuestion::Http(HttpQuestion::default()),
            ProbeQuestion::Tcp { port: Some(80) },
            grpc,
            exec,
        ] {
            let timing =
                ProbeTiming { period_seconds: Some(0), failure_threshold: Some(2), ..Default::default() };
            let probe = ProbeSpec { question, timing };
            let text = serde_json::to_string(&probe).expect("plain data");
            assert_eq!(read(&text), Ok(probe), "{text}");
        }
    }

    #[test]
    fn reads_what_knative_and_kubernetes_write() {
        let text = r#"{"httpGet":{"host":"127.0.0.1","port":0,"path":"/","scheme":"https"},"successThreshold":3,
            "terminationGracePeriodSeconds":1}"#;
        let probe = read(text).expect("a probe");
        assert_eq!((probe.port(4711), probe.timing.success_threshold), (Some(4711), Some(3)));
        let ProbeQuestion::Http(http) = &probe.question else { panic!("{probe:?}") };
        assert_eq!((http.port, http.scheme), (None, ProbeScheme::Https));
        assert_eq!(probe.of_app(4711).port(1), Some(4711));
    }

    #[test]
    fn refuses_what_cannot_be_asked() {
        for (text, problem) in [
            ("null", "invalid type"),
            ("{}", "it has 0 of"),
            (r#"{"tcpSocket":{},"grpc":{}}"#, "it has 2 of"),
            (r#"{"tcpSocket":{"host":"10.0.0.1"}}"#, "asks the host \"10.0.0.1\""),
            (r#"{"httpGet":{"host":"10.0.0.1"}}"#, "asks the host \"10.0.0.1\""),
            (r#"{"exec":{"command":[]}}"#, "empty command"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
