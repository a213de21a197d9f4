//! Which fact does a topic make, from the objects as they are now?

use std::sync::Arc;

use orchestration::{PlatformFact, PodFacts, RevisionFacts, Subject};
use settings::WaitingPageSetting;
use vocabulary::{LinkChannel, RevisionName, Timestamp};

use super::pods::Pod;
use super::restraint::WriteScope;
use super::{Index, Topic, Workload, revision_keys};
use crate::notice::Notice;
use crate::resources::activator::ActivatorObject;

impl Index {
    /// The next fact for the autoscaler, if anything has changed.
    pub(crate) fn next_fact(&mut self, now: Timestamp) -> Option<PlatformFact> {
        while let Some(topic) = self.notices.next_topic() {
            if let Some(fact) = self.render(topic, now) {
                return Some(fact);
            }
        }
        None
    }

    /// Makes facts of all objects, for an autoscaler that has received none yet.
    pub(crate) fn resend_everything(&mut self) {
        // An autoscaler that never heard of an object must not be told that it is gone.
        self.notices.forget_all_sent();
        self.notices.tell_all([Topic::Configuration, Topic::Activators]);
        let problems: Vec<Topic> = self.notices.subjects().cloned().map(Topic::Problems).collect();
        self.notices.tell_all(problems);
        self.resend_counts_and_routes();
        let pods = self.workloads.names().cloned().map(Topic::Pods);
        self.notices.tell_all(pods);
        let failed = self.workloads.iter().filter(|(_, workload)| workload.last_failure.is_some());
        self.notices.tell_all(failed.map(|(revision, _)| Topic::Failure(revision.clone())));
    }

    /// Makes facts of all counts and routes once more, for a new owner: the former one may have changed them.
    pub(crate) fn resend_counts_and_routes(&mut self) {
        self.workloads.counts_mut().told_anew();
        self.notices.tell_all(self.workloads.names().cloned().map(Topic::Revision));
        self.notices.tell_all(self.services.routes().map(|(revision, _)| Topic::Route(revision.clone())));
    }

    /// `None` for a topic without a fact: a workload that no Service of ours names.
    fn render(&mut self, topic: Topic, now: Timestamp) -> Option<PlatformFact> {
        match topic {
            Topic::Configuration => Some(PlatformFact::ConfigChanged(Arc::clone(self.workloads.cluster()))),
            Topic::Problems(about) => {
                let notices = self.notices.of(&about).iter();
                let problems = notices.map(|notice| in_words(&about, notice)).collect();
                Some(PlatformFact::ProblemsChanged { about, problems })
            }
            Topic::Revision(revision) => self.render_revision(revision),
            Topic::Pods(revision) => self.notices.is_sent(&revision).then(|| self.render_pods(revision, now)),
            Topic::Failure(revision) => {
                let workload = self.workloads.get(&revision).filter(|_| self.notices.is_sent(&revision))?;
                let failure = workload.last_failure.clone()?;
                Some(PlatformFact::PodFailed { revision, failure })
            }
            Topic::Activators => {
                let facts = self.pods.activators().map(ActivatorObject::facts);
                Some(PlatformFact::ActivatorsChanged(facts.collect()))
            }
            Topic::Route(revision) => {
                let route =
                    self.services.route(&revision).filter(|_| self.notices.is_sent(&revision))?.clone();
                Some(PlatformFact::RouteFound { revision, route })
            }
        }
    }

    fn render_revision(&mut self, revision: RevisionName) -> Option<PlatformFact> {
        let facts = self.workloads.get(&revision).and_then(|workload| self.revision_facts(workload));
        match facts.or_else(|| self.closing_facts(&revision)) {
            Some(facts) => {
                self.notices.revision_sent(revision);
                Some(PlatformFact::RevisionChanged(Arc::new(facts)))
            }
            // A new port may not be used before it is on the Lease. Until then the autoscaler keeps what it
            // was told of the revision: were it told that it is gone, activators would refuse its requests.
            None if self.awaits_ports(&revision) => None,
            // The Deployment of a revision of Knative's is gone. Its `PodAutoscaler` follows if the revision
            // ends; else the Deployment comes again.
            None if self.is_kept_for_pods(&revision) => None,
            None if !self.notices.forget_sent(&revision) => None,
            // The `PodAutoscaler` of a revision of Knative's is gone, and no pod of it has a link.
            None if revision_keys::key_of(&revision).is_some() && !self.revisions.has(&revision) => {
                Some(PlatformFact::RevisionRemoved(revision))
            }
            // Its pods go on without us.
            None if self.workloads.contains(&revision) => Some(PlatformFact::RevisionGivenBack(revision)),
            None => Some(PlatformFact::RevisionRemoved(revision)),
        }
    }

