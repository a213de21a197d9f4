//! By what does a slice belong to a Service: its label, and the beginning of its name?

use k8s_openapi::api::discovery::v1::EndpointSlice;

use crate::resources::ObjectKey;

/// Kubernetes names the Service of a slice so.
pub(crate) const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// With this begin the names of all slices of a Service.
pub(crate) fn name_prefix(service: &str) -> String {
    format!("{service}-ebb-")
}

/// The Service that a slice is of.
pub(crate) fn service_of(slice: &EndpointSlice) -> Option<ObjectKey> {
    let name = slice.metadata.labels.as_ref()?.get(SERVICE_LABEL)?.clone();
    Some(ObjectKey { namespace: slice.metadata.namespace.clone()?, name })
}
