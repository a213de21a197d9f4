//! How is each kind of workload written? Kubernetes' own have the same parts in other places. Of a custom one
//! its `scale` says the count and the pods, and `spec.template`, where nearly all have one, what the pods
//! declare.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::core::v1::{PodTemplateSpec, ReplicationController};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::{ApiResource, DynamicObject};
use settings::RequestLimits;
use vocabulary::{PodCount, shown};

use super::{ObjectVersion, ShownCount, ShownWorkload, WorkloadRecord, is_ours};
use crate::notice::{NOT_SCALABLE, Notice};
use crate::resources::kind::WorkloadKind;
use crate::resources::ports::ContainerPorts;
use crate::resources::scaled_pod::requests_of;
use crate::resources::selector::Selector;

/// A workload as its object shows it, or why it cannot be scaled.
pub type WorkloadReading = Result<Box<ShownWorkload>, Notice>;

/// The parts that all kinds of workloads have, each in fields of its own.
struct WorkloadParts<'o> {
    replicas: Option<i32>,
    /// The metadata of the object that says the count.
    counted: &'o ObjectMeta,
    selector: Selector,
    template: Option<&'o PodTemplateSpec>,
    /// The pods that there are (`status.replicas`).
    present: Option<i32>,
    ready: Option<i32>,
    /// What people call its present template.
    template_name: String,
    governing_service: Option<String>,
}

/// Reads a Deployment as far as it concerns us.
pub fn deployment(object: &Deployment) -> WorkloadReading {
    let spec = object.spec.as_ref();
    let status = object.status.as_ref();
    let number = annotation(&object.metadata, "deployment.kubernetes.io/revision").unwrap_or_default();
    let parts = WorkloadParts {
        replicas: spec.and_then(|spec| spec.replicas),
        counted: &object.metadata,
        selector: Selector::new(spec.map(|spec| spec.selector.clone()).unwrap_or_default()),
        template: spec.map(|spec| &spec.template),
        present: status.and_then(|status| status.replicas),
        ready: status.and_then(|status| status.ready_replicas),
        template_name: format!("revision {number}"),
        governing_service: None,
    };
    record(&object.metadata, &WorkloadKind::Deployment, None, parts)
}

/// Reads a `StatefulSet` as far as it concerns us.
pub fn stateful_set(object: &StatefulSet) -> WorkloadReading {
    let spec = object.spec.as_ref();
    let status = object.status.as_ref();
    let parts = WorkloadParts {
        replicas: spec.and_then(|spec| spec.replicas),
        counted: &object.metadata,
        selector: Selector::new(spec.map(|spec| spec.selector.clone()).unwrap_or_default()),
        template: spec.map(|spec| &spec.template),
        present: status.map(|status| status.replicas),
        ready: status.and_then(|status| status.ready_replicas),
        template_name: status.and_then(|status| status.update_revision.clone()).unwrap_or_default(),
        governing_service: spec.and_then(|spec| spec.service_name.clone()),
    };
    record(&object.metadata, &WorkloadKind::StatefulSet, None, parts)
}

/// Reads a `ReplicaSet` that no controller has made.
pub fn replica_set(object: &ReplicaSet) -> WorkloadReading {
    refuse_controlled(&object.metadata)?;
    let spec = object.spec.as_ref();
    let status = object.status.as_ref();
    let parts = WorkloadParts {
        replicas: spec.and_then(|spec| spec.replicas),
        counted: &object.metadata,
        selector: Selector::new(spec.map(|spec| spec.selector.clone()).unwrap_or_default()),
        template: spec.and_then(|spec| spec.template.as_ref()),
        present: status.map(|status| status.replicas),
        ready: status.and_then(|status| status.ready_replicas),
        template_name: generation(&object.metadata),
        governing_service: None,
    };
    record(&object.metadata, &WorkloadKind::ReplicaSet, None, parts)
}

/// Reads a `ReplicationController` that no controller has made.
pub fn replication_controller(object: &ReplicationController) -> WorkloadReading {
    refuse_controlled(&object.metadata)?;
    let spec = object.spec.as_ref();
    let status = object.status.as_ref();
    let parts = WorkloadParts {
        replicas: spec.and_then(|spec| spec.replicas),
        counted: &object.metadata,
        selector: Selector::of_labels(spec.and_then(|spec| spec.selector.clone()).unwrap_or_default()),
        template: spec.and_then(|spec| spec.template.as_ref()),
        present: status.map(|status| status.replicas),
        ready: status.and_then(|status| status.ready_replicas),
        template_name: generation(&object.metadata),
        governing_service: None,
    };
    record(&object.metadata, &WorkloadKind::ReplicationController, None, parts)
}

