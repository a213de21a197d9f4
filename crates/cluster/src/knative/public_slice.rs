//! Which addresses do clients of a revision get? (Contract §1.1, §3.4.)
//!
//! The controller writes an Endpoints object, and Kubernetes copies that into slices: what clients follow is
//! read there, and never assumed.

use std::collections::BTreeSet;
use std::net::IpAddr;

use k8s_openapi::api::discovery::v1::EndpointSlice;

use crate::resources::ObjectKey;

/// The label by which slices are watched that Kubernetes copied from an Endpoints object.
pub const MIRRORED_SLICES: &str =
    "endpointslice.kubernetes.io/managed-by=endpointslicemirroring-controller.k8s.io";
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// The addresses that one slice names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicSlice {
    /// The Service, which has the name of its revision.
    pub(crate) service: ObjectKey,
    /// The ready addresses: pods' or activators'.
    pub(crate) addresses: BTreeSet<IpAddr>,
}

/// Reads a slice; `None` for one of no Service.
pub fn public_slice(slice: &EndpointSlice) -> Option<PublicSlice> {
    let service = slice.metadata.labels.as_ref()?.get(SERVICE_LABEL)?;
    let service = ObjectKey { namespace: slice.metadata.namespace.clone()?, name: service.clone() };
    let ready = slice.endpoints.iter().filter(|endpoint| {
        let ready = endpoint.conditions.as_ref().and_then(|conditions| conditions.ready);
        ready != Some(false)
    });
    let addresses = ready.flat_map(|endpoint| &endpoint.addresses);
    Some(PublicSlice { service, addresses: addresses.filter_map(|address| address.parse().ok()).collect() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(labels: &Value, endpoints: &Value) -> Option<PublicSlice> {
        let slice = json!({
            "metadata": {"name": "hello-00001-x", "namespace": "default", "labels": labels},
            "addressType": "IPv4",
            "endpoints": endpoints,
        });
        public_slice(&serde_json::from_value(slice).expect("a slice"))
    }

    #[test]
    fn ready_addresses_of_a_services_slice_are_what_clients_get() {
        let ready = json!({"addresses": ["10.0.0.1"], "conditions": {"ready": true}});
        let unready = json!({"addresses": ["10.0.0.2"], "conditions": {"ready": false}});
        let found = read(&json!({SERVICE_LABEL: "hello-00001"}), &json!([ready, unready])).expect("a slice");
        assert_eq!(found.addresses, ["10.0.0.1".parse().expect("an address")].into());
        assert_eq!(
            (found.service.namespace.as_str(), found.service.name.as_str()),
            ("default", "hello-00001")
        );
        assert_eq!(read(&json!({}), &json!([])), None, "of no Service");
    }
}
