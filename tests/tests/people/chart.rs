//! The chart has the objects of the kustomization: with its defaults, and with each value changed once.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Output;

use serde_json::{Value, json};

use crate::programs::{kubectl, printed_by, root, tool};
use crate::values::{PROGRAMS, ValueChange, changes, key_change};

const CHART: &str = "deploy/helm/ebb";
const NAMESPACE: &str = "ebb-system";
/// The version of Kubernetes to render for: that of the cluster of tests. Without a cluster Helm takes one of
/// its own build for granted.
const FOR_KUBERNETES: [&str; 2] = ["--kube-version", "1.37.2"];

/// Objects by kind and name.
type ObjectsByName = BTreeMap<(String, String), Value>;

fn objects(text: &str) -> ObjectsByName {
    let all: Vec<Value> = serde_saphyr::from_multiple(text).expect("it is YAML");
    let named = all.into_iter().filter(|object| !object.is_null()).map(|object| {
        let name = |field: &Value| field.as_str().expect("each object has it").to_owned();
        ((name(&object["kind"]), name(&object["metadata"]["name"])), object)
    });
    named.collect()
}

/// The output of Helm for the chart with these values.
fn helm(values: &Value) -> Output {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("values.json");
    std::fs::write(&file, values.to_string()).expect("it can be written");
    let mut command = tool("helm");
    command.args(["template", "ebb", CHART, "--namespace", NAMESPACE]).args(FOR_KUBERNETES);
    command.arg("--values").arg(&file);
    command.current_dir(root()).output().expect("helm starts")
}

fn rendered(values: &Value) -> ObjectsByName {
    let output = helm(values);
    assert!(output.status.success(), "{values}: {}", String::from_utf8_lossy(&output.stderr));
    objects(&String::from_utf8(output.stdout).expect("manifests are UTF-8"))
}

/// The objects of the manifests with these patches, as kustomize makes them.
fn kustomized(patches: &[Value], images: &[Value]) -> ObjectsByName {
    let place = tempfile::tempdir().expect("a temporary folder can be made");
    std::os::unix::fs::symlink(root().join("deploy"), place.path().join("deploy")).expect("a link");
    let overlay = place.path().join("overlay");
    std::fs::create_dir(&overlay).expect("a folder");
    let kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["../deploy/base"],
        "patches": patches,
        "images": images,
    });
    std::fs::write(overlay.join("kustomization.yaml"), kustomization.to_string()).expect("a file");
    objects(&printed_by(kubectl().arg("kustomize").arg(&overlay)))
}

/// The objects without those that are the same, for a message that shows the difference.
fn differences(chart: &ObjectsByName, kustomization: &ObjectsByName) -> Vec<String> {
    let names: BTreeSet<_> = chart.keys().chain(kustomization.keys()).collect();
    let different = names.into_iter().filter(|name| chart.get(*name) != kustomization.get(*name));
    let shown = different.map(|name| {
        let text = |objects: &ObjectsByName| objects.get(name).map_or("none".to_owned(), Value::to_string);
        format!("{name:?}\n  chart:         {}\n  kustomization: {}", text(chart), text(kustomization))
    });
    shown.collect()
}

/// Panics unless the chart has the objects of the kustomization after this change; returns them.
fn assert_same(change: &ValueChange) -> ObjectsByName {
    let chart = rendered(&change.values);
    let mut expected = kustomized(&change.patches, &change.images);
    if change.path != "namespace.create" {
        // Helm installs into a namespace that is there.
        expected.remove(&("Namespace".to_owned(), NAMESPACE.to_owned()));
    }
    let differences = differences(&chart, &expected);
    assert!(differences.is_empty(), "{}: {}\n{}", change.path, change.values, differences.join("\n"));
    chart
}

