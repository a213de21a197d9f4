//! What is there, and what follows from it for whoever decides?
//!
//! A synchronous value: objects go in ([`Index::put_service`] and its like), what has changed comes out as [`Topic`]s, each of which is rendered when there is
//! room for it. So a subject that changes a hundred times while nobody reads is told once, as it is then.

mod facts;
mod ports;
mod routes;
mod targets;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use orchestration::{OtherAutoscaler, RouteInForce, Subject};
use scaling::{ClusterConfig, RevisionOrigin};
use vocabulary::{LinkToken, PodName, PodState, ReplicaName, RevisionName, Timestamp};

use crate::port_book::PortBook;
use crate::resources::ObjectKey;
use crate::resources::activator::{self, ActivatorRecord};
use crate::resources::autoscaler::AutoscalerRecord;
use crate::resources::pod::{PodLife, PodRecord};
use crate::resources::service::{AdoptedService, ServiceRecord};
use crate::resources::workload::{WorkloadRecord, WorkloadSettings};
use crate::secrets::HopKeys;
use crate::slices::{self, SERVICE_LABEL};

/// What whoever decides has to be told. In the order in which it is: what is named later stands on what is named earlier.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    Configuration,
    Problems(Subject),
    Revision(RevisionName),
    Pods(RevisionName),
    Activators,
    Route(RevisionName),
}

/// Everything of a cluster that concerns us.
#[derive(Debug)]
pub(crate) struct Index {
    keys: HopKeys,
    activator_token: LinkToken,
    cluster: Arc<ClusterConfig>,
    /// Refused Services too, for their problems.
    services: BTreeMap<ObjectKey, ServiceRecord>,
    workloads: BTreeMap<RevisionName, Workload>,
    pods: BTreeMap<PodName, Pod>,
    /// Pods without a queue-proxy: class hpa counts them.
    plain_pods: BTreeMap<PodName, PodRecord>,
    activators: BTreeMap<ReplicaName, ActivatorRecord>,
    /// Kubernetes' own, and what each scales.
    autoscalers: BTreeMap<ObjectKey, AutoscalerRecord>,
    /// Ours.
    slices: BTreeMap<ObjectKey, EndpointSlice>,
    /// The activators' ports before Services'.
    ports: PortBook,
    /// Services whose ports have perhaps not got theirs.
    unsettled: BTreeSet<ObjectKey>,
    /// Who is to serve, as ordered last or found.
    routes: BTreeMap<RevisionName, RouteInForce>,
    problems: BTreeMap<Subject, Vec<String>>,
    /// Revisions that whoever decides knows.
    told: BTreeSet<RevisionName>,
    topics: BTreeSet<Topic>,
    /// Revisions whose slices may have to be written.
    unrouted: BTreeSet<RevisionName>,
}

#[derive(Debug)]
struct Workload {
    record: WorkloadRecord,
    /// The last good ones.
    settings: Option<WorkloadSettings>,
    origin: RevisionOrigin,
}

#[derive(Debug)]
struct Pod {
    record: PodRecord,
    /// What its queue-proxy said last.
    said: Option<PodState>,
    seen_ending: Option<Timestamp>,
}

impl Index {
    pub(crate) fn new(keys: HopKeys, activator_token: LinkToken) -> Self {
        Self {
            keys,
            activator_token,
            cluster: Arc::default(),
            services: BTreeMap::new(),
            workloads: BTreeMap::new(),
            pods: BTreeMap::new(),
            plain_pods: BTreeMap::new(),
            activators: BTreeMap::new(),
            autoscalers: BTreeMap::new(),
            slices: BTreeMap::new(),
            ports: PortBook::default(),
            unsettled: BTreeSet::new(),
            routes: BTreeMap::new(),
            problems: BTreeMap::new(),
            told: BTreeSet::new(),
            topics: BTreeSet::new(),
            unrouted: BTreeSet::new(),
        }
    }

    /// `config-autoscaler` as it is written; without one the defaults apply.
    pub(crate) fn put_config(&mut self, data: &BTreeMap<String, String>) {
        let problems = match ClusterConfig::parse(data) {
            Ok(checked) => {
                self.cluster = Arc::new(checked.value);
                self.topics.insert(Topic::Configuration);
                let all: Vec<RevisionName> = self.workloads.keys().cloned().collect();
                for revision in &all {
                    self.read_settings(revision);
                }
                checked.warnings
            }
            Err(problems) => problems,
        };
        let lines = problems.into_iter().map(|problem| problem.message).collect();
        self.put_problems(Subject::Configuration, lines);
    }

