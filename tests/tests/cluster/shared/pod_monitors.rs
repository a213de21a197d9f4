//! The `PodMonitor`s before Debian's Prometheus: metrics have the namespace, the revision and the pod of
//! their workload, and the Grafana board shows two workloads of one name in two namespaces apart.
//!
//! Debian builds Prometheus without the discovery of Kubernetes, and no operator runs here, so the test does
//! the work of both: it writes a file of targets with the labels of that discovery, and the scrape
//! configuration that the operator makes of a `PodMonitor`.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tests::cluster::{PATIENCE, SYSTEM, TestNamespace, Workload, WorkloadPlan, in_namespace};
use tests::eventually;
use tests::prometheus::{Prometheus, board, filled_in, questions};

const REVISION: &str = "deployment/hello";
/// Requests to the workload of each namespace.
const REQUESTS: [usize; 2] = [3, 8];
/// Questions of the board that have to show both workloads. Some 15 are about decisions, 20 about traffic.
const QUESTIONS_MIN: usize = 20;
/// Rounds of load, each with all questions that did not show both workloads yet.
const ROUNDS: usize = 40;
/// In a round, for each workload.
const A_SECOND_OF_LOAD: Duration = Duration::from_secs(1);

/// A label of Kubernetes as a part of a label of Prometheus.
fn sanitised(label: &str) -> String {
    label.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

/// The labels that the discovery of Kubernetes gives each target of a pod.
fn labels(pod: &Pod) -> Map<String, Value> {
    let metadata = &pod.metadata;
    let controller = metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    let own = [
        ("namespace", metadata.namespace.as_deref()),
        ("pod_name", metadata.name.as_deref()),
        ("pod_phase", pod.status.as_ref().and_then(|status| status.phase.as_deref())),
        ("pod_controller_kind", controller.map(|owner| owner.kind.as_str())),
        ("pod_controller_name", controller.map(|owner| owner.name.as_str())),
    ];
    let own = own.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    let written = metadata.labels.iter().flatten().flat_map(|(label, value)| {
        let label = sanitised(label);
        let is_there = (format!("pod_labelpresent_{label}"), "true".to_owned());
        [(format!("pod_label_{label}"), value.clone()), is_there]
    });
    let all = own.chain(written);
    all.map(|(name, value)| (format!("__meta_kubernetes_{name}"), Value::String(value))).collect()
}

/// The targets of a pod: one for each port of its containers.
fn targets(pod: &Pod) -> Vec<Value> {
    let address = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref()).expect("the pod runs");
    let spec = pod.spec.as_ref().expect("a pod has a spec");
    let mut targets = Vec::new();
    for container in spec.containers.iter().chain(spec.init_containers.iter().flatten()) {
        for port in container.ports.iter().flatten() {
            let mut labels = labels(pod);
            let name = port.name.clone().unwrap_or_default();
            labels.insert("__meta_kubernetes_pod_container_name".to_owned(), json!(container.name));
            labels.insert("__meta_kubernetes_pod_container_port_name".to_owned(), json!(name));
            let target = format!("{address}:{}", port.container_port);
            targets.push(json!({"targets": [target], "labels": labels}));
        }
    }
    targets
}

/// A rule of a `PodMonitor` in the words of Prometheus.
fn relabelling(rule: &Value) -> Value {
    let in_words_of_prometheus = |field: &str| match field {
        "sourceLabels" => "source_labels".to_owned(),
        "targetLabel" => "target_label".to_owned(),
        other => other.to_owned(),
    };
    let fields = rule.as_object().expect("a rule is a map").iter();
    fields.map(|(field, value)| (in_words_of_prometheus(field), value.clone())).collect()
}

