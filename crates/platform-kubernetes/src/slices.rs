//! Which `EndpointSlice`s should a Service have?
//!
//! Who serves is an order ([`RouteInForce`]); which addresses that is follows from the pods as they are now. *Direct* means the pods while one is ready, else
//! the activators, and that change waits for nobody's decision: it is made here, whenever a pod changes. The order itself stands on the slices as
//! annotations, so that whoever decides next finds it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use orchestration::RouteInForce;
use vocabulary::{ReplicaName, Routing};

use crate::resources::service::AdoptedService;

/// What Kubernetes' own controller puts into one, so that a change of one pod is one small write.
const ENDPOINTS_MAX: usize = 100;
/// Kubernetes names the Service of a slice so.
pub(crate) const SERVICE_LABEL: &str = "kubernetes.io/service-name";
/// And whose it is.
pub(crate) const MANAGED_BY_LABEL: &str = "endpointslice.kubernetes.io/managed-by";
pub(crate) const MANAGED_BY: &str = "ebb.dev";
const ROUTING: &str = "ebb.dev/routing";
const ACTIVATORS: &str = "ebb.dev/activators";

/// Somebody who may serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServingAddress {
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    pub(crate) node: Option<String>,
    pub(crate) pod: PodReference,
}

/// The pod behind an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PodReference {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// Everybody who could serve a revision now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Servers {
    pub(crate) ready_pods: Vec<ServingAddress>,
    /// Pods on their way out, which still serve.
    pub(crate) ending_pods: Vec<ServingAddress>,
    /// The activators that the route names.
    pub(crate) activators: Vec<ServingAddress>,
}

impl Servers {
    /// Who is to be named, and whether they are on their way out. Whoever drains is named only if nobody else can be.
    fn named(&self, routing: Routing) -> (&[ServingAddress], Condition) {
        let [first, second] = match routing {
            Routing::Direct => [&self.ready_pods, &self.activators],
            Routing::ThroughActivator => [&self.activators, &self.ready_pods],
        };
        let named = [first, second].into_iter().find(|servers| !servers.is_empty());
        named.map_or((&self.ending_pods, Condition::Ending), |named| (named, Condition::Ready))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Ready,
    Ending,
}

/// The slices that a Service should have, whole, in the order of their names.
pub(crate) fn desired(
    service: &AdoptedService,
    route: &RouteInForce,
    servers: &Servers,
) -> Vec<EndpointSlice> {
    let (named, condition) = servers.named(route.routing);
    let mut slices = Vec::new();
    for family in &service.families {
        // A slice has one port for all its addresses.
        let mut by_port = BTreeMap::<u16, Vec<&ServingAddress>>::new();
        for server in named.iter().filter(|server| family_of(server.address) == family) {
            by_port.entry(server.port).or_default().push(server);
        }
        let mut parts: Vec<(u16, Vec<&ServingAddress>)> = Vec::new();
        for (port, mut servers) in by_port {
            servers.sort_by(|a, b| a.pod.cmp(&b.pod));
            parts.extend(servers.chunks(ENDPOINTS_MAX).map(|chunk| (port, chunk.to_vec())));
        }
        // One without addresses says who serves while nobody does.
        if parts.is_empty() {
            parts.push((0, Vec::new()));
        }
        for (number, (port, servers)) in parts.into_iter().enumerate() {
            let name = format!("{}-ebb-{}-{number}", service.name, family.to_lowercase());
            let endpoints = servers.into_iter().map(|server| endpoint(server, condition)).collect();
            slices.push(EndpointSlice {
                address_type: family.clone(),
                metadata: metadata(name, service, route),
                ports: (port > 0).then(|| vec![slice_port(service, port)]),
                endpoints,
            });
        }
    }
    slices
}

fn family_of(address: IpAddr) -> &'static str {
    match address {
        IpAddr::V4(_) => "IPv4",
        IpAddr::V6(_) => "IPv6",
    }
}

