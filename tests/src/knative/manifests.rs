//! The operations of `deploy/knative` on the release file of the tests, without a cluster.

use k8s_openapi::api::apps::v1::Deployment;
use serde_json::Value;

use super::objects::text;

const RELEASE: &str = include_str!("../../cluster/knative/serving-core.yaml");
const KINDS: &str = include_str!("../../cluster/knative/crds.yaml");
const OPERATIONS: &str = include_str!("../../../deploy/knative/autoscaler/deployment.yaml");
const ACTIVATOR_OPERATIONS: &str = include_str!("../../../deploy/knative/activator/deployment.yaml");
const QUEUE_PROXY_STEP: &str = include_str!("../../../deploy/knative/queue-proxy/kustomization.yaml");
const RIGHTS: &str = include_str!("../../../deploy/knative/autoscaler/rights.yaml");

fn documents(manifest: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(manifest).expect("a manifest is YAML")
}

fn named<'d>(documents: &'d [Value], kind: &str, name: &str) -> &'d Value {
    let is_it = |document: &&Value| document["kind"] == kind && document["metadata"]["name"] == name;
    documents.iter().find(is_it).unwrap_or_else(|| panic!("there is no {kind} {name}"))
}

/// A Deployment of a release with ebb in the place of Knative's program.
fn with_ebb(release: &str, name: &str, operations: &str) -> Deployment {
    let mut deployment = named(&documents(release), "Deployment", name).clone();
    let operations: Vec<Value> = serde_saphyr::from_str(operations).expect("a list of operations");
    for operation in &operations {
        assert_eq!(operation["op"], "add", "it replaces a field, and makes one that is absent");
        let (parent, field) = text(operation, "/path").rsplit_once('/').expect("a path");
        let parent = deployment.pointer_mut(parent).unwrap_or_else(|| panic!("{parent} is no field"));
        parent[field] = operation["value"].clone();
    }
    serde_json::from_value(deployment).expect("it is still a Deployment")
}

#[test]
fn ebbs_autoscaler_has_the_names_of_knatives_and_what_it_needs() {
    let deployment = with_ebb(RELEASE, "autoscaler", OPERATIONS);
    let spec = deployment.spec.expect("a spec");
    assert_eq!(spec.replicas, Some(1));
    let labels = spec.template.metadata.and_then(|metadata| metadata.labels).expect("labels");
    let selected = spec.selector.match_labels.expect("a selector");
    assert!(selected.iter().all(|(key, value)| labels.get(key) == Some(value)), "{selected:?} {labels:?}");
    let pod = spec.template.spec.expect("a pod");
    let [container] = &pod.containers[..] else { panic!("one container: {:?}", pod.containers) };
    let variables: Vec<&str> =
        container.env.iter().flatten().map(|variable| variable.name.as_str()).collect();
    assert_eq!(variables, ["EBB_PROFILE", "POD_NAME", "POD_IP", "POD_NAMESPACE"]);
    let ports: Vec<(Option<&str>, i32)> =
        container.ports.iter().flatten().map(|port| (port.name.as_deref(), port.container_port)).collect();
    // Knative's Service leads to port 8080, at which its activators push their load.
    assert!(ports.contains(&(Some("websocket"), 8080)), "{ports:?}");
    // By this port's name ebb's autoscaler tells its own pods from Knative's.
    assert!(ports.contains(&(Some("api"), 8081)), "{ports:?}");
    let account = pod.service_account_name.expect("an account of its own");
    let rights = documents(RIGHTS);
    assert_eq!(named(&rights, "ServiceAccount", &account)["metadata"]["namespace"], "knative-serving");
}

