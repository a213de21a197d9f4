//! What does a Service say about the workload that is to serve it? A Service that names a workload in
//! `ebb.dev/revision` and has no selector is ours; with a selector Kubernetes writes its endpoints itself.
//! Which program writes them at present is another question: `custody`.

use std::collections::BTreeMap;

use jiff::Timestamp as WallTime;
use k8s_openapi::api::core::v1::{Service, ServiceSpec};
use vocabulary::{REVISION_ANNOTATION, RevisionName};

use crate::notice::{BAD_ANNOTATION, NOT_SERVABLE, Notice};
use crate::resources::ObjectKey;
use crate::resources::kind::{KINDS_IN_WORDS, WorkloadKind};
use crate::resources::ports::ServicePort;

/// Says that clients of this Service may find no pod: it does not keep any.
const BYPASS_ANNOTATION: &str = "ebb.dev/bypass";

/// A Service of the cluster, adopted or not.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceRecord {
    pub(crate) uid: String,
    /// When it was made, by the API server's clock.
    pub(crate) created: Option<WallTime>,
    pub(crate) claim: ServiceClaim,
    pub(crate) selection: ServiceSelection,
    pub(crate) addressing: ServiceAddressing,
    /// As we write its endpoints, as far as they are ours to write.
    pub(crate) shape: ServiceShape,
    /// Why it is not taken over. What is served through us already goes on, and says this.
    pub(crate) refusal: Option<Notice>,
    /// Whether it names a port, of any protocol. A headless one need not: a client that finds a pod by it
    /// calls any port of the pod.
    pub(crate) names_ports: bool,
    /// Whether its clients put up with finding no pod.
    pub(crate) is_bypass: bool,
    /// Whether each of its clients is to stay with one pod.
    pub(crate) wants_affinity: bool,
}

/// Which workload a Service names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ServiceClaim {
    None,
    Of(RevisionName),
    Refused(Notice),
}

/// The pods that Kubernetes makes the endpoints of a Service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ServiceSelection {
    /// No selector: Kubernetes writes no endpoints.
    None,
    Labels(BTreeMap<String, String>),
}

/// Where clients of a Service connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServiceAddressing {
    /// To an address of its own, which leads to its endpoints.
    ClusterIp,
    /// To its endpoints, as DNS names them.
    Headless,
    /// To the place where another name leads: it has no endpoints.
    ExternalName,
}

/// What of a Service its endpoints must fit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServiceShape {
    /// The Service's ports of protocol TCP.
    pub(crate) ports: Vec<ServicePort>,
    /// `IPv4`, `IPv6`: which kinds of endpoints it has.
    pub(crate) families: Vec<String>,
    pub(crate) preference: TrafficPreference,
    /// Whether pods that are not ready are to be named too.
    pub(crate) names_unready: bool,
}

/// Endpoints that nodes are to prefer for connections (`trafficDistribution`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TrafficPreference {
    /// No preference: endpoints carry no hints.
    #[default]
    None,
    SameZone,
    /// Endpoints on the same node, or else in the same zone.
    SameNode,
}

/// A Service whose endpoints we write, or are ready to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AdoptedService {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) revision: RevisionName,
    pub(crate) ports: Vec<ServicePort>,
    /// `IPv4`, `IPv6`: which kinds of endpoints it has.
    pub(crate) families: Vec<String>,
    pub(crate) preference: TrafficPreference,
    /// Whether pods that are not ready are to be named too.
    pub(crate) names_unready: bool,
}

impl ServiceRecord {
    /// As we write its endpoints for a workload; `None` if we cannot.
    pub(crate) fn adopted_for(&self, key: &ObjectKey, revision: &RevisionName) -> Option<AdoptedService> {
        let shape = &self.shape;
        (self.addressing == ServiceAddressing::ClusterIp).then(|| AdoptedService {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid: self.uid.clone(),
            revision: revision.clone(),
            ports: shape.ports.clone(),
            families: shape.families.clone(),
            preference: shape.preference,
            names_unready: shape.names_unready,
        })
    }
}

