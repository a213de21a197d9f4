//! Which Services are ours, which were, and which slices must go once a Service has changed hands?

use k8s_openapi::api::core::v1::EndpointSubset;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use vocabulary::{RevisionName, Timestamp};

use super::labels::selects;
use super::notices::Announcement;
use super::problems::service_subject;
use super::{Index, Topic};
use crate::custody::{Custody, Traces, custody};
use crate::endpoints;
use crate::incident::ClusterIncident;
use crate::notice::{ADOPTED, GIVEN_BACK, Notice, SEVERAL_WORKLOADS, Tone};
use crate::resources::ObjectKey;
use crate::resources::other_slice::OtherSlice;
use crate::resources::pod::{PodLife, PodObject};
use crate::resources::service::{ServiceRecord, ServiceSelection};
use crate::slices;

/// Slices and Endpoints of other writers on a Service of ours, now that our slices stand.
#[derive(Clone, Debug, PartialEq)]
pub struct Takeover {
    /// The Service, which has the name of its Endpoints object.
    pub service: ObjectKey,
    /// The uid of the Service, which tells it from a later Service of its name.
    pub uid: String,
    /// What its Endpoints object is to say, if there is one.
    pub endpoints: Vec<EndpointSubset>,
    /// Slices of Kubernetes' own controllers.
    pub leftovers: Vec<OtherSlice>,
}

impl Index {
    pub(crate) fn put_service(&mut self, key: &ObjectKey, record: ServiceRecord) {
        let former = self.services.put(key, record);
        let present = self.services.record(key);
        // Made anew under its name it is another Service: connections that were meant for the first must not
        // end at it.
        if let Some(former) = &former
            && present.is_none_or(|present| present.uid != former.uid)
        {
            self.ports.remove_service(&former.uid);
        }
        let changed = former.as_ref() != present;
        let selects = [former.as_ref(), present].into_iter().flatten().any(has_selector);
        self.review(key);
        if changed && selects {
            self.review_restraints(&key.namespace);
        }
        self.ports.unsettle(key.clone());
        if changed && let Some(revision) = self.services.revision_of(key).cloned() {
            self.services.shape(key);
            self.revision_changed(&revision);
            self.notice_service(key);
        } else if changed && self.services.forgeries(key).is_some() {
            self.notice_service(key);
        }
    }

    pub(crate) fn remove_service(&mut self, key: &ObjectKey) {
        let former = self.services.remove(key);
        if let Some(former) = &former {
            self.ports.remove_service(&former.uid);
        }
        self.review(key);
        if self.services.forgeries(key).is_some() {
            self.notice_forgeries(key);
        }
        if former.as_ref().is_some_and(has_selector) {
            self.review_restraints(&key.namespace);
        }
    }

    /// A slice of ours, as it is written. An older copy than we know already is no news.
    pub(crate) fn put_slice(&mut self, slice: EndpointSlice) {
        let key = ObjectKey::of(&slice.metadata);
        let version = |slice: &EndpointSlice| {
            slice.metadata.resource_version.as_deref().and_then(|text| text.parse::<u64>().ok())
        };
        let known = self.services.slice(&key).map(|known| &known.object);
        if let Some(known) = known
            && known.metadata.uid == slice.metadata.uid
            && version(known) > version(&slice)
        {
            return;
        }
        let service = slices::service_of(&slice);
        let is_of_another = known.is_some_and(|known| slices::service_of(known) != service);
        let slice = self.ports.identify(slice);
        self.learn_ports(&slice);
        if is_of_another {
            self.forget_author(&key);
        }
        self.services.put_slice(key.clone(), slice);
        self.note_author(&key);
        let Some(service) = service else { return };
        self.review(&service);
        if let Some(revision) = self.services.revision_of(&service).cloned() {
            self.find_route(&revision);
            self.notices.reroute(revision);
        }
    }

    pub(crate) fn remove_slice(&mut self, key: &ObjectKey) {
        self.forget_author(key);
        let Some(slice) = self.services.remove_slice(key) else { return };
        let Some(service) = slices::service_of(&slice.object) else { return };
        // Before the review, after which the Service may have no revision any more.
        self.notices.reroute_all(self.services.revision_of(&service).cloned());
        self.review(&service);
    }

