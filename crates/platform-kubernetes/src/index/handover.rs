//! Which Services are ours, which were, and which slices must go once a Service has changed hands?

use std::time::Duration;

use k8s_openapi::api::core::v1::EndpointSubset;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use vocabulary::{RevisionName, Timestamp};

use super::notices::Announcement;
use super::problems::service_subject;
use super::{Index, Topic};
use crate::custody::{Custody, Traces, custody};
use crate::endpoints;
use crate::notice::{ADOPTED, FOREIGN_ENDPOINTS, GIVEN_BACK, Notice, SEVERAL_WORKLOADS, Tone};
use crate::resources::ObjectKey;
use crate::resources::other_slice::{OtherSlice, SliceWriter};
use crate::resources::pod::{PodLife, PodObject};
use crate::resources::service::{ServiceRecord, ServiceSelection};
use crate::slices;

/// How long activators still serve a Service that was given back: nodes go by our slices for seconds after
/// those have gone, and connections stand.
const LINGERS_FOR: Duration = Duration::from_secs(60);

/// Slices and Endpoints of other writers on a Service of ours, now that our slices stand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Takeover {
    pub(crate) service: ObjectKey,
    /// The uid of the Service, which tells it from a later Service of its name.
    pub(crate) uid: String,
    /// What its Endpoints object is to say, if there is one.
    pub(crate) endpoints: Vec<EndpointSubset>,
    /// Slices of Kubernetes' own controllers.
    pub(crate) leftovers: Vec<OtherSlice>,
}

impl Index {
    pub(crate) fn put_service(&mut self, key: &ObjectKey, record: ServiceRecord) {
        let former = self.services.insert(key.clone(), record);
        let present = self.services.get(key);
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
        if changed && let Some(revision) = self.revision_of_service(key) {
            self.shape(key);
            self.revision_changed(&revision);
            self.notice_service(key);
        } else if changed && self.forged_slices.contains_key(key) {
            self.notice_service(key);
        }
    }

    /// As we write its endpoints, if we do.
    fn shape(&mut self, key: &ObjectKey) {
        let revision = self.custody.get(key).and_then(Custody::revision);
        let service = revision.and_then(|revision| self.services.get(key)?.adopted_for(key, revision));
        match service {
            Some(service) => self.adopted.insert(key.clone(), service),
            None => self.adopted.remove(key),
        };
    }

