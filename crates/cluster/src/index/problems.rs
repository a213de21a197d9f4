//! What should people know of each object? Notices are problems in the API for as long as they hold, and once
//! Events of the object.

use std::collections::BTreeSet;

use orchestration::Subject;
use vocabulary::{PodName, RevisionName};

use super::notices::Announcement;
use super::{Index, Workload, revision_keys};
use crate::custody::Custody;
use crate::event_book::EventObject;
use crate::incident::ClusterIncident;
use crate::notice::{KEPT_HOOK, Notice, PART_FAILED, SESSION_AFFINITY};
use crate::resources::ObjectKey;
use crate::resources::pod::PodObject;
use crate::resources::service::ServiceClaim;

impl Index {
    /// What has not been announced yet.
    pub(crate) fn take_announcements(&mut self) -> impl Iterator<Item = Announcement> {
        self.notices.take_announcements().into_iter()
    }

    /// Takes what should stand in the log.
    pub(crate) fn take_incidents(&mut self) -> Vec<ClusterIncident> {
        self.notices.take_incidents()
    }

    /// Announces all notices that hold about these subjects, for an owner that writes Events from now on.
    pub(crate) fn announce_all(&mut self, is_ours: impl Fn(&Subject) -> bool) {
        self.notices.announce_all(is_ours);
    }

    /// The object that something is about, if it is there and can have Events.
    pub(crate) fn event_object(&self, about: &Subject) -> Option<EventObject> {
        let object = |api_version: &str, kind: &str, namespace: &str, name: &str, uid: &str| EventObject {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
        };
        match about {
            Subject::Revision(revision) if revision.kind() == "service" => {
                let (namespace, name) = (revision.namespace().to_owned(), revision.name().to_owned());
                let key = ObjectKey { namespace, name };
                let uid = &self.services.record(&key)?.uid;
                Some(object("v1", "Service", &key.namespace, &key.name, uid))
            }
            Subject::Revision(revision) => match revision_keys::key_of(revision) {
                Some(key) => self.revision_object(&key),
                None => self.workload_object(revision),
            },
            Subject::Pod(pod) => {
                let record = self.pods.record(pod)?;
                Some(object("v1", "Pod", &record.namespace, &record.name, &record.uid))
            }
            Subject::Activator(name) => {
                let record = self.pods.activator(name)?;
                Some(object("v1", "Pod", &record.namespace, name.as_str(), &record.uid))
            }
            Subject::Configuration => None,
        }
    }

    /// The workload of a revision, as an object that can have Events.
    pub(super) fn workload_object(&self, revision: &RevisionName) -> Option<EventObject> {
        let record = self.record_of(revision)?;
        Some(EventObject {
            api_version: record.resource.api_version.clone(),
            kind: record.resource.kind.clone(),
            namespace: revision.namespace().to_owned(),
            name: record.object.clone(),
            uid: record.uid.clone(),
        })
    }

    /// A workload's own: what is wrong with its annotations, and why its count is not ours alone.
    pub(super) fn notice_workload(&mut self, revision: &RevisionName) {
        if let Some(key) = revision_keys::key_of(revision) {
            let warnings = self.revisions.warnings(&key).to_vec();
            return self.notices.put(Subject::Revision(revision.clone()), warnings);
        }
        let concerns_us = |workload: &&Workload| {
            let shadow = workload.settings.as_ref().and_then(|settings| settings.scaling.shadow);
            shadow == Some(true) || self.services.is_served(revision)
        };
        let Some(workload) = self.workloads.get(revision).filter(concerns_us) else {
            return self.notices.put(Subject::Revision(revision.clone()), Vec::new());
        };
        let restraint = self.restraint(revision, workload);
        let own = workload.problems.iter().cloned().chain(own_hooks_notice(&workload.own_hooks));
        let notices = own.chain(self.wait_refusal_notice(revision)).chain(restraint.notices).collect();
        self.notices.put(Subject::Revision(revision.clone()), notices);
    }

