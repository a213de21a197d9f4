//! Which Services are ours to serve? Those that name a workload in `ebb.dev/revision` and have no selector, for with one Kubernetes writes their endpoints itself.

use k8s_openapi::api::core::v1::{Service, ServiceSpec};
use vocabulary::RevisionName;

use crate::resources::ports::ServicePort;

/// Names the workload: `deployment/NAME`, or `NAME`.
pub(crate) const REVISION_ANNOTATION: &str = "ebb.dev/revision";

/// What a Service is to us.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ServiceRecord {
    /// It names no workload.
    Foreign,
    /// It names one, and nothing is touched until somebody does what this says.
    Refused(String),
    /// We write its endpoints.
    Adopted(AdoptedService),
}

/// A Service whose endpoints we write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AdoptedService {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) revision: RevisionName,
    pub(crate) ports: Vec<ServicePort>,
    /// `IPv4`, `IPv6`: which kinds of endpoints it has.
    pub(crate) families: Vec<String>,
}

pub(crate) fn read(service: &Service) -> ServiceRecord {
    let annotations = service.metadata.annotations.as_ref();
    let Some(target) = annotations.and_then(|annotations| annotations.get(REVISION_ANNOTATION)) else {
        return ServiceRecord::Foreign;
    };
    adopt(service, target).map_or_else(ServiceRecord::Refused, ServiceRecord::Adopted)
}

fn adopt(service: &Service, target: &str) -> Result<AdoptedService, String> {
    let namespace = service.metadata.namespace.clone().unwrap_or_default();
    let spec = service.spec.clone().unwrap_or_default();
    let revision = read_target(&namespace, target)?;
    refuse_kinds(&spec)?;
    let ports = read_ports(&spec)?;
    if spec.selector.as_ref().is_some_and(|selector| !selector.is_empty()) {
        return Err(format!(
            "it still has a selector; it is served through ebb once spec.selector is removed ({revision})"
        ));
    }
    Ok(AdoptedService {
        name: service.metadata.name.clone().unwrap_or_default(),
        uid: service.metadata.uid.clone().unwrap_or_default(),
        namespace,
        revision,
        ports,
        families: spec.ip_families.unwrap_or_default(),
    })
}

fn read_target(namespace: &str, target: &str) -> Result<RevisionName, String> {
    let name = match target.split_once('/') {
        None => target,
        Some(("deployment", name)) => name,
        Some((kind, _)) => {
            return Err(format!(
                "annotation {REVISION_ANNOTATION} names a {kind:?}; so far only \"deployment/NAME\" can be scaled"
            ));
        }
    };
    RevisionName::new(namespace, "deployment", name)
        .map_err(|_| format!("annotation {REVISION_ANNOTATION} is {target:?}; write \"deployment/NAME\""))
}

fn read_ports(spec: &ServiceSpec) -> Result<Vec<ServicePort>, String> {
    let ports = spec.ports.as_deref().unwrap_or_default();
    let read = ports.iter().map(|port| {
        ServicePort::read(port).ok_or_else(|| {
            let (number, protocol) = (port.port, port.protocol.as_deref().unwrap_or_default());
            format!("its port {number} is of protocol {protocol}; only TCP can be served, so move it to a Service of its own")
        })
    });
    let read: Vec<ServicePort> = read.collect::<Result<_, _>>()?;
    if read.is_empty() { Err("it has no ports".to_owned()) } else { Ok(read) }
}

/// What our slices could not do justice to.
fn refuse_kinds(spec: &ServiceSpec) -> Result<(), String> {
    if spec.type_.as_deref() == Some("ExternalName") {
        return Err("it is of type ExternalName, which has no endpoints; make it a ClusterIP".to_owned());
    }
    if spec.cluster_ip.as_deref() == Some("None") {
        return Err("it is headless, so clients would find no pod at zero; give it a cluster IP".to_owned());
    }
    let policies = [
        ("externalTrafficPolicy", &spec.external_traffic_policy),
        ("internalTrafficPolicy", &spec.internal_traffic_policy),
    ];
    for (field, policy) in policies {
        if policy.as_deref() == Some("Local") {
            return Err(format!(
                "{field} is Local, so nodes without a pod or an activator would refuse; make it Cluster"
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
    fn a_service_without_selector_that_names_a_deployment_is_adopted() {
        for target in ["deployment/hello", "hello"] {
            let ServiceRecord::Adopted(adopted) = service(target, json!({})) else { panic!("{target}") };
            assert_eq!(adopted.revision.as_str(), "default/deployment/hello");
        }
    }

    #[test]
    fn what_cannot_be_served_is_refused_with_what_to_do() {
        let rows = [
            ("deployment/hello", json!({"selector": {"app": "hello"}}), "still has a selector"),
            ("statefulset/hello", json!({}), "so far only \"deployment/NAME\""),
            ("deployment/a/b", json!({}), "write \"deployment/NAME\""),
            ("hello", json!({"clusterIP": "None"}), "headless"),
            ("hello", json!({"type": "ExternalName"}), "ExternalName"),
            ("hello", json!({"externalTrafficPolicy": "Local"}), "externalTrafficPolicy is Local"),
            ("hello", json!({"internalTrafficPolicy": "Local"}), "internalTrafficPolicy is Local"),
            ("hello", json!({"ports": [{"port": 53, "protocol": "UDP"}]}), "protocol UDP"),
            (
                "hello",
                json!({"ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]}),
                "port 53 is of protocol UDP",
            ),
            ("hello", json!({"ports": []}), "no ports"),
        ];
        for (target, spec, expected) in rows {
            let ServiceRecord::Refused(why) = service(target, spec.clone()) else {
                panic!("{spec} is refused")
            };
            assert!(why.contains(expected), "{why}");
        }
    }

    #[test]
    fn a_service_that_names_no_workload_is_nobody_of_ours() {
        assert_eq!(read(&Service::default()), ServiceRecord::Foreign);
    }
}
