//! Reads a Kubernetes probe object.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::{Check, HttpCheck, Probe};
use crate::upstream::Protocol;

/// Why a text is not a probe we can run.
#[derive(Debug, Error)]
pub enum ProbeProblem {
    /// Not JSON, or not of the right shape.
    #[error("is not a probe: {0}")]
    Malformed(#[from] serde_json::Error),
    /// No question, or several.
    #[error("has {0} of httpGet, tcpSocket, grpc and exec; it needs one")]
    Handlers(usize),
    /// A host that is not this machine proves nothing about the app.
    #[error("asks the host {0:?}; remove the host, the app is on this machine")]
    ForeignHost(String),
    /// The command has no program.
    #[error("has an empty command")]
    EmptyCommand,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    http_get: Option<RawHttp>,
    tcp_socket: Option<RawTcp>,
    grpc: Option<RawGrpc>,
    exec: Option<RawExec>,
    initial_delay_seconds: Option<u32>,
    period_seconds: Option<u32>,
    timeout_seconds: Option<u32>,
    success_threshold: Option<u32>,
    failure_threshold: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawHttp {
    host: Option<String>,
    port: Option<u16>,
    path: Option<String>,
    scheme: Option<String>,
    http_headers: Option<Vec<RawHeader>>,
}

#[derive(Deserialize)]
struct RawHeader {
    name: String,
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
struct RawTcp {
    host: Option<String>,
    port: Option<u16>,
}

#[derive(Deserialize)]
struct RawGrpc {
    port: Option<u16>,
    service: Option<String>,
}

#[derive(Deserialize)]
struct RawExec {
    #[serde(default)]
    command: Vec<String>,
}

impl Probe {
    /// Reads one Kubernetes probe object. A port that is missing or 0 means the app's. A `periodSeconds` of 0 is Knative's "as fast as is
    /// sensible"; a missing one is Kubernetes' 10 s.
    ///
    /// TLS is not spoken yet: an `httpGet` with scheme HTTPS becomes a check that the port accepts connections, which [`Probe::is_weaker`] tells.
    pub fn parse(text: &str, app_port: u16) -> Result<Self, ProbeProblem> {
        let raw: Raw = serde_json::from_str(text)?;
        let seconds = |given: Option<u32>, default: u32| Duration::from_secs(given.unwrap_or(default).into());
        Ok(Self {
            initial_delay: seconds(raw.initial_delay_seconds, 0),
            period: Some(seconds(raw.period_seconds, 10)).filter(|period| !period.is_zero()),
            timeout: seconds(raw.timeout_seconds, 1).max(Duration::from_secs(1)),
            success_threshold: raw.success_threshold.unwrap_or(1).max(1),
            failure_threshold: raw.failure_threshold.unwrap_or(3).max(1),
            check: raw.check(app_port)?,
        })
    }

    /// Whether `text` asks for more than the probe read from it checks.
    pub fn is_weaker(&self, text: &str) -> bool {
        let asks_tls = serde_json::from_str::<Value>(text)
            .is_ok_and(|value| value["httpGet"]["scheme"].as_str() == Some("HTTPS"));
        asks_tls && matches!(self.check, Check::Tcp { .. })
    }
}

impl Raw {
    fn check(self, app_port: u16) -> Result<Check, ProbeProblem> {
        let port = |given: Option<u16>| given.filter(|port| *port != 0).unwrap_or(app_port);
        match (self.http_get, self.tcp_socket, self.grpc, self.exec) {
            (Some(http), None, None, None) => {
                let port = port(http.port);
                http.check(port)
            }
            (None, Some(tcp), None, None) => {
                refuse_foreign(tcp.host.as_deref())?;
                Ok(Check::Tcp { port: port(tcp.port) })
            }
            (None, None, Some(grpc), None) => {
                Ok(Check::Grpc { port: port(grpc.port), service: grpc.service.unwrap_or_default() })
            }
            (None, None, None, Some(exec)) if exec.command.is_empty() => Err(ProbeProblem::EmptyCommand),
            (None, None, None, Some(exec)) => Ok(Check::Exec { command: exec.command }),
            (http, tcp, grpc, exec) => Err(ProbeProblem::Handlers(
                [http.is_some(), tcp.is_some(), grpc.is_some(), exec.is_some()]
                    .into_iter()
                    .filter(|given| *given)
                    .count(),
            )),
        }
    }
}

impl RawHttp {
    fn check(self, port: u16) -> Result<Check, ProbeProblem> {
        refuse_foreign(self.host.as_deref())?;
        if self.scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https")) {
            return Ok(Check::Tcp { port });
        }
        let path = self.path.unwrap_or_default();
        let path = if path.starts_with('/') { path } else { format!("/{path}") };
        let headers = self.http_headers.unwrap_or_default();
        let headers = headers.into_iter().map(|header| (header.name, header.value)).collect();
        Ok(Check::Http(HttpCheck { port, path, headers, protocol: Protocol::Http1 }))
    }
}

fn refuse_foreign(host: Option<&str>) -> Result<(), ProbeProblem> {
    match host {
        None | Some("" | "localhost" | "127.0.0.1" | "::1") => Ok(()),
        Some(foreign) => Err(ProbeProblem::ForeignHost(foreign.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_knative_writes() {
        let probe = Probe::parse(
            r#"{"httpGet":{"host":"127.0.0.1","port":8080,"path":"ready?x","scheme":"HTTP","httpHeaders":[{"name":"Host","value":"h"}]},
                "periodSeconds":0,"successThreshold":3}"#,
            9,
        )
        .expect("a probe");
        assert_eq!(
            probe.check,
            Check::Http(HttpCheck {
                port: 8080,
                path: "/ready?x".to_owned(),
                headers: vec![("Host".to_owned(), "h".to_owned())],
                protocol: Protocol::Http1,
            })
        );
        assert_eq!((probe.period, probe.success_threshold, probe.failure_threshold), (None, 3, 3));
    }

    #[test]
    fn a_port_that_is_not_given_is_the_apps() {
        for text in [r#"{"tcpSocket":{"host":"127.0.0.1"}}"#, r#"{"tcpSocket":{"port":0}}"#] {
            let probe = Probe::parse(text, 4711).expect("a probe");
            assert_eq!(
                (probe.check, probe.period),
                (Check::Tcp { port: 4711 }, Some(Duration::from_secs(10)))
            );
        }
    }

    #[test]
    fn refuses_what_it_cannot_ask() {
        for (text, problem) in [
            ("null", "is not a probe"),
            ("{", "is not a probe"),
            ("{}", "has 0 of"),
            (r#"{"tcpSocket":{},"grpc":{}}"#, "has 2 of"),
            (r#"{"tcpSocket":{"host":"10.0.0.1"}}"#, "asks the host \"10.0.0.1\""),
            (r#"{"exec":{"command":[]}}"#, "empty command"),
        ] {
            let error = Probe::parse(text, 1).expect_err(text);
            assert!(error.to_string().contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn an_https_probe_is_known_to_be_weaker() {
        let text = r#"{"httpGet":{"scheme":"HTTPS","port":8443}}"#;
        let probe = Probe::parse(text, 1).expect("a probe");
        assert_eq!(probe.check, Check::Tcp { port: 8443 });
        assert!(probe.is_weaker(text));
        assert!(!Probe::none().is_weaker("{}"));
    }
}
