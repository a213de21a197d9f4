//! What should the Endpoints object of a Service of ours say?
//!
//! When a Service loses its selector, Kubernetes leaves its Endpoints behind as they were, and copies them
//! into a slice, for ever. So one that is there is marked as no business of that copier's, and says what our
//! slices say, for whoever still reads Endpoints. A Service that never had any gets none.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};

/// The copier passes by whatever has this.
const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";
/// Kubernetes says with it whose an Endpoints object is, and writes its own name over ours when it has a
/// selector again.
pub(crate) const MANAGED_BY_LABEL: &str = "endpoints.kubernetes.io/managed-by";
/// What Kubernetes itself puts into one.
const ADDRESSES_MAX: usize = 1000;

/// What our slices of one Service say, of the family that they name first.
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
pub(crate) fn replacement(there: Endpoints, subsets: &[EndpointSubset]) -> Option<Endpoints> {
    let labels = there.metadata.labels.clone().unwrap_or_default();
    let ours = [(SKIP_MIRROR, "true"), (MANAGED_BY_LABEL, vocabulary::SLICE_WRITER)];
    let has_ours = ours.iter().all(|(key, value)| labels.get(*key).map(String::as_str) == Some(*value));
    // An empty list comes back as none.
    if has_ours && there.subsets.as_deref().unwrap_or_default() == subsets {
        return None;
    }
    let ours = ours.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
    let labels: BTreeMap<String, String> = labels.into_iter().chain(ours).collect();
    let mut next = there;
    next.metadata.labels = Some(labels);
    next.metadata.managed_fields = None;
    next.subsets = Some(subsets.to_vec());
    Some(next)
}
