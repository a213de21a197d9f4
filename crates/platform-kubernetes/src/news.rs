//! What do watches show?

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::EndpointSubset;
use k8s_openapi::api::discovery::v1::EndpointSlice;

use crate::lease::LeaseRecord;
use crate::notice::Notice;
use crate::resources::ObjectKey;
use crate::resources::autoscaler::AutoscalerRecord;
use crate::resources::kind::WorkloadKind;
use crate::resources::other_slice::OtherSlice;
use crate::resources::pod::PodObject;
use crate::resources::service::ServiceRecord;
use crate::resources::workload::ObjectVersion;
use crate::resources::workload::objects::WorkloadReading;

/// One change that a watch shows.
#[derive(Debug)]
pub(crate) enum News {
    Config(Change<BTreeMap<String, String>>),
    /// What is wrong with that ConfigMap, in words.
    Observability(Change<Vec<String>>),
    Service(Change<ServiceRecord>),
    Workload(WorkloadKind, Change<WorkloadReading>),
    /// Workloads of a kind cannot be looked at, and why.
    KindRefused(WorkloadKind, Notice),
    /// Nothing more comes of a kind, which is not watched any more.
    KindLeft(WorkloadKind),
    Pod(Change<ShownPod>),
    Activator(Change<PodObject>),
    Autoscaler(Change<AutoscalerRecord>),
    /// In which zone a node is.
    Zone(Change<Option<String>>),
    /// Boxed, for it is far larger than any other record.
    Slice(Change<Box<EndpointSlice>>),
    OtherSlice(Change<Option<OtherSlice>>),
    Endpoints(Change<Vec<EndpointSubset>>),
    Lease(Change<LeaseRecord>),
}

/// A pod, as of this version, if those can be compared.
#[derive(Debug)]
pub(crate) struct ShownPod {
    pub(crate) pod: PodObject,
    pub(crate) version: Option<ObjectVersion>,
}

/// What happened to objects of one kind.
#[derive(Debug)]
pub(crate) enum Change<Record> {
    /// It is there, as this.
    Put(ObjectKey, Record),
    Gone(ObjectKey),
    /// A list is complete, and these are all there are.
    Listed(BTreeSet<ObjectKey>),
}
