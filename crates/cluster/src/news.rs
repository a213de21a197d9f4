//! What do the watches show of a cluster?

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::{EndpointSubset, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;

use crate::knative::{PodAutoscalerRecord, PublicSlice, RevisionDeployment, ServerlessRecord};
use crate::lease::LeaseRecord;
use crate::notice::Notice;
use crate::resources::ObjectKey;
use crate::resources::autoscaler::AutoscalerRecord;
use crate::resources::kind::WorkloadKind;
use crate::resources::other_slice::OtherSlice;
use crate::resources::pod::{self, PodObject};
use crate::resources::service::ServiceRecord;
use crate::resources::workload::ObjectVersion;
use crate::resources::workload::objects::WorkloadReading;

/// One change that a watch shows.
#[derive(Debug)]
pub enum News {
    /// The values of `config-autoscaler`, by key.
    Config(Change<BTreeMap<String, String>>),
    /// The problems of `config-observability`, in words.
    Observability(Change<Vec<String>>),
    /// A Service of the cluster, adopted or not.
    Service(Change<ServiceRecord>),
    /// A workload of this kind, or why it cannot be scaled.
    Workload(WorkloadKind, Change<WorkloadReading>),
    /// Workloads of a kind cannot be looked at, and why.
    KindRefused(WorkloadKind, Notice),
    /// Nothing more comes of a kind, which is not watched any more.
    KindLeft(WorkloadKind),
    /// A pod of the cluster, with a queue-proxy or without one.
    Pod(Change<ShownPod>),
    /// A pod of ebb's own namespace that may be an activator.
    Activator(Change<PodObject>),
    /// An autoscaler of Kubernetes' own.
    Autoscaler(Change<AutoscalerRecord>),
    /// In which zone a node is.
    Zone(Change<Option<String>>),
    /// A slice with ebb's label. Boxed, for it is far larger than any other record.
    Slice(Change<Box<EndpointSlice>>),
    /// A slice that ebb did not write; `None` for one of no Service.
    OtherSlice(Change<Option<OtherSlice>>),
    /// The subsets of an Endpoints object that ebb keeps.
    Endpoints(Change<Vec<EndpointSubset>>),
    /// A Lease of ebb's own namespace.
    Lease(Change<LeaseRecord>),
    /// What is watched in an installed Knative alone.
    Knative(KnativeNews),
}

/// One change of an object that is watched in an installed Knative alone.
#[derive(Debug)]
pub enum KnativeNews {
    /// A `PodAutoscaler`, of our class or of another.
    PodAutoscaler(Change<Box<PodAutoscalerRecord>>),
    /// A `ServerlessService`, of our making or not.
    ServerlessService(Change<Box<ServerlessRecord>>),
    /// A Deployment that may be a revision's; `None` for one of no revision.
    Deployment(Change<Option<Box<RevisionDeployment>>>),
    /// A slice that Kubernetes copied from an Endpoints object; `None` for one of no Service.
    PublicSlice(Change<Option<PublicSlice>>),
    /// A pod of the Deployment `autoscaler`, Knative's or ebb's.
    AutoscalerPod(Change<Box<PodObject>>),
    /// The progress deadline that `config-deployment` sets.
    ProgressDeadline(Change<Duration>),
}

/// A pod, as of this version, if those can be compared.
#[derive(Debug)]
pub struct ShownPod {
    pub(crate) pod: PodObject,
    /// The version of the pod, if versions of it can be compared.
    pub version: Option<ObjectVersion>,
}

impl ShownPod {
    /// Reads a pod as far as it concerns us.
    pub fn read(pod: &Pod) -> Self {
        Self { pod: pod::read(pod), version: ObjectVersion::of(&pod.metadata) }
    }
}

/// What happened to objects of one kind.
#[derive(Debug)]
pub enum Change<Record> {
    /// An object is there, with this content.
    Put(ObjectKey, Record),
    /// An object is not there any more.
    Gone(ObjectKey),
    /// A list is complete, and these are all there are.
    Listed(BTreeSet<ObjectKey>),
}