    pub(crate) fn put_service(&mut self, key: &ObjectKey, record: ServiceRecord) {
        let former = match record {
            ServiceRecord::Foreign => self.services.remove(key),
            ServiceRecord::Refused(_) | ServiceRecord::Adopted(_) => {
                self.services.insert(key.clone(), record)
            }
        };
        let present = self.services.get(key).and_then(adopted);
        let former = former.as_ref().and_then(adopted);
        if let Some(former) = former.filter(|former| present.is_none_or(|present| present.uid != former.uid))
        {
            self.ports.remove_service(&former.uid);
        }
        let revisions = [former, present].map(|service| service.map(|service| service.revision.clone()));
        self.unsettled.insert(key.clone());
        self.tell_problems_of_service(key);
        for revision in revisions.into_iter().flatten() {
            self.revision_changed(&revision);
        }
    }

    pub(crate) fn remove_service(&mut self, key: &ObjectKey) {
        self.put_service(key, ServiceRecord::Foreign);
    }

    /// `origin` says whether it was there before we looked; it counts when the workload is first seen.
    pub(crate) fn put_workload(&mut self, record: WorkloadRecord, origin: RevisionOrigin) {
        let revision = record.revision.clone();
        let former = self.workloads.remove(&revision).filter(|former| former.record.uid == record.uid);
        let is_known = former.as_ref().is_some_and(|former| former.record.says_the_same_as(&record));
        let selects_others = former.as_ref().is_none_or(|former| former.record.selector != record.selector);
        let (settings, origin) = match former {
            Some(former) => (former.settings, former.origin),
            None if record.has_ready_pod => (None, RevisionOrigin::Found),
            None => (None, origin),
        };
        self.workloads.insert(revision.clone(), Workload { record, settings, origin });
        if is_known {
            return;
        }
        self.read_settings(&revision);
        self.unsettle(&revision);
        if selects_others {
            self.pods_changed(&revision);
        }
    }

    pub(crate) fn remove_workload(&mut self, revision: &RevisionName) {
        if self.workloads.remove(revision).is_some() {
            self.put_problems(Subject::Revision(revision.clone()), Vec::new());
            self.routes.remove(revision);
            self.revision_changed(revision);
        }
    }

    pub(crate) fn put_pod(&mut self, record: PodRecord, now: Timestamp) {
        let name = record.pod_name();
        if !record.is_ours() {
            let former = self.plain_pods.get(&name).cloned();
            self.remove_pod(&name);
            if former.as_ref() != Some(&record) {
                self.touch_owners(&record);
            }
            self.plain_pods.insert(name, record);
            return;
        }
        self.plain_pods.remove(&name);
        let former = self.pods.remove(&name).filter(|former| former.record.uid == record.uid);
        if let Some(former) = former.as_ref().filter(|former| former.record == record) {
            let (said, seen_ending) = (former.said, former.seen_ending);
            self.pods.insert(name, Pod { record, said, seen_ending });
            return;
        }
        let is_ending = matches!(record.life, PodLife::Terminating(_) | PodLife::Over);
        let seen_ending = former.as_ref().and_then(|former| former.seen_ending).or(is_ending.then_some(now));
        let said = former.and_then(|former| former.said);
        self.touch_owners(&record);
        self.pods.insert(name, Pod { record, said, seen_ending });
    }

    pub(crate) fn remove_pod(&mut self, name: &PodName) {
        if let Some(pod) = self.plain_pods.remove(name) {
            self.touch_owners(&pod);
        }
        if let Some(pod) = self.pods.remove(name) {
            self.touch_owners(&pod.record);
        }
    }

    /// What a pod's queue-proxy says of itself.
    pub(crate) fn note_state(&mut self, name: &PodName, state: PodState) {
        let Some(pod) = self.pods.get_mut(name) else { return };
        pod.said = Some(state);
        let record = pod.record.clone();
        for revision in self.owners_of(&record) {
            self.unrouted.insert(revision);
        }
    }

    /// A pod of our own namespace, which may be an activator.
    pub(crate) fn put_activator(&mut self, pod: &PodRecord) {
        let name = ReplicaName::new(&pod.name);
        let present = activator::of_pod(pod);
        let is_news = self.activators.get(&name) != present.as_ref();
        match present {
            Some(present) => self.activators.insert(name.clone(), present),
            None => self.activators.remove(&name),
        };
        if is_news {
            self.topics.insert(Topic::Activators);
            let naming = self.routes.iter().filter(|(_, route)| route.activators.contains(&name));
            self.unrouted.extend(naming.map(|(revision, _)| revision.clone()));
        }
    }

