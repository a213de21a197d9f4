//! What does a `ServerlessService` say, and what has it to say? (Contract §3.)
//!
//! Its spec is ebb's alone: whether pods or activators stand behind the revision's public Service, and how
//! many activators. Its status is the controller's, which writes the Endpoints.

use std::collections::BTreeMap;

use jiff::Timestamp as WallTime;
use kube_core::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use vocabulary::{PodCount, Routing};

use super::condition::{Condition, ConditionStatus, ConditionWords};
use super::fields::{number_at, resource, text_at};
use super::pod_autoscaler::{AUTOSCALER_API, PodAutoscalerRecord, ScaledWorkload, ServedProtocol};
use crate::resources::ObjectKey;

const SERVICE_API: &str = "networking.internal.knative.dev/v1alpha1";
/// An annotation of the `PodAutoscaler` that does not stand on its `ServerlessService`.
const METRIC_ANNOTATION: &str = "autoscaling.knative.dev/metric";
/// Activators of a revision of which nothing is decided yet, as in Knative.
const FIRST_ACTIVATORS: u32 = 2;
/// The message of a service that the controller has not begun with.
const NO_PRIVATE_SERVICE: &str = "No Private Service Name";

/// The kind `ServerlessService` as the API server calls it.
pub fn serverless_services() -> ApiResource {
    resource(SERVICE_API, "ServerlessService", "serverlessservices")
}

/// Which addresses the controller writes, unless there are none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerlessMode {
    /// Clients get the addresses of activators.
    Proxy,
    /// Clients get the addresses of pods.
    Serve,
}

/// The mode for a count and a route: pods only take requests while pods are wanted.
pub fn mode_for(want: Option<PodCount>, routing: Routing) -> ServerlessMode {
    match (want, routing) {
        (Some(count), Routing::Direct) if count > PodCount::ZERO => ServerlessMode::Serve,
        (_, Routing::Direct | Routing::ThroughActivator) => ServerlessMode::Proxy,
    }
}

/// The spec, which is compared and written whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerlessSpec {
    /// Whether clients get addresses of activators or pods.
    pub mode: ServerlessMode,
    /// The workload of the pods.
    pub target: ScaledWorkload,
    /// How the app speaks HTTP.
    pub protocol: ServedProtocol,
    /// How many activators serve the revision; zero for all.
    pub activators: u32,
}

impl ServerlessSpec {
    /// The spec of a revision of which nothing is decided yet.
    pub(crate) fn first(autoscaler: &PodAutoscalerRecord) -> Self {
        Self::new(autoscaler, ServerlessMode::Proxy, FIRST_ACTIVATORS)
    }

    pub(crate) fn new(autoscaler: &PodAutoscalerRecord, mode: ServerlessMode, activators: u32) -> Self {
        let (target, protocol) = (autoscaler.target.clone(), autoscaler.protocol);
        Self { mode, target, protocol, activators }
    }

    fn read(spec: &Value) -> Self {
        Self {
            mode: if text_at(spec, "mode") == "Serve" {
                ServerlessMode::Serve
            } else {
                ServerlessMode::Proxy
            },
            target: ScaledWorkload::read(spec.get("objectRef").unwrap_or(&Value::Null)),
            protocol: ServedProtocol::read(text_at(spec, "protocolType")),
            activators: number_at(spec, "numActivators")
                .and_then(|number| u32::try_from(number).ok())
                .unwrap_or(0),
        }
    }

    fn written(&self) -> Value {
        let mode = match self.mode {
            ServerlessMode::Proxy => "Proxy",
            ServerlessMode::Serve => "Serve",
        };
        json!({
            "mode": mode,
            "objectRef": self.target.written(),
            "protocolType": self.protocol.name(),
            "numActivators": self.activators,
        })
    }
}

/// A `ServerlessService` as far as it concerns us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerlessRecord {
    /// The namespace and name, which are the revision's.
    pub key: ObjectKey,
    /// The version that a write has to replace.
    pub resource_version: String,
    /// The uid of the object that controls this one; empty for none.
    pub controller: String,
    /// The spec as it is written.
    pub spec: ServerlessSpec,
    /// The public Service; empty until the controller has made it.
    pub service_name: String,
    /// The private Service, which is read and never computed; empty until the controller has made it.
    pub private_service_name: String,
    /// Whether the controller has carried out the present spec.
    is_observed: bool,
    ready: Condition,
    activators_populated: Condition,
}

