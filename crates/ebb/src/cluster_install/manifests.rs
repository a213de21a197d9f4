//! Which objects are ebb, with which images? Those of `deploy/base`, as this executable was built with them,
//! so that it installs its own version and `ebb check` asks for the same.

use anyhow::anyhow;
use serde_json::{Value, json};

use crate::cli::{EBBS_SYSTEM, EbbImages};

/// The manifests, in an order in which each object finds the ones that it needs.
const MANIFESTS: [&str; 10] = [
    include_str!("../../../../deploy/base/namespace.yaml"),
    include_str!("../../../../deploy/base/priority-class.yaml"),
    include_str!("../../../../deploy/base/config-autoscaler.yaml"),
    include_str!("../../../../deploy/base/config-observability.yaml"),
    include_str!("../../../../deploy/base/network-policies.yaml"),
    include_str!("../../../../deploy/base/disruption-budgets.yaml"),
    include_str!("../../../../deploy/base/autoscaler-rights.yaml"),
    include_str!("../../../../deploy/base/autoscaler.yaml"),
    include_str!("../../../../deploy/base/activator.yaml"),
    include_str!("../../../../deploy/base/injector.yaml"),
];
/// Each kind of object that is in them, with the name of its resource and its place.
const KINDS: [ObjectKind; 14] = [
    ObjectKind { kind: "Namespace", resource: "namespaces", scope: ObjectScope::Cluster },
    ObjectKind { kind: "PriorityClass", resource: "priorityclasses", scope: ObjectScope::Cluster },
    ObjectKind { kind: "ClusterRole", resource: "clusterroles", scope: ObjectScope::Cluster },
    ObjectKind { kind: "ClusterRoleBinding", resource: "clusterrolebindings", scope: ObjectScope::Cluster },
    ObjectKind {
        kind: "MutatingWebhookConfiguration",
        resource: "mutatingwebhookconfigurations",
        scope: ObjectScope::Cluster,
    },
    ObjectKind {
        kind: "ValidatingWebhookConfiguration",
        resource: "validatingwebhookconfigurations",
        scope: ObjectScope::Cluster,
    },
    ObjectKind { kind: "ConfigMap", resource: "configmaps", scope: ObjectScope::System },
    ObjectKind { kind: "NetworkPolicy", resource: "networkpolicies", scope: ObjectScope::System },
    ObjectKind { kind: "PodDisruptionBudget", resource: "poddisruptionbudgets", scope: ObjectScope::System },
    ObjectKind { kind: "ServiceAccount", resource: "serviceaccounts", scope: ObjectScope::System },
    ObjectKind { kind: "Role", resource: "roles", scope: ObjectScope::System },
    ObjectKind { kind: "RoleBinding", resource: "rolebindings", scope: ObjectScope::System },
    ObjectKind { kind: "Service", resource: "services", scope: ObjectScope::System },
    ObjectKind { kind: "Deployment", resource: "deployments", scope: ObjectScope::System },
];
/// The label by which each object tells the version of the manifests that it was applied from.
pub(crate) const VERSION_LABEL: &str = "app.kubernetes.io/version";
/// The variable of the injector that names the image of the queue-proxy.
pub(crate) const QUEUE_PROXY_IMAGE: &str = "QUEUE_PROXY_IMAGE";

/// A kind of object, as the API server has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObjectKind {
    kind: &'static str,
    /// The name in the paths of the API.
    pub(super) resource: &'static str,
    pub(super) scope: ObjectScope,
}

/// Whether an object is in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectScope {
    /// The object is in no namespace.
    Cluster,
    /// In the namespace of ebb's own programs.
    System,
}

/// One object of the installation.
#[derive(Clone, Debug)]
pub(super) struct InstalledObject {
    pub(super) kind: ObjectKind,
    pub(super) value: Value,
}

