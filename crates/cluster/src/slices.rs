//! Which `EndpointSlice`s should a Service have?
//!
//! An order ([`RouteInForce`]) says whether pods or activators serve; the addresses follow from the pods as
//! they are now. *Direct* means the pods while one is ready, else the activators, and that change waits for
//! no decision: it is made here, whenever a pod changes. The order itself stands on the slices as
//! annotations, so that the next owner finds it; and so do the activators' ports, signed.

mod belonging;
mod plan;

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::discovery::v1::{
    Endpoint, EndpointConditions, EndpointHints, EndpointPort, EndpointSlice, ForNode, ForZone,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use orchestration::RouteInForce;
use vocabulary::{REVISION_ANNOTATION, ReplicaName, RevisionName, Routing, SLICE_WRITER, SLICE_WRITER_LABEL};

use crate::port_book::PortEntry;
use crate::resources::ports::ServicePort;
use crate::resources::service::{AdoptedService, TrafficPreference};
use crate::slice_key::{ClaimNumber, PortStatement, SliceKey};
pub(crate) use belonging::{SERVICE_LABEL, name_prefix, service_of};
use plan::EndpointGroup;
pub use plan::SliceChange;
pub(crate) use plan::changes;

const ROUTING: &str = "ebb.dev/routing";
const ACTIVATORS: &str = "ebb.dev/activators";
const ENTRANCES: &str = "ebb.dev/activator-ports";
const PROOF: &str = "ebb.dev/activator-ports-proof";

/// Where each port of a Service leads, and what its slices have to say of that.
#[derive(Clone, Debug)]
pub(crate) struct ServiceRoute<'a> {
    pub(crate) service: &'a AdoptedService,
    /// The activators' ports before the Service's, in their order; `None` for those that always lead to pods.
    pub(crate) entrances: Vec<Option<u16>>,
    /// The signature of the activators' ports, as it is to stand on the slices.
    pub(crate) proof: String,
    /// The route as it was ordered, or as slices said.
    pub(crate) route: &'a RouteInForce,
    /// The side that serves: another than was ordered while activators could not stand in for what serves
    /// now.
    pub(crate) side: Routing,
}

/// A pod or an activator that a slice may name as an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServingAddress {
    /// One address of each family that the cluster has.
    pub(crate) addresses: Vec<IpAddr>,
    /// Whether the endpoint answers; one that does not is named for a Service that publishes unready
    /// addresses.
    pub(crate) is_serving: bool,
    /// Where it serves each of the Service's ports, in their order; `None` for those that it does not serve.
    pub(crate) ports: Vec<Option<u16>>,
    pub(crate) node: Option<String>,
    /// The zone of the node, if the node is in one.
    pub(crate) zone: Option<String>,
    pub(crate) pod: PodReference,
}

/// The pod behind an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PodReference {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// All pods and activators that could serve a revision now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Servers {
    pub(crate) ready_pods: Vec<ServingAddress>,
    /// Pods that said they are ready, and whose hosts accept no connection now.
    pub(crate) unreachable_pods: Vec<ServingAddress>,
    /// Pods on their way out, which still serve.
    pub(crate) ending_pods: Vec<ServingAddress>,
    /// The activators that the route names.
    pub(crate) activators: Vec<ServingAddress>,
}

impl Servers {
    /// The servers to name for one port, all of one kind. Those that no client reaches are named only if no
    /// other can be, and those that drain after these.
    fn named(&self, port: usize, route: &ServiceRoute<'_>) -> (Vec<&ServingAddress>, ServerKind) {
        let is_held = route.entrances.get(port).copied().flatten().is_some();
        let activators: &[ServingAddress] = if is_held { &self.activators } else { &[] };
        let pods = (self.ready_pods.as_slice(), ServerKind::ReadyPod);
        let activators = (activators, ServerKind::Activator);
        let sides = match route.side {
            Routing::Direct => [pods, activators],
            Routing::ThroughActivator => [activators, pods],
        };
        for (side, kind) in sides {
            let named: Vec<_> = side.iter().filter(|server| server.port(port).is_some()).collect();
            if !named.is_empty() {
                return (named, kind);
            }
        }
        let serves = |server: &&ServingAddress| server.port(port).is_some();
        let unreachable: Vec<_> = self.unreachable_pods.iter().filter(serves).collect();
        if !unreachable.is_empty() {
            return (unreachable, ServerKind::ReadyPod);
        }
        (self.ending_pods.iter().filter(serves).collect(), ServerKind::EndingPod)
    }
}

impl ServingAddress {
    fn port(&self, index: usize) -> Option<u16> {
        self.ports.get(index).copied().flatten()
    }
}

/// The list of [`Servers`] from which an endpoint comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerKind {
    ReadyPod,
    Activator,
    EndingPod,
}