impl ServerlessRecord {
    /// Reads an object as the API server has it.
    pub fn read(object: &DynamicObject) -> Self {
        let status = object.data.get("status").unwrap_or(&Value::Null);
        let mut owners = object.metadata.owner_references.iter().flatten();
        let controller = owners.find(|owner| owner.controller == Some(true));
        Self {
            key: ObjectKey::of(&object.metadata),
            resource_version: object.metadata.resource_version.clone().unwrap_or_default(),
            controller: controller.map(|owner| owner.uid.clone()).unwrap_or_default(),
            spec: ServerlessSpec::read(object.data.get("spec").unwrap_or(&Value::Null)),
            service_name: text_at(status, "serviceName").to_owned(),
            private_service_name: text_at(status, "privateServiceName").to_owned(),
            is_observed: number_at(status, "observedGeneration") == object.metadata.generation,
            ready: Condition::find(status, "Ready").unwrap_or_default(),
            activators_populated: Condition::find(status, "ActivatorEndpointsPopulated").unwrap_or_default(),
        }
    }

    /// Whether the controller has carried out the present spec.
    pub(crate) fn is_observed(&self) -> bool {
        self.is_observed
    }

    /// Whether this `PodAutoscaler` controls the object.
    pub(crate) fn is_of(&self, autoscaler: &PodAutoscalerRecord) -> bool {
        self.controller == autoscaler.uid
    }
}

/// Since when the controller says that activators stand in the Endpoints; `None` while it does not.
pub fn proxied_since(service: &ServerlessRecord) -> Option<WallTime> {
    let condition = &service.activators_populated;
    condition.since.filter(|_| condition.words.status == ConditionStatus::True)
}

/// The words of `SKSReady`: the controller's Ready counts only for the spec that is written now.
pub(crate) fn ready_words(service: Option<&ServerlessRecord>) -> ConditionWords {
    let Some(service) = service.filter(|service| !service.private_service_name.is_empty()) else {
        return ConditionWords::unknown("NotReady", NO_PRIVATE_SERVICE);
    };
    if service.is_observed && service.ready.words.status == ConditionStatus::True {
        return ConditionWords::yes();
    }
    ConditionWords::unknown("NotReady", service.ready.words.message.clone())
}

/// A write of a `ServerlessService`.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerlessWrite {
    /// Create this object, which is not there.
    Create(Value),
    /// Replace the spec of the object, if it still has this version.
    Replace {
        /// The version that is replaced.
        over: String,
        /// The whole spec that the object gets.
        spec: Value,
    },
}

impl ServerlessWrite {
    /// What has to be written so that the object says `wanted`, if anything.
    pub(crate) fn of(
        autoscaler: &PodAutoscalerRecord,
        present: Option<&ServerlessRecord>,
        wanted: &ServerlessSpec,
    ) -> Option<Self> {
        let Some(present) = present else { return Some(Self::Create(object(autoscaler, wanted))) };
        let over = present.resource_version.clone();
        (present.spec != *wanted).then(|| Self::Replace { over, spec: wanted.written() })
    }
}