    pub(crate) fn remove_activator(&mut self, name: &ReplicaName) {
        if self.activators.remove(name).is_some() {
            self.topics.insert(Topic::Activators);
        }
    }

    /// An autoscaler of Kubernetes', or `None` if it is gone.
    pub(crate) fn put_autoscaler(&mut self, key: ObjectKey, record: Option<AutoscalerRecord>) {
        let present = record.as_ref().and_then(|record| record.revision.clone());
        let former = match record {
            Some(record) => {
                if self.autoscalers.get(&key) == Some(&record) {
                    return;
                }
                self.autoscalers.insert(key, record)
            }
            None => self.autoscalers.remove(&key),
        };
        for revision in [former.and_then(|former| former.revision), present].into_iter().flatten() {
            if self.workloads.contains_key(&revision) {
                self.topics.insert(Topic::Revision(revision));
            }
        }
    }

    /// The one that scales a revision too.
    fn other_autoscaler(&self, revision: &RevisionName) -> Option<&OtherAutoscaler> {
        let mut autoscalers = self.autoscalers.values();
        autoscalers.find(|one| one.revision.as_ref() == Some(revision)).map(|one| &one.says)
    }

    /// A slice of ours, as it is written. An older copy than we know already is no news.
    pub(crate) fn put_slice(&mut self, slice: EndpointSlice) {
        let key = ObjectKey::of(&slice.metadata);
        let version = |slice: &EndpointSlice| {
            slice.metadata.resource_version.as_deref().and_then(|text| text.parse::<u64>().ok())
        };
        if let Some(known) = self.slices.get(&key)
            && known.metadata.uid == slice.metadata.uid
            && version(known) > version(&slice)
        {
            return;
        }
        let route = slices::route_of(&slice);
        let revision = self.revision_of_slice(&slice);
        self.learn_ports(&slice);
        self.slices.insert(key, slice);
        let Some(revision) = revision else { return };
        if let Some(route) = route.filter(|_| !self.routes.contains_key(&revision)) {
            self.routes.insert(revision.clone(), route);
            self.topics.insert(Topic::Route(revision.clone()));
        }
        self.unrouted.insert(revision);
    }

    pub(crate) fn remove_slice(&mut self, key: &ObjectKey) {
        if let Some(slice) = self.slices.remove(key) {
            let revision = self.revision_of_slice(&slice);
            self.unrouted.extend(revision);
        }
    }

    /// Who is to serve a revision from now on.
    pub(crate) fn set_route(&mut self, revision: &RevisionName, route: RouteInForce) {
        self.routes.insert(revision.clone(), route);
        self.unrouted.insert(revision.clone());
    }

    /// Somebody else wrote this count.
    pub(crate) fn is_revision(&self, revision: &RevisionName) -> bool {
        self.workloads.contains_key(revision) && self.services_of(revision).next().is_some()
    }

    /// The object that has a revision's count.
    pub(crate) fn uid_of(&self, revision: &RevisionName) -> Option<&str> {
        self.workloads.get(revision).map(|workload| workload.record.uid.as_str())
    }

    /// Revisions whose slices may have to be written.
    pub(crate) fn take_unrouted(&mut self) -> BTreeSet<RevisionName> {
        std::mem::take(&mut self.unrouted)
    }

    /// Whether a slice of ours, as far as we know, names a pod.
    pub(crate) fn is_pod_named(&self, revision: &RevisionName, pod: &PodName) -> bool {
        let Some(pod) = self.pods.get(pod) else { return false };
        let slices = self.services_of(revision).flat_map(|service| self.slices_of(service));
        let mut references =
            slices.flat_map(|slice| &slice.endpoints).filter_map(|endpoint| endpoint.target_ref.as_ref());
        references.any(|reference| reference.uid.as_deref() == Some(pod.record.uid.as_str()))
    }

    /// Whose a pod is.
    pub(crate) fn revision_of_pod(&self, pod: &PodName) -> Option<RevisionName> {
        let record = self.pods.get(pod)?.record.clone();
        self.owners_of(&record).into_iter().next()
    }

    fn services_of(&self, revision: &RevisionName) -> impl Iterator<Item = &AdoptedService> {
        let services = self.services.values().filter_map(adopted);
        services.filter(move |service| service.revision == *revision)
    }

    fn slices_of(&self, service: &AdoptedService) -> impl Iterator<Item = &EndpointSlice> {
        self.slices.values().filter(|slice| is_of(slice, service))
    }

