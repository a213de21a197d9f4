//! What is asked of the API server, how often, and what its answers say of a target.

use std::collections::BTreeMap;
use std::convert::Infallible;

use cluster::resources::scaled_pod;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use settings::hpa::reading::DOCUMENT_ANNOTATION;
use settings::hpa::{HpaScaling, PodRequests, UsageSource};
use settings::{ClusterConfig, RevisionSettings};
use vocabulary::{MilliValue, PodCount};

use super::*;

/// An API server that answers with what a test put there, and remembers what it was asked.
#[derive(Clone, Default)]
struct FakeServer {
    pages: Arc<Mutex<BTreeMap<String, Value>>>,
    asked: Arc<Mutex<Vec<String>>>,
    /// How long the adapter of custom metrics takes for each answer.
    adapter_takes: Duration,
}

impl FakeServer {
    fn page(self, path: &str, page: Value) -> Self {
        self.pages.lock().insert(path.to_owned(), page);
        self
    }

    fn answer(&self, path: &str) -> http::Response<Body> {
        self.asked.lock().push(path.to_owned());
        let message = format!("no server for {}", path.split('?').next().unwrap_or_default());
        let unknown = json!({"kind": "Status", "status": "Failure", "message": message, "code": 404});
        let page = self.pages.lock().get(path).cloned();
        let (code, page) = page.map_or((404, unknown), |page| (200, page));
        let body = serde_json::to_vec(&page).expect("it is JSON");
        http::Response::builder().status(code).body(Body::from(body)).expect("a response")
    }

    /// The APIs, with `hello-a` and `hello-b` as the pods of every workload.
    fn apis(&self) -> MetricApis {
        let server = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
            let response = server.answer(&path);
            let is_slow = path.contains("custom.metrics");
            let wait = if is_slow { server.adapter_takes } else { Duration::ZERO };
            async move {
                tokio::time::sleep(wait).await;
                Ok::<_, Infallible>(response)
            }
        });
        let inbox = Arc::<ClusterInbox>::default();
        let answering = Arc::clone(&inbox);
        tokio::spawn(async move {
            loop {
                answering.updated.notified().await;
                for (_, reply) in answering.take().target_queries {
                    let _ = reply.send(Some(target()));
                }
            }
        });
        MetricApis::new(Client::new(service, "default"), Clock::start(), inbox)
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock())
    }
}

fn target() -> TargetRecord {
    let pod =
        json!({"metadata": {}, "spec": {"containers": [{"name": "app"}]}, "status": {"phase": "Running"}});
    let pod = scaled_pod::read(&serde_json::from_value(pod).expect("a Pod"));
    let names = ["hello-a", "hello-b"];
    let selector = serde_json::from_value(json!({"matchLabels": {"app": "hello"}})).expect("a selector");
    TargetRecord {
        selector: Selector::new(selector),
        pods: names.into_iter().map(|name| (name.to_owned(), pod.clone())).collect(),
        present: PodCount::new(2),
        is_shared: false,
    }
}

fn question(name: &str, metrics: &str) -> MetricQuestion {
    let (cluster, text) = (ClusterConfig::default(), format!("{{maxReplicas: 5, metrics: [{metrics}]}}"));
    let annotations = BTreeMap::from([(DOCUMENT_ANNOTATION.to_owned(), text)]);
    let document = RevisionSettings::read(&annotations, &cluster, None).expect("a document").value.document;
    let spec = document.expect("it was written").with_settings(cluster.hpa_settings());
    let metrics = (0..spec.metrics.len()).collect();
    let settings = HpaScaling {
        spec,
        sync_period: Duration::from_secs(15),
        requests: PodRequests::default(),
        usage: UsageSource::Questions,
    };
    let revision = RevisionName::new("shop", "deployment", name).expect("a name");
    MetricQuestion { revision, settings: Arc::new(settings), metrics, within: Duration::from_secs(9) }
}