/// Reads a Service as far as it concerns us.
pub fn read(service: &Service) -> ServiceRecord {
    let namespace = service.metadata.namespace.clone().unwrap_or_default();
    let annotation = |key: &str| service.metadata.annotations.as_ref().and_then(|all| all.get(key));
    let claim = match annotation(REVISION_ANNOTATION).map(|target| read_target(&namespace, target)) {
        None => ServiceClaim::None,
        Some(Ok(revision)) => ServiceClaim::Of(revision),
        Some(Err(notice)) => ServiceClaim::Refused(notice),
    };
    let spec = service.spec.clone().unwrap_or_default();
    let refusal = refuse_kinds(&spec).and_then(|()| refuse_ports(&spec)).err();
    let selector = spec.selector.clone().unwrap_or_default();
    ServiceRecord {
        uid: service.metadata.uid.clone().unwrap_or_default(),
        created: service.metadata.creation_timestamp.as_ref().map(|time| time.0),
        claim,
        selection: if selector.is_empty() {
            ServiceSelection::None
        } else {
            ServiceSelection::Labels(selector)
        },
        addressing: if spec.type_.as_deref() == Some("ExternalName") {
            ServiceAddressing::ExternalName
        } else if spec.cluster_ip.as_deref() == Some("None") {
            ServiceAddressing::Headless
        } else {
            ServiceAddressing::ClusterIp
        },
        shape: read_shape(&spec),
        refusal: refusal.map(|text| Notice::new(NOT_SERVABLE, text)),
        names_ports: spec.ports.as_ref().is_some_and(|ports| !ports.is_empty()),
        is_bypass: annotation(BYPASS_ANNOTATION).is_some_and(|value| value == "true"),
        wants_affinity: spec.session_affinity.is_some_and(|affinity| affinity != "None"),
    }
}

fn read_shape(spec: &ServiceSpec) -> ServiceShape {
    let preference = match spec.traffic_distribution.as_deref() {
        // The older name of the same.
        Some("PreferClose" | "PreferSameZone") => TrafficPreference::SameZone,
        Some("PreferSameNode") => TrafficPreference::SameNode,
        Some(_) | None => TrafficPreference::None,
    };
    ServiceShape {
        ports: spec.ports.iter().flatten().filter_map(ServicePort::read).collect(),
        families: spec.ip_families.clone().unwrap_or_default(),
        preference,
        names_unready: spec.publish_not_ready_addresses == Some(true),
    }
}

fn refuse_ports(spec: &ServiceSpec) -> Result<(), String> {
    let ports = spec.ports.as_deref().unwrap_or_default();
    if ports.is_empty() {
        return Err("the Service has no ports".to_owned());
    }
    let Some(other) = ports.iter().find(|port| ServicePort::read(port).is_none()) else { return Ok(()) };
    let (number, protocol) = (other.port, other.protocol.as_deref().unwrap_or_default());
    Err(format!(
        "port {number} is of protocol {protocol}; only TCP can be served, so move the port to a Service of its own"
    ))
}

fn read_target(namespace: &str, target: &str) -> Result<RevisionName, Notice> {
    let (kind, name) = target.split_once('/').unwrap_or(("deployment", target));
    let revision = WorkloadKind::read(kind).and_then(|kind| kind.revision(namespace, name));
    revision.ok_or_else(|| {
        let text = format!("annotation {REVISION_ANNOTATION} is {target:?}; write {KINDS_IN_WORDS}");
        Notice::new(BAD_ANNOTATION, text)
    })
}