    /// A slice that is another's.
    pub(crate) fn put_other_slice(&mut self, slice: OtherSlice) {
        let service = ObjectKey { namespace: slice.key.namespace.clone(), name: slice.service.clone() };
        self.services.put_other_slice(slice);
        self.others_changed(&service);
    }

    pub(crate) fn remove_other_slice(&mut self, key: &ObjectKey) {
        if let Some(slice) = self.services.remove_other_slice(key) {
            self.others_changed(&ObjectKey { namespace: key.namespace.clone(), name: slice.service });
        }
    }

    fn others_changed(&mut self, service: &ObjectKey) {
        self.review(service);
        if let Some(revision) = self.services.revision_of(service).cloned() {
            self.notice_service(service);
            self.find_route(&revision);
            self.notices.reroute(revision);
        }
    }

    /// What an Endpoints object that we keep says.
    pub(crate) fn put_endpoints(&mut self, key: &ObjectKey, subsets: Vec<EndpointSubset>) {
        self.notices.reroute_all(self.services.revision_of(key).cloned());
        self.services.put_endpoints(key, Some(subsets));
    }

    pub(crate) fn remove_endpoints(&mut self, key: &ObjectKey) {
        self.services.put_endpoints(key, None);
    }

    /// Everything that was there when we began to look is known: what was judged by less is judged anew.
    pub(crate) fn listed(&mut self) {
        self.workloads.listed();
        for revision in self.services.served().cloned().collect::<Vec<_>>() {
            self.find_route(&revision);
        }
        for key in self.services.keys().cloned().collect::<Vec<_>>() {
            self.review(&key);
            self.notice_service(&key);
        }
    }

    /// What lingers begins to do so, or has done so long enough.
    pub(crate) fn pass(&mut self, now: Timestamp) {
        self.review_start_troubles(now);
        for key in self.services.take_lingered(now) {
            self.review(&key);
        }
    }

    /// Judges anew the custody of a Service: which program writes its endpoints.
    pub(super) fn review(&mut self, key: &ObjectKey) {
        self.review_custody(key);
        if self.services.review_adoption(key) {
            self.notices.tell_all(self.services.revision_of(key).cloned().map(Topic::Pods));
        }
    }

    fn review_custody(&mut self, key: &ObjectKey) {
        let present = self.judge(key);
        let former = self.services.custody(key).cloned().unwrap_or(Custody::Foreign);
        if present == former {
            return;
        }
        let (service, before, after) = (key.clone(), former.clone(), present.clone());
        self.notices.log(ClusterIncident::CustodyChanged { service, former: before, present: after });
        if let Custody::GivingBack(revision) = &former
            && let Some(service) = self.services.record(key)
            && self.written_for(key, &service.uid).is_none()
        {
            self.given_back(key, revision.clone());
        }
        // Judged once more: having just been given back, it lingers.
        let present = self.judge(key);
        self.services.put_custody(key, present.clone());
        if present == Custody::Foreign
            && let Some(service) = self.services.record(key)
        {
            // No client reaches activators for the Service any more.
            self.ports.remove_service(&service.uid);
        }
        self.ports.unsettle(key.clone());
        for revision in [former.revision(), present.revision()].into_iter().flatten() {
            if present.revision() == Some(revision) {
                if self.services.serve(key, revision) {
                    self.workloads.kinds_mut().name(revision);
                }
            } else if self.services.no_longer_serve(key, revision) {
                self.workloads.kinds_mut().unname(revision);
            }
            self.revision_changed(revision);
        }
        self.notice_service(key);
    }

    fn judge(&self, key: &ObjectKey) -> Custody {
        let Some(service) = self.services.record(key) else { return Custody::Foreign };
        let lingers = self.services.lingers_for(key).cloned();
        let traces = Traces { slices: self.written_for(key, &service.uid), lingers };
        let judged = custody(service, &traces);
        // Only before slices of ours stand: a Service that is served already is not dropped because a pod has
        // strayed in.
        match &judged {
            Custody::Prepared(revision) | Custody::Adopted(revision) if traces.slices.is_none() => {
                self.stray_pod(key, service, revision).map_or(judged, Custody::Refused)
            }
            Custody::Foreign
            | Custody::Refused(_)
            | Custody::Prepared(_)
            | Custody::Adopted(_)
            | Custody::GivingBack(_)
            | Custody::Abandoned(_)
            | Custody::Lingering(_) => judged,
        }
    }