#[test]
fn the_defaults_are_the_kustomization() {
    let (chart, mut expected) = (rendered(&json!({})), kustomized(&[], &[]));
    assert!(expected.remove(&("Namespace".to_owned(), NAMESPACE.to_owned())).is_some());
    assert!(chart.len() > 20, "{} objects are hardly all", chart.len());
    let differences = differences(&chart, &expected);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn each_value_is_a_patch_of_the_kustomization() {
    let defaults = rendered(&json!({}));
    for change in changes() {
        assert_ne!(assert_same(&change), defaults, "{} changes nothing", change.path);
    }
}

#[test]
fn each_key_of_the_config_maps_is_a_patch_of_the_kustomization() {
    for section in ["autoscaler", "observability"] {
        for key in keys(section) {
            assert_same(&key_change(section, &key));
        }
    }
}

/// The keys of a ConfigMap that the schema of the values has.
fn keys(section: &str) -> Vec<String> {
    let schema = text("values.schema.json");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let keys = schema["properties"]["config"]["properties"][section]["properties"].as_object();
    let keys: Vec<String> = keys.expect("a map").keys().cloned().collect();
    assert!(keys.len() > 5, "{section}: {keys:?} are hardly all");
    keys
}

fn text(file: &str) -> String {
    let path = root().join(CHART).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn each_value_has_a_change_here() {
    let values: Value = serde_saphyr::from_str(&text("values.yaml")).expect("YAML");
    let mut there = BTreeSet::new();
    collect_paths(&values, "", &mut there);
    let mut changed: BTreeSet<String> = changes().into_iter().map(|change| change.path).collect();
    changed.extend(["config.autoscaler", "config.observability"].map(str::to_owned));
    assert_eq!(there, changed);
}

/// The paths of values; a map that people fill, and the resources, are one value.
fn collect_paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    let fields = value.as_object().filter(|fields| !fields.is_empty() && !path.ends_with("resources"));
    let Some(fields) = fields else {
        found.insert(path.to_owned());
        return;
    };
    for (name, field) in fields {
        let dot = if path.is_empty() { "" } else { "." };
        collect_paths(field, &format!("{path}{dot}{name}"), found);
    }
}

#[test]
fn values_that_nothing_reads_are_refused_by_their_names() {
    for (values, named) in [
        (json!({"netwrkPolicies": {"enabled": false}}), "netwrkPolicies"),
        (json!({"config": {"autoscaler": {"stable-windw": "30s"}}}), "stable-windw"),
        (json!({"config": {"autoscaler": {"max-scale": 3}}}), "max-scale"),
        (json!({"autoscaler": {"replicas": 0}}), "replicas"),
        (json!({"autoscaler": {"buckets": 17}}), "buckets"),
        (json!({"activator": {"buckets": 2}}), "buckets"),
        (json!({"injector": {"resources": {"limit": {}}}}), "limit"),
        (json!({"images": {"pullPolicy": "always"}}), "pullPolicy"),
    ] {
        let output = helm(&values);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(named), "{values}: {said}");
    }
}

#[test]
fn helm_lints_the_chart() {
    let mut command = tool("helm");
    let said = printed_by(command.args(["lint", "--strict", "--namespace", NAMESPACE, CHART]));
    assert!(said.contains("0 chart(s) failed"), "{said}");
}

/// Another namespace is named wherever the manifests name theirs.
#[test]
fn the_chart_is_for_any_namespace() {
    let elsewhere = ["template", "ebb", CHART, "--namespace", "elsewhere"];
    let text = printed_by(tool("helm").args(elsewhere).args(FOR_KUBERNETES));
    assert!(!text.contains(NAMESPACE), "{text}");
    let objects = objects(&text);
    for program in PROGRAMS {
        let deployment = &objects[&("Deployment".to_owned(), program.to_owned())];
        assert_eq!(deployment["metadata"]["namespace"], "elsewhere");
    }
    let webhooks = &objects[&("MutatingWebhookConfiguration".to_owned(), "ebb-injector".to_owned())];
    assert_eq!(webhooks["webhooks"][0]["clientConfig"]["service"]["namespace"], "elsewhere");
}