    fn revision_of_slice(&self, slice: &EndpointSlice) -> Option<RevisionName> {
        let mut services = self.services.values().filter_map(adopted);
        services.find(|service| is_of(slice, service)).map(|service| service.revision.clone())
    }

    fn pods_of(&self, revision: &RevisionName) -> impl Iterator<Item = &Pod> {
        let selector = self.workloads.get(revision).map(|workload| &workload.record.selector);
        let namespace = revision.namespace().to_owned();
        self.pods.values().filter(move |pod| {
            pod.record.namespace == namespace
                && selector.is_some_and(|selector| selector.selects(&pod.record.labels))
        })
    }

    /// Those that nobody gave a queue-proxy, nor was to.
    fn plain_pods_of(&self, revision: &RevisionName) -> impl Iterator<Item = &PodRecord> {
        let selector = self.workloads.get(revision).map(|workload| &workload.record.selector);
        let namespace = revision.namespace().to_owned();
        self.plain_pods.values().filter(move |pod| {
            pod.namespace == namespace && selector.is_some_and(|selector| selector.selects(&pod.labels))
        })
    }

    fn owners_of(&self, pod: &PodRecord) -> Vec<RevisionName> {
        let workloads = self.workloads.iter().filter(|(revision, workload)| {
            revision.namespace() == pod.namespace && workload.record.selector.selects(&pod.labels)
        });
        workloads.map(|(revision, _)| revision.clone()).collect()
    }

    fn touch_owners(&mut self, pod: &PodRecord) {
        for revision in self.owners_of(pod) {
            self.pods_changed(&revision);
        }
    }

    fn pods_changed(&mut self, revision: &RevisionName) {
        self.tell_problems_of_services(revision);
        self.topics.insert(Topic::Pods(revision.clone()));
        self.unrouted.insert(revision.clone());
    }

    fn revision_changed(&mut self, revision: &RevisionName) {
        self.topics.insert(Topic::Revision(revision.clone()));
        self.topics.insert(Topic::Pods(revision.clone()));
        // A route that was found before its revision was known is told now.
        let found = self.found_route(revision);
        if let Some(route) = found.filter(|_| !self.routes.contains_key(revision)) {
            self.routes.insert(revision.clone(), route);
        }
        if self.routes.contains_key(revision) {
            self.topics.insert(Topic::Route(revision.clone()));
        }
        self.unrouted.insert(revision.clone());
    }

    /// The route that a revision's slices were written for.
    fn found_route(&self, revision: &RevisionName) -> Option<RouteInForce> {
        let mut slices = self.services_of(revision).flat_map(|service| self.slices_of(service));
        slices.find_map(slices::route_of)
    }

    /// Reads a workload's annotations anew; what was wrong with them, if anything, is a problem, and the last good ones stay.
    fn read_settings(&mut self, revision: &RevisionName) {
        let Some(workload) = self.workloads.get_mut(revision) else { return };
        let problems = match workload.record.settings(&self.cluster) {
            Ok(settings) => {
                workload.settings = Some(settings);
                Vec::new()
            }
            Err(problems) => problems,
        };
        self.put_problems(Subject::Revision(revision.clone()), problems);
        self.revision_changed(revision);
    }

    fn put_problems(&mut self, about: Subject, problems: Vec<String>) {
        if self.problems.get(&about).map(Vec::as_slice).unwrap_or_default() == problems.as_slice() {
            return;
        }
        for problem in &problems {
            tracing::warn!(?about, "{problem}");
        }
        if problems.is_empty() {
            self.problems.remove(&about);
        } else {
            self.problems.insert(about.clone(), problems);
        }
        self.topics.insert(Topic::Problems(about));
    }
}

fn adopted(record: &ServiceRecord) -> Option<&AdoptedService> {
    match record {
        ServiceRecord::Adopted(service) => Some(service),
        ServiceRecord::Foreign | ServiceRecord::Refused(_) => None,
    }
}

fn is_of(slice: &EndpointSlice, service: &AdoptedService) -> bool {
    let named = slice.metadata.labels.as_ref().and_then(|labels| labels.get(SERVICE_LABEL));
    // A Service that was made anew under the same name is another one: its slices go with it.
    let owner = slice.metadata.owner_references.as_deref().unwrap_or_default().first();
    slice.metadata.namespace.as_ref() == Some(&service.namespace)
        && named == Some(&service.name)
        && owner.is_some_and(|owner| owner.uid == service.uid)
}

#[cfg(test)]
mod tests;
