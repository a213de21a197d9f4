//! What does a `PodAutoscaler` say of the revision that it scales? (Contract §2.1.)

use std::collections::BTreeMap;

use kube_core::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use settings::CLASS_ANNOTATION;
use vocabulary::{KNATIVE_REVISION_KIND, NameError, RevisionName};

use super::fields::{number_at, resource, text_at};
use super::status::AutoscalerStatus;
use crate::resources::ObjectKey;

pub(crate) const AUTOSCALER_API: &str = "autoscaling.internal.knative.dev/v1alpha1";
const OUR_CLASS: &str = "kpa.autoscaling.knative.dev";

/// The kind `PodAutoscaler` as the API server calls it.
pub fn pod_autoscalers() -> ApiResource {
    resource(AUTOSCALER_API, "PodAutoscaler", "podautoscalers")
}

/// Which program scales a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoscalerClass {
    /// ebb does, in the place of Knative's autoscaler.
    Ours,
    /// Another controller does: ebb's activators serve the revision, and nothing of it is written.
    Others,
    /// The object has no class, so no autoscaler acts on it.
    Unset,
}

/// How the app speaks HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServedProtocol {
    /// HTTP/1.1, on port 8012 of the queue-proxy.
    #[default]
    Http1,
    /// HTTP/2 without TLS, on port 8013 of the queue-proxy.
    H2c,
}

impl ServedProtocol {
    pub(crate) fn read(text: &str) -> Self {
        if text == "h2c" { Self::H2c } else { Self::Http1 }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http1",
            Self::H2c => "h2c",
        }
    }

    /// The port of the queue-proxy and of activators for this protocol.
    pub fn request_port(self) -> u16 {
        match self {
            Self::Http1 => 8012,
            Self::H2c => 8013,
        }
    }
}

/// Whether a route leads to a revision, as the controller says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reachability {
    /// A route leads there, or the controller does not know yet. Both act alike.
    #[default]
    ReachableOrUnknown,
    /// No route leads there: the revision keeps no pod for its settings' sake.
    Unreachable,
}

/// The workload that is scaled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaledWorkload {
    /// Group and version of its kind.
    pub api_version: String,
    /// Its kind, which is `Deployment`.
    pub kind: String,
    /// Its name in the namespace of the revision.
    pub name: String,
}

impl ScaledWorkload {
    pub(crate) fn read(reference: &Value) -> Self {
        Self {
            api_version: text_at(reference, "apiVersion").to_owned(),
            kind: text_at(reference, "kind").to_owned(),
            name: text_at(reference, "name").to_owned(),
        }
    }

    pub(crate) fn written(&self) -> Value {
        json!({"apiVersion": self.api_version, "kind": self.kind, "name": self.name})
    }
}

/// A `PodAutoscaler` as far as it concerns us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodAutoscalerRecord {
    /// The namespace and name, which are the revision's.
    pub key: ObjectKey,
    /// The uid, which tells the object from a later one of its name.
    pub uid: String,
    /// Which spec this is; the status says which one it answers.
    pub generation: i64,
    /// The version that a write has to replace.
    pub resource_version: String,
    /// Which program scales the revision.
    pub class: AutoscalerClass,
    /// The labels, which the `ServerlessService` gets too.
    pub labels: BTreeMap<String, String>,
    /// The annotations, with the user's settings among them.
    pub annotations: BTreeMap<String, String>,
    /// The workload whose count is written.
    pub target: ScaledWorkload,
    /// The most requests in one pod at once; 0 means no limit.
    pub container_concurrency: u32,
    /// How the app speaks HTTP.
    pub protocol: ServedProtocol,
    /// Whether a route leads to the revision.
    pub reachability: Reachability,
    /// The status as it is written: after a restart, ebb's memory of the revision.
    pub status: AutoscalerStatus,
}

