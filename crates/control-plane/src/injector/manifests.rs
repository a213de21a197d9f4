//! What the manifests say of the programs must be what the programs do.

use serde_json::{Value, json};

const INJECTOR: &str = include_str!("../../../../deploy/base/injector.yaml");
const ACTIVATOR: &str = include_str!("../../../../deploy/base/activator.yaml");
const AUTOSCALER: &str = include_str!("../../../../deploy/base/autoscaler.yaml");

fn documents(text: &str, kind: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_saphyr::from_multiple(text).expect("it is YAML");
    all.into_iter().filter(|document| document["kind"] == kind).collect()
}

fn webhooks(kind: &str) -> Vec<Value> {
    let [configuration] = &documents(INJECTOR, kind)[..] else { panic!("there is one {kind}") };
    configuration["webhooks"].as_array().expect("a list").clone()
}

/// A pod that asks for a queue-proxy is of no use without one; a check alone stands in no writer's way.
#[test]
fn only_who_asks_for_a_queue_proxy_waits_for_the_injector() {
    let elsewhere = json!([{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["ebb-system", "kube-system"]}]);
    let [inject] = &webhooks("MutatingWebhookConfiguration")[..] else { panic!("there is one") };
    for (field, expected) in [
        ("failurePolicy", json!("Fail")),
        ("timeoutSeconds", json!(5)),
        ("reinvocationPolicy", json!("IfNeeded")),
        ("objectSelector", json!({"matchLabels": {"ebb.dev/inject": "true"}})),
        ("namespaceSelector", json!({"matchExpressions": elsewhere})),
    ] {
        assert_eq!(inject[field], expected, "{field}");
    }
    let checks = webhooks("ValidatingWebhookConfiguration");
    for check in &checks {
        assert_eq!(check["failurePolicy"], "Ignore", "{}", check["name"]);
        assert!(check["timeoutSeconds"].as_u64() < Some(5), "{}", check["name"]);
    }
    let resources = checks.iter().flat_map(|check| check["rules"].as_array().into_iter().flatten());
    let resources = resources.flat_map(|rule| rule["resources"].as_array().into_iter().flatten());
    let mut resources: Vec<&str> = resources.filter_map(Value::as_str).collect();
    resources.sort_unstable();
    let known = ["configmaps", "deployments", "replicasets", "replicationcontrollers", "statefulsets"];
    assert_eq!(resources, known, "what can be checked is");
}

/// A handshake each second was most of what a sleeping injector did.
#[test]
fn readiness_probes_are_rare_and_without_tls() {
    for text in [INJECTOR, ACTIVATOR, AUTOSCALER] {
        let [deployment] = &documents(text, "Deployment")[..] else { panic!("there is one") };
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let (startup, readiness) = (&container["startupProbe"], &container["readinessProbe"]);
        assert_eq!(startup["httpGet"], readiness["httpGet"], "{container}");
        assert_eq!(readiness["httpGet"]["path"], "/ready");
        assert_eq!(readiness["httpGet"].get("scheme"), None);
        assert_eq!((&startup["periodSeconds"], &readiness["periodSeconds"]), (&json!(1), &json!(5)));
        let ports = container["ports"].as_array().into_iter().flatten();
        assert!(ports.into_iter().any(|port| port["name"] == readiness["httpGet"]["port"]));
    }
}
