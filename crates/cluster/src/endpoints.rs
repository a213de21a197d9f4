//! What should the Endpoints object of a Service of ours say?
//!
//! When a Service loses its selector, Kubernetes leaves its Endpoints behind as they were, and copies them
//! into a slice, for ever. So one that is there is marked as no business of that copier's, and says what our
//! slices say, for programs that still read Endpoints. A Service that never had any gets none.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

/// The copier passes by every object that has this.
const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";
/// Kubernetes says with it whose an Endpoints object is, and writes its own name over ours when it has a
/// selector again.
pub const MANAGED_BY_LABEL: &str = "endpoints.kubernetes.io/managed-by";
/// The addresses that Kubernetes itself puts into one Endpoints object.
const ADDRESSES_MAX: usize = 1000;

/// The addresses that our slices of one Service name, of the family of the first slice.
pub(crate) fn desired(slices: &[&EndpointSlice]) -> Vec<EndpointSubset> {
    let Some(family) = slices.first().map(|slice| slice.address_type.clone()) else { return Vec::new() };
    let mut room = ADDRESSES_MAX;
    let mut subsets = Vec::new();
    for slice in slices.iter().filter(|slice| slice.address_type == family) {
        let addresses: Vec<_> = slice.endpoints.iter().filter_map(address).take(room).collect();
        room -= addresses.len();
        if !addresses.is_empty() {
            let ports = slice.ports.iter().flatten().filter_map(|port| {
                Some(EndpointPort {
                    app_protocol: port.app_protocol.clone(),
                    name: port.name.clone().filter(|name| !name.is_empty()),
                    port: port.port?,
                    protocol: port.protocol.clone(),
                })
            });
            subsets.push(EndpointSubset {
                addresses: Some(addresses),
                not_ready_addresses: None,
                ports: Some(ports.collect()),
            });
        }
    }
    subsets
}

/// Of an endpoint that is ready.
fn address(endpoint: &Endpoint) -> Option<EndpointAddress> {
    let is_ready = endpoint.conditions.as_ref().is_some_and(|conditions| conditions.ready == Some(true));
    let address = endpoint.addresses.first().filter(|_| is_ready)?;
    Some(EndpointAddress {
        hostname: None,
        ip: address.clone(),
        node_name: endpoint.node_name.clone(),
        target_ref: endpoint.target_ref.clone(),
    })
}

/// The object that is there, changed as it should be; `None` if it is.
pub fn replacement(
    there: Endpoints,
    subsets: &[EndpointSubset],
    owner: &OwnerReference,
) -> Option<Endpoints> {
    let labels = there.metadata.labels.clone().unwrap_or_default();
    let ours = [(SKIP_MIRROR, "true"), (MANAGED_BY_LABEL, vocabulary::SLICE_WRITER)];
    let has_ours = ours.iter().all(|(key, value)| labels.get(*key).map(String::as_str) == Some(*value));
    let is_owned = there.metadata.owner_references.as_deref() == Some(std::slice::from_ref(owner));
    // An empty list comes back as none.
    if has_ours && is_owned && there.subsets.as_deref().unwrap_or_default() == subsets {
        return None;
    }
    let ours = ours.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
    let labels: BTreeMap<String, String> = labels.into_iter().chain(ours).collect();
    let mut next = there;
    next.metadata.labels = Some(labels);
    next.metadata.managed_fields = None;
    // The object is deleted with the Service, as our slices are.
    next.metadata.owner_references = Some(vec![owner.clone()]);
    next.subsets = Some(subsets.to_vec());
    Some(next)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn slice(family: &str, endpoints: &[(&str, bool)]) -> EndpointSlice {
        let endpoints: Vec<Value> = endpoints
            .iter()
            .map(|(address, ready)| json!({"addresses": [address], "conditions": {"ready": ready}}))
            .collect();
        let ports = json!([{"name": "", "port": 8012, "protocol": "TCP"}]);
        let slice = json!({"addressType": family, "metadata": {}, "endpoints": endpoints, "ports": ports});
        serde_json::from_value(slice).expect("an EndpointSlice")
    }

    fn addresses(subsets: &[EndpointSubset]) -> Vec<&str> {
        let all = subsets.iter().flat_map(|subset| subset.addresses.iter().flatten());
        all.map(|address| address.ip.as_str()).collect()
    }

    #[test]
    fn readers_of_endpoints_find_the_ready_addresses_of_the_first_family() {
        let four = slice("IPv4", &[("10.0.0.1", true), ("10.0.0.2", false)]);
        let six = slice("IPv6", &[("fd00::1", true)]);
        let nobody = slice("IPv4", &[("10.0.0.3", false)]);
        let subsets = desired(&[&four, &six, &nobody]);
        assert_eq!(addresses(&subsets), ["10.0.0.1"]);
        let port = &subsets[0].ports.as_deref().expect("it has ports")[0];
        assert_eq!((port.port, &port.name), (8012, &None), "Endpoints leave an empty name out");
        assert_eq!(desired(&[]), []);
    }

    #[test]
    fn endpoints_name_no_more_addresses_than_kubernetes_itself_would_write() {
        let all: Vec<String> = (0..1200).map(|n| format!("10.0.{}.{}", n / 250, n % 250)).collect();
        let slices: Vec<EndpointSlice> = all
            .chunks(100)
            .map(|chunk| slice("IPv4", &chunk.iter().map(|one| (one.as_str(), true)).collect::<Vec<_>>()))
            .collect();
        let subsets = desired(&slices.iter().collect::<Vec<_>>());
        assert_eq!(addresses(&subsets).len(), ADDRESSES_MAX);
    }

    #[test]
    fn existing_endpoints_are_marked_and_owned_once() {
        let owner = |uid: &str| OwnerReference { uid: uid.to_owned(), ..OwnerReference::default() };
        let subsets = desired(&[&slice("IPv4", &[("10.0.0.1", true)])]);
        let there =
            json!({"metadata": {"name": "hello", "labels": {"app": "hello"}, "resourceVersion": "7"}});
        let there: Endpoints = serde_json::from_value(there).expect("Endpoints");
        let next = replacement(there, &subsets, &owner("s1")).expect("it is not as it should be");
        let labels = next.metadata.labels.clone().unwrap_or_default();
        assert_eq!((labels[SKIP_MIRROR].as_str(), labels["app"].as_str()), ("true", "hello"));
        assert_eq!(next.metadata.resource_version.as_deref(), Some("7"), "not over a later one");
        assert_eq!(next.metadata.owner_references, Some(vec![owner("s1")]));
        assert_eq!(replacement(next.clone(), &subsets, &owner("s1")), None);
        assert!(replacement(next.clone(), &subsets, &owner("s9")).is_some(), "a Service made anew");
        assert!(replacement(next, &[], &owner("s1")).is_some());
    }
}
