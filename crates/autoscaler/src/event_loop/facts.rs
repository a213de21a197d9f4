//! What the platform says. State, not edges: each fact replaces what was known, and one about a stranger is ignored.

use std::sync::Arc;

use platform::{ActivatorFacts, PlatformEvent, PodFacts, RevisionFacts};
use scaling::{ClusterConfig, Event, Reporter, ScalingSpec};
use vocabulary::{PodCount, PodId, ReplicaName, RevisionId, RevisionName, Timestamp};

use super::{ACTIVATORS_FIRST_MAX, EventLoop, Linking};
use crate::links::Priority;
use crate::registry::Former;

impl EventLoop {
    /// Takes in one fact.
    pub(super) fn platform_said(&mut self, event: PlatformEvent) {
        let now = self.clock.now();
        match event {
            PlatformEvent::ConfigChanged(config) => self.config_changed(config, now),
            PlatformEvent::ProblemsChanged(problems) => self.problems_changed(problems),
            PlatformEvent::RevisionChanged(facts) => {
                let wanted = facts.wanted;
                self.revision_changed(facts, wanted, now);
            }
            PlatformEvent::RevisionRemoved(name) => self.revision_removed(&name, now),
            PlatformEvent::PodsChanged { revision, pods } => self.pods_changed(&revision, pods, now),
            PlatformEvent::PodFailed { revision, failure } => {
                if let Some(revision) = self.registry.revision_mut(&revision) {
                    revision.last_failure = Some(failure);
                }
            }
            PlatformEvent::ActivatorsChanged(activators) => self.activators_changed(activators, now),
            PlatformEvent::Synced => self.synced(now),
        }
    }

    fn config_changed(&mut self, config: Arc<ClusterConfig>, now: Timestamp) {
        self.config = config;
        // The count in the facts is as old as they are; since then it was we who gave it.
        let revisions = self.registry.revisions.values();
        let all: Vec<_> = revisions.map(|revision| (Arc::clone(&revision.facts), revision.wanted)).collect();
        for (facts, wanted) in all {
            self.revision_changed(facts, wanted, now);
        }
    }

    fn problems_changed(&mut self, problems: Vec<String>) {
        for problem in problems.iter().filter(|problem| !self.problems.contains(problem)) {
            // The platform, which read it, warns; this is for whoever follows the autoscaler alone.
            tracing::debug!(problem, "configuration refused; the last good one stays");
        }
        self.metrics.problems(problems.len());
        self.problems = problems;
    }

    /// New facts or settings of a revision, and the count that it is to have until the next evaluation.
    fn revision_changed(&mut self, facts: Arc<RevisionFacts>, wanted: PodCount, now: Timestamp) {
        let (spec, origin) = (self.resolve(&facts), facts.origin);
        let revision = self.registry.put_revision(facts, wanted, Arc::clone(&spec));
        self.tell(Event::RevisionChanged { revision, spec, wanted, origin }, now);
        self.tell_pods_their_settings(revision);
        self.touched.insert(revision);
    }

    /// The settings of a revision; the same value as before if nothing changed, since thousands may share a change of the cluster's.
    fn resolve(&self, facts: &RevisionFacts) -> Arc<ScalingSpec> {
        let spec = facts.settings.resolve(&self.config, facts.container_concurrency, facts.progress_deadline);
        let known = self.registry.revision_id(&facts.name).and_then(|id| self.registry.revisions.get(&id));
        match known {
            Some(revision) if *revision.spec == spec => Arc::clone(&revision.spec),
            Some(_) | None => Arc::new(spec),
        }
    }

    fn revision_removed(&mut self, name: &RevisionName, now: Timestamp) {
        let Some((id, revision)) = self.registry.remove_revision(name) else { return };
        tracing::info!(revision = %name, "revision removed");
        self.touched.remove(&id);
        self.releases.retain(|&(_, owner, _)| owner != id);
        self.acknowledgements.revision_left(id);
        self.metrics.forget(name);
        if revision.assignment.is_some() {
            let version = self.versions.next();
            for activator in self.registry.activators.values() {
                activator.outbox.remove(name, version, now);
            }
        }
        self.tell(Event::RevisionRemoved { revision: id }, now);
    }

