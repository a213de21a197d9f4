//! What do the objects of a cluster say that concerns us? Each is read once, into a small record, and
//! dropped: a pod is 10 KB as Kubernetes writes it and a few hundred bytes as we need it.
//!
//! Reading is pure and total: each object gives a record or a sentence for people.

pub(crate) mod activator;
pub(crate) mod app_container;
pub mod autoscaler;
pub mod kind;
pub mod other_slice;
pub mod pod;
pub(crate) mod ports;
pub mod scaled_pod;
pub mod selector;
pub mod service;
pub mod workload;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Namespace and name of an object, whose kind follows from the context.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Empty for an object of no namespace.
    pub namespace: String,
    /// The object's name in its namespace.
    pub name: String,
}

impl ObjectKey {
    /// The key of the object with this metadata.
    pub fn of(metadata: &ObjectMeta) -> Self {
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
        }
    }
}