    pub(crate) fn remove_service(&mut self, key: &ObjectKey) {
        let former = self.services.remove(key);
        if let Some(former) = &former {
            self.ports.remove_service(&former.uid);
        }
        self.lingering.remove(key);
        self.review(key);
        if self.forged_slices.contains_key(key) {
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
        let known = self.slices.get(&key).map(|known| &known.object);
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
        self.slices.insert(key.clone(), slice);
        self.note_author(&key);
        let Some(service) = service else { return };
        self.review(&service);
        if let Some(revision) = self.revision_of_service(&service) {
            self.find_route(&revision);
            self.notices.reroute(revision);
        }
    }

    pub(crate) fn remove_slice(&mut self, key: &ObjectKey) {
        self.forget_author(key);
        self.believed_slices.remove(key);
        let Some(slice) = self.slices.remove(key) else { return };
        let Some(service) = slices::service_of(&slice.object) else { return };
        // Before the review, after which the Service may have no revision any more.
        self.notices.reroute_all(self.revision_of_service(&service));
        self.review(&service);
    }

    /// A slice that is another's.
    pub(crate) fn put_other_slice(&mut self, slice: OtherSlice) {
        let service = ObjectKey { namespace: slice.key.namespace.clone(), name: slice.service.clone() };
        self.other_slices.insert(slice.key.clone(), slice);
        self.others_changed(&service);
    }

    pub(crate) fn remove_other_slice(&mut self, key: &ObjectKey) {
        if let Some(slice) = self.other_slices.remove(key) {
            self.others_changed(&ObjectKey { namespace: key.namespace.clone(), name: slice.service });
        }
    }

    fn others_changed(&mut self, service: &ObjectKey) {
        self.review(service);
        if let Some(revision) = self.revision_of_service(service) {
            self.notice_service(service);
            self.find_route(&revision);
            self.notices.reroute(revision);
        }
    }

    /// What an Endpoints object that we keep says.
    pub(crate) fn put_endpoints(&mut self, key: ObjectKey, subsets: Vec<EndpointSubset>) {
        self.notices.reroute_all(self.revision_of_service(&key));
        self.endpoints.insert(key, subsets);
    }

    pub(crate) fn remove_endpoints(&mut self, key: &ObjectKey) {
        self.endpoints.remove(key);
    }

    /// Everything that was there when we began to look is known: what was judged by less is judged anew.
    pub(crate) fn listed(&mut self) {
        self.workloads.listed();
        for revision in self.served.keys().cloned().collect::<Vec<_>>() {
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
        let mut over = Vec::new();
        for (key, (_, since)) in &mut self.lingering {
            if now >= *since.get_or_insert(now) + LINGERS_FOR {
                over.push(key.clone());
            }
        }
        for key in over {
            self.lingering.remove(&key);
            self.review(&key);
        }
    }

    /// When what lingers has done so long enough.
    pub(super) fn lingering_ends(&self) -> Option<Timestamp> {
        let since = self.lingering.values().map(|(_, since)| *since);
        // One that no look has seen yet is due at once: its time begins with that look.
        since.map(|since| since.map_or(Timestamp::ZERO, |since| since + LINGERS_FOR)).min()
    }

    /// Judges anew the custody of a Service: who writes its endpoints.
    pub(super) fn review(&mut self, key: &ObjectKey) {
        self.review_custody(key);
        self.review_adoption(key);
    }

    fn review_custody(&mut self, key: &ObjectKey) {
        let present = self.judge(key);
        let former = self.custody.get(key).cloned().unwrap_or(Custody::Foreign);
        if present == former {
            return;
        }
        tracing::info!(namespace = key.namespace, service = key.name, ?former, ?present, "custody");
        if let Custody::GivingBack(revision) = &former
            && let Some(service) = self.services.get(key)
            && self.written_for(key, &service.uid).is_none()
        {
            self.given_back(key, revision.clone());
        }
        // Judged once more: having just been given back, it lingers.
        let present = self.judge(key);
        if present == Custody::Foreign {
            self.custody.remove(key);
            if let Some(service) = self.services.get(key) {
                // No client reaches activators for the Service any more.
                self.ports.remove_service(&service.uid.clone());
            }
        } else {
            self.custody.insert(key.clone(), present.clone());
        }
        self.shape(key);
        self.ports.unsettle(key.clone());
        for revision in [former.revision(), present.revision()].into_iter().flatten() {
            if present.revision() == Some(revision) {
                self.serve(key, revision);
            } else {
                self.no_longer_served(key, revision);
            }
            self.revision_changed(revision);
        }
        self.notice_service(key);
    }

    fn serve(&mut self, key: &ObjectKey, revision: &RevisionName) {
        let keys = self.served.entry(revision.clone()).or_default();
        if keys.is_empty() {
            self.workloads.kinds_mut().name(revision);
        }
        keys.insert(key.clone());
    }

    fn no_longer_served(&mut self, key: &ObjectKey, revision: &RevisionName) {
        let Some(keys) = self.served.get_mut(revision) else { return };
        keys.remove(key);
        if keys.is_empty() {
            self.served.remove(revision);
            self.workloads.kinds_mut().unname(revision);
            self.routes.remove(revision);
            self.ordered_routes.remove(revision);
        }
    }

    fn judge(&self, key: &ObjectKey) -> Custody {
        let Some(service) = self.services.get(key) else { return Custody::Foreign };
        let lingers = self.lingering.get(key).map(|(revision, _)| revision.clone());
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
        let mut ours = self.known_slices_of(key, uid).filter(|slice| self.is_genuine(slice));
        ours.find_map(|slice| slices::revision_of(&slice.object, &key.namespace))
    }

    /// A pod that the Service reaches today, and would not if it were ours.
    fn stray_pod(&self, key: &ObjectKey, service: &ServiceRecord, revision: &RevisionName) -> Option<Notice> {
        let workload = self.workloads.get(revision)?;
        let others: Vec<&OtherSlice> = self.leftovers_of(key).collect();
        let is_reached = |pod: &PodObject| match &service.selection {
            ServiceSelection::Labels(wanted) => selects(wanted, &pod.labels),
            ServiceSelection::None => others.iter().any(|slice| slice.pods.contains(&pod.name)),
        };
        let lives = |pod: &PodObject| matches!(pod.life, PodLife::Pending | PodLife::Running);
        let stray = self.pods.all_in(&key.namespace).find(|pod| {
            lives(pod) && is_reached(pod) && !self.workloads.is_pod_of(pod, revision, workload)
        })?;
        let text = format!(
            "it reaches pod {} too, which is not of {}/{}: one Service cannot be served for two workloads; make two Services",
            stray.name,
            revision.kind(),
            revision.name()
        );
        Some(Notice::new(SEVERAL_WORKLOADS, text))
    }

    fn given_back(&mut self, key: &ObjectKey, revision: RevisionName) {
        if let Some(about) = service_subject(key) {
            let text = format!("Kubernetes serves it again; ebb's endpoints of {revision} are gone");
            let notice = Notice::new(GIVEN_BACK, text);
            self.notices.announce(Announcement { about, notice, tone: Tone::Normal });
        }
        self.lingering.insert(key.clone(), (revision, None));
    }

    /// Tells people once our slices stand and nothing of Kubernetes' own does; returns whether that is so.
    pub(crate) fn announce_adopted(&mut self, key: &ObjectKey) -> bool {
        if self.leftovers_of(key).next().is_some() {
            return false;
        }
        let Some(Custody::Adopted(revision)) = self.custody.get(key) else { return true };
        let text = format!("it is served through ebb, for {}/{}", revision.kind(), revision.name());
        if let Some(about) = service_subject(key) {
            let notice = Notice::new(ADOPTED, text);
            self.notices.announce(Announcement { about, notice, tone: Tone::Normal });
        }
        true
    }

    /// What others have left on Services of a revision whose slices of ours are as they should be. One at a
    /// time.
    pub(crate) fn takeover(&self, revision: &RevisionName) -> Option<Takeover> {
        let keys = self.served.get(revision).into_iter().flatten();
        keys.filter(|key| {
            self.custody.get(*key).is_some_and(|custody| matches!(custody, Custody::Adopted(_)))
        })
        .find_map(|key| self.takeover_of(key))
    }

    fn takeover_of(&self, key: &ObjectKey) -> Option<Takeover> {
        let uid = &self.services.get(key)?.uid;
        let ours: Vec<&EndpointSlice> = self.slices_of(key, uid).collect();
        let leftovers: Vec<OtherSlice> = self.leftovers_of(key).cloned().collect();
        // Make before break: the endpoints of their slices serve until ours name one.
        let names_somebody = ours.iter().any(|slice| !slice.endpoints.is_empty());
        let desired = endpoints::desired(&ours);
        let is_behind = self.endpoints.get(key).is_some_and(|there| *there != desired);
        let must_go = !leftovers.is_empty();
        (names_somebody && (must_go || is_behind)).then(|| Takeover {
            service: key.clone(),
            uid: uid.clone(),
            endpoints: desired,
            leftovers,
        })
    }

    /// Slices that Kubernetes' own controllers wrote for a Service.
    pub(super) fn leftovers_of(&self, key: &ObjectKey) -> impl Iterator<Item = &OtherSlice> {
        self.others_of(key).filter(|slice| !matches!(slice.writer, SliceWriter::Stranger(_)))
    }

    fn others_of(&self, key: &ObjectKey) -> impl Iterator<Item = &OtherSlice> {
        let first = ObjectKey { namespace: key.namespace.clone(), name: String::new() };
        let in_namespace = self.other_slices.range(first..);
        let in_namespace = in_namespace.take_while(|(other, _)| other.namespace == key.namespace);
        in_namespace.map(|(_, slice)| slice).filter(|slice| slice.service == key.name)
    }

    /// The notice of slices of other writers on a Service of ours.
    pub(super) fn strangers_notice(&self, key: &ObjectKey) -> Option<Notice> {
        let mut others = self.others_of(key);
        others.find_map(|slice| match &slice.writer {
            SliceWriter::Stranger(who) => Some(Notice::new(
                FOREIGN_ENDPOINTS,
                format!(
                    "EndpointSlice {} is managed by {who} and sends clients past ebb; delete it if nobody needs it",
                    slice.key.name
                ),
            )),
            SliceWriter::Controller | SliceWriter::Mirror => None,
        })
    }

    pub(super) fn revision_of_service(&self, key: &ObjectKey) -> Option<RevisionName> {
        self.custody.get(key).and_then(Custody::revision).cloned()
    }

    /// Who reaches which pods has changed in a namespace, and with it whose counts may be lowered.
    fn review_restraints(&mut self, namespace: &str) {
        let revisions = self.served.keys().filter(|revision| revision.namespace() == namespace);
        for revision in revisions.cloned().collect::<Vec<_>>() {
            self.notices.tell(Topic::Revision(revision.clone()));
            self.notice_workload(&revision);
        }
    }
}

fn has_selector(service: &ServiceRecord) -> bool {
    service.selection != ServiceSelection::None
}

/// As a Service selects: all of its labels, exactly.
pub(super) fn selects(
    wanted: &std::collections::BTreeMap<String, String>,
    labels: &std::collections::BTreeMap<String, String>,
) -> bool {
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
}