    fn pods_changed(&mut self, name: &RevisionName, pods: Vec<PodFacts>, now: Timestamp) {
        let Some(id) = self.registry.revision_id(name) else {
            tracing::debug!(revision = %name, "pods of an unknown revision");
            return;
        };
        self.registry.put_pods(id, pods);
        let Some(revision) = self.registry.revisions.get(&id) else { return };
        let staying: Vec<PodId> = revision.pods.keys().copied().collect();
        self.releases.retain(|&(_, owner, pod)| owner != id || staying.contains(&pod));
        let pods = revision.pod_facts();
        self.tell(Event::PodsChanged { revision: id, pods }, now);
        if self.linking == Linking::Everybody {
            self.link_pods(id, now);
        }
        self.touched.insert(id);
    }

    /// Opens links to pods whose link port has become known or has moved, and ends those whose port is gone.
    fn link_pods(&mut self, id: RevisionId, now: Timestamp) {
        let Some(revision) = self.registry.revisions.get(&id) else { return };
        let changed = revision.pods.iter().filter_map(|(&pod, record)| {
            let linked = record.link.as_ref().map(|link| link.address);
            (linked != record.facts.link).then(|| (pod, record.facts.name.clone(), record.facts.link))
        });
        let changed: Vec<_> = changed.collect();
        if changed.is_empty() {
            return;
        }
        let settings = revision.settings();
        let priority = self.priority(id, now);
        for (pod, name, address) in changed {
            let link = address.map(|address| self.links.open_pod(name, address, settings.clone(), priority));
            if self.registry.set_pod_link(id, pod, link) == Former::WasUp {
                self.tell(Event::LinkLost { reporter: Reporter::Pod(pod) }, now);
                self.tell_pod(id, pod, now);
            }
        }
    }

    fn priority(&self, id: RevisionId, now: Timestamp) -> Priority {
        match self.multiscaler.status(id, now) {
            Some(status) if status.waiting > 0 || status.ready_pods.value() == 0 => Priority::Awaited,
            Some(_) | None => Priority::Rest,
        }
    }

    fn activators_changed(&mut self, activators: Vec<ActivatorFacts>, now: Timestamp) {
        let names: Vec<ReplicaName> = activators.iter().map(|activator| activator.name.clone()).collect();
        for gone in self.registry.retain_activators(&names) {
            self.acknowledgements.activator_left(gone);
            self.tell(Event::LinkLost { reporter: Reporter::Activator(gone) }, now);
        }
        for facts in activators {
            self.keep_activator(&facts, now);
        }
        let activators = self.registry.activators.keys().copied().collect();
        self.tell(Event::ActivatorsChanged { activators }, now);
        // Who must acknowledge has changed, for every path and every pod that leaves.
        self.touched.extend(self.registry.revisions.keys());
    }

    fn keep_activator(&mut self, facts: &ActivatorFacts, now: Timestamp) {
        let known = self.registry.activator_id(&facts.name).and_then(|id| self.registry.activators.get(&id));
        if known.is_some_and(|link| link.address == facts.link) {
            return;
        }
        let link = self.links.open_activator(facts.name.clone(), facts.link);
        for assignment in self.registry.revisions.values().filter_map(|revision| revision.assignment.as_ref())
        {
            link.outbox.assign(Arc::clone(assignment), crate::assigner::Urgency::Soon, now);
        }
        let id = self.registry.put_activator(&facts.name, link);
        self.acknowledgements.activator_appeared(id);
    }

    /// The platform has said everything: decisions may reach activators.
    fn synced(&mut self, now: Timestamp) {
        if self.linking != Linking::Nobody {
            return;
        }
        self.linking = Linking::Activators { until: now + ACTIVATORS_FIRST_MAX };
        self.touched.extend(self.registry.revisions.keys());
    }

    /// Pods follow once every activator has spoken, or has had its time.
    pub(super) fn open_pods_when_due(&mut self, now: Timestamp) {
        let Linking::Activators { until } = self.linking else { return };
        if now < until && self.acknowledgements.is_any_unheard() {
            return;
        }
        self.linking = Linking::Everybody;
        let all: Vec<RevisionId> = self.registry.revisions.keys().copied().collect();
        for id in all {
            self.link_pods(id, now);
        }
    }
}