/// Reads a custom workload; `scale` is what its subresource says.
pub fn custom(
    object: &DynamicObject,
    scale: &Scale,
    kind: &WorkloadKind,
    resource: &ApiResource,
) -> WorkloadReading {
    let status = scale.status.as_ref();
    let text = status.and_then(|status| status.selector.as_deref()).unwrap_or_default();
    let selector = Selector::parse(text).filter(|selector| !selector.is_empty()).ok_or_else(|| {
        let text = format!(
            "its scale names no pods (status.selector is {}); the resource needs a labelSelectorPath that leads to a selector",
            shown(text)
        );
        Notice::new(NOT_SCALABLE, text)
    })?;
    let template = object.data.pointer("/spec/template").cloned().unwrap_or_default();
    let mut template: PodTemplateSpec = serde_json::from_value(template).unwrap_or_default();
    let metadata = template.metadata.get_or_insert_default();
    if metadata.labels.is_none() {
        metadata.labels = Some(selector.exact_labels());
    }
    if template.spec.is_none() {
        // Where there is no template, its own annotations say which ports its pods have.
        metadata.annotations.clone_from(&object.metadata.annotations);
    }
    let parts = WorkloadParts {
        replicas: Some(scale.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or_default()),
        counted: &scale.metadata,
        selector,
        template: Some(&template),
        present: status.map(|status| status.replicas),
        ready: status.map(|status| status.replicas),
        template_name: generation(&object.metadata),
        governing_service: None,
    };
    record(&object.metadata, kind, Some(resource), parts)
}

/// A workload that another object controls gets its count from that object.
fn refuse_controlled(metadata: &ObjectMeta) -> Result<(), Notice> {
    let mut owners = metadata.owner_references.iter().flatten();
    let Some(owner) = owners.find(|owner| owner.controller == Some(true)) else { return Ok(()) };
    let (kind, name) = (&owner.kind, &owner.name);
    let text =
        format!("{kind} {name} decides about its count; name {kind} {name} instead, if that can be scaled");
    Err(Notice::new(NOT_SCALABLE, text))
}

fn record(
    metadata: &ObjectMeta,
    kind: &WorkloadKind,
    resource: Option<&ApiResource>,
    parts: WorkloadParts<'_>,
) -> WorkloadReading {
    let (namespace, name) =
        (metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default());
    let revision = kind.revision(namespace, name);
    let resource = resource.cloned().or_else(|| kind.resource());
    let (Some(revision), Some(resource)) = (revision, resource) else {
        return Err(Notice::new(NOT_SCALABLE, "the workload has no namespace"));
    };
    let template = parts.template.and_then(|template| template.metadata.as_ref());
    let template_labels = template.and_then(|template| template.labels.clone()).unwrap_or_default();
    let on_template = template.and_then(|template| template.annotations.as_ref());
    let pod_spec = parts.template.and_then(|template| template.spec.as_ref());
    let declared = ContainerPorts::read(pod_spec, on_template);
    let (limits, mut annotations): (BTreeMap<_, _>, BTreeMap<_, _>) =
        ours(on_template).partition(|(key, _)| RequestLimits::is_key(key));
    annotations.extend(ours(metadata.annotations.as_ref()));
    let number = |count: Option<i32>| count.and_then(|count| u32::try_from(count).ok());
    let count = ShownCount {
        // The API server writes 1 where nothing was written.
        count: PodCount::new(number(parts.replicas).unwrap_or(1)),
        version: ObjectVersion::of(parts.counted),
    };
    let record = WorkloadRecord {
        present: PodCount::new(number(parts.present).unwrap_or_default()),
        object: name.to_owned(),
        resource,
        uid: metadata.uid.clone().unwrap_or_default(),
        has_ready_pod: parts.ready.unwrap_or_default() > 0,
        selector: parts.selector,
        ports: declared,
        requests: pod_spec.map(requests_of).unwrap_or_default(),
        template_labels,
        governing_service: parts.governing_service.filter(|name| !name.is_empty()),
        template: format!("{} {}", revision.name(), parts.template_name),
        revision,
        annotations,
        limits,
    };
    Ok(Box::new(ShownWorkload { record, count }))
}

/// The annotations that are for us.
fn ours(annotations: Option<&BTreeMap<String, String>>) -> impl Iterator<Item = (String, String)> {
    let annotations = annotations.into_iter().flatten().filter(|(key, _)| is_ours(key));
    annotations.map(|(key, value)| (key.clone(), value.clone()))
}

fn annotation<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