/// Places of a Service's ports, each with the port of the endpoint that serves it.
type PortSet = Vec<(usize, u16)>;

/// The slices that a Service should have, whole. What those say that are `present` stays where it is as far
/// as it still holds.
pub(crate) fn desired(
    route: &ServiceRoute<'_>,
    servers: &Servers,
    present: &[&EndpointSlice],
) -> Vec<EndpointSlice> {
    let service = route.service;
    let sets = port_sets(route, servers);
    let mut groups = Vec::new();
    for family in &service.families {
        let of_family = sets.iter().map(|(ports, servers)| {
            let endpoints = servers.iter().filter_map(|(server, kind)| {
                let address = server.addresses.iter().find(|address| family_of(**address) == family)?;
                let hints = hints(service.preference, server, *kind);
                Some(Endpoint { hints, ..endpoint(server, *address, *kind) })
            });
            let ports =
                ports.iter().filter_map(|&(place, port)| Some(slice_port(service.ports.get(place)?, port)));
            EndpointGroup { family, ports: ports.collect(), endpoints: endpoints.collect() }
        });
        let mut of_family: Vec<_> = of_family.filter(|group| !group.endpoints.is_empty()).collect();
        // A slice without addresses keeps the route while no endpoint serves.
        if of_family.is_empty() {
            of_family.push(EndpointGroup { family, ports: Vec::new(), endpoints: Vec::new() });
        }
        groups.extend(of_family);
    }
    let planned = plan::lay_out(groups, &name_prefix(&service.name), present);
    let slices = planned.into_iter().map(|slice| EndpointSlice {
        address_type: slice.family,
        metadata: metadata(slice.name, route),
        ports: (!slice.ports.is_empty()).then_some(slice.ports),
        endpoints: slice.endpoints,
    });
    slices.collect()
}

/// The endpoints by the ports that they serve: a slice has the same ports for all its addresses, and pods of
/// two templates may have different ones. In the order of the pods' names.
fn port_sets<'a>(
    route: &ServiceRoute<'_>,
    servers: &'a Servers,
) -> BTreeMap<PortSet, Vec<(&'a ServingAddress, ServerKind)>> {
    let mut by_server = BTreeMap::<&PodReference, (&ServingAddress, ServerKind, PortSet)>::new();
    for place in 0..route.service.ports.len() {
        let (named, kind) = servers.named(place, route);
        for server in named {
            let entry = by_server.entry(&server.pod).or_insert((server, kind, Vec::new()));
            entry.2.extend(server.port(place).map(|port| (place, port)));
        }
    }
    let mut sets = BTreeMap::<PortSet, Vec<_>>::new();
    for (server, kind, ports) in by_server.into_values() {
        sets.entry(ports).or_default().push((server, kind));
    }
    sets
}

fn family_of(address: IpAddr) -> &'static str {
    match address {
        IpAddr::V4(_) => "IPv4",
        IpAddr::V6(_) => "IPv6",
    }
}

fn metadata(name: String, of: &ServiceRoute<'_>) -> ObjectMeta {
    let (service, route) = (of.service, of.route);
    let text =
        |pairs: Vec<(&str, String)>| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let routing = match route.routing {
        Routing::Direct => "direct",
        Routing::ThroughActivator => "through-activator",
    };
    let activators: Vec<&str> = route.activators.iter().map(ReplicaName::as_str).collect();
    ObjectMeta {
        name: Some(name),
        namespace: Some(service.namespace.clone()),
        labels: Some(text(vec![
            (SERVICE_LABEL, service.name.clone()),
            (SLICE_WRITER_LABEL, SLICE_WRITER.to_owned()),
        ])),
        annotations: Some(text(vec![
            // A Service may lose the annotation of its revision while these slices still stand.
            (REVISION_ANNOTATION, revision_out(service)),
            (ROUTING, routing.to_owned()),
            (ACTIVATORS, activators.join(",")),
            (ENTRANCES, entrances_out(service, &of.entrances)),
            (PROOF, of.proof.clone()),
        ])),
        // The slice is deleted with the Service.
        owner_references: Some(vec![owner(&service.name, &service.uid)]),
        ..ObjectMeta::default()
    }
}

/// A Service, as what goes with it names it.
pub fn owner(service: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Service".to_owned(),
        name: service.to_owned(),
        uid: uid.to_owned(),
        controller: None,
        block_owner_deletion: None,
    }
}

fn slice_port(of: &ServicePort, port: u16) -> EndpointPort {
    EndpointPort {
        app_protocol: of.app_protocol.clone(),
        // Kubernetes matches it with the Service's by this; a Service with one port need not name it.
        name: Some(of.name.clone().unwrap_or_default()),
        port: Some(port.into()),
        protocol: Some("TCP".to_owned()),
    }
}