const CPU: &str = "{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 100m}}}";
const MEMORY: &str = "{type: ContainerResource, containerResource: {name: memory, container: app, target: {type: AverageValue, averageValue: 1Mi}}}";
const PACKETS: &str =
    "{type: Pods, pods: {metric: {name: packets}, target: {type: AverageValue, averageValue: 10}}}";
const HITS: &str = "{type: Object, object: {metric: {name: hits}, describedObject: {apiVersion: networking.k8s.io/v1, kind: Ingress, name: main}, target: {type: Value, value: 10}}}";
const JOBS: &str = "{type: External, external: {metric: {name: jobs, selector: {matchLabels: {queue: mail}}}, target: {type: AverageValue, averageValue: 10}}}";

const PODS_PATH: &str = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods";
const JOBS_PATH: &str =
    "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/jobs?labelSelector=queue%3Dmail";

fn usage(pod: &str, labels: &Value, cpu: &str) -> Value {
    let container = json!({"name": "app", "usage": {"cpu": cpu, "memory": "2Mi"}});
    json!({"metadata": {"name": pod, "labels": labels}, "timestamp": "2026-11-22T10:00:00Z", "window": "15s", "containers": [container]})
}

fn value_of(name: &str, value: &str) -> Value {
    json!({"describedObject": {"kind": "Pod", "name": name}, "timestamp": "2026-11-22T10:00:00Z", "value": value})
}

/// The values of the pods, by number.
fn values(answer: &MetricAnswer) -> Vec<(u32, i64)> {
    let MetricSamples::PerPod(samples) = &answer.samples else { panic!("no samples: {answer:?}") };
    samples.iter().map(|sample| (sample.pod.0, sample.value.value())).collect()
}

#[tokio::test]
async fn one_list_of_what_pods_use_serves_a_namespace() {
    let hello = json!({"app": "hello"});
    let list = json!({"items": [
        usage("hello-a", &hello, "250m"),
        usage("hello-gone", &hello, "7m"),
        usage("of-another", &json!({"app": "other"}), "9"),
    ]});
    let server = FakeServer::default().page(PODS_PATH, list);
    let apis = server.apis();
    let metrics = format!("{CPU}, {MEMORY}");
    let questions = ["one", "two", "three"].map(|name| apis.ask(question(name, &metrics)));
    let replies = join_all(questions).await;
    assert_eq!(server.asked(), [PODS_PATH], "three workloads, two metrics, one list");
    for reply in replies {
        // A pod that has just gone counts, as in Kubernetes; one of another workload does not.
        assert_eq!(values(&reply.answers[0]), [(0, 250), (2, 7)]);
        assert_eq!(values(&reply.answers[1]), [(0, 2_097_152_000), (2, 2_097_152_000)]);
        assert_eq!(reply.answers[0].query.as_deref(), Some(format!("GET {PODS_PATH}").as_str()));
        let target = reply.target.expect("it is known");
        assert_eq!((target.present, target.selection), (PodCount::new(2), scaling::hpa::Selection::Unique));
    }
}

