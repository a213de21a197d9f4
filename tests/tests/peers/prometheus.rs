//! Metrics of type External from Debian's own Prometheus: a queue's length brings pods, takes them away to
//! zero and wakes them; what says nothing takes nothing.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tests::{ConfigMap, Ebb, Service};

/// A scrape, a sync and a start of pods, each about a second, on a busy machine.
const LONG: Duration = Duration::from_secs(90);

/// Serves a page of metrics that a test writes.
struct Exporter {
    address: SocketAddr,
    page: Arc<Mutex<String>>,
}

impl Exporter {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let page = Arc::new(Mutex::new(String::new()));
        let shown = Arc::clone(&page);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                // A scrape is one small request on a connection of its own.
                let _ = stream.read(&mut [0; 4096]);
                let page = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: \
                     close\r\n\r\n{page}",
                    page.len()
                );
            }
        });
        Self { address, page }
    }

    /// From now on this many jobs wait; elsewhere there are always many.
    fn waiting(&self, jobs: &str) {
        let page = format!(
            "jobs_waiting{{namespace=\"default\",queue=\"mail\"}} {jobs}\n\
             jobs_waiting{{namespace=\"default\",queue=\"print\"}} 5000\n\
             jobs_waiting{{namespace=\"other\",queue=\"mail\"}} 5000\n"
        );
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = page;
    }
}

/// A running Prometheus; ends when it is dropped.
pub(crate) struct Prometheus {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    /// Scrapes `target` every second.
    pub(crate) fn start(folder: &Path, target: SocketAddr) -> Self {
        let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = address.expect("a port is free");
        let config = format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: jobs\n  honor_labels: true\n  static_configs:\n  \
             - targets: ['{target}']\n"
        );
        let file = folder.join("prometheus.yml");
        std::fs::write(&file, config).expect("the folder can be written");
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("`prometheus` is there; install it with: apt-get install -y prometheus");
        Self { child, address }
    }
}

const DOCUMENT: &str = "{minReplicas: 0, maxReplicas: 5, metrics: [{type: External, external: {\
    metric: {name: jobs_waiting, selector: {matchLabels: {queue: mail}}}, target: {type: AverageValue, averageValue: 10}}}]}";

const QUERY: &str = "sum({__name__=\"jobs_waiting\",namespace=\"default\",queue=\"mail\"})";

async fn explained(ebb: &Ebb) -> String {
    ebb.run(&["explain", "worker"]).await.1
}

async fn until_explained(ebb: &Ebb, text: &str) {
    tests::eventually(&format!("explain says {text:?}"), LONG, || async {
        let said = explained(ebb).await;
        if said.contains(text) { Ok(()) } else { Err(said) }
    })
    .await;
}

#[tokio::test]
async fn a_queue_in_prometheus_brings_pods_to_zero_and_back_and_says_when_it_says_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let exporter = Exporter::start();
    exporter.waiting("25");
    let prometheus = Prometheus::start(folder.path(), exporter.address);
    let config = ConfigMap::short()
        .set("hpa-sync-period", "1s")
        .set("hpa-downscale-stabilization", "3s")
        .set("prometheus-url", &format!("http://{}", prometheus.address));
    let ebb = Ebb::up(&[Service::new("worker").annotation("ebb.dev/hpa", DOCUMENT)], &config).await;
    ebb.until_within("worker", "three pods", LONG, |revision| {
        revision.wanted() == 3 && revision.ready() == 3
    })
    .await;
    until_explained(&ebb, &format!("asked      jobs_waiting: {QUERY} -> 25")).await;

    exporter.waiting("0");
    ebb.until_within("worker", "asleep", LONG, |revision| {
        revision.wanted() == 0 && revision.pods().is_empty()
    })
    .await;
    exporter.waiting("15");
    ebb.until_within("worker", "two pods", LONG, |revision| revision.wanted() == 2 && revision.ready() == 2)
        .await;

    exporter.waiting("NaN");
    until_explained(&ebb, "the value is NaN, which says nothing").await;
    let unknown = ebb.revision("worker").await.expect("ebb answers");
    assert_eq!((unknown.wanted(), unknown.field("metrics").as_str()), (2, Some("jobs_waiting <unknown>/10")));
    // Nothing is taken away: the window and the rules of zero would have had their time by now.
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(ebb.revision("worker").await.expect("ebb answers").wanted(), 2);

    drop(prometheus);
    until_explained(&ebb, "asked      jobs_waiting: ").await;
    until_explained(&ebb, "Connection refused").await;
}