fn generation(metadata: &ObjectMeta) -> String {
    format!("generation {}", metadata.generation.unwrap_or_default())
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};
    use settings::ClusterConfig;
    use settings::hpa::ResourceName;
    use vocabulary::MilliValue;

    use super::*;

    fn object(spec: &Value, owner: Option<Value>) -> Value {
        let template = json!({
            "metadata": {"labels": {"app": "hello"}},
            "spec": {"containers": [{"name": "app", "ports": [{"name": "http", "containerPort": 8080}]}]},
        });
        let mut whole =
            json!({"replicas": 3, "selector": {"matchLabels": {"app": "hello"}}, "template": template});
        let (Value::Object(map), Value::Object(changes)) = (&mut whole, spec.clone()) else { unreachable!() };
        map.extend(changes);
        let owners: Vec<Value> = owner.into_iter().collect();
        json!({
            "metadata": {"name": "hello", "namespace": "default", "uid": "u", "generation": 4, "ownerReferences": owners},
            "spec": whole,
            "status": {"replicas": 2, "readyReplicas": 1},
        })
    }

    fn read<Object: serde::de::DeserializeOwned>(value: Value) -> Object {
        serde_json::from_value(value).expect("such an object")
    }

    pub(crate) fn scale(selector: &str, replicas: u32) -> Scale {
        read(json!({"spec": {"replicas": replicas}, "status": {"replicas": replicas, "selector": selector}}))
    }

    pub(crate) fn rollouts() -> (WorkloadKind, ApiResource) {
        let kind = WorkloadKind::read("rollouts.argoproj.io").expect("a kind");
        let resource = ApiResource {
            group: "argoproj.io".to_owned(),
            version: "v1alpha1".to_owned(),
            api_version: "argoproj.io/v1alpha1".to_owned(),
            kind: "Rollout".to_owned(),
            plural: "rollouts".to_owned(),
        };
        (kind, resource)
    }

    #[test]
    fn each_kind_has_the_same_parts() {
        let (kind, resource) = rollouts();
        let none = json!({});
        let labels = json!({"selector": {"app": "hello"}});
        let records = [
            ("deployment", deployment(&read(object(&none, None)))),
            ("statefulset", stateful_set(&read(object(&json!({"serviceName": "peers"}), None)))),
            ("replicaset", replica_set(&read(object(&none, None)))),
            ("replicationcontroller", replication_controller(&read(object(&labels, None)))),
            (
                "rollouts.argoproj.io",
                custom(&read(object(&none, None)), &scale("app=hello", 3), &kind, &resource),
            ),
        ];
        for (kind, reading) in records {
            let ShownWorkload { record, count } = *reading.expect(kind);
            assert_eq!(record.revision.as_str(), format!("default/{kind}/hello"));
            assert_eq!((count.count, record.has_ready_pod), (PodCount::new(3), true), "{kind}");
            assert!(record.selector.selects(&record.template_labels), "{kind}");
            assert_eq!(record.governing_service.as_deref(), (kind == "statefulset").then_some("peers"));
        }
    }

    #[test]
    fn a_controlled_workload_is_refused_and_its_controller_named() {
        let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "front", "uid": "d", "controller": true});
        let refused = replica_set(&read(object(&json!({}), Some(owner)))).expect_err("it is controlled");
        assert!(refused.text.contains("Deployment front"), "{}", refused.text);
    }

    #[test]
    fn a_scale_that_names_no_pods_is_refused_with_what_to_do() {
        let (kind, resource) = rollouts();
        for selector in ["", "a in x"] {
            let object = read(object(&json!({}), None));
            let refused = custom(&object, &scale(selector, 1), &kind, &resource).expect_err("no pods");
            assert!(refused.text.contains("labelSelectorPath"), "{}", refused.text);
        }
    }

    #[test]
    fn a_template_says_what_its_pods_request() {
        let resources = json!({"requests": {"cpu": "250m", "memory": "64Mi"}});
        let template = json!({"spec": {"containers": [{"name": "app", "resources": resources}]}});
        let shown = deployment(&read(object(&json!({"template": template}), None))).expect("it is scaled");
        let settings = shown.record.settings(&ClusterConfig::default()).expect("all is well").scaling;
        let cpu = settings.requests.sum_of(&ResourceName::Cpu);
        assert_eq!(cpu.map(MilliValue::value), Some(250));
    }

    #[test]
    fn a_custom_resource_without_a_template_says_its_ports_itself() {
        let (kind, resource) = rollouts();
        let mut object = object(&json!({"template": null}), None);
        object["metadata"]["annotations"] = json!({"ebb.dev/ports": "8080", "ebb.dev/paused": "true"});
        let shown = custom(&read(object), &scale("app=hello", 1), &kind, &resource).expect("it has pods");
        let record = shown.record;
        assert_eq!(record.template_labels.get("app").map(String::as_str), Some("hello"));
        assert_ne!(record.ports, ContainerPorts::default());
    }
}