/// The rules by which the operator keeps the pods of a `PodMonitor`.
fn selection(monitor: &Value) -> Vec<Value> {
    let ended = "(Failed|Succeeded)";
    let mut rules =
        vec![json!({"action": "drop", "source_labels": ["__meta_kubernetes_pod_phase"], "regex": ended})];
    if monitor["spec"]["namespaceSelector"]["any"] != true {
        let own = &monitor["metadata"]["namespace"];
        rules.push(json!({"action": "keep", "source_labels": ["__meta_kubernetes_namespace"], "regex": own}));
    }
    let selected = monitor["spec"]["selector"]["matchLabels"].as_object().expect("it selects by labels");
    for (label, value) in selected {
        let (label, value) = (sanitised(label), value.as_str().expect("the value of a label is a text"));
        let sources = ["label", "labelpresent"].map(|word| format!("__meta_kubernetes_pod_{word}_{label}"));
        let regex = format!("({value});true");
        rules.push(json!({"action": "keep", "source_labels": sources, "regex": regex}));
    }
    rules
}

/// The scrape configurations that the operator makes of a `PodMonitor`: one for each endpoint.
fn jobs(monitor: &Value, targets: &Path) -> Vec<Value> {
    let text = |value: &Value| value.as_str().expect("it is a text").to_owned();
    let [namespace, name] = ["namespace", "name"].map(|field| text(&monitor["metadata"][field]));
    let endpoints = monitor["spec"]["podMetricsEndpoints"].as_array().expect("it has endpoints");
    let job = |(number, endpoint): (usize, &Value)| {
        let port = text(&endpoint["port"]);
        let mut rules = selection(monitor);
        rules.extend([
            json!({
                "action": "keep",
                "source_labels": ["__meta_kubernetes_pod_container_port_name"],
                "regex": port,
            }),
            json!({"source_labels": ["__meta_kubernetes_namespace"], "target_label": "namespace"}),
            json!({"source_labels": ["__meta_kubernetes_pod_container_name"], "target_label": "container"}),
            json!({"source_labels": ["__meta_kubernetes_pod_name"], "target_label": "pod"}),
            json!({"target_label": "job", "replacement": format!("{namespace}/{name}")}),
            json!({"target_label": "endpoint", "replacement": port}),
        ]);
        rules.extend(endpoint["relabelings"].as_array().into_iter().flatten().map(relabelling));
        json!({
            "job_name": format!("podMonitor/{namespace}/{name}/{number}"),
            "honor_labels": endpoint["honorLabels"],
            "file_sd_configs": [{"files": [targets]}],
            "relabel_configs": rules,
        })
    };
    endpoints.iter().enumerate().map(job).collect()
}

/// Starts Prometheus before the pods of these namespaces and of ebb, as both `PodMonitor`s say.
async fn scraped(folder: &TempDir, namespaces: [&TestNamespace; 2]) -> Prometheus {
    let client = &namespaces[0].client;
    let mut found = Vec::new();
    for name in [namespaces[0].name.as_str(), namespaces[1].name.as_str(), SYSTEM] {
        let pods: Api<Pod> = Api::namespaced(client.clone(), name);
        let pods = pods.list(&ListParams::default()).await.expect("pods can be listed").items;
        let run = pods.iter().filter(|pod| pod.status.as_ref().is_some_and(|status| status.pod_ip.is_some()));
        found.extend(run.flat_map(targets));
    }
    let file = folder.path().join("targets.json");
    std::fs::write(&file, Value::Array(found).to_string()).expect("the folder can be written");
    let monitors =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/components/pod-monitor/pod-monitors.yaml");
    let monitors = std::fs::read_to_string(monitors).expect("the component is there");
    let monitors: Vec<Value> = serde_saphyr::from_multiple(&monitors).expect("a manifest is YAML");
    let monitors = monitors.iter().filter(|document| !document.is_null());
    let jobs: Vec<Value> = monitors.flat_map(|monitor| jobs(monitor, &file)).collect();
    assert_eq!(jobs.len(), 2, "{jobs:?}");
    Prometheus::scrape_all(folder.path(), &Value::Array(jobs).to_string())
}

/// Waits until a question has this single series, with this value.
async fn answers(prometheus: &Prometheus, question: &str, metric: &Value, value: usize) {
    eventually(question, PATIENCE, || async {
        let data = prometheus.ask(question).await?;
        let series = &data["result"][0];
        let is_alone = data["result"].as_array().is_some_and(|all| all.len() == 1);
        let is_so = is_alone && series["metric"] == *metric && series["value"][1] == json!(value.to_string());
        if is_so { Ok(()) } else { Err(data.to_string()) }
    })
    .await;
}

