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

/// The faults of a value, each with its place. A schema is a word for the value (`string`, `boolean`,
/// `integer`, or `one of` some words), a list with the schema of its items, or a map of fields: `*` is any
/// field, and one with `!` at its end has to be there.
fn faults(value: &Value, schema: &Value, place: &str, found: &mut Vec<String>) {
    match (schema, value) {
        (Value::String(word), _) => {
            let is_so = match word.as_str() {
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "integer" => value.is_u64(),
                words => value.as_str().is_some_and(|text| is_one_of(text, words)),
            };
            if !is_so {
                found.push(format!("{place}: {value} is not {word}"));
            }
        }
        (Value::Array(schemas), Value::Array(items)) => {
            for (at, item) in items.iter().enumerate() {
                faults(item, &schemas[0], &format!("{place}[{at}]"), found);
            }
        }
        (Value::Object(known), Value::Object(fields)) => {
            for (name, field) in fields {
                let schema = known.get(name).or_else(|| known.get(&format!("{name}!")));
                let place = format!("{place}.{name}");
                match schema.or_else(|| known.get("*")) {
                    Some(schema) => faults(field, schema, &place, found),
                    None => found.push(format!("{place} is not known")),
                }
            }
            let needed = known.keys().filter_map(|name| name.strip_suffix('!'));
            let missing = needed.filter(|name| !fields.contains_key(*name));
            found.extend(missing.map(|name| format!("{place}.{name} is missing")));
        }
        _ => found.push(format!("{place}: {value} is not {schema}")),
    }
}

fn is_one_of(text: &str, words: &str) -> bool {
    words.strip_prefix("one of ").is_some_and(|words| words.split(' ').any(|word| word == text))
}

/// The fields of a `PodMonitor` in the operator's schema (monitoring.coreos.com/v1), without those about
/// authentication, TLS and histograms.
fn schema_of_pod_monitors() -> Value {
    serde_json::from_str(include_str!("pod_monitor.json")).expect("the schema is JSON")
}

#[test]
fn pod_monitors_have_the_fields_of_the_operators_schema() {
    let schema = schema_of_pod_monitors();
    let mut found = Vec::new();
    for monitor in documents("components/pod-monitor/pod-monitors.yaml") {
        faults(&monitor, &schema, "PodMonitor", &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_pod_monitor_that_the_operator_would_refuse_has_faults() {
    let metadata = json!({"name": "wrong", "labels": {"app": 1}});
    let rules = json!([{"action": "Lowercased", "source_labels": ["a"], "regex": ["b"]}]);
    let endpoint = json!({"port": 9091, "honorLabels": "true", "relabelings": rules});
    let spec = json!({"podMetricsEndpoints": [endpoint], "namespaceSelector": ["any"]});
    let version = "monitoring.coreos.com/v1";
    let monitor = json!({"apiVersion": version, "kind": "PodMonitor", "metadata": metadata, "spec": spec});
    let mut found = Vec::new();
    faults(&monitor, &schema_of_pod_monitors(), "PodMonitor", &mut found);
    let places = [
        "PodMonitor.metadata.labels.app: 1 is not string",
        "PodMonitor.spec.namespaceSelector: ",
        "PodMonitor.spec.podMetricsEndpoints[0].honorLabels: \"true\" is not boolean",
        "PodMonitor.spec.podMetricsEndpoints[0].port: 9091 is not string",
        "PodMonitor.spec.podMetricsEndpoints[0].relabelings[0].action: \"Lowercased\" is not one of ",
        "PodMonitor.spec.podMetricsEndpoints[0].relabelings[0].regex: [\"b\"] is not string",
        "PodMonitor.spec.podMetricsEndpoints[0].relabelings[0].source_labels is not known",
        "PodMonitor.spec.selector is missing",
    ];
    found.sort();
    assert_eq!(found.len(), places.len(), "{found:#?}");
    for (fault, place) in found.iter().zip(places) {
        assert!(fault.starts_with(place), "{fault}");
    }
}

#[test]
fn pod_monitors_leave_metrics_the_labels_of_their_workload() {
    let mut targets = BTreeSet::new();
    for monitor in documents("components/pod-monitor/pod-monitors.yaml") {
        let name = &monitor["metadata"]["name"];
        for endpoint in list(&monitor["spec"], "podMetricsEndpoints") {
            assert_eq!(endpoint["honorLabels"], true, "{name}");
            for rule in list(endpoint, "relabelings") {
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

fn board() -> Value {
    serde_json::from_str(&text("components/grafana-board/ebb.json")).expect("a board is JSON")
}

/// The questions of all panels of a board, each with the legend of its lines.
fn targets(board: &Value) -> impl Iterator<Item = &Value> {
    list(board, "panels").iter().flat_map(|panel| list(panel, "targets"))
}

#[test]
fn the_board_tells_workloads_of_one_name_in_two_namespaces_apart() {
    let mut seen = 0;
    for target in targets(&board()) {
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

/// What happens on no good day has no series until it happens for the first time.
#[test]
fn panels_of_the_board_say_zero_while_all_is_well() {
    let rare = ["refus", "dropped", "retries", "full_pods", "links_lost", "pod_releases"];
    let board = board();
    let questions = targets(&board).filter_map(|target| target["expr"].as_str());
    let rare: Vec<&str> = questions.filter(|asked| rare.iter().any(|word| asked.contains(word))).collect();
    assert!(rare.len() > 8, "{rare:#?}");
    for question in rare {
        assert!(question.ends_with(" or on() vector(0)"), "{question}");
    }
}
