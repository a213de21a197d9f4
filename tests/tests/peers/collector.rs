//! OpenTelemetry's own messages read what we tell: a collector in Go beside the one of the other suites.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tests::traces::{SeenSpan, ask, config_map};
use tests::{ConfigMap, Ebb, Service, eventually};

use crate::programs::built;
use crate::stopwatch::Stopwatch;

/// The collector, and what it has printed.
struct GoCollector {
    child: Child,
    address: SocketAddr,
    spans: Arc<Mutex<Vec<SeenSpan>>>,
}

impl Drop for GoCollector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl GoCollector {
    fn start() -> Self {
        let mut command = Command::new(built("otlp-collector", "."));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it was piped")).lines();
        let first = lines.next().expect("a line").expect("text");
        let port = serde_json::from_str::<Value>(&first).expect("JSON")["port"].as_u64();
        let port = port.and_then(|port| u16::try_from(port).ok()).expect("it is a port");
        let spans = Arc::<Mutex<Vec<SeenSpan>>>::default();
        let seen = Arc::clone(&spans);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let span = serde_json::from_str(&line).expect("a span");
                seen.lock().unwrap_or_else(PoisonError::into_inner).push(span);
            }
        });
        Self { child, address: ([127, 0, 0, 1], port).into(), spans }
    }

    fn has_failed(&mut self) -> bool {
        self.child.try_wait().expect("it can be asked").is_some()
    }
}

#[tokio::test]
async fn opentelemetrys_own_decoder_reads_our_spans() {
    let _timed = Stopwatch::of("opentelemetrys own decoder reads our spans");
    let mut collector = GoCollector::start();
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("observability.yaml");
    std::fs::write(&file, config_map(collector.address, "1")).expect("the folder can be written");
    let service = Service::new("hello").scaling("initial-scale", "0");
    let config = ConfigMap::short().set("allow-zero-initial-scale", "true");
    let ebb =
        Ebb::up_with(std::slice::from_ref(&service), &config, &["-f", file.to_str().expect("UTF-8")]).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let headers = [("traceparent", &*format!("00-{trace}-00f067aa0ba902b7-01")), ("tracestate", "vendor=1")];
    assert!(ask(&ebb, &service.host(), "/?sleep=20", &headers).await.starts_with("HTTP/1.1 200"));
    assert!(ask(&ebb, "nobody.example.com", "/", &[]).await.starts_with("HTTP/1.1 404"));
    let spans = eventually("three spans", Duration::from_secs(60), || async {
        let spans = collector.spans.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if spans.len() == 3 { Ok(spans) } else { Err(format!("{spans:#?}")) }
    })
    .await;
    let of = |service: &str| spans.iter().find(|span| span.service() == service && span.trace == trace);
    let activator = of("activator").expect("the activator's");
    let queue_proxy = of("queue-proxy").expect("the queue-proxy's");
    assert_eq!((activator.parent.as_str(), &queue_proxy.parent), ("00f067aa0ba902b7", &activator.span));
    assert_eq!(activator.attributes["ebb.cold_start"], true);
    assert_eq!((activator.trace_state.as_str(), queue_proxy.trace_state.as_str()), ("vendor=1", "vendor=1"));
    assert!(queue_proxy.seconds("ebb.app_seconds").is_some_and(|seconds| seconds >= 0.02), "{queue_proxy:?}");
    let refusal = spans.iter().find(|span| span.trace != trace).expect("the refusal's");
    assert_eq!(refusal.attributes["error.type"], "no-such-revision");
    assert!(!collector.has_failed(), "it ends at whatever its own messages do not have");
}
