//! Objects of a cluster as JSON, and what is the same about two of them.

use std::collections::BTreeMap;

use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Map, Value, json};

/// The kinds that the stand-ins or their tests read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlayedKind {
    /// Settings, also those of the stand-ins.
    ConfigMap,
    /// The Service that a user of Knative applies.
    KnativeService,
    /// One generation of a Service's template.
    Revision,
    /// What an autoscaler reads, and writes its status to.
    PodAutoscaler,
    /// What an autoscaler asks for: pods or activators behind a revision.
    ServerlessService,
    /// The workload of a revision's pods.
    Deployment,
    /// A Service of Kubernetes' own.
    Service,
    /// The addresses behind a Service of Kubernetes.
    Endpoints,
}

impl PlayedKind {
    pub(super) const ALL: [Self; 8] = [
        Self::ConfigMap,
        Self::KnativeService,
        Self::Revision,
        Self::PodAutoscaler,
        Self::ServerlessService,
        Self::Deployment,
        Self::Service,
        Self::Endpoints,
    ];

    /// Group, version, kind and plural, as the API server has them.
    fn names(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Self::ConfigMap => ("", "v1", "ConfigMap", "configmaps"),
            Self::KnativeService => ("serving.knative.dev", "v1", "Service", "services"),
            Self::Revision => ("serving.knative.dev", "v1", "Revision", "revisions"),
            Self::PodAutoscaler => {
                ("autoscaling.internal.knative.dev", "v1alpha1", "PodAutoscaler", "podautoscalers")
            }
            Self::ServerlessService => {
                ("networking.internal.knative.dev", "v1alpha1", "ServerlessService", "serverlessservices")
            }
            Self::Deployment => ("apps", "v1", "Deployment", "deployments"),
            Self::Service => ("", "v1", "Service", "services"),
            Self::Endpoints => ("", "v1", "Endpoints", "endpoints"),
        }
    }

    /// The kind as a client of the API server names it.
    pub fn resource(self) -> ApiResource {
        let (group, version, kind, plural) = self.names();
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
    }

    pub(super) fn api_version(self) -> String {
        let (group, version, _, _) = self.names();
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
    }

    pub(super) fn kind(self) -> &'static str {
        self.names().2
    }
}

/// An object by its kind and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectId {
    pub(super) kind: PlayedKind,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl ObjectId {
    pub(super) fn new(kind: PlayedKind, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The name under which the API server has an object.
    pub(super) fn of(kind: PlayedKind, object: &Value) -> Self {
        Self::new(kind, text(object, "/metadata/namespace"), text(object, "/metadata/name"))
    }

    /// Another object of the same namespace.
    pub(super) fn beside(&self, kind: PlayedKind, name: &str) -> Self {
        Self::new(kind, &self.namespace, name)
    }
}

/// All objects that are known.
#[derive(Debug, Default)]
pub(super) struct KnownObjects(BTreeMap<ObjectId, Value>);

impl KnownObjects {
    pub(super) fn put(&mut self, id: ObjectId, object: Value) {
        self.0.insert(id, object);
    }

    pub(super) fn remove(&mut self, id: &ObjectId) {
        self.0.remove(id);
    }

    /// Forgets the objects of a kind, whose list begins anew.
    pub(super) fn forget_kind(&mut self, kind: PlayedKind) {
        self.0.retain(|id, _| id.kind != kind);
    }

    /// An object that is there and does not end.
    pub(super) fn get(&self, id: &ObjectId) -> Option<&Value> {
        self.0.get(id).filter(|object| !is_ending(object))
    }

    /// All objects of a kind that do not end, by their names.
    pub(super) fn of_kind(&self, kind: PlayedKind) -> impl Iterator<Item = (&ObjectId, &Value)> {
        self.0.iter().filter(move |(id, object)| id.kind == kind && !is_ending(object))
    }

    /// A value in a ConfigMap.
    pub(super) fn setting(&self, namespace: &str, map: &str, key: &str) -> Option<&str> {
        let data = self.get(&ObjectId::new(PlayedKind::ConfigMap, namespace, map))?.get("data")?;
        data.get(key)?.as_str()
    }
}

/// Whether an object is being deleted, but is still there.
fn is_ending(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
}

/// The elements of the list at a JSON pointer; none where there is no list.
pub(super) fn list<'v>(object: &'v Value, pointer: &str) -> &'v [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
}

/// The text at a JSON pointer; empty where there is none.
pub(super) fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The whole number at a JSON pointer; zero where there is none.
pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

/// A label of an object; empty where there is none.
pub(super) fn label<'v>(object: &'v Value, key: &str) -> &'v str {
    object.pointer("/metadata/labels").and_then(|labels| labels.get(key)?.as_str()).unwrap_or_default()
}

/// The labels or annotations of an object.
pub(super) fn entries(object: &Value, pointer: &str) -> Map<String, Value> {
    object.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default()
}

/// The reference by which an object controls another one, as Knative writes it.
pub(super) fn owner_reference(kind: PlayedKind, owner: &Value) -> Value {
    json!([{
        "apiVersion": kind.api_version(),
        "kind": kind.kind(),
        "name": text(owner, "/metadata/name"),
        "uid": text(owner, "/metadata/uid"),
        "controller": true,
        "blockOwnerDeletion": true,
    }])
}

/// Whether all that is wanted stands in what is there: more fields may stand there, as defaults do. Lists are
/// the same element by element, and null means absent.
pub(super) fn contains(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| contains(live.get(key).unwrap_or(&Value::Null), wanted))
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| contains(live, wanted))
        }
        (Value::Null, Value::Object(wanted)) => wanted.values().all(Value::is_null),
        (live, wanted) => live == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_of_the_server_are_no_difference_and_null_is_absence() {
        let live = json!({"spec": {"mode": "Serve", "ports": [{"port": 80, "protocol": "TCP"}]}});
        assert!(contains(&live, &json!({"spec": {"ports": [{"port": 80}]}})));
        assert!(contains(&live, &json!({"spec": {"selector": null}, "status": {"x": null}})));
        for other in [
            json!({"spec": {"mode": "Proxy"}}),
            json!({"spec": {"mode": null}}),
            json!({"spec": {"ports": []}}),
            json!({"status": {"x": 1}}),
        ] {
            assert!(!contains(&live, &other), "{other}");
        }
    }

    #[test]
    fn an_object_that_ends_is_not_there() {
        let mut known = KnownObjects::default();
        let object = json!({"metadata": {"namespace": "a", "name": "b"}, "data": {"key": "value"}});
        let id = ObjectId::of(PlayedKind::ConfigMap, &object);
        known.put(id.clone(), object.clone());
        assert_eq!(known.setting("a", "b", "key"), Some("value"));
        let mut ending = object;
        ending["metadata"]["deletionTimestamp"] = json!("2026-11-27T00:00:00Z");
        known.put(id.clone(), ending);
        assert!(known.get(&id).is_none() && known.of_kind(PlayedKind::ConfigMap).next().is_none());
    }
}