#[test]
fn ebbs_activator_keeps_the_ports_of_knatives_service_and_declares_its_link() {
    let spec = with_ebb(RELEASE, "activator", ACTIVATOR_OPERATIONS).spec.expect("a spec");
    assert_eq!(spec.replicas, Some(2), "the release's own");
    let pod = spec.template.spec.expect("a pod");
    assert_eq!(pod.termination_grace_period_seconds, Some(600));
    let [container] = &pod.containers[..] else { panic!("one container: {:?}", pod.containers) };
    let ports: Vec<(Option<&str>, i32)> =
        container.ports.iter().flatten().map(|port| (port.name.as_deref(), port.container_port)).collect();
    let service = named(&documents(RELEASE), "Service", "activator-service").clone();
    for target in [8012, 8013] {
        let leads_there = service["spec"]["ports"]
            .as_array()
            .expect("ports")
            .iter()
            .any(|port| port["targetPort"] == target);
        assert!(leads_there && ports.iter().any(|(_, port)| i64::from(*port) == target), "{target}");
    }
    // By this port's name the autoscaler tells ebb's activators from Knative's.
    assert!(ports.contains(&(Some("link"), 8024)), "{ports:?}");
    // And by this variable why one of them ended.
    let mut variables = container.env.iter().flatten();
    assert!(variables.any(|variable| variable.name == "EBB_PROFILE"), "{:?}", container.env);
    let mounts: Vec<&str> =
        container.volume_mounts.iter().flatten().map(|mount| mount.name.as_str()).collect();
    let volumes: Vec<&str> = pod.volumes.iter().flatten().map(|volume| volume.name.as_str()).collect();
    assert_eq!(mounts, volumes);
}

/// Knative is upgraded underneath: the same folders over the next release bring that release, with ebb's
/// programs in place.
#[test]
fn the_next_release_comes_with_ebbs_programs_in_place() {
    let next = RELEASE.replace("1.23.0", "1.23.1").replace("knative-stand-in:test", "knative-stand-in:next");
    for (name, operations) in [("autoscaler", OPERATIONS), ("activator", ACTIVATOR_OPERATIONS)] {
        let (former, present) = (with_ebb(RELEASE, name, operations), with_ebb(&next, name, operations));
        let labels = present.metadata.labels.expect("labels");
        assert_eq!(labels["app.kubernetes.io/version"], "1.23.1", "{name}");
        assert_eq!(present.spec, former.spec, "{name} is as before");
    }
    let documents = documents(&next);
    for name in ["controller", "webhook"] {
        let image = named(&documents, "Deployment", name).pointer("/spec/template/spec/containers/0/image");
        assert_eq!(image, Some(&Value::from("knative-stand-in:next")), "{name} is the next release's");
    }
}

/// Other keys of the ConfigMap are the release's, and its name must stay: Knative's controller reads it by
/// that.
#[test]
fn the_step_of_the_queue_proxies_writes_two_keys_of_config_deployment() {
    let step = documents(QUEUE_PROXY_STEP).remove(0);
    assert_eq!(step["generatorOptions"]["disableNameSuffixHash"], true);
    let map = &step["configMapGenerator"][0];
    let placed = [&map["name"], &map["namespace"], &map["behavior"]];
    assert_eq!(placed, ["config-deployment", "knative-serving", "merge"]);
    let image = concat!("queue-sidecar-image=ebb-queue-proxy:", env!("CARGO_PKG_VERSION"));
    assert_eq!(text(map, "/literals/0"), image);
    assert_eq!(text(map, "/files/0"), "queue-sidecar-rootca=ca.crt");
    named(&documents(RELEASE), "ConfigMap", "config-deployment");
}

#[test]
fn every_role_is_bound_to_the_account() {
    let rights = documents(RIGHTS);
    for (binding, role) in [("ClusterRoleBinding", "ClusterRole"), ("RoleBinding", "Role")] {
        let bound = rights.iter().find(|document| document["kind"] == binding).expect("a binding");
        named(&rights, role, text(bound, "/roleRef/name"));
        assert_eq!(text(bound, "/subjects/0/name"), "ebb-autoscaler");
    }
}

#[test]
fn the_kinds_of_the_tests_require_both_names_in_a_status() {
    let kinds = documents(KINDS);
    let autoscalers =
        named(&kinds, "CustomResourceDefinition", "podautoscalers.autoscaling.internal.knative.dev");
    let version = &autoscalers["spec"]["versions"][0];
    let required = &version["schema"]["openAPIV3Schema"]["properties"]["status"]["required"];
    assert_eq!(*required, serde_json::json!(["serviceName", "metricsServiceName"]));
    assert!(kinds.iter().all(|kind| kind["spec"]["versions"][0]["subresources"]["status"].is_object()));
}