impl PodAutoscalerRecord {
    /// Reads an object as the API server has it.
    pub fn read(object: &DynamicObject) -> Self {
        let metadata = &object.metadata;
        let annotations = metadata.annotations.clone().unwrap_or_default();
        let spec = object.data.get("spec").unwrap_or(&Value::Null);
        let limit = number_at(spec, "containerConcurrency").unwrap_or_default();
        Self {
            key: ObjectKey::of(metadata),
            uid: metadata.uid.clone().unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            class: match annotations.get(CLASS_ANNOTATION).map(String::as_str) {
                Some(OUR_CLASS) => AutoscalerClass::Ours,
                Some(_) => AutoscalerClass::Others,
                None => AutoscalerClass::Unset,
            },
            labels: metadata.labels.clone().unwrap_or_default(),
            annotations,
            target: ScaledWorkload::read(spec.get("scaleTargetRef").unwrap_or(&Value::Null)),
            // A limit beyond the range is none that a pod could reach.
            container_concurrency: u32::try_from(limit.max(0)).unwrap_or(u32::MAX),
            protocol: ServedProtocol::read(text_at(spec, "protocolType")),
            reachability: match text_at(spec, "reachability") {
                "Unreachable" => Reachability::Unreachable,
                _ => Reachability::ReachableOrUnknown,
            },
            status: AutoscalerStatus::read(object.data.get("status").unwrap_or(&Value::Null)),
        }
    }

    /// The name by which ebb knows the revision; an error for an object without a name or namespace.
    pub fn revision(&self) -> Result<RevisionName, NameError> {
        RevisionName::new(&self.key.namespace, KNATIVE_REVISION_KIND, &self.key.name)
    }

    /// Whether it asks for the same as another state of the object: our own write of its status is no news.
    pub(crate) fn asks_for_the_same_as(&self, other: &Self) -> bool {
        let other = Self {
            generation: self.generation,
            resource_version: self.resource_version.clone(),
            status: self.status.clone(),
            ..other.clone()
        };
        *self == other
    }

    /// Whether traffic can arrive at the revision.
    pub fn is_reachable(&self) -> bool {
        self.reachability == Reachability::ReachableOrUnknown
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The `PodAutoscaler` of `hello-00001` of class kpa, with these further annotations.
    pub(crate) fn autoscaler(annotations: &Value) -> PodAutoscalerRecord {
        let mut object = object();
        for (key, value) in annotations.as_object().into_iter().flatten() {
            object["metadata"]["annotations"][key] = value.clone();
        }
        read(object)
    }

    pub(crate) fn object() -> Value {
        json!({
            "apiVersion": AUTOSCALER_API,
            "kind": "PodAutoscaler",
            "metadata": {
                "name": "hello-00001", "namespace": "default", "uid": "pa1", "generation": 1, "resourceVersion": "7",
                "labels": {"serving.knative.dev/revision": "hello-00001"},
                "annotations": {"autoscaling.knative.dev/class": "kpa.autoscaling.knative.dev"},
            },
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "hello-00001-deployment"},
                "containerConcurrency": 10, "protocolType": "http1", "reachability": "Reachable",
            },
        })
    }

    pub(crate) fn read(object: Value) -> PodAutoscalerRecord {
        PodAutoscalerRecord::read(&serde_json::from_value(object).expect("an object"))
    }

    #[test]
    fn a_revision_is_known_by_its_autoscaler() {
        let record = autoscaler(&json!({}));
        assert_eq!(record.revision().expect("a name").as_str(), "default/revision/hello-00001");
        assert_eq!((record.container_concurrency, record.protocol), (10, ServedProtocol::Http1));
        assert_eq!(record.target.name, "hello-00001-deployment");
        assert_eq!(record.status, AutoscalerStatus::default());
        assert_eq!(
            [ServedProtocol::Http1, ServedProtocol::H2c].map(ServedProtocol::request_port),
            [8012, 8013]
        );
    }

    #[test]
    fn exactly_class_kpa_is_ours() {
        let class = |class: Value| {
            let mut object = object();
            object["metadata"]["annotations"] = class;
            read(object).class
        };
        let key = "autoscaling.knative.dev/class";
        assert_eq!(class(json!({key: "kpa.autoscaling.knative.dev"})), AutoscalerClass::Ours);
        assert_eq!(class(json!({key: "hpa.autoscaling.knative.dev"})), AutoscalerClass::Others);
        assert_eq!(class(json!({key: "kpa"})), AutoscalerClass::Others);
        assert_eq!(class(json!({})), AutoscalerClass::Unset);
    }

    #[test]
    fn a_revision_is_unreachable_only_where_its_autoscaler_says_so() {
        for (text, is_reachable) in
            [("", true), ("Reachable", true), ("Unknown", true), ("Unreachable", false)]
        {
            let mut object = object();
            object["spec"]["reachability"] = json!(text);
            assert_eq!(read(object).is_reachable(), is_reachable, "{text:?}");
        }
    }

    #[test]
    fn an_absent_limit_is_none() {
        let mut object = object();
        object["spec"].as_object_mut().expect("fields").remove("containerConcurrency");
        assert_eq!(read(object).container_concurrency, 0);
    }
}