    fn revision_facts(&self, workload: &Workload) -> Option<RevisionFacts> {
        if let Some(key) = revision_keys::key_of(&workload.record.revision) {
            return self.knative_facts(&key, workload);
        }
        let settings = workload.settings.clone()?;
        let record = &workload.record;
        // What is only watched need not be adopted: nothing of it is written.
        if settings.scaling.shadow != Some(true) {
            self.services.of_revision(&record.revision).next()?;
        }
        let restraint = self.restraint(&record.revision, workload);
        let entrances = self.entrances(&record.revision)?;
        let page = settings.scaling.waiting_page.as_ref();
        let waiting_page = page.map(WaitingPageSetting::without_file).unwrap_or_default();
        Some(RevisionFacts {
            name: record.revision.clone(),
            settings: settings.scaling,
            container_concurrency: settings.requests.container_concurrency,
            timeouts: settings.requests.timeouts,
            progress_deadline: settings.progress_deadline,
            entrances,
            url: None,
            hop_keys: self.workloads.hop_keys_of(workload),
            wanted: self.workloads.counts().wanted(&record.revision)?,
            may_write: restraint.reach == WriteScope::Everything,
            reachable: true,
            floor: restraint.floor,
            floor_cause: restraint.floor_cause,
            waiting_page,
            hold: restraint.hold,
            origin: workload.origin,
            template: record.template.clone(),
            other_autoscaler: self.workloads.other_autoscaler(&record.revision, workload).cloned(),
        })
    }

    /// The revisions for which prediction is asked, and which are decided about.
    pub(crate) fn predicted_revisions(&self) -> Vec<RevisionName> {
        let is_predicted = |facts: &RevisionFacts| {
            let (limit, deadline) = (facts.container_concurrency, facts.progress_deadline);
            facts.settings.resolve(self.workloads.cluster(), limit, deadline).prediction.is_some()
        };
        let all = self.workloads.iter().filter_map(|(_, workload)| self.revision_facts(workload));
        all.filter(is_predicted).map(|facts| facts.name).collect()
    }

    fn render_pods(&self, revision: RevisionName, now: Timestamp) -> PlatformFact {
        let channel = self.channel_of(&revision);
        let pods: Vec<PodFacts> =
            self.pods_of(&revision).map(|pod| self.pod_facts(&revision, pod, channel, now)).collect();
        PlatformFact::PodsChanged { revision, pods }
    }

    fn pod_facts(
        &self,
        revision: &RevisionName,
        pod: &Pod,
        channel: Option<LinkChannel>,
        now: Timestamp,
    ) -> PodFacts {
        let facts = pod.record.facts(pod.seen_ending, now);
        let takes_link = self.takes_link(revision, &pod.record);
        PodFacts {
            exits: self.exits(revision, pod),
            adoption: self.services.adoption_of(revision, &pod.record),
            trouble: pod.failure_in_words().or(facts.trouble),
            hold: self.hold_of(revision, pod),
            link: revision_keys::link_of(facts.link, channel.filter(|_| !takes_link)),
            ..facts
        }
    }
}

/// All problems stand in one list, so each names its object.
fn in_words(about: &Subject, notice: &Notice) -> String {
    match about {
        Subject::Revision(name) => {
            let kind = if name.kind() == "service" { "Service" } else { name.kind() };
            format!("{kind} {}/{}: {}", name.namespace(), name.name(), notice.text)
        }
        Subject::Configuration | Subject::Pod(_) | Subject::Activator(_) => notice.text.clone(),
    }
}