#[tokio::test]
async fn metrics_of_pods_and_objects_are_asked_for_in_the_better_version() {
    for (versions, version) in [(["v1beta1", "v1beta2"], "v1beta2"), (["v1alpha1", "v1beta1"], "v1beta1")] {
        let group = versions.map(|version| json!({"version": version}));
        let custom = format!("/apis/custom.metrics.k8s.io/{version}/namespaces/shop");
        let packets = format!("{custom}/pods/*/packets?labelSelector=app%3Dhello");
        let hits = format!("{custom}/ingresses.networking.k8s.io/main/hits");
        let kinds = json!({"resources": [{"name": "ingresses", "kind": "Ingress"}]});
        let server = FakeServer::default()
            .page("/apis/custom.metrics.k8s.io", json!({"versions": group}))
            .page("/apis/networking.k8s.io/v1", kinds)
            .page(&packets, json!({"items": [value_of("hello-b", "3"), value_of("hello-a", "1500m")]}))
            .page(&hits, json!({"items": [value_of("main", "12")]}));
        let apis = server.apis();
        let reply = apis.ask(question("hello", &format!("{PACKETS}, {HITS}"))).await;
        assert_eq!(values(&reply.answers[0]), [(0, 1500), (1, 3000)]);
        assert_eq!(reply.answers[1].samples, MetricSamples::Series(vec![MilliValue::new(12_000)]));
        let asked = server.asked();
        assert_eq!(asked.len(), 4, "each once: {asked:?}");
        // Another workload, with the same selector: nothing is asked again within the period.
        apis.ask(question("other", &format!("{PACKETS}, {HITS}"))).await;
        assert_eq!(server.asked(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn each_series_from_outside_counts() {
    let list = json!({"items": [{"value": "30"}, {"value": "500m"}]});
    let server = FakeServer::default().page(JOBS_PATH, list);
    let reply = server.apis().ask(question("hello", JOBS)).await;
    let series = vec![MilliValue::new(30_000), MilliValue::new(500)];
    assert_eq!(reply.answers[0].samples, MetricSamples::Series(series));
    assert_eq!(reply.answers[0].shown, "30 + 500m");
}

#[tokio::test]
async fn a_cluster_without_a_metrics_server_is_told_what_was_asked() {
    let reply = FakeServer::default().apis().ask(question("hello", CPU)).await;
    let answer = &reply.answers[0];
    assert_eq!(answer.shown, "no metrics server: 404");
    let query = answer.query.as_deref().unwrap_or_default();
    assert!(query.starts_with("GET /apis/metrics.k8s.io/"), "{query}");
}

#[tokio::test]
async fn failed_metrics_say_so_in_the_servers_words() {
    let none = json!({"items": []});
    let server = FakeServer::default().page(PODS_PATH, none.clone()).page(JOBS_PATH, none);
    let metrics = [CPU, PACKETS, HITS, JOBS].join(", ");
    let reply = server.apis().ask(question("hello", &metrics)).await;
    let shown: Vec<&str> = reply.answers.iter().map(|answer| answer.shown.as_str()).collect();
    assert_eq!(
        shown,
        [
            "the metrics API says nothing of the cpu of these 2 pods, and knows 0 in the namespace",
            "/apis/custom.metrics.k8s.io: no server for /apis/custom.metrics.k8s.io",
            "/apis/networking.k8s.io/v1: no server for /apis/networking.k8s.io/v1",
            "the list that was answered is empty",
        ]
    );
    assert!(reply.answers.iter().all(|answer| matches!(answer.samples, MetricSamples::Failed(_))));
}

/// Each answer comes in time, and all that one metric needs do not: the others are there all the same, and
/// before the sync gives the round up.
#[tokio::test(start_paused = true)]
async fn a_slow_adapter_makes_only_its_own_metrics_fail() {
    let list = json!({"items": [usage("hello-a", &json!({"app": "hello"}), "250m")]});
    let custom = "/apis/custom.metrics.k8s.io";
    let server = FakeServer { adapter_takes: Duration::from_secs(6), ..FakeServer::default() }
        .page(PODS_PATH, list)
        .page(custom, json!({"versions": [{"version": "v1beta2"}]}));
    let apis = server.apis();
    let asking = apis.ask(question("hello", &format!("{CPU}, {PACKETS}")));
    let reply = tokio::time::timeout(Duration::from_secs(10), asking).await.expect("in time for the sync");
    assert_eq!(values(&reply.answers[0]), [(0, 250)]);
    assert_eq!(reply.answers[1].shown, "no answer within 9s");
    assert!(matches!(reply.answers[1].samples, MetricSamples::Failed(_)));
    assert!(reply.target.is_some());
}
