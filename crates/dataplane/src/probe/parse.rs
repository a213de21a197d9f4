//! Reads the JSON of a probe, and makes of it what is asked.

use std::time::Duration;

use thiserror::Error;
use vocabulary::{HttpQuestion, ProbeQuestion, ProbeScheme, ProbeSpec};

use super::{Check, HttpCheck, Probe};
use crate::upstream::Protocol;

/// Why a text is not a probe we can run.
#[derive(Debug, Error)]
#[error("is not a probe: {0}")]
pub struct UnreadableProbe(#[from] serde_json::Error);

impl Probe {
    /// Reads one Kubernetes probe object. A port that is missing or 0 means the app's. A `periodSeconds` of 0
    /// is Knative's "as fast as is sensible"; a missing one is Kubernetes' 10 s.
    pub fn parse(text: &str, app_port: u16) -> Result<Self, UnreadableProbe> {
        let spec: ProbeSpec = serde_json::from_str(text)?;
        let timing = spec.timing;
        let seconds = |given: Option<u32>, default: u32| Duration::from_secs(given.unwrap_or(default).into());
        Ok(Self {
            initial_delay: seconds(timing.initial_delay_seconds, 0),
            period: Some(seconds(timing.period_seconds, 10)).filter(|period| !period.is_zero()),
            timeout: seconds(timing.timeout_seconds, 1).max(Duration::from_secs(1)),
            success_threshold: timing.success_threshold.unwrap_or(1).max(1),
            failure_threshold: timing.failure_threshold.unwrap_or(3).max(1),
            is_weaker: asks_tls(&spec.question),
            is_run_by_engine: false,
            check: check_of(spec.question, app_port),
        })
    }
}

fn asks_tls(question: &ProbeQuestion) -> bool {
    matches!(question, ProbeQuestion::Http(HttpQuestion { scheme: ProbeScheme::Https, .. }))
}

/// TLS is not spoken yet: an `httpGet` with scheme HTTPS becomes a check that the port accepts connections.
fn check_of(question: ProbeQuestion, app_port: u16) -> Check {
    match question {
        ProbeQuestion::Http(HttpQuestion { port, scheme: ProbeScheme::Https, .. })
        | ProbeQuestion::Tcp { port } => Check::Tcp { port: port.unwrap_or(app_port) },
        ProbeQuestion::Http(http) => {
            let path = http.path.unwrap_or_default();
            Check::Http(HttpCheck {
                port: http.port.unwrap_or(app_port),
                path: if path.starts_with('/') { path } else { format!("/{path}") },
                headers: http.headers,
                protocol: Protocol::Http1,
            })
        }
        ProbeQuestion::Grpc { port, service } => {
            Check::Grpc { port: port.unwrap_or(app_port), service: service.unwrap_or_default() }
        }
        ProbeQuestion::Exec { command } => Check::Exec { command },
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
        for (text, problem) in [("{", "is not a probe: EOF"), ("{}", "is not a probe: it has 0 of")] {
            let error = Probe::parse(text, 1).expect_err(text);
            assert!(error.to_string().starts_with(problem), "{text}: {error}");
        }
    }

    #[test]
    fn an_https_probe_is_known_to_be_weaker() {
        let text = r#"{"httpGet":{"scheme":"HTTPS","port":8443}}"#;
        let probe = Probe::parse(text, 1).expect("a probe");
        assert_eq!(probe.check, Check::Tcp { port: 8443 });
        assert!(probe.is_weaker && !Probe::none().is_weaker);
    }
}
