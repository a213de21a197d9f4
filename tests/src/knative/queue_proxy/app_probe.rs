//! Is the app ready? A queue-proxy asks by the probe of the app's container: data plane §2.13.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::bench::clock;
use crate::knative::objects::{number, text};

/// The pause between two looks, where the probe names no period.
const LOOKS_EVERY: Duration = Duration::from_millis(50);
/// How long an app that is not ready is looked at, where the probe names no period.
const LOOKS_FOR: Duration = Duration::from_secs(10);
const LOOK_LIMIT: Duration = Duration::from_millis(100);

/// The probe of an app.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AppProbe {
    port: u16,
    /// `None` for a probe that asks for a connection alone.
    path: Option<String>,
    /// `None` where the queue-proxy is to look often; else the limit of the one look.
    limit: Option<Duration>,
}

impl AppProbe {
    /// Reads the probe as the controller writes it. Of one over gRPC a connection is asked for.
    pub(super) fn read(written: &str) -> anyhow::Result<Self> {
        let probe: Value = serde_json::from_str(written).context("SERVING_READINESS_PROBE is no JSON")?;
        let handler =
            ["httpGet", "tcpSocket", "grpc"].into_iter().find(|handler| probe.get(handler).is_some());
        let handler = handler.context("SERVING_READINESS_PROBE has no handler")?;
        let path = text(&probe, "/httpGet/path").trim_start_matches('/');
        let seconds = u64::try_from(number(&probe, "/timeoutSeconds")).unwrap_or(0).max(1);
        Ok(Self {
            port: u16::try_from(number(&probe, &format!("/{handler}/port")))?,
            path: (handler == "httpGet").then(|| format!("/{path}")),
            limit: (number(&probe, "/periodSeconds") > 0).then(|| Duration::from_secs(seconds)),
        })
    }

    /// Looks once, or until the app is ready or time is over.
    pub(super) async fn is_ready(&self) -> bool {
        if let Some(limit) = self.limit {
            return self.look(limit).await;
        }
        let begun = clock::now();
        while clock::since(begun) < LOOKS_FOR {
            if self.look(LOOK_LIMIT).await {
                return true;
            }
            tokio::time::sleep(LOOKS_EVERY).await;
        }
        false
    }

    async fn look(&self, limit: Duration) -> bool {
        matches!(tokio::time::timeout(limit, self.asked()).await, Ok(Ok(true)))
    }

    async fn asked(&self) -> std::io::Result<bool> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await?;
        let Some(path) = &self.path else { return Ok(true) };
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: kube-probe//\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        let answer = String::from_utf8_lossy(&answer);
        let status = answer.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok());
        Ok(status.is_some_and(|status| (200..400).contains(&status)))
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn a_probe_without_a_period_is_looked_at_often() {
        let read = |written: &str| AppProbe::read(written).expect("a probe");
        let often = read(r#"{"tcpSocket": {"host": "127.0.0.1", "port": 8080}, "successThreshold": 1}"#);
        assert_eq!((often.port, often.path.as_deref(), often.limit), (8080, None, None));
        let once = read(r#"{"httpGet": {"port": 8081, "path": "ready?x=1"}, "periodSeconds": 10}"#);
        assert_eq!((once.path.as_deref(), once.limit), (Some("/ready?x=1"), Some(Duration::from_secs(1))));
        assert!(AppProbe::read("{}").is_err());
    }

    #[tokio::test]
    async fn an_app_that_answers_is_ready() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let port = listener.local_addr().expect("it has one").port();
        // A panic of it leaves the app unready, which the test sees.
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 512];
                let _ = stream.read(&mut request).await;
                let status = if request.starts_with(b"GET /well ") { "204 No Content" } else { "503 Busy" };
                let _ = stream.write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes()).await;
            }
        });
        let limit = Some(Duration::from_secs(30));
        let probe = |path: &str| AppProbe { port, path: Some(path.to_owned()), limit };
        assert!(probe("/well").is_ready().await);
        assert!(!probe("/ill").is_ready().await);
    }
}