impl InstalledObject {
    pub(super) fn name(&self) -> &str {
        self.value["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The group and the version of its API; the group of the oldest kinds is empty.
    pub(super) fn group_and_version(&self) -> (&str, &str) {
        let text = self.value["apiVersion"].as_str().unwrap_or_default();
        text.split_once('/').unwrap_or(("", text))
    }
}

impl std::fmt::Display for InstalledObject {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{} {}", self.kind.kind, self.name())
    }
}

/// All objects with these images, in the order in which they are applied.
pub(super) fn objects(images: &EbbImages) -> Vec<InstalledObject> {
    let read = |manifest: &&str| -> Vec<Value> {
        serde_saphyr::from_multiple(manifest).expect("what this executable was built with is YAML")
    };
    let documents = MANIFESTS.iter().flat_map(read).filter(|document| !document.is_null());
    documents.map(|document| installed(document, images)).collect()
}

/// The object of a manifest as it is applied: with its namespace, the version and the images.
fn installed(mut value: Value, images: &EbbImages) -> InstalledObject {
    let found = KINDS.iter().find(|known| value["kind"] == known.kind);
    let kind =
        *found.expect("each kind of the manifests that this executable was built with is in the table");
    if kind.scope == ObjectScope::System {
        value["metadata"]["namespace"] = json!(EBBS_SYSTEM);
    }
    value["metadata"]["labels"][VERSION_LABEL] = json!(env!("CARGO_PKG_VERSION"));
    let containers = value.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        container["image"] = json!(images.own);
        let variables = container.get_mut("env").and_then(Value::as_array_mut);
        for variable in variables.into_iter().flatten() {
            if variable["name"] == QUEUE_PROXY_IMAGE {
                variable["value"] = json!(images.queue_proxy);
            }
        }
    }
    InstalledObject { kind, value }
}

/// The manifest of all objects, for `kubectl` and for people.
pub(super) fn manifest(objects: &[InstalledObject]) -> anyhow::Result<String> {
    let mut text = String::new();
    for object in objects {
        let written = serde_saphyr::to_string(&object.value);
        let written = written.map_err(|error| anyhow!("{object} cannot be written as YAML: {error}"))?;
        text.extend(["---\n", written.trim_end(), "\n"]);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<InstalledObject> {
        let (own, queue_proxy) = ("r.example/ebb:7".to_owned(), "r.example/side:8".to_owned());
        objects(&EbbImages { own, queue_proxy })
    }

    #[test]
    fn every_object_has_its_place_its_version_and_the_images() {
        let (objects, kustomization) = (all(), include_str!("../../../../deploy/base/kustomization.yaml"));
        let resources = kustomization.lines().filter(|line| line.ends_with("yaml")).count();
        assert_eq!(resources, MANIFESTS.len(), "kustomize applies as many files");
        for object in &objects {
            let metadata = &object.value["metadata"];
            let is_namespaced = object.kind.scope == ObjectScope::System;
            let namespace = if is_namespaced { json!(EBBS_SYSTEM) } else { Value::Null };
            assert_eq!(metadata["namespace"], namespace, "{object}");
            assert_eq!(metadata["labels"]["app.kubernetes.io/name"], "ebb", "{object}");
            assert_eq!(metadata["labels"][VERSION_LABEL], env!("CARGO_PKG_VERSION"), "{object}");
        }
        let text = manifest(&objects).expect("it is written");
        assert_eq!(text.matches("r.example/ebb:7").count(), 3, "{text}");
        assert_eq!(text.matches("r.example/side:8").count(), 1, "{text}");
        let read: Vec<Value> = serde_saphyr::from_multiple(&text).expect("it is YAML");
        assert!(read.iter().eq(objects.iter().map(|object| &object.value)), "{text}");
        assert!(!text.contains("caBundle"), "the injectors write it");
    }

    #[test]
    fn objects_are_applied_after_those_that_they_need() {
        let objects = all();
        let place = |kind: &str, name: &str| {
            let named = |object: &InstalledObject| object.kind.kind == kind && object.name() == name;
            objects.iter().position(named).unwrap_or_else(|| panic!("{kind} {name} is missing"))
        };
        assert_eq!(place("Namespace", EBBS_SYSTEM), 0);
        for program in ["autoscaler", "activator", "injector"] {
            assert!(place("PriorityClass", "ebb-control-plane") < place("Deployment", program));
        }
        assert!(place("ServiceAccount", "autoscaler") < place("Deployment", "autoscaler"));
        assert!(place("RoleBinding", "ebb-autoscaler") < place("Deployment", "autoscaler"));
        assert!(place("Deployment", "injector") < place("MutatingWebhookConfiguration", "ebb-injector"));
        let deployment = &objects[place("Deployment", "injector")];
        assert_eq!(deployment.group_and_version(), ("apps", "v1"));
        assert_eq!(objects[0].group_and_version(), ("", "v1"));
    }
}