/// The namespaces of the series that answer a question of the board; each is of that revision.
fn shown(data: &Value) -> BTreeSet<&str> {
    let series = data["result"].as_array().into_iter().flatten();
    series
        .map(|series| {
            assert_eq!(series["metric"]["revision"], REVISION, "{series}");
            series["metric"]["namespace"].as_str().unwrap_or_else(|| panic!("no namespace: {series}"))
        })
        .collect()
}

/// Asks the questions of the board under load until enough of them show both workloads.
async fn board_shows_both(prometheus: &Prometheus, workloads: &[Workload; 2], namespaces: [&str; 2]) {
    let all = questions(&board()).into_iter().map(|(_, question)| question);
    let mut open: Vec<String> = all.filter(|question| question.contains("namespace, revision")).collect();
    let both = BTreeSet::from(namespaces);
    let loads = workloads.each_ref().map(Workload::load);
    let mut answered = 0;
    for _ in 0..ROUNDS {
        let (first, second) =
            tokio::join!(loads[0].steady(10, A_SECOND_OF_LOAD), loads[1].steady(10, A_SECOND_OF_LOAD));
        first.assert_all_answered();
        second.assert_all_answered();
        let mut left = Vec::new();
        for question in open {
            let filled = filled_in(&question, &namespaces.join("|"), REVISION);
            let data = prometheus.ask(&filled).await.unwrap_or_default();
            let shown = shown(&data);
            assert!(shown.is_subset(&both), "{filled}: {data}");
            if shown == both {
                answered += 1;
            } else {
                left.push(question);
            }
        }
        open = left;
        if answered >= QUESTIONS_MIN {
            return;
        }
    }
    panic!("{answered} questions of the board show both workloads; these do not: {open:#?}");
}

async fn create(namespace: &TestNamespace) -> Workload {
    let plan = WorkloadPlan::new("hello").annotated("autoscaling.knative.dev/min-scale", "1");
    let hello = plan.annotated("autoscaling.knative.dev/max-scale", "1").create(namespace).await;
    hello.has_pods(1).await;
    hello
}

#[test]
fn two_workloads_of_one_name_stay_apart_in_prometheus_and_on_the_board() {
    in_namespace("scraped", async |one| {
        let first = create(&one).await;
        one.beside("scraped-too", async |two| {
            let workloads = [first, create(&two).await];
            let folder = tempfile::tempdir().expect("a temporary folder can be made");
            let prometheus = scraped(&folder, [&one, &two]).await;
            for ((workload, namespace), requests) in workloads.iter().zip([&one, &two]).zip(REQUESTS) {
                let name = &namespace.name;
                workload.load().burst(requests).await.assert_all_answered();
                let [pod] = workload.pod_names().await.try_into().expect("it has one pod");
                let served = format!("queue_proxy_responses_total{{namespace='{name}',class='2xx'}}");
                let served = format!("sum by (namespace, revision, pod) ({served})");
                let metric = json!({"namespace": name, "revision": REVISION, "pod": pod});
                answers(&prometheus, &served, &metric, requests).await;
                let ready = format!("autoscaler_ready_pods{{namespace='{name}'}}");
                let ready = format!("max by (namespace, revision, pod) ({ready})");
                // The pod of an autoscaler is the label `replica`, and no pod of the workload.
                answers(&prometheus, &ready, &json!({"namespace": name, "revision": REVISION}), 1).await;
            }
            let replicas = "count(autoscaler_ready_pods{replica=~'autoscaler-.+'}) > bool 0";
            answers(&prometheus, replicas, &json!({}), 1).await;
            let taken = "count({exported_namespace!=''}) or vector(0)";
            answers(&prometheus, taken, &json!({}), 0).await;
            board_shows_both(&prometheus, &workloads, [&one.name, &two.name]).await;
        })
        .await;
    });
}