fn metadata(name: String, service: &AdoptedService, route: &RouteInForce) -> ObjectMeta {
    let text =
        |pairs: [(&str, String); 2]| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let routing = match route.routing {
        Routing::Direct => "direct",
        Routing::ThroughActivator => "through-activator",
    };
    let activators: Vec<&str> = route.activators.iter().map(ReplicaName::as_str).collect();
    ObjectMeta {
        name: Some(name),
        namespace: Some(service.namespace.clone()),
        labels: Some(text([
            (SERVICE_LABEL, service.name.clone()),
            (MANAGED_BY_LABEL, MANAGED_BY.to_owned()),
        ])),
        annotations: Some(text([(ROUTING, routing.to_owned()), (ACTIVATORS, activators.join(","))])),
        // It goes with the Service.
        owner_references: Some(vec![OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Service".to_owned(),
            name: service.name.clone(),
            uid: service.uid.clone(),
            controller: None,
            block_owner_deletion: None,
        }]),
        ..ObjectMeta::default()
    }
}

fn slice_port(service: &AdoptedService, port: u16) -> EndpointPort {
    EndpointPort {
        app_protocol: service.app_protocol.clone(),
        // Kubernetes matches it with the Service's by this; a Service with one port need not name it.
        name: Some(service.port_name.clone().unwrap_or_default()),
        port: Some(port.into()),
        protocol: Some("TCP".to_owned()),
    }
}

fn endpoint(server: &ServingAddress, condition: Condition) -> Endpoint {
    let is_ending = condition == Condition::Ending;
    Endpoint {
        addresses: vec![server.address.to_string()],
        conditions: Some(EndpointConditions {
            ready: Some(!is_ending),
            serving: Some(true),
            terminating: Some(is_ending),
        }),
        node_name: server.node.clone(),
        target_ref: Some(ObjectReference {
            kind: Some("Pod".to_owned()),
            namespace: Some(server.pod.namespace.clone()),
            name: Some(server.pod.name.clone()),
            uid: Some(server.pod.uid.clone()),
            ..ObjectReference::default()
        }),
        ..Endpoint::default()
    }
}

/// A write that brings what is there nearer to what should be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SliceChange {
    Create(EndpointSlice),
    /// With the version that was read, so that a later one is not overwritten.
    Replace(EndpointSlice),
    Delete(EndpointSlice),
}

/// What is to be written; nothing, if all is as it should be. What names somebody comes before what names nobody any more.
pub(crate) fn changes(desired: Vec<EndpointSlice>, present: &[&EndpointSlice]) -> Vec<SliceChange> {
    let mut changes = Vec::new();
    let superfluous =
        |slice: &&&EndpointSlice| !desired.iter().any(|wanted| wanted.metadata.name == slice.metadata.name);
    let deletions: Vec<_> =
        present.iter().filter(superfluous).map(|slice| SliceChange::Delete((*slice).clone())).collect();
    for mut wanted in desired {
        match present.iter().find(|slice| slice.metadata.name == wanted.metadata.name) {
            None => changes.push(SliceChange::Create(wanted)),
            Some(there) if says_the_same(there, &wanted) => {}
            Some(there) => {
                wanted.metadata.resource_version.clone_from(&there.metadata.resource_version);
                changes.push(SliceChange::Replace(wanted));
            }
        }
    }
    changes.extend(deletions);
    changes
}

/// Whether a slice is as it should be, whatever the API server or others have added to it.
fn says_the_same(there: &EndpointSlice, wanted: &EndpointSlice) -> bool {
    let has_all = |there: &Option<BTreeMap<String, String>>, wanted: &Option<BTreeMap<String, String>>| {
        let there = there.as_ref();
        wanted.iter().flatten().all(|(key, value)| there.and_then(|map| map.get(key)) == Some(value))
    };
    // An empty list comes back as none.
    let ports = |slice: &EndpointSlice| slice.ports.clone().unwrap_or_default();
    there.endpoints == wanted.endpoints
        && ports(there) == ports(wanted)
        && has_all(&there.metadata.labels, &wanted.metadata.labels)
        && has_all(&there.metadata.annotations, &wanted.metadata.annotations)
        && there.metadata.owner_references == wanted.metadata.owner_references
}

/// The route that a slice of ours was written for.
pub(crate) fn route_of(slice: &EndpointSlice) -> Option<RouteInForce> {
    let annotations = slice.metadata.annotations.as_ref()?;
    let routing = match annotations.get(ROUTING)?.as_str() {
        "direct" => Routing::Direct,
        "through-activator" => Routing::ThroughActivator,
        _ => return None,
    };
    let names = annotations.get(ACTIVATORS)?.split(',').filter(|name| !name.is_empty());
    Some(RouteInForce { routing, activators: names.map(ReplicaName::new).collect() })
}

#[cfg(test)]
mod tests;