    /// The revision for which the slices of ours were written that a Service has.
    fn written_for(&self, key: &ObjectKey, uid: &str) -> Option<RevisionName> {
        let mut ours = self.services.known_slices_of(key, uid).filter(|slice| self.is_genuine(slice));
        ours.find_map(|slice| slices::revision_of(&slice.object, &key.namespace))
    }

    /// A pod that the Service reaches today, and would not if it were ours.
    fn stray_pod(&self, key: &ObjectKey, service: &ServiceRecord, revision: &RevisionName) -> Option<Notice> {
        let workload = self.workloads.get(revision)?;
        let others: Vec<&OtherSlice> = self.services.leftovers_of(key).collect();
        let is_reached = |pod: &PodObject| match &service.selection {
            ServiceSelection::Labels(wanted) => selects(wanted, &pod.labels),
            ServiceSelection::None => others.iter().any(|slice| slice.pods.contains(&pod.name)),
        };
        let lives = |pod: &PodObject| matches!(pod.life, PodLife::Pending | PodLife::Running);
        let stray = self.pods.all_in(&key.namespace).find(|pod| {
            lives(pod) && is_reached(pod) && !self.workloads.is_pod_of(pod, revision, workload)
        })?;
        let text = format!(
            "the Service reaches pod {} too, which is not of {}/{}: one Service cannot be served for two workloads; make two Services",
            stray.name,
            revision.kind(),
            revision.name()
        );
        Some(Notice::new(SEVERAL_WORKLOADS, text))
    }

    fn given_back(&mut self, key: &ObjectKey, revision: RevisionName) {
        if let Some(about) = service_subject(key) {
            let text = format!("Kubernetes serves the Service again; ebb's endpoints of {revision} are gone");
            let notice = Notice::new(GIVEN_BACK, text);
            self.notices.announce(Announcement { about, notice, tone: Tone::Normal });
        }
        self.services.linger(key, revision);
    }

    /// Tells people once our slices stand and nothing of Kubernetes' own does; returns whether that is so.
    pub(crate) fn announce_adopted(&mut self, key: &ObjectKey) -> bool {
        if self.services.leftovers_of(key).next().is_some() {
            return false;
        }
        let Some(Custody::Adopted(revision)) = self.services.custody(key) else { return true };
        let text = format!("the Service is served through ebb, for {}/{}", revision.kind(), revision.name());
        if let Some(about) = service_subject(key) {
            let notice = Notice::new(ADOPTED, text);
            self.notices.announce(Announcement { about, notice, tone: Tone::Normal });
        }
        true
    }

    /// What others have left on Services of a revision whose slices of ours are as they should be. One at a
    /// time.
    pub(crate) fn takeover(&self, revision: &RevisionName) -> Option<Takeover> {
        self.services.ours_of(revision).find_map(|key| self.takeover_of(key))
    }

    fn takeover_of(&self, key: &ObjectKey) -> Option<Takeover> {
        let uid = &self.services.record(key)?.uid;
        let ours: Vec<&EndpointSlice> = self.services.slices_of(key, uid).collect();
        let leftovers: Vec<OtherSlice> = self.services.leftovers_of(key).cloned().collect();
        // Make before break: the endpoints of their slices serve until ours name one.
        let names_somebody = ours.iter().any(|slice| !slice.endpoints.is_empty());
        let desired = endpoints::desired(&ours);
        let is_behind = self.services.endpoints(key).is_some_and(|there| there != desired);
        let must_go = !leftovers.is_empty();
        (names_somebody && (must_go || is_behind)).then(|| Takeover {
            service: key.clone(),
            uid: uid.clone(),
            endpoints: desired,
            leftovers,
        })
    }

    /// The pods that clients reach have changed in a namespace, and with them the revisions whose counts may
    /// be lowered.
    fn review_restraints(&mut self, namespace: &str) {
        let revisions = self.services.served().filter(|revision| revision.namespace() == namespace);
        for revision in revisions.cloned().collect::<Vec<_>>() {
            self.notices.tell(Topic::Revision(revision.clone()));
            self.notice_workload(&revision);
        }
    }
}

fn has_selector(service: &ServiceRecord) -> bool {
    service.selection != ServiceSelection::None
}
