//! Which kinds of objects can be scaled?
//!
//! Four are Kubernetes' own. Any other is named as `kubectl` names it, `RESOURCE.GROUP`, and must have a
//! `scale` subresource: that says how many pods there are to be, and which they are.

use std::fmt;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::ReplicationController;
use kube_core::ApiResource;
use vocabulary::RevisionName;

/// The forms of `ebb.dev/revision` that have a meaning, for refusals of others.
pub(crate) const KINDS_IN_WORDS: &str = "\"deployment/NAME\", \"statefulset/NAME\", \"replicaset/NAME\", \"replicationcontroller/NAME\", or \"RESOURCE.GROUP/NAME\" of a resource with a scale subresource, such as \"rollouts.argoproj.io/NAME\"";

/// A kind of objects that have a count of pods and a `scale` subresource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkloadKind {
    /// Kubernetes' own kind for most apps.
    Deployment,
    /// Kubernetes' own kind for apps with an identity.
    StatefulSet,
    /// Kubernetes' own kind that Deployments are made of.
    ReplicaSet,
    /// Kubernetes' own kind of before Deployments.
    ReplicationController,
    /// A kind that a custom resource defines.
    Custom(CustomKind),
}

/// A kind that is not Kubernetes' own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CustomKind {
    /// The plural, as in its path: `rollouts`.
    pub resource: String,
    /// The API group without a version: `argoproj.io`.
    pub group: String,
}

impl WorkloadKind {
    /// As people write it before the name; `None` for what is no kind.
    pub fn read(text: &str) -> Option<Self> {
        match text {
            "deployment" | "deployments.apps" => Some(Self::Deployment),
            "statefulset" | "statefulsets.apps" => Some(Self::StatefulSet),
            "replicaset" | "replicasets.apps" => Some(Self::ReplicaSet),
            "replicationcontroller" => Some(Self::ReplicationController),
            _ => {
                let (resource, group) = text.split_once('.')?;
                let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
                let is_name = |part: &str| !part.is_empty() && part.bytes().all(is_plain);
                let is_custom = is_name(resource) && group.split('.').all(is_name);
                let (resource, group) = (resource.to_owned(), group.to_owned());
                is_custom.then_some(Self::Custom(CustomKind { resource, group }))
            }
        }
    }

    /// That of a revision. Names of revisions are made of kinds, so there is one.
    pub(crate) fn of(revision: &RevisionName) -> Option<Self> {
        Self::read(revision.kind())
    }

    /// The resource of the API server; `None` for a custom kind, which only the API server knows.
    pub fn resource(&self) -> Option<ApiResource> {
        match self {
            Self::Deployment => Some(ApiResource::erase::<Deployment>(&())),
            Self::StatefulSet => Some(ApiResource::erase::<StatefulSet>(&())),
            Self::ReplicaSet => Some(ApiResource::erase::<ReplicaSet>(&())),
            Self::ReplicationController => Some(ApiResource::erase::<ReplicationController>(&())),
            Self::Custom(_) => None,
        }
    }

    /// The revision of a workload of this kind; `None` for a name that no revision has.
    pub fn revision(&self, namespace: &str, name: &str) -> Option<RevisionName> {
        RevisionName::new(namespace, &self.to_string(), name).ok()
    }
}

/// As it stands in a revision's name.
impl fmt::Display for WorkloadKind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deployment => to.write_str("deployment"),
            Self::StatefulSet => to.write_str("statefulset"),
            Self::ReplicaSet => to.write_str("replicaset"),
            Self::ReplicationController => to.write_str("replicationcontroller"),
            Self::Custom(CustomKind { resource, group }) => write!(to, "{resource}.{group}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_one_of_four_or_a_resource_of_a_group() {
        let rows = [
            ("deployment", Some("deployment")),
            ("deployments.apps", Some("deployment")),
            ("statefulset", Some("statefulset")),
            ("replicasets.apps", Some("replicaset")),
            ("replicationcontroller", Some("replicationcontroller")),
            ("rollouts.argoproj.io", Some("rollouts.argoproj.io")),
            ("daemonset", None),
            ("Deployment", None),
            ("rollouts.", None),
            (".argoproj.io", None),
            ("rollouts.argo..io", None),
        ];
        for (text, expected) in rows {
            let read = WorkloadKind::read(text);
            assert_eq!(read.as_ref().map(ToString::to_string).as_deref(), expected, "{text}");
            let again = read.as_ref().and_then(|kind| WorkloadKind::of(&kind.revision("default", "hello")?));
            assert_eq!(again, read, "a revision of it is of it");
        }
    }
}