/// What our slices could not do justice to.
fn refuse_kinds(spec: &ServiceSpec) -> Result<(), String> {
    if spec.type_.as_deref() == Some("ExternalName") {
        return Err(
            "the Service is of type ExternalName, which has no endpoints; make it a ClusterIP".to_owned()
        );
    }
    if spec.cluster_ip.as_deref() == Some("None") {
        return Err(
            "the Service is headless, so clients would find no pod at zero; give it a cluster IP".to_owned()
        );
    }
    let policies = [
        ("externalTrafficPolicy", &spec.external_traffic_policy),
        ("internalTrafficPolicy", &spec.internal_traffic_policy),
    ];
    for (field, policy) in policies {
        if policy.as_deref() == Some("Local") {
            return Err(format!(
                "{field} is Local, so nodes without a pod or an activator would refuse connections; make it Cluster"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn service(target: &str, spec: Value) -> ServiceRecord {
        let mut whole = json!({"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"], "ipFamilies": ["IPv4"], "ports": [{"name": "http", "port": 80}]});
        let (Value::Object(whole_map), Value::Object(changes)) = (&mut whole, spec) else { unreachable!() };
        whole_map.extend(changes);
        let metadata = json!({"name": "hello", "namespace": "default", "uid": "u1", "annotations": {REVISION_ANNOTATION: target}});
        read(&serde_json::from_value(json!({"metadata": metadata, "spec": whole})).expect("a Service"))
    }

    #[test]
    fn a_service_names_a_workload() {
        for (target, expected) in [
            ("deployment/hello", "default/deployment/hello"),
            ("hello", "default/deployment/hello"),
            ("statefulset/hello", "default/statefulset/hello"),
            ("rollouts.argoproj.io/hello", "default/rollouts.argoproj.io/hello"),
        ] {
            let record = service(target, json!({}));
            let ServiceClaim::Of(revision) = &record.claim else { panic!("{target}") };
            assert_eq!((revision.as_str(), &record.selection), (expected, &ServiceSelection::None));
            assert_eq!(record.refusal, None);
        }
        let selecting = service("hello", json!({"selector": {"app": "hello"}}));
        assert!(matches!(selecting.selection, ServiceSelection::Labels(labels) if labels["app"] == "hello"));
    }

    #[test]
    fn a_service_says_which_endpoints_nodes_prefer() {
        for (distribution, expected) in [
            (json!(null), TrafficPreference::None),
            (json!("PreferClose"), TrafficPreference::SameZone),
            (json!("PreferSameZone"), TrafficPreference::SameZone),
            (json!("PreferSameNode"), TrafficPreference::SameNode),
            // What later versions of Kubernetes may know.
            (json!("PreferTheMoon"), TrafficPreference::None),
        ] {
            let record = service("hello", json!({"trafficDistribution": distribution}));
            assert_eq!(record.shape.preference, expected);
        }
    }

    #[test]
    fn an_unservable_service_is_refused_with_its_reason() {
        let rows = [
            (json!({"clusterIP": "None"}), "headless"),
            (json!({"type": "ExternalName"}), "ExternalName"),
            (json!({"externalTrafficPolicy": "Local"}), "externalTrafficPolicy is Local"),
            (json!({"internalTrafficPolicy": "Local"}), "internalTrafficPolicy is Local"),
            (json!({"ports": [{"port": 53, "protocol": "UDP"}]}), "protocol UDP"),
            (json!({"ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]}), "port 53 is of protocol UDP"),
            (json!({"ports": []}), "no ports"),
        ];
        for (spec, expected) in rows {
            let why = service("hello", spec.clone()).refusal.expect("it is refused");
            assert_eq!(why.reason, NOT_SERVABLE, "{spec}");
            assert!(why.text.contains(expected), "{}", why.text);
        }
    }

    #[test]
    fn an_annotation_without_meaning_is_refused_with_what_to_write() {
        for target in ["daemonset/hello", "deployment/a/b", "deployment/", ""] {
            let ServiceClaim::Refused(why) = service(target, json!({})).claim else { panic!("{target}") };
            assert!(why.text.contains("write \"deployment/NAME\", \"statefulset/NAME\""), "{}", why.text);
        }
        assert_eq!(read(&Service::default()).claim, ServiceClaim::None);
    }
}