/// The object as it is created: labels as on the `PodAutoscaler`, which controls it. No finalizer, for the
/// deletion of a revision waits for nobody.
fn object(autoscaler: &PodAutoscalerRecord, spec: &ServerlessSpec) -> Value {
    let mut annotations: BTreeMap<&String, &String> = autoscaler.annotations.iter().collect();
    annotations.retain(|key, _| *key != METRIC_ANNOTATION);
    json!({
        "apiVersion": SERVICE_API,
        "kind": "ServerlessService",
        "metadata": {
            "name": autoscaler.key.name,
            "namespace": autoscaler.key.namespace,
            "labels": autoscaler.labels,
            "annotations": annotations,
            "ownerReferences": [{
                "apiVersion": AUTOSCALER_API,
                "kind": "PodAutoscaler",
                "name": autoscaler.key.name,
                "uid": autoscaler.uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": spec.written(),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::knative::pod_autoscaler::tests::autoscaler;

    /// A service of `hello-00001`, whose `PodAutoscaler` has the uid `pa1`, as the controller leaves it.
    pub(crate) fn service(spec: &Value, status: &Value) -> ServerlessRecord {
        let object = json!({
            "apiVersion": SERVICE_API,
            "kind": "ServerlessService",
            "metadata": {
                "name": "hello-00001", "namespace": "default", "uid": "sks1", "resourceVersion": "41", "generation": 3,
                "ownerReferences": [{"apiVersion": AUTOSCALER_API, "kind": "PodAutoscaler", "name": "hello-00001",
                    "uid": "pa1", "controller": true}],
            },
            "spec": spec,
            "status": status,
        });
        ServerlessRecord::read(&serde_json::from_value(object).expect("an object"))
    }

    /// The status of a service that the controller has carried out.
    pub(crate) fn carried_out() -> Value {
        json!({
            "serviceName": "hello-00001",
            "privateServiceName": "hello-00001-private",
            "observedGeneration": 3,
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-22T10:00:00Z"},
                {"type": "ActivatorEndpointsPopulated", "status": "True", "severity": "Info",
                    "lastTransitionTime": "2026-11-22T10:00:05Z"},
            ],
        })
    }

    #[test]
    fn the_first_service_of_a_revision_is_proxy_with_two_activators_and_has_no_finalizer() {
        let autoscaler = autoscaler(&json!({"autoscaling.knative.dev/metric": "rps", "x": "y"}));
        let write = ServerlessWrite::of(&autoscaler, None, &ServerlessSpec::first(&autoscaler));
        let Some(ServerlessWrite::Create(object)) = write else { panic!("it is not created: {write:?}") };
        assert_eq!(
            object["spec"],
            json!({"mode": "Proxy", "numActivators": 2, "protocolType": "http1",
                "objectRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "hello-00001-deployment"}})
        );
        assert_eq!(object["metadata"]["annotations"]["x"], "y");
        assert!(object["metadata"]["annotations"].get(METRIC_ANNOTATION).is_none(), "{object}");
        assert!(object["metadata"].get("finalizers").is_none(), "{object}");
        let owner = &object["metadata"]["ownerReferences"][0];
        assert_eq!((&owner["uid"], &owner["controller"]), (&json!("pa1"), &json!(true)));
    }

    #[test]
    fn the_spec_is_replaced_whole_over_its_version_and_only_when_it_differs() {
        let autoscaler = autoscaler(&json!({}));
        let first = ServerlessSpec::first(&autoscaler);
        let present = service(&first.written(), &carried_out());
        assert_eq!(ServerlessWrite::of(&autoscaler, Some(&present), &first), None);
        let wanted = ServerlessSpec::new(&autoscaler, ServerlessMode::Serve, 3);
        let write = ServerlessWrite::of(&autoscaler, Some(&present), &wanted);
        let Some(ServerlessWrite::Replace { over, spec }) = write else { panic!("{write:?}") };
        assert_eq!(
            (over.as_str(), &spec["mode"], &spec["numActivators"]),
            ("41", &json!("Serve"), &json!(3))
        );
        assert_eq!(spec["objectRef"]["name"], "hello-00001-deployment", "the whole spec is there");
    }

    /// M1 and M2, with the routes that follow from the excess burst capacity.
    #[test]
    fn serve_needs_a_wanted_pod_and_a_direct_route() {
        let mode = |want: Option<u32>, routing| mode_for(want.map(PodCount::new), routing);
        assert_eq!(mode(Some(3), Routing::Direct), ServerlessMode::Serve);
        assert_eq!(mode(Some(3), Routing::ThroughActivator), ServerlessMode::Proxy);
        assert_eq!(mode(Some(0), Routing::Direct), ServerlessMode::Proxy);
        assert_eq!(mode(None, Routing::Direct), ServerlessMode::Proxy);
    }

    #[test]
    fn the_controllers_ready_counts_for_the_present_generation_alone() {
        let with = |status: &Value| ready_words(Some(&service(&json!({}), status)));
        let mut status = carried_out();
        assert_eq!(with(&status), ConditionWords::yes());
        status["observedGeneration"] = json!(2);
        assert_eq!(with(&status), ConditionWords::unknown("NotReady", ""));
        status["conditions"][0]["status"] = json!("Unknown");
        status["conditions"][0]["message"] = json!("K8s Service is not ready");
        assert_eq!(with(&status), ConditionWords::unknown("NotReady", "K8s Service is not ready"));
        status["privateServiceName"] = json!("");
        let none = ConditionWords::unknown("NotReady", "No Private Service Name");
        assert_eq!((with(&status), ready_words(None)), (none.clone(), none));
    }

    #[test]
    fn activators_count_as_in_the_path_from_the_controllers_transition_on() {
        let mut status = carried_out();
        let since = |status: &Value| proxied_since(&service(&json!({}), status)).map(|at| at.to_string());
        assert_eq!(since(&status).as_deref(), Some("2026-11-22T10:00:05Z"));
        status["conditions"][1]["status"] = json!("False");
        assert_eq!(since(&status), None);
    }
}