fn revision_out(service: &AdoptedService) -> String {
    format!("{}/{}", service.revision.kind(), service.revision.name())
}

/// That an autoscaler gave a Service these ports.
pub(crate) fn proof(
    service: &AdoptedService,
    entrances: &[Option<u16>],
    (key, number): (&SliceKey, ClaimNumber),
) -> String {
    let (revision, ports) = (revision_out(service), entrances_out(service, entrances));
    let (namespace, uid) = (&service.namespace, &service.uid);
    key.sign(&PortStatement { namespace, uid, revision: &revision, ports: &ports }, number)
}

/// The writer of a slice that has our label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SliceAuthor {
    Autoscaler(ClaimNumber),
    /// An autoscaler of a version that signed no slices, or any other client.
    Unsigned,
    Forger,
}

/// The author of a slice with our label, as its signature proves.
pub(crate) fn author_of(slice: &EndpointSlice, key: &SliceKey) -> SliceAuthor {
    let annotation = |name: &str| slice.metadata.annotations.as_ref()?.get(name).map(String::as_str);
    let Some(proof) = annotation(PROOF) else { return SliceAuthor::Unsigned };
    let statement = || {
        Some(PortStatement {
            namespace: slice.metadata.namespace.as_deref()?,
            uid: owner_uid(slice)?,
            revision: annotation(REVISION_ANNOTATION)?,
            ports: annotation(ENTRANCES)?,
        })
    };
    let number = statement().and_then(|statement| key.verify(&statement, proof));
    number.map_or(SliceAuthor::Forger, SliceAuthor::Autoscaler)
}

/// That of the Service with which a slice goes.
pub(crate) fn owner_uid(slice: &EndpointSlice) -> Option<&str> {
    slice.metadata.owner_references.as_deref()?.first().map(|owner| owner.uid.as_str())
}

/// `http:80=10007,grpc:81=10008`: the activators' ports, for the next owner.
fn entrances_out(service: &AdoptedService, entrances: &[Option<u16>]) -> String {
    let ports = service.ports.iter().zip(entrances);
    let texts = ports.filter_map(|(port, entrance)| {
        Some(format!("{}:{}={}", port.name.as_deref().unwrap_or_default(), port.number, (*entrance)?))
    });
    texts.collect::<Vec<_>>().join(",")
}

/// The activators' ports that a slice of ours was written for.
pub(crate) fn entrances_of(slice: &EndpointSlice) -> Option<Vec<PortEntry>> {
    let text = slice.metadata.annotations.as_ref()?.get(ENTRANCES)?;
    let entries = text.split(',').filter(|part| !part.is_empty()).map(|part| {
        let (port, entrance) = part.split_once('=')?;
        let (name, number) = port.split_once(':')?;
        Some(PortEntry {
            name: (!name.is_empty()).then(|| name.to_owned()),
            number: number.parse().ok()?,
            target: None,
            port: Some(entrance.parse().ok()?),
        })
    });
    entries.collect()
}

/// Hints as Kubernetes' own controller gives them: to ready pods. Not to activators: they take requests from
/// all zones, few of them are in a route, and an activator that is far from one client is near another.
fn hints(preference: TrafficPreference, server: &ServingAddress, kind: ServerKind) -> Option<EndpointHints> {
    if kind != ServerKind::ReadyPod {
        return None;
    }
    let zones = || Some(vec![ForZone { name: server.zone.clone()? }]);
    let nodes = || Some(vec![ForNode { name: server.node.clone()? }]);
    let (for_zones, for_nodes) = match preference {
        TrafficPreference::None => (None, None),
        TrafficPreference::SameZone => (zones(), None),
        TrafficPreference::SameNode => (zones(), nodes()),
    };
    (for_zones.is_some() || for_nodes.is_some()).then_some(EndpointHints { for_nodes, for_zones })
}

fn endpoint(server: &ServingAddress, address: IpAddr, kind: ServerKind) -> Endpoint {
    let is_ending = kind == ServerKind::EndingPod;
    Endpoint {
        addresses: vec![address.to_string()],
        conditions: Some(EndpointConditions {
            ready: Some(!is_ending),
            serving: Some(server.is_serving),
            terminating: Some(is_ending),
        }),
        node_name: server.node.clone(),
        zone: server.zone.clone(),
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

/// The revision for which a slice of ours was written.
pub(crate) fn revision_of(slice: &EndpointSlice, namespace: &str) -> Option<RevisionName> {
    let (kind, name) = slice.metadata.annotations.as_ref()?.get(REVISION_ANNOTATION)?.split_once('/')?;
    RevisionName::new(namespace, kind, name).ok()
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
