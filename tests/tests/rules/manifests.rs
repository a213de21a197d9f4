//! What `deploy/` holds is of one version, and what it tells Prometheus and Grafana is about workloads.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::house_rules::root;

/// The version of the workspace, which the archives of images carry as their tag.
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn deploy() -> PathBuf {
    root().join("deploy")
}

fn text(file: &str) -> String {
    let path = deploy().join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn documents(file: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_saphyr::from_multiple(&text(file)).expect("a manifest is YAML");
    all.into_iter().filter(|document| !document.is_null()).collect()
}

/// The one document of a file.
fn document(file: &str) -> Value {
    let [only] = <[Value; 1]>::try_from(documents(file)).expect("the file has one document");
    only
}

/// The manifests of the base, by the names of their files.
fn manifests() -> BTreeSet<String> {
    let entries = std::fs::read_dir(deploy().join("base")).expect("deploy has a base");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    names.filter(|name| name != "kustomization.yaml").collect()
}

fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value[field].as_array().map(Vec::as_slice).unwrap_or_default()
}

#[test]
fn the_base_lists_each_manifest_and_tells_its_version() {
    let kustomization = document("base/kustomization.yaml");
    let listed: BTreeSet<String> =
        list(&kustomization, "resources").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    assert_eq!(listed, manifests());
    let labels = json!([{"pairs": {"app.kubernetes.io/version": VERSION}}]);
    assert_eq!(kustomization["labels"], labels, "`ebb check` compares it with its own version");
}

#[test]
fn manifests_name_both_images_with_the_tag_of_the_archives() {
    let (mut images, mut of_pods) = (Vec::new(), Vec::new());
    for object in manifests().iter().flat_map(|name| documents(&format!("base/{name}"))) {
        let containers = list(&object["spec"]["template"]["spec"], "containers");
        images
            .extend(containers.iter().filter_map(|container| container["image"].as_str().map(str::to_owned)));
        let variables = containers.iter().flat_map(|container| list(container, "env"));
        let named = variables.filter(|variable| variable["name"] == "QUEUE_PROXY_IMAGE");
        of_pods.extend(named.filter_map(|variable| variable["value"].as_str().map(str::to_owned)));
    }
    assert_eq!(images, vec![format!("ebb:{VERSION}"); 3]);
    assert_eq!(of_pods, [format!("ebb-queue-proxy:{VERSION}")]);
}

/// kustomize knows no such field, and ends with its name.
#[test]
fn a_plain_checkout_cannot_be_applied_and_says_why() {
    let kustomization = document("kustomization.yaml");
    let fields: Vec<&String> = kustomization.as_object().expect("it is a map").keys().collect();
    let sentence = fields.iter().find(|field| field.contains(' ')).expect("one field is a sentence");
    for part in ["names no images", "`kubectl ebb install --image", "../deploy/base", "docs/start/cluster.md"]
    {
        assert!(sentence.contains(part), "{part} is missing in {sentence}");
    }
    assert!(!sentence.contains('"'), "kustomize would print it with backslashes: {sentence}");
    assert_eq!(fields.len(), 3, "nothing is applied: {fields:?}");
}

#[test]
fn pod_monitors_leave_metrics_the_labels_of_their_workload() {
    // Of the operator's schema (monitoring.coreos.com/v1, RelabelConfig): the fields, and actions in lower
    // case.
    let known = ["action", "regex", "replacement", "separator", "sourceLabels", "targetLabel"];
    let mut targets = BTreeSet::new();
    for monitor in documents("components/pod-monitor/pod-monitors.yaml") {
        let name = &monitor["metadata"]["name"];
        for endpoint in list(&monitor["spec"], "podMetricsEndpoints") {
            assert_eq!(endpoint["honorLabels"], true, "{name}");
            for rule in list(endpoint, "relabelings") {
                let fields = rule.as_object().expect("a rule is a map");
                assert!(fields.keys().all(|field| known.contains(&field.as_str())), "{name}: {rule}");
                assert!(["replace", "lowercase", "labeldrop"].iter().any(|action| rule["action"] == *action));
                if let Some(label) = rule["targetLabel"].as_str() {
                    targets.insert((name.to_string(), label.to_owned(), rule["replacement"].to_string()));
                }
            }
        }
    }
    let has = |monitor: &str, label: &str, replacement: &str| {
        targets.iter().any(|(name, target, with)| {
            (name.trim_matches('"'), target.as_str(), with.trim_matches('"')) == (monitor, label, replacement)
        })
    };
    assert!(has("ebb", "replica", "null"), "the pod of an autoscaler is no pod of a workload: {targets:?}");
    assert!(has("ebb-queue-proxies", "revision", "$1"), "{targets:?}");
    assert!(has("ebb-queue-proxies", "revision", "deployment/$1"), "{targets:?}");
}

#[test]
fn the_board_tells_workloads_of_one_name_in_two_namespaces_apart() {
    let board: Value =
        serde_json::from_str(&text("components/grafana-board/ebb.json")).expect("a board is JSON");
    let mut seen = 0;
    for target in list(&board, "panels").iter().flat_map(|panel| list(panel, "targets")) {
        let question = target["expr"].as_str().expect("a target asks something");
        let legend = target["legendFormat"].as_str().expect("a line has a legend");
        let (opened, closed) = (legend.matches("{{").count(), legend.matches("}}").count());
        let is_whole = opened == closed && opened * 2 == legend.matches('{').count();
        assert!(is_whole, "Grafana shows {legend} as it stands");
        let is_of_workload = question.contains("revision=~");
        assert_eq!(question.contains("namespace=~"), is_of_workload, "{question}");
        // Sums over workloads by another label name no workload.
        if is_of_workload && question.contains("by (") && !question.contains("by (reason)") {
            seen += 1;
            assert!(question.contains("namespace, revision"), "{question}");
            assert!(legend.contains("{{namespace}}/{{revision}}"), "{legend}: {question}");
        }
    }
    assert!(seen > 30, "{seen} lines of workloads are hardly all");
}
