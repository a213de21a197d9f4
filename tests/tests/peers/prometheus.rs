//! Metrics of type External from Debian's own Prometheus: a queue's length brings pods, takes them away to
//! zero and wakes them; what says nothing takes nothing.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::Signal;
use tests::prometheus::Prometheus;
use tests::{ConfigMap, Ebb, Service};

use crate::stopwatch::Stopwatch;

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
        self.shows(format!(
            "jobs_waiting{{namespace=\"default\",queue=\"mail\"}} {jobs}\n\
             jobs_waiting{{namespace=\"default\",queue=\"print\"}} 5000\n\
             jobs_waiting{{namespace=\"other\",queue=\"mail\"}} 5000\n"
        ));
    }

    /// From now on so many passengers wait at the ferry of that name, and many at others.
    fn boarding(&self, passengers: &str) {
        self.shows(format!(
            "passengers_waiting{{namespace=\"default\",ferry=\"north\"}} {passengers}\n\
             passengers_waiting{{namespace=\"default\",ferry=\"south\"}} 5000\n\
             passengers_waiting{{namespace=\"other\",ferry=\"north\"}} 5000\n"
        ));
    }

    fn shows(&self, page: String) {
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = page;
    }
}

const DOCUMENT: &str = "{minReplicas: 0, maxReplicas: 5, metrics: [{type: External, external: {\
    metric: {name: jobs_waiting, selector: {matchLabels: {queue: mail}}}, target: {type: AverageValue, averageValue: 10}}}]}";

const QUERY: &str = "sum({__name__=\"jobs_waiting\",namespace=\"default\",queue=\"mail\"})";

/// A Service `worker` of class hpa, whose numbers come from there.
async fn worker_that_asks(prometheus: &Prometheus, document: &str) -> Ebb {
    let config = ConfigMap::short()
        .set("hpa-sync-period", "1s")
        .set("hpa-downscale-stabilization", "3s")
        .set("prometheus-url", &format!("http://{}", prometheus.address));
    Ebb::up(&[Service::new("worker").annotation("ebb.dev/hpa", document)], &config).await
}

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
    let _timed =
        Stopwatch::of("a queue in prometheus brings pods to zero and back and says when it says nothing");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let exporter = Exporter::start();
    exporter.waiting("25");
    let prometheus = Prometheus::start(folder.path(), exporter.address);
    let ebb = worker_that_asks(&prometheus, DOCUMENT).await;
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

#[tokio::test]
async fn a_metric_of_an_object_from_prometheus_brings_pods() {
    let _timed = Stopwatch::of("a metric of an object from prometheus brings pods");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let exporter = Exporter::start();
    exporter.boarding("45");
    let prometheus = Prometheus::start(folder.path(), exporter.address);
    let document = "{maxReplicas: 5, metrics: [{type: Object, object: {metric: {name: passengers_waiting}, \
        describedObject: {apiVersion: example.com/v1, kind: Ferry, name: north}, target: {type: AverageValue, averageValue: 20}}}]}";
    let ebb = worker_that_asks(&prometheus, document).await;
    ebb.until_within("worker", "three pods", LONG, |revision| revision.is_settled_at(3)).await;
    let query = "sum({__name__=\"passengers_waiting\",namespace=\"default\",ferry=\"north\"})";
    until_explained(&ebb, &format!("asked      passengers_waiting: {query} -> 45")).await;
    exporter.boarding("3");
    ebb.until_within("worker", "one pod", LONG, |revision| revision.is_settled_at(1)).await;
    // A series that is there no more is no zero.
    exporter.shows(String::new());
    until_explained(&ebb, "no series").await;
    assert_eq!(ebb.revision("worker").await.expect("ebb answers").wanted(), 1);
}

/// The names of a service's pods, in order.
async fn pod_names(ebb: &Ebb) -> Vec<String> {
    let revision = ebb.revision("hello").await.expect("ebb answers");
    let names = revision.pods().iter().filter_map(|pod| pod["name"].as_str());
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort();
    names
}

#[tokio::test]
async fn prometheus_finds_each_pod_by_http_sd_and_follows_a_pod_that_is_replaced() {
    let _timed = Stopwatch::of("prometheus finds each pod by http sd and follows a pod that is replaced");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let service = Service::new("hello").scaling("min-scale", "2").scaling("max-scale", "2");
    let ebb = Ebb::up(&[service], &ConfigMap::short()).await;
    let former = ebb.until_pods("hello", 2).await;
    let job = format!("http_sd_configs: [{{url: 'http://{}/v1/http-sd', refresh_interval: 1s}}]", ebb.api);
    let prometheus = Prometheus::scrape(folder.path(), &job);
    let found = async |pods: Vec<String>| {
        tests::eventually(&format!("{pods:?} are scraped"), LONG, || async {
            let data = prometheus.ask("up").await?;
            let series = data["result"].as_array().cloned().unwrap_or_default();
            let mut scraped: Vec<_> = series
                .iter()
                .filter(|series| series["value"][1] == "1")
                .filter_map(|series| series["metric"]["pod"].as_str().map(str::to_owned))
                .collect();
            scraped.sort();
            if scraped == pods { Ok(()) } else { Err(data.to_string()) }
        })
        .await;
    };
    let names = pod_names(&ebb).await;
    found(names.clone()).await;
    tests::ebb::signal_process(former.pids("app_pid")[0], Signal::SIGKILL);
    ebb.until_within("hello", "another pod", LONG, |revision| {
        revision.ready() == 2
            && revision
                .pods()
                .iter()
                .any(|pod| pod["name"].as_str().is_some_and(|pod| !names.iter().any(|name| name == pod)))
    })
    .await;
    found(pod_names(&ebb).await).await;
}

#[tokio::test]
async fn prometheus_reads_an_api_on_a_network_with_the_file_of_its_token() {
    let _timed = Stopwatch::of("prometheus reads an api on a network with the file of its token");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let ebb = Ebb::up_with(&[Service::new("hello")], &ConfigMap::short(), &["--api", "0.0.0.0:0"]).await;
    let (code, file, errors) = ebb.run(&["token"]).await;
    assert_eq!(code, 0, "{errors}");
    let target = format!("static_configs: [{{targets: ['127.0.0.1:{}']}}]", ebb.api.port());
    let known = format!("authorization: {{credentials_file: {}}}, {target}", file.trim_end());
    // The second job has no token.
    let jobs = format!("{known}}}, {{job_name: strangers, {target}");
    let prometheus = Prometheus::scrape(folder.path(), &jobs);
    let until = async |question: &str| {
        tests::eventually(question, LONG, || async {
            let data = prometheus.ask(question).await?;
            let found = data["result"][0]["value"][1].as_str().map(str::to_owned);
            found.ok_or_else(|| data.to_string())
        })
        .await
    };
    until("up{job='jobs'} == 1").await;
    until("autoscaler_ready_pods{job='jobs'} >= 0").await;
    until("up{job='strangers'} == 0").await;
    let (code, _, errors) = ebb.run(&["token", "--rotate"]).await;
    assert_eq!(code, 0, "{errors}");
    // Two scrapes later it has read the file again.
    let before = until("timestamp(up{job='jobs'})").await;
    until(&format!("up{{job='jobs'}} == 1 and timestamp(up{{job='jobs'}}) > {before} + 2.5")).await;
}