    /// Looks which containers of a workload's pods end by a hook of their own.
    pub(super) fn review_hooks(&mut self, revision: &RevisionName) {
        let hooks = self.pods_of(revision).flat_map(|pod| &pod.record.own_hooks).cloned().collect();
        // Pods come and go by the dozen with the same hooks.
        if self.workloads.put_hooks(revision, hooks) {
            self.notice_workload(revision);
        }
    }

    /// A program of ebb's that ended because of a bug was started again and serves: only kubelet saw that,
    /// and this notice says it.
    pub(super) fn notice_failed_part(&mut self, name: &PodName, pod: &PodObject) {
        let notice = pod.failed_part.as_ref().map(|part| {
            Notice::new(PART_FAILED, format!("pod {name}: {part}; this is a bug of ebb, which goes on since"))
        });
        self.notices.put(Subject::Pod(name.clone()), notice.into_iter().collect());
    }

    /// A pod is gone, and with it what was said of its containers.
    pub(crate) fn forget_failed_part(&mut self, name: &PodName) {
        self.notices.put(Subject::Pod(name.clone()), Vec::new());
    }

    pub(super) fn notice_services_of(&mut self, revision: &RevisionName) {
        for key in self.services.keys_of(revision).cloned().collect::<Vec<_>>() {
            self.notice_service(&key);
        }
    }

    /// Why a Service that names a workload would not be taken over.
    fn refusal(&self, key: &ObjectKey) -> Option<Notice> {
        let service = self.services.record(key)?;
        match &service.claim {
            ServiceClaim::None => None,
            ServiceClaim::Of(_) => service.refusal.clone(),
            ServiceClaim::Refused(notice) => Some(notice.clone()),
        }
    }

    pub(super) fn notice_service(&mut self, key: &ObjectKey) {
        let Some(subject) = service_subject(key) else { return };
        let custody = self.services.custody(key);
        let mut notices: Vec<Notice> = match (custody, self.refusal(key)) {
            (Some(Custody::Adopted(_)), refusal) => refusal.into_iter().collect(),
            // Why it is ours no more says more than that it is.
            (Some(Custody::Abandoned(_)), Some(refusal)) => vec![refusal],
            (custody, _) => custody.and_then(Custody::notice).into_iter().collect(),
        };
        let revision = custody.and_then(Custody::revision);
        notices.extend(revision.and_then(|revision| self.workloads.missing_notice(revision)));
        notices.extend(custody.and_then(|_| self.services.strangers_notice(key)));
        notices.extend(self.forgery_notice(key));
        if matches!(custody, Some(Custody::Adopted(_)))
            && let Some(service) = self.services.adopted(key)
        {
            notices.extend(self.port_problems(service));
            notices.extend(revision.and_then(|revision| self.wait_refusal_notice(revision)));
            if self.services.record(key).is_some_and(|service| service.wants_affinity) {
                let text = "sessionAffinity: an activator that serves the Service sends each request to any pod; a client stays with one pod only while routing is direct";
                notices.push(Notice::new(SESSION_AFFINITY, text));
            }
        }
        self.notices.put(subject, notices);
    }
}

fn own_hooks_notice(containers: &BTreeSet<String>) -> Option<Notice> {
    let names = containers.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    (!containers.is_empty()).then(|| {
        let text = format!(
            "containers with a preStop hook of their own: {names}; each is told to stop when its hook ends, also while requests are under way. Take the hook out of the template, or let the hook only sleep, and ebb's own hook lets the requests end first"
        );
        Notice::new(KEPT_HOOK, text)
    })
}

/// By which a Service is known among problems.
pub(crate) fn service_subject(key: &ObjectKey) -> Option<Subject> {
    RevisionName::new(&key.namespace, "service", &key.name).ok().map(Subject::Revision)
}
